"""Functions of functions: derivatives, examples at once, modules as functions; under the names of `torch.func`.

Arguments and results are tensors, or tuples, lists and dicts of them. All of them may be put into one another.
"""

import functools as _functools
from _thread import _local

from ._core import Tensor
from ._core import tensor as _tensor
from ._tree import flatten, map_tree, spread


class _Depth(_local):
    """How many transforms a thread is inside of. Inputs there have histories although they do not require gradients."""

    depth = 0


_inside = _Depth()


def _transform(function):
    """A function that calls another of the user's with inputs that gradients are taken of."""

    @_functools.wraps(function)
    def transform(*args, **kwargs):
        _inside.depth += 1
        try:
            return function(*args, **kwargs)
        finally:
            _inside.depth -= 1

    return transform


def _positions(argnums, arguments, name):
    numbers = [argnums] if isinstance(argnums, int) else list(argnums)
    for i in numbers:
        if not -len(arguments) <= i < len(arguments):
            raise RuntimeError(f"{name}: argnums {argnums} for {len(arguments)} positional arguments")
    return [i % len(arguments) for i in numbers]


def _leaves(arguments, numbers):
    """The arguments, those of some positions as places that gradients are taken of; and these places."""
    arguments, places, rebuilds = list(arguments), [], []
    for i in numbers:
        leaves, rebuild = flatten(arguments[i])
        leaves = [x if isinstance(x, Tensor) else _tensor(x) for x in leaves]
        # Copies: tensors that a function holds besides its arguments are constants.
        leaves = [x * 1 if x.is_floating_point() else x for x in leaves]
        arguments[i] = rebuild(leaves)
        places.append(leaves)
        rebuilds.append(rebuild)
    return arguments, places, rebuilds


def _told(argnums, parts):
    return parts[0] if isinstance(argnums, int) else tuple(parts)


def _gradients(output, cotangent, places):
    found = output.grad_with(cotangent, places)
    return [x.zeros_like() if g is None else g for g, x in zip(found, places)]


def grad(func, argnums=0, has_aux=False):
    """A function that gives the gradient of one number with respect to a positional argument, or to several of a tuple."""
    both = grad_and_value(func, argnums, has_aux)

    def gradient(*args, **kwargs):
        found, value = both(*args, **kwargs)
        return (found, value[1]) if has_aux else found

    return gradient


def grad_and_value(func, argnums=0, has_aux=False):
    """A function that gives a gradient, as `grad` does, and the value."""

    @_transform
    def both(*args, **kwargs):
        args, places, rebuilds = _leaves(args, _positions(argnums, args, "grad"))
        value = func(*args, **kwargs)
        aux = None
        if has_aux:
            value, aux = value
        if not isinstance(value, Tensor) or value.numel() != 1 or value.ndim:
            raise RuntimeError(f"grad: the function gives one number, not {getattr(value, 'shape', type(value).__name__)}")
        every = [x for part in places for x in part]
        found, parts, start = _gradients(value, value.ones_like(), every), [], 0
        for part, rebuild in zip(places, rebuilds):
            parts.append(rebuild(found[start : start + len(part)]))
            start += len(part)
        return _told(argnums, parts), (value, aux) if has_aux else value

    return both


@_transform
def vjp(func, *primals, has_aux=False):
    """The result of a function, and a function that gives the products of cotangents of it with the Jacobians."""
    args, places, rebuilds = _leaves(primals, range(len(primals)))
    output = func(*args)
    aux = None
    if has_aux:
        output, aux = output
    results, shape = flatten(output)
    every = [x for part in places for x in part]

    def pull(*cotangents):
        given = cotangents[0] if len(cotangents) == 1 else cotangents
        weights, _ = flatten(given)
        if len(weights) != len(results):
            raise RuntimeError(f"vjp: {len(weights)} cotangents for {len(results)} results")
        total = [x.zeros_like() for x in every]
        for y, weight in zip(results, weights):
            weight = weight if isinstance(weight, Tensor) else _tensor(weight)
            total = [a + b for a, b in zip(total, _gradients(y, weight, every))]
        parts, start = [], 0
        for part, rebuild in zip(places, rebuilds):
            parts.append(rebuild(total[start : start + len(part)]))
            start += len(part)
        return parts[0] if len(parts) == 1 else tuple(parts)

    return (output, pull, aux) if has_aux else (output, pull)


