"""Functions whose gradients call them again, under the names of `torch.utils.checkpoint`.

Values and gradients are PyTorch's. Memory is not saved: the function is called once, as everywhere, and a warning says so.
`zyx.checkpoint(f, inputs)` saves memory where a function depends on its inputs alone and draws no random numbers.
"""

import contextlib
import warnings

from .._core import Tensor

_warned = False


class CheckpointError(RuntimeError):
    """A function that computes another thing when it is called again."""


def noop_context_fn():
    """Two blocks that change nothing."""
    return contextlib.nullcontext(), contextlib.nullcontext()


def checkpoint(function=None, *args, use_reentrant=None, preserve_rng_state=True, context_fn=noop_context_fn, determinism_check="default", debug=False,
               early_stop=True, **kwargs):  # fmt: skip
    """The function's result for the arguments, with PyTorch's values and gradients. Memory is not saved."""
    global _warned
    if not callable(function):
        raise TypeError(f"checkpoint: {type(function).__name__} is no function")
    if not _warned:
        _warned = True
        warnings.warn("utils.checkpoint: memory is not saved, values and gradients are right; zyx.checkpoint(f, inputs) saves memory of functions of their inputs alone", stacklevel=2)
    with context_fn()[0]:
        return function(*args, **kwargs)


def checkpoint_sequential(functions, segments, input, use_reentrant=None, **kwargs):
    """The result of modules one after the other. Memory is not saved."""
    if kwargs.keys() - {"preserve_rng_state"}:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    functions = list(functions.children()) if hasattr(functions, "children") else list(functions)
    if not 1 <= segments <= max(len(functions), 1):
        raise ValueError(f"checkpoint_sequential: {segments} segments of {len(functions)} functions")

    def run(x):
        for function in functions:
            x = function(x)
        return x

    return checkpoint(run, input)


def detach_variable(inputs):
    """The tensors cut off from their history."""
    return tuple(x.detach().requires_grad_(x.requires_grad) if isinstance(x, Tensor) else x for x in inputs)


@contextlib.contextmanager
def set_checkpoint_debug_enabled(enabled):
    """A block that changes nothing: functions are called once."""
    yield


set_checkpoint_early_stop = set_checkpoint_debug_enabled
