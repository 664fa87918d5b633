"""The names of Rust and of Python are the same; stub and module agree."""

import ast
import importlib
import inspect
import pathlib
import sys

import pytest
import zyx
from zyx import _aliases

HERE = pathlib.Path(__file__).resolve()
sys.path.insert(0, str(HERE.parents[1] / "tools"))
import rust_api  # noqa: E402

PACKAGE = HERE.parents[1] / "python" / "zyx"


def test_every_method_of_rust_is_there():
    methods = rust_api.methods()
    assert len(methods) > 150
    there = set(dir(zyx.Tensor))
    missing = [n for n in methods if n not in there and not rust_api.reason(n, methods)]
    assert not missing, f"run zyx-py/tools/rust_api.py for drafts of their entries: {missing}"


def test_explanations_are_needed():
    methods, there = rust_api.methods(), set(dir(zyx.Tensor))
    for name, why in rust_api.ELSEWHERE.items():
        assert name in methods and name not in there, (name, why)


def test_every_method_of_a_device_is_there():
    rust, python = rust_api.device_methods(), set(dir(zyx.Device))
    assert len(rust) > 15
    assert not rust - python - set(rust_api.DEVICE_ELSEWHERE)
    assert set(rust_api.DEVICE_ELSEWHERE) <= rust - python, "an explanation that is not needed"


def test_the_kernel_language_is_there():
    rust = rust_api.lang_methods()
    python = {f"{kind}.{name}" for kind in rust_api.LANG for name in dir(getattr(zyx.lang, kind))}
    assert {name.split(".")[0] for name in rust} == set(rust_api.LANG) and len(rust) > 100
    assert not rust - python - set(rust_api.LANG_ELSEWHERE)
    assert set(rust_api.LANG_ELSEWHERE) <= rust - python, "an explanation that is not needed"


def test_every_layer_and_optimizer_of_rust_is_there():
    for crate, module in [("nn", zyx.nn), ("optim", zyx.optim)]:
        missing = [n for n in rust_api.types(crate) if not hasattr(module, n)]
        assert not missing, f"{crate}: {missing}"


def test_names_are_written_down():
    text = rust_api.table()
    assert "MISSING" not in text and "UNEXPLAINED" not in text, [line for line in text.splitlines() if "UNEXPLAINED" in line]
    assert rust_api.NAMES.read_text() == text, "run zyx-py/tools/rust_api.py --table"
    gone = set(rust_api.PYTHON_ONLY) - set(rust_api.python_names())
    assert not gone, f"explained, and not there or a name of Rust: {sorted(gone)}"


def test_names_of_the_module_are_explained():
    # What the stubs do not declare would be missed above.
    known = set(rust_api.methods()) | set(rust_api.python_names()) | set(zyx._SUBMODULES)
    classes = {name for name in dir(zyx) if inspect.isclass(getattr(zyx, name)) and not name.startswith("_")}
    values = {name for name in dir(zyx) if isinstance(getattr(zyx, name), zyx.DType) or not callable(getattr(zyx, name))}
    loose = {name for name in dir(zyx) if not name.startswith("_")} - known - classes - values
    assert not loose, sorted(loose)


def test_what_pytorch_has_alone_is_not_here():
    text = (rust_api.ROOT / "docs" / "peers.md").read_text().split("## What PyTorch has and we lack")[1]
    rows = [line.split("|") for line in text.splitlines() if line.startswith("| `")]
    names = [name for row in rows for name in row[1].replace("`", " ").split()]
    assert len(names) > 30 and all(row[3].strip() for row in rows)
    modules = [zyx, zyx.nn.functional, zyx.linalg, zyx.special, zyx.fft]
    there = [name for name in names if any(hasattr(module, name) for module in modules)]
    assert not there, there


STUBS = sorted(PACKAGE.rglob("*.pyi"))


@pytest.mark.parametrize("stub", STUBS, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_stubs_agree_with_the_modules(stub):
    name = ".".join(["zyx", *stub.relative_to(PACKAGE).with_suffix("").parts]).removesuffix(".__init__")
    module = importlib.import_module(name)
    tree = ast.parse(stub.read_text())
    aliases = {"Scalar"} | {n.target.id for n in tree.body if isinstance(n, ast.AnnAssign)}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            assert callable(getattr(module, node.name)), node.name
        if isinstance(node, ast.ClassDef) and node.name not in aliases:
            cls = getattr(module, node.name)
            for member in node.body:
                if not isinstance(member, ast.FunctionDef):
                    continue
                found = getattr(cls, member.name)
                doc = ast.get_docstring(member)
                if not doc and any(ast.unparse(d) == "overload" for d in member.decorator_list):
                    # PyTorch's names of parameters; the last overload has those of the function.
                    continue
                assert doc or member.name.startswith("__"), f"{node.name}.{member.name} has no docstring"
                if isinstance(found, property) or member.name.startswith("__") or not doc:
                    continue
                # The signature that `help` shows has the parameters of the stub.
                names = [a.arg for a in [*member.args.posonlyargs, *member.args.args, *member.args.kwonlyargs]]
                try:
                    shown = inspect.signature(found)
                except (TypeError, ValueError):
                    continue
                shown = [p for p in shown.parameters.values() if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
                assert [p.name for p in shown] == names, f"{node.name}.{member.name}"
    if name == "zyx._core":
        declared = {n.name for c in tree.body if isinstance(c, ast.ClassDef) for n in c.body if isinstance(n, ast.FunctionDef)}
        body = next(c for c in tree.body if isinstance(c, ast.ClassDef) and c.name == "Tensor").body
        second = {n.targets[0].id: n.value.id for n in body if isinstance(n, ast.Assign)}
        assert second == _aliases.ALIASES
        extra = {n for n in vars(zyx.Tensor) if not n.startswith("_")} - declared - set(second)
        assert not extra, f"not in the stub: {sorted(extra)}"


def test_everything_has_a_docstring():
    for name in dir(zyx.Tensor):
        if not name.startswith("_"):
            assert inspect.getdoc(getattr(zyx.Tensor, name)), name
    for module in [zyx, zyx.nn, zyx.optim, zyx.array_api]:
        for name in dir(module):
            item = getattr(module, name)
            if not name.startswith("_") and (inspect.isroutine(item) or inspect.isclass(item)):
                assert inspect.getdoc(item), f"{module.__name__}.{name}"
