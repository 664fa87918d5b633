"""Modules: layers, parameters by name, saving and loading.

The classes from `Linear` on are also the table that their bindings are made from: `build/` writes a
constructor for each, which calls `Name::new` in Rust with the parameters in order and the
initialiser, or what the `# rust:` line says. `**place` is `device` and `dtype` of the parameters.
"""

from typing import Any, overload

from .._core import Axis, Floats, Int, Interpolation, One, Padding, Pads, PadMode, Pair, Reduction, Shape, Size, Tensor, Triple
from .._core import Parameter as Parameter
from . import functional as functional
from . import init as init
from . import utils as utils
from . import attention as attention
from . import modules as modules
from . import parallel as parallel
from . import parameter as parameter
from ._compound import RNNBase as RNNBase
from ._compound import RNNCellBase as RNNCellBase
from ._layers import Layer as Layer
from ._lazy import UninitializedBuffer as UninitializedBuffer
from ._lazy import UninitializedParameter as UninitializedParameter
from .module import Module as Module
from .module import NativeLayer as NativeLayer
from .module import ModuleDict as ModuleDict
from .module import ModuleList as ModuleList
from .module import ParameterDict as ParameterDict
from .module import ParameterList as ParameterList
from .module import Sequential as Sequential
from .parallel import DataParallel as DataParallel

Param = Parameter
Text = str

def Buffer(data: Any = None, *, persistent: bool = True) -> Parameter:
    """State of a module: part of `state_dict`, moved by `to`, not trained."""


class Linear(Layer):
    @overload
    def __init__(self, in_features: Any, out_features: Any, bias: Any = True, device: Any = None, dtype: Any = None) -> None:
        """`x @ weight.T + bias` over the last axis. Parameters `weight` `[out, in]` and `bias` `[out]`."""
        # by hand

    @overload
    def __init__(self, in_features: Size, out_features: Size, bias: bool = True, **place: Any) -> None:
        """`x @ weight.T + bias` over the last axis. Parameters `weight` `[out, in]` and `bias` `[out]`."""
        # rust: if bias { nn::Linear::new(in_features, out_features, init) } else { nn::Linear::without_bias(in_features, out_features, init) }

class Embedding(Layer):
    @overload
    def __init__(self, num_embeddings: Any, embedding_dim: Any, padding_idx: Any = None, max_norm: Any = None, norm_type: Any = 2.0, scale_grad_by_freq: Any = False, sparse: Any = False, _weight: Any = None, _freeze: Any = False, device: Any = None, dtype: Any = None) -> None:
        """Rows of a table by number. Parameter `weight` `[num_embeddings, embedding_dim]`. The row `padding_idx` stands for no word: it is zero and stays so."""
        # by hand

    @overload
    def __init__(
        self, num_embeddings: Size, embedding_dim: Size, padding_idx: Size | None = None, **place: Any
    ) -> None:
        """Rows of a table by number. Parameter `weight` `[num_embeddings, embedding_dim]`. The row
        `padding_idx` stands for no word: it is zero and stays so.
        """
        # rust: match padding_idx { Some(p) => nn::Embedding::with_padding(num_embeddings, embedding_dim, p, init), None => nn::Embedding::new(num_embeddings, embedding_dim, init) }

class Conv1d(Layer):
    @overload
    def __init__(self, in_channels: Any, out_channels: Any, kernel_size: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: Any = 1, bias: Any = True, padding_mode: Any = 'zeros', device: Any = None, dtype: Any = None) -> None:
        """Convolution over 1 axes of `[n, in, ..]` or `[in, ..]`. `padding` may be `"same"`, which keeps the extents, or `"valid"`."""
        # by hand

    @overload
    def __init__(
        self, in_channels: Size, out_channels: Size, kernel_size: Size, stride: Size = 1, padding: Padding = 0,
        dilation: Size = 1, groups: Size = 1, bias: bool = True, padding_mode: PadMode = "zeros", **place: Any
    ) -> None:
        """1-d convolution of `[n, in, length]`, or of one without `n`. `padding` may be `"same"`, which keeps the
        extents, or `"valid"`, which is none; `padding_mode` says what is added.
        """
        # rust: nn::Conv1d::new(in_channels, out_channels, kernel_size, Conv1dOptions { stride, padding: padding.each::<1>()?[0], dilation, groups }, init)?.surrounded(&padding, padding_mode).map(|x| nn::Conv1d { bias: x.bias.filter(|_| bias), ..x })

class Conv2d(Layer):
    @overload
    def __init__(self, in_channels: Any, out_channels: Any, kernel_size: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: Any = 1, bias: Any = True, padding_mode: Any = 'zeros', device: Any = None, dtype: Any = None) -> None:
        """Convolution over 2 axes of `[n, in, ..]` or `[in, ..]`. `padding` may be `"same"`, which keeps the extents, or `"valid"`."""
        # by hand

    @overload
    def __init__(
        self, in_channels: Size, out_channels: Size, kernel_size: Pair, stride: Pair = 1, padding: Padding = 0,
        dilation: Pair = 1, groups: Size = 1, bias: bool = True, padding_mode: PadMode = "zeros", **place: Any
    ) -> None:
        """2-d convolution of `[n, in, height, width]`, or of one without `n`. `padding` may be `"same"`, which keeps the
        extents, or `"valid"`, which is none; `padding_mode` says what is added.
        """
        # rust: nn::Conv2d::new(in_channels, out_channels, kernel_size, Conv2dOptions { stride, padding: padding.each()?, dilation, groups }, init)?.surrounded(&padding, padding_mode).map(|x| nn::Conv2d { bias: x.bias.filter(|_| bias), ..x })

class LayerNorm(Layer):
    @overload
    def __init__(self, normalized_shape: Any, eps: Any = 1e-05, elementwise_affine: Any = True, bias: Any = True, device: Any = None, dtype: Any = None) -> None:
        """Layer normalisation over the last axes. Parameters `weight` (ones) and `bias` (zeros), if it is affine."""
        # by hand

    @overload
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
    @overload
    def __init__(self, num_groups: Any, num_channels: Any, eps: Any = 1e-05, affine: Any = True, device: Any = None, dtype: Any = None, *, bias: Any = True) -> None:
        """Group normalisation of `[n, channels, ..]`. Parameters `weight` and `bias`, if it is affine."""
        # by hand

    @overload
    def __init__(
        self, num_groups: Size, num_channels: Size, eps: float = 1e-5, affine: bool = True, **place: Any
    ) -> None:
        """Group normalisation of `[n, channels, ..]`. Parameters `weight` and `bias`, if it is affine."""
        # rust: let x = if affine { nn::GroupNorm::new(num_groups, num_channels, init)? } else { nn::GroupNorm::plain(num_groups, num_channels)? }; Ok(nn::GroupNorm { eps, ..x })

class BatchNorm2d(Layer):
    @overload
    def __init__(self, num_features: Any, eps: Any = 1e-05, momentum: Any = 0.1, affine: Any = True, track_running_stats: Any = True, device: Any = None, dtype: Any = None, *, bias: Any = True) -> None:
        """Batch normalisation, with running statistics for evaluation if they are tracked. Parameters `weight` and `bias`, if it is affine."""
        # by hand

    @overload
    def __init__(
        self, num_features: Size, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True,
        track_running_stats: bool = True, **place: Any
    ) -> None:
        """Batch normalisation of `[n, channels, ..]`, with running statistics for evaluation if they are tracked. Parameters
        `weight` and `bias`, if it is affine.
        """
        # rust: let x = if affine { nn::BatchNorm2d::new(num_features, init)? } else { nn::BatchNorm2d::plain(num_features, init)? }; let x = if track_running_stats { x } else { x.without_statistics() }; Ok(nn::BatchNorm2d { eps, momentum, ..x })

