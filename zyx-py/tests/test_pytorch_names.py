"""How many of PyTorch's names are here (`pytorch_names.py`), and the functions among them that are written in Python."""

import copy
import math
import pathlib
import pickle
import sys

import numpy as np
import pytest
import zyx
from pytorch_names import HIDDEN, entries, is_hidden, is_write, shares

F = zyx.nn.functional
# Shares in percent that are reached; they do not fall.
FLOORS = {"torch": 93.0, "torch.Tensor": 93.9, "torch.Tensor (in place)": 98.5, "torch.nn": 100.0, "torch.nn.functional": 100.0, "torch.optim": 94.0, "torch.optim.lr_scheduler": 100.0,
          "torch.utils.data": 95.0}  # fmt: skip


def test_shares_do_not_fall():
    found = shares()
    for module, floor in FLOORS.items():
        here = found[module]["same"] + found[module]["different"]
        share = 100 * here / sum(found[module].values())
        print(f"{module}: {share:.1f} %")
        assert share >= floor, (module, share)
    assert len(entries()) > 1900 and all(HIDDEN.values())
    assert is_hidden("mkldnn_convolution") and not is_hidden("relu") and is_write("add_") and not is_write("requires_grad_")


def test_stubs_are_current():
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tools"))
    import python_stubs

    assert not python_stubs.stale(), "run zyx-py/tools/python_stubs.py"


def close(x, y, tolerance=1e-5):
    np.testing.assert_allclose(x.numpy() if hasattr(x, "numpy") else x, y, rtol=tolerance, atol=tolerance)


def test_what_a_tensor_is():
    x = zyx.ones(2, 3)
    assert x.is_cpu and not x.is_cuda and not x.is_sparse and not x.is_complex() and x.is_signed() and not zyx.ones(1, dtype="uint8").is_signed()
    assert x.get_device() == -1 and x.ndimension() == 2 and x.is_same_size(zyx.zeros(2, 3)) and not x.is_same_size(zyx.zeros(3)) and x.dim_order() == (0, 1)
    assert zyx.tensor([2.0]).is_nonzero() and not zyx.is_nonzero(zyx.tensor(0)) and zyx.is_tensor(x) and not zyx.is_tensor([1])
    with pytest.raises(RuntimeError, match="ambiguous"):
        x.is_nonzero()
    assert x.mH.shape == (3, 2) and x.H.shape == (3, 2) and x.real is x and x.conj() is x and x.isreal().all().item()
    assert x.type() == "torch.FloatTensor" and x.type("torch.LongTensor").dtype == zyx.int64 and x.type(zyx.HalfTensor).dtype == zyx.float16 and x.type(zyx.int32).dtype == zyx.int32
    assert x.new_tensor([1, 2]).dtype == zyx.float32 and x.as_subclass(zyx.Tensor) is x
    with pytest.raises(TypeError):
        x.is_same_size(3)


def test_kinds_of_tensors():
    assert zyx.FloatTensor([1, 2]).dtype == zyx.float32 and zyx.LongTensor([[1], [2]]).shape == (2, 1) and zyx.BoolTensor(2, 3).shape == (2, 3) and zyx.FloatTensor().shape == (0,)
    assert zyx.IntTensor(np.arange(3)).tolist() == [0, 1, 2] and zyx.DoubleTensor(zyx.Size([2, 2])).shape == (2, 2) and zyx.FloatTensor((1, 2)).tolist() == [1, 2]
    assert isinstance(zyx.ones(1), zyx.FloatTensor) and not isinstance(zyx.ones(1), zyx.LongTensor) and isinstance(zyx.arange(2), zyx.LongTensor)
    assert isinstance(zyx.ones(2).shape, zyx.Size) and zyx.Size([2, 3]).numel() == 6 and zyx.Size([2, 3])[1:] == (3,) and isinstance(zyx.float32, zyx.dtype)


