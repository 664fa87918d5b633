"""Sequences of several lengths in one tensor, under the names of `torch.nn.utils.rnn`. Written by tools/python_stubs.py."""

from typing import Any, Generic, TypeVar
from ..._core import Tensor as Tensor, tensor as tensor

_T = TypeVar("_T")

class PackedSequence:
    def to(self, *target: Any, **named: Any) -> Any:
        """The data on another device or in another dtype."""
    def cpu(self) -> Any:
        """The data on the device `cpu`."""
    def cuda(self, *given: Any, **named: Any) -> Any:
        """The data on a device of the backend `cuda`."""
    def double(self) -> Any:
        """The data in `float64`."""
    def float(self) -> Any:
        """The data in `float32`."""
    def half(self) -> Any:
        """The data in `float16`."""
    @property
    def is_cuda(self) -> Any:
        """Whether the data is on a device of the backend `cuda`."""

def invert_permutation(permutation: Any) -> Any:
    """The permutation that undoes another."""

def pack_padded_sequence(input: Any, lengths: Any, batch_first: Any=False, enforce_sorted: Any=True) -> Any:
    """The first `lengths` steps of each sequence of `[steps, n, ..]`, packed; longest first, or sorted here unless `enforce_sorted`."""

def pad_packed_sequence(sequence: Any, batch_first: Any=False, padding_value: Any=0.0, total_length: Any=None) -> Any:
    """The sequences as `[steps, n, ..]`, and their lengths."""

def pad_sequence(sequences: Any, batch_first: Any=False, padding_value: Any=0.0, padding_side: Any='right') -> Any:
    """Sequences `[steps, ..]` of several lengths as one tensor `[steps, n, ..]`."""

def unpad_sequence(padded_sequences: Any, lengths: Any, batch_first: Any=False) -> Any:
    """The sequences that `pad_sequence` made one tensor of, as a list."""

def pack_sequence(sequences: Any, enforce_sorted: Any=True) -> Any:
    """Sequences `[steps, ..]` of several lengths, packed."""

def unpack_sequence(packed_sequences: Any) -> Any:
    """The sequences that `pack_sequence` made one of, as a list."""
