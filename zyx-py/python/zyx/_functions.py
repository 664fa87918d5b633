"""Functions that belong to no tensor."""

from ._core import Device, Tensor, _default_float, from_dlpack, tensor
from ._core import device as _default_device
from ._grad_mode import enable_grad
from ._steps import in_steps as _in_steps


def grad(loss, leaves, cotangent=None):
    """Gradients of `loss` with respect to each of `leaves`, as a list (of one tensor: the gradient).

    Leaves may be any tensors that the loss was computed from. One it does not depend on has a
    gradient of zeros. `cotangent` weighs the elements of a loss that is not one number.
    """
    single = isinstance(leaves, Tensor)
    wrt = [leaves] if single else list(leaves)
    found = loss._grad(wrt) if cotangent is None else loss.grad_with(cotangent, wrt)
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


def vmap(func, in_axes=0, out_axis=0, randomness="error", *, in_dims=None, out_dims=None, chunk_size=None):
    """A function that computes `func` for many examples at once: axis `in_axes` (or `in_dims`) of its arguments counts
    them (a tuple has an entry for each; `None`: the same for all), and axis `out_axis` (or `out_dims`) of the result.
    `func` is called once for each result, with tensors that have the shape of one example and no value.
    """
    from .func import vmap as mapped

    return mapped(func, in_axes if in_dims is None else in_dims, out_axis if out_dims is None else out_dims, randomness)


def from_numpy(ndarray, device=None):
    """A tensor of a NumPy array, sharing its memory where that is possible. Writing to the array then
    changes the tensor; `zyx.tensor` copies.
    """
    try:
        return from_dlpack(ndarray, device=device)
    except (BufferError, TypeError, ValueError, RuntimeError):
        return tensor(ndarray, device=device)


def where(condition, input=None, other=None):
    """`input` where `condition` holds, elsewhere `other`; all three broadcast. Without both, the positions of the
    elements that are not zero, as one tensor for each axis.
    """
    if not isinstance(condition, Tensor):
        condition = tensor(condition)
    if input is None and other is None:
        return tuple(condition.nonzero().unbind(1))
    if input is None or other is None:
        raise TypeError("where() needs both `input` and `other`, or none")
    if isinstance(input, float) and isinstance(other, float):
        # A number of the default dtype.
        input = tensor(input, device=condition.device)
    return condition.where_(input, other)


def pow(input, exponent):
    """`input` to the power `exponent`; either may be a number."""
    return input**exponent


def polygamma(n, input):
    """The `n`-th derivative of the digamma function."""
    return input.polygamma(n)


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


def combinations(input, r=2, with_replacement=False):
    """Every choice of `r` elements of a vector, one per row, in the vector's order."""
    import itertools

    if input.ndim != 1:
        raise ValueError(f"combinations: a vector is needed (shapes {input.shape})")
    if r == 2:
        places = Tensor.triu_indices(input.shape[0], input.shape[0], 0 if with_replacement else 1, device=input.device)
        return input.index_select(0, places.mT.reshape(-1)).reshape(-1, 2)
    of = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    places = [i for chosen in of(range(input.shape[0]), r) for i in chosen]
    return input.index_select(0, tensor(places, dtype="int64", device=input.device)).reshape(-1, r)


def tensordot(a, b, dims=2):
    """Sum of products over the last `dims` axes of `a` and the first of `b`, or over two lists of axes."""
    if isinstance(dims, int):
        if not 0 <= dims <= min(a.ndim, b.ndim):
            raise ValueError(f"tensordot: {dims} axes of tensors with {a.ndim} and {b.ndim}")
        dims = (list(range(a.ndim - dims, a.ndim)), list(range(dims)))
    first, second = ([axes] if isinstance(axes, int) else list(axes) for axes in dims)
    return a.tensordot(b, first, second)


def _operands_are_tensors(name, *given):
    for x in given:
        if not isinstance(x, Tensor):
            raise TypeError(f"{name}: an operand is a {type(x).__name__}, not a Tensor")


def addmv(input, mat, vec, *, beta=1, alpha=1):
    """`beta input + alpha mat @ vec`. What has the factor 0 is not read."""
    _operands_are_tensors("addmv", input, mat, vec)
    if mat.ndim != 2 or vec.ndim != 1:
        raise ValueError(f"addmv: needs a matrix and a vector (shapes {mat.shape} and {vec.shape})")
    return input.unsqueeze(-1).addmm(mat, vec.unsqueeze(1), beta, alpha).squeeze(-1)


