"""Differentiable maps that distributions follow, with their inverses and the logarithms of their Jacobian determinants."""

import math

from .._core import Tensor
from .._types import Size
from . import constraints

__all__ = [
    "AbsTransform", "AffineTransform", "ComposeTransform", "CumulativeDistributionTransform", "ExpTransform", "IndependentTransform",
    "LowerCholeskyTransform", "PowerTransform", "ReshapeTransform", "SigmoidTransform", "SoftmaxTransform", "SoftplusTransform",
    "StickBreakingTransform", "TanhTransform", "Transform", "identity_transform",
]  # fmt: skip


def _softplus(x):
    return x.softplus()


class Transform:
    """A map: `_call` and, if `bijective`, `_inverse` and `log_abs_det_jacobian`. `t.inv` is the inverse as a transform."""

    bijective = False
    domain = codomain = constraints.real

    def __init__(self, cache_size=0):
        if cache_size not in (0, 1):
            raise ValueError("cache_size is 0 or 1")
        self._cache_size, self._cached, self._inv = cache_size, (None, None), None

    @property
    def event_dim(self):
        """Trailing axes of a value that are mapped together."""
        if self.domain.event_dim != self.codomain.event_dim:
            raise ValueError("domain and codomain have different event_dim; use theirs")
        return self.domain.event_dim

    @property
    def inv(self):
        """The inverse."""
        if self._inv is None:
            self._inv = _InverseTransform(self)
        return self._inv

    @property
    def sign(self):
        """1 of an increasing map, -1 of a decreasing one."""
        raise NotImplementedError(f"{type(self).__name__} has no sign")

    def with_cache(self, cache_size=1):
        """The transform with another `cache_size`."""
        if self._cache_size == cache_size:
            return self
        new = object.__new__(type(self))
        vars(new).update(vars(self), _cache_size=cache_size, _cached=(None, None), _inv=None)
        return new

    def __eq__(self, other):
        return self is other

    __hash__ = object.__hash__

    def __call__(self, x):
        if self._cache_size and self._cached[0] is x:
            return self._cached[1]
        y = self._call(x)
        if self._cache_size:
            self._cached = x, y
        return y

    def _inv_call(self, y):
        if self._cache_size and self._cached[1] is y:
            return self._cached[0]
        x = self._inverse(y)
        if self._cache_size:
            self._cached = x, y
        return x

    def _call(self, x):
        raise NotImplementedError(f"{type(self).__name__} has no _call()")

    def _inverse(self, y):
        raise NotImplementedError(f"{type(self).__name__} has no _inverse()")

    def log_abs_det_jacobian(self, x, y):
        """The logarithm of the Jacobian determinant's absolute value at `x`, whose result is `y`."""
        raise NotImplementedError(f"{type(self).__name__} has no log_abs_det_jacobian()")

    def forward_shape(self, shape):
        """The shape of the result for a shape."""
        return shape

    def inverse_shape(self, shape):
        """The shape of the value for that of a result."""
        return shape

    def __repr__(self):
        return f"{type(self).__name__}()"


class _InverseTransform(Transform):
    def __init__(self, transform):
        super().__init__(transform._cache_size)
        self._inv = transform

    domain = property(lambda self: self._inv.codomain)
    codomain = property(lambda self: self._inv.domain)
    bijective = property(lambda self: self._inv.bijective)
    sign = property(lambda self: self._inv.sign)
    inv = property(lambda self: self._inv)

    def with_cache(self, cache_size=1):
        return self._inv.with_cache(cache_size).inv

    def __eq__(self, other):
        return isinstance(other, _InverseTransform) and self._inv == other._inv

    __hash__ = object.__hash__

    def __call__(self, x):
        return self._inv._inv_call(x)

    def log_abs_det_jacobian(self, x, y):
        return -self._inv.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape):
        return self._inv.inverse_shape(shape)

    def inverse_shape(self, shape):
        return self._inv.forward_shape(shape)

    def __repr__(self):
        return f"{self._inv!r}.inv"


