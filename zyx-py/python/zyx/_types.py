"""Kinds of things, limits of numbers, and settings, under PyTorch's names; loaded at the first use of one."""

import builtins
import math
import os

from . import _core
from ._core import Device, DType, Parameter, Rng, Tensor, tensor
from ._more import KINDS
from ._print import get_printoptions, set_printoptions  # noqa: F401
from ._size import Size
from ._strided import empty_strided  # noqa: F401


class _Kind(type):
    """The class of PyTorch's names of tensors of a dtype: `isinstance(x, FloatTensor)` tells dtype and device."""

    def __instancecheck__(cls, x):
        return isinstance(x, Tensor) and x.dtype.name == cls._dtype and (x.device.type == "cuda") == cls._cuda


def _made(cls, *given, device=None):
    place = "cuda" if cls._cuda and device is None else device
    if len(given) == 1 and not isinstance(given[0], (int, tuple)) or len(given) == 1 and isinstance(given[0], tuple) and not all(isinstance(n, int) for n in given[0]):
        return tensor(given[0], dtype=cls._dtype, device=place)
    shape = given[0] if len(given) == 1 and isinstance(given[0], tuple) and builtins.type(given[0]) is Size else given if not given or isinstance(given[0], int) else None
    if shape is None:
        return tensor(list(given[0]), dtype=cls._dtype, device=place)
    return Tensor.zeros(*(shape or (0,)), dtype=cls._dtype, device=place)


def kind(name, cuda=False):
    """The class of a name: called with data a tensor of it, with extents zeros (PyTorch: memory as it is)."""
    doc = f"`{KINDS[name]}` tensors: of data, or zeros of extents."
    return _Kind(name, (), {"_dtype": KINDS[name], "_cuda": cuda, "__new__": _made, "__doc__": doc, "__module__": "zyx.cuda" if cuda else "zyx"})


FloatTensor, DoubleTensor, HalfTensor, BFloat16Tensor, ByteTensor = map(kind, ("FloatTensor", "DoubleTensor", "HalfTensor", "BFloat16Tensor", "ByteTensor"))
CharTensor, ShortTensor, IntTensor, LongTensor, BoolTensor = map(kind, ("CharTensor", "ShortTensor", "IntTensor", "LongTensor", "BoolTensor"))
dtype = DType

_FLOATS = {"float16": (16, 10, -14, 15), "bfloat16": (16, 7, -126, 127), "float32": (32, 23, -126, 127), "float64": (64, 52, -1022, 1023)}


class finfo:
    """The limits of a floating-point dtype."""

    def __init__(self, type=None):
        name = DType(_core._default_float() if type is None else type).name
        if name not in _FLOATS:
            raise TypeError(f"finfo() requires a floating point input type. Use iinfo to handle '{name}'")
        self.bits, digits, least, most = _FLOATS[name]
        self.dtype, self.eps = name, 2.0**-digits
        self.max = (2.0 - 2.0**-digits) * 2.0**most
        self.min, self.tiny = -self.max, 2.0**least
        self.smallest_normal = self.tiny
        self.resolution = 10.0 ** -int(digits * math.log10(2))

    def __repr__(self):
        return f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, eps={self.eps:g}, smallest_normal={self.smallest_normal:g}, tiny={self.tiny:g}, dtype={self.dtype})"


class iinfo:
    """The limits of an integer dtype."""

    def __init__(self, type):
        name = DType(type).name
        if not name.startswith(("int", "uint")):
            raise TypeError(f"iinfo() requires an integer input type. Use finfo to handle '{name}'")
        self.dtype, self.bits = name, int(name.lstrip("uint"))
        self.min = 0 if name.startswith("u") else -(2 ** (self.bits - 1))
        self.max = 2 ** (self.bits - (not name.startswith("u"))) - 1

    def __repr__(self):
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"


class memory_format:
    """How a tensor is stored, which is no matter of its users."""

    def __init__(self, name):
        self._name = name

    def __repr__(self):
        return f"zyx.{self._name}"


contiguous_format, channels_last, channels_last_3d, preserve_format = (
    memory_format(name) for name in ("contiguous_format", "channels_last", "channels_last_3d", "preserve_format")
)
strided = builtins.type("layout", (), {"__repr__": lambda self: "zyx.strided", "__doc__": "Dense tensors, which all are."})()
layout = builtins.type(strided)


