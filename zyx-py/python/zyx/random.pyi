"""Random streams under the names of `torch.random`. Written by tools/python_stubs.py."""

from typing import Any, Generic, TypeVar
from ._types import default_generator as default_generator, get_rng_state as get_rng_state, initial_seed as initial_seed, seed as seed, set_rng_state as set_rng_state

_T = TypeVar("_T")

def manual_seed(seed: Any) -> Any:
    """Restarts the stream that calls without a generator draw from; gives it."""

def fork_rng(devices: Any=None, enabled: Any=True, _caller: Any='fork_rng', _devices_kw: Any='devices', device_type: Any='cuda') -> Any:
    """A block after which random numbers go on as if none had been drawn in it. All devices draw from one stream."""
