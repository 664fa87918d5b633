"""Operators, keyword arguments and reductions against NumPy."""

import operator

import numpy as np
import pytest
import zyx
from conftest import same, sample

BINARY = [operator.add, operator.sub, operator.mul, operator.truediv, operator.lt, operator.le, operator.eq,
          operator.ne, operator.gt, operator.ge]  # fmt: skip


@pytest.mark.parametrize("op", BINARY)
def test_binary_operators(rng, op):
    a, b = sample(rng, (3, 4), "float32"), sample(rng, (4,), "float32")
    x, y = zyx.tensor(a), zyx.tensor(b)
    for got, expected in [(op(x, y), op(a, b)), (op(x, 2), op(a, np.float32(2))), (op(2.5, x), op(np.float32(2.5), a)),
                          (op(x, b), op(a, b)), (op(b, x), op(b, a))]:  # fmt: skip
        same(got, expected, rtol=1e-6)



def test_second_names():
    a, b = zyx.tensor([1.0, -2.0]), zyx.tensor([3.0, 4.0])
    assert zyx.multiply(a, b).tolist() == a.multiply(b).tolist() == [3, -8]
    assert zyx.concat([a, b]).tolist() == [1, -2, 3, 4] and a.absolute().tolist() == [1, 2]
    assert a.clone().tolist() == a.tolist() and a.expand_as(zyx.ones(3, 2)).shape == (3, 2)
    assert zyx.arange(4).view_as(zyx.ones(2, 2)).shape == (2, 2)


def test_integer_operators(rng):
    a, b = sample(rng, (50,), "int32"), sample(rng, (50,), "int32")
    b[b == 0] = 1
    x, y = zyx.tensor(a), zyx.tensor(b)
    for op in [operator.floordiv, operator.mod, operator.and_, operator.or_, operator.xor]:
        same(op(x, y), op(a, b))
        same(op(x, 7), op(a, 7))
    same(x << 2, a << 2)
    same(x >> 1, a >> 1)
    same(2 ** zyx.tensor([1, 2, 3]), [2, 4, 8])
    same(~x, ~a)
    same(-x, -a)
    same(abs(x), abs(a))
    same(+x, a)
    same(x / y, (a / b).astype(np.float32), rtol=1e-6)
    for got, expected in zip(divmod(x, y), divmod(a, b)):
        same(got, expected)
    same(x**2, a**2)
    same(~zyx.tensor([True, False]), [False, True])


