"""`torch.distributed.tensor`: tensors that are distributed over a mesh of processes."""

from __future__ import annotations

import importlib
from typing import Any

from ... import config
from ...serialization.safe_globals import allow_globals
from ...shapes import Size
from .._mesh_layout import _FlatLayout, _MeshLayout
from ..device_mesh import DeviceMesh, _rebuild_mesh, init_device_mesh
from ..placement_types import Partial, Placement, Replicate, Shard, _StridedShard
from . import _dispatch as _dispatch
from ._distribute import distribute_module, distribute_tensor
from ._dtensor import DTensor, _rebuild
from ._dtensor_spec import DTensorSpec as _DTensorSpec
from ._dtensor_spec import ShardOrderEntry as _ShardOrderEntry
from ._dtensor_spec import TensorMeta as _TensorMeta
from ._factories import empty, full, ones, rand, randn, zeros

__all__ = ["DTensor", "DeviceMesh", "Partial", "Placement", "Replicate", "Shard", "_DTensorSpec", "_StridedShard",
           "_TensorMeta", "distribute_module", "distribute_tensor", "empty", "full", "init_device_mesh", "ones", "rand",
           "randn", "zeros"]

DTensor.__module__ = __name__
allow_globals([DTensor, DeviceMesh, Partial, Replicate, Shard, Size, _DTensorSpec, _FlatLayout, _MeshLayout,
               _ShardOrderEntry, _StridedShard, _TensorMeta, _rebuild, _rebuild_mesh])
allow_globals((each, f"torch.distributed.placement_types.{each.__name__}")  # in files of flambeau 0.1
              for each in (Partial, Replicate, Shard, _StridedShard))

_SUBMODULES = frozenset({"_api", "_dtensor_spec", "_utils", "debug", "device_mesh", "experimental", "parallel",
                         "placement_types"})


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module '{config.module_name}.distributed.tensor' has no attribute '{name}'")
