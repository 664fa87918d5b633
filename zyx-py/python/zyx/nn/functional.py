"""Functions under the names, and with the parameters, of `torch.nn.functional`:
`import zyx.nn.functional as F`, then `F.relu(x)`.

What is not defined here is the method of `Tensor` of that name. Defined are those whose parameters
PyTorch has in another order, or with other meanings, than the methods.
"""

import math as _math
from operator import add as _add_bias  # replaced within `zyx.amp`

from .._aliases import elsewhere as _elsewhere
from .._core import Parameter as _Parameter
from .._core import Tensor
from .._core import tensor as _tensor
from .._functions import where as _where
from .._grad_mode import no_grad as _no_grad
from .._names import function as _function
from .._names import take_out as _take_out
from .._steps import in_steps as _in_steps

_MODES = {"constant": "zeros", "reflect": "reflect", "replicate": "replicate", "circular": "circular"}
_INTERPOLATIONS = {"bilinear": "linear", "trilinear": "linear", "bicubic": "cubic"}


class DTypeMismatch(TypeError, RuntimeError):
    """Operands of two dtypes where one is needed."""


def _same(name, input, weight):
    if input.dtype != weight.dtype:
        raise DTypeMismatch(f"{name}: input and weight must have the same dtype, but got {input.dtype.name} and {weight.dtype.name}")


def linear(input, weight, bias=None):
    """`input @ weight.T + bias`."""
    if input.dtype != weight.dtype:
        _same("linear", input, weight)
    y = input.matmul(weight.t())
    return y if bias is None else _add_bias(y, bias)


@_in_steps
def bilinear(input1, input2, weight, bias=None):
    """`input1 weight[i] input2` for every `i`, plus `bias`."""
    _same("bilinear", input1, weight)
    _same("bilinear", input2, weight)
    found = Tensor.einsum("...i,oij,...j->...o", [input1, weight, input2])
    return found if bias is None else found + bias


def embedding(input, weight, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, sparse=False):
    """The rows of `weight` that the indices `input` name. The row `padding_idx` gets no gradient. With `max_norm` rows that
    are named and longer are shortened, in the table as well if it is a parameter; with `scale_grad_by_freq` the gradient of a
    row is divided by how often it is named. `sparse` changes nothing: gradients are dense.
    """
    if max_norm is not None:
        weight = _shortened(input, weight, max_norm, norm_type)
    rows = weight.embedding(input)
    if scale_grad_by_freq:
        rows = _by_frequency(rows, input, weight.shape[0])
    if padding_idx is None:
        return rows
    n = weight.shape[0]
    if not -n <= padding_idx < n:
        raise ValueError(f"padding_idx {padding_idx} is none of {n} rows")
    return (input == padding_idx % n).unsqueeze(-1).where_(rows.detach(), rows)


def _shortened(input, weight, max_norm, norm_type):
    """A table of which the rows that are named have at most a norm; a parameter holds it from now on."""
    with _no_grad():
        table, n = weight.detach(), weight.shape[0]
        named = input.flatten().bincount(minlength=n) > 0
        norms = table.norm(norm_type, 1)
        short = ((norms > max_norm) & named).where_(max_norm / (norms + 1e-7), 1.0).unsqueeze(1) * table
    if isinstance(weight, _Parameter):
        weight.set(short)
        return weight
    return weight + (short - table).detach()


def _by_frequency(rows, input, n):
    """Rows whose gradients are divided by how often they are named."""
    often = input.flatten().bincount(minlength=n).take(input).unsqueeze(-1).cast(rows.dtype)
    share = rows / often
    return share + (rows - share).detach()


def one_hot(tensor, num_classes=-1):
    """A new last axis with 1 at the element's value, as `int64`; -1 classes: as many as there are, which
    reads the largest from the device.
    """
    tensor = tensor if isinstance(tensor, Tensor) else Tensor(tensor)
    if num_classes == -1:
        num_classes = tensor.max().item() + 1
    return tensor.one_hot(num_classes).cast("int64")


def gelu(input, approximate="none"):
    """The Gaussian error linear unit; with `approximate="tanh"` by the hyperbolic tangent, as the method `gelu` is."""
    if approximate not in ("none", "tanh"):
        raise ValueError(f"approximate is 'none' or 'tanh', not {approximate!r}")
    return input.gelu() if approximate == "tanh" else input.gelu_exact()


def _placed(input, found, inplace):
    """A result, with `inplace` written into the input."""
    return input._write(found) if inplace else found


def _activations(**functions):
    """Functions with the option `inplace`, of methods."""
    for name, function in functions.items():
        function.__name__ = function.__qualname__ = name
        function.__doc__ = getattr(Tensor, name).__doc__
    globals().update(functions)


_activations(
    relu=lambda input, inplace=False: _placed(input, input.relu(), inplace),
    relu6=lambda input, inplace=False: _placed(input, input.relu6(), inplace),
    selu=lambda input, inplace=False: _placed(input, input.selu(), inplace),
    silu=lambda input, inplace=False: _placed(input, input.silu(), inplace),
    mish=lambda input, inplace=False: _placed(input, input.mish(), inplace),
    hardswish=lambda input, inplace=False: _placed(input, input.hardswish(), inplace),
    hardsigmoid=lambda input, inplace=False: _placed(input, input.hardsigmoid(), inplace),
    leaky_relu=lambda input, negative_slope=0.01, inplace=False: _placed(input, input.leaky_relu(negative_slope), inplace),
    elu=lambda input, alpha=1.0, inplace=False: _placed(input, input.elu(alpha), inplace),
    celu=lambda input, alpha=1.0, inplace=False: _placed(input, input.celu(alpha), inplace),
    hardtanh=lambda input, min_val=-1.0, max_val=1.0, inplace=False: _placed(input, input.hardtanh(min_val, max_val), inplace),
    threshold=lambda input, threshold, value, inplace=False: _placed(input, input.threshold(threshold, value), inplace),
)


def _in_place(name):
    def written(input, *given, **named):
        return globals()[name](input, *given, **named, inplace=True)

    written.__name__ = written.__qualname__ = name + "_"
    written.__doc__ = f"`{name}` in the place of the input."
    return written


relu_, selu_, leaky_relu_, elu_, celu_, hardtanh_, threshold_, rrelu_ = map(_in_place, "relu selu leaky_relu elu celu hardtanh threshold rrelu".split())


@_in_steps
def softplus(input, beta=1.0, threshold=20.0):
    """`log(1 + exp(beta input)) / beta`; `input` itself where `beta input` exceeds `threshold`."""
    scaled = input * beta
    return (scaled > threshold).where_(input, scaled.softplus() / beta)


@_in_steps
def normalize(input, p=2.0, dim=1, eps=1e-12):
    """Divided by the p-norm along `dim`, or by `eps` if that is larger."""
    return input / input.norm(p, dim, keepdim=True).maximum(eps)


def dropout(input, p=0.5, training=True, inplace=False):
    """Elements zeroed with probability `p` and the others scaled up, in training."""
    _probability(p)
    return _placed(input, input.dropout(p), inplace) if training else input


