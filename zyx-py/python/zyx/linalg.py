"""Linear algebra under the names, and with the parameters, of `torch.linalg`; results in groups are tuples with names."""

from collections import namedtuple as _namedtuple

from . import _linalg, _names
from ._core import Tensor
from ._steps import in_steps as _in_steps

_Lstsq = _namedtuple("lstsq", ["solution"])
_LuFactor = _namedtuple("lu_factor", ["LU", "pivots"])
_Lu = _namedtuple("lu", ["P", "L", "U"])


def _symmetric(A, UPLO):
    """The symmetric matrix that a triangle says."""
    if UPLO not in ("L", "U"):
        raise ValueError(f"UPLO is 'L' or 'U', not {UPLO!r}")
    return A.tril() + A.tril(-1).mT if UPLO == "L" else A.triu() + A.triu(1).mT


def eigh(A, UPLO="L"):
    """Eigenvalues in ascending order, and eigenvectors, of symmetric matrices of which one triangle is given."""
    return _linalg.eigh(_symmetric(A, UPLO))


def eigvalsh(A, UPLO="L"):
    """Eigenvalues in ascending order of symmetric matrices of which one triangle is given."""
    return _linalg.eigvalsh(_symmetric(A, UPLO))


def det(A):
    """Determinant."""
    return A.det()


def slogdet(A):
    """Sign and logarithm of the determinant."""
    return _linalg.slogdet(A)


def inv(A):
    """Inverse."""
    return A.inv()


def svdvals(A, *, driver=None):
    """Singular values. `driver` changes nothing."""
    return _linalg.svdvals(A)


def _bound(A, atol, rtol):
    """`rtol` for a bound on singular values that is the larger of `atol` and `rtol` times the largest."""
    if atol is None:
        return rtol
    largest = _linalg.svdvals(A)[..., 0]
    rest = rtol if rtol is not None else 0.0
    return (atol / largest).maximum(rest)


def matrix_rank(A, *, atol=None, rtol=None, hermitian=False):
    """How many singular values are larger than `atol`, and than `rtol` times the largest."""
    return _linalg.matrix_rank(_symmetric(A, "L") if hermitian else A, rtol=_bound(A, atol, rtol))


def pinv(A, *, atol=None, rtol=None, hermitian=False):
    """The pseudoinverse; singular values of at most `atol`, or `rtol` times the largest, count as 0."""
    return _linalg.pinv(_symmetric(A, "L") if hermitian else A, rtol=_bound(A, atol, rtol))


def cholesky(A, *, upper=False):
    """The triangular `L` with `A = L @ L.T`, or its transpose; NaN where a matrix is not positive definite."""
    return _linalg.cholesky(A, upper=upper)


def cross(input, other, *, dim=-1):
    """The product of vectors of three that is orthogonal to both."""
    return input.cross(other, dim)


def qr(A, mode="reduced"):
    """Orthogonal columns and a triangle whose product is `A`; with `mode="r"` the triangle alone matters, with
    `"complete"` the columns are a whole basis.
    """
    return _linalg.qr(A, mode="reduced" if mode == "r" else mode)


def svd(A, full_matrices=True, *, driver=None):
    """Singular values and vectors; whole bases of them with `full_matrices`. `driver` changes nothing."""
    return _linalg.svd(A, full_matrices=full_matrices)


def lstsq(A, B, rcond=None, *, driver=None):
    """The `solution` that makes `A @ solution - B` shortest. `driver` changes nothing."""
    if rcond is not None:
        raise NotImplementedError("lstsq with rcond: the matrices have full rank")
    return _Lstsq(A.lstsq(B))


def solve(A, B, *, left=True):
    """The solution `y` of `A @ y = B`, or of `y @ A = B` unless `left`; `B` may have a vector for each matrix."""
    return A.solve(B) if left else A.mT.solve(B.mT).mT


def _stored(*tensors):
    """Computed now, so that a long loop has short plans; not within traced functions."""
    try:
        Tensor.realize_all(tensors)
    except ValueError as error:
        if "traced" not in str(error):
            raise


def _eliminated(A, pivot):
    """Both triangles in one matrix, and the row that each step exchanges with its own."""
    m, n = A.shape[-2:]
    row = Tensor.arange(m, device=A.device)
    column, places = Tensor.arange(n, device=A.device), []
    for j in range(min(m, n)):
        if pivot:
            size = (row >= j).where_(A[..., j].abs(), -1.0)
            place = size.argmax(-1).unsqueeze(-1)
            order = (row == j).where_(place, (row == place).where_(j, row))
            A = A.take_along_dim(order.unsqueeze(-1), -2)
        else:
            place = row[j : j + 1].expand((*A.shape[:-2], 1))
        places.append(place)
        top = A[..., j, :].unsqueeze(-2)
        divisor = top[..., j : j + 1]
        share = (A[..., j : j + 1] / (divisor == 0).where_(1.0, divisor)) * (row > j).unsqueeze(-1)
        kept = (column == j) & (row > j).unsqueeze(-1)
        A = kept.where_(share, A - share * top * (column > j))
        _stored(A, place)
    if not places:
        return A, Tensor.zeros((*A.shape[:-2], 0), dtype="int32", device=A.device)
    return A, Tensor.cat(places, -1).cast("int32") + 1


def _triangles(LU):
    """The lower triangle, with ones on its diagonal, and the upper one."""
    m, n = LU.shape[-2:]
    k = min(m, n)
    L = LU[..., :k].tril(-1) + Tensor.eye(m, dtype=LU.dtype, device=LU.device)[:, :k]
    return L, LU[..., :k, :].triu()


