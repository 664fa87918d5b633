"""The namespace of the Python array API standard, version 2023.12, over `zyx.Tensor`.

    >>> xp = x.__array_namespace__()
    >>> xp.mean(xp.astype(x, xp.float64), axis=0)

Names, parameters and results are the standard's. Left out is what needs complex numbers: `real`,
`imag`, the complex dtypes and the extension `fft`; `conj` of a real number is itself.
"""

from builtins import all as _all
from builtins import any as _any
from builtins import max as _max
from builtins import min as _min
from builtins import range as _range
from collections import namedtuple as _namedtuple

from . import _core
from ._core import (  # noqa: F401
    Tensor,
    bool,
    float32,
    float64,
    from_dlpack,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)

__array_api_version__ = "2023.12"

e, inf, nan, pi, newaxis = 2.718281828459045, float("inf"), float("nan"), 3.141592653589793, None

_FLOATS, _SIGNED, _UNSIGNED = (float32, float64), (int8, int16, int32, int64), (uint8, uint16, uint32, uint64)
_INTEGERS = _SIGNED + _UNSIGNED
_KINDS = {
    "bool": (bool,),
    "signed integer": _SIGNED,
    "unsigned integer": _UNSIGNED,
    "integral": _INTEGERS,
    "real floating": _FLOATS,
    "complex floating": (),
    "numeric": _INTEGERS + _FLOATS,
}


def _check(name, x, *kinds):
    """Refuses dtypes that a function is not defined on."""
    if not _any(x.dtype in _KINDS[kind] for kind in kinds) and x.dtype not in (_core.float16, _core.bfloat16):
        raise TypeError(f"{name} is not defined on {x.dtype!r}")


# Data types.


def astype(x, dtype, /, *, copy=True, device=None):
    """`x` in another dtype."""
    y = x.cast(dtype)
    return y if device is None else y.to_device(device)


def can_cast(from_, to, /):
    """Whether no value is lost by the rules of promotion."""
    source = from_.dtype if isinstance(from_, Tensor) else from_
    # The standard mixes no unsigned integer of 64 bits with signed ones.
    lost = source == uint64 and to in _SIGNED
    return source == to or (_mixes(source, to) and not lost and source.promote(to) == to)


def _mixes(a, b):
    """Whether the standard has a promotion of both."""
    kinds = [_KINDS["bool"], _INTEGERS, _FLOATS]
    return _any(a in kind and b in kind for kind in kinds)


class finfo:
    """Limits of a floating-point dtype."""

    def __init__(self, type, /):
        dtype = type.dtype if isinstance(type, Tensor) else _core.DType(type)
        digits = {"float16": (10, 5), "bfloat16": (7, 8), "float32": (23, 8), "float64": (52, 11)}
        if dtype.name not in digits:
            raise TypeError(f"{dtype!r} holds no floating-point numbers")
        fraction, exponent = digits[dtype.name]
        bias = 2 ** (exponent - 1) - 1
        self.bits, self.dtype, self.eps = dtype.bits, dtype, 2.0**-fraction
        self.max = (2.0 - self.eps) * 2.0**bias
        self.min, self.smallest_normal = -self.max, 2.0 ** (1 - bias)


class iinfo:
    """Limits of an integer dtype."""

    def __init__(self, type, /):
        dtype = type.dtype if isinstance(type, Tensor) else _core.DType(type)
        if not dtype.is_integer:
            raise TypeError(f"{dtype!r} holds no integers")
        bits = dtype.bits - dtype.is_signed
        self.bits, self.dtype = dtype.bits, dtype
        self.max, self.min = 2**bits - 1, -(2**bits) if dtype.is_signed else 0


def isdtype(dtype, kind):
    """Whether a dtype is of a kind (`"integral"`), is another dtype, or is of any of a tuple of them."""
    if isinstance(kind, tuple):
        return _any(isdtype(dtype, one) for one in kind)
    if isinstance(kind, str):
        if kind not in _KINDS:
            raise ValueError(f"'{kind}' is no kind of dtype; there are {list(_KINDS)}")
        return dtype in _KINDS[kind]
    return dtype == kind


def result_type(*arrays_and_dtypes):
    """The dtype of a result of such operands."""
    dtypes = [x.dtype if isinstance(x, Tensor) else x for x in arrays_and_dtypes]
    dtypes = [x for x in dtypes if isinstance(x, _core.DType)]
    if not dtypes:
        raise ValueError("result_type needs an array or a dtype")
    found = dtypes[0]
    for dtype in dtypes[1:]:
        found = found.promote(dtype)
    return found


