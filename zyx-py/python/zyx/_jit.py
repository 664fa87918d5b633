"""Functions that are traced once and replayed."""

import _thread

from ._core import Jit, Tensor, tensor

_TENSOR = object()
# Gives the modes of `zyx.amp.autocast`, once that is used.
_mode = None


def jit(function=None, *, max_kinds=64):
    """A function that is traced once for each shape, dtype and device of its tensors, and replayed
    after that: a call takes microseconds, however many operations it does.

        @zyx.jit
        def step(w, x, y):
            loss, dw = zyx.value_and_grad(lambda w: ((x @ w - y) ** 2).mean())(w)
            return w - 0.1 * dw, loss

    Arguments and results are tensors, in lists, tuples and dictionaries if need be, and anything
    else that can be hashed: the function is traced again when the latter differ. While it is
    traced, tensors have no value. What the function does besides computing tensors happens then and
    not again: weights that change belong into the arguments (a layer's are those of the first call),
    and random numbers are the same each time. Results have no history; take gradients inside.
    What it writes to, arguments and other tensors, is written in every call.

    At most `max_kinds` kinds of arguments are kept, those used last; one that comes back after that
    is traced again. `@zyx.jit(max_kinds=200)` keeps more.
    """
    if function is None:
        import functools

        return functools.partial(jit, max_kinds=max_kinds)
    return _Jitted(function, max_kinds)


class _Jitted:
    def __init__(self, function, max_kinds):
        # To import these takes as long as the rest of `import zyx`.
        import collections
        import functools

        if not callable(function):
            raise TypeError(f"jit: {type(function).__name__!r} object is not callable")
        if not isinstance(max_kinds, int) or max_kinds < 1:
            raise ValueError(f"jit: max_kinds={max_kinds!r} is not a number of kinds, 1 at least")
        self._function = function
        self._max_kinds = max_kinds
        self._known = collections.OrderedDict()
        self._lock = _thread.allocate_lock()
        functools.update_wrapper(self, function, updated=())

    def __call__(self, *arguments, **options):
        tensors = []
        what = _taken_apart((arguments, options), tensors)
        key = (what, tuple((x.shape, x.dtype, x.device) for x in tensors), _mode and _mode())
        try:
            known = self._known.get(key)
        except TypeError as error:
            raise TypeError(f"jit: an argument that is no tensor has to be hashable ({error})") from None
        if known is None:
            known = _Kind(self._function, what)
        results = known.step(tensors)
        with self._lock:
            self._known[key] = known
            self._known.move_to_end(key)
            dropped = self._known.popitem(last=False) if len(self._known) > self._max_kinds else None
        # Not under the lock: what it holds may run code when it goes.
        del dropped
        return _put_together(known.results[0], iter(results), tensors)

    def __get__(self, instance, owner=None):
        import types

        return self if instance is None else types.MethodType(self, instance)

    def __reduce__(self):
        # As functions are: by name in pickles, themselves in copies.
        return self.__qualname__

    @property
    def traces(self):
        """For how many kinds of arguments plans are kept."""
        return len(self._known)


class _Kind:
    """The function for one kind of arguments."""

    def __init__(self, function, what):
        # What the results are but for their tensors; not in `self`, which `traced` would refer to.
        self.results = kept = [None]

        def traced(tensors):
            arguments, options = _put_together(what, iter(tensors))
            found = []
            kept[0] = _taken_apart(function(*arguments, **options), found, tensors)
            return found

        self.step = Jit(traced)


def _taken_apart(value, tensors, arguments=()):
    """What `value` is but for its tensors, which are appended, and those that are arguments themselves."""
    if isinstance(value, Tensor):
        for i, argument in enumerate(arguments):
            if value is argument and argument._version:
                return (_TENSOR, i)
        tensors.append(value)
        return _TENSOR
    if isinstance(value, (tuple, list)):
        return (type(value), tuple(_taken_apart(x, tensors, arguments) for x in value))
    if isinstance(value, dict):
        return (dict, tuple(value), tuple(_taken_apart(x, tensors, arguments) for x in value.values()))
    if type(value).__module__ == "numpy" and hasattr(value, "__array__") and getattr(value, "ndim", 0):
        tensors.append(tensor(value))
        return _TENSOR
    # The type, as 1, 1.0 and True are equal.
    return (None, type(value), value)


def _put_together(what, tensors, arguments=()):
    if what is _TENSOR:
        return next(tensors)
    kind, *rest = what
    if kind is _TENSOR:
        return arguments[rest[0]]
    if kind is None:
        return rest[1]
    if kind is dict:
        return dict(zip(rest[0], [_put_together(x, tensors, arguments) for x in rest[1]]))
    values = [_put_together(x, tensors, arguments) for x in rest[0]]
    # A named tuple takes its fields one by one.
    return kind(*values) if hasattr(kind, "_fields") else kind(values)


def _itself(obj=None, *given, **options):
    """The function or module itself: PyTorch's compiler of scripts is not needed, every computation is compiled."""
    return (lambda obj: obj) if obj is None else obj


def _no_file(*given, **options):
    """An error: a program is no file here. `zyx.save` keeps weights and models."""
    raise NotImplementedError("jit.save, jit.load: a program is no file here; zyx.save(model, f), or zyx.onnx for other programs")


# Names of `torch.jit`.
jit.script = jit.trace = jit.trace_module = jit.ignore = jit.unused = jit.export = jit.optimize_for_inference = jit.freeze = jit.script_if_tracing = _itself
jit.is_scripting = jit.is_tracing = lambda: False
jit.annotate = lambda kind, value: value
jit.save = jit.load = _no_file
