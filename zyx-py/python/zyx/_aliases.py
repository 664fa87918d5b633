"""Methods of `Tensor` that PyTorch and NumPy have, made of others, and what a name that is not there is in zyx."""

from . import _names, _writes
from ._core import Tensor
from ._steps import in_steps

ALIASES = {
    "absolute": "abs",
    "arccos": "acos",
    "arccosh": "acosh",
    "arcsin": "asin",
    "arcsinh": "asinh",
    "arctan": "atan",
    "arctan2": "atan2",
    "arctanh": "atanh",
    "concat": "cat",
    "concatenate": "cat",
    "divide": "div",
    "fix": "trunc",
    "ger": "outer",
    "greater": "gt",
    "greater_equal": "ge",
    "inverse": "inv",
    "less": "lt",
    "less_equal": "le",
    "moveaxis": "movedim",
    "multiply": "mul",
    "negative": "neg",
    "nelement": "numel",
    "not_equal": "ne",
    "pinverse": "pinv",
    "randperm": "permutation",
    "row_stack": "vstack",
    "select": "select_index",
    "sgn": "sign",
    "subtract": "sub",
    "swapdims": "transpose",
    "trapz": "trapezoid",
    "true_divide": "div",
}


class Size(int):
    """A number of elements that gives the shape when it is called, so that both `x.size` of NumPy and `x.size()` of
    PyTorch are what their users expect.
    """

    def __call__(self, dim=None):
        return self._shape if dim is None else self._shape[dim]

    def __reduce__(self):
        return int, (int(self),)


def size(self):
    """Number of elements. Called, it is the shape: `x.size()`, `x.size(0)`."""
    found = Size(self.numel())
    found._shape = self.shape
    return found


def _tensor(other):
    if not isinstance(other, Tensor):
        raise TypeError(f"{type(other).__name__} is no Tensor")
    return other


def _shape(other):
    return _tensor(other).shape


def expand_as(self, other):
    """Broadcast to the shape of `other`."""
    return self.expand(_shape(other))


def view_as(self, other):
    """The elements in the shape of `other`."""
    return self.reshape(_shape(other))


def type_as(self, other):
    """Converted to the dtype of `other`."""
    return self.cast(_tensor(other).dtype)


def is_floating_point(self):
    """Whether the elements are floating-point numbers."""
    return self.dtype.name in ("float16", "bfloat16", "float32", "float64")


def element_size(self):
    """Bytes of one element."""
    return self.itemsize


def _place(self, dtype, device, requires_grad):
    return {"dtype": dtype or self.dtype, "device": device or self.device, "requires_grad": requires_grad}


def new_zeros(self, *shape, size=None, dtype=None, device=None, requires_grad=False):
    """Zeros on this tensor's device and in its dtype, if no others are given."""
    return Tensor.zeros(*shape, shape=size, **_place(self, dtype, device, requires_grad))


def new_ones(self, *shape, size=None, dtype=None, device=None, requires_grad=False):
    """Ones on this tensor's device and in its dtype, if no others are given."""
    return Tensor.ones(*shape, shape=size, **_place(self, dtype, device, requires_grad))


def new_full(self, size, fill_value, *, dtype=None, device=None, requires_grad=False):
    """Elements equal to a value on this tensor's device and in its dtype, if no others are given."""
    return Tensor.full(size, fill_value, **_place(self, dtype, device, requires_grad))


def new_empty(self, *shape, size=None, dtype=None, device=None, requires_grad=False):
    """Zeros on this tensor's device and in its dtype, if no others are given: a tensor has a value."""
    return new_zeros(self, *shape, size=size, dtype=dtype, device=device, requires_grad=requires_grad)


def reshape_as(self, other):
    """The elements in the shape of `other`."""
    return self.reshape(_shape(other))


def clamp_min(self, min):
    """Each element, or `min` if that is larger."""
    return self.clamp(min)


