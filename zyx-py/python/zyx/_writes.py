"""In-place methods: `name_` writes what the method `name` gives into the tensor, and gives the tensor.

A write is seen by all views of the tensor, and by the tensor that it is a view of, as in PyTorch. The result has to have
the shape of the tensor, and a dtype that can become its own.
"""

from . import _functions
from ._core import Tensor

# Methods `name`, each of which has a method `name_`.
_METHODS = """
abs absolute acos acosh add addbmm addcdiv addcmul addmm addmv addr arccos arccosh arcsin arcsinh arctan arctan2 arctanh
asin asinh atan atan2 atanh baddbmm bitwise_and bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor
ceil clamp clamp_max clamp_min clip copysign cos cosh cumprod cumsum deg2rad digamma div divide elu eq erf erfc erfinv exp
exp2 expm1 fix float_power floor floor_divide fmod frac gcd ge greater greater_equal gt heaviside hypot
index_add index_copy index_fill index_put lcm ldexp le leaky_relu lerp less less_equal lgamma log log10 log1p log2
logical_and logical_not logical_or logical_xor logit lt masked_fill masked_scatter mul multiply mvlgamma nan_to_num ne neg
negative nextafter not_equal polygamma pow put rad2deg reciprocal relu remainder renorm round rsqrt scatter scatter_add
scatter_reduce selu sgn sigmoid sign sin sinc sinh sqrt square sub subtract tan tanh tril triu true_divide trunc xlogy
"""
# Operators, each of which has one that assigns.
_OPERATORS = "add sub mul truediv floordiv mod pow and or xor lshift rshift"
# Views that a tensor can become.
_VIEWS = "squeeze swapaxes swapdims t transpose unsqueeze"


def _in_place(name):
    method = getattr(Tensor, name, None)
    function = method or getattr(_functions, name)

    def changed(self, *given, **named):
        return self._write(function(self, *given, **named))

    def checked(self, *given, **named):
        try:
            return changed(self, *given, **named)
        except AttributeError as error:
            # A function of Python that was given no tensor.
            raise TypeError(f"{name}_: {error}") from None

    if method is None:
        return _named(checked, None, name + "_", f"As `{name}`, written into the tensor.")
    return _named(changed, method, name + "_", f"As `{name}`, written into the tensor.")


def _operator(name):
    operate = getattr(Tensor, f"__{name}__")

    def assigned(self, other):
        found = operate(self, other)
        return found if found is NotImplemented else self._write(found)

    return _named(assigned, None, f"__i{name}__", f"As `__{name}__`, written into the tensor.")


def _viewing(name):
    method = getattr(Tensor, name)

    def changed(self, *given, **named):
        return self._become(method(self, *given, **named))

    return _named(changed, method, name + "_", f"The tensor becomes what `{name}` gives.")


def _named(function, method, name, doc):
    function.__name__ = function.__qualname__ = name
    function.__doc__, function.__module__ = doc, "zyx"
    if method is not None:
        function.__wrapped__ = method
    return function


def fill_(self, value):
    """Every element becomes `value`."""
    if isinstance(value, Tensor) and value.ndim > 0:
        raise RuntimeError(f"fill_ only supports a number or a tensor without axes, not one of shape {value.shape}")
    return self.copy_(value)


def zero_(self):
    """Every element becomes 0."""
    return self.copy_(0)


def fill_diagonal_(self, fill_value, wrap=False):
    """The elements whose positions along all axes are equal become `fill_value`."""
    if self.ndim < 2 or self.ndim > 2 and len(set(self.shape)) > 1:
        raise RuntimeError(f"fill_diagonal_ needs two axes, or more of one extent, not the shape {self.shape}")
    if wrap and self.ndim == 2 and self.shape[0] > self.shape[1] + 1:
        raise NotImplementedError("fill_diagonal_ with wrap=True of a matrix with more rows than columns")
    view = self
    while view.ndim > 1:
        view = view.diagonal(0, 0, 1)
    view.copy_(fill_value)
    return self


def _drawn(self, make, generator):
    """A tensor of random numbers of this shape, in floats of 32 bits at least."""
    dtype = self.dtype if self.dtype.name == "float64" else "float32"
    return make(self.shape, dtype=dtype, rng=generator, device=self.device)


def _floating(self, name):
    if not self.is_floating_point():
        raise NotImplementedError(f"{name} of a tensor of {self.dtype}")


