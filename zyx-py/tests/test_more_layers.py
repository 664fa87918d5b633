"""Layers over three axes, transposed convolutions, windows and back, caches, what stands around optimizers."""

import copy
import pickle

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


def cubic(t):
    """Keys' kernel with a = -0.75."""
    t = abs(t)
    if t <= 1:
        return 1.25 * t**3 - 2.25 * t**2 + 1
    return -0.75 * (t**3 - 5 * t**2 + 8 * t - 4) if t < 2 else 0.0


def inside(i, extent, padding, corners):
    """The place that an index stands for, or none."""
    if padding == "zeros":
        return i if 0 <= i < extent else None
    while padding == "reflection" and not 0 <= i < extent:
        if extent == 1:
            return 0
        i = (-i if i < 0 else 2 * (extent - 1) - i) if corners else (-1 - i if i < 0 else 2 * extent - 1 - i)
    return min(max(i, 0), extent - 1)


def sampled(x, grid, mode, padding, corners):
    """By the definition, in float64."""
    n, channels, height, width = x.shape
    found = np.zeros((n, channels, *grid.shape[1:3]))
    for at in np.ndindex(n, *grid.shape[1:3]):
        place = [(g + 1) / 2 * (e - 1) if corners else ((g + 1) * e - 1) / 2 for g, e in zip(grid[at], (width, height))]
        if mode != "bicubic" and padding == "reflection":
            for axis, extent in enumerate((width, height)):
                low, high = (0, extent - 1) if corners else (-0.5, extent - 0.5)
                while low < high and not low <= place[axis] <= high:
                    place[axis] = 2 * low - place[axis] if place[axis] < low else 2 * high - place[axis]
        if mode != "bicubic" and padding != "zeros":
            place = [min(max(p, 0), e - 1) for p, e in zip(place, (width, height))]
        reach = 3 if mode == "bicubic" else 2
        weigh = cubic if mode == "bicubic" else lambda t: max(0, 1 - abs(t))
        for dy in range(-reach, reach + 1):
            for dx in range(-reach, reach + 1):
                i, j = int(np.floor(place[1])) + dy, int(np.floor(place[0])) + dx
                a, b = inside(i, height, padding, corners), inside(j, width, padding, corners)
                weight = weigh(place[1] - i) * weigh(place[0] - j)
                if a is not None and b is not None:
                    found[at[0], :, at[1], at[2]] += weight * x[at[0], :, a, b]
    return found


@pytest.mark.parametrize("corners", [False, True])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_grid_sample_by_its_definition(mode, padding, corners):
    draw = np.random.default_rng(3)
    x = draw.normal(size=(2, 3, 4, 5))
    grid = draw.uniform(-3, 3, size=(2, 5, 6, 2))
    grid[0, 0, :, 0], grid[0, 1, :, 1] = 1, -1
    got = nn.functional.grid_sample(zyx.tensor(x), zyx.tensor(grid), mode, padding, corners)
    np.testing.assert_allclose(got.numpy(), sampled(x, grid, mode, padding, corners), atol=1e-12)
    one = nn.functional.grid_sample(zyx.tensor(x[:, :, :1, :1]), zyx.tensor(grid), mode, padding, corners)
    np.testing.assert_allclose(one.numpy(), sampled(x[:, :, :1, :1], grid, mode, padding, corners), atol=1e-12)
    # At the places of the elements themselves.
    places = np.stack(np.meshgrid(np.linspace(-1, 1, 5), np.linspace(-1, 1, 4)), -1)[None]
    same = nn.functional.grid_sample(zyx.tensor(x[:1]), zyx.tensor(places), mode, padding, True)
    np.testing.assert_allclose(same.numpy(), x[:1], atol=1e-12)
    f = lambda a: nn.functional.grid_sample(a[0], a[1], mode, padding, corners)
    if mode == "bicubic":
        images, places = zyx.tensor(x[:1, :1]), zyx.tensor(grid[:1, :2] + 0.01)
        zyx.Tensor.gradcheck(lambda a, b: f((a, b)), [images, places], tolerance=1e-5)


def test_grid_sample_refuses_what_there_is_not():
    x, grid = zyx.ones(1, 1, 2, 2), zyx.zeros(1, 1, 1, 2)
    for options in [{"mode": "cubic"}, {"padding_mode": "wrap"}]:
        with pytest.raises(ValueError):
            nn.functional.grid_sample(x, grid, **options)
    half = nn.functional.grid_sample(x.half(), grid.half(), "bicubic", "reflection")
    assert half.dtype == zyx.float16 and half.tolist() == [[[[1.0]]]]