def _order(pivots, m):
    """The rows of the matrix in the order of the triangles' rows."""
    row = Tensor.arange(m, device=pivots.device)
    order = row.expand((*pivots.shape[:-1], m))
    for j in range(pivots.shape[-1]):
        place = pivots[..., j : j + 1].long() - 1
        step = (row == j).where_(place, (row == place).where_(j, row)).expand(order.shape)
        order = order.take_along_dim(step, -1)
        _stored(order)
    return order


def lu_factor(A, *, pivot=True):
    """Triangles whose product is `A` with its rows in another order, in one matrix; `pivots` are the rows, from 1, that the
    steps exchanged. Square matrices have gradients.
    """
    if A.ndim < 2:
        raise RuntimeError(f"lu_factor: a matrix is needed, not the shape {tuple(A.shape)}")
    LU, pivots = _eliminated(A.detach(), pivot)
    if not A.requires_grad:
        return _LuFactor(LU, pivots)
    m, n = A.shape[-2:]
    if m != n:
        raise NotImplementedError("lu_factor: gradients of matrices that are not square")
    order = _order(pivots, m)

    def rule(inputs, output, cotangent):
        L, U = _triangles(output)
        inner = (L.mT @ cotangent.tril(-1)).tril(-1) + (cotangent.triu() @ U.mT).triu()
        inner = solve_triangular(U.mT, solve_triangular(L.mT, inner, upper=True, unitriangular=True), upper=False, left=False)
        return [inner.take_along_dim(order.argsort(-1).unsqueeze(-1), -2)]

    return _LuFactor(LU.with_gradient([A], rule), pivots)


def lu(A, *, pivot=True):
    """A permutation, a lower triangle with ones on its diagonal, and an upper one, whose product is `A`."""
    LU, pivots = lu_factor(A, pivot=pivot)
    L, U = _triangles(LU)
    m = A.shape[-2]
    P = _order(pivots, m).one_hot(m).cast(A.dtype).mT
    return _Lu(P, L, U)


def lu_solve(LU, pivots, B, *, left=True, adjoint=False):
    """The solution `y` of `A @ y = B`, or of `y @ A = B` unless `left`, for the result of `lu_factor(A)`; of the transposed
    matrix with `adjoint`.
    """
    if LU.ndim < 2 or LU.shape[-1] != LU.shape[-2]:
        raise RuntimeError(f"lu_solve: a square matrix is needed, not the shape {tuple(LU.shape)}")
    if not left:
        return lu_solve(LU, pivots, B.mT, adjoint=not adjoint).mT
    order = _order(pivots, LU.shape[-1])
    lower, upper = LU.tril(), LU.triu()
    rows = lambda x, order: x.take_along_dim(order.unsqueeze(-1), -2)  # noqa: E731
    if adjoint:
        y = solve_triangular(lower.mT, solve_triangular(upper.mT, B, upper=False), upper=True, unitriangular=True)
        return rows(y, order.argsort(-1))
    return solve_triangular(upper, solve_triangular(lower, rows(B, order), upper=False, unitriangular=True), upper=True)


@_in_steps
def cond(A, p=None):
    """The condition number: largest singular value divided by the smallest, or the product of the norms `p` of the matrices
    and of their inverses.
    """
    if p in (None, 2):
        return A.cond()
    if p == -2:
        return 1 / A.cond()
    return matrix_norm(A, p) * matrix_norm(A.inv(), p)


def solve_triangular(A, B, *, upper, left=True, unitriangular=False):
    """The solution of `A @ y = B`, or of `y @ A = B` unless `left`, for a triangle `A`."""
    if left:
        return B.triangular_solve(A, upper, unitriangular=unitriangular)[0]
    return B.mT.triangular_solve(A.mT, not upper, unitriangular=unitriangular)[0].mT


def matrix_power(A, n):
    """The product of `n` times the matrix, or of its inverse for a negative `n`."""
    return A.matrix_power(n)


def matrix_exp(A):
    """The exponential of square matrices."""
    return A.matrix_exp()


def multi_dot(tensors):
    """The product of matrices in the order of least work."""
    return Tensor.multi_dot(tensors)


def diagonal(A, *, offset=0, dim1=-2, dim2=-1):
    """A diagonal of two axes."""
    return A.diagonal(offset, dim1, dim2)


def vecdot(x, y, *, dim=-1):
    """Sum of products along an axis."""
    return x.vecdot(y, dim)


def vector_norm(x, ord=2, dim=None, keepdim=False, *, dtype=None):
    """The p-norm of the elements along axes, computed in `dtype`."""
    return x.norm(ord, dim, keepdim, dtype=dtype)


def matrix_norm(A, ord="fro", dim=(-2, -1), keepdim=False, *, dtype=None):
    """A norm of the matrices of two axes, computed in `dtype`: `"fro"`, `"nuc"`, 1, -1, 2, -2, `inf`, `-inf`."""
    A = A if dtype is None else A.cast(dtype)
    axes = [axis % A.ndim for axis in dim]
    if len(set(axes)) != 2:
        raise ValueError(f"dim is two axes, not {dim}")
    found = _linalg.matrix_norm(A.movedim(axes, [-2, -1]), ord=ord)
    for axis in sorted(axes) if keepdim else ():
        found = found.unsqueeze(axis)
    return found


def norm(input, ord=None, dim=None, keepdim=False, *, dtype=None):
    """A norm of vectors if `dim` is one axis, of matrices if it is two; of all elements without both."""
    if ord is None or isinstance(dim, int):
        return vector_norm(input, 2 if ord is None else ord, dim, keepdim, dtype=dtype)
    axes = tuple(range(input.ndim)) if dim is None else tuple(dim)
    if len(axes) == 1:
        return vector_norm(input, ord, axes, keepdim, dtype=dtype)
    return matrix_norm(input, ord, axes, keepdim, dtype=dtype)


_names.take_out(globals())
