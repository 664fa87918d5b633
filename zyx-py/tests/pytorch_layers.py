"""Signatures, attributes, printed forms and state of PyTorch's layers and optimizers: `data/pytorch_layers.json`.

For each class the file has its parameters with defaults, and for each call of `CALLS` the public attributes that are plain
values, the text of `repr`, and name and shape of everything in `state_dict()`.

    python zyx-py/tests/pytorch_layers.py

writes the file again; this needs `torch`.
"""

import inspect
import json
import pathlib

FILE = pathlib.Path(__file__).with_name("data") / "pytorch_layers.json"

CALLS = """
Linear(2, 3)
Linear(2, 3, True, None, None)
Linear(2, 3, bias=False)
Identity(5, unused=1)
Bilinear(2, 3, 4)
Bilinear(2, 3, 4, bias=False)
Conv1d(2, 4, 3)
Conv1d(2, 4, (3,), 2, 1, 1, 2, False)
Conv2d(2, 4, 3)
Conv2d(2, 4, (3, 5), padding='same')
Conv2d(2, 4, 3, 1, 1, 2, 2, True, 'circular')
Conv3d(2, 4, 3, padding=(1, 0, 2))
ConvTranspose1d(2, 4, 3)
ConvTranspose2d(2, 4, 3, 2, 1, 1)
ConvTranspose3d(2, 4, 3, bias=False, dilation=2)
Embedding(5, 3)
Embedding(5, 3, 1)
Embedding(5, 3, padding_idx=-1)
Embedding(5, 3, None, 2.0, 1.0)
EmbeddingBag(5, 3)
EmbeddingBag(5, 3, mode='sum', padding_idx=1, include_last_offset=True)
BatchNorm1d(3)
BatchNorm2d(3, 0.001, 0.2)
BatchNorm3d(3, affine=False, track_running_stats=False)
BatchNorm2d(3, momentum=None)
SyncBatchNorm(3)
InstanceNorm1d(3)
InstanceNorm2d(3, affine=True, track_running_stats=True)
InstanceNorm3d(3)
GroupNorm(2, 4)
GroupNorm(2, 4, 0.001, False)
LayerNorm(3)
LayerNorm((2, 3), 0.001, elementwise_affine=False)
LayerNorm([2, 3], bias=False)
RMSNorm(3)
RMSNorm((3,), 0.1, elementwise_affine=False)
LocalResponseNorm(2)
CrossMapLRN2d(2)
Dropout()
Dropout(0.2, True)
Dropout1d(0.2)
Dropout2d()
Dropout3d(inplace=True)
AlphaDropout(0.1)
FeatureAlphaDropout(0.1)
ReLU()
ReLU(True)
ReLU6()
LeakyReLU()
LeakyReLU(0.2, inplace=True)
ELU(0.5)
ELU(inplace=True)
CELU()
CELU(2.0, True)
SELU()
SELU(True)
GELU()
GELU('tanh')
SiLU()
SiLU(inplace=True)
Mish()
Mish(True)
Sigmoid()
Tanh()
LogSigmoid()
Softsign()
Tanhshrink()
Hardsigmoid()
Hardswish(True)
Hardtanh()
Hardtanh(-2, 2, True)
Hardshrink()
Hardshrink(0.1)
Softshrink()
Softplus()
Softplus(2, 10)
Softmax()
Softmax(1)
Softmax2d()
LogSoftmax(-1)
Softmin(0)
GLU()
GLU(1)
Threshold(0.1, 20)
Threshold(0.1, 20, True)
RReLU()
RReLU(0.1, 0.3, True)
PReLU()
PReLU(3, 0.1)
Flatten()
Flatten(0, 1)
Unflatten(1, (2, 3))
PixelShuffle(2)
PixelUnshuffle(2)
ChannelShuffle(2)
Upsample(scale_factor=2)
Upsample((4, 4), mode='bilinear', align_corners=True)
UpsamplingNearest2d(scale_factor=2)
UpsamplingBilinear2d((3, 3))
MaxPool1d(2)
MaxPool2d(3, 2, 1)
MaxPool2d((3, 2), ceil_mode=True, return_indices=True)
MaxPool3d(2)
AvgPool1d(2)
AvgPool2d(3, 2, 1, False, True, 3)
AvgPool3d(2, count_include_pad=False)
LPPool1d(2, 3)
LPPool2d(1.5, 2, 1, True)
LPPool3d(2, 2)
MaxUnpool1d(2)
MaxUnpool2d(3, 2, 1)
MaxUnpool3d(2)
AdaptiveAvgPool1d(2)
AdaptiveAvgPool2d((2, None))
AdaptiveAvgPool3d(2)
AdaptiveMaxPool1d(2)
AdaptiveMaxPool2d(2, True)
AdaptiveMaxPool3d((1, 2, 3))
FractionalMaxPool2d(3, 2)
FractionalMaxPool2d(3, output_ratio=0.5)
FractionalMaxPool3d(3, 2)
ZeroPad1d(1)
ZeroPad2d((1, 2, 3, 4))
ZeroPad3d(1)
ConstantPad1d(2, 3.5)
ConstantPad2d(2, 3.5)
ConstantPad3d(2, 3.5)
ReflectionPad1d(1)
ReflectionPad2d(1)
ReflectionPad3d(1)
ReplicationPad1d(1)
ReplicationPad2d(1)
ReplicationPad3d(1)
CircularPad1d(1)
CircularPad2d(1)
CircularPad3d(1)
Fold((4, 4), 2)
Unfold(2, stride=2)
Unfold((2, 3))
CosineSimilarity()
CosineSimilarity(0, 0.1)
PairwiseDistance()
PairwiseDistance(1, 0.1, True)
RNN(2, 3)
RNN(2, 3, 2, 'relu', batch_first=True)
RNN(2, 3, nonlinearity='relu', dropout=0.0, bidirectional=True)
LSTM(2, 3)
LSTM(2, 3, 2, False, True, 0.5, True)
GRU(2, 3, num_layers=2)
RNNCell(2, 3)
RNNCell(2, 3, False, 'relu')
LSTMCell(2, 3)
LSTMCell(2, 3, bias=False)
GRUCell(2, 3)
MultiheadAttention(4, 2)
MultiheadAttention(4, 2, 0.1, False, batch_first=True)
MultiheadAttention(4, 2, kdim=3, vdim=5)
TransformerEncoderLayer(4, 2, 8)
TransformerDecoderLayer(4, 2, 8, activation='gelu', norm_first=True)
TransformerEncoder(TransformerEncoderLayer(4, 2, 8), 2)
TransformerEncoder(TransformerEncoderLayer(4, 2, 8), 2, norm=LayerNorm(4))
TransformerDecoder(TransformerDecoderLayer(4, 2, 8), 2)
Transformer(4, 2, 1, 1, 8)
L1Loss()
L1Loss(reduction='sum')
MSELoss()
MSELoss(None, None, 'none')
SmoothL1Loss(beta=0.5)
HuberLoss(delta=0.5)
CrossEntropyLoss()
CrossEntropyLoss(ignore_index=1, label_smoothing=0.1)
NLLLoss()
NLLLoss2d()
BCELoss()
BCEWithLogitsLoss()
KLDivLoss()
KLDivLoss(reduction='batchmean', log_target=True)
PoissonNLLLoss()
PoissonNLLLoss(False, True)
GaussianNLLLoss()
GaussianNLLLoss(full=True)
CTCLoss()
CTCLoss(1, 'sum', True)
HingeEmbeddingLoss()
HingeEmbeddingLoss(2.0)
MarginRankingLoss(0.5)
CosineEmbeddingLoss()
MultiLabelMarginLoss()
MultiLabelSoftMarginLoss()
MultiMarginLoss()
MultiMarginLoss(2, 0.5)
SoftMarginLoss()
TripletMarginLoss()
TripletMarginLoss(0.5, 1.0, swap=True)
TripletMarginWithDistanceLoss()
AdaptiveLogSoftmaxWithLoss(4, 10, [3, 6])
Sequential(Linear(2, 3), ReLU())
Sequential(Linear(2, 3), Linear(2, 3), Linear(2, 3), ReLU())
ModuleList([Linear(2, 3), Linear(2, 3)])
ModuleDict({'a': ReLU(), 'b': Linear(1, 1)})
LazyLinear(3)
LazyConv2d(4, 3)
LazyBatchNorm2d()
LazyConvTranspose1d(4, 3)
LazyInstanceNorm3d()
"""

