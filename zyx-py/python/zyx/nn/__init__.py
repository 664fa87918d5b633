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
def Buffer(data=None, *, persistent=True):
    """State of a module: part of `state_dict`, moved by `to`, not trained."""
    if not persistent:
        raise NotImplementedError("Buffer: persistent=False; register_buffer(name, tensor, persistent=False) of the module")
    return Parameter._state(_core.tensor(0.0) if data is None else data)


_SPELLED = {name.lower(): name for name in _TABLE}
# Parts of the package that are imported at their first use.
_PARTS = ("parallel", "attention", "modules", "parameter")
_ways = _aliases.ways(__name__, {})


def _layer(name):
    """The class of a layer: of the table, in PyTorch's spelling or that of Rust; or of Rust alone."""
    if name in _TABLE:
        return _TABLE[name]
    spelled = _SPELLED.get(name.lower())
    # `Gelu` is another function than `GELU`.
    if spelled is not None and name != "Gelu":
        return _TABLE[spelled]
    make = getattr(_core, "make_" + name)
    return type(name, (NativeLayer,), {"__doc__": make.__doc__, "__module__": __name__, "_make": staticmethod(make)})


def __getattr__(name):
    import importlib

    if name in _TABLE or name in _core.LAYERS:
        found = _layer(name)
    elif name in _PARTS:
        found = importlib.import_module("." + name, __name__)
    elif name == "DataParallel":
        found = importlib.import_module(".parallel", __name__).DataParallel
    elif name == "__all__":
        return [n for n in __dir__() if not n.startswith("_")]
    else:
        if name.startswith(("Lazy", "Uninitialized")):
            from ._lazy import LAZY

            if name in LAZY:
                globals().update(LAZY)
                return LAZY[name]
        return _ways(name)
    globals()[name] = found
    return found


def __dir__():
    lazy = [f"Lazy{kind}{axes}d" for kind in ("Conv", "ConvTranspose", "BatchNorm", "InstanceNorm") for axes in (1, 2, 3)]
    return sorted({*globals(), *_TABLE, *_core.LAYERS, *_PARTS, *lazy, "LazyLinear", "UninitializedParameter", "UninitializedBuffer", "DataParallel"})
