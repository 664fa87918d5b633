"""What scripts ask `torch.cuda` for."""

from . import _aliases, _core
from ._core import manual_seed

__getattr__ = _aliases.ways(__name__, {"amp": _aliases.HALVES, "max_memory_allocated": "zyx.device().stats()['peak_bytes']"})

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
