"""Exceptions have the types that users of PyTorch and NumPy expect, and the Rust error's text."""

import os
import subprocess
import sys

import pytest
import zyx


def test_types():
    x = zyx.ones(2, 3)
    cases = [
        (lambda: x @ x, zyx.ShapeError, "inner extents differ"),
        (lambda: x + zyx.ones(4), zyx.ShapeError, "do not broadcast"),
        (lambda: x.reshape(5), zyx.ShapeError, "6 elements"),
        (lambda: x.sum(7), zyx.AxisError, "out of range"),
        (lambda: x.select(1, 3), IndexError, "index 3 is out of range; allowed are -3 to 2"),
        (lambda: zyx.ones(2).bitwise_not(), zyx.DTypeError, "bit operations"),
        (lambda: x.cross_entropy([0, 1], label_smoothing=2.0), ValueError, "label_smoothing"),
        (lambda: x.gather(0), TypeError, "missing required argument: 'index'"),
        (lambda: x.exp(1), TypeError, "argument"),
        (lambda: x.sum(axes=1), TypeError, "axes"),
        (lambda: x.mse_loss(x, reduction="median"), ValueError, "'median' is not a reduction"),
        (lambda: x.cast("float3"), TypeError, "'float3' is not a dtype"),
        (lambda: zyx.load_safetensors("/does/not/exist"), FileNotFoundError, "/does/not/exist"),
        (lambda: x.no_such_method(), AttributeError, "no_such_method"),
        (lambda: zyx.zeros(-1), ValueError, "negative"),
        (lambda: zyx.zeros(2.5), TypeError, "integer"),
        (lambda: zyx.zeros("a"), TypeError, "integer"),
    ]
    for call, kind, text in cases:
        with pytest.raises(kind, match=text) as caught:
            call()
        assert ".rs:" not in str(caught.value)


def test_warnings():
    def run(blocked):
        command = [sys.executable, "-W", "always", "-c", "import zyx; zyx.ones(2).realize()"]
        environment = {**os.environ, "ZYX_BLOCKLIST": blocked, "ZYX_DEVICE": ""}
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True)

    # Whatever there is, this one is passed over, and Python says so once, at the line of the program.
    told = run(str(zyx.device())).stderr
    assert told.count("UserWarning") == 1 and "ZYX_BLOCKLIST names it" in told, told
    everything = run("cuda,vulkan,wgpu,opencl,cpu")
    assert everything.stdout == "" and "<string>:1: UserWarning" in everything.stderr, everything


def test_bases():
    assert issubclass(zyx.ShapeError, ValueError) and issubclass(zyx.ShapeError, RuntimeError)
    assert issubclass(zyx.DTypeError, TypeError) and issubclass(zyx.DTypeError, RuntimeError)
    assert issubclass(zyx.AxisError, IndexError) and issubclass(zyx.AxisError, ValueError)
    assert issubclass(zyx.OutOfMemoryError, MemoryError) and issubclass(zyx.OutOfMemoryError, RuntimeError)


def test_memory_that_is_not_there():
    device = zyx.Device("reference")
    device.set_memory_limit(1 << 20)
    try:
        with pytest.raises(MemoryError):
            zyx.rand(1 << 20, device=device).realize()
        # Nothing is lost.
        assert zyx.tensor([1.0], device=device).item() == 1
    finally:
        device.set_memory_limit(None)
    with pytest.raises((MemoryError, ValueError)):
        zyx.zeros(1 << 62).numpy()


def test_checked_mode():
    device = zyx.Device("reference")
    x = zyx.tensor([[1.0, 0.0], [4.0, 2.0]], device=device)
    assert not device.is_checked()
    device.set_checked()
    try:
        y = x.log()  # line A
        index = zyx.tensor([0, 7], device=device)
        z = zyx.nn.functional.embedding(index, x)  # line B
        line = test_checked_mode.__code__.co_firstlineno + 6
        cases = [
            (y.sum(), r"log: the result is -inf at \[0, 1\], where the operand is 0", line),
            (z + 1, r"embedding: the index is 7 at \[1\], out of range 0 to 1", line + 2),
        ]
        for tensor, text, line in cases:
            with pytest.raises(ValueError, match=text) as caught:
                tensor.tolist()
            assert f", at {__file__}:{line}" in str(caught.value)
        assert (x * 2).tolist() == [[2, 0], [8, 4]]
        w = zyx.tensor([0.0, 4.0], device=device, requires_grad=True)
        with pytest.raises(ValueError, match="inf at"):
            w.sqrt().sum().gradient(w)[0].tolist()
    finally:
        device.set_checked(False)
    assert x.log().tolist()[0][1] == float("-inf")
