"""Values of layers, functions and optimizers beside PyTorch's, with PyTorch's weights.

    python zyx-py/tests/pytorch_values.py [part of a name]

prints the cases that differ; this needs `torch`. The results are compared at 1e-5 of the largest element.
"""

import copy
import sys

import numpy as np
import torch
import torch.nn.utils.rnn
import torch.optim.swa_utils
import zyx

CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


def array(*shape, seed=0, scale=1.0):
    return (np.random.default_rng(seed).normal(size=shape) * scale).astype("float32")


def flat(x):
    if isinstance(x, dict):
        return [y for v in x.values() for y in flat(v)]
    if isinstance(x, (tuple, list)) and not hasattr(x, "numpy"):
        return [y for v in x for y in flat(v)]
    if x is None:
        return []
    if isinstance(x, (torch.Tensor, zyx.Tensor)):
        return [np.asarray(x.detach().numpy(), dtype="float64")]
    return [np.asarray(x, dtype="float64")]


def near(a, b, tolerance=1e-5):
    a, b = flat(a), flat(b)
    assert len(a) == len(b), (len(a), len(b))
    for x, y in zip(a, b):
        assert x.shape == y.shape, (x.shape, y.shape)
        np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance * max(1.0, np.abs(y[np.isfinite(y)]).max(initial=0)), equal_nan=True)


def both(make, *inputs, call=None, train=True, tolerance=1e-5):
    """A layer of each library with the same weights: results and gradients."""
    torch.manual_seed(0)
    theirs = make(torch.nn).train(train)
    ours = make(zyx.nn).train(train)
    ours.load_state_dict({k: v.numpy() for k, v in theirs.state_dict().items()})
    call = call or (lambda m, lib, *x: m(*x))
    a = [torch.tensor(x, requires_grad=x.dtype == np.float32) for x in inputs]
    b = [zyx.tensor(x, requires_grad=x.dtype == np.float32) for x in inputs]
    y, z = call(theirs, torch, *a), call(ours, zyx, *b)
    near(z, y, tolerance)

    def parts(x, kind):
        return [p for p in (x if isinstance(x, (tuple, list)) else [x]) for p in (p if isinstance(p, (tuple, list)) else [p]) if isinstance(p, kind) and p.requires_grad]

    sum(p.sin().sum() for p in parts(y, torch.Tensor)).backward()
    sum(p.sin().sum() for p in parts(z, zyx.Tensor)).backward()
    near([x.grad for x in b if x.requires_grad], [x.grad for x in a if x.requires_grad], 3 * tolerance)
    theirs_p = dict(theirs.named_parameters())
    for name, p in ours.named_parameters():
        if theirs_p[name].grad is not None:
            near(p.grad, theirs_p[name].grad, 3 * tolerance)
    near({k: v for k, v in ours.state_dict().items()}, {k: theirs.state_dict()[k] for k in ours.state_dict()}, tolerance)


