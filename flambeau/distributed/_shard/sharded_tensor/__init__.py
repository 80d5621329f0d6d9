"""`torch.distributed._shard.sharded_tensor`: sharded tensors, filled or of parts, and in state dicts."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import flambeau as torch

from ..metadata import ShardMetadata
from ..sharding_spec import ShardingSpec
from ..sharding_spec.api import registered
from .api import _CUSTOM_SHARDED_OPS, _SHARDED_OPS, ShardedTensor, ShardedTensorBase
from .metadata import ShardedTensorMetadata, TensorProperties
from .shard import Shard


def _sharded_op_impl(func: Any) -> Callable[..., Any]:
    return functools.partial(registered, op=func, op_table=_SHARDED_OPS)


def custom_sharded_op_impl(func: Any) -> Callable[..., Any]:
    """A decorator of what computes a function on sharded tensors, with (types, args, kwargs, process_group).

    Args:
        func: the function, `torch.nn.functional.linear`.
    """
    return functools.partial(registered, op=func, op_table=_CUSTOM_SHARDED_OPS)


from . import operators as operators  # noqa: E402  (it registers functions)


def empty(sharding_spec: ShardingSpec, *size: Any, dtype: Any = None, layout: Any = torch.strided,
          requires_grad: bool = False, pin_memory: bool = False, memory_format: Any = torch.contiguous_format,
          process_group: Any = None, init_rrefs: bool = False) -> ShardedTensor:
    """A sharded tensor with any elements.

    Args:
        sharding_spec: how it is divided.
        size: its shape.
        dtype, layout, requires_grad, pin_memory, memory_format, process_group, init_rrefs: as for `ShardedTensor`.
    """
    return ShardedTensor(sharding_spec, *size, dtype=dtype, layout=layout, requires_grad=requires_grad,
                         pin_memory=pin_memory, memory_format=memory_format, process_group=process_group,
                         init_rrefs=init_rrefs)


def _filled(fill: Callable[[Any], Any], sharding_spec: ShardingSpec, size: Any,
            options: dict[str, Any]) -> ShardedTensor:
    result = empty(sharding_spec, *size, **options)
    with torch.no_grad():
        for shard in result.local_shards():
            fill(shard.tensor)
    return result


def ones(sharding_spec: ShardingSpec, *size: Any, **options: Any) -> ShardedTensor:
    """A sharded tensor of ones (`empty`)."""
    return _filled(lambda x: x.fill_(1), sharding_spec, size, options)


def zeros(sharding_spec: ShardingSpec, *size: Any, **options: Any) -> ShardedTensor:
    """A sharded tensor of zeros (`empty`)."""
    return _filled(lambda x: x.zero_(), sharding_spec, size, options)


def full(sharding_spec: ShardingSpec, size: Any, fill_value: Any, **options: Any) -> ShardedTensor:
    """A sharded tensor of equal elements (`empty`)."""
    return _filled(lambda x: x.fill_(fill_value), sharding_spec, (size,), options)


def rand(sharding_spec: ShardingSpec, *size: Any, **options: Any) -> ShardedTensor:
    """A sharded tensor of uniform numbers (`empty`), which each process draws."""
    return _filled(lambda x: x.uniform_(0, 1), sharding_spec, size, options)


def randn(sharding_spec: ShardingSpec, *size: Any, **options: Any) -> ShardedTensor:
    """A sharded tensor of normal numbers (`empty`), which each process draws."""
    return _filled(lambda x: x.normal_(0, 1), sharding_spec, size, options)


def init_from_local_shards(local_shards: list[Shard], *global_size: Any, process_group: Any = None,
                           init_rrefs: bool = False) -> ShardedTensor:
    """A tensor of the parts that each process has.

    Args:
        local_shards: this process's parts.
        global_size: the shape of the whole tensor.
        process_group: the processes.
        init_rrefs: refused.

    Raises:
        ValueError: the parts do not fit together.
    """
    return ShardedTensor._init_from_local_shards(local_shards, *global_size, process_group=process_group,
                                                 init_rrefs=init_rrefs)


def state_dict_hook(module: Any, destination: Any, prefix: str, local_metadata: Any) -> None:
    """Add attributes that are sharded tensors to a module's state dict (`Module._register_state_dict_hook`)."""
    for name, submodule in module.named_modules():
        path = prefix + name
        for key, value in vars(submodule).items():
            if isinstance(value, ShardedTensor):
                destination[f"{path}.{key}" if path else key] = value


def pre_load_state_dict_hook(module: Any, state_dict: Any, prefix: str, local_metadata: Any, strict: bool,
                             missing_keys: Any, unexpected_keys: Any, error_msgs: Any) -> None:
    """Set attributes that are sharded tensors from a state dict (`Module._register_load_state_dict_pre_hook`)."""
    for name, submodule in module.named_modules():
        path = prefix + name
        for key in [*vars(submodule)]:
            value = state_dict.get(f"{path}.{key}" if path else key)
            if isinstance(value, ShardedTensor):
                setattr(submodule, key, value)


__all__ = ["Shard", "ShardMetadata", "ShardedTensor", "ShardedTensorBase", "ShardedTensorMetadata", "TensorProperties",
           "custom_sharded_op_impl", "empty", "full", "init_from_local_shards", "ones", "pre_load_state_dict_hook",
           "rand", "randn", "state_dict_hook", "zeros"]
