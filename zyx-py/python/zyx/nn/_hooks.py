"""Hooks of modules: functions that are called before and after `forward`, by gradients, and around state dicts."""

import itertools
import weakref

from .._core import Tensor
from . import module as _module

_NUMBER = itertools.count()


class RemovableHandle:
    """Takes a hook away again: `remove()`, or the end of a `with` block."""

    def __init__(self, hooks, key):
        self.id, self._hooks = key, weakref.ref(hooks)

    def remove(self):
        """Takes the hook away."""
        hooks = self._hooks()
        if hooks is not None:
            hooks.pop(self.id, None)

    def __enter__(self):
        return self

    def __exit__(self, *problem):
        self.remove()


class Hooks(dict):
    """Hooks of one kind by number."""


class Hook:
    """A function and how it is called."""

    def __init__(self, function, with_kwargs=False, always=False):
        self.function, self.with_kwargs, self.always = function, with_kwargs, always


def register(module, kind, hook, prepend=False, with_kwargs=False, always=False):
    """Adds a hook of a kind to a module, or to all modules (`None`)."""
    if not callable(hook):
        raise TypeError(f"a hook is a function, not {type(hook).__name__}")
    kinds = _module._GLOBAL if module is None else vars(module).setdefault("_hooks", {})
    hooks, key = kinds.setdefault(kind, Hooks()), next(_NUMBER)
    before = dict(hooks) if prepend else {}
    if prepend:
        hooks.clear()
    hooks[key] = Hook(hook, with_kwargs, always)
    hooks.update(before)
    return RemovableHandle(hooks, key)


def of(module, kind):
    """The hooks of a kind: those of all modules, then the module's own."""
    found = list(_module._GLOBAL.get(kind, {}).values())
    return found + list(vars(module).get("_hooks", {}).get(kind, {}).values())


def run(module, kind, *given):
    """Calls hooks around state dicts."""
    for hook in of(module, kind):
        if kind == "load_before" and not hook.with_kwargs:
            hook.function(*given)
        else:
            hook.function(module, *given)


def call(module, inputs, options):
    """`forward` with the hooks around it."""
    for hook in of(module, "before"):
        if hook.with_kwargs:
            found = hook.function(module, inputs, options)
            if found is not None:
                if not isinstance(found, tuple) or len(found) != 2:
                    raise RuntimeError(f"a forward pre-hook with kwargs gives None or a tuple of inputs and options, not {found!r}")
                inputs, options = found
        else:
            found = hook.function(module, inputs)
            if found is not None:
                inputs = found if isinstance(found, tuple) else (found,)
    after, called = of(module, "forward"), set()
    backward = _Backward(module) if of(module, "backward") or of(module, "backward_before") else None
    try:
        if backward is not None:
            inputs = backward.enter(inputs)
        output = module.forward(*inputs, **options)
        if backward is not None:
            output = backward.leave(output)
        for hook in after:
            called.add(hook)
            found = hook.function(module, inputs, options, output) if hook.with_kwargs else hook.function(module, inputs, output)
            output = output if found is None else found
        return output
    except Exception:
        for hook in after:
            if hook.always and hook not in called:
                hook.function(module, inputs, options, None) if hook.with_kwargs else hook.function(module, inputs, None)
        raise


class _Backward:
    """The backward hooks of one call: gradients of outputs are kept until those of inputs are computed."""

    def __init__(self, module):
        self.module, self.given, self.made, self.waiting = module, [], [], 0

    def enter(self, inputs):
        """The inputs, whose gradients go through the hooks."""
        wanted = [i for i, x in enumerate(inputs) if isinstance(x, Tensor) and x.requires_grad]
        self.made, self.waiting, self.single = [None] * len(inputs), len(wanted), len(wanted) == 1
        inputs = list(inputs)
        for i in wanted:
            x = inputs[i]
            inputs[i] = x.with_gradient([x], lambda _, __, cotangent, i=i: [self.input_gradient(i, cotangent)])
        return tuple(inputs)

    def leave(self, output):
        """The outputs, whose gradients are told to the hooks."""
        single = isinstance(output, Tensor)
        if not single and not isinstance(output, (tuple, list)):
            raise TypeError(f"backward hooks need a module whose output is tensors, not {type(output).__name__}")
        outputs = [output] if single else list(output)
        self.given = [None] * len(outputs)
        for i, y in enumerate(outputs):
            if isinstance(y, Tensor) and y.requires_grad:
                outputs[i] = y.with_gradient([y], lambda _, __, cotangent, i=i: [self.output_gradient(i, cotangent)])
        return outputs[0] if single else type(output)(outputs) if not hasattr(output, "_fields") else type(output)(*outputs)

    def output_gradient(self, i, cotangent):
        self.given[i] = cotangent
        for hook in of(self.module, "backward_before"):
            found = hook.function(self.module, tuple(self.given))
            if found is not None:
                found = found if isinstance(found, tuple) else (found,)
                cotangent = self.given[i] = found[i]
        if not self.waiting:
            self.run()
        return cotangent

    def input_gradient(self, i, cotangent):
        self.made[i], self.waiting = cotangent, self.waiting - 1
        if self.waiting <= 0:
            self.run()
        return self.made[i]

    def run(self):
        for hook in of(self.module, "backward"):
            found = hook.function(self.module, tuple(self.made), tuple(self.given))
            if found is None:
                continue
            if not self.single:
                raise NotImplementedError("a backward hook that changes gradients needs a module with one input that has a gradient")
            found = found if isinstance(found, tuple) else (found,)
            if len(found) != len(self.made):
                raise RuntimeError(f"Backward hook returned an invalid number of grad_input, got {len(found)}, but expected {len(self.made)}")
            self.made = list(found)
