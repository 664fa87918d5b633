"""Ways to compute weights, under the names of `torch.nn.utils.parametrizations`. Written by tools/python_stubs.py."""

from typing import Any, Generic, TypeVar
from . import norm_except_dim as norm_except_dim, parametrize as parametrize
from ..._core import Parameter as Parameter, Tensor as Tensor
from ..module import Module as Module

_T = TypeVar("_T")

def weight_norm(module: Any, name: Any='weight', dim: Any=0) -> Any:
    """A weight by length (`original0`) and direction (`original1`)."""

def spectral_norm(module: Any, name: Any='weight', n_power_iterations: Any=1, eps: Any=1e-12, dim: Any=None) -> Any:
    """A weight whose largest singular value is 1."""

def orthogonal(module: Any, name: Any='weight', orthogonal_map: Any=None, *, use_trivialization: Any=True) -> Any:
    """A weight with orthonormal rows or columns, whichever are fewer, by `"matrix_exp"` or `"cayley"` of a skew matrix."""
