"""Tensors from data and back, attributes, conversion to numbers and text."""

import copy
import pickle

import numpy as np
import pytest
import zyx
from conftest import DTYPES, same, sample


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes_are_kept_in_and_out(rng, dtype):
    for shape in [(), (0,), (3,), (2, 0, 3), (2, 3, 4)]:
        a = sample(rng, shape, dtype)
        x = zyx.tensor(a)
        assert x.dtype.name == dtype and x.dtype == zyx.DType(dtype) == getattr(zyx, dtype)
        same(x, a)
        assert x.tolist() == a.tolist()
        assert x.to_bytes() == a.tobytes()


@pytest.mark.parametrize("dtype", DTYPES)
def test_any_strides(rng, dtype):
    a = sample(rng, (4, 6, 5), dtype)
    views = [a.T, a[::-1], a[:, ::-2], a[1:3, ::3, ::-1], np.asfortranarray(a), np.broadcast_to(a[0], (3, 6, 5)),
             np.broadcast_to(a[:1, :1, :1], (2, 2, 2)), a[..., 2], a[2:2], a.transpose(1, 2, 0)[::2]]  # fmt: skip
    for view in views:
        same(zyx.tensor(view), view)
    a.flags.writeable = False
    same(zyx.tensor(a), a)
    same(zyx.tensor(a.astype(a.dtype.newbyteorder(">"))), a)


def test_data_is_copied():
    a = np.arange(4.0)
    x = zyx.tensor(a)
    a[0] = 9
    assert x[0].item() == 0
    y = zyx.Tensor(x)
    assert y is not x and y.tolist() == x.tolist()


def test_numbers_and_lists():
    assert zyx.tensor(1).dtype == zyx.int64 and zyx.tensor(1.0).dtype == zyx.float32
    assert zyx.tensor(True).dtype == zyx.bool and zyx.tensor([1, 2.5]).dtype == zyx.float32
    assert zyx.tensor([]).dtype == zyx.float32 and zyx.tensor([[], []]).shape == (2, 0)
    assert zyx.tensor([True, 2]).tolist() == [1, 2]
    assert zyx.tensor(2**63).dtype == zyx.uint64 and zyx.tensor(2**63).item() == 2**63
    assert zyx.tensor(0.1, dtype="float64").item() == 0.1
    assert zyx.tensor([[1, 2], [3, 4]], dtype=np.float16).tolist() == [[1, 2], [3, 4]]
    assert zyx.tensor((1, (2, 3))[1]).tolist() == [2, 3]
    assert zyx.tensor([np.float64(1.5), np.float64(2)]).dtype == zyx.float64
    assert zyx.tensor([zyx.tensor([1, 2]), np.array([3, 4])]).tolist() == [[1, 2], [3, 4]]
    assert zyx.tensor(np.float64(0.1)).item() == 0.1
    assert zyx.tensor(range(3)).tolist() == [0, 1, 2]


def test_what_is_no_tensor_is_refused():
    for data in ["a", b"a", {"a": 1}, None, object(), np.array(["a"]), np.array([None]), np.array([1j]), [1, "a"]]:
        with pytest.raises(TypeError):
            zyx.tensor(data)
    for data in [[[1], [1, 2]], [1, [2]], [[1], 2], [np.zeros(2), np.zeros(3)]]:
        with pytest.raises(ValueError):
            zyx.tensor(data)
    for data, dtype in [(2**64, None), (-(2**63) - 1, None), (300, "uint8"), (-1, "uint8")]:
        with pytest.raises(OverflowError):
            zyx.tensor(data, dtype=dtype)
    deep = 1.0
    for _ in range(100):
        deep = [deep]
    with pytest.raises(ValueError):
        zyx.tensor(deep)


def test_bfloat16(rng):
    types = pytest.importorskip("ml_dtypes")
    a = rng.normal(size=(3, 4)).astype(types.bfloat16)
    x = zyx.tensor(a)
    assert x.dtype == zyx.bfloat16 and x.numpy().dtype == types.bfloat16
    assert (x.numpy() == a).all() and x.tolist() == a.astype(np.float32).tolist()


