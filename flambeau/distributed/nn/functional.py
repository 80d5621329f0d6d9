"""Collectives through which gradients flow: the backward pass of one is another collective of the same processes."""

from __future__ import annotations

import warnings
from typing import Any

from ..._tensor import Tensor
from ..._tensor import functions as _functions
from ..._tensor.custom_functions.function import Function
from ...c10d.reduce_op import ReduceOp
from .. import collectives as dist
from ..groups.queries import get_rank, get_world_size

__all__ = ["all_gather", "all_reduce", "all_to_all", "all_to_all_single", "broadcast", "gather", "reduce",
           "reduce_scatter", "scatter"]

functions: Any = _functions


def _deprecated(name: str, instead: str) -> None:
    warnings.warn(f"torch.distributed.nn.functional.{name} is deprecated, use {instead} instead.", FutureWarning,
                  stacklevel=3)


class _Broadcast(Function):
    @staticmethod
    def forward(ctx: Any, src: int, group: Any, tensor: Any) -> Any:
        ctx.src, ctx.group, ctx.rank = src, group, get_rank()
        out = tensor.clone()
        dist.broadcast(out, src, group)
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        total = _Reduce.apply(ctx.src, ReduceOp.SUM, ctx.group, grads[0])
        return None, None, total if ctx.rank == ctx.src else functions.zeros_like(total)


class _Gather(Function):
    @staticmethod
    def forward(ctx: Any, dst: int, group: Any, tensor: Any) -> Any:
        ctx.dst, ctx.group = dst, group
        outputs = [functions.zeros_like(tensor) for _ in range(get_world_size(group))]
        dist.gather(tensor.contiguous(), outputs if get_rank(group) == dst else None, dst, group)
        return tuple(outputs)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return None, None, _Scatter.apply(ctx.dst, ctx.group, *grads)


class _Scatter(Function):
    @staticmethod
    def forward(ctx: Any, src: int, group: Any, *tensors: Any) -> Any:
        ctx.src, ctx.group = src, group
        out = functions.zeros_like(tensors[0])
        parts = [each.contiguous() for each in tensors] if get_rank(group) == src else None
        dist.scatter(out, parts, src, group)
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return (None, None, *_Gather.apply(ctx.src, ctx.group, grads[0]))


class _Reduce(Function):
    @staticmethod
    def forward(ctx: Any, dst: int, op: Any, group: Any, tensor: Any) -> Any:
        ctx.dst, ctx.group = dst, group
        out = tensor.clone()
        dist.reduce(out, dst, op, group)
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return None, None, None, _Broadcast.apply(ctx.dst, ctx.group, grads[0])


class _ReduceScatter(Function):
    @staticmethod
    def forward(ctx: Any, op: Any, group: Any, output: Any, *tensors: Any) -> Any:
        ctx.group = group
        out = output.contiguous()
        dist.reduce_scatter(out, [each.contiguous() for each in tensors], op, group)
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return (None, None, None, *_AllGather.apply(ctx.group, grads[0]))


class _AllGather(Function):
    @staticmethod
    def forward(ctx: Any, group: Any, tensor: Any) -> Any:
        ctx.group = group
        outputs = [functions.empty_like(tensor) for _ in range(get_world_size(group))]
        dist.all_gather(outputs, tensor.contiguous(), group)
        return tuple(outputs)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        own = functions.empty_like(grads[get_rank(ctx.group)])
        return None, _ReduceScatter.apply(ReduceOp.SUM, ctx.group, own, *grads)


class _AllToAll(Function):
    @staticmethod
    def forward(ctx: Any, group: Any, outputs: list[Any], *tensors: Any) -> Any:
        ctx.group, ctx.shapes = group, [each.shape for each in tensors]
        dist.all_to_all(outputs, [each.contiguous() for each in tensors], group)
        return tuple(outputs)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        outputs = [grads[0].new_empty(shape) for shape in ctx.shapes]
        return (None, None, *_AllToAll.apply(ctx.group, outputs, *grads))


class _AllToAllSingle(Function):
    @staticmethod
    def forward(ctx: Any, group: Any, output: Any, output_sizes: Any, input_sizes: Any, input: Any) -> Any:
        ctx.group, ctx.shape = group, input.shape
        ctx.output_sizes, ctx.input_sizes = output_sizes, input_sizes
        dist.all_to_all_single(output, input.contiguous(), output_sizes, input_sizes, group)
        return output

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        own = grads[0].new_empty(ctx.shape)
        return None, None, None, None, _AllToAllSingle.apply(ctx.group, own, ctx.input_sizes, ctx.output_sizes,
                                                             grads[0].contiguous())


