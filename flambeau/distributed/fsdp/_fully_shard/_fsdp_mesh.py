"""The mesh of data parallelism: the groups that parameters are cut over and copied over."""

from __future__ import annotations

import functools
import logging
from typing import Any
from weakref import WeakKeyDictionary

from ...device_mesh import DeviceMesh
from ...placement_types import Placement, Replicate, Shard, _StridedShard
from ...tensor import DTensor

#: group that parameters are cut over -> size -> the same processes, as rows of that size
_SMALLER_MESHES: WeakKeyDictionary[Any, dict[int, DeviceMesh]] = WeakKeyDictionary()


def check_mesh(mesh: DeviceMesh) -> None:
    """Check that parameters can be cut over a mesh.

    Args:
        mesh: the processes.

    Raises:
        ValueError: it has more than two dimensions (PyTorch's text).
        AssertionError: it has two without names (PyTorch's text).
    """
    if mesh.ndim not in (1, 2):
        raise ValueError(f"fully_shard expects a 1D or 2D DeviceMesh but got {mesh}")
    if mesh.ndim == 2 and mesh.mesh_dim_names is None:
        raise AssertionError("Please init the 2D mesh for HSDP with mesh_dim_names specified")


class DataParallelMesh:
    """The mesh of `fully_shard`: of one dimension, or (replicate, shard).

    Args:
        mesh: the processes.
    """

    __slots__ = ("mesh", "replicate_group", "replicate_size", "shard_group", "shard_rank", "shard_size")

    def __init__(self, mesh: DeviceMesh) -> None:
        self.mesh = mesh
        self.shard_group: Any = mesh.get_group(mesh.ndim - 1)
        self.replicate_group: Any = mesh.get_group(0) if mesh.ndim == 2 else None
        self.shard_size, self.shard_rank = self.shard_group.size(), self.shard_group.rank()
        self.replicate_size = 1 if self.replicate_group is None else self.replicate_group.size()

    def placements(self, shard: Placement) -> tuple[Placement, ...]:
        """The placements of a parameter over the mesh."""
        return (shard,) if self.mesh.ndim == 1 else (Replicate(), shard)

    def after_forward(self, size: int) -> DataParallelMesh:
        """The mesh that parameters are cut over between a forward pass and its backward pass: rows of `size` processes.

        Args:
            size: a divisor of the number of processes that parameters are cut over, neither 1 nor all of them.
        """
        meshes = _SMALLER_MESHES.setdefault(self.shard_group, {})
        if size not in meshes:
            meshes[size] = DeviceMesh(self.mesh.device_type, self.mesh.mesh.view(-1, size))
        return DataParallelMesh(meshes[size])

    def of_parameter(self, param: Any, shard: Shard) -> tuple[DeviceMesh, tuple[Placement, ...]]:
        """The mesh and the placements of a parameter's parts; those of tensor parallelism come last.

        Raises:
            ValueError: the parameter is distributed over a mesh of another root, or one without names.
        """
        if not isinstance(param, DTensor):
            return self.mesh, self.placements(shard)
        inner, root = param.device_mesh, self.mesh._get_root_mesh()
        if inner._get_root_mesh() != root or self.mesh is root:
            raise ValueError("FSDP requires the DP and model parallel TP/EP mesh to have the same parent mesh but got:"
                             f" DP's global mesh: {root} TP/EP's global mesh: {inner._get_root_mesh()}")
        if self.mesh.mesh_dim_names is None or inner.mesh_dim_names is None:
            raise AssertionError("FSDP requires mesh_dim_names for both the data parallel and the tensor parallel mesh")
        factor = 1
        for i, placement in enumerate(param.placements):
            if placement.is_shard(shard.dim):
                factor *= inner.size(i)
        outer: Any = _StridedShard(shard.dim, split_factor=factor) if factor > 1 else shard
        names = self.mesh.mesh_dim_names + inner.mesh_dim_names
        return root[names], self.placements(outer) + param.placements


def size_after_forward(value: Any, mesh: DataParallelMesh) -> int:
    """The number of processes that parameters are cut over after a forward pass; 1: they stay whole.

    Args:
        value: `reshard_after_forward`; True: all of them.
        mesh: the data parallel mesh.

    Raises:
        ValueError: it is no number, or does not divide the number of processes (PyTorch's texts).
    """
    if not isinstance(value, int):
        raise ValueError("reshard_after_forward should be a bool or an int representing the group size to reshard to, "
                         f"not {value}")
    if isinstance(value, bool):
        return mesh.shard_size if value else 1
    if value < 1 or mesh.shard_size % value:
        raise ValueError("If passing reshard_after_forward as an int, it should be a factor of "
                         f"{mesh.shard_size}, not {value}")
    if value == 1:
        _warn_of_one()
    return value


@functools.cache
def _warn_of_one() -> None:
    logging.getLogger("flambeau.distributed.fsdp.fully_shard").warning(
        "reshard_after_forward=1 (int) means resharding parameters to world size 1, instead of "
        "reshard_after_forward=True (bool)")


__all__ = ["DataParallelMesh", "check_mesh", "size_after_forward"]