class Generator:
    """A stream of random numbers as PyTorch's: `generator=` of functions, samplers and loaders; made of a `zyx.Rng`."""

    def __init__(self, device="cpu"):
        self._device = Device(device) if isinstance(device, str) else device
        self.manual_seed(67280421310721)

    @property
    def device(self):
        """The device it was made for. Numbers are the same on every device."""
        return self._device

    def manual_seed(self, seed):
        """Starts anew from a seed; gives the generator."""
        self._seed = int(seed) % 2**64
        self._rng = Rng(self._seed)
        return self

    def seed(self):
        """Starts anew from a seed of the operating system, which it gives."""
        self.manual_seed(int.from_bytes(os.urandom(8), "little") >> 1)
        return self._seed

    def initial_seed(self):
        """The seed that it started from."""
        return self._seed

    def get_state(self):
        """Where the stream is, as a tensor of bytes."""
        words = [*self._rng.key(), self._rng.counter(), self._seed]
        return Tensor.from_bytes(b"".join(int(n).to_bytes(8, "little") for n in words), "uint8", (32,), device="cpu")

    def set_state(self, new_state):
        """Goes on from a result of `get_state`."""
        data = new_state.to("cpu").to_bytes() if isinstance(new_state, Tensor) else bytes(new_state)
        if len(data) != 32:
            raise RuntimeError(f"set_state: {len(data)} bytes are no state of a generator")
        words = [int.from_bytes(data[i : i + 8], "little") for i in builtins.range(0, 32, 8)]
        self._rng, self._seed = Rng.at([words[0], words[1]], words[2]), words[3]
        return self

    def clone_state(self):
        """Another generator at the same place."""
        return Generator(self._device).set_state(self.get_state())

    graphsafe_get_state, graphsafe_set_state = clone_state, lambda self, other: self.set_state(other.get_state())

    def __deepcopy__(self, memo):
        return self.clone_state()

    def __reduce__(self):
        return _generator, (self.get_state(),)

    def __repr__(self):
        return f"zyx.Generator(seed={self._seed}, device={self._device.spec!r})"


def _generator(state):
    return Generator().set_state(state)


class _Shared(Generator):
    """The stream that calls without a generator draw from."""

    def __init__(self):
        self._device, self._seed = Device("cpu"), 0

    def manual_seed(self, seed):
        self._seed = int(seed) % 2**64
        _core.manual_seed(self._seed)
        return self

    @property
    def _rng(self):
        return _core._shared_rng()

    @_rng.setter
    def _rng(self, rng):
        _core._set_shared_rng(rng)


default_generator = _Shared()


def seed():
    """Restarts the stream that calls without a generator draw from, by a seed of the operating system, which it gives."""
    return default_generator.seed()


def initial_seed():
    """The seed that `zyx.seed()` or `default_generator.manual_seed` gave last; 0 before."""
    return default_generator.initial_seed()


def get_rng_state():
    """The place of the stream that calls without a generator draw from, as a tensor of bytes."""
    return default_generator.get_state()


def set_rng_state(new_state):
    """Goes on in the stream that calls without a generator draw from, at a place that `get_rng_state` told."""
    default_generator.set_state(new_state)


def is_tensor(obj):
    """Whether this is a tensor."""
    return isinstance(obj, Tensor)


def is_storage(obj):
    """Whether this is a storage, the memory of a tensor: there are no such objects here."""
    return False


def asarray(obj, *, dtype=None, device=None, copy=None, requires_grad=False):
    """A tensor of numbers, lists or arrays; a tensor of that dtype and device itself unless `copy`."""
    from ._functions import as_tensor, from_numpy

    if copy is False and not isinstance(obj, Tensor):
        found = from_numpy(obj)
        if dtype is not None and found.dtype != DType(dtype):
            raise ValueError("asarray: a conversion to another dtype copies, which copy=False forbids")
    else:
        found = as_tensor(obj, dtype, device)
        found = found.clone() if copy and found is obj else found
    return found.requires_grad_() if requires_grad else found


def scalar_tensor(s, *, dtype=None, device=None, requires_grad=False):
    """A tensor without axes of a number, in the default dtype unless `dtype` says another."""
    return Tensor.full((), s, dtype=dtype or _core._default_float(), device=device, requires_grad=requires_grad)


def range(start, end=None, step=1, *, dtype=None, device=None, requires_grad=False):
    """Numbers from `start` up to and including `end`; `arange` without it in PyTorch's newer name."""
    start, end = (0, start) if end is None else (start, end)
    count = int(math.floor((end - start) / step)) + 1
    if count < 1:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    found = Tensor.arange(count, dtype="float64" if dtype is None or DType(dtype).name in _FLOATS else "int64", device=device) * step + start
    found = found.cast(dtype or _core._default_float())
    return found.requires_grad_() if requires_grad else found


