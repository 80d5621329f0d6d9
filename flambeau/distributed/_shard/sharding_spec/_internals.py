"""Checks of how a tensor is divided."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, pairwise
from math import prod
from typing import Any

from ..metadata import ShardMetadata


def _check_shard_metadata_pair_overlap(shard1: ShardMetadata, shard2: ShardMetadata) -> bool:
    """Whether two parts have elements in common, or are at one place."""
    return all(a < b + length_b and b < a + length_a for a, length_a, b, length_b in zip(
        shard1.shard_offsets, shard1.shard_sizes, shard2.shard_offsets, shard2.shard_sizes, strict=True))


def validate_non_overlapping_shards_metadata(shards: Sequence[ShardMetadata]) -> None:
    """Check that no element is in two parts.

    Raises:
        ValueError: one is.

    >>> validate_non_overlapping_shards_metadata([ShardMetadata([0], [2]), ShardMetadata([1], [2])])
    Traceback (most recent call last):
    ValueError: Shards ShardMetadata(shard_offsets=[0], shard_sizes=[2], placement=None) and \
ShardMetadata(shard_offsets=[1], shard_sizes=[2], placement=None) overlap
    """
    if len(shards) < 2:
        return
    dims = [dim for dim in range(len(shards[0].shard_offsets))
            if len({(each.shard_offsets[dim], each.shard_sizes[dim]) for each in shards}) > 1]
    pair: tuple[ShardMetadata, ShardMetadata] | None = None
    if not dims:
        if any(any(each.shard_offsets) or prod(each.shard_sizes) for each in shards):
            pair = shards[0], shards[1]
    elif len(dims) == 1:
        dim = dims[0]
        lines = sorted(shards, key=lambda each: (each.shard_offsets[dim],
                                                 each.shard_offsets[dim] + each.shard_sizes[dim]))
        pair = next(((a, b) for a, b in pairwise(lines)
                     if a.shard_offsets[dim] + a.shard_sizes[dim] > b.shard_offsets[dim]), None)
    else:
        pair = next(((a, b) for a, b in combinations(shards, 2) if _check_shard_metadata_pair_overlap(a, b)), None)
    if pair is not None:
        raise ValueError(f"Shards {pair[0]} and {pair[1]} overlap")


def check_tensor(shards_metadata: Sequence[ShardMetadata], tensor_dims: Sequence[int]) -> None:
    """Check that parts which do not overlap are all of a tensor.

    Raises:
        ValueError: they have other dimensions, reach out of it or leave gaps.

    >>> check_tensor([ShardMetadata([0], [2]), ShardMetadata([2], [1])], [3])
    """
    rank = len(shards_metadata[0].shard_offsets)
    if len(tensor_dims) != rank:
        raise ValueError(f"Rank of tensor is {len(tensor_dims)}, but shards rank is {rank}")
    for shard in shards_metadata:
        for offset, size, length in zip(shard.shard_offsets, shard.shard_sizes, tensor_dims, strict=True):
            if offset + size > length:
                raise ValueError(f"Shard offset {offset} and length {size} exceeds tensor dim: {length} for shard "
                                 f"{shard}")
    total, volume = sum(prod(shard.shard_sizes) for shard in shards_metadata), prod(tensor_dims)
    if total != volume:
        raise ValueError(f"Total volume of shards: {total} does not match tensor volume: {volume}, in other words all "
                         "the individual shards do not cover the entire tensor")


def get_split_size(dim_size: int, chunks: int) -> int:
    """The size of the chunks of `torch.chunk`, but for the last ones.

    >>> get_split_size(5, 2)
    3
    """
    return -(-dim_size // chunks)


def get_chunked_dim_size(dim_size: int, split_size: int, idx: int) -> int:
    """The size of one of these chunks.

    >>> [get_chunked_dim_size(5, 3, idx) for idx in range(3)]
    [3, 2, 0]
    """
    return max(min(dim_size, split_size * (idx + 1)) - split_size * idx, 0)


def get_chunk_sharding_params(sharding_dim_size: int, world_size: int, spec: Any, rank: int) -> tuple[int, int]:
    """Where the chunk of a process begins, and its size.

    Args:
        sharding_dim_size: the size of the divided dimension.
        world_size: the number of processes.
        spec: the `ChunkShardingSpec`.
        rank: the process.
    """
    split_size = get_split_size(sharding_dim_size, world_size)
    start, size = 0, 0
    for idx, placement in enumerate(spec.placements):
        size = get_chunked_dim_size(sharding_dim_size, split_size, idx)
        if placement.rank() == rank:
            return start, size
        start += size
    return 0, size


__all__ = ["check_tensor", "get_chunk_sharding_params", "get_chunked_dim_size", "get_split_size",
           "validate_non_overlapping_shards_metadata"]
