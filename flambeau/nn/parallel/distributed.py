"""`DistributedDataParallel`, which needs a process group."""

from __future__ import annotations

from typing import Any

from ..modules.module import Module

__all__ = ["DistributedDataParallel"]


class DistributedDataParallel(Module):
    """Data parallelism over processes.

    Args:
        module: the module whose gradients are averaged over processes.
        device_ids: devices of the module.
        output_device: device of the outputs.
        dim: the batch dimension.
        broadcast_buffers: whether buffers are copied from the first process before each forward.
        init_sync: whether parameters are copied from the first process at the start.
        process_group: the processes.
        bucket_cap_mb: MiB of gradients that are averaged at once.
        find_unused_parameters: whether parameters may get no gradient.
        check_reduction: deprecated.
        gradient_as_bucket_view: whether gradients share memory with buckets.
        static_graph: whether the graph is the same in each iteration.
        delay_all_reduce_named_params: parameters whose gradients are averaged at the end.
        param_to_hook_all_reduce: the parameter whose hook averages them.
        mixed_precision: dtypes of parameters and averages.
        device_mesh: the processes, as a mesh.
        skip_all_reduce_unused_params: whether gradients that no process has are skipped.
        bucket_cap_mb_list: MiB of each bucket.
        batched_grad_copy: whether gradients are copied together.
        forward_sync_buffers: whether buffers are copied before each forward.

    Raises:
        ValueError: there is no process group.
    """

    def __init__(self, module: Module, device_ids: Any = None, output_device: Any = None, dim: int = 0,
                 broadcast_buffers: bool | None = None, init_sync: bool = True, process_group: Any = None,
                 bucket_cap_mb: float | None = None, find_unused_parameters: bool = False,
                 check_reduction: bool = False, gradient_as_bucket_view: bool = False, static_graph: bool = False,
                 delay_all_reduce_named_params: Any = None, param_to_hook_all_reduce: Any = None,
                 mixed_precision: Any = None, device_mesh: Any = None, skip_all_reduce_unused_params: bool = False,
                 bucket_cap_mb_list: list[int] | None = None, batched_grad_copy: bool = False,
                 forward_sync_buffers: bool | None = None) -> None:
        super().__init__()
        raise ValueError("Default process group has not been initialized, please make sure to call init_process_group.")
