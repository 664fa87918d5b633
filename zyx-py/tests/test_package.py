"""The package as it is installed."""

import pathlib
import subprocess
import sys

import zyx


def test_import_is_quick():
    code = "import time; start = time.perf_counter(); import zyx; print(time.perf_counter() - start)"
    times = [float(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout) for _ in range(5)]
    print(f"import zyx: {min(times) * 1000:.1f} ms")
    # A few milliseconds on a quiet machine; tests may share theirs.
    assert min(times) < 0.1


def test_import_loads_nothing_else():
    code = "import sys; before = set(sys.modules); import zyx; print(sorted(m for m in set(sys.modules) - before))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout
    assert "numpy" not in out and "zyx.nn" not in out


def test_typed_and_versioned():
    assert (pathlib.Path(zyx.__file__).parent / "py.typed").exists()
    assert zyx.__version__.count(".") == 2