def test_division_rounds_as_python_does():
    a, b = np.array([7.5, -7.5, 7.5, -7.5]), np.array([2.0, 2.0, -2.0, -2.0])
    x, y = zyx.tensor(a), zyx.tensor(b)
    same(x // y, a // b)
    same(x % y, a % b)


def test_matrix_products(rng):
    for shapes in [((2, 3), (3, 4)), ((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((5, 2, 3), (3, 4)), ((5, 1, 2, 3), (4, 3, 2))]:
        a, b = (sample(rng, shape, "float64") for shape in shapes)
        same(zyx.tensor(a) @ zyx.tensor(b), a @ b, rtol=1e-12)
        same(zyx.tensor(a) @ b, a @ b, rtol=1e-12)
        same(a @ zyx.tensor(b), a @ b, rtol=1e-12)
    with pytest.raises(TypeError):
        zyx.ones(2, 2) @ 3


def test_promotion_follows_pytorch():
    x = zyx.ones(2, dtype="float16")
    assert (x + 1).dtype == (x + 1.5).dtype == (x * True).dtype == zyx.float16
    i = zyx.ones(2, dtype="uint8")
    assert (i + 1).dtype == zyx.uint8 and (i + 1.5).dtype == zyx.float32 and (i / 2).dtype == zyx.float32
    assert (i + zyx.ones(2, dtype="int8")).dtype == zyx.int16
    assert (zyx.tensor([True]) + 1).dtype == zyx.int64


def test_operators_leave_strangers_alone():
    x = zyx.ones(2)
    assert (x == None) is False and (x != None) is True and (x == "a") is False  # noqa: E711
    for f in [lambda: x + "a", lambda: x + None, lambda: x < None, lambda: x @ "a", lambda: pow(x, 2, 3)]:
        with pytest.raises(TypeError):
            f()
    assert {x: 1}[x] == 1 and 1.0 in x and 2.0 not in x


REDUCTIONS = ["sum", "prod", "max", "min", "mean", "any", "all", "var", "std"]


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(rng, name):
    a = sample(rng, (3, 4, 5), "float64")
    x = zyx.tensor(a)
    options = {"ddof": 1} if name in ("var", "std") else {}
    for axis in [None, 0, -1, (0, 2), (1,), [0, 1]]:
        np_axis = tuple(axis) if isinstance(axis, list) else axis
        for keepdim in [False, True]:
            expected = getattr(np, name)(a, axis=np_axis, keepdims=keepdim, **options)
            for spelled in [{"axis": axis, "keepdim": keepdim}, {"dim": axis, "keepdims": keepdim}]:
                got = getattr(x, name)(**spelled)
                if name in ("max", "min") and isinstance(spelled.get("dim"), int):
                    got, places = got
                    same(places, getattr(np, "arg" + name)(a, axis=axis, keepdims=keepdim))
                same(got, expected, rtol=1e-12)
    assert getattr(x, name)().shape == ()
    with pytest.raises(TypeError):
        getattr(x, name)(axis=0, dim=0)
    for axis in [3, -4, 2**70]:
        with pytest.raises(IndexError):
            getattr(x, name)(axis)
    with pytest.raises(ValueError):
        getattr(x, name)((0, 0))
    with pytest.raises(TypeError):
        getattr(x, name)(axis=0.5)


def test_arguments_of_reductions(rng):
    a = sample(rng, (3, 4), "float32")
    x = zyx.tensor(a)
    same(x.argmax(), a.argmax())
    same(x.argmax(1), a.argmax(1))
    same(x.argmin(dim=0, keepdim=True), a.argmin(0, keepdims=True))
    same(x.var(correction=0), a.var(), rtol=1e-5)
    same(x.cumsum(1), a.cumsum(1), rtol=1e-5)
    same(x.softmax(-1), np.exp(a) / np.exp(a).sum(-1, keepdims=True), rtol=1e-5)


def test_movement(rng):
    a = sample(rng, (2, 3, 4), "int64")
    x = zyx.tensor(a)
    for shape in [(6, 4), (-1,), (2, -1), (4, 3, 2), (2, 3, 4, 1)]:
        same(x.reshape(shape), a.reshape(shape))
        same(x.reshape(*shape), a.reshape(shape))
    same(x.permute(2, 0, 1), a.transpose(2, 0, 1))
    same(x.permute((2, 0, 1)), a.transpose(2, 0, 1))
    same(x.transpose(0, 1), a.swapaxes(0, 1))
    same(x.flip(0), a[::-1])
    same(x.flip(axis=(0, 2)), a[::-1, :, ::-1])
    same(x.unsqueeze(1), a[:, None])
    same(x.expand(5, -1, -1, -1), np.broadcast_to(a, (5, 2, 3, 4)))
    same(zyx.cat([x, x], dim=1), np.concatenate([a, a], 1))
    same(zyx.stack([x, x]), np.stack([a, a]))
    same(x.pad([(0, 1), (1, 0), (0, 0)]), np.pad(a, [(0, 1), (1, 0), (0, 0)]))
    for got, expected in zip(x.split(2, axis=2), np.split(a, 2, 2)):
        same(got, expected)
    same(zyx.where(x > 0, x, 0), np.where(a > 0, a, 0))
    same(x.clamp(min=0), a.clip(0))
    same(x.clamp(-5, 5), a.clip(-5, 5))
    same(x.cast("float16"), a.astype(np.float16))
    for bad in [(5,), (-1, -1), (-2,), (7, -1), (0, -1)]:
        with pytest.raises(ValueError):
            x.reshape(bad)
    with pytest.raises(RuntimeError):
        x.reshape(5)


def test_functions_of_the_module_are_methods():
    x = zyx.tensor([0.0, 1.0])
    assert zyx.exp(x).tolist() == x.exp().tolist()
    assert zyx.sum(x, dim=0).item() == 1
    assert "exp" in dir(zyx) and "nn" in dir(zyx)
    with pytest.raises(AttributeError):
        zyx.no_such_function
    assert zyx.nn.functional.relu(zyx.tensor([-1.0])).item() == 0
