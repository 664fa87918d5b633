"""Sparse tensors in coordinates: positions `indices` `[axes, n]` and their `values` `[n, ..]`; positions that come twice add up.

    >>> a = zyx.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], [3.0, 4.0, 5.0], (2, 3))
    >>> a @ zyx.ones(3, 1)

Products gather rows and add them up; dense operands and values have gradients. Other operations are those of `to_dense()`.
"""

import math

from ._core import Tensor, tensor
from ._types import Size

__all__ = ["SparseTensor", "addmm", "mm", "softmax", "sparse_coo_tensor", "sparse_csr_tensor", "spmm", "sum"]


class SparseTensor:
    """A tensor whose elements are 0 but for those that are listed. The axes behind `sparse_dim()` are dense."""

    is_sparse, layout, is_leaf = True, "sparse_coo", True

    def __init__(self, indices, values, size, is_coalesced=False):
        self._at, self._elements, self._size, self._is_coalesced = indices, values, Size(size), is_coalesced

    shape = property(lambda self: self._size)
    ndim = property(lambda self: len(self._size))
    dtype = property(lambda self: self._elements.dtype)
    device = property(lambda self: self._elements.device)
    requires_grad = property(lambda self: self._elements.requires_grad)
    T = property(lambda self: self.t())

    @property
    def grad(self):
        """The gradient that `backward` collected: at the same positions."""
        found = self._elements.grad
        return None if found is None else self._with(found)

    def _with(self, values, is_coalesced=None):
        return SparseTensor(self._at, values, self._size, self._is_coalesced if is_coalesced is None else is_coalesced)

    def size(self, dim=None):
        """The shape, or the extent of an axis."""
        return self._size if dim is None else self._size[dim]

    def dim(self):
        """The number of axes."""
        return len(self._size)

    def numel(self):
        """The number of elements, zeros included."""
        return math.prod(self._size)

    def sparse_dim(self):
        """The number of axes that positions name."""
        return self._at.shape[0]

    def dense_dim(self):
        """The number of axes of each value."""
        return self._elements.ndim - 1

    def _nnz(self):
        """The number of listed values."""
        return self._elements.shape[0]

    def is_coalesced(self):
        """Whether positions are known to be in order, each once."""
        return self._is_coalesced

    def _in_order(self, name):
        if not self._is_coalesced:
            raise RuntimeError(f"{name}() of a tensor whose positions may come twice; call coalesce() first")
        return self

    def indices(self):
        """The positions of a coalesced tensor."""
        return self._in_order("indices")._at

    def values(self):
        """The values of a coalesced tensor."""
        return self._in_order("values")._elements

    def _indices(self):
        """The positions as they are listed."""
        return self._at

    def _values(self):
        """The values as they are listed."""
        return self._elements

    def _flat(self):
        """Positions as numbers, as if the sparse axes were one."""
        flat = None
        for at, extent in zip(self._at.unbind(0), self._size):
            flat = at if flat is None else flat * extent + at
        return flat if flat is not None else Tensor.zeros(self._nnz(), dtype="int64", device=self.device)

    def coalesce(self):
        """The same tensor with positions in order, each once. Reads how many there are."""
        if self._is_coalesced:
            return self
        flat, place = self._flat().unique(return_inverse=True)
        values = self._elements.new_zeros((flat.shape[0], *self._elements.shape[1:])).index_add(0, place, self._elements)
        rows = []
        for extent in reversed(self._size[: self.sparse_dim()]):
            rows.append(flat % extent)
            flat = flat // extent
        at = Tensor.stack(rows[::-1], 0) if rows else self._at[:, : flat.shape[0]]
        return SparseTensor(at, values, self._size, True)

    def to_dense(self):
        """The tensor with its zeros."""
        n = self.sparse_dim()
        values = self._elements
        zeros = values.new_zeros((math.prod(self._size[:n]), *self._size[n:]))
        return zeros.index_add(0, self._flat(), values).reshape(tuple(self._size))

    def to_sparse(self, sparse_dim=None):
        """The tensor itself."""
        return self

    def to_sparse_csr(self, dense_dim=None):
        """A matrix in order of its rows."""
        return self.coalesce()

    def crow_indices(self):
        """The ends of the rows of a coalesced matrix, from 0 on."""
        rows = self._in_order("crow_indices")._at[0]
        counts = rows.new_zeros((self._size[0],)).index_add(0, rows, rows.ones_like())
        return Tensor.cat([counts[:0].new_zeros((1,)), counts.cumsum(0)], 0)

    def col_indices(self):
        """The columns of the values of a coalesced matrix."""
        return self._in_order("col_indices")._at[1]

    def t(self):
        """A matrix with its axes exchanged."""
        return self.transpose(0, 1)

    def transpose(self, dim0, dim1):
        """Two sparse axes exchanged."""
        n, order = self.sparse_dim(), list(range(self.ndim))
        a, b = dim0 % self.ndim, dim1 % self.ndim
        if max(a, b) >= n:
            raise RuntimeError(f"transpose: axes {dim0} and {dim1} of {n} sparse ones")
        order[a], order[b] = order[b], order[a]
        at = Tensor.stack([self._at[i] for i in order[:n]], 0)
        return SparseTensor(at, self._elements, [self._size[i] for i in order], a == b and self._is_coalesced)

    def matmul(self, other):
        """The product of a matrix with a dense matrix or vector; with a sparse one, which is sparse."""
        if self.ndim != 2 or self.sparse_dim() != 2:
            raise RuntimeError(f"matmul: a sparse tensor of shape {tuple(self._size)} is no matrix")
        if isinstance(other, SparseTensor):
            return self.matmul(other.to_dense()).to_sparse()
        if not isinstance(other, Tensor):
            raise TypeError(f"matmul: a tensor is needed, not {type(other).__name__}")
        if other.ndim not in (1, 2) or other.shape[0] != self._size[1]:
            raise RuntimeError(f"matmul: shapes {tuple(self._size)} and {tuple(other.shape)} do not fit")
        rows, columns = self._at.unbind(0)
        values = self._elements if other.ndim == 1 else self._elements.unsqueeze(-1)
        terms = values * other.index_select(0, columns)
        return terms.new_zeros((self._size[0], *other.shape[1:])).index_add(0, rows, terms)

    mm = mv = __matmul__ = matmul

    def __rmatmul__(self, other):
        return self.t().matmul(other.mT if other.ndim == 2 else other).t() if other.ndim == 2 else self.t().matmul(other)

    def mul(self, other):
        """The product with a number, or element by element with a tensor of the same shape."""
        if isinstance(other, (int, float)) or isinstance(other, Tensor) and other.ndim == 0:
            return self._with(self._elements * other)
        if isinstance(other, Tensor) and other.shape == self._size:
            return self._with(self._elements * other[tuple(self._at.unbind(0))])
        if isinstance(other, SparseTensor) and other._size == self._size:
            return (self.to_dense() * other.to_dense()).to_sparse()
        return NotImplemented

    __mul__ = __rmul__ = mul

    def div(self, other):
        """The quotient by a number."""
        return self._with(self._elements / other) if isinstance(other, (int, float)) or isinstance(other, Tensor) and other.ndim == 0 else NotImplemented

    __truediv__ = div

    def __neg__(self):
        return self._with(-self._elements)

    def add(self, other):
        """The sum with a sparse tensor, which is sparse, or a dense one."""
        if isinstance(other, SparseTensor):
            if other._size != self._size or other.sparse_dim() != self.sparse_dim():
                raise RuntimeError(f"add: shapes {tuple(self._size)} and {tuple(other._size)} differ")
            at = Tensor.cat([self._at, other._at], 1)
            return SparseTensor(at, Tensor.cat([self._elements, other._elements], 0), self._size)
        return self.to_dense() + other

    __add__ = __radd__ = add

    def __sub__(self, other):
        return self + -other

    def __rsub__(self, other):
        return -self + other

    def sum(self, dim=None):
        """The sum of all elements; along an axis that of the dense tensor."""
        return self._elements.sum() if dim is None else self.to_dense().sum(dim)

    def detach(self):
        """Without gradients."""
        return self._with(self._elements.detach())

    def clone(self):
        """A copy."""
        return self._with(self._elements.clone())

    def requires_grad_(self, requires_grad=True):
        """Has `backward` collect the gradient of the values."""
        self._elements.requires_grad_(requires_grad)
        return self

    def to(self, *target, **named):
        """On another device or in another dtype."""
        values = self._elements.to(*target, **named)
        return SparseTensor(self._at.to(values.device), values, self._size, self._is_coalesced)

    def cuda(self, device=None):
        """On a GPU."""
        return self.to("cuda" if device is None else device)

    def cpu(self):
        """On the CPU."""
        return self.to("cpu")

    def float(self):
        """In `float32`."""
        return self.to("float32")

    def double(self):
        """In `float64`."""
        return self.to("float64")

    def backward(self, gradient=None):
        """Refused: the sum of `values()` or of `to_dense()` has one."""
        raise RuntimeError("backward() of a sparse tensor: take a number of it, as to_dense().sum()")

    def __repr__(self):
        coalesced = "" if self._is_coalesced else ", not coalesced"
        return f"SparseTensor(indices={self._at}, values={self._elements}, size={tuple(self._size)}{coalesced})"