def test_attributes():
    x = zyx.zeros(2, 3, dtype="float16")
    assert (x.shape, x.ndim, x.size, x.itemsize, x.nbytes, x.rank(), x.numel()) == ((2, 3), 2, 6, 2, 12, 2, 6)
    assert x.T.shape == (3, 2) and x.mT.shape == (3, 2)
    assert x.device == "cpu:0" and str(x.device) == "cpu:0" and x.device == zyx.Device("cpu")
    assert len(x) == 2 and [row.shape for row in x] == [(3,), (3,)]
    assert x.dtype in {zyx.float16} and repr(zyx.float16) == "zyx.float16" and zyx.f16 is zyx.float16


def test_numbers_of_python():
    x = zyx.tensor([[2.5]])
    assert (float(x), int(x), bool(x), x.item(), complex(x)) == (2.5, 2, True, 2.5, 2.5 + 0j)
    assert [10, 20, 30][zyx.tensor(1)] == 20 and f"{x:.2f}" == "2.50"
    assert not zyx.tensor(0) and zyx.tensor(True).item() is True
    for f in [float, int, bool, lambda x: x.item()]:
        with pytest.raises(ValueError):
            f(zyx.zeros(2))
        with pytest.raises(RuntimeError):
            f(zyx.zeros(0))
    for f in [lambda: [1][zyx.tensor(0.0)], lambda: len(zyx.tensor(1)), lambda: iter(zyx.tensor(1))]:
        with pytest.raises(TypeError):
            f()


def test_text():
    x = zyx.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert str(x) == str(x.numpy())
    assert repr(x) == "tensor([[1., 2.],\n        [3., 4.]], dtype=f32)"
    assert "..." in repr(zyx.zeros(5000)) and repr(zyx.nn.Parameter([1.0])).startswith("Parameter(")


def test_pickle_and_copy():
    x = zyx.tensor([[1, 2], [3, 4]], dtype="int16")
    y = pickle.loads(pickle.dumps(x))
    assert y.dtype == x.dtype and y.tolist() == x.tolist()
    assert all(type(y) is zyx.Tensor and y is not x and y.tolist() == x.tolist() for y in (copy.copy(x), copy.deepcopy(x)))
    assert pickle.loads(pickle.dumps(zyx.float16)) == zyx.float16
    p = zyx.nn.Parameter([1.0, 2.0])
    q = copy.deepcopy(p)
    q.set([5.0, 6.0])
    assert p.tolist() == [1, 2] and q.tolist() == [5, 6] and q.is_trainable()
    assert pickle.loads(pickle.dumps(p)).tolist() == [1, 2]


def test_creation():
    same(zyx.zeros(2, 3), np.zeros((2, 3), np.float32))
    same(zyx.zeros((2, 3)), np.zeros((2, 3), np.float32))
    same(zyx.ones([2], dtype="int32"), np.ones(2, np.int32))
    same(zyx.zeros(()), np.zeros((), np.float32))
    same(zyx.zeros(shape=(2,)), np.zeros(2, np.float32))
    same(zyx.full((2, 2), 7), np.full((2, 2), 7))
    same(zyx.full(3, 2.5), np.full(3, 2.5, np.float32))
    same(zyx.full((), True), np.full((), True))
    for arguments in [(5,), (2, 9), (2, 9, 3), (9, 2, -2), (5, 2), (0,), (-3,)]:
        same(zyx.arange(*arguments), np.arange(*arguments))
    same(zyx.arange(0.0, 1.0, 0.25), np.arange(0.0, 1.0, 0.25, np.float32))
    same(zyx.arange(3, dtype="uint8"), np.arange(3, dtype=np.uint8))
    same(zyx.linspace(0, 1, 5), np.linspace(0, 1, 5, dtype=np.float32))
    same(zyx.linspace(0, 1, 7, dtype="float64"), np.linspace(0, 1, 7), rtol=1e-15)
    same(zyx.eye(3, dtype="int64"), np.eye(3, dtype=np.int64))
    same(zyx.tril(zyx.ones(3, 3)), np.tril(np.ones((3, 3), np.float32)))
    same(zyx.zeros_like(zyx.ones(2, dtype="bool")), np.zeros(2, bool))


