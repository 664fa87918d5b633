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
    lines += [f"from .sparse import {name} as {name}" for name in ("sparse_coo_tensor", "spmm")]
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
    for name in (*optim._TABLE, "ASGD", "Adafactor", "LBFGS", "SparseAdam"):
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


# Results of methods, and values of properties, that are tensors.
_TENSORS = set("""sample rsample sample_n log_prob cdf icdf entropy perplexity mean mode variance stddev enumerate_support kl_divergence
log_abs_det_jacobian check coalesced to_dense values indices _values _indices loc scale probs logits covariance_matrix precision_matrix
concentration rate param""".split())
_OPERATORS = set("__init__ __call__ __matmul__ __rmatmul__ __mul__ __rmul__ __add__ __radd__ __sub__ __rsub__ __truediv__ __neg__".split())


def _of_class(cls, names):
    """A class with its own methods and attributes; properties are attributes."""
    bases = ", ".join(base.__name__ for base in cls.__bases__ if base not in (object, property))
    lines = [f"class {cls.__name__}({bases}):" if bases else f"class {cls.__name__}:", doc(cls, " " * 4), ""]
    body = []
    for name, found in vars(cls).items():
        if name.startswith("_") and name not in _OPERATORS and name not in ("_values", "_indices", "_nnz"):
            continue
        result = "None" if name == "__init__" else cls.__name__ if name in ("expand", "coalesce", "__neg__") else "Tensor" if name in _TENSORS else "Any"
        function = found.__func__ if isinstance(found, staticmethod) else found
        if inspect.isfunction(function):
            mark = ["    @staticmethod"] if isinstance(found, staticmethod) else []
            text = doc(getattr(cls, name), " " * 8) if inspect.getdoc(getattr(cls, name)) and not name.startswith("__") else " " * 8 + "..."
            body += [*mark, f"    def {name}({shown(function)}) -> {result}:", text]
        else:
            body.append(f"    {name}: {result}")
    return [*lines, *body, ""]


def of_file(module):
    """The whole stub of a module that is written in Python."""
    import importlib

    found = importlib.import_module("zyx." + module)
    dots = "." * module.count(".")
    lines = [f'"""Written by tools/python_stubs.py of `zyx.{module}`."""', "", "from typing import Any", "", f"from {dots or '.'}{'.' if dots else ''}_core import Tensor"]
    own = {name: x for name, x in vars(found).items() if not name.startswith("__") and not inspect.ismodule(x)}
    bases = {base for x in own.values() if inspect.isclass(x) and x.__module__ == found.__name__ for base in x.__bases__}
    for base in sorted((base for base in bases if base.__module__.startswith("zyx.distributions.") and base.__module__ != found.__name__), key=lambda x: x.__name__):
        lines.append(f"from .{base.__module__.rpartition('.')[2]} import {base.__name__}")
    if module.endswith("_composed"):
        lines.append("from . import OneHotCategorical")
    lines.append("")
    for name, x in own.items():
        if inspect.isclass(x) and x.__module__ == found.__name__:
            lines += _of_class(x, own) if x.__name__ == name else [f"{name} = {x.__name__}", ""]
        elif inspect.isfunction(x) and x.__module__ == found.__name__ and not name.startswith("_"):
            lines += [f"def {name}({shown(x)}) -> {'Tensor' if name in _TENSORS else 'Any'}:", doc(x, " " * 4), ""] if x.__name__ in (name, "make") else [f"{name} = {x.__name__}", ""]
        elif not name.startswith("_") and type(x).__module__ == found.__name__:
            lines += [f"{name}: {type(x).__name__}", ""]
    return "\n".join(lines)


def distributions():
    """The whole stub of `distributions`: its classes of Rust's table are made when it is imported."""
    from zyx import distributions as found
    from zyx.distributions import _laws, transforms

    lines = ['"""Probability distributions with PyTorch\'s names. Written by tools/python_stubs.py."""', "", "from typing import Any", "",
             "from .._core import Tensor", "from . import constraints as constraints", "from . import transforms as transforms"]  # fmt: skip
    laws = (*_laws._TABLE, "MultivariateNormal")
    for name in sorted({*found.__all__} - {*laws, "constraints"}):
        kept = getattr(getattr(found, name), "__module__", "")
        module = "transforms" if name in (*transforms.__all__, "biject_to", "transform_to") else kept.rpartition(".")[2]
        lines.append(f"from .{module} import {name} as {name}")
    lines.append("")
    for name in laws:
        cls = getattr(found, name)
        lines += [f"class {name}(Distribution):", doc(cls, " " * 4), ""]
        names = dict.fromkeys([*inspect.signature(cls.__init__).parameters][1:-1])
        lines += [f"    {attribute}: Tensor" for attribute in names if attribute != "lims"]
        lines += ["", f"    def __init__({shown(cls.__init__)}) -> None: ...", ""]
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


WHOLE = {"nn/functional.pyi": functional, "distributions/__init__.pyi": distributions} | {
    module.replace(".", "/") + ".pyi": lambda module=module: of_file(module)
    for module in ("sparse", *(f"distributions.{part}" for part in ("distribution", "constraints", "transforms", "_composed", "kl")))
}


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
    is_current = lambda file, make: (PACKAGE / file).exists() and (PACKAGE / file).read_text() == make()  # noqa: E731
    return found + [file for file, make in WHOLE.items() if not is_current(file, make)]


if __name__ == "__main__":
    if "--check" in sys.argv:
        print(*stale())
        sys.exit(bool(stale()))
    for name, part in PARTS.items():
        (PACKAGE / name).write_text(current(name, part))
    for name, whole in WHOLE.items():
        (PACKAGE / name).write_text(whole())
