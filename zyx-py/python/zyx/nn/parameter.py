"""Parameters and buffers under the names of `torch.nn.parameter`."""

from .._core import Parameter  # noqa: F401
from . import Buffer  # noqa: F401
from ._lazy import UninitializedBuffer, UninitializedParameter  # noqa: F401


def is_lazy(param):
    """Whether this is a parameter without a value yet."""
    return isinstance(param, UninitializedParameter)
