"""Kinds of things, limits of numbers, and settings, under PyTorch's names; loaded at the first use of one. Written by tools/python_stubs.py."""

from typing import Any, Generic, TypeVar
from ._core import Device as Device, DType as DType, Parameter as Parameter, Rng as Rng, Tensor as Tensor, tensor as tensor
from ._more import KINDS as KINDS
from ._names import take_out as take_out
from ._print import get_printoptions as get_printoptions, set_printoptions as set_printoptions
from ._size import Size as Size
from ._strided import empty_strided as empty_strided

_T = TypeVar("_T")

def kind(name: Any, cuda: Any=False) -> Any:
    """The class of a name: called with data a tensor of it, with extents zeros (PyTorch: memory as it is)."""

class finfo:
    max: Any
    smallest_normal: Any
    resolution: Any
    bits: Any
    dtype: Any
    eps: Any
    min: Any
    tiny: Any
    def __init__(self, type: Any=None) -> None:
        ...

class iinfo:
    min: Any
    max: Any
    dtype: Any
    bits: Any
    def __init__(self, type: Any) -> None:
        ...

class memory_format:
    def __init__(self, name: Any) -> None:
        ...

class Generator:
    def __init__(self, device: Any='cpu') -> None:
        ...
    @property
    def device(self) -> Any:
        """The device it was made for. Numbers are the same on every device."""
    def manual_seed(self, seed: Any) -> Any:
        """Starts anew from a seed; gives the generator."""
    def seed(self) -> Any:
        """Starts anew from a seed of the operating system, which it gives."""
    def initial_seed(self) -> Any:
        """The seed that it started from."""
    def get_state(self) -> Any:
        """Where the stream is, as a tensor of bytes."""
    def set_state(self, new_state: Any) -> Any:
        """Goes on from a result of `get_state`."""
    def clone_state(self) -> Any:
        """Another generator at the same place."""
    graphsafe_get_state: Any
    graphsafe_set_state: Any

def seed() -> Any:
    """Restarts the stream that calls without a generator draw from, by a seed of the operating system, which it gives."""

def initial_seed() -> Any:
    """The seed that `zyx.seed()` or `default_generator.manual_seed` gave last; 0 before."""

def get_rng_state() -> Any:
    """The place of the stream that calls without a generator draw from, as a tensor of bytes."""

def set_rng_state(new_state: Any) -> Any:
    """Goes on in the stream that calls without a generator draw from, at a place that `get_rng_state` told."""

def is_tensor(obj: Any) -> Any:
    """Whether this is a tensor."""

def is_storage(obj: Any) -> Any:
    """Whether this is a storage, the memory of a tensor: there are no such objects here."""

def asarray(obj: Any, *, dtype: Any=None, device: Any=None, copy: Any=None, requires_grad: Any=False) -> Any:
    """A tensor of numbers, lists or arrays; a tensor of that dtype and device itself unless `copy`."""

def scalar_tensor(s: Any, *, dtype: Any=None, device: Any=None, requires_grad: Any=False) -> Any:
    """A tensor without axes of a number, in the default dtype unless `dtype` says another."""

def range(start: Any, end: Any=None, step: Any=1, *, dtype: Any=None, device: Any=None, requires_grad: Any=False) -> Any:
    """Numbers from `start` up to and including `end`; `arange` without it in PyTorch's newer name."""

def frombuffer(buffer: Any, *, dtype: Any, count: Any=..., offset: Any=0, requires_grad: Any=False) -> Any:
    """A tensor of the bytes of an object; they are copied."""

def from_file(filename: Any, shared: Any=None, size: Any=0, *, dtype: Any=None, device: Any=None, requires_grad: Any=False) -> Any:
    """A tensor of the first `size` elements of a file of bare numbers; they are copied."""

def empty_permuted(size: Any, physical_layout: Any, *, dtype: Any=None, device: Any=None, requires_grad: Any=False, **more: Any) -> Any:
    """Zeros: how they are stored is no matter of their users."""

def promote_types(type1: Any, type2: Any) -> Any:
    """The dtype of the sum of tensors of two dtypes."""

def result_type(tensor1: Any, tensor2: Any) -> Any:
    """The dtype of the sum of two operands, tensors or numbers."""

def can_cast(from_: Any, to: Any) -> Any:
    """Whether PyTorch converts a dtype to another without being told: not from floats to integers, nor from them to bool."""

def chain_matmul(*matrices: Any) -> Any:
    """The product of matrices in the order of least work."""

def svd_lowrank(A: Any, q: Any=6, niter: Any=2, M: Any=None) -> Any:
    """The `q` largest singular values and their vectors, approximately (Halko et al. 2009)."""

def pca_lowrank(A: Any, q: Any=None, center: Any=True, niter: Any=2) -> Any:
    """The `q` (6) largest principal components of rows: `svd_lowrank` of them less their mean."""

def nuclear_norm(input: Any, dim: Any=None, keepdim: Any=False) -> Any:
    """The sum of the singular values of matrices."""

def frobenius_norm(input: Any, dim: Any=None, keepdim: Any=False) -> Any:
    """The root of the sum of squares along axes."""

def norm_except_dim(v: Any, pow: Any=2, dim: Any=0) -> Any:
    """The norms of the slices along an axis."""

def grid_sampler(input: Any, grid: Any, interpolation_mode: Any, padding_mode: Any, align_corners: Any) -> Any:
    """`nn.functional.grid_sample` by numbers of the modes."""

def affine_grid_generator(theta: Any, size: Any, align_corners: Any) -> Any:
    """`nn.functional.affine_grid`."""

