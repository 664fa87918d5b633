"""Calls of every public function with hostile arguments, in a process of their own: see `test_hostile.py`.

    python hostile.py SEED FIRST LAST [FILE [SECONDS]]

Call number `i` depends on SEED and `i` only, so each can be made again alone. Before each call its number and text are
written to the descriptor FILE, and FAULT behind it if it ends in what is no exception for a caller; at the end DONE. A call
that takes more than SECONDS ends the process.
"""

import faulthandler
import inspect
import itertools
import math
import os
import random
import resource
import sys

import numpy as np
import zyx

# What the process may take beside what it has when it starts.
MEMORY = 1 << 30


class Index:
    def __init__(self, value):
        self.value = value

    def __index__(self):
        return self.value

    __int__ = __index__

    def __repr__(self):
        return f"Index({self.value!r})"


class Raising:
    """Whatever is asked of it fails."""

    def _fail(self, *_):
        raise KeyError("hostile")

    __len__ = __iter__ = __getitem__ = __index__ = __float__ = __bool__ = __hash__ = __eq__ = __array__ = __dlpack__ = _fail
    __array_interface__ = property(_fail)
    shape = dtype = property(_fail)


class Lying:
    """A sequence whose length is not that of what it gives."""

    def __init__(self, length, items):
        self.length, self.items = length, items

    def __len__(self):
        return self.length

    def __length_hint__(self):
        return self.length

    def __getitem__(self, i):
        return self.items[i]

    def __iter__(self):
        return iter(self.items)

    def __repr__(self):
        return f"Lying({self.length}, {self.items})"


class LyingList(list):
    def __len__(self):
        return 2**62


class LyingTuple(tuple):
    def __len__(self):
        return 2**62


class Endless:
    def __iter__(self):
        return itertools.repeat(1)

    def __repr__(self):
        return "Endless()"


class Interface:
    """An array interface as it is given; the memory is that of an array."""

    def __init__(self, **fields):
        self.memory = np.arange(16.0)
        told = {"version": 3, "shape": (16,), "typestr": "<f8", "data": (self.memory.ctypes.data, False)}
        self.__array_interface__ = {name: value for name, value in {**told, **fields}.items() if value is not ...}
        self.fields = fields

    def __repr__(self):
        return f"Interface({self.fields})"


def nested(depth):
    x = []
    for _ in range(depth):
        x = [x]
    return x


def recursive():
    x = [1]
    x.append(x)
    return x


def frozen():
    x = np.arange(6.0).reshape(2, 3)
    x.flags.writeable = False
    return x


def tensor(rng):
    shape = tuple(rng.choice([0, 1, 1, 2, 2, 3]) for _ in range(rng.choice([0, 1, 1, 2, 2, 3, 4])))
    data = np.array([rng.choice([0, 1, 2, -1, 0.5]) for _ in range(math.prod(shape))]).reshape(shape)
    with np.errstate(all="ignore"):
        x = zyx.tensor(data.astype(rng.choice(["f4", "f4", "f8", "f2", "i8", "i4", "u1", "u8", "?"])))
    return x.tracked() if rng.random() < 0.2 and "float" in str(x.dtype) else x


NUMBERS = [0, 1, -1, 2, 3, 7, 255, 2**16, 2**24, 2**31 - 1, 2**31, 2**32, 2**40, 2**53, 2**62, 2**63 - 1, 2**63, 2**64 - 1, 2**64, 2**200, -(2**31), -(2**63), -(2**63) - 1]
FLOATS = [0.0, -0.0, 0.5, 1.0, -2.0, 1e-320, 1e300, -1e300, math.inf, -math.inf, math.nan]
WORDS = ["", "mean", "sum", "none", "float32", "cpu", "a", "ij,jk->ik", "constant", "reflect", "\0", "\ud800", "é" * 300, "ii...,->", "linear", "bilinear"]