def sparse_coo_tensor(indices, values, size=None, *, dtype=None, device=None, requires_grad=False, check_invariants=True, is_coalesced=None):
    """A tensor with these values at the positions `indices[:, i]`, otherwise 0. Without `size` it ends at the last positions.
    Positions are checked but within traced functions, or with `check_invariants=False`.
    """
    values = values if isinstance(values, Tensor) else tensor(values, dtype=dtype, device=device)
    if dtype is not None or device is not None:
        values = values.to(*[x for x in (device, dtype) if x is not None])
    indices = (indices if isinstance(indices, Tensor) else tensor(indices, dtype="int64", device=values.device)).to(values.device).cast("int64")
    if indices.ndim != 2 or values.ndim < 1 or indices.shape[1] != values.shape[0]:
        raise RuntimeError(f"sparse_coo_tensor: indices are [axes, n] and values [n, ..], not {tuple(indices.shape)} and {tuple(values.shape)}")
    n, count = indices.shape
    if size is None:
        ends = (indices.amax(1) + 1).tolist() if count else [0] * n
        size = (*ends, *values.shape[1:])
    if len(size) != n + values.ndim - 1 or tuple(size[n:]) != tuple(values.shape[1:]):
        raise RuntimeError(f"sparse_coo_tensor: a size {tuple(size)} for {n} axes of positions and values of shape {tuple(values.shape)}")
    if check_invariants and count:
        from .distributions.distribution import holds

        bound = tensor(list(size[:n]), dtype="int64", device=indices.device).unsqueeze(1)
        if n and not holds((indices >= 0) & (indices < bound)):
            raise RuntimeError(f"sparse_coo_tensor: indices {indices} are not all within the size {tuple(size)}")
    if requires_grad:
        values = values.detach().clone().requires_grad_()
    return SparseTensor(indices, values, size, bool(is_coalesced))