class _AllReduce(Function):
    @staticmethod
    def forward(ctx: Any, op: Any, group: Any, tensor: Any) -> Any:
        ctx.op, ctx.group = op, group
        out = tensor.clone().contiguous()
        dist.all_reduce(out, op, group)
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return None, None, _AllReduce.apply(ctx.op, ctx.group, grads[0])


def broadcast(tensor: Tensor, src: int, group: Any = None) -> Tensor:
    """Copy a tensor from one process to all; gradients are added up there.

    Args:
        tensor: the tensor.
        src: the sender's global rank.
        group: the processes; all if None.
    """
    _deprecated("broadcast", "torch.distributed._functional_collectives.broadcast")
    return _Broadcast.apply(src, group, tensor)


def gather(tensor: Tensor, dst: int = 0, group: Any = None) -> tuple[Tensor, ...]:
    """Copy the tensors of all processes to one of them, zeros to the others.

    Args:
        tensor: this process's tensor.
        dst: the destination's global rank.
        group: the processes; all if None.
    """
    return _Gather.apply(dst, group, tensor)


def scatter(tensors: list[Tensor], src: int = 0, group: Any = None) -> Tensor:
    """Copy one tensor to each process from one of them.

    Args:
        tensors: a tensor for each process; in all processes, for their shape.
        src: the source's global rank.
        group: the processes; all if None.
    """
    return _Scatter.apply(src, group, *tensors)


def reduce(tensor: Tensor, dst: int, op: Any = ReduceOp.SUM, group: Any = None) -> Tensor:
    """Reduce a tensor over all processes at one of them.

    Args:
        tensor: the tensor.
        dst: the destination's global rank.
        op: the reduction; gradients are those of a sum.
        group: the processes; all if None.
    """
    return _Reduce.apply(dst, op, group, tensor)


def reduce_scatter(output: Tensor, input_list: list[Tensor], op: Any = ReduceOp.SUM, group: Any = None) -> Tensor:
    """Reduce a list of tensors over all processes, of which each keeps one.

    Args:
        output: a tensor to write to.
        input_list: a tensor for each process.
        op: the reduction; gradients are those of a sum.
        group: the processes; all if None.
    """
    _deprecated("reduce_scatter", "torch.distributed._functional_collectives.reduce_scatter_tensor")
    return _ReduceScatter.apply(op, group, output, *input_list)


def all_gather(tensor: Tensor, group: Any = None) -> tuple[Tensor, ...]:
    """Give all processes the tensors of all.

    Args:
        tensor: this process's tensor.
        group: the processes; all if None.

    >>> import warnings, flambeau as torch
    >>> dist = torch.distributed
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> x = torch.ones(2, requires_grad=True)
    >>> with warnings.catch_warnings(action="ignore"):
    ...     torch.cat(dist.nn.functional.all_gather(x)).sum().backward()
    >>> x.grad
    tensor([1., 1.])
    >>> dist.destroy_process_group()
    """
    _deprecated("all_gather", "torch.distributed._functional_collectives.all_gather_tensor_autograd")
    return _AllGather.apply(group, tensor)


def all_to_all(output_tensor_list: list[Tensor], input_tensor_list: list[Tensor], group: Any = None) -> tuple[Tensor,
                                                                                                              ...]:
    """Send a tensor to each process and receive one of each.

    Args:
        output_tensor_list: the tensors to write to.
        input_tensor_list: the tensors to send.
        group: the processes; all if None.
    """
    return _AllToAll.apply(group, output_tensor_list, *input_tensor_list)


def all_to_all_single(output: Tensor, input: Tensor, output_split_sizes: Any = None, input_split_sizes: Any = None,
                      group: Any = None) -> Tensor:
    """Send a part of a tensor to each process and receive a part of another of each.

    Args:
        output: the tensor to write to.
        input: the tensor to send.
        output_split_sizes: the lengths of the output's parts.
        input_split_sizes: the lengths of the input's parts.
        group: the processes; all if None.
    """
    _deprecated("all_to_all_single", "torch.distributed._functional_collectives.all_to_all_single_autograd")
    return _AllToAllSingle.apply(group, output, output_split_sizes,
                                 input_split_sizes, input)


def all_reduce(tensor: Tensor, op: Any = ReduceOp.SUM, group: Any = None) -> Tensor:
    """Reduce a tensor over all processes.

    Args:
        tensor: the tensor.
        op: the reduction; gradients are reduced by it, too.
        group: the processes; all if None.
    """
    _deprecated("all_reduce", "torch.distributed._functional_collectives.all_reduce")
    return _AllReduce.apply(op, group, tensor)
