"""Random streams under the names of `torch.random`."""

from ._types import default_generator, get_rng_state, initial_seed, seed, set_rng_state  # noqa: F401


def manual_seed(seed):
    """Restarts the stream that calls without a generator draw from; gives it."""
    return default_generator.manual_seed(seed)


class _Forked:
    """A block after which the shared stream goes on from its place before."""

    def __init__(self, enabled):
        self._enabled, self._before = enabled, []

    def __enter__(self):
        self._before.append(get_rng_state() if self._enabled else None)

    def __exit__(self, *problem):
        state = self._before.pop()
        if state is not None:
            set_rng_state(state)
        return False


def fork_rng(devices=None, enabled=True, _caller="fork_rng", _devices_kw="devices", device_type="cuda"):
    """A block after which random numbers go on as if none had been drawn in it. All devices draw from one stream."""
    return _Forked(enabled)
