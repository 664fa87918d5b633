"""Written by tools/python_stubs.py of `zyx.distributions.transforms`."""

from typing import Any

from .._core import Tensor

class Transform:
    """A map: `_call` and, if `bijective`, `_inverse` and `log_abs_det_jacobian`. `t.inv` is the inverse as a transform."""

    bijective: Any
    domain: Any
    codomain: Any
    def __init__(self, cache_size: Any = 0) -> None:
        ...
    event_dim: Any
    inv: Any
    sign: Any
    def with_cache(self, cache_size: Any = 1) -> Any:
        """The transform with another `cache_size`."""
    def __call__(self, x: Any) -> Any:
        ...
    def log_abs_det_jacobian(self, x: Any, y: Any) -> Tensor:
        """The logarithm of the Jacobian determinant's absolute value at `x`, whose result is `y`."""
    def forward_shape(self, shape: Any) -> Any:
        """The shape of the result for a shape."""
    def inverse_shape(self, shape: Any) -> Any:
        """The shape of the value for that of a result."""

class _InverseTransform(Transform):
    """A map: `_call` and, if `bijective`, `_inverse` and `log_abs_det_jacobian`. `t.inv` is the inverse as a transform."""

    def __init__(self, transform: Any) -> None:
        ...
    domain: Any
    codomain: Any
    bijective: Any
    sign: Any
    inv: Any
    def with_cache(self, cache_size: Any = 1) -> Any:
        """The transform with another `cache_size`."""
    def __call__(self, x: Any) -> Any:
        ...
    def log_abs_det_jacobian(self, x: Any, y: Any) -> Tensor:
        """The logarithm of the Jacobian determinant's absolute value at `x`, whose result is `y`."""
    def forward_shape(self, shape: Any) -> Any:
        """The shape of the result for a shape."""
    def inverse_shape(self, shape: Any) -> Any:
        """The shape of the value for that of a result."""

class ExpTransform(Transform):
    """`e^x`."""

    domain: Any
    codomain: Any
    bijective: Any
    sign: Any
    def log_abs_det_jacobian(self, x: Any, y: Any) -> Tensor:
        """The logarithm of the Jacobian determinant's absolute value at `x`, whose result is `y`."""

class SigmoidTransform(Transform):
    """`1 / (1 + e^-x)`."""

    domain: Any
    codomain: Any
    bijective: Any
    sign: Any
    def log_abs_det_jacobian(self, x: Any, y: Any) -> Tensor:
        """The logarithm of the Jacobian determinant's absolute value at `x`, whose result is `y`."""

class TanhTransform(Transform):
    """The hyperbolic tangent."""

    domain: Any
    codomain: Any
    bijective: Any
    sign: Any
    def log_abs_det_jacobian(self, x: Any, y: Any) -> Tensor:
        """The logarithm of the Jacobian determinant's absolute value at `x`, whose result is `y`."""

class SoftplusTransform(Transform):
    """`log(1 + e^x)`."""

    domain: Any
    codomain: Any
    bijective: Any
    sign: Any
    def log_abs_det_jacobian(self, x: Any, y: Any) -> Tensor:
        """The logarithm of the Jacobian determinant's absolute value at `x`, whose result is `y`."""

class AbsTransform(Transform):
    """The absolute value; the inverse is the positive number."""

    domain: Any
    codomain: Any
    bijective: Any

class SoftmaxTransform(Transform):
    """Vectors to shares of 1; the inverse is the logarithm."""

    domain: Any
    codomain: Any
    bijective: Any

class PowerTransform(Transform):
    """`x ** exponent` of positive numbers."""

    domain: Any
    codomain: Any
    bijective: Any
    def __init__(self, exponent: Any, cache_size: Any = 0) -> None:
        ...
    sign: Any
    def log_abs_det_jacobian(self, x: Any, y: Any) -> Tensor:
        """The logarithm of the Jacobian determinant's absolute value at `x`, whose result is `y`."""

