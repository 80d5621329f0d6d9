"""How a tensor is divided into parts: chunks along a dimension, or any parts."""

from __future__ import annotations

import functools
import importlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ... import distributed_c10d as c10d
from ...groups.remote_device import _remote_device
from ..metadata import ShardMetadata
from ..tensor_metadata import ShardedTensorMetadata, TensorProperties
from ._internals import check_tensor, get_chunked_dim_size, get_split_size, validate_non_overlapping_shards_metadata


class PlacementSpec(ABC):  # noqa: B024  (a class that PyTorch's programs derive from)
    """Where something is."""


@dataclass
class DevicePlacementSpec(PlacementSpec):
    """Something on one device of one process."""

    device: Any

    def __post_init__(self) -> None:
        if not isinstance(self.device, _remote_device):
            self.device = _remote_device(self.device)


class ShardingSpec(ABC):
    """How a tensor is divided."""

    @abstractmethod
    def build_metadata(self, tensor_sizes: Any, tensor_properties: TensorProperties) -> ShardedTensorMetadata:
        """The parts of a tensor of these sizes."""

    @abstractmethod
    def shard(self, tensor: Any, src_rank: int = 0, process_group: Any = None) -> Any:
        """The tensor of the process `src_rank`, divided among all."""


#: class of specifications -> function -> what computes it on tensors that are divided so
_CUSTOM_SHARDING_SPEC_OPS: dict[str, dict[Callable[..., Any], Callable[..., Any]]] = {}


def _has_custom_op(sharding_spec: ShardingSpec, op: Callable[..., Any]) -> bool:
    return op in _CUSTOM_SHARDING_SPEC_OPS.get(type(sharding_spec).__qualname__, {})


def _dispatch_custom_op(sharding_spec: ShardingSpec, op: Callable[..., Any], types: Any, args: Any, kwargs: Any,
                        process_group: Any) -> Any:
    if not _has_custom_op(sharding_spec, op):
        raise RuntimeError(f"Custom op: {op} not registered for {type(sharding_spec).__qualname__}")
    return _CUSTOM_SHARDING_SPEC_OPS[type(sharding_spec).__qualname__][op](types, args, kwargs, process_group)


def registered(wrapped_func: Callable[..., Any], op: Callable[..., Any],
               op_table: dict[Any, Any]) -> Callable[..., Any]:
    """Store what computes a function in a table."""
    @functools.wraps(wrapped_func)
    def wrapper(types: Any, args: Any, kwargs: Any, process_group: Any) -> Any:
        return wrapped_func(types, args, kwargs, process_group)

    op_table[op] = wrapper
    return wrapper


def custom_sharding_spec_op(sharding_spec_class: type, func: Callable[..., Any]) -> Callable[..., Any]:
    """A decorator of what computes a function on tensors that are divided so.

    Args:
        sharding_spec_class: the class of specifications.
        func: the function, `torch.bmm`.
    """
    table = _CUSTOM_SHARDING_SPEC_OPS.setdefault(sharding_spec_class.__qualname__, {})
    return functools.partial(registered, op=func, op_table=table)


@dataclass
class EnumerableShardingSpec(ShardingSpec):
    """Any parts that do not overlap.

    Raises:
        ValueError: there is none, they overlap, or have other numbers of dimensions.
    """

    shards: list[ShardMetadata]

    def __post_init__(self) -> None:
        if not self.shards:
            raise ValueError(f"Empty shard list provided: {self.shards}")
        first = len(self.shards[0].shard_offsets)
        for shard in self.shards:
            if len(shard.shard_offsets) != first:
                raise ValueError(f"Found inconsistent ranks for shards: {first} and {len(shard.shard_offsets)}")
        validate_non_overlapping_shards_metadata(self.shards)

    def build_metadata(self, tensor_sizes: Any, tensor_properties: TensorProperties) -> ShardedTensorMetadata:
        """The parts, which must be all of the tensor."""
        check_tensor(self.shards, tensor_sizes)
        return ShardedTensorMetadata(self.shards, tensor_sizes, tensor_properties)

    def shard(self, tensor: Any, src_rank: int = 0, process_group: Any = None) -> Any:
        """Not supported, as in PyTorch."""
        raise NotImplementedError("EnumerableShardingSpec.shard not implemented yet!")


