"""`ProcessGroupGloo`: collectives on the CPU, through shared memory, sockets or MPI."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...devices import strided
from .. import algorithms
from ..memory import Target, array_of, divide, read, scatter_into
from ..options import (
    AllgatherOptions,
    AllreduceCoalescedOptions,
    AllreduceOptions,
    AllToAllOptions,
    BroadcastOptions,
    GatherOptions,
    ReduceOptions,
    ReduceScatterOptions,
    ScatterOptions,
    arguments,
    with_options,
)
from ..profiling import recorded
from ..reduce_op import Combine, RedOpType, as_real, combine, kind_of
from ..sparse_reduction import all_reduce_sparse
from ..transport.transport import Deadline, Transport
from ..work import Work
from .backend import GlooBackend
from .checks import Checks, sizes_text, type_text


class ProcessGroupGloo(GlooBackend):
    """Collectives on the CPU.

    Args:
        store: the store through which the processes find each other.
        rank: this process's number.
        size: the number of processes.
        timeout: how long a collective may take; or options.
        transport: how messages travel. If it is None, those of collectives travel through shared memory where all
            processes run on one machine, all others through sockets.

    >>> import flambeau as torch
    >>> group = torch.distributed.ProcessGroupGloo(torch.distributed.HashStore(), 0, 1)
    >>> x = torch.ones(2)
    >>> group.allreduce(x).wait()
    True
    """

    def _reduction(self, opts: Any, array: np.ndarray) -> Combine:
        return combine(kind_of(opts.reduceOp), as_real(array[:0]).dtype)

    def _check_average(self, opts: Any, tensor: Any) -> None:
        if kind_of(opts.reduceOp) == RedOpType.AVG and not (tensor.is_floating_point() or tensor.is_complex()):
            raise RuntimeError("result type Float can't be cast to the desired output type "
                               f"{tensor.dtype.scalar_name}")

    def _average(self, opts: Any, flat: np.ndarray) -> None:
        if kind_of(opts.reduceOp) == RedOpType.AVG:
            divide(as_real(flat), self._size)

    @recorded("allreduce_", "all_reduce")
    def allreduce(self, tensors: Any, opts: Any = None, *, op: Any = None, timeout: Any = None) -> Work:
        """Reduce tensors over all processes, in place; those of one call are reduced together, too."""
        tensors, opts = arguments(tensors, opts, AllreduceOptions, op=op, timeout=timeout)
        checks = Checks("allreduce")
        checks.not_empty(tensors)
        checks.same_layout(tensors)
        if tensors[0].is_sparse:
            return self._allreduce_sparse(tensors, opts, checks)
        checks.dense(tensors)
        checks.alike(tensors[1:], tensors[0])
        reduce = self._reduction(opts, array_of(tensors[0]).reshape(-1)[:0])
        self._check_average(opts, tensors[0])

        def run(net: Transport, tag: int, deadline: Deadline) -> None:
            targets = [Target(tensor) for tensor in tensors]
            total = targets[0].flat
            for other in targets[1:]:
                reduce(as_real(total), as_real(other.flat))
            algorithms.all_reduce(net, tag, as_real(total), reduce, deadline)
            self._average(opts, total)
            for target in targets:
                if target is not targets[0]:
                    target.flat[...] = total
                target.store()

        return self._start(opts, run, tensors)

    def _allreduce_sparse(self, tensors: Any, opts: Any, checks: Checks) -> Work:
        checks.alike(tensors[1:], tensors[0])
        if kind_of(opts.reduceOp) != RedOpType.SUM:
            checks.fail("unsupported reduction operation (allreduce of sparse tensors only works with ReduceOp.SUM)")

        def run(net: Transport, tag: int, deadline: Deadline) -> None:
            all_reduce_sparse(net, tag, tensors, deadline)

        return self._start(opts, run, tensors)

    @recorded("allreduce_coalesced_", "all_reduce")
    def allreduce_coalesced(self, tensors: Any, opts: Any = None) -> Work:
        """Reduce each of several tensors over all processes, in place, as one array."""
        tensors, opts = arguments(tensors, opts, AllreduceCoalescedOptions)
        checks = Checks("allreduce_coalesced")
        if not tensors:
            checks.fail("requires non-empty tensor list")
        checks.same_layout(tensors)
        if tensors[0].layout is not strided:
            checks.fail("unsupported layout")
        if any(tensor.dtype != tensors[0].dtype for tensor in tensors):
            checks.fail("tensors must all have the same type")
        checks.dense(tensors)
        reduce = self._reduction(opts, array_of(tensors[0]).reshape(-1)[:0])

        def run(net: Transport, tag: int, deadline: Deadline) -> None:
            flat = np.concatenate([read(tensor) for tensor in tensors])
            algorithms.all_reduce(net, tag, as_real(flat), reduce, deadline)
            self._average(opts, flat)
            scatter_into(flat, tensors)

        return self._start(opts, run, tensors)

    @recorded("broadcast_", "broadcast")
    def broadcast(self, tensors: Any, opts: Any = None, *, root: int | None = None, timeout: Any = None) -> Work:
        """Copy a tensor from one process to all."""
        tensors, opts = arguments(tensors, opts, BroadcastOptions, root=root, timeout=timeout)
        checks = Checks("broadcast")
        checks.root(opts.rootRank, self._size)
        checks.root_tensor(opts.rootTensor, len(tensors))
        checks.dense(tensors)
        checks.alike(tensors[1:], tensors[0])
        root_rank = opts.rootRank

        def run(net: Transport, tag: int, deadline: Deadline) -> None:
            target = Target(tensors[opts.rootTensor])
            algorithms.broadcast(net, tag, target.flat, root_rank, deadline)
            if net.rank != root_rank:
                target.store()
            for tensor in tensors:
                if tensor is not target.tensor:
                    scatter_into(target.flat, [tensor])

        return self._start(opts, run, tensors)

    @recorded("reduce_", "reduce")
    def reduce(self, tensors: Any, opts: Any = None, *, root: int | None = None, op: Any = None,
               timeout: Any = None) -> Work:
        """Reduce a tensor over all processes at one of them."""
        tensors, opts = arguments(tensors, opts, ReduceOptions, root=root, op=op, timeout=timeout)
        checks = Checks("reduce")
        checks.root(opts.rootRank, self._size)
        checks.root_tensor(opts.rootTensor, len(tensors))
        checks.single(tensors)
        checks.dense(tensors)
        reduce = self._reduction(opts, array_of(tensors[0]).reshape(-1)[:0])
        self._check_average(opts, tensors[0])

        def run(net: Transport, tag: int, deadline: Deadline) -> None:
            target = Target(tensors[0])
            algorithms.reduce(net, tag, as_real(target.flat), opts.rootRank, reduce, deadline)
            if net.rank == opts.rootRank:
                self._average(opts, target.flat)
                target.store()

        return self._start(opts, run, tensors)

    @recorded("allgather_", "all_gather", inputs=1)
    def allgather(self, output_tensors: Any, input_tensors: Any = None, opts: Any = None, *,
                  timeout: Any = None) -> Work:
        """Give all processes the tensors of all."""
        if not isinstance(input_tensors, (list, tuple)):
            output_tensors, input_tensors = [output_tensors], [input_tensors]
        opts = with_options(opts, AllgatherOptions, timeout)
        checks = Checks("allgather")
        if not input_tensors:
            checks.fail("requires non-empty input tensor list")
        if len(input_tensors) != len(output_tensors):
            checks.fail("requires input/output tensor lists to have the same length")
        expected = len(input_tensors) * self._size
        for i, outputs in enumerate(output_tensors):
            if len(outputs) != expected:
                checks.fail(f"invalid output tensor list at index {i} (expected length {expected}, got {len(outputs)})")
        checks.dense(input_tensors)
        for each in (input_tensors[1:], *output_tensors):
            checks.alike(each, input_tensors[0])

        def run(net: Transport, tag: int, deadline: Deadline) -> None:
            count = len(input_tensors)
            flat = np.concatenate([read(tensor) for tensor in input_tensors])
            chunks = [flat if rank == net.rank else np.empty_like(flat) for rank in range(net.size)]
            algorithms.all_gather(net, tag, chunks, deadline)
            for outputs in output_tensors:
                for rank in range(net.size):
                    scatter_into(chunks[rank], outputs[rank * count:(rank + 1) * count])

        return self._start(opts, run, output_tensors[0] if len(output_tensors) == 1 else output_tensors)

    @recorded("allgather_coalesced_", "all_gather", inputs=1)
    def allgather_coalesced(self, output_lists: Any, input_list: Any, opts: Any = None) -> Work:
        """Give all processes several tensors of all: output `i` of rank `r` is `output_lists[r][i]`."""
        opts = with_options(opts, AllgatherOptions)
        checks = Checks("allgather_coalesced")
        if not input_list:
            checks.fail("requires non-empty input tensor list")
        if len(output_lists) != self._size:
            checks.fail("output lists should be equal to world size")
        for outputs in output_lists:
            if len(outputs) != len(input_list):
                checks.fail(f"invalid output size: (expected length {len(input_list)}, got {len(outputs)})")
            for i, (output, each) in enumerate(zip(outputs, input_list, strict=True)):
                if output.shape != each.shape:
                    checks.fail(f"invalid size of output tensor at index {i} (expected length {sizes_text(each)}, "
                                f"got {sizes_text(output)})")
                if output.dtype != each.dtype:
                    checks.fail(f"invalid tensor type at index {i} (expected {type_text(each)}, "
                                f"got {type_text(output)})")
        checks.dense(input_list)

        def run(net: Transport, tag: int, deadline: Deadline) -> None:
            for i, each in enumerate(input_list):
                flat = read(each)
                chunks = [flat if rank == net.rank else np.empty_like(flat) for rank in range(net.size)]
                algorithms.all_gather(net, tag, chunks, deadline)
                for rank in range(net.size):
                    scatter_into(chunks[rank], [output_lists[rank][i]])

        return self._start(opts, run, [each for outputs in output_lists for each in outputs])

    @recorded("_allgather_base_", "all_gather", inputs=1)
    def _allgather_base(self, output: Any, input: Any, opts: Any = None, *, timeout: Any = None) -> Work:
        """Give all processes the tensors of all, joined into one."""
        opts = with_options(opts, AllgatherOptions, timeout)
        checks = Checks("allgather")
        if output.dtype != input.dtype:
            checks.fail(f"invalid tensor type at index 0 (expected {type_text(input)}, got {type_text(output)})")
        parts = output.chunk(self._size) if output.ndim else (output,)
        if len(parts) != self._size:
            checks.fail(f"invalid output tensor list at index 0 (expected length {self._size}, got {len(parts)})")
        checks.alike(parts, input)
        checks.dense([output, input])

        def run(net: Transport, tag: int, deadline: Deadline) -> None:
            target = Target(output)
            chunks = np.split(target.flat, net.size)
            chunks[net.rank][...] = read(input)
            algorithms.all_gather(net, tag, chunks, deadline)
            target.store()

        return self._start(opts, run, [output])

    @recorded("allgather_into_tensor_coalesced_", "all_gather", inputs=1)
    def allgather_into_tensor_coalesced(self, outputs: Any, inputs: Any, opts: Any = None) -> Work:
        """Several `all_gather_into_tensor` as one."""
        opts = with_options(opts, AllgatherOptions)
        Checks("allgather_into_tensor_coalesced").dense([*outputs, *inputs])

        def run(net: Transport, tag: int, deadline: Deadline) -> None:
            for output, each in zip(outputs, inputs, strict=True):
                target = Target(output)
                chunks = np.split(target.flat, net.size)
                chunks[net.rank][...] = read(each)
                algorithms.all_gather(net, tag, chunks, deadline)
                target.store()

        return self._start(opts, run, list(outputs))

    @recorded("gather_", "gather", inputs=1)
    def gather(self, output_tensors: Any, input_tensors: Any, opts: Any = None, *, root: int | None = None,
               timeout: Any = None) -> Work:
        """Copy the tensors of all processes to one of them."""
        opts = with_options(opts, GatherOptions, timeout)
        if not isinstance(input_tensors, (list, tuple)):
            output_tensors, input_tensors = [output_tensors], [input_tensors]
        if root is not None:
            opts.rootRank = root
        checks = Checks("gather")
        checks.root(opts.rootRank, self._size)
        if len(input_tensors) != 1:
            checks.fail("requires a single-element input tensor list")
        checks.dense(input_tensors)
        if self._rank == opts.rootRank:
            if len(output_tensors) != 1:
                checks.fail("requires a single-element output list containing a list with the same size as the group")
            if len(output_tensors[0]) != self._size:
                checks.fail(f"Incorrect output list size {len(output_tensors[0])}. Output list size should be "
                            f"{self._size}, same as size of the process group.")
            checks.alike(output_tensors[0], input_tensors[0])
        elif any(output_tensors):
            checks.fail("requires empty output on non-root")

        def run(net: Transport, tag: int, deadline: Deadline) -> None:
            targets = [Target(each) for each in output_tensors[0]] if net.rank == opts.rootRank else None
            algorithms.gather(net, tag, read(input_tensors[0]),
                              None if targets is None else [each.flat for each in targets],
                              opts.rootRank, deadline)
            for target in targets or ():
                target.store()

        return self._start(opts, run, list(output_tensors[0]) if output_tensors else [])

    @recorded("scatter_", "scatter", inputs=1)
    def scatter(self, output_tensors: Any, input_tensors: Any, opts: Any = None, *, root: int | None = None,
                timeout: Any = None) -> Work:
        """Copy one tensor to each process from one of them."""
        opts = with_options(opts, ScatterOptions, timeout)
        if not isinstance(output_tensors, (list, tuple)):
            output_tensors, input_tensors = [output_tensors], [input_tensors]
        if root is not None:
            opts.rootRank = root
        checks = Checks("scatter")
        checks.root(opts.rootRank, self._size)
        if len(output_tensors) != 1:
            checks.fail("requires a single-element output tensor list")
        checks.dense(output_tensors)
        if self._rank == opts.rootRank:
            if len(input_tensors) != 1:
                checks.fail("requires a single-element input list containing a list with the same size as the group")
            if len(input_tensors[0]) != self._size:
                checks.fail(f"Incorrect input list size {len(input_tensors[0])}. Input list size should be "
                            f"{self._size}, same as size of the process group.")
            checks.alike(input_tensors[0], output_tensors[0])
        elif any(input_tensors):
            checks.fail("requires empty input on non-root")

        def run(net: Transport, tag: int, deadline: Deadline) -> None:
            inputs = [read(each) for each in input_tensors[0]] if net.rank == opts.rootRank else None
            target = Target(output_tensors[0])
            algorithms.scatter(net, tag, target.flat, inputs, opts.rootRank, deadline)
            target.store()

        return self._start(opts, run, list(output_tensors))

    def _reduce_scattered(self, opts: Any, output: Any, inputs: Callable[[], list[np.ndarray]],
                          model: Any) -> Callable[[Transport, int, Deadline], None]:
        """The run of a `reduce_scatter` whose chunks `inputs()` reads."""
        reduce = self._reduction(opts, array_of(model).reshape(-1)[:0])
        self._check_average(opts, model)

        def run(net: Transport, tag: int, deadline: Deadline) -> None:
            chunks, target = inputs(), Target(output)
            algorithms.reduce_scatter(net, tag, [as_real(each) for each in chunks], as_real(target.flat), reduce,
                                      deadline)
            self._average(opts, target.flat)
            target.store()

        return run

    @recorded("reduce_scatter_", "reduce_scatter", inputs=1)
    def reduce_scatter(self, output_tensors: Any, input_tensors: Any, opts: Any = None, *, op: Any = None,
                       timeout: Any = None) -> Work:
        """Reduce one tensor for each process; the tensors may differ in shape."""
        opts = with_options(opts, ReduceScatterOptions, timeout)
        if not isinstance(output_tensors, (list, tuple)):
            output_tensors, input_tensors = [output_tensors], [input_tensors]
        if op is not None:
            opts.reduceOp = op
        if len(input_tensors) != len(output_tensors):
            raise RuntimeError("requires input/output tensor lists to have the same length")
        if len(output_tensors) != 1:
            raise RuntimeError("requires a single-element output tensor list")
        inputs, output = input_tensors[0], output_tensors[0]
        if len(inputs) != self._size:
            raise RuntimeError("invalid input tensor list size, must be world size")
        checks = Checks("reduce_scatter")
        checks.dense([*inputs, output])
        if inputs[self._rank].shape != output.shape:
            own, theirs = (" ".join(map(str, each.shape)) for each in (output, inputs[self._rank]))
            raise RuntimeError(f"Check failed: outputs[0].sizes().vec() == inputs[0][i].sizes().vec() "
                               f"({own} vs. {theirs}). ")
        run = self._reduce_scattered(opts, output, lambda: [read(each) for each in inputs], inputs[0])
        return self._start(opts, run, list(output_tensors))

    @recorded("_reduce_scatter_base_", "reduce_scatter", inputs=1)
    def _reduce_scatter_base(self, output: Any, input: Any, opts: Any = None, *, op: Any = None,
                             timeout: Any = None) -> Work:
        """Reduce a tensor, of which each process keeps one part."""
        opts = with_options(opts, ReduceScatterOptions, timeout)
        if op is not None:
            opts.reduceOp = op
        if output.numel() * self._size != input.numel():
            first = (each.shape[0] if each.ndim else 1 for each in (output, input))
            theirs, own = next(first) * self._size, next(first)
            raise RuntimeError(f"Check failed: outputShape[0] * worldSize == inputShape[0] ({theirs} vs. {own}). ")
        Checks("_reduce_scatter_base").dense([output, input])
        run = self._reduce_scattered(opts, output, functools.partial(self._even_parts, input), input)
        return self._start(opts, run, [output])

    def _even_parts(self, tensor: Any) -> list[np.ndarray]:
        return np.split(read(tensor), self._size)

    @recorded("reduce_scatter_tensor_coalesced_", "reduce_scatter", inputs=1)
    def reduce_scatter_tensor_coalesced(self, outputs: Any, inputs: Any, opts: Any = None) -> Work:
        """Several `reduce_scatter_tensor` as one."""
        opts = with_options(opts, ReduceScatterOptions)
        runs = [self._reduce_scattered(opts, output, functools.partial(self._even_parts, each), each)
                for output, each in zip(outputs, inputs, strict=True)]

        def run(net: Transport, tag: int, deadline: Deadline) -> None:
            for each in runs:
                each(net, tag, deadline)

        return self._start(opts, run, list(outputs))

    @recorded("alltoall_", "all_to_all", inputs=1)
    def alltoall(self, output_tensors: Any, input_tensors: Any, opts: Any = None, *, timeout: Any = None) -> Work:
        """Send a tensor to each process and receive one of each."""
        opts = with_options(opts, AllToAllOptions, timeout)
        checks = Checks("alltoall")
        for what, tensors in (("input", input_tensors), ("output", output_tensors)):
            if len(tensors) != self._size:
                checks.fail(f"{what} tensor list size {len(tensors)} does not match world size {self._size}")
        checks.dense([*output_tensors, *input_tensors])
        own = output_tensors[self._rank], input_tensors[self._rank]
        if own[0].numel() != own[1].numel():
            checks.fail("input and output tensors must have the same size")

        def run(net: Transport, tag: int, deadline: Deadline) -> None:
            targets = [Target(each) for each in output_tensors]
            algorithms.all_to_all(net, tag, [each.flat for each in targets], [read(each) for each in input_tensors],
                                  deadline)
            for target in targets:
                target.store()

        return self._start(opts, run, list(output_tensors))

    def _split(self, tensor: Any, sizes: Sequence[int]) -> list[int]:
        """The numbers of elements for each process."""
        length = tensor.shape[0] if tensor.ndim else 1
        if not sizes:
            if length % self._size:
                raise RuntimeError("Tensor's dim 0 does not divide equally across group size")
            return [tensor.numel() // self._size] * self._size
        if len(sizes) != self._size:
            raise RuntimeError("Number of tensor splits not equal to group size")
        if sum(sizes) != length:
            raise RuntimeError("Split sizes doesn't match total dim 0 size")
        row = math.prod(tensor.shape[1:])
        return [size * row for size in sizes]

    @recorded("alltoall_base_", "all_to_all", inputs=1)
    def alltoall_base(self, output: Any, input: Any, output_split_sizes: Sequence[int],
                      input_split_sizes: Sequence[int],
                      opts: Any = None, *, timeout: Any = None) -> Work:
        """Send a part of a tensor to each process and receive a part of another of each."""
        opts = with_options(opts, AllToAllOptions, timeout)
        if output.dtype != input.dtype:
            Checks("alltoall_base").fail(
                f"invalid tensor type at index 0 (expected {type_text(input)}, got {type_text(output)})")
        outgoing = self._split(input, input_split_sizes)
        incoming = self._split(output, output_split_sizes)
        if incoming[self._rank] != outgoing[self._rank]:
            Checks("alltoall_base").fail(f"{outgoing[self._rank]} elements are sent to rank {self._rank} itself, "
                                          f"which expects {incoming[self._rank]}")
        Checks("alltoall_base").dense([output, input])

        def run(net: Transport, tag: int, deadline: Deadline) -> None:
            target = Target(output)
            algorithms.all_to_all(net, tag, _parts(target.flat, incoming), _parts(read(input), outgoing), deadline)
            target.store()

        return self._start(opts, run, [output])


def _parts(flat: np.ndarray, sizes: Sequence[int]) -> list[np.ndarray]:
    ends = np.cumsum([0, *sizes])
    return [flat[ends[i]:ends[i + 1]] for i in range(len(sizes))]


__all__ = ["ProcessGroupGloo"]
