"""Layers that are made of others, that run over steps, and that find their sizes with the first input."""

import math

from .. import _core
from .._core import Parameter, Tensor
from . import functional as F
from . import init
from ._layers import TABLE, Layer, _draw, _keep, row
from .module import Module, ModuleList, Sequential

Linear, LayerNorm, Dropout = TABLE["Linear"], TABLE["LayerNorm"], TABLE["Dropout"]

# Attention.


class NonDynamicallyQuantizableLinear(Linear):
    """The last product of attention, under PyTorch's name of it."""

    def __init__(self, in_features, out_features, bias=True, device=None, dtype=None):
        super().__init__(in_features, out_features, bias, device, dtype)


def _attention(self, options):
    width, heads = options["embed_dim"], options["num_heads"]
    if heads < 1 or width < 1 or width % heads:
        raise ValueError(f"MultiheadAttention: {heads} heads do not divide a width of {width}")
    if not 0 <= options["dropout"] <= 1:
        raise ValueError(f"MultiheadAttention: {options['dropout']} is not a probability")
    for key in ("kdim", "vdim"):
        options[key] = width if options[key] is None else options[key]
    _keep(self, options, "embed_dim", "kdim", "vdim", "num_heads", "dropout", "batch_first", "add_zero_attn")
    vars(self)["head_dim"] = width // heads
    own = {"device": options["device"], "dtype": options["dtype"] or _core._default_float()}
    empty = lambda *shape: Parameter(Tensor.zeros(*shape, **own))  # noqa: E731
    vars(self)["_qkv_same_embed_dim"] = same = self.kdim == width and self.vdim == width
    for name, columns in (("q_proj_weight", width), ("k_proj_weight", self.kdim), ("v_proj_weight", self.vdim)):
        vars(self)[name] = None if same else empty(width, columns)
    vars(self)["in_proj_weight"] = empty(3 * width, width) if same else None
    vars(self)["in_proj_bias"] = empty(3 * width) if options["bias"] else None
    self.out_proj = NonDynamicallyQuantizableLinear(width, width, options["bias"], options["device"], options["dtype"])
    for name in ("bias_k", "bias_v"):
        vars(self)[name] = empty(1, 1, width) if options["add_bias_kv"] else None
    for name, parameter in list(vars(self).items()):
        if isinstance(parameter, Parameter) and parameter.ndim == 2:
            init.xavier_uniform_(parameter)
        elif isinstance(parameter, Parameter) and name in ("bias_k", "bias_v"):
            init.xavier_normal_(parameter)
    if self.out_proj.bias is not None:
        init.zeros_(self.out_proj.bias)


def _weights(self):
    return self.in_proj_weight if self._qkv_same_embed_dim else [self.q_proj_weight, self.k_proj_weight, self.v_proj_weight]


def _attended(self, query, key=None, value=None, key_padding_mask=None, need_weights=True, attn_mask=None, average_attn_weights=True, is_causal=False):
    key = query if key is None else key
    value = key if value is None else value
    batched = query.ndim == 3
    if query.ndim not in (2, 3) or key.ndim != query.ndim or value.ndim != query.ndim:
        raise ValueError(f"MultiheadAttention: query, key and value are all [steps, width] or all with an axis of examples, not {query.shape}, {key.shape}, {value.shape}")
    if not batched:
        given = [x.unsqueeze(0) for x in (query, key, value)]
        key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
    else:
        given = [x if self.batch_first else x.transpose(0, 1) for x in (query, key, value)]
    found, weights = F._attend(given, self.embed_dim, self.num_heads, _weights(self), self.in_proj_bias, self.bias_k, self.bias_v,
                               self.add_zero_attn, self.dropout if self.training else 0.0, key_padding_mask, need_weights, attn_mask, is_causal)  # fmt: skip
    found = self.out_proj(found)
    found = found.squeeze(0) if not batched else found if self.batch_first else found.transpose(0, 1)
    if weights is not None:
        weights = weights.mean(1) if average_attn_weights else weights
        weights = weights if batched else weights.squeeze(0)
    return found, weights


