"""Data sets and batches of them, under the names of `torch.utils.data`.

Batches are made in the thread that asks for them.
"""

from .._core import Rng, Tensor, tensor


class Dataset:
    """Examples by number: derive from it and write `__getitem__` and `__len__`."""

    def __getitem__(self, index):
        raise NotImplementedError(f"{type(self).__name__} has no __getitem__()")

    def __add__(self, other):
        return ConcatDataset([self, other])


class IterableDataset(Dataset):
    """Examples one after the other: derive from it and write `__iter__`."""


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
        return self.dataset[self.indices[index]]

    def __len__(self):
        return len(self.indices)


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
    """Subsets without common examples, of these lengths or shares."""
    n = len(dataset)
    if any(isinstance(length, float) for length in lengths):
        lengths = [int(n * share) for share in lengths]
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
    """Examples as one: tensors and arrays stacked, numbers as a tensor, tuples, lists and dicts by their parts."""
    first = batch[0]
    if isinstance(first, Tensor):
        return Tensor.stack(list(batch))
    if hasattr(first, "__array__") or isinstance(first, (bool, int, float)):
        return Tensor.stack([tensor(x) for x in batch]) if getattr(first, "ndim", 0) else tensor([*map(_number, batch)])
    if isinstance(first, dict):
        return {key: default_collate([x[key] for x in batch]) for key in first}
    if isinstance(first, (tuple, list)):
        parts = [default_collate(part) for part in zip(*batch)]
        return type(first)(*parts) if hasattr(first, "_fields") else type(first)(parts)
    return list(batch)


def _number(x):
    return x.item() if hasattr(x, "item") else x


def _shuffled(n, generator):
    return Tensor.permutation(n, rng=generator).tolist()


class DataLoader:
    """Batches of a data set, in its order or shuffled anew each time. `generator` is a `zyx.Rng`; options about
    processes and pinned memory change nothing.

    The rows of a `TensorDataset` are taken from each tensor at once.
    """

    def __init__(self, dataset, batch_size=1, shuffle=False, sampler=None, batch_sampler=None, num_workers=0, collate_fn=None,
                 pin_memory=False, drop_last=False, timeout=0, worker_init_fn=None, multiprocessing_context=None,
                 generator=None, *, prefetch_factor=None, persistent_workers=False, pin_memory_device="", in_order=True):  # fmt: skip
        if generator is not None and not isinstance(generator, Rng):
            raise TypeError(f"generator is a zyx.Rng, not {type(generator).__name__}")
        if shuffle and (sampler is not None or batch_sampler is not None):
            raise ValueError("a sampler says the order: shuffle is not for it")
        self.dataset, self.batch_size, self.drop_last, self.generator = dataset, batch_size, drop_last, generator
        self.sampler, self.batch_sampler, self.collate_fn, self._shuffle = sampler, batch_sampler, collate_fn, shuffle

    def _batches(self):
        """The numbers of the examples of each batch."""
        if self.batch_sampler is not None:
            yield from map(list, self.batch_sampler)
            return
        n = len(self.dataset)
        order = self.sampler or (_shuffled(n, self.generator) if self._shuffle else range(n))
        yield from self._cut(order)

    def _cut(self, items):
        batch = []
        for item in items:
            batch.append(item)
            if len(batch) == self.batch_size:
                yield batch
                batch = []
        if batch and not self.drop_last:
            yield batch

    def __iter__(self):
        collate = self.collate_fn or default_collate
        if self.batch_size is None and self.batch_sampler is None:
            yield from self.dataset
        elif isinstance(self.dataset, IterableDataset):
            yield from map(collate, self._cut(self.dataset))
        else:
            for rows in self._batches():
                dataset, at = self.dataset, rows
                while type(dataset) is Subset:
                    dataset, at = dataset.dataset, [dataset.indices[i] for i in at]
                if type(dataset) is TensorDataset and self.collate_fn is None:
                    yield [x.index_select(0, tensor(at, dtype="int64", device=x.device)) for x in dataset.tensors]
                else:
                    yield collate([dataset[i] for i in at])

    def __len__(self):
        if self.batch_sampler is not None:
            return len(self.batch_sampler)
        n = len(self.dataset if self.sampler is None else self.sampler)
        return n if self.batch_size is None else n // self.batch_size if self.drop_last else -(-n // self.batch_size)
