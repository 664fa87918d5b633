#!/usr/bin/env python3
"""Times steps of whole models in zyx beside PyTorch, eager and compiled.

usage: sweep_models.py [--device cpu|cuda] [--zyx-python PYTHON] [--wheel FILE] [--torch-python PYTHON] [--only PATTERN]
                       [--sides LIST] [--rounds N] [--limit S] [--threads N] [--json FILE] [--record] [--profile]

The models are those of `models.py`, where each is written once for both libraries, with the same initial parameters and inputs; the CPU gets
smaller ones. A step computes the loss, all gradients and the optimizer's update (`llama_decode`: the next word). zyx runs a
training step as a loop of a user does (`optimizer.step(loss)`), the decoder under `zyx.jit`. Losses of the first five steps are compared.
The first step's time has in it all that is compiled. Then the processes take turns with blocks of steps; medians are printed.

--sides     of `zyx`, `torch`, `torch compiled` (`torch.compile` in its default mode), and on CUDA `torch tf32`, which is how PyTorch
            computes convolutions and LSTMs of float32 unless told otherwise: with 10 bits of the fraction; all others compute in float32
--rounds    blocks of each (7)
--limit     seconds that a model's first steps may take on a side (120)
--json      where results are written as they come
--record    writes the table docs/models-DEVICE.md
--profile   prints the kernels that take most of a step, of zyx and of PyTorch (eager)
"""

import argparse
import datetime
import json
import os
import re
import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from models import MODELS, classes, size_of, weights
from sweep import HERE, ROOT, Gone, Process, machine, unpacked

# Steps whose losses are compared, and seconds that a block of steps takes at least.
STEPS = 5
BLOCK = 0.25
# How far losses may be apart, relatively.
NEAR = {"float32": 2e-4, "tf32": 2e-2, "bfloat16": 2e-2}


class Zyx:
    def __init__(self, how, device, threads):
        import zyx

        self.lib, self.device, self.sides = zyx, zyx.device(), zyx
        self.version = f"zyx {zyx.__version__} on {self.device.spec}, {self.device.name}"

    def tensor(self, array, half):
        x = self.lib.tensor(array)
        return x.to(self.lib.bfloat16) if half else x

    def model(self, kind, values):
        parameters = [p for p in kind.parameters() if p.is_trainable()]
        for parameter, value in zip(parameters, values([(n, p.shape) for n, p in kind.named_parameters() if p.is_trainable()])):
            parameter.set(self.lib.tensor(value))
        return kind

    def training(self, model, optimizer, rate):
        more = {"momentum": 0.9} if optimizer == "SGD" else {"weight_decay": 0.01}
        optimizer = getattr(self.lib.optim, optimizer)(model.parameters(), rate, **more)

        def step(*inputs):
            loss = model(*inputs)
            optimizer.step(loss)
            return loss

        return step

    def decoding(self, model):
        return self.lib.jit(model.forward)

    def wait(self):
        self.device.synchronize()

    def profile(self, step):
        self.device.set_profiling(True)
        steps = 3
        for _ in range(steps):
            step()
        self.wait()
        found = [(name, n / steps, s / steps) for name, n, s in self.device.profile()]
        self.device.set_profiling(False)
        return found


