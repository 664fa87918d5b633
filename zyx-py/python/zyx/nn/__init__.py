"""Modules: layers, parameters by name, saving and loading.

Names, shapes and initial distributions of parameters are PyTorch's, so weights can be exchanged.
Every layer takes `device` and `dtype`, the place and type of its parameters.
"""

from .. import _core
from .._core import Parameter  # noqa: F401
from . import functional  # noqa: F401
from .module import Layer, Module, ModuleDict, ModuleList, Sequential  # noqa: F401

Param = Parameter


def _layers():
    """A class for each layer of Rust."""
    for name in _core.LAYERS:
        make = getattr(_core, "make_" + name)
        members = {"__doc__": make.__doc__, "__module__": __name__, "_make": staticmethod(make)}
        globals()[name] = type(name, (Layer,), members)


_layers()

# PyTorch's spelling.
_ALIASES = {
    "ReLU": "Relu", "ReLU6": "Relu6", "GELU": "Gelu", "SiLU": "Silu", "SELU": "Selu", "ELU": "Elu", "CELU": "Celu",
    "GLU": "Glu", "LeakyReLU": "LeakyRelu", "PReLU": "PRelu", "RMSNorm": "RmsNorm", "RNN": "Rnn", "GRU": "Gru",
    "LSTM": "Lstm", "MultiheadAttention": "MultiheadAttention", "Hardswish": "HardSwish", "Hardtanh": "HardTanh",
    "Hardsigmoid": "HardSigmoid", "LogSigmoid": "LogSigmoid", "MSELoss": "MseLoss", "L1Loss": "L1Loss",
    "NLLLoss": "NllLoss", "BCELoss": "BceLoss", "BCEWithLogitsLoss": "BceWithLogitsLoss", "KLDivLoss": "KlDivLoss",
    "CTCLoss": "CtcLoss",
}  # fmt: skip
for _alias, _name in _ALIASES.items():
    if _name in globals():
        globals()[_alias] = globals()[_name]
