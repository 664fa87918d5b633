"""The workloads that zyx and its peers have in common: names, units, inputs.

Inputs come from one NumPy generator a workload, in a fixed order, so every framework computes on
the same numbers and its result has the same checksum. `zyx-bench --data FOLDER` reads what
`save` wrote.
"""
import math
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
TRAINING = ["mlp_train", "conv_train", "gpt_train"]
ALL = TRAINING + list(OPS)

GPT = {"layers": 4, "dim": 256, "heads": 8, "length": 128, "batch": 8, "vocabulary": 256}


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


def text():
    """A million tokens, the offsets of a thousand batches, and parameters of the small GPT."""
    rng = np.random.default_rng(0)
    d, v, length = GPT["dim"], GPT["vocabulary"], GPT["length"]
    tokens = rng.integers(0, v, 1_000_000).astype(np.int32)
    offsets = rng.integers(0, 1_000_000 - length - 1, (1000, GPT["batch"])).astype(np.int64)

    def weight(*shape):
        return rng.standard_normal(shape, dtype=np.float32) * np.float32(0.02)

    def zeros(*shape):
        return np.zeros(shape, np.float32)

    def ones(*shape):
        return np.ones(shape, np.float32)

    p = {"wte": weight(v, d), "wpe": weight(length, d)}
    for i in range(GPT["layers"]):
        p |= {f"l1g{i}": ones(d), f"l1b{i}": zeros(d)}
        p |= {f"qkvw{i}": weight(3 * d, d), f"qkvb{i}": zeros(3 * d)}
        p |= {f"pw{i}": weight(d, d), f"pb{i}": zeros(d)}
        p |= {f"l2g{i}": ones(d), f"l2b{i}": zeros(d)}
        p |= {f"fw{i}": weight(4 * d, d), f"fb{i}": zeros(4 * d)}
        p |= {f"ow{i}": weight(d, 4 * d), f"ob{i}": zeros(d)}
    return tokens, offsets, p | {"lfg": ones(d), "lfb": zeros(d), "head": weight(v, d)}


def text_batch(tokens, offsets, step):
    """Inputs and targets `[batch, length]` of one step."""
    rows = tokens[offsets[step % 1000][:, None] + np.arange(GPT["length"] + 1)[None]]
    return np.ascontiguousarray(rows[:, :-1]), np.ascontiguousarray(rows[:, 1:])


def save(name, folder):
    """Writes what `zyx-bench --data` reads: WORKLOAD.INPUT.npy."""
    if name in OPS:
        arrays = {f"in{i}": x for i, x in enumerate(op_inputs(name))}
    elif name == "gpt_train":
        tokens, offsets, parameters = text()
        arrays = {"tokens": tokens, "offsets": offsets} | parameters
    else:
        x, y, t, parameters = images(name)
        arrays = {"X": x, "Y": y, "T": t} | parameters
    for key, value in arrays.items():
        np.save(Path(folder) / f"{name}.{key}.npy", value)
