"""`zyx.utils.data`: data sets and batches, under the names of `torch.utils.data`."""

from .. import _aliases
from . import data  # noqa: F401

__getattr__ = _aliases.ways(__name__, {"checkpoint": "zyx.checkpoint(f, inputs)", "tensorboard": "the crate zyx-data in Rust"})
