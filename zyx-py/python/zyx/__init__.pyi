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
# Written by tools/python_stubs.py from here

from ._core import AxisError as AxisError
from ._core import DType as DType
from ._core import DTypeError as DTypeError
from ._core import Device as Device
from ._core import GgufFile as GgufFile
from ._core import Jit as Jit
from ._core import OutOfMemoryError as OutOfMemoryError
from ._core import Parameter as Parameter
from ._core import Plateau as Plateau
from ._core import QuantizedMatrix as QuantizedMatrix
from ._core import Rng as Rng
from ._core import SafetensorsFile as SafetensorsFile
from ._core import ShapeError as ShapeError
from ._core import Tensor as Tensor
from ._core import bf16 as bf16
from ._core import bfloat16 as bfloat16
from ._core import clip_norm as clip_norm
from ._core import clip_value as clip_value
from ._core import devices as devices
from ._core import f16 as f16
from ._core import f32 as f32
from ._core import f64 as f64
from ._core import float16 as float16
from ._core import float32 as float32
from ._core import float64 as float64
from ._core import from_dlpack as from_dlpack
from ._core import i16 as i16
from ._core import i32 as i32
from ._core import i64 as i64
from ._core import i8 as i8
from ._core import int16 as int16
from ._core import int32 as int32
from ._core import int64 as int64
from ._core import int8 as int8
from ._core import is_grad_enabled as is_grad_enabled
from ._core import load_npy as load_npy
from ._core import load_npz as load_npz
from ._core import load_pytorch as load_pytorch
from ._core import load_safetensors as load_safetensors
from ._core import open_gguf as open_gguf
from ._core import open_safetensors as open_safetensors
from ._core import safetensors_from_bytes as safetensors_from_bytes
from ._core import safetensors_to_bytes as safetensors_to_bytes
from ._core import save_npy as save_npy
from ._core import save_npz as save_npz
from ._core import save_safetensors as save_safetensors
from ._core import tensor as tensor
from ._core import u16 as u16
from ._core import u32 as u32
from ._core import u64 as u64
from ._core import u8 as u8
from ._core import uint16 as uint16
from ._core import uint32 as uint32
from ._core import uint64 as uint64
from ._core import uint8 as uint8
from . import accelerator as accelerator
from . import backends as backends
from . import compiler as compiler
from . import distributed as distributed
from . import func as func
from . import hub as hub
from . import random as random
from . import testing as testing
from . import types as types
from . import version as version
from . import amp as amp
from ._types import BFloat16Tensor as BFloat16Tensor
from ._types import BoolTensor as BoolTensor
from ._types import ByteTensor as ByteTensor
from ._types import CharTensor as CharTensor
from ._types import DoubleTensor as DoubleTensor
from ._types import FloatTensor as FloatTensor
from ._types import Generator as Generator
from ._types import HalfTensor as HalfTensor
from ._types import IntTensor as IntTensor
from ._types import LongTensor as LongTensor
from ._types import ShortTensor as ShortTensor
from ._types import Size as Size
from ._types import affine_grid_generator as affine_grid_generator
from ._types import alpha_dropout as alpha_dropout
from ._types import are_deterministic_algorithms_enabled as are_deterministic_algorithms_enabled
from ._types import asarray as asarray
from ._types import bilinear as bilinear
from ._types import can_cast as can_cast
from ._types import chain_matmul as chain_matmul
from ._types import channels_last as channels_last
from ._types import channels_last_3d as channels_last_3d
from ._types import contiguous_format as contiguous_format
from ._types import conv_tbc as conv_tbc
from ._types import default_generator as default_generator
from ._types import dtype as dtype
from ._types import embedding_bag as embedding_bag
from ._types import empty_permuted as empty_permuted
from ._types import feature_alpha_dropout as feature_alpha_dropout
from ._types import feature_dropout as feature_dropout
from ._types import finfo as finfo
from ._types import frobenius_norm as frobenius_norm
from ._types import from_file as from_file
from ._types import frombuffer as frombuffer
from ._types import get_default_device as get_default_device
from ._types import get_default_dtype as get_default_dtype
from ._types import get_deterministic_debug_mode as get_deterministic_debug_mode
from ._types import get_device_module as get_device_module
from ._types import get_float32_matmul_precision as get_float32_matmul_precision
from ._types import get_num_interop_threads as get_num_interop_threads
from ._types import get_num_threads as get_num_threads
from ._types import get_rng_state as get_rng_state
from ._types import grid_sampler as grid_sampler
from ._types import grid_sampler_2d as grid_sampler_2d
from ._types import iinfo as iinfo
from ._types import initial_seed as initial_seed
from ._types import instance_norm as instance_norm
from ._types import is_anomaly_check_nan_enabled as is_anomaly_check_nan_enabled
from ._types import is_anomaly_enabled as is_anomaly_enabled
from ._types import is_deterministic_algorithms_warn_only_enabled as is_deterministic_algorithms_warn_only_enabled
from ._types import is_inference_mode_enabled as is_inference_mode_enabled
from ._types import is_storage as is_storage
from ._types import is_tensor as is_tensor
from ._types import is_warn_always_enabled as is_warn_always_enabled
from ._types import layout as layout
from ._types import memory_format as memory_format
from ._types import norm_except_dim as norm_except_dim
from ._types import nuclear_norm as nuclear_norm
from ._types import pca_lowrank as pca_lowrank
from ._types import preserve_format as preserve_format
from ._types import promote_types as promote_types
from ._types import range as range
from ._types import result_type as result_type
from ._types import rrelu as rrelu
from ._types import scalar_tensor as scalar_tensor
from ._types import seed as seed
from ._types import set_anomaly_enabled as set_anomaly_enabled
from ._types import set_default_device as set_default_device
from ._types import set_default_dtype as set_default_dtype
from ._types import set_default_tensor_type as set_default_tensor_type
from ._types import set_deterministic_debug_mode as set_deterministic_debug_mode
from ._types import set_float32_matmul_precision as set_float32_matmul_precision
from ._types import set_flush_denormal as set_flush_denormal
from ._types import set_num_interop_threads as set_num_interop_threads
from ._types import set_num_threads as set_num_threads
from ._types import set_rng_state as set_rng_state
from ._types import set_warn_always as set_warn_always
from ._types import strided as strided
from ._types import svd_lowrank as svd_lowrank
from ._types import torch_version as torch_version
from ._types import typename as typename
from ._types import use_deterministic_algorithms as use_deterministic_algorithms
from .amp import autocast as autocast
from .amp import clear_autocast_cache as clear_autocast_cache
from .amp import get_autocast_dtype as get_autocast_dtype
from .amp import is_autocast_cache_enabled as is_autocast_cache_enabled
from .amp import is_autocast_enabled as is_autocast_enabled
from ._summary import summary as summary

# to here.

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
    func: Callable[..., Any], in_axes: Any = 0, out_axis: Any = 0, randomness: str = "error", *, in_dims: Any = None, out_dims: Any = None, chunk_size: Any = None
) -> Callable[..., Any]:
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

def manual_seed(seed: int) -> Any:
    """Restarts the random stream that calls without a generator draw from; gives it."""

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

def load(f: Any, map_location: Any = None, pickle_module: Any = None, *, weights_only: bool = True, mmap: Any = None) -> Any:
    """What `save` wrote, on the device `map_location`, from a path or something with `read`. Of a file of PyTorch: its
    tensors by name."""


def __getattr__(name: str) -> Callable[..., Any]: ...