class Torch:
    def __init__(self, how, device, threads):
        import torch

        torch.set_num_threads(threads)
        self.lib, self.cuda = torch, device == "cuda"
        torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = how == "tf32"
        self.compile = torch.compile if how == "compiled" else lambda f: f
        self.fused = how != "compiled"
        if self.cuda:
            torch.set_default_device("cuda")
        self.version = f"PyTorch {torch.__version__} on " + (torch.cuda.get_device_name() if self.cuda else f"{threads} threads")

    def tensor(self, array, half):
        x = self.lib.from_numpy(array)
        x = x.cuda() if self.cuda else x
        return x.bfloat16() if half else x

    def model(self, kind, values):
        named = list(kind.named_parameters())
        with self.lib.no_grad():
            for (_, parameter), value in zip(named, values([(n, tuple(p.shape)) for n, p in named])):
                parameter.copy_(self.lib.from_numpy(value))
        return kind

    def training(self, model, optimizer, rate):
        more = {"momentum": 0.9} if optimizer == "SGD" else {"weight_decay": 0.01}
        optimizer = getattr(self.lib.optim, optimizer)(model.parameters(), rate, fused=self.fused, **more)
        forward, update = self.compile(model), self.compile(optimizer.step)

        def step(*inputs):
            optimizer.zero_grad(set_to_none=True)
            loss = forward(*inputs)
            loss.backward()
            update()
            return loss.detach()

        return step

    def decoding(self, model):
        forward = self.compile(model)

        def step(*inputs):
            with self.lib.no_grad():
                return forward(*inputs)

        return step

    def wait(self):
        if self.cuda:
            self.lib.cuda.synchronize()

    def profile(self, step):
        from torch.profiler import ProfilerActivity, profile

        kind = ProfilerActivity.CUDA if self.cuda else ProfilerActivity.CPU
        with profile(activities=[kind]) as found:
            step()
            self.wait()
        time_of = lambda e: (e.self_device_time_total if self.cuda else e.self_cpu_time_total) * 1e-6
        return sorted(((e.key, e.count, time_of(e)) for e in found.key_averages()), key=lambda e: -e[2])


class Worker:
    """A model in one library."""

    def __init__(self, library, device):
        self.library, self.device, self.step = library, device, None

    def prepare(self, name):
        kind, inputs, optimizer, rate, *_ = MODELS[name]
        size = size_of(name, self.device)
        library, half = self.library, size.get("half", False) and optimizer is None
        arrays = inputs(np.random.default_rng(0), **size)
        model = library.model(classes(library.lib)[kind](**size), weights)
        if optimizer:
            given, run = [library.tensor(array, False) for array in arrays], library.training(model, optimizer, rate)
            self.step = lambda: run(*given)
        else:
            # Nothing but the tables of positions is kept in another dtype than the model computes in.
            model = model.bfloat16() if half else model
            given = [library.tensor(array, half and array.dtype.kind == "f" and array.ndim == 4) for array in arrays]
            run, state = library.decoding(model), [given[0], given[1], *given[4:]]

            def step():
                value, *state[:] = run(state[0], state[1], given[2], given[3], *state[2:])
                return value

            self.step = step
        times, losses = [], []
        for _ in range(STEPS):
            start = time.perf_counter()
            losses.append(float(self.step().item()))
            library.wait()
            times.append(time.perf_counter() - start)
        return {"first": times[0], "losses": losses, "steps": max(1, round(BLOCK / times[-1]))}

    def block(self, steps):
        start = time.perf_counter()
        for _ in range(steps):
            loss = self.step()
        loss.item()
        self.library.wait()
        return {"time": (time.perf_counter() - start) / steps}


