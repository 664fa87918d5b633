"""Samplers under the names of `torch.utils.data.sampler`."""

from . import BatchSampler, RandomSampler, Sampler, SequentialSampler, SubsetRandomSampler, WeightedRandomSampler  # noqa: F401
