"""Data sets and batches of them, under the names of `torch.utils.data`. Written by tools/python_stubs.py."""

from typing import Any, Generic, TypeVar
from ..._core import Rng as Rng, Tensor as Tensor, tensor as tensor

_T = TypeVar("_T")

class Dataset(Generic[_T]):
    def __getitem__(self, index: Any) -> Any:
        ...

class IterableDataset(Dataset):
    ...

class ChainDataset(IterableDataset):
    datasets: Any
    def __init__(self, datasets: Any) -> None:
        ...
    def __iter__(self) -> Any:
        ...
    def __len__(self) -> Any:
        ...

class TensorDataset(Dataset):
    tensors: Any
    def __init__(self, *tensors: Any) -> None:
        ...
    def __getitem__(self, index: Any) -> Any:
        ...
    def __len__(self) -> Any:
        ...

class Subset(Dataset):
    dataset: Any
    indices: Any
    def __init__(self, dataset: Any, indices: Any) -> None:
        ...
    def __getitem__(self, index: Any) -> Any:
        ...
    def __len__(self) -> Any:
        ...

class StackDataset(Dataset):
    datasets: Any
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        ...
    def __getitem__(self, index: Any) -> Any:
        ...
    def __len__(self) -> Any:
        ...

class ConcatDataset(Dataset):
    datasets: Any
    def __init__(self, datasets: Any) -> None:
        ...
    @property
    def cumulative_sizes(self) -> Any:
        """Where each data set ends."""
    def __getitem__(self, index: Any) -> Any:
        ...
    def __len__(self) -> Any:
        ...

def random_split(dataset: Any, lengths: Any, generator: Any=None) -> Any:
    """Subsets without common examples, of these lengths, or of these shares if they sum to 1."""

def default_collate(batch: Any) -> Any:
    """Examples as one: tensors and arrays stacked, numbers as a tensor, sequences and mappings by their parts (tuples give lists), texts as they are. Dtypes stay; numbers of Python become `int64`, `float64` or `bool`."""

def default_convert(data: Any) -> Any:
    """An example with tensors in place of arrays."""

class Sampler(Generic[_T]):
    def __init__(self, data_source: Any=None) -> None:
        ...
    def __iter__(self) -> Any:
        ...

class SequentialSampler(Sampler):
    data_source: Any
    def __init__(self, data_source: Any) -> None:
        ...
    def __iter__(self) -> Any:
        ...
    def __len__(self) -> Any:
        ...

class RandomSampler(Sampler):
    data_source: Any
    replacement: Any
    generator: Any
    def __init__(self, data_source: Any, replacement: Any=False, num_samples: Any=None, generator: Any=None) -> None:
        ...
    @property
    def num_samples(self) -> Any:
        """How many numbers it gives."""
    def __iter__(self) -> Any:
        ...
    def __len__(self) -> Any:
        ...

class SubsetRandomSampler(Sampler):
    indices: Any
    generator: Any
    def __init__(self, indices: Any, generator: Any=None) -> None:
        ...
    def __iter__(self) -> Any:
        ...
    def __len__(self) -> Any:
        ...

class WeightedRandomSampler(Sampler):
    weights: Any
    num_samples: Any
    replacement: Any
    generator: Any
    def __init__(self, weights: Any, num_samples: Any, replacement: Any=True, generator: Any=None) -> None:
        ...
    def __iter__(self) -> Any:
        ...
    def __len__(self) -> Any:
        ...

class BatchSampler(Sampler):
    sampler: Any
    batch_size: Any
    drop_last: Any
    def __init__(self, sampler: Any, batch_size: Any, drop_last: Any) -> None:
        ...
    def __iter__(self) -> Any:
        ...
    def __len__(self) -> Any:
        ...

class DistributedSampler(Sampler):
    num_samples: Any
    total_size: Any
    epoch: Any
    dataset: Any
    num_replicas: Any
    rank: Any
    drop_last: Any
    shuffle: Any
    seed: Any
    def __init__(self, dataset: Any, num_replicas: Any=None, rank: Any=None, shuffle: Any=True, seed: Any=0, drop_last: Any=False) -> None:
        ...
    def __iter__(self) -> Any:
        ...
    def __len__(self) -> Any:
        ...
    def set_epoch(self, epoch: Any) -> Any:
        """The epoch, of which the order is a function."""

class WorkerInfo:
    id: Any
    num_workers: Any
    seed: Any
    dataset: Any
    def __init__(self, id: Any, num_workers: Any, seed: Any, dataset: Any) -> None:
        ...

def get_worker_info() -> Any:
    """Which worker this thread is, or `None` if it is none: an `IterableDataset` gives a share of its examples by it."""

class DataLoader:
    prefetch_factor: Any
    collate_fn: Any
    dataset: Any
    batch_size: Any
    drop_last: Any
    generator: Any
    sampler: Any
    batch_sampler: Any
    num_workers: Any
    timeout: Any
    worker_init_fn: Any
    persistent_workers: Any
    pin_memory: Any
    pin_memory_device: Any
    in_order: Any
    multiprocessing_context: Any
    def __init__(self, dataset: Any, batch_size: Any=1, shuffle: Any=None, sampler: Any=None, batch_sampler: Any=None, num_workers: Any=0, collate_fn: Any=None, pin_memory: Any=False, drop_last: Any=False, timeout: Any=0, worker_init_fn: Any=None, multiprocessing_context: Any=None, generator: Any=None, *, prefetch_factor: Any=None, persistent_workers: Any=False, pin_memory_device: Any='', in_order: Any=True) -> None:
        ...
    def __iter__(self) -> Any:
        ...
    def __len__(self) -> Any:
        ...
