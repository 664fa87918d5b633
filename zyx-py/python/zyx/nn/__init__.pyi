"""Modules: layers, parameters by name, saving and loading.

The classes from `Linear` on are also the table that their bindings are made from: `build/` writes a
constructor for each, which calls `Name::new` in Rust with the parameters in order and the
initialiser, or what the `# rust:` line says. `**place` is `device` and `dtype` of the parameters.
"""

from typing import Any

from .._core import Axis, Floats, Int, Interpolation, One, Padding, Pads, PadMode, Pair, Parameter, Reduction, Shape, Size, Tensor, Triple
from . import functional as functional
from . import init as init
from . import utils as utils
from .module import Layer as Layer
from .module import Module as Module
from .module import ModuleDict as ModuleDict
from .module import ModuleList as ModuleList
from .module import Sequential as Sequential

Param = Parameter
Text = str

class Linear(Layer):
    def __init__(self, in_features: Size, out_features: Size, bias: bool = True, **place: Any) -> None:
        """`x @ weight.T + bias` over the last axis. Parameters `weight` `[out, in]` and `bias` `[out]`."""
        # rust: if bias { nn::Linear::new(in_features, out_features, init) } else { nn::Linear::without_bias(in_features, out_features, init) }

class Embedding(Layer):
    def __init__(
        self, num_embeddings: Size, embedding_dim: Size, padding_idx: Size | None = None, **place: Any
    ) -> None:
        """Rows of a table by number. Parameter `weight` `[num_embeddings, embedding_dim]`. The row
        `padding_idx` stands for no word: it is zero and stays so.
        """
        # rust: match padding_idx { Some(p) => nn::Embedding::with_padding(num_embeddings, embedding_dim, p, init), None => nn::Embedding::new(num_embeddings, embedding_dim, init) }

class Conv1d(Layer):
    def __init__(
        self, in_channels: Size, out_channels: Size, kernel_size: Size, stride: Size = 1, padding: Padding = 0,
        dilation: Size = 1, groups: Size = 1, bias: bool = True, padding_mode: PadMode = "zeros", **place: Any
    ) -> None:
        """1-d convolution of `[n, in, length]`, or of one without `n`. `padding` may be `"same"`, which keeps the
        extents, or `"valid"`, which is none; `padding_mode` says what is added.
        """
        # rust: nn::Conv1d::new(in_channels, out_channels, kernel_size, Conv1dOptions { stride, padding: padding.each::<1>()?[0], dilation, groups }, init)?.surrounded(&padding, padding_mode).map(|x| nn::Conv1d { bias: x.bias.filter(|_| bias), ..x })

class Conv2d(Layer):
    def __init__(
        self, in_channels: Size, out_channels: Size, kernel_size: Pair, stride: Pair = 1, padding: Padding = 0,
        dilation: Pair = 1, groups: Size = 1, bias: bool = True, padding_mode: PadMode = "zeros", **place: Any
    ) -> None:
        """2-d convolution of `[n, in, height, width]`, or of one without `n`. `padding` may be `"same"`, which keeps the
        extents, or `"valid"`, which is none; `padding_mode` says what is added.
        """
        # rust: nn::Conv2d::new(in_channels, out_channels, kernel_size, Conv2dOptions { stride, padding: padding.each()?, dilation, groups }, init)?.surrounded(&padding, padding_mode).map(|x| nn::Conv2d { bias: x.bias.filter(|_| bias), ..x })

class LayerNorm(Layer):
    def __init__(
        self, normalized_shape: Shape, eps: float = 1e-5, elementwise_affine: bool = True, bias: bool = True, **place: Any
    ) -> None:
        """Layer normalisation over the last axes. Parameters `weight` (ones) and `bias` (zeros), if it is
        affine.
        """
        # rust: let x = if elementwise_affine { nn::LayerNorm::new(normalized_shape, init)? } else { nn::LayerNorm::plain(normalized_shape) }; Ok(nn::LayerNorm { eps, bias: x.bias.filter(|_| bias), ..x })

class RmsNorm(Layer):
    def __init__(
        self, normalized_shape: Shape, eps: float | None = None, elementwise_affine: bool = True, **place: Any
    ) -> None:
        """Root mean square normalisation over the last axes. Parameter `weight` (ones), if it is affine;
        `eps` is by default the distance of 1 from the next number.
        """
        # rust: let x = if elementwise_affine { nn::RmsNorm::new(normalized_shape, init)? } else { nn::RmsNorm::plain(normalized_shape) }; Ok(nn::RmsNorm { eps: eps.unwrap_or(epsilon(init.dtype)), ..x })

class GroupNorm(Layer):
    def __init__(
        self, num_groups: Size, num_channels: Size, eps: float = 1e-5, affine: bool = True, **place: Any
    ) -> None:
        """Group normalisation of `[n, channels, ..]`. Parameters `weight` and `bias`, if it is affine."""
        # rust: let x = if affine { nn::GroupNorm::new(num_groups, num_channels, init)? } else { nn::GroupNorm::plain(num_groups, num_channels)? }; Ok(nn::GroupNorm { eps, ..x })

class BatchNorm2d(Layer):
    def __init__(
        self, num_features: Size, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True,
        track_running_stats: bool = True, **place: Any
    ) -> None:
        """Batch normalisation of `[n, channels, ..]`, with running statistics for evaluation if they are tracked. Parameters
        `weight` and `bias`, if it is affine.
        """
        # rust: let x = if affine { nn::BatchNorm2d::new(num_features, init)? } else { nn::BatchNorm2d::plain(num_features, init)? }; let x = if track_running_stats { x } else { x.without_statistics() }; Ok(nn::BatchNorm2d { eps, momentum, ..x })

