"""Layers in PyTorch's spelling, where that has other options than Rust's or means another thing. The functions they
call are compared with PyTorch in `test_pytorch_calls.py`.
"""

import numpy as np
import pytest
import zyx
from zyx import nn
from zyx.nn import functional as F


@pytest.fixture
def image():
    return zyx.randn(2, 3, 5, 5)


def same(x, y):
    np.testing.assert_allclose(x.numpy(), y.numpy(), rtol=1e-6, atol=1e-6)


def test_gelu_is_the_exact_one():
    x = zyx.linspace(-3, 3, 9)
    same(nn.GELU()(x), x.gelu_exact())
    same(nn.GELU("tanh")(x), x.gelu())
    same(nn.GELU(approximate="tanh")(x), nn.Gelu()(x))
    assert abs(nn.GELU()(x) - x.gelu()).max().item() > 1e-4
    with pytest.raises(ValueError, match="tanh"):
        nn.GELU("sigmoid")(x)


def test_upsample_scales_all_axes(image):
    assert nn.Upsample(scale_factor=2)(image).shape == (2, 3, 10, 10)
    assert nn.Upsample((7, 4), mode="bilinear", align_corners=True)(image).shape == (2, 3, 7, 4)
    same(nn.Upsample(scale_factor=2)(image), image.repeat_interleave(2, 2).repeat_interleave(2, 3))


def test_pools_and_padding(image):
    assert nn.MaxPool2d(3, stride=2, ceil_mode=True, padding=1)(image).shape == (2, 3, 3, 3)
    values, places = nn.MaxPool2d(2, return_indices=True)(image)
    same(values, image.flatten(2).gather(2, places.flatten(2)).reshape(values.shape))
    whole = nn.AvgPool2d(2, padding=1, count_include_pad=False)(zyx.ones(1, 1, 4, 4))
    same(whole, zyx.ones(1, 1, 3, 3))
    assert nn.ZeroPad2d((1, 0, 2, 0))(image).shape == (2, 3, 7, 6)
    assert nn.ConstantPad2d(1, 3.5)(image)[0, 0, 0, 0].item() == 3.5
    same(nn.ReflectionPad2d(1)(image)[:, :, 0, 1:-1], image[:, :, 1])
    same(nn.ReplicationPad2d(1)(image)[:, :, 0, 1:-1], image[:, :, 0])
    same(nn.CircularPad2d(1)(image)[:, :, 0, 1:-1], image[:, :, -1])
    with pytest.raises(ValueError):
        nn.ZeroPad2d((1, 2, 3))(image)


def test_options_of_losses():
    x, y, weight = zyx.randn(4, 3), zyx.tensor([0, 2, 1, 1]), zyx.tensor([1.0, 2.0, 0.5])
    same(nn.CrossEntropyLoss(weight, label_smoothing=0.1)(x, y), F.cross_entropy(x, y, weight, label_smoothing=0.1))
    same(nn.NLLLoss(weight, reduction="sum")(x, y), F.nll_loss(x, y, weight, reduction="sum"))
    same(nn.KLDivLoss(reduction="batchmean")(x, x.softmax(1)), F.kl_div(x, x.softmax(1), "sum") / 4)
    t = zyx.rand(4, 3)
    s = x.sigmoid()
    same(nn.BCEWithLogitsLoss(pos_weight=weight)(x, t), -(weight * t * s.log() + (1 - t) * (1 - s).log()).mean())
    assert nn.BCEWithLogitsLoss()(zyx.tensor([-200.0, 200.0]), zyx.tensor([1.0, 0.0])).item() == 200.0


def test_small_things(image):
    assert nn.Flatten()(image).shape == (2, 75) and nn.Flatten(0, 1)(image).shape == (6, 5, 5)
    same(nn.ReLU(inplace=True)(image), image.relu())
    same(nn.Softplus(beta=2)(image), (image * 2).softplus() / 2)
    conv = nn.Conv2d(3, 4, 3)
    same(conv(image[0]), conv(image)[0])
    cell, x = nn.LSTMCell(4, 3), zyx.randn(2, 4)
    for a, b in zip(cell(x), cell(x, (zyx.zeros(2, 3), zyx.zeros(2, 3)))):
        same(a, b)
    gru = nn.GRUCell(4, 3)
    same(gru(x), gru(x, zyx.zeros(2, 3)))
    table = nn.Embedding(5, 3, padding_idx=1)
    assert table(zyx.tensor([1])).tolist() == [[0.0, 0.0, 0.0]]
    assert "beta=2" in repr(nn.Softplus(2))
    with pytest.raises(TypeError, match="kernel"):
        nn.MaxPool2d()
    with pytest.raises(TypeError, match="no option"):
        nn.GELU(exact=True)


def test_linalg_has_pytorchs_parameters():
    x = zyx.randn(4, 3)
    same(zyx.linalg.norm(x, dim=1, keepdim=True), (x * x).sum(1, keepdim=True).sqrt())
    same(zyx.linalg.norm(x, ord=1, dim=(0, 1)), x.abs().sum(0).max())
    assert zyx.linalg.matrix_norm(x, keepdim=True).shape == (1, 1)
    q, r = zyx.linalg.qr(x)
    same(q @ r, x)
    upper = r.triu()
    b = zyx.randn(3, 2)
    same(upper @ zyx.linalg.solve_triangular(upper, b, upper=True), b)
    same(zyx.linalg.solve_triangular(upper, b.T, upper=True, left=False) @ upper, b.T)


def test_a_condition_is_bool():
    x = zyx.tensor([1.0, -2.0])
    assert x.where(x > 0, 0.0).tolist() == [1.0, 0.0]
    with pytest.raises(TypeError, match="not bool"):
        (x > 0).where(x, x)


def test_weights_of_attention_are_means_over_heads():
    attention, x = nn.MultiheadAttention(8, 2, batch_first=True), zyx.randn(2, 5, 8)
    y, mean = attention(x, x, x)
    again, each = attention(x, x, x, average_attn_weights=False)
    assert mean.shape == (2, 5, 5) and each.shape == (2, 2, 5, 5)
    same(mean, each.mean(1))
    same(y, again)
    assert attention(x, x, x, need_weights=False)[1] is None
