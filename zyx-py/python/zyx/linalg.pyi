"""Linear algebra under the names, and with the parameters, of `torch.linalg`; results in groups are tuples with names. Written by tools/python_stubs.py."""

from typing import Any, Generic, TypeVar
from ._core import Tensor as Tensor

_T = TypeVar("_T")

def eigh(A: Any, UPLO: Any='L') -> Any:
    """Eigenvalues in ascending order, and eigenvectors, of symmetric matrices of which one triangle is given."""

def eigvalsh(A: Any, UPLO: Any='L') -> Any:
    """Eigenvalues in ascending order of symmetric matrices of which one triangle is given."""

def det(A: Any) -> Any:
    """Determinant."""

def slogdet(A: Any) -> Any:
    """Sign and logarithm of the determinant."""

def inv(A: Any) -> Any:
    """Inverse."""

def svdvals(A: Any, *, driver: Any=None) -> Any:
    """Singular values. `driver` changes nothing."""

def matrix_rank(A: Any, *, atol: Any=None, rtol: Any=None, hermitian: Any=False) -> Any:
    """How many singular values are larger than `atol`, and than `rtol` times the largest."""

def pinv(A: Any, *, atol: Any=None, rtol: Any=None, hermitian: Any=False) -> Any:
    """The pseudoinverse; singular values of at most `atol`, or `rtol` times the largest, count as 0."""

def cholesky(A: Any, *, upper: Any=False) -> Any:
    """The triangular `L` with `A = L @ L.T`, or its transpose; NaN where a matrix is not positive definite."""

def cross(input: Any, other: Any, *, dim: Any=...) -> Any:
    """The product of vectors of three that is orthogonal to both."""

def qr(A: Any, mode: Any='reduced') -> Any:
    """Orthogonal columns and a triangle whose product is `A`; with `mode="r"` the triangle alone matters, with `"complete"` the columns are a whole basis."""

def svd(A: Any, full_matrices: Any=True, *, driver: Any=None) -> Any:
    """Singular values and vectors; whole bases of them with `full_matrices`. `driver` changes nothing."""

def lstsq(A: Any, B: Any, rcond: Any=None, *, driver: Any=None) -> Any:
    """The `solution` that makes `A @ solution - B` shortest. `driver` changes nothing."""

def solve(A: Any, B: Any, *, left: Any=True) -> Any:
    """The solution `y` of `A @ y = B`, or of `y @ A = B` unless `left`; `B` may have a vector for each matrix."""

def lu_factor(A: Any, *, pivot: Any=True) -> Any:
    """Triangles whose product is `A` with its rows in another order, in one matrix; `pivots` are the rows, from 1, that the steps exchanged. Square matrices have gradients."""

def lu(A: Any, *, pivot: Any=True) -> Any:
    """A permutation, a lower triangle with ones on its diagonal, and an upper one, whose product is `A`."""

def lu_solve(LU: Any, pivots: Any, B: Any, *, left: Any=True, adjoint: Any=False) -> Any:
    """The solution `y` of `A @ y = B`, or of `y @ A = B` unless `left`, for the result of `lu_factor(A)`; of the transposed matrix with `adjoint`."""

def cond(A: Any, p: Any=None) -> Any:
    """The condition number: largest singular value divided by the smallest, or the product of the norms `p` of the matrices and of their inverses."""

def solve_triangular(A: Any, B: Any, *, upper: Any, left: Any=True, unitriangular: Any=False) -> Any:
    """The solution of `A @ y = B`, or of `y @ A = B` unless `left`, for a triangle `A`."""

def matrix_power(A: Any, n: Any) -> Any:
    """The product of `n` times the matrix, or of its inverse for a negative `n`."""

def matrix_exp(A: Any) -> Any:
    """The exponential of square matrices."""

def multi_dot(tensors: Any) -> Any:
    """The product of matrices in the order of least work."""

def diagonal(A: Any, *, offset: Any=0, dim1: Any=..., dim2: Any=...) -> Any:
    """A diagonal of two axes."""

def vecdot(x: Any, y: Any, *, dim: Any=...) -> Any:
    """Sum of products along an axis."""

def vector_norm(x: Any, ord: Any=2, dim: Any=None, keepdim: Any=False, *, dtype: Any=None) -> Any:
    """The p-norm of the elements along axes, computed in `dtype`."""

def matrix_norm(A: Any, ord: Any='fro', dim: Any=..., keepdim: Any=False, *, dtype: Any=None) -> Any:
    """A norm of the matrices of two axes, computed in `dtype`: `"fro"`, `"nuc"`, 1, -1, 2, -2, `inf`, `-inf`."""

def norm(input: Any, ord: Any=None, dim: Any=None, keepdim: Any=False, *, dtype: Any=None) -> Any:
    """A norm of vectors if `dim` is one axis, of matrices if it is two; of all elements without both."""
