"""Written by tools/python_stubs.py of `zyx.sparse`."""

from typing import Any

from ._core import Tensor

class SparseTensor:
    """A tensor whose elements are 0 but for those that are listed. The axes behind `sparse_dim()` are dense."""

    is_sparse: Any
    layout: Any
    is_leaf: Any
    def __init__(self, indices: Any, values: Any, size: Any, is_coalesced: Any = False) -> None:
        ...
    shape: Any
    ndim: Any
    dtype: Any
    device: Any
    requires_grad: Any
    T: Any
    grad: Any
    def size(self, dim: Any = None) -> Any:
        """The shape, or the extent of an axis."""
    def dim(self) -> Any:
        """The number of axes."""
    def numel(self) -> Any:
        """The number of elements, zeros included."""
    def sparse_dim(self) -> Any:
        """The number of axes that positions name."""
    def dense_dim(self) -> Any:
        """The number of axes of each value."""
    def _nnz(self) -> Any:
        """The number of listed values."""
    def is_coalesced(self) -> Any:
        """Whether positions are known to be in order, each once."""
    def indices(self) -> Tensor:
        """The positions of a coalesced tensor."""
    def values(self) -> Tensor:
        """The values of a coalesced tensor."""
    def _indices(self) -> Tensor:
        """The positions as they are listed."""
    def _values(self) -> Tensor:
        """The values as they are listed."""
    def coalesce(self) -> SparseTensor:
        """The same tensor with positions in order, each once. Reads how many there are."""
    def to_dense(self) -> Tensor:
        """The tensor with its zeros."""
    def to_sparse(self, sparse_dim: Any = None) -> Any:
        """The tensor itself."""
    def to_sparse_csr(self, dense_dim: Any = None) -> Any:
        """A matrix in order of its rows."""
    def crow_indices(self) -> Any:
        """The ends of the rows of a coalesced matrix, from 0 on."""
    def col_indices(self) -> Any:
        """The columns of the values of a coalesced matrix."""
    def t(self) -> Any:
        """A matrix with its axes exchanged."""
    def transpose(self, dim0: Any, dim1: Any) -> Any:
        """Two sparse axes exchanged."""
    def matmul(self, other: Any) -> Any:
        """The product of a matrix with a dense matrix or vector; with a sparse one, which is sparse."""
    def mm(self, other: Any) -> Any:
        """The product of a matrix with a dense matrix or vector; with a sparse one, which is sparse."""
    def mv(self, other: Any) -> Any:
        """The product of a matrix with a dense matrix or vector; with a sparse one, which is sparse."""
    def __matmul__(self, other: Any) -> Any:
        ...
    def __rmatmul__(self, other: Any) -> Any:
        ...
    def mul(self, other: Any) -> Any:
        """The product with a number, or element by element with a tensor of the same shape."""
    def __mul__(self, other: Any) -> Any:
        ...
    def __rmul__(self, other: Any) -> Any:
        ...
    def div(self, other: Any) -> Any:
        """The quotient by a number."""
    def __truediv__(self, other: Any) -> Any:
        ...
    def __neg__(self) -> SparseTensor:
        ...
    def add(self, other: Any) -> Any:
        """The sum with a sparse tensor, which is sparse, or a dense one."""
    def __add__(self, other: Any) -> Any:
        ...
    def __radd__(self, other: Any) -> Any:
        ...
    def __sub__(self, other: Any) -> Any:
        ...
    def __rsub__(self, other: Any) -> Any:
        ...
    def sum(self, dim: Any = None) -> Any:
        """The sum of all elements; along an axis that of the dense tensor."""
    def detach(self) -> Any:
        """Without gradients."""
    def clone(self) -> Any:
        """A copy."""
    def requires_grad_(self, requires_grad: Any = True) -> Any:
        """Has `backward` collect the gradient of the values."""
    def to(self, *target: Any, **named: Any) -> Any:
        """On another device or in another dtype."""
    def cuda(self, device: Any = None) -> Any:
        """On a GPU."""
    def cpu(self) -> Any:
        """On the CPU."""
    def float(self) -> Any:
        """In `float32`."""
    def double(self) -> Any:
        """In `float64`."""
    def backward(self, gradient: Any = None) -> Any:
        """Refused: the sum of `values()` or of `to_dense()` has one."""

def sparse_coo_tensor(indices: Any, values: Any, size: Any = None, *, dtype: Any = None, device: Any = None, requires_grad: Any = False, check_invariants: Any = True, is_coalesced: Any = None) -> Any:
    """A tensor with these values at the positions `indices[:, i]`, otherwise 0. Without `size` it ends at the last positions. Positions are checked but within traced functions, or with `check_invariants=False`."""

def sparse_csr_tensor(crow_indices: Any, col_indices: Any, values: Any, size: Any = None, *, dtype: Any = None, device: Any = None, requires_grad: Any = False, check_invariants: Any = None) -> Any:
    """A sparse matrix of the ends of its rows and the columns of its values. It is kept in coordinates."""

def to_sparse_csr(self, dense_dim: Any = None) -> Any:
    """A matrix as a sparse one in order of its rows, with `crow_indices()` and `col_indices()`."""

def to_sparse(self, sparse_dim: Any = None) -> Any:
    """The elements that are not 0, as a `SparseTensor` of `sparse_dim` sparse axes, or all. Reads how many there are."""

def mm(input: Any, mat2: Any) -> Any:
    """The product of a sparse matrix and a dense or sparse one."""

spmm = mm

def addmm(mat: Any, mat1: Any, mat2: Any, *, beta: Any = 1.0, alpha: Any = 1.0) -> Any:
    """`beta mat + alpha mat1 @ mat2` of a sparse `mat1`."""

def softmax(input: Any, dim: Any, *, dtype: Any = None) -> Any:
    """`softmax` along an axis of the listed elements of a matrix alone."""

def sum(input: Any, dim: Any = None, dtype: Any = None) -> Any:
    """The sum of all elements of a sparse tensor, or along axes, which is dense."""

def FloatTensor(indices: Any, values: Any, size: Any = None) -> Any:
    """A sparse tensor of float32."""

def DoubleTensor(indices: Any, values: Any, size: Any = None) -> Any:
    """A sparse tensor of float64."""

def LongTensor(indices: Any, values: Any, size: Any = None) -> Any:
    """A sparse tensor of int64."""