def _attend_cached(self, x, cache):
    """The next words `[n, steps, width]` of a text of which the cache remembers the words before, and now these."""
    n, steps, width = x.shape
    parts, weights = [], _weights(self)
    for i in range(3):
        part = slice(i * width, (i + 1) * width)
        y = F.linear(x, weights[i] if isinstance(weights, list) else weights[part], None if self.in_proj_bias is None else self.in_proj_bias[part])
        parts.append(y.reshape(n, steps, self.num_heads, self.head_dim).transpose(1, 2))
    if not isinstance(cache, _core.KvCache):
        raise TypeError(f"attend_cached needs an nn.KvCache, not {type(cache).__name__}")
    return self.out_proj(cache.attend(*parts).transpose(1, 2).reshape(n, steps, width))


row("MultiheadAttention", lambda self, embed_dim, num_heads, dropout=0.0, bias=True, add_bias_kv=False, add_zero_attn=False, kdim=None, vdim=None,
    batch_first=False, device=None, dtype=None: vars(), _attended, None, _attention,
    "Attention of queries to keys (by default the queries) and values (by default the keys): the result and the weights.",
    attend_cached=_attend_cached)

# Transformers.

_ACTIVATIONS = {"relu": F.relu, "gelu": F.gelu, "gelu_tanh": lambda x: F.gelu(x, "tanh")}


def _activation(activation):
    if isinstance(activation, str):
        if activation not in _ACTIVATIONS:
            raise RuntimeError(f"activation should be relu/gelu, not {activation}")
        return _ACTIVATIONS[activation]
    if not callable(activation):
        raise TypeError(f"activation is a function or its name, not {type(activation).__name__}")
    return activation


def _transformer_layer(attentions):
    def prepare(self, options):
        width, wide, dropout = options["d_model"], options["dim_feedforward"], options["dropout"]
        place = (options["device"], options["dtype"])
        for name in attentions:
            setattr(self, name, TABLE["MultiheadAttention"](width, options["nhead"], dropout, options["bias"], batch_first=options["batch_first"],
                                                            device=place[0], dtype=place[1]))  # fmt: skip
        self.linear1 = Linear(width, wide, options["bias"], *place)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(wide, width, options["bias"], *place)
        self.norm_first = options["norm_first"]
        for i in range(len(attentions) + 1):
            setattr(self, f"norm{i + 1}", LayerNorm(width, options["layer_norm_eps"], True, options["bias"], *place))
        for i in range(len(attentions) + 1):
            setattr(self, f"dropout{i + 1}", Dropout(dropout))
        activation = self.activation = _activation(options["activation"])
        if len(attentions) == 1:
            self.activation_relu_or_gelu = 1 if activation is F.relu or isinstance(activation, TABLE["ReLU"]) else 2 if activation is F.gelu or isinstance(activation, TABLE["GELU"]) else 0

    return prepare


def _self_attention(self, x, attn_mask, key_padding_mask, is_causal=False):
    found = self.self_attn(x, x, x, attn_mask=attn_mask, key_padding_mask=key_padding_mask, is_causal=is_causal, need_weights=False)[0]
    return self.dropout1(found)


def _memory_attention(self, x, mem, attn_mask, key_padding_mask, is_causal=False):
    found = self.multihead_attn(x, mem, mem, attn_mask=attn_mask, key_padding_mask=key_padding_mask, is_causal=is_causal, need_weights=False)[0]
    return self.dropout2(found)


def _feed(last):
    def feed(self, x):
        return getattr(self, last)(self.linear2(self.dropout(self.activation(self.linear1(x)))))

    return feed


def _encoded(self, src, src_mask=None, src_key_padding_mask=None, is_causal=False):
    if self.norm_first:
        src = src + self._sa_block(self.norm1(src), src_mask, src_key_padding_mask, is_causal)
        return src + self._ff_block(self.norm2(src))
    src = self.norm1(src + self._sa_block(src, src_mask, src_key_padding_mask, is_causal))
    return self.norm2(src + self._ff_block(src))


def _decoded(self, tgt, memory, tgt_mask=None, memory_mask=None, tgt_key_padding_mask=None, memory_key_padding_mask=None, tgt_is_causal=False, memory_is_causal=False):
    own, other = (tgt_mask, tgt_key_padding_mask, tgt_is_causal), (memory_mask, memory_key_padding_mask, memory_is_causal)
    if self.norm_first:
        tgt = tgt + self._sa_block(self.norm1(tgt), *own)
        tgt = tgt + self._mha_block(self.norm2(tgt), memory, *other)
        return tgt + self._ff_block(self.norm3(tgt))
    tgt = self.norm1(tgt + self._sa_block(tgt, *own))
    tgt = self.norm2(tgt + self._mha_block(tgt, memory, *other))
    return self.norm3(tgt + self._ff_block(tgt))


