"""Functions under the names, and with the parameters, of `torch.nn.functional`:
`import zyx.nn.functional as F`, then `F.relu(x)`.

What is not defined here is the method of `Tensor` of that name. Defined are those whose parameters
PyTorch has in another order, or with other meanings, than the methods.
"""

import math as _math

from .._aliases import elsewhere as _elsewhere
from .._core import Tensor
from .._core import tensor as _tensor
from .._functions import where as _where
from .._grad_mode import no_grad as _no_grad
from .._names import function as _function
from .._names import in_place as _in_place
from .._names import take_out as _take_out
from .._steps import in_steps as _in_steps

_MODES = {"constant": "zeros", "reflect": "reflect", "replicate": "replicate", "circular": "circular"}
_INTERPOLATIONS = {"bilinear": "linear", "trilinear": "linear", "bicubic": "cubic"}


def linear(input, weight, bias=None):
    """`input @ weight.T + bias`."""
    y = input.matmul(weight.t())
    return y if bias is None else y + bias


@_in_steps
def bilinear(input1, input2, weight, bias=None):
    """`input1 weight[i] input2` for every `i`, plus `bias`."""
    found = Tensor.einsum("...i,oij,...j->...o", [input1, weight, input2])
    return found if bias is None else found + bias


def embedding(input, weight, padding_idx=None):
    """The rows of `weight` that the indices `input` name. The row `padding_idx` gets no gradient."""
    rows = weight.embedding(input)
    if padding_idx is None:
        return rows
    n = weight.shape[0]
    if not -n <= padding_idx < n:
        raise ValueError(f"padding_idx {padding_idx} is none of {n} rows")
    return (input == padding_idx % n).unsqueeze(-1).where_(rows.detach(), rows)


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


@_in_steps
def softplus(input, beta=1.0, threshold=20.0):
    """`log(1 + exp(beta input)) / beta`; `input` itself where `beta input` exceeds `threshold`."""
    scaled = input * beta
    return (scaled > threshold).where_(input, scaled.softplus() / beta)


@_in_steps
def normalize(input, p=2.0, dim=1, eps=1e-12):
    """Divided by the p-norm along `dim`, or by `eps` if that is larger."""
    return input / input.norm(p, dim, keepdim=True).maximum(eps)


def dropout(input, p=0.5, training=True):
    """Elements zeroed with probability `p` and the others scaled up, in training."""
    return input.dropout(p) if training else input


def _channels(axes):
    def channel_dropout(input, p=0.5, training=True):
        # An axis of examples may be missing, as in PyTorch; of images `[n, channels, length]` it is the first.
        lead = input.ndim - axes if axes != 2 or input.ndim == 4 else 2
        if lead not in (1, 2):
            raise ValueError(f"dropout{axes}d needs channels and {axes} axes, not shape {input.shape}")
        if not training:
            return input
        kept = Tensor.ones([*input.shape[:lead], *[1] * (input.ndim - lead)], dtype=input.dtype, device=input.device)
        return input * kept.dropout(p)

    channel_dropout.__name__ = channel_dropout.__qualname__ = f"dropout{axes}d"
    channel_dropout.__doc__ = f"""Whole channels with {axes} axes zeroed with probability `p` and the others scaled up, in training."""
    return channel_dropout


dropout1d, dropout2d, dropout3d = (_channels(axes) for axes in (1, 2, 3))


@_in_steps
def alpha_dropout(input, p=0.5, training=False):
    """Elements set to the lower limit of `selu` with probability `p`, all scaled and moved so that mean 0 and variance 1
    stay, in training.
    """
    if not 0 <= p <= 1:
        raise ValueError(f"{p} is no probability")
    if not training or p == 0:
        return input
    if p == 1:
        return input * 0.0
    lowest, kept = -1.7580993408473766, 1 - p
    scale = (kept * (1 + p * lowest**2)) ** -0.5
    return input.where(Tensor.rand(input.shape, device=input.device) < kept, lowest) * scale - scale * lowest * p


def gumbel_softmax(logits, tau=1, hard=False, eps=1e-10, dim=-1):
    """Samples of the classes along `dim`, made differentiable. `eps` is PyTorch's guard, which is not needed here."""
    return logits.gumbel_softmax(tau, hard, dim)


