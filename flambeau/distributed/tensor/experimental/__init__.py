"""`torch.distributed.tensor.experimental`: functions on parts, rules that programs register, and
plain tensors among distributed ones."""

from __future__ import annotations

from .._dispatch import implicit_replication
from .._registered import register_sharding
from ._attention import context_parallel
from ._local_map import local_map

__all__ = ["context_parallel", "implicit_replication", "local_map", "register_sharding"]