class Dropout(Layer):
    def __init__(self, p: float = 0.5, **place: Any) -> None:
        """Zeros with probability `p` in training, the rest scaled up."""

class Flatten(Module):
    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        """Axes merged: all but the first."""
        # by hand

class MaxPool2d(Module):
    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, return_indices: bool = False, ceil_mode: bool = False) -> None:
        """The largest element of each window of the last 2 axes."""
        # by hand

class AvgPool2d(Module):
    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False, count_include_pad: bool = True) -> None:
        """The mean of each window of the last 2 axes."""
        # by hand

class LeakyRelu(Layer):
    def __init__(self, negative_slope: float = 0.01, **place: Any) -> None:
        """`x` where positive, else `negative_slope * x`."""
        # rust: Ok(nn::LeakyRelu { slope: negative_slope })

class Relu(Layer):
    def __init__(self, **place: Any) -> None:
        """`max(x, 0)`."""
        # rust: Ok(nn::Relu)

class Gelu(Layer):
    def __init__(self, **place: Any) -> None:
        """The Gaussian error linear unit in its tanh form."""
        # rust: Ok(nn::Gelu)

class GeluExact(Layer):
    def __init__(self, **place: Any) -> None:
        """The Gaussian error linear unit by the error function."""
        # rust: Ok(nn::GeluExact)

class Silu(Layer):
    def __init__(self, **place: Any) -> None:
        """`x * sigmoid(x)`."""
        # rust: Ok(nn::Silu)

class Mish(Layer):
    def __init__(self, **place: Any) -> None:
        """`x * tanh(softplus(x))`."""
        # rust: Ok(nn::Mish)

class Sigmoid(Layer):
    def __init__(self, **place: Any) -> None:
        """`1 / (1 + e^-x)`."""
        # rust: Ok(nn::Sigmoid)

class Tanh(Layer):
    def __init__(self, **place: Any) -> None:
        """The hyperbolic tangent."""
        # rust: Ok(nn::Tanh)

class Selu(Layer):
    def __init__(self, **place: Any) -> None:
        """The self-normalising activation."""
        # rust: Ok(nn::Selu)

class Softplus(Module):
    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        """`log(1 + e^(beta x)) / beta`; `x` itself where `beta x` exceeds `threshold`."""
        # by hand

class Relu6(Layer):
    def __init__(self, **place: Any) -> None:
        """`x` limited to 0 ..= 6."""
        # rust: Ok(nn::Relu6)

class LogSigmoid(Layer):
    def __init__(self, **place: Any) -> None:
        """The logarithm of the sigmoid."""
        # rust: Ok(nn::LogSigmoid)

class Softsign(Layer):
    def __init__(self, **place: Any) -> None:
        """`x / (1 + |x|)`."""
        # rust: Ok(nn::Softsign)

class Tanhshrink(Layer):
    def __init__(self, **place: Any) -> None:
        """`x - tanh(x)`."""
        # rust: Ok(nn::Tanhshrink)

class Hardsigmoid(Layer):
    def __init__(self, **place: Any) -> None:
        """The sigmoid in straight lines."""
        # rust: Ok(nn::Hardsigmoid)

class Hardswish(Layer):
    def __init__(self, **place: Any) -> None:
        """`x` times the sigmoid in straight lines."""
        # rust: Ok(nn::Hardswish)

class Identity(Layer):
    def __init__(self, **place: Any) -> None:
        """What it gets."""
        # rust: Ok(nn::Identity)

class GlobalAvgPool2d(Layer):
    def __init__(self, **place: Any) -> None:
        """The mean over the last two axes."""
        # rust: Ok(nn::GlobalAvgPool2d)

class SinusoidalPositions(Layer):
    def __init__(self, **place: Any) -> None:
        """`[n, steps, width]` with sines and cosines of the position added."""
        # rust: Ok(nn::SinusoidalPositions)

class Elu(Layer):
    def __init__(self, alpha: float = 1.0, **place: Any) -> None:
        """`x` where positive, else `alpha (e^x - 1)`."""
        # rust: Ok(nn::Elu { alpha })

class Celu(Layer):
    def __init__(self, alpha: float = 1.0, **place: Any) -> None:
        """`elu` that is smooth for every `alpha`."""
        # rust: Ok(nn::Celu { alpha })

class Hardtanh(Layer):
    def __init__(self, min_val: float = -1.0, max_val: float = 1.0, **place: Any) -> None:
        """`x` limited to `min ..= max`."""
        # rust: Ok(nn::Hardtanh { min: min_val, max: max_val })

class Threshold(Layer):
    def __init__(self, threshold: float = 0.0, value: float = 0.0, **place: Any) -> None:
        """`x` above the threshold, else `value`."""
        # rust: Ok(nn::Threshold { threshold, value })

class Softmax(Layer):
    def __init__(self, axis: Axis = -1, **place: Any) -> None:
        """`exp(x) / sum(exp(x))` along an axis."""
        # rust: Ok(nn::Softmax { axis })

class LogSoftmax(Layer):
    def __init__(self, axis: Axis = -1, **place: Any) -> None:
        """The logarithm of the softmax."""
        # rust: Ok(nn::LogSoftmax { axis })

class Softmin(Layer):
    def __init__(self, axis: Axis = -1, **place: Any) -> None:
        """The softmax of `-x`."""
        # rust: Ok(nn::Softmin { axis })

class Glu(Layer):
    def __init__(self, axis: Axis = -1, **place: Any) -> None:
        """One half of an axis times the sigmoid of the other."""
        # rust: Ok(nn::Glu { axis })

