"""`torch.distributed.tensor.device_mesh`: the mesh of processes."""

from __future__ import annotations

from ..device_mesh import DeviceMesh, _mesh_resources, init_device_mesh

__all__ = ["DeviceMesh", "_mesh_resources", "init_device_mesh"]
