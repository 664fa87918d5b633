"""Random streams under the names of `torch.random`."""

from ._types import default_generator, get_rng_state, initial_seed, seed, set_rng_state  # noqa: F401


def manual_seed(seed):
    """Restarts the stream that calls without a generator draw from; gives it."""
    return default_generator.manual_seed(seed)


def fork_rng(devices=None, enabled=True, **more):
    """An error: the place of the shared stream is not told, so it cannot be put back. Make a `zyx.Generator` for a block."""
    import contextlib

    if not enabled:
        return contextlib.nullcontext()
    raise NotImplementedError("fork_rng: the place of the shared stream is not told; give generator=zyx.Generator() to the calls of the block")
