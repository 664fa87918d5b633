"""The default dtype of floats, where it is not `float32`: operations of integers that give floats give it.

`set_default_dtype` sets the dtype of new tensors and layers in Rust. The methods below get a conversion of their integer
operands when another default than `float32` is set for the first time.
"""

from . import _aliases, _names
from ._core import Tensor, _default_float
from ._steps import _parts

# Methods of integers whose results are floats.
_ALWAYS = """
__truediv__ __rtruediv__ acos acosh asin asinh atan atan2 atanh celu cos cosh deg2rad digamma div elu erf erfc erfinv exp exp2 expm1 gelu lgamma log
log10 log1p log2 logit logsumexp mvlgamma polygamma rad2deg reciprocal recip rsqrt sigmoid sin sinc sinh softplus sqrt tan tanh xlogy
"""
# Methods whose results are floats if a number is one.
_WITH_FLOATS = """
__add__ __radd__ __sub__ __rsub__ __mul__ __rmul__ __pow__ __rpow__ __mod__ __rmod__ __floordiv__ __rfloordiv__ add sub mul pow remainder fmod
floor_divide rsub clamp maximum minimum lerp where where_ fmax fmin hypot
"""
_installed = []


def _converting(name, function, always, wrap):
    def converted(*given, **named):
        if _default_float().name == "float32":
            return function(*given, **named)
        every = [*_parts(given), *_parts(tuple(named.values()))]
        has_float = any(isinstance(x, float) for x in (*given, *named.values()))
        if (always or has_float) and not any(x.is_floating_point() for x in every) and named.get("rounding_mode") is None and named.get("dtype") is None:
            condition = {"where": 1, "where_": 0}.get(name)
            given = tuple(x.cast(_default_float()) if isinstance(x, Tensor) and i != condition else x for i, x in enumerate(given))
        return function(*given, **named)

    return _names.wrapping(name, function, converted, wrap)


def _always(name, function):
    return _converting(name, function, True, _always)


def _with_floats(name, function):
    return _converting(name, function, False, _with_floats)


def _logspace(name, function):
    def converted(start, end, n=50, base=10.0, **named):
        if _default_float().name == "float32":
            return function(start, end, n, base, **named)
        return base ** Tensor.linspace(start, end, named.pop("steps", n), **named)

    return _names.wrapping(name, function, converted, _logspace)


def install():
    """Gives the methods their conversions."""
    if _installed:
        return
    _installed.append(True)
    for names, wrap in ((_ALWAYS, _always), (_WITH_FLOATS, _with_floats)):
        names = set(names.split())
        _names.wrap_methods([*names, *(alias for alias, known in _aliases.ALIASES.items() if known in names)], wrap)
    _names.wrap_methods(["logspace"], _logspace)
