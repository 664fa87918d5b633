"""Stubs of code that is written in Python: methods of `Tensor`, names of the module, layers and optimizers with PyTorch's options.

    python zyx-py/tools/python_stubs.py           writes the parts of the stubs between the marks again
    python zyx-py/tools/python_stubs.py --check   1 if one of them is not current

The rest of the stubs is written by hand, and bindings are made from the rows for Rust (`build/`).
"""

import inspect
import pathlib
import re
import sys

PACKAGE = pathlib.Path(__file__).resolve().parents[1] / "python" / "zyx"
START, END = "# Written by tools/python_stubs.py from here", "# to here."


def shown(function):
    """The parameters of a function as a stub has them, and whether the default of each is shown."""
    parts, star = [], False
    for p in inspect.signature(function).parameters.values():
        mark = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
        if p.kind == p.KEYWORD_ONLY and not star:
            parts.append("*")
        star |= p.kind in (p.VAR_POSITIONAL, p.KEYWORD_ONLY)
        default = "" if p.default is p.empty else f" = {p.default!r}" if isinstance(p.default, (bool, int, float, str, tuple, type(None))) else " = ..."
        parts.append("self" if p.name == "self" else f"{mark}{p.name}: Any{default}")
    return ", ".join(parts)


def doc(item, indent):
    """The first sentence of the documentation, in quotes."""
    text = re.sub(r"\s+", " ", inspect.getdoc(item) or "")
    return f'{indent}"""{text}"""'


def of_tensor():
    """The methods and properties that `_more` gives to `Tensor`."""
    from zyx import _more

    lines = []
    for method in sorted(_more.METHODS, key=lambda m: m.__name__):
        result = "_bool" if method.__name__.startswith("is_") else "Any"
        lines += [f"    def {method.__name__}({shown(method)}) -> {result}:", doc(method, " " * 8), "        # by hand", ""]
    for name, found in sorted(_more.PROPERTIES.items()):
        result = "_bool" if name.startswith("is_") else "Any"
        lines += ["    @property", f"    def {name}(self) -> {result}:", doc(found.fget, " " * 8), "        # by hand", ""]
    return lines


def of_module():
    """The names of `zyx` that `_types` has, and its submodules in Python."""
    import zyx
    from zyx import _core

    declared = set(re.findall(r"^(?:class |def |)(\w+)(?=[(:])", (PACKAGE / "_core.pyi").read_text(), re.M))
    # Not `import *`: aliases of the stub are no names of the package.
    shared = [name for name in dir(_core) if name in declared and hasattr(zyx, name) and not name.startswith("_")]
    lines = [f"from ._core import {name} as {name}" for name in shared if name != "manual_seed" and name != "device"]
    lines += [f"from . import {name} as {name}" for name in zyx._SUBMODULES[10:]]
    lines += [f"from ._types import {name} as {name}" for name in sorted(zyx._TYPES.split())]
    lines += [f"from .amp import {name} as {name}" for name in sorted(zyx._AMP)]
    return [*lines, "from ._summary import summary as summary"]


def of_layers():
    """The layers with PyTorch's options, but for those with a row of Rust of the same name (`with_overloads`)."""
    from zyx import _core, nn
    from zyx.nn._layers import TABLE

    lines = []
    lazy = [name for name in dir(nn) if name.startswith("Lazy")]
    for name in [name for name in [*TABLE, *lazy] if name not in _core.LAYERS]:
        cls = getattr(nn, name)
        signature = shown(cls.__init__ if name in lazy else cls.__init__.__wrapped__)
        lines += [f"class {name}(Layer):", f"    def __init__({signature}) -> None:", doc(cls, " " * 8), "        # by hand", ""]
    return lines


def of_optimizers():
    """The optimizers with PyTorch's options; see `of_layers`."""
    from zyx import _core
    from zyx import optim

    lines = []
    for name in (*optim._TABLE, "ASGD", "Adafactor", "SparseAdam"):
        if name in _core.OPTIMIZERS:
            continue
        cls = getattr(optim, name)
        lines += [f"class {name}(Optimizer):", f"    def __init__({shown(getattr(cls.__init__, '__wrapped__', cls.__init__))}) -> None:", doc(cls, " " * 8), "        # by hand", ""]
    return lines


def functional():
    """The whole stub of `nn.functional`: exact parameters of functions that are defined there; methods of `Tensor` take their
    parameters by two names, which a stub cannot say.
    """
    from zyx.nn import functional as F

    lines = ['"""Functions under the names, and with the parameters, of `torch.nn.functional`. Written by tools/python_stubs.py."""', "",
             "from typing import Any", "", "from .._core import Tensor", "", "class DTypeMismatch(TypeError, RuntimeError):",
             doc(F.DTypeMismatch, " " * 4), ""]  # fmt: skip
    for name in dir(F):
        if name.startswith("_") or inspect.isclass(getattr(F, name)):
            continue
        found = getattr(F, name)
        # A wrapped method is a function of `_names`; functions in steps have the parameters of those that they wrap.
        known = getattr(found, "__module__", "") == F.__name__
        parameters = shown(found) if known else "input: Any, *args: Any, **kwargs: Any"
        several = "_with_indices" in name or name in ("max_pool1d", "max_pool2d", "max_pool3d", "multi_head_attention_forward") or not known or "return_indices" in parameters
        lines += [f"def {name}({parameters}) -> {'Any' if several else 'Tensor'}:", doc(found, " " * 4), ""]
    return "\n".join(lines)


def with_overloads(file, text):
    """The text of a stub in which rows of Rust also have PyTorch's options, as a first overload that bindings leave out."""
    from zyx import _core, nn, optim

    module, names = {"nn/__init__.pyi": (nn, _core.LAYERS), "optim/__init__.pyi": (optim, _core.OPTIMIZERS)}.get(file, (None, ()))
    for name in names:
        cls = getattr(module, name)
        options = getattr(cls.__init__, "__wrapped__", None)
        if options is None or cls.__name__ != name:
            continue
        before = rf"(class {name}\(\w+\):\n)(?:    @overload\n    def __init__\(self.*?        # by hand\n\n    @overload\n)?(    def __init__\()"
        first = f"    @overload\n    def __init__({shown(options)}) -> None:\n{doc(cls, ' ' * 8)}\n        # by hand\n\n    @overload\n"
        text, n = re.subn(before, lambda m: m[1] + first + m[2], text, count=1, flags=re.S)
        if n != 1:
            raise ValueError(f"{file}: no row of {name}")
    return text


PARTS = {"_core.pyi": of_tensor, "__init__.pyi": of_module, "nn/__init__.pyi": of_layers, "optim/__init__.pyi": of_optimizers}


def current(file, make):
    """The text of a stub with its part written again."""
    text = (PACKAGE / file).read_text()
    before, rest = text.split(START, 1)
    indent = before[before.rfind("\n") + 1 :]
    _, after = rest.split(END, 1)
    body = "\n".join(make()).rstrip()
    return with_overloads(file, f"{before}{START}\n\n{body}\n\n{indent}{END}{after}")


def stale():
    """The stubs whose part is not current."""
    found = [file for file, make in PARTS.items() if current(file, make) != (PACKAGE / file).read_text()]
    whole = PACKAGE / "nn" / "functional.pyi"
    return found + ["nn/functional.pyi"] * (not whole.exists() or whole.read_text() != functional())


if __name__ == "__main__":
    if "--check" in sys.argv:
        print(*stale())
        sys.exit(bool(stale()))
    for name, part in PARTS.items():
        (PACKAGE / name).write_text(current(name, part))
    (PACKAGE / "nn" / "functional.pyi").write_text(functional())
