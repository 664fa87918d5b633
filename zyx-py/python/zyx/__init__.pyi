"""Tensors and machine learning: lazy, fused, on any device. Every method of `Tensor` is a function too."""

from collections.abc import Callable
from typing import Any

from . import array_api as array_api
from . import autograd as autograd
from . import cuda as cuda
from . import fft as fft
from . import utils as utils
from . import linalg as linalg
from . import onnx as onnx
from . import special as special
from . import nn as nn
from . import optim as optim
from ._core import *
from ._core import Device, DType, Parameter, Tensor
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
# `float` and `int` are dtypes, too; in this file these names are the types of Python.
double: DType
half: DType
long: DType
short: DType

def grad(loss: Tensor, leaves: Any, cotangent: Tensor | None = None) -> Any:
    """Gradients of `loss` with respect to each of `leaves`, as a list (of one tensor: the gradient)."""

def value_and_grad(function: Callable[..., Tensor], argnums: int | tuple[int, ...] = 0) -> Callable[..., Any]:
    """A function that gives the value of `function`, one number, and its gradient."""

def vmap(
    func: Callable[..., Tensor], in_axes: int | tuple[int | None, ...] = 0, out_axis: int = 0, *, in_dims: Any = None, out_dims: Any = None
) -> Callable[..., Tensor]:
    """A function that computes `func` for many examples at once."""

def jit(function: Callable[..., Any] | None = None, *, max_kinds: int = 64) -> Callable[..., Any]:
    """A function that is traced once for each shape, dtype and device of its tensors, and replayed after that."""

def from_numpy(ndarray: Any, device: Any = None) -> Tensor:
    """A tensor of a NumPy array, sharing its memory where that is possible."""

def where(condition: Any, input: Any = None, other: Any = None) -> Any:
    """`input` where `condition` holds, elsewhere `other`; without both the positions of what is not zero."""

def pow(input: Any, exponent: Any) -> Tensor:
    """`input` to the power `exponent`; either may be a number."""

def polygamma(n: int, input: Tensor) -> Tensor:
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

def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """Every choice of `r` elements of a vector, one per row."""

def tensordot(a: Tensor, b: Tensor, dims: Any = 2) -> Tensor:
    """Sum of products over the last `dims` axes of `a` and the first of `b`, or over two lists of axes."""

def addmv(input: Tensor, mat: Tensor, vec: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """`beta input + alpha mat @ vec`."""

def addr(input: Tensor, vec1: Tensor, vec2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """`beta input + alpha` times the outer product of two vectors."""

def addbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """`beta input + alpha` times the sum of the products of two batches of matrices."""

def renorm(input: Tensor, p: float, dim: int, maxnorm: float) -> Tensor:
    """The slices along an axis scaled down to the p-norm `maxnorm` where theirs is larger."""

def broadcast_shapes(*shapes: Any) -> tuple[int, ...]:
    """The shape that tensors of these shapes have together."""

def mvlgamma(input: Tensor, p: int) -> Tensor:
    """The logarithm of the gamma function of `p` dimensions."""

def isin(elements: Any, test_elements: Any, *, assume_unique: bool = False, invert: bool = False) -> Tensor:
    """Whether each element is one of `test_elements`, or with `invert` none of them."""

def empty(*shape: Any, size: Any = None, dtype: Any = "float32", device: Any = None, requires_grad: bool = False) -> Tensor:
    """Zeros: a tensor has a value."""

def empty_like(input: Tensor, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Zeros of the shape of `input`: a tensor has a value."""

def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """A tensor of numbers, lists or arrays; a tensor of that dtype and device itself."""

def device(spec: Any = None, index: int | None = None) -> Device:
    """The device of a name, as in `"cpu"` or `"cuda:0"`, or the one that tensors are made on when none is named: the
    best that opens, or what the environment variable `ZYX_DEVICE` names."""

def compile(model: Any = None, **options: Any) -> Any:
    """The model itself: every computation is compiled."""

def save(obj: Any, f: Any, **options: Any) -> None:
    """Writes tensors, and numbers, strings, lists, tuples and dicts that hold them, to a file: a path or something with
    `write`."""

def load(f: Any, map_location: Any = None, *, weights_only: bool = True, mmap: Any = None) -> Any:
    """What `save` wrote, on the device `map_location`, from a path or something with `read`. Of a file of PyTorch: its
    tensors by name."""

def __getattr__(name: str) -> Callable[..., Any]: ...
