"""Derivatives of functions at inputs, under the names of `torch.autograd.functional`.

`inputs` is a tensor or a tuple of them, and so are results. With `strict` a result that depends on no input is an error.
"""

from .. import func as _func
from .._core import Tensor
from .._tree import map_tree


def _as_tuple(x):
    return (x, True) if not isinstance(x, Tensor) else ((x,), False)


def _done(x, create_graph):
    return x if create_graph else map_tree(lambda y: y.detach(), x)


def _given(inputs):
    given, several = _as_tuple(inputs)
    for x in given:
        if not isinstance(x, Tensor):
            raise TypeError(f"inputs are tensors, not {type(x).__name__}")
    return tuple(given), several


def _strict(func, given, strict):
    if not strict:
        return
    leaves = [x.detach().tracked() for x in given]
    outputs, _ = _as_tuple(func(*leaves))
    for i, y in enumerate(outputs):
        for j, found in enumerate(y._grad(leaves) if y.requires_grad else [None] * len(leaves)):
            if found is None:
                raise RuntimeError(f"Output {i} of the user-provided function is independent of input {j}. This is not allowed in strict mode.")


def jacobian(func, inputs, create_graph=False, strict=False, vectorize=False, strategy="reverse-mode"):
    """The Jacobian of a function; of several results and inputs a tuple for each result. All of it is one plan with
    either value of `vectorize`.
    """
    if strategy not in ("reverse-mode", "forward-mode"):
        raise ValueError(f"strategy is 'reverse-mode' or 'forward-mode', not {strategy!r}")
    given, several = _given(inputs)
    _strict(func, given, strict)
    how = _func.jacrev if strategy == "reverse-mode" else _func.jacfwd
    return _done(how(func, tuple(range(len(given))) if several else 0)(*given), create_graph)


def hessian(func, inputs, create_graph=False, strict=False, vectorize=False, outer_jacobian_strategy="reverse-mode"):
    """The second derivatives of one number."""
    given, several = _given(inputs)
    y = func(*given)
    if not isinstance(y, Tensor) or y.numel() != 1:
        raise RuntimeError("The Tensor returned by the function given to hessian should contain a single element")
    _strict(func, given, strict)
    numbers = tuple(range(len(given))) if several else 0
    return _done(_func.jacrev(_func.jacrev(lambda *x: func(*x).reshape(()), numbers), numbers)(*given), create_graph)


def vjp(func, inputs, v=None, create_graph=False, strict=False):
    """The result, and the product of a vector with the Jacobian."""
    given, several = _given(inputs)
    _strict(func, given, strict)
    output, pull = _func.vjp(func, *given)
    if v is None:
        if not isinstance(output, Tensor) or output.numel() != 1:
            raise RuntimeError("The vector v can only be None if the user-provided function returns a single Tensor with a single element.")
        v = output.ones_like()
    found = pull(v)
    return _done(output, create_graph), _done(found, create_graph)


def jvp(func, inputs, v=None, create_graph=False, strict=False):
    """The result, and the product of the Jacobian with a vector."""
    given, several = _given(inputs)
    if v is None:
        if len(given) != 1 or given[0].numel() != 1:
            raise RuntimeError("The vector v can only be None if the input to the user-provided function is a single Tensor with a single element.")
        v = given[0].ones_like()
    _strict(func, given, strict)
    output, found = _func.jvp(func, given, _as_tuple(v)[0] if isinstance(v, Tensor) else tuple(v))
    return _done(output, create_graph), _done(found, create_graph)


def _of_gradient(func, inputs, v, create_graph, strict, product):
    given, several = _given(inputs)
    if v is None:
        if len(given) != 1 or given[0].numel() != 1:
            raise RuntimeError("The vector v can only be None if the input to the user-provided function is a single Tensor with a single element.")
        v = given[0].ones_like()
    numbers = tuple(range(len(given))) if several else 0
    gradient = _func.grad(lambda *x: func(*x).reshape(()), numbers)
    found = product(gradient, given, v)
    return _done(func(*given), create_graph), _done(found, create_graph)


def vhp(func, inputs, v=None, create_graph=False, strict=False):
    """The result, and the product of a vector with the second derivatives."""
    return _of_gradient(func, inputs, v, create_graph, strict, lambda g, given, v: _func.vjp(g, *given)[1](v))


def hvp(func, inputs, v=None, create_graph=False, strict=False):
    """The result, and the product of the second derivatives with a vector: that with a vector from the left, since they are
    symmetric.
    """
    return vhp(func, inputs, v, create_graph, strict)
