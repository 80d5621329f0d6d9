"""Factories of distributed tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import devices
from ..._tensor import functions as _functions
from ...dtypes import get_default_dtype
from ..device_mesh import DeviceMesh, _mesh_resources
from ..placement_types import Placement, Replicate
from ._dtensor import DTensor, normalized
from ._dtensor_spec import spec_of
from ._random import distribute_region
from ._sharding import row_major_strides

functions: Any = _functions


def _size(size: tuple[Any, ...]) -> tuple[int, ...]:
    return tuple(size[0]) if len(size) == 1 and isinstance(size[0], (tuple, list)) else tuple(size)


def _made(name: str, size: tuple[int, ...], values: tuple[Any, ...], dtype: Any, layout: Any, requires_grad: bool,
          device_mesh: DeviceMesh | None, placements: Sequence[Placement] | None) -> DTensor:
    mesh = device_mesh or _mesh_resources.get_current_mesh()
    placed = normalized(placements or [Replicate()] * mesh.ndim, len(size))
    if mesh.ndim != len(placed):
        raise AssertionError("mesh dimension does not match the length of placements")
    if layout is not devices.strided:
        raise AssertionError("layout value not supported!")
    make = getattr(functions, name)
    if name in ("rand", "randn"):
        spec = spec_of(mesh, placed, size, row_major_strides(size), dtype or get_default_dtype())
        with distribute_region(spec):
            local = make(spec.local_shape(), dtype=dtype)
    else:
        dtype = make((), *values, dtype=dtype).dtype
        spec = spec_of(mesh, placed, size, row_major_strides(size), dtype)
        local = make(spec.local_shape(), *values, dtype=dtype)
    return DTensor(local, spec, requires_grad=requires_grad)


def ones(*size: Any, dtype: Any = None, layout: Any = devices.strided, requires_grad: bool = False,
         device_mesh: DeviceMesh | None = None, placements: Sequence[Placement] | None = None) -> DTensor:
    """A distributed tensor of ones.

    Args:
        size: the sizes of the whole tensor.
        dtype: its dtype.
        layout: `torch.strided`.
        requires_grad: whether operators on it are recorded.
        device_mesh: the processes; default: the mesh of the `with` block.
        placements: one for each dimension of the mesh; default: replicated.

    >>> import flambeau as torch
    >>> from flambeau.distributed.tensor import ones
    >>> dist = torch.distributed
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> ones(2, device_mesh=dist.init_device_mesh("cpu", (1,))).full_tensor()
    tensor([1., 1.])
    >>> dist.destroy_process_group()
    """
    return _made("ones", _size(size), (), dtype, layout, requires_grad, device_mesh, placements)


def empty(*size: Any, dtype: Any = None, layout: Any = devices.strided, requires_grad: bool = False,
          device_mesh: DeviceMesh | None = None, placements: Sequence[Placement] | None = None) -> DTensor:
    """A distributed tensor of any elements; the arguments are those of `ones`."""
    return _made("empty", _size(size), (), dtype, layout, requires_grad, device_mesh, placements)


def zeros(*size: Any, dtype: Any = None, layout: Any = devices.strided, requires_grad: bool = False,
          device_mesh: DeviceMesh | None = None, placements: Sequence[Placement] | None = None) -> DTensor:
    """A distributed tensor of zeros; the arguments are those of `ones`."""
    return _made("zeros", _size(size), (), dtype, layout, requires_grad, device_mesh, placements)


def full(size: Any, fill_value: Any, *, dtype: Any = None, layout: Any = devices.strided,
         requires_grad: bool = False, device_mesh: DeviceMesh | None = None,
         placements: Sequence[Placement] | None = None) -> DTensor:
    """A distributed tensor of one number.

    Args:
        size: the sizes of the whole tensor.
        fill_value: the number.
        dtype: as of `ones`, like the rest.
        layout: `torch.strided`.
        requires_grad: whether operators on it are recorded.
        device_mesh: the processes.
        placements: one for each dimension of the mesh.
    """
    return _made("full", _size((size,)), (fill_value,), dtype, layout, requires_grad, device_mesh, placements)


def rand(*size: Any, requires_grad: bool = False, dtype: Any = None, layout: Any = devices.strided,
         device_mesh: DeviceMesh | None = None, placements: Sequence[Placement] | None = None) -> DTensor:
    """A distributed tensor of uniform random numbers; the arguments are those of `ones`.

    Each process draws the numbers of its part.
    """
    return _made("rand", _size(size), (), dtype, layout, requires_grad, device_mesh, placements)


def randn(*size: Any, requires_grad: bool = False, dtype: Any = None, layout: Any = devices.strided,
          device_mesh: DeviceMesh | None = None, placements: Sequence[Placement] | None = None) -> DTensor:
    """A distributed tensor of normal random numbers; as `rand`."""
    return _made("randn", _size(size), (), dtype, layout, requires_grad, device_mesh, placements)


__all__ = ["empty", "full", "ones", "rand", "randn", "zeros"]
