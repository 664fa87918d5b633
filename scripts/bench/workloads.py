"""The workloads that zyx and its peers have in common: names, units, inputs.

Inputs come from one NumPy generator a workload, in a fixed order, so every framework computes on
the same numbers and its result has the same checksum. `zyx-bench --data FOLDER` reads what
`save` wrote.
"""
import math
import re
from pathlib import Path

import numpy as np

M16 = 16 << 20

# name: (unit, work of a call; a rate is work / seconds / 1e9, shapes of the inputs)
OPS = {
    "matmul_f32_256": ("GFLOP/s", 2 * 256**3, [(256, 256)] * 2),
    "matmul_f32_1024": ("GFLOP/s", 2 * 1024**3, [(1024, 1024)] * 2),
    "matmul_f32_2048": ("GFLOP/s", 2 * 2048**3, [(2048, 2048)] * 2),
    "matmul_bf16_1024": ("GFLOP/s", 2 * 1024**3, [(1024, 1024)] * 2),
    "bmm_f32_16x256": ("GFLOP/s", 16 * 2 * 256**3, [(16, 256, 256)] * 2),
    "gemv_f32_4096": ("GB/s", 4 * (4096**2 + 2 * 4096), [(4096, 4096), (4096,)]),
    "chain_16m": ("GB/s", 16 * M16, [(M16,)] * 3),
    "gelu_16m": ("GB/s", 8 * M16, [(M16,)]),
    "sum_16m": ("GB/s", 4 * M16, [(M16,)]),
    "sum_rows_4096": ("GB/s", 4 * 4096**2, [(4096, 4096)]),
    "sum_cols_4096": ("GB/s", 4 * 4096**2, [(4096, 4096)]),
    "softmax_4096x1024": ("GB/s", 8 * 4096 * 1024, [(4096, 1024)]),
    "layernorm_4096x1024": ("GB/s", 8 * 4096 * 1024, [(4096, 1024), (1024,), (1024,)]),
    "cumsum_16m": ("GB/s", 8 * M16, [(M16,)]),
    "argmax_rows_4096": ("GB/s", 4 * 4096**2, [(4096, 4096)]),
    "conv2d_fwd": ("GFLOP/s", 2 * 16 * 64 * 56 * 56 * 64 * 9, [(16, 64, 56, 56), (64, 64, 3, 3)]),
}
M256 = 256 << 20
SQUARE = (16384, 16384)
ROWS = (65536, 4096)
HEADS = (8, 16, 4096, 64)
IMAGES = [(64, 64, 56, 56), (64, 64, 3, 3)]

# Operations at the size of a GPU, on inputs that each framework draws itself; as OPS.
LARGE = {
    "copy_256m": ("GB/s", 8 * M256, [(M256,)]),
    "chain_256m": ("GB/s", 16 * M256, [(M256,)] * 3),
    "gelu_256m": ("GB/s", 8 * M256, [(M256,)]),
    "sum_256m": ("GB/s", 4 * M256, [(M256,)]),
    "sum_rows_16384": ("GB/s", 4 * M256, [SQUARE]),
    "sum_cols_16384": ("GB/s", 4 * M256, [SQUARE]),
    "softmax_65536x4096": ("GB/s", 8 * M256, [ROWS]),
    "layernorm_65536x4096": ("GB/s", 8 * M256, [ROWS, ROWS[1:], ROWS[1:]]),
    "transpose_16384": ("GB/s", 8 * M256, [SQUARE]),
    "cumsum_256m": ("GB/s", 8 * M256, [(M256,)]),
    "sort_16m": ("GB/s", 8 * M16, [(M16,)]),
    "matmul_f32_4096": ("GFLOP/s", 2 * 4096**3, [(4096, 4096)] * 2),
    "matmul_f32_8192": ("GFLOP/s", 2 * 8192**3, [(8192, 8192)] * 2),
    "matmul_bf16_4096": ("GFLOP/s", 2 * 4096**3, [(4096, 4096)] * 2),
    "matmul_bf16_8192": ("GFLOP/s", 2 * 8192**3, [(8192, 8192)] * 2),
    "matmul_f16_4096": ("GFLOP/s", 2 * 4096**3, [(4096, 4096)] * 2),
    "gemv_f32_8192": ("GB/s", 4 * 8192**2, [(8192, 8192), (8192,)]),
    "conv2d_64_f32": ("GFLOP/s", 2 * 64 * 64 * 56 * 56 * 64 * 9, IMAGES),
    "conv2d_64_bf16": ("GFLOP/s", 2 * 64 * 64 * 56 * 56 * 64 * 9, IMAGES),
    "attention_bf16_4096": ("GFLOP/s", 4 * 128 * 4096**2 * 64, [HEADS] * 3),
    "attention_causal_bf16_4096": ("GFLOP/s", 2 * 128 * 4096**2 * 64, [HEADS] * 3),
}
GPT = {"layers": 4, "dim": 256, "heads": 8, "length": 128, "batch": 8, "vocabulary": 256, "bf16": False}
GPT2 = {"layers": 12, "dim": 768, "heads": 12, "length": 1024, "batch": 8, "vocabulary": 50304, "bf16": True}
TEXT = {"gpt_train": GPT, "gpt2_train_bf16": GPT2}
TRAINING = ["mlp_train", "conv_train", "gpt_train"]
TRAINED = TRAINING + ["gpt2_train_bf16"]
# One token of a network at the last of so many positions; keys and values of those before are kept.
DECODING = ["gpt_decode"]
DECODER = {"layers": 12, "dim": 768, "heads": 12, "vocabulary": 50257, "positions": 1024, "length": 128}
ALL = TRAINING + DECODING + list(OPS)
ALL_LARGE = TRAINED + DECODING + list(LARGE)


