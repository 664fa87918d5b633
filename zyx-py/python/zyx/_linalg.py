"""The extension `linalg` of the array API standard."""

from collections import namedtuple as _namedtuple

from . import array_api as _xp
from ._steps import in_steps as _in_steps
from .array_api import matmul, matrix_transpose, tensordot, vecdot  # noqa: F401

_Eigh = _namedtuple("eigh", ["eigenvalues", "eigenvectors"])
_Qr = _namedtuple("qr", ["Q", "R"])
_Slogdet = _namedtuple("slogdet", ["sign", "logabsdet"])
_Svd = _namedtuple("svd", ["U", "S", "Vh"])


def cholesky(x, /, *, upper=False):
    """The triangular `L` with `x = L @ L.T`, or its transpose."""
    found = x.cholesky()
    return found.mT if upper else found


def cross(x1, x2, /, *, axis=-1):
    """The product of vectors of three that is orthogonal to both."""
    return x1.cross(x2, axis)


def det(x, /):
    """Determinant."""
    return x.det()


def diagonal(x, /, *, offset=0):
    """A diagonal of the last two axes."""
    return x.diagonal(offset, -2, -1)


def eigh(x, /):
    """Eigenvalues in ascending order, and eigenvectors, of symmetric matrices."""
    return _Eigh(*x.eigh())


def eigvalsh(x, /):
    """Eigenvalues of symmetric matrices in ascending order."""
    return x.eigh()[0]


def inv(x, /):
    """Inverse."""
    return x.inv()


def _largest(x, axes=-1, keepdims=False):
    """The largest of numbers that are not negative: of none 0."""
    none = 0 in [x.shape[axis] for axis in ([axes] if isinstance(axes, int) else axes)]
    return (x.sum if none else x.amax)(axes, keepdim=keepdims)


@_in_steps
def matrix_norm(x, /, *, keepdims=False, ord="fro"):
    """A norm of matrices: `"fro"`, `"nuc"`, 1, -1, 2, -2, `inf`, `-inf`."""
    if ord == "fro":
        found = x.norm(2, (-2, -1))
    elif ord == "nuc":
        found = x.svdvals().sum(-1)
    elif ord in (2, -2):
        values = x.svdvals()
        found = _largest(values) if ord == 2 else values.amin(-1)
    elif ord in (1, -1, _xp.inf, -_xp.inf):
        sums = x.abs().sum(-2 if abs(ord) == 1 else -1)
        found = _largest(sums) if ord > 0 else sums.amin(-1)
    else:
        raise ValueError(f"{ord!r} is no norm of matrices")
    return found.unsqueeze(-1).unsqueeze(-1) if keepdims else found


def matrix_power(x, n, /):
    """The product of `n` times the matrix."""
    return x.matrix_power(n)


def matrix_rank(x, /, *, rtol=None):
    """How many singular values are not negligible."""
    return x.matrix_rank(rtol)


def outer(x1, x2, /):
    """All products of the elements of two vectors."""
    return x1.outer(x2)


def pinv(x, /, *, rtol=None):
    """The pseudo-inverse."""
    return x.pinv(rtol)


def _completed(q):
    """Orthogonal columns, and as many more as make them a basis."""
    missing = q.shape[-2] - q.shape[-1]
    if missing == 0:
        return q
    # What projects on the rest has the eigenvalue 1 there, and 0 on the columns that are there.
    rest = q.eye(q.shape[-2], dtype=q.dtype, device=q.device) - q @ q.mT
    return q.cat([q, rest.detach().eigh()[1][..., -missing:]], -1)


def qr(x, /, *, mode="reduced"):
    """Orthogonal columns and a triangle whose product is `x`; a whole basis with `mode="complete"`."""
    if mode not in ("reduced", "complete"):
        raise ValueError(f"mode is 'reduced' or 'complete', not {mode!r}")
    q, r = x.qr()
    if mode == "complete":
        q = _completed(q)
        r = r.pad([(0, 0)] * (r.ndim - 2) + [(0, q.shape[-1] - r.shape[-2]), (0, 0)])
    return _Qr(q, r)


def slogdet(x, /):
    """Sign and logarithm of the determinant's absolute value."""
    return _Slogdet(*x.slogdet())


def solve(x1, x2, /):
    """The solution of `x1 @ y = x2`."""
    # Here matrices even where a batch of vectors would fit.
    lone = x2.ndim > 1 and x2.shape == x1.shape[:-1]
    return x1.solve(x2.unsqueeze(0) if lone else x2)


def svd(x, /, *, full_matrices=True):
    """Singular values and vectors; whole bases of them with `full_matrices`."""
    u, s, vh = x.svd()
    return _Svd(_completed(u), s, _completed(vh.mT).mT) if full_matrices else _Svd(u, s, vh)


def svdvals(x, /):
    """Singular values, the largest first."""
    return x.svdvals()


def trace(x, /, *, offset=0, dtype=None):
    """The sum of a diagonal of the last two axes."""
    return _xp.sum(x.diagonal(offset, -2, -1), axis=-1, dtype=dtype)


def vector_norm(x, /, *, axis=None, keepdims=False, ord=2):
    """The p-norm of vectors; of order 0 the number of elements that are not zero."""
    axes = tuple(range(x.ndim)) if axis is None else (axis,) if isinstance(axis, int) else tuple(axis)
    size = x.abs()
    if ord == _xp.inf:
        return _largest(size, axes, keepdims)
    if ord == -_xp.inf:
        return size.amin(axes, keepdim=keepdims)
    if ord == 0:
        return (x != 0).cast(x.dtype).sum(axes, keepdim=keepdims)
    return (size**ord).sum(axes, keepdim=keepdims) ** (1 / ord)
