"""Special functions under the names, and with the parameters, of `torch.special`. Written by tools/python_stubs.py."""

from typing import Any, Generic, TypeVar
from ._core import Tensor as Tensor

_T = TypeVar("_T")

def xlogy(input: Any, other: Any) -> Any:
    """`input * log(other)`, and 0 where `input` is 0."""

def xlog1py(input: Any, other: Any) -> Any:
    """`input * log(1 + other)`, and 0 where `input` is 0."""

def gammainc(input: Any, other: Any) -> Any:
    """The regularised lower incomplete gamma function: the probability of at most `other` under a gamma distribution of shape `input`. Both have gradients."""

def gammaincc(input: Any, other: Any) -> Any:
    """1 minus `gammainc`, exact where that is near 1."""

def entr(input: Any) -> Any:
    """`-input * log(input)`, 0 at 0, and `-inf` below."""

def multigammaln(input: Any, p: Any) -> Any:
    """The logarithm of the gamma function of `p` dimensions, at least 1."""

def polygamma(n: Any, input: Any) -> Any:
    """The `n`-th derivative of the digamma function."""

def softmax(input: Any, dim: Any, *, dtype: Any=None) -> Any:
    """`exp(input) / sum(exp(input))` along an axis, computed in `dtype`."""

def log_softmax(input: Any, dim: Any, *, dtype: Any=None) -> Any:
    """The logarithm of `softmax`."""

def digamma(*args: Any, **kwargs: Any) -> Any: ...

def erf(*args: Any, **kwargs: Any) -> Any: ...

def erfc(*args: Any, **kwargs: Any) -> Any: ...

def erfcx(*args: Any, **kwargs: Any) -> Any: ...

def erfinv(*args: Any, **kwargs: Any) -> Any: ...

def exp2(*args: Any, **kwargs: Any) -> Any: ...

def expit(*args: Any, **kwargs: Any) -> Any: ...

def expm1(*args: Any, **kwargs: Any) -> Any: ...

def gammaln(*args: Any, **kwargs: Any) -> Any: ...

def log1p(*args: Any, **kwargs: Any) -> Any: ...

def log_ndtr(*args: Any, **kwargs: Any) -> Any: ...

def logit(*args: Any, **kwargs: Any) -> Any: ...

def logsumexp(*args: Any, **kwargs: Any) -> Any: ...

def ndtr(*args: Any, **kwargs: Any) -> Any: ...

def psi(*args: Any, **kwargs: Any) -> Any: ...

def round(*args: Any, **kwargs: Any) -> Any: ...

def sinc(*args: Any, **kwargs: Any) -> Any: ...
