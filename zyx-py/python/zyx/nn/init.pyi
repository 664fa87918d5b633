"""Initial values, under the names of `torch.nn.init`: each function gives a tensor new values and gives it back. Written by tools/python_stubs.py."""

from typing import Any, Generic, TypeVar
from .._core import Tensor as Tensor
from .._grad_mode import no_grad as no_grad

_T = TypeVar("_T")

def sparse_(tensor: Any, sparsity: Any, std: Any=0.01, generator: Any=None) -> Any:
    """Normal, but for the share `sparsity` of every column, which is zero (Martens 2010)."""

def dirac_(tensor: Any, groups: Any=1) -> Any:
    """A convolution, of 3 to 5 axes, that gives its input back, as far as there are channels for it."""

def calculate_gain(nonlinearity: Any, param: Any=None) -> Any:
    """By how much weights are larger in front of a function."""

def uniform_(tensor: Any, a: Any=0.0, b: Any=1.0, generator: Any=None) -> Any:
    """Uniform on `[a, b)`."""

def normal_(tensor: Any, mean: Any=0.0, std: Any=1.0, generator: Any=None) -> Any:
    """Normal."""

def trunc_normal_(tensor: Any, mean: Any=0.0, std: Any=1.0, a: Any=..., b: Any=2.0, generator: Any=None) -> Any:
    """Normal, of what lies within `a` and `b`."""

def constant_(tensor: Any, val: Any) -> Any:
    """One number."""

def zeros_(tensor: Any) -> Any:
    """Zeros."""

def ones_(tensor: Any) -> Any:
    """Ones."""

def eye_(tensor: Any) -> Any:
    """The identity matrix."""

def xavier_uniform_(tensor: Any, gain: Any=1.0, generator: Any=None) -> Any:
    """Uniform, so that variances stay on the way there and back (Glorot and Bengio 2010)."""

def xavier_normal_(tensor: Any, gain: Any=1.0, generator: Any=None) -> Any:
    """Normal, so that variances stay on the way there and back (Glorot and Bengio 2010)."""

def kaiming_uniform_(tensor: Any, a: Any=0, mode: Any='fan_in', nonlinearity: Any='leaky_relu', generator: Any=None) -> Any:
    """Uniform, so that variances stay behind a `relu` and its kin (He et al. 2015)."""

def kaiming_normal_(tensor: Any, a: Any=0, mode: Any='fan_in', nonlinearity: Any='leaky_relu', generator: Any=None) -> Any:
    """Normal, so that variances stay behind a `relu` and its kin (He et al. 2015)."""

def orthogonal_(tensor: Any, gain: Any=1.0, generator: Any=None) -> Any:
    """Rows, or columns if there are fewer, that are orthogonal and of length `gain` (Saxe et al. 2013)."""

def constant(*args: Any, **kwargs: Any) -> Any: ...

def dirac(*args: Any, **kwargs: Any) -> Any: ...

def eye(*args: Any, **kwargs: Any) -> Any: ...

def kaiming_normal(*args: Any, **kwargs: Any) -> Any: ...

def kaiming_uniform(*args: Any, **kwargs: Any) -> Any: ...

def normal(*args: Any, **kwargs: Any) -> Any: ...

def orthogonal(*args: Any, **kwargs: Any) -> Any: ...

def sparse(*args: Any, **kwargs: Any) -> Any: ...

def uniform(*args: Any, **kwargs: Any) -> Any: ...

def xavier_normal(*args: Any, **kwargs: Any) -> Any: ...

def xavier_uniform(*args: Any, **kwargs: Any) -> Any: ...
