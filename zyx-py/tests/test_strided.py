"""Strides, `as_strided`, `set_`, `resize_`; random streams and their places; default dtypes and devices; printed forms;
regions that are computed again. Numbers and texts are those that PyTorch gives.
"""

import subprocess
import sys
import threading

import numpy as np
import pytest
import zyx
from zyx import nn
from zyx.utils.checkpoint import CheckpointError, checkpoint


def test_places_in_memory():
    x = zyx.arange(12.0).reshape(3, 4)
    v = x.as_strided((2, 3), (4, 1), 1)
    assert v.tolist() == [[1, 2, 3], [5, 6, 7]] and v.stride() == (4, 1) and v.storage_offset() == 1 and not v.is_contiguous()
    v.mul_(10)
    x[0, 1] = -1
    assert x.tolist() == [[0, -1, 20, 30], [4, 50, 60, 70], [8, 9, 10, 11]] and v.tolist() == [[-1, 20, 30], [50, 60, 70]]
    assert x[1:].as_strided((2, 2), (1, 2)).tolist() == [[4, 60], [50, 70]] and x.t().as_strided((2,), (5,)).tolist() == [0, 50]
    assert x[1].as_strided((3,), (1,), 0).tolist() == [0, -1, 20] and zyx.as_strided(x, (2,), (1,)).tolist() == [0, -1]
    part = x[1:, ::2]
    assert part.stride() == (4, 2) and part.storage_offset() == 4 and x.t().stride(0) == 1 and x.unfold(1, 2, 1).stride() == (4, 1, 1)
    assert x.expand(2, 3, 4).stride() == (0, 4, 1) and x.diagonal().stride() == (5,) and x.stride(-1) == 1
    assert x.stride(1, 1, 2).tolist() == [[-1, 30], [50, 70], [9, 11]]
    found = x.as_strided_scatter(zyx.zeros(2), (2,), (5,))
    assert found.tolist() == [[0, -1, 20, 30], [4, 0, 60, 70], [8, 9, 10, 11]] and x[1, 1].item() == 50
    assert x.t().as_strided_scatter(zyx.zeros(2), (2,), (1,)).tolist()[0] == [0, 4, 8]
    assert zyx.empty_strided((2, 3), (1, 2)).stride() == (1, 2) == x.new_empty_strided((2, 3), (1, 2)).stride()


def test_gradients_of_places():
    y = zyx.arange(6.0, requires_grad=True)
    windows = (y * 1).as_strided((3, 2), (1, 1))
    (windows * zyx.tensor([1.0, 10.0])).sum().backward()
    assert y.grad.tolist() == [1, 11, 11, 10, 0, 0]
    with zyx.no_grad():
        assert not (y * 1).as_strided((2,), (1,)).requires_grad


def test_errors_of_places():
    x = zyx.arange(12.0).reshape(3, 4)
    for wrong, error, text in [
        (lambda: x.as_strided((2,), (-1,)), RuntimeError, r"Negative strides are not supported at the moment, got strides: \[-1\]"),
        (lambda: x.as_strided((2, 2), (1,)), RuntimeError, "mismatch in length of strides and shape"),
        (lambda: x.as_strided((20,), (1,)), RuntimeError, r"sizes \[20\], strides \[1\], storage offset 0, and itemsize 4 requiring a storage size of 80 are out of bounds for storage of size 48"),
        (lambda: x.as_strided((2,), (1,), -1), RuntimeError, "invalid storage offset -1"),
        (lambda: x.stride(5), IndexError, r"expected to be in range of \[-2, 1\], but got 5"),
        (lambda: x.as_strided((2, 2), (1, 1)).zero_().add_(zyx.ones(2, 2)), RuntimeError, "single memory location"),
        (lambda: (zyx.arange(4) + 0)[1:].as_strided((4,), (1,), 0), RuntimeError, "is gone"),
        (lambda: zyx.ones(2).set_(zyx.ones(2).long()), RuntimeError, "Could not set tensor of type"),
        (lambda: zyx.ones(2, requires_grad=True).resize_(3), RuntimeError, "cannot resize variables that require grad"),
        (lambda: zyx.ones(2, requires_grad=True).set_(x), RuntimeError, "a leaf Variable that requires grad"),
    ]:
        with pytest.raises(error, match=text):
            wrong()


