"""Collectives that return new tensors, which are there when they are first used."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from .._tensor import Tensor
from .._tensor import functions as _functions
from .._tensor.custom_functions.function import Function
from .._tensor.overriding.dispatch import dispatch_modes
from .._tensor.tensor import wrap
from ..c10d.collective_counts import functional
from ..c10d.process_group import ProcessGroup
from ..c10d.reduce_op import ReduceOp
from . import collectives as dist
from ._async_collective_tensor import AsyncCollectiveTensor, pending, wait_tensor
from .groups.making import _new_group_with_tag
from .groups.queries import (
    _find_pg_by_ranks_and_tag,
    _get_group_tag,
    _group_or_default_group,
    _resolve_process_group,
    get_process_group_ranks,
)

__all__ = ["AsyncCollectiveTensor", "all_gather_into_tensor_coalesced", "all_gather_single",
           "all_gather_single_autograd", "all_gather_single_coalesced", "all_gather_tensor",
           "all_gather_tensor_autograd", "all_reduce", "all_reduce_coalesced", "all_to_all_single",
           "all_to_all_single_autograd", "broadcast", "permute_tensor", "reduce_scatter_single",
           "reduce_scatter_single_autograd", "reduce_scatter_single_coalesced", "reduce_scatter_tensor",
           "reduce_scatter_tensor_autograd", "reduce_scatter_tensor_coalesced", "wait_tensor"]

functions: Any = _functions
_OPS = {"sum": ReduceOp.SUM, "avg": ReduceOp.AVG, "product": ReduceOp.PRODUCT, "min": ReduceOp.MIN, "max": ReduceOp.MAX,
        "band": ReduceOp.BAND, "bor": ReduceOp.BOR, "bxor": ReduceOp.BXOR}


def _op(name: str) -> Any:
    if name.lower() not in _OPS:
        raise ValueError(f"Unsupported reduction operation: {name}")
    return _OPS[name.lower()]


def _resolve_group(group: Any, tag: str = "") -> ProcessGroup:
    """A group of what programs name one by: itself, its name, its ranks, a mesh, or a mesh and its dimension."""
    if group is None or isinstance(group, ProcessGroup):
        return _group_or_default_group(group)
    if isinstance(group, str):
        return _resolve_process_group(group)
    if isinstance(group, tuple) and len(group) == 2 and hasattr(group[0], "get_group"):
        return group[0].get_group(group[1])
    if hasattr(group, "get_group"):
        if group.ndim != 1:
            raise AssertionError("Only 1D mesh is supported, pass in (DeviceMesh, int) together if mesh > 1D")
        return group.get_group()
    if isinstance(group, list):
        ranks = [rank for each in group for rank in each] if isinstance(group[0], list) else group
        found = _find_pg_by_ranks_and_tag(tag, ranks)
        return found if found is not None else _new_group_with_tag(ranks, pg_tag=tag or "functional")
    raise ValueError("Invalid type for group, must be one of List, Processgroup, DeviceMesh or (DeviceMesh, int).")


def _expand_group(group: Any, tag: str = "") -> tuple[str, list[int], int]:
    """The tag, the ranks and the size of what programs name a group by.

    Raises:
        ValueError: groups of a list differ in size, or it names no group (PyTorch's texts).
    """
    if isinstance(group, list):
        if not isinstance(group[0], list):
            return tag, group, len(group)
        size = len(group[0])
        for each in group:
            if len(each) != size:
                raise ValueError(f"group sizes must be identical found {size} and {len(each)}")
        return tag, [rank for each in group for rank in each], size
    if isinstance(group, tuple) and (len(group) != 2 or not hasattr(group[0], "get_group")):
        raise ValueError("Invalid tuple for group must be (DeviceMesh, int)")
    pg = _resolve_group(group)
    ranks = get_process_group_ranks(pg)
    return tag or _get_group_tag(pg), ranks, len(ranks)


def _started(start: Any, out: Any, *arguments: Any, name: str, group: Any) -> Any:
    """Start a collective that fills `out`; its result, for whose first use there is a wait.

    Where a mode looks at operators, it has ended, so that they are those of tensors.
    """
    waits = bool(dispatch_modes.get())
    with functional(name):
        work = start(out, *arguments, group=group, async_op=not waits)
    return out if waits else pending(out, work)


def _there(tensor: Any) -> Any:
    """The elements of a tensor, without its history."""
    return tensor.trigger_wait() if isinstance(tensor, AsyncCollectiveTensor) else tensor.detach()


def _copy(tensor: Any) -> Any:
    return _there(tensor).clone().contiguous()


def broadcast(self: Tensor, src: int, group: Any, tag: str = "") -> Tensor:
    """The tensor of one process.

    Args:
        self: this process's tensor.
        src: the sender's rank in the group.
        group: the processes.
        tag: tells groups of the same ranks apart.
    """
    return _started(functools.partial(dist.broadcast, group_src=src), _copy(self), name="broadcast",
                    group=_resolve_group(group, tag))


class _AllReduce(Function):
    @staticmethod
    def forward(ctx: Any, tensor: Any, op: str, group: Any) -> Any:
        ctx.op, ctx.group = op, group
        return _started(dist.all_reduce, _copy(tensor), _op(op), name="all_reduce", group=group)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        if ctx.op.lower() != "sum":
            raise RuntimeError(f"all_reduce backward only supports 'sum' reduction, got '{ctx.op.lower()}'")
        return wait_tensor(_AllReduce.apply(grads[0], ctx.op, ctx.group)), None, None


def all_reduce(self: Tensor, reduceOp: str, group: Any, tag: str = "") -> Tensor:
    """The reduction of a tensor over all processes.

    Args:
        self: this process's tensor.
        reduceOp: "sum", "avg", "product", "min", "max", "band", "bor" or "bxor".
        group: the processes.
        tag: tells groups of the same ranks apart.

    >>> import flambeau as torch
    >>> from flambeau.distributed import _functional_collectives as collectives
    >>> dist = torch.distributed
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> collectives.all_reduce(torch.ones(2), "sum", dist.group.WORLD) * 3
    tensor([3., 3.])
    >>> dist.destroy_process_group()
    """
    if self.is_meta:  # a result of any group has these sizes
        _op(reduceOp)
        return self.new_empty(self.shape)
    return _AllReduce.apply(self, reduceOp, _resolve_group(group, tag))


def _gathered(tensor: Any, group: ProcessGroup) -> Any:
    own = _there(tensor).contiguous()
    out = own.new_empty((own.shape[0] * group.size(), *own.shape[1:]))
    return _started(dist.all_gather_into_tensor, out, own, name="all_gather_into_tensor", group=group)


def _moved(tensor: Any, dim: int, n: int) -> Any:
    """Parts along the first dimension, along another one."""
    return tensor if dim == 0 else functions.cat(functions.chunk(wait_tensor(tensor), n, 0), dim)


class _AllGather(Function):
    @staticmethod
    def forward(ctx: Any, tensor: Any, dim: int, group: Any) -> Any:
        ctx.dim, ctx.group = dim, group
        return _moved(_gathered(tensor, group), dim, group.size())

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return wait_tensor(_ReduceScatter.apply(grads[0], "sum", ctx.dim, ctx.group)), None, None


class _ReduceScatter(Function):
    @staticmethod
    def forward(ctx: Any, tensor: Any, op: str, dim: int, group: Any) -> Any:
        ctx.op, ctx.dim, ctx.group = op, dim, group
        n = group.size()
        own = _there(tensor)
        if own.shape[dim] % n:
            raise AssertionError(f"input dimension {dim} ({own.shape[dim]} must be a multiple of group_size {n})")
        own = (own if dim == 0 else functions.cat(functions.chunk(own, n, dim))).contiguous()
        out = own.new_empty((own.shape[0] // n, *own.shape[1:]))
        return _started(dist.reduce_scatter_tensor, out, own, _op(op), name="reduce_scatter_tensor", group=group)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return wait_tensor(_AllGather.apply(grads[0], ctx.dim, ctx.group)), None, None, None


def all_gather_tensor(self: Tensor, gather_dim: int, group: Any, tag: str = "") -> Tensor:
    """The tensors of all processes, joined.

    Args:
        self: this process's tensor.
        gather_dim: the dimension along which they are joined.
        group: the processes.
        tag: tells groups of the same ranks apart.
    """
    pg = _resolve_group(group, tag)
    return _moved(_gathered(self, pg), gather_dim % max(1, self.ndim), pg.size())


def all_gather_tensor_autograd(self: Tensor, gather_dim: int, group: Any, tag: str = "") -> Tensor:
    """The tensors of all processes, joined; gradients are reduced and scattered.

    Args:
        self: this process's tensor.
        gather_dim: the dimension along which they are joined.
        group: the processes.
        tag: tells groups of the same ranks apart.
    """
    return _AllGather.apply(self, gather_dim % max(1, self.ndim),
                            _resolve_group(group, tag))


def reduce_scatter_tensor(self: Tensor, reduceOp: str, scatter_dim: int, group: Any, tag: str = "") -> Tensor:
    """This process's part of the reduction of a tensor.

    Args:
        self: this process's tensor.
        reduceOp: the reduction, as of `all_reduce`.
        scatter_dim: the dimension along which the result is divided.
        group: the processes.
        tag: tells groups of the same ranks apart.
    """
    return reduce_scatter_tensor_autograd(self.detach(), reduceOp, scatter_dim, group, tag)


def reduce_scatter_tensor_autograd(self: Tensor, reduceOp: str, scatter_dim: int, group: Any, tag: str = "") -> Tensor:
    """This process's part of the reduction of a tensor; gradients are gathered.

    Args:
        self: this process's tensor.
        reduceOp: the reduction, as of `all_reduce`.
        scatter_dim: the dimension along which the result is divided.
        group: the processes.
        tag: tells groups of the same ranks apart.
    """
    return _ReduceScatter.apply(self, reduceOp, scatter_dim % max(1, self.ndim),
                                _resolve_group(group, tag))


class _AllToAll(Function):
    @staticmethod
    def forward(ctx: Any, tensor: Any, output_sizes: Any, input_sizes: Any, group: Any) -> Any:
        ctx.output_sizes, ctx.input_sizes, ctx.group = output_sizes, input_sizes, group
        own = _there(tensor).contiguous()
        length = own.shape[0] if output_sizes is None else sum(output_sizes)
        out = own.new_empty((length, *own.shape[1:]))
        return _started(dist.all_to_all_single, out, own, output_sizes, input_sizes, name="all_to_all_single",
                        group=group)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return wait_tensor(_AllToAll.apply(grads[0], ctx.input_sizes, ctx.output_sizes, ctx.group)), None, None, None


def all_to_all_single(self: Tensor, output_split_sizes: Sequence[int] | None, input_split_sizes: Sequence[int] | None,
                      group: Any, tag: str = "") -> Tensor:
    """A part of the tensor of each process.

    Args:
        self: the tensor to send.
        output_split_sizes: the lengths of the result's parts; equal ones if None.
        input_split_sizes: the lengths of the tensor's parts.
        group: the processes.
        tag: tells groups of the same ranks apart.
    """
    return all_to_all_single_autograd(self.detach(), output_split_sizes, input_split_sizes, group, tag)


def all_to_all_single_autograd(self: Tensor, output_split_sizes: Sequence[int] | None,
                               input_split_sizes: Sequence[int] | None, group: Any, tag: str = "") -> Tensor:
    """A part of the tensor of each process; gradients are sent back.

    Args:
        self: the tensor to send.
        output_split_sizes: the lengths of the result's parts; equal ones if None.
        input_split_sizes: the lengths of the tensor's parts.
        group: the processes.
        tag: tells groups of the same ranks apart.
    """
    return _AllToAll.apply(self, output_split_sizes, input_split_sizes,
                           _resolve_group(group, tag))


def permute_tensor(self: Tensor, src_dst: Sequence[int], group: Any, tag: str = "") -> Tensor:
    """The tensor of another process.

    Args:
        self: the tensor to send.
        src_dst: for each rank, the rank that its tensor goes to.
        group: the processes.
        tag: tells groups of the same ranks apart.
    """
    pg = _resolve_group(group, tag)
    rank, count = pg.rank(), self.numel()
    incoming = [count if each == rank else 0 for each in src_dst]
    outgoing = [0] * pg.size()
    outgoing[src_dst[rank]] = count
    flat = _copy(self).view(-1)
    out = wrap(np.zeros_like(flat._array))
    out = _started(dist.all_to_all_single, out, flat, incoming, outgoing, name="all_to_all_single", group=pg)
    return out.view(self.shape)


def all_reduce_coalesced(self: list[Tensor], reduceOp: str, group: Any, tag: str = "") -> list[Tensor]:
    """The reductions of several tensors.

    Args:
        self: this process's tensors.
        reduceOp: the reduction, as of `all_reduce`.
        group: the processes.
        tag: tells groups of the same ranks apart.
    """
    with functional("all_reduce_coalesced"):
        return [all_reduce(each, reduceOp, group, tag) for each in self]


def all_gather_into_tensor_coalesced(self: list[Tensor], group: Any, tag: str = "") -> list[Tensor]:
    """Several `all_gather_tensor` along the first dimension.

    Args:
        self: this process's tensors.
        group: the processes.
        tag: tells groups of the same ranks apart.
    """
    with functional("all_gather_into_tensor_coalesced"):
        return [all_gather_tensor(each, 0, group, tag) for each in self]


def reduce_scatter_tensor_coalesced(inputs: list[Tensor], reduceOp: str, scatter_dim: list[int], group: Any,
                                    tag: str = "") -> list[Tensor]:
    """Several `reduce_scatter_tensor`.

    Args:
        inputs: this process's tensors.
        reduceOp: the reduction, as of `all_reduce`.
        scatter_dim: the dimension of each.
        group: the processes.
        tag: tells groups of the same ranks apart.
    """
    with functional("reduce_scatter_tensor_coalesced"):
        return [reduce_scatter_tensor(each, reduceOp, dim, group, tag)
                for each, dim in zip(inputs, scatter_dim, strict=True)]


#: PyTorch 2.13's names of these functions
all_gather_single, all_gather_single_autograd = all_gather_tensor, all_gather_tensor_autograd
all_gather_single_coalesced = all_gather_into_tensor_coalesced
reduce_scatter_single, reduce_scatter_single_autograd = reduce_scatter_tensor, reduce_scatter_tensor_autograd
reduce_scatter_single_coalesced = reduce_scatter_tensor_coalesced
