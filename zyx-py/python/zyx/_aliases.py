"""Second names that PyTorch and NumPy give to methods of `Tensor`."""

from ._core import Tensor

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
    "greater": "gt",
    "greater_equal": "ge",
    "inverse": "inv",
    "less": "lt",
    "less_equal": "le",
    "moveaxis": "movedim",
    "multiply": "mul",
    "negative": "neg",
    "not_equal": "ne",
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
    return self


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


def install():
    """Gives the class `Tensor` these names."""
    for alias, name in ALIASES.items():
        setattr(Tensor, alias, Tensor.__dict__[name])
    for method in (clone, expand_as, view_as):
        setattr(Tensor, method.__name__, method)
