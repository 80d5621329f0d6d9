"""The mesh of a `FullyShardedDataParallel`: of its process groups and its strategy."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from ...c10d.process_group import ProcessGroup
from ..device_mesh import DeviceMesh
from ..groups.queries import _get_default_group, get_process_group_ranks
from ..object_collectives import all_gather_object
from .api import ShardingStrategy

_NAMES = ("replicate", "shard")
#: process group -> strategy -> mesh, so that wrapped submodules share groups
_meshes: weakref.WeakKeyDictionary[Any, dict[Any, DeviceMesh]] = weakref.WeakKeyDictionary()


def mesh_of(process_group: Any, strategy: ShardingStrategy, device_mesh: DeviceMesh | None) -> DeviceMesh:
    """The mesh over which parameters are cut, or copied and cut.

    Args:
        process_group: the processes, or (those that parameters are cut over, those that they are copied over).
        strategy: what is divided.
        device_mesh: the mesh itself.

    Raises:
        ValueError: a group and a mesh are given, or they do not fit the strategy (PyTorch's texts).
    """
    hybrid = strategy in (ShardingStrategy.HYBRID_SHARD, ShardingStrategy._HYBRID_SHARD_ZERO2)
    if device_mesh is not None:
        if process_group is not None:
            raise ValueError("Cannot pass both process_group and device_mesh at the same time. Please just pass only "
                             "one of them.")
        if hybrid and device_mesh.ndim != 2:
            raise ValueError(f"Expected device_mesh to have ndim=2 but got {device_mesh.ndim}")
        if strategy is not ShardingStrategy.NO_SHARD:
            return device_mesh
        process_group = device_mesh.get_group()
    if isinstance(process_group, tuple):
        if not hybrid or len(process_group) != 2 or not all(isinstance(g, ProcessGroup) for g in process_group):
            raise ValueError("Expected process_group to be passed in as either None or Tuple[dist.ProcessGroup, "
                             f"dist.ProcessGroup] but got {type(process_group)}")
        return _of_two(*process_group)
    group = process_group if process_group is not None else _get_default_group()
    known = _meshes.setdefault(group, {})
    kind = strategy is ShardingStrategy.NO_SHARD
    if kind not in known:
        ranks = get_process_group_ranks(group)
        known[kind] = DeviceMesh("cpu", np.array(ranks)[:, None].tolist(), mesh_dim_names=_NAMES) if kind else (
            DeviceMesh.from_group(group, "cpu", mesh_dim_names=_NAMES[1:]))
    return known[kind]


def _of_two(shard: Any, replicate: Any) -> DeviceMesh:
    known = _meshes.setdefault(shard, {})
    key = id(replicate)
    if key not in known:
        rows: list[Any] = [None] * replicate.size()
        all_gather_object(rows, get_process_group_ranks(shard), replicate)
        known[key] = DeviceMesh.from_group([replicate, shard], "cpu", rows, mesh_dim_names=_NAMES)
    return known[key]


__all__ = ["mesh_of"]
