"""Stubs of code that is written in Python: methods of `Tensor`, names of the module, layers and optimizers with PyTorch's options.

    python zyx-py/tools/python_stubs.py           writes the parts of the stubs between the marks again
    python zyx-py/tools/python_stubs.py --check   1 if one of them is not current

The rest of the stubs is written by hand, and bindings are made from the rows for Rust (`build/`).
"""

import ast
import inspect
import pathlib
import re
import sys

PACKAGE = pathlib.Path(__file__).resolve().parents[1] / "python" / "zyx"
FUNCTIONS = "# Methods of `Tensor` as functions, written by tools/python_stubs.py."
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
    for name in _more._WRITTEN:
        method = getattr(_more, name)
        lines += [f"    def {name}_({shown(method)}) -> Tensor:", f'        """As `{name}`, written into the tensor."""', "        # by hand", ""]
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
    lines += [f"from .sparse import {name} as {name}" for name in zyx._SPARSE]
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


def second_names():
    """For the parameters of each method, PyTorch's names: of all methods from the build script, of one from `_names`."""
    from zyx import _names

    text = (PACKAGE.parents[1] / "build" / "emit.rs").read_text()
    of_all = dict(re.findall(r'\("(\w+)", "(\w+)"\)', text.split("const ALIASES", 1)[1].split("];", 1)[0]))
    found = {}
    for line in _names._TABLE.split("\n")[1:-1]:
        words = line.split()
        pairs = [word.split("=") for word in words if "=" in word and not word.endswith("=")]
        for name in words[: len(words) - sum("=" in word for word in words)]:
            for theirs, ours in pairs:
                found.setdefault(name, {}).setdefault(ours, []).append(theirs)
    return of_all, found


class Signature:
    """A method of `Tensor` in a stub: its name, parameters in order and result."""

    def __init__(self, node):
        self.name, self.result = node.name, ast.unparse(node.returns) if node.returns else "Any"
        self.is_static = any(ast.unparse(d) == "staticmethod" for d in node.decorator_list)
        args, self.parts = node.args, []
        plain = [*args.posonlyargs, *args.args]
        defaults = [None] * (len(plain) - len(args.defaults)) + list(args.defaults)
        for arg, default in zip(plain, defaults):
            self.add(arg, default)
        if args.vararg:
            self.add(args.vararg, None, "*")
        elif args.kwonlyargs:
            self.parts.append(("*", "*", None))
        for arg, default in zip(args.kwonlyargs, args.kw_defaults):
            self.add(arg, default)
        if args.kwarg:
            self.add(args.kwarg, None, "**")

    def add(self, arg, default, mark=""):
        kind = "" if arg.annotation is None else ast.unparse(arg.annotation)
        self.parts.append((arg.arg, kind, default and ast.unparse(default), mark) if mark else (arg.arg, kind, default and ast.unparse(default)))

    def shown(self, names=None, more=()):
        """The `def` line with other names of parameters, and further parameters that are given by name."""
        names, parts = names or {}, []
        for name, kind, default, *mark in self.parts:
            if mark == ["*"] and name in names:
                # Given by name, it is no list of arguments.
                parts += ["*", f"{names[name]}: {kind}"]
                continue
            name = names.get(name, name)
            kind = "Any" if name == "generator" else kind
            text = "*" if name == "*" else "".join(mark) + name + (f": {kind}" if kind and ":" not in name else "")
            parts.append(text + (f" = {default}" if default else ""))
        if more:
            has_star = any(part.startswith("*") for part in parts)
            parts += ([] if has_star else ["*"]) + list(more)
        return f"def {self.name}({', '.join(parts)}) -> {self.result}"


def variants(signature, of_all, of_one):
    """The renamings of a method's parameters by which PyTorch's and NumPy's users call it."""
    own = [part[0] for part in signature.parts if part[0] not in ("self", "*")]
    table = of_one.get(signature.name, {})
    second = {name: [*table.get(name, []), *([of_all[name]] if name in of_all else [])] for name in own}
    second = {name: [x for x in known if x not in own] for name, known in second.items()}
    if not any(second.values()):
        return []
    theirs = {name: known for name, known in second.items() if known and name != "keepdim"}
    found = [{name: known[min(i, len(known) - 1)] for name, known in theirs.items()} for i in range(max(map(len, theirs.values()), default=0))]
    rest = {part[0] for part in signature.parts if part[3:] == ("*",)}
    # A list of arguments has no name: once without it, once as one argument.
    alone = [{name: new for name, new in names.items() if name not in rest} for names in found if rest & names.keys()]
    found = [names for names in alone if names] + found
    return found + [{"keepdim": "keepdims"}] * bool(second.get("keepdim"))


def signatures():
    """The methods of `Tensor` by name, without those that `with_names` adds."""
    tree = ast.parse(without_names((PACKAGE / "_core.pyi").read_text()))
    cls = next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Tensor")
    return {node.name: Signature(node) for node in cls.body if isinstance(node, ast.FunctionDef)}


