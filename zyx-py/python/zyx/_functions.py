"""Functions that belong to no tensor."""

from ._core import Tensor, from_dlpack, tensor
from ._grad_mode import enable_grad


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
        # Asked for within `no_grad` too, as in PyTorch.
        with enable_grad():
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


def from_numpy(array, device=None):
    """A tensor of a NumPy array, sharing its memory where that is possible. Writing to the array then
    changes the tensor; `zyx.tensor` copies.
    """
    try:
        return from_dlpack(array, device=device)
    except (BufferError, TypeError, ValueError, RuntimeError):
        return tensor(array, device=device)


def where(condition, *choices):
    """`x` where `condition` holds, elsewhere `y`; all three broadcast. Without both, the positions of the elements that
    are not zero, as one tensor for each axis.
    """
    if not isinstance(condition, Tensor):
        condition = tensor(condition)
    if not choices:
        return tuple(condition.nonzero().unbind(1))
    x, y = choices
    return condition.where_(x, y)


def pow(x, exponent):
    """`x` to the power `exponent`; either may be a number."""
    return x**exponent


def polygamma(n, x):
    """The `n`-th derivative of the digamma function."""
    return x.polygamma(n)


def _operands(tensors):
    single = len(tensors) == 1 and not isinstance(tensors[0], Tensor)
    return list(tensors[0]) if single else list(tensors)


def meshgrid(*tensors, indexing="ij"):
    """For each vector a tensor with one axis per vector that varies along that vector's own."""
    return Tensor.meshgrid(_operands(tensors), indexing)


def broadcast_tensors(*tensors):
    """All tensors in the shape that they have together."""
    return Tensor.broadcast_tensors(_operands(tensors))


def cartesian_prod(*tensors):
    """All combinations of one element of each vector, one per row, the last varying fastest."""
    return Tensor.cartesian_prod(_operands(tensors))


def block_diag(*tensors):
    """A matrix with matrices on its diagonal, and zeros elsewhere."""
    return Tensor.block_diag(_operands(tensors))


def atleast_1d(*tensors):
    """A tensor, or each of several, with at least one axis."""
    return tensors[0].atleast_1d() if len(tensors) == 1 else tuple(x.atleast_1d() for x in tensors)


def combinations(x, r=2, with_replacement=False):
    """Every choice of `r` elements of a vector, one per row, in the vector's order."""
    import itertools

    if x.ndim != 1:
        raise ValueError(f"combinations: a vector is needed (shapes {x.shape})")
    if r == 2:
        places = Tensor.triu_indices(x.shape[0], x.shape[0], 0 if with_replacement else 1, device=x.device)
        return x.index_select(0, places.mT.reshape(-1)).reshape(-1, 2)
    of = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    places = [i for chosen in of(range(x.shape[0]), r) for i in chosen]
    return x.index_select(0, tensor(places, dtype="int64", device=x.device)).reshape(-1, r)


def tensordot(x, y, dims=2):
    """Sum of products over the last `dims` axes of `x` and the first of `y`, or over two lists of axes."""
    if isinstance(dims, int):
        if not 0 <= dims <= min(x.ndim, y.ndim):
            raise ValueError(f"tensordot: {dims} axes of tensors with {x.ndim} and {y.ndim}")
        dims = (list(range(x.ndim - dims, x.ndim)), list(range(dims)))
    first, second = ([a] if isinstance(a, int) else list(a) for a in dims)
    return x.tensordot(y, first, second)


def addmv(x, matrix, vector, *, beta=1, alpha=1):
    """`beta x + alpha matrix @ vector`."""
    return x * beta + (matrix @ vector) * alpha


def addr(x, a, b, *, beta=1, alpha=1):
    """`beta x + alpha` times the outer product of two vectors."""
    return x * beta + a.outer(b) * alpha


def addbmm(x, a, b, *, beta=1, alpha=1):
    """`beta x + alpha` times the sum of the products of two batches of matrices."""
    return x * beta + a.bmm(b).sum(0) * alpha


def renorm(x, p, dim, maxnorm):
    """The slices along an axis scaled down to the p-norm `maxnorm` where theirs is larger."""
    norms = x.norm(p, [axis for axis in range(x.ndim) if axis != dim % x.ndim], keepdim=True)
    # PyTorch's guard, which makes results a little shorter than asked for.
    return x * (norms > maxnorm).where_(maxnorm / (norms + 1e-7), 1.0)


def broadcast_shapes(*shapes):
    """The shape that tensors of these shapes have together."""
    shapes = [(shape,) if isinstance(shape, int) else tuple(shape) for shape in shapes]
    return Tensor.broadcast_tensors([Tensor.zeros(shape) for shape in shapes])[0].shape if shapes else ()


def mvlgamma(x, p):
    """The logarithm of the gamma function of `p` dimensions."""
    from .special import multigammaln

    return multigammaln(x, p)


def isin(x, values):
    """Whether each element is one of `values`."""
    if not isinstance(values, Tensor):
        values = tensor(values, device=x.device)
    values = values.flatten()
    if values.shape[0] <= 32:
        return (x.unsqueeze(-1) == values).any(-1)
    # Of many, the first that is not less: a NaN is last, and equals nothing.
    table = values.sort()[0]
    if values.is_realized():
        # Else each look would finish the sort of what it looks at.
        table.realize()
    place = table.searchsorted(x).clamp(max=values.shape[0] - 1)
    return table.take(place) == x


def empty(*shape, dtype="float32", device=None, requires_grad=False):
    """Zeros: a tensor has a value."""
    return Tensor.zeros(*shape, dtype=dtype, device=device, requires_grad=requires_grad)


def empty_like(x, *, dtype=None):
    """Zeros of the shape of `x`: a tensor has a value."""
    return x.zeros_like(dtype=dtype)


def as_tensor(data, dtype=None, device=None):
    """A tensor of numbers, lists or arrays; a tensor of that dtype and device itself."""
    if isinstance(data, Tensor):
        x = data if device is None else data.to_device(device)
        return x if dtype is None else x.cast(dtype)
    return tensor(data, dtype=dtype, device=device)
