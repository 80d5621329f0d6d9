"""Dividing tensors and parameters among processes."""

from __future__ import annotations

from typing import Any

import flambeau as torch

from ..._tensor.parameter import Parameter
from .. import distributed_c10d as c10d
from .loading_group import _get_current_process_group as _get_current_process_group
from .loading_group import load_with_process_group
from .sharding_spec import ShardingSpec


def _shard_tensor(tensor: Any, sharding_spec: ShardingSpec, src_rank: int = 0, process_group: Any = None) -> Any:
    """The tensor of one process, divided among all; all processes call it.

    Args:
        tensor: a tensor of the same shape and dtype in each process.
        sharding_spec: how it is divided, a `ChunkShardingSpec`.
        src_rank: the process whose elements count.
        process_group: the processes.

    Raises:
        ValueError: the tensor is not contiguous, or processes have other arguments.
    """
    if not tensor.is_contiguous():
        raise ValueError("input tensor is not a contiguous Tensor")
    group = c10d._get_default_group() if process_group is None else process_group
    rank = c10d.get_rank(group)
    gathered: list[Any] = [None] * c10d.get_world_size(group)
    c10d.all_gather_object(gathered, (src_rank, sharding_spec), group=group)
    for other, (source, spec) in enumerate(gathered):
        for name, mine, theirs in (("src_rank", src_rank, source), ("sharding_spec", sharding_spec, spec)):
            if mine != theirs:
                raise ValueError(f"{name}={mine} on rank: {rank} does not match with {name}={theirs} on rank: {other}")
    return sharding_spec.shard(tensor, src_rank=src_rank, process_group=group)


def shard_parameter(module: Any, param_name: str, sharding_spec: ShardingSpec, src_rank: int = 0,
                    process_group: Any = None) -> None:
    """Replace a module's parameter by a sharded one.

    Args:
        module: the module.
        param_name: the parameter's name.
        sharding_spec, src_rank, process_group: as for `_shard_tensor`.

    Raises:
        AttributeError: the module has no such attribute.
        ValueError: it is no contiguous tensor.
    """
    if not hasattr(module, param_name):
        raise AttributeError(f"{module._get_name()} has no attribute `{param_name}`")
    tensor = getattr(module, param_name)
    if not isinstance(tensor, torch.Tensor):
        raise ValueError(f"Expected {type(module).__name__}.{param_name} to be a Tensor, but found "
                         f"{type(tensor).__name__}")
    if not tensor.is_contiguous():
        raise ValueError(f"param: {param_name} is not a contiguous Tensor")
    sharded = _shard_tensor(tensor, sharding_spec, src_rank, process_group)
    module.register_parameter(param_name, Parameter(sharded))


__all__ = ["_shard_tensor", "load_with_process_group", "shard_parameter"]
