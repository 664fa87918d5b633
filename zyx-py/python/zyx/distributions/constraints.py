"""Sets of values: `check(value)` tells which elements (vectors, matrices) are in the set."""

import math

from .._core import Tensor


class Constraint:
    """A set. `event_dim` trailing axes are checked together."""

    is_discrete = False
    event_dim = 0

    def check(self, value):
        """Which elements, vectors or matrices are in the set."""
        raise NotImplementedError(f"{type(self).__name__} has no check()")

    def __repr__(self):
        values = ", ".join(f"{key}={value!r}" for key, value in vars(self).items() if not key.startswith("_"))
        return f"{type(self).__name__.lstrip('_')}({values})"


class _Checked(Constraint):
    """A set by its name and a predicate."""

    def __init__(self, name, check, event_dim=0, is_discrete=False):
        self._name, self._check = name, check
        vars(self).update(_event_dim=event_dim, _is_discrete=is_discrete)

    event_dim = property(lambda self: self._event_dim)
    is_discrete = property(lambda self: self._is_discrete)

    def check(self, value):
        return self._check(value)

    def __repr__(self):
        return self._name


class _Dependent(Constraint):
    """A set that depends on other parameters: nothing is checked."""

    def __init__(self, *, is_discrete=NotImplemented, event_dim=NotImplemented):
        self._is_discrete, self._event_dim = is_discrete, event_dim

    is_discrete = property(lambda self: self._known(self._is_discrete))
    event_dim = property(lambda self: self._known(self._event_dim))

    @staticmethod
    def _known(value):
        if value is NotImplemented:
            raise NotImplementedError("a dependent constraint has no such attribute")
        return value

    def __call__(self, *, is_discrete=NotImplemented, event_dim=NotImplemented):
        given = self._is_discrete if is_discrete is NotImplemented else is_discrete, self._event_dim if event_dim is NotImplemented else event_dim
        return _Dependent(is_discrete=given[0], event_dim=given[1])

    def check(self, value):
        raise ValueError("a dependent constraint needs the distribution's parameters to be checked")


class _DependentProperty(property, _Dependent):
    """A property that gives a constraint, and that of the class is a dependent one."""

    def __init__(self, function=None, *, is_discrete=NotImplemented, event_dim=NotImplemented):
        property.__init__(self, function)
        _Dependent.__init__(self, is_discrete=is_discrete, event_dim=event_dim)

    def __call__(self, function):
        return _DependentProperty(function, is_discrete=self._is_discrete, event_dim=self._event_dim)


class _Bounded(Constraint):
    """Numbers with bounds; which of them are included is in the name of the class."""

    def __init__(self, lower_bound=-math.inf, upper_bound=math.inf):
        self.lower_bound, self.upper_bound = lower_bound, upper_bound


class _Interval(_Bounded):
    def check(self, value):
        return (value >= self.lower_bound) & (value <= self.upper_bound)


class _HalfOpenInterval(_Bounded):
    def check(self, value):
        return (value >= self.lower_bound) & (value < self.upper_bound)


class _IntegerInterval(_Interval):
    is_discrete = True

    def check(self, value):
        return (value % 1 == 0) & _Interval.check(self, value)


class _GreaterThan(_Bounded):
    def __init__(self, lower_bound):
        self.lower_bound = lower_bound

    def check(self, value):
        return value > self.lower_bound


class _GreaterThanEq(_GreaterThan):
    def check(self, value):
        return value >= self.lower_bound


class _IntegerGreaterThan(_GreaterThan):
    is_discrete = True

    def check(self, value):
        return (value % 1 == 0) & (value >= self.lower_bound)


class _LessThan(_Bounded):
    def __init__(self, upper_bound):
        self.upper_bound = upper_bound

    def check(self, value):
        return value < self.upper_bound


class _Multinomial(Constraint):
    is_discrete, event_dim = True, 1

    def __init__(self, upper_bound):
        self.upper_bound = upper_bound

    def check(self, x):
        return (x >= 0).all(-1) & (x.sum(-1) <= self.upper_bound)