def _scalar(name, doc, codomain, call, inverse, log_det, domain=constraints.real, bijective=True, sign=1):
    """A transform of numbers without parameters."""

    def __eq__(self, other):
        return type(other) is type(self)

    def log_abs_det_jacobian(self, x, y):
        return log_det(x, y)

    log_abs_det_jacobian.__doc__ = Transform.log_abs_det_jacobian.__doc__
    members = {
        "__doc__": doc, "__module__": __name__, "domain": domain, "codomain": codomain, "bijective": bijective, "__eq__": __eq__,
        "__hash__": object.__hash__, "_call": lambda self, x: call(x), "_inverse": lambda self, y: inverse(y),
    }  # fmt: skip
    if bijective:
        members |= {"sign": sign, "log_abs_det_jacobian": log_abs_det_jacobian}
    return type(name, (Transform,), members)


ExpTransform = _scalar("ExpTransform", "`e^x`.", constraints.positive, Tensor.exp, Tensor.log, lambda x, y: x)
SigmoidTransform = _scalar("SigmoidTransform", "`1 / (1 + e^-x)`.", constraints.unit_interval, Tensor.sigmoid, lambda y: y.log() - (-y).log1p(),
                           lambda x, y: -(-x).softplus() - x.softplus())  # fmt: skip
TanhTransform = _scalar("TanhTransform", "The hyperbolic tangent.", constraints.interval(-1.0, 1.0), Tensor.tanh, Tensor.atanh,
                        lambda x, y: 2.0 * (math.log(2.0) - x - (-2.0 * x).softplus()))  # fmt: skip
SoftplusTransform = _scalar("SoftplusTransform", "`log(1 + e^x)`.", constraints.positive, _softplus, lambda y: (-(-y).expm1()).log() + y,
                            lambda x, y: -(-x).softplus())  # fmt: skip
AbsTransform = _scalar("AbsTransform", "The absolute value; the inverse is the positive number.", constraints.positive, Tensor.abs, lambda y: y,
                       None, bijective=False)  # fmt: skip
SoftmaxTransform = _scalar("SoftmaxTransform", "Vectors to shares of 1; the inverse is the logarithm.", constraints.simplex, lambda x: x.softmax(-1),
                           Tensor.log, None, constraints.real_vector, False)  # fmt: skip


class PowerTransform(Transform):
    """`x ** exponent` of positive numbers."""

    domain = codomain = constraints.positive
    bijective = True

    def __init__(self, exponent, cache_size=0):
        super().__init__(cache_size)
        self.exponent = exponent

    @property
    def sign(self):
        return self.exponent.sign() if isinstance(self.exponent, Tensor) else math.copysign(1, self.exponent)

    def _call(self, x):
        return x**self.exponent

    def _inverse(self, y):
        return y ** (1 / self.exponent)

    def log_abs_det_jacobian(self, x, y):
        return (self.exponent * y / x).abs().log()


class AffineTransform(Transform):
    """`loc + scale * x`."""

    bijective = True

    def __init__(self, loc, scale, event_dim=0, cache_size=0):
        super().__init__(cache_size)
        self.loc, self.scale, self._event_dim = loc, scale, event_dim
        self.domain = self.codomain = constraints.independent(constraints.real, event_dim) if event_dim else constraints.real

    event_dim = property(lambda self: self._event_dim)

    @property
    def sign(self):
        return self.scale.sign() if isinstance(self.scale, Tensor) else math.copysign(1, self.scale)

    def _call(self, x):
        return self.loc + self.scale * x

    def _inverse(self, y):
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x, y):
        log = (x * 0 + self.scale).abs().log()
        return log.sum(tuple(range(-self._event_dim, 0))) if self._event_dim else log

    def _shape(self, shape):
        """The shape broadcast with those of the parameters."""
        from ._laws import broadcast_shape

        return broadcast_shape(tuple(shape), getattr(self.loc, "shape", ()), getattr(self.scale, "shape", ()))

    forward_shape = inverse_shape = _shape


class StickBreakingTransform(Transform):
    """Vectors of `n` numbers to points of the simplex of `n + 1`, by breaking off shares."""

    domain, codomain, bijective = constraints.real_vector, constraints.simplex, True

    def __eq__(self, other):
        return isinstance(other, StickBreakingTransform)

    __hash__ = object.__hash__

    @staticmethod
    def _rest(x):
        return (x.shape[-1] - Tensor.arange(x.shape[-1], device=x.device).cast(x.dtype)).log()

    def _call(self, x):
        share = (x - self._rest(x)).sigmoid()
        one = share[..., :1] * 0 + 1
        return Tensor.cat([share, one], -1) * Tensor.cat([one, (1 - share).cumprod(-1)], -1)

    def _inverse(self, y):
        share = y[..., :-1]
        left = 1 - share.cumsum(-1)
        return share.log() - left.log() + self._rest(share)

    def log_abs_det_jacobian(self, x, y):
        x = x - self._rest(x)
        return (y[..., :-1].log() - (-x).softplus() - x).sum(-1)

    def forward_shape(self, shape):
        return Size((*shape[:-1], shape[-1] + 1))

    def inverse_shape(self, shape):
        return Size((*shape[:-1], shape[-1] - 1))


