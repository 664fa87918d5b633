"""Fourier transforms under the names, and with the parameters, of `torch.fft`. Written by tools/python_stubs.py."""

from typing import Any, Generic, TypeVar
from ._core import Tensor as Tensor

_T = TypeVar("_T")

def fftfreq(n: Any, d: Any=1.0, *, dtype: Any=None, device: Any=None, requires_grad: Any=False) -> Any:
    """The frequencies of `fft`, in cycles per unit of the spacing `d`."""

def rfftfreq(n: Any, d: Any=1.0, *, dtype: Any=None, device: Any=None, requires_grad: Any=False) -> Any:
    """The frequencies of `rfft`."""

def fftshift(input: Any, dim: Any=None) -> Any:
    """Frequency zero moved to the middle, of tensors without a last axis of pairs."""

def ifftshift(input: Any, dim: Any=None) -> Any:
    """`fftshift` undone."""

def fft(*args: Any, **kwargs: Any) -> Any: ...

def fft2(*args: Any, **kwargs: Any) -> Any: ...

def fftn(*args: Any, **kwargs: Any) -> Any: ...

def ifft(*args: Any, **kwargs: Any) -> Any: ...

def ifft2(*args: Any, **kwargs: Any) -> Any: ...

def ifftn(*args: Any, **kwargs: Any) -> Any: ...

def irfft(*args: Any, **kwargs: Any) -> Any: ...

def irfft2(*args: Any, **kwargs: Any) -> Any: ...

def irfftn(*args: Any, **kwargs: Any) -> Any: ...

def rfft(*args: Any, **kwargs: Any) -> Any: ...

def rfft2(*args: Any, **kwargs: Any) -> Any: ...

def rfftn(*args: Any, **kwargs: Any) -> Any: ...
