"""The base of distributions."""

from .._core import Tensor
from .._types import Size
from . import constraints


def holds(mask):
    """Whether all elements are true. Those of traced functions have no values and count as true."""
    try:
        return bool(mask.all())
    except ValueError as error:
        if "traced" not in str(error):
            raise
        return True


class Distribution:
    """Probability distributions of one family: `batch_shape` of them, of values of `event_shape`.

    Parameters and values are checked unless `validate_args=False`; within `jit` and `vmap` they have no values to check.
    """

    has_rsample = False
    has_enumerate_support = False
    _validate_args = __debug__

    @staticmethod
    def set_default_validate_args(value):
        """Whether parameters and values are checked unless `validate_args` says otherwise."""
        if value not in (True, False):
            raise ValueError(f"set_default_validate_args: True or False, not {value!r}")
        Distribution._validate_args = value

    def __init__(self, batch_shape=(), event_shape=(), validate_args=None):
        self._batch_shape, self._event_shape = Size(batch_shape), Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._check_parameters()

    def _check_parameters(self):
        for name, constraint in self.arg_constraints.items():
            if constraints.is_dependent(constraint) or name not in vars(self):
                continue
            value = getattr(self, name)
            if not holds(constraint.check(value)):
                raise ValueError(f"{type(self).__name__}: {name} must be in {constraint!r}, found {value}")

    def expand(self, batch_shape, _instance=None):
        """The distributions broadcast to a batch shape."""
        raise NotImplementedError(f"{type(self).__name__} has no expand()")

    @property
    def batch_shape(self):
        """The shape of the parameters."""
        return self._batch_shape

    @property
    def event_shape(self):
        """The shape of one value."""
        return self._event_shape

    @property
    def arg_constraints(self):
        """The sets of the parameters by name."""
        return {}

    @property
    def support(self):
        """The set of values."""
        raise NotImplementedError(f"{type(self).__name__} has no support")

    @property
    def mean(self):
        """The mean."""
        raise NotImplementedError(f"{type(self).__name__} has no mean")

    @property
    def mode(self):
        """The likeliest value."""
        raise NotImplementedError(f"{type(self).__name__} has no mode")

    @property
    def variance(self):
        """The variance."""
        raise NotImplementedError(f"{type(self).__name__} has no variance")

    @property
    def stddev(self):
        """The standard deviation."""
        return self.variance.sqrt()

    def sample(self, sample_shape=()):
        """Values of shape `sample_shape + batch_shape + event_shape`, without gradients."""
        return self.rsample(sample_shape).detach()

    def rsample(self, sample_shape=()):
        """Values with gradients by the parameters."""
        raise NotImplementedError(f"{type(self).__name__} has no rsample()")

    def sample_n(self, n):
        """`sample((n,))`."""
        return self.sample((n,))

    def log_prob(self, value):
        """The logarithm of the density or probability of values."""
        raise NotImplementedError(f"{type(self).__name__} has no log_prob()")

    def cdf(self, value):
        """The probability of at most `value`."""
        raise NotImplementedError(f"{type(self).__name__} has no cdf()")

    def icdf(self, value):
        """The inverse of `cdf`."""
        raise NotImplementedError(f"{type(self).__name__} has no icdf()")

    def enumerate_support(self, expand=True):
        """All values, along a new first axis."""
        raise NotImplementedError(f"{type(self).__name__} has no enumerate_support()")

    def entropy(self):
        """The entropy in nats."""
        raise NotImplementedError(f"{type(self).__name__} has no entropy()")

    def perplexity(self):
        """The exponential of the entropy."""
        return self.entropy().exp()

    def _extended_shape(self, sample_shape=()):
        sample_shape = (sample_shape,) if isinstance(sample_shape, int) else sample_shape
        return Size((*sample_shape, *self._batch_shape, *self._event_shape))

    def _validate_sample(self, value):
        if not isinstance(value, Tensor):
            raise ValueError(f"{type(self).__name__}: a value is a tensor, not {type(value).__name__}")
        axes = len(self._event_shape)
        lead, event = value.shape[: max(value.ndim - axes, 0)], value.shape[max(value.ndim - axes, 0) :]
        fits = all(n == m or 1 in (n, m) for n, m in zip(reversed(lead), reversed(self._batch_shape)))
        if tuple(event) != tuple(self._event_shape) or not fits:
            shapes = f"batch_shape {tuple(self._batch_shape)} and event_shape {tuple(self._event_shape)}"
            raise ValueError(f"{type(self).__name__}: a value of shape {tuple(value.shape)} does not fit {shapes}")
        try:
            support = self.support
        except NotImplementedError:
            return
        if not holds(support.check(value)):
            raise ValueError(f"{type(self).__name__}: values must be in {support!r}, found {value}")

    def __repr__(self):
        shown = [(name, vars(self)[name]) for name in self.arg_constraints if name in vars(self)]
        text = ", ".join(f"{name}: {x if x.numel() == 1 else tuple(x.shape)}" for name, x in shown if isinstance(x, Tensor))
        return f"{type(self).__name__}({text})"
