"""Ctrl-C at random moments of training, compiling, planning, long kernels, loading, saving and ONNX.

    python interrupts.py ROUNDS [KIND ...]

A thread sends SIGINT while the main thread repeats work of one kind. Every round, the exception has to come within
a second, and the results of the same work have to be right afterwards. Prints one line for each kind: the number of
signals, and the median and the longest time in seconds until one was heard.
"""

import os
import pathlib
import random
import signal
import statistics
import sys
import tempfile
import threading
import time

import numpy as np
import zyx
import zyx.nn as nn
from test_onnx import FLOAT, model, node, tensor

LIMIT = 1.0
random.seed(int(os.environ.get("ZYX_SEED", "1")))
zyx.manual_seed(1)
numbers = np.random.default_rng(1)


class Work:
    """One kind of work. `run` is interrupted; `check` fails if anything is wrong afterwards."""

    def check(self):
        self.run()


class Training(Work):
    """Steps of one network, each of which gives the same parameters whenever it is done from the same ones."""

    def __init__(self):
        self.x, self.y = zyx.randn(256, 256), zyx.randn(256, 10)
        self.net = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
        self.optimizer = zyx.optim.SGD(self.net.parameters(), lr=1e-3, momentum=0.9)
        self.start = self.state()
        self.known = [self.parameters()]
        for _ in range(12):
            self.step()
            self.known.append(self.parameters())
        self.restart()

    def state(self):
        net = {k: zyx.tensor(v.numpy().copy()) for k, v in self.net.state_dict().items()}
        return net, {k: zyx.tensor(v.numpy().copy()) for k, v in self.optimizer.state_dict().items()}

    def restart(self):
        self.net.load_state_dict(self.start[0])
        self.optimizer.load_state_dict(self.start[1])

    def parameters(self):
        return np.concatenate([p.numpy().ravel() for p in self.net.parameters()])

    def step(self):
        self.optimizer.zero_grad()
        loss = ((self.net(self.x) - self.y) ** 2).mean()
        loss.backward()
        self.optimizer.step()

    def run(self):
        self.restart()
        for _ in range(12):
            self.step()

    def check(self):
        # All parameters are those after one number of steps.
        now = self.parameters()
        assert any(np.array_equal(now, known) for known in self.known), "parameters of no step"
        self.restart()
        self.step()
        assert np.array_equal(self.parameters(), self.known[1]), "another step from the same parameters"


class Compiling(Work):
    """Networks of sizes that were not compiled before."""

    def __init__(self):
        self.size = 8

    def run(self):
        for _ in range(4):
            self.size += 1
            n = self.size
            x = zyx.ones(n, n + 1)
            y = [(x * i + i).softmax(1).sum(0).cumsum(0) @ zyx.ones(n + 1, i + 2) for i in range(6)]
            loss = sum(z.sum() for z in y)
            want = sum(n * (n + 2) / 2 * (i + 2) for i in range(6))
            assert abs(loss.item() - want) < 1e-4 * want, (loss.item(), want)


class Planning(Work):
    """Graphs of thousands of nodes, each another one."""

    def __init__(self):
        self.count = 0

    def run(self):
        self.count += 1
        choose = random.Random(self.count)
        x, y = zyx.arange(64.0).reshape(8, 8) / 64, np.arange(64, dtype=np.float32).reshape(8, 8) / 64
        for _ in range(1500):
            match choose.randrange(4):
                case 0:
                    x, y = x * 0.5 + 0.25, y * np.float32(0.5) + np.float32(0.25)
                case 1:
                    x, y = x.t(), y.T
                case 2:
                    x, y = x - x.mean(0, keepdim=True) + 0.5, y - y.mean(0, keepdims=True) + np.float32(0.5)
                case 3:
                    x, y = x.flip(0), y[::-1]
        assert np.allclose(x.numpy(), y, atol=1e-4)


class Kernels(Work):
    """Kernels that take seconds, on few threads."""

    def __init__(self):
        n = int(os.environ.get("ZYX_INTERRUPTED_SIZE", "3000"))
        self.x = zyx.randn(n, n).realize()
        self.small = zyx.randn(64, 64).realize()
        self.want = (self.small.numpy() @ self.small.numpy(), np.sort(self.small.numpy().ravel()))

    def run(self):
        x = self.x
        for _ in range(2):
            x = x @ self.x
        for _ in range(3):
            x = (x.sin().exp() + x.cos()).tanh().contiguous()
        x.sum().item()
        self.x.cumsum(0).sum().item()

    def check(self):
        assert np.allclose((self.small @ self.small).numpy(), self.want[0], atol=1e-4)
        assert np.array_equal(self.small.reshape(-1).sort()[0].numpy(), self.want[1])
        assert np.isfinite(self.x.numpy()).all()