class Dropout(Layer):
    @overload
    def __init__(self, p: Any = 0.5, inplace: Any = False) -> None:
        """Zeros with probability `p` in training, the rest scaled up."""
        # by hand

    @overload
    def __init__(self, p: float = 0.5, **place: Any) -> None:
        """Zeros with probability `p` in training, the rest scaled up."""

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
    @overload
    def __init__(self, inplace: Any = False) -> None:
        """`x * tanh(softplus(x))`."""
        # by hand

    @overload
    def __init__(self, **place: Any) -> None:
        """`x * tanh(softplus(x))`."""
        # rust: Ok(nn::Mish)

class Sigmoid(Layer):
    @overload
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """`1 / (1 + e^-x)`."""
        # by hand

    @overload
    def __init__(self, **place: Any) -> None:
        """`1 / (1 + e^-x)`."""
        # rust: Ok(nn::Sigmoid)

class Tanh(Layer):
    @overload
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """The hyperbolic tangent."""
        # by hand

    @overload
    def __init__(self, **place: Any) -> None:
        """The hyperbolic tangent."""
        # rust: Ok(nn::Tanh)

class Selu(Layer):
    def __init__(self, **place: Any) -> None:
        """The self-normalising activation."""
        # rust: Ok(nn::Selu)

class Relu6(Layer):
    def __init__(self, **place: Any) -> None:
        """`x` limited to 0 ..= 6."""
        # rust: Ok(nn::Relu6)

class LogSigmoid(Layer):
    @overload
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """The logarithm of the sigmoid."""
        # by hand

    @overload
    def __init__(self, **place: Any) -> None:
        """The logarithm of the sigmoid."""
        # rust: Ok(nn::LogSigmoid)

class Softsign(Layer):
    @overload
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """`x / (1 + |x|)`."""
        # by hand

    @overload
    def __init__(self, **place: Any) -> None:
        """`x / (1 + |x|)`."""
        # rust: Ok(nn::Softsign)

class Tanhshrink(Layer):
    @overload
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """`x - tanh(x)`."""
        # by hand

    @overload
    def __init__(self, **place: Any) -> None:
        """`x - tanh(x)`."""
        # rust: Ok(nn::Tanhshrink)

class Hardsigmoid(Layer):
    @overload
    def __init__(self, inplace: Any = False) -> None:
        """The sigmoid in straight lines."""
        # by hand

    @overload
    def __init__(self, **place: Any) -> None:
        """The sigmoid in straight lines."""
        # rust: Ok(nn::Hardsigmoid)

class Hardswish(Layer):
    @overload
    def __init__(self, inplace: Any = False) -> None:
        """`x` times the sigmoid in straight lines."""
        # by hand

    @overload
    def __init__(self, **place: Any) -> None:
        """`x` times the sigmoid in straight lines."""
        # rust: Ok(nn::Hardswish)

class Identity(Layer):
    @overload
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """The input."""
        # by hand

    @overload
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
    @overload
    def __init__(self, min_val: Any = -1.0, max_val: Any = 1.0, inplace: Any = False, min_value: Any = None, max_value: Any = None) -> None:
        """`x` limited to `min_val ..= max_val`."""
        # by hand

    @overload
    def __init__(self, min_val: float = -1.0, max_val: float = 1.0, **place: Any) -> None:
        """`x` limited to `min ..= max`."""
        # rust: Ok(nn::Hardtanh { min: min_val, max: max_val })

class Threshold(Layer):
    @overload
    def __init__(self, threshold: Any, value: Any, inplace: Any = False) -> None:
        """`x` above the threshold, else `value`."""
        # by hand

    @overload
    def __init__(self, threshold: float = 0.0, value: float = 0.0, **place: Any) -> None:
        """`x` above the threshold, else `value`."""
        # rust: Ok(nn::Threshold { threshold, value })

class Softmax(Layer):
    @overload
    def __init__(self, dim: Any = None) -> None:
        """`exp(x) / sum(exp(x))` along an axis."""
        # by hand

    @overload
    def __init__(self, axis: Axis = -1, **place: Any) -> None:
        """`exp(x) / sum(exp(x))` along an axis."""
        # rust: Ok(nn::Softmax { axis })

class LogSoftmax(Layer):
    @overload
    def __init__(self, dim: Any = None) -> None:
        """The logarithm of the softmax."""
        # by hand

    @overload
    def __init__(self, axis: Axis = -1, **place: Any) -> None:
        """The logarithm of the softmax."""
        # rust: Ok(nn::LogSoftmax { axis })

class Softmin(Layer):
    @overload
    def __init__(self, dim: Any = None) -> None:
        """The softmax of `-x`."""
        # by hand

    @overload
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
    @overload
    def __init__(self, lambd: Any = 0.5) -> None:
        """Values within `lambd` become 0."""
        # by hand

    @overload
    def __init__(self, lambd: float = 0.5, **place: Any) -> None:
        """Values within `lambd` become 0."""
        # rust: Ok(nn::Hardshrink { lambda: lambd })

class Softshrink(Layer):
    @overload
    def __init__(self, lambd: Any = 0.5) -> None:
        """Values within `lambd` become 0, the others move towards it by as much."""
        # by hand

    @overload
    def __init__(self, lambd: float = 0.5, **place: Any) -> None:
        """Values within `lambd` become 0, the others move towards it by as much."""
        # rust: Ok(nn::Softshrink { lambda: lambd })

class PRelu(Layer):
    def __init__(self, num_parameters: Size = 1, **place: Any) -> None:
        """`x` where positive, else `weight * x`. Parameter `weight` `[num_parameters]`."""

class Dropout1d(Layer):
    @overload
    def __init__(self, p: Any = 0.5, inplace: Any = False) -> None:
        """Channels of `[n, channels, length]` zeroed with probability `p` in training."""
        # by hand

    @overload
    def __init__(self, p: float = 0.5, **place: Any) -> None:
        """Channels of `[n, channels, length]` zeroed with probability `p` in training."""

class Dropout2d(Layer):
    @overload
    def __init__(self, p: Any = 0.5, inplace: Any = False) -> None:
        """Channels of `[n, channels, height, width]` zeroed with probability `p` in training."""
        # by hand

    @overload
    def __init__(self, p: float = 0.5, **place: Any) -> None:
        """Channels of `[n, channels, height, width]` zeroed with probability `p` in training."""

class Dropout3d(Layer):
    @overload
    def __init__(self, p: Any = 0.5, inplace: Any = False) -> None:
        """Channels of `[n, channels, depth, height, width]` zeroed with probability `p` in training."""
        # by hand

    @overload
    def __init__(self, p: float = 0.5, **place: Any) -> None:
        """Channels of `[n, channels, depth, height, width]` zeroed with probability `p` in training."""

class AlphaDropout(Layer):
    @overload
    def __init__(self, p: Any = 0.5, inplace: Any = False) -> None:
        """Elements set to the lower limit of `selu` with probability `p`, all scaled and moved so that mean 0 and variance 1 stay, in training."""
        # by hand

    @overload
    def __init__(self, p: float = 0.5, **place: Any) -> None:
        """Elements, so that mean and variance stay, zeroed with probability `p` in training."""

class BatchNorm1d(Layer):
    @overload
    def __init__(self, num_features: Any, eps: Any = 1e-05, momentum: Any = 0.1, affine: Any = True, track_running_stats: Any = True, device: Any = None, dtype: Any = None, *, bias: Any = True) -> None:
        """Batch normalisation, with running statistics for evaluation if they are tracked. Parameters `weight` and `bias`, if it is affine."""
        # by hand

    @overload
    def __init__(
        self, num_features: Size, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True,
        track_running_stats: bool = True, **place: Any
    ) -> None:
        """Batch normalisation, with running statistics for evaluation if they are tracked. Parameters
        `weight` and `bias`, if it is affine.
        """
        # rust: let x = if affine { nn::BatchNorm1d::new(num_features, init)? } else { nn::BatchNorm1d::plain(num_features, init)? }; let x = if track_running_stats { x } else { x.without_statistics() }; Ok(nn::BatchNorm1d { eps, momentum, ..x })

