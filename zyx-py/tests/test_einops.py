"""einops works on tensors, whichever is imported first. Numbers are those that it gives for PyTorch's."""

import subprocess
import sys

import pytest
import zyx
from zyx import nn

einops = pytest.importorskip("einops")


def test_functions():
    x = zyx.arange(24.0).reshape(2, 3, 4)
    assert einops.rearrange(x, "a b c -> c (a b)").tolist() == x.reshape(6, 4).t().tolist()
    assert einops.rearrange(x, "a (b d) c -> (b a) d c", d=3).shape == (2, 3, 4) and einops.rearrange([x[0], x[1]], "n b c -> b n c").shape == (3, 2, 4)
    for name, want in {"sum": [60, 92, 124], "mean": [7.5, 11.5, 15.5], "max": [15, 19, 23], "min": [0, 4, 8], "prod": [0, 78140160, 1683158400]}.items():
        assert einops.reduce(x, "a b c -> b", name).tolist() == want
    assert einops.repeat(x[0, 0], "c -> 2 c r", r=2).tolist() == [[[0, 0], [1, 1], [2, 2], [3, 3]]] * 2
    assert einops.einsum(x, x, "a b c, a d c -> b d").tolist() == zyx.einsum("abc,adc->bd", x, x).tolist()
    packed, shapes = einops.pack([x, x[:, 0]], "a * c")
    assert packed.shape == (2, 4, 4) and [y.shape for y in einops.unpack(packed, shapes, "a * c")] == [(2, 3, 4), (2, 4)]
    assert einops.parse_shape(x, "a _ c") == {"a": 2, "c": 4} and einops.asnumpy(x).sum() == 276
    with pytest.raises(einops.EinopsError):
        einops.rearrange(x, "a b -> a")


def test_gradients_and_views():
    w = zyx.ones(2, 4, requires_grad=True)
    y = einops.rearrange(w, "a (b c) -> b a c", b=2) * zyx.arange(8.0).reshape(2, 2, 2)
    einops.reduce(y, "b a c -> ", "sum").backward()
    assert w.grad.tolist() == [[0, 1, 4, 5], [2, 3, 6, 7]]
    x = zyx.zeros(2, 3)
    einops.rearrange(x, "a b -> b a")[0, 1] = 5
    assert x.tolist() == [[0, 0, 0], [5, 0, 0]]


def test_layers():
    from einops.layers.zyx import EinMix, Rearrange, Reduce

    x = zyx.arange(8.0).reshape(2, 4)
    layers = nn.Sequential(Rearrange("b (h w) -> b h w", h=2), Reduce("b h w -> b w", "mean"))
    assert layers(x).tolist() == [[1, 2], [5, 6]] and not list(layers.parameters()) and "h=2" in repr(layers)
    mix = EinMix("b c -> b d", weight_shape="c d", bias_shape="d", c=4, d=3)
    assert [(name, p.shape) for name, p in sorted(mix.named_parameters())] == [("bias", (1, 3)), ("weight", (4, 3))]
    assert (mix(x) - (x @ mix.weight + mix.bias)).abs().max().item() < 1e-5


@pytest.mark.parametrize("first", ["einops", "zyx"])
def test_order_of_imports(first):
    program = f"import {first}; import zyx, einops; print(einops.rearrange(zyx.ones(2, 3), 'a b -> b a').shape)"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, text=True, timeout=60).stdout == "zyx.Size([3, 2])\n"
