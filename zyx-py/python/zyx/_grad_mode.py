"""Blocks and functions whose results have no history: PyTorch's `no_grad` and its relatives.

Nothing is saved by them that is not saved anyway, as what nobody derives from is not kept; they say that what is
computed is constant to what comes later, as `Tensor.detach` says it of one tensor. The mode is a thread's.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

from ._core import _set_grad_enabled, is_grad_enabled  # noqa: F401


class _Mode:
    """A mode for a block, or for the calls of a function that it decorates."""

    def __init__(self, mode):
        self._mode, self._before = mode, []

    def __enter__(self):
        self._before.append(_set_grad_enabled(self._mode))
        return self

    def __exit__(self, *problem):
        _set_grad_enabled(self._before.pop())
        return False

    def __call__(self, function):
        import functools
        import inspect

        @functools.wraps(function)
        def called(*arguments, **options):
            with _Mode(self._mode):
                return function(*arguments, **options)

        @functools.wraps(function)
        def generated(*arguments, **options):
            # Between two elements the mode is the caller's.
            running, sent = function(*arguments, **options), None
            while True:
                with _Mode(self._mode):
                    try:
                        item = running.send(sent)
                    except StopIteration as stop:
                        return stop.value
                sent = yield item

        return generated if inspect.isgeneratorfunction(function) else called


class no_grad(_Mode):
    """Results have no history: no gradient flows through them. A block (`with no_grad():`) or a decorator."""

    def __new__(cls, function=None) -> "Any":
        return super().__new__(cls) if function is None else cls()(function)

    def __init__(self):
        super().__init__(False)


class enable_grad(_Mode):
    """Results keep their history again, within `no_grad`. A block or a decorator."""

    def __new__(cls, function=None) -> "Any":
        return super().__new__(cls) if function is None else cls()(function)

    def __init__(self):
        super().__init__(True)


class inference_mode(_Mode):
    """The same as `no_grad`; with `mode=False` as `enable_grad`."""

    def __new__(cls, mode=True) -> "Any":
        return cls()(mode) if callable(mode) else super().__new__(cls)

    def __init__(self, mode=True):
        super().__init__(not mode)


class set_grad_enabled(_Mode):
    """Switches histories off (`False`) or on, from here on or for a block."""

    def __init__(self, mode):
        super().__init__(bool(mode))
        self._found = _set_grad_enabled(self._mode)

    def __enter__(self):
        _set_grad_enabled(self._mode)
        return self

    def __exit__(self, *problem):
        _set_grad_enabled(self._found)
        return False

    def __call__(self, function):
        # As a decorator it is about the function alone.
        _set_grad_enabled(self._found)
        return super().__call__(function)