def addr(input, vec1, vec2, *, beta=1, alpha=1):
    """`beta input + alpha` times the outer product of two vectors. What has the factor 0 is not read."""
    _operands_are_tensors("addr", input, vec1, vec2)
    if vec1.ndim != 1 or vec2.ndim != 1:
        raise ValueError(f"addr: needs two vectors (shapes {vec1.shape} and {vec2.shape})")
    return input.addmm(vec1.unsqueeze(1), vec2.unsqueeze(0), beta, alpha)


def addbmm(input, batch1, batch2, *, beta=1, alpha=1):
    """`beta input + alpha` times the sum of the products of two batches of matrices. What has the factor 0 is not read."""
    _operands_are_tensors("addbmm", input, batch1, batch2)
    if batch1.ndim != 3 or batch2.ndim != 3 or batch1.shape[0] != batch2.shape[0]:
        raise ValueError(f"addbmm: needs two batches of matrices (shapes {batch1.shape} and {batch2.shape})")
    if batch1.shape[2] != batch2.shape[1]:
        raise ValueError(f"addbmm: inner extents differ (shapes {batch1.shape} and {batch2.shape})")
    # One product of the matrices beside each other.
    rows, columns = batch1.movedim(0, 1), batch2
    inner = batch1.shape[0] * batch1.shape[2]
    return input.addmm(rows.reshape(batch1.shape[1], inner), columns.reshape(inner, batch2.shape[2]), beta, alpha)


@_in_steps
def renorm(input, p, dim, maxnorm):
    """The slices along an axis scaled down to the p-norm `maxnorm` where theirs is larger."""
    norms = input.norm(p, [axis for axis in range(input.ndim) if axis != dim % input.ndim], keepdim=True)
    # PyTorch's guard, which makes results a little shorter than asked for.
    return input * (norms > maxnorm).where_(maxnorm / (norms + 1e-7), 1.0)


def broadcast_shapes(*shapes):
    """The shape that tensors of these shapes have together."""
    shapes = [(shape,) if isinstance(shape, int) else tuple(shape) for shape in shapes]
    return Tensor.broadcast_tensors([Tensor.zeros(shape) for shape in shapes])[0].shape if shapes else ()


@_in_steps
def mvlgamma(input, p):
    """The logarithm of the gamma function of `p` dimensions."""
    from .special import multigammaln

    return multigammaln(input, p)


def isin(elements, test_elements, *, assume_unique=False, invert=False):
    """Whether each element is one of `test_elements`, or with `invert` none of them. `assume_unique` changes nothing."""
    x, values = elements, test_elements
    if not isinstance(x, Tensor):
        x = tensor(x, device=values.device)
    if not isinstance(values, Tensor):
        values = tensor(values, device=x.device)
    values = values.flatten()
    if values.shape[0] <= 32:
        found = (x.unsqueeze(-1) == values).any(-1)
    else:
        # Of many, the first that is not less: a NaN is last, and equals nothing.
        table = values.sort()[0]
        if values.is_realized():
            # Else each look would finish the sort of what it looks at.
            table.realize()
        place = table.searchsorted(x).clamp(max=values.shape[0] - 1)
        found = table.take(place) == x
    return ~found if invert else found


def empty(*shape, size=None, dtype=None, device=None, requires_grad=False, layout=None, pin_memory=False, memory_format=None):
    """Zeros: a tensor has a value."""
    return Tensor.zeros(*shape, shape=size, dtype=dtype or _default_float(), device=device, requires_grad=requires_grad)


def empty_like(input, *, dtype=None, device=None, requires_grad=False, layout=None, pin_memory=False, memory_format=None):
    """Zeros of the shape of `input`: a tensor has a value."""
    return input.zeros_like(dtype=dtype, device=device, requires_grad=requires_grad)


def manual_seed(seed):
    """Restarts the random stream that calls without a generator draw from; gives it."""
    from ._types import default_generator

    return default_generator.manual_seed(seed)


def as_tensor(data, dtype=None, device=None):
    """A tensor of numbers, lists or arrays; a tensor of that dtype and device itself."""
    if isinstance(data, Tensor):
        x = data if device is None else data.to_device(device)
        return x if dtype is None else x.cast(dtype)
    return tensor(data, dtype=dtype, device=device)


def device(spec=None, index=None):
    """The device of a name, as in `"cpu"` or `"cuda:0"`, or the one that tensors are made on when none is named: the
    best that opens, or what the environment variable `ZYX_DEVICE` names.
    """
    if spec is None:
        return _default_device()
    return Device(spec if index is None else f"{spec}:{index}")


def compile(model=None, **options):
    """The model itself: every computation is compiled. Options are PyTorch's and change nothing."""
    return (lambda model: model) if model is None else model
