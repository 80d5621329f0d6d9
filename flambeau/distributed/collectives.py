"""Collectives of tensors: the functions of `torch.distributed` that all processes of a group call together."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from .._tensor import Tensor
from ..c10d.options import (
    AllgatherOptions,
    AllreduceCoalescedOptions,
    AllreduceOptions,
    AllToAllOptions,
    BarrierOptions,
    BroadcastOptions,
    GatherOptions,
    ReduceOptions,
    ReduceScatterOptions,
    ScatterOptions,
)
from ..c10d.process_group import ProcessGroup
from ..c10d.reduce_op import ReduceOp
from ..c10d.work import Work
from ..c10d.world import world
from .collective_checks import (
    _canonicalize_group_rank,
    _check_complex,
    _check_only_root_has,
    _check_single_tensor,
    _check_tensor_list,
    _checked_list,
    _ensure_all_tensors_same_dtype,
    _finished,
    _reducing,
    _with,
)
from .groups.queries import _group_or_default_group, _rank_not_in_group, _warn_not_in_group
from .overriding import handle_torch_function, has_torch_function

__all__ = ["all_gather", "all_gather_coalesced", "all_gather_into_tensor", "all_gather_single", "all_reduce",
           "all_reduce_coalesced", "all_to_all", "all_to_all_single", "barrier", "broadcast", "gather",
           "monitored_barrier", "reduce", "reduce_scatter", "reduce_scatter_single", "reduce_scatter_tensor", "scatter"]


def broadcast(tensor: Tensor, src: int | None = None, group: ProcessGroup | None = None, async_op: bool = False,
              group_src: int | None = None) -> Work | None:
    """Copy a tensor from one process to all, in place.

    Args:
        tensor: the tensor that is sent, or written to.
        src: the global rank of the sender.
        group: the processes; all if None.
        async_op: whether to return at once; `wait` of the result then waits.
        group_src: the sender's rank in the group, instead of `src`.

    Raises:
        RuntimeError: there is no such rank, or a process is missing.
    """
    if has_torch_function((tensor,)):
        return handle_torch_function(broadcast, (tensor,), tensor, src, group, async_op, group_src)
    pg = _group_or_default_group(group)
    if _rank_not_in_group(pg):
        _warn_not_in_group("broadcast")
        return None
    root = _canonicalize_group_rank(pg, src, group_src)
    _check_single_tensor(tensor, "tensor")
    return _finished(pg.broadcast([tensor], _with(BroadcastOptions(), async_op, rootRank=root, rootTensor=0)), async_op)


def all_reduce(tensor: Tensor, op: Any = ReduceOp.SUM, group: ProcessGroup | None = None,
               async_op: bool = False) -> Work | None:
    """Reduce a tensor over all processes, in place; all get the same bits.

    Args:
        tensor: the tensor.
        op: the reduction, `ReduceOp.SUM`, `AVG`, `PRODUCT`, `MIN`, `MAX`, `BAND`, `BOR` or `BXOR`.
        group: the processes; all if None.
        async_op: whether to return at once; `wait` of the result then waits.

    Raises:
        RuntimeError: gloo has no such reduction of the dtype, or a process is missing.
        ValueError: the reduction of complex numbers is not defined.

    >>> import flambeau as torch
    >>> dist = torch.distributed
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> x = torch.ones(2)
    >>> work = dist.all_reduce(x, async_op=True)
    >>> work.wait(), x
    (True, tensor([1., 1.]))
    >>> dist.destroy_process_group()
    """
    if has_torch_function((tensor,)):
        return handle_torch_function(all_reduce, (tensor,), tensor, op, group, async_op)
    _check_single_tensor(tensor, "tensor")
    if _rank_not_in_group(group):
        _warn_not_in_group("all_reduce")
        return None
    _check_complex("all_reduce", op, tensor)
    pg = _group_or_default_group(group)
    if pg in world.coalescing:
        world.coalescing[pg].append(("allreduce", tensor, None, op))
        return None
    return _finished(pg.allreduce([tensor], _with(_reducing(AllreduceOptions(), op), async_op)), async_op)


def all_reduce_coalesced(tensors: list[Tensor], op: Any = ReduceOp.SUM, group: ProcessGroup | None = None,
                         async_op: bool = False) -> Any:
    """Reduce each of several tensors over all processes, in place, as one array.

    Args:
        tensors: the tensors, of one dtype.
        op: the reduction.
        group: the processes; all if None.
        async_op: whether to return a future at once.
    """
    tensors = [tensors] if isinstance(tensors, Tensor) else tensors
    _check_tensor_list(tensors, "tensor")
    _ensure_all_tensors_same_dtype(tensors)
    if _rank_not_in_group(group):
        _warn_not_in_group("all_reduce_coalesced")
        return None
    _check_complex("all_reduce", op, *tensors)
    if any(each.is_complex() for each in tensors):  # complex tensors and real ones may be reduced at once
        from .._tensor import functions

        tensors = [functions.view_as_real(each) if each.is_complex() else each for each in tensors]
    work = _group_or_default_group(group).allreduce_coalesced(
        tensors, _with(_reducing(AllreduceCoalescedOptions(), op), async_op))
    if async_op:
        return work.get_future()
    return _finished(work, async_op)


def reduce(tensor: Tensor, dst: int | None = None, op: Any = ReduceOp.SUM, group: ProcessGroup | None = None,
           async_op: bool = False, group_dst: int | None = None) -> Work | None:
    """Reduce a tensor over all processes at one of them, in place.

    Args:
        tensor: the tensor.
        dst: the global rank of the process that gets the result.
        op: the reduction.
        group: the processes; all if None.
        async_op: whether to return at once.
        group_dst: the rank in the group, instead of `dst`.
    """
    if has_torch_function((tensor,)):
        return handle_torch_function(reduce, (tensor,), tensor, dst, op, group, async_op, group_dst)
    pg = _group_or_default_group(group)
    if _rank_not_in_group(pg):
        _warn_not_in_group("reduce")
        return None
    root = _canonicalize_group_rank(pg, dst, group_dst)
    _check_single_tensor(tensor, "tensor")
    _check_complex("reduce", op, tensor)
    return _finished(pg.reduce([tensor], _with(_reducing(ReduceOptions(), op), async_op, rootRank=root)), async_op)


def all_gather(tensor_list: list[Tensor], tensor: Tensor, group: ProcessGroup | None = None,
               async_op: bool = False) -> Work | None:
    """Give all processes the tensors of all.

    Args:
        tensor_list: the tensors to write to, one for each process.
        tensor: this process's tensor.
        group: the processes; all if None.
        async_op: whether to return at once.
    """
    if has_torch_function((tensor,)):
        return handle_torch_function(all_gather, (tensor,), tensor_list, tensor, group, async_op)
    _check_tensor_list(tensor_list, "tensor_list")
    _check_single_tensor(tensor, "tensor")
    _ensure_all_tensors_same_dtype(tensor_list, tensor)
    if _rank_not_in_group(group):
        _warn_not_in_group("all_gather")
        return None
    outputs, own = [_as_parts(each, tensor) for each in tensor_list], _as_parts(tensor, tensor_list)
    return _finished(_group_or_default_group(group).allgather([outputs], [own], _with(AllgatherOptions(), async_op)),
                     async_op)


def _as_parts(tensor: Tensor, others: Any) -> Tensor:
    """The real and imaginary parts of a complex tensor, where real ones go together with it."""
    several = others if isinstance(others, list) else [others]
    if tensor.is_complex() and not all(each.is_complex() for each in several):
        from .._tensor import functions

        return functions.view_as_real(tensor)
    return tensor


def all_gather_into_tensor(output_tensor: Tensor, input_tensor: Tensor, group: ProcessGroup | None = None,
                           async_op: bool = False) -> Work | None:
    """Give all processes the tensors of all, one after another or stacked in one tensor.

    Args:
        output_tensor: the tensor to write to.
        input_tensor: this process's tensor.
        group: the processes; all if None.
        async_op: whether to return at once.
    """
    if has_torch_function((input_tensor,)):
        return handle_torch_function(all_gather_into_tensor, (input_tensor,), output_tensor, input_tensor, group,
                                     async_op)
    _check_single_tensor(input_tensor, "input_tensor")
    _check_single_tensor(output_tensor, "output_tensor")
    if _rank_not_in_group(group):
        _warn_not_in_group("all_gather_single")
        return None
    pg = _group_or_default_group(group)
    output, own = _as_parts(output_tensor, input_tensor), _as_parts(input_tensor, output_tensor)
    if pg in world.coalescing:
        world.coalescing[pg].append(("allgather", output, own, None))
        return None
    return _finished(pg.all_gather_single(output, own, _with(AllgatherOptions(), async_op)), async_op)


def all_gather_single(output_tensor: Tensor, input_tensor: Tensor, group: ProcessGroup | None = None,
                      async_op: bool = False) -> Work | None:
    """Give all processes the tensors of all, in one tensor: `all_gather_into_tensor`.

    Args:
        output_tensor: the tensor to write to.
        input_tensor: this process's tensor.
        group: the processes; all if None.
        async_op: whether to return at once.
    """
    return all_gather_into_tensor(output_tensor, input_tensor, group, async_op)


def _all_gather_base(output_tensor: Tensor, input_tensor: Tensor, group: ProcessGroup | None = None,
                     async_op: bool = False) -> Work | None:
    warnings.warn("`torch.distributed._all_gather_base` is a private function and will be deprecated. Please use "
                  "`torch.distributed.all_gather_into_tensor` instead.", FutureWarning, stacklevel=2)
    return all_gather_into_tensor(output_tensor, input_tensor, group, async_op)


def all_gather_coalesced(output_tensor_lists: list[list[Tensor]], input_tensor_list: list[Tensor],
                         group: ProcessGroup | None = None, async_op: bool = False) -> Any:
    """Give all processes several tensors of all.

    Args:
        output_tensor_lists: the tensors to write to, a list for each process.
        input_tensor_list: this process's tensors.
        group: the processes; all if None.
        async_op: whether to return a future at once.
    """
    if _rank_not_in_group(group):
        _warn_not_in_group("all_gather_coalesced")
        return None
    _check_tensor_list(input_tensor_list, "input_tensor_list")
    _ensure_all_tensors_same_dtype(input_tensor_list)
    if not isinstance(output_tensor_lists, list):
        raise TypeError("Invalid function argument: output_tensor_lists should be a list")
    for each in output_tensor_lists:
        _check_tensor_list(each, "output_tensor_lists")
        _ensure_all_tensors_same_dtype(each)
    work = _group_or_default_group(group).allgather_coalesced(output_tensor_lists, input_tensor_list,
                                                              _with(AllgatherOptions(), async_op))
    return work.get_future() if async_op else _finished(work, async_op)


def gather(tensor: Tensor, gather_list: list[Tensor] | None = None, dst: int | None = None,
           group: ProcessGroup | None = None, async_op: bool = False, group_dst: int | None = None) -> Work | None:
    """Copy the tensors of all processes to one of them.

    Args:
        tensor: this process's tensor.
        gather_list: at the destination, the tensors to write to.
        dst: the destination's global rank, 0 if None.
        group: the processes; all if None.
        async_op: whether to return at once.
        group_dst: the destination's rank in the group, instead of `dst`.

    Raises:
        ValueError: `gather_list` is missing at the destination, or there is one elsewhere (PyTorch's texts).
    """
    if has_torch_function((tensor,)):
        return handle_torch_function(gather, (tensor,), tensor, gather_list, dst, group, async_op, group_dst)
    _check_single_tensor(tensor, "tensor")
    tensors = _checked_list(tensor, gather_list, "gather_list")
    pg = _group_or_default_group(group)
    if _rank_not_in_group(pg):
        _warn_not_in_group("gather")
        return None
    root = _canonicalize_group_rank(pg, 0 if dst is None and group_dst is None else dst, group_dst)
    _check_only_root_has(tensors, root == pg.rank(), "gather_list", "destination")
    outputs = [tensors] if root == pg.rank() else []
    return _finished(pg.gather(outputs, [tensor], _with(GatherOptions(), async_op, rootRank=root)), async_op)


def scatter(tensor: Tensor, scatter_list: list[Tensor] | None = None, src: int | None = None,
            group: ProcessGroup | None = None, async_op: bool = False, group_src: int | None = None) -> Work | None:
    """Copy one tensor to each process from one of them.

    Args:
        tensor: the tensor to write to.
        scatter_list: at the source, the tensors to send, one for each process.
        src: the source's global rank, 0 if None.
        group: the processes; all if None.
        async_op: whether to return at once.
        group_src: the source's rank in the group, instead of `src`.

    Raises:
        ValueError: `scatter_list` is missing at the source, or there is one elsewhere (PyTorch's texts).
    """
    if has_torch_function((tensor,)):
        return handle_torch_function(scatter, (tensor,), tensor, scatter_list, src, group, async_op, group_src)
    _check_single_tensor(tensor, "tensor")
    tensors = _checked_list(tensor, scatter_list, "scatter_list")
    pg = _group_or_default_group(group)
    if _rank_not_in_group(pg):
        _warn_not_in_group("scatter")
        return None
    root = _canonicalize_group_rank(pg, 0 if src is None and group_src is None else src, group_src)
    _check_only_root_has(tensors, root == pg.rank(), "scatter_list", "source")
    inputs = [tensors] if root == pg.rank() else []
    return _finished(pg.scatter([tensor], inputs, _with(ScatterOptions(), async_op, rootRank=root)), async_op)


def reduce_scatter(output: Tensor, input_list: list[Tensor], op: Any = ReduceOp.SUM, group: ProcessGroup | None = None,
                   async_op: bool = False) -> Work | None:
    """Reduce a list of tensors over all processes, of which each keeps one.

    Args:
        output: the tensor to write to.
        input_list: the tensors, one for each process.
        op: the reduction.
        group: the processes; all if None.
        async_op: whether to return at once.
    """
    if has_torch_function((output,)):
        return handle_torch_function(reduce_scatter, (output,), output, input_list, op, group, async_op)
    _check_single_tensor(output, "output")
    _check_tensor_list(input_list, "input_list")
    _ensure_all_tensors_same_dtype(output, input_list)
    if _rank_not_in_group(group):
        _warn_not_in_group("reduce_scatter")
        return None
    _check_complex("reduce_scatter", op, output)
    return _finished(_group_or_default_group(group).reduce_scatter(
        [output], [input_list], _with(_reducing(ReduceScatterOptions(), op), async_op)), async_op)


def reduce_scatter_tensor(output: Tensor, input: Tensor, op: Any = ReduceOp.SUM, group: ProcessGroup | None = None,
                          async_op: bool = False) -> Work | None:
    """Reduce a tensor over all processes, of which each keeps one part.

    Args:
        output: the tensor to write to.
        input: the tensor, whose size is the output's times the number of processes.
        op: the reduction.
        group: the processes; all if None.
        async_op: whether to return at once.
    """
    if has_torch_function((input,)):
        return handle_torch_function(reduce_scatter_tensor, (input,), output, input, op, group, async_op)
    _check_single_tensor(output, "output")
    _check_single_tensor(input, "input")
    if _rank_not_in_group(group):
        _warn_not_in_group("reduce_scatter_single")
        return None
    _check_complex("reduce_scatter_tensor", op, input)
    pg = _group_or_default_group(group)
    if pg in world.coalescing:
        world.coalescing[pg].append(("reduce_scatter", output, input, op))
        return None
    return _finished(pg.reduce_scatter_single(output, input, _with(_reducing(ReduceScatterOptions(), op), async_op)),
                     async_op)


def reduce_scatter_single(output: Tensor, input: Tensor, op: Any = ReduceOp.SUM, group: ProcessGroup | None = None,
                          async_op: bool = False) -> Work | None:
    """Reduce a tensor over all processes, of which each keeps one part: `reduce_scatter_tensor`.

    Args:
        output: the tensor to write to.
        input: the tensor.
        op: the reduction.
        group: the processes; all if None.
        async_op: whether to return at once.
    """
    return reduce_scatter_tensor(output, input, op, group, async_op)


def _reduce_scatter_base(output: Tensor, input: Tensor, op: Any = ReduceOp.SUM, group: ProcessGroup | None = None,
                         async_op: bool = False) -> Work | None:
    warnings.warn("`torch.distributed._reduce_scatter_base` is a private function and will be deprecated. Please use "
                  "`torch.distributed.reduce_scatter_tensor` instead.", FutureWarning, stacklevel=2)
    return reduce_scatter_tensor(output, input, op, group, async_op)


def _lengths(sizes: Any) -> list[int]:
    """Lengths of parts, which may be a tensor; none if they are equal."""
    return [] if sizes is None else [int(each) for each in sizes]


def all_to_all_single(output: Tensor, input: Tensor, output_split_sizes: Sequence[int] | None = None,
                      input_split_sizes: Sequence[int] | None = None, group: ProcessGroup | None = None,
                      async_op: bool = False) -> Work | None:
    """Send a part of a tensor to each process and receive a part of another of each.

    Args:
        output: the tensor to write to.
        input: the tensor to send.
        output_split_sizes: the lengths of the output's parts along its first dimension; equal ones if None.
        input_split_sizes: the lengths of the input's parts.
        group: the processes; all if None.
        async_op: whether to return at once.
    """
    if has_torch_function((input,)):
        return handle_torch_function(all_to_all_single, (input,), output, input, output_split_sizes, input_split_sizes,
                                     group, async_op)
    if _rank_not_in_group(group):
        _warn_not_in_group("all_to_all_single")
        return None
    _check_single_tensor(output, "output")
    _check_single_tensor(input, "input")
    _ensure_all_tensors_same_dtype(output, input)
    pg = _group_or_default_group(group)
    return _finished(pg.all_to_all_single(output, input, _lengths(output_split_sizes), _lengths(input_split_sizes),
                                      _with(AllToAllOptions(), async_op)), async_op)


def all_to_all(output_tensor_list: list[Tensor], input_tensor_list: list[Tensor], group: ProcessGroup | None = None,
               async_op: bool = False) -> Work | None:
    """Send a tensor to each process and receive one of each.

    Args:
        output_tensor_list: the tensors to write to.
        input_tensor_list: the tensors to send.
        group: the processes; all if None.
        async_op: whether to return at once.
    """
    if _rank_not_in_group(group):
        _warn_not_in_group("all_to_all")
        return None
    _check_tensor_list(output_tensor_list, "output_tensor_list")
    _check_tensor_list(input_tensor_list, "input_tensor_list")
    _ensure_all_tensors_same_dtype(output_tensor_list, input_tensor_list)
    return _finished(_group_or_default_group(group).alltoall(output_tensor_list, input_tensor_list,
                                                             _with(AllToAllOptions(), async_op)), async_op)


def barrier(group: ProcessGroup | None = None, async_op: bool = False, device_ids: Any = None) -> Work | None:
    """Wait until all processes have called this.

    Args:
        group: the processes; all if None.
        async_op: whether to return at once.
        device_ids: accelerators; none on the CPU.
    """
    if _rank_not_in_group(group):
        _warn_not_in_group("barrier")
        return None
    if device_ids is not None and not isinstance(device_ids, list):
        raise TypeError("Invalid function argument: device_ids type should be List[int]")
    pg = _group_or_default_group(group)
    return _finished(pg.barrier(_with(BarrierOptions(), async_op, device_ids=device_ids)), async_op)


def monitored_barrier(group: ProcessGroup | None = None, timeout: timedelta | None = None,
                      wait_all_ranks: bool = False) -> None:
    """Wait until all processes have called this; rank 0 names those that have not in time.

    Args:
        group: the processes; all if None.
        timeout: how long to wait, the group's timeout if None.
        wait_all_ranks: whether all that are missing are named, not the first.

    Raises:
        RuntimeError: a process is missing (PyTorch's text).
    """
    if _rank_not_in_group(group):
        _warn_not_in_group("monitored_barrier")
        return
    if isinstance(timeout, float):
        warnings.warn("Please specify timeout arg as a timedelta. Converting current value of "
                      f"{timeout} assuming it represents seconds", stacklevel=2)
        timeout = timedelta(seconds=timeout)
    if timeout is not None and not isinstance(timeout, timedelta):
        raise TypeError(f"Expected timeout argument to be of type datetime.timedelta, got {timeout}")
    _group_or_default_group(group).monitored_barrier(timeout, wait_all_ranks)