class Swiglu(Layer):
    def __init__(self, axis: Axis = -1, **place: Any) -> None:
        """One half of an axis times the `silu` of the other."""
        # rust: Ok(nn::Swiglu { axis })

class Hardshrink(Layer):
    def __init__(self, lambd: float = 0.5, **place: Any) -> None:
        """Values within `lambd` become 0."""
        # rust: Ok(nn::Hardshrink { lambda: lambd })

class Softshrink(Layer):
    def __init__(self, lambd: float = 0.5, **place: Any) -> None:
        """Values within `lambd` become 0, the others move towards it by as much."""
        # rust: Ok(nn::Softshrink { lambda: lambd })

class PRelu(Layer):
    def __init__(self, num_parameters: Size = 1, **place: Any) -> None:
        """`x` where positive, else `weight * x`. Parameter `weight` `[num_parameters]`."""

class Dropout1d(Layer):
    def __init__(self, p: float = 0.5, **place: Any) -> None:
        """Channels of `[n, channels, length]` zeroed with probability `p` in training."""

class Dropout2d(Layer):
    def __init__(self, p: float = 0.5, **place: Any) -> None:
        """Channels of `[n, channels, height, width]` zeroed with probability `p` in training."""

class Dropout3d(Layer):
    def __init__(self, p: float = 0.5, **place: Any) -> None:
        """Channels of `[n, channels, depth, height, width]` zeroed with probability `p` in training."""

class AlphaDropout(Layer):
    def __init__(self, p: float = 0.5, **place: Any) -> None:
        """Elements, so that mean and variance stay, zeroed with probability `p` in training."""

class BatchNorm1d(Layer):
    def __init__(
        self, num_features: Size, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True,
        track_running_stats: bool = True, **place: Any
    ) -> None:
        """Batch normalisation, with running statistics for evaluation if they are tracked. Parameters
        `weight` and `bias`, if it is affine.
        """
        # rust: let x = if affine { nn::BatchNorm1d::new(num_features, init)? } else { nn::BatchNorm1d::plain(num_features, init)? }; let x = if track_running_stats { x } else { x.without_statistics() }; Ok(nn::BatchNorm1d { eps, momentum, ..x })

class BatchNorm3d(Layer):
    def __init__(
        self, num_features: Size, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True,
        track_running_stats: bool = True, **place: Any
    ) -> None:
        """Batch normalisation, with running statistics for evaluation if they are tracked. Parameters
        `weight` and `bias`, if it is affine.
        """
        # rust: let x = if affine { nn::BatchNorm3d::new(num_features, init)? } else { nn::BatchNorm3d::plain(num_features, init)? }; let x = if track_running_stats { x } else { x.without_statistics() }; Ok(nn::BatchNorm3d { eps, momentum, ..x })

class InstanceNorm1d(Layer):
    def __init__(
        self, num_features: Size, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = False,
        track_running_stats: bool = False, **place: Any
    ) -> None:
        """Normalisation of each channel of each sample over its positions; in evaluation by running statistics,
        if they are tracked.
        """
        # rust: let x = if affine { nn::InstanceNorm1d::affine(num_features, init)? } else { nn::InstanceNorm1d::new(num_features) }; let x = if track_running_stats { x.with_statistics(init)? } else { x }; Ok(nn::InstanceNorm1d { eps, momentum, ..x })

class InstanceNorm2d(Layer):
    def __init__(
        self, num_features: Size, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = False,
        track_running_stats: bool = False, **place: Any
    ) -> None:
        """Normalisation of each channel of each sample over its positions; in evaluation by running statistics,
        if they are tracked.
        """
        # rust: let x = if affine { nn::InstanceNorm2d::affine(num_features, init)? } else { nn::InstanceNorm2d::new(num_features) }; let x = if track_running_stats { x.with_statistics(init)? } else { x }; Ok(nn::InstanceNorm2d { eps, momentum, ..x })

class InstanceNorm3d(Layer):
    def __init__(
        self, num_features: Size, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = False,
        track_running_stats: bool = False, **place: Any
    ) -> None:
        """Normalisation of each channel of each sample over its positions; in evaluation by running statistics,
        if they are tracked.
        """
        # rust: let x = if affine { nn::InstanceNorm3d::affine(num_features, init)? } else { nn::InstanceNorm3d::new(num_features) }; let x = if track_running_stats { x.with_statistics(init)? } else { x }; Ok(nn::InstanceNorm3d { eps, momentum, ..x })

class LocalResponseNorm(Layer):
    def __init__(self, size: Size, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0, **place: Any) -> None:
        """Each channel divided by a power of the squares of its neighbours."""
        # rust: Ok(nn::LocalResponseNorm { alpha, beta, k, ..nn::LocalResponseNorm::new(size) })

class MaxPool1d(Module):
    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, return_indices: bool = False, ceil_mode: bool = False) -> None:
        """The largest element of each window of the last axis."""
        # by hand

class AvgPool1d(Module):
    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False, count_include_pad: bool = True) -> None:
        """The mean of each window of the last axis."""
        # by hand

class LpPool2d(Layer):
    def __init__(self, norm_type: float, kernel_size: Pair, stride: Pair | None = None, **place: Any) -> None:
        """The p-norm of each window of the last two axes."""
        # rust: Ok(nn::LpPool2d { p: norm_type, pool: Pool2d { stride: stride.unwrap_or(kernel_size), ..Pool2d::new(kernel_size) } })

class AdaptiveAvgPool2d(Module):
    def __init__(self, output_size: Any) -> None:
        """Windows of nearly one size that give `output_size`; `None` leaves an extent as it is."""
        # by hand

class AdaptiveAvgPool1d(Module):
    def __init__(self, output_size: Any) -> None:
        """Windows of nearly one size that give `output_size`; `None` leaves an extent as it is."""
        # by hand