def test_limits_of_numbers():
    assert zyx.finfo(zyx.float32).eps == float(np.finfo("float32").eps) and zyx.finfo().max == float(np.finfo("float32").max) and zyx.finfo("float64").tiny == np.finfo("float64").tiny
    assert zyx.finfo(zyx.bfloat16).max == 3.3895313892515355e38 and zyx.finfo(zyx.float16).min == -65504
    for name in ("uint8", "int8", "int16", "int32", "int64"):
        assert (zyx.iinfo(name).min, zyx.iinfo(name).max, zyx.iinfo(name).bits) == (np.iinfo(name).min, np.iinfo(name).max, np.iinfo(name).bits)
    with pytest.raises(TypeError, match="iinfo"):
        zyx.finfo(zyx.int8)
    with pytest.raises(TypeError, match="finfo"):
        zyx.iinfo(zyx.float16)


def test_promotion():
    assert zyx.promote_types("int32", "float16") == zyx.float16 and zyx.promote_types("bool", "uint8") == zyx.uint8
    assert zyx.result_type(zyx.ones(2, dtype="int32"), 1.5) == zyx.float32 and zyx.result_type(zyx.ones(2, dtype="float16"), 1.5) == zyx.float16 and zyx.result_type(1, 2.0) == zyx.float32
    assert zyx.can_cast("int64", "float16") and not zyx.can_cast("float32", "int64") and not zyx.can_cast("int8", "bool")


def test_tensors_of_bytes_and_files(tmp_path):
    data = np.arange(6, dtype="int16")
    assert zyx.frombuffer(data.tobytes(), dtype=zyx.int16, offset=2, count=3).tolist() == [1, 2, 3] and zyx.frombuffer(data, dtype=zyx.int16).tolist() == list(range(6))
    with pytest.raises(ValueError, match="multiple"):
        zyx.frombuffer(b"123", dtype=zyx.int16)
    data.tofile(tmp_path / "x")
    assert zyx.from_file(tmp_path / "x", size=4, dtype=zyx.int16).tolist() == [0, 1, 2, 3]
    with pytest.raises(RuntimeError, match="fewer"):
        zyx.from_file(tmp_path / "x", size=40, dtype=zyx.int16)
    with pytest.raises(NotImplementedError, match="shared"):
        zyx.from_file(tmp_path / "x", True, 1)
    x = zyx.ones(2)
    assert zyx.asarray(x) is x and zyx.asarray(x, copy=True) is not x and zyx.asarray([1.0], dtype="int64").tolist() == [1] and zyx.scalar_tensor(3).dtype == zyx.float32
    assert zyx.range(1, 4).tolist() == [1, 2, 3, 4] and zyx.range(3).tolist() == [0, 1, 2, 3] and zyx.empty_permuted((2, 3), (1, 0)).shape == (2, 3)


