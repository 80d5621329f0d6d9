"""Nested state dicts as a whole: gathered, copied, moved to the CPU, sent to other processes."""

from __future__ import annotations

from typing import Any

from .._tensor import Tensor, functions
from ..c10d.process_group import ProcessGroup
from ..c10d.world import default_group
from ..engine.grad_mode import no_grad
from .checkpoint._nested_dict import flatten_state_dict as _flatten_state_dict
from .checkpoint._nested_dict import unflatten_state_dict as _unflatten_state_dict
from .checkpoint.states.copies import CompanionMismatch, map_tensors
from .checkpoint.states.copies import copy_tensors as _copy_state_dict
from .checkpoint.states.copies import create_cpu_state_dict as _create_cpu_state_dict
from .checkpoint.states.shards import chunk_of, is_sharded
from .collectives import broadcast
from .groups.queries import get_rank, is_initialized
from .object_collectives import broadcast_object_list

__all__ = ["CompanionMismatch", "_broadcast_state_dict", "_check_state_dict_similarity", "_copy_state_dict",
           "_create_cpu_state_dict", "_distribute_state_dict", "_flatten_state_dict", "_gather_state_dict",
           "_offload_state_dict_to_cpu", "_unflatten_state_dict"]

def _emptied(value: Any) -> Any:
    """What a process gets of a state dict that is for others."""
    return {} if isinstance(value, dict) else None


def _gather_state_dict(state_dict: dict[str, Any], *, pg: ProcessGroup | None = None, device: Any = None,
                       cpu_offload: bool = False, ranks_only: tuple[int, ...] = (),
                       type_check: bool = True) -> dict[str, Any]:
    """A state dict with whole tensors in place of distributed ones; all processes call this.

    Args:
        state_dict: the state dict.
        pg: the processes whose ranks `ranks_only` has.
        device: without effect.
        cpu_offload: whether tensors move to the CPU.
        ranks_only: the ranks that get the result, the others {}; all if empty.
        type_check: whether objects of other classes are an error.
    """
    def whole(tensor: Tensor) -> Tensor:
        if is_sharded(tensor):
            tensor = tensor.full_tensor()
        return tensor.cpu() if cpu_offload else tensor

    gathered = map_tensors(state_dict, whole, type_check)
    return gathered if not ranks_only or get_rank(pg) in ranks_only else _emptied(gathered)


def _offload_state_dict_to_cpu(state_dict: dict[str, Any], *, ranks_only: tuple[int, ...] = (),
                               type_check: bool = True) -> dict[str, Any]:
    """A state dict whose tensors are on the CPU.

    Args:
        state_dict: the state dict.
        ranks_only: the ranks that get the result, the others {}; all if empty.
        type_check: whether objects of other classes are an error.
    """
    moved = map_tensors(state_dict, lambda tensor: tensor.cpu(), type_check)
    return moved if not ranks_only or get_rank() in ranks_only else _emptied(moved)


def _check_state_dict_similarity(state_dict: dict[str, Any], compared_state_dict: dict[str, Any]) -> bool:
    """Whether two state dicts have the same names, and tensors of the same dtypes and shapes."""
    def alike(a: Any, b: Any) -> bool:
        if isinstance(a, Tensor):
            return isinstance(b, Tensor) and a.dtype == b.dtype and a.size() == b.size()
        if isinstance(a, dict):
            return isinstance(b, dict) and a.keys() == b.keys() and all(alike(a[key], b[key]) for key in a)
        if isinstance(a, (list, tuple)):
            return isinstance(b, (list, tuple)) and len(a) == len(b) and all(map(alike, a, b))
        return True

    return alike(state_dict, compared_state_dict)


def _part(whole: Tensor, model: Any) -> Any:
    """A whole tensor as one that is distributed like a model; a copy of its part, in memory of its own."""
    from .tensor import DTensor

    chunk = chunk_of(model)
    local = model.to_local()
    if chunk is not None:
        region = tuple(slice(start, start + size) for start, size in zip(chunk.offsets, chunk.sizes, strict=True))
        local = whole.detach()[region].clone()
    return DTensor.from_local(local, model.device_mesh, model.placements, run_check=False, shape=model.size(),
                              stride=model.stride())


@no_grad()
def _distribute_state_dict(full_state_dict: dict[str, Any], local_state_dict: dict[str, Any], device: Any = None,
                           pg: ProcessGroup | None = None) -> None:
    """Put the values of a full state dict, which each process has, into one with parts, in place.

    Args:
        full_state_dict: names and whole tensors.
        local_state_dict: names and distributed tensors, or others, which take the full ones over.
        device: without effect.
        pg: without effect.
    """
    for key, value in full_state_dict.items():
        if key not in local_state_dict:
            continue
        local = local_state_dict[key]
        if isinstance(value, Tensor) and is_sharded(local) and not is_sharded(value):
            value = _part(value, local)
        elif isinstance(value, Tensor) and not is_sharded(value):
            value = value.detach()
        local_state_dict[key] = value


@no_grad()
def _broadcast_state_dict(full_state_dict: dict[str, Any], local_state_dict: dict[str, Any], device: Any = None,
                          pg: ProcessGroup | None = None, strict: bool = False, cpu_offload: bool = False) -> None:
    """Put the values of rank 0's full state dict into one of each process, in place.

    Args:
        full_state_dict: names and whole tensors, at rank 0.
        local_state_dict: names and tensors, distributed or not.
        device: without effect.
        pg: the processes; all if None.
        strict: whether names that rank 0 lacks leave the state dicts.
        cpu_offload: without effect.
    """
    group = pg or default_group()
    first = get_rank(group) == 0
    described: list[Any] = [{key: (value.dtype, tuple(value.shape)) if isinstance(value, Tensor) else (None, value)
                             for key, value in full_state_dict.items()} if first else None]
    broadcast_object_list(described, group=group, group_src=0)
    for key, (dtype, shape) in described[0].items():
        value = shape  # an object that is no tensor
        if dtype is not None:
            value = (full_state_dict[key].detach().contiguous() if first
                     else functions.empty(shape, dtype=dtype))
            broadcast(value, group=group, group_src=0)
        if dtype is None:
            local_state_dict[key] = value
        elif key in local_state_dict:
            _distribute_state_dict({key: value}, local_state_dict)
    if strict:
        for key in [key for key in local_state_dict if key not in described[0]]:
            local_state_dict.pop(key)


def _ranks_of_full(cpu_offload: bool) -> tuple[int, ...]:
    """The ranks that get a full state dict: rank 0 alone, if it is moved to the CPU."""
    return (0,) if cpu_offload and is_initialized() else ()
