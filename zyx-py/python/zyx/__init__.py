"""Tensors and machine learning: lazy, fused, on any device.

    >>> import zyx
    >>> x = zyx.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    >>> loss = (x @ x.T).relu().sum()
    >>> loss.gradient(x)

Tensors never change and are computed when a value is needed. Every method of `Tensor` is also a
function of this module: `zyx.exp(x)` is `x.exp()`, `zyx.zeros(2, 3)` is `Tensor.zeros(2, 3)`.
Submodules are imported at their first use: `zyx.nn`, `zyx.optim`,
`zyx.array_api`, `zyx.linalg`, `zyx.special`.
"""

from . import _aliases, _core
from ._core import *  # noqa: F403
from ._core import Tensor, __version__, from_dlpack  # noqa: F401
from ._functions import (  # noqa: F401
    addbmm,
    addmv,
    addr,
    as_tensor,
    atleast_1d,
    block_diag,
    broadcast_shapes,
    broadcast_tensors,
    cartesian_prod,
    combinations,
    empty,
    empty_like,
    from_numpy,
    grad,
    isin,
    meshgrid,
    mvlgamma,
    polygamma,
    pow,
    renorm,
    tensordot,
    value_and_grad,
    vmap,
    where,
)
from ._grad_mode import enable_grad, inference_mode, is_grad_enabled, no_grad, set_grad_enabled  # noqa: F401
from ._jit import jit  # noqa: F401

_aliases.install()
Param = _core.Parameter
inf, nan, pi, e, newaxis = float("inf"), float("nan"), 3.141592653589793, 2.718281828459045, None

_SUBMODULES = ("nn", "optim", "array_api", "linalg", "special")


# What `nn` and `optim` make their classes and schedules of is no name of this module.
for _name in [name for name in globals() if name.startswith(("make_", "schedule_"))]:
    del globals()[_name]


def __getattr__(name):
    """Submodules, and methods of `Tensor` as functions; looked up once."""
    if name in _SUBMODULES:
        import importlib

        found = importlib.import_module("." + name, __name__)
    elif not name.startswith("_") and callable(getattr(Tensor, name, None)):
        found = getattr(Tensor, name)
    else:
        raise AttributeError(f"module 'zyx' has no attribute {name!r}")
    globals()[name] = found
    return found


def __dir__():
    methods = (name for name in dir(Tensor) if not name.startswith("_") and callable(getattr(Tensor, name)))
    return sorted({*globals(), *_SUBMODULES, *methods})