def test_medians_and_quantiles_without_nan():
    x = np.random.default_rng(0).normal(size=(4, 7)).astype("float32")
    x[0, :3] = x[2, 5] = np.nan
    t = zyx.tensor(x)
    for q in (0.0, 0.3, 1.0):
        close(t.nanquantile(q), np.nanquantile(x, q))
        close(t.nanquantile(q, 1, True), np.nanquantile(x, q, 1, keepdims=True))
    close(t.nanquantile(zyx.tensor([0.2, 0.7]), 0), np.nanquantile(x, [0.2, 0.7], 0))
    lower = [np.sort(row[~np.isnan(row)])[(np.sum(~np.isnan(row)) - 1) // 2] for row in x]
    values, places = t.nanmedian(1)
    close(values, lower)
    close(t.gather(1, places.unsqueeze(1)).squeeze(1), lower)
    assert zyx.tensor([math.nan]).nanquantile(0.5).isnan().item()


def test_mantissas_and_bessel_functions():
    for dtype in ("float16", "bfloat16", "float32", "float64"):
        x = zyx.tensor([0.0, 1.0, -5.5, 1e-3, 2.0**-14], dtype=dtype)
        mantissa, exponent = x.frexp()
        assert (mantissa * 2.0**exponent).tolist() == x.tolist() and exponent.dtype == zyx.int32
        assert ((mantissa.abs() >= 0.5) & (mantissa.abs() < 1) | (x == 0)).all().item()
    tiny = zyx.tensor([5e-324, 1e-310], dtype="float64").frexp()
    assert [math.ldexp(m, e) for m, e in zip(tiny.mantissa.tolist(), tiny.exponent.tolist())] == [5e-324, 1e-310]
    x = np.linspace(-30, 30, 61)
    close(zyx.tensor(x).i0().log(), np.log(np.i0(x)), 1e-13)
    close(zyx.tensor(x.astype("float32")).i0().log(), np.log(np.i0(x)), 1e-6)
    y = zyx.tensor(2.0, dtype="float64", requires_grad=True)
    close(zyx.grad(y.i0(), y), 1.5906368546373291, 1e-12)


def test_small_functions():
    x = np.random.default_rng(1).normal(size=(5, 4)).astype("float32")
    t = zyx.tensor(x)
    close(t.angle(), np.angle(x))
    close(t.sum_to_size(1, 4), x.sum(0, keepdims=True))
    close(t.sum_to_size(4), x.sum(0))
    with pytest.raises(RuntimeError, match="expandable"):
        t.sum_to_size(3, 4)
    at, other = np.array([0, 2, 2]), np.ones((3, 4), dtype="float32") * 9
    found = x.copy()
    np.maximum.at(found, at, other)
    close(t.index_reduce(0, zyx.tensor(at), zyx.tensor(other), "amax"), found)
    assert zyx.nonzero_static(zyx.tensor([0, 5, 0]), size=2).tolist() == [[1], [-1]] and zyx.tensor([0, 5, 6]).nonzero_static(size=1).tolist() == [[1]]
    close(zyx.nuclear_norm(t), np.linalg.norm(x, "nuc"), 1e-4)
    close(zyx.frobenius_norm(t, (0, 1)), np.linalg.norm(x))
    close(zyx.norm_except_dim(t, 2, 1), np.linalg.norm(x, axis=0, keepdims=True))
    close(zyx.chain_matmul(t, t.T, t), x @ x.T @ x, 1e-4)
    u, s, v = zyx.svd_lowrank(t, 4)
    close((u * s) @ v.T, x, 1e-4)
    close(zyx.pca_lowrank(t, 3)[1], np.linalg.svd(x - x.mean(0))[1][:3], 1e-3)
    assert [p.shape for p in t.unsafe_chunk(2)] == [(3, 4), (2, 4)] and zyx.typename(t) == "torch.FloatTensor"
    assert zyx.instance_norm(zyx.ones(1, 2, 3), None, None, None, None, True, 0.1, 1e-5).shape == (1, 2, 3)
    image, grid = zyx.randn(1, 1, 3, 3), zyx.affine_grid_generator(zyx.eye(2, 3).unsqueeze(0), [1, 1, 3, 3], True)
    close(zyx.grid_sampler(image, grid, 0, 0, True), image.numpy())
    close(zyx.bilinear(t, t, zyx.ones(2, 4, 4)), (x.sum(1) ** 2)[:, None].repeat(2, 1), 1e-4)
    assert zyx.conv_tbc(zyx.ones(5, 2, 3), zyx.ones(2, 3, 4), zyx.zeros(4)).shape == (4, 2, 4)
    assert zyx.embedding_bag(zyx.ones(4, 2), zyx.tensor([0, 1, 2]), zyx.tensor([0, 2]))[0].tolist() == [[2, 2], [1, 1]]


def test_functions_of_networks():
    x = zyx.tensor(np.random.default_rng(2).normal(size=(2, 3, 7, 7)).astype("float32"))
    values, places = F.adaptive_max_pool2d_with_indices(x, (3, 2))
    close(values, F.adaptive_max_pool2d(x, (3, 2)).numpy())
    close(x.flatten(2).gather(2, places.flatten(2)).reshape(values.shape), values.numpy())
    y = zyx.zeros(1, 1, 4, 4, requires_grad=True)
    F.adaptive_max_pool2d(y, 2, True)[0].sum().backward()
    assert y.grad.sum().item() == 4
    values, places = F.fractional_max_pool2d(x, 2, (3, 4), return_indices=True)
    close(x.flatten(2).gather(2, places.flatten(2)).reshape(values.shape), values.numpy())
    assert values.shape == (2, 3, 3, 4) and F.fractional_max_pool3d(zyx.ones(1, 1, 5, 5, 5), 2, output_ratio=0.5).shape == (1, 1, 2, 2, 2)
    with pytest.raises(ValueError, match="does not fit"):
        F.fractional_max_pool2d(x, 3, 7)
    sums = F.avg_pool2d(zyx.ones(1, 1, 5, 5), 2, 2, ceil_mode=True, divisor_override=1)
    assert sums.tolist() == [[[[4, 4, 2], [4, 4, 2], [2, 2, 1]]]]
    slopes = F.rrelu(-zyx.ones(1000), 0.1, 0.3, training=True)
    assert -0.3 <= slopes.min().item() < -0.28 and -0.12 < slopes.max().item() <= -0.1 and F.rrelu(zyx.tensor([-2.0]), 0.1, 0.3).item() == pytest.approx(-0.4)
    dropped = F.feature_alpha_dropout(zyx.ones(50, 20, 3), 0.5, True)
    assert (dropped == dropped[:, :, :1]).all().item() and len(np.unique(dropped.numpy())) == 2
    close(F.upsample(x, scale_factor=2), F.interpolate(x, scale_factor=2).numpy())
    close(F.upsample_bilinear(x, 5), F.interpolate(x, 5, mode="bilinear", align_corners=True).numpy())
    target = zyx.tensor([1, 0])
    w, b, z = zyx.randn(4, 3), zyx.randn(4), zyx.randn(2, 3)
    close(F.linear_cross_entropy(z, w, target, linear_bias=b), F.cross_entropy(z @ w.T + b, target).numpy())
    near, far = zyx.zeros(1, 2), zyx.ones(1, 2) * 3
    assert F.triplet_margin_with_distance_loss(near, near, far, distance_function=lambda a, b: (a - b).abs().sum(1), margin=8.0).item() == 2
    assert F.softmax(zyx.ones(2, 4)).tolist() == [[0.25] * 4] * 2 and F.softmax(zyx.ones(4, 2, 1)).tolist()[0] == [[0.25]] * 2
    z = zyx.tensor([-1.0, 2.0])
    assert F.relu_(z) is z and z.tolist() == [0, 2] and F.leaky_relu(z - 1, 0.5, True).tolist() == [-0.5, 1]
    with pytest.raises(ValueError, match="antialias"):
        F.interpolate(x, 3, antialias=True)


def test_tables_with_options():
    weight = zyx.nn.Parameter(zyx.ones(4, 4))
    rows = F.embedding(zyx.tensor([1, 1, 2]), weight, max_norm=1.0)
    close(rows.norm(2, 1), [1, 1, 1])
    # Rows that are named are shortened in the table, the others are not.
    close(weight.norm(2, 1), [2, 1, 1, 2])
    table = zyx.nn.Embedding(3, 2, scale_grad_by_freq=True)
    table(zyx.tensor([0, 0, 1])).sum().backward()
    assert table.weight.grad.tolist() == [[1, 1], [1, 1], [0, 0]]
    still = zyx.nn.Embedding.from_pretrained(zyx.ones(3, 2))
    assert not still.weight.requires_grad and zyx.nn.Embedding.from_pretrained(zyx.ones(3, 2), freeze=False).weight.requires_grad


def test_generators():
    a, b = zyx.Generator().manual_seed(5), zyx.Generator().manual_seed(5)
    assert zyx.rand(3, generator=a).tolist() == zyx.rand(3, generator=b).tolist() and a.initial_seed() == 5
    state = a.get_state()
    want = zyx.randint(0, 100, (5,), generator=a).tolist()
    for other in (zyx.Generator().set_state(state), pickle.loads(pickle.dumps(zyx.Generator().set_state(state))), copy.deepcopy(zyx.Generator().set_state(state))):
        assert zyx.randint(0, 100, (5,), generator=other).tolist() == want
    loader = [zyx.utils.data.DataLoader(range(20), 5, shuffle=True, generator=zyx.Generator().manual_seed(1)) for _ in range(2)]
    assert [x.tolist() for x in loader[0]] == [x.tolist() for x in loader[1]]
    p = zyx.nn.Parameter(zyx.zeros(3))
    q = zyx.nn.init.normal_(p, generator=zyx.Generator().manual_seed(2)).tolist()
    assert zyx.nn.init.normal_(p, generator=zyx.Generator().manual_seed(2)).tolist() == q
    g = zyx.manual_seed(7)
    x = zyx.rand(2).tolist()
    g.manual_seed(7)
    assert zyx.rand(2).tolist() == x and zyx.initial_seed() == 7 and zyx.manual_seed(-1).initial_seed() == 2**64 - 1
    assert isinstance(zyx.seed(), int)
    with pytest.raises(RuntimeError, match="bytes"):
        a.set_state(zyx.zeros(3, dtype="uint8"))


def test_settings():
    assert zyx.get_default_dtype() == zyx.float32 and zyx.set_default_dtype(zyx.float32) is None and zyx.get_default_device() == zyx.device() and zyx.get_num_threads() >= 1
    zyx.set_default_device(None), zyx.set_num_threads(zyx.get_num_threads()), zyx.set_default_tensor_type("torch.FloatTensor")
    with pytest.raises(NotImplementedError, match="in zyx"):
        zyx.set_num_threads(zyx.get_num_threads() + 1)
    zyx.set_float32_matmul_precision("high")
    assert zyx.get_float32_matmul_precision() == "high"
    with pytest.raises(RuntimeError):
        zyx.set_float32_matmul_precision("low")
    assert zyx.are_deterministic_algorithms_enabled()
    zyx.use_deterministic_algorithms(False)
    try:
        assert not zyx.device().is_deterministic()
    finally:
        zyx.use_deterministic_algorithms(True)
    with zyx.autograd.detect_anomaly():
        assert zyx.is_anomaly_enabled()
    assert not zyx.is_anomaly_enabled()
    assert zyx.backends.cudnn.deterministic and not zyx.backends.mps.is_available() and zyx.backends.cuda.matmul.allow_tf32 is False
    zyx.backends.cudnn.benchmark = True
    with pytest.raises(AttributeError, match="no switch"):
        zyx.backends.cudnn.bench = True
    assert zyx.accelerator.is_available() == (zyx.device().type != "cpu") and zyx.compiler.is_compiling() is False
    with zyx.nn.attention.sdpa_kernel(zyx.nn.attention.SDPBackend.MATH):
        pass


def test_scripts_are_compiled_as_they_are():
    @zyx.jit.script
    def double(x):
        return x * 2

    net = zyx.nn.Linear(1, 1)
    assert double(zyx.ones(1)).item() == 2 and zyx.jit.trace(net, zyx.ones(1)) is net and zyx.compile(net, mode="default") is net and not zyx.jit.is_scripting()
    with pytest.raises(NotImplementedError, match="no file"):
        zyx.jit.save(net, "x")


def test_comparison():
    check = zyx.testing.assert_close
    check(zyx.ones(2), zyx.ones(2) + 1e-7)
    check({"a": [zyx.ones(1), 2.0]}, {"a": [zyx.ones(1), 2.0]})
    check(zyx.tensor([math.nan, math.inf]), zyx.tensor([math.nan, math.inf]), equal_nan=True)
    for a, b, text in [(zyx.ones(2), zyx.ones(3), "shape"), (zyx.ones(2), zyx.ones(2).double(), "dtype"), (zyx.ones(2), zyx.ones(2) + 1e-3, "Mismatched elements: 2 / 2"),
                       ([1], [1, 2], "length"), ({"a": 1}, {"b": 1}, "keys")]:  # fmt: skip
        with pytest.raises(AssertionError, match=text):
            check(a, b)
    assert zyx.testing.make_tensor(2, 3, dtype=zyx.int64, device="cpu", low=0, high=5).shape == (2, 3)


def test_more_initial_values():
    p = zyx.nn.Parameter(zyx.zeros(4, 4, 3))
    zyx.nn.init.dirac_(p)
    x = zyx.randn(1, 4, 6)
    close(F.conv1d(x, p, padding=1), x.numpy())
    sparse = zyx.nn.init.sparse_(zyx.nn.Parameter(zyx.ones(10, 5)), 0.3)
    assert ((sparse == 0).sum(0) == 3).all().item()
    assert zyx.nn.init.constant(p, 2.0) is p and p.mean().item() == 2
