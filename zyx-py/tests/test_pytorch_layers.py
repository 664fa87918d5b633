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


def near(x, y):
    np.testing.assert_allclose(x.numpy(), y, rtol=2e-5, atol=2e-5)


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


def test_factors_that_give_no_whole_extent_are_kept():
    # PyTorch: element i of 4 lies at (i + 1/2) / 1.5 - 1/2, not at (i + 1/2) 3 / 4 - 1/2.
    x = zyx.tensor([[[0.0, 3.0, 6.0]]])
    near(nn.Upsample(scale_factor=1.5, mode="linear")(x), [[[0.0, 1.5, 3.5, 5.5]]])
    near(F.interpolate(x, scale_factor=1.5, mode="linear"), [[[0.0, 1.5, 3.5, 5.5]]])
    near(F.interpolate(x, scale_factor=1.5), [[[0.0, 0.0, 3.0, 6.0]]])
    again = F.interpolate(x, scale_factor=1.5, mode="linear", recompute_scale_factor=True)
    near(again, [[[0.0, 1.875, 4.125, 6.0]]])
    same(again, F.interpolate(x, size=4, mode="linear"))


def test_clamp_is_flat_at_its_limits():
    x = zyx.tensor([-1.0, 0.0, 1.0, 2.0], requires_grad=True)
    for limited, slope in [
        (x.clamp(0.0, 1.0), [0.0, 0.0, 0.0, 0.0]),
        (x.clamp(min=0.0), [0.0, 0.0, 1.0, 1.0]),
        (x.clamp(max=1.0), [1.0, 1.0, 0.0, 0.0]),
    ]:
        near(zyx.grad(limited.sum(), [x])[0], slope)


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
    same(nn.KLDivLoss(reduction="batchmean")(x, x.softmax(1)), F.kl_div(x, x.softmax(1), reduction="sum") / 4)
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
    with pytest.raises(TypeError, match="unexpected keyword argument 'exact'"):
        nn.GELU(exact=True)


def test_the_padding_row_has_no_gradient():
    weight, index = zyx.tensor([[1.0], [2.0], [3.0]], requires_grad=True), zyx.tensor([[0, 1], [1, 2]])
    assert F.embedding(index, weight, 1).tolist() == [[[1.0], [2.0]], [[2.0], [3.0]]]
    gradients = {None: [1, 2, 1], 1: [1, 0, 1], -1: [1, 2, 0]}
    for row, want in gradients.items():
        (got,) = F.embedding(index, weight, padding_idx=row).sum().gradient(weight)
        assert got.flatten().tolist() == want, row
    with pytest.raises(ValueError, match="3 rows"):
        F.embedding(index, weight, padding_idx=3)


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_unpooling_has_the_options_of_pooling(axes):
    # Extents 5 lose their last element to windows of 2, so the result has 4 unless the extents are given.
    x = zyx.arange(5**axes, dtype="float32").reshape([1, 1] + [5] * axes) + 1
    pool, unpool = (getattr(nn, f"Max{name}{axes}d") for name in ("Pool", "Unpool"))
    values, at = pool(2, return_indices=True)(x)
    back = unpool(2)(values, at, output_size=x.shape)
    odd = np.zeros(x.shape, "float32")
    odd[(0, 0) + (slice(1, 4, 2),) * axes] = x.numpy()[(0, 0) + (slice(1, 4, 2),) * axes]
    np.testing.assert_array_equal(back.numpy(), odd)
    even = zyx.arange(4**axes, dtype="float32").reshape([1, 1] + [4] * axes)
    assert unpool(2)(*pool(2, return_indices=True)(even)).shape == even.shape
    # Windows that overlap: (2 - 1) 2 + 3 - 2 elements.
    values, at = pool(3, stride=2, padding=1, return_indices=True)(even)
    assert unpool(3, 2, 1)(values, at).shape[2:] == (3,) * axes
    assert unpool(3, stride=2, padding=1)(values, at, output_size=[4] * axes).shape == even.shape
    with pytest.raises(ValueError, match="within a stride"):
        unpool(2)(values, at, output_size=[7] * axes)


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


def convolved(x, layer, pads, mode):
    """A convolution of what was padded before."""
    padded = F.pad(x, pads, {"zeros": "constant"}.get(mode, mode))
    convolve = {3: F.conv1d, 4: F.conv2d, 5: F.conv3d}[layer.weight.ndim]
    return convolve(padded, layer.weight, layer.bias)


@pytest.mark.parametrize("mode", ["zeros", "reflect", "replicate", "circular"])
def test_convolutions_pad_by_themselves(mode):
    for axes, make in [(1, nn.Conv1d), (2, nn.Conv2d), (3, nn.Conv3d)]:
        x = zyx.randn(2, 3, *[5] * axes)
        layer = make(3, 4, 3, padding=2, padding_mode=mode)
        same(layer(x), convolved(x, layer, [2] * (2 * axes), mode))
        # Of an odd number the last element comes behind.
        layer = make(3, 4, 4, padding="same", padding_mode=mode)
        same(layer(x), convolved(x, layer, [1, 2] * axes, mode))
        assert layer(x).shape == (2, 4, *[5] * axes)
        assert make(3, 4, 2, padding="valid", padding_mode=mode)(x).shape == (2, 4, *[4] * axes)
        with pytest.raises(ValueError):
            make(3, 4, 3, stride=2, padding="same")
        with pytest.raises(ValueError):
            make(3, 4, 3, padding="full")
    assert set(nn.Conv2d(3, 4, 3, padding="same").state_dict()) == {"weight", "bias"}
    with pytest.raises(ValueError):
        nn.ConvTranspose2d(3, 4, 3, padding_mode=mode) if mode != "zeros" else nn.Conv2d(3, 4, 3, padding_mode="mirror")


