"""Data sets and batches of them, under the names of `torch.utils.data`.

Batches are made in the thread that asks for them, or with `num_workers` in as many threads.
"""

import copy
import math
import operator
from collections.abc import Mapping, MutableMapping, MutableSequence, Sequence
from itertools import islice

from ..._core import Rng, Tensor, tensor


class Dataset:
    """Examples by number: derive from it and write `__getitem__` and `__len__`."""

    def __class_getitem__(cls, item):
        # `Dataset[T]` of annotations.
        return cls

    def __getitem__(self, index):
        raise NotImplementedError(f"{type(self).__name__} has no __getitem__()")

    def __add__(self, other):
        return ConcatDataset([self, other])


class IterableDataset(Dataset):
    """Examples one after the other: derive from it and write `__iter__`."""

    def __add__(self, other):
        return ChainDataset([self, other])


class ChainDataset(IterableDataset):
    """Iterable data sets one behind the other."""

    def __init__(self, datasets):
        self.datasets = datasets

    def __iter__(self):
        for dataset in self.datasets:
            yield from dataset

    def __len__(self):
        return sum(map(len, self.datasets))


class TensorDataset(Dataset):
    """The rows of tensors of one length."""

    def __init__(self, *tensors):
        if len({len(x) for x in tensors}) > 1:
            raise ValueError(f"the tensors have {[len(x) for x in tensors]} rows")
        self.tensors = tensors

    def __getitem__(self, index):
        return tuple(x[index] for x in self.tensors)

    def __len__(self):
        return len(self.tensors[0])


class Subset(Dataset):
    """Some examples of a data set."""

    def __init__(self, dataset, indices):
        self.dataset, self.indices = dataset, indices

    def __getitem__(self, index):
        if isinstance(index, list):
            return self.dataset[[self.indices[i] for i in index]]
        return self.dataset[self.indices[index]]

    def __getitems__(self, rows):
        if type(self).__getitem__ is not Subset.__getitem__:
            return [self[i] for i in rows]
        return _fetch(self.dataset, [self.indices[i] for i in rows])

    def __len__(self):
        return len(self.indices)


def _fetch(dataset, rows):
    """Examples of these numbers, at once if the data set can."""
    fetch = getattr(dataset, "__getitems__", None)
    return fetch(rows) if fetch else [dataset[i] for i in rows]


class StackDataset(Dataset):
    """Examples of several data sets of one length side by side: as a tuple, or of names as a dict."""

    def __init__(self, *args, **kwargs):
        if bool(args) == bool(kwargs):
            raise ValueError("StackDataset: data sets are given by position or by name, not both")
        self.datasets = args or kwargs
        lengths = {len(x) for x in self._parts()}
        if len(lengths) > 1:
            raise ValueError("Size mismatch between datasets")
        (self._length,) = lengths

    def _parts(self):
        return list(self.datasets.values()) if isinstance(self.datasets, dict) else list(self.datasets)

    def __getitem__(self, index):
        parts = [x[index] for x in self._parts()]
        return dict(zip(self.datasets, parts)) if isinstance(self.datasets, dict) else tuple(parts)

    def __len__(self):
        return self._length


class ConcatDataset(Dataset):
    """Data sets one behind the other."""

    def __init__(self, datasets):
        self.datasets = list(datasets)
        if not self.datasets:
            raise ValueError("datasets should not be an empty iterable")

    @property
    def cumulative_sizes(self):
        """Where each data set ends."""
        ends = []
        for dataset in self.datasets:
            ends.append(len(dataset) + (ends[-1] if ends else 0))
        return ends

    def __getitem__(self, index):
        if not -len(self) <= index < len(self):
            raise IndexError(f"example {index} of {len(self)}")
        index %= len(self)
        for dataset in self.datasets:
            if index < len(dataset):
                return dataset[index]
            index -= len(dataset)

    def __len__(self):
        return sum(map(len, self.datasets))


