"""Exceptions have the types that users of PyTorch and NumPy expect, and the Rust error's text."""

import math
import os
import subprocess
import sys

import pytest
import zyx
import zyx.nn.functional as F


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


def out_of_range(device):
    """Calls with an index or a class number out of range, as functions of how the index comes about."""
    x = zyx.arange(12.0, device=device).reshape(4, 3)
    w = zyx.tensor([[0.1, 0.2, 0.3], [0.3, 0.2, 0.1]], device=device, requires_grad=True)
    zero = zyx.zeros((2, 3), device=device)
    return [
        ([0, 7], lambda i: F.cross_entropy(w, i)),
        ([0, -1], lambda i: F.nll_loss(w, i)),
        ([9, 0], lambda i: x.index_select(0, i)),
        ([0, 4], lambda i: x.gather(0, i.reshape(2, 1))),
        ([0, -1], lambda i: x.scatter(0, i.reshape(2, 1), zero[:, :1])),
        ([4, 0], lambda i: x.index_add(0, i, zero)),
        ([0, 5], lambda i: F.one_hot(i, 5)),
        ([-5, 0], lambda i: x[i]),
        ([0, 3], lambda i: x[:, i]),
        ([12, 0], lambda i: x.take(i)),
        ([0, 9], lambda i: F.embedding(i, x)),
    ]


@pytest.mark.parametrize("spec", ["cpu", "reference"])
def test_indices_out_of_range(spec):
    device = zyx.Device(spec)
    key = zyx.tensor([5, 1], device=device)
    for index, call in out_of_range(device):
        given = zyx.tensor(index, device=device)
        good = zyx.tensor([0, 1], device=device)
        with pytest.raises(IndexError, match="the index is"):
            call(given).tolist()
        # Nothing is known of what is computed before it is read, and then it is an error each time.
        y = call(given ^ key ^ key)
        for _ in range(2):
            with pytest.raises(IndexError, match="the index is .* out of range"):
                y.tolist()
        with pytest.raises(IndexError):
            zyx.jit(call)(given).tolist()
        call(good).tolist(), call(good ^ key ^ key).tolist(), zyx.jit(call)(good).tolist()
        assert (key * 2).tolist() == [10, 2]
    with pytest.raises(IndexError):
        zyx.nn.Embedding(4, 2)(zyx.tensor([9])).tolist()
    ignored = zyx.tensor([2, -100])
    assert math.isfinite(F.cross_entropy(zyx.zeros((2, 3)), ignored).item())


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
            (y.sum(), ValueError, r"log: the result is -inf at \[0, 1\], where the operand is 0", line),
            (z + 1, IndexError, r"embedding: the index is 7 at \[1\], out of range 0 to 1", line + 2),
        ]
        for tensor, error, text, line in cases:
            with pytest.raises(error, match=text) as caught:
                tensor.tolist()
            assert f", at {__file__}:{line}" in str(caught.value)
        assert (x * 2).tolist() == [[2, 0], [8, 4]]
        w = zyx.tensor([0.0, 4.0], device=device, requires_grad=True)
        with pytest.raises(ValueError, match="inf at"):
            w.sqrt().sum().gradient(w)[0].tolist()
    finally:
        device.set_checked(False)
    assert x.log().tolist()[0][1] == float("-inf")
