"""The table of layers: PyTorch's options, the computation, and the printed form.

A row makes a class. Its options are a function with PyTorch's parameters, which gives them by name; they become attributes,
and the computation reads the attributes, so an attribute that is assigned counts from the next call. Weights are drawn by
the constructor of Rust of the same layer. Weights may be replaced by any tensor or parameter of a fitting shape.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

from .. import _core
from .._core import Parameter, Tensor, tensor
from . import functional as F
from .module import _GLOBAL, Module, _hooks, _located



class Table:
    """The classes of the rows by name, each made at its first use: to make all of them takes longer than to import them."""

    def __init__(self):
        self._rows, self._made = {}, {}

    def __getitem__(self, name):
        if name not in self._made:
            self._made[name] = _made(name, *self._rows[name])
        return self._made[name]

    def __contains__(self, name):
        return name in self._rows

    def __iter__(self):
        return iter(self._rows)

    def __len__(self):
        return len(self._rows)


TABLE = Table()
_PLACE = ("self", "device", "dtype")


class _MadeWith:
    """The options that a layer was made with. Modules and parameters among them are no parts of it."""

    def __init__(self, kind, given, named):
        self.kind, self.given, self.named = kind, given, named


def _ready(x):
    return x if isinstance(x, (Tensor, tuple, str)) or x is None or callable(x) else tensor(x)


class Layer(Module):
    """The base of layers: options are attributes, `forward` computes with them."""

    _shown = None

    def reset_parameters(self):
        """Draws all weights anew, as those of a new layer with the options that this one was made with."""
        if "_made_with" not in vars(self):
            return
        made = self._made_with
        fresh = TABLE[made.kind](*made.given, **made.named)
        for own, new in ((self.parameters(), fresh.parameters()), (self.buffers(), fresh.buffers())):
            if len(own) != len(new):
                raise RuntimeError(f"reset_parameters: {type(self).__name__} has {len(own)} weights, a new one {len(new)}")
            for p, q in zip(own, new):
                p.set(q.detach().to(p.device, p.dtype))

    def __call__(self, *inputs: "Any", **options: "Any") -> "Any":
        # As `Module.__call__`, which is not called for it: layers are called often.
        try:
            for x in inputs:
                if not isinstance(x, Tensor):
                    # Arrays, lists and numbers are tensors to a layer.
                    inputs = tuple(_ready(x) for x in inputs)
                    break
            if "_hooks" in self.__dict__ or _GLOBAL:
                return _hooks.call(self, inputs, options)
            return self.forward(*inputs, **options)
        except Exception as error:
            _located(self, error)
            raise

    def extra_repr(self):
        return "" if self._shown is None else self._shown()


class _NormBase(Layer):
    """Normalisations by statistics of channels."""


class _BatchNorm(_NormBase):
    """Batch normalisations."""


class _InstanceNorm(_NormBase):
    """Instance normalisations."""


class _ConvNd(Layer):
    """Convolutions."""


class _ConvTransposeNd(_ConvNd):
    """Transposed convolutions."""


class _DropoutNd(Layer):
    """Dropouts."""


class _Loss(Layer):
    """Losses."""


def row(name, options, forward, shown=None, prepare=None, doc=None, base=Layer, **more):
    """Adds a class to the table; see `_made`."""
    TABLE._rows[name] = options, forward, shown, prepare, doc, base, more


def _made(name, options, forward, shown, prepare, doc, base, more):
    """The class of a row. `prepare(self, options)` turns options into attributes and makes weights; without it all but
    `device` and `dtype` become attributes as they are.
    """
    options.__name__ = options.__qualname__ = name

    def __init__(self, *given, **named):
        values = options(self, *given, **named)
        if type(self).training is not True:
            vars(self)["training"] = True
        if prepare is None:
            for key, value in values.items():
                if key not in _PLACE:
                    vars(self)[key] = value
        else:
            prepare(self, values)
            vars(self)["_made_with"] = _MadeWith(name, given, named)
            if type(self).reset_parameters is not Layer.reset_parameters:
                # A class of a user that draws weights in its own way.
                self.reset_parameters()

    __init__.__wrapped__ = options
    forward.__name__, forward.__qualname__, forward.__doc__ = "forward", f"{name}.forward", doc
    members = {"__module__": "zyx.nn", "__doc__": doc, "__init__": __init__, "forward": forward, **more}
    if shown is not None:
        members["_shown"] = shown
    return type(name, (base,), members)


def _keep(self, options, *names):
    for name in names:
        vars(self)[name] = options[name]


def _draw(self, name, options, *given, kept=("weight", "bias")):
    """Weights as the layer of Rust draws them; those that it is made without are `None`."""
    native = getattr(_core, "make_" + name)(*given, device=options["device"], dtype=options["dtype"])
    found = dict(native.named_parameters())
    for key in kept:
        vars(self)[key] = found.get(key)


def _placed(self, lead=""):
    return f"{lead}inplace=True" if self.inplace else ""


# Activations.


def _plain(name, forward, doc):
    row(name, lambda self, *args, **kwargs: {}, forward, doc=doc)


_plain("Identity", lambda self, input: input, "The input.")
_plain("Sigmoid", lambda self, input: input.sigmoid(), "`1 / (1 + e^-x)`.")
_plain("Tanh", lambda self, input: input.tanh(), "The hyperbolic tangent.")
_plain("LogSigmoid", lambda self, input: input.logsigmoid(), "The logarithm of the sigmoid.")
_plain("Softsign", lambda self, input: input.softsign(), "`x / (1 + |x|)`.")
_plain("Tanhshrink", lambda self, input: input.tanhshrink(), "`x - tanh(x)`.")


def _softmax2d(self, input):
    if input.ndim not in (3, 4):
        raise ValueError(f"Softmax2d needs [n, channels, height, width] or [channels, height, width], not shape {input.shape}")
    return input.softmax(-3)


_plain("Softmax2d", _softmax2d, "The softmax over the channels at every place of images.")

for _name, _function, _doc in (
    ("ReLU", F.relu, "`max(x, 0)`."),
    ("ReLU6", F.relu6, "`x` limited to 0 ..= 6."),
    ("SELU", F.selu, "The self-normalising activation."),
    ("SiLU", F.silu, "`x * sigmoid(x)`."),
    ("Mish", F.mish, "`x * tanh(softplus(x))`."),
    ("Hardsigmoid", F.hardsigmoid, "The sigmoid in straight lines."),
    ("Hardswish", F.hardswish, "`x` times the sigmoid in straight lines."),
):
    row(_name, lambda self, inplace=False: vars(), lambda self, input, _f=_function: _f(input, self.inplace),
        None if _name.startswith("Hard") else _placed, doc=_doc, **({"min_val": 0.0, "max_val": 6.0} if _name == "ReLU6" else {}))  # fmt: skip

row("LeakyReLU", lambda self, negative_slope=1e-2, inplace=False: vars(),
    lambda self, input: F.leaky_relu(input, self.negative_slope, self.inplace),
    lambda self: f"negative_slope={self.negative_slope}{_placed(self, ', ')}", doc="`x` where positive, else `negative_slope * x`.")
row("ELU", lambda self, alpha=1.0, inplace=False: vars(), lambda self, input: F.elu(input, self.alpha, self.inplace),
    lambda self: f"alpha={self.alpha}{_placed(self, ', ')}", doc="`x` where positive, else `alpha (e^x - 1)`.")
row("CELU", lambda self, alpha=1.0, inplace=False: vars(), lambda self, input: F.celu(input, self.alpha, self.inplace),
    lambda self: f"alpha={self.alpha}{_placed(self, ', ')}", doc="`elu` that is smooth for every `alpha`.")
row("GELU", lambda self, approximate="none": vars(), lambda self, input: F.gelu(input, self.approximate),
    lambda self: f"approximate={self.approximate!r}", doc=F.gelu.__doc__)
row("Hardshrink", lambda self, lambd=0.5: vars(), lambda self, input: input.hardshrink(self.lambd), lambda self: f"{self.lambd}",
    doc="Values within `lambd` become 0.")
row("Softshrink", lambda self, lambd=0.5: vars(), lambda self, input: input.softshrink(self.lambd), lambda self: f"{self.lambd}",
    doc="Values within `lambd` become 0, the others move towards it by as much.")
row("Softplus", lambda self, beta=1.0, threshold=20.0: vars(), lambda self, input: F.softplus(input, self.beta, self.threshold),
    lambda self: f"beta={self.beta}, threshold={self.threshold}", doc=F.softplus.__doc__)
row("Threshold", lambda self, threshold, value, inplace=False: vars(),
    lambda self, input: F.threshold(input, self.threshold, self.value, self.inplace),
    lambda self: f"threshold={self.threshold}, value={self.value}{_placed(self, ', ')}", doc="`x` above the threshold, else `value`.")
row("RReLU", lambda self, lower=1.0 / 8, upper=1.0 / 3, inplace=False: vars(),
    lambda self, input: F.rrelu(input, self.lower, self.upper, self.training, self.inplace),
    lambda self: f"lower={self.lower}, upper={self.upper}{_placed(self, ', ')}", doc=F.rrelu.__doc__)


def _hardtanh(self, options):
    for old, new in (("min_value", "min_val"), ("max_value", "max_val")):
        if options[old] is not None:
            options[new] = options[old]
    if not options["max_val"] > options["min_val"]:
        raise ValueError(f"Hardtanh: max_val {options['max_val']} is not above min_val {options['min_val']}")
    _keep(self, options, "min_val", "max_val", "inplace")


row("Hardtanh", lambda self, min_val=-1.0, max_val=1.0, inplace=False, min_value=None, max_value=None: vars(),
    lambda self, input: F.hardtanh(input, self.min_val, self.max_val, self.inplace),
    lambda self: f"min_val={self.min_val}, max_val={self.max_val}{_placed(self, ', ')}", _hardtanh, "`x` limited to `min_val ..= max_val`.")

for _name, _function, _doc in (
    ("Softmax", F.softmax, "`exp(x) / sum(exp(x))` along an axis."),
    ("LogSoftmax", F.log_softmax, "The logarithm of the softmax."),
    ("Softmin", F.softmin, "The softmax of `-x`."),
):
    row(_name, lambda self, dim=None: vars(), lambda self, input, _f=_function: _f(input, self.dim), lambda self: f"dim={self.dim}", doc=_doc)
row("GLU", lambda self, dim=-1: vars(), lambda self, input: input.glu(self.dim), lambda self: f"dim={self.dim}",
    doc="One half of an axis times the sigmoid of the other.")


def _prelu(self, options):
    _keep(self, options, "num_parameters", "init")
    _draw(self, "PRelu", options, options["num_parameters"], kept=("weight",))
    if options["init"] != 0.25:
        self.weight.set(self.weight.detach().full_like(options["init"]))


row("PReLU", lambda self, num_parameters=1, init=0.25, device=None, dtype=None: vars(), lambda self, input: input.prelu(self.weight),
    lambda self: f"num_parameters={self.num_parameters}", _prelu, "`x` where positive, else `weight * x`. Parameter `weight` `[num_parameters]`.")

# Dropout.


def _dropout(self, options):
    p = options["p"]
    if not 0 <= p <= 1:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    _keep(self, options, "p", "inplace")


for _name, _function, _doc in (
    ("Dropout", F.dropout, "Zeros with probability `p` in training, the rest scaled up."),
    ("Dropout1d", F.dropout1d, "Channels of `[n, channels, length]` zeroed with probability `p` in training."),
    ("Dropout2d", F.dropout2d, "Channels of `[n, channels, height, width]` zeroed with probability `p` in training."),
    ("Dropout3d", F.dropout3d, "Channels of `[n, channels, depth, height, width]` zeroed with probability `p` in training."),
    ("AlphaDropout", F.alpha_dropout, F.alpha_dropout.__doc__),
    ("FeatureAlphaDropout", F.feature_alpha_dropout, F.feature_alpha_dropout.__doc__),
):
    row(_name, lambda self, p=0.5, inplace=False: vars(), lambda self, input, _f=_function: _f(input, self.p, self.training, self.inplace),
        lambda self: f"p={self.p}, inplace={self.inplace}", _dropout, _doc, _DropoutNd)  # fmt: skip

# Products.


def _linear(self, options):
    _keep(self, options, "in_features", "out_features")
    _draw(self, "Linear", options, options["in_features"], options["out_features"], bool(options["bias"]))


row("Linear", lambda self, in_features, out_features, bias=True, device=None, dtype=None: vars(),
    lambda self, input: F.linear(input, self.weight, self.bias),
    lambda self: f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}", _linear,
    "`x @ weight.T + bias` over the last axis. Parameters `weight` `[out, in]` and `bias` `[out]`.")


def _bilinear(self, options):
    _keep(self, options, "in1_features", "in2_features", "out_features")
    sizes = (self.in1_features, self.in2_features, self.out_features)
    if sizes[0] < 1:
        raise ValueError(f"in1_features {sizes[0]} is not above 0")
    _draw(self, "Bilinear", options, *sizes)
    if not options["bias"]:
        vars(self)["bias"] = None


row("Bilinear", lambda self, in1_features, in2_features, out_features, bias=True, device=None, dtype=None: vars(),
    lambda self, input1, input2: F.bilinear(input1, input2, self.weight, self.bias),
    lambda self: f"in1_features={self.in1_features}, in2_features={self.in2_features}, out_features={self.out_features}, bias={self.bias is not None}",
    _bilinear, "`x1 weight y + bias` of two inputs. Parameters `weight` `[out, in1, in2]` and `bias`.")


def _embedding(self, options):
    n, width, padding = options["num_embeddings"], options["embedding_dim"], options["padding_idx"]
    if padding is not None:
        if not -n <= padding < n:
            raise ValueError(f"padding_idx {padding} is none of {n} rows")
        options["padding_idx"] = padding % n
    _keep(self, options, "num_embeddings", "embedding_dim", "padding_idx", "max_norm", "norm_type", "scale_grad_by_freq", "sparse")
    if "mode" in options:
        if options["mode"] not in ("sum", "mean", "max"):
            raise ValueError(f"mode is 'sum', 'mean' or 'max', not {options['mode']!r}")
        _keep(self, options, "mode", "include_last_offset")
    if options["_weight"] is not None:
        weight = options["_weight"]
        if list(weight.shape) != [n, width]:
            raise ValueError(f"_weight of shape {weight.shape} is no table of {n} rows of {width}")
        vars(self)["weight"] = Parameter(weight)
    else:
        more = () if self.padding_idx is None else (self.padding_idx,)
        _draw(self, "Embedding", options, n, width, *more, kept=("weight",))
    if options.get("_freeze"):
        self.weight.requires_grad_(False)


def _table_shown(self):
    text = f"{self.num_embeddings}, {self.embedding_dim}"
    for name, usual in (("padding_idx", None), ("max_norm", None), ("norm_type", 2.0), ("scale_grad_by_freq", False), ("sparse", False)):
        if getattr(self, name) != usual:
            text += f", {name}={getattr(self, name)}"
    return text


def _bag_shown(self):
    text = f"{self.num_embeddings}, {self.embedding_dim}"
    for name, usual in (("max_norm", None), ("norm_type", 2.0), ("scale_grad_by_freq", False)):
        if getattr(self, name) != usual:
            text += f", {name}={getattr(self, name)}"
    text += f", mode={self.mode!r}"
    return text if self.padding_idx is None else f"{text}, padding_idx={self.padding_idx}"


def _pretrained(cls, embeddings, freeze=True, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, sparse=False):
    """The layer of a table that is there, by default frozen."""
    n, width = embeddings.shape
    return cls(n, width, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse, embeddings, freeze)


def _pretrained_bag(cls, embeddings, freeze=True, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, mode="mean", sparse=False,
                    include_last_offset=False, padding_idx=None):  # fmt: skip
    """The layer of a table that is there, by default frozen."""
    n, width = embeddings.shape
    found = cls(n, width, max_norm, norm_type, scale_grad_by_freq, mode, sparse, embeddings, include_last_offset, padding_idx)
    found.weight.requires_grad_(not freeze)
    return found


row("Embedding", lambda self, num_embeddings, embedding_dim, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False,
    sparse=False, _weight=None, _freeze=False, device=None, dtype=None: vars(),
    lambda self, input: F.embedding(input, self.weight, self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.sparse),
    _table_shown, _embedding, "Rows of a table by number. Parameter `weight` `[num_embeddings, embedding_dim]`. The row `padding_idx` "
    "stands for no word: it is zero and stays so.", from_pretrained=classmethod(_pretrained))
row("EmbeddingBag", lambda self, num_embeddings, embedding_dim, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, mode="mean",
    sparse=False, _weight=None, include_last_offset=False, padding_idx=None, device=None, dtype=None: vars(),
    lambda self, input, offsets=None, per_sample_weights=None: F.embedding_bag(input, self.weight, offsets, self.max_norm, self.norm_type,
    self.scale_grad_by_freq, self.mode, self.sparse, per_sample_weights, self.include_last_offset, self.padding_idx),
    _bag_shown, _embedding, "Bags of rows of a table, each made one row by `mode`. Parameter `weight` `[num_embeddings, embedding_dim]`.",
    from_pretrained=classmethod(_pretrained_bag))

# Convolutions.


def _each(n, axes, name):
    """A number for each axis."""
    if hasattr(n, "__index__"):
        return (n.__index__(),) * axes
    n = tuple(n)
    if len(n) == 1:
        return n * axes
    if len(n) != axes:
        raise ValueError(f"{name} {n} is not one number for each of {axes} axes")
    return n


def _convolution(axes, transposed):
    name = f"Conv{'Transpose' * transposed}{axes}d"

    def prepare(self, options):
        bias, padding, mode = bool(options["bias"]), options["padding"], options["padding_mode"]
        for key in ("kernel_size", "stride", "dilation"):
            options[key] = _each(options[key], axes, key)
        if not isinstance(padding, str):
            padding = options["padding"] = _each(padding, axes, "padding")
        options["output_padding"] = _each(options.get("output_padding", 0), axes, "output_padding")
        # Rust checks options and draws weights.
        pads = padding if isinstance(padding, str) else list(padding)
        given = [list(options[key]) for key in ("kernel_size", "stride")]
        if axes == 1 and not transposed:
            given = [n[0] for n in given]
        sizes, groups = (options["in_channels"], options["out_channels"]), options["groups"]
        dilation = options["dilation"][0] if axes == 1 and not transposed else list(options["dilation"])
        more = [pads, list(options["output_padding"]), groups, bias, dilation, mode] if transposed else [pads, dilation, groups, bias, mode]
        if axes == 1 and not transposed and not isinstance(pads, str):
            more[0] = pads[0]
        options["transposed"] = transposed
        _keep(self, options, "in_channels", "out_channels", "kernel_size", "stride", "padding", "dilation", "transposed", "output_padding",
              "groups", "padding_mode")  # fmt: skip
        _draw(self, name, options, *sizes, *given, *more)

    def shown(self):
        text = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        for key, usual in (("padding", (0,) * axes), ("dilation", (1,) * axes), ("output_padding", (0,) * axes), ("groups", 1)):
            if getattr(self, key) != usual:
                text += f", {key}={getattr(self, key)}"
        text += "" if self.bias is not None else ", bias=False"
        return text if self.padding_mode == "zeros" else f"{text}, padding_mode={self.padding_mode}"

    convolve = getattr(F, f"conv{axes}d")

    def forward(self, input):
        if self.padding_mode == "zeros":
            return convolve(input, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups)
        wanted = self.padding
        if isinstance(wanted, str):
            wanted = [d * (k - 1) if wanted == "same" else 0 for d, k in zip(self.dilation, self.kernel_size)]
            pads = [(n // 2, n - n // 2) for n in wanted]
        else:
            pads = [(n, n) for n in wanted]
        input = F.pad(input, [n for both in reversed(pads) for n in both], self.padding_mode)
        return convolve(input, self.weight, self.bias, self.stride, 0, self.dilation, self.groups)

    back = getattr(F, f"conv_transpose{axes}d")

    def spread(self, input, output_size=None):
        more = self.output_padding
        if output_size is not None:
            wanted, more = list(output_size)[-axes:], []
            sizes = zip(wanted, input.shape[-axes:], self.stride, self.padding, self.dilation, self.kernel_size)
            for out, n, step, around, apart, kernel in sizes:
                least = (n - 1) * step - 2 * around + apart * (kernel - 1) + 1
                if not least <= out < least + step:
                    raise ValueError(f"output_size {wanted}: this axis has from {least} to {least + step - 1} elements")
                more.append(out - least)
        return back(input, self.weight, self.bias, self.stride, self.padding, more, self.groups, self.dilation)

    if transposed:
        options = lambda self, in_channels, out_channels, kernel_size, stride=1, padding=0, output_padding=0, groups=1, bias=True, dilation=1, padding_mode="zeros", device=None, dtype=None: vars()  # noqa: E501, E731
        doc = f"Transposed convolution over {axes} axes of `[n, in, ..]` or `[in, ..]`: each element spreads to a window."
    else:
        options = lambda self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=True, padding_mode="zeros", device=None, dtype=None: vars()  # noqa: E501, E731
        doc = f'Convolution over {axes} axes of `[n, in, ..]` or `[in, ..]`. `padding` may be `"same"`, which keeps the extents, or `"valid"`.'
    row(name, options, spread if transposed else forward, shown, prepare, doc, _ConvTransposeNd if transposed else _ConvNd)


for _axes in (1, 2, 3):
    _convolution(_axes, False)
    _convolution(_axes, True)

# Normalisations.


def _norm_shown(self):
    return (f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, bias={self.bias is not None}, "
            f"track_running_stats={self.track_running_stats}")  # fmt: skip


_STATISTICS = ("weight", "bias", "running_mean", "running_var", "num_batches_tracked")


def _norm(name, drawn):
    def prepare(self, options):
        _keep(self, options, "num_features", "eps", "momentum", "affine", "track_running_stats")
        if "process_group" in options:
            _keep(self, options, "process_group")
        given = [options[key] for key in ("num_features", "eps", "momentum", "affine", "track_running_stats")]
        _draw(self, drawn, options, *given, kept=_STATISTICS)
        if not options["bias"]:
            vars(self)["bias"] = None

    return prepare


def _reset_statistics(self):
    """Running statistics as of a new layer."""
    if self.running_mean is not None:
        for place, value in ((self.running_mean, 0), (self.running_var, 1), (self.num_batches_tracked, 0)):
            place.set(place.detach().full_like(value))


def _checked(self, input, ranks):
    if input.ndim not in ranks:
        raise ValueError(f"{type(self).__name__}: expected {' or '.join(f'{n}D' for n in ranks)} input (got {input.ndim}D input)")


def _batch(ranks):
    def forward(self, input):
        _checked(self, input, ranks)
        mean, var, training, share = self.running_mean, self.running_var, self.training, self.momentum
        if training and self.track_running_stats and self.num_batches_tracked is not None:
            count = self.num_batches_tracked
            # Else the count would be an ever longer sum while no optimizer computes it.
            count.realize()
            count.set(count.detach() + 1)
            if share is None:
                share = count.detach().cast(mean.dtype).recip()
        training = training or mean is None
        tracked = training and self.track_running_stats and self.training
        return F.batch_norm(input, mean if tracked or not training else None, var if tracked or not training else None, self.weight, self.bias,
                            training, 0.0 if share is None else share, self.eps)  # fmt: skip

    return forward


def _instance(axes):
    def forward(self, input):
        _checked(self, input, (axes + 1, axes + 2))
        if input.ndim == axes + 1:
            return forward(self, input.unsqueeze(0)).squeeze(0)
        if input.shape[1] != self.num_features and self.affine:
            raise ValueError(f"{type(self).__name__}: expected {self.num_features} channels, the input has shape {input.shape}")
        own = self.training or self.running_mean is None
        mean, var = (self.running_mean, self.running_var) if self.momentum is not None or not own else (None, None)
        return F.instance_norm(input, mean, var, self.weight, self.bias, own, self.momentum, self.eps)

    return forward


for _axes, _ranks in ((1, (2, 3)), (2, (4,)), (3, (5,))):
    row(f"BatchNorm{_axes}d", lambda self, num_features, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True, device=None, dtype=None, *, bias=True: vars(),
        _batch(_ranks), _norm_shown, _norm(f"BatchNorm{_axes}d", f"BatchNorm{_axes}d"), "Batch normalisation, with running statistics for evaluation "
        "if they are tracked. Parameters `weight` and `bias`, if it is affine.", _BatchNorm, reset_running_stats=_reset_statistics)  # fmt: skip
    row(f"InstanceNorm{_axes}d", lambda self, num_features, eps=1e-5, momentum=0.1, affine=False, track_running_stats=False, device=None, dtype=None, *, bias=True: vars(),
        _instance(_axes), _norm_shown, _norm(f"InstanceNorm{_axes}d", f"InstanceNorm{_axes}d"), "Normalisation of each channel of each sample over "
        "its positions; in evaluation by running statistics, if they are tracked.", _InstanceNorm, reset_running_stats=_reset_statistics)  # fmt: skip


def _synchronised(cls, module, process_group=None):
    """The module with batch normalisations of all processes, of which there is one: the module itself, its layers of this
    class.
    """
    for name, layer in list(module.named_children()):
        vars_of = _synchronised(cls, layer, process_group)
        if vars_of is not layer:
            module._replace(name, vars_of)
    if type(module).__name__ not in ("BatchNorm1d", "BatchNorm2d", "BatchNorm3d"):
        return module
    made = cls.__new__(cls)
    vars(made).update(vars(module), process_group=process_group)
    return made


row("SyncBatchNorm", lambda self, num_features, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True, process_group=None, device=None, dtype=None, *, bias=True: vars(),
    _batch((2, 3, 4, 5)), _norm_shown, _norm("SyncBatchNorm", "BatchNorm1d"), "Batch normalisation over all processes, of which there is one.", _BatchNorm,
    reset_running_stats=_reset_statistics, convert_sync_batchnorm=classmethod(_synchronised))


def _layer_norm(self, options):
    shape = options["normalized_shape"]
    options["normalized_shape"] = (shape.__index__(),) if hasattr(shape, "__index__") else tuple(shape)
    _keep(self, options, "normalized_shape", "eps", "elementwise_affine")
    _draw(self, "LayerNorm", options, list(self.normalized_shape), self.eps, bool(self.elementwise_affine), bool(options["bias"]))


row("LayerNorm", lambda self, normalized_shape, eps=1e-5, elementwise_affine=True, bias=True, device=None, dtype=None: vars(),
    lambda self, input: F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps),
    lambda self: f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}, bias={self.bias is not None}",
    _layer_norm, "Layer normalisation over the last axes. Parameters `weight` (ones) and `bias` (zeros), if it is affine.")


def _rms_norm(self, options):
    shape = options["normalized_shape"]
    options["normalized_shape"] = (shape.__index__(),) if hasattr(shape, "__index__") else tuple(shape)
    _keep(self, options, "normalized_shape", "eps", "elementwise_affine")
    _draw(self, "RmsNorm", options, list(self.normalized_shape), self.eps, bool(self.elementwise_affine), kept=("weight",))


row("RMSNorm", lambda self, normalized_shape, eps=None, elementwise_affine=True, device=None, dtype=None: vars(),
    lambda self, input: F.rms_norm(input, self.normalized_shape, self.weight, self.eps),
    lambda self: f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}", _rms_norm,
    "Root mean square normalisation over the last axes. Parameter `weight` (ones), if it is affine; `eps` is by default the "
    "distance of 1 from the next number.")


def _group_norm(self, options):
    _keep(self, options, "num_groups", "num_channels", "eps", "affine")
    if self.num_channels % self.num_groups:
        raise ValueError("num_channels must be divisible by num_groups")
    _draw(self, "GroupNorm", options, self.num_groups, self.num_channels, self.eps, bool(self.affine))
    if not options["bias"]:
        vars(self)["bias"] = None


row("GroupNorm", lambda self, num_groups, num_channels, eps=1e-5, affine=True, device=None, dtype=None, *, bias=True: vars(),
    lambda self, input: F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps),
    lambda self: f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, bias={self.bias is not None}", _group_norm,
    "Group normalisation of `[n, channels, ..]`. Parameters `weight` and `bias`, if it is affine.")

row("LocalResponseNorm", lambda self, size, alpha=1e-4, beta=0.75, k=1.0: vars(),
    lambda self, input: F.local_response_norm(input, self.size, self.alpha, self.beta, self.k),
    lambda self: f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}", doc=F.local_response_norm.__doc__)


def _across_maps(self, input):
    if input.ndim != 4:
        raise ValueError(f"CrossMapLRN2d: Expected input to be 4D, got {input.ndim}D instead")
    n, near = input.shape[1], int((self.size - 1) / 2 + 1)
    # PyTorch's running sum over channels never lets go of the first one.
    rows = [[float(j == 0 and i >= near or abs(i - j) < near) for j in range(n)] for i in range(n)]
    sums = Tensor.einsum("ij,njhw->nihw", [tensor(rows, dtype=input.dtype, device=input.device), input.square()])
    return input / (sums * (self.alpha / self.size) + self.k) ** self.beta


row("CrossMapLRN2d", lambda self, size, alpha=1e-4, beta=0.75, k=1: vars(), _across_maps,
    lambda self: f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}", doc=F.local_response_norm.__doc__)

# Shapes.

row("Flatten", lambda self, start_dim=1, end_dim=-1: vars(), lambda self, input: input.flatten(self.start_dim, self.end_dim),
    lambda self: f"start_dim={self.start_dim}, end_dim={self.end_dim}", doc="Axes merged: all but the first.")
row("Unflatten", lambda self, dim, unflattened_size: vars(), lambda self, input: input.unflatten(self.dim, list(self.unflattened_size)),
    lambda self: f"dim={self.dim}, unflattened_size={self.unflattened_size}", doc="An axis split into several.")
row("PixelShuffle", lambda self, upscale_factor: vars(), lambda self, input: input.pixel_shuffle(self.upscale_factor),
    lambda self: f"upscale_factor={self.upscale_factor}", doc="Channels as places of a larger image.")
row("PixelUnshuffle", lambda self, downscale_factor: vars(), lambda self, input: input.pixel_unshuffle(self.downscale_factor),
    lambda self: f"downscale_factor={self.downscale_factor}", doc="Places of an image as channels of a smaller one.")
row("ChannelShuffle", lambda self, groups: vars(), lambda self, input: input.channel_shuffle(self.groups), lambda self: f"groups={self.groups}",
    doc="Channels in `groups` parts, taken in turn.")
row("Fold", lambda self, output_size, kernel_size, dilation=1, padding=0, stride=1: vars(),
    lambda self, input: F.fold(input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride),
    lambda self: f"output_size={self.output_size}, kernel_size={self.kernel_size}, dilation={self.dilation}, padding={self.padding}, stride={self.stride}",
    doc=F.fold.__doc__)
row("Unfold", lambda self, kernel_size, dilation=1, padding=0, stride=1: vars(),
    lambda self, input: F.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride),
    lambda self: f"kernel_size={self.kernel_size}, dilation={self.dilation}, padding={self.padding}, stride={self.stride}", doc=F.unfold.__doc__)


def _upsample(name, mode=None, corners=None):
    def prepare(self, options):
        factor = options["scale_factor"]
        if isinstance(factor, (tuple, list)):
            options["scale_factor"] = tuple(float(n) for n in factor)
        elif factor is not None:
            options["scale_factor"] = float(factor)
        given = {"name": name, "mode": mode, "align_corners": corners, "recompute_scale_factor": None} | options
        _keep(self, given, "name", "size", "scale_factor", "mode", "align_corners", "recompute_scale_factor")

    options = lambda self, size=None, scale_factor=None: vars()  # noqa: E731
    if mode is None:
        options = lambda self, size=None, scale_factor=None, mode="nearest", align_corners=None, recompute_scale_factor=None: vars()  # noqa: E731
    row(name, options, lambda self, input: F.interpolate(input, self.size, self.scale_factor, self.mode, self.align_corners,
        recompute_scale_factor=self.recompute_scale_factor),
        lambda self: (f"size={self.size}" if self.scale_factor is None else f"scale_factor={self.scale_factor}") + f", mode={self.mode!r}",
        prepare, F.interpolate.__doc__)  # fmt: skip


_upsample("Upsample")
_upsample("UpsamplingNearest2d", "nearest")
_upsample("UpsamplingBilinear2d", "bilinear", True)

# Pools and padding.


def _pool_options(names, tuples=False, axes=0):
    def prepare(self, options):
        if options["stride"] is None:
            options["stride"] = options["kernel_size"]
        if tuples:
            for key in ("kernel_size", "stride", "padding"):
                options[key] = _each(options[key], axes, key)
        _keep(self, options, *names)

    return prepare


_FEW = ("kernel_size", "stride", "padding")


def _pools(axes):
    end = f"{axes}d"
    maximum, mean, root, back = (getattr(F, kind + end) for kind in ("max_pool", "avg_pool", "lp_pool", "max_unpool"))
    row(f"MaxPool{end}", lambda self, kernel_size, stride=None, padding=0, dilation=1, return_indices=False, ceil_mode=False: vars(),
        lambda self, input: maximum(input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode, self.return_indices),
        lambda self: f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, dilation={self.dilation}, ceil_mode={self.ceil_mode}",
        _pool_options((*_FEW, "dilation", "return_indices", "ceil_mode")), "The largest of each window.")  # fmt: skip
    averages = (lambda self, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True: vars()) if axes == 1 else (
        lambda self, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None: vars())  # fmt: skip
    row(f"AvgPool{end}", averages,
        lambda self, input: mean(input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad, *() if axes == 1 else (self.divisor_override,)),
        lambda self: f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}",
        _pool_options((*_FEW, "ceil_mode", "count_include_pad", *(() if axes == 1 else ("divisor_override",))), axes == 1, axes), "The mean of each window.")  # fmt: skip
    row(f"LPPool{end}", lambda self, norm_type, kernel_size, stride=None, ceil_mode=False: vars(),
        lambda self, input: root(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode),
        lambda self: f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, stride={self.stride}, ceil_mode={self.ceil_mode}",
        doc="The p-norm of each window.")  # fmt: skip
    row(f"MaxUnpool{end}", lambda self, kernel_size, stride=None, padding=0: vars(),
        lambda self, input, indices, output_size=None: back(input, indices, self.kernel_size, self.stride, self.padding, output_size),
        lambda self: f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}", _pool_options(_FEW, True, axes),
        f"Elements put back where `MaxPool{end}(.., return_indices=True)` took them; zeros elsewhere.")  # fmt: skip
    nearly, largest = getattr(F, f"adaptive_avg_pool{end}"), getattr(F, f"adaptive_max_pool{end}")
    row(f"AdaptiveAvgPool{end}", lambda self, output_size: vars(), lambda self, input: nearly(input, self.output_size),
        lambda self: f"output_size={self.output_size}", doc=nearly.__doc__)  # fmt: skip
    row(f"AdaptiveMaxPool{end}", lambda self, output_size, return_indices=False: vars(),
        lambda self, input: largest(input, self.output_size, self.return_indices), lambda self: f"output_size={self.output_size}", doc=largest.__doc__)  # fmt: skip

    def fraction(self, options):
        size, ratio = options["output_size"], options["output_ratio"]
        if (size is None) == (ratio is None):
            raise ValueError(f"FractionalMaxPool{end}: either output_size or output_ratio is given")
        options["kernel_size"] = _each(options["kernel_size"], axes, "kernel_size")
        if size is not None:
            options["output_size"] = _each(size, axes, "output_size")
        else:
            ratio = options["output_ratio"] = (ratio,) * axes if isinstance(ratio, float) else tuple(ratio)
            if not all(0 < r < 1 for r in ratio):
                raise ValueError(f"output_ratio must be between 0 and 1 (got {ratio})")
        _keep(self, options, "kernel_size", "return_indices", "output_size", "output_ratio", "_random_samples")

    if axes > 1:
        chance = getattr(F, f"fractional_max_pool{end}")
        row(f"FractionalMaxPool{end}", lambda self, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None: vars(),
            lambda self, input: chance(input, self.kernel_size, self.output_size, self.output_ratio, self.return_indices, self._random_samples),
            None, fraction, chance.__doc__)  # fmt: skip

    def around(mode):
        def prepare(self, options):
            padding = options["padding"]
            padding = (padding.__index__(),) * (2 * axes) if hasattr(padding, "__index__") else tuple(padding)
            if len(padding) != 2 * axes:
                raise ValueError(f"padding is a number or {2 * axes} of them, not {padding!r}")
            vars(self)["padding"] = padding
            if mode == "constant":
                vars(self)["value"] = options.get("value", 0.0)

        return prepare

    for kind, mode in (("Zero", "constant"), ("Constant", "constant"), ("Reflection", "reflect"), ("Replication", "replicate"), ("Circular", "circular")):
        options = (lambda self, padding, value: vars()) if kind == "Constant" else (lambda self, padding: vars())
        row(f"{kind}Pad{end}", options, lambda self, input, _mode=mode: F.pad(input, self.padding, _mode, self.value if _mode == "constant" else None),
            (lambda self: f"padding={self.padding}, value={self.value}") if kind == "Constant" else (lambda self: f"{self.padding}"),
            around(mode), f"Elements added around the last {axes} axes.")  # fmt: skip


for _axes in (1, 2, 3):
    _pools(_axes)

# Losses and distances.


def _reduced(*names):
    def prepare(self, options):
        vars(self)["reduction"] = F._how(options.get("size_average"), options.get("reduce"), options["reduction"])
        for name in names:
            value = options[name]
            # Factors are buffers: they move with the module.
            vars(self)[name] = Parameter._state(value if isinstance(value, Tensor) else tensor(value)) if name.endswith("weight") and value is not None else value
        if vars(self)["reduction"] not in ("mean", "sum", "none", "batchmean"):
            raise ValueError(f"{options['reduction']!r} is not a reduction; there are 'mean', 'sum', 'none'")

    return prepare


def _loss(name, options, forward, *names, doc=None):
    row(name, options, forward, None, _reduced(*names), doc, _Loss)


for _name, _function, _doc in (
    ("L1Loss", F.l1_loss, "The absolute difference."),
    ("MSELoss", F.mse_loss, "The square of the difference."),
    ("SoftMarginLoss", F.soft_margin_loss, "`log(1 + exp(-target input))`."),
    ("MultiLabelMarginLoss", F.multilabel_margin_loss, F.multilabel_margin_loss.__doc__),
):
    _loss(_name, lambda self, size_average=None, reduce=None, reduction="mean": vars(),
          lambda self, input, target, _f=_function: _f(input, target, reduction=self.reduction), doc=_doc)  # fmt: skip
_loss("SmoothL1Loss", lambda self, size_average=None, reduce=None, reduction="mean", beta=1.0: vars(),
      lambda self, input, target: F.smooth_l1_loss(input, target, reduction=self.reduction, beta=self.beta), "beta", doc=F.smooth_l1_loss.__doc__)
_loss("HuberLoss", lambda self, reduction="mean", delta=1.0: vars(),
      lambda self, input, target: F.huber_loss(input, target, self.reduction, self.delta), "delta", doc=F.huber_loss.__doc__)
_loss("CrossEntropyLoss", lambda self, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean", label_smoothing=0.0: vars(),
      lambda self, input, target: F.cross_entropy(input, target, self.weight, None, self.ignore_index, None, self.reduction, self.label_smoothing),
      "weight", "ignore_index", "label_smoothing", doc=F.cross_entropy.__doc__)
for _name in ("NLLLoss", "NLLLoss2d"):
    _loss(_name, (lambda self, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean": vars()),
          lambda self, input, target: F.nll_loss(input, target, self.weight, None, self.ignore_index, None, self.reduction),
          "weight", "ignore_index", doc=F.nll_loss.__doc__)  # fmt: skip
_loss("BCELoss", lambda self, weight=None, size_average=None, reduce=None, reduction="mean": vars(),
      lambda self, input, target: F.binary_cross_entropy(input, target, self.weight, reduction=self.reduction), "weight", doc=F.binary_cross_entropy.__doc__)
_loss("BCEWithLogitsLoss", lambda self, weight=None, size_average=None, reduce=None, reduction="mean", pos_weight=None: vars(),
      lambda self, input, target: F.binary_cross_entropy_with_logits(input, target, self.weight, None, None, self.reduction, self.pos_weight),
      "weight", "pos_weight", doc=F.binary_cross_entropy_with_logits.__doc__)
_loss("KLDivLoss", lambda self, size_average=None, reduce=None, reduction="mean", log_target=False: vars(),
      lambda self, input, target: F.kl_div(input, target, None, None, self.reduction, self.log_target), "log_target", doc=F.kl_div.__doc__)
_loss("PoissonNLLLoss", lambda self, log_input=True, full=False, size_average=None, eps=1e-8, reduce=None, reduction="mean": vars(),
      lambda self, log_input, target: F.poisson_nll_loss(log_input, target, self.log_input, self.full, None, self.eps, None, self.reduction),
      "log_input", "full", "eps", doc=F.poisson_nll_loss.__doc__)
_loss("GaussianNLLLoss", lambda self, *, full=False, eps=1e-6, reduction="mean": vars(),
      lambda self, input, target, var: F.gaussian_nll_loss(input, target, var, self.full, self.eps, self.reduction), "full", "eps",
      doc=F.gaussian_nll_loss.__doc__)
_loss("CTCLoss", lambda self, blank=0, reduction="mean", zero_infinity=False: vars(),
      lambda self, log_probs, targets, input_lengths, target_lengths: F.ctc_loss(log_probs, targets, _ready_lengths(input_lengths),
      _ready_lengths(target_lengths), self.blank, self.reduction, self.zero_infinity), "blank", "zero_infinity", doc=F.ctc_loss.__doc__)
_loss("HingeEmbeddingLoss", lambda self, margin=1.0, size_average=None, reduce=None, reduction="mean": vars(),
      lambda self, input, target: F.hinge_embedding_loss(input, target, self.margin, reduction=self.reduction), "margin", doc=F.hinge_embedding_loss.__doc__)
_loss("MarginRankingLoss", lambda self, margin=0.0, size_average=None, reduce=None, reduction="mean": vars(),
      lambda self, input1, input2, target: F.margin_ranking_loss(input1, input2, target, self.margin, reduction=self.reduction), "margin",
      doc=F.margin_ranking_loss.__doc__)
_loss("CosineEmbeddingLoss", lambda self, margin=0.0, size_average=None, reduce=None, reduction="mean": vars(),
      lambda self, input1, input2, target: F.cosine_embedding_loss(input1, input2, target, self.margin, reduction=self.reduction), "margin",
      doc=F.cosine_embedding_loss.__doc__)
_loss("MultiLabelSoftMarginLoss", lambda self, weight=None, size_average=None, reduce=None, reduction="mean": vars(),
      lambda self, input, target: F.multilabel_soft_margin_loss(input, target, self.weight, reduction=self.reduction), "weight",
      doc=F.multilabel_soft_margin_loss.__doc__)
_loss("MultiMarginLoss", lambda self, p=1, margin=1.0, weight=None, size_average=None, reduce=None, reduction="mean": vars(),
      lambda self, input, target: F.multi_margin_loss(input, target, int(self.p), self.margin, self.weight, reduction=self.reduction),
      "p", "margin", "weight", doc=F.multi_margin_loss.__doc__)
_loss("TripletMarginLoss", lambda self, margin=1.0, p=2.0, eps=1e-6, swap=False, size_average=None, reduce=None, reduction="mean": vars(),
      lambda self, anchor, positive, negative: F.triplet_margin_loss(anchor, positive, negative, self.margin, self.p, self.eps, self.swap,
      reduction=self.reduction), "margin", "p", "eps", "swap", doc=F.triplet_margin_loss.__doc__)


def _ready_lengths(n):
    return tensor(list(n), dtype="int64") if isinstance(n, (tuple, list)) else n


row("CosineSimilarity", lambda self, dim=1, eps=1e-8: vars(), lambda self, x1, x2: x1.cosine_similarity(x2, self.dim, self.eps),
    doc="The cosine of the angle between vectors.")


def _distance(self, options):
    _keep(self, options, "eps", "keepdim")
    vars(self)["norm"] = options["p"]


row("PairwiseDistance", lambda self, p=2.0, eps=1e-6, keepdim=False: vars(),
    lambda self, x1, x2: x1.pairwise_distance(x2, self.norm, self.eps, self.keepdim), None, _distance, "The p-norm of differences.")


def _by_distance(self, options):
    if options["margin"] <= 0:
        raise ValueError(f"margin {options['margin']} is not above 0")
    _reduced("margin", "swap")(self, options)
    distance = options["distance_function"]
    vars(self)["distance_function"] = TABLE["PairwiseDistance"]() if distance is None else distance


row("TripletMarginWithDistanceLoss", lambda self, *, distance_function=None, margin=1.0, swap=False, reduction="mean": vars(),
    lambda self, anchor, positive, negative: F.triplet_margin_with_distance_loss(anchor, positive, negative, distance_function=self.distance_function,
    margin=self.margin, swap=self.swap, reduction=self.reduction), None, _by_distance, F.triplet_margin_with_distance_loss.__doc__)


def _linear_loss(self, options):
    _reduced("weight")(self, options)
    if options["options"] is not None:
        raise NotImplementedError("LinearCrossEntropyLoss: options, which choose between ways to compute it in PyTorch")
    _keep(self, options, "num_classes", "out_features", "ignore_index", "label_smoothing", "options")
    self.out_features = tuple(self.out_features)
    import math

    outputs = self.num_classes * math.prod(self.out_features)
    self.linear = TABLE["Linear"](options["in_features"], outputs, bool(options["bias"]), options["device"], options["dtype"])


row("LinearCrossEntropyLoss", lambda self, in_features, num_classes, *, out_features=(), bias=False, device=None, dtype=None, reduction="mean",
    weight=None, ignore_index=None, label_smoothing=0.0, options=None: vars(),
    lambda self, input, target: F.linear_cross_entropy(input, self.linear.weight.reshape(self.num_classes, *self.out_features, -1), target,
    linear_bias=self.linear.bias, weight=self.weight, reduction=self.reduction, ignore_index=self.ignore_index, label_smoothing=self.label_smoothing),
    lambda self: f"in_features={self.linear.in_features}, num_classes={self.num_classes}, out_features={self.out_features}, "
    f"bias={self.linear.bias is not None}, reduction={self.reduction}, ignore_index={self.ignore_index}, label_smoothing={self.label_smoothing}, options=None",
    _linear_loss, F.linear_cross_entropy.__doc__)
