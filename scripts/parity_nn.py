#!/usr/bin/env python3
"""Writes nn/tests/data/parity.safetensors: what PyTorch's modules compute, with gradients.

usage: parity_nn.py              (needs torch and safetensors; made with torch 2.15)

A case `name` has `name/in.K` (inputs), `name/param.N` (the module's state_dict before the call),
`name/out.K` (results), `name/grad.in.K` and `name/grad.param.N` (gradients of the sum over all
results of element i of result k times sin(0.37 i + k)). Computed in double precision from numbers
that single precision holds; stored in single precision.
"""
import math
import pathlib

import torch
import torch.nn as nn
import torch.nn.functional as F
from safetensors.torch import save_file

FILE = pathlib.Path(__file__).resolve().parent.parent / "nn/tests/data/parity.safetensors"
torch.set_default_dtype(torch.float64)
torch.manual_seed(0)
STORED = {}


def exact(x):
    return x.float().double() if x.is_floating_point() else x


def randn(*shape, scale=1.0):
    return exact(torch.randn(*shape) * scale)


def flat(y):
    return [t for part in y for t in flat(part)] if isinstance(y, (tuple, list)) else [y]


def case(name, module, inputs, call=None, after=(), wrt=9):
    """`call` gets module and inputs; the values of the buffers `after` are results too. Gradients
    are taken for the first `wrt` inputs."""
    if module is not None:
        with torch.no_grad():
            for p in module.parameters():
                p.copy_(exact(p + 0.2 * torch.randn_like(p)))
            for b in module.buffers():
                if b.is_floating_point():
                    b.copy_(exact(b + 0.2 * torch.rand_like(b)))
        for key, value in module.state_dict().items():
            put(f"{name}/param.{key}", value)
    inputs = [x.clone().requires_grad_(x.is_floating_point() and k < wrt)
              for k, x in enumerate(inputs)]
    for k, x in enumerate(inputs):
        put(f"{name}/in.{k}", x)
    outputs = flat(call(module, *inputs) if call else module(*inputs))
    loss = 0
    for k, y in enumerate(outputs):
        put(f"{name}/out.{k}", y)
        if y.requires_grad:
            i = torch.arange(y.numel())
            loss = loss + (y.flatten() * torch.sin(0.37 * i + k)).sum()
    for j, key in enumerate(after):
        put(f"{name}/out.{len(outputs) + j}", dict(module.named_buffers())[key])
    if torch.is_tensor(loss):
        loss.backward()
    for k, x in enumerate(inputs):
        if x.grad is not None:
            put(f"{name}/grad.in.{k}", x.grad)
    for key, p in module.named_parameters() if module is not None else ():
        if p.grad is not None:
            put(f"{name}/grad.param.{key}", p.grad)


def put(name, x):
    x = x.detach()
    assert name not in STORED, name
    STORED[name] = (x.float() if x.is_floating_point() else x).contiguous().clone()


def activations():
    x = randn(2, 4, 3, scale=2.0)
    for name, module in [
        ("Relu", nn.ReLU()), ("Gelu", nn.GELU("tanh")), ("GeluExact", nn.GELU()),
        ("Silu", nn.SiLU()), ("Mish", nn.Mish()), ("Sigmoid", nn.Sigmoid()), ("Tanh", nn.Tanh()),
        ("Selu", nn.SELU()), ("Softplus", nn.Softplus()), ("Relu6", nn.ReLU6()),
        ("LogSigmoid", nn.LogSigmoid()), ("Softsign", nn.Softsign()),
        ("Tanhshrink", nn.Tanhshrink()), ("Hardsigmoid", nn.Hardsigmoid()),
        ("Hardswish", nn.Hardswish()), ("LeakyRelu", nn.LeakyReLU(0.2)), ("Elu", nn.ELU(0.7)),
        ("Celu", nn.CELU(1.3)), ("Hardtanh", nn.Hardtanh(-0.5, 0.8)),
        ("Hardshrink", nn.Hardshrink(0.4)), ("Softshrink", nn.Softshrink(0.4)),
        ("Threshold", nn.Threshold(0.1, -3.0)), ("Softmax", nn.Softmax(1)),
        ("LogSoftmax", nn.LogSoftmax(1)), ("Softmin", nn.Softmin(1)), ("Glu", nn.GLU(1)),
        ("PRelu", nn.PReLU(4)),
    ]:
        case(name, module, [x])