@case
def plain_layers():
    x, image, volume = array(4, 6), array(2, 4, 6, 6), array(2, 2, 5, 5, 5)
    for make in [
        lambda nn: nn.Linear(6, 3), lambda nn: nn.Linear(6, 3, False), lambda nn: nn.ReLU(), lambda nn: nn.ReLU6(), lambda nn: nn.LeakyReLU(0.2), lambda nn: nn.ELU(0.7),
        lambda nn: nn.CELU(0.7), lambda nn: nn.SELU(), lambda nn: nn.GELU(), lambda nn: nn.GELU("tanh"), lambda nn: nn.SiLU(), lambda nn: nn.Mish(), lambda nn: nn.Sigmoid(),
        lambda nn: nn.Tanh(), lambda nn: nn.LogSigmoid(), lambda nn: nn.Softsign(), lambda nn: nn.Tanhshrink(), lambda nn: nn.Hardsigmoid(), lambda nn: nn.Hardswish(),
        lambda nn: nn.Hardtanh(-0.5, 0.7), lambda nn: nn.Hardshrink(0.3), lambda nn: nn.Softshrink(0.3), lambda nn: nn.Softplus(2, 1.0), lambda nn: nn.Softmax(), lambda nn: nn.Softmax(1),
        lambda nn: nn.LogSoftmax(), lambda nn: nn.Softmin(0), lambda nn: nn.GLU(), lambda nn: nn.Threshold(0.1, 3.0), lambda nn: nn.PReLU(), lambda nn: nn.PReLU(6, 0.1),
        lambda nn: nn.BatchNorm1d(6), lambda nn: nn.BatchNorm1d(6, momentum=None), lambda nn: nn.BatchNorm1d(6, affine=False, track_running_stats=False), lambda nn: nn.LayerNorm(6),
        lambda nn: nn.LayerNorm(6, bias=False), lambda nn: nn.RMSNorm(6), lambda nn: nn.Identity(3, a=1), lambda nn: nn.BatchNorm1d(6, bias=False), lambda nn: nn.Unflatten(1, (2, 3)),
    ]:  # fmt: skip
        both(make, x)
    both(lambda nn: nn.RReLU(), x, train=False)
    both(lambda nn: nn.BatchNorm1d(6), x, train=False)
    for make in [
        lambda nn: nn.Conv2d(4, 6, 3), lambda nn: nn.Conv2d(4, 6, 3, 2, 1, 2, 2, False), lambda nn: nn.Conv2d(4, 6, (3, 2), padding="same", padding_mode="reflect"),
        lambda nn: nn.Conv2d(4, 6, 3, padding=(1, 2), padding_mode="circular"), lambda nn: nn.Conv2d(4, 6, 3, padding="valid"), lambda nn: nn.ConvTranspose2d(4, 6, 3, 2, 1, 1),
        lambda nn: nn.ConvTranspose2d(4, 6, (3, 2), groups=2, bias=False, dilation=2), lambda nn: nn.BatchNorm2d(4), lambda nn: nn.InstanceNorm2d(4, affine=True),
        lambda nn: nn.InstanceNorm2d(4, track_running_stats=True), lambda nn: nn.GroupNorm(2, 4), lambda nn: nn.LocalResponseNorm(3),
        lambda nn: nn.Softmax2d(), lambda nn: nn.PixelShuffle(2), lambda nn: nn.PixelUnshuffle(2), lambda nn: nn.ChannelShuffle(2), lambda nn: nn.Flatten(), lambda nn: nn.Upsample(scale_factor=2),
        lambda nn: nn.UpsamplingBilinear2d(scale_factor=2), lambda nn: nn.UpsamplingNearest2d((9, 9)), lambda nn: nn.MaxPool2d(3, 2, 1), lambda nn: nn.MaxPool2d(2, return_indices=True),
        lambda nn: nn.AvgPool2d(3, 2, 1, True, False), lambda nn: nn.AvgPool2d(2, divisor_override=3), lambda nn: nn.AvgPool2d(3, 2, 1, True, divisor_override=2), lambda nn: nn.AvgPool2d((2, 3), (3, 4), (1, 0), True, divisor_override=-2), lambda nn: nn.LPPool2d(2, 2), lambda nn: nn.AdaptiveAvgPool2d((4, None)),
        lambda nn: nn.AdaptiveMaxPool2d((4, 5), True), lambda nn: nn.AdaptiveMaxPool2d(3), lambda nn: nn.ZeroPad2d((1, 2, 0, 1)), lambda nn: nn.ConstantPad2d(1, 2.0),
        lambda nn: nn.ReflectionPad2d(2), lambda nn: nn.ReplicationPad2d(1), lambda nn: nn.CircularPad2d(1), lambda nn: nn.Unfold((2, 3), stride=2), lambda nn: nn.PReLU(4),
        lambda nn: nn.SyncBatchNorm(4).eval(),
    ]:  # fmt: skip
        train = not (isinstance(make(zyx.nn), zyx.nn.SyncBatchNorm))
        both(make, image, train=train)
    # PyTorch's gradient of this one is not that of its values.
    near(zyx.nn.CrossMapLRN2d(3)(zyx.tensor(image)), torch.nn.CrossMapLRN2d(3)(torch.tensor(image)))
    for make in [lambda nn: nn.Conv3d(2, 4, 2, padding=1), lambda nn: nn.ConvTranspose3d(2, 4, 2, 2), lambda nn: nn.MaxPool3d(2), lambda nn: nn.AdaptiveMaxPool3d((2, 3, 1), True),
                 lambda nn: nn.AvgPool3d(2), lambda nn: nn.BatchNorm3d(2), lambda nn: nn.InstanceNorm3d(2)]:  # fmt: skip
        both(make, volume)
    for make in [lambda nn: nn.Conv1d(4, 6, 3), lambda nn: nn.ConvTranspose1d(4, 6, 3, 2), lambda nn: nn.AdaptiveMaxPool1d(3, True), lambda nn: nn.InstanceNorm1d(4), lambda nn: nn.Conv1d(4, 6, (2,), (2,))]:
        both(make, array(3, 4, 9))
    both(lambda nn: nn.Conv2d(4, 6, 3), image[0])
    both(lambda nn: nn.InstanceNorm2d(4), image[0])
    both(lambda nn: nn.Bilinear(6, 6, 3), x, array(4, 6, seed=1))
    both(lambda nn: nn.Bilinear(6, 6, 3, False), x, array(4, 6, seed=1))
    both(lambda nn: nn.CosineSimilarity(), x, array(4, 6, seed=1))
    both(lambda nn: nn.PairwiseDistance(keepdim=True), x, array(4, 6, seed=1))
    both(lambda nn: nn.ConvTranspose2d(4, 6, 3, 2, 1), image, call=lambda m, lib, x: m(x, output_size=[12, 11]))


