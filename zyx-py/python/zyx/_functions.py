"""Functions that belong to no tensor."""

from ._core import Tensor, from_dlpack, tensor


def grad(loss, leaves, cotangent=None):
    """Gradients of `loss` with respect to each of `leaves`, as a list (of one tensor: the gradient).

    Leaves may be any tensors that the loss was computed from. One it does not depend on has a
    gradient of zeros. `cotangent` weighs the elements of a loss that is not one number.
    """
    single = isinstance(leaves, Tensor)
    wrt = [leaves] if single else list(leaves)
    found = loss.grad(wrt) if cotangent is None else loss.grad_with(cotangent, wrt)
    found = [x.zeros_like() if g is None else g for g, x in zip(found, wrt)]
    return found[0] if single else found


def value_and_grad(function, argnums=0):
    """A function that gives the value of `function`, one number, and its gradient with respect to
    the positional argument `argnums`, or a list of gradients for a tuple of them.
    """

    def both(*arguments, **options):
        numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)
        arguments = list(arguments)
        for i in numbers:
            # The argument as a leaf whose history is kept.
            arguments[i] = tensor(arguments[i]).tracked()
        value = function(*arguments, **options)
        found = value.gradient(*(arguments[i] for i in numbers))
        return value, found[0] if isinstance(argnums, int) else found

    return both


def vmap(function, in_axes=0, out_axis=0):
    """A function that computes `function` for many examples at once: axis `in_axes` of its arguments
    counts them (a tuple has an entry for each; `None`: the same for all), and axis `out_axis` of the
    result. `function` is called once, with tensors that have the shape of one example and no value.
    """

    def mapped(*arguments):
        axes = [in_axes] * len(arguments) if isinstance(in_axes, int) else list(in_axes)
        return Tensor.vmap(function, [x if isinstance(x, Tensor) else tensor(x) for x in arguments], axes, out_axis)

    return mapped


class no_grad:
    """For code that is written for PyTorch: there is nothing to switch off, as gradients are computed
    only where they are asked for. `Tensor.detach` cuts a history.
    """

    def __enter__(self):
        return self

    def __exit__(self, *problem):
        return False

    def __call__(self, function):
        return function


def from_numpy(array, device=None):
    """A tensor of a NumPy array, sharing its memory where that is possible. Writing to the array then
    changes the tensor; `zyx.tensor` copies.
    """
    try:
        return from_dlpack(array, device=device)
    except (BufferError, TypeError, ValueError, RuntimeError):
        return tensor(array, device=device)


def where(condition, x, y):
    """`x` where `condition` holds, elsewhere `y`; all three broadcast."""
    if not isinstance(condition, Tensor):
        condition = tensor(condition)
    return condition.where_(x, y)
