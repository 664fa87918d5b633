"""Derivatives of functions at inputs, under the names of `torch.autograd.functional`. Written by tools/python_stubs.py."""

from typing import Any, Generic, TypeVar
from .._core import Tensor as Tensor
from .._tree import map_tree as map_tree

_T = TypeVar("_T")

def jacobian(func: Any, inputs: Any, create_graph: Any=False, strict: Any=False, vectorize: Any=False, strategy: Any='reverse-mode') -> Any:
    """The Jacobian of a function; of several results and inputs a tuple for each result. All of it is one plan with either value of `vectorize`."""

def hessian(func: Any, inputs: Any, create_graph: Any=False, strict: Any=False, vectorize: Any=False, outer_jacobian_strategy: Any='reverse-mode') -> Any:
    """The second derivatives of one number."""

def vjp(func: Any, inputs: Any, v: Any=None, create_graph: Any=False, strict: Any=False) -> Any:
    """The result, and the product of a vector with the Jacobian."""

def jvp(func: Any, inputs: Any, v: Any=None, create_graph: Any=False, strict: Any=False) -> Any:
    """The result, and the product of the Jacobian with a vector."""

def vhp(func: Any, inputs: Any, v: Any=None, create_graph: Any=False, strict: Any=False) -> Any:
    """The result, and the product of a vector with the second derivatives."""

def hvp(func: Any, inputs: Any, v: Any=None, create_graph: Any=False, strict: Any=False) -> Any:
    """The result, and the product of the second derivatives with a vector: that with a vector from the left, since they are symmetric."""
