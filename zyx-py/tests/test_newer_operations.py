"""Splits, windows, transforms and samples beside NumPy's, or computed by hand."""

import itertools
import math

import numpy as np
import pytest
import zyx
from conftest import DTYPES, sample
from zyx.nn import functional as F


def same(x, want, tolerance=1e-6):
    np.testing.assert_allclose(x.numpy(), want, rtol=tolerance, atol=tolerance)


def test_logdet():
    x = np.random.default_rng(0).normal(size=(4, 3, 3))
    x[0], x[1], x[2], x[3] = np.eye(3) * 2, -np.eye(3), np.zeros((3, 3)), x[3] @ x[3].T
    same(zyx.tensor(x).logdet(), [3 * math.log(2), math.nan, -math.inf, np.linalg.slogdet(x[3])[1]], 1e-12)
    a = zyx.tensor(x[3], requires_grad=True)
    same(a.logdet().gradient(a)[0], np.linalg.inv(x[3]).T, 1e-9)


@pytest.mark.parametrize("name", ["hsplit", "vsplit", "dsplit"])
@pytest.mark.parametrize("at", [2, [1, 3], 4])
def test_splits(name, at):
    x = np.arange(4 * 4 * 4).reshape(4, 4, 4)
    for got, want in zip(got := getattr(zyx, name)(zyx.tensor(x), at), want := getattr(np, name)(x, at)):
        same(got, want)
    assert len(got.shape) == 3 and len(getattr(zyx.tensor(x), name)(at)) == len(getattr(np, name)(x, at))
    with pytest.raises(zyx.ShapeError):
        getattr(zyx.tensor(x), name)(3)


def test_splits_of_few_axes():
    x = zyx.arange(6)
    assert [y.tolist() for y in x.hsplit(3)] == [[0, 1], [2, 3], [4, 5]]
    for name in ("vsplit", "dsplit"):
        with pytest.raises(zyx.ShapeError):
            getattr(x, name)(2)
    with pytest.raises(zyx.ShapeError):
        zyx.tensor(1.0).hsplit(1)


def test_places_in_a_shape():
    at = np.array([[0, 5, 23], [7, 12, 1]])
    for got, want in zip(zyx.unravel_index(zyx.tensor(at), (2, 3, 4)), np.unravel_index(at, (2, 3, 4)), strict=True):
        assert got.dtype == zyx.int64
        same(got, want)
    assert zyx.tensor(25).unravel_index((2, 3, 4))[0].item() == 2
    with pytest.raises(TypeError):
        zyx.tensor(1.5).unravel_index((2, 3))


def test_vdot():
    assert zyx.vdot(zyx.tensor([1.0, 2.0]), zyx.tensor([3.0, 4.0])).item() == 11.0
    with pytest.raises(zyx.ShapeError):
        zyx.ones(2, 2).vdot(zyx.ones(2, 2))


def test_sums_of_products():
    x, a, b = (np.random.default_rng(2).normal(size=n) for n in [(3, 4), 3, 4])
    same(zyx.addr(zyx.tensor(x), zyx.tensor(a), zyx.tensor(b), beta=0.5, alpha=2), 0.5 * x + 2 * np.outer(a, b), 1e-12)
    y, z = (np.random.default_rng(3).normal(size=n) for n in [(5, 3, 2), (5, 2, 4)])
    same(zyx.addbmm(zyx.tensor(x), zyx.tensor(y), zyx.tensor(z), alpha=3), x + 3 * (y @ z).sum(0), 1e-12)


def test_renorm():
    x = zyx.tensor([[3.0, 4.0], [0.3, 0.4]])
    same(zyx.renorm(x, 2, 0, 1.0), [[0.6, 0.8], [0.3, 0.4]])
    same(zyx.renorm(x, 1, -1, 3.3), [[3.0, 4.0 * 3.3 / 4.4], [0.3, 0.4 * 3.3 / 4.4]])


def test_small_names_of_pytorch():
    assert zyx.broadcast_shapes((2, 1), (3,), 1) == (2, 3) and zyx.broadcast_shapes() == ()
    with pytest.raises(zyx.ShapeError):
        zyx.broadcast_shapes((2,), (3,))
    assert sorted(zyx.randperm(5).tolist()) == [0, 1, 2, 3, 4]
    assert zyx.ger(zyx.tensor([1.0, 2.0]), zyx.tensor([3.0])).tolist() == [[3.0], [6.0]]
    # log(pi) / 2 + lgamma(2) + lgamma(1.5)
    same(zyx.mvlgamma(zyx.tensor(2.0, dtype="float64"), 2), math.log(math.pi) / 2 + math.lgamma(1.5), 1e-9)


@pytest.mark.parametrize("n", [2, 5, 16])
@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
def test_transforms_of_two_axes(n, norm):
    x = np.random.default_rng(n).normal(size=(2, 3, n))
    want = np.fft.rfft2(x, norm=norm)
    y = zyx.tensor(x).rfft2(norm)
    same(y, np.stack([want.real, want.imag], -1), 1e-12)
    same(y.irfft2(n, norm), x, 1e-12)
    same(y.irfft2(norm=norm), np.fft.irfft2(want, norm=norm), 1e-12)