def _probability(p):
    if not 0 <= p <= 1:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


def _channels(axes):
    def channel_dropout(input, p=0.5, training=True, inplace=False):
        _probability(p)
        # An axis of examples may be missing, as in PyTorch; of images `[n, channels, length]` it is the first.
        lead = input.ndim - axes if axes != 2 or input.ndim == 4 else 2
        if lead not in (1, 2):
            raise ValueError(f"dropout{axes}d needs channels and {axes} axes, not shape {input.shape}")
        if not training:
            return input
        kept = Tensor.ones([*input.shape[:lead], *[1] * (input.ndim - lead)], dtype=input.dtype, device=input.device)
        return _placed(input, input * kept.dropout(p), inplace)

    channel_dropout.__name__ = channel_dropout.__qualname__ = f"dropout{axes}d"
    channel_dropout.__doc__ = f"""Whole channels with {axes} axes zeroed with probability `p` and the others scaled up, in training."""
    return channel_dropout


dropout1d, dropout2d, dropout3d = (_channels(axes) for axes in (1, 2, 3))


def alpha_dropout(input, p=0.5, training=False, inplace=False):
    """Elements set to the lower limit of `selu` with probability `p`, all scaled and moved so that mean 0 and variance 1
    stay, in training.
    """
    return _placed(input, _alpha(input, p, training, input.shape), inplace)


def feature_alpha_dropout(input, p=0.5, training=False, inplace=False):
    """`alpha_dropout` of whole channels: the first two axes stay apart."""
    shape = [*input.shape[:2], *[1] * (input.ndim - 2)]
    return _placed(input, _alpha(input, p, training, shape), inplace)


@_in_steps
def _alpha(input, p, training, shape):
    _probability(p)
    if not training or p == 0:
        return input
    if p == 1:
        return input * 0.0
    lowest, kept = -1.7580993408473766, 1 - p
    scale = (kept * (1 + p * lowest**2)) ** -0.5
    chosen = (Tensor.rand(shape, device=input.device) < kept).expand(input.shape)
    return input.where(chosen, lowest) * scale - scale * lowest * p


def rrelu(input, lower=1.0 / 8, upper=1.0 / 3, training=False, inplace=False):
    """`input` where it is positive, elsewhere times a slope: drawn between `lower` and `upper` for each element in training,
    their mean otherwise.
    """
    if lower > upper:
        raise ValueError(f"lower {lower} is above upper {upper}")
    if training:
        slope = Tensor.rand_range(lower, upper, input.shape, device=input.device).cast(input.dtype)
    else:
        slope = (lower + upper) / 2
    return _placed(input, _in_steps(_sloped)(input, slope), inplace)


def _sloped(input, slope):
    return input.where(input >= 0, input * slope)


def softmax(input, dim=None, _stacklevel=3, dtype=None):
    """`exp(x) / sum(exp(x))` along an axis; without one along axis 0 of tensors with 0, 1 or 3 axes, axis 1 of others."""
    return input.softmax(_usual(input, dim), dtype=dtype)


def log_softmax(input, dim=None, _stacklevel=3, dtype=None):
    """The logarithm of `softmax`."""
    return input.log_softmax(_usual(input, dim), dtype=dtype)


def softmin(input, dim=None, _stacklevel=3, dtype=None):
    """The softmax of `-x`."""
    return (input if dtype is None else input.cast(dtype)).softmin(_usual(input, dim))


def _usual(input, dim):
    return (0 if input.ndim in (0, 1, 3) else 1) if dim is None else dim


def gumbel_softmax(logits, tau=1, hard=False, eps=1e-10, dim=-1):
    """Samples of the classes along `dim`, made differentiable. `eps` is PyTorch's guard, which is not needed here."""
    return logits.gumbel_softmax(tau, hard, dim)


@_in_steps
def embedding_bag(input, weight, offsets=None, max_norm=None, norm_type=2, scale_grad_by_freq=False, mode="mean", sparse=False,
                  per_sample_weights=None, include_last_offset=False, padding_idx=None):  # fmt: skip
    """Rows of a table, those of a bag made one by `"sum"`, `"mean"` or `"max"`: a bag is a row of `input`, or of a list `input`
    what begins at each of `offsets`. The row `padding_idx` counts nowhere. An empty bag gives zeros.
    The other options are those of `embedding`.
    """
    if mode not in ("sum", "mean", "max"):
        raise ValueError(f"mode is 'sum', 'mean' or 'max', not {mode!r}")
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError("per_sample_weights are for mode 'sum'")
    if (input.ndim, offsets is None) not in ((2, True), (1, False)):
        raise ValueError("a list of rows has offsets, a matrix has none")
    if input.ndim == 2 and padding_idx is None and input.shape[1]:
        rows = embedding(input, weight, None, max_norm, norm_type, scale_grad_by_freq)
        if per_sample_weights is not None:
            rows = rows * per_sample_weights.unsqueeze(2)
        return getattr(rows, "amax" if mode == "max" else mode)(1)
    if input.ndim == 2:
        n, bag = input.shape[0], Tensor.iota(input.shape[0], device=input.device).unsqueeze(1).expand(input.shape).flatten()
    else:
        n = offsets.shape[0] - include_last_offset
        bag = offsets[:n].searchsorted(Tensor.iota(input.shape[0], device=input.device).cast(offsets.dtype), right=True) - 1
    input, shape = input.flatten(), (n, weight.shape[1])
    rows = embedding(input, weight, padding_idx, max_norm, norm_type, scale_grad_by_freq)
    counted = Tensor.ones(input.shape, dtype=weight.dtype, device=input.device)
    if padding_idx is not None:
        counted = (input != padding_idx % weight.shape[0]).cast(weight.dtype)
    if per_sample_weights is not None:
        counted = counted * per_sample_weights.flatten()
    none = weight.new_zeros(shape)
    if mode == "max":
        places = (counted != 0).where_(bag, n).unsqueeze(1).expand(rows.shape)
        # What does not count goes to a bag behind the last, which is cut off.
        return weight.new_zeros((n + 1, shape[1])).scatter_reduce(0, places, rows, "amax", include_self=False)[:n]
    total = none.index_add(0, bag, rows * counted.unsqueeze(1))
    return total if mode == "sum" else total / none.index_add(0, bag, counted.unsqueeze(1).expand(rows.shape)).maximum(1.0)


