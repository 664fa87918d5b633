"""Loaders under the names of `torch.utils.data.dataloader`."""

from . import DataLoader, IterableDataset, default_collate, default_convert, get_worker_info  # noqa: F401