class LowerCholeskyTransform(Transform):
    """Matrices to lower triangular ones with a positive diagonal, its exponential."""

    domain, codomain = constraints.independent(constraints.real, 2), constraints.lower_cholesky

    def _call(self, x):
        return x.tril(-1) + x.diagonal(0, -2, -1).exp().diag_embed()

    def _inverse(self, y):
        return y.tril(-1) + y.diagonal(0, -2, -1).log().diag_embed()


class ReshapeTransform(Transform):
    """The last axes in another shape."""

    bijective = True

    def __init__(self, in_shape, out_shape, cache_size=0):
        super().__init__(cache_size)
        self.in_shape, self.out_shape = Size(in_shape), Size(out_shape)
        if math.prod(in_shape) != math.prod(out_shape):
            raise ValueError(f"shapes {tuple(in_shape)} and {tuple(out_shape)} have different numbers of elements")
        self.domain = constraints.independent(constraints.real, len(in_shape))
        self.codomain = constraints.independent(constraints.real, len(out_shape))

    def _call(self, x):
        return x.reshape((*x.shape[: x.ndim - len(self.in_shape)], *self.out_shape))

    def _inverse(self, y):
        return y.reshape((*y.shape[: y.ndim - len(self.out_shape)], *self.in_shape))

    def log_abs_det_jacobian(self, x, y):
        return x.new_zeros(x.shape[: x.ndim - len(self.in_shape)])

    def _other(self, shape, old, new):
        at = len(shape) - len(old)
        if at < 0 or tuple(shape[at:]) != tuple(old):
            raise ValueError(f"shape {tuple(shape)} does not end in {tuple(old)}")
        return Size((*shape[:at], *new))

    def forward_shape(self, shape):
        return self._other(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape):
        return self._other(shape, self.out_shape, self.in_shape)


class IndependentTransform(Transform):
    """A transform of which some more axes are mapped together."""

    def __init__(self, base_transform, reinterpreted_batch_ndims, cache_size=0):
        super().__init__(cache_size)
        self.base_transform, self.reinterpreted_batch_ndims = base_transform, reinterpreted_batch_ndims

    domain = property(lambda self: constraints.independent(self.base_transform.domain, self.reinterpreted_batch_ndims))
    codomain = property(lambda self: constraints.independent(self.base_transform.codomain, self.reinterpreted_batch_ndims))
    bijective = property(lambda self: self.base_transform.bijective)
    sign = property(lambda self: self.base_transform.sign)

    def _call(self, x):
        return self.base_transform(x)

    def _inverse(self, y):
        return self.base_transform.inv(y)

    def log_abs_det_jacobian(self, x, y):
        return sum_last(self.base_transform.log_abs_det_jacobian(x, y), self.reinterpreted_batch_ndims)

    def forward_shape(self, shape):
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape):
        return self.base_transform.inverse_shape(shape)


