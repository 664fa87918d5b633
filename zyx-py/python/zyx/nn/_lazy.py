"""Layers whose first size the first input tells: `LazyLinear`, `LazyConv2d`, `LazyBatchNorm1d` and their kin."""

import inspect

from .._core import Parameter, Tensor
from ._layers import TABLE


class UninitializedParameter:
    """The parameter of a lazy layer before its first input."""

    requires_grad = True

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        raise ValueError(f"a parameter of a lazy layer has no {name!r} before the first input: call the module once")


class UninitializedBuffer(UninitializedParameter):
    """The buffer of a lazy layer before its first input."""

    requires_grad = False


class _Lazy:
    """A layer that becomes its base class with the first input."""

    def has_uninitialized_params(self):
        """Whether the layer has had no input yet."""
        return True

    def __call__(self, *inputs, **options):
        x = inputs[0] if inputs else next(iter(options.values()))
        x = x if isinstance(x, Tensor) else Tensor(x)
        given, named = self._given
        place = {key: named.get(key) or getattr(x, key) for key in ("device", "dtype")}
        kind = type(self)._becomes
        found = kind(x.shape[self._axis if x.ndim > abs(self._axis) else 0], *given, **(named | place))
        kept = {key: value for key, value in vars(self).items() if key in ("training", "_hooks")}
        vars(self).clear()
        vars(self).update(vars(found) | kept)
        self.__class__ = kind
        return self(*inputs, **options)


def _lazy(name, axis):
    base = TABLE[name]
    options = base.__init__.__wrapped__
    first = options.__code__.co_varnames[1]

    def __init__(self, *given, **named):
        bound = signature.bind(self, *given, **named).arguments
        # A small layer of the same options checks them and tells attributes.
        made = base(bound.get("groups", 1), *given, **named)
        for key, value in vars(made).items():
            if isinstance(value, Parameter):
                value = UninitializedBuffer() if value.is_state() else UninitializedParameter()
            vars(self)[key] = value
        vars(self).update({first: 0, "_given": (given, named)})

    parameters = list(inspect.signature(options).parameters.values())
    if name.startswith("InstanceNorm"):
        # As in PyTorch, where only the lazy ones are affine unless told.
        parameters = [p.replace(default=True) if p.name in ("affine", "track_running_stats") else p for p in parameters]
    signature = __init__.__signature__ = inspect.Signature([parameters[0], *parameters[2:]])
    if name.startswith("InstanceNorm"):
        plain = __init__

        def __init__(self, *given, **named):
            bound = signature.bind(self, *given, **named)
            bound.apply_defaults()
            plain(self, **{key: value for key, value in bound.arguments.items() if key != "self"})

        __init__.__signature__ = signature
    return type(f"Lazy{name}", (_Lazy, base), {
        "__init__": __init__, "_becomes": base, "cls_to_become": base, "_axis": axis, "__module__": "zyx.nn",
        "__doc__": f"`{name}` whose `{first}` the first input tells.",
    })  # fmt: skip


LAZY = {"LazyLinear": _lazy("Linear", -1)}
for _axes in (1, 2, 3):
    for _name in (f"Conv{_axes}d", f"ConvTranspose{_axes}d", f"InstanceNorm{_axes}d"):
        LAZY[f"Lazy{_name}"] = _lazy(_name, -1 - _axes)
    LAZY[f"LazyBatchNorm{_axes}d"] = _lazy(f"BatchNorm{_axes}d", 1)
LAZY |= {"UninitializedParameter": UninitializedParameter, "UninitializedBuffer": UninitializedBuffer}