@dataclass
class ChunkShardingSpec(ShardingSpec):
    """Chunks along a dimension, as those of `torch.chunk`.

    Attributes:
        dim: the dimension.
        placements: where each chunk is.

    Raises:
        NotImplementedError: the dimension is a name.
        ValueError: it is no integer.

    >>> import flambeau as torch
    >>> spec = ChunkShardingSpec(0, ["rank:0/cpu", "rank:1/cpu"])
    >>> [shard.shard_sizes for shard in spec.build_metadata(torch.Size([5, 2]), None).shards_metadata]
    [[3, 2], [2, 2]]
    """

    dim: Any
    placements: list[Any]

    def __post_init__(self) -> None:
        self._verify_dim(self.dim)
        self.placements[:] = [each if isinstance(each, _remote_device) else _remote_device(each)
                              for each in self.placements]

    @staticmethod
    def _verify_dim(dim: Any) -> None:
        if isinstance(dim, str):
            raise NotImplementedError("ChunkShardingSpec does not support named dimension yet!")
        if not isinstance(dim, int):
            raise ValueError(f"Sharding dim needs to be an integer, found: {dim}")

    def build_metadata(self, tensor_sizes: Any, tensor_properties: TensorProperties) -> ShardedTensorMetadata:
        """The chunks.

        Raises:
            ValueError: there is no such dimension.
        """
        self._verify_dim(self.dim)
        if not -len(tensor_sizes) <= self.dim < len(tensor_sizes):
            raise ValueError(f"Invalid sharding dim: {self.dim}")
        split_size = get_split_size(tensor_sizes[self.dim], len(self.placements))
        shards = []
        for idx, placement in enumerate(self.placements):
            offsets, sizes = [0] * len(tensor_sizes), [*tensor_sizes]
            offsets[self.dim] = split_size * idx
            sizes[self.dim] = get_chunked_dim_size(tensor_sizes[self.dim], split_size, idx)
            shards.append(ShardMetadata(offsets, sizes, placement))
        return ShardedTensorMetadata(shards, tensor_sizes, tensor_properties)

    def shard(self, tensor: Any, src_rank: int = 0, process_group: Any = None) -> Any:
        """The tensor of the process `src_rank` of the group, divided among all."""
        package = __package__.rpartition(".")[0]  # sharded tensors stand above
        scattering = importlib.import_module(f"{package}.sharded_tensor.scattering")
        return scattering.scattered(self, tensor, src_rank, process_group)


def _infer_sharding_spec_from_shards_metadata(shards_metadata: Sequence[ShardMetadata]) -> ShardingSpec:
    """The specification that makes these parts: chunks along a dimension where they are such."""
    dims = [{dim for dim, offset in enumerate(each.shard_offsets) if offset} for each in shards_metadata]
    used = {dim for each in dims for dim in each}
    if len(used) == 1 and all(len(each) <= 1 for each in dims):
        dim = used.pop()
        ordered = sorted(shards_metadata, key=lambda each: sum(each.shard_offsets))
        spec = ChunkShardingSpec(dim, [each.placement for each in ordered])
        length, count = sum(each.shard_sizes[dim] for each in ordered), len(ordered)
        split = get_split_size(length, count)
        sizes = sorted(get_chunked_dim_size(length, split, idx) for idx in range(count))
        if (sorted(each.shard_sizes[dim] for each in ordered) == sizes
                and sorted(each.shard_offsets[dim] for each in ordered) == [split * idx for idx in range(count)]):
            return spec
    return EnumerableShardingSpec(list(shards_metadata))


def rank_and_device(group: Any, placement: Any) -> tuple[int, Any]:
    """The process, by its number among all, and the device of a part.

    Raises:
        ValueError: the placement names none, or the process is not in the group.
    """
    if placement is None:
        raise ValueError("remote device is None")
    rank, name = placement.rank(), placement.worker_name()
    if name is not None:
        raise ValueError(f"{name}: flambeau has no RPC; a placement names a rank")
    if rank is None or rank not in c10d.get_process_group_ranks(group):
        raise ValueError(f"Global rank {rank} does not exist in input process group: "
                         f"{c10d.get_process_group_ranks(group)}")
    return rank, placement.device()


__all__ = ["ChunkShardingSpec", "DevicePlacementSpec", "EnumerableShardingSpec", "PlacementSpec", "ShardingSpec",
           "custom_sharding_spec_op", "rank_and_device", "registered"]
