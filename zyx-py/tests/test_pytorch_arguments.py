"""Arguments that PyTorch's functions and layers take beyond the first ones. What is expected was computed by hand or with
NumPy.
"""

import copy
import math

import numpy as np
import pytest
import zyx
from zyx import nn
from zyx.nn import functional as F


def same(x, want, dtype=None):
    want = np.asarray(want)
    assert x.shape == want.shape and dtype in (None, x.dtype.name)
    np.testing.assert_allclose(x.numpy(), want, rtol=2e-6, atol=2e-6)


@pytest.fixture
def array():
    return np.random.default_rng(1).normal(size=(3, 4)).astype("float32")


def test_names_of_parameters():
    x = zyx.tensor([-2.0, 0.5])
    for y in [F.leaky_relu(x, negative_slope=0.25), x.leaky_relu(slope=0.25), nn.LeakyReLU(negative_slope=0.25)(x), nn.LeakyRelu(0.25)(x)]:
        same(y, [-0.5, 0.5])
    for y in [F.hardtanh(x, min_val=-1.5, max_val=0.25), x.hardtanh(min=-1.5, max=0.25), nn.Hardtanh(min_val=-1.5, max_val=0.25)(x)]:
        same(y, [-1.5, 0.25])
    with pytest.raises(TypeError, match="both"):
        x.hardtanh(min=0, min_val=0)


@pytest.mark.parametrize("name, of", [("sum", np.sum), ("prod", np.prod), ("cumsum", np.cumsum), ("cumprod", np.cumprod)])
@pytest.mark.parametrize("dtype", ["int32", "float64", "float16"])
def test_dtypes_of_sums(name, of, dtype):
    x = np.array([[1, 2, 3], [4, 5, 6]])
    same(getattr(zyx.tensor(x), name)(dim=1, dtype=dtype), of(x, 1, dtype=dtype), dtype)


def test_dtypes_of_means_and_softmax(array):
    whole = np.array([[1, 2, 4], [3, 5, 9]])
    same(zyx.tensor(whole).mean(1, keepdim=True, dtype=zyx.float64), whole.mean(1, keepdims=True), "float64")
    same(zyx.mean(zyx.tensor(whole), dtype=zyx.float32), 4.0, "float32")
    with pytest.raises(TypeError, match="a mean is no"):
        zyx.tensor(array).mean(dtype=zyx.int64)
    wide = np.exp(array.astype("float64"))
    wide /= wide.sum(1, keepdims=True)
    for of in (zyx.softmax, F.softmax):
        got = of(zyx.tensor(array), dim=1, dtype=zyx.float64)
        assert got.dtype == zyx.float64
        np.testing.assert_allclose(got.numpy(), wide, rtol=1e-14)
    same(F.log_softmax(zyx.tensor(array).half(), 1, dtype=zyx.float32), np.log(np.exp(h := array.astype("float16").astype("float32")) / np.exp(h).sum(1, keepdims=True)), "float32")
    # A sum in the dtype asked for does not overflow in the narrow one.
    assert zyx.full((4,), 60000.0, dtype="float16").sum(dtype=zyx.float32).item() == 240000.0


def test_to():
    x, device = zyx.tensor([1.5, 2.5]), zyx.device()
    for y in [x.to(dtype="int64"), x.to("int64"), x.to(device, zyx.int64), x.to(device, dtype=zyx.int64), x.to("cpu", int),
              x.to(zyx.tensor([1])), x.to(zyx.int64, non_blocking=True, copy=True), x.to(device=device, dtype=zyx.int64)]:
        assert y.dtype == zyx.int64 and y.tolist() == [1, 2]
    assert x.to(device=device).device.spec == device.spec and x.to("cpu").dtype == zyx.float32
    assert x.to("reference").device.spec.startswith("reference") and x.to(device="reference", dtype=zyx.float64).dtype == zyx.float64
    with pytest.raises(TypeError, match="two dtypes"):
        x.to(zyx.int64, dtype=zyx.int32)
    with pytest.raises(TypeError):
        x.to()
    with pytest.raises((TypeError, ValueError, RuntimeError)):
        x.to("nonsense")


