"""`torch.distributed.fsdp._fully_shard`: fully sharded data parallelism."""

from __future__ import annotations

from ._fsdp_api import CPUOffloadPolicy, DataParallelMeshDims, MixedPrecisionPolicy, OffloadPolicy
from ._fsdp_state import FSDPState
from ._fully_shard import FSDPModule, UnshardHandle, fully_shard, register_fsdp_forward_method, share_comm_ctx

__all__ = ["CPUOffloadPolicy", "DataParallelMeshDims", "FSDPModule", "FSDPState", "MixedPrecisionPolicy",
           "OffloadPolicy", "UnshardHandle", "fully_shard", "register_fsdp_forward_method", "share_comm_ctx"]
