"""Sparse tensors: the same as their dense forms."""

import numpy as np
import pytest
import zyx
from zyx import sparse

AT = [[0, 1, 1, 0, 2], [2, 0, 2, 2, 1]]


def made(**options):
    return zyx.sparse_coo_tensor(AT, [3.0, 4.0, 5.0, 0.5, -1.0], (4, 3), **options)


def dense():
    found = np.zeros((4, 3), "float32")
    np.add.at(found, tuple(np.array(AT)), [3.0, 4.0, 5.0, 0.5, -1.0])
    return found


def test_forms():
    a = made()
    assert a.shape == (4, 3) and a.is_sparse and a._nnz() == 5 and not a.is_coalesced() and (a.sparse_dim(), a.dense_dim()) == (2, 0)
    np.testing.assert_array_equal(a.to_dense().numpy(), dense())
    b = a.coalesce()
    assert b.is_coalesced() and b._nnz() == 4 and b.coalesce() is b
    np.testing.assert_array_equal(b.indices().numpy(), [[0, 1, 1, 2], [2, 0, 2, 1]])
    np.testing.assert_array_equal(b.values().numpy(), [3.5, 4, 5, -1])
    np.testing.assert_array_equal(a.t().to_dense().numpy(), dense().T)
    back = zyx.tensor(dense()).to_sparse()
    np.testing.assert_array_equal(back.indices().numpy(), b.indices().numpy())
    np.testing.assert_array_equal((a + b * 2.0 - b).to_dense().numpy(), dense() * 2)
    np.testing.assert_array_equal((a * zyx.tensor(dense())).to_dense().numpy(), dense() ** 2)
    assert zyx.sparse_coo_tensor(AT, [1.0] * 5).shape == (3, 3) and not zyx.ones(2).is_sparse
    assert a.double().dtype.name == "float64" and a.sum().item() == dense().sum() and "not coalesced" in repr(a)
    wide = zyx.sparse_coo_tensor([[0, 2, 0]], zyx.tensor([[1.0, 2], [3, 4], [5, 6]]), (3, 2))
    np.testing.assert_array_equal(wide.to_dense().numpy(), [[6, 8], [0, 0], [3, 4]])
    np.testing.assert_array_equal(wide.coalesce().values().numpy(), [[6, 8], [3, 4]])
    np.testing.assert_array_equal(wide.to_dense().to_sparse(1).indices().numpy(), [[0, 2]])


def test_empty():
    a = zyx.sparse_coo_tensor(np.zeros((2, 0), "int64"), np.zeros(0, "float32"), (2, 3))
    np.testing.assert_array_equal(a.to_dense().numpy(), np.zeros((2, 3)))
    np.testing.assert_array_equal((a @ zyx.ones(3, 4)).numpy(), np.zeros((2, 4)))
    assert zyx.zeros(2, 3).to_sparse()._nnz() == 0 and a.coalesce()._nnz() == 0


@pytest.mark.parametrize("coalesced", [False, True])
def test_products_and_their_gradients(coalesced, rng):
    a, x = made(), rng.normal(size=(3, 5)).astype("float32")
    a = a.coalesce() if coalesced else a
    for found in (a @ zyx.tensor(x), sparse.mm(a, zyx.tensor(x)), zyx.spmm(a, zyx.tensor(x)), a.mm(zyx.tensor(x))):
        np.testing.assert_allclose(found.numpy(), dense() @ x, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose((a @ zyx.tensor(x[:, 0])).numpy(), dense() @ x[:, 0], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose((a @ a.t()).to_dense().numpy(), dense() @ dense().T, rtol=1e-5)
    np.testing.assert_allclose(sparse.addmm(zyx.ones(4, 5), a, zyx.tensor(x), beta=2.0, alpha=3.0).numpy(), 2 + 3 * dense() @ x, rtol=1e-5, atol=1e-5)

    values = zyx.tensor([3.0, 4.0, 5.0, 0.5, -1.0], requires_grad=True)
    w = zyx.tensor(x, requires_grad=True)
    weights = rng.normal(size=(4, 5)).astype("float32")
    product = zyx.sparse_coo_tensor(AT, values, (4, 3))
    product = product.coalesce() if coalesced else product
    ((product @ w) * zyx.tensor(weights)).sum().backward()
    np.testing.assert_allclose(w.grad.numpy(), dense().T @ weights, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(values.grad.numpy(), (weights @ x.T)[tuple(np.array(AT))], rtol=1e-5, atol=1e-5)


def test_gradients_of_sparse_leaves():
    a = made(requires_grad=True)
    (a.to_dense() ** 2).sum().backward()
    np.testing.assert_allclose(a.grad._values().numpy(), 2 * dense()[tuple(np.array(AT))])
    x = zyx.tensor(dense(), requires_grad=True)
    (x.to_sparse() @ zyx.ones(3, 1)).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), (dense() != 0).astype("float32"))


def test_softmax():
    found = sparse.softmax(made(), 1).to_dense().numpy()
    for row, all_ in zip(found, dense()):
        listed = np.exp(all_[all_ != 0])
        np.testing.assert_allclose(row[all_ != 0], listed / (listed.sum() or 1), rtol=1e-6)
        assert (row[all_ == 0] == 0).all()


def test_traced():
    a = made()
    product = zyx.jit(lambda x: a @ x)
    x = zyx.ones(3, 2)
    np.testing.assert_allclose(product(x).numpy(), dense() @ np.ones((3, 2)), rtol=1e-6)


@pytest.mark.parametrize("make, text", [
    (lambda: zyx.sparse_coo_tensor([[0, 4]], [1.0, 2.0], (4,)), "within the size"), (lambda: zyx.sparse_coo_tensor([[-1]], [1.0], (4,)), "within the size"),
    (lambda: zyx.sparse_coo_tensor([0, 1], [1.0, 2.0], (4,)), "indices are"), (lambda: zyx.sparse_coo_tensor([[0]], [1.0], (4, 4)), "a size"),
    (lambda: made().indices(), "coalesce"), (lambda: made().values(), "coalesce"), (lambda: made() @ zyx.ones(4, 2), "do not fit"),
    (lambda: made().backward(), "to_dense"), (lambda: zyx.ones(2).to_sparse(3), "sparse axes"),
])  # fmt: skip
def test_mistakes(make, text):
    with pytest.raises(RuntimeError, match=text):
        make()
    with pytest.raises(TypeError):
        made() @ 3
