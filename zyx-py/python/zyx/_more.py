"""Methods of `Tensor` that PyTorch has and Rust lacks: predicates of tensors, and functions made of other functions.

`METHODS` and `PROPERTIES` are given to the class by `install`.
"""

from ._core import Tensor, tensor
from ._functions import _operands_are_tensors
from ._steps import in_steps
from ._writes import _in_place

_FLOATS = ("float16", "bfloat16", "float32", "float64")
# PyTorch's names of tensors of a dtype.
KINDS = {
    "FloatTensor": "float32", "DoubleTensor": "float64", "HalfTensor": "float16", "BFloat16Tensor": "bfloat16", "ByteTensor": "uint8",
    "CharTensor": "int8", "ShortTensor": "int16", "IntTensor": "int32", "LongTensor": "int64", "BoolTensor": "bool",
}  # fmt: skip


def type(self, dtype=None, non_blocking=False):
    """PyTorch's name of the kind of tensor, as in `"torch.FloatTensor"`; converted to another if one is given."""
    if dtype is None:
        kind = next((kind for kind, name in KINDS.items() if name == self.dtype.name), None)
        if kind is None:
            raise TypeError(f"type: PyTorch has no name of tensors of {self.dtype.name}")
        return f"torch.{'cuda.' if self.device.type == 'cuda' else ''}{kind}"
    name = dtype if isinstance(dtype, str) else getattr(dtype, "__name__", None)
    if isinstance(name, str) and name.rpartition(".")[2] in KINDS:
        found = self.to(KINDS[name.rpartition(".")[2]])
        return found.cuda() if ".cuda." in f".{name}" and found.device.type != "cuda" else found
    return self.to(dtype)


def is_complex(self):
    """Whether the elements are complex numbers, which there are none of."""
    return False


def is_signed(self):
    """Whether the elements may be negative."""
    return not (self.dtype.name.startswith("uint") or self.dtype.name == "bool")


def is_same_size(self, other):
    """Whether both have one shape."""
    _operands_are_tensors("is_same_size", other)
    return self.shape == other.shape


def is_nonzero(self):
    """Whether the one element is not zero; read from the device."""
    if self.numel() != 1:
        raise RuntimeError(f"Boolean value of Tensor with {self.numel()} values is ambiguous")
    return bool(self.item() != 0)


def is_inference(self):
    """Whether it was made in `inference_mode`, of which tensors keep no trace."""
    return False


def is_pinned(self, device=None):
    """Whether the memory is pinned: copies need no preparation here."""
    return False


def is_shared(self):
    """Whether processes share the memory."""
    return False


def get_device(self):
    """The number of the device, -1 on the CPU."""
    if self.device.type == "cpu":
        return -1
    number = self.device.spec.rpartition(":")[2]
    return int(number) if number.isdigit() else 0


def ndimension(self):
    """The number of axes."""
    return self.ndim


def angle(self):
    """The angle of real numbers in the complex plane: 0, or pi for negative ones."""
    x = self if self.dtype.name in _FLOATS else self.float()
    return (x < 0).where_(3.141592653589793, x * 0.0).cast(x.dtype)


def conj(self):
    """The conjugate of real numbers: the tensor itself."""
    return self


def conj_physical(self):
    """The conjugate of real numbers: the tensor itself."""
    return self


def isreal(self):
    """Whether each element is real: all are."""
    return Tensor.ones(self.shape, dtype="bool", device=self.device)


def new_tensor(self, data, *, dtype=None, device=None, requires_grad=False):
    """A tensor of data on this tensor's device and in its dtype, if no others are given."""
    found = tensor(data, dtype=dtype or self.dtype, device=device or self.device)
    return found.requires_grad_() if requires_grad else found


def sum_to_size(self, *size):
    """Summed over axes so that the shape is `size`: the reverse of broadcasting."""
    size = size[0] if len(size) == 1 and not isinstance(size[0], int) else size
    if not isinstance(size, (tuple, list)) or not all(isinstance(n, int) for n in size):
        raise TypeError(f"sum_to_size: a shape is ints, not {size!r}")
    lead = self.ndim - len(size)
    axes = list(range(lead)) + [lead + i for i, n in enumerate(size) if n == 1 and self.shape[lead + i] != 1]
    if lead < 0 or any(n not in (1, m) for n, m in zip(size, self.shape[max(lead, 0) :])):
        raise RuntimeError(f"size {list(size)} is not expandable to size {list(self.shape)}.")
    return self.sum(axes, keepdim=True).reshape(size) if axes else self


