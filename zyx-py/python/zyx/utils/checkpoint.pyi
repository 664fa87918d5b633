"""Functions whose gradients call them again, under the names of `torch.utils.checkpoint`. Written by tools/python_stubs.py."""

from typing import Any, Generic, TypeVar
from .._core import Tensor as Tensor, is_grad_enabled as is_grad_enabled
from .._grad_mode import enable_grad as enable_grad, no_grad as no_grad
from .._tree import flatten as flatten
from ..autograd.function import Function as Function
from ..random import fork_rng as fork_rng, get_rng_state as get_rng_state, set_rng_state as set_rng_state

_T = TypeVar("_T")

class CheckpointError(RuntimeError):
    ...

def noop_context_fn() -> Any:
    """Two blocks that change nothing."""

def checkpoint(function: Any=None, *args: Any, use_reentrant: Any=None, context_fn: Any=..., determinism_check: Any='default', debug: Any=False, early_stop: Any=True, preserve_rng_state: Any=True, **kwargs: Any) -> Any:
    """The function's result for the arguments. Its gradient calls the function again, with the same random numbers unless `preserve_rng_state=False`, within the second block of `context_fn()`. All ways of PyTorch to do that (`use_reentrant`, `early_stop`) are this one."""

def checkpoint_sequential(functions: Any, segments: Any, input: Any, use_reentrant: Any=None, **kwargs: Any) -> Any:
    """The result of modules one after the other, in segments that are computed again for their gradients, but for the last."""

def detach_variable(inputs: Any) -> Any:
    """The tensors cut off from their history."""

def set_checkpoint_debug_enabled(enabled: Any) -> Any:
    """A block that changes nothing: functions are called once."""

def set_checkpoint_early_stop(*args: Any, **kwargs: Any) -> Any: ...
