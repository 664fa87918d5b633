"""What the tests share: the CPU as the device, and NumPy's answers to compare with."""

import os

os.environ.setdefault("ZYX_DEVICE", "cpu")

import numpy as np
import pytest
import zyx

DTYPES = ["bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float16", "float32", "float64"]


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def sample(rng, shape, dtype):
    """An array of any dtype with values of both signs where it has them."""
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.startswith("uint"):
        return rng.integers(0, 100, shape).astype(dtype)
    if dtype.startswith("int"):
        return rng.integers(-100, 100, shape).astype(dtype)
    return rng.normal(size=shape).astype(dtype)


def same(got, expected, dtype=True, rtol=0, atol=0):
    """Whether a tensor has the shape, dtype and elements of an array."""
    expected = np.asarray(expected)
    assert isinstance(got, zyx.Tensor)
    assert got.shape == expected.shape
    if dtype:
        assert got.numpy().dtype == expected.dtype
    np.testing.assert_allclose(got.numpy(), expected, rtol=rtol, atol=atol)
