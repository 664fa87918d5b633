"""Hooks of all modules, and the class `Module`."""

from .. import _hooks
from ..module import Module  # noqa: F401


def register_module_forward_hook(hook, *, with_kwargs=False, always_call=False):
    """Calls `hook(module, inputs, output)` after `forward` of every module."""
    return _hooks.register(None, "forward", hook, False, with_kwargs, always_call)


def register_module_forward_pre_hook(hook):
    """Calls `hook(module, inputs)` before `forward` of every module."""
    return _hooks.register(None, "before", hook)


def register_module_full_backward_hook(hook):
    """Calls `hook(module, grad_input, grad_output)` for gradients of every module."""
    return _hooks.register(None, "backward", hook)


def register_module_full_backward_pre_hook(hook):
    """Calls `hook(module, grad_output)` before gradients go through any module."""
    return _hooks.register(None, "backward_before", hook)