# Creation.


def asarray(obj, /, *, dtype=None, device=None, copy=None):
    """A tensor of numbers, lists, arrays or a tensor."""
    if isinstance(obj, Tensor) and dtype in (None, obj.dtype) and device in (None, obj.device):
        return _core.tensor(obj) if copy else obj
    if copy is False and not isinstance(obj, Tensor):
        return from_dlpack(obj, device=device, copy=False)
    if copy is False:
        raise ValueError("another dtype or device needs a copy")
    return _core.tensor(obj, dtype=dtype, device=device)


def arange(start, /, stop=None, step=1, *, dtype=None, device=None):
    """`start, start + step, ...` below `stop`."""
    return Tensor.arange(start, stop, step, dtype=dtype, device=device)


def _place(dtype, device):
    return {"dtype": float32 if dtype is None else dtype, "device": device}


def empty(shape, *, dtype=None, device=None):
    """Zeros: a tensor has a value."""
    return Tensor.zeros(shape, **_place(dtype, device))


def zeros(shape, *, dtype=None, device=None):
    """Zeros."""
    return Tensor.zeros(shape, **_place(dtype, device))


def ones(shape, *, dtype=None, device=None):
    """Ones."""
    return Tensor.ones(shape, **_place(dtype, device))


def full(shape, fill_value, *, dtype=None, device=None):
    """Every element equal to `fill_value`."""
    return Tensor.full(shape, fill_value, dtype=dtype, device=device)


def _like(x, dtype, device):
    return {"dtype": x.dtype if dtype is None else dtype, "device": x.device if device is None else device}


def empty_like(x, /, *, dtype=None, device=None):
    """Zeros of the shape of `x`."""
    return Tensor.zeros(x.shape, **_like(x, dtype, device))


def zeros_like(x, /, *, dtype=None, device=None):
    """Zeros of the shape of `x`."""
    return Tensor.zeros(x.shape, **_like(x, dtype, device))


def ones_like(x, /, *, dtype=None, device=None):
    """Ones of the shape of `x`."""
    return Tensor.ones(x.shape, **_like(x, dtype, device))


def full_like(x, /, fill_value, *, dtype=None, device=None):
    """Every element equal to `fill_value`, in the shape of `x`."""
    return Tensor.full(x.shape, fill_value, **_like(x, dtype, device))


def eye(n_rows, n_cols=None, /, *, k=0, dtype=None, device=None):
    """Ones on the `k`-th diagonal, zeros elsewhere."""
    n_cols = n_rows if n_cols is None else n_cols
    rows = Tensor.arange(n_rows, device=device).reshape(n_rows, 1)
    columns = Tensor.arange(n_cols, device=device)
    return (rows + k == columns).cast(float32 if dtype is None else dtype)


def linspace(start, stop, /, num, *, dtype=None, device=None, endpoint=True):
    """`num` evenly spaced numbers from `start` to `stop`, which `endpoint` includes."""
    end = stop if endpoint or num == 0 else start + (stop - start) * (num - 1) / num
    return Tensor.linspace(start, end, num, **_place(dtype, device))


def meshgrid(*arrays, indexing="xy"):
    """The coordinates of the grid of vectors."""
    if indexing not in ("xy", "ij"):
        raise ValueError(f"indexing is 'xy' or 'ij', not {indexing!r}")
    n = len(arrays)
    swap = {0: 1, 1: 0} if indexing == "xy" and n > 1 else {}
    order = [swap.get(i, i) for i in _range(n)]
    shape = [0] * n
    for i, x in zip(order, arrays):
        shape[i] = x.size
    along = lambda i, x: x.reshape([x.size if axis == i else 1 for axis in _range(n)])  # noqa: E731
    return [along(i, x).expand(shape) for i, x in zip(order, arrays)]


def tril(x, /, *, k=0):
    """The elements on and below the `k`-th diagonal, zeros above."""
    return x.tril(k)


def triu(x, /, *, k=0):
    """The elements on and above the `k`-th diagonal, zeros below."""
    return x.triu(k)


# Elementwise functions.


