"""Data sets and batches of them, under the names of `torch.utils.data`.

Batches are made in the thread that asks for them.
"""

import copy
import math
import operator
from collections.abc import Mapping, MutableMapping, MutableSequence, Sequence
from itertools import islice

from .._core import Rng, Tensor, tensor


class Dataset:
    """Examples by number: derive from it and write `__getitem__` and `__len__`."""

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


class ConcatDataset(Dataset):
    """Data sets one behind the other."""

    def __init__(self, datasets):
        self.datasets = list(datasets)

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


def _shuffled(n, generator):
    return Tensor.permutation(n, rng=generator).tolist()


class Sampler:
    """The numbers of examples in an order: derive from it and write `__iter__`, and `__len__` if it is known."""

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
            yield from Tensor.randint(0, n, (left,), generator=self.generator).tolist()
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
        return iter(self.weights.multinomial(self.num_samples, self.replacement, rng=self.generator).tolist())

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


class DataLoader:
    """Batches of a data set, in its order or shuffled anew each time, or in the order of a sampler. `generator` is a
    `zyx.Rng`; options about processes and pinned memory change nothing.

    With `batch_size=None` there is no batch: each example is given for itself. The rows of a `TensorDataset` are taken
    from each tensor at once.
    """

    def __init__(self, dataset, batch_size=1, shuffle=None, sampler=None, batch_sampler=None, num_workers=0, collate_fn=None,
                 pin_memory=False, drop_last=False, timeout=0, worker_init_fn=None, multiprocessing_context=None,
                 generator=None, *, prefetch_factor=None, persistent_workers=False, pin_memory_device="", in_order=True):  # fmt: skip
        if generator is not None and not isinstance(generator, Rng):
            raise TypeError(f"generator is a zyx.Rng, not {type(generator).__name__}")
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
        # The rows of tensors are stacked already.
        self._takes_rows = collate_fn is None
        self.collate_fn = collate_fn or (default_convert if batch_sampler is None else default_collate)

    def __iter__(self):
        return self._collated() if self._takes_rows else map(self.collate_fn, self._examples())

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
