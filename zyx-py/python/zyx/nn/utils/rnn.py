"""Sequences of several lengths in one tensor, under the names of `torch.nn.utils.rnn`."""

from collections import namedtuple

from ..._core import Tensor, tensor

_Packed = namedtuple("PackedSequence", ["data", "batch_sizes", "sorted_indices", "unsorted_indices"])


class PackedSequence(_Packed):
    """The steps of sequences one after the other, each of all sequences that have it: `batch_sizes` of them."""

    __slots__ = ()

    def __new__(cls, data, batch_sizes=None, sorted_indices=None, unsorted_indices=None):
        if batch_sizes is None:
            data, batch_sizes = data
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        return _Packed.__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def _map(self, function):
        return PackedSequence(function(self.data), self.batch_sizes, self.sorted_indices, self.unsorted_indices)

    def to(self, *target, **named):
        """The data on another device or in another dtype."""
        return self._map(lambda x: x.to(*target, **named))

    def cpu(self):
        """The data on the device `cpu`."""
        return self.to("cpu")

    def cuda(self, *given, **named):
        """The data on a device of the backend `cuda`."""
        return self._map(lambda x: x.cuda(*given, **named))

    def double(self):
        """The data in `float64`."""
        return self._map(lambda x: x.double())

    def float(self):
        """The data in `float32`."""
        return self._map(lambda x: x.float())

    def half(self):
        """The data in `float16`."""
        return self._map(lambda x: x.half())

    @property
    def is_cuda(self):
        """Whether the data is on a device of the backend `cuda`."""
        return self.data.device.type == "cuda"


def invert_permutation(permutation):
    """The permutation that undoes another."""
    return None if permutation is None else permutation.argsort()


def _lengths(lengths):
    return [int(n) for n in (lengths.tolist() if hasattr(lengths, "tolist") else lengths)]


def pack_padded_sequence(input, lengths, batch_first=False, enforce_sorted=True):
    """The first `lengths` steps of each sequence of `[steps, n, ..]`, packed; longest first, or sorted here unless
    `enforce_sorted`.
    """
    x, n = input.transpose(0, 1) if batch_first else input, _lengths(lengths)
    if len(n) != x.shape[1]:
        raise RuntimeError(f"Expected `len(lengths)` to be equal to batch_size, but got {len(n)} (batch_size={x.shape[1]})")
    if any(k <= 0 for k in n):
        raise RuntimeError("Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0")
    if max(n) > x.shape[0]:
        raise RuntimeError(f"a length of {max(n)} is more than the {x.shape[0]} steps there are")
    order = None
    if not enforce_sorted:
        places = sorted(range(len(n)), key=lambda i: -n[i])
        n, order = [n[i] for i in places], tensor(places, dtype="int64", device=x.device)
        x = x.index_select(1, order)
    elif n != sorted(n, reverse=True):
        raise RuntimeError("`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can pass `enforce_sorted=False`.")
    sizes = [sum(k > t for k in n) for t in range(n[0])]
    data = Tensor.cat([x[t, :size] for t, size in enumerate(sizes)], 0)
    return PackedSequence(data, tensor(sizes, dtype="int64", device="cpu"), order)


def pad_packed_sequence(sequence, batch_first=False, padding_value=0.0, total_length=None):
    """The sequences as `[steps, n, ..]`, and their lengths."""
    sizes, data = sequence.batch_sizes.tolist(), sequence.data
    steps = len(sizes) if total_length is None else total_length
    if steps < len(sizes):
        raise ValueError(f"Expected total_length to be at least the length of the longest sequence in input, but got total_length={total_length} and max sequence length being {len(sizes)}")
    rows, start = [], 0
    for size in sizes + [0] * (steps - len(sizes)):
        row = data[start : start + size]
        start += size
        if size < sizes[0]:
            row = Tensor.cat([row, data.new_full((sizes[0] - size, *data.shape[1:]), padding_value)], 0)
        rows.append(row)
    found = Tensor.stack(rows, 0)
    lengths = tensor([sum(size > i for size in sizes) for i in range(sizes[0])], dtype="int64", device="cpu")
    if sequence.unsorted_indices is not None:
        found = found.index_select(1, sequence.unsorted_indices)
        lengths = lengths.index_select(0, sequence.unsorted_indices.to("cpu"))
    return found.transpose(0, 1) if batch_first else found, lengths


def pad_sequence(sequences, batch_first=False, padding_value=0.0, padding_side="right"):
    """Sequences `[steps, ..]` of several lengths as one tensor `[steps, n, ..]`."""
    if padding_side not in ("left", "right"):
        raise ValueError(f"padding_side is 'left' or 'right', not {padding_side!r}")
    if isinstance(sequences, Tensor):
        sequences = sequences.unbind(0)
    sequences = list(sequences)
    longest, found = max(x.shape[0] for x in sequences), []
    for x in sequences:
        more = longest - x.shape[0]
        around = [(more, 0) if padding_side == "left" else (0, more)] + [(0, 0)] * (x.ndim - 1)
        found.append(x.pad_with(around, padding_value) if more else x)
    return Tensor.stack(found, 0 if batch_first else 1)


def unpad_sequence(padded_sequences, lengths, batch_first=False):
    """The sequences that `pad_sequence` made one tensor of, as a list."""
    x = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    return [x[i, :n] for i, n in enumerate(_lengths(lengths))]


def pack_sequence(sequences, enforce_sorted=True):
    """Sequences `[steps, ..]` of several lengths, packed."""
    return pack_padded_sequence(pad_sequence(sequences), [x.shape[0] for x in sequences], enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences):
    """The sequences that `pack_sequence` made one of, as a list."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