class BatchNorm3d(Layer):
    @overload
    def __init__(self, num_features: Any, eps: Any = 1e-05, momentum: Any = 0.1, affine: Any = True, track_running_stats: Any = True, device: Any = None, dtype: Any = None, *, bias: Any = True) -> None:
        """Batch normalisation, with running statistics for evaluation if they are tracked. Parameters `weight` and `bias`, if it is affine."""
        # by hand

    @overload
    def __init__(
        self, num_features: Size, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True,
        track_running_stats: bool = True, **place: Any
    ) -> None:
        """Batch normalisation, with running statistics for evaluation if they are tracked. Parameters
        `weight` and `bias`, if it is affine.
        """
        # rust: let x = if affine { nn::BatchNorm3d::new(num_features, init)? } else { nn::BatchNorm3d::plain(num_features, init)? }; let x = if track_running_stats { x } else { x.without_statistics() }; Ok(nn::BatchNorm3d { eps, momentum, ..x })

class InstanceNorm1d(Layer):
    @overload
    def __init__(self, num_features: Any, eps: Any = 1e-05, momentum: Any = 0.1, affine: Any = False, track_running_stats: Any = False, device: Any = None, dtype: Any = None, *, bias: Any = True) -> None:
        """Normalisation of each channel of each sample over its positions; in evaluation by running statistics, if they are tracked."""
        # by hand

    @overload
    def __init__(
        self, num_features: Size, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = False,
        track_running_stats: bool = False, **place: Any
    ) -> None:
        """Normalisation of each channel of each sample over its positions; in evaluation by running statistics,
        if they are tracked.
        """
        # rust: let x = if affine { nn::InstanceNorm1d::affine(num_features, init)? } else { nn::InstanceNorm1d::new(num_features) }; let x = if track_running_stats { x.with_statistics(init)? } else { x }; Ok(nn::InstanceNorm1d { eps, momentum, ..x })

class InstanceNorm2d(Layer):
    @overload
    def __init__(self, num_features: Any, eps: Any = 1e-05, momentum: Any = 0.1, affine: Any = False, track_running_stats: Any = False, device: Any = None, dtype: Any = None, *, bias: Any = True) -> None:
        """Normalisation of each channel of each sample over its positions; in evaluation by running statistics, if they are tracked."""
        # by hand

    @overload
    def __init__(
        self, num_features: Size, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = False,
        track_running_stats: bool = False, **place: Any
    ) -> None:
        """Normalisation of each channel of each sample over its positions; in evaluation by running statistics,
        if they are tracked.
        """
        # rust: let x = if affine { nn::InstanceNorm2d::affine(num_features, init)? } else { nn::InstanceNorm2d::new(num_features) }; let x = if track_running_stats { x.with_statistics(init)? } else { x }; Ok(nn::InstanceNorm2d { eps, momentum, ..x })

class InstanceNorm3d(Layer):
    @overload
    def __init__(self, num_features: Any, eps: Any = 1e-05, momentum: Any = 0.1, affine: Any = False, track_running_stats: Any = False, device: Any = None, dtype: Any = None, *, bias: Any = True) -> None:
        """Normalisation of each channel of each sample over its positions; in evaluation by running statistics, if they are tracked."""
        # by hand

    @overload
    def __init__(
        self, num_features: Size, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = False,
        track_running_stats: bool = False, **place: Any
    ) -> None:
        """Normalisation of each channel of each sample over its positions; in evaluation by running statistics,
        if they are tracked.
        """
        # rust: let x = if affine { nn::InstanceNorm3d::affine(num_features, init)? } else { nn::InstanceNorm3d::new(num_features) }; let x = if track_running_stats { x.with_statistics(init)? } else { x }; Ok(nn::InstanceNorm3d { eps, momentum, ..x })

class LocalResponseNorm(Layer):
    @overload
    def __init__(self, size: Any, alpha: Any = 0.0001, beta: Any = 0.75, k: Any = 1.0) -> None:
        """Divided by a power of the mean square of `size` neighbouring channels (axis 1)."""
        # by hand

    @overload
    def __init__(self, size: Size, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0, **place: Any) -> None:
        """Each channel divided by a power of the squares of its neighbours."""
        # rust: Ok(nn::LocalResponseNorm { alpha, beta, k, ..nn::LocalResponseNorm::new(size) })

class LpPool2d(Layer):
    def __init__(self, norm_type: float, kernel_size: Pair, stride: Pair | None = None, **place: Any) -> None:
        """The p-norm of each window of the last two axes."""
        # rust: Ok(nn::LpPool2d { p: norm_type, pool: Pool2d { stride: stride.unwrap_or(kernel_size), ..Pool2d::new(kernel_size) } })

class Unflatten(Layer):
    @overload
    def __init__(self, dim: Any, unflattened_size: Any) -> None:
        """An axis split into several."""
        # by hand

    @overload
    def __init__(self, axis: Axis, shape: Shape, **place: Any) -> None:
        """One axis split into several."""
        # rust: Ok(nn::Unflatten { axis, shape })

class PixelShuffle(Layer):
    @overload
    def __init__(self, upscale_factor: Any) -> None:
        """Channels as places of a larger image."""
        # by hand

    @overload
    def __init__(self, upscale_factor: Size, **place: Any) -> None:
        """`[n, c r^2, h, w]` as `[n, c, h r, w r]`."""
        # rust: Ok(nn::PixelShuffle(upscale_factor))

class PixelUnshuffle(Layer):
    @overload
    def __init__(self, downscale_factor: Any) -> None:
        """Places of an image as channels of a smaller one."""
        # by hand

    @overload
    def __init__(self, downscale_factor: Size, **place: Any) -> None:
        """`[n, c, h r, w r]` as `[n, c r^2, h, w]`."""
        # rust: Ok(nn::PixelUnshuffle(downscale_factor))

class ChannelShuffle(Layer):
    @overload
    def __init__(self, groups: Any) -> None:
        """Channels in `groups` parts, taken in turn."""
        # by hand

    @overload
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
    @overload
    def __init__(self, in1_features: Any, in2_features: Any, out_features: Any, bias: Any = True, device: Any = None, dtype: Any = None) -> None:
        """`x1 weight y + bias` of two inputs. Parameters `weight` `[out, in1, in2]` and `bias`."""
        # by hand

    @overload
    def __init__(self, in1_features: Size, in2_features: Size, out_features: Size, **place: Any) -> None:
        """`x1 @ weight[k] @ x2 + bias[k]` for each `k`."""
        # rust: nn::Bilinear::new([in1_features, in2_features], out_features, init).map(|l| two(l, nn::Bilinear::apply))

class EmbeddingBag(Layer):
    @overload
    def __init__(self, num_embeddings: Any, embedding_dim: Any, max_norm: Any = None, norm_type: Any = 2.0, scale_grad_by_freq: Any = False, mode: Any = 'mean', sparse: Any = False, _weight: Any = None, include_last_offset: Any = False, padding_idx: Any = None, device: Any = None, dtype: Any = None) -> None:
        """Bags of rows of a table, each made one row by `mode`. Parameter `weight` `[num_embeddings, embedding_dim]`."""
        # by hand

    @overload
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
    @overload
    def __init__(self, embed_dim: Any, num_heads: Any, dropout: Any = 0.0, bias: Any = True, add_bias_kv: Any = False, add_zero_attn: Any = False, kdim: Any = None, vdim: Any = None, batch_first: Any = False, device: Any = None, dtype: Any = None) -> None:
        """Attention of queries to keys (by default the queries) and values (by default the keys): the result and the weights."""
        # by hand

    @overload
    def __init__(
        self, embed_dim: Size, num_heads: Size, dropout: float = 0.0, bias: bool = True,
        kdim: Size | None = None, vdim: Size | None = None, batch_first: bool = False, **place: Any
    ) -> None:
        """What queries find among keys and values, and the weights by which they found it."""
        # rust: nn::MultiheadAttention::new(embed_dim, num_heads, nn::AttentionOptions { dropout, bias, batch_first, key_width: kdim, value_width: vdim }, init).map(attention)
    def attend_cached(self, x: Tensor, cache: KvCache) -> Tensor:
        """The next words `[n, steps, width]` of a text of which the cache remembers the words before, and now these."""