OPTIMIZERS = "SGD Adam AdamW RMSprop Adagrad Adadelta Adamax NAdam RAdam Rprop ASGD Adafactor Muon"


def shown(function):
    """Parameters with defaults, as PyTorch has them; `self` left out."""
    found = []
    for p in list(inspect.signature(function).parameters.values()):
        default = "" if p.default is p.empty else f"={p.default!r}"
        mark = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
        if p.kind == p.KEYWORD_ONLY and not any(x.startswith("*") for x in found):
            found.append("*")
        found.append(f"{mark}{p.name}{default}")
    return ", ".join(found)


def plain(value):
    """A value as JSON keeps it, or nothing."""
    if isinstance(value, (tuple, list)):
        parts = [plain(x) for x in value]
        return None if any(part is None and x is not None for part, x in zip(parts, value)) else parts
    return value if value is None or isinstance(value, (bool, int, float, str)) else None


def attributes(layer):
    """The public attributes that are plain values."""
    values = {name: value for name, value in vars(layer).items() if not name.startswith("_") and name != "training"}
    kept = {name: plain(value) for name, value in values.items() if name not in ("min_val", "max_val") or "Hardtanh" in type(layer).__name__}
    return {name: value for name, value in kept.items() if value is not None or values[name] is None}


def state(layer):
    """Name and shape of the state."""
    try:
        return {name: list(x.shape) for name, x in layer.state_dict().items()}
    except (RuntimeError, ValueError):
        return None


def described(nn):
    """For each call of `CALLS` attributes, printed form and state of a library's layer."""
    found = {}
    for line in CALLS.split("\n")[1:-1]:
        layer = eval(line, vars(nn))
        found[line] = {"attributes": attributes(layer), "repr": repr(layer), "state": state(layer)}
    return found


def collect():
    import torch

    names = dict.fromkeys(line.partition("(")[0] for line in CALLS.split("\n")[1:-1])
    signatures = {f"nn.{name}": shown(getattr(torch.nn, name)) for name in names}
    signatures |= {f"optim.{name}": shown(getattr(torch.optim, name)) for name in OPTIMIZERS.split()}
    weight = torch.nn.Parameter(torch.ones(2, 2))
    groups = {}
    for name in OPTIMIZERS.split():
        optimizer = getattr(torch.optim, name)([weight])
        group = {k: plain(v) for k, v in optimizer.param_groups[0].items() if k != "params"}
        groups[name] = {"group": group, "defaults": sorted(optimizer.defaults), "repr": repr(optimizer)}
    return {"version": torch.__version__, "signatures": signatures, "layers": described(torch.nn), "optimizers": groups}


def main():
    FILE.write_text(json.dumps(collect(), indent=1) + "\n")


if __name__ == "__main__":
    main()
