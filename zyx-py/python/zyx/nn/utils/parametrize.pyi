"""Weights that are computed from other parameters, under the names of `torch.nn.utils.parametrize`. Written by tools/python_stubs.py."""

from typing import Any, Generic, TypeVar
from ..._core import Parameter as Parameter, Tensor as Tensor
from ..module import Module as Module, ModuleDict as ModuleDict, ModuleList as ModuleList

_T = TypeVar("_T")

def cached() -> Any:
    """A block in which each weight is computed once."""

class ParametrizationList(ModuleList):
    def __init__(self, modules: Any, original: Any, unsafe: Any=False) -> None:
        ...
    def right_inverse(self, value: Any) -> Any:
        """Sets the originals so that the weight is this value."""
    def forward(self) -> Any:
        """The result for the inputs."""

def register_parametrization(module: Any, tensor_name: Any, parametrization: Any, *, unsafe: Any=False) -> Any:
    """Computes a weight by a module from now on: from the weight that it was, or from `right_inverse` of it."""

def is_parametrized(module: Any, tensor_name: Any=None) -> Any:
    """Whether a weight, or any, is computed."""

def remove_parametrizations(module: Any, tensor_name: Any, leave_parametrized: Any=True) -> Any:
    """Makes the weight a parameter again: of the value that was computed, or of the original."""

def type_before_parametrizations(module: Any) -> Any:
    """The module's class without its computed weights."""