@_in_steps
def embedding_bag(input, weight, offsets=None, *, mode="mean", per_sample_weights=None, include_last_offset=False, padding_idx=None):
    """Rows of a table, those of a bag made one by `"sum"`, `"mean"` or `"max"`: a bag is a row of `input`, or of a list `input`
    what begins at each of `offsets`. The row `padding_idx` counts nowhere. An empty bag gives zeros.
    """
    if mode not in ("sum", "mean", "max"):
        raise ValueError(f"mode is 'sum', 'mean' or 'max', not {mode!r}")
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError("per_sample_weights are for mode 'sum'")
    if (input.ndim, offsets is None) not in ((2, True), (1, False)):
        raise ValueError("a list of rows has offsets, a matrix has none")
    if input.ndim == 2 and padding_idx is None and input.shape[1]:
        rows = embedding(input, weight)
        if per_sample_weights is not None:
            rows = rows * per_sample_weights.unsqueeze(2)
        return getattr(rows, "amax" if mode == "max" else mode)(1)
    if input.ndim == 2:
        n, bag = input.shape[0], Tensor.iota(input.shape[0], device=input.device).unsqueeze(1).expand(input.shape).flatten()
    else:
        n = offsets.shape[0] - include_last_offset
        bag = offsets[:n].searchsorted(Tensor.iota(input.shape[0], device=input.device).cast(offsets.dtype), right=True) - 1
    input, shape = input.flatten(), (n, weight.shape[1])
    rows, counted = embedding(input, weight, padding_idx), Tensor.ones(input.shape, dtype=weight.dtype, device=input.device)
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


def _trailing(input, shape):
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    if input.shape[input.ndim - len(shape) :] != shape:
        raise ValueError(f"normalized_shape {shape} is not the end of the shape {input.shape}")
    return list(range(-len(shape), 0))


def layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-5):
    """Mean 0 and variance 1 over the last axes, which have the extents `normalized_shape`."""
    return input.layer_norm(_trailing(input, normalized_shape), weight, bias, eps)


def rms_norm(input, normalized_shape, weight=None, eps=None):
    """Divided by the root mean square over the last axes, which have the extents `normalized_shape`."""
    if eps is None:
        eps = {"float64": 2.0**-52, "float16": 2.0**-10, "bfloat16": 2.0**-7}.get(input.dtype.name, 2.0**-23)
    return input.rms_norm(_trailing(input, normalized_shape), weight, eps)


def batch_norm(input, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5):
    """Every channel (axis 1) normalised by the given statistics; in training by its own, of which `momentum` is written
    into the running ones, if these are given.
    """
    if training or running_mean is None:
        _several("batch_norm", input, 1)
        found, mean, var = input.batch_norm(weight, bias, eps)
        if training and running_mean is not None:
            with _no_grad():
                running_mean._write(running_mean * (1 - momentum) + mean * momentum)
                running_var._write(running_var * (1 - momentum) + var * momentum)
        return found
    return input.batch_norm_with(running_mean, running_var, weight, bias, eps)


def instance_norm(input, running_mean=None, running_var=None, weight=None, bias=None, use_input_stats=True, momentum=0.1, eps=1e-5):
    """Every channel of every example normalised, by its own statistics or the given ones."""
    if not use_input_stats:
        return input.batch_norm_with(running_mean, running_var, weight, bias, eps)
    _several("instance_norm", input, 0, 1)
    return input.group_norm(input.shape[1], weight, bias, eps)


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


def cross_entropy(input, target, weight=None, ignore_index=-100, reduction="mean", label_smoothing=0.0):
    """Cross entropy of logits, classes along axis 1 (or 0 of a vector), against class numbers or probabilities."""
    if weight is None and not _floating(target):
        return input.cross_entropy(target, ignore_index, label_smoothing, reduction)
    return input.cross_entropy_weighted(target, weight, ignore_index, label_smoothing, reduction)


def nll_loss(input, target, weight=None, ignore_index=-100, reduction="mean"):
    """Negative log likelihood of log probabilities against class numbers."""
    if weight is None:
        return input.nll_loss(target, ignore_index, reduction)
    return input.nll_loss_weighted(target, weight, ignore_index, reduction)


@_in_steps
def kl_div(input, target, reduction="mean", log_target=False):
    """Kullback and Leibler's divergence of log probabilities `input` from `target`; `"batchmean"` divides the sum by the
    first extent, as its definition does.
    """
    if reduction == "batchmean":
        return input.kl_div(target, log_target, "sum") / input.shape[0]
    return input.kl_div(target, log_target, reduction)