def _unary(name, method, *kinds):
    def function(x, /):
        _check(name, x, *kinds)
        return getattr(x, method)()

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Elementwise `{method}`."
    return function


def _binary(name, method, *kinds):
    def function(x1, x2, /):
        for x in (x1, x2):
            if isinstance(x, Tensor):
                _check(name, x, *kinds)
        if not isinstance(x1, Tensor):
            x1 = _core.tensor(x1, dtype=x2.dtype, device=x2.device)
        elif isinstance(x2, Tensor) and x1.dtype != x2.dtype and (x1.ndim == 0) != (x2.ndim == 0):
            # Arrays without axes are promoted as others here, other than by the operators.
            dtype = x1.dtype.promote(x2.dtype)
            x1, x2 = x1.cast(dtype), x2.cast(dtype)
        return getattr(x1, method)(x2)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Elementwise `{method}` of two."
    return function


_REAL, _NUMBERS, _ANY, _BITS = ("real floating",), ("numeric",), ("bool", "numeric"), ("bool", "integral")
for _names, _kinds in [
    ("acos acosh asin asinh atan atanh cos cosh exp expm1 log log1p log2 log10 sin sinh sqrt tan tanh signbit reciprocal", _REAL),
    ("sign square abs", _NUMBERS),
    ("logical_not", ("bool",)),
]:
    for _name in _names.split():
        globals()[_name] = _unary(_name, _name, *_kinds)
negative = _unary("negative", "neg", *_NUMBERS)
bitwise_invert = _unary("bitwise_invert", "bitwise_not", *_BITS)
isfinite, isinf, isnan = (_unary(f"is{n}", f"is_{n}", *_NUMBERS) for n in ("finite", "inf", "nan"))

for _names, _kinds in [
    ("atan2 copysign hypot logaddexp nextafter", _REAL),
    ("floor_divide maximum minimum pow remainder", _NUMBERS),
    ("bitwise_and bitwise_or bitwise_xor", _BITS),
    ("logical_and logical_or logical_xor", ("bool",)),
]:
    for _name in _names.split():
        globals()[_name] = _binary(_name, _name, *_kinds)
add, subtract, multiply = (_binary(n, m, *_NUMBERS) for n, m in [("add", "add"), ("subtract", "sub"), ("multiply", "mul")])
divide = _binary("divide", "div", *_REAL)
equal, not_equal = _binary("equal", "__eq__", *_ANY), _binary("not_equal", "__ne__", *_ANY)
less, less_equal = _binary("less", "lt", *_NUMBERS), _binary("less_equal", "le", *_NUMBERS)
greater, greater_equal = _binary("greater", "gt", *_NUMBERS), _binary("greater_equal", "ge", *_NUMBERS)


def _shift(name, method, overflow):
    def function(x1, x2, /):
        x1 = x1 if isinstance(x1, Tensor) else Tensor(x1, dtype=x2.dtype)
        _check(name, x1, "integral")
        return getattr(x1, method)(x2)

    function.__name__, function.__doc__ = name, overflow
    return function


bitwise_left_shift = _shift("bitwise_left_shift", "shl", "The bits of `x1` shifted left by `x2`.")
bitwise_right_shift = _shift("bitwise_right_shift", "shr", "The bits of `x1` shifted right by `x2`.")


def _rounding(name):
    def function(x, /):
        _check(name, x, *_NUMBERS)
        return x if x.dtype in _INTEGERS else getattr(x, name)()

    function.__name__, function.__doc__ = name, f"Elementwise `{name}`; integers stay as they are."
    return function


ceil, floor, round, trunc = (_rounding(n) for n in ("ceil", "floor", "round", "trunc"))


def positive(x, /):
    """`x` itself."""
    _check("positive", x, *_NUMBERS)
    return x


def conj(x, /):
    """The complex conjugate, which of a real number is itself."""
    return x


def clip(x, /, min=None, max=None):
    """Each element limited to `min ..= max`."""
    _check("clip", x, *_NUMBERS)
    if min is None and max is None:
        return x

    def limit(y):
        if y is None or isinstance(y, Tensor):
            return y
        # What no integer of the dtype passes is no limit.
        ends = None if x.dtype in _FLOATS or not x.dtype.is_integer else iinfo(x.dtype)
        return Tensor(y if ends is None else _min(_max(y, ends.min), ends.max), dtype=x.dtype)

    limits = [limit(y) for y in (min, max)]
    return x.clamp(*limits).cast(x.dtype)


