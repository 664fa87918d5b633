"""`autocast` and `GradScaler` for CUDA, under the names of `torch.cuda.amp`."""

import functools

from .. import amp as _amp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class autocast(_amp.autocast):
    """`zyx.amp.autocast("cuda")`."""

    def __init__(self, enabled: bool = True, dtype: "Any" = None, cache_enabled: bool = True) -> None:
        super().__init__("cuda", dtype, enabled, cache_enabled)


class GradScaler(_amp.GradScaler):
    """`zyx.amp.GradScaler("cuda")`."""

    def __init__(self, init_scale: float = 2.0**16, growth_factor: float = 2.0, backoff_factor: float = 0.5, growth_interval: int = 2000,
                 enabled: bool = True) -> None:  # fmt: skip
        super().__init__("cuda", init_scale, growth_factor, backoff_factor, growth_interval, enabled)


custom_fwd, custom_bwd = (functools.partial(f, device_type="cuda") for f in (_amp.custom_fwd, _amp.custom_bwd))

# PyTorch's files below this one (`_paths`).
__path__ = []
