"""`torch.distributed._shard`: tensors whose parts are in several processes, before DTensor."""

from __future__ import annotations

from .api import _shard_tensor, load_with_process_group, shard_parameter

__all__ = ["_shard_tensor", "load_with_process_group", "shard_parameter"]
