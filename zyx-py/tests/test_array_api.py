"""The array API namespace: every name of the standard, results as NumPy's, which follows it too."""

import numpy as np
import pytest
import zyx
import zyx.array_api as xp
from conftest import same, sample

NAMES = """
e inf nan newaxis pi __array_api_version__ __array_namespace_info__
arange asarray empty empty_like eye from_dlpack full full_like linspace meshgrid ones ones_like tril triu zeros zeros_like
astype broadcast_arrays broadcast_to can_cast finfo iinfo isdtype result_type
bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64
abs acos acosh add asin asinh atan atan2 atanh bitwise_and bitwise_left_shift bitwise_invert bitwise_or bitwise_right_shift
bitwise_xor ceil clip conj copysign cos cosh divide equal exp expm1 floor floor_divide greater greater_equal hypot isfinite
isinf isnan less less_equal log log1p log2 log10 logaddexp logical_and logical_not logical_or logical_xor maximum minimum
multiply negative not_equal positive pow remainder round sign signbit sin sinh square sqrt subtract tan tanh trunc
take matmul matrix_transpose tensordot vecdot
concat expand_dims flip moveaxis permute_dims repeat reshape roll squeeze stack tile unstack
argmax argmin nonzero searchsorted where unique_all unique_counts unique_inverse unique_values argsort sort
cumulative_sum max mean min prod std sum var all any
""".split()


def test_every_name_is_there():
    assert not [name for name in NAMES if not hasattr(xp, name)]
    x = zyx.ones(2)
    assert x.__array_namespace__() is xp and x.__array_namespace__(api_version="2023.12") is xp
    with pytest.raises(ValueError):
        x.__array_namespace__(api_version="1999.01")
    info = xp.__array_namespace_info__()
    assert info.default_dtypes()["indexing"] == xp.int64 and "float32" in info.dtypes(kind="real floating")


UNARY = "abs acos acosh asin asinh atan atanh ceil cos cosh exp expm1 floor isfinite isinf isnan log log1p log2 log10 negative positive round sign signbit sin sinh square sqrt tan tanh trunc".split()  # noqa: E501
BINARY = "add atan2 copysign divide equal floor_divide greater greater_equal hypot less less_equal logaddexp maximum minimum multiply not_equal pow remainder subtract".split()  # noqa: E501
INTEGERS = "add equal floor_divide greater less maximum minimum multiply not_equal remainder subtract bitwise_and bitwise_or bitwise_xor".split()  # noqa: E501


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_elementwise_functions(rng, dtype):
    a, b = np.abs(sample(rng, (3, 4), dtype)) + 0.1, sample(rng, (4,), dtype)
    rtol = 1e-5 if dtype == "float32" else 1e-12
    for name in UNARY:
        for x in [a, -a, a * 0.5 + 1]:
            same(getattr(xp, name)(xp.asarray(x)), getattr(np, name)(x), rtol=rtol, atol=rtol)
    for name in BINARY:
        same(getattr(xp, name)(xp.asarray(a), xp.asarray(b)), getattr(np, name)(a, b), rtol=rtol, atol=rtol)
        got = getattr(xp, name)(xp.asarray(a), 2.0)
        same(got, getattr(np, name)(a, np.asarray(2.0, dtype)), rtol=rtol, atol=rtol)
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e30], dtype)
    for name in ["isnan", "isinf", "isfinite", "signbit", "exp", "tanh", "sign", "abs"]:
        same(getattr(xp, name)(xp.asarray(special)), getattr(np, name)(special), rtol=rtol)


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8"])
def test_integer_functions(rng, dtype):
    a, b = sample(rng, (20,), dtype), sample(rng, (20,), dtype)
    b[b == 0] = 1
    with np.errstate(over="ignore"):
        for name in INTEGERS:
            same(getattr(xp, name)(xp.asarray(a), xp.asarray(b)), getattr(np, name)(a, b))
    for name in ["ceil", "floor", "round", "trunc", "square", "bitwise_invert", "positive"]:
        same(getattr(xp, name)(xp.asarray(a)), getattr(np, name)(a))
    for name in ["sqrt", "sin", "logical_not"]:
        with pytest.raises(TypeError):
            getattr(xp, name)(xp.asarray(a))
    small = np.minimum(np.abs(b), 3)
    same(xp.bitwise_left_shift(xp.asarray(a), xp.asarray(small)), a << small)
    same(xp.bitwise_right_shift(xp.asarray(a), xp.asarray(small)), a >> small)


def test_logic():
    a, b = np.array([True, True, False, False]), np.array([True, False, True, False])
    for name in ["logical_and", "logical_or", "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor", "equal"]:
        same(getattr(xp, name)(xp.asarray(a), xp.asarray(b)), getattr(np, name)(a, b))
    same(xp.logical_not(xp.asarray(a)), ~a)
    with pytest.raises(TypeError):
        xp.add(xp.asarray(a), xp.asarray(b))


