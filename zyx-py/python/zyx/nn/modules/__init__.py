"""Layers under the names of PyTorch's files, as in `nn.modules.batchnorm._BatchNorm`."""

import sys
import types

from .. import _compound, _layers
from .._layers import TABLE as _TABLE
from ..module import Module, ModuleDict, ModuleList, ParameterDict, ParameterList, Sequential  # noqa: F401
from . import utils  # noqa: F401

globals().update({_name: _TABLE[_name] for _name in _TABLE})

# File of PyTorch, and further names that users take from it.
_FILES = {
    "activation": (), "adaptive": (), "batchnorm": ("_BatchNorm", "_NormBase"), "channelshuffle": (), "container": (),
    "conv": ("_ConvNd", "_ConvTransposeNd"), "distance": (), "dropout": ("_DropoutNd",), "flatten": (), "fold": (),
    "instancenorm": ("_InstanceNorm",), "linear": (), "loss": ("_Loss",), "normalization": (), "padding": (), "pixelshuffle": (), "pooling": (),
    "rnn": ("RNNBase", "RNNCellBase"), "sparse": (), "transformer": (), "upsampling": (),
}  # fmt: skip


def _file(name, more):
    found = types.ModuleType(f"{__name__}.{name}", f"Layers under the name of PyTorch's file `{name}`.")
    vars(found).update({n: x for n, x in globals().items() if isinstance(x, type)})
    for n in more:
        vars(found)[n] = getattr(_layers, n, None) or getattr(_compound, n)
    sys.modules[found.__name__] = found
    return found


globals().update({_name: _file(_name, _more) for _name, _more in _FILES.items()})
loss._WeightedLoss = loss._Loss  # noqa: F821
linear.NonDynamicallyQuantizableLinear = _compound.NonDynamicallyQuantizableLinear  # noqa: F821
