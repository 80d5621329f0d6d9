"""Items of plans: what this process writes of a value, and which stored parts it reads for one."""

from __future__ import annotations

import io
from typing import Any

from ..._tensor import Tensor, functions
from ...shapes import Size
from .metadata import (
    STATE_DICT_TYPE,
    STORAGE_TYPES,
    BytesStorageMetadata,
    ChunkStorageMetadata,
    MetadataIndex,
    TensorProperties,
    TensorStorageMetadata,
)
from .planner import LoadItemType, ReadItem, SavePlan, TensorWriteData, WriteItem, WriteItemType
from .resharding import _check_shard_metadata_pair_overlap, _shards_get_overlap_region_wrt_saved_tensor
from .states.shards import chunk_of, is_sharded

__all__ = ["create_read_items_for_chunk_list"]


def _create_chunk_from_tensor(tensor: Tensor) -> ChunkStorageMetadata:
    return ChunkStorageMetadata(Size([0] * tensor.ndim), tensor.size())


def _create_write_items(fqn: str, object: Any) -> list[WriteItem]:
    """What this process could write of a value."""
    if hasattr(object, "__create_write_items__"):
        return object.__create_write_items__(fqn, object)
    if not isinstance(object, Tensor):
        return [WriteItem(MetadataIndex(fqn), WriteItemType.BYTE_IO)]
    sharded = is_sharded(object)
    chunk = chunk_of(object) if sharded else _create_chunk_from_tensor(object)
    if chunk is None:
        return []
    properties = TensorProperties.create_from_tensor(object.to_local() if sharded else object)
    return [WriteItem(MetadataIndex(fqn, chunk.offsets), WriteItemType.SHARD if sharded else WriteItemType.TENSOR,
                      tensor_data=TensorWriteData(chunk, properties, object.size()))]


def _create_default_metadata_only_plan(state_dict: STATE_DICT_TYPE) -> SavePlan:
    return SavePlan([item for fqn, value in state_dict.items() for item in _create_write_items(fqn, value)])


def _create_chunk_list(tensor: Any) -> list[ChunkStorageMetadata]:
    """The parts of a tensor that this process has.

    Raises:
        ValueError: it is no tensor (PyTorch's text).
    """
    if hasattr(tensor, "__create_chunk_list__"):
        return tensor.__create_chunk_list__()
    if is_sharded(tensor):
        chunk = chunk_of(tensor)
        return [] if chunk is None else [chunk]
    if isinstance(tensor, Tensor):
        return [_create_chunk_from_tensor(tensor)]
    raise ValueError("Unsupported Type, expecting one of [Tensor, DTensor, ShardedTensor] ,but got "
                     f"{type(tensor)}")


def create_read_items_for_chunk_list(fqn: str, checkpoint_md: TensorStorageMetadata,
                                     local_chunks: list[ChunkStorageMetadata]) -> list[ReadItem]:
    """What to read for the parts of a tensor that this process has.

    Args:
        fqn: the tensor's name.
        checkpoint_md: the parts that are stored.
        local_chunks: the parts that this process has.
    """
    items = []
    for number, local in enumerate(local_chunks):
        for index, stored in enumerate(checkpoint_md.chunks):
            if _check_shard_metadata_pair_overlap(local, stored):
                regions = _shards_get_overlap_region_wrt_saved_tensor(stored, local)
                items.append(ReadItem(
                    LoadItemType.TENSOR,
                    MetadataIndex(fqn, local.offsets, number), Size([each[2] for each in regions]),
                    MetadataIndex(fqn, stored.offsets, index), Size([each[1] for each in regions]),
                    Size([each[3] for each in regions])))
    return items


def _create_read_items(fqn: str, md: STORAGE_TYPES, obj: Any) -> list[ReadItem]:
    """What to read for a value.

    Raises:
        ValueError: a tensor is stored where the value is none (PyTorch's text).
    """
    if isinstance(md, BytesStorageMetadata):
        index, zero = MetadataIndex(fqn), Size((0,))
        return [ReadItem(LoadItemType.BYTE_IO, index, zero, index, zero, zero)]
    try:
        chunks = _create_chunk_list(obj)
    except ValueError as error:
        raise ValueError(f"Invalid checkpoint metadata for {fqn}, expected BytesStorageMetadata but found "
                         f"{type(md)}") from error
    return create_read_items_for_chunk_list(fqn, md, chunks)


def _init_state_dict(state_dict: dict[str, Any]) -> Any:
    """Give meta tensors of a nested state dict memory, in place."""
    def with_memory(value: Any) -> Any:
        if isinstance(value, Tensor):
            if value.device.type != "meta":
                return value
            if is_sharded(value):
                from ..tensor import DTensor

                local = functions.empty_like(value.to_local(), device="cpu")
                return DTensor.from_local(local, value.device_mesh, value.placements,
                                          shape=value.size(), stride=value.stride())
            return functions.empty_like(value, device="cpu")
        if value is None or isinstance(value, (int, float, str, bytes, io.BytesIO)):
            return value
        if isinstance(value, dict):
            for key in value:
                value[key] = with_memory(value[key])
            return value
        if isinstance(value, (list, tuple)):
            converted = [with_memory(each) for each in value]
            return tuple(converted) if isinstance(value, tuple) else converted
        return value  # an object of another class is loaded as a whole

    return with_memory(state_dict)