@case
def tables():
    rows = np.array([[0, 2, 2], [4, 1, 2]])
    for make in [lambda nn: nn.Embedding(5, 3), lambda nn: nn.Embedding(5, 3, 1), lambda nn: nn.Embedding(5, 3, None, 1.0), lambda nn: nn.Embedding(5, 3, scale_grad_by_freq=True),
                 lambda nn: nn.EmbeddingBag(5, 3), lambda nn: nn.EmbeddingBag(5, 3, mode="sum"), lambda nn: nn.EmbeddingBag(5, 3, mode="max", padding_idx=2),
                 lambda nn: nn.EmbeddingBag(5, 3, max_norm=0.5)]:  # fmt: skip
        both(make, rows)
    both(lambda nn: nn.EmbeddingBag(5, 3, mode="sum", include_last_offset=True), rows.reshape(-1), np.array([0, 2, 6]))
    weight = array(5, 3)
    near(zyx.nn.Embedding.from_pretrained(zyx.tensor(weight))(zyx.tensor(rows)), torch.nn.Embedding.from_pretrained(torch.tensor(weight))(torch.tensor(rows)))


@case
def recurrent():
    x, h, c = array(5, 3, 4), array(4, 3, 6, seed=1), array(4, 3, 6, seed=2)
    for kind in ("RNN", "GRU", "LSTM"):
        both(lambda nn: getattr(nn, kind)(4, 6, 2, bidirectional=True), x)
        both(lambda nn: getattr(nn, kind)(4, 6, 2, bias=False, batch_first=True), x)
        both(lambda nn: getattr(nn, kind)(4, 6), x[:, 0])
        state = (h,) if kind != "LSTM" else (h, c)
        both(lambda nn: getattr(nn, kind)(4, 6, 2, bidirectional=True), x, *state, call=lambda m, lib, x, *s: m(x, s[0] if len(s) == 1 else s))
        both(lambda nn: getattr(nn, f"{kind}Cell")(4, 6), x[0])
        both(lambda nn: getattr(nn, f"{kind}Cell")(4, 6, False), x[0, 0])
    both(lambda nn: nn.RNN(4, 6, nonlinearity="relu"), x)
    both(lambda nn: nn.RNNCell(4, 6, nonlinearity="relu"), x[0])
    both(lambda nn: nn.LSTM(4, 6, 2, bidirectional=True, proj_size=3), x)

    def packed(m, lib, x):
        rnn = (torch.nn if lib is torch else zyx.nn).utils.rnn
        for enforce, lengths in ((True, [5, 3, 2]), (False, [2, 5, 3])):
            y, last = m(rnn.pack_padded_sequence(x, lib.tensor(lengths), enforce_sorted=enforce))
            z, n = rnn.pad_packed_sequence(y, total_length=6)
        return z, last

    for kind in ("RNN", "GRU", "LSTM"):
        both(lambda nn: getattr(nn, kind)(4, 6, 2, bidirectional=True), x, call=packed)


