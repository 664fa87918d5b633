"""Linear algebra under the names, and with the parameters, of `torch.linalg`; results in groups are tuples with names."""

from collections import namedtuple as _namedtuple

from . import _linalg
from ._core import Tensor
from ._linalg import det, eigh, eigvalsh, inv, matrix_rank, pinv, slogdet, svdvals  # noqa: F401

_Lstsq = _namedtuple("lstsq", ["solution"])


def cholesky(x, *, upper=False):
    """The triangular `L` with `x = L @ L.T`, or its transpose; NaN where a matrix is not positive definite."""
    return _linalg.cholesky(x, upper=upper)


def cross(x, y, *, dim=-1):
    """The product of vectors of three that is orthogonal to both."""
    return x.cross(y, dim)


def qr(x, mode="reduced"):
    """Orthogonal columns and a triangle whose product is `x`; with `mode="r"` the triangle alone matters, with
    `"complete"` the columns are a whole basis.
    """
    return _linalg.qr(x, mode="reduced" if mode == "r" else mode)


def svd(x, full_matrices=True):
    """Singular values and vectors; whole bases of them with `full_matrices`."""
    return _linalg.svd(x, full_matrices=full_matrices)


def lstsq(x, b):
    """The `solution` that makes `x @ solution - b` shortest."""
    return _Lstsq(x.lstsq(b))


def solve(x, b):
    """The solution `y` of `x @ y = b`; `b` may have a vector for each matrix."""
    return x.solve(b)


def cond(x):
    """The condition number: largest singular value divided by the smallest."""
    return x.cond()


def solve_triangular(x, b, *, upper, left=True, unitriangular=False):
    """The solution of `x @ y = b`, or of `y @ x = b` unless `left`, for a triangle `x`."""
    if left:
        return b.triangular_solve(x, upper, unitriangular=unitriangular)[0]
    return b.mT.triangular_solve(x.mT, not upper, unitriangular=unitriangular)[0].mT


def matrix_power(x, n):
    """The product of `n` times the matrix, or of its inverse for a negative `n`."""
    return x.matrix_power(n)


def matrix_exp(x):
    """The exponential of square matrices."""
    return x.matrix_exp()


def multi_dot(tensors):
    """The product of matrices in the order of least work."""
    return Tensor.multi_dot(tensors)


def diagonal(x, *, offset=0, dim1=-2, dim2=-1):
    """A diagonal of two axes."""
    return x.diagonal(offset, dim1, dim2)


def vecdot(x, y, *, dim=-1):
    """Sum of products along an axis."""
    return x.vecdot(y, dim)


def vector_norm(x, ord=2, dim=None, keepdim=False):
    """The p-norm of the elements along axes."""
    return x.norm(ord, dim, keepdim)


def matrix_norm(x, ord="fro", dim=(-2, -1), keepdim=False):
    """A norm of the matrices of two axes: `"fro"`, `"nuc"`, 1, -1, 2, -2, `inf`, `-inf`."""
    axes = [axis % x.ndim for axis in dim]
    if len(set(axes)) != 2:
        raise ValueError(f"dim is two axes, not {dim}")
    found = _linalg.matrix_norm(x.movedim(axes, [-2, -1]), ord=ord)
    for axis in sorted(axes) if keepdim else ():
        found = found.unsqueeze(axis)
    return found


def norm(x, ord=None, dim=None, keepdim=False):
    """A norm of vectors if `dim` is one axis, of matrices if it is two; of all elements without both."""
    if ord is None or isinstance(dim, int):
        return vector_norm(x, 2 if ord is None else ord, dim, keepdim)
    axes = tuple(range(x.ndim)) if dim is None else tuple(dim)
    if len(axes) == 1:
        return vector_norm(x, ord, axes, keepdim)
    return matrix_norm(x, ord, axes, keepdim)