def test_random_numbers_follow_the_seed():
    draws = []
    for _ in range(2):
        zyx.manual_seed(3)
        draws.append([zyx.rand(4).tolist(), zyx.randn(2, 2).tolist(), zyx.randint(0, 9, (5,)).tolist()])
    assert draws[0] == draws[1]
    a, b = zyx.Rng(1), zyx.Rng(1)
    assert zyx.rand(3, rng=a).tolist() == zyx.rand(3, rng=b).tolist() != zyx.rand(3, rng=b).tolist()
    x = zyx.rand(10000)
    assert 0 <= x.min().item() and x.max().item() < 1 and abs(x.mean().item() - 0.5) < 0.02
    assert sorted(zyx.permutation(10).tolist()) == list(range(10))


def test_devices():
    assert "cpu:0" in [spec for spec, _, _ in zyx.devices()]
    device = zyx.Device("reference")
    x = zyx.tensor([1.0, 2.0], device=device)
    assert x.device == device and x.to_device("cpu").device == "cpu"
    assert (x * 2).tolist() == [2, 4] and "launches" in device.stats()
    with pytest.raises(RuntimeError):
        x + zyx.ones(2)
    with pytest.raises(RuntimeError):
        zyx.Device("abacus")
    assert {zyx.Device("cpu"): 1}[zyx.zeros(1).device] == 1


def test_quantized_weights():
    weight = zyx.tensor([[0.25, -1.0], [3.0, 4.0]])
    four = zyx.QuantizedMatrix(weight, bits=4, group=2)
    assert four.packed.tolist() == [[0x1A], [0xFD]] and four.packed.dtype == zyx.uint8
    assert (four.bits, four.group, four.scales.shape) == (4, 2, (2, 1))
    x = zyx.tensor([[0.0, 1.0]], requires_grad=True)
    y = four.matmul(x)
    assert y.allclose((x @ four.dequantize().T).detach()) and y.sum().gradient(x)[0].shape == (1, 2)
    eight = zyx.QuantizedMatrix(weight, 8, 1)
    assert eight.dequantize().allclose(weight) and "bits=8" in repr(eight)
    with pytest.raises(ValueError):
        zyx.QuantizedMatrix(weight, 4, 3)


def test_sums_in_any_order_where_it_is_allowed():
    device = zyx.Device("cpu")
    assert device.is_deterministic()
    device.set_deterministic(False)
    try:
        assert not device.is_deterministic()
        index = zyx.tensor([1, 1, 0], device=device)
        sums = zyx.zeros(2, device=device).scatter_add(0, index, zyx.tensor([0.5, 2.0, 1.0], device=device))
        assert sums.tolist() == [1.0, 2.5]
    finally:
        device.set_deterministic()
    assert device.is_deterministic()


def test_measuring_and_tuning_a_device():
    device = zyx.Device("cpu")
    x = zyx.rand(300, 200, device=device)
    x.realize()
    assert not device.is_profiling() and device.profile() == []
    device.set_profiling()
    try:
        (x * 3).exp().sum(0).realize()
        rows = device.profile()
        assert device.is_profiling() and rows
        assert all(name and launches >= 1 and seconds > 0 for name, launches, seconds in rows)
    finally:
        device.set_profiling(False)
    before = device.stats()["peak_bytes"]
    device.reset_peak()
    assert device.stats()["peak_bytes"] <= before
    for _, before, after in device.tune(0.2):
        assert 0 < after <= before
    device.set_tuning(0.05)
    device.set_tuning(None)
    for seconds in (-1.0, float("nan")):
        with pytest.raises(ValueError):
            device.tune(seconds)
