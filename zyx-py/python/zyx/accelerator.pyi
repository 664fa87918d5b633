"""The device that tensors are made on when none is named, under the names of `torch.accelerator`, if it is no CPU. Written by tools/python_stubs.py."""

from typing import Any, Generic, TypeVar
from ._core import Device as Device

_T = TypeVar("_T")

def current_accelerator(check_available: Any=False) -> Any:
    """The device, or `None` if it is the CPU."""

def is_available() -> Any:
    """Whether the device is no CPU."""

def device_count() -> Any:
    """How many devices of its backend are there."""

def current_device_index() -> Any:
    """The number of the device."""

def set_device_index(device: Any, /) -> Any:
    """The present device is taken; another is an error: the environment variable ZYX_DEVICE says it."""

def synchronize(device: Any=None, /) -> Any:
    """Waits until everything submitted to the device is done."""

def memory_allocated(device: Any=None, /) -> Any:
    """Bytes that tensors hold on the device."""

def max_memory_allocated(device: Any=None, /) -> Any:
    """The most bytes that tensors held on the device."""

def memory_reserved(device: Any=None, /) -> Any:
    """Bytes that tensors hold on the device, and that are kept for reuse."""

def memory_stats(device: Any=None, /) -> Any:
    """The device's counters by name."""

def reset_peak_memory_stats(device: Any=None, /) -> Any:
    """Starts counting the most bytes anew."""

def empty_cache() -> Any:
    """Gives memory that is kept for reuse back to the driver."""

def manual_seed_all(seed: Any) -> Any:
    """Restarts the random stream that calls without a generator draw from."""

def current_device_idx(*args: Any, **kwargs: Any) -> Any: ...

def max_memory_reserved(*args: Any, **kwargs: Any) -> Any: ...

def reset_accumulated_memory_stats(*args: Any, **kwargs: Any) -> Any: ...

def set_device_idx(*args: Any, **kwargs: Any) -> Any: ...