class TransformerEncoderLayer(Layer):
    @overload
    def __init__(self, d_model: Any, nhead: Any, dim_feedforward: Any = 2048, dropout: Any = 0.1, activation: Any = ..., layer_norm_eps: Any = 1e-05, batch_first: Any = False, norm_first: Any = False, bias: Any = True, device: Any = None, dtype: Any = None) -> None:
        """Attention of a sequence to itself, then two products at every step, both beside a residual."""
        # by hand

    @overload
    def __init__(
        self, d_model: Size, nhead: Size, dim_feedforward: Size = 2048, dropout: float = 0.1,
        activation: Text = "relu", norm_first: bool = False, batch_first: bool = False, **place: Any
    ) -> None:
        """Self-attention and a feed-forward part."""
        # rust: nn::TransformerEncoderLayer::new(d_model, nhead, nn::TransformerOptions { feedforward: dim_feedforward, dropout, activation: activation_of(&activation)?, norm_first, batch_first, ..Default::default() }, init).map(|l| many(l, 1..=4, |l, x| Ok(vec![l.encode(at(x, 0)?, mask(x, 1)?)?])))

class TransformerEncoder(Layer):
    @overload
    def __init__(self, encoder_layer: Any, num_layers: Any, norm: Any = None, enable_nested_tensor: Any = True, mask_check: Any = True) -> None:
        """`num_layers` copies of a layer one after the other, with a normalisation at the end if there is one."""
        # by hand

    @overload
    def __init__(
        self, num_layers: Size, d_model: Size, nhead: Size, dim_feedforward: Size = 2048, dropout: float = 0.1,
        activation: Text = "relu", norm_first: bool = False, batch_first: bool = False, **place: Any
    ) -> None:
        """Encoder layers one after the other; or `TransformerEncoder(layer, num_layers)`, copies of a layer."""
        # rust: nn::TransformerEncoder::new(num_layers, d_model, nhead, nn::TransformerOptions { feedforward: dim_feedforward, dropout, activation: activation_of(&activation)?, norm_first, batch_first, ..Default::default() }, init).map(|l| many(l, 1..=4, |l, x| Ok(vec![l.encode(at(x, 0)?, mask(x, 1)?)?])))

class TransformerDecoderLayer(Layer):
    @overload
    def __init__(self, d_model: Any, nhead: Any, dim_feedforward: Any = 2048, dropout: Any = 0.1, activation: Any = ..., layer_norm_eps: Any = 1e-05, batch_first: Any = False, norm_first: Any = False, bias: Any = True, device: Any = None, dtype: Any = None) -> None:
        """Attention of a sequence to itself, then to a memory, then two products at every step, all beside a residual."""
        # by hand

    @overload
    def __init__(
        self, d_model: Size, nhead: Size, dim_feedforward: Size = 2048, dropout: float = 0.1,
        activation: Text = "relu", norm_first: bool = False, batch_first: bool = False, **place: Any
    ) -> None:
        """Self-attention, attention to a memory, and a feed-forward part."""
        # rust: nn::TransformerDecoderLayer::new(d_model, nhead, nn::TransformerOptions { feedforward: dim_feedforward, dropout, activation: activation_of(&activation)?, norm_first, batch_first, ..Default::default() }, init).map(|l| many(l, 2..=8, |l, x| Ok(vec![l.decode(at(x, 0)?, at(x, 1)?, mask(x, 2)?, mask(x, 5)?)?])))

class TransformerDecoder(Layer):
    @overload
    def __init__(self, decoder_layer: Any, num_layers: Any, norm: Any = None) -> None:
        """`num_layers` copies of a layer one after the other, with a normalisation at the end if there is one."""
        # by hand

    @overload
    def __init__(
        self, num_layers: Size, d_model: Size, nhead: Size, dim_feedforward: Size = 2048, dropout: float = 0.1,
        activation: Text = "relu", norm_first: bool = False, batch_first: bool = False, **place: Any
    ) -> None:
        """Decoder layers one after the other; or `TransformerDecoder(layer, num_layers)`, copies of a layer."""
        # rust: nn::TransformerDecoder::new(num_layers, d_model, nhead, nn::TransformerOptions { feedforward: dim_feedforward, dropout, activation: activation_of(&activation)?, norm_first, batch_first, ..Default::default() }, init).map(|l| many(l, 2..=8, |l, x| Ok(vec![l.decode(at(x, 0)?, at(x, 1)?, mask(x, 2)?, mask(x, 5)?)?])))

class Transformer(Layer):
    @overload
    def __init__(self, d_model: Any = 512, nhead: Any = 8, num_encoder_layers: Any = 6, num_decoder_layers: Any = 6, dim_feedforward: Any = 2048, dropout: Any = 0.1, activation: Any = ..., custom_encoder: Any = None, custom_decoder: Any = None, layer_norm_eps: Any = 1e-05, batch_first: Any = False, norm_first: Any = False, bias: Any = True, device: Any = None, dtype: Any = None) -> None:
        """An encoder, and a decoder that looks at its result."""
        # by hand

    @overload
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
    @overload
    def __init__(self, size_average: Any = None, reduce: Any = None, reduction: Any = 'mean') -> None:
        """The absolute difference."""
        # by hand

    @overload
    def __init__(self, reduction: Reduction = "mean", **place: Any) -> None:
        """Absolute difference."""
        # rust: Ok(loss(nn::L1Loss { reduction }))

class HuberLoss(Layer):
    @overload
    def __init__(self, reduction: Any = 'mean', delta: Any = 1.0) -> None:
        """Half the square of the difference up to `delta`, beyond it linear with slope `delta`; `weight` is a factor of each term."""
        # by hand

    @overload
    def __init__(self, reduction: Reduction = "mean", delta: float = 1.0, **place: Any) -> None:
        """Squared up to `delta`, then linear."""
        # rust: Ok(loss(nn::HuberLoss { delta, reduction }))

class SmoothL1Loss(Layer):
    @overload
    def __init__(self, size_average: Any = None, reduce: Any = None, reduction: Any = 'mean', beta: Any = 1.0) -> None:
        """Half the square of a difference divided by `beta`, beyond `beta` its absolute value less `beta / 2`."""
        # by hand

    @overload
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
    @overload
    def __init__(self, size_average: Any = None, reduce: Any = None, reduction: Any = 'mean') -> None:
        """`log(1 + exp(-target input))`."""
        # by hand

    @overload
    def __init__(self, reduction: Reduction = "mean", **place: Any) -> None:
        """`log(1 + e^(-x y))`."""
        # rust: Ok(loss(nn::SoftMarginLoss { reduction }))

class HingeEmbeddingLoss(Layer):
    @overload
    def __init__(self, margin: Any = 1.0, size_average: Any = None, reduce: Any = None, reduction: Any = 'mean') -> None:
        """Distances where the target is 1; the excess of `margin` over them where it is -1."""
        # by hand

    @overload
    def __init__(self, margin: float = 1.0, reduction: Reduction = "mean", **place: Any) -> None:
        """How near like and how far unlike pairs are."""
        # rust: Ok(loss(nn::HingeEmbeddingLoss { margin, reduction }))

class MultiLabelSoftMarginLoss(Layer):
    @overload
    def __init__(self, weight: Any = None, size_average: Any = None, reduce: Any = None, reduction: Any = 'mean') -> None:
        """The mean over classes of the binary cross entropies of logits; `weight` is a factor of each class."""
        # by hand

    @overload
    def __init__(self, reduction: Reduction = "mean", **place: Any) -> None:
        """Binary cross entropy of each class."""
        # rust: Ok(loss(nn::MultiLabelSoftMarginLoss { reduction }))

