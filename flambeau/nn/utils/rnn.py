"""Batches of sequences of different lengths: padded tensors and packed sequences."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, Self

from ... import dtypes
from ..._tensor import Tensor
from ..._tensor import functions as fn

__all__ = ["PackedSequence", "invert_permutation", "pack_padded_sequence", "pack_sequence", "pad_packed_sequence",
           "pad_sequence", "unpack_sequence", "unpad_sequence"]


class PackedSequence_(NamedTuple):
    """The fields of `PackedSequence`."""

    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None
    unsorted_indices: Tensor | None


class PackedSequence(PackedSequence_):
    """Sequences of different lengths as one tensor without padding; made by `pack_padded_sequence`.

    Step t of the N_t sequences longer than t, longest sequence first, is followed by step t + 1.

    Attributes:
        data: (Σ N_t, ...).
        batch_sizes: N_t for each step, int64.
        sorted_indices: the sequences of the batch by decreasing length; None if they were given so.
        unsorted_indices: the inverse permutation.

    >>> import flambeau as torch
    >>> from flambeau.nn.utils.rnn import pack_sequence
    >>> packed = pack_sequence([torch.tensor([1, 2, 3]), torch.tensor([4])])
    >>> packed.data, packed.batch_sizes
    (tensor([1, 4, 2, 3]), tensor([2, 1, 1]))
    """

    def __new__(cls, data: Any, batch_sizes: Tensor | None = None, sorted_indices: Tensor | None = None,
                unsorted_indices: Tensor | None = None) -> Self:
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        if batch_sizes is None:  # PackedSequence((data, batch_sizes))
            if not (isinstance(data, list | tuple) and len(data) == 2):
                raise AssertionError("Expected data to be a list or tuple of length 2")
            data, batch_sizes = data
        elif batch_sizes.device.type != "cpu":
            raise ValueError("batch_sizes should always be on CPU. "
                             "Instances of PackedSequence should never be created manually. "
                             "They should be instantiated by functions like pack_sequence "
                             "and pack_padded_sequences in nn.utils.rnn. "
                             "https://pytorch.org/docs/stable/nn.html#torch.nn.utils.rnn.pack_sequence")
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def pin_memory(self) -> Self:
        """The sequence in page-locked memory."""
        indices = (None if each is None else each.pin_memory() for each in (self.sorted_indices, self.unsorted_indices))
        return type(self)(self.data.pin_memory(), self.batch_sizes, *indices)

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """The sequence with `data.to(...)`; itself if `data` is not converted."""
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self
        indices = (None if each is None else each.to(data.device)
                   for each in (self.sorted_indices, self.unsorted_indices))
        return type(self)(data, self.batch_sizes, *indices)

    def cuda(self, *args: Any, **kwargs: Any) -> Self:
        """The sequence on a CUDA device."""
        probe = fn.tensor((), dtype=self.data.dtype, device=self.data.device).to(*args, **kwargs)
        if not probe.is_cuda:
            kwargs["device"] = "cuda"
        return self.to(*args, **kwargs)

    def cpu(self, *args: Any, **kwargs: Any) -> Self:
        """The sequence on the CPU."""
        probe = fn.tensor((), dtype=self.data.dtype, device=self.data.device).to(*args, **kwargs)
        if probe.device.type != "cpu":
            kwargs["device"] = "cpu"
        return self.to(*args, **kwargs)

    def double(self) -> Self:
        """The sequence in float64."""
        return self.to(dtype=dtypes.float64)

    def float(self) -> Self:
        """The sequence in float32."""
        return self.to(dtype=dtypes.float32)

    def half(self) -> Self:
        """The sequence in float16."""
        return self.to(dtype=dtypes.float16)

    def long(self) -> Self:
        """The sequence in int64."""
        return self.to(dtype=dtypes.int64)

    def int(self) -> Self:
        """The sequence in int32."""
        return self.to(dtype=dtypes.int32)

    def short(self) -> Self:
        """The sequence in int16."""
        return self.to(dtype=dtypes.int16)

    def char(self) -> Self:
        """The sequence in int8."""
        return self.to(dtype=dtypes.int8)

    def byte(self) -> Self:
        """The sequence in uint8."""
        return self.to(dtype=dtypes.uint8)

    @property
    def is_cuda(self) -> bool:
        """Whether `data` is on a CUDA device."""
        return self.data.is_cuda

    def is_pinned(self) -> bool:
        """Whether `data` is in page-locked memory."""
        return self.data.is_pinned()


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """The inverse of a permutation; None for None.

    >>> import flambeau as torch
    >>> torch.nn.utils.rnn.invert_permutation(torch.tensor([2, 0, 1]))
    tensor([1, 2, 0])
    """
    if permutation is None:
        return None
    places = fn.arange(0, permutation.numel(), device=permutation.device)
    return fn.empty_like(permutation).scatter_(0, permutation, places)


def _check_lengths(lengths: Tensor) -> list[int]:
    if lengths.dim() != 1 or lengths.dtype is not dtypes.int64:
        kind = lengths.type().rpartition(".")[2].removesuffix("Tensor")
        raise RuntimeError("'lengths' argument should be a 1D CPU int64 tensor, but got "
                           f"{lengths.dim()}D {lengths.device} {kind} tensor")
    return lengths.tolist()


def _pack_padded_sequence(input: Tensor, lengths: Tensor, batch_first: bool) -> tuple[Tensor, Tensor]:
    """The data and the batch sizes of a padded batch whose lengths do not increase."""
    if input.numel() == 0:
        raise RuntimeError("Cannot pack empty tensors.")
    sizes = _check_lengths(lengths)
    if batch_first:
        input = input.transpose(0, 1)
    batch = input.size(1)
    if len(sizes) != batch:
        raise RuntimeError(f"Expected `len(lengths)` to be equal to batch_size, but got {len(sizes)} "
                           f"(batch_size={batch})")
    if sizes[-1] <= 0:
        raise RuntimeError("Length of all samples has to be greater than 0, "
                           "but found an element in 'lengths' that is <= 0")
    if any(later > size for size, later in pairwise(sizes)):
        raise RuntimeError("`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. "
                           "You can pass `enforce_sorted=False` to pack_padded_sequence and/or pack_sequence "
                           "to sidestep this requirement if you do not need ONNX exportability.")
    steps = fn.arange(sizes[0], device=lengths.device).unsqueeze(1)
    valid = steps < lengths
    batch_sizes = valid.sum(1)
    places = steps * batch + fn.arange(batch, device=lengths.device)
    rows = places[:input.size(0)][valid[:input.size(0)]]
    return fn._packed_rows(input, rows.to(input.device)), batch_sizes


def _pad_packed_sequence(data: Tensor, batch_sizes: Tensor, batch_first: bool, padding_value: float,
                         total_length: int) -> tuple[Tensor, Tensor]:
    """The padded batch of a packed sequence, and the lengths."""
    sizes = _check_lengths(batch_sizes)
    if total_length > 0:
        if total_length < len(sizes):
            raise RuntimeError("Expected total_length to be at least the length of the longest sequence in input, "
                               f"but got total_length={total_length} and max sequence length being {len(sizes)}")
    else:
        total_length = len(sizes)
    padded = fn.full((total_length, sizes[0], *data.shape[1:]), padding_value, dtype=data.dtype, device=data.device)
    start = step = 0
    while step < len(sizes):  # a run of steps with one batch size is copied at once
        size, first = sizes[step], step
        while step < len(sizes) and sizes[step] == size:
            step += 1
        count = (step - first) * size
        block = data.narrow(0, start, count).view(step - first, size, *data.shape[1:])
        padded.narrow(0, first, step - first).narrow(1, 0, size).copy_(block)
        start += count
    lengths = (batch_sizes.unsqueeze(1) > fn.arange(sizes[0], device=batch_sizes.device)).sum(0)
    return (padded.transpose(0, 1) if batch_first else padded), lengths


def pack_padded_sequence(input: Tensor, lengths: Tensor | Sequence[int], batch_first: bool = False,
                         enforce_sorted: bool = True) -> PackedSequence:
    """Pack a padded batch of sequences.

    Args:
        input: (T, N, ...), or (N, T, ...) with `batch_first`.
        lengths: the length of each sequence.
        batch_first: whether the batch is the first dimension.
        enforce_sorted: require decreasing lengths; otherwise the batch is sorted.

    Raises:
        RuntimeError: lengths are not positive, not sorted, or not one per sequence.

    >>> import flambeau as torch
    >>> torch.nn.utils.rnn.pack_padded_sequence(torch.tensor([[1, 2], [3, 0]]), [2, 1], batch_first=True).data
    tensor([1, 3, 2])
    """
    if isinstance(lengths, Tensor):
        sizes = lengths.to(dtype=dtypes.int64)
    else:
        sizes = fn.as_tensor(lengths, dtype=dtypes.int64, device="cpu")
    sorted_indices = None
    if not enforce_sorted:
        sizes, sorted_indices = fn.sort(sizes, descending=True)
        sorted_indices = sorted_indices.to(input.device)
        input = input.index_select(0 if batch_first else 1, sorted_indices)
    data, batch_sizes = _pack_padded_sequence(input, sizes, batch_first)
    return PackedSequence(data, batch_sizes, sorted_indices, None)


def pad_packed_sequence(sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0,
                        total_length: int | None = None) -> tuple[Tensor, Tensor]:
    """The inverse of `pack_padded_sequence`: the padded batch in its original order, and the lengths.

    Args:
        sequence: a packed sequence.
        batch_first: whether the batch becomes the first dimension.
        padding_value: value of the padding.
        total_length: length of the result; None for that of the longest sequence.

    Raises:
        ValueError: `total_length` is less than the longest sequence.

    >>> import flambeau as torch
    >>> from flambeau.nn.utils.rnn import pack_sequence, pad_packed_sequence
    >>> pad_packed_sequence(pack_sequence([torch.tensor([1, 2]), torch.tensor([3])]), batch_first=True)
    (tensor([[1, 2],
            [3, 0]]), tensor([2, 1]))
    """
    longest = sequence.batch_sizes.size(0)
    if total_length is not None:
        if total_length < longest:
            raise ValueError("Expected total_length to be at least the length of the longest sequence in input, but "
                             f"got total_length={total_length} and max sequence length being {longest}")
        longest = total_length
    padded, lengths = _pad_packed_sequence(sequence.data, sequence.batch_sizes, batch_first, padding_value, longest)
    order = sequence.unsorted_indices
    if order is None:
        return padded, lengths
    return padded.index_select(0 if batch_first else 1, order), lengths[order.cpu()]


def pad_sequence(sequences: Tensor | Iterable[Tensor], batch_first: bool = False, padding_value: float = 0.0,
                 padding_side: str = "right") -> Tensor:
    """Stack sequences (Lᵢ, ...), padded to the length of the longest.

    Args:
        sequences: tensors with the same trailing dimensions.
        batch_first: whether the result is (N, T, ...) instead of (T, N, ...).
        padding_value: value of the padding.
        padding_side: "right" or "left".

    Raises:
        RuntimeError: there is no sequence, or they do not match.

    >>> import flambeau as torch
    >>> torch.nn.utils.rnn.pad_sequence([torch.tensor([1, 2]), torch.tensor([3])], batch_first=True)
    tensor([[1, 2],
            [3, 0]])
    """
    if not isinstance(sequences, Iterable):
        raise RuntimeError("pad_sequence: Expected iterable for input sequences, "
                           f"but got arg of type: {type(sequences)}")
    parts = tuple(sequences)
    for i, part in enumerate(parts):
        if not isinstance(part, Tensor):
            raise TypeError(f"expected Tensor as element {i} in argument 0, but got {type(part).__name__}")
    if not parts:
        raise RuntimeError("received an empty list of sequences")
    if padding_side not in ("left", "right"):
        raise RuntimeError(f"Expected padding_side to be one of left or right, but got {padding_side}.")
    first = parts[0]
    if first.dim() == 0:
        raise RuntimeError("ArrayRef: invalid slice, N = 1; size = 0")
    longest = max(part.size(0) for part in parts)
    shape = (len(parts), longest) if batch_first else (longest, len(parts))
    result = fn.full((*shape, *first.shape[1:]), padding_value, dtype=first.dtype, device=first.device)
    for i, part in enumerate(parts):
        length = part.size(0)
        start = 0 if padding_side == "right" else longest - length
        row = result.select(0 if batch_first else 1, i).narrow(0, start, length)
        row.copy_(part)
    return result


def unpad_sequence(padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False) -> list[Tensor]:
    """The inverse of `pad_sequence`: a list of sequences.

    Args:
        padded_sequences: (T, N, ...); it is transposed in place, as in PyTorch. Or (N, T, ...) with `batch_first`.
        lengths: (N,), the length of each sequence.
        batch_first: whether the batch is the first dimension.

    >>> import flambeau as torch
    >>> padded = torch.tensor([[1, 2], [3, 0]])
    >>> torch.nn.utils.rnn.unpad_sequence(padded, torch.tensor([2, 1]), batch_first=True)
    [tensor([1, 2]), tensor([3])]
    """
    if not batch_first:
        padded_sequences.transpose_(0, 1)
    steps = fn.arange(padded_sequences.shape[1], device=lengths.device)
    return [sequence[steps < length] for sequence, length in zip(padded_sequences, lengths, strict=True)]


def pack_sequence(sequences: Sequence[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Pack a list of sequences (Lᵢ, ...).

    Args:
        sequences: tensors with the same trailing dimensions.
        enforce_sorted: require decreasing lengths; otherwise the batch is sorted.

    Raises:
        RuntimeError: lengths are zero or not sorted.

    >>> import flambeau as torch
    >>> torch.nn.utils.rnn.pack_sequence([torch.tensor([1, 2]), torch.tensor([3])]).data
    tensor([1, 3, 2])
    """
    lengths = fn.as_tensor([each.size(0) for each in sequences])
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The inverse of `pack_sequence`: a list of sequences in their original order.

    >>> import flambeau as torch
    >>> from flambeau.nn.utils.rnn import pack_sequence, unpack_sequence
    >>> unpack_sequence(pack_sequence([torch.tensor([1, 2]), torch.tensor([3])]))
    [tensor([1, 2]), tensor([3])]
    """
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