# Linear algebra.


def matmul(x1, x2, /):
    """Matrix product."""
    _check("matmul", x1, *_NUMBERS)
    _check("matmul", x2, *_NUMBERS)
    return x1.matmul(x2)


def matrix_transpose(x, /):
    """The last two axes exchanged."""
    return x.mT


def tensordot(x1, x2, /, *, axes=2):
    """Sum of products over pairs of axes."""
    if isinstance(axes, int):
        if axes < 0:
            raise ValueError("axes is negative")
        axes = (list(_range(x1.ndim - axes, x1.ndim)), list(_range(axes)))
    first, second = ([a % x.ndim for a in some] for x, some in zip((x1, x2), axes))
    if [x1.shape[a] for a in first] != [x2.shape[a] for a in second]:
        raise ValueError(f"tensordot: extents of {first} and {second} differ (shapes {x1.shape}, {x2.shape})")
    left = [a for a in _range(x1.ndim) if a not in first]
    right = [a for a in _range(x2.ndim) if a not in second]
    n = _product(x1.shape[a] for a in first)
    a = x1.permute(left + first).reshape(_product(x1.shape[i] for i in left), n)
    b = x2.permute(second + right).reshape(n, _product(x2.shape[i] for i in right))
    return (a @ b).reshape([x1.shape[i] for i in left] + [x2.shape[i] for i in right])


def _product(numbers):
    product = 1
    for number in numbers:
        product *= number
    return product


def vecdot(x1, x2, /, *, axis=-1):
    """Sum of products along an axis."""
    _check("vecdot", x1, *_NUMBERS)
    if axis >= 0:
        raise ValueError("vecdot counts axes from the end: axis is negative")
    a, b = broadcast_arrays(x1.movedim(axis, -1), x2.movedim(axis, -1))
    dtype = result_type(x1, x2)
    return (a * b).sum(-1).cast(dtype)


# Manipulation.


def broadcast_arrays(*arrays):
    """Arrays with the shape that all of them broadcast to."""
    shape = _broadcast(*(x.shape for x in arrays))
    return [x.expand(shape) for x in arrays]


def _broadcast(*shapes):
    rank = _max((len(s) for s in shapes), default=0)
    found = []
    for axis in _range(-rank, 0):
        extents = {s[axis] for s in shapes if len(s) >= -axis} - {1}
        if len(extents) > 1:
            raise ValueError(f"shapes {shapes} do not broadcast")
        found.append(extents.pop() if extents else 1)
    return found


def broadcast_to(x, /, shape):
    """Axes of extent 1 repeated to `shape`."""
    return x.expand(shape)


def concat(arrays, /, *, axis=0):
    """Arrays joined along an axis; `None` joins all elements."""
    arrays = list(arrays)
    if axis is None:
        arrays, axis = [x.flatten() for x in arrays], 0
    return Tensor.cat(arrays, axis)


def expand_dims(x, /, *, axis=0):
    """A new axis of extent 1."""
    return x.unsqueeze(axis)


def flip(x, /, *, axis=None):
    """The order of elements along axes reversed."""
    return x.flip(axis=axis) if axis is not None else x.flip()


def moveaxis(x, source, destination, /):
    """Axes brought to other places."""
    source, destination = ([a] if isinstance(a, int) else list(a) for a in (source, destination))
    for axis in source + destination:
        if not -x.ndim <= axis < x.ndim:
            raise _core.AxisError(f"moveaxis: axis {axis} is out of range for {x.ndim} axes")
    source, destination = [a % x.ndim for a in source], [a % x.ndim for a in destination]
    order = [a for a in _range(x.ndim) if a not in source]
    for to, axis in sorted(zip(destination, source)):
        order.insert(to, axis)
    return x.permute(order)


def permute_dims(x, /, axes):
    """The axes in another order."""
    return x.permute(axes)


