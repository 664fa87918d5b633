"""Gradients and values of several parameters at once, under the names of `torch.nn.utils`."""

from .. import _core
from .._core import Tensor


def clip_grad_norm_(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """Scales `.grad` of parameters so that all together have at most the norm `max_norm`; gives the norm they had, which
    is computed with the next step.
    """
    parameters = _list(parameters)
    if norm_type == 2 and parameters:
        norm = _core._clip_grads(parameters, max_norm)
    else:
        norm = get_total_norm([p.grad for p in parameters if p.grad is not None], norm_type)
        clip_grads_with_norm_(parameters, max_norm, norm)
    if norm is None:
        return _core.tensor(0.0)
    if error_if_nonfinite and not norm.isfinite().item():
        raise RuntimeError(f"the norm of the gradients is {norm.item()}: it cannot be limited")
    return norm


def get_total_norm(tensors, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """The norm of all elements of several tensors."""
    each = [x.vector_norm(norm_type) for x in _list(tensors)]
    norm = Tensor.stack(each).vector_norm(norm_type) if each else _core.tensor(0.0)
    if error_if_nonfinite and not norm.isfinite().item():
        raise RuntimeError(f"the norm is {norm.item()}")
    return norm


def clip_grads_with_norm_(parameters, max_norm, total_norm, foreach=None):
    """Scales `.grad` of parameters by `max_norm / total_norm` if that is less than 1."""
    factor = (max_norm / (total_norm + 1e-6)).clamp(max=1.0)
    for p in _list(parameters):
        if p.grad is not None:
            p.grad = p.grad * factor.cast(p.dtype)


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
