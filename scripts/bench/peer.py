#!/usr/bin/env python3
"""Times one workload in one peer and prints a JSON line.

usage: peer.py PEER WORKLOAD [--threads N] [--device cpu|cuda]

Timing follows bench/src/measure.rs: warm-up, then samples of at least 5 ms (training: blocks of
at least 50 ms that end by reading the loss) until there are twenty; the median is reported.
"""
import argparse
import importlib
import json
import math
import os
import statistics
import time

import workloads as w

# name: (module of `peers`, argument of its Peer)
PEERS = {
    "torch": ("torch_peer", False),
    "torch-compile": ("torch_peer", True),
    "jax": ("jax_peer", None),
    "onnxruntime": ("onnx_peer", None),
}


def sample(call, count, seconds, inner, wait=lambda: None):
    samples, start = [], time.perf_counter()
    while (len(samples) < count or time.perf_counter() - start < seconds) and (
        len(samples) < 3 or time.perf_counter() - start < 12
    ):
        begin = time.perf_counter()
        for _ in range(inner):
            call()
        wait()
        samples.append((time.perf_counter() - begin) / inner)
    return samples


def time_op(call, wait):
    calls, start = 0, time.perf_counter()
    while calls < 3 or (time.perf_counter() - start < 0.2 and calls < 1000):
        call()
        wait()
        calls += 1
    one = (time.perf_counter() - start) / calls
    return sample(call, 20, 0.5, max(1, math.ceil(0.005 / one)), wait)


def time_training(step):
    """`step(k)` runs a step and returns a function that waits for its loss."""
    losses = [step(k)() for k in range(10)]
    k = 10
    start = time.perf_counter()
    for _ in range(5):
        loss = step(k)
        k += 1
    loss()
    block = max(1, math.ceil(0.05 / ((time.perf_counter() - start) / 5)))

    def run():
        nonlocal k
        for _ in range(block):
            loss = step(k)
            k += 1
        loss()

    return [s / block for s in sample(run, 20, 1.0, 1)], losses[9]


def checksum(array):
    """The sum of all elements' sizes, weighted by their position: that of bench/src/measure.rs."""
    import numpy as np

    flat = np.abs(np.asarray(array).reshape(-1).astype(np.float64))
    return float((flat * (np.arange(flat.size) % 97 + 1)).sum() / 97 / flat.size)


def measure(peer, name):
    if name in w.TRAINED:
        unit = "ms"
        seconds, check = time_training(getattr(peer, name)())
        values = [s * 1e3 for s in seconds]
    elif name in w.DECODING:
        unit = "tokens/s"
        call = getattr(peer, name)()
        logits = call()
        check = checksum(logits.cpu() if hasattr(logits, "cpu") else logits)
        values = [1 / s for s in time_op(call, peer.wait)]
    elif name in w.LARGE:
        unit, work, shapes = w.LARGE[name]
        call, result = peer.large(name, shapes)
        check = result(call())
        values = [work / s / 1e9 for s in time_op(call, peer.wait)]
    else:
        unit, work, _ = w.OPS[name]
        call, result = peer.op(name, w.op_inputs(name))
        check = checksum(result(call()))
        values = [work / s / 1e9 for s in time_op(call, peer.wait)]
    return {"unit": unit, "value": statistics.median(values), "checksum": check}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("peer", choices=PEERS)
    parser.add_argument("workload", choices=sorted({*w.ALL, *w.ALL_LARGE}))
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    args = parser.parse_args()
    module, argument = PEERS[args.peer]
    kind = "op" if args.workload in w.OPS else "large" if args.workload in w.LARGE else args.workload
    try:
        peer = importlib.import_module(f"peers.{module}").Peer(args.threads, args.device, argument)
        if not hasattr(peer, kind):
            return
        row = measure(peer, args.workload)
    except NotImplementedError:
        return
    print(json.dumps({"peer": args.peer, "workload": args.workload} | row), flush=True)


if __name__ == "__main__":
    main()