def random_split(dataset, lengths, generator=None):
    """Subsets without common examples, of these lengths, or of these shares if they sum to 1."""
    n = len(dataset)
    if math.isclose(sum(lengths), 1) and sum(lengths) <= 1:
        if not all(0 <= share <= 1 for share in lengths):
            raise ValueError(f"the shares {lengths} are not between 0 and 1")
        lengths = [math.floor(n * share) for share in lengths]
        for i in range(n - sum(lengths)):
            lengths[i % len(lengths)] += 1
    if sum(lengths) != n:
        raise ValueError(f"lengths {lengths} are not {n} examples together")
    order, start, parts = _shuffled(n, generator), 0, []
    for length in lengths:
        parts.append(Subset(dataset, order[start : start + length]))
        start += length
    return parts


def default_collate(batch):
    """Examples as one: tensors and arrays stacked, numbers as a tensor, sequences and mappings by their parts (tuples give
    lists), texts as they are. Dtypes stay; numbers of Python become `int64`, `float64` or `bool`.
    """
    first = batch[0]
    if isinstance(first, Tensor):
        return Tensor.stack(list(batch))
    if isinstance(first, (str, bytes)):
        return batch
    if hasattr(first, "__array__"):
        return Tensor.stack([tensor(x) for x in batch]) if getattr(first, "ndim", 0) else tensor(list(batch))
    if isinstance(first, float):
        return tensor(list(batch), dtype="float64")
    if isinstance(first, int):
        return tensor(list(batch))
    if isinstance(first, Mapping):
        return _like(first, {key: default_collate([x[key] for x in batch]) for key in first})
    if isinstance(first, Sequence):
        if any(len(x) != len(first) for x in batch):
            raise RuntimeError(f"the examples of a batch are sequences of {sorted({len(x) for x in batch})} parts")
        return _like(first, [default_collate(part) for part in zip(*batch)])
    raise TypeError(f"examples are tensors, arrays, numbers, texts, sequences or mappings, not {type(first).__name__}: pass collate_fn")


def default_convert(data):
    """An example with tensors in place of arrays."""
    if isinstance(data, (Tensor, str, bytes)):
        return data
    if hasattr(data, "__array__"):
        # Of texts and objects there are no tensors.
        return data if getattr(getattr(data, "dtype", None), "kind", "") in tuple("SUOa") else tensor(data)
    if isinstance(data, Mapping):
        return _like(data, {key: default_convert(value) for key, value in data.items()})
    if isinstance(data, Sequence):
        return _like(data, [default_convert(part) for part in data])
    return data


def _like(first, parts):
    """Parts in a container as the first one, where that is possible; a tuple without names becomes a list."""
    if isinstance(first, tuple):
        return type(first)(*parts) if hasattr(first, "_fields") else parts
    try:
        if isinstance(first, MutableMapping):
            made = copy.copy(first)
            made.update(parts)
        elif isinstance(first, MutableSequence):
            made = copy.copy(first)
            for i, part in enumerate(parts):
                made[i] = part
        else:
            made = type(first)(parts)
        return made
    except TypeError:
        return parts


def _rng(generator):
    """The stream of a generator."""
    return getattr(generator, "_rng", generator)


def _shuffled(n, generator):
    return Tensor.permutation(n, rng=_rng(generator)).tolist()


class Sampler:
    """The numbers of examples in an order: derive from it and write `__iter__`, and `__len__` if it is known."""

    def __init__(self, data_source=None):
        pass

    def __class_getitem__(cls, item):
        return cls

    def __iter__(self):
        raise NotImplementedError(f"{type(self).__name__} has no __iter__()")


class SequentialSampler(Sampler):
    """The order of the data set."""

    def __init__(self, data_source):
        self.data_source = data_source

    def __iter__(self):
        return iter(range(len(self.data_source)))

    def __len__(self):
        return len(self.data_source)


# Positions that a sampler draws in one call.
_DRAWN_TOGETHER = 4096


