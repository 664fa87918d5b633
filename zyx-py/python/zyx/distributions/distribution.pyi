"""Written by tools/python_stubs.py of `zyx.distributions.distribution`."""

from typing import Any

from .._core import Tensor

def holds(mask: Any) -> Any:
    """Whether all elements are true. Those of traced functions have no values and count as true."""

class Distribution:
    """Probability distributions of one family: `batch_shape` of them, of values of `event_shape`. Parameters and values are checked unless `validate_args=False`; within `jit` and `vmap` they have no values to check."""

    has_rsample: Any
    has_enumerate_support: Any
    @staticmethod
    def set_default_validate_args(value: Any) -> Any:
        """Whether parameters and values are checked unless `validate_args` says otherwise."""
    def __init__(self, batch_shape: Any = (), event_shape: Any = (), validate_args: Any = None) -> None:
        ...
    def expand(self, batch_shape: Any, _instance: Any = None) -> Distribution:
        """The distributions broadcast to a batch shape."""
    batch_shape: Any
    event_shape: Any
    arg_constraints: Any
    support: Any
    mean: Tensor
    mode: Tensor
    variance: Tensor
    stddev: Tensor
    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Values of shape `sample_shape + batch_shape + event_shape`, without gradients."""
    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Values with gradients by the parameters."""
    def sample_n(self, n: Any) -> Tensor:
        """`sample((n,))`."""
    def log_prob(self, value: Any) -> Tensor:
        """The logarithm of the density or probability of values."""
    def cdf(self, value: Any) -> Tensor:
        """The probability of at most `value`."""
    def icdf(self, value: Any) -> Tensor:
        """The inverse of `cdf`."""
    def enumerate_support(self, expand: Any = True) -> Tensor:
        """All values, along a new first axis."""
    def entropy(self) -> Tensor:
        """The entropy in nats."""
    def perplexity(self) -> Tensor:
        """The exponential of the entropy."""