@case
def sequences():
    parts = [array(n, 2, seed=n) for n in (3, 1, 2)]
    for batch_first in (False, True):
        for side in ("right", "left"):
            near(zyx.nn.utils.rnn.pad_sequence([zyx.tensor(x) for x in parts], batch_first, -1.0, side), torch.nn.utils.rnn.pad_sequence([torch.tensor(x) for x in parts], batch_first, -1.0, side))
    a = torch.nn.utils.rnn.pack_sequence([torch.tensor(x) for x in parts], enforce_sorted=False)
    b = zyx.nn.utils.rnn.pack_sequence([zyx.tensor(x) for x in parts], enforce_sorted=False)
    near(list(b), list(a))
    near(zyx.nn.utils.rnn.unpack_sequence(b), torch.nn.utils.rnn.unpack_sequence(a))


@case
def attention():
    q, k, v = array(5, 3, 8), array(6, 3, 8, seed=1), array(6, 3, 8, seed=2)
    hidden, padding = np.random.default_rng(0).random((5, 6)) < 0.3, np.array([[0, 0, 0, 0, 1, 1], [0] * 6, [0, 0, 0, 0, 0, 1]], dtype=bool)
    hidden[:, 0] = False
    each = np.broadcast_to(hidden, (6, 5, 6)).copy()
    for options in ({}, {"add_bias_kv": True}, {"add_zero_attn": True}, {"bias": False}, {"add_bias_kv": True, "add_zero_attn": True}):
        for masks in ({}, {"attn_mask": hidden}, {"attn_mask": hidden.astype("float32") * -2}, {"key_padding_mask": padding}, {"attn_mask": hidden, "key_padding_mask": padding}, {"attn_mask": each}):
            for more in ({}, {"average_attn_weights": False}, {"need_weights": False}):
                def call(m, lib, q, k, v):
                    return m(q, k, v, **{n: lib.tensor(x) for n, x in masks.items()}, **more)

                both(lambda nn: nn.MultiheadAttention(8, 2, **options), q, k, v, call=call)
    both(lambda nn: nn.MultiheadAttention(8, 2, kdim=5, vdim=7, batch_first=True), q, array(5, 4, 5), array(5, 4, 7))
    both(lambda nn: nn.MultiheadAttention(8, 2), q[:, 0], k[:, 0], v[:, 0])


@case
def transformers():
    src, tgt = array(3, 5, 8), array(3, 4, 8, seed=1)
    for options in ({}, {"norm_first": True, "activation": "gelu"}, {"bias": False, "layer_norm_eps": 0.1}):
        options = {"dim_feedforward": 16, "dropout": 0.0, "batch_first": True} | options
        padding = np.array([[0, 0, 0, 0, 1], [0] * 5, [0, 0, 0, 1, 1]], dtype=bool)

        def causal(nn, lib, n):
            return nn.Transformer.generate_square_subsequent_mask(n)

        def encode(m, lib, x):
            return m(x, causal(torch.nn if lib is torch else zyx.nn, lib, 5), src_key_padding_mask=lib.tensor(padding.astype("float32") * -1e9))

        both(lambda nn: nn.TransformerEncoderLayer(8, 2, **options), src, tolerance=3e-5)
        both(lambda nn: nn.TransformerEncoderLayer(8, 2, **options), src, call=lambda m, lib, x: m(x, src_key_padding_mask=lib.tensor(padding)), tolerance=3e-5)
        both(lambda nn: nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, **options), 2, nn.LayerNorm(8)), src, call=encode, tolerance=3e-5)
        both(lambda nn: nn.TransformerDecoderLayer(8, 2, **options), tgt, src, tolerance=3e-5)
        both(lambda nn: nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, **options), 2), tgt, src, tolerance=3e-5)
        both(lambda nn: nn.Transformer(8, 2, 1, 2, **options), src, tgt, tolerance=3e-5,
             call=lambda m, lib, s, t: m(s, t, tgt_mask=causal(torch.nn if lib is torch else zyx.nn, lib, 4), src_key_padding_mask=lib.tensor(padding), memory_key_padding_mask=lib.tensor(padding)))  # fmt: skip


