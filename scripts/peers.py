#!/usr/bin/env python3
"""Times the benchmark workloads in PyTorch, eager, on the CPU: one JSON line each.

usage: peers.py [--threads N] [WORKLOAD ..]

Timing follows bench/src/measure.rs: warm-up, then samples of at least 5 ms (training: blocks of
at least 50 ms) until there are twenty; the median is reported. Needs torch.
"""
import argparse
import json
import math
import statistics
import time

import torch
import torch.nn.functional as F


def sample(call, n, seconds, inner):
    samples, start = [], time.perf_counter()
    while (len(samples) < n or time.perf_counter() - start < seconds) and (
        len(samples) < 3 or time.perf_counter() - start < 12
    ):
        begin = time.perf_counter()
        for _ in range(inner):
            call()
        samples.append((time.perf_counter() - begin) / inner)
    return samples


def op(call):
    call()
    calls, start = 0, time.perf_counter()
    while calls < 3 or time.perf_counter() - start < 0.2:
        call()
        calls += 1
    one = (time.perf_counter() - start) / calls
    return sample(call, 20, 0.5, max(1, math.ceil(0.005 / one)))


def training(step):
    for _ in range(10):
        step().item()
    start = time.perf_counter()
    for _ in range(5):
        step()
    block = max(1, math.ceil(0.05 / ((time.perf_counter() - start) / 5)))
    return sample(step, 20, 1.0, block)


def uniform(shape, fan_in):
    k = 1 / math.sqrt(fan_in)
    return ((torch.rand(shape) * 2 - 1) * k).requires_grad_()


def mlp():
    x, y = torch.rand(60000, 784), torch.randint(0, 10, (60000,))
    rows = torch.randint(0, 60000, (1000, 128))
    w1, b1 = uniform((128, 784), 784), uniform((128,), 784)
    w2, b2 = uniform((10, 128), 128), uniform((10,), 128)
    optimizer = torch.optim.SGD([w1, b1, w2, b2], lr=0.01, momentum=0.9)
    count = [0]

    def step():
        t = rows[count[0] % 1000]
        count[0] += 1
        h = F.relu(F.linear(x[t], w1, b1))
        loss = F.cross_entropy(F.linear(h, w2, b2), y[t])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def conv():
    x, y = torch.rand(60000, 784), torch.randint(0, 10, (60000,))
    rows = torch.randint(0, 60000, (1000, 64))
    c1, d1 = uniform((32, 1, 3, 3), 9), uniform((32,), 9)
    c2, d2 = uniform((64, 32, 3, 3), 288), uniform((64,), 288)
    w1, b1 = uniform((128, 9216), 9216), uniform((128,), 9216)
    w2, b2 = uniform((10, 128), 128), uniform((10,), 128)
    optimizer = torch.optim.Adam([c1, d1, c2, d2, w1, b1, w2, b2], lr=1e-3)
    count = [0]

    def step():
        t = rows[count[0] % 1000]
        count[0] += 1
        h = F.relu(F.conv2d(x[t].view(-1, 1, 28, 28), c1, d1))
        h = F.max_pool2d(F.relu(F.conv2d(h, c2, d2)), 2).flatten(1)
        h = F.relu(F.linear(h, w1, b1))
        loss = F.cross_entropy(F.linear(h, w2, b2), y[t])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


class Block(torch.nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.ln1, self.ln2 = torch.nn.LayerNorm(dim), torch.nn.LayerNorm(dim)
        self.qkv, self.proj = torch.nn.Linear(dim, 3 * dim), torch.nn.Linear(dim, dim)
        self.fc, self.out = torch.nn.Linear(dim, 4 * dim), torch.nn.Linear(4 * dim, dim)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(self.ln1(x)).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(b, t, c))
        return x + self.out(F.gelu(self.fc(self.ln2(x)), approximate="tanh"))


