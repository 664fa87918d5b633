"""Layers of einops for zyx: the module `einops.layers.zyx`."""

from einops.layers import RearrangeMixin, ReduceMixin
from einops.layers._einmix import _EinmixMixin

from zyx import Tensor
from zyx.nn import Module, Parameter


class Rearrange(RearrangeMixin, Module):
    """`einops.rearrange` as a layer."""

    def forward(self, input):
        """The rearranged input."""
        return self._apply_recipe(input)


class Reduce(ReduceMixin, Module):
    """`einops.reduce` as a layer."""

    def forward(self, input):
        """The reduced input."""
        return self._apply_recipe(input)


class EinMix(_EinmixMixin, Module):
    """A sum of products with a weight, by patterns of einops."""

    def _create_parameters(self, weight_shape, weight_bound, bias_shape, bias_bound):
        self.weight = Parameter(Tensor.rand_range(-weight_bound, weight_bound, weight_shape))
        self.bias = None if bias_shape is None else Parameter(Tensor.rand_range(-bias_bound, bias_bound, bias_shape))

    def _create_rearrange_layers(self, pre_reshape_pattern, pre_reshape_lengths, post_reshape_pattern, post_reshape_lengths):
        self.pre_rearrange = None if pre_reshape_pattern is None else Rearrange(pre_reshape_pattern, **pre_reshape_lengths)
        self.post_rearrange = None if post_reshape_pattern is None else Rearrange(post_reshape_pattern, **post_reshape_lengths)

    def forward(self, input):
        """The product of the input and the weight, with the bias if there is one."""
        x = input if self.pre_rearrange is None else self.pre_rearrange(input)
        x = Tensor.einsum(self.einsum_pattern, x, self.weight)
        x = x if self.bias is None else x + self.bias
        return x if self.post_rearrange is None else self.post_rearrange(x)
