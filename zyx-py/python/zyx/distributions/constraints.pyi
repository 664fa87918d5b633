"""Written by tools/python_stubs.py of `zyx.distributions.constraints`."""

from typing import Any

from .._core import Tensor

class Constraint:
    """A set. `event_dim` trailing axes are checked together."""

    is_discrete: Any
    event_dim: Any
    def check(self, value: Any) -> Tensor:
        """Which elements, vectors or matrices are in the set."""

class _Checked(Constraint):
    """A set by its name and a predicate."""

    def __init__(self, name: Any, check: Any, event_dim: Any = 0, is_discrete: Any = False) -> None:
        ...
    event_dim: Any
    is_discrete: Any
    def check(self, value: Any) -> Tensor:
        """Which elements, vectors or matrices are in the set."""

class _Dependent(Constraint):
    """A set that depends on other parameters: nothing is checked."""

    def __init__(self, *, is_discrete: Any = ..., event_dim: Any = ...) -> None:
        ...
    is_discrete: Any
    event_dim: Any
    def __call__(self, *, is_discrete: Any = ..., event_dim: Any = ...) -> Any:
        ...
    def check(self, value: Any) -> Tensor:
        """Which elements, vectors or matrices are in the set."""

class _DependentProperty(_Dependent):
    """A property that gives a constraint, and that of the class is a dependent one."""

    def __init__(self, function: Any = None, *, is_discrete: Any = ..., event_dim: Any = ...) -> None:
        ...
    def __call__(self, function: Any) -> Any:
        ...

class _Bounded(Constraint):
    """Numbers with bounds; which of them are included is in the name of the class."""

    def __init__(self, lower_bound: Any = -inf, upper_bound: Any = inf) -> None:
        ...

class _Interval(_Bounded):
    """Numbers with bounds; which of them are included is in the name of the class."""

    def check(self, value: Any) -> Tensor:
        """Which elements, vectors or matrices are in the set."""

class _HalfOpenInterval(_Bounded):
    """Numbers with bounds; which of them are included is in the name of the class."""

    def check(self, value: Any) -> Tensor:
        """Which elements, vectors or matrices are in the set."""

class _IntegerInterval(_Interval):
    """Numbers with bounds; which of them are included is in the name of the class."""

    is_discrete: Any
    def check(self, value: Any) -> Tensor:
        """Which elements, vectors or matrices are in the set."""

class _GreaterThan(_Bounded):
    """Numbers with bounds; which of them are included is in the name of the class."""

    def __init__(self, lower_bound: Any) -> None:
        ...
    def check(self, value: Any) -> Tensor:
        """Which elements, vectors or matrices are in the set."""

class _GreaterThanEq(_GreaterThan):
    """Numbers with bounds; which of them are included is in the name of the class."""

    def check(self, value: Any) -> Tensor:
        """Which elements, vectors or matrices are in the set."""

class _IntegerGreaterThan(_GreaterThan):
    """Numbers with bounds; which of them are included is in the name of the class."""

    is_discrete: Any
    def check(self, value: Any) -> Tensor:
        """Which elements, vectors or matrices are in the set."""

class _LessThan(_Bounded):
    """Numbers with bounds; which of them are included is in the name of the class."""

    def __init__(self, upper_bound: Any) -> None:
        ...
    def check(self, value: Any) -> Tensor:
        """Which elements, vectors or matrices are in the set."""

class _Multinomial(Constraint):
    """A set. `event_dim` trailing axes are checked together."""

    is_discrete: Any
    event_dim: Any
    def __init__(self, upper_bound: Any) -> None:
        ...
    def check(self, x: Any) -> Tensor:
        """Which elements, vectors or matrices are in the set."""

class _Independent(Constraint):
    """A set of which some more axes are checked together."""

    def __init__(self, base_constraint: Any, reinterpreted_batch_ndims: Any) -> None:
        ...
    is_discrete: Any
    event_dim: Any
    def check(self, value: Any) -> Tensor:
        """Which elements, vectors or matrices are in the set."""

class _Parts(Constraint):
    """Sets along an axis: each of one slice (`stack`) or of some (`cat`)."""

    def __init__(self, cseq: Any, dim: Any = 0, lengths: Any = None) -> None:
        ...
    is_discrete: Any
    event_dim: Any
    def check(self, value: Any) -> Tensor:
        """Which elements, vectors or matrices are in the set."""

def cat(cseq: Any, dim: Any = 0, lengths: Any = None) -> Any:
    """Sets of `lengths` slices each along an axis."""

def stack(cseq: Any, dim: Any = 0) -> Any:
    """Sets of a slice each along an axis."""

dependent: _Dependent

dependent_property = _DependentProperty

independent = _Independent

interval = _Interval

half_open_interval = _HalfOpenInterval

integer_interval = _IntegerInterval

greater_than = _GreaterThan

greater_than_eq = _GreaterThanEq

less_than = _LessThan

multinomial = _Multinomial

boolean: _Checked

real: _Checked

real_vector: _Independent

positive: _GreaterThan

nonnegative: _GreaterThanEq

unit_interval: _Interval

nonnegative_integer: _IntegerGreaterThan

positive_integer: _IntegerGreaterThan

simplex: _Checked

one_hot: _Checked

square: _Checked

symmetric: _Checked

positive_definite: _Checked

lower_triangular: _Checked

lower_cholesky: _Checked

def is_dependent(constraint: Any) -> Any:
    """Whether a set depends on other parameters."""
