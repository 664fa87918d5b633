"""The parameters of PyTorch's functions, methods, layers and optimizers: `data/pytorch_signatures.txt`.

A line has a name and, for each way to call it, the names of its parameters in order; `*` comes before those that are
given by name only, `*x` takes any number. What PyTorch writes in C++ is read from its type stubs and documentation, the
rest from the functions themselves.

    python zyx-py/tests/pytorch_signatures.py

writes the file again, with PyTorch; this needs `torch`.
"""

import ast
import inspect
import pathlib
import re

FILE = pathlib.Path(__file__).with_name("data") / "pytorch_signatures.txt"


def of_stub(node):
    """The parameters of a `def` of a stub."""
    args = node.args
    names = [a.arg for a in [*args.posonlyargs, *args.args]]
    if args.vararg:
        names.append("*" + args.vararg.arg)
    elif args.kwonlyargs:
        names.append("*")
    return ", ".join([*names, *(a.arg for a in args.kwonlyargs)])


def of_function(function):
    """The parameters of a function of Python, or of its documentation."""
    try:
        shown = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        first = re.match(r" *[\w.]*\((.*?)\) *(->.*)?\n", (function.__doc__ or "").strip())
        if not first:
            return None
        names = [re.split(r"[:=]", part)[0].strip() for part in re.sub(r"\([^()]*\)", "", first[1]).split(",")]
        return ", ".join(name for name in names if name and name != "/")
    names = []
    for p in shown:
        if p.kind == p.KEYWORD_ONLY and not any(name.startswith("*") for name in names):
            names.append("*")
        names.append(("*" if p.kind == p.VAR_POSITIONAL else "**" if p.kind == p.VAR_KEYWORD else "") + p.name)
    return ", ".join(names)


def collect():
    """Name and ways to call, of everything."""
    import torch

    stubs = pathlib.Path(torch.__file__).parent / "_C"
    found = {}

    def add(name, parameters):
        if parameters is not None and parameters not in found.setdefault(name, []):
            found[name].append(parameters)

    def defs(text, prefix):
        for node in text.body:
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                add(prefix + node.name, of_stub(node).removeprefix("self, ").removeprefix("self"))

    defs(ast.parse((stubs / "_VariableFunctions.pyi").read_text()), "torch.")
    for node in ast.parse((stubs / "__init__.pyi").read_text()).body:
        if isinstance(node, ast.ClassDef) and node.name == "TensorBase":
            defs(node, "torch.Tensor.")
    functions = [torch, torch.nn.functional, torch.nn.init, torch.nn.utils, torch.linalg, torch.special, torch.fft, torch.autograd]
    for module in functions:
        for name in dir(module):
            item, full = getattr(module, name), f"{module.__name__}.{name}"
            if not name.startswith("_") and inspect.isroutine(item) and full not in found:
                add(full, of_function(item))
    for module in (torch.nn, torch.optim, torch.optim.lr_scheduler, torch.utils.data):
        for name in dir(module):
            item = getattr(module, name)
            if not name.startswith("_") and inspect.isclass(item):
                add(f"{module.__name__}.{name}", of_function(item))
    for name in dir(torch.nn.Module):
        if not name.startswith("_") and inspect.isroutine(getattr(torch.nn.Module, name)):
            add(f"torch.nn.Module.{name}", of_function(getattr(torch.nn.Module, name)).removeprefix("self, ").removeprefix("self"))
    return found


def main():
    lines = (f"{name}: {' | '.join(ways)}" for name, ways in sorted(collect().items()) if not name.endswith("_out"))
    FILE.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
