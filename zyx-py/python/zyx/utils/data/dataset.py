"""Data sets under the names of `torch.utils.data.dataset`."""

from . import ChainDataset, ConcatDataset, Dataset, IterableDataset, StackDataset, Subset, TensorDataset, random_split  # noqa: F401
