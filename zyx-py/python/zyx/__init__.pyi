"""Tensors and machine learning: lazy, fused, on any device. Every method of `Tensor` is a function too."""

from collections.abc import Callable
from typing import Any

from . import array_api as array_api
from . import nn as nn
from . import optim as optim
from ._core import *
from ._core import Parameter, Tensor

Param = Parameter
__version__: str
inf: float
nan: float
pi: float
e: float
newaxis: None

def grad(loss: Tensor, leaves: Any, cotangent: Tensor | None = None) -> Any:
    """Gradients of `loss` with respect to each of `leaves`, as a list (of one tensor: the gradient)."""

def value_and_grad(function: Callable[..., Tensor], argnums: int | tuple[int, ...] = 0) -> Callable[..., Any]:
    """A function that gives the value of `function`, one number, and its gradient."""

def vmap(
    function: Callable[..., Tensor], in_axes: int | tuple[int | None, ...] = 0, out_axis: int = 0
) -> Callable[..., Tensor]:
    """A function that computes `function` for many examples at once."""

def from_numpy(array: Any, device: Any = None) -> Tensor:
    """A tensor of a NumPy array, sharing its memory where that is possible."""

def where(condition: Any, x: Any, y: Any) -> Tensor:
    """`x` where `condition` holds, elsewhere `y`; all three broadcast."""

class no_grad:
    """For code that is written for PyTorch: there is nothing to switch off."""

def __getattr__(name: str) -> Callable[..., Any]: ...