def test_tensors_become_others():
    a, b = zyx.ones(3), zyx.zeros(2, 2)
    assert a.set_(b) is a
    b[0, 0] = 5
    assert a.tolist() == [[5, 0], [0, 0]] and a.set_(b, 1, (2,), (1,)).tolist() == [0, 0] and a.set_().shape == (0,)
    c = zyx.arange(6)
    assert c.resize_(2, 2).tolist() == [[0, 1], [2, 3]] and c.resize_((2, 3)).tolist() == [[0, 1, 2], [3, 4, 5]]
    assert c.resize_(8).shape == (8,) and c[:6].tolist() == [0, 1, 2, 3, 4, 5] and c.resize_as_(zyx.ones(2, 1)).tolist() == [[0], [1]]
    row = c[0]
    with pytest.raises(RuntimeError, match="would share memory no longer"):
        c.resize_(100)
    assert row.tolist() == [0]


def test_shapes_count():
    x = zyx.ones(2, 3, 4)
    assert type(x.shape) is zyx.Size and type(x.size()) is zyx.Size and x.shape.numel() == 24 and x.shape[1:].numel() == 12 and (x.shape + (2,)).numel() == 48
    assert x.shape == (2, 3, 4) and not isinstance((2, 3), zyx.Size) and repr(x.shape) == "zyx.Size([2, 3, 4])" and len({x.shape, (2, 3, 4)}) == 1 and x.shape[0] == 2


def test_places_of_random_streams():
    zyx.manual_seed(3)
    state = zyx.get_rng_state()
    first = zyx.rand(3).tolist()
    with zyx.random.fork_rng():
        zyx.rand(2)
        zyx.manual_seed(9)
    second = zyx.rand(3).tolist()
    zyx.set_rng_state(state)
    assert zyx.rand(3).tolist() == first and zyx.rand(3).tolist() == second != first
    with zyx.random.fork_rng(enabled=False):
        zyx.rand(1)
    assert zyx.default_generator.get_state().dtype == zyx.uint8 and state.shape == (32,)
    generator = zyx.Generator().manual_seed(1)
    with zyx.random.fork_rng():
        zyx.default_generator.set_state(generator.get_state())
        assert zyx.rand(2).tolist() == zyx.rand(2, generator=generator).tolist()


FLOATS = """
import zyx, json
i, found = zyx.arange(4), {}
for name in ("float64", "float16", "float32"):
    zyx.set_default_dtype(getattr(zyx, name))
    t = zyx
    made = [t.tensor(1.5), t.tensor([1, 2.0]), t.zeros(2), t.ones(1), t.rand(1), t.randn(1), t.full((1,), 1.5), t.empty(1), t.linspace(0, 1, 3), t.eye(2), t.arange(0.0, 2.0),
            t.scalar_tensor(2), t.as_tensor(2.5), t.range(0, 2), t.logspace(0, 1, 2), t.hann_window(3), t.nn.Linear(2, 2).weight, t.nn.LayerNorm(2).weight,
            t.nn.LSTM(2, 2).weight_ih_l0, t.nn.MultiheadAttention(2, 1).in_proj_weight, t.nn.BatchNorm1d(2).weight, t.nn.Embedding(2, 2).weight]
    computed = [i / 2, i + 1.5, 2.0 * i, i**0.5, i.sqrt(), i.exp(), t.sigmoid(i), i.true_divide(2), t.div(i, i), i.mul(0.5), i.clamp(max=1.5), t.where(i > 1, 1.0, 2.0),
                t.tensor(True) * 1.5, i // 2.0, i.rsqrt(), i.reciprocal(), t.tensor([1.5]).to(t.int32) / 3]
    others = [i * 2, i - 1, t.floor_divide(i, 2), i.div(2, rounding_mode="floor"), t.tensor([1]), t.arange(3), i.float(), i.to(t.float32), t.ones(2, dtype=t.float32) * 1.5]
    assert t.get_default_dtype() is getattr(t, name)
    found[name] = [sorted({x.dtype.name for x in made}), sorted({x.dtype.name for x in computed}), sorted({x.dtype.name for x in others})]
    found[name].append([(t.tensor(0.1) * 3).item(), (i / 3).tolist()[1], t.where(i > 1, 0.1, 0.2).tolist()[3]] if name == "float64" else None)
print(json.dumps(found))
"""