class Unflatten(Layer):
    def __init__(self, axis: Axis, shape: Shape, **place: Any) -> None:
        """One axis split into several."""
        # rust: Ok(nn::Unflatten { axis, shape })

class PixelShuffle(Layer):
    def __init__(self, upscale_factor: Size, **place: Any) -> None:
        """`[n, c r^2, h, w]` as `[n, c, h r, w r]`."""
        # rust: Ok(nn::PixelShuffle(upscale_factor))

class PixelUnshuffle(Layer):
    def __init__(self, downscale_factor: Size, **place: Any) -> None:
        """`[n, c, h r, w r]` as `[n, c r^2, h, w]`."""
        # rust: Ok(nn::PixelUnshuffle(downscale_factor))

class ChannelShuffle(Layer):
    def __init__(self, groups: Size, **place: Any) -> None:
        """The channels of groups dealt out in turn."""
        # rust: Ok(nn::ChannelShuffle(groups))

class UpsampleNearest2d(Layer):
    def __init__(self, scale_factor: Pair, **place: Any) -> None:
        """Each pixel repeated."""
        # rust: Ok(nn::UpsampleNearest2d(scale_factor))

class ConstantPad(Layer):
    def __init__(self, padding: Pads, value: float = 0.0, **place: Any) -> None:
        """A number added around the last axes."""
        # rust: Ok(nn::ConstantPad { padding, value })

class Bilinear(Layer):
    def __init__(self, in1_features: Size, in2_features: Size, out_features: Size, **place: Any) -> None:
        """`x1 @ weight[k] @ x2 + bias[k]` for each `k`."""
        # rust: nn::Bilinear::new([in1_features, in2_features], out_features, init).map(|l| two(l, nn::Bilinear::apply))

class EmbeddingBag(Layer):
    def __init__(self, num_embeddings: Size, embedding_dim: Size, mode: Text = "mean", **place: Any) -> None:
        """Rows of a table, those of a bag (`[n, rows]`, or rows and offsets) made one by mean, sum or max."""
        # rust: nn::EmbeddingBag::new(num_embeddings, embedding_dim, bag_mode(&mode)?, init).map(|l| many(l, 1..=2, |l, x| Ok(vec![match given(x, 1) { None => l.forward(at(x, 0)?)?, Some(offsets) => l.bags(at(x, 0)?, offsets)? }])))

class RotaryEmbedding(Layer):
    def __init__(self, width: Size, base: float = 10000.0, **place: Any) -> None:
        """Queries or keys `[.., steps, width]` turned by their positions, which start at 0 or at a second input."""
        # rust: nn::RotaryEmbedding::new(width).map(|l| many(Bare(nn::RotaryEmbedding { base, ..l }), 1..=2, |l, x| Ok(vec![l.0.rotate(at(x, 0)?, number(x, 1)?.unwrap_or(0))?])))

class Rnn(Layer):
    def __init__(
        self, input_size: Size, hidden_size: Size, num_layers: Size = 1, nonlinearity: Text = "tanh", bias: bool = True,
        batch_first: bool = False, dropout: float = 0.0, bidirectional: bool = False, **place: Any
    ) -> None:
        """Recurrent layers with `tanh` or `relu`: outputs of all steps, and the last states."""
        # rust: nonlinear(&nonlinearity)?(input_size, hidden_size, RecurrentOptions { layers: num_layers, bidirectional, batch_first, dropout, bias }, init).map(|l| many(l, 1..=2, |l, x| l.run(at(x, 0)?, given(x, 1)).map(pair)))

class Gru(Layer):
    def __init__(
        self, input_size: Size, hidden_size: Size, num_layers: Size = 1, bias: bool = True, batch_first: bool = False,
        dropout: float = 0.0, bidirectional: bool = False, **place: Any
    ) -> None:
        """Gated recurrent units: outputs of all steps, and the last states."""
        # rust: nn::Gru::new(input_size, hidden_size, RecurrentOptions { layers: num_layers, bidirectional, batch_first, dropout, bias }, init).map(|l| many(l, 1..=2, |l, x| l.run(at(x, 0)?, given(x, 1)).map(pair)))

class Lstm(Layer):
    def __init__(
        self, input_size: Size, hidden_size: Size, num_layers: Size = 1, bias: bool = True, batch_first: bool = False,
        dropout: float = 0.0, bidirectional: bool = False, **place: Any
    ) -> None:
        """Long short-term memory: outputs of all steps, and the last outputs and cells."""
        # rust: nn::Lstm::new(input_size, hidden_size, RecurrentOptions { layers: num_layers, bidirectional, batch_first, dropout, bias }, init).map(|l| many(l, 1..=3, |l, x| { let (y, (h, c)) = l.run(at(x, 0)?, given(x, 1).zip(given(x, 2)))?; Ok(vec![y, h, c]) }))

class RnnCell(Layer):
    def __init__(self, input_size: Size, hidden_size: Size, **place: Any) -> None:
        """One step: the next state of an input and a state."""
        # rust: nn::RnnCell::new(input_size, hidden_size, init).map(|l| two(l, nn::RnnCell::step))

class GruCell(Layer):
    def __init__(self, input_size: Size, hidden_size: Size, **place: Any) -> None:
        """One step: the next state of an input and a state."""
        # rust: nn::GruCell::new(input_size, hidden_size, init).map(|l| two(l, nn::GruCell::step))

class LstmCell(Layer):
    def __init__(self, input_size: Size, hidden_size: Size, **place: Any) -> None:
        """One step: output and cell of an input, an output and a cell."""
        # rust: nn::LstmCell::new(input_size, hidden_size, init).map(|l| many(l, 3..=3, |l, x| l.step(at(x, 0)?, (at(x, 1)?, at(x, 2)?)).map(pair)))

