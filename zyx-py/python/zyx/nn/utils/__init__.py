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