def hostile(rng, x):
    """An argument."""
    kinds = [
        lambda: rng.choice(NUMBERS),
        lambda: rng.choice(NUMBERS),
        lambda: rng.choice(FLOATS),
        lambda: rng.choice(WORDS),
        lambda: rng.choice([True, False, None, ..., object(), {}, set(), b"abc", bytearray(b"ab"), memoryview(b"abcd"), 1j, int, zyx, NotImplemented]),
        lambda: [rng.choice(NUMBERS) for _ in range(rng.randint(0, 4))],
        lambda: tuple(rng.choice(NUMBERS[:6]) for _ in range(rng.randint(0, 4))),
        lambda: [(rng.choice(NUMBERS), rng.choice(NUMBERS)) for _ in range(x.ndim)],
        lambda: [1] * rng.choice([17, 300]),
        lambda: tensor(rng),
        lambda: tensor(rng),
        lambda: x,
        lambda: [x, tensor(rng)],
        lambda: [x] * rng.choice([1, 2, 40]),
        lambda: {"a": x},
        lambda: zyx.nn.Parameter(x),
        lambda: rng.choice([zyx.float16, zyx.int32, np.float64, zyx.Rng(1), slice(2**62, None, -(2**63)), slice(None, None, 2**62)]),
        lambda: Index(rng.choice([*NUMBERS, None, "a", 0.5])),
        lambda: Raising(),
        lambda: Lying(rng.choice([0, 2, 2**40, 2**62]), rng.choice([[], [1], [0.5, 2], [x]])),
        lambda: rng.choice([LyingList, LyingTuple])([1, 2]),
        lambda: rng.choice([LyingList, LyingTuple])([x, x]),
        lambda: Endless() if rng.random() < 0.2 else None,
        lambda: Interface(shape=rng.choice([(2**62,), (2**40, 2**40), (-1,), (4.5,), None, (1,) * 40, Lying(2**62, [1]), 7, ...])),
        lambda: Interface(shape=(0, 2**62)),
        lambda: Interface(strides=rng.choice([(2**62,), (8, 8), (), (0.5,), 8, Lying(2**62, [8])])),
        lambda: Interface(shape=(2, 2**62), strides=(2**62, 2)),
        lambda: Interface(data=rng.choice([None, (0, False), (2**64 - 8, True), (2**70, True), (-8, True), ("a",), b"abc", ...])),
        lambda: Interface(typestr=rng.choice(["", "<", "<f3", "<f80", "|O", "|V4", "<é4", ">f8", 3, "<f" + "9" * 30])),
        lambda: np.broadcast_to(np.zeros(1), rng.choice([(2**40,), (2**31, 2**20), (2**59,), (3, 0, 2**60)])),
        lambda: np.arange(4.0)[::-1],
        lambda: rng.choice([frozen(), np.zeros((2, 0)), np.zeros((0, 2**40)), np.zeros(3, "M8[s]"), np.array([x, None], object), np.arange(9.0)[1::3], np.zeros((2, 2), ">i4").T]),
        lambda: np.frombuffer(b"abcdefghijklmnop", "u1")[3:11].view("f8"),
        lambda: rng.choice([nested(3), nested(20), nested(5000), recursive(), [[1], [1, 2]], [[[]], [[]]], [x, [1]], ["a"], [None]]),
        lambda: rng.choice([lambda *a: a[0], lambda *a: None, lambda *a: zyx.zeros(2), lambda *a: [], lambda *a: a[0].sum(), lambda *a, **k: 1 / 0]),
    ]  # fmt: skip
    return rng.choice(kinds)()


# What ends or waits by its own right.
SKIP = {"breakpoint", "tune", "with_gradient"}


def public():
    """Every public function, class and method, by name: a list of (name, what makes the callable of a tensor)."""
    found = {}
    modules = [zyx, zyx.nn, zyx.nn.functional, zyx.nn.init, zyx.optim, zyx.linalg, zyx.special, zyx.array_api]
    for module in modules:
        for name in dir(module):
            value = getattr(module, name)
            if name.startswith("_") or name in SKIP or inspect.ismodule(value) or not callable(value):
                continue
            found[f"{module.__name__}.{name}"] = value
    for name, value in vars(zyx.optim.schedule).items() if inspect.ismodule(zyx.optim.schedule) else []:
        if callable(value) and not name.startswith("_"):
            found[f"schedule.{name}"] = value
    classes = [zyx.Tensor, zyx.nn.Parameter, zyx.Rng, zyx.Device, zyx.DType, zyx.nn.KvCache, zyx.QuantizedMatrix, zyx.LossScaler, zyx.Ema, zyx.Plateau]
    plain = set(dir(object)) - {"__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__format__"}
    for kind in classes:
        for name in dir(kind):
            if name in SKIP or name in plain or (name.startswith("_") and not name.endswith("__")) or name in ("__weakref__", "__class_getitem__"):
                continue
            found[f"{kind.__name__}().{name}"] = (kind, name)
    return found