@_transform
def jvp(func, primals, tangents, *, strict=False, has_aux=False):
    """The result of a function, and its derivative in the direction of tangents."""
    if not isinstance(primals, tuple) or not isinstance(tangents, tuple):
        raise RuntimeError("jvp: primals and tangents are tuples")
    inputs, rebuild = flatten(primals)
    directions, _ = flatten(tangents)
    if len(inputs) != len(directions):
        raise RuntimeError(f"jvp: {len(directions)} tangents for {len(inputs)} inputs")
    inputs = [x if isinstance(x, Tensor) else _tensor(x) for x in inputs]
    directions = [x if isinstance(x, Tensor) else _tensor(x) for x in directions]
    known = {}

    def part(i):
        def one(*leaves):
            leaves = leaves[0] if len(leaves) == 1 and isinstance(leaves[0], (list, tuple)) else leaves
            found = func(*rebuild(list(leaves)))
            if has_aux:
                found, known["aux"] = found
            results, known["shape"] = flatten(found)
            known["n"] = len(results)
            return results[i]

        return one

    first = Tensor.jvp(part(0), inputs, directions)
    pairs = [first] + [Tensor.jvp(part(i), inputs, directions) for i in range(1, known["n"])]
    output, direction = (known["shape"]([pair[i] for pair in pairs]) for i in (0, 1))
    return (output, direction, known["aux"]) if has_aux else (output, direction)


def linearize(func, *primals):
    """The result of a function, and the function of tangents that it is nearby."""
    return func(*primals), lambda *tangents: jvp(func, primals, tangents)[1]


def _basis(x):
    """The unit directions of a tensor, `[elements, *shape]`."""
    n = x.numel()
    return Tensor.eye(n, dtype=x.dtype, device=x.device).reshape(n, *x.shape)


def jacrev(func, argnums=0, *, has_aux=False, chunk_size=None, _preallocate_and_copy=False):
    """A function that gives the Jacobian of a positional argument, `[*result, *argument]`, by cotangents of the result. All
    of them are one plan for every `chunk_size`.
    """

    @_transform
    def jacobian(*args, **kwargs):
        args, places, rebuilds = _leaves(args, _positions(argnums, args, "jacrev"))
        output = func(*args, **kwargs)
        aux = None
        if has_aux:
            output, aux = output
        results, shape = flatten(output)
        found = []
        for y in results:
            parts = []
            for part, rebuild in zip(places, rebuilds):
                rows = [_rows(y, x) for x in part]
                parts.append(rebuild(rows))
            found.append(_told(argnums, parts))
        found = shape(found)
        return (found, aux) if has_aux else found

    return jacobian


def _rows(y, x):
    if not y.numel() or not x.numel():
        return y.new_zeros((*y.shape, *x.shape))
    (row,) = _gradients(y, y.ones_like(), [x])
    if y.numel() == 1:
        return row.reshape(*y.shape, *x.shape)
    found = Tensor.vmap(lambda weight: _gradients(y, weight, [x])[0], [_basis(y)], [0], 0)
    return found.reshape(*y.shape, *x.shape)


def jacfwd(func, argnums=0, has_aux=False, *, randomness="error"):
    """A function that gives the Jacobian of a positional argument, `[*result, *argument]`, by tangents of the argument."""

    @_transform
    def jacobian(*args, **kwargs):
        numbers, parts, known = _positions(argnums, args, "jacfwd"), [], {}
        for number in numbers:
            leaves, rebuild = flatten(args[number])
            leaves = [x if isinstance(x, Tensor) else _tensor(x) for x in leaves]

            def one(k, x, i, number=number, leaves=leaves, rebuild=rebuild):
                inside = list(leaves)
                inside[k] = x
                given = list(args)
                given[number] = rebuild(inside)
                output = func(*given, **kwargs)
                if has_aux:
                    output, known["aux"] = output
                results, known["shape"] = flatten(output)
                known["n"] = len(results)
                return results[i]

            columns = []
            for k, x in enumerate(leaves):
                y = one(k, x, 0)
                of_leaf = []
                for i in range(known["n"]):
                    y = one(k, x, i)
                    f = lambda *z, k=k, i=i: one(k, z[0][0] if isinstance(z[0], (list, tuple)) else z[0], i)  # noqa: E731
                    found = Tensor.vmap(lambda t: Tensor.jvp(f, [x], [t])[1], [_basis(x)], [0], y.ndim)  # noqa: B023
                    of_leaf.append(found.reshape(*y.shape, *x.shape))
                columns.append(of_leaf)
            parts.append([rebuild([column[i] for column in columns]) for i in range(known["n"])])
        found = known["shape"]([_told(argnums, [part[i] for part in parts]) for i in range(known["n"])])
        return (found, known["aux"]) if has_aux else found

    return jacobian


def hessian(func, argnums=0):
    """A function that gives the second derivatives of one number, `[*argument, *argument]`."""
    return jacrev(jacrev(func, argnums), argnums)