@pytest.mark.parametrize("n", [0, 1, 2, 7, 12])
def test_windows(n):
    same(zyx.bartlett_window(n, False, dtype="float64"), np.bartlett(n), 1e-15)
    same(zyx.bartlett_window(n, dtype="float64"), np.bartlett(n + 1)[:n] if n > 1 else np.ones(n), 1e-15)
    for beta in (0.0, 8.6, 14.0, 200.0):
        same(zyx.kaiser_window(n, False, beta, dtype="float64"), np.kaiser(n, beta), 1e-7)
        same(zyx.kaiser_window(n, True, beta), np.kaiser(n + 1, beta)[:n] if n > 1 else np.ones(n))
    assert zyx.kaiser_window(n).dtype == zyx.float32
    with pytest.raises(ValueError, match="beta"):
        zyx.kaiser_window(3, beta=701.0)


def test_samples_of_classes():
    zyx.manual_seed(4)
    p = np.array([0.1, 0.2, 0.7])
    logits = zyx.tensor(np.log(np.tile(p, (20000, 1))), requires_grad=True)
    hard = F.gumbel_softmax(logits, tau=0.5, hard=True, dim=-1)
    values = hard.numpy()
    assert set(np.unique(values)) == {0.0, 1.0} and (values.sum(1) == 1).all()
    # Standard deviations of 0.0035.
    np.testing.assert_allclose(values.mean(0), p, atol=0.02)
    soft = zyx.gumbel_softmax(logits, 0.5, False, 1)
    same(soft.sum(1), np.ones(20000))
    assert ((soft.numpy() > 0) & (soft.numpy() < 1)).mean() > 0.9
    # The gradient of the hard ones is that of the soft ones: it is not zero, and sums to zero over classes.
    weight = zyx.tensor([1.0, 2.0, 4.0], dtype="float64")
    gradient = (hard * weight).sum().gradient(logits)[0].numpy()
    assert np.abs(gradient).max() > 0.1 and np.abs(gradient.sum(1)).max() < 1e-9
    assert F.gumbel_softmax(zyx.zeros(3, 5), 1, True, 1e-10, 0).sum(0).tolist() == [1.0] * 5
    columns = zyx.gumbel_softmax(zyx.zeros(3, 5), 1.0, True, 0)
    assert columns.sum(0).tolist() == [1.0] * 5
    with pytest.raises(ValueError, match="temperature"):
        zyx.gumbel_softmax(logits, 0.0)


@pytest.mark.parametrize("first", DTYPES)
def test_isin_of_many_values(rng, first):
    # More than are compared one by one.
    x = sample(rng, (20, 15), first)
    for second in DTYPES:
        y = sample(rng, (90,), second)
        if y.dtype.kind == "f":
            y[:3] = 0.0, -0.0, np.nan
        one_by_one = (zyx.tensor(x).unsqueeze(-1) == zyx.tensor(y)).any(-1)
        assert np.array_equal(zyx.isin(zyx.tensor(x), zyx.tensor(y)).numpy(), one_by_one.numpy()), second
    y = rng.normal(size=90)
    traced = zyx.jit(lambda x, y: zyx.isin(x, y))
    for _ in range(2):
        x = np.where(rng.random((4, 90)) < 0.5, y, 1.0)
        assert np.array_equal(traced(zyx.tensor(x), zyx.tensor(y)).numpy(), np.isin(x, y))


def test_positions_of_triangles():
    for rows, columns, offset in itertools.product((0, 1, 2, 5), (0, 1, 3, 6), (-7, -2, -1, 0, 1, 4)):
        for made, expected in ((zyx.tril_indices, np.tril_indices), (zyx.triu_indices, np.triu_indices)):
            got = made(rows, columns, offset).numpy()
            assert got.shape[0] == 2 and np.array_equal(got, np.array(expected(rows, offset, columns))), (rows, columns, offset)
    for n, again in itertools.product((0, 1, 2, 6), (False, True)):
        of = itertools.combinations_with_replacement if again else itertools.combinations
        got = zyx.combinations(zyx.arange(n, dtype="float32"), 2, again)
        assert np.array_equal(got.numpy(), np.array(list(of(range(n), 2)), "float32").reshape(-1, 2))


@pytest.mark.parametrize("dtype", [d for d in DTYPES if "int" in d])
def test_common_divisors_of_any_size(rng, dtype):
    limits = np.iinfo(dtype)
    x = rng.integers(limits.min, limits.max, 500, dtype, endpoint=True)
    y = rng.integers(limits.min, limits.max, 500, dtype, endpoint=True) // rng.integers(1, 100, 500).astype(dtype)
    x[:4], y[:4] = (0, 0, limits.max, limits.max), (0, limits.max, 0, limits.max)
    x[4:200] = x[4:200] // 12 * 12
    y[4:200] = y[4:200] // 18 * 18
    expected = np.array([math.gcd(int(a), int(b)) for a, b in zip(x, y)], "uint64").astype(dtype)
    assert np.array_equal(zyx.gcd(zyx.tensor(x), zyx.tensor(y)).numpy(), expected)