def frombuffer(buffer, *, dtype, count=-1, offset=0, requires_grad=False):
    """A tensor of the bytes of an object; they are copied."""
    size, data = DType(dtype).itemsize, memoryview(buffer).cast("B")
    if count < 0 and (len(data) - offset) % size:
        raise ValueError(f"buffer length ({len(data) - offset} bytes) after offset ({offset} bytes) must be a multiple of element size ({size})")
    count = (len(data) - offset) // size if count < 0 else count
    if offset + count * size > len(data) or not len(data):
        raise ValueError(f"requested buffer length ({count} * {size} bytes) after offset ({offset} bytes) must not be greater than actual buffer length ({len(data)} bytes)")
    found = Tensor.from_bytes(bytes(data[offset : offset + count * size]), dtype, (count,))
    return found.requires_grad_() if requires_grad else found


def from_file(filename, shared=None, size=0, *, dtype=None, device=None, requires_grad=False):
    """A tensor of the first `size` elements of a file of bare numbers; they are copied."""
    if shared:
        raise NotImplementedError("from_file: shared=True; tensors share no memory with files")
    dtype = DType(_core._default_float() if dtype is None else dtype)
    with open(filename, "rb") as file:
        data = file.read(size * dtype.itemsize)
    if len(data) < size * dtype.itemsize:
        raise RuntimeError(f"from_file: {filename!r} has fewer than {size} elements of {dtype.name}")
    found = Tensor.from_bytes(data, dtype, (size,), device=device)
    return found.requires_grad_() if requires_grad else found


def empty_permuted(size, physical_layout, *, dtype=None, device=None, requires_grad=False, **more):
    """Zeros: how they are stored is no matter of their users."""
    return Tensor.zeros(size, dtype=dtype or _core._default_float(), device=device, requires_grad=requires_grad)


def _empty(dtype):
    return Tensor.zeros(0, dtype=dtype, device="cpu")


def promote_types(type1, type2):
    """The dtype of the sum of tensors of two dtypes."""
    a, b = DType(type1), DType(type2)
    return a if a == b else (_empty(a) + _empty(b)).dtype


def result_type(tensor1, tensor2):
    """The dtype of the sum of two operands, tensors or numbers."""
    if not isinstance(tensor1, Tensor) and not isinstance(tensor2, Tensor):
        kinds = [tensor(x).dtype for x in (tensor1, tensor2)]
        return promote_types(*kinds)

    def small(x):
        return Tensor.zeros([0] if x.ndim else [], dtype=x.dtype, device="cpu") if isinstance(x, Tensor) else x

    a, b = small(tensor1), small(tensor2)
    return (a | b if all(getattr(x, "dtype", None) == _core.bool or isinstance(x, builtins.bool) for x in (a, b)) else a + b).dtype


_ORDER = ("bool", "int", "float")


def can_cast(from_, to):
    """Whether PyTorch converts a dtype to another without being told: not from floats to integers, nor from them to bool."""

    def rank(dtype):
        name = DType(dtype).name
        return 0 if name == "bool" else 2 if "float" in name else 1

    return rank(from_) <= rank(to)


def chain_matmul(*matrices):
    """The product of matrices in the order of least work."""
    return Tensor.multi_dot(list(matrices[0] if len(matrices) == 1 and not isinstance(matrices[0], Tensor) else matrices))


def svd_lowrank(A, q=6, niter=2, M=None):
    """The `q` largest singular values and their vectors, approximately (Halko et al. 2009)."""
    A = A if M is None else A - M
    m, n = A.shape[-2:]
    if q > min(m, n) or q < 0:
        raise ValueError(f"q(={q}) must be non-negative integer and not greater than min(m, n)={min(m, n)}")
    wide = m < n
    B = A.mT if wide else A
    Q = (B @ Tensor.randn(*B.shape[:-2], B.shape[-1], q, dtype=A.dtype, device=A.device)).qr()[0]
    for _ in builtins.range(niter):
        Q = (B.mT @ Q).qr()[0]
        Q = (B @ Q).qr()[0]
    U, S, Vh = (Q.mT @ B).svd()
    U, V = Q @ U, Vh.mT
    return (V, S, U) if wide else (U, S, V)


def pca_lowrank(A, q=None, center=True, niter=2):
    """The `q` (6) largest principal components of rows: `svd_lowrank` of them less their mean."""
    q = min(6, *A.shape[-2:]) if q is None else q
    return svd_lowrank(A - A.mean(-2, keepdim=True) if center else A, q, niter)