class MultiheadAttention(Layer):
    def __init__(
        self, embed_dim: Size, num_heads: Size, dropout: float = 0.0, bias: bool = True,
        kdim: Size | None = None, vdim: Size | None = None, batch_first: bool = False, **place: Any
    ) -> None:
        """What queries find among keys and values, and the weights by which they found it."""
        # rust: nn::MultiheadAttention::new(embed_dim, num_heads, nn::AttentionOptions { dropout, bias, batch_first, key_width: kdim, value_width: vdim }, init).map(attention)
    def attend_cached(self, x: Tensor, cache: KvCache) -> Tensor:
        """The next words `[n, steps, width]` of a text of which the cache remembers the words before, and now these."""

class TransformerEncoderLayer(Layer):
    def __init__(
        self, d_model: Size, nhead: Size, dim_feedforward: Size = 2048, dropout: float = 0.1,
        activation: Text = "relu", norm_first: bool = False, batch_first: bool = False, **place: Any
    ) -> None:
        """Self-attention and a feed-forward part."""
        # rust: nn::TransformerEncoderLayer::new(d_model, nhead, nn::TransformerOptions { feedforward: dim_feedforward, dropout, activation: activation_of(&activation)?, norm_first, batch_first, ..Default::default() }, init).map(|l| many(l, 1..=4, |l, x| Ok(vec![l.encode(at(x, 0)?, mask(x, 1)?)?])))

class TransformerEncoder(Layer):
    def __init__(
        self, num_layers: Size, d_model: Size, nhead: Size, dim_feedforward: Size = 2048, dropout: float = 0.1,
        activation: Text = "relu", norm_first: bool = False, batch_first: bool = False, **place: Any
    ) -> None:
        """Encoder layers one after the other; or `TransformerEncoder(layer, num_layers)`, copies of a layer."""
        # rust: nn::TransformerEncoder::new(num_layers, d_model, nhead, nn::TransformerOptions { feedforward: dim_feedforward, dropout, activation: activation_of(&activation)?, norm_first, batch_first, ..Default::default() }, init).map(|l| many(l, 1..=4, |l, x| Ok(vec![l.encode(at(x, 0)?, mask(x, 1)?)?])))

class TransformerDecoderLayer(Layer):
    def __init__(
        self, d_model: Size, nhead: Size, dim_feedforward: Size = 2048, dropout: float = 0.1,
        activation: Text = "relu", norm_first: bool = False, batch_first: bool = False, **place: Any
    ) -> None:
        """Self-attention, attention to a memory, and a feed-forward part."""
        # rust: nn::TransformerDecoderLayer::new(d_model, nhead, nn::TransformerOptions { feedforward: dim_feedforward, dropout, activation: activation_of(&activation)?, norm_first, batch_first, ..Default::default() }, init).map(|l| many(l, 2..=8, |l, x| Ok(vec![l.decode(at(x, 0)?, at(x, 1)?, mask(x, 2)?, mask(x, 5)?)?])))

class TransformerDecoder(Layer):
    def __init__(
        self, num_layers: Size, d_model: Size, nhead: Size, dim_feedforward: Size = 2048, dropout: float = 0.1,
        activation: Text = "relu", norm_first: bool = False, batch_first: bool = False, **place: Any
    ) -> None:
        """Decoder layers one after the other; or `TransformerDecoder(layer, num_layers)`, copies of a layer."""
        # rust: nn::TransformerDecoder::new(num_layers, d_model, nhead, nn::TransformerOptions { feedforward: dim_feedforward, dropout, activation: activation_of(&activation)?, norm_first, batch_first, ..Default::default() }, init).map(|l| many(l, 2..=8, |l, x| Ok(vec![l.decode(at(x, 0)?, at(x, 1)?, mask(x, 2)?, mask(x, 5)?)?])))

class Transformer(Layer):
    def __init__(
        self, d_model: Size = 512, nhead: Size = 8, num_encoder_layers: Size = 6, num_decoder_layers: Size = 6,
        dim_feedforward: Size = 2048, dropout: float = 0.1,
        activation: Text = "relu", norm_first: bool = False, batch_first: bool = False, **place: Any
    ) -> None:
        """An encoder of a source and a decoder of a target."""
        # rust: nn::Transformer::new([num_encoder_layers, num_decoder_layers], d_model, nhead, nn::TransformerOptions { feedforward: dim_feedforward, dropout, activation: activation_of(&activation)?, norm_first, batch_first, ..Default::default() }, init).map(|l| many(l, 2..=8, |l, x| Ok(vec![l.apply(at(x, 0)?, at(x, 1)?, mask(x, 2)?, mask(x, 5)?)?])))

class MseLoss(Layer):
    def __init__(self, reduction: Reduction = "mean", **place: Any) -> None:
        """Squared difference."""
        # rust: Ok(loss(nn::MseLoss { reduction }))

class L1Loss(Layer):
    def __init__(self, reduction: Reduction = "mean", **place: Any) -> None:
        """Absolute difference."""
        # rust: Ok(loss(nn::L1Loss { reduction }))

class HuberLoss(Layer):
    def __init__(self, reduction: Reduction = "mean", delta: float = 1.0, **place: Any) -> None:
        """Squared up to `delta`, then linear."""
        # rust: Ok(loss(nn::HuberLoss { delta, reduction }))

class SmoothL1Loss(Layer):
    def __init__(self, beta: float = 1.0, reduction: Reduction = "mean", **place: Any) -> None:
        """Huber's loss divided by `beta`."""
        # rust: Ok(loss(nn::SmoothL1Loss { beta, reduction }))

