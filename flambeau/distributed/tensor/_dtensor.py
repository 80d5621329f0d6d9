"""`DTensor`: a tensor whose parts different processes have."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, ClassVar

from ..._tensor import Tensor
from ..._tensor import functions as _functions
from ..._tensor.custom_functions.function import Function
from ..._tensor.memory.pickling import _rebuild_from_type_v2, _rebuild_wrapper_subclass
from ..._tensor.meta import mark_meta, reserved
from ..._tensor.overriding.dispatch import without_handlers
from ..._tensor.overriding.protocol import DISABLED
from ..._tensor.tensor import wrap
from ...backends.elementless_array import WrapperArray, without_elements
from ...engine.grad_mode import grad_mode
from .._async_collective_tensor import AsyncCollectiveTensor
from ..collectives import broadcast
from ..device_mesh import DeviceMesh, _mesh_resources
from ..placement_types import Placement, Replicate, Shard, _StridedShard
from ._dtensor_spec import DTensorSpec, spec_of
from ._redistribute import redistribute_local_tensor
from ._sharding import is_shard, row_major_strides, strides_like

functions: Any = _functions


def gradient_placements(placements: Sequence[Placement]) -> tuple[Placement, ...]:
    """The placements of the gradient of a tensor: that of a summand is the whole gradient."""
    return tuple(Replicate() if each.is_partial() else each for each in placements)


def global_shape_and_strides(local: Any, mesh: DeviceMesh,
                             placements: Sequence[Placement]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Shape and strides of the whole tensor if all processes have parts of the same size."""
    shape = list(local.shape)
    for i, placement in enumerate(placements):
        if is_shard(placement):
            dim: int = placement.dim  # type: ignore[attr-defined]
            if dim >= len(shape):
                raise AssertionError(f"Sharding dim {dim} greater than tensor ndim {len(shape)} for placement "
                                     f"number {i}.")
            shape[dim] *= mesh.size(i)
    return tuple(shape), strides_like(local.stride(), shape)


def normalized(placements: Sequence[Placement], ndim: int) -> tuple[Placement, ...]:
    """Placements with dimensions counted from the front."""
    result: list[Placement] = []
    for each in placements:
        if isinstance(each, _StridedShard) and each.dim < 0:
            each = _StridedShard(each.dim + ndim, split_factor=each.split_factor)
        elif isinstance(each, Shard) and each.dim < 0:
            each = Shard(each.dim + ndim)
        result.append(each)
    return tuple(result)


