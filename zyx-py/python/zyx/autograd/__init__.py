"""Gradients under the names of `torch.autograd`."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from . import functional as functional
    from .function import Function as Function

from .. import _aliases
from .._core import Tensor, _set_hook_history
from .._grad_mode import enable_grad, no_grad, set_grad_enabled  # noqa: F401


def grad(outputs, inputs, grad_outputs=None, retain_graph=None, create_graph=False, only_inputs=True, allow_unused=None,
         is_grads_batched=False, materialize_grads=False):  # fmt: skip
    """Gradients of one or several outputs with respect to inputs, as a tuple. One that no output depends on is an
    error, or with `allow_unused=True` `None`, or with `materialize_grads=True` zeros. `.grad` stays as it is.
    """
    if not only_inputs or is_grads_batched:
        raise NotImplementedError("grad: only_inputs=False, is_grads_batched=True; zyx.vmap of a function that calls grad")
    outputs, inputs = _list(outputs), _list(inputs)
    weights = [None] * len(outputs) if grad_outputs is None else _list(grad_outputs)
    total = [None] * len(inputs)
    mode = _set_hook_history(bool(create_graph))
    try:
        for output, weight in zip(outputs, weights):
            if weight is None and output.numel() != 1:
                raise RuntimeError(f"grad: an output of shape {tuple(output.shape)} is not one number; pass grad_outputs")
            found = output._grad(inputs) if weight is None else output.grad_with(weight, inputs)
            total = [b if a is None else a if b is None else a + b for a, b in zip(total, found)]
    finally:
        _set_hook_history(mode)
    if materialize_grads:
        total = [x.zeros_like() if dx is None else dx for dx, x in zip(total, inputs)]
    elif not allow_unused and any(dx is None for dx in total):
        i = next(i for i, dx in enumerate(total) if dx is None)
        raise RuntimeError(f"grad: no output depends on input {i}; allow_unused=True gives None for it")
    return tuple(dx if dx is None or create_graph else dx.detach() for dx in total)


def backward(tensors, grad_tensors=None, retain_graph=None, create_graph=False, inputs=None):
    """`x.backward()` of each of several tensors."""
    tensors = _list(tensors)
    weights = [None] * len(tensors) if grad_tensors is None else _list(grad_tensors)
    for i, (x, weight) in enumerate(zip(tensors, weights)):
        x.backward(weight, retain_graph or i + 1 < len(tensors), create_graph, inputs)


def _list(given):
    return [given] if isinstance(given, Tensor) else list(given)


def Variable(data, requires_grad=False):
    """The tensor itself, with `requires_grad` as said: PyTorch's old word for a tensor with history."""
    return data.requires_grad_() if requires_grad else data


def gradcheck(func, inputs, *, eps=1e-6, atol=1e-5, rtol=1e-3, raise_exception=True, **options):
    """Whether the gradients of a function are its difference quotients, at inputs of `float64`."""
    inputs = _list(inputs)
    try:
        Tensor.gradcheck(lambda *x: func(*(x[0] if len(x) == 1 and isinstance(x[0], (list, tuple)) else x)), inputs, max(rtol, atol))
    except (ValueError, RuntimeError) as error:
        if raise_exception:
            raise RuntimeError(f"gradcheck: {error}") from None
        return False
    return True


class set_detect_anomaly:
    """Checked mode of the default device, from here on or for a block: results that are not finite are errors that name the
    operation.
    """

    def __init__(self, mode, check_nan=True):
        from .. import _core

        self._device = _core.device()
        self._before = self._device.is_checked()
        self._device.set_checked(bool(mode))

    def __enter__(self):
        return self

    def __exit__(self, *problem):
        self._device.set_checked(self._before)


class detect_anomaly(set_detect_anomaly):
    """A block in checked mode of the default device."""

    def __init__(self, check_nan=True):
        super().__init__(True, check_nan)


_missing = _aliases.ways(__name__, {})


def __getattr__(name):
    if name not in ("functional", "function", "Function"):
        return _missing(name)
    import importlib

    if name == "Function":
        found = globals()[name] = importlib.import_module(".function", __name__).Function
        return found
    return importlib.import_module("." + name, __name__)
