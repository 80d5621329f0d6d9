"""`distribute_tensor` and `distribute_module`: distributed tensors of tensors that one process has."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from ..._tensor import Tensor
from ..._tensor.parameter import Parameter
from ...nn.modules.module import Module
from ..collectives import broadcast, scatter
from ..device_mesh import DeviceMesh, _mesh_resources
from ..placement_types import Placement, Replicate
from ._dtensor import DTensor, normalized
from ._dtensor_spec import spec_of
from ._partial import summand
from ._redistribute import _padded, part_of
from ._sharding import is_shard, shard_order, shard_range


def _scattered(whole: Any, dim: int, mesh: DeviceMesh, mesh_dim: int, source: int | None) -> Any:
    """A process's part of the tensor of the process `source` of its group."""
    coordinate = mesh.get_coordinate()
    assert coordinate is not None
    size, rank = mesh.size(mesh_dim), coordinate[mesh_dim]
    if source is None or whole.is_meta:
        return part_of(whole, dim, size, rank)
    full = -(-whole.shape[dim] // size)
    pieces = None
    if rank == source:
        cut = [whole.narrow(dim, *shard_range(whole.shape[dim], size, i)) for i in range(size)]
        pieces = [_padded(each, dim, full).contiguous() for each in cut]
    shape = list(whole.shape)
    shape[dim] = full
    own = whole.new_empty(shape)
    scatter(own, pieces, group=mesh.get_group(mesh_dim), group_src=source)
    length = shard_range(whole.shape[dim], size, rank)[1]
    return own.narrow(dim, 0, length).contiguous().clone() if length != full else own


def distribute_tensor(tensor: Tensor, device_mesh: DeviceMesh | None = None,
                      placements: Sequence[Placement] | None = None, *, src_data_rank: int | None = 0) -> DTensor:
    """Distribute a leaf that all processes have, of which that of the first counts.

    Args:
        tensor: the whole tensor.
        device_mesh: the processes; default: the mesh of the `with` block.
        placements: one for each dimension of the mesh; default: replicated.
        src_data_rank: the process, of each row of the mesh, whose elements count; None: each process's own, so that
            nothing is sent.

    Raises:
        RuntimeError: `tensor` is no leaf (PyTorch's text).
        ValueError: not as many placements as dimensions, or a `DTensor` that is placed otherwise (PyTorch's texts).

    >>> import flambeau as torch
    >>> from flambeau.distributed.tensor import Shard, distribute_tensor
    >>> dist = torch.distributed
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> distribute_tensor(torch.ones(2), dist.init_device_mesh("cpu", (1,)), [Shard(0)]).to_local()
    tensor([1., 1.])
    >>> dist.destroy_process_group()
    """
    mesh = device_mesh or _mesh_resources.get_current_mesh()
    if not tensor.is_leaf:
        raise RuntimeError("`distribute_tensor` should be used to distribute leaf tensors! but found non-leaf tensor!")
    placements = list(placements) if placements is not None else [Replicate()] * mesh.ndim
    if len(placements) != mesh.ndim:
        raise ValueError("`placements` must have the same length as `device_mesh.ndim`! Found placements length: "
                         f"{len(placements)}, and device_mesh.ndim: {mesh.ndim}.")
    if isinstance(tensor, DTensor):
        if tensor.device_mesh != mesh:
            raise ValueError(f"Cannot distribute a DTensor with device mesh {tensor.device_mesh} to a different device "
                             f"mesh {mesh}.")
        if tensor.placements != tuple(placements):
            raise ValueError(f"Cannot distribute a DTensor with placements {tensor.placements} to a different "
                             f"placements {placements}. do you want to call `redistribute` instead?")
        return tensor
    placed = normalized(placements, tensor.ndim)
    spec = spec_of(mesh, placed, tensor.shape, tensor.stride(), tensor.dtype)
    local: Any = tensor.detach()
    coordinate = mesh.get_coordinate()
    if coordinate is None:
        return DTensor(local.new_empty(0), spec, requires_grad=tensor.requires_grad)
    for i in shard_order(placed):
        placement: Any = placed[i]
        if is_shard(placement):
            if placement.dim >= tensor.ndim:
                raise RuntimeError(f"Sharding dim {placement.dim} greater than tensor ndim {tensor.ndim}")
            local = _scattered(local, placement.dim, mesh, i, src_data_rank)
            continue
        if not (placement.is_replicate() or placement.is_partial()):
            raise RuntimeError(f"Trying to distribute tensor with unsupported placements {placement} on device mesh "
                               f"dimension {i}!")
        if src_data_rank is not None and not local.is_meta:
            local = local.contiguous() if local is not tensor and not _shares(local, tensor) else local.clone()
            broadcast(local, group=mesh.get_group(i), group_src=src_data_rank)
        if placement.is_partial():
            local = summand(placement, local, coordinate[i], mesh.size(i))
    return DTensor(local, spec, requires_grad=tensor.requires_grad)


def _shares(a: Any, b: Any) -> bool:
    return bool(a.data_ptr() == b.data_ptr())


def _replicate(module: Any, mesh: DeviceMesh) -> None:
    everywhere = [Replicate()] * mesh.ndim
    for name, param in module._parameters.items():
        if param is not None and not isinstance(param, DTensor):
            module.register_parameter(name, Parameter(distribute_tensor(param.data, mesh, everywhere),
                                                      requires_grad=param.requires_grad))
    for name, buffer in module._buffers.items():
        if buffer is not None and not isinstance(buffer, DTensor):
            module._buffers[name] = distribute_tensor(buffer, mesh, everywhere)


_DEPRECATED = ("Deprecating {0}_fn that takes two arguments ({0}s, device_mesh), please use {0}_fn that takes in "
               "(module, {0}s, device_mesh) instead!")


def distribute_module(module: Module, device_mesh: DeviceMesh | None = None,
                      partition_fn: Callable[[str, Module, DeviceMesh], None] | None = None,
                      input_fn: Callable[..., Any] | None = None,
                      output_fn: Callable[..., Any] | None = None) -> Module:
    """Make distributed tensors of the parameters and buffers of a module.

    Args:
        module: the module, which is changed.
        device_mesh: the processes; default: the mesh of the `with` block.
        partition_fn: `partition_fn(name, submodule, device_mesh)` distributes parameters; the rest is replicated.
        input_fn: `input_fn(module, inputs, device_mesh)` makes the inputs.
        output_fn: `output_fn(module, outputs, device_mesh)` makes the outputs.

    Returns:
        The module.

    Raises:
        RuntimeError: it was applied to the module before (PyTorch's text).
        ValueError: a function takes another number of arguments.
    """
    if getattr(module, "_distribute_module_applied", False):
        raise RuntimeError("distribute_module should only be called once on a module, but it has already been called "
                           "on this module!")
    mesh = device_mesh or _mesh_resources.get_current_mesh()
    for name, submodule in module.named_modules():
        if partition_fn is not None:
            partition_fn(name, submodule, mesh)
        _replicate(submodule, mesh)
    if input_fn is not None:
        taken = _count(input_fn, "input")
        module.register_forward_pre_hook(
            lambda own, inputs: input_fn(*((own,) if taken == 3 else ()), inputs, mesh))
    if output_fn is not None:
        given = _count(output_fn, "output")
        module.register_forward_hook(
            lambda own, inputs, outputs: output_fn(*((own,) if given == 3 else ()), outputs, mesh))
    module._distribute_module_applied = True
    return module


def _count(function: Callable[..., Any], what: str) -> int:
    count = len(inspect.signature(function).parameters)
    if count == 2:
        warnings.warn(_DEPRECATED.format(what), FutureWarning, stacklevel=3)
    elif count != 3:
        raise ValueError(f"{what}_fn should take in 3 arguments, but got {count} arguments!")
    return count


__all__ = ["distribute_module", "distribute_tensor"]