def test_creation():
    for arguments in [(3,), (1, 9, 2), (5, 1, -2), (1.0, 2.0, 0.25)]:
        same(xp.arange(*arguments), np.arange(*arguments), dtype=False)
    for n, m, k in [(3, None, 0), (2, 4, 1), (4, 2, -1), (0, 3, 0)]:
        same(xp.eye(n, m, k=k), np.eye(n, m, k, dtype=np.float32))
    for endpoint in [True, False]:
        same(xp.linspace(0, 1, 5, endpoint=endpoint), np.linspace(0, 1, 5, endpoint=endpoint), dtype=False, rtol=1e-6)
    a, b = np.arange(3), np.arange(2)
    for indexing in ["xy", "ij"]:
        got = xp.meshgrid(xp.asarray(a), xp.asarray(b), indexing=indexing)
        for x, y in zip(got, np.meshgrid(a, b, indexing=indexing)):
            same(x, y)
    x = xp.asarray([[1, 2], [3, 4]])
    same(xp.full_like(x, 7), np.full((2, 2), 7))
    same(xp.ones_like(x, dtype=xp.float32), np.ones((2, 2), np.float32))
    same(xp.tril(x), [[1, 0], [3, 4]])
    same(xp.triu(x, k=1), [[0, 2], [0, 0]])
    assert xp.asarray(x) is x and xp.asarray(x, copy=True) is not x and xp.empty((2, 0)).shape == (2, 0)


def test_dtypes():
    assert xp.result_type(xp.int8, xp.uint8) == xp.int16 and xp.result_type(xp.float32, xp.float64) == xp.float64
    assert xp.can_cast(xp.int8, xp.int32) and not xp.can_cast(xp.int32, xp.int8) and not xp.can_cast(xp.int8, xp.float32)
    assert xp.isdtype(xp.int8, "signed integer") and xp.isdtype(xp.float32, ("integral", "real floating"))
    assert not xp.isdtype(xp.bool, "numeric") and xp.isdtype(xp.bool, xp.bool)
    for dtype in ["float32", "float64"]:
        got, expected = xp.finfo(getattr(xp, dtype)), np.finfo(dtype)
        assert (got.bits, got.eps, got.max, got.min, got.smallest_normal) == tuple(
            x.item() if hasattr(x, "item") else x
            for x in (expected.bits, expected.eps, expected.max, expected.min, expected.smallest_normal)
        )
    for dtype in ["int8", "uint64"]:
        got, expected = xp.iinfo(getattr(xp, dtype)), np.iinfo(dtype)
        assert (got.bits, got.max, got.min) == (expected.bits, expected.max, expected.min)
    same(xp.astype(xp.asarray([1.5]), xp.int32), np.array([1], np.int32))


def test_manipulation(rng):
    a = sample(rng, (2, 3, 4), "int64")
    x = xp.asarray(a)
    same(xp.concat([x, x], axis=None), np.concatenate([a, a], axis=None))
    same(xp.concat([x, x], axis=-1), np.concatenate([a, a], axis=-1))
    same(xp.expand_dims(x, axis=1), np.expand_dims(a, 1))
    same(xp.flip(x), np.flip(a))
    same(xp.flip(x, axis=(0, -1)), np.flip(a, (0, -1)))
    for source, to in [(0, -1), ((0, 1), (-1, 0)), (-1, 0)]:
        same(xp.moveaxis(x, source, to), np.moveaxis(a, source, to))
    same(xp.permute_dims(x, (2, 0, 1)), a.transpose(2, 0, 1))
    same(xp.repeat(x, 2, axis=1), np.repeat(a, 2, 1))
    same(xp.repeat(x, 3), np.repeat(a, 3))
    same(xp.repeat(x, xp.asarray([1, 0, 2]), axis=1), np.repeat(a, [1, 0, 2], 1))
    for shift, axis in [(1, None), (-2, 1), ((1, 2), (0, 2)), (7, -1)]:
        same(xp.roll(x, shift, axis=axis), np.roll(a, shift, axis))
    same(xp.squeeze(x[:1, :, :1], (0, 2)), a[0, :, 0])
    same(xp.tile(x, (2, 1, 1, 2)), np.tile(a, (2, 1, 1, 2)))
    same(xp.tile(x, (2,)), np.tile(a, (2,)))
    for got, expected in zip(xp.unstack(x, axis=1), np.unstack(a, axis=1)):
        same(got, expected)
    for got, expected in zip(xp.broadcast_arrays(x, x[0, 0]), np.broadcast_arrays(a, a[0, 0])):
        same(got, expected)
    same(xp.take(x, xp.asarray([2, 0]), axis=1), np.take(a, [2, 0], 1))
    same(xp.matrix_transpose(x), a.swapaxes(1, 2))
    with pytest.raises(ValueError):
        xp.squeeze(x, 0)