class MultiMarginLoss(Layer):
    @overload
    def __init__(self, p: Any = 1, margin: Any = 1.0, weight: Any = None, size_average: Any = None, reduce: Any = None, reduction: Any = 'mean') -> None:
        """How far other classes come near the right one."""
        # by hand

    @overload
    def __init__(self, p: float = 1.0, margin: float = 1.0, reduction: Reduction = "mean", **place: Any) -> None:
        """How far other classes come near the right one."""
        # rust: Ok(loss(nn::MultiMarginLoss { p, margin, reduction }))

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
    @overload
    def __init__(self, margin: Any = 0.0, size_average: Any = None, reduce: Any = None, reduction: Any = 'mean') -> None:
        """How wrongly pairs are ordered."""
        # by hand

    @overload
    def __init__(self, margin: float = 0.0, reduction: Reduction = "mean", **place: Any) -> None:
        """How wrongly pairs are ordered."""
        # rust: Ok(three(nn::MarginRankingLoss { margin, reduction }, nn::MarginRankingLoss::loss))

class TripletMarginLoss(Layer):
    @overload
    def __init__(self, margin: Any = 1.0, p: Any = 2.0, eps: Any = 1e-06, swap: Any = False, size_average: Any = None, reduce: Any = None, reduction: Any = 'mean') -> None:
        """How much farther the negative is than the positive; with `swap` from the nearer of the other two."""
        # by hand

    @overload
    def __init__(
        self, margin: float = 1.0, p: float = 2.0, eps: float = 1e-6, swap: bool = False, reduction: Reduction = "mean", **place: Any
    ) -> None:
        """How much farther the negative is than the positive; with `swap` from the nearer of the other two."""
        # rust: Ok(many(Bare(()), 3..=3, move |_, x| Ok(vec![at(x, 0)?.triplet_margin_loss(at(x, 1)?, at(x, 2)?, TripletMargin { margin, p, eps, swap, reduction })?])))

class CosineEmbeddingLoss(Layer):
    @overload
    def __init__(self, margin: Any = 0.0, size_average: Any = None, reduce: Any = None, reduction: Any = 'mean') -> None:
        """How like pairs are that should, and should not, be."""
        # by hand

    @overload
    def __init__(self, margin: float = 0.0, reduction: Reduction = "mean", **place: Any) -> None:
        """How like pairs are that should, and should not, be."""
        # rust: Ok(three(nn::CosineEmbeddingLoss { margin, reduction }, nn::CosineEmbeddingLoss::loss))

class CosineSimilarity(Layer):
    @overload
    def __init__(self, dim: Any = 1, eps: Any = 1e-08) -> None:
        """The cosine of the angle between vectors."""
        # by hand

    @overload
    def __init__(self, axis: Axis = 1, eps: float = 1e-8, **place: Any) -> None:
        """The cosine of the angle between vectors."""
        # rust: Ok(two(nn::CosineSimilarity { axis, eps }, nn::CosineSimilarity::apply))

class PairwiseDistance(Layer):
    @overload
    def __init__(self, p: Any = 2.0, eps: Any = 1e-06, keepdim: Any = False) -> None:
        """The p-norm of differences."""
        # by hand

    @overload
    def __init__(self, p: float = 2.0, eps: float = 1e-6, **place: Any) -> None:
        """The p-norm of differences."""
        # rust: Ok(two(nn::PairwiseDistance { p, eps }, nn::PairwiseDistance::apply))

class Conv3d(Layer):
    @overload
    def __init__(self, in_channels: Any, out_channels: Any, kernel_size: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: Any = 1, bias: Any = True, padding_mode: Any = 'zeros', device: Any = None, dtype: Any = None) -> None:
        """Convolution over 3 axes of `[n, in, ..]` or `[in, ..]`. `padding` may be `"same"`, which keeps the extents, or `"valid"`."""
        # by hand

    @overload
    def __init__(
        self, in_channels: Size, out_channels: Size, kernel_size: Triple, stride: Triple = 1, padding: Padding = 0,
        dilation: Triple = 1, groups: Size = 1, bias: bool = True, padding_mode: PadMode = "zeros", **place: Any
    ) -> None:
        """3-d convolution of `[n, in, depth, height, width]`, or of one without `n`. `padding` may be `"same"`, which keeps the
        extents, or `"valid"`, which is none; `padding_mode` says what is added.
        """
        # rust: nn::Conv3d::new(in_channels, out_channels, kernel_size, Conv3dOptions { stride, padding: padding.each()?, dilation, groups }, init)?.surrounded(&padding, padding_mode).map(|x| nn::Conv3d { bias: x.bias.filter(|_| bias), ..x })

class ConvTranspose1d(Layer):
    @overload
    def __init__(self, in_channels: Any, out_channels: Any, kernel_size: Any, stride: Any = 1, padding: Any = 0, output_padding: Any = 0, groups: Any = 1, bias: Any = True, dilation: Any = 1, padding_mode: Any = 'zeros', device: Any = None, dtype: Any = None) -> None:
        """Transposed convolution over 1 axes of `[n, in, ..]` or `[in, ..]`: each element spreads to a window."""
        # by hand

    @overload
    def __init__(
        self, in_channels: Size, out_channels: Size, kernel_size: One, stride: One = 1, padding: One = 0,
        output_padding: One = 0, groups: Size = 1, bias: bool = True, dilation: One = 1, padding_mode: PadMode = "zeros",
        **place: Any
    ) -> None:
        """Transposed convolution of `[n, in, length]`: each element spreads to a window."""
        # rust: only_zeros(padding_mode)?; nn::ConvTranspose1d::new(in_channels, out_channels, kernel_size, ConvTransposeOptions { stride, padding, output_padding, dilation, groups }, init).map(|x| nn::ConvTranspose1d { bias: x.bias.filter(|_| bias), ..x })

class ConvTranspose2d(Layer):
    @overload
    def __init__(self, in_channels: Any, out_channels: Any, kernel_size: Any, stride: Any = 1, padding: Any = 0, output_padding: Any = 0, groups: Any = 1, bias: Any = True, dilation: Any = 1, padding_mode: Any = 'zeros', device: Any = None, dtype: Any = None) -> None:
        """Transposed convolution over 2 axes of `[n, in, ..]` or `[in, ..]`: each element spreads to a window."""
        # by hand

    @overload
    def __init__(
        self, in_channels: Size, out_channels: Size, kernel_size: Pair, stride: Pair = 1, padding: Pair = 0,
        output_padding: Pair = 0, groups: Size = 1, bias: bool = True, dilation: Pair = 1, padding_mode: PadMode = "zeros",
        **place: Any
    ) -> None:
        """Transposed convolution of `[n, in, height, width]`: each element spreads to a window."""
        # rust: only_zeros(padding_mode)?; nn::ConvTranspose2d::new(in_channels, out_channels, kernel_size, ConvTransposeOptions { stride, padding, output_padding, dilation, groups }, init).map(|x| nn::ConvTranspose2d { bias: x.bias.filter(|_| bias), ..x })

class ConvTranspose3d(Layer):
    @overload
    def __init__(self, in_channels: Any, out_channels: Any, kernel_size: Any, stride: Any = 1, padding: Any = 0, output_padding: Any = 0, groups: Any = 1, bias: Any = True, dilation: Any = 1, padding_mode: Any = 'zeros', device: Any = None, dtype: Any = None) -> None:
        """Transposed convolution over 3 axes of `[n, in, ..]` or `[in, ..]`: each element spreads to a window."""
        # by hand

    @overload
    def __init__(
        self, in_channels: Size, out_channels: Size, kernel_size: Triple, stride: Triple = 1, padding: Triple = 0,
        output_padding: Triple = 0, groups: Size = 1, bias: bool = True, dilation: Triple = 1, padding_mode: PadMode = "zeros",
        **place: Any
    ) -> None:
        """Transposed convolution of `[n, in, depth, height, width]`: each element spreads to a window."""
        # rust: only_zeros(padding_mode)?; nn::ConvTranspose3d::new(in_channels, out_channels, kernel_size, ConvTransposeOptions { stride, padding, output_padding, dilation, groups }, init).map(|x| nn::ConvTranspose3d { bias: x.bias.filter(|_| bias), ..x })

class LpPool1d(Layer):
    def __init__(self, norm_type: float, kernel_size: One, stride: One | None = None, **place: Any) -> None:
        """The p-norm of each window of the last axis."""
        # rust: Ok(nn::LpPool1d { p: norm_type, pool: Pool { stride: stride.unwrap_or(kernel_size), ..Pool::new(kernel_size) } })