def test_normalisations_without_parameters(image):
    statistics = {"running_mean", "running_var", "num_batches_tracked"}
    assert set(nn.BatchNorm2d(3, affine=False).state_dict()) == statistics
    assert set(nn.BatchNorm2d(3, track_running_stats=False).state_dict()) == {"weight", "bias"}
    bare = nn.BatchNorm2d(3, 1e-5, 0.1, False, False)
    assert not bare.state_dict() and bare.weight is None and bare.running_mean is None
    assert nn.Conv1d(3, 4, 2, bias=False).bias is None and nn.Linear(2, 3).bias is not None
    same(bare.eval()(image), nn.BatchNorm2d(3)(image))
    for plain, whole in [
        (nn.GroupNorm(3, 3, affine=False), nn.GroupNorm(3, 3)),
        (nn.LayerNorm((5, 5), elementwise_affine=False), nn.LayerNorm((5, 5))),
        (nn.RMSNorm(5, elementwise_affine=False), nn.RMSNorm(5)),
        (nn.InstanceNorm2d(3), nn.InstanceNorm2d(3, 1e-5, 0.1, True)),
    ]:
        assert not plain.state_dict() and "weight" in whole.state_dict()
        same(plain(image), whole(image))
    assert set(nn.LayerNorm(5, bias=False).state_dict()) == {"weight"}
    # PyTorch adds what 1 is away from the next number.
    small = zyx.full([2, 5], 1e-4)
    same(nn.RMSNorm(5)(small), small / (small.square().mean() + 2.0**-23).sqrt())
    with pytest.raises(ValueError):
        nn.LayerNorm(4, elementwise_affine=False)(image)


def test_running_statistics(rng):
    batches = [rng.normal(2, 3, (4, 3, 5, 5)).astype(np.float32) for _ in range(3)]
    means = [x.mean((0, 2, 3)) for x in batches]
    layer = nn.BatchNorm2d(3, momentum=None)
    for n, x in enumerate(batches, 1):
        layer(zyx.tensor(x)).realize()
        assert layer.state_dict()["num_batches_tracked"].item() == n
        near(layer.state_dict()["running_mean"], np.mean(means[:n], 0))
    near(layer.state_dict()["running_var"], np.mean([x.var((0, 2, 3), ddof=1) for x in batches], 0))

    layer = nn.InstanceNorm2d(3, momentum=0.25, track_running_stats=True)
    want = [np.zeros(3), np.ones(3)]
    for x in batches:
        same(layer(zyx.tensor(x)), nn.InstanceNorm2d(3)(zyx.tensor(x)))
        own = [x.mean((2, 3)).mean(0), x.var((2, 3), ddof=1).mean(0)]
        want = [0.75 * old + 0.25 * new for old, new in zip(want, own)]
    state = layer.state_dict()
    assert list(state) == ["running_mean", "running_var", "num_batches_tracked"]
    near(state["running_mean"], want[0])
    near(state["running_var"], want[1])
    # As in PyTorch.
    assert state["num_batches_tracked"].item() == 0
    mean, var = (a.reshape(3, 1, 1) for a in want)
    near(layer.eval()(zyx.tensor(batches[0])), (batches[0] - mean) / np.sqrt(var + 1e-5))
    still = nn.InstanceNorm2d(3, momentum=None, track_running_stats=True)
    still(zyx.tensor(batches[0]))
    near(still.state_dict()["running_mean"], np.zeros(3))


def test_optimizers_take_the_options_of_pytorch(rng):
    optim, start = zyx.optim, rng.normal(0, 1, 5).astype(np.float32)

    def moved(make, scale, **options):
        p = nn.Parameter(zyx.tensor(start))
        optimizer = make([p], foreach=None, **options)
        for _ in range(3):
            optimizer.step((p * p).sum() * scale)
        return p.numpy() - start

    for make, options in [
        (optim.SGD, dict(momentum=0.9, nesterov=True)),
        (optim.Adam, dict(amsgrad=True)),
        (optim.RMSprop, dict(alpha=0.9, centered=True)),
        (optim.Adagrad, dict(lr_decay=0.1, initial_accumulator_value=0.5)),
        (optim.Adadelta, dict(rho=0.8)),
        (optim.Rprop, dict(etas=(0.4, 1.3), step_sizes=(1e-5, 10.0))),
        (optim.NAdam, dict(momentum_decay=0.01, decoupled_weight_decay=True)),
        (optim.RAdam, dict(decoupled_weight_decay=True)),
        (optim.Adamax, dict(capturable=True)),
    ]:
        down, up = moved(make, 1.0, **options), moved(make, -1.0, maximize=True, **options)
        assert np.abs(down).max() > 0
        near(zyx.tensor(up), down)
    with pytest.raises(ValueError):
        optim.SGD([nn.Parameter(zyx.tensor(start))], differentiable=True)
    with pytest.raises(TypeError):
        optim.SGD([nn.Parameter(zyx.tensor(start))], momentun=0.9)
