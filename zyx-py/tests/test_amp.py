"""Automatic mixed precision: dtypes and values are those of PyTorch (`pytorch_autocast.py`)."""

import json
import pickle
import subprocess
import sys

import numpy as np
import pytest
import zyx
from pytorch_autocast import FILE, outcomes
from zyx import amp, nn

EXPECTED = json.loads(FILE.read_text())


def test_operations_compute_in_pytorchs_dtypes():
    found = outcomes(zyx)
    assert found.keys() == EXPECTED.keys()
    assert {name: dtype for name, (dtype, _) in found.items()} == {name: dtype for name, (dtype, _) in EXPECTED.items()}
    for name, (_, values) in found.items():
        np.testing.assert_allclose(values, EXPECTED[name][1], rtol=3e-2, atol=3e-2, err_msg=name)


# Functions and layers that were imported before the first block.
EARLY = """
from zyx import einsum, matmul
from zyx.nn.functional import conv2d, linear, softmax
import zyx
layer = zyx.nn.Linear(4, 4)
x, image, half = zyx.ones(4, 4), zyx.ones(1, 1, 4, 4), zyx.ones(2).half()
with zyx.autocast("cpu"):
    found = [einsum("ij,jk", x, x), matmul(x, x), linear(x, x), conv2d(image, image), layer(x)]
print([y.dtype.name for y in found], zyx.matmul(x, x).dtype.name)
"""


def test_functions_that_were_imported_before():
    out = subprocess.run([sys.executable, "-c", EARLY], capture_output=True, check=True, text=True, timeout=60).stdout
    assert out == "['bfloat16', 'bfloat16', 'bfloat16', 'bfloat16', 'bfloat16'] float32\n"


def test_lists_of_a_gpu(monkeypatch):
    """The lists for GPUs, tried on the CPU: there is no PyTorch with a GPU to compare with."""
    monkeypatch.setattr(amp, "_policies_of", lambda device: amp._policies(amp._GPU))
    x, half = zyx.rand(4, 4) + 0.5, zyx.ones(4, 4, dtype="float16") * 0.5
    with amp.autocast("cpu", dtype=zyx.float16):
        low = [x @ x, x.mv(x[0]), zyx.addmv(x[0], x, x[0]), nn.functional.prelu(x, x[0, :1]), nn.functional.linear(half, x, x[0]), x.arccos().mm(x)]
        wide = [half.exp(), half**2, 2**half, 1 / half, half.softmax(0), half.sum(), half.norm(), half.log(), half.arccos(), zyx.pow(half, 2), half.reciprocal(),
                nn.functional.layer_norm(half, (4,)), nn.functional.cross_entropy(half, zyx.arange(4)), nn.functional.softplus(half), half.cumsum(0),
                nn.functional.kl_div(half, half, reduction="sum"), half.dist(half)]  # fmt: skip
        widest = [zyx.cat([half, x]), x[0].dot(half[0]), zyx.tensordot(half, x, 1), nn.functional.bilinear(x, half, zyx.ones(1, 4, 4)), zyx.atan2(half, x)]
        same = [half + half, half.relu(), zyx.cat([half, half]), half.softmax(0, dtype="float16"), half.sin(), half.max()]
        with pytest.raises(RuntimeError, match="unsafe to autocast"):
            nn.functional.binary_cross_entropy(half, half)
        assert (x.double() @ x.double()).dtype == zyx.float64 and half.double().exp().dtype == zyx.float64
    for found, dtype in ((low, zyx.float16), (wide, zyx.float32), (widest, zyx.float32), (same, zyx.float16)):
        assert [y.dtype for y in found] == [dtype] * len(found)


def test_blocks_nest_and_end():
    x = zyx.ones(2, 2)
    with zyx.autocast("cpu") as block:
        assert isinstance(block, zyx.amp.autocast) and zyx.is_autocast_enabled("cpu") and not zyx.is_autocast_enabled("cuda")
        assert zyx.get_autocast_dtype("cpu") == zyx.bfloat16 and (x @ x).dtype == zyx.bfloat16
        with zyx.autocast("cpu", dtype=zyx.float16, cache_enabled=False):
            assert (x @ x).dtype == zyx.float16 and not zyx.is_autocast_cache_enabled()
        with zyx.autocast("cpu", enabled=False):
            assert (x @ x).dtype == zyx.float32
        out = zyx.zeros(2, 2)
        assert zyx.mm(x * 1.001, x, out=out) is out and out.dtype == zyx.float32 and abs(out[0, 0].item() - 2.002) < 1e-6
        assert zyx.is_autocast_cache_enabled()
    with pytest.raises(KeyError), block:
        raise KeyError
    assert (x @ x).dtype == zyx.float32 and not zyx.is_autocast_enabled("cpu")

    @zyx.autocast("cpu")
    def product(x):
        """The square."""
        return x @ x

    assert product(x).dtype == zyx.bfloat16 and product.__doc__ == "The square."


def test_a_traced_function_is_traced_for_each_mode():
    product, x = zyx.jit(lambda x: x @ x), zyx.ones(2, 2)
    assert product(x).dtype == zyx.float32
    with zyx.autocast("cpu"):
        assert product(x).dtype == zyx.bfloat16
    assert product(x).dtype == zyx.float32


def test_the_mode_is_of_a_thread():
    import threading

    seen, x = [], zyx.ones(2, 2)
    with zyx.autocast("cpu"):
        thread = threading.Thread(target=lambda: seen.append((x @ x).dtype))
        thread.start()
        thread.join()
    assert seen == [zyx.float32]


