"""Random calls: a result or an exception of the kinds that errors have, never a panic or a crash."""

import random

import numpy as np
import zyx

EXPECTED = (ValueError, TypeError, IndexError, RuntimeError, NotImplementedError, OverflowError, MemoryError, BufferError)
CALLS = 3000
# What would end or stall the process by its own right.
SKIP = {"with_gradient"}


# Methods that are given numbers near the ends of their types.
HUGE = {"sum", "prod", "max", "mean", "argmax", "softmax", "transpose", "unsqueeze", "squeeze", "reshape", "expand", "permute",
        "flip", "cumsum", "select_index", "slice", "stride", "split", "chunk", "repeat", "one_hot", "tril", "triu", "add", "mul",
        "pow", "clamp", "where_", "gather", "__add__", "__getitem__", "__mul__", "__pow__", "__lshift__"}  # fmt: skip


def argument(rng, x):
    """Something that a call could be given."""
    kinds = [
        lambda: rng.choice([0, 1, 2, -1, -2, 3, 7]),
        lambda: rng.choice([2**31, 2**63 - 1, -(2**63), 2**64, 2**200]),
        lambda: rng.choice([0.5, 1.0, -2.0, float("nan"), float("inf"), 1e300]),
        lambda: rng.choice([True, False, None]),
        lambda: rng.choice(["mean", "sum", "none", "float32", "int8", "a", "cpu", "", "ij,jk->ik", "constant", "reflect"]),
        lambda: [rng.randint(-2, 4) for _ in range(rng.randint(0, 4))],
        lambda: tuple(rng.randint(0, 4) for _ in range(rng.randint(0, 4))),
        lambda: [(rng.randint(0, 2), rng.randint(0, 2)) for _ in range(x.ndim)],
        lambda: tensor(rng),
        lambda: tensor(rng),
        lambda: x,
        lambda: x.cast("int64"),
        lambda: x.cast("bool"),
        lambda: [x, tensor(rng)],
        lambda: x.numpy() if x.size < 100 else None,
        lambda: rng.choice([zyx.float16, zyx.int32, np.float64, int, zyx.Rng(1), slice(1, 2), Ellipsis, object(), {}, b"ab"]),
        lambda: np.zeros((2, 0)),
    ]
    return rng.choice(kinds)()


def tensor(rng):
    """A small tensor of any dtype."""
    shape = tuple(rng.choice([0, 1, 1, 2, 2, 3]) for _ in range(rng.choice([0, 1, 1, 2, 2, 3, 4])))
    data = np.array([rng.choice([0, 1, 2, -1, 0.5]) for _ in range(int(np.prod(shape)))]).reshape(shape)
    dtype = rng.choice(["float32", "float32", "float64", "float16", "int64", "int32", "uint8", "bool"])
    x = zyx.tensor(data.astype(dtype))
    return x.tracked() if rng.random() < 0.3 and "float" in dtype else x


def call(rng, names):
    x = tensor(rng)
    name = rng.choice(names)
    positional = [argument(rng, x) for _ in range(rng.choice([0, 0, 1, 1, 2, 3]))]
    keywords = {rng.choice(["axis", "dim", "keepdim", "dtype", "eps", "other"]): argument(rng, x)} if rng.random() < 0.2 else {}
    huge = [a for a in [*positional, *keywords.values()] if isinstance(a, int) and abs(a) > 2**20]
    if huge and name not in HUGE:
        # A count that a method works off one by one takes for ever.
        return False
    what = f"{x!r}.{name}(*{positional!r}, **{keywords!r})"
    try:
        found = getattr(x, name)
        result = found(*positional, **keywords) if callable(found) else found
        for y in result if isinstance(result, (list, tuple)) else [result]:
            if isinstance(y, zyx.Tensor) and y.size < 2000:
                assert y.numpy().shape == y.shape, what
                repr(y)
    except EXPECTED as error:
        assert "internal error" not in str(error), f"{what}: {error}"
        return False
    return True


def test_random_calls():
    names = [n for n in dir(zyx.Tensor) if n not in SKIP and not (n.startswith("__") and n[2:-2] in dir(object))]
    names = [n for n in names if n not in ("__reduce__", "__class_getitem__", "__weakref__", "__getattr__")]
    rng = random.Random(0)
    done = sum(call(rng, names) for _ in range(CALLS))
    assert done > CALLS / 8, f"only {done} of {CALLS} calls gave a result"


def test_random_arguments_of_functions():
    rng = random.Random(1)
    functions = [zyx.tensor, zyx.from_dlpack, zyx.from_numpy, zyx.grad, zyx.where, zyx.Device, zyx.DType, zyx.Rng,
                 zyx.safetensors_from_bytes, zyx.nn.Parameter, *(getattr(zyx.nn, n) for n in zyx._core.LAYERS),
                 *(getattr(zyx.optim, n) for n in zyx._core.OPTIMIZERS)]  # fmt: skip
    for _ in range(1500):
        x, function = tensor(rng), rng.choice(functions)
        arguments = [argument(rng, x) for _ in range(rng.choice([0, 1, 1, 2, 3]))]
        # Layers of so many elements are refused for want of memory, slowly.
        if any(isinstance(a, int) and abs(a) > 2**20 for a in arguments):
            continue
        try:
            made = function(*arguments)
            if isinstance(made, zyx.nn.Module):
                made(x)
        except (*EXPECTED, AttributeError, OSError) as error:
            assert "internal error" not in str(error), f"{function}({arguments!r}): {error}"