# Operators that a dense first operand leaves to a sparse second one.
_REFLECTED = {"mm": "__rmatmul__", "matmul": "__rmatmul__", "add": "__radd__", "sub": "__rsub__", "mul": "__rmul__"}


def _function_of(function, arguments):
    """A function of the module of a sparse tensor: its own method, or the function of the dense tensor."""
    first, *rest = arguments
    name = function.__name__
    own = getattr(first, name, None) if isinstance(first, SparseTensor) else None
    if own is None and isinstance(first, Tensor) and len(rest) == 1 and name in _REFLECTED:
        return getattr(rest[0], _REFLECTED[name])(first)
    if own is not None:
        found = own(*rest)
        if found is not NotImplemented:
            return found
    return function(*(x.to_dense() if isinstance(x, SparseTensor) else x for x in arguments))


def sparse_csr_tensor(crow_indices, col_indices, values, size=None, *, dtype=None, device=None, requires_grad=False, check_invariants=None):
    """A sparse matrix of the ends of its rows and the columns of its values. It is kept in coordinates."""
    crow, col = (x if isinstance(x, Tensor) else tensor(x, dtype="int64") for x in (crow_indices, col_indices))
    counts = (crow[1:] - crow[:-1]).cast("int64")
    rows = Tensor.arange(counts.shape[0], dtype="int64", device=counts.device).repeat_interleave(counts)
    if size is None:
        size = (counts.shape[0], int(col.max()) + 1 if col.numel() else 0)
    at = Tensor.stack([rows, col.cast("int64")], 0)
    return sparse_coo_tensor(at, values, size, dtype=dtype, device=device, requires_grad=requires_grad, is_coalesced=True)