def pad(input, pad, mode="constant", value=None):
    """Elements added before and after the last axes: `pad` has two numbers for the last axis, then two for the
    one before, and so on. Negative numbers cut off.
    """
    pad = list(pad)
    if len(pad) % 2 or len(pad) > 2 * input.ndim:
        raise ValueError(f"pad: {pad} are not two numbers for each of at most {input.ndim} axes")
    if mode not in _MODES:
        raise ValueError(f"pad: mode is one of {sorted(_MODES)}, not {mode!r}")
    both = [(0, 0)] * (input.ndim - len(pad) // 2) + list(zip(pad[::2], pad[1::2]))[::-1]
    more = [(max(a, 0), max(b, 0)) for a, b in both]

    def cut(input):
        kept = [(max(-a, 0), n - max(-b, 0)) for (a, b), n in zip(both, input.shape)]
        return input.shrink(kept) if any(n < 0 for n in pad) else input

    if mode == "circular":
        # What is cut off comes back at the other end nowhere.
        return cut(input).pad_mode(more, "circular")
    if mode != "constant":
        return cut(input.pad_mode(more, _MODES[mode]))
    return cut(input.pad_with(more, value) if value else input.pad(more))


def _norm_dtype(name, input, weight):
    """Halves are normalised with parameters in float32, too, as in PyTorch."""
    if input.dtype != weight.dtype and not (input.dtype.itemsize == 2 and weight.dtype.name == "float32"):
        raise DTypeMismatch(f"{name}: expected scalar type {weight.dtype.name} but found {input.dtype.name}")


def _trailing(input, shape):
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    # A plain tuple: its parts are taken faster than those of a `Size`.
    if tuple(input.shape)[input.ndim - len(shape) :] != shape:
        raise ValueError(f"normalized_shape {shape} is not the end of the shape {input.shape}")
    return list(range(-len(shape), 0))


def layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-5):
    """Mean 0 and variance 1 over the last axes, which have the extents `normalized_shape`."""
    if weight is not None:
        _norm_dtype("layer_norm", input, weight)
    return input.layer_norm(_trailing(input, normalized_shape), weight, bias, eps)


def rms_norm(input, normalized_shape, weight=None, eps=None):
    """Divided by the root mean square over the last axes, which have the extents `normalized_shape`."""
    if eps is None:
        eps = {"float64": 2.0**-52, "float16": 2.0**-10, "bfloat16": 2.0**-7}.get(input.dtype.name, 2.0**-23)
    return input.rms_norm(_trailing(input, normalized_shape), weight, eps)


def batch_norm(input, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5):
    """Every channel (axis 1) normalised by the given statistics; in training by its own, and the running ones move by the
    share `momentum` towards them.
    """
    if not training and running_mean is not None:
        return input.batch_norm_with(running_mean, running_var, weight, bias, eps)
    _several("batch_norm", input, 1)
    found, mean, var = input.batch_norm(weight, bias, eps)
    if training and running_mean is not None and input.numel():
        _track([running_mean, running_var], [mean, var], momentum)
    return found


def _track(running, new, share):
    """Running statistics, if they are parameters, moved by a share towards new ones."""
    if all(isinstance(p, _Parameter) for p in running):
        # Else a pass after the other would be an ever longer sum while no optimizer computes it.
        Tensor.realize_all(running)
        for place, value in zip(running, new):
            place.set(place.detach().lerp(value.detach().cast(place.dtype), share))
    else:
        for place, value in zip(running, new):
            place.copy_(place.detach().lerp(value.detach().cast(place.dtype), share))


def instance_norm(input, running_mean=None, running_var=None, weight=None, bias=None, use_input_stats=True, momentum=0.1, eps=1e-5):
    """Every channel of every example normalised, by its own statistics, towards whose means running ones move, or by the
    given ones.
    """
    if not use_input_stats:
        return input.batch_norm_with(running_mean, running_var, weight, bias, eps)
    _several("instance_norm", input, 0, 1)
    if running_mean is not None and input.numel():
        wide, axes = input.detach(), list(range(2, input.ndim))
        wide = wide if wide.dtype.name in ("float32", "float64") else wide.cast("float32")
        _track([running_mean, running_var], [wide.mean(axes).mean(0), wide.var(axes, 1).mean(0)], momentum)
    return input.group_norm(input.shape[1], weight, bias, eps)


def group_norm(input, num_groups, weight=None, bias=None, eps=1e-5):
    """The channels (axis 1) in equal groups, each with mean 0 and variance 1 per example."""
    if input.ndim < 2:
        raise ValueError(f"group_norm: needs [n, channels, ..], not shape {tuple(input.shape)}")
    if _math.prod(input.shape) == num_groups:
        raise ValueError(f"group_norm: Expected more than 1 value per channel when training, got input size {tuple(input.shape)}")
    return input.group_norm(num_groups, weight, bias, eps)


def _several(name, input, *apart):
    """Refuses statistics of a single value, whose variance is unknown, over all axes but those `apart`."""
    if _math.prod(n for axis, n in enumerate(input.shape) if axis not in apart) == 1:
        raise ValueError(f"{name}: statistics need more than one value, the input has shape {tuple(input.shape)}")


@_in_steps
def local_response_norm(input, size, alpha=1e-4, beta=0.75, k=1.0):
    """Divided by a power of the mean square of `size` neighbouring channels (axis 1)."""
    around = [(0, 0)] * input.ndim
    around[1] = (size // 2, (size - 1) // 2)
    near = input.square().pad(around).unfold(1, size, 1).mean(-1)
    return input / (near * alpha + k) ** beta


def _how(size_average, reduce, reduction):
    """The reduction of a loss: `reduction`, or the one that PyTorch's older options name."""
    if size_average is None and reduce is None:
        return reduction
    if isinstance(size_average, str) or isinstance(reduce, str):
        raise TypeError("reduction is given by name, as in reduction='sum'; size_average and reduce are bools")
    if reduce is False:
        return "none"
    return "sum" if size_average is False else "mean"


def _weighted(terms, weight, reduction, by_weight=True):
    """Terms, each with its weight, as a loss; its mean is divided by the sum of weights, or by the number of terms."""
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"{reduction!r} is no reduction; 'mean', 'sum' and 'none' are")
    weight = weight if isinstance(weight, Tensor) else _tensor(weight)
    if weight.shape != terms.shape:
        raise ValueError(f"weight of shape {weight.shape} for terms of shape {terms.shape}")
    terms = terms * weight
    return terms if reduction == "none" else terms.sum() if reduction == "sum" else terms.sum() / (weight.sum() if by_weight else terms.numel())


def mse_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None):
    """Squares of differences; with `weight` their mean by weights."""
    reduction = _how(size_average, reduce, reduction)
    if weight is None:
        return input.mse_loss(target, reduction)
    return _in_steps(_weighted)(input.mse_loss(target, "none"), weight, reduction)


def l1_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None):
    """Absolute differences; with `weight` their mean by weights."""
    reduction = _how(size_average, reduce, reduction)
    if weight is None:
        return input.l1_loss(target, reduction)
    return _in_steps(_weighted)(input.l1_loss(target, "none"), weight, reduction)


def smooth_l1_loss(input, target, size_average=None, reduce=None, reduction="mean", beta=1.0):
    """Half the square of a difference divided by `beta`, beyond `beta` its absolute value less `beta / 2`."""
    return input.smooth_l1_loss(target, beta, _how(size_average, reduce, reduction))


def huber_loss(input, target, reduction="mean", delta=1.0, weight=None):
    """Half the square of the difference up to `delta`, beyond it linear with slope `delta`; `weight` is a factor of each
    term.
    """
    if weight is None:
        return input.huber_loss(target, delta, reduction)
    return _in_steps(_weighted)(input.huber_loss(target, delta, "none"), weight, reduction, False)