def clamp_max(self, max):
    """Each element, or `max` if that is smaller."""
    return self.clamp(None, max)


def positive(self):
    """The tensor itself."""
    return self


def pin_memory(self, device=None):
    """The tensor itself: copies to a device need no preparation."""
    return self


def cuda(self, device=None, non_blocking=False):
    """On a device of the backend `cuda`."""
    return self.to("cuda" if device is None else f"cuda:{device}" if isinstance(device, int) else device)


@in_steps
def rsub(self, other, *, alpha=1):
    """`other - alpha x`."""
    return other - self * alpha if alpha != 1 else other - self


def fill(self, value):
    """Every element equal to `value`, as this tensor otherwise."""
    return self.full_like(value)


def tensorsolve(self, other, dims=None):
    """The `x` for which `tensordot(self, x, x.ndim)` is `other`; `dims` are moved to the end first."""
    other = other if isinstance(other, Tensor) else Tensor(other)
    if dims is not None:
        self = self.movedim(list(dims), list(range(self.ndim - len(dims), self.ndim)))
    rest = self.shape[other.ndim :]
    return self.reshape(other.numel(), -1).solve(other.flatten()).reshape(rest)


def _randint(low=None, high=None, shape=None, dtype="int64", rng=None, device=None, *, size=None, generator=None):
    """Integers from `low` up to but not including `high`, equally likely up to `range / 2^64`. `randint(high, shape)`
    starts at 0.
    """
    shape = size if shape is None else shape
    if shape is None:
        low, high, shape = 0, low, high
    elif low is None or high is None:
        low, high = 0, high if low is None else low
    if high is None or shape is None:
        raise TypeError("randint() needs a limit and a shape: randint(high, shape) or randint(low, high, shape)")
    return Tensor._randint(low, high, shape, dtype, getattr(generator, "_rng", generator) if rng is None else rng, device)


@in_steps
def dist(self, other, p=2):
    """The p-norm of the difference."""
    return (self - other).norm(p)


METHODS = (expand_as, view_as, reshape_as, type_as, is_floating_point, element_size, new_zeros, new_ones, new_full,
           new_empty, clamp_min, clamp_max, positive, pin_memory, cuda, rsub, fill, tensorsolve, dist)  # fmt: skip

# Names of PyTorch, and how the same is written.
ELSEWHERE = {
    "max_values": "x.amax(dim)", "values": "x.max(dim), as x.max(axis=n) is the values alone",
    "indices": "x.max(dim), or x.argmax(dim)",
    "grad_fn": "nothing: gradients are computed from the graph",
    "storage": "x.to_bytes() or x.numpy()", "untyped_storage": "x.to_bytes() or x.numpy()", "data_ptr": "x.__dlpack__()",
}  # fmt: skip


def elsewhere(name):
    """How the same is written, as the end of a sentence, or nothing."""
    if name in ELSEWHERE:
        return f"; in zyx: {ELSEWHERE[name]}"
    if name.endswith("_") and not name.startswith("_") and hasattr(Tensor, name[:-1]):
        return f"; in zyx: x.copy_(x.{name[:-1]}(..))"
    return ""


def ways(module, known):
    """The `__getattr__` of a module that says how what PyTorch's has is written."""

    def missing(name):
        way = f"; in zyx: {known[name]}" if name in known else ""
        raise AttributeError(f"module {module!r} has no attribute {name!r}{way}")

    return missing


def install():
    """Gives the class `Tensor` these names."""
    _names.install()
    for alias, name in ALIASES.items():
        setattr(Tensor, alias, Tensor.__dict__[name])
    for method in METHODS:
        setattr(Tensor, method.__name__, method)
    _randint.__name__ = _randint.__qualname__ = "randint"
    Tensor.randint = staticmethod(_randint)
    _names.take_storage()
    _names.take_draws()
    Tensor.randperm = staticmethod(Tensor.permutation)
    _writes.install()
    Tensor.size = property(size)
