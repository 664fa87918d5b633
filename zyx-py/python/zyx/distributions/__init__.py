"""Probability distributions with PyTorch's names and signatures.

    >>> policy = zyx.distributions.Categorical(logits=net(state))
    >>> action = policy.sample()
    >>> loss = -(policy.log_prob(action) * reward).mean()

Formulas and samples are those of the Rust module `zyx_nn::distributions`.
"""

from . import constraints, transforms  # noqa: F401
from ._composed import (
    Independent,
    LogisticNormal,
    LogitRelaxedBernoulli,
    MixtureSameFamily,
    OneHotCategoricalStraightThrough,
    TransformedDistribution,
)
from ._laws import NAMES as _NAMES
from . import _laws
from .distribution import Distribution
from .kl import kl_divergence, register_kl
from .transforms import *  # noqa: F403
from .transforms import biject_to, transform_to

globals().update({_name: getattr(_laws, _name) for _name in _NAMES})
__all__ = [
    *_NAMES, "Distribution", "Independent", "LogisticNormal", "LogitRelaxedBernoulli", "MixtureSameFamily", "OneHotCategoricalStraightThrough",
    "TransformedDistribution", "biject_to", "kl_divergence", "register_kl", "transform_to", "constraints",
    *transforms.__all__,
]  # fmt: skip
