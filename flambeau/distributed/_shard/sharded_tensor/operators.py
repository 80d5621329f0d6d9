"""Functions on sharded tensors: their attributes, copies and casts, which each process computes on its parts."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import flambeau as torch

from ... import distributed_c10d as c10d
from ..sharding_spec.api import registered
from .api import _SHARDED_OPS, ShardedTensor


def _operator(*functions: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        for each in functions:
            registered(function, each, _SHARDED_OPS)
        return function

    return register


def _as_plain(function: Any) -> None:
    """Let a function be the one of plain tensors: it reads only what the wrapper knows."""
    def plain(types: Any, args: Any, kwargs: Any, group: Any) -> Any:
        with torch._C.DisableTorchFunctionSubclass():
            return function(*args, **(kwargs or {}))

    _SHARDED_OPS[function] = plain


_TENSOR: Any = torch.Tensor
for _name in ("shape", "dtype", "layout", "ndim", "requires_grad", "grad", "grad_fn", "is_leaf"):
    _as_plain(getattr(_TENSOR, _name).__get__)
for _name in ("size", "dim", "is_contiguous", "contiguous", "is_floating_point"):
    _as_plain(getattr(_TENSOR, _name))


@_operator(_TENSOR.device.__get__)
def _device(types: Any, args: Any, kwargs: Any, group: Any) -> Any:
    parts = args[0]._local_shards
    return parts[0].tensor.device if parts else torch.device("cpu")


@_operator(_TENSOR.is_meta.__get__)
def _is_meta(types: Any, args: Any, kwargs: Any, group: Any) -> Any:
    return args[0].local_tensor().is_meta


@_operator(_TENSOR.clone, torch.clone)
def _clone(types: Any, args: Any, kwargs: Any, group: Any) -> Any:
    if (kwargs or {}).get("memory_format") not in (None, torch.preserve_format):
        raise RuntimeError("Only support torch.preserve_format for ShardedTensor!")
    return args[0]._with_parts(lambda x: x.clone())


@_operator(_TENSOR.detach, torch.detach)
def _detach(types: Any, args: Any, kwargs: Any, group: Any) -> Any:
    return args[0]._with_parts(lambda x: x.detach(), requires_grad=False)


@_operator(_TENSOR.__deepcopy__)
def _deepcopy(types: Any, args: Any, kwargs: Any, group: Any) -> Any:
    return args[0]._with_parts(copy.deepcopy)


@_operator(_TENSOR.type_as)
def _type_as(types: Any, args: Any, kwargs: Any, group: Any) -> Any:
    if len(args) < 2 or not isinstance(args[1], torch.Tensor):
        raise ValueError("Needs to give a Tensor or ShardedTensor to cast type as!")
    dtype = args[1].dtype
    return args[0] if args[0].dtype == dtype else args[0]._with_parts(lambda x: x.to(dtype), dtype=dtype)


@_operator(_TENSOR.copy_)
def _copy_(types: Any, args: Any, kwargs: Any, group: Any) -> Any:
    target, source = args[:2]
    pairs = [*zip(target.local_shards(), source.local_shards(), strict=False)]
    if any(mine.metadata != other.metadata for mine, other in pairs):
        raise RuntimeError("inplace copy can only happen between two ShardedTensor with same metadata!")
    for mine, other in pairs:
        mine.tensor.copy_(other.tensor)
    return target


@_operator(_TENSOR.requires_grad_)
def _requires_grad_(types: Any, args: Any, kwargs: Any, group: Any) -> Any:
    tensor = args[0]
    wanted = args[1] if len(args) > 1 else (kwargs or {}).get("requires_grad", True)
    if wanted != tensor.requires_grad:
        for shard in tensor.local_shards():
            shard.tensor.requires_grad_(wanted)
        with torch._C.DisableTorchFunctionSubclass():
            tensor.requires_grad_(wanted)
        tensor._metadata.tensor_properties.requires_grad = wanted
    return tensor


def _compared(compare: Callable[[Any, Any], bool], args: Any, group: Any) -> bool:
    """Whether the parts of two tensors agree in all processes."""
    if len(args) < 2 or not all(isinstance(x, ShardedTensor) for x in args[:2]):
        raise TypeError(f"Expecting two ShardedTensors, found: {[type(x) for x in args[:2]]}")
    a, b = args[:2]
    same = a.metadata() == b.metadata() and all(
        compare(x.tensor, y.tensor) for x, y in zip(a.local_shards(), b.local_shards(), strict=True))
    found: list[Any] = [None] * c10d.get_world_size(group)
    c10d.all_gather_object(found, same, group=group)
    return all(found)


@_operator(torch.equal)
def _equal(types: Any, args: Any, kwargs: Any, group: Any) -> Any:
    return _compared(torch.equal, args, group)


@_operator(torch.allclose)
def _allclose(types: Any, args: Any, kwargs: Any, group: Any) -> Any:
    return _compared(lambda x, y: torch.allclose(x, y, **(kwargs or {})), args, group)


@_operator(torch._has_compatible_shallow_copy_type)
def _shares_memory(types: Any, args: Any, kwargs: Any, group: Any) -> Any:
    return False


def _initializer(function: Any) -> None:
    """Let a function of `nn.init` fill the parts."""
    def fill(types: Any, args: Any, kwargs: Any, group: Any) -> Any:
        options = dict(kwargs or {})
        tensor = options.pop("tensor") if "tensor" in options else args[0]
        for shard in tensor.local_shards():
            function(shard.tensor, *args[1:], **options)
        return tensor

    _SHARDED_OPS[function] = fill


for _name in ("uniform_", "normal_", "kaiming_uniform_", "constant_"):
    _initializer(getattr(torch.nn.init, _name))

__all__: list[str] = []
