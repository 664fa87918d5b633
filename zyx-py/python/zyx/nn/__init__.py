"""Modules: layers, parameters by name, saving and loading.

Names, options, attributes, shapes and initial distributions of parameters are PyTorch's, so weights can be exchanged.
Every layer with parameters takes `device` and `dtype`, their place and type. Layers that PyTorch lacks are those of Rust.
"""

from .. import _aliases, _core
from .._core import KvCache, Parameter  # noqa: F401
from . import functional, init, module, utils  # noqa: F401
from ._compound import RNNBase, RNNCellBase  # noqa: F401
from ._layers import TABLE as _TABLE
from .module import Module, ModuleDict, ModuleList, NativeLayer, ParameterDict, ParameterList, Sequential  # noqa: F401

Param = Parameter
globals().update(_TABLE)


def Buffer(data=None, *, persistent=True):
    """State of a module: part of `state_dict`, moved by `to`, not trained."""
    if not persistent:
        raise NotImplementedError("Buffer: persistent=False; register_buffer(name, tensor, persistent=False) of the module")
    return Parameter._state(_core.tensor(0.0) if data is None else data)


def _natives():
    """A class for each layer of Rust that the table lacks, and its name of Rust for others."""
    known = {name.lower(): name for name in _TABLE}
    for name in _core.LAYERS:
        theirs = known.get(name.lower())
        # `Gelu` is another function than `GELU`.
        if theirs is not None and name != "Gelu":
            globals()[name] = _TABLE[theirs]
            continue
        make = getattr(_core, "make_" + name)
        globals()[name] = type(name, (NativeLayer,), {"__doc__": make.__doc__, "__module__": __name__, "_make": staticmethod(make)})


_natives()
_ways = _aliases.ways(__name__, {})


def __getattr__(name):
    import importlib

    if name.startswith(("Lazy", "Uninitialized")):
        from ._lazy import LAZY

        if name in LAZY:
            globals().update(LAZY)
            return LAZY[name]
    if name == "DataParallel":
        found = importlib.import_module(".parallel", __name__).DataParallel
    elif name in ("parallel", "attention", "modules", "parameter"):
        found = importlib.import_module("." + name, __name__)
    else:
        return _ways(name)
    globals()[name] = found
    return found


def __dir__():
    lazy = [f"Lazy{kind}{axes}d" for kind in ("Conv", "ConvTranspose", "BatchNorm", "InstanceNorm") for axes in (1, 2, 3)]
    return sorted({*globals(), *lazy, "LazyLinear", "UninitializedParameter", "UninitializedBuffer", "DataParallel", "parallel", "attention",
                   "modules", "parameter"})  # fmt: skip