def nuclear_norm(input, dim=None, keepdim=False):
    """The sum of the singular values of matrices."""
    from .linalg import matrix_norm

    return matrix_norm(input, "nuc", (-2, -1) if dim is None else dim, keepdim)


def frobenius_norm(input, dim=None, keepdim=False):
    """The root of the sum of squares along axes."""
    return input.norm(2, list(dim) if isinstance(dim, tuple) else dim, keepdim)


def norm_except_dim(v, pow=2, dim=0):
    """The norms of the slices along an axis."""
    from .nn.utils import norm_except_dim as function

    return function(v, pow, dim)


def grid_sampler(input, grid, interpolation_mode, padding_mode, align_corners):
    """`nn.functional.grid_sample` by numbers of the modes."""
    from .nn.functional import grid_sample

    return grid_sample(input, grid, ("bilinear", "nearest", "bicubic")[interpolation_mode], ("zeros", "border", "reflection")[padding_mode], align_corners)


grid_sampler_2d = grid_sampler


def affine_grid_generator(theta, size, align_corners):
    """`nn.functional.affine_grid`."""
    from .nn.functional import affine_grid

    return affine_grid(theta, size, align_corners)


def dropout(input, p, train):
    """`nn.functional.dropout`."""
    from .nn.functional import dropout as function

    return function(input, p, train)


def _of_functional(name, order=None):
    def function(*given, **named):
        from .nn import functional

        return getattr(functional, order or name)(*given, **named)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"`nn.functional.{order or name}`."
    return function


alpha_dropout, feature_alpha_dropout, rrelu, bilinear, conv_tbc = map(_of_functional, ("alpha_dropout", "feature_alpha_dropout", "rrelu", "bilinear", "conv_tbc"))


celu_, rrelu_, threshold_ = map(_of_functional, ("celu_", "rrelu_", "threshold_"))


def _written_dropout(name):
    def function(input, p, train):
        return input._write(globals()[name](input, p, train))

    function.__name__ = function.__qualname__ = name + "_"
    function.__doc__ = f"`{name}`, written into the input."
    return function


def feature_dropout(input, p, train):
    """Whole channels zeroed with probability `p` and the others scaled up."""
    from .nn.functional import dropout2d

    return dropout2d(input, p, train)


dropout_, alpha_dropout_, feature_dropout_, feature_alpha_dropout_ = map(
    _written_dropout, ("dropout", "alpha_dropout", "feature_dropout", "feature_alpha_dropout")
)


def embedding_bag(weight, indices, offsets, scale_grad_by_freq=False, mode=0, sparse=False, per_sample_weights=None, include_last_offset=False, padding_idx=None):
    """`nn.functional.embedding_bag` by a number of the mode; the result, and empty tensors in place of PyTorch's intermediate ones."""
    from .nn.functional import embedding_bag as function

    found = function(indices, weight, offsets, scale_grad_by_freq=scale_grad_by_freq, mode=("sum", "mean", "max")[mode], sparse=sparse,
                     per_sample_weights=per_sample_weights, include_last_offset=include_last_offset, padding_idx=padding_idx)  # fmt: skip
    none = Tensor.zeros(0, dtype="int64", device=weight.device)
    return found, none, none, none


def instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, cudnn_enabled=True):
    """`nn.functional.instance_norm` in another order of parameters."""
    from .nn.functional import instance_norm as function

    return function(input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps)


# Settings.


def get_default_dtype():
    """The dtype of floating-point numbers when none is named."""
    return getattr(_core, _core._default_float().name)


def set_default_dtype(d):
    """Sets the dtype of floating-point numbers when none is named: of new tensors and layers, and of results of
    operations that turn integers into floats.
    """
    if not isinstance(d, DType) and not isinstance(d, str):
        raise TypeError(f"invalid dtype object: only floating-point types are supported as the default type, not {d!r}")
    dtype = DType(d)
    if dtype.name not in _FLOATS:
        raise TypeError("only floating-point types are supported as the default type")
    if dtype.name != "float32":
        from . import _default

        _default.install()
    _core._set_default_float(dtype)


def set_default_tensor_type(t):
    """Sets the default dtype by PyTorch's name of a kind of tensor, as in `"torch.DoubleTensor"`; with `cuda` the device too."""
    name = t if isinstance(t, str) else getattr(t, "__name__", repr(t))
    on_cuda = ".cuda." in name or getattr(t, "_cuda", False)
    kind = KINDS.get(name.rpartition(".")[2])
    if kind not in _FLOATS:
        raise TypeError("only floating-point types are supported as the default type")
    set_default_dtype(kind)
    _core._set_default_device("cuda" if on_cuda else None)