def work(side, device, threads):
    """The loop of a process: requests and answers are lines of JSON."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    if device == "cpu":
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    library, _, how = side.partition(" ")
    library = {"zyx": Zyx, "torch": Torch}[library](how, device, threads)
    worker = Worker(library, device)
    print(json.dumps({"version": library.version}), file=out, flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if "model" in request:
                answer = worker.prepare(request["model"])
            elif "steps" in request:
                answer = worker.block(request["steps"])
            else:
                answer = {"kernels": library.profile(worker.step)[:16]}
        except Exception as found:
            answer = {"error": f"{type(found).__name__}: {found}".replace("\n", " ")[:600]}
        print(json.dumps(answer), file=out, flush=True)


def measure(name, sides, start, options):
    """What each side needs for a model, by side."""
    found, running, size = {}, {}, size_of(name, options.device)
    for side in sides:
        try:
            running[side] = start(side)
            found[side] = running[side].ask(model=name)
        except Gone as gone:
            found[side] = {"error": str(gone)}
        if "error" in found[side]:
            running.pop(side, None)
        else:
            found[side]["version"], found[side]["times"] = running[side].version, []
    for _ in range(options.rounds):
        for side, process in running.items():
            answer = process.ask(steps=found[side]["steps"])
            found[side].update(error=answer["error"]) if "error" in answer else found[side]["times"].append(answer["time"])
    for side, process in running.items():
        if options.profile and side in ("zyx", "torch"):
            found[side].update(process.ask(profile=True))
        process.stop()
    if "losses" in found.get("zyx", {}):
        for side, other in found.items():
            kind = "tf32" if "tf32" in side else "bfloat16" if size.get("half") else "float32"
            pairs = zip(found["zyx"]["losses"], other.get("losses", []))
            apart = max((abs(a - b) / max(abs(b), 1e-30) for a, b in pairs), default=0)
            # Of words that were chosen another follows where two are as likely.
            if not apart <= NEAR[kind]:
                other["wrong"] = f"losses differ by {apart:.2g}: {other['losses']}, zyx {found['zyx']['losses']}"
    return found


def row(name, size, side, found):
    """Cells of a table."""
    if not found.get("times"):
        return [name, side, "", "", "", found.get("error", "")]
    step, unit, work = statistics.median(found["times"]), MODELS[name][4], MODELS[name][5](size)
    losses = f"{found['losses'][0]:.5g}, {found['losses'][-1]:.5g}"
    rate = f"{work / step:,.0f} {unit}/s"
    return [name, side, f"{found['first']:.2f}", f"{1e3 * step:.4g}", rate, found.get("wrong") or found.get("error") or losses]


def main():
    parser = argparse.ArgumentParser(description=__doc__, usage=argparse.SUPPRESS, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work")
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--zyx-python", default=sys.executable)
    parser.add_argument("--torch-python", default=sys.executable)
    parser.add_argument("--wheel")
    parser.add_argument("--only", default="")
    parser.add_argument("--sides")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--limit", type=float, default=120)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--json")
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--profile", action="store_true")
    options = parser.parse_args()
    if options.work:
        return work(options.work, options.device, options.threads)
    both = ["zyx", "torch", "torch compiled"]
    sides = options.sides.split(",") if options.sides else both + ["torch tf32"] * (options.device == "cuda")
    place, path = unpacked(options.wheel)

    def start(side):
        ours = side == "zyx"
        python = options.zyx_python if ours else options.torch_python
        return Process(side, python, options.device, options.threads, path if ours else [], options.limit, Path(__file__).name)

    head, rows, results = ["model", "side", "first step, s", "step, ms", "rate", "loss: first, fifth"], [], {}
    failed = False
    for name in MODELS:
        if not re.search(options.only, name):
            continue
        size = size_of(name, options.device)
        # Elsewhere nothing is computed in tf32.
        mine = [side for side in sides if "tf32" not in side or name in ("resnet50", "unet", "lstm")]
        results[name] = measure(name, mine, start, options)
        for side, found in results[name].items():
            rows.append(row(name, size, side, found))
            print("  ".join(str(cell).ljust(16) for cell in rows[-1]), flush=True)
            for kernel, count, seconds in found.get("kernels", []):
                print(f"    {1e3 * seconds:10.4f} ms {count:7.1f} x  {kernel[:150]}", flush=True)
            failed |= "wrong" in found or "zyx" in side and "error" in found
        if options.json:
            Path(options.json).write_text(json.dumps(results, indent=0))
    if options.record:
        about = "; ".join(dict.fromkeys(f["version"] for r in results.values() for f in r.values() if "version" in f))
        lines = [f"# Models beside PyTorch: {options.device}", ""]
        lines += [f"Written by `scripts/sweep.sh --models --device {options.device} --record` on {datetime.date.today().isoformat()}: {about}; {machine()}."]
        lines += ["Medians of blocks in turn; the models and their sizes are in `scripts/bench/models.py`, the sides in `scripts/bench/sweep_models.py`.", ""]
        lines += ["| " + " | ".join(cells) + " |" for cells in [head, ["---"] * len(head), *rows]]
        (ROOT / "docs" / f"models-{options.device}.md").write_text("\n".join(lines) + "\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