@case
def losses():
    x, y, w = array(4, 3), array(4, 3, seed=1), np.abs(array(4, 3, seed=2))
    sign, classes, many = np.sign(y), np.array([0, 2, 1, 1]), np.array([[0, -1, 0], [2, 1, -1], [1, -1, 0], [0, 1, 2]])
    share, factor = 1 / (1 + np.exp(-y)), np.array([1.0, 2.0, 0.5], dtype="float32")
    T = lambda lib, a: lib.tensor(a)  # noqa: E731
    for r in ("mean", "sum", "none"):
        for make, second in [
            (lambda nn, lib: nn.L1Loss(reduction=r), y), (lambda nn, lib: nn.MSELoss(reduction=r), y), (lambda nn, lib: nn.SmoothL1Loss(reduction=r, beta=0.5), y),
            (lambda nn, lib: nn.HuberLoss(r, 0.5), y), (lambda nn, lib: nn.SoftMarginLoss(reduction=r), sign), (lambda nn, lib: nn.HingeEmbeddingLoss(0.5, reduction=r), sign),
            (lambda nn, lib: nn.MultiLabelMarginLoss(reduction=r), many), (lambda nn, lib: nn.MultiMarginLoss(2, 0.5, T(lib, factor), reduction=r), classes),
            (lambda nn, lib: nn.MultiLabelSoftMarginLoss(T(lib, factor), reduction=r), (y > 0).astype("float32")), (lambda nn, lib: nn.KLDivLoss(reduction=r), share),
            (lambda nn, lib: nn.KLDivLoss(reduction=r, log_target=True), y), (lambda nn, lib: nn.PoissonNLLLoss(False if r == "none" else True, True, reduction=r), w),
            (lambda nn, lib: nn.CrossEntropyLoss(T(lib, factor), ignore_index=2, reduction=r, label_smoothing=0.1), classes), (lambda nn, lib: nn.CrossEntropyLoss(reduction=r), share),
            (lambda nn, lib: nn.NLLLoss(T(lib, factor), reduction=r), classes), (lambda nn, lib: nn.BCEWithLogitsLoss(T(lib, w), reduction=r, pos_weight=T(lib, factor)), share),
        ]:  # fmt: skip
            a = np.abs(x) + 0.1 if "PoissonNLL" in type(make(zyx.nn, zyx)).__name__ else x
            p, q = torch.tensor(a, requires_grad=True), zyx.tensor(a, requires_grad=True)
            found, want = make(zyx.nn, zyx)(q, zyx.tensor(second)), make(torch.nn, torch)(p, torch.tensor(second))
            near(found, want)
            want.sum().backward(), found.sum().backward()
            near(q.grad, p.grad)
        both(lambda nn: nn.TripletMarginLoss(0.5, 2.0, swap=True, reduction=r), x, y, w)
        both(lambda nn: nn.TripletMarginWithDistanceLoss(margin=0.5, swap=True, reduction=r), x, y, w)
        both(lambda nn: nn.TripletMarginWithDistanceLoss(distance_function=lambda a, b: (a - b).abs().sum(1), reduction=r), x, y, w)
        both(lambda nn: nn.GaussianNLLLoss(full=True, reduction=r), x, y, w)
        for lib, nn, t in ((torch, torch.nn, torch.tensor), (zyx, zyx.nn, zyx.tensor)):
            F = nn.functional
            found = [F.mse_loss(t(x), t(y), reduction=r, weight=t(w)), F.l1_loss(t(x), t(y), reduction=r, weight=t(w)), F.huber_loss(t(x), t(y), r, 0.3, t(w)),
                     F.linear_cross_entropy(t(x), t(array(5, 3, seed=4)), t(np.array([0, 4, 1, 2])), reduction=r, linear_bias=t(array(5, seed=5)))]  # fmt: skip
            want = found if lib is torch else want
            near(found, want)
    for older in ({"size_average": False}, {"reduce": False}, {"size_average": True, "reduce": True}):
        import warnings

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            near(zyx.nn.functional.mse_loss(zyx.tensor(x), zyx.tensor(y), **older), torch.nn.functional.mse_loss(torch.tensor(x), torch.tensor(y), **older))
    both(lambda nn: nn.AdaptiveLogSoftmaxWithLoss(3, 10, [3, 6], div_value=1.0), x, np.array([0, 4, 7, 9]), call=lambda m, lib, x, t: tuple(m(x, t)) + (m.log_prob(x), m.predict(x)))
    both(lambda nn: nn.LinearCrossEntropyLoss(3, 5, bias=True), x, np.array([0, 4, 1, 2]))


