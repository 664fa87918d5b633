"""Kullback and Leibler's divergence, and a register of formulas."""

from ._composed import Independent, TransformedDistribution
from ._laws import Law
from .distribution import Distribution
from .transforms import sum_last

_FORMULAS = {}


def register_kl(type_p, type_q):
    """Registers a formula for two classes: `@register_kl(P, Q)` above a function of two distributions."""
    for kind in (type_p, type_q):
        if not (isinstance(kind, type) and issubclass(kind, Distribution)):
            raise TypeError(f"register_kl: expected a subclass of Distribution, not {kind!r}")

    def register(formula):
        _FORMULAS[type_p, type_q] = formula
        return formula

    return register


def _find(p, q):
    """The formula of the nearest classes, those of `p` first."""
    fits = [(type(p).__mro__.index(a), type(q).__mro__.index(b), f) for (a, b), f in _FORMULAS.items() if isinstance(p, a) and isinstance(q, b)]
    return min(fits, key=lambda found: found[:2])[2] if fits else None


def kl_divergence(p, q):
    """The mean over `p` of `p.log_prob(x) - q.log_prob(x)`."""
    formula = _find(p, q)
    if formula is None:
        raise NotImplementedError(f"there is no formula for {type(p).__name__} and {type(q).__name__}")
    return formula(p, q)


@register_kl(Law, Law)
def _of_laws(p, q):
    try:
        return p._native.kl_divergence(q._native)
    except ValueError as error:
        if "there is no formula" in str(error):
            raise NotImplementedError(str(error)) from None
        raise


@register_kl(Independent, Independent)
def _of_independent(p, q):
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError("kl_divergence: Independent distributions of different numbers of axes")
    return sum_last(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


@register_kl(TransformedDistribution, TransformedDistribution)
def _of_transformed(p, q):
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError("kl_divergence: TransformedDistribution of different transforms")
    return kl_divergence(p.base_dist, q.base_dist)