def test_ctc_loss_of_targets_in_one_row():
    scores = zyx.tensor(sample(6, 3, 5), requires_grad=True)
    lengths = [2, 3, 1]
    rows = zyx.tensor([[1, 2, 0], [3, 1, 4], [2, 0, 0]])
    row = zyx.tensor([1, 2, 3, 1, 4, 2])
    for given in (lengths, zyx.tensor(lengths)):
        found = []
        for targets in (rows, row):
            loss = nn.functional.ctc_loss(scores.log_softmax(2), targets, [6, 6, 5], given, reduction="none")
            found.append((loss.tolist(), loss.sum().gradient(scores)[0].tolist()))
        assert found[0] == found[1]
    with pytest.raises(ValueError):
        nn.functional.ctc_loss(scores.log_softmax(2), row, [6, 6, 5], [2, 3, 2])
    empty = nn.functional.ctc_loss(scores.log_softmax(2), zyx.tensor([], dtype="int64"), [6, 6, 6], [0, 0, 0], reduction="none")
    np.testing.assert_allclose(empty.numpy(), -scores.log_softmax(2).numpy()[:, :, 0].sum(0), rtol=1e-5)


def test_recurrent_layers_with_relu():
    layer = nn.RNN(3, 4, 1, "relu")
    weights = {name: p.numpy() for name, p in layer.named_parameters()}
    x, h = sample(5, 2, 3), np.zeros((2, 4), np.float32)
    y, last = layer(zyx.tensor(x))
    for i in range(5):
        h = np.maximum(
            x[i] @ weights["weight_ih_l0"].T + weights["bias_ih_l0"] + h @ weights["weight_hh_l0"].T + weights["bias_hh_l0"], 0
        )
        np.testing.assert_allclose(y.numpy()[i], h, rtol=1e-4, atol=1e-6)
    tanh = nn.RNN(3, 4, nonlinearity="tanh", bias=False)
    assert len(list(tanh.parameters())) == 2 and abs(tanh(zyx.tensor(x))[0]).max().item() < 1
    with pytest.raises(ValueError, match="'sine'. Select from 'tanh' or 'relu'"):
        nn.RNN(3, 4, nonlinearity="sine")


def test_smooth_l1_loss_without_a_smooth_part():
    x, y = zyx.tensor([1.0, -2.0, 3.0], requires_grad=True), zyx.tensor([1.5, 1.0, 3.0])
    for reduction in ("none", "sum", "mean"):
        smooth = nn.functional.smooth_l1_loss(x, y, beta=0, reduction=reduction)
        assert smooth.tolist() == nn.functional.l1_loss(x, y, reduction=reduction).tolist()
    assert nn.functional.smooth_l1_loss(x, y, beta=0.0, reduction="sum").gradient(x)[0].tolist() == [-1, -1, 0]
    with pytest.raises(ValueError):
        nn.functional.smooth_l1_loss(x, y, beta=-1.0)


@pytest.mark.parametrize("make", [lambda p: optim.SGD(p, lr=0.1, momentum=0.9), lambda p: optim.AdamW(p, lr=0.1)])
def test_any_optimizer_takes_one_more_group(make):
    def parameters():
        return [zyx.Parameter(zyx.tensor(sample(3))), zyx.Parameter(zyx.tensor(sample(2)))]

    def train(optimizer, params, steps):
        for _ in range(steps):
            optimizer.zero_grad()
            sum(((p - 1) ** 2).sum() for p in params).backward()
            optimizer.step()

    ours, both = parameters(), parameters()
    optimizer = make(ours[:1])
    schedule = optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
    group = optimizer.param_groups[0]
    train(optimizer, ours[:1], 3)
    optimizer.add_param_group({"params": ours[1:], "lr": 0.01})
    assert [g["lr"] for g in optimizer.param_groups] == [0.1, 0.01]
    assert optimizer.param_groups[0] is group
    train(optimizer, ours, 2)
    # The state of the first goes on; that of the second begins.
    first, second = make(both[:1]), make(both[1:])
    train(first, both[:1], 3)
    second.param_groups[0]["lr"] = 0.01
    for _ in range(2):
        train(first, both[:1], 1)
        train(second, both[1:], 1)
    for a, b in zip(ours, both):
        np.testing.assert_array_equal(a.numpy(), b.numpy())
    group["lr"] = 0.02
    assert [g["lr"] for g in optimizer.param_groups] == [0.02, 0.01]
    state = optimizer.state_dict()
    optimizer.load_state_dict(state)
    assert len(optimizer.parameters()) == 2 and schedule is not None
    # It stays what it is, as one that is made with groups is; so do copies.
    made = make(ours[:1])
    grouped = type(made)([{"params": ours[:1], "lr": 0.3}, {"params": ours[1:]}], lr=0.2)
    assert [g["lr"] for g in grouped.param_groups] == [0.3, 0.2]
    for one in (optimizer, grouped, copy.deepcopy(optimizer), pickle.loads(pickle.dumps(grouped))):
        assert isinstance(one, type(made)) and isinstance(one, optim.Groups)
        assert type(one).__name__ == type(made).__name__ and len(one.param_groups) == 2
    assert type(type(optimizer)(ours, lr=0.1)) is type(made)
