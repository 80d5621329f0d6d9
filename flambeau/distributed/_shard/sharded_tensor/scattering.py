"""Chunks of one process's tensor, sent to all."""

from __future__ import annotations

from typing import Any

import flambeau as torch

from ... import distributed_c10d as c10d
from ..metadata import ShardMetadata
from ..sharding_spec._internals import get_split_size
from ..sharding_spec.api import ChunkShardingSpec, rank_and_device
from ..tensor_metadata import TensorProperties
from .api import ShardedTensor
from .shard import Shard


def part_of(tensor: Any, metadata: ShardMetadata) -> Any:
    """The elements of a part, without a copy."""
    for dim, (offset, size) in enumerate(zip(metadata.shard_offsets, metadata.shard_sizes, strict=True)):
        tensor = tensor.narrow(dim, min(offset, tensor.size(dim)), size)
    return tensor


def scattered(spec: ChunkShardingSpec, tensor: Any, src_rank: int, group: Any) -> ShardedTensor:
    """The tensor of the process `src_rank` of a group in chunks, each in the process of its placement.

    Chunks are sent in one size, that of the largest one.
    """
    metadata = spec.build_metadata(tensor.size(), TensorProperties.create_from_tensor(tensor))
    sizes = [*tensor.size()]
    sizes[spec.dim] = get_split_size(tensor.size(spec.dim), len(spec.placements))
    sends, mine, parts = c10d.get_rank(group) == src_rank, None, {}
    for each in metadata.shards_metadata:
        rank, device = rank_and_device(group, each.placement)
        if sends:
            padded = torch.zeros(sizes, dtype=tensor.dtype, device=tensor.device)
            with torch.no_grad():
                part_of(padded, ShardMetadata([0] * len(sizes), each.shard_sizes)).copy_(part_of(tensor, each))
            parts[c10d.get_group_rank(group, rank) if group is not None else rank] = padded
        if rank == c10d.get_rank():
            mine, received = each, torch.empty(sizes, dtype=tensor.dtype, device=device)
    if mine is None:
        raise AssertionError(f"no chunk of {spec} is in the process {c10d.get_rank()}")
    source = src_rank if group is None or group is c10d._get_default_group() else c10d.get_global_rank(group, src_rank)
    c10d.scatter(received, [parts[rank] for rank in sorted(parts)] if sends else None, src=source, group=group)
    local = part_of(received, ShardMetadata([0] * len(sizes), mine.shard_sizes)).contiguous()
    local.requires_grad_(tensor.requires_grad)
    return ShardedTensor._init_from_local_shards_and_global_metadata([Shard(local, mine)], metadata,
                                                                     process_group=group, sharding_spec=spec)


__all__ = ["part_of", "scattered"]
