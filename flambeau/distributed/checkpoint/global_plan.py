"""The plans of all processes together: the metadata that they make, and whether the parts fill each tensor."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from ...shapes import Size
from .metadata import BytesStorageMetadata, ChunkStorageMetadata, Metadata, TensorStorageMetadata
from .planner import SavePlan, WriteItemType
from .resharding import _check_shard_metadata_pair_overlap


def create_default_global_save_plan(all_plans: list[SavePlan],
                                    rewrite_index_hints: bool = True) -> tuple[list[SavePlan], Metadata]:
    """The plans with the numbers of parts, and the metadata.

    Args:
        all_plans: the plans of all processes; what is no part of a tensor is in one of them.
        rewrite_index_hints: whether to write the number of each part into its key.

    Raises:
        AssertionError: two plans have the same whole tensor or object.
    """
    metadata: dict[str, Any] = {}
    plans = []
    for plan in all_plans:
        items = []
        for item in plan.items:
            name = item.index.fqn
            if item.type is not WriteItemType.SHARD and name in metadata:
                raise AssertionError(f"{name} is in the plans of two processes")
            if item.type is WriteItemType.BYTE_IO:
                metadata[name] = BytesStorageMetadata()
                items.append(item)
                continue
            data = item.tensor_data
            assert data is not None
            entry = metadata.setdefault(name, TensorStorageMetadata(data.properties, data.size, []))
            if rewrite_index_hints:
                item = dataclasses.replace(item, index=dataclasses.replace(item.index, index=len(entry.chunks)))
            items.append(item)
            entry.chunks.append(data.chunk)
        plans.append(dataclasses.replace(plan, items=items))
    return plans, Metadata(metadata)


def _inside(size: Size, chunk: ChunkStorageMetadata) -> bool:
    return all(start >= 0 and count >= 0 and start + count <= whole
               for start, count, whole in zip(chunk.offsets, chunk.sizes, size, strict=True))


def _overlapping(size: Size, chunks: list[ChunkStorageMetadata]) -> list[tuple[ChunkStorageMetadata, ...]]:
    """Pairs of parts with common elements; each is compared with those that end after it begins, by the longest
    dimension."""
    longest = max(range(len(size)), key=lambda dim: size[dim])
    found: list[tuple[ChunkStorageMetadata, ...]] = []
    open_chunks: list[ChunkStorageMetadata] = []
    for chunk in sorted(chunks, key=lambda each: each.offsets[longest]):
        start = chunk.offsets[longest]
        open_chunks = [each for each in open_chunks if each.offsets[longest] + each.sizes[longest] > start]
        found += [(chunk, each) for each in open_chunks if _check_shard_metadata_pair_overlap(chunk, each)]
        open_chunks.append(chunk)
    return found


def _validate_global_plan(global_plan: list[SavePlan], metadata: Metadata) -> list[str]:
    """What is wrong with the parts of tensors: outside of the tensor, overlapping, or not all of it."""
    errors = []
    for name, value in metadata.state_dict_metadata.items():
        if isinstance(value, BytesStorageMetadata) or not len(value.size):
            continue
        errors += [f"key:{name} has out of bounds chunk: tensor-size:{value.size} chunk: {chunk}"
                   for chunk in value.chunks if not _inside(value.size, chunk)]
        errors += [f"key:{name} has overlapping chunks: {a} {b}" for a, b in _overlapping(value.size, value.chunks)]
        whole, parts = math.prod(value.size), sum(math.prod(chunk.sizes) for chunk in value.chunks)
        if len(global_plan) > 1 and whole != parts:
            errors.append(f"key:{name} invalid fill tensor-volume: {whole} chunks-volume: {parts}")
    return errors


__all__ = ["create_default_global_save_plan"]