class DTensor(Tensor):
    """A tensor of a mesh of processes: its placements say which part of it each process has.

    Operators compute on the parts, and communicate where they need more. `distribute_tensor`, `DTensor.from_local` and
    factories such as `zeros` make it.

    Args:
        local_tensor: this process's part.
        spec: the mesh, the placements, and the metadata of the whole tensor.
        requires_grad: whether operators on it are recorded.

    >>> import flambeau as torch
    >>> from flambeau.distributed.tensor import DTensor, Shard
    >>> dist = torch.distributed
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> x = DTensor.from_local(torch.ones(2), dist.init_device_mesh("cpu", (1,)), [Shard(0)])
    >>> (x + x).full_tensor(), x.placements
    (tensor([2., 2.]), (Shard(dim=0),))
    >>> dist.destroy_process_group()
    """

    _part_or_pending: Tensor
    _spec: DTensorSpec
    _lacks_elements = _has_parts = True
    #: runs operators; `_dispatch` sets it
    _op_dispatcher: ClassVar[Any] = None
    __torch_function__ = DISABLED

    @staticmethod
    def __new__(cls, local_tensor: Tensor, spec: DTensorSpec, *, requires_grad: bool = False) -> DTensor:
        meta = spec.tensor_meta
        assert meta is not None
        if local_tensor._requires_grad and not requires_grad:
            warnings.warn("To construct DTensor from torch.Tensor, it's recommended to use local_tensor.detach() and "
                          "make requires_grad consistent.", stacklevel=2)
        out: DTensor = wrap(without_elements(
            reserved(meta.shape, meta.dtype.numpy, spec.strides_unless_row_major), WrapperArray), cls)
        out._local_tensor, out._spec = local_tensor, spec
        if local_tensor.is_meta:
            mark_meta(out)
        out._requires_grad = requires_grad
        return out

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    @property
    def _local_tensor(self) -> Tensor:
        """This process's part, once it is there."""
        local: Tensor = self._part_or_pending
        if type(local) is AsyncCollectiveTensor:
            local = self._part_or_pending = local.trigger_wait()
        return local

    @_local_tensor.setter
    def _local_tensor(self, part: Tensor) -> None:
        self._part_or_pending = part

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return DTensor._op_dispatcher.dispatch(func, args, kwargs or {})

    def _own_part(self) -> Tensor:
        """This process's part, after reductions that are pending: what it draws random numbers for."""
        with without_handlers():
            spec = self._spec
            return redistribute_local_tensor(self._local_tensor, spec, spec.with_placements(
                gradient_placements(spec.placements)))

    def _by_rows(self, function: Any, length: int) -> DTensor:
        """The result of a function that makes rows of `length` elements of rows."""
        spec, last = self._spec, len(self._spec.shape) - 1
        whole = spec.with_placements([each if is_shard(each) and each.dim != last  # type: ignore[attr-defined]
                                      else Replicate() for each in spec.placements])
        shape = (*spec.shape[:-1], length)
        with without_handlers():
            local = function(redistribute_local_tensor(self._local_tensor, spec, whole))
            return DTensor(local, spec_of(spec.mesh, whole.placements, shape, row_major_strides(shape), local.dtype))

    @staticmethod
    def _update_operands(operands: tuple[Any, ...]) -> tuple[Any, ...]:
        """The parts of a parameter, its gradient and its state, for an update of each element."""
        spec = operands[0]._spec
        return tuple(None if each is None else each if not isinstance(each, DTensor) else
                     each._local_tensor if each._spec.placements == spec.placements else
                     redistribute_local_tensor(each._local_tensor, each._spec,
                                               each._spec.with_placements(spec.placements)) for each in operands)

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        return (f"DTensor(local_tensor={self._local_tensor}, device_mesh={self._spec.mesh}, "
                f"placements={self._spec.placements})")

    def __reduce_ex__(self, protocol: Any) -> Any:
        """PyTorch's form, so that each library reads the files of the other."""
        own = {name: value for name, value in self.__dict__.items() if name not in ("_part_or_pending", "_spec")}
        described = (type(self), self.dtype, tuple(self.shape), tuple(self.stride()), 0, self.layout, self.device,
                     self.requires_grad)
        return _rebuild_from_type_v2, (_rebuild_wrapper_subclass, type(self), described, (
            own or None, {"_local_tensor": self._local_tensor, "_spec": self._spec}))

    @classmethod
    def _unpickled(cls, dtype: Any, size: Any, stride: Any, requires_grad: bool) -> DTensor:
        """A tensor of a file, which gets its part and its spec next."""
        row_major = tuple(stride) == row_major_strides(size)
        out: DTensor = wrap(reserved(tuple(size), dtype.numpy, None if row_major else tuple(stride)), cls)
        out._requires_grad = requires_grad
        return out

    def __deepcopy__(self, memo: dict[int, Any]) -> DTensor:
        found = memo.get(id(self))
        if found is not None:
            return found
        if not self.is_leaf:
            raise RuntimeError("Only Tensors created explicitly by the user (graph leaves) support the deepcopy "
                               "protocol at the moment.")
        from copy import deepcopy

        out = type(self)(deepcopy(self._local_tensor, memo), self._spec, requires_grad=self.requires_grad)
        for name, value in self.__dict__.items():
            if name not in out.__dict__ and not name.startswith("_"):
                setattr(out, name, deepcopy(value, memo))
        if getattr(self, "_is_param", False):
            out._is_param = True  # type: ignore[attr-defined]
        if self.grad is not None:
            out.grad = deepcopy(self.grad, memo)
        memo[id(self)] = out
        return out

    def __tensor_flatten__(self) -> tuple[list[str], Any]:
        """The names of the tensors that it is made of, and the rest."""
        return ["_local_tensor"], (self._spec, self.requires_grad)

    @staticmethod
    def __tensor_unflatten__(inner_tensors: dict[str, Any], flatten_spec: Any, outer_size: Any,
                             outer_stride: Any) -> DTensor:
        """The tensor of its parts."""
        spec, requires_grad = flatten_spec
        return DTensor(inner_tensors["_local_tensor"],
                       spec_of(spec.mesh, spec.placements, outer_size, outer_stride, spec.dtype),
                       requires_grad=requires_grad)

    @property
    def device_mesh(self) -> DeviceMesh:
        """The processes."""
        return self._spec.mesh

    @property
    def placements(self) -> tuple[Placement, ...]:
        """A placement for each dimension of the mesh."""
        return self._spec.placements

    @staticmethod
    def from_local(local_tensor: Tensor, device_mesh: DeviceMesh | None = None,
                   placements: Sequence[Placement] | None = None, *, run_check: bool = False, shape: Any = None,
                   stride: tuple[int, ...] | None = None,
                   grad_placements: Sequence[Placement] | None = None) -> DTensor:
        """Make a distributed tensor of the parts that processes have; differentiable.

        Args:
            local_tensor: this process's part.
            device_mesh: the processes; default: the mesh of the `with` block.
            placements: one for each dimension of the mesh; default: all replicated.
            run_check: copy the tensor of the first process of each replicated dimension to the others.
            shape: of the whole tensor; needed if parts differ in size.
            stride: of the whole tensor, with `shape`.
            grad_placements: the placements of the part's gradient.

        Raises:
            RuntimeError: `local_tensor` is distributed, or only one of shape and stride is given (PyTorch's texts).
        """
        if isinstance(local_tensor, DTensor):
            raise RuntimeError("the local_tensor argument only accepts torch.Tensor but got "
                               f"{type(local_tensor)} value.")
        mesh = device_mesh or _mesh_resources.get_current_mesh()
        placed = normalized(placements or [Replicate()] * mesh.ndim, local_tensor.ndim)
        reductions = {each.reduce_op for each in placed if each.is_partial()}  # type: ignore[attr-defined]
        if len(reductions) > 1 and reductions != {"sum", "avg"}:
            raise ValueError(f"Mixed Partial reduce types are not supported: {sorted(reductions)}; all Partial "
                             "placements must have the same reduction")
        if bool(shape) != bool(stride):
            raise RuntimeError(f"Found shape:{shape}, stride:{stride}.",
                               "Please pass both shape and stride at the same time.")
        return _FromLocal.apply(
            local_tensor, mesh, placed, run_check, shape, stride,
            None if grad_placements is None else tuple(grad_placements))

    def to_local(self, *, grad_placements: Sequence[Placement] | None = None) -> Tensor:
        """This process's part; differentiable.

        Args:
            grad_placements: how the gradient of the part is placed; default: as the tensor is.
        """
        if not grad_mode.get():
            return self._part_or_pending
        return _ToLocal.apply(
            self, None if grad_placements is None else tuple(grad_placements))

    def redistribute(self, device_mesh: DeviceMesh | None = None, placements: Sequence[Placement] | None = None, *,
                     async_op: bool = False, forward_dtype: Any = None, backward_dtype: Any = None) -> DTensor:
        """Change the placements; differentiable.

        Args:
            device_mesh: the same mesh.
            placements: one for each dimension of the mesh.
            async_op: return before the collective has ended: what reads the part waits, `to_local` returns an
                `AsyncCollectiveTensor`. Only of a collective that fills the part itself, the last of the change.
            forward_dtype: the dtype in which parts are sent, and of the result.
            backward_dtype: the dtype in which gradients are sent.

        Raises:
            RuntimeError: there are no placements, or a new `Partial` is asked for (PyTorch's texts).
        """
        mesh = device_mesh or self._spec.mesh
        if placements is None:
            raise RuntimeError("placements is needed for redistribute!")
        for old, new in zip(self._spec.placements, placements, strict=True):
            if new.is_partial() and old != new:
                raise RuntimeError(f"Can not redistribute from {old} to {new}, redistributing to Partial is for "
                                   "internal use only!")
        return _Redistribute.apply(
            self, mesh, normalized(placements, len(self._spec.shape)), forward_dtype, backward_dtype, async_op)

    def full_tensor(self, *, grad_placements: Sequence[Placement] | None = None) -> Tensor:
        """The whole tensor; differentiable.

        Args:
            grad_placements: how its gradient is placed; default: replicated.
        """
        whole = self.redistribute(placements=[Replicate()] * self._spec.mesh.ndim)
        return whole.to_local(grad_placements=grad_placements)