def test_gradients_have_the_dtype_of_parameters():
    model, x = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3)), zyx.randn(16, 4)
    target = zyx.arange(16) % 3
    wide = nn.functional.cross_entropy(model(x), target)
    expected = zyx.autograd.grad(wide, list(model.parameters()))
    with zyx.autocast("cpu"):
        y = model(x)
        loss = nn.functional.cross_entropy(y, target)
    assert y.dtype == zyx.bfloat16 and loss.dtype == zyx.float32
    loss.backward()
    for p, g in zip(model.parameters(), expected):
        assert p.grad.dtype == zyx.float32
        np.testing.assert_allclose(p.grad.numpy(), g.numpy(), atol=0.02)


def test_what_cannot_be_cast_to():
    x = zyx.ones(2, 2)
    with pytest.warns(UserWarning, match="float32 is no half"), zyx.autocast("cpu", dtype=zyx.float32):
        assert (x @ x).dtype == zyx.float32
    with pytest.raises(ValueError, match="Expected `device_type` of type `str`"):
        zyx.autocast(zyx.float16)
    if not zyx.cuda.is_available():
        with pytest.warns(UserWarning, match="CUDA is not available"), zyx.cuda.amp.autocast():
            assert (x @ x).dtype == zyx.float32
        with pytest.warns(UserWarning, match="CUDA is not available"):
            assert not zyx.cuda.amp.GradScaler().is_enabled()


def test_functions_with_gradients_of_their_own():
    class Product(zyx.autograd.Function):
        @staticmethod
        @amp.custom_fwd(device_type="cpu")
        def forward(ctx, x, y):
            ctx.save_for_backward(x, y)
            return x @ y

        @staticmethod
        @amp.custom_bwd(device_type="cpu")
        def backward(ctx, dz):
            x, y = ctx.saved_tensors
            found = dz @ y.mT
            kinds.append(found.dtype)
            return found, x.mT @ dz

    class Wide(zyx.autograd.Function):
        @staticmethod
        @amp.custom_fwd(device_type="cpu", cast_inputs=zyx.float32)
        def forward(ctx, x):
            kinds.append(x.dtype)
            return x @ x

    kinds, x = [], zyx.ones(2, 2).requires_grad_()
    with zyx.autocast("cpu"):
        y = Product.apply(x, x)
        assert Wide.apply(x.bfloat16()).dtype == zyx.float32
    assert y.dtype == zyx.bfloat16
    y.float().sum().backward()
    assert kinds == [zyx.float32, zyx.bfloat16] and x.grad.tolist() == [[4, 4], [4, 4]] and x.grad.dtype == zyx.float32


def scaled_step(scaler, optimizer, w, factor):
    optimizer.zero_grad()
    scaler.scale((w * zyx.tensor(factor)).sum()).backward()
    scaler.step(optimizer)
    scaler.update()


def test_scaler():
    w = zyx.tensor([1.0, 2.0], requires_grad=True)
    optimizer = zyx.optim.SGD([w], lr=0.5)
    scaler = zyx.amp.GradScaler("cpu", init_scale=8.0, growth_interval=2)
    assert scaler.is_enabled() and scaler.scale(zyx.ones(1)).item() == 8 and scaler.scale([zyx.ones(1), (zyx.ones(1),)])[1][0].item() == 8
    scaled_step(scaler, optimizer, w, [1.0, -1.0])
    assert w.tolist() == [0.5, 2.5] and scaler.get_scale() == 8
    scaled_step(scaler, optimizer, w, [1.0, 0.0])
    assert w.tolist() == [0, 2.5] and scaler.get_scale() == 16
    scaled_step(scaler, optimizer, w, [1.0, float("inf")])
    assert w.tolist() == [0, 2.5] and scaler.get_scale() == 8
    other = zyx.amp.GradScaler("cpu")
    state = scaler.state_dict()
    assert state == {"scale": 8.0, "growth_factor": 2.0, "backoff_factor": 0.5, "growth_interval": 2, "_growth_tracker": 0}
    other.load_state_dict(pickle.loads(pickle.dumps(state)))
    assert other.state_dict() == state
    scaler.update(4.0)
    assert scaler.get_scale() == 4 and zyx.amp.GradScaler(enabled=False).get_scale() == 1


def test_scaler_says_what_is_wrong():
    w = zyx.tensor([1.0], requires_grad=True)
    optimizer, scaler = zyx.optim.SGD([w], lr=0.5), zyx.amp.GradScaler("cpu", init_scale=2.0)
    scaler.scale(w.sum()).backward()
    scaler.unscale_(optimizer)
    assert w.grad.item() == 1
    with pytest.raises(RuntimeError, match="already been called on this optimizer since the last update"):
        scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_([w], 0.5)
    scaler.step(optimizer)
    assert abs(w.item() - 0.75) < 1e-5
    with pytest.raises(RuntimeError, match=r"step\(\) has already been called"):
        scaler.step(optimizer)
    with pytest.raises(RuntimeError, match=r"after step\(\)"):
        scaler.unscale_(optimizer)
    scaler.update()
    with pytest.raises(AssertionError, match="No inf checks were recorded prior to update"):
        scaler.update()
    w.grad = None
    with pytest.raises(AssertionError, match="No inf checks were recorded for this optimizer"):
        scaler.step(optimizer)
    with pytest.raises(RuntimeError, match="Closure"):
        scaler.step(optimizer, closure=lambda: 0)
    with pytest.raises(RuntimeError, match="source state dict is empty"):
        scaler.load_state_dict({})
    with pytest.raises(AssertionError, match="growth factor"):
        zyx.amp.GradScaler("cpu", growth_factor=1.0)
    half = zyx.ones(1, dtype="float16").requires_grad_()
    half.sum().backward()
    with pytest.raises(ValueError, match="Attempting to unscale FP16 gradients"):
        scaler.unscale_(zyx.optim.SGD([half], lr=0.1))