def get_default_device():
    """The device that tensors are made on when none is named."""
    return _core.device()


def set_default_device(device):
    """Sets the device that tensors of this thread are made on when none is named; `None`: the one that is chosen at the start."""
    _core._set_default_device(f"cuda:{device}" if isinstance(device, int) else device)


def get_num_threads():
    """How many threads a computation on the CPU takes at most."""
    return int(os.environ.get("ZYX_THREADS") or os.cpu_count() or 1)


def set_num_threads(num):
    """The present number is taken; another is an error: the environment variable ZYX_THREADS says it."""
    if num != get_num_threads():
        raise NotImplementedError(f"set_num_threads: {num}; in zyx: the environment variable ZYX_THREADS")


get_num_interop_threads = get_num_threads
set_num_interop_threads = set_num_threads
_precision = "highest"


def get_float32_matmul_precision():
    """The precision that `set_float32_matmul_precision` was given last."""
    return _precision


def set_float32_matmul_precision(precision):
    """The least precision of products of `float32`. They are computed in `float32` at every setting."""
    global _precision
    if precision not in ("highest", "high", "medium"):
        raise RuntimeError(f"{precision!r} is not one of 'highest', 'high', or 'medium'")
    _precision = precision


def use_deterministic_algorithms(mode, *, warn_only=False):
    """Whether every computation on the default device gives the same bits each time; so it is at first."""
    _core.device().set_deterministic(bool(mode))


def are_deterministic_algorithms_enabled():
    """Whether every computation on the default device gives the same bits each time."""
    return _core.device().is_deterministic()


def is_deterministic_algorithms_warn_only_enabled():
    """Whether PyTorch warns only: there is nothing to warn of."""
    return False


def set_deterministic_debug_mode(debug_mode):
    """`use_deterministic_algorithms` by PyTorch's names of modes: `"default"` or 0, `"warn"` or 1, `"error"` or 2."""
    modes = {"default": 0, "warn": 1, "error": 2}
    if debug_mode not in (*modes, *modes.values()):
        raise RuntimeError(f"invalid value of debug_mode, expected `default`, `warn` or `error`, but got {debug_mode}")
    use_deterministic_algorithms(modes.get(debug_mode, debug_mode) != 0)


def get_deterministic_debug_mode():
    """2 if every computation on the default device gives the same bits each time, else 0."""
    return 2 * are_deterministic_algorithms_enabled()


def set_flush_denormal(mode):
    """Whether subnormal numbers become zero: they do not, which `False` says as in PyTorch."""
    return False


_always = False


def set_warn_always(b):
    """Whether warnings come each time; kept for `is_warn_always_enabled`, Python's filters decide."""
    global _always
    _always = bool(b)


def is_warn_always_enabled():
    """The value that `set_warn_always` was given last."""
    return _always


def set_anomaly_enabled(mode, check_nan=True):
    """Checked mode of the default device: results that are not finite are errors that name the operation."""
    _core.device().set_checked(bool(mode))


def is_anomaly_enabled():
    """Whether checked mode of the default device is on."""
    return _core.device().is_checked()


is_anomaly_check_nan_enabled = is_anomaly_enabled


def is_inference_mode_enabled():
    """Whether results have no history, as in `inference_mode`."""
    return not _core.is_grad_enabled()


def get_device_module(device=None):
    """The module of a device: `zyx.cuda` for `cuda`, `zyx.accelerator` for others."""
    import importlib

    name = "cuda" if Device(device).type == "cuda" else "accelerator" if device is not None else "accelerator"
    return importlib.import_module(f".{name}", __package__)


def typename(obj):
    """The name of a kind of tensor, or of an object's type."""
    return obj.type() if isinstance(obj, Tensor) else f"{builtins.type(obj).__module__}.{builtins.type(obj).__qualname__}"


from ._names import take_out  # noqa: E402

take_out(globals(), {"frobenius_norm", "nuclear_norm", "range", "chain_matmul"})
has_lapack = has_mkl = has_openmp = has_spectral = False
torch_version = builtins.type("torch_version", (), {"TorchVersion": str, "__version__": _core.__version__, "__doc__": "The package's version."})
__all__ = [name for name in list(globals()) if not name.startswith("_") and name not in ("builtins", "math", "os", "KINDS", "Device", "DType", "Parameter", "Rng", "Tensor", "tensor", "kind", "take_out")]
