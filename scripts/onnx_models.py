"""Writes whole models, exported by PyTorch with random weights, and what onnxruntime computes for them, as files of
onnx_nodes.py.

Usage: onnx_models.py FOLDER, which is tests/data/onnx. Needs torch, onnx, onnxscript and onnxruntime.
"""
import pathlib, sys, warnings
import numpy as np
import torch
from torch import nn
import torch.nn.functional as F
import onnx, onnxruntime
from onnx import helper, numpy_helper
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
from onnxruntime.quantization.shape_inference import quant_pre_process

warnings.filterwarnings("ignore")
torch.manual_seed(0)
torch.backends.mha.set_fastpath_enabled(False)
OUT = pathlib.Path(sys.argv[1])


def write(name, model, sets, outputs, inputs, dynamic=None, tolerance="1e-3 1e-4", edit=None, dynamo=False):
    """`sets` are lists of inputs; shapes of the first may vary where `dynamic` says so."""
    folder = OUT / name
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "model.onnx"
    if dynamo:
        torch.onnx.export(model.eval(), tuple(sets[0]), str(file), input_names=inputs, output_names=outputs, dynamo=True, external_data=False, verbose=False)
    else:
        torch.onnx.export(model.eval(), tuple(sets[0]), str(file), input_names=inputs, output_names=outputs, dynamic_axes=dynamic, opset_version=18, dynamo=False)
    if edit:
        onnx.save(edit(onnx.load(file)), file)
    record(folder, sets, tolerance)


def record(folder, sets, tolerance):
    """Writes inputs and what onnxruntime gives for them."""
    file = folder / "model.onnx"
    session = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    (folder / "tolerance").write_text(tolerance + "\n")
    for i, values in enumerate(sets):
        data = folder / f"set_{i}"
        data.mkdir(exist_ok=True)
        named = {p.name: v.numpy() for p, v in zip(session.get_inputs(), values)}
        for j, array in enumerate(named.values()):
            (data / f"input_{j}.pb").write_bytes(numpy_helper.from_array(array).SerializeToString())
        for j, array in enumerate(session.run(None, named)):
            (data / f"output_{j}.pb").write_bytes(numpy_helper.from_array(array).SerializeToString())
    print(folder.name, file.stat().st_size, flush=True)


class Calibration(CalibrationDataReader):
    def __init__(self, sets):
        self.sets = iter([{"x": x.numpy()} for x, in sets])

    def get_next(self):
        return next(self.sets, None)


def quantised(name, sets):
    """The model in integers of 8 bits, both ways of writing that."""
    for form, signed in (("QDQ", False), ("QOperator", True)):
        kind = QuantType.QInt8 if signed else QuantType.QUInt8
        folder = OUT / f"{name}_{form.lower()}"
        folder.mkdir(parents=True, exist_ok=True)
        whole = folder / "whole.onnx"
        quant_pre_process(OUT / name / "model.onnx", whole, skip_symbolic_shape=True)
        quantize_static(whole, folder / "model.onnx", Calibration(sets), quant_format=QuantFormat[form], per_channel=not signed, activation_type=kind, weight_type=QuantType.QInt8)
        whole.unlink()
        record(folder, sets, "1e-3 1e-4")


