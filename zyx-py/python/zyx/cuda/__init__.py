"""What scripts ask `torch.cuda` for."""

from .. import _aliases, _core
from .._core import manual_seed

_missing = _aliases.ways(__name__, {"nvtx": "device.set_profiling(True)", "CUDAGraph": "zyx.jit"})

manual_seed_all = manual_seed


def _all():
    return [spec for spec, *_ in _core.devices() if spec.startswith("cuda")]


def is_available():
    """Whether a device of the backend `cuda` is there."""
    return bool(_all())


def device_count():
    """How many devices of the backend `cuda` are there."""
    return len(_all())


def synchronize(device=None):
    """Waits until everything submitted to a device, or to all of them, is done."""
    for spec in _all() if device is None else [device]:
        _core.Device(spec).synchronize()


def empty_cache():
    """Gives memory that is kept for reuse back to the driver."""
    for spec in _all():
        _core.Device(spec).trim_memory()


def is_bf16_supported():
    """Whether `bfloat16` can be computed with: always, if a device is there."""
    return is_available()


def _device(device=None):
    if device is None or isinstance(device, int):
        return _core.Device("cuda" if device is None else f"cuda:{device}")
    return _core.Device(device) if isinstance(device, str) else device


def _number(device):
    number = device.spec.rpartition(":")[2]
    return int(number) if number.isdigit() else 0


def init():
    """Opens the first device of the backend `cuda`."""
    _device()


def is_initialized():
    """Whether a device of the backend `cuda` is there."""
    return is_available()


def current_device():
    """The number of the device that `"cuda"` means."""
    default = _core.device()
    return _number(default if default.type == "cuda" else _device())


def set_device(device):
    """The present device is taken; another is an error: `device=` of each call says it."""
    number = device if isinstance(device, int) else _number(_device(device))
    if number >= 0 and number != current_device():
        raise NotImplementedError(f"set_device: {device}; in zyx: device= of each call, or the environment variable ZYX_DEVICE")


class device:
    """A block whose tensors are made on a device: the present one, another is an error."""

    def __init__(self, device):
        set_device(device)

    def __enter__(self):
        return self

    def __exit__(self, *problem):
        return False


def get_device_name(device=None):
    """The name of a device."""
    return _device(device).name


def mem_get_info(device=None):
    """Free bytes, as far as zyx knows, and all bytes of a device."""
    from ..accelerator import memory_reserved

    found = _device(device)
    whole = found.memory() if callable(found.memory) else found.memory
    return whole - memory_reserved(found), whole


def _of(name):
    def function(device=None):
        from .. import accelerator

        return getattr(accelerator, name)(_device(device))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"`accelerator.{name}` of a device of the backend `cuda`."
    return function


memory_allocated, max_memory_allocated, memory_reserved, max_memory_reserved, memory_stats, reset_peak_memory_stats = map(_of, (
    "memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved", "memory_stats", "reset_peak_memory_stats"))  # fmt: skip
memory_cached, max_memory_cached, reset_max_memory_allocated = memory_reserved, max_memory_reserved, reset_peak_memory_stats


def memory_summary(device=None, abbreviated=False):
    """The device's counters as text."""
    return "\n".join(f"{name:16} {value}" for name, value in memory_stats(device).items())


def ipc_collect():
    """Nothing: processes share no memory of devices."""


class Stream:
    """The one queue of a device, which runs in order."""

    def __init__(self, device=None, priority=0, **more):
        self.device = device

    def synchronize(self):
        """Waits until everything submitted is done."""
        synchronize()

    def wait_stream(self, stream):
        """Nothing: there is one queue."""

    wait_event = wait_stream

    def record_event(self, event=None):
        """An event behind everything submitted."""
        event = event or Event()
        event.record(self)
        return event

    def __enter__(self):
        return self

    def __exit__(self, *problem):
        return False


def stream(stream):
    """A block on a queue, of which there is one."""
    return stream


def current_stream(device=None):
    """The one queue of a device."""
    return Stream(device)


default_stream = current_stream


class Event:
    """A moment: when everything submitted before `record` was done, which it waits for."""

    def __init__(self, enable_timing=False, blocking=False, interprocess=False):
        self._time = None

    def record(self, stream=None):
        """Waits until everything submitted is done, and keeps the time."""
        import time

        synchronize()
        self._time = time.perf_counter()

    def wait(self, stream=None):
        """Nothing: the moment is past."""

    synchronize = wait

    def query(self):
        """Whether the moment is past."""
        return True

    def elapsed_time(self, end_event):
        """Milliseconds to another event."""
        if self._time is None or end_event._time is None:
            raise RuntimeError("Both events must be recorded before calculating elapsed time.")
        return (end_event._time - self._time) * 1e3


def __getattr__(name):
    from .._more import KINDS

    if name == "amp":
        import importlib

        return importlib.import_module(".amp", __name__)
    if name not in KINDS:
        return _missing(name)
    from .._types import kind

    found = globals()[name] = kind(name, True)
    return found