class BceLoss(Layer):
    def __init__(self, reduction: Reduction = "mean", **place: Any) -> None:
        """Binary cross entropy of probabilities."""
        # rust: Ok(loss(nn::BceLoss { reduction }))

class BceWithLogitsLoss(Layer):
    def __init__(self, reduction: Reduction = "mean", **place: Any) -> None:
        """Binary cross entropy of logits."""
        # rust: Ok(loss(nn::BceWithLogitsLoss { reduction }))

class KlDivLoss(Layer):
    def __init__(self, reduction: Reduction = "mean", **place: Any) -> None:
        """Kullback-Leibler terms of log-probabilities."""
        # rust: Ok(loss(nn::KlDivLoss { reduction }))

class SoftMarginLoss(Layer):
    def __init__(self, reduction: Reduction = "mean", **place: Any) -> None:
        """`log(1 + e^(-x y))`."""
        # rust: Ok(loss(nn::SoftMarginLoss { reduction }))

class HingeEmbeddingLoss(Layer):
    def __init__(self, margin: float = 1.0, reduction: Reduction = "mean", **place: Any) -> None:
        """How near like and how far unlike pairs are."""
        # rust: Ok(loss(nn::HingeEmbeddingLoss { margin, reduction }))

class MultiLabelSoftMarginLoss(Layer):
    def __init__(self, reduction: Reduction = "mean", **place: Any) -> None:
        """Binary cross entropy of each class."""
        # rust: Ok(loss(nn::MultiLabelSoftMarginLoss { reduction }))

class MultiMarginLoss(Layer):
    def __init__(self, p: float = 1.0, margin: float = 1.0, reduction: Reduction = "mean", **place: Any) -> None:
        """How far other classes come near the right one."""
        # rust: Ok(loss(nn::MultiMarginLoss { p, margin, reduction }))

class CrossEntropyLoss(Module):
    def __init__(self, weight: Any = None, *, ignore_index: int = -100, reduction: Reduction = "mean", label_smoothing: float = 0.0) -> None:
        """Cross entropy of logits against class numbers or probabilities."""
        # by hand

class NllLoss(Layer):
    def __init__(self, ignore_index: Int = -100, reduction: Reduction = "mean", **place: Any) -> None:
        """Negative log-likelihood of class numbers."""
        # rust: Ok(loss(nn::NllLoss { ignore_index: Some(ignore_index), reduction }))

class PoissonNllLoss(Layer):
    def __init__(
        self, log_input: bool = True, eps: float = 1e-8, reduction: Reduction = "mean", **place: Any
    ) -> None:
        """Negative log-likelihood of Poisson's distribution."""
        # rust: Ok(loss(nn::PoissonNllLoss { log_input, eps, reduction }))

class GaussianNllLoss(Layer):
    def __init__(self, full: bool = False, eps: float = 1e-6, reduction: Reduction = "mean", **place: Any) -> None:
        """Negative log-likelihood of normal distributions of a mean and a variance."""
        # rust: Ok(three(nn::GaussianNllLoss { full, eps, reduction }, nn::GaussianNllLoss::loss))

class MarginRankingLoss(Layer):
    def __init__(self, margin: float = 0.0, reduction: Reduction = "mean", **place: Any) -> None:
        """How wrongly pairs are ordered."""
        # rust: Ok(three(nn::MarginRankingLoss { margin, reduction }, nn::MarginRankingLoss::loss))

class TripletMarginLoss(Layer):
    def __init__(
        self, margin: float = 1.0, p: float = 2.0, eps: float = 1e-6, swap: bool = False, reduction: Reduction = "mean", **place: Any
    ) -> None:
        """How much farther the negative is than the positive; with `swap` from the nearer of the other two."""
        # rust: Ok(many(Bare(()), 3..=3, move |_, x| Ok(vec![at(x, 0)?.triplet_margin_loss(at(x, 1)?, at(x, 2)?, TripletMargin { margin, p, eps, swap, reduction })?])))

class CosineEmbeddingLoss(Layer):
    def __init__(self, margin: float = 0.0, reduction: Reduction = "mean", **place: Any) -> None:
        """How like pairs are that should, and should not, be."""
        # rust: Ok(three(nn::CosineEmbeddingLoss { margin, reduction }, nn::CosineEmbeddingLoss::loss))

class CosineSimilarity(Layer):
    def __init__(self, axis: Axis = 1, eps: float = 1e-8, **place: Any) -> None:
        """The cosine of the angle between vectors."""
        # rust: Ok(two(nn::CosineSimilarity { axis, eps }, nn::CosineSimilarity::apply))

class PairwiseDistance(Layer):
    def __init__(self, p: float = 2.0, eps: float = 1e-6, **place: Any) -> None:
        """The p-norm of differences."""
        # rust: Ok(two(nn::PairwiseDistance { p, eps }, nn::PairwiseDistance::apply))

class Conv3d(Layer):
    def __init__(
        self, in_channels: Size, out_channels: Size, kernel_size: Triple, stride: Triple = 1, padding: Padding = 0,
        dilation: Triple = 1, groups: Size = 1, bias: bool = True, padding_mode: PadMode = "zeros", **place: Any
    ) -> None:
        """3-d convolution of `[n, in, depth, height, width]`, or of one without `n`. `padding` may be `"same"`, which keeps the
        extents, or `"valid"`, which is none; `padding_mode` says what is added.
        """
        # rust: nn::Conv3d::new(in_channels, out_channels, kernel_size, Conv3dOptions { stride, padding: padding.each()?, dilation, groups }, init)?.surrounded(&padding, padding_mode).map(|x| nn::Conv3d { bias: x.bias.filter(|_| bias), ..x })