class LpPool3d(Layer):
    def __init__(self, norm_type: float, kernel_size: Triple, stride: Triple | None = None, **place: Any) -> None:
        """The p-norm of each window of the last three axes."""
        # rust: Ok(nn::LpPool3d { p: norm_type, pool: Pool { stride: stride.unwrap_or(kernel_size), ..Pool::new(kernel_size) } })

class Unfold(Layer):
    @overload
    def __init__(self, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> None:
        """Windows of an image as columns: `[n, channels * kernel, positions]`."""
        # by hand

    @overload
    def __init__(
        self, kernel_size: Pair, dilation: Pair = 1, padding: Pair = 0, stride: Pair = 1, **place: Any
    ) -> None:
        """Windows of `[n, channels, height, width]` as columns `[n, channels kernel, positions]`."""
        # rust: Ok(nn::Unfold(Pool { stride, padding, dilation, ..Pool::new(kernel_size) }))

class Fold(Layer):
    @overload
    def __init__(self, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> None:
        """Columns added up where their windows lie: the adjoint of `unfold`."""
        # by hand

    @overload
    def __init__(
        self, output_size: Pair, kernel_size: Pair, dilation: Pair = 1, padding: Pair = 0, stride: Pair = 1, **place: Any
    ) -> None:
        """Columns `[n, channels kernel, positions]` added up where their windows lie in an image."""
        # rust: Ok(nn::Fold { output: output_size, windows: Pool { stride, padding, dilation, ..Pool::new(kernel_size) } })

class Pad(Layer):
    def __init__(self, padding: Pads, mode: PadMode = "zeros", **place: Any) -> None:
        """Elements around the last axes: zeros, mirror images, copies of the outermost, or the other end."""
        # rust: Ok(nn::Pad { padding, mode })

class CtcLoss(Layer):
    def __init__(
        self, blank: Size = 0, reduction: Reduction = "mean", zero_infinity: bool = False, **place: Any
    ) -> None:
        """Connectionist temporal classification: log-probabilities, targets, lengths of inputs and of targets."""
        # rust: Ok(many(nn::CtcLoss { blank, zero_infinity, reduction }, 4..=4, |l, x| Ok(vec![l.loss(at(x, 0)?, at(x, 1)?, at(x, 2)?, at(x, 3)?)?])))

class MultiLabelMarginLoss(Layer):
    @overload
    def __init__(self, size_average: Any = None, reduce: Any = None, reduction: Any = 'mean') -> None:
        """How far other classes come near the right ones, of which there may be several."""
        # by hand

    @overload
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


# Written by tools/python_stubs.py from here

class Softmax2d(Layer):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """The softmax over the channels at every place of images."""
        # by hand

class ReLU(Layer):
    def __init__(self, inplace: Any = False) -> None:
        """`max(x, 0)`."""
        # by hand

class ReLU6(Layer):
    def __init__(self, inplace: Any = False) -> None:
        """`x` limited to 0 ..= 6."""
        # by hand

class SELU(Layer):
    def __init__(self, inplace: Any = False) -> None:
        """The self-normalising activation."""
        # by hand

class SiLU(Layer):
    def __init__(self, inplace: Any = False) -> None:
        """`x * sigmoid(x)`."""
        # by hand

class LeakyReLU(Layer):
    def __init__(self, negative_slope: Any = 0.01, inplace: Any = False) -> None:
        """`x` where positive, else `negative_slope * x`."""
        # by hand

class ELU(Layer):
    def __init__(self, alpha: Any = 1.0, inplace: Any = False) -> None:
        """`x` where positive, else `alpha (e^x - 1)`."""
        # by hand

class CELU(Layer):
    def __init__(self, alpha: Any = 1.0, inplace: Any = False) -> None:
        """`elu` that is smooth for every `alpha`."""
        # by hand

class GELU(Layer):
    def __init__(self, approximate: Any = 'none') -> None:
        """The Gaussian error linear unit; with `approximate="tanh"` by the hyperbolic tangent, as the method `gelu` is."""
        # by hand

class Softplus(Layer):
    def __init__(self, beta: Any = 1.0, threshold: Any = 20.0) -> None:
        """`log(1 + exp(beta input)) / beta`; `input` itself where `beta input` exceeds `threshold`."""
        # by hand

class RReLU(Layer):
    def __init__(self, lower: Any = 0.125, upper: Any = 0.3333333333333333, inplace: Any = False) -> None:
        """`input` where it is positive, elsewhere times a slope: drawn between `lower` and `upper` for each element in training, their mean otherwise."""
        # by hand

class GLU(Layer):
    def __init__(self, dim: Any = -1) -> None:
        """One half of an axis times the sigmoid of the other."""
        # by hand

class PReLU(Layer):
    def __init__(self, num_parameters: Any = 1, init: Any = 0.25, device: Any = None, dtype: Any = None) -> None:
        """`x` where positive, else `weight * x`. Parameter `weight` `[num_parameters]`."""
        # by hand

class FeatureAlphaDropout(Layer):
    def __init__(self, p: Any = 0.5, inplace: Any = False) -> None:
        """`alpha_dropout` of whole channels: the first two axes stay apart."""
        # by hand

class SyncBatchNorm(Layer):
    def __init__(self, num_features: Any, eps: Any = 1e-05, momentum: Any = 0.1, affine: Any = True, track_running_stats: Any = True, process_group: Any = None, device: Any = None, dtype: Any = None, *, bias: Any = True) -> None:
        """Batch normalisation over all processes, of which there is one."""
        # by hand

class RMSNorm(Layer):
    def __init__(self, normalized_shape: Any, eps: Any = None, elementwise_affine: Any = True, device: Any = None, dtype: Any = None) -> None:
        """Root mean square normalisation over the last axes. Parameter `weight` (ones), if it is affine; `eps` is by default the distance of 1 from the next number."""
        # by hand

class CrossMapLRN2d(Layer):
    def __init__(self, size: Any, alpha: Any = 0.0001, beta: Any = 0.75, k: Any = 1) -> None:
        """Divided by a power of the mean square of `size` neighbouring channels (axis 1)."""
        # by hand

class Flatten(Layer):
    def __init__(self, start_dim: Any = 1, end_dim: Any = -1) -> None:
        """Axes merged: all but the first."""
        # by hand

class Upsample(Layer):
    def __init__(self, size: Any = None, scale_factor: Any = None, mode: Any = 'nearest', align_corners: Any = None, recompute_scale_factor: Any = None) -> None:
        """The axes behind the first two with the extents `size`, or `scale_factor` times theirs. `"linear"`, `"bilinear"` and `"trilinear"` are one mode, as are `"cubic"` and `"bicubic"`. Places follow from the factor, or with `recompute_scale_factor` from the extents. With `antialias` smaller images are means of all elements."""
        # by hand

class UpsamplingNearest2d(Layer):
    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        """The axes behind the first two with the extents `size`, or `scale_factor` times theirs. `"linear"`, `"bilinear"` and `"trilinear"` are one mode, as are `"cubic"` and `"bicubic"`. Places follow from the factor, or with `recompute_scale_factor` from the extents. With `antialias` smaller images are means of all elements."""
        # by hand

class UpsamplingBilinear2d(Layer):
    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        """The axes behind the first two with the extents `size`, or `scale_factor` times theirs. `"linear"`, `"bilinear"` and `"trilinear"` are one mode, as are `"cubic"` and `"bicubic"`. Places follow from the factor, or with `recompute_scale_factor` from the extents. With `antialias` smaller images are means of all elements."""
        # by hand

class MaxPool1d(Layer):
    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, return_indices: Any = False, ceil_mode: Any = False) -> None:
        """The largest of each window."""
        # by hand

class AvgPool1d(Layer):
    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: Any = False, count_include_pad: Any = True) -> None:
        """The mean of each window."""
        # by hand

class LPPool1d(Layer):
    def __init__(self, norm_type: Any, kernel_size: Any, stride: Any = None, ceil_mode: Any = False) -> None:
        """The p-norm of each window."""
        # by hand