class ComposeTransform(Transform):
    """Transforms one after the other, the first one first."""

    def __init__(self, parts, cache_size=0):
        super().__init__(cache_size)
        self.parts = [part.with_cache(cache_size) for part in parts] if cache_size else list(parts)

    def __eq__(self, other):
        return isinstance(other, ComposeTransform) and self.parts == other.parts

    __hash__ = object.__hash__

    @property
    def domain(self):
        if not self.parts:
            return constraints.real
        rank = self.parts[-1].codomain.event_dim
        for part in reversed(self.parts):
            rank = max(rank + part.domain.event_dim - part.codomain.event_dim, part.domain.event_dim)
        base = self.parts[0].domain
        return constraints.independent(base, rank - base.event_dim) if rank > base.event_dim else base

    @property
    def codomain(self):
        if not self.parts:
            return constraints.real
        rank = self.parts[0].domain.event_dim
        for part in self.parts:
            rank = max(rank + part.codomain.event_dim - part.domain.event_dim, part.codomain.event_dim)
        base = self.parts[-1].codomain
        return constraints.independent(base, rank - base.event_dim) if rank > base.event_dim else base

    bijective = property(lambda self: all(part.bijective for part in self.parts))

    @property
    def sign(self):
        sign = 1
        for part in self.parts:
            sign = sign * part.sign
        return sign

    @property
    def inv(self):
        if self._inv is None:
            self._inv = ComposeTransform([part.inv for part in reversed(self.parts)])
            self._inv._inv = self
        return self._inv

    def __call__(self, x):
        for part in self.parts:
            x = part(x)
        return x

    def _inv_call(self, y):
        return self.inv(y)

    def log_abs_det_jacobian(self, x, y):
        if not self.parts:
            return x.zeros_like()
        values = [x]
        for part in self.parts[:-1]:
            values.append(part(values[-1]))
        values.append(y)
        rank, terms = self.domain.event_dim, []
        for part, a, b in zip(self.parts, values, values[1:]):
            terms.append(sum_last(part.log_abs_det_jacobian(a, b), rank - part.domain.event_dim))
            rank += part.codomain.event_dim - part.domain.event_dim
        return sum(terms[1:], terms[0])

    def forward_shape(self, shape):
        for part in self.parts:
            shape = part.forward_shape(shape)
        return shape

    def inverse_shape(self, shape):
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return shape

    def __repr__(self):
        return f"ComposeTransform({self.parts!r})"


class CumulativeDistributionTransform(Transform):
    """The distribution function of a distribution of numbers."""

    bijective, codomain, sign = True, constraints.unit_interval, 1

    def __init__(self, distribution, cache_size=0):
        super().__init__(cache_size)
        self.distribution = distribution

    domain = property(lambda self: self.distribution.support)

    def _call(self, x):
        return self.distribution.cdf(x)

    def _inverse(self, y):
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x, y):
        return self.distribution.log_prob(x)


def sum_last(x, axes):
    """The sum over as many last axes."""
    return x.sum(tuple(range(-axes, 0))) if axes else x


identity_transform = ComposeTransform([])


class _Registry:
    """Which transform leads from all numbers to a set."""

    def __init__(self):
        self._made = {}

    def register(self, constraint, factory=None):
        """Registers a function of constraints of a type; also as a decorator."""
        if factory is None:
            return lambda factory: self.register(constraint, factory)
        self._made[id(constraint) if isinstance(constraint, constraints._Checked) else constraint if isinstance(constraint, type) else type(constraint)] = factory
        return factory

    def __call__(self, constraint):
        for key in (id(constraint), *type(constraint).__mro__):
            if key in self._made:
                return self._made[key](constraint)
        raise NotImplementedError(f"there is no transform to {constraint!r}")


def _interval(constraint):
    low, high = constraint.lower_bound, constraint.upper_bound
    if isinstance(low, (int, float)) and (low, high) == (0, 1):
        return SigmoidTransform()
    return ComposeTransform([SigmoidTransform(), AffineTransform(low, high - low)])


def _above(constraint):
    if isinstance(constraint.lower_bound, (int, float)) and constraint.lower_bound == 0:
        return ExpTransform()
    return ComposeTransform([ExpTransform(), AffineTransform(constraint.lower_bound, 1)])


biject_to, transform_to = _Registry(), _Registry()
for _registry in (biject_to, transform_to):
    _registry.register(constraints.real, lambda constraint: identity_transform)
    _registry.register(constraints.greater_than, lambda constraint: _above(constraint))
    _registry.register(constraints.greater_than_eq, _above)
    _registry.register(constraints.less_than, lambda constraint: ComposeTransform([ExpTransform(), AffineTransform(constraint.upper_bound, -1)]))
    _registry.register(constraints.interval, _interval)
    _registry.register(constraints.half_open_interval, _interval)
    _registry.register(constraints.lower_cholesky, lambda constraint: LowerCholeskyTransform())
    _registry.register(constraints.independent, lambda constraint, to=_registry: IndependentTransform(to(constraint.base_constraint), constraint.reinterpreted_batch_ndims))
biject_to.register(constraints.simplex, lambda constraint: StickBreakingTransform())
transform_to.register(constraints.simplex, lambda constraint: SoftmaxTransform())