@pytest.mark.parametrize("make", [
    lambda **o: zyx.zeros(2, **o), lambda **o: zyx.ones(2, **o), lambda **o: zyx.full((2,), 3.0, **o), lambda **o: zyx.rand(2, **o),
    lambda **o: zyx.randn(2, **o), lambda **o: zyx.arange(2.0, **o), lambda **o: zyx.linspace(0, 1, 2, **o), lambda **o: zyx.eye(2, **o),
    lambda **o: zyx.empty(2, **o), lambda **o: zyx.ones(2).zeros_like(**o), lambda **o: zyx.full_like(zyx.ones(2), 2.0, **o),
    lambda **o: zyx.randn_like(zyx.ones(2), **o), lambda **o: zyx.tensor([1.0, 2.0], **o),
])  # fmt: skip
def test_requires_grad_of_what_is_made(make):
    x = make(requires_grad=True)
    assert x.requires_grad and not make().requires_grad and not make(requires_grad=False).requires_grad
    assert (x * 3).sum().gradient(x)[0].flatten().tolist() == [3.0] * x.numel()


def test_what_has_no_gradients():
    with pytest.raises(TypeError, match="only floats"):
        zyx.zeros(2, dtype="int64", requires_grad=True)


def test_full_like():
    same(zyx.full_like(zyx.tensor([1.5, 2.5]), 7.9, dtype=zyx.int64), [7, 7], "int64")
    same(zyx.full_like(zyx.tensor([1, 2]), 0.5, dtype="float64"), [0.5, 0.5], "float64")


@pytest.mark.parametrize("how", ["linear", "lower", "higher", "nearest", "midpoint"])
@pytest.mark.parametrize("axis", [0, -1, None])
def test_interpolations_of_quantiles(array, how, axis):
    for q in (0.0, 0.3, 0.5, 1.0, [0.2, 0.75]):
        want = np.quantile(array, q, axis=axis, method=how, keepdims=True)
        same(zyx.tensor(array).quantile(q, axis, keepdim=True, interpolation=how), want)
    odd = array.copy()
    odd[1, 2] = np.nan
    assert np.isnan(zyx.tensor(odd).quantile(0.0, 0, interpolation=how).numpy()).tolist() == [False, False, True, False]
    with pytest.raises(ValueError):
        zyx.tensor(array).quantile(0.5, interpolation="cubic")


def test_quantiles_at_infinity():
    x = zyx.tensor([1.0, math.inf, -math.inf, 2.0])
    assert [x.quantile(q, interpolation="lower").item() for q in (0, 0.5, 1)] == [-math.inf, 1.0, math.inf]


def test_searches():
    edges, values = np.array([1.0, 3.0, 3.0, 5.0]), np.array([0.0, 3.0, 9.0])
    x, v = zyx.tensor(edges), zyx.tensor(values)
    for side in ("left", "right"):
        same(zyx.searchsorted(x, v, side=side), np.searchsorted(edges, values, side), "int64")
    mixed, order = edges[[2, 0, 3, 1]], np.argsort(edges[[2, 0, 3, 1]], kind="stable")
    same(zyx.searchsorted(zyx.tensor(mixed), v, sorter=zyx.tensor(order), right=True), [0, 3, 4])
    same(zyx.searchsorted(x, v, out_int32=True, side="right", right=True), [0, 3, 4], "int32")
    same(v.bucketize(x, out_int32=True), [0, 1, 4], "int32")
    with pytest.raises(ValueError, match="side"):
        zyx.searchsorted(x, v, side="left", right=True)
    assert x.topk(2, 0, True, True)[0].tolist() == [5.0, 3.0] == x.topk(2, sorted=False)[0].tolist()