class MaxUnpool1d(Layer):
    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0) -> None:
        """Elements put back where `MaxPool1d(.., return_indices=True)` took them; zeros elsewhere."""
        # by hand

class AdaptiveAvgPool1d(Layer):
    def __init__(self, output_size: Any) -> None:
        """Means of windows of nearly one size that give `output_size`; `None` leaves an extent as it is."""
        # by hand

class AdaptiveMaxPool1d(Layer):
    def __init__(self, output_size: Any, return_indices: Any = False) -> None:
        """The largest of windows of nearly one size that give `output_size`; `None` leaves an extent as it is. With `return_indices` also where they were."""
        # by hand

class ZeroPad1d(Layer):
    def __init__(self, padding: Any) -> None:
        """Elements added around the last 1 axes."""
        # by hand

class ConstantPad1d(Layer):
    def __init__(self, padding: Any, value: Any) -> None:
        """Elements added around the last 1 axes."""
        # by hand

class ReflectionPad1d(Layer):
    def __init__(self, padding: Any) -> None:
        """Elements added around the last 1 axes."""
        # by hand

class ReplicationPad1d(Layer):
    def __init__(self, padding: Any) -> None:
        """Elements added around the last 1 axes."""
        # by hand

class CircularPad1d(Layer):
    def __init__(self, padding: Any) -> None:
        """Elements added around the last 1 axes."""
        # by hand

class MaxPool2d(Layer):
    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, return_indices: Any = False, ceil_mode: Any = False) -> None:
        """The largest of each window."""
        # by hand

class AvgPool2d(Layer):
    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: Any = False, count_include_pad: Any = True, divisor_override: Any = None) -> None:
        """The mean of each window."""
        # by hand

class LPPool2d(Layer):
    def __init__(self, norm_type: Any, kernel_size: Any, stride: Any = None, ceil_mode: Any = False) -> None:
        """The p-norm of each window."""
        # by hand

class MaxUnpool2d(Layer):
    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0) -> None:
        """Elements put back where `MaxPool2d(.., return_indices=True)` took them; zeros elsewhere."""
        # by hand

class AdaptiveAvgPool2d(Layer):
    def __init__(self, output_size: Any) -> None:
        """Means of windows of nearly one size that give `output_size`; `None` leaves an extent as it is."""
        # by hand

class AdaptiveMaxPool2d(Layer):
    def __init__(self, output_size: Any, return_indices: Any = False) -> None:
        """The largest of windows of nearly one size that give `output_size`; `None` leaves an extent as it is. With `return_indices` also where they were."""
        # by hand

class FractionalMaxPool2d(Layer):
    def __init__(self, kernel_size: Any, output_size: Any = None, output_ratio: Any = None, return_indices: Any = False, _random_samples: Any = None) -> None:
        """The largest elements of windows at pseudo-random places (Graham 2014)."""
        # by hand

class ZeroPad2d(Layer):
    def __init__(self, padding: Any) -> None:
        """Elements added around the last 2 axes."""
        # by hand

class ConstantPad2d(Layer):
    def __init__(self, padding: Any, value: Any) -> None:
        """Elements added around the last 2 axes."""
        # by hand

class ReflectionPad2d(Layer):
    def __init__(self, padding: Any) -> None:
        """Elements added around the last 2 axes."""
        # by hand

class ReplicationPad2d(Layer):
    def __init__(self, padding: Any) -> None:
        """Elements added around the last 2 axes."""
        # by hand

class CircularPad2d(Layer):
    def __init__(self, padding: Any) -> None:
        """Elements added around the last 2 axes."""
        # by hand

class MaxPool3d(Layer):
    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, return_indices: Any = False, ceil_mode: Any = False) -> None:
        """The largest of each window."""
        # by hand

class AvgPool3d(Layer):
    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: Any = False, count_include_pad: Any = True, divisor_override: Any = None) -> None:
        """The mean of each window."""
        # by hand

class LPPool3d(Layer):
    def __init__(self, norm_type: Any, kernel_size: Any, stride: Any = None, ceil_mode: Any = False) -> None:
        """The p-norm of each window."""
        # by hand

class MaxUnpool3d(Layer):
    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0) -> None:
        """Elements put back where `MaxPool3d(.., return_indices=True)` took them; zeros elsewhere."""
        # by hand

class AdaptiveAvgPool3d(Layer):
    def __init__(self, output_size: Any) -> None:
        """Means of windows of nearly one size that give `output_size`; `None` leaves an extent as it is."""
        # by hand

class AdaptiveMaxPool3d(Layer):
    def __init__(self, output_size: Any, return_indices: Any = False) -> None:
        """The largest of windows of nearly one size that give `output_size`; `None` leaves an extent as it is. With `return_indices` also where they were."""
        # by hand

class FractionalMaxPool3d(Layer):
    def __init__(self, kernel_size: Any, output_size: Any = None, output_ratio: Any = None, return_indices: Any = False, _random_samples: Any = None) -> None:
        """The largest elements of windows at pseudo-random places (Graham 2014)."""
        # by hand

class ZeroPad3d(Layer):
    def __init__(self, padding: Any) -> None:
        """Elements added around the last 3 axes."""
        # by hand

class ConstantPad3d(Layer):
    def __init__(self, padding: Any, value: Any) -> None:
        """Elements added around the last 3 axes."""
        # by hand

class ReflectionPad3d(Layer):
    def __init__(self, padding: Any) -> None:
        """Elements added around the last 3 axes."""
        # by hand

class ReplicationPad3d(Layer):
    def __init__(self, padding: Any) -> None:
        """Elements added around the last 3 axes."""
        # by hand

class CircularPad3d(Layer):
    def __init__(self, padding: Any) -> None:
        """Elements added around the last 3 axes."""
        # by hand

class MSELoss(Layer):
    def __init__(self, size_average: Any = None, reduce: Any = None, reduction: Any = 'mean') -> None:
        """The square of the difference."""
        # by hand

class CrossEntropyLoss(Layer):
    def __init__(self, weight: Any = None, size_average: Any = None, ignore_index: Any = -100, reduce: Any = None, reduction: Any = 'mean', label_smoothing: Any = 0.0) -> None:
        """Cross entropy of logits, classes along axis 1 (or 0 of a vector), against class numbers or probabilities."""
        # by hand

class NLLLoss(Layer):
    def __init__(self, weight: Any = None, size_average: Any = None, ignore_index: Any = -100, reduce: Any = None, reduction: Any = 'mean') -> None:
        """Negative log likelihood of log probabilities against class numbers."""
        # by hand

class NLLLoss2d(Layer):
    def __init__(self, weight: Any = None, size_average: Any = None, ignore_index: Any = -100, reduce: Any = None, reduction: Any = 'mean') -> None:
        """Negative log likelihood of log probabilities against class numbers."""
        # by hand

class BCELoss(Layer):
    def __init__(self, weight: Any = None, size_average: Any = None, reduce: Any = None, reduction: Any = 'mean') -> None:
        """Binary cross entropy of probabilities; `weight` is a factor of each term."""
        # by hand

class BCEWithLogitsLoss(Layer):
    def __init__(self, weight: Any = None, size_average: Any = None, reduce: Any = None, reduction: Any = 'mean', pos_weight: Any = None) -> None:
        """Binary cross entropy of logits; `weight` is a factor of each term, `pos_weight` of those whose target is 1."""
        # by hand

class KLDivLoss(Layer):
    def __init__(self, size_average: Any = None, reduce: Any = None, reduction: Any = 'mean', log_target: Any = False) -> None:
        """Kullback and Leibler's divergence of log probabilities `input` from `target`; `"batchmean"` divides the sum by the first extent, as its definition does."""
        # by hand

class PoissonNLLLoss(Layer):
    def __init__(self, log_input: Any = True, full: Any = False, size_average: Any = None, eps: Any = 1e-08, reduce: Any = None, reduction: Any = 'mean') -> None:
        """Negative log likelihood of counts under Poisson's distribution of a rate, or of its logarithm."""
        # by hand