def huber_loss(input, target, reduction="mean", delta=1.0):
    """Half the square of the difference up to `delta`, beyond it linear with slope `delta`."""
    return input.huber_loss(target, delta, reduction)


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


def triplet_margin_loss(anchor, positive, negative, margin=1.0, p=2, eps=1e-6, swap=False, reduction="mean"):
    """How much farther the negative is than the positive; with `swap` from the nearer of the other two."""
    return anchor.triplet_margin_loss(positive, negative, margin, p, eps, swap, reduction)


def scaled_dot_product_attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None,
                                 enable_gqa=False):  # fmt: skip
    """What queries find among keys and values; weights are dropped with probability `dropout_p`."""
    return query.scaled_dot_product_attention(key, value, attn_mask, is_causal, scale, enable_gqa, dropout_p=dropout_p)


def _floating(input):
    return input.dtype.name in ("float16", "bfloat16", "float32", "float64")


def _convolution(axes, name):
    method = getattr(Tensor, name)

    def convolution(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
        if input.ndim == axes + 1:
            return convolution(input.unsqueeze(0), weight, bias, stride, padding, dilation, groups).squeeze(0)
        if padding == "same":
            if stride != 1 and set(stride) != {1}:
                raise ValueError("padding='same' needs stride 1")
            each = [dilation] * axes if isinstance(dilation, int) else list(dilation)
            return input.conv_same(weight, bias, each, groups)
        if isinstance(padding, str) and padding != "valid":
            raise ValueError(f"padding is a number or 'same' or 'valid', not {padding!r}")
        return method(input, weight, bias, stride, 0 if padding == "valid" else padding, dilation, groups)

    convolution.__name__ = convolution.__qualname__ = name
    convolution.__doc__ = f"""Convolution over the last {axes} axes; `padding` may be `"same"` or `"valid"`."""
    return convolution


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
        if ceil_mode:
            raise NotImplementedError("divisor_override with ceil_mode=True")
        size = kernel_size**axes if isinstance(kernel_size, int) else _math.prod(kernel_size)
        return method(input, kernel_size, stride, padding, count_include_pad=True) * (size / divisor_override)

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


def _adaptive(name, axes):
    method = getattr(Tensor, name)

    def pool(input, output_size):
        each = [output_size] * axes if output_size is None or isinstance(output_size, int) else list(output_size)
        return method(input, [n if m is None else m for m, n in zip(each, input.shape[input.ndim - axes :])])

    pool.__name__ = pool.__qualname__ = name
    pool.__doc__ = """Windows of nearly one size that give `output_size`; `None` leaves an extent as it is."""
    return pool


for _kind in ("avg", "max"):
    for _axes in (1, 2, 3):
        globals()[f"adaptive_{_kind}_pool{_axes}d"] = _adaptive(f"adaptive_{_kind}_pool{_axes}d", _axes)


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


def interpolate(input, size=None, scale_factor=None, mode="nearest", align_corners=None, recompute_scale_factor=None):
    """The axes behind the first two with the extents `size`, or `scale_factor` times theirs. `"linear"`, `"bilinear"`
    and `"trilinear"` are one mode, as are `"cubic"` and `"bicubic"`. Places follow from the factor, or with
    `recompute_scale_factor` from the extents.
    """
    axes = input.ndim - 2
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

# Functions that take `inplace`, and how many parameters are before it.
_INPLACE = {
    "relu": 1, "relu6": 1, "selu": 1, "silu": 1, "mish": 1, "hardswish": 1, "hardsigmoid": 1, "elu": 2, "leaky_relu": 2,
    "celu": 2, "dropout": 3, "dropout1d": 3, "dropout2d": 3, "dropout3d": 3, "alpha_dropout": 3, "hardtanh": 3,
    "threshold": 3,
}  # fmt: skip
globals().update({name: _in_place(globals()[name], n) for name, n in _INPLACE.items() if name in globals()})


def __getattr__(name):
    method = None if name.startswith("_") else getattr(Tensor, name, None)
    if not callable(method):
        raise AttributeError(f"module 'zyx.nn.functional' has no attribute {name!r}{_elsewhere(name)}")
    function = _function(name)
    if name in _INPLACE:
        function = globals()[name] = _in_place(function, _INPLACE[name])
    return function


def __dir__():
    methods = (name for name in dir(Tensor) if not name.startswith("_") and callable(getattr(Tensor, name)))
    return sorted({*methods, *(name for name in globals() if not name.startswith("_") and callable(globals()[name]))})
