"""`torch.distributed._shard.sharded_tensor.metadata`: what is known of a sharded tensor."""

from __future__ import annotations

from ..tensor_metadata import MEM_FORMAT_ENCODING, ShardedTensorMetadata, TensorProperties

__all__ = ["MEM_FORMAT_ENCODING", "ShardedTensorMetadata", "TensorProperties"]
