"""Modules: layers, parameters by name, saving and loading.

Names, shapes and initial distributions of parameters are PyTorch's, so weights can be exchanged.
Every layer takes `device` and `dtype`, the place and type of its parameters.
"""

from .. import _aliases, _core
from .._core import KvCache, Parameter  # noqa: F401
from . import _pytorch, functional, init, utils  # noqa: F401
from .module import Layer, Module, ModuleDict, ModuleList, Sequential  # noqa: F401

Param = Parameter
__getattr__ = _aliases.ways(__name__, dict.fromkeys(("parallel", "DataParallel"), "nothing: devices do not communicate"))


def _lstm(self, x, state=None):
    """Outputs of all steps, and the last outputs and cells; `state` is such a pair."""
    y, h, c = self._native(x, *(state or ()))
    return y, (h, c)


def _lstm_cell(self, x, state=None):
    """Output and cell after an input; `state` is such a pair, zeros if it is not given."""
    h, c = state or [_zeros(self, x)] * 2
    return self._native(x, h, c)


def _cell(self, x, state=None):
    """The state after an input; the one before is zeros if it is not given."""
    return self._native(x, _zeros(self, x) if state is None else state)


def _zeros(cell, x):
    width = vars(cell)["weight_hh"].shape[1]
    return x.new_zeros([*x.shape[:-1], width])


def _convolve(self, x):
    """The result for a batch of images, or for one."""
    weight = vars(self)["weight"]
    if x.ndim == weight.ndim - 1:
        return self._native(x.unsqueeze(0)).squeeze(0)
    return self._native(x)


def _attention(self, query, key=None, value=None, *, key_padding_mask=None, attn_mask=None, is_causal=False,
               need_weights=True, average_attn_weights=True):  # fmt: skip
    """What queries find among keys (by default themselves) and values (by default the keys), and the
    weights by which they found it: the mean over heads, or those of each head.
    """
    key = query if key is None else key
    y, weights = self._native(query, key, key if value is None else value, is_causal, attn_mask, key_padding_mask)
    if not need_weights:
        return y, None
    return y, weights.mean(-3) if average_attn_weights else weights


def _encode(self, x, mask=None, *, key_padding_mask=None, is_causal=False):
    """The result for a sequence of which some steps are hidden from others."""
    return self._native(x, is_causal, mask, key_padding_mask)


def _decode(self, x, memory, *, mask=None, memory_mask=None, key_padding_mask=None, memory_key_padding_mask=None,
            is_causal=False, memory_is_causal=False):  # fmt: skip
    """The result for a sequence and the memory it looks at."""
    own = (is_causal, mask, key_padding_mask)
    return self._native(x, memory, *own, memory_is_causal, memory_mask, memory_key_padding_mask)


def _translate(self, source, target, *, source_mask=None, target_mask=None, source_key_padding_mask=None,
               target_key_padding_mask=None, source_is_causal=False, target_is_causal=False):  # fmt: skip
    """The result for a target, with the encoder's result for the source as memory."""
    first = (source_is_causal, source_mask, source_key_padding_mask)
    return self._native(source, target, *first, target_is_causal, target_mask, target_key_padding_mask)


def _attend_cached(self, x, cache):
    """The next words `[n, steps, width]` of a text of which the cache remembers the words before, and now
    these.
    """
    return self._native.attend_cached(x, cache)


def _same(self, x):
    """The input itself."""
    return x if isinstance(x, _core.Tensor) else self._native(x)


def _drop(self, x):
    """Elements zeroed in training; else the input itself."""
    return Layer.forward(self, x) if self.training or not isinstance(x, _core.Tensor) else x


def _stack(self, *given, encoder_layer=None, decoder_layer=None, norm=None, enable_nested_tensor=True, mask_check=True, **named):
    """`num_layers` copies of a layer, as PyTorch makes them; or that number and the options of each layer, all of which
    have initial values of their own then.
    """
    layer = encoder_layer or decoder_layer
    if layer is None and given and isinstance(given[0], Layer):
        layer, given = given[0], given[1:]
    if layer is None:
        Layer.__init__(self, *given, **named)
        return
    if len(given) > 1 or norm is not None:
        raise NotImplementedError("norm: put the normalisation behind, in a Sequential")
    if not given and "num_layers" not in named:
        raise TypeError("num_layers is missing")
    n = given[0] if given else named.pop("num_layers")
    options, more = vars(layer)["_given"]
    Layer.__init__(self, n, *options, **more, **named)
    for name, parameter in self.named_parameters():
        parameter.set(vars(layer)[name.split(".", 2)[2]].data)


