"""Checks of the parts of a sharded tensor, and what all processes' parts are together."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import flambeau as torch

from ..sharding_spec._internals import check_tensor, validate_non_overlapping_shards_metadata
from ..sharding_spec.api import rank_and_device
from ..tensor_metadata import ShardedTensorMetadata, TensorProperties
from .shard import Shard


def _mismatch(name: str, expected: Any, actual: Any, ranks: Any, local: bool = True) -> None:
    if expected != actual:
        if local:
            raise ValueError(f"Local shards' tensor {name} property need to be the same on rank:{ranks}! Found one "
                             f"local shard tensor {name}={expected}, the other local shard tensor {name}={actual}.")
        raise ValueError(f"ShardedTensor {name} property does not match from different ranks! Found {name}={expected} "
                         f"on rank:{ranks[0]}, and {name}={actual} on rank:{ranks[1]}.")


def local_metadata(shards: Sequence[Shard], size: Any, rank: int, group: Any) -> ShardedTensorMetadata:
    """What this process's parts are.

    Raises:
        ValueError: they differ in dtype, device or `requires_grad`, or belong to another process.
    """
    first = shards[0].tensor
    for shard in shards:
        tensor = shard.tensor
        owner, device = rank_and_device(group, shard.metadata.placement)
        if tensor.layout != torch.strided:
            raise ValueError("Only torch.strided layout is currently supported, but found "
                             f"{tensor.layout} on rank:{rank}!")
        if not tensor.is_contiguous():
            raise ValueError("Only torch.contiguous_format memory_format is currently supported!")
        if owner != rank:
            raise ValueError("Local shard metadata's rank does not match with the rank in its process group! Found "
                             f"current rank in the process group: {rank}, local ShardMetadata placement's rank: "
                             f"{owner}")
        if tensor.device != device:
            raise ValueError("Local shard tensor device does not match with local Shard's placement! Found local shard "
                             f"tensor device: {tensor.device}, local shard metadata placement device: {device}")
        for name, mine, its in (("size", shard.metadata.shard_sizes, list(tensor.size())),
                                ("pin_memory", tensor.is_pinned(), first.is_pinned()),
                                ("dtype", tensor.dtype, first.dtype),
                                ("requires_grad", tensor.requires_grad, first.requires_grad)):
            _mismatch(name, mine, its, rank)
    return ShardedTensorMetadata([shard.metadata for shard in shards], size, TensorProperties.create_from_tensor(first))


def global_metadata(gathered: Sequence[ShardedTensorMetadata | None],
                    recalculate: bool = False) -> ShardedTensorMetadata:
    """What the parts of all processes are together.

    Args:
        gathered: those of each process; None where it has none.
        recalculate: the parts follow each other along dimension 0, in the order of the processes.

    Raises:
        ValueError: there is no part, or they do not fit together.
    """
    given = [(rank, each) for rank, each in enumerate(gathered) if each is not None]
    if not given:
        raise ValueError("ShardedTensor have no local shards on all ranks!")
    first_rank, first = given[0]
    result = copy.deepcopy(first)
    for rank, each in given[1:]:
        _mismatch("global_size", result.size, each.size, (first_rank, rank), local=False)
        for name in ("dtype", "requires_grad", "pin_memory"):
            _mismatch(name, getattr(result.tensor_properties, name), getattr(each.tensor_properties, name),
                      (first_rank, rank), local=False)
        result.shards_metadata.extend(each.shards_metadata)
    if recalculate:
        _place_along_rows(result)
    validate_non_overlapping_shards_metadata(result.shards_metadata)
    check_tensor(result.shards_metadata, result.size)
    return result


def _place_along_rows(metadata: ShardedTensorMetadata) -> None:
    shards = metadata.shards_metadata
    if any(shard.placement is None for shard in shards):
        raise AssertionError("currently only support rw, it should always have valid rank info")
    ordered = sorted(shards, key=lambda shard: shard.placement.rank())  # type: ignore[union-attr, arg-type, return-value]
    ends = [0, *accumulate(shard.shard_sizes[0] for shard in ordered)]
    for shard, start in zip(ordered, ends, strict=False):
        shard.shard_offsets[:] = [start] + [0] * (len(shard.shard_offsets) - 1)
    metadata.size = torch.Size([ends[-1], *shards[0].shard_sizes[1:]])


__all__ = ["global_metadata", "local_metadata"]
