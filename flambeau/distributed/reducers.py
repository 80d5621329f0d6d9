"""The names of `torch.distributed` of which `DistributedDataParallel` is made."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any

from ..c10d.buckets import GradBucket, broadcast_coalesced, compute_bucket_assignment_by_size
from ..c10d.reducer import FIRST_BUCKET_BYTES, Reducer

__all__ = ["BuiltinCommHookType", "GradBucket", "Reducer"]

_DEFAULT_FIRST_BUCKET_BYTES = FIRST_BUCKET_BYTES
_compute_bucket_assignment_by_size = compute_bucket_assignment_by_size


class BuiltinCommHookType(enum.IntEnum):
    """Communication hooks of the reducer itself."""

    ALLREDUCE = 1
    FP16_COMPRESS = 2


def _broadcast_coalesced(process_group: Any, tensors: Sequence[Any], buffer_size: int, src: int = 0) -> None:
    broadcast_coalesced(process_group, tensors, buffer_size, src)


def _register_comm_hook(reducer: Reducer, state: Any, comm_hook: Any) -> None:
    reducer._register_comm_hook(state, comm_hook)


def _register_builtin_comm_hook(reducer: Reducer, comm_hook_type: BuiltinCommHookType) -> None:
    from .algorithms.ddp_comm_hooks import default_hooks

    hook = default_hooks.fp16_compress_hook if comm_hook_type == BuiltinCommHookType.FP16_COMPRESS else (
        default_hooks.allreduce_hook)
    reducer._register_comm_hook(reducer.group, hook)


def _verify_params_across_processes(process_group: Any, params: Sequence[Any], logger: Any = None) -> None:
    from .object_collectives import all_gather_object

    shapes: list[Any] = [None] * process_group.size()
    all_gather_object(shapes, [tuple(each.shape) for each in params], process_group)
    for rank, theirs in enumerate(shapes):
        if theirs != shapes[process_group.rank()]:
            raise RuntimeError(f"the parameters of rank {rank} differ in shape from those of rank "
                               f"{process_group.rank()}")
