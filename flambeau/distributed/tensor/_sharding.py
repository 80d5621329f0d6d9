"""Arithmetic of shards: which part of a tensor each process has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..placement_types import Placement, Shard, _StridedShard


def is_shard(placement: Placement) -> bool:
    """Whether a placement is a `Shard` or a `_StridedShard`."""
    return isinstance(placement, (Shard, _StridedShard))


def shard_range(size: int, parts: int, index: int) -> tuple[int, int]:
    """Begin and length of one of the parts that `torch.chunk` cuts a dimension into; the last ones may be empty."""
    full = -(-size // parts)
    begin = min(size, full * index)
    return begin, min(size, full * (index + 1)) - begin


def shard_order(placements: Sequence[Placement]) -> list[int]:
    """The dimensions of a mesh in the order in which they cut a tensor: those with a `_StridedShard` cut last."""
    return sorted(range(len(placements)), key=lambda i: (isinstance(placements[i], _StridedShard), i))


def local_shape_and_offset(shape: Sequence[int], mesh_shape: Sequence[int], coordinate: Sequence[int] | None,
                           placements: Sequence[Placement]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The shape of a process's part of a tensor, and where it begins.

    Args:
        shape: the sizes of the whole tensor.
        mesh_shape: the numbers of processes along the dimensions of the mesh.
        coordinate: where the process is in the mesh; None: it is not in it, and has nothing.
        placements: one for each dimension of the mesh.
    """
    if coordinate is None:
        return (0,), ()
    sizes, offsets = list(shape), [0] * len(shape)
    for i in shard_order(placements):
        placement: Any = placements[i]
        if is_shard(placement):
            dim = placement.dim
            if dim >= len(sizes):
                raise AssertionError(f"Sharding dim {dim} greater than tensor ndim {len(sizes)}")
            begin, sizes[dim] = shard_range(sizes[dim], mesh_shape[i], coordinate[i])
            offsets[dim] += begin
    return tuple(sizes), tuple(offsets)


def size_before(shape: Sequence[int], mesh_shape: Sequence[int], coordinate: Sequence[int],
                placements: Sequence[Placement], mesh_dim: int, dim: int) -> int:
    """The size of dimension `dim` in a process's part before dimension `mesh_dim` of the mesh cuts it."""
    size = shape[dim]
    for i in shard_order(placements):
        if i == mesh_dim:
            break
        placement: Any = placements[i]
        if is_shard(placement) and placement.dim == dim:
            size = shard_range(size, mesh_shape[i], coordinate[i])[1]
    return size


def row_major_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """The strides of a contiguous tensor, in elements."""
    strides, step = [0] * len(shape), 1
    for i in range(len(shape) - 1, -1, -1):
        strides[i] = step
        step *= max(1, shape[i])
    return tuple(strides)


def strides_like(local_strides: Sequence[int], shape: Sequence[int]) -> tuple[int, ...]:
    """The strides of a dense tensor whose dimensions have the order that a part's strides have."""
    order = sorted(range(len(shape)), key=lambda i: (-local_strides[i], i))
    strides, step = [0] * len(shape), 1
    for i in reversed(order):
        strides[i] = step
        step *= max(1, shape[i])
    return tuple(strides)


__all__ = ["is_shard", "local_shape_and_offset", "row_major_strides", "shard_order", "shard_range", "size_before",
           "strides_like"]