class RandomSampler(Sampler):
    """Shuffled anew each time; with `replacement` each number is drawn from all."""

    def __init__(self, data_source, replacement=False, num_samples=None, generator=None):
        self.data_source, self.replacement, self._num_samples, self.generator = data_source, replacement, num_samples, generator
        if self.num_samples < 1:
            raise ValueError(f"{self.num_samples} examples cannot be shuffled")

    @property
    def num_samples(self):
        """How many numbers it gives."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self):
        n, left = len(self.data_source), self.num_samples
        if self.replacement:
            # A few at a time: `num_samples` may be more than are ever asked for.
            while left > 0:
                yield from Tensor.randint(0, n, (min(left, _DRAWN_TOGETHER),), generator=self.generator).tolist()
                left -= _DRAWN_TOGETHER
            return
        while left > 0:
            yield from _shuffled(n, self.generator)[:left]
            left -= n

    def __len__(self):
        return self.num_samples


class SubsetRandomSampler(Sampler):
    """These numbers, shuffled anew each time."""

    def __init__(self, indices, generator=None):
        self.indices, self.generator = indices, generator

    def __iter__(self):
        return (self.indices[i] for i in _shuffled(len(self.indices), self.generator))

    def __len__(self):
        return len(self.indices)


class WeightedRandomSampler(Sampler):
    """`num_samples` numbers drawn by their weights, anew each time."""

    def __init__(self, weights, num_samples, replacement=True, generator=None):
        if not isinstance(num_samples, int) or num_samples < 1:
            raise ValueError(f"num_samples is a whole number from 1 on, not {num_samples}")
        self.weights, self.num_samples, self.replacement, self.generator = tensor(weights), num_samples, replacement, generator

    def __iter__(self):
        return iter(self.weights.multinomial(self.num_samples, self.replacement, rng=_rng(self.generator)).tolist())

    def __len__(self):
        return self.num_samples


class BatchSampler(Sampler):
    """Lists of `batch_size` numbers of another sampler."""

    def __init__(self, sampler, batch_size, drop_last):
        if not isinstance(batch_size, int) or isinstance(batch_size, bool) or batch_size < 1:
            raise ValueError(f"batch_size is a whole number from 1 on, not {batch_size}")
        self.sampler, self.batch_size, self.drop_last = sampler, batch_size, drop_last

    def __iter__(self):
        yield from _cut(iter(self.sampler), self.batch_size, self.drop_last)

    def __len__(self):
        n = len(self.sampler)
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)


def _places(rows, through, n):
    """Numbers from 0 on of `n` rows that subsets lead to; `None` if there are other things among them."""
    for indices in through:
        rows = [indices[i] for i in rows]
    try:
        rows = [operator.index(i) for i in rows]
    except TypeError:
        return None
    for i in rows:
        if not -n <= i < n:
            raise IndexError(f"example {i} of {n}")
    return [i % n for i in rows]


def _cut(items, n, drop_last):
    while batch := list(islice(items, n)):
        if drop_last and len(batch) < n:
            return
        yield batch


class DistributedSampler(Sampler):
    """The share of one of several processes: every `num_replicas`-th number from `rank` on, filled up to equal shares, or cut
    with `drop_last`. `set_epoch` shuffles anew.
    """

    def __init__(self, dataset, num_replicas=None, rank=None, shuffle=True, seed=0, drop_last=False):
        if num_replicas is None or rank is None:
            from ... import distributed

            num_replicas = distributed.get_world_size() if num_replicas is None else num_replicas
            rank = distributed.get_rank() if rank is None else rank
        if not 0 <= rank < num_replicas:
            raise ValueError(f"Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]")
        self.dataset, self.num_replicas, self.rank, self.epoch, self.drop_last = dataset, num_replicas, rank, 0, drop_last
        self.shuffle, self.seed = shuffle, seed
        n = len(dataset)
        self.num_samples = n // num_replicas if drop_last else -(-n // num_replicas)
        self.total_size = self.num_samples * num_replicas

    def __iter__(self):
        n = len(self.dataset)
        order = _shuffled(n, Rng(self.seed + self.epoch)) if self.shuffle else list(range(n))
        while len(order) < self.total_size:
            order += order[: self.total_size - len(order)]
        return iter(order[: self.total_size][self.rank :: self.num_replicas])

    def __len__(self):
        return self.num_samples

    def set_epoch(self, epoch):
        """The epoch, of which the order is a function."""
        self.epoch = epoch


class WorkerInfo:
    """Which of the workers of a loader a thread is."""

    def __init__(self, id, num_workers, seed, dataset):
        self.id, self.num_workers, self.seed, self.dataset = id, num_workers, seed, dataset

    def __repr__(self):
        return f"WorkerInfo(id={self.id}, num_workers={self.num_workers}, seed={self.seed})"


_LOCAL = None


def get_worker_info():
    """Which worker this thread is, or `None` if it is none: an `IterableDataset` gives a share of its examples by it."""
    return getattr(_LOCAL, "info", None)


class _Workers:
    """Threads, each of which does its jobs in order."""

    def __init__(self, loader):
        global _LOCAL
        import threading
        from concurrent.futures import ThreadPoolExecutor

        if _LOCAL is None:
            _LOCAL = threading.local()
        seed = (_rng(loader.generator) or Rng(Tensor.randint(0, 2**62, (1,)).item())).next_u64() >> 2
        in_turn = isinstance(loader.dataset, IterableDataset)

        def start(i):
            # An iterable data set is the worker's own, as of a process.
            dataset = copy.copy(loader.dataset) if in_turn else loader.dataset
            _LOCAL.info = WorkerInfo(i, loader.num_workers, seed + i, dataset)
            if loader.worker_init_fn is not None:
                loader.worker_init_fn(i)

        names = f"DataLoader-{id(loader):x}"
        self.threads = [ThreadPoolExecutor(1, f"{names}-{i}") for i in range(loader.num_workers)]
        self.started = [thread.submit(start, i) for i, thread in enumerate(self.threads)]

    def submit(self, i, function, *given):
        """The future of a job of worker `i`."""
        started = self.started[i]

        def work():
            # A worker that could not be set up says so.
            started.result()
            return function(*given)

        return self.threads[i].submit(work)

    def close(self, wait=False):
        """Ends the threads; jobs that have not begun are dropped."""
        for thread in self.threads:
            thread.shutdown(wait=wait, cancel_futures=True)


_END = object()


class DataLoader:
    """Batches of a data set, in its order or shuffled anew each time, or in the order of a sampler. `generator` is a
    `zyx.Generator` or `zyx.Rng`; pinned memory changes nothing.

    `num_workers` threads make batches ahead, `prefetch_factor` (2) each, and give them in order; an exception of a data set is
    raised where its batch is due. Threads share the program's memory, as processes do not: a data set that reads an open file has
    to hold one for each thread. `multiprocessing_context` is an error.

    With `batch_size=None` there is no batch: each example is given for itself. The rows of a `TensorDataset` are taken
    from each tensor at once.
    """

    def __init__(self, dataset, batch_size=1, shuffle=None, sampler=None, batch_sampler=None, num_workers=0, collate_fn=None,
                 pin_memory=False, drop_last=False, timeout=0, worker_init_fn=None, multiprocessing_context=None,
                 generator=None, *, prefetch_factor=None, persistent_workers=False, pin_memory_device="", in_order=True):  # fmt: skip
        if generator is not None and not isinstance(getattr(generator, "_rng", generator), (Rng, type(None))):
            raise TypeError(f"generator is a zyx.Generator or a zyx.Rng, not {type(generator).__name__}")
        if multiprocessing_context is not None:
            raise NotImplementedError("DataLoader: multiprocessing_context; workers are threads")
        if num_workers < 0 or timeout < 0:
            raise ValueError(f"num_workers and timeout are at least 0, not {num_workers}, {timeout}")
        if num_workers == 0 and (prefetch_factor is not None or persistent_workers):
            raise ValueError("prefetch_factor and persistent_workers are for num_workers > 0")
        in_turn = isinstance(dataset, IterableDataset)
        if in_turn and (shuffle or sampler is not None or batch_sampler is not None):
            raise ValueError("an IterableDataset has its own order: shuffle, sampler and batch_sampler are not for it")
        if sampler is not None and shuffle:
            raise ValueError("a sampler says the order: shuffle is not for it")
        if batch_sampler is not None and (batch_size != 1 or shuffle or sampler is not None or drop_last):
            raise ValueError("a batch_sampler says it all: batch_size, shuffle, sampler and drop_last are not for it")
        if batch_size is None and drop_last:
            raise ValueError("with batch_size=None there is no last batch to drop")
        if sampler is None and not in_turn:
            sampler = RandomSampler(dataset, generator=generator) if shuffle else SequentialSampler(dataset)
        if batch_sampler is not None:
            batch_size = None
        elif batch_size is not None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.dataset, self.batch_size, self.drop_last, self.generator = dataset, batch_size, drop_last, generator
        self.sampler, self.batch_sampler, self.num_workers = sampler, batch_sampler, num_workers
        self.timeout, self.worker_init_fn, self.persistent_workers = timeout, worker_init_fn, persistent_workers
        self.prefetch_factor = (2 if prefetch_factor is None else prefetch_factor) if num_workers else None
        self.pin_memory, self.pin_memory_device, self.in_order, self.multiprocessing_context = pin_memory, pin_memory_device, in_order, None
        self._workers = None
        # The rows of tensors are stacked already.
        self._takes_rows = collate_fn is None
        self.collate_fn = collate_fn or (default_convert if batch_sampler is None else default_collate)

    def __iter__(self):
        if self.num_workers:
            return self._ahead()
        return self._collated() if self._takes_rows else map(self.collate_fn, self._examples())

    def _ahead(self):
        """Batches that workers make ahead, in order."""
        from collections import deque
        from concurrent.futures import TimeoutError

        try:
            workers = self._workers or _Workers(self)
        except RuntimeError:
            # No thread is to be had: done without.
            yield from self._collated() if self._takes_rows else map(self.collate_fn, self._examples())
            return
        self._workers = workers if self.persistent_workers else None
        waiting, most = deque(), self.num_workers * self.prefetch_factor
        jobs = self._in_turn(workers) if isinstance(self.dataset, IterableDataset) else self._by_number(workers)
        try:
            for job in jobs:
                waiting.append(job)
                if len(waiting) >= most:
                    yield from self._due(waiting, TimeoutError)
            while waiting:
                yield from self._due(waiting, TimeoutError)
            if not self.persistent_workers:
                workers.close(wait=True)
        finally:
            if not self.persistent_workers:
                workers.close()

    def _due(self, waiting, late):
        try:
            found = waiting.popleft().result(self.timeout or None)
        except late:
            raise RuntimeError(f"DataLoader timed out after {self.timeout} seconds") from None
        if found is not _END:
            yield found

    def _by_number(self, workers):
        def one(rows):
            if self.batch_sampler is None:
                return self.collate_fn(self.dataset[rows])
            return self.collate_fn(_fetch(self.dataset, list(rows)))

        for k, rows in enumerate(self.sampler if self.batch_sampler is None else self.batch_sampler):
            yield workers.submit(k % self.num_workers, one, rows)

    def _in_turn(self, workers):
        """Batches of each worker's examples in turn, until all have none."""
        running = {}

        def begin():
            items = iter(get_worker_info().dataset)
            return items if self.batch_size is None else _cut(items, self.batch_size, self.drop_last)

        def following(i):
            if i not in running:
                running[i] = begin()
            for found in running[i]:
                return self.collate_fn(found)
            return _END

        left = {i: None for i in range(self.num_workers)}
        while left:
            for i in list(left):
                job = left[i]
                if job is not None and job.done() and job.exception() is None and job.result() is _END:
                    del left[i]
                    continue
                left[i] = workers.submit(i, following, i)
                yield left[i]

    def __del__(self):
        if getattr(self, "_workers", None) is not None:
            self._workers.close()

    def _examples(self):
        """Examples, or lists of those of a batch."""
        if isinstance(self.dataset, IterableDataset):
            items = iter(self.dataset)
            yield from items if self.batch_size is None else _cut(items, self.batch_size, self.drop_last)
        elif self.batch_sampler is None:
            yield from (self.dataset[i] for i in self.sampler)
        else:
            yield from (_fetch(self.dataset, list(rows)) for rows in self.batch_sampler)

    def _collated(self):
        dataset, through = self.dataset, []
        while type(dataset) is Subset:
            through.append(dataset.indices)
            dataset = dataset.dataset
        if type(dataset) is not TensorDataset or self.batch_sampler is None:
            yield from map(self.collate_fn, self._examples())
            return
        for rows in self.batch_sampler:
            places = _places(rows, through, len(dataset))
            if places:
                yield [x.index_select(0, tensor(places, dtype="int64", device=x.device)) for x in dataset.tensors]
            else:
                yield self.collate_fn(_fetch(self.dataset, list(rows)))

    def __len__(self):
        if not isinstance(self.dataset, IterableDataset):
            return len(self.sampler if self.batch_sampler is None else self.batch_sampler)
        n = len(self.dataset)
        return n if self.batch_size is None else n // self.batch_size if self.drop_last else -(-n // self.batch_size)


def __getattr__(name):
    if name not in ("dataloader", "dataset", "sampler", "distributed"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return importlib.import_module("." + name, __name__)