class ConvTranspose1d(Layer):
    def __init__(
        self, in_channels: Size, out_channels: Size, kernel_size: One, stride: One = 1, padding: One = 0,
        output_padding: One = 0, groups: Size = 1, bias: bool = True, dilation: One = 1, padding_mode: PadMode = "zeros",
        **place: Any
    ) -> None:
        """Transposed convolution of `[n, in, length]`: each element spreads to a window."""
        # rust: only_zeros(padding_mode)?; nn::ConvTranspose1d::new(in_channels, out_channels, kernel_size, ConvTransposeOptions { stride, padding, output_padding, dilation, groups }, init).map(|x| nn::ConvTranspose1d { bias: x.bias.filter(|_| bias), ..x })

class ConvTranspose2d(Layer):
    def __init__(
        self, in_channels: Size, out_channels: Size, kernel_size: Pair, stride: Pair = 1, padding: Pair = 0,
        output_padding: Pair = 0, groups: Size = 1, bias: bool = True, dilation: Pair = 1, padding_mode: PadMode = "zeros",
        **place: Any
    ) -> None:
        """Transposed convolution of `[n, in, height, width]`: each element spreads to a window."""
        # rust: only_zeros(padding_mode)?; nn::ConvTranspose2d::new(in_channels, out_channels, kernel_size, ConvTransposeOptions { stride, padding, output_padding, dilation, groups }, init).map(|x| nn::ConvTranspose2d { bias: x.bias.filter(|_| bias), ..x })

class ConvTranspose3d(Layer):
    def __init__(
        self, in_channels: Size, out_channels: Size, kernel_size: Triple, stride: Triple = 1, padding: Triple = 0,
        output_padding: Triple = 0, groups: Size = 1, bias: bool = True, dilation: Triple = 1, padding_mode: PadMode = "zeros",
        **place: Any
    ) -> None:
        """Transposed convolution of `[n, in, depth, height, width]`: each element spreads to a window."""
        # rust: only_zeros(padding_mode)?; nn::ConvTranspose3d::new(in_channels, out_channels, kernel_size, ConvTransposeOptions { stride, padding, output_padding, dilation, groups }, init).map(|x| nn::ConvTranspose3d { bias: x.bias.filter(|_| bias), ..x })

class MaxPool3d(Module):
    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, return_indices: bool = False, ceil_mode: bool = False) -> None:
        """The largest element of each window of the last 3 axes."""
        # by hand

class AvgPool3d(Module):
    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False, count_include_pad: bool = True) -> None:
        """The mean of each window of the last 3 axes."""
        # by hand

class LpPool1d(Layer):
    def __init__(self, norm_type: float, kernel_size: One, stride: One | None = None, **place: Any) -> None:
        """The p-norm of each window of the last axis."""
        # rust: Ok(nn::LpPool1d { p: norm_type, pool: Pool { stride: stride.unwrap_or(kernel_size), ..Pool::new(kernel_size) } })

class LpPool3d(Layer):
    def __init__(self, norm_type: float, kernel_size: Triple, stride: Triple | None = None, **place: Any) -> None:
        """The p-norm of each window of the last three axes."""
        # rust: Ok(nn::LpPool3d { p: norm_type, pool: Pool { stride: stride.unwrap_or(kernel_size), ..Pool::new(kernel_size) } })

class AdaptiveAvgPool3d(Module):
    def __init__(self, output_size: Any) -> None:
        """Windows of nearly one size that give `output_size`; `None` leaves an extent as it is."""
        # by hand

class AdaptiveMaxPool1d(Module):
    def __init__(self, output_size: Any) -> None:
        """Windows of nearly one size that give `output_size`; `None` leaves an extent as it is."""
        # by hand

class AdaptiveMaxPool2d(Module):
    def __init__(self, output_size: Any) -> None:
        """Windows of nearly one size that give `output_size`; `None` leaves an extent as it is."""
        # by hand

class AdaptiveMaxPool3d(Module):
    def __init__(self, output_size: Any) -> None:
        """Windows of nearly one size that give `output_size`; `None` leaves an extent as it is."""
        # by hand

class MaxUnpool1d(Module):
    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0) -> None:
        """Elements put back where `MaxPool1d(.., return_indices=True)` took them; zeros elsewhere."""
        # by hand

class MaxUnpool2d(Module):
    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0) -> None:
        """Elements put back where `MaxPool2d(.., return_indices=True)` took them; zeros elsewhere."""
        # by hand

class MaxUnpool3d(Module):
    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0) -> None:
        """Elements put back where `MaxPool3d(.., return_indices=True)` took them; zeros elsewhere."""
        # by hand

class Unfold(Layer):
    def __init__(
        self, kernel_size: Pair, dilation: Pair = 1, padding: Pair = 0, stride: Pair = 1, **place: Any
    ) -> None:
        """Windows of `[n, channels, height, width]` as columns `[n, channels kernel, positions]`."""
        # rust: Ok(nn::Unfold(Pool { stride, padding, dilation, ..Pool::new(kernel_size) }))

class Fold(Layer):
    def __init__(
        self, output_size: Pair, kernel_size: Pair, dilation: Pair = 1, padding: Pair = 0, stride: Pair = 1, **place: Any
    ) -> None:
        """Columns `[n, channels kernel, positions]` added up where their windows lie in an image."""
        # rust: Ok(nn::Fold { output: output_size, windows: Pool { stride, padding, dilation, ..Pool::new(kernel_size) } })

