"""Gradients and values of several parameters at once, under the names of `torch.nn.utils`."""

from ... import _core
from ..._core import Parameter, Tensor


def clip_grad_norm_(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """Scales `.grad` of parameters so that all together have at most the norm `max_norm`; gives the norm they had, which
    is computed with the next step. With `error_if_nonfinite` it is computed now, and gradients stay as they are if it is
    not finite.
    """
    norm = _core._clip_grads(_list(parameters), float(max_norm), float(norm_type), error_if_nonfinite)
    return _core.tensor(0.0) if norm is None else norm


def get_total_norm(tensors, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """The norm of all elements of several tensors."""
    norm = _core._total_norm(_list(tensors), float(norm_type))
    if norm is None:
        return _core.tensor(0.0)
    if error_if_nonfinite and not norm.isfinite().item():
        raise RuntimeError(f"the norm is {norm.item()}")
    return norm


def clip_grads_with_norm_(parameters, max_norm, total_norm, foreach=None):
    """Scales `.grad` of parameters by `max_norm / total_norm` if that is less than 1."""
    _core._clip_grads_to(_list(parameters), float(max_norm), total_norm)


def clip_grad_value_(parameters, clip_value, foreach=None):
    """Limits every element of `.grad` of parameters to `-clip_value ..= clip_value`."""
    for p in _list(parameters):
        if p.grad is not None:
            p.grad = p.grad.clamp(-clip_value, clip_value)


def parameters_to_vector(parameters):
    """All elements of parameters as one vector."""
    return Tensor.cat([p.flatten() for p in parameters])


def vector_to_parameters(vec, parameters):
    """Replaces parameters by the elements of a vector, in order."""
    start = 0
    for p in parameters:
        p.set(vec[start : start + p.numel()].reshape(p.shape))
        start += p.numel()


def _list(given):
    return [given] if isinstance(given, Tensor) else list(given)


def norm_except_dim(v, pow=2, dim=0):
    """The norms of the slices along an axis, which stay axes of extent 1; of dim -1 the norm of all."""
    if dim == -1:
        return v.norm(pow)
    return v.norm(pow, [axis for axis in range(v.ndim) if axis != dim % v.ndim], keepdim=True)


def _normed(v, g, dim):
    return v * (g / norm_except_dim(v, 2, dim))


class _WeightNorm:
    """Computes a weight from its length and its direction before each call."""

    def __init__(self, name, dim):
        self.name, self.dim = name, -1 if dim is None else dim

    def weight(self, module):
        return _normed(getattr(module, self.name + "_v"), getattr(module, self.name + "_g"), self.dim)

    def __call__(self, module, inputs):
        vars(module)[self.name] = self.weight(module)


class _SpectralNorm:
    """Divides a weight by its largest singular value, which steps of the power method approach in training."""

    def __init__(self, name, steps, dim, eps):
        self.name, self.steps, self.dim, self.eps = name, steps, dim, eps

    def matrix(self, weight):
        weight = weight.transpose(0, self.dim) if self.dim else weight
        return weight.reshape(weight.shape[0], -1)

    def weight(self, module, iterate):
        weight = getattr(module, self.name + "_orig")
        u, v = (getattr(module, f"{self.name}_{which}") for which in "uv")
        return weight / _sigma(self.matrix(weight), u, v, self.steps if iterate else 0, self.eps)

    def __call__(self, module, inputs):
        vars(module)[self.name] = self.weight(module, module.training)


def _unit(x, eps):
    return x / x.norm().maximum(eps)


def _sigma(matrix, u, v, steps, eps, left_first=False):
    """The largest singular value by vectors that steps of the power method move; they are buffers."""
    if steps:
        still = matrix.detach()
        # Else calls without a step of an optimizer would be an ever longer computation.
        Tensor.realize_all([u, v])
        a, b = u.detach(), v.detach()
        for _ in range(steps):
            if left_first:
                a = _unit(still @ b, eps)
                b = _unit(still.T @ a, eps)
            else:
                b = _unit(still.T @ a, eps)
                a = _unit(still @ b, eps)
        u.set(a)
        v.set(b)
    return u.detach() @ (matrix @ v.detach())


def _hook_of(module, kind, name):
    for key, hook in vars(module).get("_hooks", {}).get("before", {}).items():
        if isinstance(hook.function, kind) and hook.function.name == name:
            return key, hook.function
    return None, None


def _taken(module, name):
    weight = getattr(module, name)
    if not isinstance(weight, Parameter):
        raise ValueError(f"{type(module).__name__} has no parameter {name!r}")
    del vars(module)[name]
    return weight


def weight_norm(module, name="weight", dim=0):
    """Gives a module a weight by length and direction: parameters `weight_g` and `weight_v` (Salimans and Kingma 2016). `dim` is
    the axis along which each slice has a separate length; `None` is one length for all.
    """
    if _hook_of(module, _WeightNorm, name)[1] is not None:
        raise RuntimeError(f"Cannot register two weight_norm hooks on the same parameter {name}")
    hook, weight = _WeightNorm(name, dim), _taken(module, name)
    module.register_parameter(name + "_g", Parameter(norm_except_dim(weight.detach(), 2, hook.dim)))
    module.register_parameter(name + "_v", Parameter(weight.detach()))
    hook(module, None)
    module.register_forward_pre_hook(hook)
    return module


def remove_weight_norm(module, name="weight"):
    """Makes the weight a parameter again."""
    key, hook = _hook_of(module, _WeightNorm, name)
    if hook is None:
        raise ValueError(f"weight_norm of '{name}' not found in {module}")
    weight = hook.weight(module).detach()
    for end in ("", "_g", "_v"):
        del vars(module)[name + end]
    module.register_parameter(name, Parameter(weight))
    del vars(module)["_hooks"]["before"][key]
    return module


def _spectral_dim(module, dim):
    if dim is not None:
        return dim
    return 1 if type(module).__name__.startswith("ConvTranspose") else 0


def spectral_norm(module, name="weight", n_power_iterations=1, eps=1e-12, dim=None):
    """Gives a module a weight whose largest singular value is 1: parameter `weight_orig`, buffers `weight_u` and `weight_v`
    (Miyato et al. 2018).
    """
    if n_power_iterations <= 0:
        raise ValueError(f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}")
    if _hook_of(module, _SpectralNorm, name)[1] is not None:
        raise RuntimeError(f"Cannot register two spectral_norm hooks on the same parameter {name}")
    hook, weight = _SpectralNorm(name, n_power_iterations, _spectral_dim(module, dim), eps), _taken(module, name)
    rows, columns = hook.matrix(weight).shape
    module.register_parameter(name + "_orig", weight)
    for which, n in (("u", rows), ("v", columns)):
        module.register_buffer(f"{name}_{which}", _unit(Tensor.randn(n, dtype=weight.dtype, device=weight.device), eps))
    vars(module)[name] = weight.detach()
    module.register_forward_pre_hook(hook)
    return module


def remove_spectral_norm(module, name="weight"):
    """Makes the weight a parameter again."""
    key, hook = _hook_of(module, _SpectralNorm, name)
    if hook is None:
        raise ValueError(f"spectral_norm of '{name}' not found in {module}")
    weight = hook.weight(module, False).detach()
    for end in ("", "_u", "_v", "_orig"):
        del vars(module)[name + end]
    module.register_parameter(name, Parameter(weight))
    del vars(module)["_hooks"]["before"][key]
    return module


def skip_init(module_cls, *args, **kwargs):
    """A module whose initial values are not used; they are drawn here all the same."""
    return module_cls(*args, **kwargs)


def fuse_conv_bn_eval(conv, bn, transpose=False):
    """One convolution in place of a convolution and a batch normalisation in evaluation."""
    if conv.training or bn.training:
        raise AssertionError("Fusion only for eval!")
    import copy

    fused = copy.deepcopy(conv)
    weight, bias = fuse_conv_bn_weights(conv.weight, conv.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias, transpose)
    fused.weight, fused.bias = weight, bias
    return fused


def fuse_conv_bn_weights(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, transpose=False):
    """Weight and bias of such a convolution."""
    scale = (bn_rv.detach() + bn_eps).rsqrt() * (1.0 if bn_w is None else bn_w.detach())
    bias = (0.0 if conv_b is None else conv_b.detach()) - bn_rm.detach()
    bias = bias * scale + (0.0 if bn_b is None else bn_b.detach())
    shape = [1] * conv_w.ndim
    shape[1 if transpose else 0] = -1
    return Parameter((conv_w.detach() * scale.reshape(shape)).cast(conv_w.dtype)), Parameter(bias.cast(conv_w.dtype))


def fuse_linear_bn_eval(linear, bn):
    """One linear layer in place of a linear layer and a batch normalisation in evaluation."""
    if linear.training or bn.training:
        raise AssertionError("Fusion only for eval!")
    import copy

    fused = copy.deepcopy(linear)
    fused.weight, fused.bias = fuse_linear_bn_weights(linear.weight, linear.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias)
    return fused


def fuse_linear_bn_weights(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b):
    """Weight and bias of such a linear layer."""
    return fuse_conv_bn_weights(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b)


def convert_conv2d_weight_memory_format(module, memory_format):
    """The module itself: how tensors are stored is no matter of their users."""
    return module


convert_conv3d_weight_memory_format = convert_conv2d_weight_memory_format
clip_grad_norm = clip_grad_norm_


def __getattr__(name):
    if name not in ("parametrize", "parametrizations", "rnn", "stateless"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return importlib.import_module("." + name, __name__)