def dropout(input: Any, p: Any, train: Any) -> Any:
    """`nn.functional.dropout`."""

def feature_dropout(input: Any, p: Any, train: Any) -> Any:
    """Whole channels zeroed with probability `p` and the others scaled up."""

def embedding_bag(weight: Any, indices: Any, offsets: Any, scale_grad_by_freq: Any=False, mode: Any=0, sparse: Any=False, per_sample_weights: Any=None, include_last_offset: Any=False, padding_idx: Any=None) -> Any:
    """`nn.functional.embedding_bag` by a number of the mode; the result, and empty tensors in place of PyTorch's intermediate ones."""

def instance_norm(input: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any, use_input_stats: Any, momentum: Any, eps: Any, cudnn_enabled: Any=True) -> Any:
    """`nn.functional.instance_norm` in another order of parameters."""

def get_default_dtype() -> Any:
    """The dtype of floating-point numbers when none is named."""

def set_default_dtype(d: Any) -> Any:
    """Sets the dtype of floating-point numbers when none is named: of new tensors and layers, and of results of operations that turn integers into floats."""

def set_default_tensor_type(t: Any) -> Any:
    """Sets the default dtype by PyTorch's name of a kind of tensor, as in `"torch.DoubleTensor"`; with `cuda` the device too."""

def get_default_device() -> Any:
    """The device that tensors are made on when none is named."""

def set_default_device(device: Any) -> Any:
    """Sets the device that tensors of this thread are made on when none is named; `None`: the one that is chosen at the start."""

def get_num_threads() -> Any:
    """How many threads a computation on the CPU takes at most."""

def set_num_threads(num: Any) -> Any:
    """The present number is taken; another is an error: the environment variable ZYX_THREADS says it."""

def get_float32_matmul_precision() -> Any:
    """The precision that `set_float32_matmul_precision` was given last."""

def set_float32_matmul_precision(precision: Any) -> Any:
    """The least precision of products of `float32`. They are computed in `float32` at every setting."""

def use_deterministic_algorithms(mode: Any, *, warn_only: Any=False) -> Any:
    """Whether every computation on the default device gives the same bits each time; so it is at first."""

def are_deterministic_algorithms_enabled() -> Any:
    """Whether every computation on the default device gives the same bits each time."""

def is_deterministic_algorithms_warn_only_enabled() -> Any:
    """Whether PyTorch warns only: there is nothing to warn of."""

def set_deterministic_debug_mode(debug_mode: Any) -> Any:
    """`use_deterministic_algorithms` by PyTorch's names of modes: `"default"` or 0, `"warn"` or 1, `"error"` or 2."""

def get_deterministic_debug_mode() -> Any:
    """2 if every computation on the default device gives the same bits each time, else 0."""

def set_flush_denormal(mode: Any) -> Any:
    """Whether subnormal numbers become zero: they do not, which `False` says as in PyTorch."""

def set_warn_always(b: Any) -> Any:
    """Whether warnings come each time; kept for `is_warn_always_enabled`, Python's filters decide."""

def is_warn_always_enabled() -> Any:
    """The value that `set_warn_always` was given last."""

def set_anomaly_enabled(mode: Any, check_nan: Any=True) -> Any:
    """Checked mode of the default device: results that are not finite are errors that name the operation."""

def is_anomaly_enabled() -> Any:
    """Whether checked mode of the default device is on."""

def is_inference_mode_enabled() -> Any:
    """Whether results have no history, as in `inference_mode`."""

def get_device_module(device: Any=None) -> Any:
    """The module of a device: `zyx.cuda` for `cuda`, `zyx.accelerator` for others."""

def typename(obj: Any) -> Any:
    """The name of a kind of tensor, or of an object's type."""

class BFloat16Tensor(Tensor):
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class BoolTensor(Tensor):
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class ByteTensor(Tensor):
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class CharTensor(Tensor):
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class DoubleTensor(Tensor):
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class FloatTensor(Tensor):
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class HalfTensor(Tensor):
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class IntTensor(Tensor):
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class LongTensor(Tensor):
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class ShortTensor(Tensor):
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

def alpha_dropout(*args: Any, **kwargs: Any) -> Any: ...

def alpha_dropout_(*args: Any, **kwargs: Any) -> Any: ...

def bilinear(*args: Any, **kwargs: Any) -> Any: ...

def celu_(*args: Any, **kwargs: Any) -> Any: ...

channels_last: Any

channels_last_3d: Any

contiguous_format: Any

def conv_tbc(*args: Any, **kwargs: Any) -> Any: ...

default_generator: Any

def dropout_(*args: Any, **kwargs: Any) -> Any: ...

class dtype:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

def feature_alpha_dropout(*args: Any, **kwargs: Any) -> Any: ...

def feature_alpha_dropout_(*args: Any, **kwargs: Any) -> Any: ...

def feature_dropout_(*args: Any, **kwargs: Any) -> Any: ...

def get_num_interop_threads(*args: Any, **kwargs: Any) -> Any: ...

def grid_sampler_2d(*args: Any, **kwargs: Any) -> Any: ...

has_lapack: Any

has_mkl: Any

has_openmp: Any

has_spectral: Any

def is_anomaly_check_nan_enabled(*args: Any, **kwargs: Any) -> Any: ...

class layout:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

preserve_format: Any

def rrelu(*args: Any, **kwargs: Any) -> Any: ...

def rrelu_(*args: Any, **kwargs: Any) -> Any: ...

def set_num_interop_threads(*args: Any, **kwargs: Any) -> Any: ...

strided: Any

def threshold_(*args: Any, **kwargs: Any) -> Any: ...

class torch_version:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
