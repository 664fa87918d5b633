"""Distributions made of others, and of their values."""

from .._core import Tensor
from . import constraints
from ._laws import Categorical, Normal, OneHotCategorical, RelaxedBernoulli, broadcast_shape
from .distribution import Distribution
from .transforms import ComposeTransform, StickBreakingTransform, Transform, sum_last


class Independent(Distribution):
    """The last axes of a batch as axes of one event."""

    def __init__(self, base_distribution, reinterpreted_batch_ndims, validate_args=None):
        shape = base_distribution.batch_shape + base_distribution.event_shape
        at = len(base_distribution.batch_shape) - reinterpreted_batch_ndims
        if at < 0:
            raise ValueError(f"Independent: {reinterpreted_batch_ndims} axes of a batch of shape {tuple(base_distribution.batch_shape)}")
        self.base_dist, self.reinterpreted_batch_ndims = base_distribution, reinterpreted_batch_ndims
        super().__init__(shape[:at], shape[at:], validate_args)

    def expand(self, batch_shape, _instance=None):
        """The distributions broadcast to a batch shape."""
        own = self.event_shape[: self.reinterpreted_batch_ndims]
        return type(self)(self.base_dist.expand((*batch_shape, *own)), self.reinterpreted_batch_ndims, False)

    has_rsample = property(lambda self: self.base_dist.has_rsample)
    has_enumerate_support = property(lambda self: self.reinterpreted_batch_ndims == 0 and self.base_dist.has_enumerate_support)
    mean = property(lambda self: self.base_dist.mean)
    mode = property(lambda self: self.base_dist.mode)
    variance = property(lambda self: self.base_dist.variance)

    @property
    def support(self):
        base = self.base_dist.support
        return constraints.independent(base, self.reinterpreted_batch_ndims) if self.reinterpreted_batch_ndims else base

    def sample(self, sample_shape=()):
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape=()):
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value):
        return sum_last(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def entropy(self):
        return sum_last(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    def enumerate_support(self, expand=True):
        if self.reinterpreted_batch_ndims:
            raise NotImplementedError("Independent: the values of several axes are not enumerated")
        return self.base_dist.enumerate_support(expand)

    def __repr__(self):
        return f"Independent({self.base_dist!r}, {self.reinterpreted_batch_ndims})"


class TransformedDistribution(Distribution):
    """Values of a distribution, mapped by transforms one after the other."""

    arg_constraints = {}

    def __init__(self, base_distribution, transforms, validate_args=None):
        transforms = [transforms] if isinstance(transforms, Transform) else list(transforms)
        if not all(isinstance(transform, Transform) for transform in transforms):
            raise ValueError(f"TransformedDistribution: transforms must be Transform or a list of them, not {transforms!r}")
        self.transforms, whole = transforms, ComposeTransform(transforms)
        base_shape = tuple(base_distribution.batch_shape + base_distribution.event_shape)
        shape = tuple(whole.forward_shape(base_shape))
        base_axes = len(base_distribution.event_shape)
        # Parameters of transforms may broadcast the base.
        wanted = tuple(whole.inverse_shape(shape))
        if wanted != base_shape:
            base_distribution = base_distribution.expand(wanted[: len(wanted) - base_axes])
        together = max(whole.domain.event_dim - base_axes, 0)
        self.base_dist = Independent(base_distribution, together) if together else base_distribution
        rank = max(whole.codomain.event_dim, base_axes + whole.codomain.event_dim - whole.domain.event_dim) if transforms else base_axes
        super().__init__(shape[: len(shape) - rank], shape[len(shape) - rank :], validate_args)

    def expand(self, batch_shape, _instance=None):
        """The distributions broadcast to a batch shape."""
        whole = ComposeTransform(self.transforms)
        shape = tuple(whole.inverse_shape((*batch_shape, *self.event_shape)))
        base = self.base_dist.expand(shape[: len(shape) - len(self.base_dist.event_shape)])
        new = object.__new__(type(self))
        vars(new).update(vars(self))
        new.base_dist = base
        Distribution.__init__(new, batch_shape, self.event_shape, False)
        new._validate_args = self._validate_args
        return new

    has_rsample = property(lambda self: self.base_dist.has_rsample)

    @property
    def support(self):
        if not self.transforms:
            return self.base_dist.support
        found, axes = self.transforms[-1].codomain, len(self.event_shape)
        return constraints.independent(found, axes - found.event_dim) if axes > found.event_dim else found

    def _forward(self, x):
        for transform in self.transforms:
            x = transform(x)
        return x

    def sample(self, sample_shape=()):
        return self._forward(self.base_dist.sample(sample_shape)).detach()

    def rsample(self, sample_shape=()):
        return self._forward(self.base_dist.rsample(sample_shape))

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        rank, y, log = len(self.event_shape), value, 0.0
        for transform in reversed(self.transforms):
            x = transform.inv(y)
            rank += transform.domain.event_dim - transform.codomain.event_dim
            log = log - sum_last(transform.log_abs_det_jacobian(x, y), rank - transform.domain.event_dim)
            y = x
        return log + sum_last(self.base_dist.log_prob(y), rank - len(self.base_dist.event_shape))

    def _turned(self, p):
        sign = ComposeTransform(self.transforms).sign
        return p if isinstance(sign, int) and sign == 1 else sign * (p - 0.5) + 0.5

    def cdf(self, value):
        for transform in reversed(self.transforms):
            value = transform.inv(value)
        return self._turned(self.base_dist.cdf(value))

    def icdf(self, value):
        return self._forward(self.base_dist.icdf(self._turned(value)))

    def __repr__(self):
        return f"TransformedDistribution({self.base_dist!r}, {self.transforms!r})"


class LogisticNormal(TransformedDistribution):
    """Points of the simplex: independent normal vectors, mapped by `StickBreakingTransform`."""

    arg_constraints, support, has_rsample = {"loc": constraints.real, "scale": constraints.positive}, constraints.simplex, True

    def __init__(self, loc, scale, validate_args=None):
        base = Normal(loc, scale, validate_args)
        if not base.batch_shape:
            base = base.expand((1,))
        super().__init__(base, StickBreakingTransform(), validate_args)

    loc = property(lambda self: self.base_dist.base_dist.loc)
    scale = property(lambda self: self.base_dist.base_dist.scale)


class LogitRelaxedBernoulli(TransformedDistribution):
    """The log odds of `RelaxedBernoulli`."""

    support = constraints.real

    def __init__(self, temperature, probs=None, logits=None, validate_args=None):
        from .transforms import SigmoidTransform

        base = RelaxedBernoulli(temperature, probs, logits, validate_args)
        self.temperature = temperature
        super().__init__(base, SigmoidTransform().inv, validate_args)

    probs = property(lambda self: self.base_dist.probs)
    logits = property(lambda self: self.base_dist.logits)


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """`OneHotCategorical` whose samples have the gradients of the probabilities (Bengio et al. 2013)."""

    has_rsample = True

    def rsample(self, sample_shape=()):
        probs = self.probs
        return self.sample(sample_shape) + (probs - probs.detach())


class MixtureSameFamily(Distribution):
    """A mixture of the components along the last axis of a batch, of which a class number chooses one."""

    arg_constraints = {}

    def __init__(self, mixture_distribution, component_distribution, validate_args=None):
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError("MixtureSameFamily: the mixture is a Categorical distribution")
        if not isinstance(component_distribution, Distribution):
            raise ValueError("MixtureSameFamily: the components are a Distribution")
        all_shape = tuple(component_distribution.batch_shape)
        n = mixture_distribution.logits.shape[-1]
        weights = (*mixture_distribution.batch_shape, n)
        if not all_shape or all_shape[-1] != n or broadcast_shape(weights, all_shape) != all_shape:
            raise ValueError(f"MixtureSameFamily: weights of shape {weights} do not fit components of batch shape {all_shape}")
        self._mixture_distribution, self._component_distribution, self._num_component = mixture_distribution, component_distribution, n
        super().__init__(all_shape[:-1], component_distribution.event_shape, validate_args)

    mixture_distribution = property(lambda self: self._mixture_distribution)
    component_distribution = property(lambda self: self._component_distribution)

    def expand(self, batch_shape, _instance=None):
        """The distributions broadcast to a batch shape."""
        components = self._component_distribution.expand((*batch_shape, self._num_component))
        return type(self)(self._mixture_distribution.expand(batch_shape), components, False)

    @property
    def support(self):
        base = self._component_distribution.support
        # Bounds have an axis of components.
        bounds = [x for x in vars(base).values() if isinstance(x, Tensor)]
        return constraints.real if bounds else base

    def _weighted(self, values):
        weights = self._mixture_distribution.probs
        axes = len(self.event_shape)
        weights = weights.reshape((*weights.shape, *[1] * axes))
        return (values * weights).sum(-1 - axes)

    mean = property(lambda self: self._weighted(self._component_distribution.mean))

    @property
    def variance(self):
        components = self._component_distribution
        distance = components.mean - self.mean.unsqueeze(-1 - len(self.event_shape))
        return self._weighted(components.variance + distance.square())

    def cdf(self, value):
        p = self._component_distribution.cdf(value.unsqueeze(-1))
        return (p * self._mixture_distribution.probs).sum(-1)

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        log = self._component_distribution.log_prob(value.unsqueeze(-1 - len(self.event_shape)))
        return (log + self._mixture_distribution.logits.log_softmax(-1)).logsumexp(-1)

    def sample(self, sample_shape=()):
        chosen = self._mixture_distribution.sample(sample_shape)
        values = self._component_distribution.sample(sample_shape)
        axes = len(self.event_shape)
        if tuple(self._mixture_distribution.batch_shape) != tuple(self.batch_shape):
            raise NotImplementedError("MixtureSameFamily: weights of another batch shape; expand them")
        is_chosen = chosen.one_hot(self._num_component) == 1
        is_chosen = is_chosen.reshape((*is_chosen.shape, *[1] * axes))
        return is_chosen.where_(values, values.zeros_like()).sum(-1 - axes).detach()

    def __repr__(self):
        return f"MixtureSameFamily({self._mixture_distribution!r}, {self._component_distribution!r})"
