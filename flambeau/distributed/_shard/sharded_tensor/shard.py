"""A part of a tensor that is in this process."""

from __future__ import annotations

from typing import Any

from ...groups.remote_device import _remote_device
from ..metadata import ShardMetadata


class Shard:
    """A part of a tensor: its elements, and which part it is.

    Raises:
        ValueError: the tensor has another shape or device than the metadata say.

    >>> import flambeau as torch
    >>> Shard.from_tensor_and_offsets(torch.ones(2, 3), [2, 0], 1).metadata
    ShardMetadata(shard_offsets=[2, 0], shard_sizes=[2, 3], placement=rank:1/cpu)
    """

    __slots__ = ("metadata", "tensor")

    def __init__(self, tensor: Any, metadata: ShardMetadata) -> None:
        self.tensor, self.metadata = tensor, metadata
        if list(tensor.size()) != metadata.shard_sizes:
            raise ValueError("Shard tensor size does not match with metadata.shard_lengths! Found shard tensor size: "
                             f"{list(tensor.size())}, metadata.shard_lengths: {metadata.shard_sizes}, ")
        placement = metadata.placement
        if placement is not None and placement.device() != tensor.device:
            raise ValueError("Local shard tensor device does not match with local Shard's placement! Found local shard "
                             f"tensor device: {tensor.device}, local shard metadata placement device: "
                             f"{placement.device()}")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Shard):
            return NotImplemented
        return bool((self.tensor, self.metadata) == (other.tensor, other.metadata))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Shard(tensor={self.tensor!r}, metadata={self.metadata!r})"

    @classmethod
    def from_tensor_and_offsets(cls, tensor: Any, shard_offsets: list[int], rank: int) -> Shard:
        """A part of a process, on the tensor's device.

        Args:
            tensor: its elements.
            shard_offsets: the position of its first element.
            rank: the process.
        """
        placement = _remote_device(f"rank:{rank}/{tensor.device}")
        return cls(tensor, ShardMetadata(shard_offsets, list(tensor.size()), placement))


__all__ = ["Shard"]