def to_sparse_csr(self, dense_dim=None):
    """A matrix as a sparse one in order of its rows, with `crow_indices()` and `col_indices()`."""
    if self.ndim != 2:
        raise RuntimeError(f"to_sparse_csr: a matrix is needed, not a tensor of {self.ndim} axes")
    return to_sparse(self)


def to_sparse(self, sparse_dim=None):
    """The elements that are not 0, as a `SparseTensor` of `sparse_dim` sparse axes, or all. Reads how many there are."""
    n = self.ndim if sparse_dim is None else sparse_dim
    if not 0 <= n <= self.ndim:
        raise RuntimeError(f"to_sparse: {sparse_dim} sparse axes of {self.ndim}")
    mask = self != 0
    if n < self.ndim:
        mask = mask.reshape((*self.shape[:n], -1)).any(-1)
    at = mask.nonzero().t()
    values = self[tuple(at.unbind(0))] if n else self.unsqueeze(0)[: at.shape[1]]
    return SparseTensor(at, values, self.shape, True)


def mm(input, mat2):
    """The product of a sparse matrix and a dense or sparse one."""
    if not isinstance(input, SparseTensor):
        return input @ mat2
    return input.matmul(mat2)


spmm = mm


def addmm(mat, mat1, mat2, *, beta=1.0, alpha=1.0):
    """`beta mat + alpha mat1 @ mat2` of a sparse `mat1`."""
    return mat * beta + mm(mat1, mat2) * alpha


def softmax(input, dim, *, dtype=None):
    """`softmax` along an axis of the listed elements of a matrix alone."""
    input = (input if dtype is None else input.to(dtype)).coalesce()
    if input.sparse_dim() != 2 or input.dense_dim():
        raise NotImplementedError("softmax of a sparse tensor that is no matrix")
    other = 1 - dim % 2
    group, values = input._at[other], input._elements
    most = values.new_full((input._size[other],), float("-inf")).scatter_reduce(0, group, values.detach(), "amax")
    powers = (values - most.index_select(0, group)).exp()
    sums = values.new_zeros((input._size[other],)).index_add(0, group, powers)
    return input._with(powers / sums.index_select(0, group))


def sum(input, dim=None, dtype=None):
    """The sum of all elements of a sparse tensor, or along axes, which is dense."""
    input = input if dtype is None else input.to(dtype)
    return input.sum(dim)


def _of_kind(dtype):
    def make(indices, values, size=None):
        return sparse_coo_tensor(indices, values, size, dtype=dtype)

    make.__doc__ = f"A sparse tensor of {dtype}."
    return make


FloatTensor, DoubleTensor, LongTensor = _of_kind("float32"), _of_kind("float64"), _of_kind("int64")
