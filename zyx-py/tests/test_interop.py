"""Memory shared with NumPy and through DLPack."""

import gc

import numpy as np
import pytest
import zyx
from conftest import DTYPES, same, sample


def address(array):
    return array.__array_interface__["data"][0]


def test_numpy_shares_the_memory_of_the_cpu():
    x = zyx.arange(1000, dtype="float32")
    a, b = x.numpy(), np.asarray(x)
    assert address(a) == address(b) and not a.flags.writeable
    c = x.numpy(copy=True)
    assert c.flags.writeable and address(c) != address(a)
    assert np.array(x).flags.writeable and np.asarray(x, dtype="float64").dtype == np.float64
    # The array keeps the memory.
    del x, b
    gc.collect()
    others = [zyx.zeros(1000) + i for i in range(8)]
    [y.realize() for y in others]
    assert (a == np.arange(1000)).all()


def test_numpy_functions_take_tensors():
    x = zyx.tensor([1.0, 4.0])
    assert np.sqrt(x).tolist() == [1, 2] and np.concatenate([x, x]).shape == (4,)
    assert np.allclose(x, [1, 4]) and np.array([x, x]).shape == (2, 2)
    assert isinstance(np.ones(2, np.float32) + x, zyx.Tensor)


def test_reference_device_gives_copies():
    x = zyx.tensor([1.0, 2.0], device="reference")
    assert x.numpy().flags.writeable and x.numpy().tolist() == [1, 2]


@pytest.mark.parametrize("dtype", DTYPES)
def test_dlpack_to_numpy_and_back(rng, dtype):
    for shape in [(), (3,), (2, 3), (0, 2)]:
        a = sample(rng, shape, dtype)
        same(zyx.from_dlpack(a), a)
        b = np.from_dlpack(zyx.tensor(a))
        assert b.dtype == a.dtype and b.shape == a.shape and (b == a).all()


def test_dlpack_shares_memory():
    x = zyx.arange(64, dtype="float32")
    assert address(np.from_dlpack(x)) == address(x.numpy())
    a = np.arange(64, dtype=np.float64)
    y = zyx.from_dlpack(a)
    assert address(y.numpy()) == address(a)
    assert zyx.from_numpy(a).numpy().__array_interface__["data"][0] == address(a)
    assert address(zyx.from_dlpack(a, copy=True).numpy()) != address(a)
    # The array lives as long as the tensor needs it.
    del a
    gc.collect()
    assert (y * 2).sum().item() == 64 * 63
    strided = zyx.from_dlpack(np.arange(10)[::-2])
    assert strided.tolist() == [9, 7, 5, 3, 1]
    with pytest.raises(ValueError):
        zyx.from_dlpack(np.arange(10)[::-2], copy=False)


def test_dlpack_protocol():
    x = zyx.tensor([1.0, 2.0])
    assert x.__dlpack_device__() == (1, 0)
    assert "dltensor_versioned" in repr(x.__dlpack__(max_version=(1, 0)))
    plain = x.__dlpack__()
    assert '"dltensor"' in repr(plain)
    assert zyx.from_dlpack(plain).tolist() == [1, 2]
    # A capsule is consumed once.
    with pytest.raises(TypeError):
        zyx.from_dlpack(plain)
    with pytest.raises(BufferError):
        x.__dlpack__(dl_device=(2, 0))
    with pytest.raises(TypeError):
        zyx.from_dlpack(3)
    for _ in range(100):
        x.__dlpack__()
        x.__dlpack__(max_version=(1, 0))


def test_other_libraries_by_dlpack():
    torch = pytest.importorskip("torch")
    t = torch.arange(6, dtype=torch.float32).reshape(2, 3)
    assert zyx.tensor(t.T).tolist() == t.T.tolist()
    assert zyx.from_dlpack(t).numpy().__array_interface__["data"][0] == t.data_ptr()
    x = zyx.tensor([[1.0, 2.0]])
    assert torch.from_dlpack(x).tolist() == [[1, 2]]
    assert zyx.tensor(torch.tensor([1.5], dtype=torch.bfloat16)).dtype == zyx.bfloat16


def test_sequences_that_are_no_lists():
    import array

    assert zyx.tensor(range(3)).dtype == zyx.int64 and zyx.tensor(range(3)).tolist() == [0, 1, 2]
    assert zyx.tensor([range(2), (3, 4)]).tolist() == [[0, 1], [3, 4]]
    assert zyx.tensor(array.array("i", [1, 2])).dtype == zyx.int64
    assert zyx.tensor([range(2), [0.5, 1]]).dtype == zyx.float32
