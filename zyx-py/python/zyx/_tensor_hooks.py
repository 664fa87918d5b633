"""Hooks of tensors, with PyTorch's rules: functions of gradients, and `.grad` of tensors that were computed."""

import itertools
import weakref

from ._core import Tensor

_NUMBER = itertools.count()
_LEAF_GRAD = Tensor.__dict__["grad"]
# By the identity of a tensor: the gradient that `retain_grad` keeps.
_KEPT = {}


class RemovableHandle:
    """Takes a hook away again: `remove()`, or the end of a `with` block."""

    def __init__(self, remove):
        self.id, self._remove = next(_NUMBER), remove

    def remove(self):
        """Takes the hook away."""
        remove, self._remove = self._remove, None
        if remove is not None:
            remove()

    def __enter__(self):
        return self

    def __exit__(self, *problem):
        self.remove()


def _check(x, hook):
    if not x.requires_grad:
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    if not callable(hook):
        raise TypeError(f"a hook is a function, not {type(hook).__name__}")


def _checked(hook):
    """The hook, with errors for results that are no gradient of the tensor."""

    def called(grad):
        found, name = hook(grad), getattr(hook, "__name__", type(hook).__name__)
        if found is None:
            return None
        if not isinstance(found, Tensor):
            raise TypeError(f"hook '{name}' has changed the type of value (was Tensor got {type(found).__name__})")
        if found.dtype != grad.dtype:
            raise RuntimeError(f"hook '{name}' has changed the type of value (was {grad.dtype.name} got {found.dtype.name})")
        if found.shape != grad.shape:
            raise RuntimeError(f"hook '{name}' has changed the size of value")
        return found

    return called


def register_hook(x, hook):
    """See `Tensor.register_hook`."""
    _check(x, hook)
    return RemovableHandle(x._on_gradient(_checked(hook)).remove)


class _AfterCollecting(dict):
    """The hooks by number that are called after the gradient of a leaf was collected."""

    def __init__(self, x):
        super().__init__()
        self._of = weakref.ref(x)

    def __call__(self):
        x = self._of()
        for hook in list(self.values()) if x is not None else ():
            hook(x)


def register_post_accumulate_grad_hook(x, hook):
    """See `Tensor.register_post_accumulate_grad_hook`."""
    _check(x, hook)
    if not x.is_leaf:
        raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")
    hooks = x._after_collecting
    if hooks is None:
        hooks = x._after_collecting = _AfterCollecting(x)
    number = next(_NUMBER)
    hooks[number] = hook
    return RemovableHandle(lambda: hooks.pop(number, None))


class _Kept:
    """The gradient of a tensor that was computed."""

    def __init__(self, x):
        key = id(x)
        self.grad, self.version = None, x._version
        self.of = weakref.ref(x, lambda _: _KEPT.pop(key, None))
        _KEPT[key] = self
        of, kept = self.of, weakref.ref(self)

        def collect(grad):
            x, self = of(), kept()
            if x is None or self is None:
                return
            if x._version != self.version:
                raise RuntimeError("retain_grad: the tensor was written to since; call retain_grad() after the write")
            self.grad = grad if self.grad is None else self.grad + grad

        # It is the gradient after all other hooks.
        x._on_gradient(collect, True)


def _read(self):
    kept = _KEPT.get(id(self))
    return _LEAF_GRAD.__get__(self) if kept is None else kept.grad


def _write(self, value):
    kept = _KEPT.get(id(self))
    if kept is None:
        _LEAF_GRAD.__set__(self, value)
    elif value is None or isinstance(value, Tensor):
        kept.grad = value
    else:
        raise TypeError(f"assigned grad expected to be a Tensor or None but got {type(value).__name__}")


def retain_grad(x):
    """See `Tensor.retain_grad`."""
    if not x.requires_grad:
        raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
    # A tensor is a leaf if `backward` collects its gradient.
    if x.is_leaf or id(x) in _KEPT:
        return
    if Tensor.__dict__["grad"] is _LEAF_GRAD:
        Tensor.grad = property(_read, _write, lambda self: _write(self, None), _LEAF_GRAD.__doc__)
    _Kept(x)


def retains_grad(x):
    """Whether `.grad` is kept though the tensor is no leaf."""
    return id(x) in _KEPT