def stem(name):
    """What a workload computes: its name without sizes and dtypes."""
    return re.sub(r"_(f32|bf16|f16|fwd|[0-9]+m?|[0-9x]+)(?=_|$)", "", name)


def dtype(name):
    """"f32", "bf16" or "f16"."""
    return next((t for t in ("bf16", "f16") if f"_{t}" in name), "f32")


def op_inputs(name):
    rng = np.random.default_rng(0)
    return [rng.standard_normal(shape, dtype=np.float32) for shape in OPS[name][2]]


def uniform(rng, shape, fan_in):
    k = 1.0 / math.sqrt(fan_in)
    return (rng.random(shape, dtype=np.float32) * np.float32(2 * k) - np.float32(k)).astype(np.float32)


def images(name):
    """60,000 images `X`, labels `Y`, the rows of a thousand batches `T`, and parameters."""
    rng = np.random.default_rng(0)
    x = rng.random((60000, 784), dtype=np.float32)
    y = rng.integers(0, 10, 60000).astype(np.int32)
    t = rng.integers(0, 60000, (1000, 128 if name == "mlp_train" else 64)).astype(np.int32)
    shapes = {"w1": ((128, 784), 784), "b1": ((128,), 784)}
    if name == "conv_train":
        shapes = {
            "c1": ((32, 1, 3, 3), 9),
            "d1": ((32,), 9),
            "c2": ((64, 32, 3, 3), 288),
            "d2": ((64,), 288),
            "w1": ((128, 9216), 9216),
            "b1": ((128,), 9216),
        }
    shapes |= {"w2": ((10, 128), 128), "b2": ((10,), 128)}
    return x, y, t, {key: uniform(rng, *value) for key, value in shapes.items()}


def text(gpt=GPT):
    """A million tokens, the offsets of a thousand batches, and parameters of a GPT."""
    rng = np.random.default_rng(0)
    d, v, length = gpt["dim"], gpt["vocabulary"], gpt["length"]
    tokens = rng.integers(0, v, 1_000_000).astype(np.int32)
    offsets = rng.integers(0, 1_000_000 - length - 1, (1000, gpt["batch"])).astype(np.int64)

    def weight(*shape):
        return rng.standard_normal(shape, dtype=np.float32) * np.float32(0.02)

    def zeros(*shape):
        return np.zeros(shape, np.float32)

    def ones(*shape):
        return np.ones(shape, np.float32)

    p = {"wte": weight(v, d), "wpe": weight(length, d)}
    for i in range(gpt["layers"]):
        p |= {f"l1g{i}": ones(d), f"l1b{i}": zeros(d)}
        p |= {f"qkvw{i}": weight(3 * d, d), f"qkvb{i}": zeros(3 * d)}
        p |= {f"pw{i}": weight(d, d), f"pb{i}": zeros(d)}
        p |= {f"l2g{i}": ones(d), f"l2b{i}": zeros(d)}
        p |= {f"fw{i}": weight(4 * d, d), f"fb{i}": zeros(4 * d)}
        p |= {f"ow{i}": weight(d, 4 * d), f"ob{i}": zeros(d)}
    return tokens, offsets, p | {"lfg": ones(d), "lfb": zeros(d), "head": weight(v, d)}


def text_batch(tokens, offsets, step, gpt=GPT):
    """Inputs and targets `[batch, length]` of one step."""
    rows = tokens[offsets[step % 1000][:, None] + np.arange(gpt["length"] + 1)[None]]
    return np.ascontiguousarray(rows[:, :-1]), np.ascontiguousarray(rows[:, 1:])


def decoder():
    """Weights of a GPT, whose biases are 0 and gains 1, and the keys and values of each layer."""
    rng = np.random.default_rng(0)
    d, length = DECODER["dim"], DECODER["length"]
    normal = lambda *shape: rng.standard_normal(shape, dtype=np.float32)
    weight = lambda *shape: normal(*shape) * np.float32(0.02)
    p = {"wte": weight(DECODER["vocabulary"], d), "wpe": weight(DECODER["positions"], d)}
    for i in range(DECODER["layers"]):
        p |= {f"qkvw{i}": weight(3 * d, d), f"pw{i}": weight(d, d)}
        p |= {f"fw{i}": weight(4 * d, d), f"ow{i}": weight(d, 4 * d)}
    for i in range(DECODER["layers"]):
        heads = (DECODER["heads"], length, d // DECODER["heads"])
        p |= {f"cache_k{i}": normal(*heads), f"cache_v{i}": normal(*heads)}
    return p


def save(name, folder):
    """Writes what `zyx-bench --data` reads: WORKLOAD.INPUT.npy; nothing where each draws its own."""
    if name in LARGE:
        return
    if name in OPS:
        arrays = {f"in{i}": x for i, x in enumerate(op_inputs(name))}
    elif name in DECODING:
        arrays = decoder()
    elif name in TEXT:
        tokens, offsets, parameters = text(TEXT[name])
        arrays = {"tokens": tokens, "offsets": offsets} | parameters
    else:
        x, y, t, parameters = images(name)
        arrays = {"X": x, "Y": y, "T": t} | parameters
    for key, value in arrays.items():
        np.save(Path(folder) / f"{name}.{key}.npy", value)