def test_default_dtypes():
    import json

    out = subprocess.run([sys.executable, "-c", FLOATS], capture_output=True, check=True, text=True, timeout=60).stdout
    found = json.loads(out)
    for name, (made, computed, others, _) in found.items():
        assert made == computed == [name] and others == ["float32", "int64"], name
    assert found["float64"][3] == [0.1 * 3, 1 / 3, 0.1]
    for wrong in (zyx.int64, 5):
        with pytest.raises(TypeError, match="only floating-point types are supported as the default type"):
            zyx.set_default_dtype(wrong)
    assert zyx.get_default_dtype() is zyx.float32


def test_default_devices():
    here = zyx.device()
    try:
        zyx.set_default_device("reference")
        assert zyx.ones(1).device == "reference" == zyx.get_default_device() and nn.Linear(1, 1).weight.device == "reference" and zyx.tensor([1]).device == "reference"
        with zyx.device("cpu") as device:
            assert device == "cpu" and zyx.rand(1).device == "cpu"
            with zyx.device("reference"):
                assert zyx.ones(1).device == "reference"
            assert zyx.ones(1).device == "cpu"
        assert zyx.ones(1).device == "reference"
        seen = []
        thread = threading.Thread(target=lambda: seen.append(zyx.ones(1).device))
        thread.start()
        thread.join()
        assert seen == [here]
    finally:
        zyx.set_default_device(None)
    assert zyx.ones(1).device == here


PRINTED = """
import zyx
zyx.set_printoptions(precision=2)
print(zyx.tensor([1.0, 2.5]), zyx.tensor([1e-8, 1e5]), zyx.tensor([[1, 2], [3, 400]]), zyx.tensor(3.5), zyx.tensor([True, False]), sep="\\n")
print(zyx.zeros(2000), zyx.arange(1200).reshape(30, 40), zyx.tensor([1.0, float("nan"), float("inf")]), zyx.zeros(2, 0), zyx.tensor([1 / 3, 100.25]), sep="\\n")
zyx.set_printoptions(profile="default", sci_mode=False)
print(zyx.tensor([1e-8, 1e5]), zyx.tensor([1.0], requires_grad=True), zyx.nn.Parameter(zyx.ones(1)), zyx.arange(8).reshape(2, 2, 2), zyx.arange(40), sep="\\n")
print(sorted(zyx.get_printoptions().items()), repr(zyx.tensor([1.0, 2.0])), f"{zyx.tensor(1.5):.2f}")
zyx.set_printoptions(threshold=5, edgeitems=1, linewidth=30)
print(zyx.arange(24.0).reshape(2, 3, 4))
"""
# PyTorch's output for the same program.
EXPECTED = """
tensor([1.00, 2.50])
tensor([1.00e-08, 1.00e+05])
tensor([[  1,   2],
        [  3, 400]])
tensor(3.50)
tensor([ True, False])
tensor([0., 0., 0.,  ..., 0., 0., 0.])
tensor([[   0,    1,    2,  ...,   37,   38,   39],
        [  40,   41,   42,  ...,   77,   78,   79],
        [  80,   81,   82,  ...,  117,  118,  119],
        ...,
        [1080, 1081, 1082,  ..., 1117, 1118, 1119],
        [1120, 1121, 1122,  ..., 1157, 1158, 1159],
        [1160, 1161, 1162,  ..., 1197, 1198, 1199]])
tensor([1., nan, inf])
tensor([], size=(2, 0))
tensor([  0.33, 100.25])
tensor([     0.0000, 100000.0000])
tensor([1.], requires_grad=True)
Parameter containing:
tensor([1.], requires_grad=True)
tensor([[[0, 1],
         [2, 3]],

        [[4, 5],
         [6, 7]]])
tensor([ 0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12, 13, 14, 15, 16, 17,
        18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35,
        36, 37, 38, 39])
[('edgeitems', 3), ('linewidth', 80), ('precision', 4), ('sci_mode', False), ('threshold', 1000)] tensor([1., 2.]) 1.50
tensor([[[ 0.,  ...,  3.],
         ...,
         [ 8.,  ..., 11.]],

        [[12.,  ..., 15.],
         ...,
         [20.,  ..., 23.]]])
"""


