"""The part of a distributed tensor that this process has."""

from __future__ import annotations

from typing import Any

from ...._tensor import Parameter, Tensor
from ....shapes import Size
from ..metadata import ChunkStorageMetadata


def is_sharded(value: Any) -> bool:
    """Whether a value is a `DTensor`."""
    if not isinstance(value, Tensor) or type(value) in (Tensor, Parameter):
        return False
    from ...tensor import DTensor

    return isinstance(value, DTensor)


def chunk_of(tensor: Any) -> ChunkStorageMetadata | None:
    """The part of a `DTensor` that this process has; None outside of its mesh."""
    from ...tensor._utils import compute_local_shape_and_global_offset

    if tensor.device_mesh.get_coordinate() is None:
        return None
    sizes, offsets = compute_local_shape_and_global_offset(tensor.shape, tensor.device_mesh, tensor.placements)
    return ChunkStorageMetadata(Size(offsets), Size(sizes))


__all__ = ["chunk_of", "is_sharded"]