def cross_entropy(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean",
                  label_smoothing=0.0):  # fmt: skip
    """Cross entropy of logits, classes along axis 1 (or 0 of a vector), against class numbers or probabilities."""
    reduction = _how(size_average, reduce, reduction)
    if weight is None and not _floating(target):
        return input.cross_entropy(target, ignore_index, label_smoothing, reduction)
    return input.cross_entropy_weighted(target, weight, ignore_index, label_smoothing, reduction)


def linear_cross_entropy(input, linear_weight, target, *, linear_bias=None, weight=None, reduction="mean", ignore_index=None,
                         label_smoothing=0.0, options=None):  # fmt: skip
    """The cross entropy of logits that a linear layer makes; `linear_weight` is `[classes, .., features]`. `options` choose
    between ways to compute it in PyTorch and change nothing.
    """
    classes, *more, width = linear_weight.shape
    bias = None if linear_bias is None else linear_bias.reshape(-1)
    logits = linear(input, linear_weight.reshape(-1, width), bias).reshape(*input.shape[:-1], classes, *more)
    return cross_entropy(logits, target, weight, None, -100 if ignore_index is None else ignore_index, None, reduction, label_smoothing)


def nll_loss(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean"):
    """Negative log likelihood of log probabilities against class numbers."""
    reduction = _how(size_average, reduce, reduction)
    if weight is None:
        return input.nll_loss(target, ignore_index, reduction)
    return input.nll_loss_weighted(target, weight, ignore_index, reduction)


def binary_cross_entropy(input, target, weight=None, size_average=None, reduce=None, reduction="mean"):
    """Binary cross entropy of probabilities; `weight` is a factor of each term."""
    return input.binary_cross_entropy(target, weight, _how(size_average, reduce, reduction))


def binary_cross_entropy_with_logits(input, target, weight=None, size_average=None, reduce=None, reduction="mean", pos_weight=None):
    """Binary cross entropy of logits; `weight` is a factor of each term, `pos_weight` of those whose target is 1."""
    return input.binary_cross_entropy_with_logits(target, weight, pos_weight, _how(size_average, reduce, reduction))


@_in_steps
def kl_div(input, target, size_average=None, reduce=None, reduction="mean", log_target=False):
    """Kullback and Leibler's divergence of log probabilities `input` from `target`; `"batchmean"` divides the sum by the
    first extent, as its definition does.
    """
    reduction = _how(size_average, reduce, reduction)
    if reduction == "batchmean":
        return input.kl_div(target, log_target, "sum") / input.shape[0]
    return input.kl_div(target, log_target, reduction)


def poisson_nll_loss(input, target, log_input=True, full=False, size_average=None, eps=1e-8, reduce=None, reduction="mean"):
    """Negative log likelihood of counts under Poisson's distribution of a rate, or of its logarithm."""
    return input.poisson_nll_loss(target, log_input, full, eps, _how(size_average, reduce, reduction))


def gaussian_nll_loss(input, target, var, full=False, eps=1e-6, reduction="mean"):
    """Negative log likelihood under normal distributions with means `input` and variances `var`."""
    var = var if isinstance(var, Tensor) else input.full_like(var)
    return input.gaussian_nll_loss(target, var, full, eps, reduction)


def hinge_embedding_loss(input, target, margin=1.0, size_average=None, reduce=None, reduction="mean"):
    """Distances where the target is 1; the excess of `margin` over them where it is -1."""
    return input.hinge_embedding_loss(target, margin, _how(size_average, reduce, reduction))


def margin_ranking_loss(input1, input2, target, margin=0, size_average=None, reduce=None, reduction="mean"):
    """How wrongly pairs are ordered."""
    return input1.margin_ranking_loss(input2, target, margin, _how(size_average, reduce, reduction))


def cosine_embedding_loss(input1, input2, target, margin=0, size_average=None, reduce=None, reduction="mean"):
    """How like pairs are that should, and should not, be."""
    return input1.cosine_embedding_loss(input2, target, margin, _how(size_average, reduce, reduction))


def soft_margin_loss(input, target, size_average=None, reduce=None, reduction="mean"):
    """`log(1 + exp(-target input))`."""
    return input.soft_margin_loss(target, _how(size_average, reduce, reduction))


def multi_margin_loss(input, target, p=1, margin=1.0, weight=None, size_average=None, reduce=None, reduction="mean"):
    """How far other classes come near the right one."""
    return input.multi_margin_loss(target, p, margin, weight, _how(size_average, reduce, reduction))


def multilabel_margin_loss(input, target, size_average=None, reduce=None, reduction="mean"):
    """How far other classes come near the right ones, of which there may be several."""
    return input.multilabel_margin_loss(target, _how(size_average, reduce, reduction))


def multilabel_soft_margin_loss(input, target, weight=None, size_average=None, reduce=None, reduction="mean"):
    """The mean over classes of the binary cross entropies of logits; `weight` is a factor of each class."""
    return input.multilabel_soft_margin_loss(target, weight, _how(size_average, reduce, reduction))


def ctc_loss(log_probs, targets, input_lengths, target_lengths, blank=0, reduction="mean", zero_infinity=False):
    """Connectionist temporal classification: of log probabilities `[time, n, classes]`; targets are rows, or one row
    with those of all examples one after the other.
    """
    if targets.ndim == 1 and log_probs.ndim == 3:
        lengths = target_lengths.tolist() if hasattr(target_lengths, "tolist") else list(target_lengths)
        if sum(lengths) != len(targets):
            raise ValueError(f"ctc_loss: {len(targets)} targets are not {sum(lengths)}, the sum of target_lengths")
        ends = [sum(lengths[: i + 1]) for i in range(len(lengths))]
        # Places behind the end of an example are not looked at.
        rows = [[min(end - n + i, len(targets) - 1) for i in range(max(lengths))] for n, end in zip(lengths, ends)]
        targets = targets[_tensor(rows, dtype="int64")] if len(targets) else targets.reshape(len(lengths), 0)
    return log_probs.ctc_loss(targets, input_lengths, target_lengths, blank, zero_infinity, reduction)


def triplet_margin_loss(anchor, positive, negative, margin=1.0, p=2, eps=1e-6, swap=False, size_average=None, reduce=None,
                        reduction="mean"):  # fmt: skip
    """How much farther the negative is than the positive; with `swap` from the nearer of the other two."""
    return anchor.triplet_margin_loss(positive, negative, margin, p, eps, swap, _how(size_average, reduce, reduction))


def triplet_margin_with_distance_loss(anchor, positive, negative, *, distance_function=None, margin=1.0, swap=False, reduction="mean"):
    """`triplet_margin_loss` by another distance: a function of two tensors, by default `pairwise_distance`."""
    if margin <= 0:
        raise ValueError(f"margin {margin} is not above 0")
    distance = pairwise_distance if distance_function is None else distance_function
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = far.minimum(distance(positive, negative))
    terms = (near - far + margin).clamp(0)
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"{reduction!r} is no reduction; 'mean', 'sum' and 'none' are")
    return terms if reduction == "none" else getattr(terms, reduction)()