def made(kind, rng, x):
    if kind is zyx.Tensor:
        return x
    if kind is zyx.nn.Parameter:
        return zyx.nn.Parameter(x)
    options = {zyx.Rng: lambda: zyx.Rng(rng.choice([0, 3])), zyx.Device: lambda: zyx.device("cpu"), zyx.DType: lambda: x.dtype,
               zyx.nn.KvCache: lambda: zyx.nn.KvCache(rng.choice([0, 3, 2**63]))}  # fmt: skip
    return options.get(kind, lambda: kind(*[hostile(rng, x) for _ in range(rng.randint(0, 2))]))()


def look(result, depth=0):
    """Computes what came out."""
    if isinstance(result, zyx.Tensor):
        # Small ones are computed; of what does not fit into memory it is tried.
        if result.size < 4096 or result.size > 2**31:
            result.numpy()
            repr(result)
    elif isinstance(result, (list, tuple)) and depth < 3:
        for y in result[:8]:
            look(y, depth + 1)
    else:
        repr(result)


def call(names, table, seed, i, tell):
    rng = random.Random(f"{seed}/{i}")
    # Each name in turn, so that few calls meet all of them.
    name = names[i % len(names)]
    value = table[name]
    tell(f"{i} {name}")
    try:
        x = tensor(rng)
        target = getattr(made(value[0], rng, x), value[1]) if isinstance(value, tuple) else value
        if not callable(target):
            return look(target)
        positional = [hostile(rng, x) for _ in range(rng.choice([0, 1, 1, 2, 2, 3, 4]))]
        if positional and rng.random() < 0.5 and not isinstance(value, tuple):
            positional[0] = x
        keywords = {}
        if rng.random() < 0.3:
            options = ["axis", "dim", "keepdim", "dtype", "device", "out", "size", "n", "shape", "max", "min"]
            try:
                options = [p.name for p in inspect.signature(target).parameters.values() if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD)] or options
            except (TypeError, ValueError):
                pass
            keywords = {rng.choice(options): hostile(rng, x)}
        tell(f"{i} {name} of {x!r:.200}: {shown(positional)} {shown(keywords)}")
        result = target(*positional, **keywords)
        look(result)
        if isinstance(result, (zyx.nn.Module, zyx.nn.Layer)):
            look(result(x))
        return None
    except Exception as error:
        if isinstance(error, SystemError) or "internal error" in str(error):
            raise AssertionError(f"{type(error).__name__}: {error}") from error
        return None


def shown(value):
    try:
        return f"{value!r:.300}"
    except Exception:
        return "what cannot be shown"


def main(seed, first, last, file=1, patience=60):
    def tell(text):
        os.write(file, text.replace("\n", " ").encode("utf-8", "backslashreplace") + b"\n")

    table = public()
    names = sorted(table)
    # Threads and tables of the device are there before the limit.
    (zyx.rand(1 << 16) @ zyx.rand(1 << 16)).item()
    with open("/proc/self/statm") as statm:
        size = int(statm.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + MEMORY, size + MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # What is saved under a hostile name stays there.
    os.chdir(os.environ.get("HOSTILE_FOLDER", "."))
    for i in range(first, last if last >= 0 else len(names)):
        faulthandler.dump_traceback_later(patience, exit=True)
        try:
            call(names, table, seed, i, tell)
        except BaseException as error:
            tell(f"FAULT {i} {type(error).__name__}: {error}")
    faulthandler.cancel_dump_traceback_later()
    tell("DONE")


if __name__ == "__main__":
    if sys.argv[2] == "abort":
        os.abort()
    if sys.argv[2] == "panic":
        # The exception of a panic is no `Exception`.
        public = lambda: {"panics": lambda *_, **__: (_ for _ in ()).throw(type("PanicException", (BaseException,), {})())}  # noqa: E731
        sys.argv[2] = "0"
        sys.argv[3] = "1"
    main(*map(int, sys.argv[1:6]))
