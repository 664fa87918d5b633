"""`linalg.lu_factor`, `lu`, `lu_solve`, and `interpolate(antialias=True)`."""

import numpy as np
import pytest
import zyx
import zyx.nn.functional as F

# Numbers of PyTorch 2.15: 0 to 7 in a row, resized.
RESIZED = [
    ("bilinear", 3, [1.1052632, 3.5, 5.8947372]), ("bilinear", 5, [0.4090909, 1.9259261, 3.5, 5.0740743, 6.5909095]),
    ("bilinear", 11, [0, 0.5909091, 1.3181819, 2.0454545, 2.7727275, 3.5, 4.2272730, 4.9545455, 5.6818185, 6.4090910, 7]),
    ("bicubic", 3, [0.8964651, 3.4999998, 6.1035337]), ("bicubic", 5, [0.3258863, 1.8779124, 3.5, 5.1220884, 6.6741133]),
    ("bicubic", 11, [-0.0561022, 0.5159514, 1.3181822, 2.0454545, 2.7727277, 3.5, 4.2272730, 4.9545455, 5.6818190, 6.4840484, 7.0561023]),
]  # fmt: skip


@pytest.mark.parametrize("shape", [(4, 4), (3, 5, 5), (6, 3), (3, 6), (2, 1, 1), (0, 0)])
def test_lu(shape, rng):
    a = rng.normal(size=shape)
    P, L, U = zyx.linalg.lu(zyx.tensor(a))
    np.testing.assert_allclose((P @ L @ U).numpy(), a, atol=1e-13)
    np.testing.assert_array_equal(L.tril().numpy(), L.numpy())
    np.testing.assert_array_equal(U.triu().numpy(), U.numpy())
    # The largest element of a column leads, so no factor is above 1.
    assert np.abs(L.numpy()).max(initial=0) <= 1
    LU, pivots = zyx.linalg.lu_factor(zyx.tensor(a))
    assert pivots.dtype.name == "int32" and pivots.shape == (*shape[:-2], min(shape[-2:]))


def test_pivots_and_singular():
    LU, pivots = zyx.linalg.lu_factor(zyx.tensor([[1.0, 2.0], [3.0, 4.0]]))
    np.testing.assert_allclose(LU.numpy(), [[3, 4], [1 / 3, 2 / 3]], rtol=1e-6)
    assert pivots.tolist() == [2, 2]
    assert zyx.linalg.lu_factor(zyx.tensor([[1.0, 2.0], [3.0, 4.0]]), pivot=False).pivots.tolist() == [1, 2]
    np.testing.assert_array_equal(zyx.linalg.lu_factor(zyx.zeros(2, 2)).LU.numpy(), np.zeros((2, 2)))
    with pytest.raises(RuntimeError, match="a matrix"):
        zyx.linalg.lu_factor(zyx.zeros(2))
    with pytest.raises(RuntimeError, match="square"):
        zyx.linalg.lu_solve(zyx.zeros(2, 3), zyx.ones(2).int(), zyx.zeros(2, 1))
    with pytest.raises(NotImplementedError, match="not square"):
        zyx.linalg.lu_factor(zyx.zeros(2, 3, requires_grad=True))


@pytest.mark.parametrize("adjoint", [False, True])
def test_lu_solve(adjoint, rng):
    a, b = rng.normal(size=(2, 4, 4)), rng.normal(size=(2, 4, 3))
    factors = zyx.linalg.lu_factor(zyx.tensor(a))
    used = a.swapaxes(-1, -2) if adjoint else a
    np.testing.assert_allclose(zyx.linalg.lu_solve(*factors, zyx.tensor(b), adjoint=adjoint).numpy(), np.linalg.solve(used, b), rtol=1e-9)
    right = zyx.linalg.lu_solve(*factors, zyx.tensor(b).mT, left=False, adjoint=adjoint).numpy()
    np.testing.assert_allclose(right @ used, b.swapaxes(-1, -2), rtol=1e-9, atol=1e-11)


def test_gradient_of_lu(rng):
    a, w = rng.normal(size=(4, 4)), rng.normal(size=(4, 4))
    x = zyx.tensor(a, requires_grad=True)
    (zyx.linalg.lu_factor(x).LU * zyx.tensor(w)).sum().backward()
    for i, j in np.ndindex(4, 4):
        step = np.zeros((4, 4))
        step[i, j] = 1e-6
        ends = [(zyx.linalg.lu_factor(zyx.tensor(a + s * step)).LU.numpy() * w).sum() for s in (1, -1)]
        assert abs((ends[0] - ends[1]) / 2e-6 - x.grad.numpy()[i, j]) < 1e-6 * max(1, abs(x.grad.numpy()[i, j]))


@pytest.mark.parametrize("mode, size, expected", RESIZED)
def test_antialias(mode, size, expected):
    row = zyx.arange(8.0).reshape(1, 1, 1, 8)
    np.testing.assert_allclose(F.interpolate(row, size=(1, size), mode=mode, antialias=True).numpy().ravel(), expected, atol=3e-6)
    column = F.interpolate(row.mT, size=(size, 1), mode=mode, antialias=True)
    np.testing.assert_allclose(column.numpy().ravel(), expected, atol=3e-6)


def test_antialias_options(rng):
    row = zyx.arange(8.0).reshape(1, 1, 1, 8)
    resize = lambda **options: F.interpolate(row, scale_factor=(1, 0.4), mode="bilinear", antialias=True, **options).numpy().ravel()  # noqa: E731
    np.testing.assert_allclose(resize(), [1.0, 3.24, 5.6666665], atol=3e-6)
    np.testing.assert_allclose(resize(align_corners=True), [1.5813954, 4.6875, 6.5333333], atol=3e-6)
    x = zyx.tensor(rng.normal(size=(1, 2, 6, 6)), requires_grad=True)
    # Weights of each result sum to 1, and so do gradients.
    F.interpolate(x, size=(3, 2), mode="bicubic", antialias=True).sum().backward()
    np.testing.assert_allclose(x.grad.numpy().sum(), 2 * 3 * 2, rtol=1e-9)
    with pytest.raises(ValueError, match="antialias"):
        F.interpolate(row, size=(1, 3), mode="nearest", antialias=True)
    with pytest.raises(ValueError, match="size or scale_factor"):
        F.interpolate(row, mode="bilinear", antialias=True)
