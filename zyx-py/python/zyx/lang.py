"""The objects that a kernel is written with; see `zyx.kernel`.

A kernel is recorded: operators and methods of values write it down, and each function that a loop, a group
or a condition is given runs once. So `if` on a value is an error, and `k.when` and `select` take its place.
"""

from ._core import _lang

Lang, Val, Array, Var = _lang.Lang, _lang.Val, _lang.Array, _lang.Var
Group, Matrix, Rows, Body = _lang.Group, _lang.Matrix, _lang.Rows, _lang.Body
KernelGradient = _lang.KernelGradient

__all__ = ["Array", "Body", "Group", "KernelGradient", "Lang", "Matrix", "Rows", "Val", "Var"]