def norms():
    stats = ["running_mean", "running_var", "num_batches_tracked"]
    images = [randn(3, 4, 5), randn(2, 4, 3, 2), randn(2, 4, 2, 3, 2)]
    for i, make in enumerate([nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d]):
        case(f"BatchNorm{i + 1}d", make(4), [images[i]], after=stats)
        case(f"BatchNorm{i + 1}d.eval", make(4).eval(), [images[i]])
    case("BatchNorm1d.flat", nn.BatchNorm1d(4), [randn(6, 4)], after=stats)
    for i, make in enumerate([nn.InstanceNorm1d, nn.InstanceNorm2d, nn.InstanceNorm3d]):
        case(f"InstanceNorm{i + 1}d", make(4, affine=True), [images[i]])
    case("InstanceNorm2d.plain", nn.InstanceNorm2d(4), [images[1]])
    case("LayerNorm", nn.LayerNorm([3, 2]), [images[1]])
    case("RmsNorm", nn.RMSNorm(5, eps=1e-6), [images[0]])
    case("GroupNorm", nn.GroupNorm(2, 4), [images[1]])
    case("LocalResponseNorm", nn.LocalResponseNorm(3, 0.5, 0.6, 1.5), [images[1]])
    case("LocalResponseNorm.even", nn.LocalResponseNorm(4, 0.5, 0.6, 1.5), [images[0]])


def products():
    case("Linear", nn.Linear(3, 4), [randn(2, 5, 3)])
    case("Bilinear", nn.Bilinear(3, 4, 5), [randn(2, 2, 3), randn(2, 2, 4)])
    rows = torch.tensor([[1, 0, 3], [3, 3, 4]])
    case("Embedding", nn.Embedding(5, 3, padding_idx=3), [rows])
    flat_rows, offsets = torch.tensor([1, 2, 4, 0, 4, 3]), torch.tensor([0, 2, 2, 5])
    for mode in ["sum", "mean", "max"]:
        case(f"EmbeddingBag.{mode}", nn.EmbeddingBag(5, 3, mode=mode), [flat_rows, offsets])
        case(f"EmbeddingBag.{mode}.equal", nn.EmbeddingBag(5, 3, mode=mode), [rows])
    case("Conv1d", nn.Conv1d(4, 6, 3, stride=2, padding=1, groups=2), [randn(2, 4, 7)])
    case("Conv2d", nn.Conv2d(4, 6, (3, 2), stride=(2, 1), padding=(1, 0), dilation=(1, 2),
                             groups=2), [randn(2, 4, 6, 5)])


def recurrent():
    case("Rnn", nn.RNN(3, 4, 2, bidirectional=True), [randn(5, 2, 3)])
    case("Rnn.relu", nn.RNN(3, 4, nonlinearity="relu", bias=False), [randn(5, 2, 3), randn(1, 2, 4)])
    case("Gru", nn.GRU(3, 4, 2, batch_first=True, bidirectional=True),
         [randn(2, 5, 3), randn(4, 2, 4)])
    case("Gru.flat", nn.GRU(3, 4), [randn(5, 3)])
    case("Lstm", nn.LSTM(3, 4, 2, batch_first=True, bidirectional=True),
         [randn(2, 5, 3), randn(4, 2, 4), randn(4, 2, 4)],
         lambda m, x, h, c: m(x, (h, c)))
    case("RnnCell", nn.RNNCell(3, 4), [randn(2, 3), randn(2, 4)])
    case("GruCell", nn.GRUCell(3, 4), [randn(2, 3), randn(2, 4)])
    case("LstmCell", nn.LSTMCell(3, 4), [randn(2, 3), randn(2, 4), randn(2, 4)],
         lambda m, x, h, c: m(x, (h, c)))


