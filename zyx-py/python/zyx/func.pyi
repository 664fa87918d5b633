"""Functions of functions: derivatives, examples at once, modules as functions; under the names of `torch.func`. Written by tools/python_stubs.py."""

from typing import Any, Generic, TypeVar
from ._core import Tensor as Tensor
from ._tree import flatten as flatten, map_tree as map_tree, spread as spread

_T = TypeVar("_T")

def grad(func: Any, argnums: Any=0, has_aux: Any=False) -> Any:
    """A function that gives the gradient of one number with respect to a positional argument, or to several of a tuple."""

def grad_and_value(func: Any, argnums: Any=0, has_aux: Any=False) -> Any:
    """A function that gives a gradient, as `grad` does, and the value."""

def vjp(func: Any, *primals: Any, has_aux: Any=False) -> Any:
    """The result of a function, and a function that gives the products of cotangents of it with the Jacobians."""

def jvp(func: Any, primals: Any, tangents: Any, *, strict: Any=False, has_aux: Any=False) -> Any:
    """The result of a function, and its derivative in the direction of tangents."""

def linearize(func: Any, *primals: Any) -> Any:
    """The result of a function, and the function of tangents that it is nearby."""

def jacrev(func: Any, argnums: Any=0, *, has_aux: Any=False, chunk_size: Any=None, _preallocate_and_copy: Any=False) -> Any:
    """A function that gives the Jacobian of a positional argument, `[*result, *argument]`, by cotangents of the result. All of them are one plan for every `chunk_size`."""

def jacfwd(func: Any, argnums: Any=0, has_aux: Any=False, *, randomness: Any='error') -> Any:
    """A function that gives the Jacobian of a positional argument, `[*result, *argument]`, by tangents of the argument."""

def hessian(func: Any, argnums: Any=0) -> Any:
    """A function that gives the second derivatives of one number, `[*argument, *argument]`."""

def vmap(func: Any, in_dims: Any=0, out_dims: Any=0, randomness: Any='error', *, chunk_size: Any=None) -> Any:
    """A function that computes `func` for many examples at once: `in_dims` says which axis of each argument counts them, `None` that all have the same, and `out_dims` which axis of each result does. `func` is called once for each result, with tensors that have the shape of one example. Random numbers differ among examples; all examples are one plan for every `chunk_size`."""

def functional_call(module: Any, parameter_and_buffer_dicts: Any, args: Any=None, kwargs: Any=None, *, tie_weights: Any=True, strict: Any=False) -> Any:
    """A module's result with other parameters and buffers: a dict of them by name, or several. With `tie_weights` those that are one place have one value; with `strict` all have to be given."""

def stack_module_state(models: Any) -> Any:
    """The parameters of modules of one kind, stacked by name, and their buffers: for `vmap` of `functional_call`."""

def functionalize(func: Any, *, remove: Any='mutations') -> Any:
    """The function itself: tensors are functional here."""