# Further ways to call a method.
MORE_FORMS = {
    "bernoulli": ["def bernoulli(input: Tensor, p: Any = None, *, generator: Any = None) -> Tensor"],
    "poisson": ["def poisson(input: Tensor, *, generator: Any = None) -> Tensor"],
    "normal": ["def normal(mean: Any = 0.0, std: Any = 1.0, *, generator: Any = None) -> Tensor"],
    "stride": ["def stride(self, dim: _int | None = None) -> Any"],
}
_ADDED = re.compile(r"    @overload\n(?:    @staticmethod\n)?    def \w+\([^\n]*: \.\.\.\n        # by hand\n\n|    @overload\n(?=    (?:@staticmethod|def ))")


def without_names(text):
    """The stub of `Tensor` without second names of parameters."""
    return _ADDED.sub("", text)


def with_names(text):
    """The stub of `Tensor` with second names of parameters: overloads that bindings leave out."""
    of_all, of_one = second_names()
    text, known = without_names(text), signatures()
    for name, signature in known.items():
        others = [signature.shown(names) for names in variants(signature, of_all, of_one)] + MORE_FORMS.get(name, [])
        if not others or name.startswith("__"):
            continue
        static = "    @staticmethod\n" if signature.is_static else ""
        before = "".join(f"    @overload\n{static}    {form}: ...\n        # by hand\n\n" for form in others)
        text, n = re.subn(rf"^{static}    def {name}\(", lambda m: f"{before}    @overload\n{m[0]}", text, count=1, flags=re.M)
        if n != 1:
            raise ValueError(f"_core.pyi: no method {name}")
    return text


def of_functions():
    """Methods of `Tensor` as functions of the module; the tensor may be called `input`."""
    import zyx
    from zyx import _names

    (of_all, of_one), known = second_names(), signatures()
    top = (PACKAGE / "__init__.pyi").read_text().split(FUNCTIONS, 1)[0]
    declared = set(re.findall(r"^def (\w+)|^from [.\w]+ import \w+ as (\w+)|^(\w+):", top, re.M))
    declared = {name for names in declared for name in names if name}
    lines = []
    for name in sorted(n for n in dir(zyx.Tensor) if callable(getattr(zyx.Tensor, n)) and not n.startswith("_") and n not in declared):
        signature = known.get(name) or known.get(zyx._aliases.ALIASES.get(name, ""))
        if signature is None:
            lines += [f"def {name}(*args: Any, **kwargs: Any) -> Any: ..."]
            continue
        more = ("out: Any = None",) if name in _names._OUT else ()
        forms = [signature.shown({"self": "input: Any"} | names, more) for names in ({}, *variants(signature, of_all, of_one))]
        forms += [form.replace("(self", "(input: Any") for form in MORE_FORMS.get(signature.name, [])]
        forms = [re.sub(r"^def \w+", f"def {name}", re.sub(r"\b(Size|Int)\b", "_int", re.sub(r"\bGenerator\b", "Any", form))) for form in dict.fromkeys(forms)]
        if len(forms) > 1:
            lines += [line for form in forms for line in ("@overload", form + ": ...")]
        else:
            lines += [forms[0] + ": ..."]
    aliases = re.findall(r"^(\w+): TypeAlias", (PACKAGE / "_core.pyi").read_text(), re.M)
    used = sorted({word for line in lines for word in re.findall(r"\w+", line)} & set(aliases) - {"_int", "_bool", "_float"})
    return [f"from ._core import {', '.join(used)}", "", *lines]


# Modules whose stubs are written whole from their code.
PLAIN = """
_types nn.init nn.utils nn.utils.rnn nn.utils.parametrize nn.utils.parametrizations optim.lr_scheduler optim.swa_utils utils.data utils.checkpoint linalg special fft func random autograd.functional accelerator cuda testing
"""
_KEPT_MEMBERS = ("__init__", "__call__", "__iter__", "__len__", "__getitem__", "__enter__", "__exit__")


def typed(node):
    """A function of Python with annotations: those that it has, else `Any`."""
    def kind(annotation):
        if annotation is None:
            return "Any"
        return annotation.value if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str) else ast.unparse(annotation)

    args = node.args
    for i, arg in enumerate([*args.posonlyargs, *args.args, *args.kwonlyargs, *filter(None, (args.vararg, args.kwarg))]):
        is_first = i == 0 and arg.arg in ("self", "cls")
        arg.annotation = None if is_first else ast.parse(kind(arg.annotation), mode="eval").body
    args.defaults = [d if isinstance(d, ast.Constant) else ast.Constant(...) for d in args.defaults]
    args.kw_defaults = [d if d is None or isinstance(d, ast.Constant) else ast.Constant(...) for d in args.kw_defaults]
    result = "None" if node.name == "__init__" else kind(node.returns)
    return f"def {node.name}({ast.unparse(args)}) -> {result}"