def attention():
    causal = torch.triu(torch.ones(5, 5, dtype=torch.bool), 1)
    every = dict(average_attn_weights=False)
    case("MultiheadAttention", nn.MultiheadAttention(6, 2), [randn(5, 2, 6)],
         lambda m, x: m(x, x, x, attn_mask=causal, **every))
    padding = torch.tensor([[False] * 4, [False, False, True, True]])
    case("MultiheadAttention.apart", nn.MultiheadAttention(6, 3, kdim=4, vdim=5, batch_first=True),
         [randn(2, 3, 6), randn(2, 4, 4), randn(2, 4, 5), padding, randn(6, 3, 4)],
         lambda m, q, k, v, p, a: m(q, k, v, key_padding_mask=torch.zeros(2, 4).masked_fill(
             p, -math.inf), attn_mask=a, **every))
    case("MultiheadAttention.flat", nn.MultiheadAttention(6, 2, bias=False), [randn(3, 6)],
         lambda m, x: m(x, x, x, **every))
    small = dict(dim_feedforward=7, dropout=0.0)
    case("TransformerEncoderLayer", nn.TransformerEncoderLayer(6, 2, **small), [randn(4, 2, 6)])
    case("TransformerEncoderLayer.first",
         nn.TransformerEncoderLayer(6, 2, activation="gelu", norm_first=True, batch_first=True,
                                    layer_norm_eps=1e-3, **small),
         [randn(2, 5, 6)], lambda m, x: m(x, src_mask=causal))
    case("TransformerDecoderLayer", nn.TransformerDecoderLayer(6, 2, **small),
         [randn(5, 2, 6), randn(3, 2, 6)], lambda m, x, y: m(x, y, tgt_mask=causal))
    case("TransformerDecoderLayer.first",
         nn.TransformerDecoderLayer(6, 2, norm_first=True, batch_first=True, **small),
         [randn(2, 5, 6), randn(2, 3, 6)])
    case("Transformer", nn.Transformer(6, 2, 2, 2, batch_first=True, **small),
         [randn(2, 3, 6), randn(2, 5, 6)], lambda m, x, y: m(x, y, tgt_mask=causal))


