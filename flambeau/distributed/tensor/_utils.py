"""`torch.distributed.tensor._utils`: which part of a tensor a process has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._tensor import Tensor
from ...shapes import Size
from ..device_mesh import DeviceMesh
from ..placement_types import Placement
from ._dtensor import global_shape_and_strides
from ._sharding import local_shape_and_offset


def compute_local_shape_and_global_offset(global_shape: Any, mesh: DeviceMesh, placements: Sequence[Placement],
                                          skip_offset: bool = False) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The shape of this process's part, and where it begins.

    Args:
        global_shape: the sizes of the whole tensor.
        mesh: the processes.
        placements: one for each dimension of the mesh.
        skip_offset: return () for the beginning.
    """
    shape, offset = local_shape_and_offset(tuple(global_shape), mesh.shape, mesh.get_coordinate(), placements)
    return shape, () if skip_offset else offset


def compute_local_shape(global_shape: Any, mesh: DeviceMesh, placements: Sequence[Placement]) -> tuple[int, ...]:
    """The shape of this process's part.

    Args:
        global_shape: the sizes of the whole tensor.
        mesh: the processes.
        placements: one for each dimension of the mesh.
    """
    return compute_local_shape_and_global_offset(global_shape, mesh, placements, True)[0]


def compute_global_tensor_info(tensor: Tensor, mesh: DeviceMesh,
                               placements: Sequence[Placement]) -> tuple[list[int], list[int]]:
    """Shape and strides of the whole tensor if all processes have parts of the same size.

    Args:
        tensor: this process's part.
        mesh: the processes.
        placements: one for each dimension of the mesh.
    """
    shape, strides = global_shape_and_strides(tensor, mesh, placements)
    return list(shape), list(strides)


def compute_global_tensor_shape(shape: Any, mesh: DeviceMesh, placements: Sequence[Placement]) -> Size:
    """The shape of the whole tensor if all processes have parts of the same size.

    Args:
        shape: the sizes of this process's part.
        mesh: the processes.
        placements: one for each dimension of the mesh.
    """
    sizes = list(shape)
    for i, placement in enumerate(placements):
        if placement.is_shard():
            sizes[placement.dim] *= mesh.size(i)  # type: ignore[attr-defined]
    return Size(sizes)


__all__ = ["compute_global_tensor_info", "compute_global_tensor_shape", "compute_local_shape",
           "compute_local_shape_and_global_offset"]