def test_products(rng):
    a, b = sample(rng, (2, 3, 4), "float64"), sample(rng, (4, 3, 5), "float64")
    x, y = xp.asarray(a), xp.asarray(b)
    same(xp.tensordot(x, y, axes=1), np.tensordot(a, b, 1), rtol=1e-12)
    same(xp.tensordot(x, y, axes=([1, 2], [1, 0])), np.tensordot(a, b, ([1, 2], [1, 0])), rtol=1e-12)
    same(xp.tensordot(x, y, axes=0), np.tensordot(a, b, 0), rtol=1e-12)
    same(xp.vecdot(x, x), (a * a).sum(-1), rtol=1e-12)
    same(xp.matmul(x, xp.permute_dims(x, (0, 2, 1))), a @ a.transpose(0, 2, 1), rtol=1e-12)


def test_searching_sorting_and_sets(rng):
    a = rng.integers(0, 6, (4, 7))
    x = xp.asarray(a)
    for axis in [0, -1]:
        for descending in [False, True]:
            key = -a if descending else a
            expected = np.argsort(key, axis=axis, stable=True)
            same(xp.argsort(x, axis=axis, descending=descending), expected)
            same(xp.sort(x, axis=axis, descending=descending), np.take_along_axis(a, expected, axis))
    for got, expected in zip(xp.nonzero(x), np.nonzero(a)):
        same(got, expected)
    same(xp.argmax(x, axis=1, keepdims=True), a.argmax(1, keepdims=True))
    same(xp.where(x > 2, x, xp.zeros_like(x)), np.where(a > 2, a, 0))
    values, counts = np.unique(a, return_counts=True)
    found = xp.unique_all(x)
    same(found.values, values)
    same(found.counts, counts)
    same(found.values[found.inverse_indices], a)
    same(xp.reshape(x, (-1,))[found.indices], values)
    same(xp.unique_values(xp.asarray([], dtype=xp.int32)), np.array([], np.int32))
    assert xp.unique_values(xp.asarray([np.nan, 1.0, np.nan])).size == 3
    ordered, wanted = np.array([1.0, 2.0, 2.0, 5.0]), np.array([0.0, 2.0, 9.0])
    for side in ["left", "right"]:
        same(xp.searchsorted(xp.asarray(ordered), xp.asarray(wanted), side=side), np.searchsorted(ordered, wanted, side))


def test_statistics(rng):
    a = sample(rng, (3, 4, 5), "float64")
    x = xp.asarray(a)
    for axis in [None, 1, (0, 2)]:
        for name in ["sum", "prod", "max", "min", "mean", "all", "any", "std", "var"]:
            got = getattr(xp, name)(x, axis=axis, keepdims=True)
            same(got, getattr(np, name)(a, axis=axis, keepdims=True), rtol=1e-12)
    same(xp.var(x, correction=1.5), a.var(ddof=1.5), rtol=1e-12)
    for dtype in ["int8", "uint8", "int32"]:
        b = sample(rng, (6,), dtype)
        for name in ["sum", "prod"]:
            same(getattr(xp, name)(xp.asarray(b)), getattr(np, name)(b))
    same(xp.sum(xp.asarray([1, 2], dtype=xp.int8), dtype=xp.float32), np.float32(3))
    same(xp.cumulative_sum(x, axis=1), a.cumsum(1), rtol=1e-12)
    same(xp.cumulative_sum(xp.asarray([1, 2, 3]), include_initial=True), [0, 1, 3, 6])
    same(xp.clip(x, -0.5, 0.5), a.clip(-0.5, 0.5))
    same(xp.sum(xp.zeros((0, 3)), axis=0), np.zeros(3, np.float32))
    for name in ["max", "min"]:
        with pytest.raises(ValueError):
            getattr(xp, name)(xp.zeros((0,)))


def test_linear_algebra(rng):
    a = sample(rng, (2, 4, 3), "float64")
    x = xp.asarray(a)
    for order in ["fro", 1, -1, np.inf, -np.inf]:
        same(xp.linalg.matrix_norm(x, ord=order, keepdims=True), np.linalg.matrix_norm(a, ord=order, keepdims=True), rtol=1e-12)
    for order in [0, 1, 2, 3.5, np.inf, -np.inf]:
        for axis in [None, 1, (0, 2)]:
            got = xp.linalg.vector_norm(x, ord=order, axis=axis)
            same(got, np.linalg.vector_norm(a, ord=order, axis=axis), rtol=1e-12)
    same(xp.linalg.trace(x, offset=-1), np.linalg.trace(a, offset=-1), rtol=1e-12)
    same(xp.linalg.diagonal(x), np.linalg.diagonal(a))
    same(xp.linalg.outer(x[0, 0], x[1, 0]), np.linalg.outer(a[0, 0], a[1, 0]))
    same(xp.linalg.cross(x[0], x[1]), np.linalg.cross(a[0], a[1]), rtol=1e-12)
