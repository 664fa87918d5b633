"""Layers over three axes, transposed convolutions, windows and back, caches, what stands around optimizers."""

import numpy as np
import pytest
import zyx
from zyx import nn, optim


def sample(*shape):
    return np.random.default_rng(1).normal(size=shape).astype(np.float32)


@pytest.mark.parametrize(
    "layer, inside, outside",
    [
        (nn.Conv3d(2, 4, (1, 2, 3), padding=(0, 1, 1), groups=2), (1, 2, 3, 4, 5), (1, 4, 3, 5, 5)),
        (nn.ConvTranspose1d(3, 2, 3, stride=2, output_padding=1), (1, 3, 4), (1, 2, 10)),
        (nn.ConvTranspose2d(3, 2, 3, stride=2, bias=False), (1, 3, 4, 5), (1, 2, 9, 11)),
        (nn.ConvTranspose3d(1, 2, 2), (1, 1, 2, 3, 4), (1, 2, 3, 4, 5)),
        (nn.MaxPool3d(2), (1, 2, 4, 4, 4), (1, 2, 2, 2, 2)),
        (nn.AvgPool3d((1, 2, 2)), (1, 2, 3, 4, 4), (1, 2, 3, 2, 2)),
        (nn.LPPool1d(2.0, 2), (1, 2, 6), (1, 2, 3)),
        (nn.LPPool3d(2.0, 2), (1, 2, 4, 4, 4), (1, 2, 2, 2, 2)),
        (nn.AdaptiveAvgPool3d((1, 2, 3)), (1, 2, 4, 4, 4), (1, 2, 1, 2, 3)),
        (nn.AdaptiveMaxPool1d(3), (1, 2, 7), (1, 2, 3)),
        (nn.AdaptiveMaxPool2d((3, 1)), (1, 2, 7, 4), (1, 2, 3, 1)),
        (nn.AdaptiveMaxPool3d(2), (1, 2, 4, 4, 4), (1, 2, 2, 2, 2)),
        (nn.Unfold(2, stride=2), (1, 2, 4, 4), (1, 8, 4)),
        (nn.Fold(4, 2, stride=2), (1, 8, 4), (1, 2, 4, 4)),
        (nn.Pad([(1, 2)], mode="reflect"), (1, 2, 5), (1, 2, 8)),
        (nn.Upsample(scale_factor=[2.0, 3.0], mode="bilinear"), (1, 2, 3, 4), (1, 2, 6, 12)),
    ],
    ids=lambda x: type(x).__name__ if isinstance(x, nn.Module) else "",
)
def test_shapes(layer, inside, outside):
    y = layer(sample(*inside))
    assert y.shape == outside and np.isfinite(y.numpy()).all()


def test_layers_are_the_methods():
    x = zyx.tensor(sample(1, 2, 3, 4, 5))
    layer = nn.Conv3d(2, 2, 2)
    assert [n for n, _ in layer.named_parameters()] == ["weight", "bias"] and layer.weight.shape == (2, 2, 2, 2, 2)
    np.testing.assert_allclose(layer(x).numpy(), x.conv3d(layer.weight, layer.bias).numpy())
    back = nn.ConvTranspose3d(2, 2, 2, bias=False)
    np.testing.assert_allclose(back(x).numpy(), x.conv_transpose3d(back.weight).numpy())
    image = sample(1, 2, 4, 4)
    ones = np.ones_like(image)
    counts = nn.Fold(4, 2)(nn.Unfold(2)(ones)).numpy()
    np.testing.assert_allclose(nn.Fold(4, 2)(nn.Unfold(2)(image)).numpy(), image * counts, rtol=1e-5)
    values, at = zyx.tensor(image).max_pool2d_with_indices(2)
    placed = nn.MaxUnpool2d(2)(values, at).numpy()
    assert (placed != 0).sum() == 8 and set(placed[placed != 0]) == set(values.numpy().ravel())
    np.testing.assert_array_equal(nn.Pad([(1, 2)], "edge")(sample(1, 3)).numpy(), np.pad(sample(1, 3), [(0, 0), (1, 2)], "edge"))
    with pytest.raises(ValueError):
        nn.Pad([(1, 1)], mode="nothing")
    with pytest.raises(ValueError):
        nn.Conv3d(2, 3, 2, groups=2)