def _rebuild(local: Any, spec: DTensorSpec, requires_grad: bool) -> DTensor:
    """A tensor of a file of flambeau 0.1."""
    return DTensor(local, spec, requires_grad=requires_grad)


class _FromLocal(Function):
    @staticmethod
    def forward(ctx: Any, local: Any, mesh: DeviceMesh, placements: Any, run_check: bool, shape: Any, stride: Any,
                grad_placements: Any) -> Any:
        ctx.placements, ctx.grad_placements, ctx.mesh = placements, grad_placements, mesh
        ctx.set_materialize_grads(False)
        if not shape:
            shape, stride = global_shape_and_strides(local, mesh, placements)
        if mesh.get_coordinate() is None:
            local = local.new_empty(0)
        elif run_check:
            for i, placement in enumerate(placements):
                if placement.is_replicate():
                    local = local.contiguous()
                    broadcast(local, group=mesh.get_group(i), group_src=0)
        return DTensor(_part(local), spec_of(mesh, placements, shape, stride, local.dtype))

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        grad = grads[0]
        if grad is None:
            return (None,) * 7
        wanted = gradient_placements(ctx.placements) if ctx.grad_placements is None else ctx.grad_placements
        if grad.placements != wanted:
            grad = _Redistribute.apply(grad, ctx.mesh, wanted, None, None)
        return grad.to_local(), None, None, None, None, None, None


