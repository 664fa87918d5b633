#!/usr/bin/env python3
"""Times every public function of zyx and its gradient beside PyTorch's, at two sizes.

usage: sweep.py [--device cpu|cuda] [--zyx-python PYTHON] [--wheel FILE] [--torch-python PYTHON] [--only PATTERN]
                [--sizes large,small] [--calls N] [--rounds N] [--case-limit S] [--limit S] [--json FILE]
                [--resume] [--load FILE] [--threads N] [--record] [--note TEXT] [--check]

The cases are those of `sweep_cases.py`. zyx and PyTorch each compute in a process of their own, in turn: zyx, PyTorch, zyx, PyTorch.
A sample is as many calls as fill 1 ms, each of which has its results computed, and ends when the device is done. The time of a case is its
shortest sample, which other programs on the machine disturb least; the ratio is PyTorch's time by zyx's. Below 0.95 there are as many rounds again.
A gradient is that of `(f(x) * w).sum()` for every operand of floats, and its time has the forward pass in it. Values and gradients are compared.

--device        where both compute
--zyx-python    a Python that has zyx; --wheel takes zyx out of a wheel instead. --torch-python: one that has PyTorch
--only          a regular expression: the cases (as the table writes them) that it is found in
--sizes         `large` (memory-bound) and `small` (64 K elements)
--calls         calls of each function at most (3), of those that PyTorch takes
--rounds        samples of each library (5; three times as many of what takes less than 2 ms)
--case-limit    seconds that a step of a case may take (10); --limit: seconds after which no case is begun
--json          where results are written as they come; --resume goes on with those that are there
--load          takes the results of such a file and measures nothing, so that a run on one machine can be recorded on another
--threads       threads of both (all that this process may use)
--record        writes the table docs/sweep-DEVICE.md and the ratios scripts/bench/sweep-DEVICE.json; --note adds a sentence
--check         compares with the recorded ratios and fails where one is worse by more than 1.5, also when measured again,
                or values differ that did not

Cases count (in the mean, and in the share that is at least 0.95) where PyTorch takes at least 20 us.
"""

import argparse
import datetime
import gc
import json
import math
import os
import platform
import re
import select
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

from sweep_cases import DIFFERENT, ROOT, cases, operand_grid, unswept

HERE = Path(__file__).resolve().parent
# Shorter times than this one of PyTorch say more about calls than about computing.
COUNTS = 20e-6
SLACK = 1.5
SAMPLE = 1e-3
# Elements of a result that are compared.
COMPARED = 4096


# The process of a library.


class Zyx:
    def __init__(self, device, threads):
        import zyx

        self.library = operand_grid.zyx_library()
        self.device = zyx.device()
        self.kind = zyx.Tensor
        self.tensor, self.grad = zyx.tensor, zyx.autograd.grad
        self.parameter = lambda x: zyx.tensor(x, requires_grad=True)
        self.version = f"zyx {getattr(zyx, '__version__', '')} on {self.device.spec}, {self.device.name}"

    def function(self, name, module):
        return operand_grid.lookup(self.library, name)

    def compute(self, tensors):
        self.kind.realize_all(tensors)

    def wait(self):
        self.device.synchronize()

    def slopes(self, loss, leaves):
        return list(self.grad(loss, leaves, create_graph=True, allow_unused=True))

    def array(self, tensor):
        return tensor.numpy()

    def trim(self):
        self.device.trim_memory()


class Torch:
    def __init__(self, device, threads):
        import torch

        torch.set_num_threads(threads)
        if device == "cuda":
            torch.set_default_device("cuda")
            # Both compute in float32.
            torch.backends.cudnn.allow_tf32 = False
            self.version = f"PyTorch {torch.__version__} on {torch.cuda.get_device_name()}"
        else:
            self.version = f"PyTorch {torch.__version__} on {torch.get_num_threads()} threads"
        self.torch, self.cuda = torch, device == "cuda"
        self.library = operand_grid.torch_library()
        self.kind = torch.Tensor
        self.tensor = lambda x: torch.from_numpy(x).to(device)
        self.parameter = lambda x: torch.from_numpy(x).to(device).requires_grad_()

    def function(self, name, module):
        return operand_grid.reference(name, module, self.library, None)[0]

    def compute(self, tensors):
        pass

    def wait(self):
        if self.cuda:
            self.torch.cuda.synchronize()

    def slopes(self, loss, leaves):
        return list(self.torch.autograd.grad(loss, leaves, allow_unused=True))

    def array(self, tensor):
        tensor = tensor.detach()
        return self.torch.view_as_real(tensor).cpu().numpy() if tensor.is_complex() else tensor.cpu().numpy()

    def trim(self):
        if self.cuda and self.torch.cuda.memory_reserved() > 16 << 30:
            self.torch.cuda.empty_cache()


