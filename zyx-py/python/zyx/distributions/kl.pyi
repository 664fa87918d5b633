"""Written by tools/python_stubs.py of `zyx.distributions.kl`."""

from typing import Any

from .._core import Tensor

def register_kl(type_p: Any, type_q: Any) -> Any:
    """Registers a formula for two classes: `@register_kl(P, Q)` above a function of two distributions."""

def kl_divergence(p: Any, q: Any) -> Tensor:
    """The mean over `p` of `p.log_prob(x) - q.log_prob(x)`."""