def _part(local: Any) -> Any:
    """A tensor of the same memory without history."""
    if type(local) is AsyncCollectiveTensor:
        return local.detach()
    with without_handlers():
        return local.detach()


class _ToLocal(Function):
    @staticmethod
    def forward(ctx: Any, input: Any, grad_placements: Any) -> Any:
        ctx.spec, ctx.grad_placements = input._spec, grad_placements
        ctx.set_materialize_grads(False)
        return _part(input._part_or_pending)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        if grads[0] is None:
            return None, None
        spec = ctx.spec
        placements = gradient_placements(spec.placements) if ctx.grad_placements is None else ctx.grad_placements
        return DTensor.from_local(grads[0], spec.mesh, placements, shape=spec.shape,
                                  stride=strides_like(grads[0].stride(), spec.shape) or (1,)) if spec.shape else (
            DTensor.from_local(grads[0], spec.mesh, placements)), None


class _Redistribute(Function):
    @staticmethod
    def forward(ctx: Any, input: Any, mesh: DeviceMesh, placements: Any, forward_dtype: Any,
                backward_dtype: Any, async_op: bool = False) -> Any:
        spec, local = input._spec, input._local_tensor
        ctx.spec, ctx.backward_dtype = spec, backward_dtype
        if forward_dtype is not None and forward_dtype is not local.dtype:
            local = local.to(dtype=forward_dtype)
        moved = spec_of(spec.mesh, spec.placements, spec.shape, spec.stride, local.dtype)
        target = DTensorSpec(mesh, placements, moved.tensor_meta)
        return DTensor(_part(redistribute_local_tensor(local, moved, target, async_op)), target)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        grad, spec = grads[0], ctx.spec
        placements = tuple(old if new == old and not old.is_partial() else new for old, new in zip(
            grad.placements, gradient_placements(spec.placements), strict=True))
        if ctx.backward_dtype is not None and grad.dtype is not ctx.backward_dtype:
            grad = grad.to(dtype=ctx.backward_dtype)
        out = grad if grad.placements == placements else _Redistribute.apply(grad, spec.mesh, placements, None, None)
        return (out if out.dtype is spec.dtype else out.to(dtype=spec.dtype)), None, None, None, None, None




__all__ = ["DTensor", "global_shape_and_strides", "gradient_placements", "normalized"]