def vmap(func, in_dims=0, out_dims=0, randomness="error", *, chunk_size=None):
    """A function that computes `func` for many examples at once: `in_dims` says which axis of each argument counts them, `None`
    that all have the same, and `out_dims` which axis of each result does. `func` is called once for each result, with tensors
    that have the shape of one example. Random numbers differ among examples; all examples are one plan for every
    `chunk_size`.
    """
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}")
    if randomness == "same":
        raise NotImplementedError("vmap: randomness='same'; draw the numbers outside and give them as an argument")

    def mapped(*args, **kwargs):
        if not args:
            raise ValueError("vmap: got no inputs")
        axes = spread(in_dims if isinstance(in_dims, (tuple, list)) else (in_dims,) * len(args), args, "vmap: in_dims")
        leaves, rebuild = flatten(args)
        extra, more = flatten(kwargs)
        axes += [0 if isinstance(x, Tensor) else None for x in extra]
        every = [_tensor(x) if axis is not None and hasattr(x, "__array__") and not isinstance(x, Tensor) else x for x, axis in zip(leaves + extra, axes)]
        counted = [(x, axis) for x, axis in zip(every, axes) if axis is not None]
        if not counted:
            raise ValueError("vmap: in_dims are all None; one axis counts the examples")
        wrong = [x for x, _ in counted if not isinstance(x, Tensor)]
        if wrong:
            raise ValueError(f"vmap: an argument of type {type(wrong[0]).__name__} has an axis in in_dims; only tensors have")
        # Tensors that all examples share are arguments, too: writes to them are errors that say so.
        places = [i for i, x in enumerate(every) if isinstance(x, Tensor)]
        known = {}

        def one(i):
            def call(*given):
                given = given[0] if len(given) == 1 and isinstance(given[0], (list, tuple)) else given
                inside = list(every)
                for place, x in zip(places, given):
                    inside[place] = x
                found = func(*rebuild(inside[: len(leaves)]), **(more(inside[len(leaves) :]) if extra else {}))
                results, known["shape"] = flatten(found)
                known["found"], known["n"] = found, len(results)
                if not all(isinstance(y, Tensor) for y in results):
                    raise TypeError(f"vmap: a result is {[type(y).__name__ for y in results if not isinstance(y, Tensor)][0]}; results are tensors")
                return results[i]

            return call

        inputs, in_axes = [every[i] for i in places], [axes[i] for i in places]
        versions = [x._version for x in inputs]
        first = Tensor.vmap(one(0), inputs, in_axes, 0)
        outs = spread(out_dims, known["found"], "vmap: out_dims") if isinstance(known["found"], (tuple, list, dict)) else [out_dims if isinstance(out_dims, int) else out_dims[0]]
        if known["n"] > 1 and [x._version for x in inputs] != versions:
            raise NotImplementedError("vmap: a function with several results that writes to its arguments")
        results = [first] + [Tensor.vmap(one(i), inputs, in_axes, 0) for i in range(1, known["n"])]
        return known["shape"]([y if not axis else y.movedim(0, axis) for y, axis in zip(results, outs)])

    return mapped


def functional_call(module, parameter_and_buffer_dicts, args=None, kwargs=None, *, tie_weights=True, strict=False):
    """A module's result with other parameters and buffers: a dict of them by name, or several. With `tie_weights` those that are
    one place have one value; with `strict` all have to be given.
    """
    from .nn.module import NativeLayer

    dicts = parameter_and_buffer_dicts
    given = {name: x for one in (dicts if isinstance(dicts, (tuple, list)) else [dicts]) for name, x in one.items()}
    places = {}
    for at, owner in module.named_modules():
        for name, x in [(n, x) for n, x in vars(owner).items() if isinstance(x, Tensor)]:
            places[f"{at}.{name}" if at else name] = (owner, name, x)
    unknown = [name for name in given if name not in places]
    if unknown:
        raise RuntimeError(f"functional_call: the module has no parameter or buffer {', '.join(unknown)}")
    missing = [name for name in places if name not in given]
    if strict and missing:
        raise RuntimeError(f"functional_call: missing are {', '.join(missing)}")
    values = dict(given)
    if tie_weights:
        tied = {id(places[name][2]): x for name, x in given.items()}
        values |= {name: tied[id(x)] for name, (_, _, x) in places.items() if name not in given and id(x) in tied}
    for name in values:
        if isinstance(places[name][0], NativeLayer):
            raise NotImplementedError(f"functional_call: `{name}` belongs to {type(places[name][0]).__name__}, which computes in Rust with its own parameters")
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    try:
        for name, x in values.items():
            vars(places[name][0])[places[name][1]] = x
        return module(*args, **(kwargs or {}))
    finally:
        for name in values:
            owner, key, x = places[name]
            vars(owner)[key] = x


def stack_module_state(models):
    """The parameters of modules of one kind, stacked by name, and their buffers: for `vmap` of `functional_call`."""
    models = list(models)
    if not models:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if len({type(m) for m in models}) > 1:
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")

    def stacked(named):
        each = [dict(getattr(m, named)()) for m in models]
        return {name: Tensor.stack([values[name].detach() for values in each], 0).requires_grad_(named == "named_parameters") for name in each[0]}

    return stacked("named_parameters"), stacked("named_buffers")


def functionalize(func, *, remove="mutations"):
    """The function itself: tensors are functional here."""
    return func


__all__ = ["grad", "grad_and_value", "vjp", "jvp", "linearize", "jacrev", "jacfwd", "hessian", "vmap", "functional_call", "stack_module_state",
           "functionalize"]  # fmt: skip
