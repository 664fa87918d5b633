"""Special functions under the names, and with the parameters, of `torch.special`.

Not here are the Bessel and Airy functions, `ndtri`, the zeta function of Hurwitz and
orthogonal polynomials.
"""

import math

from . import _core, _names
from ._core import Tensor
from ._names import function as _function
from ._steps import in_steps as _in_steps

# Methods under names of their own.
_METHODS = {
    "digamma": "digamma", "psi": "digamma", "erf": "erf", "erfc": "erfc", "erfcx": "erfcx", "erfinv": "erfinv", "exp2": "exp2",
    "expit": "sigmoid", "expm1": "expm1", "log1p": "log1p", "gammaln": "lgamma", "log_ndtr": "log_ndtr", "ndtr": "ndtr",
    "logit": "logit", "sinc": "sinc", "logsumexp": "logsumexp", "round": "round",
}  # fmt: skip
globals().update({name: _function(method) for name, method in _METHODS.items()})


def _of(input, y):
    """Two operands of which one may be a number."""
    if isinstance(input, Tensor):
        return input
    if not isinstance(y, Tensor):
        raise TypeError(f"one operand must be a tensor, not {type(input).__name__} and {type(y).__name__}")
    return y.ones_like() * input


def xlogy(input, other):
    """`input * log(other)`, and 0 where `input` is 0."""
    return _of(input, other).xlogy(other)


def xlog1py(input, other):
    """`input * log(1 + other)`, and 0 where `input` is 0."""
    return _of(input, other).xlog1py(other)


def _gamma_operands(input, other):
    from .distributions._laws import tensors

    return tensors([input, other])


def gammainc(input, other):
    """The regularised lower incomplete gamma function: the probability of at most `other` under a gamma distribution of
    shape `input`. Both have gradients.
    """
    return _core._igamma(*_gamma_operands(input, other), False)


def gammaincc(input, other):
    """1 minus `gammainc`, exact where that is near 1."""
    return _core._igamma(*_gamma_operands(input, other), True)


@_in_steps
def entr(input):
    """`-input * log(input)`, 0 at 0, and `-inf` below."""
    return (input < 0).where_(float("-inf"), -input.xlogy(input))


@_in_steps
def multigammaln(input, p):
    """The logarithm of the gamma function of `p` dimensions, at least 1."""
    if p < 1:
        raise ValueError(f"multigammaln: p must be at least 1, not {p}")
    return sum((input - j / 2).lgamma() for j in range(p)) + p * (p - 1) / 4 * math.log(math.pi)


def polygamma(n, input):
    """The `n`-th derivative of the digamma function."""
    return input.polygamma(n)


def softmax(input, dim, *, dtype=None):
    """`exp(input) / sum(exp(input))` along an axis, computed in `dtype`."""
    return (input if dtype is None else input.cast(dtype)).softmax(dim)


def log_softmax(input, dim, *, dtype=None):
    """The logarithm of `softmax`."""
    return (input if dtype is None else input.cast(dtype)).log_softmax(dim)


_names.take_out(globals())
