"""Tensors and machine learning: lazy, fused, on any device. Every method of `Tensor` is a function too."""

from collections.abc import Callable
from typing import Any

from . import array_api as array_api
from . import linalg as linalg
from . import special as special
from . import nn as nn
from . import optim as optim
from ._core import *
from ._core import Parameter, Tensor
from ._grad_mode import enable_grad as enable_grad
from ._grad_mode import inference_mode as inference_mode
from ._grad_mode import no_grad as no_grad
from ._grad_mode import set_grad_enabled as set_grad_enabled

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

def jit(function: Callable[..., Any] | None = None, *, max_kinds: int = 64) -> Callable[..., Any]:
    """A function that is traced once for each shape, dtype and device of its tensors, and replayed after that."""

def from_numpy(array: Any, device: Any = None) -> Tensor:
    """A tensor of a NumPy array, sharing its memory where that is possible."""

def where(condition: Any, *choices: Any) -> Any:
    """`x` where `condition` holds, elsewhere `y`; without both the positions of what is not zero."""

def pow(x: Any, exponent: Any) -> Tensor:
    """`x` to the power `exponent`; either may be a number."""

def polygamma(n: int, x: Tensor) -> Tensor:
    """The `n`-th derivative of the digamma function."""

def meshgrid(*tensors: Any, indexing: str = "ij") -> list[Tensor]:
    """For each vector a tensor with one axis per vector that varies along that vector's own."""

def broadcast_tensors(*tensors: Any) -> list[Tensor]:
    """All tensors in the shape that they have together."""

def cartesian_prod(*tensors: Any) -> Tensor:
    """All combinations of one element of each vector, one per row."""

def block_diag(*tensors: Any) -> Tensor:
    """A matrix with matrices on its diagonal, and zeros elsewhere."""

def atleast_1d(*tensors: Tensor) -> Any:
    """A tensor, or each of several, with at least one axis."""

def combinations(x: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """Every choice of `r` elements of a vector, one per row."""

def tensordot(x: Tensor, y: Tensor, dims: Any = 2) -> Tensor:
    """Sum of products over the last `dims` axes of `x` and the first of `y`, or over two lists of axes."""

def addmv(x: Tensor, matrix: Tensor, vector: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """`beta x + alpha matrix @ vector`."""

def addr(x: Tensor, a: Tensor, b: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """`beta x + alpha` times the outer product of two vectors."""

def addbmm(x: Tensor, a: Tensor, b: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """`beta x + alpha` times the sum of the products of two batches of matrices."""

def renorm(x: Tensor, p: float, dim: int, maxnorm: float) -> Tensor:
    """The slices along an axis scaled down to the p-norm `maxnorm` where theirs is larger."""

def broadcast_shapes(*shapes: Any) -> tuple[int, ...]:
    """The shape that tensors of these shapes have together."""

def mvlgamma(x: Tensor, p: int) -> Tensor:
    """The logarithm of the gamma function of `p` dimensions."""

def isin(x: Tensor, values: Any) -> Tensor:
    """Whether each element is one of `values`."""

def empty(*shape: Any, dtype: Any = "float32", device: Any = None, requires_grad: bool = False) -> Tensor:
    """Zeros: a tensor has a value."""

def empty_like(x: Tensor, *, dtype: Any = None) -> Tensor:
    """Zeros of the shape of `x`: a tensor has a value."""

def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """A tensor of numbers, lists or arrays; a tensor of that dtype and device itself."""

def __getattr__(name: str) -> Callable[..., Any]: ...
