"""Hostile arguments end in a result or an exception: never in a signal, an abort, a panic or a call that does not return.

The calls are those of `hostile.py`, made in processes with little memory. `ZYX_SEED=n` makes others; a fault names the
command that makes its call again.
"""

import os
import subprocess
import sys
from pathlib import Path

import zyx

SCRIPT = Path(__file__).with_name("hostile.py")
SEED = int(os.environ.get("ZYX_SEED", "0"))
# The most seconds that one call may take, on a machine that does much else.
PATIENCE = 90


def run(folder, seed, first, last):
    """What calls `first` to `last` of a seed end in: the lines of the process and how it ended."""
    lines, end = folder / "lines", None
    environment = {**os.environ, "HOSTILE_FOLDER": str(folder), "PYTHONPATH": os.pathsep.join(sys.path)}
    with open(lines, "wb") as log:
        command = [sys.executable, SCRIPT, str(seed), str(first), str(last), str(log.fileno()), str(PATIENCE)]
        done = subprocess.run(command, env=environment, pass_fds=[log.fileno()], capture_output=True)
        end = f"exit status {done.returncode}\n{done.stderr.decode(errors='replace')[-2000:]}"
    return lines.read_text(errors="replace").splitlines(), end


def test_every_public_function(tmp_path):
    lines, end = run(tmp_path, SEED, 0, -1)
    faults = [line for line in lines if line.startswith("FAULT")]
    if not lines or lines[-1] != "DONE":
        faults.append(f"{lines[-1] if lines else 'nothing'}\n{end}")
    assert not faults, f"again: {SCRIPT} {SEED} NUMBER NUMBER+1\n" + "\n".join(faults)
    calls = {line.split()[1] for line in lines if line[0].isdigit()}
    assert len(calls) > 1500 and "zyx.tensor" in calls and "Tensor().cat" in calls


def test_faults_are_seen(tmp_path):
    """What ends the process, or panics, is no silent end of the test."""
    for kind in ["abort", "panic"]:
        lines, _ = run(tmp_path, SEED, kind, 0)
        assert not lines or lines[-1] != "DONE" or any(line.startswith("FAULT") for line in lines), kind


def test_known_faults():
    """Calls that once aborted the process, or panicked."""
    import numpy as np
    import pytest

    x = zyx.ones(3)
    for number in [2**25, 2**40, 2**63, 2**64 - 1]:
        with pytest.raises((ValueError, OverflowError, MemoryError)):
            x.tensor_split(number)
        with pytest.raises((ValueError, OverflowError, MemoryError)):
            x.histogram(number)
    for shape in [(2**40,), (2**31, 2**20), (2**59,)]:
        with pytest.raises((ValueError, MemoryError)):
            zyx.tensor(np.broadcast_to(np.zeros(1), shape))

    class Huge:
        def __len__(self):
            return 2**62

        def __getitem__(self, i):
            return [x][i]

    for call in [lambda: zyx.clip_norm(Huge(), 1.0), lambda: zyx.clip_value(Huge(), 1.0), lambda: zyx.cat(Huge())]:
        with pytest.raises((ValueError, TypeError)):
            call()
