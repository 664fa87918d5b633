"""Which way of attention PyTorch takes, under the names of `torch.nn.attention`. Here there is one way, which is always fused."""

import contextlib
import enum


class SDPBackend(enum.Enum):
    """PyTorch's ways to compute attention."""

    ERROR, MATH, FLASH_ATTENTION, EFFICIENT_ATTENTION, CUDNN_ATTENTION, OVERRIDEABLE = -1, 0, 1, 2, 3, 4


@contextlib.contextmanager
def sdpa_kernel(backends, set_priority=False):
    """A block in which PyTorch takes one of these ways; here the way is the same, and so are the values."""
    for backend in backends if isinstance(backends, (list, tuple)) else [backends]:
        if not isinstance(backend, SDPBackend):
            raise TypeError(f"backends are members of SDPBackend, not {backend!r}")
    yield