class Worker:
    """Prepares a case and times it."""

    def __init__(self, library):
        import numpy as np

        self.np, self.library, self.run, self.made, self.held = np, library, None, {}, {}
        self.weight = self.random("weight", 1000003, "f")

    def random(self, key, shape, kind):
        """Random elements, the same in every process."""
        rng = self.np.random.Generator(self.np.random.PCG64(list(key.encode())))
        if kind == "b":
            return self.np.asarray(rng.random(shape, dtype="float32") > 0.5)
        if kind in "Bil":
            low = 0 if kind == "B" else -4
            return self.np.asarray(rng.integers(low, 5, shape)).astype(operand_grid.DTYPES[kind])
        return self.np.asarray(rng.standard_normal(shape, dtype="float32")).astype(operand_grid.DTYPES[kind])

    def operand(self, word, position, grid):
        key = f"{position} {word} {grid in ('SYSTEMS', 'SQUARE', 'OBLONG')}"
        if key not in self.held:
            # A few shapes serve nearly all cases.
            while len(self.held) >= 4:
                del self.held[next(iter(self.held))]
            extents = [int(n) for n in word[1:].split("x") if n]
            array = self.random(key, extents, word[0])
            if grid in ("SYSTEMS", "SQUARE", "OBLONG") and word[0] == "f":
                array = array / self.np.float32(math.sqrt(extents[-1]))
            self.held[key] = array
        array = self.held[key]
        if self.slope and word[0] in "efd":
            self.leaves.append(self.library.parameter(array))
            return self.leaves[-1]
        return self.library.tensor(array)

    def once(self, name, make, parameter=False):
        """A tensor that a call asks for each time and gets made once."""
        np = self.np

        def call(*arguments, **named):
            told = [list(a.shape) if isinstance(a, self.library.kind) else a for a in arguments]
            key = f"{name} {told} {named}"
            if key not in self.made:
                array = np.ascontiguousarray(make(lambda shape, k="f": self.random(key, shape, k), *told, **named))
                if parameter and self.slope:
                    self.made[key] = self.library.parameter(array)
                    self.leaves.append(self.made[key])
                else:
                    self.made[key] = self.library.tensor(array)
            return self.made[key]

        return call

    def names(self, given):
        np = self.np

        def order(draw, n):
            return np.argsort(draw((n,)), kind="stable").astype("int64")

        def distinct(draw, shape, axis=0):
            shape, n = list(shape), shape[axis]
            other = np.arange(math.prod(shape) // n)
            found = (order(draw, n)[:, None] + other[None, :]) % n
            return found if axis == 0 else found.T

        def classes(draw, shape):
            found = np.full(shape, -1, "int64")
            found[:, :4] = (np.arange(shape[0])[:, None] * 7 + np.array([0, 3, 11, 5])) % shape[1]
            return found

        def below(draw, shape, n):
            return np.minimum((abs(draw(tuple(shape))) * 7919.7) % n, n - 1).astype("int64")

        def same(x):
            if "same" not in self.made:
                self.made["same"] = self.library.tensor(self.library.array(x).copy())
            return self.made["same"]

        unit = lambda draw, *shape: np.tanh(draw(shape))
        shape = list(given[0].shape) + [1, 1] if given else [1, 1]
        return {
            "W": self.once("W", lambda draw, *shape: draw(shape) * np.float32(0.1), True),
            "C": self.once("C", lambda draw, *shape: np.float32(1) + np.float32(0.5) * unit(draw, *shape)),
            "G": self.once("G", unit, True),
            "I": self.once("I", below),
            "P": self.once("P", order),
            "D": self.once("D", distinct),
            "S": self.once("S", lambda draw, n: np.sort(draw((n,)))),
            "B": self.once("B", lambda draw, n: np.where(draw((n,)) > 0, 1, -1).astype("int64")),
            "Y": self.once("Y", classes),
            "E": same,
            "i": self.once("i", lambda draw, x: np.array(x, "int64")),
            "t": self.once("t", lambda draw, x: np.array(x, "float32")),
            "n": shape[0] * shape[1],
            "r": shape[0],
            "c": shape[1],
        }

    def prepare(self, case, words, kinds, slope, parts):
        """Makes operands of the first dtype that the call takes, computes once, and says what came out."""
        library, error = self.library, "no dtype"
        for kind in kinds:
            self.run, self.made, self.leaves, self.slope = None, {}, [], slope
            try:
                told = words.replace("*", kind).split()
                given = [self.operand(word, i, case["grid"]) for i, word in enumerate(told)]
                self.parts = parts
                name = case["names"][0]
                function = library.function(name, case["module"])
                if function is None and re.search(r"\bf\(", case["calls"][library.name]) and name[0] != "@":
                    return {"error": "has no such function"}
                # Operands of creation are extents alone.
                names = {**library.library.names, **self.names(given), **dict(zip("xyz", given)), "f": function}
                if case["grid"] == "NONE":
                    del self.leaves[:]
                code = compile(case["calls"][library.name], "call", "eval")
                run = self.gradient(code, names) if slope else self.forward(code, names)
                start = time.perf_counter()
                result = run()
                library.wait()
                # The first time has in it what is compiled.
                one = time.perf_counter() - start
                digest = [self.digest(part) for part in result]
                del result
                self.run = run
                for limit in (0.5, 5e-3):
                    if one < limit:
                        one = min(one, self.sample(1))
                return {"kind": kind, "parts": self.parts, "digest": digest, "time": one}
            except Exception as found:
                error = f"{type(found).__name__}: {found}".replace("\n", " ")[:300]
                self.run = None
                # After an error of the driver nothing works in this process.
                if re.search(r"cuda.?error|device-side assert|illegal", error, re.IGNORECASE):
                    return {"error": error, "fatal": True}
        return {"error": error}

    def forward(self, code, names):
        def run():
            parts = operand_grid.flat(eval(code, names))
            self.library.compute([part for part in parts if isinstance(part, self.library.kind)])
            return parts

        return run

    def gradient(self, code, names):
        weights = []

        def run():
            parts = operand_grid.flat(eval(code, names))
            if self.parts is None:
                torch = self.library.torch
                self.parts = [i for i, p in enumerate(parts) if isinstance(p, torch.Tensor) and p.requires_grad]
                if not self.parts:
                    raise ValueError("no gradient")
            if not weights:
                for i in self.parts:
                    shape = tuple(parts[i].shape)
                    array = self.np.resize(self.weight, math.prod(shape)).reshape(shape)
                    weights.append(self.library.tensor(array))
            loss = sum((parts[i] * w).sum() for i, w in zip(self.parts, weights))
            slopes = self.library.slopes(loss, self.leaves)
            self.library.compute([slope for slope in slopes if slope is not None])
            return slopes

        return run

    def digest(self, part):
        """What is compared of a result: its shape, some of its elements, and a sum of all."""
        np = self.np
        if part is None:
            return None
        if isinstance(part, self.library.kind):
            part = self.library.array(part)
        array = np.asarray(part)
        if array.dtype.kind not in "biuf":
            return str(part)[:100]
        flat = array.reshape(-1)
        step = max(1, flat.size // COMPARED)
        some = flat[::step][:COMPARED].astype("float64")
        total = float(flat.sum(dtype="float64"))
        if not math.isfinite(total):
            total = float(flat[np.isfinite(flat)].sum(dtype="float64"))
        size = float(np.abs(flat[np.isfinite(flat)]).sum(dtype="float64"))
        return {"shape": list(array.shape), "some": some.tolist(), "sum": total, "size": size}

    def sample(self, calls):
        gc.disable()
        start = time.perf_counter()
        for _ in range(calls):
            # What came out before is gone before it is computed again.
            result = None
            result = self.run()
        self.library.wait()
        found = (time.perf_counter() - start) / calls
        del result
        gc.enable()
        return found


def work(name, device, threads):
    """The loop of a process: requests and answers are lines of JSON."""
    import warnings

    warnings.simplefilter("ignore")
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    if device == "cpu":
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    library = {"zyx": Zyx, "torch": Torch}[name](device, threads)
    library.name = name
    worker = Worker(library)
    print(json.dumps({"version": library.version}), file=out, flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        if "case" in request:
            answer = worker.prepare(request["case"], request["words"], request["kinds"], request["slope"], request["parts"])
        elif "calls" in request:
            answer = {"time": worker.sample(request["calls"])}
        else:
            worker.run, worker.made, worker.leaves = None, {}, []
            library.trim()
            answer = {}
        print(json.dumps(answer), file=out, flush=True)


# The sweep.


class Gone(Exception):
    """A process that ended or took too long."""


class Process:
    """A process of a library, started anew after it failed."""

    def __init__(self, name, python, device, threads, path, limit, script="sweep.py"):
        self.name, self.limit, self.process, self.version, self.late = name, limit, None, None, False
        self.command = [python, str(HERE / script), "--work", name, "--device", device, "--threads", str(threads)]
        self.environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*path, str(HERE)])}
        if name.split()[0] == "zyx":
            self.environment["ZYX_DEVICE"] = f"{device}:0" if device == "cuda" else device
        self.log = tempfile.NamedTemporaryFile(prefix=f"sweep-{name}-", suffix=".log", delete=False)
        self.start()

    def start(self):
        self.process = subprocess.Popen(
            self.command, env=self.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log
        )
        self.version = self.answer(120)["version"]

    def answer(self, limit):
        end, text = time.monotonic() + limit, b""
        while not text.endswith(b"\n"):
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                self.stop()
                self.late = True
                raise Gone(f"{self.name} took more than {limit:g} s")
            part = os.read(self.process.stdout.fileno(), 1 << 16)
            if not part:
                code = self.process.wait()
                self.process = None
                told = Path(self.log.name).read_text(errors="replace").strip().splitlines()[-1:]
                raise Gone(f"{self.name} ended with {code}: {' '.join(told)}")
            text += part
        return json.loads(text)

    def ask(self, **request):
        if self.process is None:
            self.start()
        try:
            self.process.stdin.write(json.dumps(request).encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            self.process = None
            raise Gone(f"{self.name} ended") from None
        answer = self.answer(self.limit)
        if answer.get("fatal"):
            self.stop()
        return answer

    def stop(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


def differs(got, want):
    """In what results differ, or `None`."""
    if len(got) != len(want):
        return f"{len(got)} results, PyTorch {len(want)}"
    for a, b in zip(got, want):
        if a is None or b is None:
            continue
        if isinstance(a, str) or isinstance(b, str):
            if a != b:
                return f"{a}, PyTorch {b}"
            continue
        if a["shape"] != b["shape"]:
            return f"shape {a['shape']}, PyTorch {b['shape']}"
        finite = [abs(y) for y in b["some"] if math.isfinite(y)]
        scale = max(finite, default=0.0)
        for x, y in zip(a["some"], b["some"]):
            if x != y and not (math.isnan(x) and math.isnan(y)) and not abs(x - y) <= 1e-2 * abs(y) + 1e-3 * scale:
                return f"an element {x:.6g}, PyTorch {y:.6g}"
        if abs(a["sum"] - b["sum"]) > 1e-3 * max(a["size"], b["size"], 1e-30):
            return f"sum {a['sum']:.6g}, PyTorch {b['sum']:.6g}"
    return None


def measure(zyx, torch, case, size, slope, words, rounds, before):
    """Times a case; gives its entry."""
    entry, theirs = {"size": size, "gradient": slope}, None
    zyx.late = torch.late = False
    try:
        kinds = "fli" if "*" in words else "f"
        kinds = before["kind"] if before and "kind" in before else kinds + "b"
        theirs = torch.ask(case=case, words=words, kinds=kinds, slope=slope, parts=None)
        if "error" in theirs:
            return {**entry, "refused": theirs["error"]}
        entry["kind"], entry["words"] = theirs["kind"], words.replace("*", theirs["kind"])
        ours = zyx.ask(case=case, words=words, kinds=theirs["kind"], slope=slope, parts=theirs["parts"])
        if "error" in ours:
            return {**entry, "failed": ours["error"], "torch": theirs["time"]}
        wrong = differs(ours["digest"], theirs["digest"])
        if wrong:
            entry["wrong"] = wrong
        times = {zyx: [], torch: []}
        calls = {p: max(1, min(1000, math.ceil(SAMPLE / max(t["time"], 1e-9)))) for p, t in ((zyx, ours), (torch, theirs))}
        slow = max(ours["time"], theirs["time"])
        # Short samples are disturbed more and cost less.
        rounds = max(1, min(rounds * (3 if slow < 2e-3 else 1), math.ceil(0.6 / slow)))

        def go(rounds):
            for _ in range(rounds):
                for process in (zyx, torch):
                    times[process].append(process.ask(calls=calls[process])["time"])
            return min(times[torch]) / min(times[zyx])

        ratio = go(rounds)
        if ratio < 0.95 and slow < 2.0:
            ratio = go(rounds)
        entry.update(zyx=min(times[zyx]), torch=min(times[torch]), ratio=ratio)
        for process in (zyx, torch):
            process.ask()
        return entry
    except Gone as gone:
        entry["gone"] = str(gone)
        if zyx.late and theirs:
            # What took too long counts with the limit for its time.
            entry.update(zyx=zyx.limit, torch=theirs["time"], ratio=theirs["time"] / zyx.limit)
        return entry


def label(case, slope=False):
    name, call = case["names"][0], case["calls"]["zyx"]
    text = call if name[0] == "@" else re.sub(r"\bf\(", f"{name}(", call, count=1)
    text = re.sub(r"\bf\(", f"{name}(", text)
    return ("gradient of " if slope else "") + text


def key(entry):
    return f"{entry['label']} [{entry['size']}]"


def counted(entries):
    return [e for e in entries if e.get("ratio") and e["torch"] >= COUNTS]


def summary(entries):
    """The numbers of a set of cases."""
    found = sorted(e["ratio"] for e in counted(entries))
    if not found:
        return "no case counts"
    mean = math.exp(sum(map(math.log, found)) / len(found))
    share = sum(r >= 0.95 for r in found) / len(found)
    return (
        f"{len(found)} cases count, geometric mean {mean:.2f}, at least 0.95: {100 * share:.1f} %, "
        f"below 0.5: {sum(r < 0.5 for r in found)}, below 0.1: {sum(r < 0.1 for r in found)}, worst {found[0]:.3g}"
    )


def report(entries, functions, about, notes):
    """The table, as Markdown."""
    order = sorted(counted(entries), key=lambda e: e["ratio"])
    swept = {name for e in entries if "ratio" in e for name in e["names"]}
    lines = [
        f"# Every function beside PyTorch: {about['device']}",
        "",
        f"Written by `scripts/sweep.sh --device {about['device']} --record` on {about['date']}: {about['zyx']}; {about['torch']}; {about['machine']}. {notes}".strip(),
        "",
        f"{len(swept)} of {functions} functions are swept, in {sum('ratio' in e for e in entries)} cases. Times are the shortest of several in turn; a ratio is PyTorch's time by zyx's, "
        "and above 1 zyx is faster. Where PyTorch takes less than 20 us a case is left out. `f`, `l`, `i`, `b` before extents are float32, int64, int32, bool; letters in calls are "
        "explained in `scripts/bench/sweep_cases.py`.",
        "",
    ]
    for size in ("large", "small"):
        for slope in (False, True):
            some = [e for e in entries if e["size"] == size and e["gradient"] == slope]
            if counted(some):
                lines.append(f"- {size}, {'gradients' if slope else 'values'}: {summary(some)}.")
    lines += [f"- all: {summary(entries)}.", ""]
    for what, title in (("gone", "Took too long or ended"), ("failed", "Failed here"), ("wrong", "Other values than PyTorch's"), ("differs", "Other values for a reason")):
        some = [e for e in entries if what in e]
        if some:
            lines += [f"{title}:", "", *(f"- `{e['label']}` ({e['size']}): {e[what]}".replace("|", "\\|") for e in some), ""]
    lines += ["| case | operands | zyx ms | PyTorch ms | ratio |", "|---|---|---:|---:|---:|"]
    for e in order:
        case = e["label"].replace("|", "\\|")
        lines.append(f"| `{case}` | {e['words']} | {1e3 * e['zyx']:.4g} | {1e3 * e['torch']:.4g} | {e['ratio']:.3g} |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, usage=argparse.SUPPRESS, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work")
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--zyx-python", default=sys.executable)
    parser.add_argument("--torch-python", default=sys.executable)
    parser.add_argument("--wheel")
    parser.add_argument("--only")
    parser.add_argument("--sizes", default="large,small")
    parser.add_argument("--calls", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--case-limit", type=float, default=10)
    parser.add_argument("--limit", type=float, default=math.inf)
    parser.add_argument("--json", default=None)
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--load")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--note", default="")
    options = parser.parse_args()
    if options.work:
        return work(options.work, options.device, options.threads)
    return sweep(options)


def machine():
    try:
        text = Path("/proc/cpuinfo").read_text()
        name = re.search(r"model name\s*: (.*)", text)[1]
        return f"{len(os.sched_getaffinity(0))} threads of {name}"
    except (OSError, TypeError):
        return platform.processor() or platform.machine()


def unpacked(wheel):
    """A folder that goes with the object, and the folders to import zyx of the wheel from."""
    if not wheel:
        return None, []
    place = tempfile.TemporaryDirectory(prefix="sweep-wheel-")
    zipfile.ZipFile(wheel).extractall(place.name)
    return place, [place.name]


def order(sizes):
    """The cases as they are timed: large ones before small ones, values before gradients, of each function the first call first."""
    ranks, numbered = {}, []
    for case in cases():
        rank = ranks[case["names"][0]] = ranks.get(case["names"][0], -1) + 1
        numbered.append((rank, case))
    numbered.sort(key=lambda pair: pair[0])
    for size, slope in (("large", False), ("large", True), ("small", False), ("small", True)):
        if size in sizes:
            yield from ((size, slope, case) for _, case in numbered)


class Sweep:
    """The entries of a sweep, and the two processes."""

    def __init__(self, options):
        self.options, self.device, self.begun = options, options.device, time.monotonic()
        self.file = Path(options.load or options.json or Path(tempfile.gettempdir()) / f"sweep-{self.device}.json")
        told = json.loads(self.file.read_text()) if options.load or (options.resume and self.file.exists()) else {"entries": []}
        self.entries, self.about = told["entries"], told.get("about")
        self.done = {key(e): e for e in self.entries}
        self.recorded = HERE / f"sweep-{self.device}.json"
        before = json.loads(self.recorded.read_text()) if options.check else {"ratios": {}, "wrong": []}
        self.before, self.known = before["ratios"], before["wrong"]
        for entry in self.entries:
            self.explain(entry)
        self.regressed, self.left, self.saved = [], 0, self.begun

    def start(self):
        options = self.options
        self.place, path = unpacked(options.wheel)
        self.zyx = Process("zyx", options.zyx_python, self.device, options.threads, path, options.case_limit)
        self.torch = Process("torch", options.torch_python, self.device, options.threads, [], options.case_limit)
        date = datetime.date.today().isoformat()
        self.about = {"device": self.device, "date": date, "zyx": self.zyx.version, "torch": self.torch.version, "machine": machine()}

    def write(self):
        self.file.write_text(json.dumps({"about": self.about, "entries": self.entries}, indent=0))
        self.saved = time.monotonic()

    def measure(self, case, size, slope, rounds):
        words = case["words"]["small" if size == "small" else self.device]
        value = self.done.get(f"{label(case)} [{size}]") if slope else None
        found = measure(self.zyx, self.torch, case, size, slope, words, rounds, value)
        return {"label": label(case, slope), "names": case["names"], **found}

    def explain(self, entry):
        """Tells a difference that is on purpose from one that is not."""
        reason = next((reason for reason, pattern in DIFFERENT if re.search(pattern, entry["label"])), None)
        if "wrong" in entry and reason:
            entry["differs"] = f"{entry.pop('wrong')} ({reason})"

    def check(self, entry, case, was):
        """Measures again what is behind its record, and notes what stays there."""
        if "ratio" not in entry:
            what = entry.get("failed") or entry.get("gone") or entry.get("refused")
            self.regressed.append(f"{key(entry)}: {what}, recorded {was:.3g}")
        elif entry["torch"] >= COUNTS and entry["ratio"] < was / SLACK:
            again = self.measure(case, entry["size"], entry["gradient"], 2 * self.options.rounds)
            if again.get("ratio", 0) < was / SLACK:
                self.regressed.append(f"{key(entry)}: {entry['ratio']:.3g} and {again.get('ratio', 0):.3g}, recorded {was:.3g}")
            else:
                entry.update(again)

    def run(self):
        """Times all cases, or those that are asked for."""
        options, taken = self.options, {}
        for size, slope, case in order(options.sizes.split(",")):
            name, title = case["names"][0], f"{label(case, slope)} [{size}]"
            if options.only and not re.search(options.only, title):
                continue
            # Operators and ways to index are functions of their own.
            if not slope and name[0] != "@" and taken.get((size, name), 0) >= options.calls:
                continue
            # Of what has no value there is no gradient.
            values = [self.done.get(f"{label(case)} [{s}]", {}) for s in ("large", "small")]
            if slope and not any("ratio" in e and "gone" not in e for e in values):
                continue
            if title not in self.done:
                if time.monotonic() - self.begun > options.limit:
                    self.left += 1
                    continue
                entry = self.measure(case, size, slope, options.rounds)
                self.explain(entry)
                if title in self.before:
                    self.check(entry, case, self.before[title])
                if "wrong" in entry and options.check and title not in self.known:
                    self.regressed.append(f"{key(entry)}: {entry['wrong']}")
                self.entries.append(entry)
                self.done[title] = entry
                self.tell(entry)
                if time.monotonic() - self.saved > 5:
                    self.write()
            if not slope and "refused" not in self.done[title]:
                taken[size, name] = taken.get((size, name), 0) + 1
        self.write()
        self.zyx.stop()
        self.torch.stop()

    def tell(self, entry):
        text = f"{1e3 * entry['zyx']:10.4g} {1e3 * entry['torch']:10.4g} {entry['ratio']:8.3g}" if "ratio" in entry else " " * 30
        other = "; ".join(f"{what}: {entry[what]}" for what in ("refused", "failed", "gone", "wrong", "differs") if what in entry)
        print(f"{time.monotonic() - self.begun:7.1f} {text} {key(entry)} {other}", flush=True)


def sweep(options):
    found = Sweep(options)
    functions = {name for case in cases() for name in case["names"]}
    if not options.load:
        try:
            found.start()
        except Gone as gone:
            return f"{gone}; see --zyx-python, --wheel and --torch-python"
        print(f"{found.about['zyx']}; {found.about['torch']}; {found.about['machine']}")
        found.run()
    entries = found.entries
    print("; ".join(f"{what}: {sum(what in e for e in entries)}" for what in ("refused", "failed", "gone", "wrong", "differs")))
    swept = {name for e in entries if "ratio" in e for name in e["names"]}
    print(f"{len(swept)} of {len(functions)} functions are swept, {len(unswept())} others have no case (sweep_cases.UNSWEPT, and the array API's names)")
    if not options.only:
        print(f"PyTorch took no call of: {' '.join(sorted(functions - swept))}")
    for e in sorted(counted(entries), key=lambda e: e["ratio"])[:40]:
        print(f"{1e3 * e['zyx']:10.4g} {1e3 * e['torch']:10.4g} {e['ratio']:8.3g}  {key(e)}")
    print(summary(entries) + (f"; {found.left} cases were left out when the time was over" if found.left else ""))
    if options.record:
        (ROOT / "docs" / f"sweep-{found.device}.md").write_text(report(entries, len(functions), found.about, options.note))
        ratios = {key(e): float(f"{e['ratio']:.3g}") for e in counted(entries)}
        found.recorded.write_text(json.dumps({"about": found.about, "ratios": ratios, "wrong": [key(e) for e in entries if "wrong" in e]}, indent=0) + "\n")
    for line in found.regressed:
        print(f"REGRESSED {line}")
    return 1 if found.regressed else 0


if __name__ == "__main__":
    sys.exit(main())