def test_positions_of_options_of_losses():
    x, y = zyx.tensor([0.0, 3.0]), zyx.tensor([0.5, 0.0])
    # 0.5^2 / 2 and 0.7 (3 - 0.35).
    each = [0.125, 1.855]
    for got in [F.huber_loss(x, y, "none", 0.7), nn.HuberLoss("none", 0.7)(x, y), F.huber_loss(x, y, reduction="none", delta=0.7)]:
        same(got, each)
    p, t, w = zyx.tensor([0.25, 0.5]), zyx.tensor([1.0, 0.0]), zyx.tensor([2.0, 3.0])
    terms = [2 * math.log(4), 3 * math.log(2)]
    same(nn.BCELoss(w)(p, t), sum(terms) / 2)
    same(nn.BCELoss(weight=w, reduction="none")(p, t), terms)
    # Two classes, all paths of two steps to the one label: 1 - P(blank, blank).
    log = zyx.full((2, 1, 2), math.log(0.5))
    targets, two, one = zyx.tensor([[1]]), zyx.tensor([2]), zyx.tensor([1])
    same(F.ctc_loss(log, targets, two, one, 0, "sum"), -math.log(0.75))
    assert nn.CTCLoss(0, "none", True)(log, targets, two, one).shape == (1,)
    assert nn.CTCLoss(0, "none", True)(log, zyx.tensor([[1, 1]]), two, two).tolist() == [0.0]
    assert nn.CTCLoss(0, "none")(log, zyx.tensor([[1, 1]]), two, two).tolist() == [math.inf]


def test_triplets_that_swap():
    a, p, n = zyx.tensor([[0.0, 0.0]]), zyx.tensor([[3.0, 4.0]]), zyx.tensor([[6.0, 8.0]])
    near = zyx.tensor([[3.0, 5.0]])
    # Distances 5, 10 and 5; the negative near the positive is 1 from it.
    for swap, want in [(False, 0.0), (True, 1.0)]:
        same(nn.TripletMarginLoss(1.0, 2.0, 0.0, swap)(a, p, n), want)
    same(nn.TripletMarginLoss(margin=1.0, eps=0.0, swap=True)(a, p, near), 5.0)
    same(F.triplet_margin_loss(a, p, near, 1.0, 2, 0.0, True, reduction="sum"), 5.0)


def test_attention_drops_weights():
    zyx.manual_seed(3)
    q, v = zyx.zeros(1, 1, 2), zyx.ones(1, 4000, 1)
    k = zyx.zeros(1, 4000, 2)
    assert F.scaled_dot_product_attention(q, k, v, None, 0.0, False).item() == pytest.approx(1.0, rel=1e-5)
    # A mean of 4000 numbers that are 0 or 4: 1 with a standard deviation of 0.027.
    got = F.scaled_dot_product_attention(q, k, v, dropout_p=0.75).item()
    assert got != 1.0 and abs(got - 1) < 0.14
    with pytest.raises(ValueError):
        F.scaled_dot_product_attention(q, k, v, dropout_p=1.5).item()


def test_adaptive_pools_keep_extents():
    x = zyx.arange(2 * 3 * 5 * 7, dtype="float32").reshape(2, 3, 5, 7)
    same(nn.AdaptiveAvgPool2d((None, 1))(x), x.numpy().mean(3, keepdims=True))
    same(nn.AdaptiveMaxPool2d((1, None))(x), x.numpy().max(2, keepdims=True))
    same(nn.AdaptiveAvgPool2d((None, 7))(x), x.numpy())
    same(nn.AdaptiveAvgPool1d(1)(x[0]), x[0].numpy().mean(2, keepdims=True))
    assert nn.AdaptiveMaxPool3d(1)(x).shape == (2, 1, 1, 1)


def test_stacks_of_a_layer():
    zyx.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, dim_feedforward=16, dropout=0.0, batch_first=True)
    stack, x = nn.TransformerEncoder(layer, num_layers=2), zyx.randn(3, 5, 8)
    same(stack(x), layer(layer(x)).numpy())
    assert len(stack.parameters()) == 2 * len(layer.parameters())
    decoder = nn.TransformerDecoderLayer(d_model=8, nhead=2, dim_feedforward=16, dropout=0.0, batch_first=True)
    same(nn.TransformerDecoder(decoder, 2)(x, x), decoder(decoder(x, x), x).numpy())
    same(copy.deepcopy(stack)(x), stack(x).numpy())
    normed = nn.TransformerEncoder(layer, 2, norm=nn.LayerNorm(8))
    same(normed(x), normed.norm(stack(x)).numpy())


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_dropout_of_channels(axes):
    zyx.manual_seed(1)
    dropout = getattr(F, f"dropout{axes}d")
    x = zyx.ones([8, 50] + [3] * axes)
    y = dropout(x, 0.25).numpy().reshape(400, -1)
    # Each channel has one number; 300 of 400 are kept, with a standard deviation of 9.
    assert (y == y[:, :1]).all() and set(y[:, 0]) == {np.float32(0), np.float32(1 / 0.75)}
    assert abs((y[:, 0] != 0).sum() - 300) < 45
    same(dropout(x, 0.25, training=False), x.numpy())
    if axes != 2:
        one = dropout(zyx.ones([400] + [3] * axes), 0.5).numpy().reshape(400, -1)
        assert (one == one[:, :1]).all() and 0 < (one != 0).sum() < one.size