class AffineTransform(Transform):
    """`loc + scale * x`."""

    bijective: Any
    def __init__(self, loc: Any, scale: Any, event_dim: Any = 0, cache_size: Any = 0) -> None:
        ...
    event_dim: Any
    sign: Any
    def log_abs_det_jacobian(self, x: Any, y: Any) -> Tensor:
        """The logarithm of the Jacobian determinant's absolute value at `x`, whose result is `y`."""
    def forward_shape(self, shape: Any) -> Any:
        """The shape broadcast with those of the parameters."""
    def inverse_shape(self, shape: Any) -> Any:
        """The shape broadcast with those of the parameters."""

class StickBreakingTransform(Transform):
    """Vectors of `n` numbers to points of the simplex of `n + 1`, by breaking off shares."""

    domain: Any
    codomain: Any
    bijective: Any
    def log_abs_det_jacobian(self, x: Any, y: Any) -> Tensor:
        """The logarithm of the Jacobian determinant's absolute value at `x`, whose result is `y`."""
    def forward_shape(self, shape: Any) -> Any:
        """The shape of the result for a shape."""
    def inverse_shape(self, shape: Any) -> Any:
        """The shape of the value for that of a result."""

class LowerCholeskyTransform(Transform):
    """Matrices to lower triangular ones with a positive diagonal, its exponential."""

    domain: Any
    codomain: Any

class ReshapeTransform(Transform):
    """The last axes in another shape."""

    bijective: Any
    def __init__(self, in_shape: Any, out_shape: Any, cache_size: Any = 0) -> None:
        ...
    def log_abs_det_jacobian(self, x: Any, y: Any) -> Tensor:
        """The logarithm of the Jacobian determinant's absolute value at `x`, whose result is `y`."""
    def forward_shape(self, shape: Any) -> Any:
        """The shape of the result for a shape."""
    def inverse_shape(self, shape: Any) -> Any:
        """The shape of the value for that of a result."""

class IndependentTransform(Transform):
    """A transform of which some more axes are mapped together."""

    def __init__(self, base_transform: Any, reinterpreted_batch_ndims: Any, cache_size: Any = 0) -> None:
        ...
    domain: Any
    codomain: Any
    bijective: Any
    sign: Any
    def log_abs_det_jacobian(self, x: Any, y: Any) -> Tensor:
        """The logarithm of the Jacobian determinant's absolute value at `x`, whose result is `y`."""
    def forward_shape(self, shape: Any) -> Any:
        """The shape of the result for a shape."""
    def inverse_shape(self, shape: Any) -> Any:
        """The shape of the value for that of a result."""

class ComposeTransform(Transform):
    """Transforms one after the other, the first one first."""

    def __init__(self, parts: Any, cache_size: Any = 0) -> None:
        ...
    domain: Any
    codomain: Any
    bijective: Any
    sign: Any
    inv: Any
    def __call__(self, x: Any) -> Any:
        ...
    def log_abs_det_jacobian(self, x: Any, y: Any) -> Tensor:
        """The logarithm of the Jacobian determinant's absolute value at `x`, whose result is `y`."""
    def forward_shape(self, shape: Any) -> Any:
        """The shape of the result for a shape."""
    def inverse_shape(self, shape: Any) -> Any:
        """The shape of the value for that of a result."""

class CumulativeDistributionTransform(Transform):
    """The distribution function of a distribution of numbers."""

    bijective: Any
    codomain: Any
    sign: Any
    def __init__(self, distribution: Any, cache_size: Any = 0) -> None:
        ...
    domain: Any
    def log_abs_det_jacobian(self, x: Any, y: Any) -> Tensor:
        """The logarithm of the Jacobian determinant's absolute value at `x`, whose result is `y`."""

def sum_last(x: Any, axes: Any) -> Any:
    """The sum over as many last axes."""

identity_transform: ComposeTransform

class _Registry:
    """Which transform leads from all numbers to a set."""

    def __init__(self) -> None:
        ...
    def register(self, constraint: Any, factory: Any = None) -> Any:
        """Registers a function of constraints of a type; also as a decorator."""
    def __call__(self, constraint: Any) -> Any:
        ...

biject_to: _Registry

transform_to: _Registry
