"""`torch.distributed._shard.metadata`: which part of a tensor is where."""

from __future__ import annotations

from typing import Any

from ..groups.remote_device import _remote_device


class ShardMetadata:
    """A part of a tensor, and where it is.

    Attributes:
        shard_offsets: the position of its first element in the tensor.
        shard_sizes: its shape.
        placement: the process and the device; a string such as "rank:0/cpu" becomes one.

    Raises:
        ValueError: offsets and sizes have other lengths, or are negative.

    >>> ShardMetadata([2, 0], [2, 4], "rank:1/cpu")
    ShardMetadata(shard_offsets=[2, 0], shard_sizes=[2, 4], placement=rank:1/cpu)
    """

    __slots__ = ("placement", "shard_offsets", "shard_sizes")

    def __init__(self, shard_offsets: list[int], shard_sizes: list[int],
                 placement: str | _remote_device | None = None) -> None:
        self.shard_offsets, self.shard_sizes = shard_offsets, shard_sizes
        self.placement = _remote_device(placement) if isinstance(placement, str) else placement
        if len(shard_offsets) != len(shard_sizes):
            raise ValueError("shard_offsets and shard_sizes should have the same number of elements, found "
                             f"{len(shard_offsets)} and {shard_sizes} respectively")
        for offset, size in zip(shard_offsets, shard_sizes, strict=True):
            if offset < 0:
                raise ValueError("shard_offsets should be >=0")
            if size < 0:
                raise ValueError("shard_sizes should be >= 0")

    def _key(self) -> tuple[Any, ...]:
        return tuple(self.shard_offsets), tuple(self.shard_sizes), self.placement

    def __eq__(self, other: object) -> bool:
        return self._key() == other._key() if isinstance(other, ShardMetadata) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return (f"ShardMetadata(shard_offsets={self.shard_offsets!r}, shard_sizes={self.shard_sizes!r}, "
                f"placement={self.placement!r})")


__all__ = ["ShardMetadata"]