def test_alpha_dropout_keeps_mean_and_variance():
    zyx.manual_seed(2)
    x = zyx.randn(100000)
    y = F.alpha_dropout(x, 0.3, training=True).numpy()
    assert abs(y.mean()) < 0.02 and abs(y.var() - 1) < 0.03
    # One number stands for all that were dropped.
    values, counts = np.unique(y, return_counts=True)
    assert abs(counts.max() - 30000) < 800
    kept = 0.7
    scale = (kept * (1 + 0.3 * 1.7580993408473766**2)) ** -0.5
    assert values[counts.argmax()] == pytest.approx(-1.7580993408473766 * scale * (1 - 0.3), rel=1e-5)
    assert F.alpha_dropout(x, 0.3) is x


def bags(weight, rows, mode):
    picked = [weight[list(r)] for r in rows]
    return np.stack([getattr(r, mode)(0) if len(r) else np.zeros(weight.shape[1]) for r in picked])


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_embedding_bags(mode):
    weight = np.random.default_rng(0).normal(size=(6, 3)) - 3
    w = zyx.tensor(weight, requires_grad=True)
    same(F.embedding_bag(zyx.tensor([[1, 2], [4, 4]]), w, mode=mode), bags(weight, [[1, 2], [4, 4]], mode))
    flat, at = zyx.tensor([1, 2, 4, 5, 4, 3]), zyx.tensor([0, 2, 2])
    rows = [[1, 2], [], [4, 5, 4, 3]]
    same(F.embedding_bag(flat, w, at, mode=mode), bags(weight, rows, mode))
    same(F.embedding_bag(flat, w, zyx.tensor([0, 2, 2, 6]), mode=mode, include_last_offset=True), bags(weight, rows, mode))
    without = bags(weight, [[1, 2], [], [5, 3]], mode)
    y = F.embedding_bag(flat, w, at, mode=mode, padding_idx=4)
    same(y, without)
    assert (y.sum().gradient(w)[0].numpy()[4] == 0).all()
    native = nn.EmbeddingBag(6, 3, mode=mode, dtype="float64")
    native.weight.set(w)
    same(native(flat, at), bags(weight, rows, mode))


def test_weights_of_bags():
    w, flat = zyx.tensor([[1.0], [10.0], [100.0]]), zyx.tensor([0, 1, 2])
    got = F.embedding_bag(flat, w, zyx.tensor([0, 1]), mode="sum", per_sample_weights=zyx.tensor([2.0, 0.5, 3.0]))
    assert got.tolist() == [[2.0], [305.0]]
    with pytest.raises(NotImplementedError):
        F.embedding_bag(flat, w, zyx.tensor([0]), per_sample_weights=zyx.ones(3))
    with pytest.raises(ValueError):
        F.embedding_bag(flat, w)


@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (4, 4), (2, 5, 2)])
def test_whole_bases(shape):
    x = zyx.randn(shape, dtype="float64")
    u, s, vh = zyx.linalg.svd(x)
    m, n = shape[-2:]
    assert u.shape[-2:] == (m, m) and vh.shape[-2:] == (n, n)
    eye = np.broadcast_to
    same(u.mT @ u, eye(np.eye(m), u.shape))
    same(vh @ vh.mT, eye(np.eye(n), vh.shape))
    k = min(m, n)
    same(u[..., :k] * s.unsqueeze(-2) @ vh[..., :k, :], x.numpy())
    q, r = zyx.linalg.qr(x, "complete")
    assert q.shape[-2:] == (m, m) and r.shape == shape
    same(q @ r, x.numpy())
    same(q.mT @ q, eye(np.eye(m), q.shape))
    assert zyx.linalg.svd(x, full_matrices=False).U.shape[-2:] == (m, k)
