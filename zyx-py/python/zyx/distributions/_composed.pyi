"""Written by tools/python_stubs.py of `zyx.distributions._composed`."""

from typing import Any

from .._core import Tensor
from .distribution import Distribution
from . import OneHotCategorical

class Independent(Distribution):
    """The last axes of a batch as axes of one event."""

    def __init__(self, base_distribution: Any, reinterpreted_batch_ndims: Any, validate_args: Any = None) -> None:
        ...
    def expand(self, batch_shape: Any, _instance: Any = None) -> Independent:
        """The distributions broadcast to a batch shape."""
    has_rsample: Any
    has_enumerate_support: Any
    mean: Tensor
    mode: Tensor
    variance: Tensor
    support: Any
    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Values of shape `sample_shape + batch_shape + event_shape`, without gradients."""
    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Values with gradients by the parameters."""
    def log_prob(self, value: Any) -> Tensor:
        """The logarithm of the density or probability of values."""
    def entropy(self) -> Tensor:
        """The entropy in nats."""
    def enumerate_support(self, expand: Any = True) -> Tensor:
        """All values, along a new first axis."""

class TransformedDistribution(Distribution):
    """Values of a distribution, mapped by transforms one after the other."""

    arg_constraints: Any
    def __init__(self, base_distribution: Any, transforms: Any, validate_args: Any = None) -> None:
        ...
    def expand(self, batch_shape: Any, _instance: Any = None) -> TransformedDistribution:
        """The distributions broadcast to a batch shape."""
    has_rsample: Any
    support: Any
    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Values of shape `sample_shape + batch_shape + event_shape`, without gradients."""
    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Values with gradients by the parameters."""
    def log_prob(self, value: Any) -> Tensor:
        """The logarithm of the density or probability of values."""
    def cdf(self, value: Any) -> Tensor:
        """The probability of at most `value`."""
    def icdf(self, value: Any) -> Tensor:
        """The inverse of `cdf`."""

class LogisticNormal(TransformedDistribution):
    """Points of the simplex: independent normal vectors, mapped by `StickBreakingTransform`."""

    arg_constraints: Any
    support: Any
    has_rsample: Any
    def __init__(self, loc: Any, scale: Any, validate_args: Any = None) -> None:
        ...
    loc: Tensor
    scale: Tensor

class LogitRelaxedBernoulli(TransformedDistribution):
    """The log odds of `RelaxedBernoulli`."""

    support: Any
    def __init__(self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: Any = None) -> None:
        ...
    probs: Tensor
    logits: Tensor

class OneHotCategoricalStraightThrough(OneHotCategorical):
    """`OneHotCategorical` whose samples have the gradients of the probabilities (Bengio et al. 2013)."""

    has_rsample: Any
    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Values with gradients by the parameters."""

class MixtureSameFamily(Distribution):
    """A mixture of the components along the last axis of a batch, of which a class number chooses one."""

    arg_constraints: Any
    def __init__(self, mixture_distribution: Any, component_distribution: Any, validate_args: Any = None) -> None:
        ...
    mixture_distribution: Any
    component_distribution: Any
    def expand(self, batch_shape: Any, _instance: Any = None) -> MixtureSameFamily:
        """The distributions broadcast to a batch shape."""
    support: Any
    mean: Tensor
    variance: Tensor
    def cdf(self, value: Any) -> Tensor:
        """The probability of at most `value`."""
    def log_prob(self, value: Any) -> Tensor:
        """The logarithm of the density or probability of values."""
    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Values of shape `sample_shape + batch_shape + event_shape`, without gradients."""