def of_class(node, cls):
    """The stub of a class that is written in Python."""
    bases = [ast.unparse(base) for base in node.bases if isinstance(base, (ast.Name, ast.Attribute))]
    bases = [base for base in bases if base.lstrip("_") == base and "." not in base]
    if any(isinstance(member, ast.FunctionDef) and member.name == "__class_getitem__" for member in node.body):
        bases.append("Generic[_T]")
    lines = [f"class {node.name}({', '.join(bases)}):" if bases else f"class {node.name}:"]
    methods = {member.name for member in node.body if isinstance(member, ast.FunctionDef)}
    own = [t for t in ast.walk(node) if isinstance(t, ast.Attribute) and isinstance(t.ctx, ast.Store) and ast.unparse(t.value) == "self"]
    lines += [f"    {name}: Any" for name in dict.fromkeys(t.attr for t in own) if not name.startswith("_") and name not in methods]
    for member in node.body:
        if isinstance(member, ast.FunctionDef) and (member.name in _KEPT_MEMBERS or not member.name.startswith("_")):
            decorators = [ast.unparse(d) for d in member.decorator_list]
            lines += [f"    @{d}" for d in decorators if d in ("property", "staticmethod", "classmethod") or d.endswith(".setter")]
            text = inspect.getdoc(getattr(cls, member.name, None))
            lines += [f"    {typed(member)}:", f'        """{re.sub(chr(92) + "s+", " ", text)}"""' if text and not member.name.startswith("__") else "        ..."]
        elif isinstance(member, ast.Assign):
            targets = [t.id for target in member.targets for t in ast.walk(target) if isinstance(t, ast.Name) and isinstance(t.ctx, ast.Store)]
            lines += [f"    {target}: Any" for target in targets if not target.startswith("_") and f"    {target}: Any" not in lines]
    if len(lines) == 1:
        lines.append("    ...")
    return lines


def plain(name):
    """The stub of a module that is written in Python."""
    import importlib

    module = importlib.import_module("zyx." + name)
    tree, known = ast.parse(pathlib.Path(module.__file__).read_text()), set()
    body, imports = [], []
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module != "__future__":
            names = [alias for alias in node.names if not (alias.asname or alias.name).startswith("_")]
            if names and (node.level or node.module.startswith("zyx")):
                imports.append(f"from {'.' * node.level}{node.module or ''} import " + ", ".join(f"{a.name} as {a.asname or a.name}" for a in names))
                known |= {a.asname or a.name for a in names}
        elif isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            known.add(node.name)
            body += [f"{typed(node)}:", doc(getattr(module, node.name), " " * 4), ""]
        elif isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            known.add(node.name)
            body += [*of_class(node, getattr(module, node.name)), ""]
    others = [n for n in dir(module) if not n.startswith("_") and n not in known and not inspect.ismodule(getattr(module, n, None))]
    others = [n for n in others if str(getattr(getattr(module, n, None), "__module__", "zyx")).startswith("zyx")]
    for other in others:
        item = getattr(module, other, None)
        if inspect.isclass(item):
            base = "(Tensor)" if hasattr(item, "_dtype") else ""
            body += [f"class {other}{base}:", "    def __init__(self, *args: Any, **kwargs: Any) -> None: ...", ""]
        else:
            body += [f"def {other}(*args: Any, **kwargs: Any) -> Any: ..." if callable(item) else f"{other}: Any", ""]
    intro = f'"""{inspect.getdoc(module).splitlines()[0]} Written by tools/python_stubs.py."""'
    return "\n".join([intro, "", "from typing import Any, Generic, TypeVar", *sorted(imports), "", '_T = TypeVar("_T")', "", *body]).rstrip() + "\n"


def plain_file(name):
    """The file of a stub that is written whole."""
    path = PACKAGE.joinpath(*name.split("."))
    return path / "__init__.pyi" if path.is_dir() else path.with_suffix(".pyi")


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
    text = with_overloads(file, f"{before}{START}\n\n{body}\n\n{indent}{END}{after}")
    if file == "_core.pyi":
        return with_names(text)
    if file == "__init__.pyi":
        return text.split(FUNCTIONS, 1)[0].rstrip() + f"\n\n{FUNCTIONS}\n\n" + "\n".join(of_functions()) + "\n"
    return text


def stale():
    """The stubs whose part is not current."""
    found = [file for file, make in PARTS.items() if current(file, make) != (PACKAGE / file).read_text()]
    files = [PACKAGE / name for name in WHOLE] + [plain_file(name) for name in PLAIN.split()]
    written = [make() for make in WHOLE.values()] + [plain(name) for name in PLAIN.split()]
    stale_files = [file for file, text in zip(files, written) if not file.exists() or file.read_text() != text]
    return found + [str(file.relative_to(PACKAGE)) for file in stale_files]


if __name__ == "__main__":
    if "--check" in sys.argv:
        print(*stale())
        sys.exit(bool(stale()))
    for name, part in PARTS.items():
        (PACKAGE / name).write_text(current(name, part))
    for name, whole in WHOLE.items():
        (PACKAGE / name).write_text(whole())
    for name in PLAIN.split():
        plain_file(name).write_text(plain(name))