def test_losses():
    x = zyx.tensor(sample(5, 1, 3)).log_softmax(-1)
    loss = nn.CTCLoss(reduction="sum")(x, [[1, 2]], [5], [2])
    # All paths of five steps that say "1 2", added up by hand.
    p, total = np.exp(x.numpy()[:, 0]), 0.0
    for path in np.ndindex(3, 3, 3, 3, 3):
        kept = [c for i, c in enumerate(path) if c != 0 and (i == 0 or path[i - 1] != c)]
        total += np.prod([p[i, c] for i, c in enumerate(path)]) if kept == [1, 2] else 0.0
    np.testing.assert_allclose(loss.item(), -np.log(total), rtol=1e-5)
    assert nn.MultiLabelMarginLoss()(sample(2, 3), [[0, 2, -1], [1, -1, 0]]).shape == ()


def test_a_cache_is_the_whole_text():
    layer = nn.MultiheadAttention(8, 2, batch_first=True)
    x = zyx.tensor(sample(1, 5, 8))
    whole, _ = layer(x, is_causal=True)
    cache = nn.KvCache(6)
    parts = [layer.attend_cached(x[:, :3], cache), layer.attend_cached(x[:, 3:4], cache), layer.attend_cached(x[:, 4:], cache)]
    np.testing.assert_allclose(zyx.cat(parts, 1).numpy(), whole.numpy(), atol=1e-5)
    assert len(cache) == 5 and cache.capacity == 6 and len(cache.tensors()) == 2
    with pytest.raises(ValueError):
        layer.attend_cached(x, cache)
    cache.clear()
    assert len(cache) == 0
    with pytest.raises(TypeError):
        layer.attend_cached(x, "cache")
    with pytest.raises(TypeError):
        nn.Linear(8, 8)._native.attend_cached(x, cache)


def test_running_means():
    w = nn.Parameter([0.0])
    ema = optim.Ema([w], decay=0.75)
    w.set([4.0])
    ema.update()
    ema.swap()
    assert w.tolist() == [1.0]
    ema.swap()
    assert w.tolist() == [4.0] and ema.averages()[0].tolist() == [1.0]
    other = optim.Ema([w])
    other.load_state_dict(ema.state_dict())
    assert other.averages()[0].tolist() == [1.0]
    with pytest.raises(ValueError):
        optim.Ema([w], decay=2.0)
    with pytest.raises(ValueError):
        other.load_state_dict({})


def test_mixed_precision():
    w = nn.Parameter(zyx.tensor([1.0, 2.0]).half())
    optimizer = optim.MasterWeights([w], lambda copies: optim.SGD(copies, lr=1e-4))
    for _ in range(20):
        optimizer.step(w.sum())
    # One step is less than half of what float16 resolves at 2.
    np.testing.assert_allclose(w.numpy()[0], 1 - 20e-4, atol=1e-3)
    assert w.numpy()[0] < 0.9985 and "master.0" in optimizer.state_dict()
    scaler = optim.LossScaler(scale=2.0**20)
    x = nn.Parameter(zyx.tensor([3.0]).half())
    sgd = optim.SGD([x], lr=0.1)
    made = [scaler.step(sgd, (x * x).sum()) for _ in range(40)]
    assert not made[0] and made[-1] and scaler.scale < 2.0**20 and abs(x.numpy()[0]) < 0.1
    assert scaler.gradients(sgd, (x * x).sum())[0].dtype == zyx.float32
    with pytest.raises(TypeError):
        scaler.step("sgd", x.sum())
    with pytest.raises(ZeroDivisionError):
        optim.MasterWeights([w], lambda copies: 1 / 0)
    with pytest.raises(TypeError):
        optim.MasterWeights([w], lambda copies: None)
