"""Gradients and values of several parameters at once, under the names of `torch.nn.utils`. Written by tools/python_stubs.py."""

from typing import Any, Generic, TypeVar
from ..._core import Parameter as Parameter, Tensor as Tensor

_T = TypeVar("_T")

def clip_grad_norm_(parameters: Any, max_norm: Any, norm_type: Any=2.0, error_if_nonfinite: Any=False, foreach: Any=None) -> Any:
    """Scales `.grad` of parameters so that all together have at most the norm `max_norm`; gives the norm they had, which is computed with the next step. With `error_if_nonfinite` it is computed now, and gradients stay as they are if it is not finite."""

def get_total_norm(tensors: Any, norm_type: Any=2.0, error_if_nonfinite: Any=False, foreach: Any=None) -> Any:
    """The norm of all elements of several tensors."""

def clip_grads_with_norm_(parameters: Any, max_norm: Any, total_norm: Any, foreach: Any=None) -> Any:
    """Scales `.grad` of parameters by `max_norm / total_norm` if that is less than 1."""

def clip_grad_value_(parameters: Any, clip_value: Any, foreach: Any=None) -> Any:
    """Limits every element of `.grad` of parameters to `-clip_value ..= clip_value`."""

def parameters_to_vector(parameters: Any) -> Any:
    """All elements of parameters as one vector."""

def vector_to_parameters(vec: Any, parameters: Any) -> Any:
    """Replaces parameters by the elements of a vector, in order."""

def norm_except_dim(v: Any, pow: Any=2, dim: Any=0) -> Any:
    """The norms of the slices along an axis, which stay axes of extent 1; of dim -1 the norm of all."""

def weight_norm(module: Any, name: Any='weight', dim: Any=0) -> Any:
    """Gives a module a weight by length and direction: parameters `weight_g` and `weight_v` (Salimans and Kingma 2016). `dim` is the axis along which each slice has a separate length; `None` is one length for all."""

def remove_weight_norm(module: Any, name: Any='weight') -> Any:
    """Makes the weight a parameter again."""

def spectral_norm(module: Any, name: Any='weight', n_power_iterations: Any=1, eps: Any=1e-12, dim: Any=None) -> Any:
    """Gives a module a weight whose largest singular value is 1: parameter `weight_orig`, buffers `weight_u` and `weight_v` (Miyato et al. 2018)."""

def remove_spectral_norm(module: Any, name: Any='weight') -> Any:
    """Makes the weight a parameter again."""

def skip_init(module_cls: Any, *args: Any, **kwargs: Any) -> Any:
    """A module whose initial values are not used; they are drawn here all the same."""

def fuse_conv_bn_eval(conv: Any, bn: Any, transpose: Any=False) -> Any:
    """One convolution in place of a convolution and a batch normalisation in evaluation."""

def fuse_conv_bn_weights(conv_w: Any, conv_b: Any, bn_rm: Any, bn_rv: Any, bn_eps: Any, bn_w: Any, bn_b: Any, transpose: Any=False) -> Any:
    """Weight and bias of such a convolution."""

def fuse_linear_bn_eval(linear: Any, bn: Any) -> Any:
    """One linear layer in place of a linear layer and a batch normalisation in evaluation."""

def fuse_linear_bn_weights(linear_w: Any, linear_b: Any, bn_rm: Any, bn_rv: Any, bn_eps: Any, bn_w: Any, bn_b: Any) -> Any:
    """Weight and bias of such a linear layer."""

def convert_conv2d_weight_memory_format(module: Any, memory_format: Any) -> Any:
    """The module itself: how tensors are stored is no matter of their users."""

def clip_grad_norm(*args: Any, **kwargs: Any) -> Any: ...

def convert_conv3d_weight_memory_format(*args: Any, **kwargs: Any) -> Any: ...