def normal_(self, mean=0.0, std=1.0, *, generator=None):
    """Every element is drawn from a normal distribution."""
    _floating(self, "normal_")
    if std < 0:
        raise RuntimeError(f"normal_ expects std >= 0.0, but found std {std}")
    return self.copy_(_drawn(self, Tensor.randn, generator) * std + mean)


def uniform_(self, *given, generator=None, **named):
    """`uniform_(from=0, to=1)`: every element is drawn uniformly from `from` up to `to`."""
    _floating(self, "uniform_")
    low, high = _limits("uniform_", given, named, 0.0, 1.0)
    if low > high:
        raise RuntimeError(f"uniform_ expects to return a [from, to) range, but found from={low} > to={high}")
    return self.copy_(_drawn(self, Tensor.rand, generator) * (high - low) + low)


def random_(self, *given, generator=None, **named):
    """`random_(from=0, to)`: every element is drawn from the integers from `from` up to but not including `to`; without
    limits from those that the dtype holds exactly, from 0.
    """
    digits = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53, "bool": 1}.get(self.dtype.name)
    bits = digits or 8 * self.itemsize - (not self.dtype.name.startswith("u"))
    low, high = _limits("random_", given, named, None, None)
    if low is not None and high is None and "from" not in named:
        low, high = 0, low
    low, high = low or 0, min(2**bits + (digits is not None and digits > 1), 2**63 - 1) if high is None else high
    if low >= high:
        raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}")
    return self.copy_(Tensor.randint(low, high, self.shape, generator=generator, device=self.device))


def _limits(name, given, named, low, high):
    """The arguments `from` and `to`, of which the one is no name in Python."""
    values = [low, high]
    for i, value in enumerate(given):
        if i > 1 or ("from", "to")[i] in named:
            raise TypeError(f"{name}() takes `from` and `to`, each once")
        values[i] = value
    for key, value in named.items():
        if key not in ("from", "to"):
            raise TypeError(f"{name}() got an unexpected keyword argument {key!r}")
        values[key == "to"] = value
    return values


def bernoulli_(self, p=0.5, *, generator=None):
    """Every element becomes 1 with the probability `p`, else 0."""
    return self.copy_(_drawn(self, Tensor.rand, generator) < p)


def exponential_(self, lambd=1.0, *, generator=None):
    """Every element is drawn from an exponential distribution."""
    _floating(self, "exponential_")
    if lambd <= 0:
        raise RuntimeError(f"exponential_ expects lambda > 0.0, but found lambda={lambd}")
    return self.copy_((-_drawn(self, Tensor.rand, generator)).log1p() / -lambd)


def geometric_(self, p, *, generator=None):
    """Every element is how often one tries until something of the probability `p` happens."""
    if not 0 < p < 1:
        raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={p}")
    import math

    tries = ((-_drawn(self, Tensor.rand, generator)).log1p() / math.log1p(-p)).ceil()
    return self.copy_(tries.clamp(min=1.0))


def cauchy_(self, median=0.0, sigma=1.0, *, generator=None):
    """Every element is drawn from a Cauchy distribution."""
    _floating(self, "cauchy_")
    if sigma <= 0:
        raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={sigma}")
    return self.copy_(((_drawn(self, Tensor.rand, generator) - 0.5) * 3.141592653589793).tan() * sigma + median)


def log_normal_(self, mean=1.0, std=2.0, *, generator=None):
    """Every element is drawn from a distribution whose logarithm is normal."""
    _floating(self, "log_normal_")
    return self.copy_((_drawn(self, Tensor.randn, generator) * std + mean).exp())


def apply_(self, callable):
    """Every element becomes what a function of Python gives for it."""
    values = [callable(x) for x in self.flatten().tolist()]
    return self.copy_(Tensor(values, dtype=self.dtype, device=self.device).reshape(self.shape))


def share_memory_(self):
    """The tensor itself: other processes get copies."""
    return self


FUNCTIONS = (fill_, zero_, fill_diagonal_, normal_, uniform_, random_, bernoulli_, exponential_, geometric_, cauchy_,
             log_normal_, apply_, share_memory_)  # fmt: skip


def install():
    """Gives the class `Tensor` its in-place methods."""
    for name in _METHODS.split():
        setattr(Tensor, name + "_", _in_place(name))
    for name in _OPERATORS.split():
        setattr(Tensor, f"__i{name}__", _operator(name))
    for name in _VIEWS.split():
        setattr(Tensor, name + "_", _viewing(name))
    for function in FUNCTIONS:
        setattr(Tensor, function.__name__, function)