class _Independent(Constraint):
    """A set of which some more axes are checked together."""

    def __init__(self, base_constraint, reinterpreted_batch_ndims):
        self.base_constraint, self.reinterpreted_batch_ndims = base_constraint, reinterpreted_batch_ndims

    is_discrete = property(lambda self: self.base_constraint.is_discrete)
    event_dim = property(lambda self: self.base_constraint.event_dim + self.reinterpreted_batch_ndims)

    def check(self, value):
        found, axes = self.base_constraint.check(value), self.reinterpreted_batch_ndims
        if found.ndim < axes:
            raise ValueError(f"expected {axes} axes or more behind the base's, not {found.ndim}")
        return found.reshape([*found.shape[: found.ndim - axes], -1]).all(-1)


class _Parts(Constraint):
    """Sets along an axis: each of one slice (`stack`) or of some (`cat`)."""

    def __init__(self, cseq, dim=0, lengths=None):
        self.cseq, self.dim, self.lengths = list(cseq), dim, lengths

    is_discrete = property(lambda self: any(c.is_discrete for c in self.cseq))

    @property
    def event_dim(self):
        more = 1 if self.lengths is None and self.dim < 0 else 0
        return max(c.event_dim for c in self.cseq) + more

    def check(self, value):
        if self.lengths is None:
            return Tensor.stack([c.check(v) for c, v in zip(self.cseq, value.unbind(self.dim))], self.dim)
        return Tensor.cat([c.check(v) for c, v in zip(self.cseq, value.split(list(self.lengths), self.dim))], self.dim)


def cat(cseq, dim=0, lengths=None):
    """Sets of `lengths` slices each along an axis."""
    return _Parts(cseq, dim, [1] * len(cseq) if lengths is None else lengths)


def stack(cseq, dim=0):
    """Sets of a slice each along an axis."""
    return _Parts(cseq, dim)


def _symmetric(x):
    return ((x - x.mT).abs() <= 1e-6).all(-1).all(-1)


def _definite(x):
    # A matrix without a decomposition is not.
    def holds(matrix):
        try:
            return bool(matrix.cholesky().isfinite().all())
        except (ValueError, RuntimeError):
            return False

    flat = x.reshape(-1, *x.shape[-2:])
    from .._core import tensor

    found = tensor([holds(matrix) for matrix in flat.unbind(0)], dtype="bool", device=x.device)
    return _symmetric(x) & found.reshape(x.shape[:-2])


dependent, dependent_property = _Dependent(), _DependentProperty
independent, interval, half_open_interval, integer_interval = _Independent, _Interval, _HalfOpenInterval, _IntegerInterval
greater_than, greater_than_eq, less_than, multinomial = _GreaterThan, _GreaterThanEq, _LessThan, _Multinomial
boolean = _Checked("Boolean()", lambda x: (x == 0) | (x == 1), is_discrete=True)
real = _Checked("Real()", lambda x: x == x)  # noqa: PLR0124
real_vector = _Independent(real, 1)
positive, nonnegative = _GreaterThan(0.0), _GreaterThanEq(0.0)
unit_interval = _Interval(0.0, 1.0)
nonnegative_integer, positive_integer = _IntegerGreaterThan(0), _IntegerGreaterThan(1)
simplex = _Checked("Simplex()", lambda x: (x >= 0).all(-1) & ((x.sum(-1) - 1).abs() < 1e-6), 1)
one_hot = _Checked("OneHot()", lambda x: ((x == 0) | (x == 1)).all(-1) & (x.sum(-1) == 1), 1, True)
square = _Checked("Square()", lambda x: (x.sum((-2, -1)) * 0 == 0) & (x.shape[-1] == x.shape[-2]), 2)
symmetric = _Checked("Symmetric()", _symmetric, 2)
positive_definite = _Checked("PositiveDefinite()", _definite, 2)
lower_triangular = _Checked("LowerTriangular()", lambda x: (x.tril() == x).all(-1).all(-1), 2)
lower_cholesky = _Checked("LowerCholesky()", lambda x: (x.tril() == x).all(-1).all(-1) & (x.diagonal(0, -2, -1) > 0).all(-1), 2)


def is_dependent(constraint):
    """Whether a set depends on other parameters."""
    return isinstance(constraint, _Dependent)
