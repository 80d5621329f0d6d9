"""`torch.distributed._shard.sharding_spec.chunk_sharding_spec`: chunks along a dimension."""

from __future__ import annotations

from .api import ChunkShardingSpec

__all__ = ["ChunkShardingSpec"]