# Layers that are made of others.
_STACKS = {"TransformerEncoder": _stack, "TransformerDecoder": _stack}

# Layers that take other things than tensors in order.
_FORWARDS = {
    "Lstm": _lstm, "LstmCell": _lstm_cell, "MultiheadAttention": _attention, "TransformerEncoderLayer": _encode,
    "TransformerEncoder": _encode, "TransformerDecoderLayer": _decode, "TransformerDecoder": _decode,
    "Transformer": _translate, "RnnCell": _cell, "GruCell": _cell, "Conv1d": _convolve, "Conv2d": _convolve,
    "Conv3d": _convolve, "Identity": _same, "Dropout": _drop, "Dropout1d": _drop, "Dropout2d": _drop, "Dropout3d": _drop,
    "AlphaDropout": _drop,
}  # fmt: skip

# Layers that write into their input, if they are told so, and how many options are before that.
_INPLACE = {
    "Relu": 0, "Relu6": 0, "Silu": 0, "Selu": 0, "Mish": 0, "Hardswish": 0, "Hardsigmoid": 0, "Elu": 1, "Celu": 1,
    "LeakyRelu": 1, "Dropout": 1, "Dropout1d": 1, "Dropout2d": 1, "Dropout3d": 1, "AlphaDropout": 1, "Hardtanh": 2,
    "Threshold": 2,
}  # fmt: skip


# Parameters that a layer may be made without: they are `None` then, as in PyTorch.
_OPTIONAL = {
    name: ("bias",)
    for name in ("Linear", "Bilinear", "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d")
}
_OPTIONAL |= {name: ("weight", "bias") for name in ("LayerNorm", "GroupNorm")}
_OPTIONAL["RmsNorm"] = ("weight",)
_OPTIONAL |= {f"InstanceNorm{axes}d": ("weight", "bias") for axes in (1, 2, 3)}
_OPTIONAL |= {
    f"BatchNorm{axes}d": ("weight", "bias", "running_mean", "running_var", "num_batches_tracked") for axes in (1, 2, 3)
}


def _layers():
    """A class for each layer of Rust."""
    for name in _core.LAYERS:
        make = getattr(_core, "make_" + name)
        members = {"__doc__": make.__doc__, "__module__": __name__, "_make": staticmethod(make)}
        members |= dict.fromkeys(_OPTIONAL.get(name, ()))
        if name in _INPLACE:
            members["_inplace_at"] = _INPLACE[name]
        if name in _FORWARDS:
            members["forward"] = _FORWARDS[name]
        if name in _STACKS:
            members["__init__"] = _STACKS[name]
        if name == "MultiheadAttention":
            members["attend_cached"] = _attend_cached
        globals()[name] = type(name, (Layer,), members)


_layers()

# PyTorch's spelling.
_ALIASES = {
    "ReLU": "Relu", "ReLU6": "Relu6", "SiLU": "Silu", "SELU": "Selu", "ELU": "Elu",
    "CELU": "Celu", "GLU": "Glu", "LeakyReLU": "LeakyRelu", "PReLU": "PRelu", "RMSNorm": "RmsNorm",
    "RNN": "Rnn", "GRU": "Gru", "LSTM": "Lstm", "RNNCell": "RnnCell", "GRUCell": "GruCell",
    "LSTMCell": "LstmCell", "MSELoss": "MseLoss",
    "PoissonNLLLoss": "PoissonNllLoss",
    "GaussianNLLLoss": "GaussianNllLoss", "CTCLoss": "CtcLoss", "LPPool1d": "LpPool1d", "LPPool2d": "LpPool2d",
    "LPPool3d": "LpPool3d",
}  # fmt: skip
for _alias, _name in _ALIASES.items():
    if _name in globals():
        globals()[_alias] = globals()[_name]

for _layer in _pytorch.LAYERS:
    globals()[_layer.__name__] = _layer
