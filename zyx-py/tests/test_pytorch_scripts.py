"""Programs of PyTorch run with their imports changed."""

import os
import pathlib
import re
import subprocess
import sys

import pytest
import zyx

SCRIPTS = sorted((pathlib.Path(__file__).with_name("data") / "scripts").glob("*.py"))


def ported(text):
    """The program with imports of zyx."""
    text = re.sub(r"^(from|import) torch\b(?=\.|,? |$)", lambda m: m[0].replace("torch", "zyx"), text, flags=re.M)
    text = re.sub(r"^import zyx$", "import zyx as torch", text, flags=re.M)
    return re.sub(r"^import zyx, (.*)$", lambda m: "import zyx as torch, " + m[1].replace("torch", "zyx"), text, flags=re.M)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda p: p.stem)
def test_programs_run(script, tmp_path):
    program = tmp_path / script.name
    program.write_text(ported(script.read_text()))
    assert not re.search(r"^(from|import) torch\b", program.read_text(), re.M)
    path = os.pathsep.join([str(pathlib.Path(zyx.__file__).resolve().parents[1]), os.environ.get("PYTHONPATH", "")])
    found = subprocess.run([sys.executable, "-W", "ignore", str(program)], capture_output=True, text=True, timeout=300, cwd=tmp_path,
                           env=os.environ | {"PYTHONPATH": path})  # fmt: skip
    assert found.returncode == 0, found.stderr[-2000:]
    # Each part prints its results, none of which is NaN.
    assert len(found.stdout.splitlines()) > 10 and "nan" not in found.stdout


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda p: p.stem)
def test_programs_are_of_pytorch(script, tmp_path):
    pytest.importorskip("torch")
    program = tmp_path / script.name
    program.write_text(script.read_text())
    found = subprocess.run([sys.executable, "-W", "ignore", str(program)], capture_output=True, text=True, timeout=300, cwd=tmp_path)
    assert found.returncode == 0, found.stderr[-2000:]
