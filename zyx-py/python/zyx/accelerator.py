"""The device that tensors are made on when none is named, under the names of `torch.accelerator`, if it is no CPU."""

from . import _core
from ._core import Device


def current_accelerator(check_available=False):
    """The device, or `None` if it is the CPU."""
    found = _core.device()
    return None if found.type == "cpu" else found


def is_available():
    """Whether the device is no CPU."""
    return current_accelerator() is not None


def device_count():
    """How many devices of its backend are there."""
    found = current_accelerator()
    return 0 if found is None else sum(spec.startswith(found.type) for spec, *_ in _core.devices())


def current_device_index():
    """The number of the device."""
    found = current_accelerator()
    number = "" if found is None else found.spec.rpartition(":")[2]
    return int(number) if number.isdigit() else 0


current_device_idx = current_device_index


def set_device_index(device, /):
    """The present device is taken; another is an error: the environment variable ZYX_DEVICE says it."""
    index = device if isinstance(device, int) else int(Device(device).spec.rpartition(":")[2] or 0)
    if index != current_device_index():
        raise NotImplementedError(f"set_device_index: {device}; in zyx: the environment variable ZYX_DEVICE, or device= of each call")


set_device_idx = set_device_index


def synchronize(device=None, /):
    """Waits until everything submitted to the device is done."""
    _place(device).synchronize()


def _place(device):
    return _core.device() if device is None or isinstance(device, int) else Device(device) if isinstance(device, str) else device


def _stats(device=None):
    return _place(device).stats()


def memory_allocated(device=None, /):
    """Bytes that tensors hold on the device."""
    return _stats(device)["live_bytes"]


def max_memory_allocated(device=None, /):
    """The most bytes that tensors held on the device."""
    return _stats(device)["peak_bytes"]


def memory_reserved(device=None, /):
    """Bytes that tensors hold on the device, and that are kept for reuse."""
    found = _stats(device)
    return found["live_bytes"] + found["cached_bytes"]


max_memory_reserved = max_memory_allocated


def memory_stats(device=None, /):
    """The device's counters by name."""
    return dict(_stats(device))


def reset_peak_memory_stats(device=None, /):
    """Starts counting the most bytes anew."""
    _place(device).reset_peak()


reset_accumulated_memory_stats = reset_peak_memory_stats


def empty_cache():
    """Gives memory that is kept for reuse back to the driver."""
    _core.device().trim_memory()


def manual_seed_all(seed):
    """Restarts the random stream that calls without a generator draw from."""
    _core.manual_seed(seed)
