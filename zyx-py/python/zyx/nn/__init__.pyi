"""Modules: layers, parameters by name, saving and loading.

The classes from `Linear` on are also the table that their bindings are made from: `build/` writes a
constructor for each, which calls `Name::new` in Rust with the parameters in order and the
initialiser, or what the `# rust:` line says. `**place` is `device` and `dtype` of the parameters.
"""

from typing import Any

from .._core import Axis, DTypeLike, DeviceLike, Pair, Parameter, Shape, Size, Sizes, Tensor
from . import functional as functional
from .module import Layer as Layer
from .module import Module as Module
from .module import ModuleDict as ModuleDict
from .module import ModuleList as ModuleList
from .module import Sequential as Sequential

Param = Parameter

class Linear(Layer):
    def __init__(self, in_features: Size, out_features: Size, bias: bool = True, **place: Any) -> None:
        """`x @ weight.T + bias` over the last axis. Parameters `weight` `[out, in]` and `bias` `[out]`."""
        # rust: if bias { nn::Linear::new(in_features, out_features, init) } else { nn::Linear::without_bias(in_features, out_features, init) }

class Embedding(Layer):
    def __init__(self, num_embeddings: Size, embedding_dim: Size, **place: Any) -> None:
        """Rows of a table by number. Parameter `weight` `[num_embeddings, embedding_dim]`."""

class Conv1d(Layer):
    def __init__(
        self, in_channels: Size, out_channels: Size, kernel_size: Size, stride: Size = 1, padding: Size = 0,
        dilation: Size = 1, groups: Size = 1, bias: bool = True, **place: Any
    ) -> None:
        """1-d convolution of `[n, in, length]`."""
        # rust: nn::Conv1d::new(in_channels, out_channels, kernel_size, Conv1dOptions { stride, padding, dilation, groups }, init).map(|x| nn::Conv1d { bias: x.bias.filter(|_| bias), ..x })

class Conv2d(Layer):
    def __init__(
        self, in_channels: Size, out_channels: Size, kernel_size: Pair, stride: Pair = 1, padding: Pair = 0,
        dilation: Pair = 1, groups: Size = 1, bias: bool = True, **place: Any
    ) -> None:
        """2-d convolution of `[n, in, height, width]`."""
        # rust: nn::Conv2d::new(in_channels, out_channels, kernel_size, Conv2dOptions { stride, padding, dilation, groups }, init).map(|x| nn::Conv2d { bias: x.bias.filter(|_| bias), ..x })

class LayerNorm(Layer):
    def __init__(self, normalized_shape: Shape, eps: float = 1e-5, **place: Any) -> None:
        """Layer normalisation over the last axes. Parameters `weight` (ones) and `bias` (zeros)."""
        # rust: nn::LayerNorm::new(normalized_shape, init).map(|x| nn::LayerNorm { eps, ..x })

class RmsNorm(Layer):
    def __init__(self, normalized_shape: Shape, eps: float = 1e-6, **place: Any) -> None:
        """Root mean square normalisation over the last axes. Parameter `weight` (ones)."""
        # rust: nn::RmsNorm::new(normalized_shape, init).map(|x| nn::RmsNorm { eps, ..x })

class GroupNorm(Layer):
    def __init__(self, num_groups: Size, num_channels: Size, eps: float = 1e-5, **place: Any) -> None:
        """Group normalisation of `[n, channels, ..]`."""
        # rust: nn::GroupNorm::new(num_groups, num_channels, init).map(|x| nn::GroupNorm { eps, ..x })

class BatchNorm2d(Layer):
    def __init__(self, num_features: Size, eps: float = 1e-5, momentum: float = 0.1, **place: Any) -> None:
        """Batch normalisation of `[n, channels, ..]`, with running statistics for evaluation."""
        # rust: nn::BatchNorm2d::new(num_features, init).map(|x| nn::BatchNorm2d { eps, momentum, ..x })

class Dropout(Layer):
    def __init__(self, p: float = 0.5, **place: Any) -> None:
        """Zeros with probability `p` in training, the rest scaled up."""

class Flatten(Layer):
    def __init__(self, **place: Any) -> None:
        """All axes but the first merged."""
        # rust: Ok(nn::Flatten)

class MaxPool2d(Layer):
    def __init__(
        self, kernel_size: Pair, stride: Pair | None = None, padding: Pair = 0, dilation: Pair = 1, **place: Any
    ) -> None:
        """The largest element of each window of the last two axes."""
        # rust: Ok(nn::MaxPool2d(Pool2d { stride: stride.unwrap_or(kernel_size), padding, dilation, ..Pool2d::new(kernel_size) }))

class AvgPool2d(Layer):
    def __init__(
        self, kernel_size: Pair, stride: Pair | None = None, padding: Pair = 0, dilation: Pair = 1, **place: Any
    ) -> None:
        """The mean of each window of the last two axes."""
        # rust: Ok(nn::AvgPool2d(Pool2d { stride: stride.unwrap_or(kernel_size), padding, dilation, ..Pool2d::new(kernel_size) }))

class LeakyRelu(Layer):
    def __init__(self, slope: float = 0.01, **place: Any) -> None:
        """`x` where positive, else `slope * x`."""
        # rust: Ok(nn::LeakyRelu { slope })

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

class Softplus(Layer):
    def __init__(self, **place: Any) -> None:
        """`log(1 + e^x)`."""
        # rust: Ok(nn::Softplus)
