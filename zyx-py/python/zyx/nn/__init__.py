"""Modules: layers, parameters by name, saving and loading.

Names, shapes and initial distributions of parameters are PyTorch's, so weights can be exchanged.
Every layer takes `device` and `dtype`, the place and type of its parameters.
"""

from .. import _core
from .._core import KvCache, Parameter  # noqa: F401
from . import functional  # noqa: F401
from .module import Layer, Module, ModuleDict, ModuleList, Sequential  # noqa: F401

Param = Parameter


def _lstm(self, x, state=None):
    """Outputs of all steps, and the last outputs and cells; `state` is such a pair."""
    y, h, c = self._native(x, *(state or ()))
    return y, (h, c)


def _lstm_cell(self, x, state):
    """Output and cell after an input; `state` is such a pair."""
    return self._native(x, *state)


def _attention(self, query, key=None, value=None, *, key_padding_mask=None, attn_mask=None, is_causal=False):
    """What queries find among keys (by default themselves) and values (by default the keys), and the
    weights by which they found it.
    """
    key = query if key is None else key
    return self._native(query, key, key if value is None else value, is_causal, attn_mask, key_padding_mask)


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


# Layers that take other things than tensors in order.
_FORWARDS = {
    "Lstm": _lstm, "LstmCell": _lstm_cell, "MultiheadAttention": _attention, "TransformerEncoderLayer": _encode,
    "TransformerEncoder": _encode, "TransformerDecoderLayer": _decode, "TransformerDecoder": _decode,
    "Transformer": _translate,
}  # fmt: skip


def _layers():
    """A class for each layer of Rust."""
    for name in _core.LAYERS:
        make = getattr(_core, "make_" + name)
        members = {"__doc__": make.__doc__, "__module__": __name__, "_make": staticmethod(make)}
        if name in _FORWARDS:
            members["forward"] = _FORWARDS[name]
        if name == "MultiheadAttention":
            members["attend_cached"] = _attend_cached
        globals()[name] = type(name, (Layer,), members)


_layers()

# PyTorch's spelling.
_ALIASES = {
    "ReLU": "Relu", "ReLU6": "Relu6", "GELU": "Gelu", "SiLU": "Silu", "SELU": "Selu", "ELU": "Elu",
    "CELU": "Celu", "GLU": "Glu", "LeakyReLU": "LeakyRelu", "PReLU": "PRelu", "RMSNorm": "RmsNorm",
    "RNN": "Rnn", "GRU": "Gru", "LSTM": "Lstm", "RNNCell": "RnnCell", "GRUCell": "GruCell",
    "LSTMCell": "LstmCell", "MSELoss": "MseLoss", "NLLLoss": "NllLoss", "BCELoss": "BceLoss",
    "BCEWithLogitsLoss": "BceWithLogitsLoss", "KLDivLoss": "KlDivLoss", "PoissonNLLLoss": "PoissonNllLoss",
    "GaussianNLLLoss": "GaussianNllLoss", "CTCLoss": "CtcLoss", "LPPool1d": "LpPool1d", "LPPool2d": "LpPool2d",
    "LPPool3d": "LpPool3d",
}  # fmt: skip
for _alias, _name in _ALIASES.items():
    if _name in globals():
        globals()[_alias] = globals()[_name]