_LAYER = lambda self, d_model, nhead, dim_feedforward=2048, dropout=0.1, activation=F.relu, layer_norm_eps=1e-5, batch_first=False, norm_first=False, bias=True, device=None, dtype=None: vars()  # noqa: E501, E731
row("TransformerEncoderLayer", _LAYER, _encoded, None, _transformer_layer(["self_attn"]), "Attention of a sequence to itself, then two products at every step, "
    "both beside a residual.", _sa_block=_self_attention, _ff_block=_feed("dropout2"))
_LAYER = lambda self, d_model, nhead, dim_feedforward=2048, dropout=0.1, activation=F.relu, layer_norm_eps=1e-5, batch_first=False, norm_first=False, bias=True, device=None, dtype=None: vars()  # noqa: E501, E731
row("TransformerDecoderLayer", _LAYER, _decoded, None, _transformer_layer(["self_attn", "multihead_attn"]), "Attention of a sequence to itself, then to a memory, "
    "then two products at every step, all beside a residual.", _sa_block=_self_attention, _mha_block=_memory_attention, _ff_block=_feed("dropout3"))


def _stack(kind):
    def prepare(self, options):
        layer, n = options[f"{kind}_layer"], options["num_layers"]
        if not isinstance(layer, Module):
            raise TypeError(f"{kind}_layer is a layer that is copied num_layers times, not {type(layer).__name__}")
        import copy

        self.layers = ModuleList([copy.deepcopy(layer) for _ in range(n)])
        self.num_layers, self.norm = n, options["norm"]
        if kind == "encoder":
            self.enable_nested_tensor, self.use_nested_tensor, self.mask_check = options["enable_nested_tensor"], False, options["mask_check"]

    return prepare


def _encoded_all(self, src, mask=None, src_key_padding_mask=None, is_causal=None):
    for layer in self.layers:
        src = layer(src, src_mask=mask, src_key_padding_mask=src_key_padding_mask, is_causal=bool(is_causal))
    return src if self.norm is None else self.norm(src)


def _decoded_all(self, tgt, memory, tgt_mask=None, memory_mask=None, tgt_key_padding_mask=None, memory_key_padding_mask=None, tgt_is_causal=None, memory_is_causal=False):
    for layer in self.layers:
        tgt = layer(tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask, tgt_key_padding_mask=tgt_key_padding_mask,
                    memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=bool(tgt_is_causal), memory_is_causal=memory_is_causal)  # fmt: skip
    return tgt if self.norm is None else self.norm(tgt)


row("TransformerEncoder", lambda self, encoder_layer, num_layers, norm=None, enable_nested_tensor=True, mask_check=True: vars(), _encoded_all, None,
    _stack("encoder"), "`num_layers` copies of a layer one after the other, with a normalisation at the end if there is one.")
row("TransformerDecoder", lambda self, decoder_layer, num_layers, norm=None: vars(), _decoded_all, None, _stack("decoder"),
    "`num_layers` copies of a layer one after the other, with a normalisation at the end if there is one.")


def _transformer(self, options):
    names = ("d_model", "nhead", "dim_feedforward", "dropout", "activation", "layer_norm_eps", "batch_first", "norm_first", "bias", "device", "dtype")
    given = [options[name] for name in names]
    for kind in ("encoder", "decoder"):
        if options[f"custom_{kind}"] is not None:
            setattr(self, kind, options[f"custom_{kind}"])
            continue
        layer = TABLE[f"Transformer{kind.title()}Layer"](*given)
        norm = LayerNorm(options["d_model"], options["layer_norm_eps"], True, options["bias"], options["device"], options["dtype"])
        setattr(self, kind, TABLE[f"Transformer{kind.title()}"](layer, options[f"num_{kind}_layers"], norm))
    for parameter in self.parameters():
        if parameter.ndim > 1:
            init.xavier_uniform_(parameter)
    _keep(self, options, "d_model", "nhead", "batch_first")


