"""Shares of processes under the names of `torch.utils.data.distributed`."""

from . import DistributedSampler  # noqa: F401