@case
def fractional_pools():
    for axes, kernel, size in ((2, 2, (3, 4)), (3, 2, (2, 3, 2)), (2, (3, 2), (1, 3))):
        x, u = array(2, 3, *[7] * axes), np.random.default_rng(3).random((2, 3, axes)).astype("float32")
        pool = f"fractional_max_pool{axes}d"
        a = getattr(torch.nn.functional, pool)(torch.tensor(x), kernel, size, return_indices=True, _random_samples=torch.tensor(u))
        b = getattr(zyx.nn.functional, pool)(zyx.tensor(x), kernel, size, return_indices=True, _random_samples=zyx.tensor(u))
        near(list(b), list(a))


@case
def weights_of_others():
    x = array(4, 6)

    def weight_norm(nn):
        return nn.utils.weight_norm(nn.Linear(6, 3))

    def new_weight_norm(nn):
        return nn.utils.parametrizations.weight_norm(nn.Linear(6, 3), dim=1)

    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        both(weight_norm, x)
        both(lambda nn: nn.utils.weight_norm(nn.Linear(6, 3), dim=None), x)
        both(new_weight_norm, x)
        both(lambda nn: nn.utils.spectral_norm(nn.Linear(6, 3)), x, tolerance=1e-4)
        both(lambda nn: nn.utils.spectral_norm(nn.ConvTranspose2d(2, 3, 3)), array(1, 2, 5, 5), tolerance=1e-4)
        both(lambda nn: nn.utils.parametrizations.spectral_norm(nn.Conv2d(2, 3, 3), n_power_iterations=3), array(1, 2, 5, 5), tolerance=1e-4)
        both(lambda nn: nn.utils.spectral_norm(nn.Linear(6, 3)), x, train=False, tolerance=1e-4)
    for dim in (0, 1, -1):
        near(zyx.norm_except_dim(zyx.tensor(x), 2, dim), torch.norm_except_dim(torch.tensor(x), 2, dim))


@case
def optimizers():
    for name, options in [("ASGD", {"lr": 0.1, "lambd": 0.01, "t0": 3}), ("ASGD", {"weight_decay": 0.1, "maximize": True}), ("Adafactor", {}), ("Adafactor", {"lr": 0.1, "weight_decay": 0.1, "d": 2.0, "beta2_decay": -0.5}),
                          ("Adam", {"decoupled_weight_decay": True, "weight_decay": 0.1, "lr": 0.1}), ("SGD", {"momentum": 0.9, "nesterov": True, "lr": 0.1}), ("Muon", {"lr": 0.1})]:  # fmt: skip
        start = {"w": array(4, 3), "b": array(3, seed=1)} if name != "Muon" else {"w": array(4, 3)}
        theirs, ours = {k: torch.nn.Parameter(torch.tensor(v)) for k, v in start.items()}, {k: zyx.nn.Parameter(v) for k, v in start.items()}
        a, b = getattr(torch.optim, name)(theirs.values(), **options), getattr(zyx.optim, name)(ours.values(), **options)
        for _ in range(6):
            for params, optimizer in ((theirs, a), (ours, b)):
                optimizer.zero_grad()
                sum((p * p * 0.5 + p.sin()).sum() for p in params.values()).backward()
                optimizer.step()
        near(list(ours.values()), list(theirs.values()), 2e-2 if name == "Muon" else 1e-5)
        state = copy.deepcopy(b).state_dict()
        b.load_state_dict(state)