def scaled_dot_product_attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None,
                                 enable_gqa=False):  # fmt: skip
    """What queries find among keys and values; weights are dropped with probability `dropout_p`."""
    return query.scaled_dot_product_attention(key, value, attn_mask, is_causal, scale, enable_gqa, dropout_p=dropout_p)


def multi_head_attention_forward(query, key, value, embed_dim_to_check, num_heads, in_proj_weight, in_proj_bias, bias_k, bias_v,
                                 add_zero_attn, dropout_p, out_proj_weight, out_proj_bias, training=True, key_padding_mask=None,
                                 need_weights=True, attn_mask=None, use_separate_proj_weight=False, q_proj_weight=None, k_proj_weight=None,
                                 v_proj_weight=None, static_k=None, static_v=None, average_attn_weights=True, is_causal=False):  # fmt: skip
    """Attention of several heads: queries, keys and values `[steps, n, width]` or `[steps, width]`; the result, and the weights
    by which it was found or `None`. Masks are true where a key is hidden, or numbers that are added to the logits.
    """
    batched = query.ndim == 3
    if static_k is not None or static_v is not None:
        raise NotImplementedError("multi_head_attention_forward: static_k and static_v")
    if key_padding_mask is not None and not batched:
        key_padding_mask = key_padding_mask.unsqueeze(0)
    given = [x.transpose(0, 1) if batched else x.unsqueeze(0) for x in (query, key, value)]
    weights = [q_proj_weight, k_proj_weight, v_proj_weight] if use_separate_proj_weight else in_proj_weight
    found, seen = _attend(given, embed_dim_to_check, num_heads, weights, in_proj_bias, bias_k, bias_v, add_zero_attn,
                          dropout_p if training else 0.0, key_padding_mask, need_weights, attn_mask, is_causal)  # fmt: skip
    found = linear(found, out_proj_weight, out_proj_bias)
    found = found.transpose(0, 1) if batched else found.squeeze(0)
    if seen is not None:
        seen = seen.mean(1) if average_attn_weights else seen
        seen = seen if batched else seen.squeeze(0)
    return found, seen


def _attend(given, width, heads, weights, bias, bias_k, bias_v, zeros, dropout_p, padding, need_weights, mask, is_causal):
    """Attention of `[n, steps, width]` queries before the last product, and the weights of each head."""
    q, k, v = given
    n, *steps = q.shape
    if len(steps) != 2 or steps[1] != width:
        raise ValueError(f"attention: was expecting embedding dimension of {width}, but got a query of shape {q.shape}")
    heads_of = width // heads
    if heads_of * heads != width:
        raise ValueError(f"attention: {heads} heads do not divide a width of {width}")
    projected = []
    for i, x in enumerate((q, k, v)):
        weight = weights[i] if isinstance(weights, list) else weights.narrow(0, i * width, width)
        projected.append(linear(x, weight, None if bias is None else bias.narrow(0, i * width, width)))
    q, k, v = projected
    more = 0
    if bias_k is not None:
        k, v, more = (Tensor.cat([x, b.reshape(1, 1, width).expand(n, 1, width)], 1) for x, b in ((k, bias_k), (v, bias_v))), None, 1
        k, v = k
    if zeros:
        k, v = (Tensor.cat([x, x.new_zeros((n, 1, width))], 1) for x in (k, v))
        more += 1
    q, k, v = (x.reshape(n, tuple(x.shape)[1], heads, heads_of).transpose(1, 2) for x in (q, k, v))
    (_, _, queries, _), (_, _, keys, _) = q.shape, k.shape
    if mask is not None:
        if mask.ndim == 3:
            mask = mask.reshape(n, heads, queries, keys - more)
        elif mask.ndim != 2:
            raise ValueError(f"attention: a mask has 2 or 3 axes, not shape {mask.shape}")
    mask = _seen(mask, padding, more)
    if is_causal and mask is not None and more:
        raise NotImplementedError("attention: is_causal with bias_k, bias_v or add_zero_attn; give attn_mask alone")
    if not need_weights:
        found, weights = q.scaled_dot_product_attention(k, v, mask, is_causal, dropout_p=dropout_p), None
    elif dropout_p:
        # The weights that are given back are those that were used.
        unit = Tensor.eye(keys, dtype=v.dtype, device=v.device)
        weights = q.scaled_dot_product_attention(k, unit, mask, is_causal).dropout(dropout_p)
        found = weights @ v
    else:
        # Both by the same attention; the weights are computed only for those who read them.
        unit = Tensor.eye(keys, dtype=v.dtype, device=v.device)
        found, weights = (q.scaled_dot_product_attention(k, x, mask, is_causal) for x in (v, unit))
    return found.transpose(1, 2).reshape(n, queries, width), weights


def _seen(mask, padding, more):
    """A mask and padding together, as attention takes them: bools where a key is seen, or numbers to be added. `more` keys at
    the end are always seen.
    """
    if more:
        mask = None if mask is None else mask.pad([(0, 0)] * (mask.ndim - 1) + [(0, more)])
        padding = None if padding is None else padding.pad([(0, 0), (0, more)])
    if padding is not None:
        padding = padding.unsqueeze(1).unsqueeze(1)
    if mask is not None and not _floating(mask):
        mask = ~mask.cast("bool")
    if padding is None:
        return mask
    if _floating(padding):
        if mask is None or _floating(mask):
            return padding if mask is None else mask + padding
        return mask.where_(padding, -float("inf"))
    padding = ~padding.cast("bool")
    if mask is None:
        return padding
    return padding.where_(mask, -float("inf")) if _floating(mask) else padding & mask


def _floating(input):
    return input.dtype.name in ("float16", "bfloat16", "float32", "float64")