class Factors(Work):
    """Factorisations on the host that take seconds."""

    def __init__(self):
        n = 1200
        a = numbers.standard_normal((n, n))
        self.a, self.b = zyx.tensor(a), zyx.tensor(a @ a.T + np.eye(n))
        self.c = self.a[:60, :60]

    def run(self):
        for x in (self.a.svd(), self.b.eigh(), self.a.qr(), [self.b.cholesky()], [self.a.inv()], [self.a.svdvals()]):
            x[0].realize()

    def check(self):
        u, s, v = self.c.svd()
        assert np.allclose(((u * s) @ v).numpy(), self.c.numpy())
        assert np.allclose((self.c @ self.c.inv()).numpy(), np.eye(60))


class Traced(Work):
    """A function that is traced for each size, and one that was traced before."""

    def __init__(self):
        self.size = 4
        self.x = zyx.randn(300, 300).realize()
        self.f = zyx.jit(lambda a: (a @ a).relu().sum())
        self.want = self.f(self.x).item()

    def run(self):
        self.size += 1
        g = zyx.jit(lambda a: (a.exp() @ a).softmax(0).sum(0))
        assert abs(g(zyx.ones(self.size, self.size)).sum().item() - self.size) < 1e-3
        for _ in range(5):
            assert self.f(self.x).item() == self.want


class Files(Work):
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.arrays = {f"x{i}": numbers.random((300, 1000), np.float32) for i in range(8)}
        self.tensors = {name: zyx.tensor(array) for name, array in self.arrays.items()}

    def right(self, tensors):
        assert tensors.keys() == self.arrays.keys()
        assert all(np.array_equal(tensors[name].numpy(), array) for name, array in self.arrays.items())


class Loading(Files):
    def __init__(self, folder):
        super().__init__(folder)
        zyx.save(self.tensors, self.folder / "a.safetensors")
        zyx.save_npz(self.tensors, self.folder / "a.npz")
        np.savez_compressed(self.folder / "b.npz", **self.arrays)
        self.bytes = (self.folder / "a.safetensors").read_bytes()

    def run(self):
        self.right(zyx.load(self.folder / "a.safetensors"))
        self.right(zyx.load_npz(self.folder / "a.npz"))
        self.right(zyx.load_npz(self.folder / "b.npz"))
        self.right(zyx.safetensors_from_bytes(self.bytes))


class Saving(Files):
    """A file is the one before or the one after."""

    def run(self):
        zyx.save(self.tensors, self.folder / "c.safetensors")
        zyx.save_npz(self.tensors, self.folder / "c.npz")
        zyx.save({name: x * 1.0 for name, x in self.tensors.items()}, self.folder / "c.safetensors")

    def check(self):
        left = [name for name in os.listdir(self.folder) if name.endswith(".tmp")]
        assert not left, left
        for name, load in {"c.safetensors": zyx.load, "c.npz": zyx.load_npz}.items():
            if (self.folder / name).exists():
                self.right(load(self.folder / name))


class Onnx(Work):
    def __init__(self):
        weights = [numbers.standard_normal((64, 64)).astype(np.float32) / 8 for _ in range(24)]
        names = [f"h{i}" for i in range(len(weights))]
        nodes = []
        for i, name in enumerate(names):
            nodes += [node("MatMul", [names[i - 1] if i else "x", f"w{i}"], ["m" + name]), node("Tanh", ["m" + name], [name])]
        tensors = [tensor(f"w{i}", w) for i, w in enumerate(weights)]
        self.model = model(nodes, [("x", FLOAT, ["batch", 64])], [(names[-1], FLOAT, ["batch", 64])], tensors)
        self.weights, self.batch = weights, 1

    def run(self):
        net = zyx.onnx.load(self.model)
        self.batch += 1
        x = numbers.standard_normal((self.batch, 64)).astype(np.float32)
        y = x
        for w in self.weights:
            y = np.tanh(y @ w)
        assert np.allclose(net(x).numpy(), y, atol=1e-4)


def interrupt_once(work):
    """Seconds until the exception came."""
    sent = []
    delay = random.choice([0.0, 0.002, 0.02, 0.1, 0.4]) * random.random()

    def send():
        time.sleep(delay)
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=send)
    heard = None
    try:
        thread.start()
        while True:
            work.run()
    except KeyboardInterrupt:
        heard = time.monotonic()
    thread.join()
    return heard - sent[0]


def main(rounds, kinds):
    folder = tempfile.mkdtemp()
    makers = {
        "training": Training, "compiling": Compiling, "planning": Planning, "kernels": Kernels, "jit": Traced,
        "factors": Factors,
        "loading": lambda: Loading(folder), "saving": lambda: Saving(folder), "onnx": Onnx,
    }
    late = 0
    for name in kinds or makers:
        work, times = makers[name](), []
        for i in range(-(-rounds // len(kinds or makers))):
            times.append(interrupt_once(work))
            work.check()
            if times[-1] > LIMIT:
                late += 1
                print(f"{name}: round {i} was heard after {times[-1]:.2f} s", flush=True)
        print(f"{name}: {len(times)} signals, {statistics.median(times):.3f} s, {max(times):.3f} s", flush=True)
    if late:
        sys.exit(f"{late} signals were heard too late")
    print("fine")


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
