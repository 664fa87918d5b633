"""The objects that a kernel is written with; see `zyx.kernel`.

A kernel is recorded: operators and methods of values write it down, and each function that a loop, a group
or a condition is given runs once. So `if` and `while` on a value are errors: `k.when`, `select` and `k.while_` take
their place.
"""

from ._core import _lang

Lang, Val, Array, Var = _lang.Lang, _lang.Val, _lang.Array, _lang.Var
Group, Matrix, Rows, Body = _lang.Group, _lang.Matrix, _lang.Rows, _lang.Body
LookBack, Queue = _lang.LookBack, _lang.Queue
KernelGradient = _lang.KernelGradient

__all__ = ["Array", "Body", "Group", "KernelGradient", "Lang", "LookBack", "Matrix", "Queue", "Rows", "Val", "Var"]

# Methods of `Val` that are one operation each, and its name.
_UNARY = "abs recip sqrt exp exp2 expm1 log log2 log1p sin cos tan asin acos atan sinh cosh tanh erf floor ceil round trunc"
_BINARY = {"pow": "pow", "atan2": "atan2", "maximum": "max", "minimum": "min", "lt": "lt", "le": "le", "eq": "eq", "ne": "ne"}


def _install():
    def unary(op):
        return lambda self: self.unary(op)

    def binary(op):
        return lambda self, other: self.binary(op, other)

    methods = {name: unary(name) for name in _UNARY.split()} | {name: binary(op) for name, op in _BINARY.items()}
    for name, method in methods.items():
        method.__name__, method.__qualname__ = name, f"Val.{name}"
        setattr(Val, name, method)


_install()
