"""The package as it is installed."""

import pathlib
import re
import subprocess
import sys

import pytest
import zyx

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_import_is_quick():
    resource = pytest.importorskip("resource")

    def seconds(code):
        """Time that processors spend on a fresh interpreter that runs this. Not the time that passes, of which the
        tests beside this one have their share.
        """
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", code], check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    both = [(seconds("pass"), seconds("import zyx")) for _ in range(10)]
    bare, with_zyx = (min(times) for times in zip(*both))
    print(f"import zyx: {(with_zyx - bare) * 1000:.1f} ms, the interpreter alone {bare * 1000:.1f} ms")
    # 2.3 ms on a quiet machine. On slow ones the interpreter alone takes longer, too: 16 ms where this takes 10.
    assert 0 < with_zyx - bare < max(0.010, 0.8 * bare)


def test_import_loads_nothing_else():
    code = "import sys; before = set(sys.modules); import zyx; print(sorted(m for m in set(sys.modules) - before))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout
    assert "numpy" not in out and "zyx.nn" not in out


def test_typed_and_versioned():
    assert (pathlib.Path(zyx.__file__).parent / "py.typed").exists()
    assert zyx.__version__.count(".") == 2


@pytest.mark.parametrize("file", ["zyx-py/README.md", "docs/guide/from-pytorch.md"])
def test_programs_of_the_documents_run(file, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    programs = re.findall(r"```python\n(.*?)```", (ROOT / file).read_text(), re.S)
    assert programs
    for program in programs:
        program = re.sub(r"^(import|from) torch", r"\1 zyx", program, flags=re.M).replace("import zyx\n", "import zyx as torch\nimport zyx\n")
        exec(compile(program, file, "exec"), {})
