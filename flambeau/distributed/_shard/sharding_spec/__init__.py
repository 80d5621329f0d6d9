"""`torch.distributed._shard.sharding_spec`: how tensors are divided."""

from __future__ import annotations

from ..metadata import ShardMetadata
from .api import (
    ChunkShardingSpec,
    DevicePlacementSpec,
    EnumerableShardingSpec,
    PlacementSpec,
    ShardingSpec,
    _infer_sharding_spec_from_shards_metadata,
    custom_sharding_spec_op,
)

__all__ = ["ChunkShardingSpec", "DevicePlacementSpec", "EnumerableShardingSpec", "PlacementSpec", "ShardMetadata",
           "ShardingSpec", "_infer_sharding_spec_from_shards_metadata", "custom_sharding_spec_op"]