@case
def averages():
    model = [lib.nn.Linear(2, 2) for lib in (torch, zyx)]
    model[1].load_state_dict({k: v.numpy() for k, v in model[0].state_dict().items()})
    for averaged in (lambda lib, m: lib.optim.swa_utils.AveragedModel(m), lambda lib, m: lib.optim.swa_utils.AveragedModel(m, multi_avg_fn=lib.optim.swa_utils.get_ema_multi_avg_fn(0.9)),
                     lambda lib, m: lib.optim.swa_utils.AveragedModel(m, avg_fn=lib.optim.swa_utils.get_ema_avg_fn(0.5))):  # fmt: skip
        found = []
        for lib, m in zip((torch, zyx), model):
            mean = averaged(lib, m)
            for k in range(3):
                for i, p in enumerate(m.parameters()):
                    value = array(*p.shape, seed=10 * k + i)
                    p.data.copy_(torch.tensor(value)) if lib is torch else p.set(value)
                mean.update_parameters(m)
            found.append({k: v for k, v in mean.state_dict().items()})
        assert list(found[0]) == list(found[1]), (list(found[0]), list(found[1]))
        near(found[1], found[0])
    rates = []
    for lib, m in zip((torch, zyx), model):
        optimizer = lib.optim.SGD(m.parameters(), lr=0.5)
        for epochs, how in ((5, "cos"), (3, "linear")):
            schedule = lib.optim.swa_utils.SWALR(optimizer, 0.05, epochs, how)
            for _ in range(8):
                optimizer.step()
                schedule.step()
                rates.append((lib is torch, optimizer.param_groups[0]["lr"]))
    near([r for t, r in rates if not t], [r for t, r in rates if t])


