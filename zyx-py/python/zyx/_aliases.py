"""Second names that PyTorch and NumPy give to methods of `Tensor`."""

from ._core import Tensor, is_grad_enabled

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


def clone(self):
    """The tensor itself: tensors never change."""
    return self if is_grad_enabled() else self.detach()


def _shape(other):
    if not isinstance(other, Tensor):
        raise TypeError(f"{type(other).__name__} is no Tensor")
    return other.shape


def expand_as(self, other):
    """Broadcast to the shape of `other`."""
    return self.expand(_shape(other))


def view_as(self, other):
    """The elements in the shape of `other`."""
    return self.reshape(_shape(other))


def type_as(self, other):
    """Converted to the dtype of `other`."""
    return self.cast(other.dtype)


def is_floating_point(self):
    """Whether the elements are floating-point numbers."""
    return self.dtype.name in ("float16", "bfloat16", "float32", "float64")


def element_size(self):
    """Bytes of one element."""
    return self.itemsize


def new_zeros(self, *shape, dtype=None):
    """Zeros on this tensor's device, in its dtype if no other is given."""
    return Tensor.zeros(*shape, dtype=dtype or self.dtype, device=self.device)


def new_ones(self, *shape, dtype=None):
    """Ones on this tensor's device, in its dtype if no other is given."""
    return Tensor.ones(*shape, dtype=dtype or self.dtype, device=self.device)


def new_full(self, shape, value, *, dtype=None):
    """Elements equal to `value` on this tensor's device, in its dtype if no other is given."""
    return Tensor.full(shape, value, dtype=dtype or self.dtype, device=self.device)


def dist(self, other, p=2):
    """The p-norm of the difference."""
    return (self - other).norm(p)


METHODS = (clone, expand_as, view_as, type_as, is_floating_point, element_size, new_zeros, new_ones, new_full, dist)


def install():
    """Gives the class `Tensor` these names."""
    for alias, name in ALIASES.items():
        setattr(Tensor, alias, Tensor.__dict__[name])
    for method in METHODS:
        setattr(Tensor, method.__name__, method)
