"""What scripts ask `torch.cuda` for. Written by tools/python_stubs.py."""

from typing import Any, Generic, TypeVar
from .._core import manual_seed as manual_seed

_T = TypeVar("_T")

def is_available() -> Any:
    """Whether a device of the backend `cuda` is there."""

def device_count() -> Any:
    """How many devices of the backend `cuda` are there."""

def synchronize(device: Any=None) -> Any:
    """Waits until everything submitted to a device, or to all of them, is done."""

def empty_cache() -> Any:
    """Gives memory that is kept for reuse back to the driver."""

def is_bf16_supported() -> Any:
    """Whether `bfloat16` can be computed with: always, if a device is there."""

def init() -> Any:
    """Opens the first device of the backend `cuda`."""

def is_initialized() -> Any:
    """Whether a device of the backend `cuda` is there."""

def current_device() -> Any:
    """The number of the device that `"cuda"` means."""

def set_device(device: Any) -> Any:
    """The present device is taken; another is an error: `device=` of each call says it."""

class device:
    def __init__(self, device: Any) -> None:
        ...
    def __enter__(self) -> Any:
        ...
    def __exit__(self, *problem: Any) -> Any:
        ...

def get_device_name(device: Any=None) -> Any:
    """The name of a device."""

def mem_get_info(device: Any=None) -> Any:
    """Free bytes, as far as zyx knows, and all bytes of a device."""

def memory_summary(device: Any=None, abbreviated: Any=False) -> Any:
    """The device's counters as text."""

def ipc_collect() -> Any:
    """Nothing: processes share no memory of devices."""

class Stream:
    device: Any
    def __init__(self, device: Any=None, priority: Any=0, **more: Any) -> None:
        ...
    def synchronize(self) -> Any:
        """Waits until everything submitted is done."""
    def wait_stream(self, stream: Any) -> Any:
        """Nothing: there is one queue."""
    wait_event: Any
    def record_event(self, event: Any=None) -> Any:
        """An event behind everything submitted."""
    def __enter__(self) -> Any:
        ...
    def __exit__(self, *problem: Any) -> Any:
        ...

def stream(stream: Any) -> Any:
    """A block on a queue, of which there is one."""

def current_stream(device: Any=None) -> Any:
    """The one queue of a device."""

class Event:
    def __init__(self, enable_timing: Any=False, blocking: Any=False, interprocess: Any=False) -> None:
        ...
    def record(self, stream: Any=None) -> Any:
        """Waits until everything submitted is done, and keeps the time."""
    def wait(self, stream: Any=None) -> Any:
        """Nothing: the moment is past."""
    synchronize: Any
    def query(self) -> Any:
        """Whether the moment is past."""
    def elapsed_time(self, end_event: Any) -> Any:
        """Milliseconds to another event."""

def default_stream(*args: Any, **kwargs: Any) -> Any: ...

def manual_seed_all(*args: Any, **kwargs: Any) -> Any: ...

def max_memory_allocated(*args: Any, **kwargs: Any) -> Any: ...

def max_memory_cached(*args: Any, **kwargs: Any) -> Any: ...

def max_memory_reserved(*args: Any, **kwargs: Any) -> Any: ...

def memory_allocated(*args: Any, **kwargs: Any) -> Any: ...

def memory_cached(*args: Any, **kwargs: Any) -> Any: ...

def memory_reserved(*args: Any, **kwargs: Any) -> Any: ...

def memory_stats(*args: Any, **kwargs: Any) -> Any: ...

def reset_max_memory_allocated(*args: Any, **kwargs: Any) -> Any: ...

def reset_peak_memory_stats(*args: Any, **kwargs: Any) -> Any: ...