def _translated(self, src, tgt, src_mask=None, tgt_mask=None, memory_mask=None, src_key_padding_mask=None, tgt_key_padding_mask=None,
                memory_key_padding_mask=None, src_is_causal=None, tgt_is_causal=None, memory_is_causal=False):  # fmt: skip
    if src.ndim != tgt.ndim or src.ndim == 3 and src.shape[not self.batch_first] != tgt.shape[not self.batch_first]:
        raise RuntimeError("the batch number of src and tgt must be equal")
    if src.shape[-1] != self.d_model or tgt.shape[-1] != self.d_model:
        raise RuntimeError("the feature number of src and tgt must be equal to d_model")
    memory = self.encoder(src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal)
    return self.decoder(tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask, tgt_key_padding_mask=tgt_key_padding_mask,
                        memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=tgt_is_causal, memory_is_causal=memory_is_causal)  # fmt: skip


def _square_mask(sz, device=None, dtype=None):
    """A mask `[sz, sz]` that hides later steps: `-inf` above the diagonal."""
    return Tensor.full((sz, sz), -float("inf"), dtype=dtype or _core._default_float(), device=device).triu(1)


row("Transformer", lambda self, d_model=512, nhead=8, num_encoder_layers=6, num_decoder_layers=6, dim_feedforward=2048, dropout=0.1, activation=F.relu,
    custom_encoder=None, custom_decoder=None, layer_norm_eps=1e-5, batch_first=False, norm_first=False, bias=True, device=None, dtype=None: vars(),
    _translated, None, _transformer, "An encoder, and a decoder that looks at its result.", generate_square_subsequent_mask=staticmethod(_square_mask))

# Recurrence.


