"""Data loaders in all combinations of options, over all kinds of data sets and examples, and what PyTorch gives.

usage: pytorch_loaders.py      (needs torch; the file was written with 2.15)

Writes data/pytorch_loaders.json: for each case its batches, with shapes and dtypes, its length, or the kind of its error.
Shuffled examples are sorted: their order is random.
"""

import collections
import itertools
import json
import pathlib
import warnings

import numpy as np

FILE = pathlib.Path(__file__).with_name("data") / "pytorch_loaders.json"
N = 7
Point = collections.namedtuple("Point", ("x", "y"))


def data_sets(m):
    data = m.utils.data

    class Squares(data.Dataset):
        """Raises for no number."""

        def __len__(self):
            return N

        def __getitem__(self, i):
            return int(i) ** 2

    class Fetched(Squares):
        def __getitems__(self, rows):
            return [100 + int(i) for i in rows]

    class Stream(data.IterableDataset):
        def __iter__(self):
            return iter(range(N))

    class Sized(Stream):
        def __len__(self):
            return N

    rows = data.TensorDataset(m.arange(N), m.arange(N).float() * 2)
    return {
        "list": list(range(10, 10 + N)),
        "range": range(N),
        "array": np.arange(N) * 3,
        "tensor": m.arange(N) * 5,
        "squares": Squares(),
        "fetched": Fetched(),
        "rows": rows,
        "subset": data.Subset(rows, [6, 2, 4, 0, 1, 3, 5]),
        "subset of subset": data.Subset(data.Subset(rows, np.array([6, 2, 4, 0, 1, 3, 5])), m.tensor([1, 0, 2, 6, 5, 4, 3])),
        "subset of squares": data.Subset(Squares(), [6, 2, 4, 0, 1, 3, 5]),
        "both": data.ConcatDataset([data.Subset(Squares(), [6, 2, 4]), data.Subset(Squares(), [0, 1, 3, 5])]),
        "stream": Stream(),
        "sized stream": Sized(),
        "empty": [],
        "one": [3],
    }  # fmt: skip


class Numbers:
    """Iterable, without a length."""

    def __init__(self, *numbers):
        self.numbers = numbers

    def __iter__(self):
        return iter(self.numbers)


OPTIONS = {
    "batch_size": [1, 3, None, 7, 100, 0, True],
    "shuffle": [None, True, False],
    "drop_last": [False, True],
    "sampler": [None, lambda m: [], lambda m: [5, 3, 0, 3], lambda m: np.array([5, 3, 2]), lambda m: m.tensor([1, 0, -1]), lambda m: Numbers(4, 2), lambda m: (6, 1),
                lambda m: m.utils.data.SequentialSampler(range(4)), lambda m: m.utils.data.SubsetRandomSampler([2, 2, 2]), lambda m: range(1, 5),
                lambda m: m.utils.data.BatchSampler(range(5), 2, False), lambda m: [9]],
    "batch_sampler": [None, lambda m: [[0, 1], [2]], lambda m: [], lambda m: np.array([[3, 4], [5, 6]]), lambda m: [(0, 5), (6,)], lambda m: m.tensor([[1, 2]]),
                      lambda m: m.utils.data.BatchSampler([1, 2, 3], 2, True), lambda m: [[]], lambda m: [[0], [40]]],
    "collate_fn": [None, lambda m: lambda x: [str(type(x).__name__ == "list"), plain(x)]],
}  # fmt: skip


def grid():
    """The number of a choice for each option: up to two of them not the first, or three of them the second."""
    names = list(OPTIONS)
    for n in range(4):
        for chosen in itertools.combinations(names, n):
            for picks in itertools.product(*(range(1, len(OPTIONS[name])) for name in chosen)):
                if n < 3 or max(picks) == 1:
                    yield dict(zip(chosen, picks))