def gpt():
    tokens = torch.randint(0, 256, (1_000_000,))
    offsets = torch.randint(0, 1_000_000 - 129, (1000, 8)).tolist()
    wte, wpe = torch.nn.Embedding(256, 256), torch.nn.Embedding(128, 256)
    blocks = torch.nn.Sequential(*[Block(256, 8) for _ in range(4)])
    ln, head = torch.nn.LayerNorm(256), torch.nn.Linear(256, 256, bias=False)
    modules = torch.nn.ModuleList([wte, wpe, blocks, ln, head])
    optimizer = torch.optim.AdamW(modules.parameters(), lr=3e-4, weight_decay=0.01)
    count, positions = [0], torch.arange(128)

    def step():
        starts = offsets[count[0] % 1000]
        count[0] += 1
        x = torch.stack([tokens[o : o + 128] for o in starts])
        y = torch.stack([tokens[o + 1 : o + 129] for o in starts])
        logits = head(ln(blocks(wte(x) + wpe(positions))))
        loss = F.cross_entropy(logits.view(-1, 256), y.view(-1))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def workloads():
    n = 16 << 20
    gbs = lambda count: ("GB/s", lambda s: count / s * 1e-9)
    gflops = lambda count: ("GFLOP/s", lambda s: count / s * 1e-9)
    ms = ("ms", lambda s: s * 1e3)
    r = torch.randn

    def matmul(k, dtype=torch.float32):
        a, b = r(k, k).to(dtype), r(k, k).to(dtype)
        return lambda: a @ b

    def bmm():
        a, b = r(16, 256, 256), r(16, 256, 256)
        return lambda: torch.bmm(a, b)

    def gemv():
        w, x = r(4096, 4096), r(4096)
        return lambda: w @ x

    def chain():
        a, b, c = r(n), r(n), r(n)
        return lambda: (a + b) * 5 - c

    def one(shape, f):
        def make():
            x = r(*shape)
            return lambda: f(x)

        return make

    def layernorm():
        x, w, b = r(4096, 1024), r(1024), r(1024)
        return lambda: F.layer_norm(x, (1024,), w, b)

    def conv2d():
        x, w = r(16, 64, 56, 56), r(64, 64, 3, 3)
        return lambda: F.conv2d(x, w, padding=1)

    return {
        "matmul_f32_256": (gflops(2 * 256**3), op, lambda: matmul(256)),
        "matmul_f32_1024": (gflops(2 * 1024**3), op, lambda: matmul(1024)),
        "matmul_f32_2048": (gflops(2 * 2048**3), op, lambda: matmul(2048)),
        "matmul_bf16_1024": (gflops(2 * 1024**3), op, lambda: matmul(1024, torch.bfloat16)),
        "bmm_f32_16x256": (gflops(32 * 256**3), op, bmm),
        "gemv_f32_4096": (gbs(4 * (4096**2 + 8192)), op, gemv),
        "chain_16m": (gbs(16 * n), op, chain),
        "gelu_16m": (gbs(8 * n), op, one((n,), lambda x: F.gelu(x, approximate="tanh"))),
        "sum_16m": (gbs(4 * n), op, one((n,), torch.sum)),
        "sum_rows_4096": (gbs(4 * n), op, one((4096, 4096), lambda x: x.sum(1))),
        "sum_cols_4096": (gbs(4 * n), op, one((4096, 4096), lambda x: x.sum(0))),
        "softmax_4096x1024": (gbs(2 * n), op, one((4096, 1024), lambda x: x.softmax(1))),
        "layernorm_4096x1024": (gbs(2 * n), op, layernorm),
        "cumsum_16m": (gbs(8 * n), op, one((n,), lambda x: x.cumsum(0))),
        "argmax_rows_4096": (gbs(4 * n), op, one((4096, 4096), lambda x: x.argmax(1))),
        "conv2d_fwd": (gflops(2 * 16 * 64 * 56 * 56 * 64 * 9), op, conv2d),
        "mlp_train": (ms, training, mlp),
        "conv_train": (ms, training, conv),
        "gpt_train": (ms, training, gpt),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("workload", nargs="*")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    table = workloads()
    for name in args.workload or table:
        (unit, convert), measure, make = table[name]
        training_run = measure is training
        with torch.set_grad_enabled(training_run):
            samples = sorted(convert(s) for s in measure(make()))
        row = {"workload": name, "peer": "torch", "unit": unit}
        row |= {"value": statistics.median(samples), "min": samples[0], "max": samples[-1]}
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
