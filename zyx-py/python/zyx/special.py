"""Special functions under the names, and with the parameters, of `torch.special`.

Not here are the Bessel and Airy functions, incomplete gamma functions, `ndtri`, the zeta function of Hurwitz and
orthogonal polynomials.
"""

import math

from ._core import Tensor

digamma = psi = Tensor.digamma
erf, erfc, erfcx, erfinv = Tensor.erf, Tensor.erfc, Tensor.erfcx, Tensor.erfinv
exp2, expit, expm1, log1p = Tensor.exp2, Tensor.sigmoid, Tensor.expm1, Tensor.log1p
gammaln, log_ndtr, ndtr, logit, sinc = Tensor.lgamma, Tensor.log_ndtr, Tensor.ndtr, Tensor.logit, Tensor.sinc
logsumexp, round = Tensor.logsumexp, Tensor.round


def _of(x, y):
    """Two operands of which one may be a number."""
    if isinstance(x, Tensor):
        return x
    if not isinstance(y, Tensor):
        raise TypeError(f"one operand must be a tensor, not {type(x).__name__} and {type(y).__name__}")
    return y.ones_like() * x


def xlogy(x, y):
    """`x * log(y)`, and 0 where `x` is 0."""
    return _of(x, y).xlogy(y)


def xlog1py(x, y):
    """`x * log(1 + y)`, and 0 where `x` is 0."""
    return _of(x, y).xlog1py(y)


def entr(x):
    """`-x * log(x)`, 0 at 0, and `-inf` below."""
    return (x < 0).where_(float("-inf"), -x.xlogy(x))


def multigammaln(x, p):
    """The logarithm of the gamma function of `p` dimensions, at least 1."""
    if p < 1:
        raise ValueError(f"multigammaln: p must be at least 1, not {p}")
    return sum((x - j / 2).lgamma() for j in range(p)) + p * (p - 1) / 4 * math.log(math.pi)


def polygamma(n, x):
    """The `n`-th derivative of the digamma function."""
    return x.polygamma(n)


def softmax(x, dim, *, dtype=None):
    """`exp(x) / sum(exp(x))` along an axis, computed in `dtype`."""
    return (x if dtype is None else x.cast(dtype)).softmax(dim)


def log_softmax(x, dim, *, dtype=None):
    """The logarithm of `softmax`."""
    return (x if dtype is None else x.cast(dtype)).log_softmax(dim)