@case
def numbers():
    x = array(3, 5)
    x[0, 1] = x[2, 2] = np.nan
    for name, given, options in [("nanmedian", (), {}), ("nanmedian", (1,), {"keepdim": True}), ("nanquantile", (0.3,), {}), ("nanquantile", (0.3, 0), {}),
                                 ("nanquantile", (0.6, 1, True), {"interpolation": "higher"}), ("nanquantile", (0.6, 1), {"interpolation": "nearest"})]:  # fmt: skip
        near(getattr(zyx, name)(zyx.tensor(x), *given, **options), getattr(torch, name)(torch.tensor(x), *given, **options))
    y = np.array([0.0, -1.5, 3.0, 1e-42, np.inf, -np.inf, np.nan, 8.0], dtype="float32")
    near(tuple(zyx.tensor(y).frexp()), tuple(torch.tensor(y).frexp()))
    near(tuple(zyx.tensor(y.astype("float64")).frexp()), tuple(torch.tensor(y.astype("float64")).frexp()))
    z = np.linspace(-40, 40, 201)
    near(zyx.tensor(z).i0().log(), torch.tensor(z).i0().log(), 1e-12)
    near(zyx.tensor(z.astype("float32")).i0().log(), torch.tensor(z.astype("float32")).i0().log(), 1e-6)
    near(zyx.tensor(array(3, 4)).angle(), torch.tensor(array(3, 4)).angle())
    for reduce in ("prod", "mean", "amax", "amin"):
        for include in (True, False):
            a, b, at = array(4, 3), array(5, 3, seed=1), np.array([0, 2, 2, 0, 3])
            near(zyx.tensor(a).index_reduce(0, zyx.tensor(at), zyx.tensor(b), reduce, include_self=include), torch.tensor(a).index_reduce(0, torch.tensor(at), torch.tensor(b), reduce, include_self=include))
    near(zyx.tensor(array(3, 4)).sum_to_size(1, 4), torch.tensor(array(3, 4)).sum_to_size(1, 4))
    near(zyx.nonzero_static(zyx.tensor([0, 1, 2]), size=4), torch.nonzero_static(torch.tensor([0, 1, 2]), size=4))
    near(zyx.range(1, 4, 0.5), torch.arange(1, 4.1, 0.5))
    low = array(8, 3) @ array(3, 6, seed=1)
    near(zyx.svd_lowrank(zyx.tensor(low), 3)[1], torch.linalg.svdvals(torch.tensor(low))[:3], 1e-4)
    near(zyx.pca_lowrank(zyx.tensor(low), 3)[1], torch.pca_lowrank(torch.tensor(low), 3)[1], 1e-4)
    near(zyx.nuclear_norm(zyx.tensor(array(3, 4))), torch.nuclear_norm(torch.tensor(array(3, 4))))
    for a in ("bool", "uint8", "int32", "int64", "float16", "bfloat16", "float32", "float64"):
        for b in ("bool", "uint8", "int8", "int64", "float16", "bfloat16", "float32", "float64"):
            assert zyx.promote_types(a, b).name == str(torch.promote_types(getattr(torch, a), getattr(torch, b)))[6:], (a, b)
            assert zyx.can_cast(a, b) == torch.can_cast(getattr(torch, a), getattr(torch, b)), (a, b)
        for number in (True, 2, 1.5):
            assert zyx.result_type(zyx.ones(2, dtype=a), number).name == str(torch.result_type(torch.ones(2, dtype=getattr(torch, a)), number))[6:], (a, number)
    for name in ("float16", "bfloat16", "float32", "float64"):
        a, b = zyx.finfo(name), torch.finfo(getattr(torch, name))
        assert all(getattr(a, n) == getattr(b, n) for n in ("bits", "eps", "max", "min", "tiny", "smallest_normal", "dtype", "resolution")), name
    for name in ("uint8", "int8", "int16", "int32", "int64"):
        a, b = zyx.iinfo(name), torch.iinfo(getattr(torch, name))
        assert all(getattr(a, n) == getattr(b, n) for n in ("bits", "max", "min", "dtype")), name
    for shape, groups in (((4, 2, 3), 1), ((4, 2, 3, 3), 2), ((2, 4, 2, 3, 4), 1)):
        p, q = zyx.nn.Parameter(zyx.zeros(shape)), torch.nn.Parameter(torch.zeros(shape))
        near(zyx.nn.init.dirac_(p, groups), torch.nn.init.dirac_(q, groups))


@case
def derivatives():
    x, y = array(3), array(3, seed=1)
    f = lambda lib: lambda a, b: (a * b).sin() * a.sum()  # noqa: E731
    for lib in (torch, zyx):
        A, func, t = lib.autograd.functional, lib.func, lib.tensor
        g = lambda a: (a ** 3).sum()  # noqa: E731
        found = [A.jacobian(f(lib), (t(x), t(y))), A.hessian(g, t(x)), A.vjp(f(lib), (t(x), t(y)), t(x)), A.jvp(f(lib), (t(x), t(y)), (t(y), t(x))), A.hvp(g, t(x), t(y)), A.vhp(g, t(x), t(y)),
                 func.jacrev(f(lib), (0, 1))(t(x), t(y)), func.jacfwd(f(lib), 1)(t(x), t(y)), func.hessian(g)(t(x)), func.vjp(f(lib), t(x), t(y))[1](t(x)),
                 func.jvp(f(lib), (t(x), t(y)), (t(y), t(x))), func.vmap(lambda a, b: {"p": a * b, "q": a.sum()}, (0, None))(t(array(4, 3)), t(y))]  # fmt: skip
        want = found if lib is torch else want
        near(found, want)


if __name__ == "__main__":
    import traceback

    wrong = 0
    for name, function in CASES.items():
        if sys.argv[1:] and sys.argv[1] not in name:
            continue
        try:
            function()
            print(f"{name}: as PyTorch")
        except Exception:
            wrong += 1
            print(f"{name}: differs\n{traceback.format_exc(limit=-4)}")
    sys.exit(wrong)