def positions():
    x = randn(2, 5, 8)
    width, start = 6, 3
    angle = torch.outer(torch.arange(5) + start, 10000.0 ** (-torch.arange(0, width, 2) / width))

    def neighbours(_, x):
        pairs = torch.view_as_complex(x[..., :width].reshape(2, 5, 3, 2))
        turned = torch.view_as_real(pairs * torch.polar(torch.ones_like(angle), angle))
        return torch.cat([turned.reshape(2, 5, width), x[..., width:]], -1)

    def halves(_, x):
        turned, rest = x[..., :width], x[..., width:]
        cos, sin = torch.cat([angle, angle], -1).cos(), torch.cat([angle, angle], -1).sin()
        half = torch.cat([-turned[..., width // 2:], turned[..., :width // 2]], -1)
        return torch.cat([turned * cos + half * sin, rest], -1)

    case("RotaryEmbedding", None, [x], halves)
    case("RotaryEmbedding.neighbours", None, [x], neighbours)
    table = torch.zeros(5, 8)
    angle8 = torch.outer(torch.arange(5.0), 10000.0 ** (-torch.arange(0, 8, 2) / 8))
    table[:, 0::2], table[:, 1::2] = angle8.sin(), angle8.cos()
    case("SinusoidalPositions", None, [x], lambda _, x: x + table)


def shapes():
    case("PixelShuffle", nn.PixelShuffle(2), [randn(2, 8, 2, 3)])
    case("PixelUnshuffle", nn.PixelUnshuffle(2), [randn(2, 2, 4, 6)])
    case("ChannelShuffle", nn.ChannelShuffle(2), [randn(2, 6, 2)])
    case("Upsample.nearest", nn.Upsample(scale_factor=(2, 3)), [randn(2, 2, 2, 3)])
    case("Pad.constant", nn.ConstantPad2d((1, 2, 3, 0), 0.5), [randn(2, 2, 3)])
    case("Unflatten", nn.Unflatten(1, (2, 3)), [randn(2, 6, 2)])
    x, line = randn(2, 3, 6, 5), randn(2, 3, 9)
    case("MaxPool1d", nn.MaxPool1d(3, 2, 1, 2), [line])
    case("AvgPool1d", nn.AvgPool1d(3, 2, 1), [line])
    case("MaxPool2d", nn.MaxPool2d((3, 2), (2, 1), (1, 0)), [x])
    case("AvgPool2d", nn.AvgPool2d((3, 2), (2, 1), (1, 0)), [x])
    case("LpPool2d", nn.LPPool2d(2, 2), [x.abs() + 0.1])
    case("AdaptiveAvgPool1d", nn.AdaptiveAvgPool1d(4), [line])
    case("AdaptiveAvgPool2d", nn.AdaptiveAvgPool2d((4, 2)), [x])


def losses():
    x, y = randn(4, 3), randn(4, 3)
    p, q = exact(torch.rand(4, 3) * 0.8 + 0.1), exact(torch.rand(4, 3) * 0.8 + 0.1)
    signs = torch.tensor([1.0, -1, -1, 1])
    classes = torch.tensor([0, 2, 1, 2])
    table = torch.sign(y)
    for name, loss, inputs in [
        ("MseLoss", nn.MSELoss(), [x, y]),
        ("L1Loss", nn.L1Loss(reduction="sum"), [x, y]),
        ("HuberLoss", nn.HuberLoss(delta=0.7), [x, y]),
        ("SmoothL1Loss", nn.SmoothL1Loss(beta=0.7), [x, y]),
        ("CrossEntropyLoss", nn.CrossEntropyLoss(ignore_index=1, label_smoothing=0.1),
         [x, classes]),
        ("NllLoss", nn.NLLLoss(), [exact(F.log_softmax(x, 1)), classes]),
        ("BceLoss", nn.BCELoss(), [p, q]),
        ("BceWithLogitsLoss", nn.BCEWithLogitsLoss(), [x, q]),
        ("KlDivLoss", nn.KLDivLoss(reduction="mean"), [x, q]),
        ("PoissonNllLoss", nn.PoissonNLLLoss(), [x, q]),
        ("PoissonNllLoss.rate", nn.PoissonNLLLoss(log_input=False), [p, q]),
        ("SoftMarginLoss", nn.SoftMarginLoss(), [x, table]),
        ("HingeEmbeddingLoss", nn.HingeEmbeddingLoss(margin=0.8), [x, table]),
        ("MultiLabelSoftMarginLoss", nn.MultiLabelSoftMarginLoss(), [x, (table + 1) / 2]),
        ("MultiMarginLoss", nn.MultiMarginLoss(margin=0.6), [x, classes]),
        ("MultiMarginLoss.squares", nn.MultiMarginLoss(p=2), [x, classes]),
        ("GaussianNllLoss", nn.GaussianNLLLoss(full=True, eps=0.3), [x, y, p]),
        ("MarginRankingLoss", nn.MarginRankingLoss(0.3), [x, y, table]),
        ("TripletMarginLoss", nn.TripletMarginLoss(), [x, y, randn(4, 3)]),
        ("TripletMarginLoss.cubes", nn.TripletMarginLoss(p=3, margin=0.5), [x, y, randn(4, 3)]),
        ("CosineEmbeddingLoss", nn.CosineEmbeddingLoss(0.1), [x, y, signs]),
        ("CosineSimilarity", nn.CosineSimilarity(), [x, y]),
        ("PairwiseDistance", nn.PairwiseDistance(), [x, y]),
    ]:
        wrt = {"Gauss": 3, "Tripl": 3, "Cosin": 2, "Pairw": 2, "Margi": 2}.get(name[:5], 1)
        case(name, None, inputs, lambda _, *inputs, loss=loss: loss(*inputs), wrt=wrt)


def more_layers():
    volume = randn(2, 4, 5, 4, 3)
    case("Conv3d", nn.Conv3d(4, 6, (3, 2, 1), stride=(2, 1, 1), padding=(1, 0, 0), groups=2), [volume])
    line, image = randn(2, 4, 5), randn(2, 4, 3, 4)
    case("ConvTranspose1d", nn.ConvTranspose1d(4, 6, 3, stride=2, padding=1, output_padding=1,
                                               groups=2), [line])
    case("ConvTranspose2d", nn.ConvTranspose2d(4, 6, (3, 2), stride=(2, 1), padding=(1, 0),
                                               dilation=(1, 2), groups=2), [image])
    case("ConvTranspose3d", nn.ConvTranspose3d(4, 2, 2, stride=(1, 2, 1)), [randn(2, 4, 2, 2, 3)])
    case("MaxPool3d", nn.MaxPool3d(2, (2, 1, 1)), [volume])
    case("AvgPool3d", nn.AvgPool3d(2, (2, 1, 1)), [volume])
    case("LpPool1d", nn.LPPool1d(2, 3, 2), [line.abs() + 0.1])
    case("LpPool3d", nn.LPPool3d(2, 2), [volume.abs() + 0.1])
    case("AdaptiveAvgPool3d", nn.AdaptiveAvgPool3d((2, 3, 2)), [volume])
    case("AdaptiveMaxPool1d", nn.AdaptiveMaxPool1d(2), [line])
    case("AdaptiveMaxPool2d", nn.AdaptiveMaxPool2d((2, 3)), [image])
    case("AdaptiveMaxPool3d", nn.AdaptiveMaxPool3d((2, 3, 2)), [volume])
    case("Unfold", nn.Unfold((2, 3), stride=(1, 2), padding=(1, 0)), [image])
    case("Fold", nn.Fold((3, 4), (2, 2)), [randn(2, 12, 6)])
    case("MaxUnpool2d", None, [randn(1, 2, 4, 4)],
         lambda _, x: nn.MaxUnpool2d(2)(*F.max_pool2d(x, 2, return_indices=True)))
    case("Upsample", nn.Upsample(scale_factor=(2, 1.5), mode="bilinear"), [image])
    case("Upsample.corners", nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True), [image])
    case("Upsample.cubic", nn.Upsample(scale_factor=2, mode="bicubic"), [image])
    case("Upsample.line", nn.Upsample(scale_factor=2, mode="linear"), [line])
    case("Upsample.volume", nn.Upsample(scale_factor=2, mode="nearest"), [randn(1, 2, 2, 2, 2)])
    case("Pad.reflect", nn.ReflectionPad2d((1, 2, 2, 0)), [image])
    case("Pad.replicate", nn.ReplicationPad2d((1, 2, 2, 0)), [image])
    case("Pad.circular", nn.CircularPad1d((1, 2)), [line])
    steps = exact(F.log_softmax(randn(6, 2, 4), -1))
    targets = torch.tensor([[1, 2, 2], [3, 1, 0]])
    case("CtcLoss", None, [steps, targets, torch.tensor([6, 5]), torch.tensor([3, 2])],
         lambda _, x, y, n, m: nn.CTCLoss()(x, y, n, m))
    classes = torch.tensor([[2, 0, -1], [1, -1, 0]])
    case("MultiLabelMarginLoss", None, [randn(2, 3), classes],
         lambda _, x, y: nn.MultiLabelMarginLoss()(x, y))


def options():
    line, image, volume = randn(2, 4, 7), randn(2, 4, 6, 5), randn(1, 2, 4, 3, 5)
    case("Conv1d.same", nn.Conv1d(4, 6, 4, padding="same", dilation=2), [line])
    case("Conv2d.same", nn.Conv2d(4, 6, (3, 2), padding="same", groups=2), [image])
    case("Conv3d.same", nn.Conv3d(2, 3, (2, 3, 1), padding="same", padding_mode="circular"), [volume])
    for mode in ["reflect", "replicate", "circular"]:
        case(f"Conv1d.{mode}", nn.Conv1d(4, 6, 3, stride=2, padding=2, padding_mode=mode), [line])
        case(f"Conv2d.{mode}", nn.Conv2d(4, 6, 3, padding=(2, 1), padding_mode=mode, bias=False), [image])
    case("Conv3d.reflect", nn.Conv3d(2, 3, 2, padding=(2, 0, 1), padding_mode="reflect"), [volume])
    case("LayerNorm.plain", nn.LayerNorm([6, 5], elementwise_affine=False), [image])
    case("LayerNorm.gain", nn.LayerNorm(5, bias=False), [image])
    case("RmsNorm.plain", nn.RMSNorm(5, eps=1e-6, elementwise_affine=False), [image])
    case("GroupNorm.plain", nn.GroupNorm(2, 4, affine=False), [image])
    stats = ["running_mean", "running_var", "num_batches_tracked"]
    case("BatchNorm2d.plain", nn.BatchNorm2d(4, affine=False), [image], after=stats)
    case("BatchNorm2d.untracked", nn.BatchNorm2d(4, track_running_stats=False).eval(), [image])
    case("BatchNorm1d.bare", nn.BatchNorm1d(4, affine=False, track_running_stats=False), [line])


for family in [activations, norms, products, recurrent, attention, positions, shapes, losses,
               more_layers, options]:
    family()
save_file(STORED, FILE)
print(f"{len(STORED)} tensors, {FILE.stat().st_size} bytes")
