"""How functions that are made of several operations treat halves."""

from ._core import Tensor

_HALVES, _FLOATS = ("float16", "bfloat16"), ("float16", "bfloat16", "float32", "float64")


def _parts(value):
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for part in value:
            yield from _parts(part)


def _cast(value, given, dtype):
    """The tensors of some dtypes in another, in tuples and lists too."""
    if isinstance(value, Tensor):
        return value.cast(dtype) if value.dtype.name in given else value
    if type(value) in (tuple, list):
        return type(value)(_cast(part, given, dtype) for part in value)
    return value


def wrapper(known, function, module="zyx"):
    """A function that looks like another: what `functools.wraps` does, which takes longer to import."""
    function.__name__, function.__qualname__, function.__doc__ = known.__name__, known.__qualname__, known.__doc__
    # Where pickles find it.
    function.__wrapped__, function.__module__ = known, module
    return function


# Calls a function with the casts of `zyx.amp.autocast`, once that is used.
call_with_casts = None


def in_steps(function):
    """A function made of several operations: halves are computed in `float32` and rounded once."""

    def computed(*arguments, **options):
        if call_with_casts is None:
            return rounded(*arguments, **options)
        return call_with_casts(function.__name__, rounded, arguments, options)

    def rounded(*arguments, **options):
        dtypes = {x.dtype.name for x in _parts([arguments, list(options.values())])} & set(_FLOATS)
        if len(dtypes) != 1 or not dtypes <= set(_HALVES):
            # Nothing is rounded beside wider floats, nor where both halves meet.
            return function(*arguments, **options)
        wide = [_cast(value, _HALVES, "float32") for value in arguments]
        found = function(*wide, **{name: _cast(value, _HALVES, "float32") for name, value in options.items()})
        return _cast(found, ("float32",), dtypes.pop())

    computed.is_in_steps = True
    return wrapper(function, computed, function.__module__)
