"""What `DistributedDataParallel` reports of itself, by PyTorch's names."""

from __future__ import annotations

import os
from typing import Any

from ...dtypes import C_NAMES
from ..modules.batchnorm import SyncBatchNorm

_VARIABLES = ("CUDA_VISIBLE_DEVICES", "MASTER_ADDR", "MASTER_PORT", "TORCH_DISTRIBUTED_DEBUG")
_GLOO_VARIABLES = ("GLOO_DEVICE_TRANSPORT", "GLOO_SOCKET_IFNAME")


def logging_data(ddp: Any) -> dict[str, Any]:
    """The parts of a `DistributedDataParallel`, its options, its environment, and the last sample of its passes."""
    reducer, group = ddp.reducer, ddp.process_group
    dtypes = dict.fromkeys(p.dtype.name for p in reducer.parameters)
    gloo = group.name() == "gloo"
    data = {"backend_name": group.name(), "bucket_sizes": ddp._bucket_sizes, "device_ids": "",
            "dtypes": ", ".join(C_NAMES.get(name, name) for name in dtypes),
            "module_name": type(ddp.module).__name__,
            **{name.lower(): os.environ.get(name, "N/A") for name in (*_VARIABLES, *(_GLOO_VARIABLES if gloo else ()))},
            "broadcast_buffers": int(ddp.forward_sync_buffers), "bucket_cap_bytes": ddp.bucket_bytes_cap,
            "find_unused_parameters": int(ddp.find_unused_parameters),
            "gradient_as_bucket_view": int(ddp.gradient_as_bucket_view),
            "has_sync_bn": int(any(isinstance(each, SyncBatchNorm) for each in ddp.module.modules())),
            "is_multi_device_module": 0, "iteration": 0, "num_parameter_tensors": len(reducer.parameters),
            "output_device": -1, "rank": group.rank(),
            "total_parameter_size_bytes": sum(p.nbytes for p in reducer.parameters), "world_size": group.size()}
    if gloo:
        data["gloo_num_threads"] = 2
    if ddp.static_graph:
        data["static_graph"] = 1
    if ddp._error:
        data.update(has_error=1, error=ddp._error)
    return {**data, **reducer.statistics.sampled}


__all__ = ["logging_data"]