class GaussianNLLLoss(Layer):
    def __init__(self, *, full: Any = False, eps: Any = 1e-06, reduction: Any = 'mean') -> None:
        """Negative log likelihood under normal distributions with means `input` and variances `var`."""
        # by hand

class CTCLoss(Layer):
    def __init__(self, blank: Any = 0, reduction: Any = 'mean', zero_infinity: Any = False) -> None:
        """Connectionist temporal classification: of log probabilities `[time, n, classes]`; targets are rows, or one row with those of all examples one after the other."""
        # by hand

class TripletMarginWithDistanceLoss(Layer):
    def __init__(self, *, distance_function: Any = None, margin: Any = 1.0, swap: Any = False, reduction: Any = 'mean') -> None:
        """`triplet_margin_loss` by another distance: a function of two tensors, by default `pairwise_distance`."""
        # by hand

class LinearCrossEntropyLoss(Layer):
    def __init__(self, in_features: Any, num_classes: Any, *, out_features: Any = (), bias: Any = False, device: Any = None, dtype: Any = None, reduction: Any = 'mean', weight: Any = None, ignore_index: Any = None, label_smoothing: Any = 0.0, options: Any = None) -> None:
        """The cross entropy of logits that a linear layer makes; `linear_weight` is `[classes, .., features]`. `options` choose between ways to compute it in PyTorch and change nothing."""
        # by hand

class RNN(Layer):
    def __init__(self, input_size: Any, hidden_size: Any, num_layers: Any = 1, nonlinearity: Any = 'tanh', bias: Any = True, batch_first: Any = False, dropout: Any = 0.0, bidirectional: Any = False, device: Any = None, dtype: Any = None) -> None:
        """A plain recurrent network: outputs of all steps, and the last of each layer."""
        # by hand

class GRU(Layer):
    def __init__(self, input_size: Any, hidden_size: Any, num_layers: Any = 1, bias: Any = True, batch_first: Any = False, dropout: Any = 0.0, bidirectional: Any = False, device: Any = None, dtype: Any = None) -> None:
        """A gated recurrent unit: outputs of all steps, and the last of each layer."""
        # by hand

class LSTM(Layer):
    def __init__(self, input_size: Any, hidden_size: Any, num_layers: Any = 1, bias: Any = True, batch_first: Any = False, dropout: Any = 0.0, bidirectional: Any = False, proj_size: Any = 0, device: Any = None, dtype: Any = None) -> None:
        """Long short-term memory: outputs of all steps, and the last outputs and cells; `hx` is such a pair."""
        # by hand

class RNNCell(Layer):
    def __init__(self, input_size: Any, hidden_size: Any, bias: Any = True, nonlinearity: Any = 'tanh', device: Any = None, dtype: Any = None) -> None:
        """The state after an input; the one before is zeros if it is not given."""
        # by hand

class GRUCell(Layer):
    def __init__(self, input_size: Any, hidden_size: Any, bias: Any = True, device: Any = None, dtype: Any = None) -> None:
        """The state after an input; the one before is zeros if it is not given."""
        # by hand

class LSTMCell(Layer):
    def __init__(self, input_size: Any, hidden_size: Any, bias: Any = True, device: Any = None, dtype: Any = None) -> None:
        """Output and cell after an input; `hx` is such a pair, zeros if it is not given."""
        # by hand

class AdaptiveLogSoftmaxWithLoss(Layer):
    def __init__(self, in_features: Any, n_classes: Any, cutoffs: Any, div_value: Any = 4.0, head_bias: Any = False, device: Any = None, dtype: Any = None) -> None:
        """The log probability of the right one of many classes, of which the rare ones are in clusters (Grave et al. 2017); and the loss."""
        # by hand

class LazyBatchNorm1d(Layer):
    def __init__(self, eps: Any = 1e-05, momentum: Any = 0.1, affine: Any = True, track_running_stats: Any = True, device: Any = None, dtype: Any = None, *, bias: Any = True) -> None:
        """`BatchNorm1d` whose `num_features` the first input tells."""
        # by hand

class LazyBatchNorm2d(Layer):
    def __init__(self, eps: Any = 1e-05, momentum: Any = 0.1, affine: Any = True, track_running_stats: Any = True, device: Any = None, dtype: Any = None, *, bias: Any = True) -> None:
        """`BatchNorm2d` whose `num_features` the first input tells."""
        # by hand

class LazyBatchNorm3d(Layer):
    def __init__(self, eps: Any = 1e-05, momentum: Any = 0.1, affine: Any = True, track_running_stats: Any = True, device: Any = None, dtype: Any = None, *, bias: Any = True) -> None:
        """`BatchNorm3d` whose `num_features` the first input tells."""
        # by hand

class LazyConv1d(Layer):
    def __init__(self, out_channels: Any, kernel_size: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: Any = 1, bias: Any = True, padding_mode: Any = 'zeros', device: Any = None, dtype: Any = None) -> None:
        """`Conv1d` whose `in_channels` the first input tells."""
        # by hand

class LazyConv2d(Layer):
    def __init__(self, out_channels: Any, kernel_size: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: Any = 1, bias: Any = True, padding_mode: Any = 'zeros', device: Any = None, dtype: Any = None) -> None:
        """`Conv2d` whose `in_channels` the first input tells."""
        # by hand

class LazyConv3d(Layer):
    def __init__(self, out_channels: Any, kernel_size: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: Any = 1, bias: Any = True, padding_mode: Any = 'zeros', device: Any = None, dtype: Any = None) -> None:
        """`Conv3d` whose `in_channels` the first input tells."""
        # by hand

class LazyConvTranspose1d(Layer):
    def __init__(self, out_channels: Any, kernel_size: Any, stride: Any = 1, padding: Any = 0, output_padding: Any = 0, groups: Any = 1, bias: Any = True, dilation: Any = 1, padding_mode: Any = 'zeros', device: Any = None, dtype: Any = None) -> None:
        """`ConvTranspose1d` whose `in_channels` the first input tells."""
        # by hand

class LazyConvTranspose2d(Layer):
    def __init__(self, out_channels: Any, kernel_size: Any, stride: Any = 1, padding: Any = 0, output_padding: Any = 0, groups: Any = 1, bias: Any = True, dilation: Any = 1, padding_mode: Any = 'zeros', device: Any = None, dtype: Any = None) -> None:
        """`ConvTranspose2d` whose `in_channels` the first input tells."""
        # by hand

class LazyConvTranspose3d(Layer):
    def __init__(self, out_channels: Any, kernel_size: Any, stride: Any = 1, padding: Any = 0, output_padding: Any = 0, groups: Any = 1, bias: Any = True, dilation: Any = 1, padding_mode: Any = 'zeros', device: Any = None, dtype: Any = None) -> None:
        """`ConvTranspose3d` whose `in_channels` the first input tells."""
        # by hand

class LazyInstanceNorm1d(Layer):
    def __init__(self, eps: Any = 1e-05, momentum: Any = 0.1, affine: Any = True, track_running_stats: Any = True, device: Any = None, dtype: Any = None, *, bias: Any = True) -> None:
        """`InstanceNorm1d` whose `num_features` the first input tells."""
        # by hand

class LazyInstanceNorm2d(Layer):
    def __init__(self, eps: Any = 1e-05, momentum: Any = 0.1, affine: Any = True, track_running_stats: Any = True, device: Any = None, dtype: Any = None, *, bias: Any = True) -> None:
        """`InstanceNorm2d` whose `num_features` the first input tells."""
        # by hand

class LazyInstanceNorm3d(Layer):
    def __init__(self, eps: Any = 1e-05, momentum: Any = 0.1, affine: Any = True, track_running_stats: Any = True, device: Any = None, dtype: Any = None, *, bias: Any = True) -> None:
        """`InstanceNorm3d` whose `num_features` the first input tells."""
        # by hand

class LazyLinear(Layer):
    def __init__(self, out_features: Any, bias: Any = True, device: Any = None, dtype: Any = None) -> None:
        """`Linear` whose `in_features` the first input tells."""
        # by hand

# to here.