class RNNBase(Layer):
    """The base of layers that run over the steps of a sequence."""

    _OPTIONS = ("mode", "input_size", "hidden_size", "num_layers", "bias", "batch_first", "dropout", "bidirectional", "proj_size")

    def _shown(self):
        text = f"{self.input_size}, {self.hidden_size}"
        for name, usual in (("proj_size", 0), ("num_layers", 1), ("bias", True), ("batch_first", False), ("dropout", 0.0), ("bidirectional", False)):
            if getattr(self, name) != usual:
                text += f", {name}={getattr(self, name)}"
        return text

    def _names(self):
        """The names of weights of each layer and direction."""
        kinds = ("weight_ih", "weight_hh") + ("bias_ih", "bias_hh") * bool(self.bias) + ("weight_hr",) * bool(self.proj_size)
        ends = [f"_l{i}{back}" for i in range(self.num_layers) for back in ("", "_reverse")[: 1 + self.bidirectional]]
        return [[kind + end for kind in kinds] for end in ends]

    @property
    def all_weights(self):
        """The weights of each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._names()]

    def flatten_parameters(self):
        """Nothing: weights are used as they are."""

    def _made(self):
        """The layer of Rust with these weights and options, or `None` where a weight is none of a layer of Rust."""
        native, options = vars(self).get("_native", (None, None))
        wanted = tuple(vars(self)[name] for name in self._OPTIONS)
        named = dict((name, vars(self).get(name)) for names in self._names() for name in names)
        if self.proj_size or not all(isinstance(p, Parameter) for p in named.values()):
            return None
        if native is None or options != wanted or any(not p.is_same(named[name]) for name, p in native.named_parameters()):
            kind, _, nonlinearity = self.mode.partition("_")
            given = [self.input_size, self.hidden_size, self.num_layers, bool(self.bias), bool(self.batch_first), float(self.dropout), bool(self.bidirectional)]
            if kind == "RNN":
                given.insert(3, nonlinearity.lower())
            first = next(iter(named.values()))
            native = getattr(_core, "make_" + kind.title())(*given, device=first.device, dtype=first.dtype)
            for name, p in named.items():
                try:
                    native.tie(name, p)
                except (TypeError, ValueError):
                    return None
            vars(self)["_native"] = native, wanted
        native.train(self.training)
        return native

    def __getstate__(self):
        # The layer of Rust is made again.
        return {name: value for name, value in vars(self).items() if name != "_native"}

    def forward(self, input, hx=None):
        from .utils.rnn import PackedSequence

        if isinstance(input, PackedSequence):
            return _packed(self, input, hx)
        if input.ndim not in (2, 3) or input.shape[-1] != self.input_size:
            raise RuntimeError(f"{type(self).__name__}: input.size(-1) must be equal to input_size {self.input_size}, the input has shape {input.shape}")
        F._same(type(self).__name__, input, vars(self)["weight_ih_l0"])
        states = () if hx is None else tuple(hx) if self.mode == "LSTM" else (hx,)
        native = self._made()
        if native is None:
            found, states = _over_steps(self, input, states, None)
        else:
            found, *states = native(input, *states)
        return found, tuple(states) if self.mode == "LSTM" else states[0]


def _packed(self, input, hx):
    from .utils.rnn import PackedSequence, pad_packed_sequence

    padded, lengths = pad_packed_sequence(PackedSequence(input.data, input.batch_sizes), batch_first=self.batch_first)
    states = () if hx is None else tuple(hx) if self.mode == "LSTM" else (hx,)
    if input.sorted_indices is not None:
        states = tuple(x.index_select(1, input.sorted_indices) for x in states)
    found, states = _over_steps(self, padded, states, lengths)
    if input.unsorted_indices is not None:
        states = tuple(x.index_select(1, input.unsorted_indices) for x in states)
    steps = found.transpose(0, 1) if self.batch_first else found
    rows = [steps[i, :n] for i, n in enumerate(input.batch_sizes.tolist())]
    packed = PackedSequence(Tensor.cat(rows, 0), input.batch_sizes, input.sorted_indices, input.unsorted_indices)
    return packed, tuple(states) if self.mode == "LSTM" else states[0]


def _over_steps(self, input, states, lengths):
    """The layers step by step, of weights of any kind, of sequences of several lengths."""
    batched = input.ndim == 3
    x = input.unsqueeze(1) if not batched else input.transpose(0, 1) if self.batch_first else input
    steps, n = x.shape[:2]
    names, directions = self._names(), 2 if self.bidirectional else 1
    widths = [self.proj_size or self.hidden_size] + [self.hidden_size] * (self.mode == "LSTM")
    if not states:
        states = [x.new_zeros((len(names), n, width)) for width in widths]
    elif not batched:
        states = [s.unsqueeze(1) for s in states]
    alive = None if lengths is None else [(lengths > t).to(device=x.device).unsqueeze(1) for t in range(steps)]
    last = [[] for _ in states]
    for layer in range(self.num_layers):
        if layer and self.dropout and self.training:
            x = x.dropout(self.dropout)
        outputs = []
        for direction in range(directions):
            place = layer * directions + direction
            weights = {name.split("_l")[0]: getattr(self, name) for name in names[place]}
            state, found = [s[place] for s in states], [None] * steps
            for t in reversed(range(steps)) if direction else range(steps):
                new = cell(self.mode, x[t], state, weights)
                if alive is not None:
                    new = [alive[t].where_(a, b) for a, b in zip(new, state)]
                state = new
                found[t] = state[0] if alive is None else alive[t].where_(state[0], 0.0)
            outputs.append(Tensor.stack(found, 0))
            for all_of, s in zip(last, state):
                all_of.append(s)
        x = outputs[0] if directions == 1 else Tensor.cat(outputs, -1)
    last = [Tensor.stack(parts, 0) for parts in last]
    if not batched:
        return x.squeeze(1), [s.squeeze(1) for s in last]
    return x.transpose(0, 1) if self.batch_first else x, last


def cell(mode, x, state, weights):
    """The next state of one step."""
    bias = weights.get("bias_ih"), weights.get("bias_hh")
    a, b = F.linear(x, weights["weight_ih"], bias[0]), F.linear(state[0], weights["weight_hh"], bias[1])
    if mode.startswith("RNN"):
        return [(a + b).tanh() if mode.endswith("TANH") else (a + b).relu()]
    if mode == "GRU":
        (r, z, c), (s, y, d) = a.chunk(3, -1), b.chunk(3, -1)
        keep, new = (z + y).sigmoid(), (c + (r + s).sigmoid() * d).tanh()
        return [new + keep * (state[0] - new)]
    i, f, g, o = (a + b).chunk(4, -1)
    memory = f.sigmoid() * state[1] + i.sigmoid() * g.tanh()
    h = o.sigmoid() * memory.tanh()
    return [F.linear(h, weights["weight_hr"]) if "weight_hr" in weights else h, memory]


def _recurrent(kind):
    def prepare(self, options):
        mode = kind
        if kind == "RNN":
            if options["nonlinearity"] not in ("tanh", "relu"):
                raise ValueError(f"Unknown nonlinearity '{options['nonlinearity']}'. Select from 'tanh' or 'relu'.")
            mode = f"RNN_{options['nonlinearity'].upper()}"
            _keep(self, options, "nonlinearity")
        options = {"proj_size": 0} | options | {"mode": mode}
        size, width, layers, drop = options["input_size"], options["hidden_size"], options["num_layers"], options["dropout"]
        if isinstance(drop, bool) or not isinstance(drop, (int, float)) or not 0 <= drop <= 1:
            raise ValueError(f"dropout should be a number in range [0, 1] representing the probability of an element being zeroed, not {drop!r}")
        for name in ("hidden_size", "num_layers"):
            if not isinstance(options[name], int):
                raise TypeError(f"{name} should be of type int, got: {type(options[name]).__name__}")
            if options[name] <= 0:
                raise ValueError(f"{name} must be greater than zero")
        if not 0 <= options["proj_size"] < width:
            raise ValueError("proj_size should be a positive integer or zero to disable projections, and smaller than hidden_size")
        if drop > 0 and layers == 1:
            import warnings

            warnings.warn(f"dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects num_layers greater than 1, "
                          f"but got dropout={drop} and num_layers={layers}", stacklevel=4)  # fmt: skip
        _keep(self, options, *RNNBase._OPTIONS)
        place = {"device": options["device"], "dtype": options["dtype"]}
        if self.proj_size:
            bound = 1 / math.sqrt(width)
            for i, names in enumerate(self._names()):
                inside = size if i < 1 + self.bidirectional else self.proj_size * (1 + self.bidirectional)
                shapes = {"weight_ih": (4 * width, inside), "weight_hh": (4 * width, self.proj_size), "weight_hr": (self.proj_size, width)}
                for name in names:
                    shape = shapes.get(name.rsplit("_l", 1)[0], (4 * width,))
                    vars(self)[name] = Parameter(Tensor.rand_range(-bound, bound, shape, dtype=place["dtype"] or _core._default_float(), device=place["device"]))
            return
        given = [size, width, layers, bool(options["bias"]), bool(options["batch_first"]), float(drop), bool(options["bidirectional"])]
        if kind == "RNN":
            given.insert(3, options["nonlinearity"])
        native = getattr(_core, "make_" + kind.title())(*given, **place)
        found = dict(native.named_parameters())
        for names in self._names():
            for name in names:
                vars(self)[name] = found[name]
        vars(self)["_native"] = native, tuple(vars(self)[name] for name in RNNBase._OPTIONS)

    return prepare


row("RNN", lambda self, input_size, hidden_size, num_layers=1, nonlinearity="tanh", bias=True, batch_first=False, dropout=0.0, bidirectional=False,
    device=None, dtype=None: vars(), RNNBase.forward, None, _recurrent("RNN"), "A plain recurrent network: outputs of all steps, and the last of each layer.",
    RNNBase)
row("GRU", lambda self, input_size, hidden_size, num_layers=1, bias=True, batch_first=False, dropout=0.0, bidirectional=False, device=None,
    dtype=None: vars(), RNNBase.forward, None, _recurrent("GRU"), "A gated recurrent unit: outputs of all steps, and the last of each layer.", RNNBase)
row("LSTM", lambda self, input_size, hidden_size, num_layers=1, bias=True, batch_first=False, dropout=0.0, bidirectional=False, proj_size=0, device=None,
    dtype=None: vars(), RNNBase.forward, None, _recurrent("LSTM"), "Long short-term memory: outputs of all steps, and the last outputs and cells; `hx` is such a pair.",
    RNNBase)


class RNNCellBase(Layer):
    """The base of layers of one step."""

    def _shown(self):
        text = f"{self.input_size}, {self.hidden_size}"
        text += "" if self.bias else f", bias={self.bias}"
        return text if vars(self).get("nonlinearity", "tanh") == "tanh" else f"{text}, nonlinearity={self.nonlinearity}"

    def _next(self, mode, input, state):
        if input.ndim not in (1, 2):
            raise ValueError(f"{type(self).__name__}: Expected input to be 1D or 2D, got {input.ndim}D instead")
        names = ("weight_ih", "weight_hh") + ("bias_ih", "bias_hh") * bool(self.bias)
        return cell(mode, input, state, {name: getattr(self, name) for name in names})

    def _zeros(self, input):
        return input.new_zeros([*input.shape[:-1], self.hidden_size])


def _cell(kind):
    def prepare(self, options):
        _keep(self, options, "input_size", "hidden_size", "bias")
        if "nonlinearity" in options:
            _keep(self, options, "nonlinearity")
            if self.nonlinearity not in ("tanh", "relu"):
                raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        _draw(self, kind, options, self.input_size, self.hidden_size, kept=("weight_ih", "weight_hh", "bias_ih", "bias_hh"))
        if not self.bias:
            vars(self).update(bias_ih=None, bias_hh=None)

    return prepare


row("RNNCell", lambda self, input_size, hidden_size, bias=True, nonlinearity="tanh", device=None, dtype=None: vars(),
    lambda self, input, hx=None: self._next("RNN_" + self.nonlinearity.upper(), input, [self._zeros(input) if hx is None else hx])[0], None, _cell("RnnCell"),
    "The state after an input; the one before is zeros if it is not given.", RNNCellBase)
row("GRUCell", lambda self, input_size, hidden_size, bias=True, device=None, dtype=None: vars(),
    lambda self, input, hx=None: self._next("GRU", input, [self._zeros(input) if hx is None else hx])[0], None, _cell("GruCell"),
    "The state after an input; the one before is zeros if it is not given.", RNNCellBase)
row("LSTMCell", lambda self, input_size, hidden_size, bias=True, device=None, dtype=None: vars(),
    lambda self, input, hx=None: tuple(self._next("LSTM", input, [self._zeros(input)] * 2 if hx is None else list(hx))), None, _cell("LstmCell"),
    "Output and cell after an input; `hx` is such a pair, zeros if it is not given.", RNNCellBase)

# Many classes.


def _many_classes(self, options):
    cutoffs, n = list(options["cutoffs"]), options["n_classes"]
    if not cutoffs:
        raise ValueError("cutoffs should be a sequence of length larger than 0")
    if cutoffs != sorted(set(cutoffs)) or min(cutoffs) <= 0 or max(cutoffs) > n - 1 or any(int(c) != c for c in cutoffs):
        raise ValueError("cutoffs should be a sequence of unique, positive integers sorted in an increasing order, where each value is between 1 and n_classes-1")
    options["cutoffs"] = [*cutoffs, n]
    _keep(self, options, "in_features", "n_classes", "cutoffs", "div_value", "head_bias")
    vars(self).update(shortlist_size=cutoffs[0], n_clusters=len(cutoffs), head_size=cutoffs[0] + len(cutoffs))
    place = (options["device"], options["dtype"])
    self.head = Linear(self.in_features, self.head_size, self.head_bias, *place)
    self.tail = ModuleList()
    for i in range(self.n_clusters):
        width, size = int(self.in_features // (self.div_value ** (i + 1))), self.cutoffs[i + 1] - self.cutoffs[i]
        self.tail.append(Sequential(Linear(self.in_features, width, False, *place), Linear(width, size, False, *place)))


def _all_log_probabilities(self, input):
    """The logarithms of the probabilities of all classes."""
    head = self.head(input).log_softmax(1)
    parts = [head[:, : self.shortlist_size]]
    for i, tail in enumerate(self.tail):
        parts.append(tail(input).log_softmax(1) + head[:, self.shortlist_size + i].unsqueeze(1))
    return Tensor.cat(parts, 1)


def _target_log_probabilities(self, input, target):
    single = input.ndim == 1
    if single:
        input, target = input.unsqueeze(0), target.unsqueeze(0)
    output = self.log_prob(input).gather(1, target.unsqueeze(1).cast("int64")).squeeze(1)
    loss = (-output).mean()
    from collections import namedtuple

    kind = globals().setdefault("_ASMoutput", namedtuple("_ASMoutput", ["output", "loss"]))
    return kind(output.squeeze(0) if single else output, loss)


row("AdaptiveLogSoftmaxWithLoss", lambda self, in_features, n_classes, cutoffs, div_value=4.0, head_bias=False, device=None, dtype=None: vars(),
    _target_log_probabilities, None, _many_classes, "The log probability of the right one of many classes, of which the rare ones are in clusters (Grave et al. 2017); and the loss.",
    log_prob=_all_log_probabilities, predict=lambda self, input: self.log_prob(input).argmax(1))