def addmv(self, mat, vec, *, beta=1, alpha=1):
    """`beta self + alpha mat @ vec`. An operand whose factor is 0 is not read."""
    from ._functions import addmv as function

    return function(self, mat, vec, beta=beta, alpha=alpha)


def addr(self, vec1, vec2, *, beta=1, alpha=1):
    """`beta self + alpha` times the outer product of two vectors. An operand whose factor is 0 is not read."""
    from ._functions import addr as function

    return function(self, vec1, vec2, beta=beta, alpha=alpha)


def addbmm(self, batch1, batch2, *, beta=1, alpha=1):
    """`beta self + alpha` times the sum of the products of two batches of matrices. An operand whose factor is 0 is not read."""
    from ._functions import addbmm as function

    return function(self, batch1, batch2, beta=beta, alpha=alpha)


def renorm(self, p, dim, maxnorm):
    """The slices along an axis scaled down to the p-norm `maxnorm` where theirs is larger."""
    from ._functions import renorm as function

    return function(self, p, dim, maxnorm)


def mvlgamma(self, p):
    """The logarithm of the gamma function of `p` dimensions."""
    from ._functions import mvlgamma as function

    return function(self, p)


def as_subclass(self, cls):
    """The tensor as an instance of a class: of `Tensor` itself."""
    if cls is not Tensor:
        raise NotImplementedError(f"as_subclass: {cls!r}; tensors have one class")
    return self


def index_reduce(self, dim, index, source, reduce, *, include_self=True):
    """Slices of `source` combined with those that `index` names along an axis, by `"prod"`, `"mean"`, `"amax"` or `"amin"`."""
    _operands_are_tensors("index_reduce", index, source)
    if reduce not in ("prod", "mean", "amax", "amin"):
        raise ValueError(f"index_reduce: reduce is 'prod', 'mean', 'amax' or 'amin', not {reduce!r}")
    shape = [1] * self.ndim
    shape[dim] = -1
    return self.scatter_reduce(dim, index.reshape(shape).expand(source.shape), source, reduce, include_self=include_self)


def nonzero_static(self, *, size, fill_value=-1):
    """The first `size` positions of elements that are not zero, filled up with `fill_value`."""
    if not isinstance(size, int) or isinstance(size, bool) or size < 0:
        raise TypeError(f"nonzero_static: size is a number of positions, not {size!r}")
    found = self.nonzero()[:size]
    more = size - found.shape[0]
    return found if not more else Tensor.cat([found, found.new_full((more, self.ndim), fill_value)], 0)


def _without_nan(self, dim):
    """The sorted elements along the last axis, NaN last, and how many are none; the axis is the last."""
    x = self.flatten() if dim is None else self.movedim(dim, -1)
    return x.isnan().logical_not().sum(-1, keepdim=True), x.sort(-1)