def repeat(x, repeats, /, *, axis=None):
    """Each entry of an axis repeated; without an axis each element."""
    if axis is None:
        x, axis = x.flatten(), 0
    n = x.shape[axis]
    if isinstance(repeats, Tensor) and repeats.size > 1 or isinstance(repeats, (list, tuple)):
        times = repeats.tolist() if isinstance(repeats, Tensor) else list(repeats)
        if len(times) != n:
            raise ValueError(f"{len(times)} counts for {n} entries")
        positions = [i for i, count in enumerate(times) for _ in _range(count)]
        return x.index_select(axis, _core.tensor(positions, dtype=int64))
    times = int(repeats)
    return x.index_select(axis, Tensor.arange(n * times) // _max(times, 1))


def reshape(x, /, shape, *, copy=None):
    """The same elements with another shape."""
    return x.reshape(shape)


def roll(x, /, shift, *, axis=None):
    """Elements moved along axes, those at the end to the front."""
    if axis is None:
        return roll(x.flatten(), shift, axis=0).reshape(x.shape)
    shifts, axes = ([a] if isinstance(a, int) else list(a) for a in (shift, axis))
    for by, along in zip(shifts * len(axes) if len(shifts) == 1 else shifts, axes):
        n = x.shape[along]
        if n and by % n:
            first = [slice(None)] * (along % x.ndim) + [slice(n - by % n, None)]
            rest = [slice(None)] * (along % x.ndim) + [slice(None, n - by % n)]
            x = Tensor.cat([x[tuple(first)], x[tuple(rest)]], along)
    return x


def squeeze(x, /, axis):
    """Axes of extent 1 removed."""
    axes = [axis] if isinstance(axis, int) else list(axis)
    for one in axes:
        if not -x.ndim <= one < x.ndim:
            raise _core.AxisError(f"squeeze: axis {one} is out of range for {x.ndim} axes")
    axes = {one % x.ndim for one in axes}
    if _any(x.shape[one] != 1 for one in axes):
        raise ValueError(f"squeeze: an axis of {sorted(axes)} is longer than 1 (shape {x.shape})")
    return x.reshape([n for i, n in enumerate(x.shape) if i not in axes])


def stack(arrays, /, *, axis=0):
    """Arrays of one shape joined along a new axis."""
    return Tensor.stack(list(arrays), axis)


def tile(x, repetitions, /):
    """The array repeated along each axis."""
    n = _max(x.ndim, len(repetitions))
    x = x.reshape((1,) * (n - x.ndim) + x.shape)
    return x.repeat((1,) * (n - len(repetitions)) + tuple(repetitions))


def unstack(x, /, *, axis=0):
    """The entries of an axis, as a tuple."""
    return tuple(x.select_index(axis, i) for i in _range(x.shape[axis]))


def broadcast_shapes(*shapes):
    """The shape that all of these broadcast to."""
    return tuple(_broadcast(*shapes))


# Searching, sorting, sets.


def count_nonzero(x, /, *, axis=None, keepdims=False):
    """How many elements are not zero."""
    return (x != 0 if x.dtype != bool else x).cast(int64).sum(_axes(x, axis), keepdim=keepdims)


def isin(x1, x2, /, *, invert=False):
    """Which elements of `x1` are among those of `x2`."""
    x1 = x1 if isinstance(x1, Tensor) else Tensor(x1, dtype=x2.dtype)
    x2 = x2 if isinstance(x2, Tensor) else Tensor(x2, dtype=x1.dtype)
    if x2.size == 0:
        return Tensor.full(x1.shape, invert, dtype=bool)
    found = (x1.unsqueeze(-1) == x2.flatten()).any(-1)
    return found.logical_not() if invert else found


def argmax(x, /, *, axis=None, keepdims=False):
    """Position of the first largest element."""
    _check("argmax", x, *_NUMBERS)
    return x.argmax(axis, keepdim=keepdims)


def argmin(x, /, *, axis=None, keepdims=False):
    """Position of the first smallest element."""
    _check("argmin", x, *_NUMBERS)
    return x.argmin(axis, keepdim=keepdims)


def nonzero(x, /):
    """The positions of the elements that are not zero, a tensor for each axis."""
    if x.ndim == 0:
        raise ValueError("nonzero of a tensor without axes")
    found = x.nonzero()
    return tuple(found[:, i] for i in _range(x.ndim))


def searchsorted(x1, x2, /, *, side="left", sorter=None):
    """Where elements of `x2` belong in the ordered `x1`."""
    if side not in ("left", "right"):
        raise ValueError(f"side is 'left' or 'right', not {side!r}")
    x1 = x1 if sorter is None else x1[sorter]
    dtype = result_type(x1, x2)
    return x1.cast(dtype).searchsorted(x2.cast(dtype), side == "right")


def where(condition, x1, x2, /):
    """`x1` where the condition holds, elsewhere `x2`."""
    return condition.where_(x1, x2)


def argsort(x, /, *, axis=-1, descending=False, stable=True):
    """The positions that put an axis in order; equal elements keep theirs."""
    _check("argsort", x, *_NUMBERS)
    return x.argsort(axis, descending=descending)


def sort(x, /, *, axis=-1, descending=False, stable=True):
    """The elements of an axis in order."""
    _check("sort", x, *_NUMBERS)
    return take_along_axis(x, x.argsort(axis, descending=descending), axis=axis)


def take(x, indices, /, *, axis=None):
    """Entries of one axis."""
    if axis is None:
        if x.ndim != 1:
            raise ValueError("take needs an axis for more than one")
        axis = 0
    return x[(slice(None),) * (axis % x.ndim) + (indices,)]


def take_along_axis(x, indices, /, *, axis=-1):
    """`x` at positions along one axis."""
    axis, n = axis % x.ndim, x.shape[axis]
    shape = _broadcast(*([1 if i == axis else m for i, m in enumerate(of.shape)] for of in (x, indices)))
    x, indices = (of.expand([m if i == axis else shape[i] for i, m in enumerate(of.shape)]) for of in (x, indices))
    return x.gather(axis, (indices < 0).where_(indices + n, indices))


_All = _namedtuple("unique_all", ["values", "indices", "inverse_indices", "counts"])
_Counts = _namedtuple("unique_counts", ["values", "counts"])
_Inverse = _namedtuple("unique_inverse", ["values", "inverse_indices"])


def unique_all(x, /):
    """The different elements in order: values, first positions, the number of each element, counts."""
    flat = x.flatten()
    n = flat.size
    if n == 0:
        nothing = Tensor.zeros(0, dtype=int64)
        return _All(flat, nothing, nothing.reshape(x.shape), nothing)
    order = (flat.cast(uint8) if flat.dtype == bool else flat).argsort(0)
    ordered = flat[order]
    # NaN equals nothing, so each is an element of its own.
    starts = Tensor.cat([Tensor.ones(1, dtype=bool), ordered[1:] != ordered[:-1]], 0)
    number = starts.cast(int64).cumsum(0) - 1
    first = Tensor.arange(n)[starts]
    ends = Tensor.cat([first[1:], _core.tensor([n])], 0)
    inverse = Tensor.zeros(n, dtype=int64).scatter(0, order, number)
    return _All(ordered[first], order[first], inverse.reshape(x.shape), ends - first)


def unique_counts(x, /):
    """The different elements in order and how often each is there."""
    found = unique_all(x)
    return _Counts(found.values, found.counts)


def unique_inverse(x, /):
    """The different elements in order and which of them each element is."""
    found = unique_all(x)
    return _Inverse(found.values, found.inverse_indices)


def unique_values(x, /):
    """The different elements in order."""
    return unique_all(x).values


# Statistics.


def _axes(x, axis):
    return None if axis is None else tuple([axis] if isinstance(axis, int) else axis)


def _summed(x, dtype):
    """The operand and dtype of a sum or product."""
    if dtype is None:
        dtype = int64 if x.dtype in _SIGNED else uint64 if x.dtype in _UNSIGNED else x.dtype
    return x.cast(dtype), dtype


def sum(x, /, *, axis=None, dtype=None, keepdims=False):
    """Sum; of integers in 64 bits."""
    _check("sum", x, *_NUMBERS)
    x, dtype = _summed(x, dtype)
    return x.sum(_axes(x, axis), keepdim=keepdims).cast(dtype)


def prod(x, /, *, axis=None, dtype=None, keepdims=False):
    """Product; of integers in 64 bits."""
    _check("prod", x, *_NUMBERS)
    x, dtype = _summed(x, dtype)
    return x.prod(_axes(x, axis), keepdim=keepdims).cast(dtype)


def cumulative_sum(x, /, *, axis=None, dtype=None, include_initial=False):
    """Running sums along an axis, after a zero if `include_initial`."""
    _check("cumulative_sum", x, *_NUMBERS)
    if axis is None:
        if x.ndim != 1:
            raise ValueError("cumulative_sum needs an axis for more than one")
        axis = 0
    x, dtype = _summed(x, dtype)
    found = x.cumsum(axis).cast(dtype)
    if not include_initial:
        return found
    start = [1 if i == axis % x.ndim else n for i, n in enumerate(x.shape)]
    return Tensor.cat([Tensor.zeros(start, dtype=dtype), found], axis)


def cumulative_prod(x, /, *, axis=None, dtype=None, include_initial=False):
    """Running products along an axis, after a one if `include_initial`."""
    _check("cumulative_prod", x, *_NUMBERS)
    if axis is None:
        if x.ndim != 1:
            raise ValueError("cumulative_prod needs an axis for more than one")
        axis = 0
    x, dtype = _summed(x, dtype)
    found = x.cumprod(axis).cast(dtype)
    if not include_initial:
        return found
    start = [1 if i == axis % x.ndim else n for i, n in enumerate(x.shape)]
    return Tensor.cat([Tensor.ones(start, dtype=dtype), found], axis)


def diff(x, /, *, axis=-1, n=1, prepend=None, append=None):
    """Differences of neighbours along an axis, `n` times."""
    _check("diff", x, *_NUMBERS)
    parts = [part for part in (prepend, x, append) if part is not None]
    return (Tensor.cat(parts, axis) if len(parts) > 1 else x).diff(n, axis)


def max(x, /, *, axis=None, keepdims=False):
    """Largest element."""
    _check("max", x, *_NUMBERS)
    _not_empty("max", x, axis)
    return x.amax(_axes(x, axis), keepdim=keepdims)


def min(x, /, *, axis=None, keepdims=False):
    """Smallest element."""
    _check("min", x, *_NUMBERS)
    _not_empty("min", x, axis)
    return x.amin(_axes(x, axis), keepdim=keepdims)


def _not_empty(name, x, axis):
    axes = _range(x.ndim) if axis is None else _axes(x, axis)
    if _any(-x.ndim <= a < x.ndim and x.shape[a] == 0 for a in axes):
        raise ValueError(f"{name} of no elements")


def mean(x, /, *, axis=None, keepdims=False):
    """Arithmetic mean."""
    _check("mean", x, *_REAL)
    return x.mean(_axes(x, axis), keepdim=keepdims)


def var(x, /, *, axis=None, correction=0.0, keepdims=False):
    """Variance, with `correction` subtracted from the count."""
    _check("var", x, *_REAL)
    n = _product(x.shape[a] for a in (_range(x.ndim) if axis is None else _axes(x, axis)))
    # Without any, rounding could make a constant's variance differ from 0.
    found = x.var(_axes(x, axis), correction=0, keepdim=keepdims)
    if correction == 0:
        return found
    return found * (n / (n - correction) if n > correction else nan)


def std(x, /, *, axis=None, correction=0.0, keepdims=False):
    """Standard deviation; see `var`."""
    _check("std", x, *_REAL)
    n = _product(x.shape[a] for a in (_range(x.ndim) if axis is None else _axes(x, axis)))
    found = x.std(_axes(x, axis), correction=0, keepdim=keepdims)
    if correction == 0:
        return found
    return found * ((n / (n - correction)) ** 0.5 if n > correction else nan)


def all(x, /, *, axis=None, keepdims=False):
    """Whether all elements are nonzero."""
    return x.all(_axes(x, axis), keepdim=keepdims)


def any(x, /, *, axis=None, keepdims=False):
    """Whether any element is nonzero."""
    return x.any(_axes(x, axis), keepdim=keepdims)


# Inspection.


class _Info:
    """What this implementation has."""

    def capabilities(self):
        """Boolean masks as indices and shapes that depend on data."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 16}

    def default_device(self):
        """The device that tensors are made on."""
        return _core.device()

    def default_dtypes(self, *, device=None):
        """The dtypes of numbers of Python."""
        return {"real floating": float32, "complex floating": None, "integral": int64, "indexing": int64}

    def dtypes(self, *, device=None, kind=None):
        """Dtypes by name."""
        known = _KINDS["bool"] + _KINDS["numeric"]
        return {d.name: d for d in known if kind is None or isdtype(d, kind)}

    def devices(self):
        """The devices that open."""
        return [spec for spec, _, _ in _core.devices()]


def __array_namespace_info__():
    """What this implementation has."""
    return _Info()


def __getattr__(name):
    if name == "linalg":
        from . import _linalg

        globals()[name] = _linalg
        return _linalg
    raise AttributeError(f"module 'zyx.array_api' has no attribute {name!r}")