def test_printed_forms():
    out = subprocess.run([sys.executable, "-c", PRINTED], capture_output=True, check=True, text=True, timeout=60).stdout
    assert out == EXPECTED.lstrip("\n")
    with pytest.raises(ValueError, match="profile"):
        zyx.set_printoptions(profile="long")


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.calls = nn.Linear(4, 8), nn.Linear(8, 4), 0

    def forward(self, x, scale=1.0):
        self.calls += 1
        return nn.functional.dropout(self.second(self.first(x).tanh()), 0.5) * scale + x


def gradients(region, x, block):
    block.zero_grad()
    x.grad = None
    zyx.manual_seed(5)
    loss = (region(x * 2) ** 2).sum()
    loss.backward()
    return [loss.item(), x.grad.numpy(copy=True), *(p.grad.numpy(copy=True) for p in block.parameters())]


def test_regions_are_computed_again():
    block, x = Block(), zyx.randn(3, 4, requires_grad=True)
    want = gradients(lambda x: block(x, scale=3.0), x, block)
    assert block.calls == 1
    found = gradients(lambda x: checkpoint(block, x, scale=3.0, use_reentrant=False), x, block)
    assert block.calls == 3
    for a, b in zip(want, found):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    # Inputs that need no gradients, several results, other objects.
    w = zyx.tensor([2.0, 3.0], requires_grad=True)
    y, text, (z,) = checkpoint(lambda data, text: (data * w, text, [w + 1]), zyx.ones(2), "text")
    (y * 2 + z).sum().backward()
    assert text == "text" and w.grad.tolist() == [3, 3]
    with zyx.no_grad():
        assert not checkpoint(block, x).requires_grad
    assert checkpoint(lambda x: x + 1, zyx.ones(1)).item() == 2


def test_regions_within_others_and_twice():
    w = zyx.tensor([2.0], requires_grad=True)
    cube = lambda x: checkpoint(lambda y: checkpoint(lambda z: z * z, y) * y * w, x)  # noqa: E731
    x = zyx.tensor([3.0], requires_grad=True)
    first = zyx.autograd.grad(cube(x), [x, w], create_graph=True)
    assert [g.item() for g in first] == [54, 27]
    assert [g.item() for g in zyx.autograd.grad(first[0], [x, w])] == [36, 27]
    # The weight is used before the region, too.
    assert zyx.autograd.grad(cube(x * w), w)[0].item() == 4 * 2**3 * 27


def test_regions_that_change():
    calls, x = [], zyx.ones(2, requires_grad=True)

    def other(x):
        calls.append(1)
        return x * 2 if len(calls) == 1 else (x * 2).sum()

    with pytest.raises(CheckpointError, match="recomputed values have different metadata"):
        checkpoint(other, x).sum().backward()
    with pytest.raises(TypeError, match="no function"):
        checkpoint(3)

    class Hidden:
        __slots__ = ("weight",)

    hidden = Hidden()
    hidden.weight = zyx.ones(2, requires_grad=True)
    with pytest.raises(CheckpointError, match=r"parameters of shapes \[\(2,\)\] that are neither its arguments nor found"):
        checkpoint(lambda x: x * hidden.weight, x).sum().backward()
    checkpoint(lambda x, w: x * w, x, hidden.weight).sum().backward()
    assert hidden.weight.grad.tolist() == [1, 1]


def test_regions_take_less_memory():
    def peak(run):
        zyx.manual_seed(0)
        blocks = [nn.Sequential(nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh()) for _ in range(12)]
        optimizer = zyx.optim.SGD([p for block in blocks for p in block.parameters()], lr=0.01)
        x, losses, device = zyx.randn(4096, 64).realize(), [], zyx.device()
        device.reset_peak()
        for _ in range(2):
            h = x
            for block in blocks:
                h = run(block, h)
            loss = (h * h).mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            losses.append(loss.item())
        return losses, device.stats()["peak_bytes"]

    (plain, most), (again, less) = peak(lambda block, h: block(h)), peak(lambda block, h: checkpoint(block, h))
    print(f"peak {most} bytes, computed again {less}")
    assert plain == pytest.approx(again, rel=1e-5) and less < 0.8 * most


def test_parameters_that_a_region_does_not_use_have_no_gradient():
    used, other, x = zyx.ones(2, requires_grad=True), zyx.ones(2, requires_grad=True), zyx.ones(2, requires_grad=True)
    held = [used, other]
    checkpoint(lambda x, y: held[0] * x, x, zyx.ones(2, requires_grad=True)).sum().backward()
    assert used.grad.tolist() == [1, 1] == x.grad.tolist() and other.grad is None