class Bottleneck(nn.Module):
    def __init__(self, c, out, stride):
        super().__init__()
        self.a, self.b, self.c = nn.Conv2d(c, c // 2, 1, bias=False), nn.Conv2d(c // 2, c // 2, 3, stride, 1, bias=False), nn.Conv2d(c // 2, out, 1, bias=False)
        self.n = nn.ModuleList(nn.BatchNorm2d(n) for n in (c // 2, c // 2, out))
        self.short = nn.Sequential(nn.Conv2d(c, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x):
        y = F.relu(self.n[0](self.a(x)))
        y = F.relu(self.n[1](self.b(y)))
        return F.relu(self.n[2](self.c(y)) + self.short(x))


class ResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 16, 7, 2, 3, bias=False), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
        self.blocks = nn.Sequential(Bottleneck(16, 32, 1), Bottleneck(32, 64, 2), Bottleneck(64, 96, 2))
        self.head = nn.Linear(96, 10)

    def forward(self, x):
        return self.head(F.adaptive_avg_pool2d(self.blocks(self.stem(x)), 1).flatten(1))


class Inverted(nn.Module):
    def __init__(self, c, out, stride, grow=6):
        super().__init__()
        h = c * grow
        self.same = stride == 1 and c == out
        layers = [nn.Conv2d(c, h, 1, bias=False), nn.BatchNorm2d(h), nn.ReLU6(), nn.Conv2d(h, h, 3, stride, 1, groups=h, bias=False), nn.BatchNorm2d(h), nn.Hardswish(), nn.Conv2d(h, out, 1, bias=False), nn.BatchNorm2d(out)]
        self.layers = nn.Sequential(*layers)

    def forward(self, x):
        return x + self.layers(x) if self.same else self.layers(x)


class Encoder(nn.Module):
    def __init__(self, words=150, width=32, heads=4):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(64, width)
        self.blocks = nn.ModuleList(nn.ModuleDict({"qkv": nn.Linear(width, 3 * width), "out": nn.Linear(width, width), "up": nn.Linear(width, 4 * width), "down": nn.Linear(4 * width, width), "n1": nn.LayerNorm(width), "n2": nn.LayerNorm(width)}) for _ in range(2))
        self.heads = heads

    def forward(self, ids, mask):
        batch, n = ids.shape
        x = self.words(ids) + self.places(torch.arange(n, device=ids.device))
        bias = (1.0 - mask[:, None, None, :].to(x.dtype)) * -10000.0
        for b in self.blocks:
            q, k, v = b["qkv"](b["n1"](x)).view(batch, n, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
            scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5 + bias
            x = x + b["out"]((scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, n, -1))
            x = x + b["down"](F.gelu(b["up"](b["n2"](x))))
        return x


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.gru, self.out = nn.LSTM(16, 24, 2, batch_first=True, bidirectional=True), nn.GRU(48, 16, batch_first=True), nn.Linear(16, 5)

    def forward(self, x):
        return self.out(self.gru(self.lstm(x)[0])[0])


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1), nn.SiLU(), nn.Conv2d(16, 32, 3, 2, 1), nn.SiLU())
        self.head = nn.Conv2d(32, 4 + 3, 1)

    def forward(self, x):
        y = self.body(x)
        y = self.head(F.interpolate(y, scale_factor=2.0, mode="nearest"))
        n, _, h, w = y.shape
        rows = torch.arange(h, dtype=x.dtype).view(1, h, 1).expand(n, h, w)
        columns = torch.arange(w, dtype=x.dtype).view(1, 1, w).expand(n, h, w)
        size = y[:, 2:4].sigmoid() * 8
        center = torch.stack([columns, rows], 1) + y[:, :2].sigmoid()
        boxes = torch.cat([center - size / 2, center + size / 2], 1).flatten(2).transpose(1, 2)
        return boxes, y[:, 4:].sigmoid().flatten(2)


def with_suppression(model):
    """Adds NonMaxSuppression and what picks the boxes that are left."""
    graph = model.graph
    constants = [("most", np.array([20], np.int64)), ("overlap", np.array([0.5], np.float32)), ("least", np.array([0.3], np.float32)), ("two", np.array([2], np.int64))]
    graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in constants)
    graph.node.extend([
        helper.make_node("NonMaxSuppression", ["boxes", "scores", "most", "overlap", "least"], ["kept"]),
        helper.make_node("Gather", ["kept", "two"], ["column"], axis=1),
        helper.make_node("Squeeze", ["column"], ["places"]),
        helper.make_node("Gather", ["boxes", "places"], ["found"], axis=1),
    ])
    del graph.output[:]
    graph.output.extend([helper.make_tensor_value_info("kept", onnx.TensorProto.INT64, None), helper.make_tensor_value_info("found", onnx.TensorProto.FLOAT, None)])
    return model


class Sound(nn.Module):
    """The encoder of a speech model: two convolutions over time, then attention."""

    def __init__(self, width=48):
        super().__init__()
        self.c1, self.c2 = nn.Conv1d(20, width, 3, padding=1), nn.Conv1d(width, width, 3, 2, 1)
        self.layer = nn.TransformerEncoderLayer(width, 4, 96, batch_first=True, activation="gelu", norm_first=True)
        self.register_buffer("places", torch.randn(40, width))

    def forward(self, mel):
        x = F.gelu(self.c2(F.gelu(self.c1(mel)))).transpose(1, 2)
        return self.layer(x + self.places[: x.shape[1]])


class Words(nn.Module):
    """One step of its decoder, with keys and values of the words before."""

    def __init__(self, width=48, heads=4):
        super().__init__()
        self.words, self.places = nn.Embedding(100, width), nn.Embedding(64, width)
        self.q, self.k, self.v, self.o = (nn.Linear(width, width) for _ in range(4))
        self.cq, self.ck, self.cv, self.co = (nn.Linear(width, width) for _ in range(4))
        self.n1, self.n2, self.n3, self.up, self.down = nn.LayerNorm(width), nn.LayerNorm(width), nn.LayerNorm(width), nn.Linear(width, 96), nn.Linear(96, width)
        self.heads = heads

    def split(self, x):
        return x.view(x.shape[0], x.shape[1], self.heads, -1).transpose(1, 2)

    def forward(self, ids, sound, past_k, past_v):
        past = past_k.shape[2]
        x = self.words(ids) + self.places(torch.arange(past, past + ids.shape[1]))
        y = self.n1(x)
        k, v = torch.cat([past_k, self.split(self.k(y))], 2), torch.cat([past_v, self.split(self.v(y))], 2)
        y = F.scaled_dot_product_attention(self.split(self.q(y)), k, v)
        x = x + self.o(y.transpose(1, 2).flatten(2))
        y = F.scaled_dot_product_attention(self.split(self.cq(self.n2(x))), self.split(self.ck(sound)), self.split(self.cv(sound)))
        x = x + self.co(y.transpose(1, 2).flatten(2))
        x = x + self.down(F.gelu(self.up(self.n3(x))))
        return x @ self.words.weight.T, k, v


with torch.no_grad():
    images = [[torch.randn(1, 3, 48, 48)], [torch.randn(2, 3, 48, 48)]]
    write("model_resnet", ResNet(), images, ["y"], ["x"], {"x": {0: "batch"}})
    mobile = nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1), nn.ReLU6(), Inverted(16, 16, 1), Inverted(16, 24, 2), Inverted(24, 24, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(24, 10))
    quantised("model_resnet", images)
    write("model_mobilenet", mobile, images, ["y"], ["x"], {"x": {0: "batch"}})
    write("model_resnet_dynamo", ResNet(), images[:1], ["y"], ["x"], dynamo=True)
    texts = [[torch.randint(0, 150, (b, n)), (torch.rand(b, n) > 0.2).long()] for b, n in [(1, 12), (2, 12), (1, 37), (3, 64)]]
    write("model_encoder", Encoder(), texts, ["y"], ["ids", "mask"], {"ids": {0: "b", 1: "n"}, "mask": {0: "b", 1: "n"}})
    write("model_encoder_dynamo", Encoder(), texts[:1], ["y"], ["ids", "mask"], dynamo=True)
    write("model_recurrent", Recurrent(), [[torch.randn(2, 9, 16)], [torch.randn(2, 4, 16)]], ["y"], ["x"], {"x": {1: "n"}})
    write("model_detector", Detector(), [[torch.randn(1, 3, 32, 32)]], ["boxes", "scores"], ["x"], edit=with_suppression)
    write("model_sound", Sound(), [[torch.randn(1, 20, 32)]], ["y"], ["mel"])
    sound = torch.randn(1, 16, 48)
    steps = [[torch.randint(0, 100, (1, 1)), sound, torch.randn(1, 4, n, 12), torch.randn(1, 4, n, 12)] for n in (5, 6, 7, 20)]
    write("model_words", Words(), steps, ["y", "k", "v"], ["ids", "sound", "past_k", "past_v"], {"past_k": {2: "n"}, "past_v": {2: "n"}})