def _convolution(axes, name):
    method = getattr(Tensor, name)

    def convolution(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
        _same(name, input, weight)
        if input.ndim == axes + 1:
            return convolution(input.unsqueeze(0), weight, bias, stride, padding, dilation, groups).squeeze(0)
        if padding == "same":
            if stride != 1 and set(stride) != {1}:
                raise ValueError("padding='same' needs stride 1")
            each = [dilation] * axes if isinstance(dilation, int) else list(dilation)
            return input.conv_same(weight, bias, each, groups)
        if isinstance(padding, str) and padding != "valid":
            raise ValueError(f"padding is a number or 'same' or 'valid', not {padding!r}")
        padding = 0 if padding == "valid" else padding
        if axes == 1:
            stride, padding, dilation = (n if isinstance(n, int) else _only(n) for n in (stride, padding, dilation))
        if axes == 2 and groups == 1 and input.ndim == 4 and weight.ndim == 4 and input.shape[3] == weight.shape[3] > 1:
            found = _of_whole_rows(input, weight, bias, stride, padding, dilation)
            if found is not None:
                return found
        return method(input, weight, bias, stride, padding, dilation, groups)

    convolution.__name__ = convolution.__qualname__ = name
    convolution.__doc__ = f"""Convolution over the last {axes} axes; `padding` may be `"same"` or `"valid"`."""
    return convolution


def _of_whole_rows(input, weight, bias, stride, padding, dilation):
    """A 2-d convolution whose kernel is as wide as its input, as one along the other axis, or as a product if it is as high, too.
    The gradient of the input would otherwise be a convolution over as many zeros as the kernel has elements. `None` with padding.
    """
    stride, padding, dilation = ((n, n) if isinstance(n, int) else tuple(n) for n in (stride, padding, dilation))
    if len(padding) != 2 or padding[1] != 0 or dilation[1] != 1 or input.shape[1] != weight.shape[1]:
        return None
    outputs, _, high, _ = weight.shape
    if high == input.shape[2] and padding[0] == 0 and dilation[0] == 1:
        return linear(input.flatten(1), weight.flatten(1), bias).reshape(input.shape[0], outputs, 1, 1)
    rows, kernel = (x.transpose(2, 3).reshape(x.shape[0], -1, x.shape[2]) for x in (input, weight))
    return rows.conv1d(kernel, bias, stride[0], padding[0], dilation[0]).unsqueeze(-1)


def _only(numbers):
    (number,) = numbers
    return number


def _conv_transpose(axes, name):
    method = getattr(Tensor, name)

    def convolution(input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
        _same(name, input, weight)
        if input.ndim == axes + 1:
            return convolution(input.unsqueeze(0), weight, bias, stride, padding, output_padding, groups, dilation).squeeze(0)
        return method(input, weight, bias, stride, padding, output_padding, groups, dilation)

    return _called(convolution, name, f"""Transposed convolution over the last {axes} axes: each element spreads to a window.""")


def _called(function, name, doc):
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


conv_transpose1d, conv_transpose2d, conv_transpose3d = (_conv_transpose(axes, f"conv_transpose{axes}d") for axes in (1, 2, 3))
conv1d, conv2d, conv3d = (_convolution(axes, f"conv{axes}d") for axes in (1, 2, 3))


def _max_pool(name):
    plain, both = getattr(Tensor, name), getattr(Tensor, name + "_with_indices")

    def pool(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
        return (both if return_indices else plain)(input, kernel_size, stride, padding, dilation, ceil_mode)

    pool.__name__ = pool.__qualname__ = name
    pool.__doc__ = """The largest element of each window, with `return_indices` also where it was."""
    return pool


max_pool1d, max_pool2d, max_pool3d = (_max_pool(f"max_pool{axes}d") for axes in (1, 2, 3))


def _avg_pool(axes):
    name = f"avg_pool{axes}d"
    method = getattr(Tensor, name)

    def pool(input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None):
        if divisor_override is None:
            return method(input, kernel_size, stride, padding, ceil_mode=ceil_mode, count_include_pad=count_include_pad)
        if divisor_override == 0:
            raise RuntimeError("divisor must be not zero")
        kernel, around = ([n] * axes if isinstance(n, int) else list(n) for n in (kernel_size, padding))
        steps = kernel if stride is None else [stride] * axes if isinstance(stride, int) else list(stride)
        pads = [(0, 0)] * (input.ndim - axes)
        for n, k, step, p in zip(input.shape[-axes:], kernel, steps, around):
            more = n + 2 * p - k
            count = (-(-more // step) if ceil_mode else more // step) + 1
            # The last window begins within the input or the padding before it.
            count -= ceil_mode and (count - 1) * step >= n + p
            pads.append((p, max((count - 1) * step + k - n - p, 0)))
        return method(input.pad(pads), kernel, steps) * (_math.prod(kernel) / divisor_override)

    pool.__name__ = pool.__qualname__ = name
    pool.__doc__ = """The mean of each window."""
    return pool


avg_pool1d, avg_pool2d, avg_pool3d = (_avg_pool(axes) for axes in (1, 2, 3))


def _lp_pool(axes):
    method = getattr(Tensor, f"lp_pool{axes}d")

    def pool(input, norm_type, kernel_size, stride=None, ceil_mode=False):
        return method(input, norm_type, kernel_size, stride, ceil_mode=ceil_mode)

    pool.__name__ = pool.__qualname__ = f"lp_pool{axes}d"
    pool.__doc__ = """The p-norm of each window."""
    return pool


lp_pool1d, lp_pool2d, lp_pool3d = (_lp_pool(axes) for axes in (1, 2, 3))


def _each(sizes, input, axes):
    """The extents of a result, of which `None` stands for the input's."""
    sizes = [sizes] * axes if sizes is None or isinstance(sizes, int) else list(sizes)
    if len(sizes) != axes:
        raise ValueError(f"output_size {sizes} is not one number for each of {axes} axes")
    return [n if m is None else m for m, n in zip(sizes, input.shape[input.ndim - axes :])]


def _adaptive_avg(axes):
    name = f"adaptive_avg_pool{axes}d"
    method = getattr(Tensor, name)

    def pool(input, output_size):
        return method(input, _each(output_size, input, axes))

    return _called(pool, name, """Means of windows of nearly one size that give `output_size`; `None` leaves an extent as it is.""")


def _windows(input, starts, lengths):
    """The largest element of windows, and its place among the elements of the last axes: `starts` and `lengths` have for each
    axis the numbers of its windows, or one row of them for each channel. Windows are longer than `lengths` nowhere.
    """
    axes = len(starts)
    lead, extents = list(input.shape[: input.ndim - axes]), list(input.shape[input.ndim - axes :])
    flat = input.reshape(*lead, _math.prod(extents))
    place, inside = None, None
    for axis, (first, length) in enumerate(zip(starts, lengths)):
        # [.., windows, elements of a window] of this axis, the other axes of the result beside it.
        longest = max(length)
        step = Tensor.arange(longest, dtype="int64", device=input.device)
        at = first.unsqueeze(-1) + step
        holds = (step < _tensor(length, dtype="int64", device=input.device).unsqueeze(-1)).expand(at.shape)
        at = at.clamp(max=extents[axis] - 1)
        shape = [1] * (2 * axes)
        shape[axis], shape[axes + axis] = at.shape[-2], at.shape[-1]
        at, holds = (x.reshape([*x.shape[:-2], *shape]) for x in (at, holds))
        place = at if place is None else place * extents[axis] + at
        inside = holds if inside is None else inside & holds
    sizes = list(place.shape[-2 * axes :])
    wide = [*lead, *sizes]
    place, inside = place.expand(wide), inside.expand(wide)
    values = flat.gather(-1, place.reshape(*lead, -1)).reshape(*lead, *sizes[:axes], -1)
    place, inside = (x.reshape(*lead, *sizes[:axes], -1) for x in (place, inside))
    best = inside.where_(values.detach(), -float("inf")).argmax(-1).unsqueeze(-1)
    return values.gather(-1, best).squeeze(-1), place.gather(-1, best).squeeze(-1)


def _adaptive_max(axes):
    name = f"adaptive_max_pool{axes}d"
    method = getattr(Tensor, name)

    def pool(input, output_size, return_indices=False):
        sizes = _each(output_size, input, axes)
        if not return_indices:
            return method(input, sizes)
        extents = input.shape[input.ndim - axes :]
        starts = [[i * n // m for i in range(m)] for n, m in zip(extents, sizes)]
        lengths = [[-(-(i + 1) * n // m) - i * n // m for i in range(m)] for n, m in zip(extents, sizes)]
        return _windows(input, [_tensor(first, dtype="int64", device=input.device) for first in starts], lengths)

    def both(input, output_size, return_indices=False):
        return pool(input, output_size, True)

    doc = """The largest of windows of nearly one size that give `output_size`; `None` leaves an extent as it is.{}"""
    more = " With `return_indices` also where they were."
    return _called(pool, name, doc.format(more)), _called(both, name + "_with_indices", doc.format(" Also where they were."))


def _fractional_max(axes):
    name = f"fractional_max_pool{axes}d"

    def pool(input, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None):
        if (output_size is None) == (output_ratio is None):
            raise ValueError(f"{name}: either output_size or output_ratio is given")
        if input.ndim not in (axes + 1, axes + 2):
            raise ValueError(f"{name}: needs [n, channels, ..] or [channels, ..] with {axes} more axes, not shape {input.shape}")
        extents = input.shape[input.ndim - axes :]
        if output_size is None:
            ratios = [output_ratio] * axes if isinstance(output_ratio, (int, float)) else list(output_ratio)
            if not all(0 < r < 1 for r in ratios):
                raise ValueError(f"{name}: output_ratio {output_ratio} is not between 0 and 1")
            output_size = [int(n * r) for n, r in zip(extents, ratios)]
        sizes = _each(output_size, input, axes)
        kernel = [kernel_size] * axes if isinstance(kernel_size, int) else list(kernel_size)
        if any(m + k - 1 > n for n, m, k in zip(extents, sizes, kernel)):
            raise ValueError(f"{name}: output_size {sizes} with windows {kernel} does not fit into {extents}")
        lead = list(input.shape[: input.ndim - axes])
        if _random_samples is None:
            _random_samples = Tensor.rand([*lead, axes], dtype="float32", device=input.device)
        samples, starts = _random_samples.reshape([*lead, axes]).cast(input.dtype if _floating(input) else "float32"), []
        for axis, (n, m, k) in enumerate(zip(extents, sizes, kernel)):
            # Samples are in the order of the axes from the last.
            u = samples[..., axes - 1 - axis].unsqueeze(-1)
            if m == 1:
                starts.append(_tensor([n - k], dtype="int64", device=input.device).expand(*lead, 1))
                continue
            alpha = (n - k) / (m - 1)
            i = Tensor.arange(m - 1, dtype=u.dtype, device=input.device)
            first = ((i + u) * alpha).cast("int64") - (u * alpha).cast("int64")
            starts.append(Tensor.cat([first, first[..., :1].full_like(n - k)], -1))
        found = _windows(input, starts, [[k] * m for k, m in zip(kernel, sizes)])
        return found if return_indices else found[0]

    def both(input, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None):
        return pool(input, kernel_size, output_size, output_ratio, True, _random_samples)

    doc = """The largest elements of windows at pseudo-random places (Graham 2014).{}"""
    return _called(pool, name, doc.format("")), _called(both, name + "_with_indices", doc.format(" Also where they were."))


adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d = (_adaptive_avg(axes) for axes in (1, 2, 3))
adaptive_max_pool1d, adaptive_max_pool1d_with_indices = _adaptive_max(1)
adaptive_max_pool2d, adaptive_max_pool2d_with_indices = _adaptive_max(2)
adaptive_max_pool3d, adaptive_max_pool3d_with_indices = _adaptive_max(3)
fractional_max_pool2d, fractional_max_pool2d_with_indices = _fractional_max(2)
fractional_max_pool3d, fractional_max_pool3d_with_indices = _fractional_max(3)


def _max_unpool(axes):
    method = getattr(Tensor, f"max_unpool{axes}d")

    def each(n):
        return [n] * axes if isinstance(n, int) else list(n)

    def unpool(input, indices, kernel_size, stride=None, padding=0, output_size=None):
        kernel, pads = each(kernel_size), each(padding)
        strides = kernel if stride is None else each(stride)
        extents = zip(input.shape[-axes:], strides, pads, kernel)
        usual = [(n - 1) * step - 2 * around + size for n, step, around, size in extents]
        if output_size is None:
            return method(input, indices, usual)
        # Several extents are pooled to one: those less than a stride from the usual.
        wanted = list(output_size)[-axes:]
        if any(abs(n - m) >= step for n, m, step in zip(wanted, usual, strides)):
            raise ValueError(f"output_size {wanted} is not within a stride of {usual}")
        return method(input, indices, wanted)

    unpool.__name__ = unpool.__qualname__ = f"max_unpool{axes}d"
    unpool.__doc__ = f"""Elements put where `max_pool{axes}d(..., return_indices=True)` took them, zeros elsewhere."""
    return unpool


max_unpool1d, max_unpool2d, max_unpool3d = (_max_unpool(axes) for axes in (1, 2, 3))


# Radius of a filter, in elements, and its value at a distance: a triangle, and the cubic of Catmull and Rom.
_FILTERS = {
    "bilinear": (1.0, lambda x: max(1.0 - x, 0.0)),
    "bicubic": (2.0, lambda x: (1.5 * x - 2.5) * x * x + 1 if x < 1 else ((2.5 - 0.5 * x) * x - 4.0) * x + 2 if x < 2 else 0.0),
}  # fmt: skip


def _filtered(input, axis, size, scale, mode):
    """An axis of another extent, each element a mean of those within the radius of a filter as wide as the distance of results."""
    from .._core import tensor

    radius, weight = _FILTERS[mode]
    n, wide = input.shape[axis], max(scale, 1.0)
    rows = []
    for i in range(size):
        center, row = scale * (i + 0.5), [0.0] * n
        first, last = max(int(center - radius * wide + 0.5), 0), min(int(center + radius * wide + 0.5), n)
        for j in range(first, last):
            row[j] = weight(abs(j - center + 0.5) / wide)
        total = sum(row)
        rows.append([x / total if total else x for x in row])
    weights = tensor(rows, dtype=input.dtype, device=input.device)
    return (input.movedim(axis, -1) @ weights.mT).movedim(-1, axis)


@_in_steps
def _antialiased(input, size, scale_factor, mode, align_corners, recompute_scale_factor):
    if input.ndim != 4 or mode not in _FILTERS:
        raise ValueError(f"interpolate: antialias is for images of four axes, 'bilinear' or 'bicubic', not {mode!r} of {input.ndim} axes")
    if (size is None) == (scale_factor is None):
        raise ValueError("either size or scale_factor is given")
    each = lambda x: [x, x] if isinstance(x, (int, float)) else list(x)  # noqa: E731
    factors = None if scale_factor is None else each(scale_factor)
    sizes = [int(n * f) for n, f in zip(input.shape[2:], factors)] if size is None else each(size)
    if len(sizes) != 2 or min(sizes) < 1 or 0 in input.shape[2:]:
        raise ValueError(f"interpolate: a size {sizes} of an image of {tuple(input.shape[2:])}")
    for axis, wanted in ((2, sizes[0]), (3, sizes[1])):
        n = input.shape[axis]
        if align_corners:
            scale = (n - 1) / (wanted - 1) if wanted > 1 else 0.0
        else:
            scale = 1 / factors[axis - 2] if factors and not recompute_scale_factor else n / wanted
        if n != wanted or scale != 1:
            input = _filtered(input, axis, wanted, scale, mode)
    return input


def interpolate(input, size=None, scale_factor=None, mode="nearest", align_corners=None, recompute_scale_factor=None,
                antialias=False):  # fmt: skip
    """The axes behind the first two with the extents `size`, or `scale_factor` times theirs. `"linear"`, `"bilinear"`
    and `"trilinear"` are one mode, as are `"cubic"` and `"bicubic"`. Places follow from the factor, or with
    `recompute_scale_factor` from the extents. With `antialias` smaller images are means of all elements.
    """
    axes = input.ndim - 2
    if antialias:
        return _antialiased(input, size, scale_factor, mode, align_corners, recompute_scale_factor)
    if (size is None) == (scale_factor is None):
        raise ValueError("either size or scale_factor is given")
    mode = _INTERPOLATIONS.get(mode, mode)
    if size is None:
        factors = [scale_factor] * axes if isinstance(scale_factor, (int, float)) else list(scale_factor)
        if len(factors) != axes:
            raise ValueError(f"scale_factor {factors} is not one number for each of {axes} axes")
        if not recompute_scale_factor:
            return input.interpolate_by([float(f) for f in factors], mode, bool(align_corners))
        size = [int(n * f) for n, f in zip(input.shape[2:], factors)]
    elif recompute_scale_factor:
        raise ValueError("there is no factor to compute again where size is given")
    sizes = [size] * axes if isinstance(size, int) else list(size)
    if len(sizes) != axes:
        raise ValueError(f"size {sizes} is not one number for each of {axes} axes")
    return input.interpolate(sizes, mode, bool(align_corners))


def upsample(input, size=None, scale_factor=None, mode="nearest", align_corners=None):
    """`interpolate` under an older name."""
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input, size=None, scale_factor=None):
    """`interpolate` with the nearest element."""
    return interpolate(input, size, scale_factor, "nearest")


def upsample_bilinear(input, size=None, scale_factor=None):
    """`interpolate` by straight lines, corners on corners."""
    return interpolate(input, size, scale_factor, "bilinear", True)


def conv_tbc(input, weight, bias, pad=0):
    """Convolution over `[time, n, channels]` by a weight `[kernel, in, out]`."""
    return conv1d(input.permute(1, 2, 0), weight.permute(2, 1, 0), bias, padding=pad).permute(2, 0, 1)


def unfold(input, kernel_size, dilation=1, padding=0, stride=1):
    """Windows of an image as columns: `[n, channels * kernel, positions]`."""
    return input.im2col(kernel_size, stride, padding, dilation)


def fold(input, output_size, kernel_size, dilation=1, padding=0, stride=1):
    """Columns added up where their windows lie: the adjoint of `unfold`."""
    return input.col2im(output_size, kernel_size, stride, padding, dilation)


@_in_steps
def affine_grid(theta, size, align_corners=False):
    """Places `[n, height, width, 2]` for `grid_sample`, by matrices `[n, 2, 3]`."""
    n, _, height, width = size

    def ends(extent):
        last = 1.0 if align_corners else 1.0 - 1.0 / extent
        return Tensor.linspace(-last if extent > 1 else 0.0, last, extent, dtype=theta.dtype, device=theta.device)

    y, x = ends(height).unsqueeze(1).expand(height, width), ends(width).expand(height, width)
    at = Tensor.stack([x, y, x.ones_like()], -1).reshape(1, height * width, 3)
    return (at @ theta.mT).reshape(n, height, width, 2)


def grid_sample(input, grid, mode="bilinear", padding_mode="zeros", align_corners=None):
    """The elements of images at the places of a grid."""
    if mode not in ("bilinear", "nearest", "bicubic") or padding_mode not in ("zeros", "border", "reflection"):
        raise ValueError(f"grid_sample: mode {mode!r} with padding_mode {padding_mode!r}")
    if mode == "bicubic":
        return _sample_cubic(input, grid, padding_mode, align_corners)
    if padding_mode == "reflection":
        grid = _where(grid.abs() <= 1, grid, 1 - ((grid + 1) % 4 - 2).abs())
    return input.grid_sample(grid, mode == "nearest", padding_mode != "zeros", bool(align_corners))


def _cubic(t):
    """The weights of four neighbours, of which the second is `t` before a place: Keys' kernel, a = -0.75."""
    near = lambda x: (1.25 * x - 2.25) * x * x + 1
    far = lambda x: ((-0.75 * x + 3.75) * x - 6) * x + 3
    return far(t + 1), near(t), near(1 - t), far(2 - t)


def _sample_cubic(input, grid, padding, corners):
    n, channels, *extents = input.shape
    wide = input.float() if input.dtype.itemsize < 4 else input
    flat, grid = wide.reshape(n, channels, -1), grid.to(wide.dtype)

    def axis(x, extent):
        x = (x + 1) * ((extent - 1) / 2) if corners else ((x + 1) * extent - 1) / 2
        low, found = x.floor(), []
        for i, weight in enumerate(_cubic(x - low)):
            at = low + (i - 1)
            if padding == "reflection":
                # Once and back again is a period; ends are shown once or twice.
                start, period = (0, max(2 * extent - 2, 1)) if corners else (0.5, 2 * extent)
                at = period / 2 - ((at + start) % period - period / 2).abs() - start
            if padding == "zeros":
                weight = _where((at >= 0) & (at < extent), weight, 0.0)
            found.append((at.clamp(0, extent - 1).long(), weight))
        return found

    columns, total = axis(grid[..., 0], extents[1]), 0
    for y, of_row in axis(grid[..., 1], extents[0]):
        for x, weight in columns:
            at = (y * extents[1] + x).reshape(n, 1, -1).expand(n, channels, -1)
            total = total + flat.gather(2, at) * (weight * of_row).reshape(n, 1, -1)
    return total.reshape(n, channels, *grid.shape[1:3]).to(input.dtype)


_take_out(globals(), {"normalize"})



def __getattr__(name):
    method = None if name.startswith("_") else getattr(Tensor, name, None)
    if not callable(method):
        raise AttributeError(f"module 'zyx.nn.functional' has no attribute {name!r}{_elsewhere(name)}")
    return _function(name)


def __dir__():
    methods = (name for name in dir(Tensor) if not name.startswith("_") and callable(getattr(Tensor, name)))
    return sorted({*methods, *(name for name in globals() if not name.startswith("_") and callable(globals()[name]))})
