"""Comparison of tensors under the names of `torch.testing`. Written by tools/python_stubs.py."""

from typing import Any, Generic, TypeVar
from ._core import Tensor as Tensor, tensor as tensor

_T = TypeVar("_T")

def assert_close(actual: Any, expected: Any, *, allow_subclasses: Any=True, rtol: Any=None, atol: Any=None, equal_nan: Any=False, check_device: Any=True, check_dtype: Any=True, check_layout: Any=True, check_stride: Any=False, msg: Any=None) -> Any:
    """An `AssertionError` unless tensors, or those in sequences and mappings, are equal up to `atol + rtol |expected|`, whose defaults depend on the dtype."""

def assert_allclose(actual: Any, expected: Any, rtol: Any=None, atol: Any=None, equal_nan: Any=True, msg: Any='') -> Any:
    """`assert_close` under an older name, dtypes and devices apart."""

def make_tensor(*shape: Any, dtype: Any, device: Any, low: Any=None, high: Any=None, requires_grad: Any=False, noncontiguous: Any=False, exclude_zero: Any=False, memory_format: Any=None) -> Any:
    """Random elements between `low` and `high`, by default -9 and 9."""
