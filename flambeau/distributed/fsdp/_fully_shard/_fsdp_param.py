"""One parameter of `fully_shard`: its part, a `DTensor`, and the whole, which exists while it is needed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...._tensor.parameter import Parameter
from ...._tensor.tensor import wrap
from ....nn.modules.module import Module
from ...placement_types import Shard
from ...tensor import DTensor
from ...tensor._dtensor_spec import DTensorSpec, spec_of
from ...tensor._redistribute import part_of, redistribute_local_tensor
from ...tensor._sharding import row_major_strides, shard_range
from ._fsdp_mesh import DataParallelMesh


class FSDPParam:
    """A parameter, which `places` (modules and names) share.

    Args:
        param: the whole parameter.
        places: where it is registered.
        mesh: the data parallel mesh.
        shard_placement_fn: returns the `Shard` of a parameter, or None for `Shard(0)`.
        param_dtype: the dtype of the whole; None: that of the parameter.

    Raises:
        NotImplementedError: the parameter is not contiguous, or cannot be cut evenly along another dimension than the
            first (PyTorch's texts).
    """

    def __init__(self, param: Any, places: list[tuple[Module, str]], mesh: DataParallelMesh,
                 shard_placement_fn: Callable[[Any], Any] | None, param_dtype: Any) -> None:
        self.places, self.mesh = places, mesh
        if not param.is_contiguous():
            raise NotImplementedError("FSDP does not support non-contiguous parameters yet: "
                                      f"param.shape={param.shape} param.stride()={param.stride()}")
        chosen = shard_placement_fn(param) if shard_placement_fn is not None else None
        placement = Shard(0) if chosen is None else chosen
        if not isinstance(placement, Shard):
            raise AssertionError(f"Expected Shard, got {type(placement)}: {placement}")
        self.inner: DTensorSpec | None = param._spec if isinstance(param, DTensor) else None
        local = param._local_tensor if isinstance(param, DTensor) else param.detach()
        self.shape = tuple(local.shape)
        self.dim = placement.dim % max(1, len(self.shape))
        if self.dim >= len(self.shape):
            raise AssertionError(f"Shard dim {self.dim} is invalid for {len(self.shape)}D tensor: {param.shape}")
        if self.dim and self.shape[self.dim] % mesh.shard_size:
            raise NotImplementedError(f"FSDP does not support uneven sharding on dim {self.dim}: {param.shape} "
                                      f"(world size: {mesh.shard_size})")
        self.dtype = param.dtype
        self.compute_dtype = param_dtype if param_dtype is not None and param.dtype.is_floating_point else param.dtype
        whole, placements = mesh.of_parameter(param, Shard(self.dim))
        self.spec = spec_of(whole, placements, param.shape, row_major_strides(param.shape), param.dtype)
        own = part_of(local, self.dim, mesh.shard_size, mesh.shard_rank)
        self.sharded_param: Any = Parameter(DTensor(own, self.spec),
                                            requires_grad=param.requires_grad)
        for name, value in param.__dict__.items():
            if not name.startswith("_") and name not in self.sharded_param.__dict__:
                setattr(self.sharded_param, name, value)
        self.unsharded_param: Any = None
        self.smaller_param: Any = None
        self.register(self.sharded_param)

    # ----- the whole -----

    def slot(self, mesh: DataParallelMesh | None = None) -> int:
        """The number of elements that each process sends of it."""
        sizes = list(self.shape)
        sizes[self.dim] = -(-sizes[self.dim] // (mesh or self.mesh).shard_size)
        return int(np.prod(sizes, dtype=np.int64))

    def bounds(self, rank: int, mesh: DataParallelMesh | None = None) -> tuple[slice, ...]:
        """Where a process's part is in the whole."""
        begin, length = shard_range(self.shape[self.dim], (mesh or self.mesh).shard_size, rank)
        return (slice(None),) * self.dim + (slice(begin, begin + length),)

    def local_array(self) -> np.ndarray:
        """This process's part, in the dtype of the computation; the larger one if there is one."""
        local = (self.sharded_param if self.smaller_param is None else self.smaller_param)._local_tensor
        if local.dtype is not self.compute_dtype:
            local = local.to(dtype=self.compute_dtype)
        array: np.ndarray = local._array
        return array

    def adopt(self, array: np.ndarray) -> None:
        """Make the whole parameter of memory that gathering writes to."""
        local = wrap(array)
        inner = self.inner
        value: Any = local if inner is None else DTensor(local, spec_of(
            inner.mesh, inner.placements, inner.shape, inner.stride, self.compute_dtype))
        self.unsharded_param = Parameter(value, requires_grad=self.sharded_param.requires_grad)

    def cut_smaller(self, array: np.ndarray, mesh: DataParallelMesh) -> None:
        """Put this process's part of the whole, on a mesh of fewer processes, into the modules.

        Args:
            array: the whole.
            mesh: the mesh.

        Raises:
            NotImplementedError: the parameter is a distributed tensor (PyTorch's text).
        """
        if self.inner is not None:
            raise NotImplementedError("Resharding to smaller mesh is not supported for DTensor parameters yet")
        spec = spec_of(mesh.mesh, mesh.placements(Shard(self.dim)), self.spec.shape, self.spec.stride,
                       self.compute_dtype)
        own = wrap(array[self.bounds(mesh.shard_rank, mesh)].copy())
        self.smaller_param = Parameter(DTensor(own, spec), requires_grad=self.sharded_param.requires_grad)
        self.register(self.smaller_param)

    def register(self, param: Any) -> None:
        """Put the part or the whole into the modules."""
        for module, name in self.places:
            module._parameters[name] = param

    # ----- the gradient -----

    def take_gradient(self) -> Any:
        """The gradient of the whole on this process, which is taken away; None if there is none."""
        grad = None if self.unsharded_param is None else self.unsharded_param.grad
        if grad is None:
            return None
        self.unsharded_param.grad = None
        if isinstance(grad, DTensor):
            assert self.inner is not None
            grad = redistribute_local_tensor(grad._local_tensor, grad._spec,
                                             grad._spec.with_placements(self.inner.placements))
        return grad

    def accumulate(self, array: np.ndarray) -> None:
        """Add a reduced part to the gradient of the part."""
        local = self.sharded_param._local_tensor
        part = wrap(array.reshape(local.shape))
        if part.dtype is not self.dtype:
            part = part.to(dtype=self.dtype)
        grad = self.sharded_param.grad
        if grad is None:
            self.sharded_param.grad = DTensor(part, self.spec)
        else:
            grad._local_tensor.add_(part)

    def adopt_registered(self) -> None:
        """Take over a part that was registered instead, as `to_empty` and `load_state_dict(assign=True)` do."""
        module, name = self.places[0]
        found: Any = module._parameters[name]
        known = (self.sharded_param, self.unsharded_param, self.smaller_param)
        if isinstance(found, DTensor) and all(found is not each for each in known):
            self.sharded_param = found
            self.register(found)


__all__ = ["FSDPParam"]