def nanmedian(self, dim=None, keepdim=False):
    """The lower median of the elements that are not NaN; along an axis with its position."""
    count, (values, places) = _without_nan(self, dim)
    at = ((count - 1) // 2).clamp(0)
    found, place = values.gather(-1, at), places.gather(-1, at)
    if dim is None:
        return found.reshape(())
    from ._names import Selected

    if keepdim:
        return Selected((found.movedim(-1, dim), place.movedim(-1, dim)))
    return Selected((found.squeeze(-1), place.squeeze(-1)))


@in_steps
def nanquantile(self, q, dim=None, keepdim=False, *, interpolation="linear"):
    """Quantiles of the elements that are not NaN; those of several `q` are stacked along a first axis."""
    if interpolation not in ("linear", "lower", "higher", "nearest", "midpoint"):
        raise ValueError(f"nanquantile: interpolation {interpolation!r}")
    count, (values, _) = _without_nan(self, dim)
    q = q if isinstance(q, Tensor) else tensor(q, dtype=self.dtype, device=self.device)
    parts = []
    for share in q.reshape(-1).unbind(0):
        place = (count - 1).clamp(0).cast(self.dtype) * share
        low, high = place.floor(), place.ceil()
        if interpolation in ("lower", "nearest", "higher"):
            at = {"lower": low, "higher": high, "nearest": place.round()}[interpolation]
            low = high = at
        a, b = values.gather(-1, low.long()), values.gather(-1, high.long())
        weight = 0.5 if interpolation == "midpoint" else place - low
        found = a if low is high else (low == high).where_(a, a + (b - a) * weight)
        found = (count > 0).where_(found, float("nan"))
        if dim is None:
            found = found.reshape([1] * self.ndim if keepdim else [])
        else:
            found = found.movedim(-1, dim) if keepdim else found.squeeze(-1)
        parts.append(found)
    return Tensor.stack(parts, 0) if q.ndim else parts[0]


_BITS = {"float32": ("int32", 23, 0xFF, 126, 25), "float64": ("int64", 52, 0x7FF, 1022, 54)}


def frexp(self):
    """Mantissas within 1/2 and 1 and exponents of 2 whose products are the elements."""
    if self.dtype.name not in _FLOATS:
        raise TypeError(f"frexp: needs floating-point numbers, not {self.dtype.name}")
    if self.dtype.name not in _BITS:
        mantissa, exponent = frexp(self.float())
        return mantissa.cast(self.dtype), exponent
    whole, shift, mask, bias, more = _BITS[self.dtype.name]
    small = self.abs() < 2.0 ** (1 - bias)
    bits = small.where_(self * 2.0**more, self).bitcast(whole)
    exponent = (bits >> shift) & mask
    mantissa = ((bits & ~(mask << shift)) | (bias << shift)).bitcast(self.dtype)
    plain = (self != 0) & self.isfinite()
    exponent = plain.where_(exponent - bias - small.where_(more, 0), 0)
    from ._core import int32

    found = (plain.where_(mantissa, self), exponent.cast(int32))
    import collections

    kind = globals().setdefault("_frexp", collections.namedtuple("frexp", ["mantissa", "exponent"]))
    return kind(*found)


@in_steps
def i0(self):
    """The modified Bessel function of the first kind and order 0."""
    x = (self if self.dtype.name in _FLOATS else self.float()).abs()
    wide = x.dtype.name == "float64"
    # The power series, whose terms are all positive; and where it is long, the expansion for large arguments.
    border, terms, tail = (20.0, 62, 22) if wide else (9.0, 30, 9)
    near, far = x.minimum(border), x.maximum(border)
    square, series = near * near * 0.25, 1.0
    for k in range(terms, 0, -1):
        series = square * (1 / (k * k)) * series + 1.0
    inverse, rest = far.recip() * 0.125, 1.0
    for k in range(tail, 0, -1):
        rest = inverse * ((2 * k - 1) ** 2 / k) * rest + 1.0
    # The exponential in halves, since it overflows earlier than the quotient.
    half = (far * 0.5).exp()
    return (x <= border).where_(series, half * rest * half * (far * 6.283185307179586).rsqrt())


def igamma(self, other):
    """The regularised lower incomplete gamma function of shapes and `other`."""
    from .special import gammainc

    return gammainc(self, other)


def igammac(self, other):
    """1 minus `igamma`, exact where that is near 1."""
    from .special import gammaincc

    return gammaincc(self, other)


def to_sparse(self, sparse_dim=None):
    """The elements that are not 0, as a `SparseTensor`. Reads how many there are."""
    from .sparse import to_sparse as function

    return function(self, sparse_dim)


def to_sparse_csr(self, dense_dim=None):
    """A matrix as a `SparseTensor` in order of its rows."""
    from .sparse import to_sparse_csr as function

    return function(self, dense_dim)


def to_dense(self, dtype=None):
    """The tensor itself, which is dense, in a dtype."""
    return self if dtype is None else self.cast(dtype)


def retain_grad(self):
    """Keeps the gradient of a tensor that was computed in `.grad`, as `backward` does that of a leaf."""
    from ._tensor_hooks import retain_grad as function

    return function(self)


def register_hook(self, hook):
    """Calls `hook(grad)` with each gradient of this tensor; a result takes the gradient's place. Gives a handle, whose
    `remove()` takes the hook away.
    """
    from ._tensor_hooks import register_hook as function

    return function(self, hook)


def register_post_accumulate_grad_hook(self, hook):
    """Calls `hook(self)` each time after `backward` has collected the gradient of this leaf. Gives a handle, whose `remove()`
    takes the hook away.
    """
    from ._tensor_hooks import register_post_accumulate_grad_hook as function

    return function(self, hook)


def record_stream(self, s):
    """Nothing: memory is given back when the last computation that uses it is done."""


def storage_offset(self):
    """The place of the first element in memory that views share."""
    from ._strided import storage_offset as function

    return function(self)


_every = Tensor.stride


def _stride(self, axis=None, start=None, step=None, **named):
    """How many elements of memory the neighbours along each axis, or along `axis` or `dim`, are apart. With `start` or `step` every
    `step`-th position of an axis, from `start` on.
    """
    from ._strided import stride as function

    dim = named.pop("dim", axis)
    if named:
        raise TypeError(f"stride() got an unexpected keyword argument {next(iter(named))!r}")
    return function(self, dim) if start is None and step is None else _every(self, dim, start or 0, 1 if step is None else step)


def as_strided(self, size, stride, storage_offset=None):
    """The elements of memory that this tensor shares at strides from a place on: a view."""
    from ._strided import as_strided as function

    return function(self, size, stride, storage_offset)


def as_strided_(self, size, stride, storage_offset=None):
    """Becomes `as_strided` of itself."""
    from ._strided import as_strided_ as function

    return function(self, size, stride, storage_offset)


def as_strided_scatter(self, src, size, stride, storage_offset=None):
    """A copy with `src` at the elements that `as_strided` names."""
    from ._strided import as_strided_scatter as function

    return function(self, src, size, stride, storage_offset)


def set_(self, source=None, storage_offset=None, size=None, stride=None):
    """Becomes a tensor that shares the memory of `source`, whole or at strides; without one a tensor without elements."""
    from ._strided import set_ as function

    return function(self, source, storage_offset, size, stride)


def resize_(self, *sizes, size=None, memory_format=None):
    """Becomes a tensor of another shape with the elements of its memory in order; elements that are new are zeros."""
    from ._strided import resize_ as function

    return function(self, *sizes) if size is None else function(self, size)


def resize_as_(self, the_template, *, memory_format=None):
    """`resize_` to the shape of another tensor."""
    from ._strided import resize_ as function

    _operands_are_tensors("resize_as_", the_template)
    return function(self, *the_template.shape)


def new_empty_strided(self, size, stride, *, dtype=None, device=None, requires_grad=False):
    """Zeros on this tensor's device and in its dtype, if no others are given, with these strides."""
    from ._strided import empty_strided as function

    return function(size, stride, dtype=dtype or self.dtype, device=device or self.device, requires_grad=requires_grad)


def map_(self, other, callable):
    """Applies a function of Python to each element and the element of another tensor, which broadcasts; writes the results."""
    return _mapped(self, callable, other)


def map2_(self, x, y, callable):
    """Applies a function of Python to each element and the elements of two other tensors, which broadcast; writes the results."""
    return _mapped(self, callable, x, y)


def _mapped(self, function, *others):
    _operands_are_tensors("map_", *others)
    if not hasattr(function, "__call__"):  # noqa: B004
        raise TypeError(f"map_: {function!r} is no function")
    columns = [self.flatten().tolist(), *(x.expand(self.shape).flatten().tolist() for x in others)]
    return self.copy_(tensor([function(*row) for row in zip(*columns)], dtype=self.dtype, device=self.device).reshape(self.shape))


def dim_order(self, ambiguity_check=False):
    """The axes from the outermost in memory to the innermost: in order."""
    return tuple(range(self.ndim))


def module_load(self, other, assign=False):
    """The value that `load_state_dict` puts in the place of this one."""
    _operands_are_tensors("module_load", other)
    return other if assign else other.to(self.device, self.dtype).detach()


def unsafe_chunk(self, chunks, dim=0):
    """`chunk`."""
    return self.chunk(chunks, dim)


def unsafe_split(self, split_size, dim=0):
    """`split`."""
    return self.split(split_size, dim)


METHODS = (type, is_complex, is_signed, is_same_size, is_nonzero, is_inference, is_pinned, is_shared, get_device, ndimension, angle, conj,
           conj_physical, isreal, new_tensor, sum_to_size, addmv, addr, addbmm, renorm, mvlgamma, as_subclass, index_reduce, nonzero_static,
           nanmedian, nanquantile, frexp, i0, igamma, igammac, to_sparse, to_sparse_csr, to_dense, retain_grad, register_hook, register_post_accumulate_grad_hook, record_stream, storage_offset,
           as_strided, as_strided_, as_strided_scatter, set_, resize_, resize_as_, new_empty_strided, map_, map2_, dim_order, module_load,
           unsafe_chunk, unsafe_split)  # fmt: skip
# Functions above that are also written into the tensor, under the name with `_`.
_WRITTEN = ("i0", "conj_physical", "index_reduce")


def _flag(name, doc, value):
    def flag(self):
        return value(self)

    flag.__name__, flag.__doc__ = name, doc
    return property(flag)


def _retains_grad(x):
    import sys

    hooks = sys.modules.get("zyx._tensor_hooks")
    return hooks is not None and hooks.retains_grad(x)


def _layout(self):
    from ._types import strided

    return strided


PROPERTIES = {
    "is_cuda": _flag("is_cuda", "Whether it is on a device of the backend `cuda`.", lambda x: x.device.type == "cuda"),
    "is_cpu": _flag("is_cpu", "Whether it is on the CPU.", lambda x: x.device.type == "cpu"),
    "is_meta": _flag("is_meta", "Whether it has no elements but a shape: none is.", lambda x: False),
    "is_quantized": _flag("is_quantized", "Whether it is quantised: `QuantizedMatrix` is another class.", lambda x: False),
    "is_sparse": _flag("is_sparse", "Whether it is sparse: `SparseTensor` is another class.", lambda x: False),
    "is_xla": _flag("is_xla", "Whether it is on an XLA device: there are none.", lambda x: False),
    "is_mps": _flag("is_mps", "Whether it is on an MPS device: there are none.", lambda x: False),
    "is_sparse_csr": _flag("is_sparse_csr", "Whether it is sparse by rows: `SparseTensor` is another class.", lambda x: False),
    "is_xpu": _flag("is_xpu", "Whether it is on an XPU: there are none.", lambda x: False),
    "is_mkldnn": _flag("is_mkldnn", "Whether oneDNN stores it: it does not.", lambda x: False),
    "is_ipu": _flag("is_ipu", "Whether it is on an IPU: there are none.", lambda x: False),
    "is_vulkan": _flag("is_vulkan", "Whether it is on a device of the backend `vulkan`.", lambda x: x.device.type == "vulkan"),
    "is_mtia": _flag("is_mtia", "Whether it is on an MTIA device: there are none.", lambda x: False),
    "is_maia": _flag("is_maia", "Whether it is on a MAIA device: there are none.", lambda x: False),
    "layout": _flag("layout", "How it is stored: `zyx.strided`.", _layout),
    "is_nested": _flag("is_nested", "Whether it is nested: none is.", lambda x: False),
    "retains_grad": _flag("retains_grad", "Whether `.grad` is kept though it is no leaf.", _retains_grad),
    "H": _flag("H", "The matrix transposed: of real numbers also its conjugate.", lambda x: x.mT),
    "mH": _flag("mH", "The matrices transposed: of real numbers also their conjugates.", lambda x: x.mT),
    "real": _flag("real", "The real part: the tensor itself.", lambda x: x),
    "name": _flag("name", "A name, which tensors have none.", lambda x: None),
    "volatile": _flag("volatile", "Gone from PyTorch: always false.", lambda x: False),
    "output_nr": _flag("output_nr", "Which result of its function it is: functions have one.", lambda x: 0),
}  # fmt: skip


def _html(self):
    """The tensor as notebooks show it."""
    from ._html import tensor_html

    return tensor_html(self)


def install():
    """Gives the class `Tensor` these names."""
    Tensor._repr_html_ = _html
    _stride.__name__, _stride.__qualname__, Tensor.stride = "stride", "Tensor.stride", _stride
    for method in METHODS:
        method.__qualname__ = f"Tensor.{method.__name__}"
        setattr(Tensor, method.__name__, method)
    for name in _WRITTEN:
        setattr(Tensor, name + "_", _in_place(name))
    for name, found in PROPERTIES.items():
        setattr(Tensor, name, found)

