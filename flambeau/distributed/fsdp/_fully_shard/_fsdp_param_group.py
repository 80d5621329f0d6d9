"""The parameters that one call of `fully_shard` manages: one gathering and one reduction for all of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...._tensor.shape.lazy_clones import make_writable
from ...._tensor.tensor import wrap
from ....c10d.reduce_op import ReduceOp
from ....modes import lazy_storages
from ...collectives import all_gather_into_tensor, all_reduce, reduce_scatter_tensor
from ._fsdp_api import MixedPrecisionPolicy
from ._fsdp_mesh import DataParallelMesh
from ._fsdp_param import FSDPParam
from ._releasable_memory import ReleasableMemory


class Reduction:
    """A reduction of gradients that may be under way."""

    __slots__ = ("group", "members", "output", "work")

    def __init__(self, group: FSDPParamGroup, members: list[FSDPParam], output: Any, work: Any) -> None:
        self.group, self.members, self.output, self.work = group, members, output, work

    def wait(self) -> None:
        """Wait for it, and add the parts to the gradients."""
        if self.work is not None:
            self.work.wait()
        mesh, group = self.group.mesh, self.group
        if group.comm_hook is not None:
            if mesh.shard_size == 1:  # whole gradients: nothing was scattered
                state, hook = group.comm_hook
                hook(state, self.output)
            self._add()
            return
        if mesh.replicate_group is not None and mesh.replicate_size > 1 and group.all_reduce_grads:
            all_reduce(self.output, ReduceOp.SUM, mesh.replicate_group)
        factor = group.divide_factor
        if factor is None:
            factor = mesh.shard_size * (mesh.replicate_size if group.all_reduce_grads else 1)
        if factor != 1:
            self.output.div_(factor)
        self._add()

    def _add(self) -> None:
        at = 0
        for member in self.members:
            count = member.sharded_param._local_tensor.numel()
            member.accumulate(self.output._array[at:at + count].copy())
            at += member.slot()


class FSDPParamGroup:
    """Parameters that are gathered and reduced together.

    Args:
        params: the parameters.
        mesh: the data parallel mesh.
        policy: the dtypes.

    Attributes:
        unsharded: whether the whole parameters are there and registered.
        smaller_mesh: the mesh that parameters are cut over after a forward pass; None: that of the parameters.
        reduce_grads: whether gradients are reduced after a backward pass.
        bytes_gathered: bytes of whole parameters that were made.
        comm_hook: (state, function) that averages gradients: `function(state, gradients, output)`, or without `output`
            where each process has whole parameters.
    """

    comm_hook: tuple[Any, Any] | None = None

    def __init__(self, params: list[FSDPParam], mesh: DataParallelMesh, policy: MixedPrecisionPolicy) -> None:
        self.params, self.mesh, self.policy = params, mesh, policy
        self.unsharded = False
        self.smaller_mesh: DataParallelMesh | None = None
        self._cut_smaller = False
        self.reduce_grads = self.all_reduce_grads = True
        self.reshard_after_backward = True
        self.divide_factor: float | None = None
        self._memory: ReleasableMemory | None = None
        self._pending: tuple[Any, Any, DataParallelMesh] | None = None  # (work, bytes of all processes, their mesh)

    # ----- gathering -----

    def unshard(self, async_op: bool = False) -> None:
        """Gather the whole parameters.

        Args:
            async_op: return while the collective runs; `wait` puts the parameters into the modules.
        """
        if self.unsharded or self._pending is not None:
            if not async_op:
                self.wait()
            return
        for param in self.params:
            param.adopt_registered()
        mesh = self.smaller_mesh if self._cut_smaller and self.smaller_mesh is not None else self.mesh
        sizes = [p.slot(mesh) * p.compute_dtype.itemsize for p in self.params]
        send = np.zeros(sum(sizes), np.uint8)
        at = 0
        for param, size in zip(self.params, sizes, strict=True):
            own = np.ascontiguousarray(param.local_array()).reshape(-1).view(np.uint8)
            send[at:at + own.size] = own
            at += size
        work = None
        if mesh.shard_size == 1:
            received = send
        else:
            received = np.empty(send.size * mesh.shard_size, np.uint8)
            work = all_gather_into_tensor(wrap(received), wrap(send), mesh.shard_group, async_op=async_op)
        self._pending = work, received, mesh
        if not async_op:
            self.wait()

    def wait(self) -> None:
        """Wait for a gathering that is under way, and put the whole parameters into the modules."""
        if self._pending is None:
            return
        work, received, mesh = self._pending
        self._pending = None
        if work is not None:
            work.wait()
        if self._memory is None:
            self._memory = ReleasableMemory([(p.shape, p.compute_dtype.numpy) for p in self.params])
            for param, array in zip(self.params, self._memory.arrays, strict=True):
                param.adopt(array)
        if lazy_storages[0]:
            for array in self._memory.arrays:
                make_writable(array)
        rows = received.reshape(mesh.shard_size, -1)
        at = 0
        for param, array in zip(self.params, self._memory.arrays, strict=True):
            size = param.slot(mesh) * array.itemsize
            for rank in range(mesh.shard_size):
                part = array[param.bounds(rank, mesh)]
                flat = rows[rank, at:at + part.size * array.itemsize].view(array.dtype)
                part[...] = flat.reshape(part.shape)
            at += size
        for param in self.params:
            param.unsharded_param.requires_grad_(param.sharded_param.requires_grad)
            param.register(param.unsharded_param)
            param.smaller_param = None
        self.unsharded, self._cut_smaller = True, False

    def reshard(self) -> None:
        """Put the parts into the modules, and give the memory of the whole parameters back."""
        self.wait()
        if not self.unsharded and not self._cut_smaller:
            return
        for param in self.params:
            param.register(param.sharded_param)
            param.smaller_param = None
        self._release()

    def reshard_after_forward(self) -> None:
        """The same, but with parts of `smaller_mesh`, of which the backward pass gathers the whole again."""
        if self.smaller_mesh is None:
            self.reshard()
            return
        self.wait()
        if not self.unsharded or self._memory is None:
            return
        for param, array in zip(self.params, self._memory.arrays, strict=True):
            param.cut_smaller(array, self.smaller_mesh)
        self._release()
        self._cut_smaller = True

    def _release(self) -> None:
        if lazy_storages[0] and self._memory is not None:
            for array in self._memory.arrays:
                make_writable(array)
        if self._memory is not None:
            self._memory.release()
        self.unsharded = self._cut_smaller = False

    def write_back(self) -> None:
        """Copy this process's part of the whole parameters to the parts."""
        for param in self.params if self.unsharded else ():
            whole = param.unsharded_param
            array = whole._local_tensor._array if param.inner is not None else whole._array
            own = wrap(array[param.bounds(self.mesh.shard_rank)].copy())
            local = param.sharded_param._local_tensor
            local.copy_(own.to(dtype=local.dtype))

    def gather_gradients(self) -> None:
        """Give the whole parameters their whole gradients."""
        for param in self.params:
            grad = param.sharded_param.grad
            if grad is not None and param.inner is None:
                param.unsharded_param.grad = grad.full_tensor().to(dtype=param.unsharded_param.dtype)

    def give_back_gradients(self, write_back: bool) -> None:
        """Take whole gradients away from the whole parameters.

        Args:
            write_back: whether this process's parts of them become those of the parts.
        """
        for param in self.params:
            whole, grad = param.unsharded_param.grad, param.sharded_param.grad
            param.unsharded_param.grad = None
            if write_back and whole is not None and grad is not None:
                own = wrap(whole._array[param.bounds(self.mesh.shard_rank)].copy())
                grad._local_tensor.copy_(own.to(dtype=grad.dtype))

    # ----- reducing -----

    def has_gradients(self) -> bool:
        """Whether a whole parameter has a gradient."""
        return any(p.unsharded_param is not None and p.unsharded_param.grad is not None for p in self.params)

    def reduce(self, async_op: bool = True) -> list[Reduction]:
        """Begin to reduce the gradients, one collective for each dtype.

        Args:
            async_op: return while the collectives run.
        """
        by_dtype: dict[Any, list[tuple[FSDPParam, Any]]] = {}
        for param in self.params:
            grad = param.take_gradient()
            if grad is not None:
                dtype = self.policy.reduce_dtype if self.policy.reduce_dtype is not None and (
                    grad.dtype.is_floating_point) else grad.dtype
                by_dtype.setdefault(dtype, []).append((param, grad))
        return [self._reduced(dtype, members, async_op) for dtype, members in by_dtype.items()]

    def _reduced(self, dtype: Any, members: list[tuple[FSDPParam, Any]], async_op: bool) -> Reduction:
        size = self.mesh.shard_size
        total = sum(param.slot() for param, _ in members)
        send = np.zeros((size, total), dtype.numpy)
        at = 0
        for param, grad in members:
            if grad.is_sparse:
                grad = grad.to_dense()
            if grad.dtype is not dtype:
                grad = grad.to(dtype=dtype)
            array = grad._array
            for rank in range(size):
                part = array[param.bounds(rank)]
                send[rank, at:at + part.size] = part.reshape(-1)
            at += param.slot()
        work = None
        if size == 1:
            output = wrap(send.reshape(-1))
        else:
            output = wrap(np.empty(total, dtype.numpy))
        if size > 1 and self.comm_hook is not None:
            state, hook = self.comm_hook
            hook(state, wrap(send.reshape(-1)), output)
        elif size > 1:
            work = reduce_scatter_tensor(output, wrap(send.reshape(-1)), ReduceOp.SUM, self.mesh.shard_group,
                                         async_op=async_op)
        return Reduction(self, [param for param, _ in members], output, work)

    def nbytes_sharded(self) -> int:
        """The bytes of this process's parts."""
        return sum(int(p.sharded_param._local_tensor.nbytes) for p in self.params)


__all__ = ["FSDPParamGroup", "Reduction"]