def examples(m):
    """Lists of examples of every kind, that are collated and converted."""
    f, i = np.float32, np.int64
    return {
        **{f"scalars {d}": [np.dtype(d).type(1), np.dtype(d).type(0)] for d in DTYPES},
        **{f"arrays {d}": [np.array([1, 0], d), np.array([0, 1], d)] for d in DTYPES},
        **{f"arrays of no axis {d}": [np.array(1, d), np.array(0, d)] for d in DTYPES},
        **{f"empty arrays {d}": [np.zeros((0, 2), d)] * 2 for d in DTYPES},
        "ints": [1, 2], "bools": [True, False], "floats": [1.5, 2.0], "int first": [True, 3], "float first": [1.5, 2], "large": [2**40, 1],
        "precise": [1700000001.0, 0.1], "texts": ["a", "b"], "bytes": [b"a", b"b"], "numpy texts": [np.str_("a"), np.str_("b")],
        "tensors": [m.tensor([1.0, 2.0]), m.tensor([3.0, 4.0])], "tensors of no axis": [m.tensor(1), m.tensor(2)],
        "tuples": [(1, 2.0), (3, 4.0)], "lists": [[1, "a"], [3, "b"]], "named": [Point(1, f(2)), Point(3, f(4))],
        "mappings": [{"a": 1, "b": [f(2), i(3)]}, {"a": 4, "b": [f(5), i(6)]}], "ordered": [collections.OrderedDict(b=1, a=2), collections.OrderedDict(b=3, a=4)],
        "nested": [{"a": (np.float64(1), {"c": [True]})}, {"a": (np.float64(2), {"c": [False]})}], "ranges": [range(2), range(2)],
        "unequal lists": [[1, 2], [3]], "unequal mappings": [{"a": 1}, {"b": 2}], "nothing": [None, None], "objects": [object(), object()], "set": [{1}, {2}],
        "unequal tensors": [m.zeros(2), m.zeros(3)], "object arrays": [np.array(["a", None], object)] * 2, "text arrays": [np.array(["a", "b"])] * 2,
        "empty lists": [[], []], "empty tuples": [(), ()], "empty mappings": [{}, {}],
    }  # fmt: skip


DTYPES = ["bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float16", "float32", "float64"]


def plain(x):
    """Numbers and names: of a tensor dtype, shape and elements."""
    if hasattr(x, "detach"):
        x = x.detach().numpy()
        return ["tensor", str(x.dtype), list(x.shape), x.tolist()]
    if isinstance(x, np.ndarray):
        return ["array", str(x.dtype), x.tolist()]
    if isinstance(x, dict):
        return [type(x).__name__, [[key, plain(value)] for key, value in x.items()]]
    if isinstance(x, (tuple, list)):
        return [type(x).__name__, [plain(item) for item in x]]
    if isinstance(x, (np.generic, bytes, range)):
        return [type(x).__name__, str(x)]
    return x if isinstance(x, (bool, int, float, str, type(None))) else type(x).__name__


def told(f):
    try:
        return f()
    except (ValueError, TypeError, IndexError, KeyError, RuntimeError) as error:
        return "refused" if type(error).__name__ else error


def whole(x):
    """The numbers in batches, sorted."""
    if isinstance(x, (list, tuple)):
        if len(x) == 4 and x[0] == "tensor":
            return whole(x[3])
        return sorted((number for item in x for number in whole(item)), key=float)
    return [x] if isinstance(x, (int, float)) and not isinstance(x, bool) else []


def loaded(m, dataset, picks):
    """Batches and length of a loader."""
    options = {}
    for name, pick in picks.items():
        value = OPTIONS[name][pick]
        options[name] = value(m) if callable(value) else value

    def batches():
        found = [plain(batch) for batch in itertools.islice(iter(m.utils.data.DataLoader(dataset, **options)), 30)]
        if options.get("shuffle"):
            # Which ones are dropped is random, too.
            return [len(found), len(whole(found)) if options.get("drop_last") else whole(found)]
        return found

    return [told(batches), told(lambda: len(m.utils.data.DataLoader(dataset, **options)))]


def run(m):
    """What every case gives, by name."""
    found = {}
    for kind, dataset in data_sets(m).items():
        for picks in grid():
            name = f"{kind}: " + ", ".join(f"{option} {pick}" for option, pick in picks.items())
            found[name] = loaded(m, dataset, picks)
    data = m.utils.data
    for kind, batch in examples(m).items():
        found[f"collated {kind}"] = told(lambda: plain(data.default_collate(batch)))
        found[f"converted {kind}"] = told(lambda: [plain(x) for x in data.DataLoader(batch, batch_size=None)])
        found[f"batched {kind}"] = told(lambda: [plain(x) for x in data.DataLoader(batch, batch_size=2)])
    for lengths in ([3, 4], [0.5, 0.5], [0.5, 0.3], [1], [1.0], [7], [2, 2], [0.2, 0.3, 0.5], [7, 0], [0.9, 0.1, 0.0], [-0.5, 1.5]):
        found[f"split {lengths}"] = told(lambda: [len(part) for part in data.random_split(range(N), lengths)])
    return found


def write():
    """Asks PyTorch."""
    import torch

    warnings.simplefilter("ignore")
    found = run(torch)
    # Cases with one result stand in one line.
    groups = {}
    for name, result in found.items():
        groups.setdefault(json.dumps(result), []).append(name)
    FILE.write_text("[" + ",\n".join(f"[{json.dumps(names)}, {result}]" for result, names in groups.items()) + "]\n")
    print(len(found), "cases,", len(groups), "results")


if __name__ == "__main__":
    write()
