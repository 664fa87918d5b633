"""Ctrl-C at random moments: heard within a second, and all results right afterwards. `interrupts.py` has the work."""

import os
import pathlib
import subprocess
import sys

import pytest

PROGRAM = str(pathlib.Path(__file__).with_name("interrupts.py"))


@pytest.mark.skipif(sys.platform == "win32", reason="signals of Unix")
def test_ctrl_c_is_heard_at_any_moment():
    rounds = os.environ.get("ZYX_SIGNALS", "24")
    done = subprocess.run([sys.executable, "-W", "ignore", PROGRAM, rounds], capture_output=True, text=True)
    print(done.stdout)
    assert done.returncode == 0 and done.stdout.endswith("fine\n"), done.stdout[-2000:] + done.stderr[-3000:]


@pytest.mark.skipif(sys.platform == "win32", reason="signals of Unix")
def test_handlers_that_return_do_not_end_the_work():
    """They run after the call, whose result is right."""
    program = """
import os, signal, threading, time
import zyx
heard = []
def handler(*_):
    # A handler may use the library.
    heard.append(zyx.ones(3).sum().item())
signal.signal(signal.SIGINT, handler)
x = (zyx.ones(700, 700) / 700).realize()
for i in range(5):
    threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
    y = x
    for _ in range(30 + i):
        y = (y @ x).contiguous()
    assert abs(y.sum().item() - 700) < 1, y.sum().item()
    time.sleep(0.1)
assert heard == [3.0] * 5, heard
# The default again: the library notices.
signal.signal(signal.SIGINT, signal.default_int_handler)
time.sleep(0.1)
threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
started = time.time()
try:
    while True:
        y = x
        for i in range(3000):
            y = (y @ x).contiguous()
        y.sum().item()
except KeyboardInterrupt:
    assert time.time() - started < 1.5, time.time() - started
    print("fine")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and done.stdout == "fine\n", done.stderr