class Pad(Layer):
    def __init__(self, padding: Pads, mode: PadMode = "zeros", **place: Any) -> None:
        """Elements around the last axes: zeros, mirror images, copies of the outermost, or the other end."""
        # rust: Ok(nn::Pad { padding, mode })

class Upsample(Module):
    def __init__(self, size: Any = None, scale_factor: Any = None, mode: Interpolation = "nearest", align_corners: bool | None = None, recompute_scale_factor: bool | None = None) -> None:
        """The axes behind the first two with the extents `size`, or `scale_factor` times theirs."""
        # by hand

class CtcLoss(Layer):
    def __init__(
        self, blank: Size = 0, reduction: Reduction = "mean", zero_infinity: bool = False, **place: Any
    ) -> None:
        """Connectionist temporal classification: log-probabilities, targets, lengths of inputs and of targets."""
        # rust: Ok(many(nn::CtcLoss { blank, zero_infinity, reduction }, 4..=4, |l, x| Ok(vec![l.loss(at(x, 0)?, at(x, 1)?, at(x, 2)?, at(x, 3)?)?])))

class MultiLabelMarginLoss(Layer):
    def __init__(self, reduction: Reduction = "mean", **place: Any) -> None:
        """How far other classes come near the right ones, of which there may be several."""
        # rust: Ok(loss(nn::MultiLabelMarginLoss { reduction }))

class KvCache:
    """Keys and values of the words so far, of one layer of attention."""

    def __init__(self, capacity: Size) -> None: ...
    # by hand
    def attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Keys and values of further words, `[n, heads, steps, width]`, put behind those before, and what the
        queries find among all up to their own.
        """
    def tensors(self) -> list[Tensor]:
        """The keys and values, to be computed along with the model's result by one `realize_all`."""
    def clear(self) -> None:
        """Forgets all words."""
    @property
    def capacity(self) -> int:
        """Most words it takes."""
    def __len__(self) -> int: ...

class GELU(Module):
    def __init__(self, approximate: str = "none") -> None:
        """The Gaussian error linear unit by the error function, or by tanh."""
        # by hand

class NLLLoss(Module):
    def __init__(self, weight: Any = None, *, ignore_index: int = -100, reduction: Reduction = "mean") -> None:
        """Negative log-likelihood of class numbers."""
        # by hand

class BCELoss(Module):
    def __init__(self, weight: Any = None, *, reduction: Reduction = "mean") -> None:
        """Binary cross entropy of probabilities, with a factor for each term."""
        # by hand

class KLDivLoss(Module):
    def __init__(self, *, reduction: str = "mean", log_target: bool = False) -> None:
        """Kullback and Leibler's divergence of log-probabilities from a target."""
        # by hand

class BCEWithLogitsLoss(Module):
    def __init__(self, weight: Any = None, *, reduction: Reduction = "mean", pos_weight: Any = None) -> None:
        """Binary cross entropy of logits."""
        # by hand

class ZeroPad1d(Module):
    def __init__(self, padding: Any) -> None:
        """Elements added around the last axis."""
        # by hand

class ZeroPad2d(Module):
    def __init__(self, padding: Any) -> None:
        """Elements added around the last 2 axes."""
        # by hand

class ZeroPad3d(Module):
    def __init__(self, padding: Any) -> None:
        """Elements added around the last 3 axes."""
        # by hand

class ConstantPad1d(Module):
    def __init__(self, padding: Any, value: float = 0.0) -> None:
        """Elements added around the last axis."""
        # by hand

class ConstantPad2d(Module):
    def __init__(self, padding: Any, value: float = 0.0) -> None:
        """Elements added around the last 2 axes."""
        # by hand

class ConstantPad3d(Module):
    def __init__(self, padding: Any, value: float = 0.0) -> None:
        """Elements added around the last 3 axes."""
        # by hand

class ReflectionPad1d(Module):
    def __init__(self, padding: Any) -> None:
        """Elements added around the last axis."""
        # by hand

class ReflectionPad2d(Module):
    def __init__(self, padding: Any) -> None:
        """Elements added around the last 2 axes."""
        # by hand

class ReflectionPad3d(Module):
    def __init__(self, padding: Any) -> None:
        """Elements added around the last 3 axes."""
        # by hand

class ReplicationPad1d(Module):
    def __init__(self, padding: Any) -> None:
        """Elements added around the last axis."""
        # by hand

class ReplicationPad2d(Module):
    def __init__(self, padding: Any) -> None:
        """Elements added around the last 2 axes."""
        # by hand

class ReplicationPad3d(Module):
    def __init__(self, padding: Any) -> None:
        """Elements added around the last 3 axes."""
        # by hand

class CircularPad1d(Module):
    def __init__(self, padding: Any) -> None:
        """Elements added around the last axis."""
        # by hand

class CircularPad2d(Module):
    def __init__(self, padding: Any) -> None:
        """Elements added around the last 2 axes."""
        # by hand

class CircularPad3d(Module):
    def __init__(self, padding: Any) -> None:
        """Elements added around the last 3 axes."""
        # by hand


# PyTorch's spelling.
ReLU = Relu
ReLU6 = Relu6
SiLU = Silu
SELU = Selu
ELU = Elu
CELU = Celu
GLU = Glu
LeakyReLU = LeakyRelu
PReLU = PRelu
RMSNorm = RmsNorm
RNN = Rnn
GRU = Gru
LSTM = Lstm
RNNCell = RnnCell
GRUCell = GruCell
LSTMCell = LstmCell
MSELoss = MseLoss
PoissonNLLLoss = PoissonNllLoss
GaussianNLLLoss = GaussianNllLoss
CTCLoss = CtcLoss
LPPool1d = LpPool1d
LPPool2d = LpPool2d
LPPool3d = LpPool3d
