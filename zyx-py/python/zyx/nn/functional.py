"""Methods of `Tensor` as functions, under the name they are imported by in PyTorch programs:
`import zyx.nn.functional as F`, then `F.relu(x)`.
"""

from .._core import Tensor


def linear(x, weight, bias=None):
    """`x @ weight.T + bias`."""
    y = x.matmul(weight.t())
    return y if bias is None else y + bias


def __getattr__(name):
    method = None if name.startswith("_") else getattr(Tensor, name, None)
    if not callable(method):
        raise AttributeError(f"module 'zyx.nn.functional' has no attribute {name!r}")
    return method


def __dir__():
    return sorted(name for name in dir(Tensor) if not name.startswith("_") and callable(getattr(Tensor, name)))
