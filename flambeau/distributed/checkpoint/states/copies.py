"""Copies of nested state dicts."""

from __future__ import annotations

import copy
import io
from collections.abc import Callable
from typing import Any

from ...._tensor import Tensor, functions
from ....engine.grad_mode import no_grad
from .shards import is_sharded

_PLAIN = (int, float, str, bytes, io.BytesIO, type(None))


class CompanionMismatch(Exception):
    """Two state dicts that should be alike differ in names, lengths, dtypes or shapes."""


def map_tensors(value: Any, function: Callable[[Tensor], Any], type_check: bool = True) -> Any:
    """A nested state dict with a function's results in place of tensors.

    Raises:
        ValueError: an object of another class, if `type_check` (PyTorch's text); otherwise it is copied.
    """
    if isinstance(value, Tensor):
        return function(value)
    if isinstance(value, _PLAIN):
        return value
    if isinstance(value, dict):
        return {key: map_tensors(each, function, type_check) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        mapped = [map_tensors(each, function, type_check) for each in value]
        return tuple(mapped) if isinstance(value, tuple) else mapped
    if type_check:
        raise ValueError(f"Unexpected value type {type(value)}")
    return copy.deepcopy(value)


@no_grad()
def create_cpu_state_dict(state_dict: dict[str, Any], pin_memory: bool = False,
                          share_memory: bool = False) -> dict[str, Any]:
    """A state dict of the same shapes, with memory of its own.

    Args:
        state_dict: the state dict.
        pin_memory: without effect.
        share_memory: whether other processes may map the memory.
    """
    def new(tensor: Tensor) -> Tensor:
        if is_sharded(tensor):
            return copy.deepcopy(tensor.detach())
        made = functions.empty_like(tensor.detach(), device="cpu")
        return made.share_memory_() if share_memory else made

    return map_tensors(state_dict, new, type_check=False)


@no_grad()
def copy_tensors(state_dict: Any, target: Any, non_blocking: bool = False, type_check: bool = True) -> Any:
    """Copy the tensors of a state dict to those of another; the other, with what else the first has.

    Args:
        state_dict: the first.
        target: the other.
        non_blocking: without effect.
        type_check: whether objects of other classes are an error.

    Raises:
        CompanionMismatch: they differ in names or lengths.
    """
    if isinstance(state_dict, Tensor):
        if is_sharded(state_dict):
            target.to_local().copy_(state_dict.to_local())
        else:
            target.copy_(state_dict)
        return target
    if isinstance(state_dict, dict):
        if not isinstance(target, dict) or target.keys() != state_dict.keys():
            other = set(target) if isinstance(target, dict) else type(target).__name__
            raise CompanionMismatch(f"the state dicts differ in names: {set(state_dict)} and {other}")
        return {key: copy_tensors(each, target[key], non_blocking, type_check)
                for key, each in state_dict.items()}
    if isinstance(state_dict, (list, tuple)):
        if not isinstance(target, (list, tuple)) or len(target) != len(state_dict):
            raise CompanionMismatch(f"a list of {len(state_dict)} has no companion of the same length")
        copied = [copy_tensors(each, other, non_blocking, type_check)
                  for each, other in zip(state_dict, target, strict=True)]
        return tuple(copied) if isinstance(state_dict, tuple) else copied
    return map_tensors(state_dict, lambda tensor: tensor, type_check)


__all__ = ["CompanionMismatch", "copy_tensors", "create_cpu_state_dict", "map_tensors"]
