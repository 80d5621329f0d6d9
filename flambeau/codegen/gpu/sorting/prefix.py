"""Prefix sums among the threads of a block, and ranks: for each element of an array how many before it are true."""

from __future__ import annotations

from math import prod

from ....runtime.launch import Spec
from ...scalar.scalar_ir import Node, cast, constant, select
from ..coordinates import INT32, INT64, count_blocks
from ..kernel_ir import WARP, KernelBuilder
from ..launches import Argument, DeviceLaunch, launch
from ..statements import Buffer

THREADS, ITEMS = 256, 16
#: elements that a block counts
TILE = THREADS * ITEMS
#: threads of the block that adds up counts
_SCANNING = 1024


def exclusive_sum(b: KernelBuilder, value: Node) -> tuple[Node, Node]:
    """The sum of the values of the threads before each thread of the block, and the sum of all.

    Every thread of the block takes part.
    """
    warps = b.threads // WARP
    warp = b.thread / WARP
    lane = b.thread - warp * WARP
    before, total = _in_warp(b, value, lane)
    if warps == 1:
        return before, total
    totals = b.shared(value.dtype, WARP)
    b.barrier()  # a loop may have the last round's sums there
    b.store(totals, warp, total, lane < 1)
    b.barrier()
    zero = constant(0, value.dtype)
    among, whole = _in_warp(b, select(lane < warps, b.load(totals, lane, lane < warps), zero), lane)
    b.barrier()
    b.store(totals, lane, among, warp < 1)
    b.barrier()
    return before + b.load(totals, warp), whole


def _in_warp(b: KernelBuilder, value: Node, lane: Node) -> tuple[Node, Node]:
    """`exclusive_sum` within a warp: the upper half of each group of lanes adds the total of the lower half."""
    before, total = constant(0, value.dtype), value
    for lanes in (1, 2, 4, 8, 16):
        other = b.shuffle_xor(total, lanes)
        upper = lane / lanes - lane / (2 * lanes) * 2
        before, total = before + select(upper > 0, other, constant(0, value.dtype)), total + other
    return before, total


def sum_before_entries(b: KernelBuilder, counts: Buffer, first: Node, entries: int) -> Node:
    """Replace entries of a global array by the sums of those before them; one block does. Their total.

    Args:
        first: the first entry's index.
        entries: their number.
    """
    each = count_blocks(entries, b.threads)
    begin = b.thread * each
    own = b.local(constant(0, counts.dtype))
    with b.loop(0, each) as i:
        at = begin + i
        b.set(own, b.get(own) + b.load(counts, first + at, at < entries))
    before, total = exclusive_sum(b, b.get(own))
    running = b.local(before)
    with b.loop(0, each) as i:
        at = begin + i
        value = b.load(counts, first + at, at < entries)
        b.store(counts, first + at, b.get(running), at < entries)
        b.set(running, b.get(running) + value)
    return total


def ranks(outs: list[Spec], mask: Spec) -> list[DeviceLaunch]:
    """Launches that count, for each element of a mask in row-major order, the true ones before it.

    Args:
        outs: the ranks, int64, of the mask's shape, and the number of true elements, (1,) int64. Both dense.
        mask: bool, dense.

    Raises:
        TypeError: a mask of another dtype.
    """
    if mask.dtype.kind != "b":
        raise TypeError(f"a mask of dtype {mask.dtype}")
    size = prod(mask.shape)
    tiles = max(count_blocks(size, TILE), 1)
    index = INT32 if size < 1 << 30 else INT64
    counts = Argument(3, 0, tiles)
    scratch = tiles * INT64.itemsize

    def items(b: KernelBuilder, buffer: Buffer) -> tuple[list[Node], list[Node]]:
        """The places of a thread's neighbouring elements, and 1 for those that are true."""
        thread = (cast(b.block, index) * THREADS + cast(b.thread, index)) * ITEMS
        places = [thread + i for i in range(ITEMS)]
        return places, [cast(b.load(buffer, at, at < size), INT32) for at in places]

    def added(values: list[Node]) -> Node:
        total = values[0]
        for each in values[1:]:
            total = total + each
        return total

    b = KernelBuilder("count_true", THREADS)
    read, written = b.buffer(mask.dtype), b.buffer(INT64)
    _, total = exclusive_sum(b, added(items(b, read)[1]))
    b.store(written, b.block, cast(total, INT64), b.thread < 1)
    work = [launch(b.kernel(), tiles, [Argument(2), counts], scratch)]

    b = KernelBuilder("sum_counts", _SCANNING)
    sums, number = b.buffer(INT64), b.buffer(INT64)
    whole = sum_before_entries(b, sums, constant(0, INT32), tiles)
    b.store(number, 0, whole, b.thread < 1)
    work.append(launch(b.kernel(), 1, [counts, Argument(1)], scratch))

    b = KernelBuilder("ranks", THREADS)
    read, sums, out = b.buffer(mask.dtype), b.buffer(INT64), b.buffer(INT64)
    places, values = items(b, read)
    before, _ = exclusive_sum(b, added(values))
    rank = b.load(sums, b.block) + cast(before, INT64)
    for at, each in zip(places, values, strict=True):
        b.store(out, at, rank, at < size)
        rank = rank + cast(each, INT64)
    return [*work, launch(b.kernel(), tiles, [Argument(2), counts, Argument(0)], scratch)]


def compact(out: Spec, mask: Spec, rank: Spec, number: Spec) -> list[DeviceLaunch]:
    """The launch that writes the places of true elements, in row-major order: for each dimension all coordinates.

    Args:
        out: int64, a vector; of each dimension it has as many coordinates as there are true elements.
        mask: bool, dense.
        rank, number: int64, of `ranks`.
    """
    from ..coordinates import coordinates

    size = prod(mask.shape)
    if not size:
        return []
    b = KernelBuilder("compact", THREADS)
    stored, read, places, counted = (b.buffer(each.dtype) for each in (out, mask, rank, number))
    columns = len(mask.shape)
    index = INT32 if size * max(columns, 1) < 1 << 30 else INT64
    linear = cast(b.block, index) * THREADS + cast(b.thread, index)
    with b.when(linear < size):
        is_true = b.load(read, linear)
        row, total = b.load(places, linear), b.load(counted, 0)
        where = coordinates(linear, [max(n, 1) for n in reversed(mask.shape)])[::-1]
        for column, each in enumerate(where):
            b.store(stored, row + total * column, cast(each, INT64), is_true)
    return [launch(b.kernel(), count_blocks(size, THREADS))]


def run_lengths(out: Spec, starts: Spec, number: Spec) -> list[DeviceLaunch]:
    """The launch that writes the lengths of runs.

    Args:
        out: int64, of at least as many elements as there are runs.
        starts: where the runs begin, int64; as many as there may be.
        number: of runs, (1,) int64.
    """
    [size] = starts.shape
    b = KernelBuilder("run_lengths", THREADS)
    stored, read, counted = (b.buffer(each.dtype) for each in (out, starts, number))
    run = cast(b.block, INT64) * THREADS + cast(b.thread, INT64)
    total = b.load(counted, 0)
    with b.when(run < total):
        end = select(run + 1 < total, b.load(read, run + 1, run + 1 < total), constant(size, INT64))
        b.store(stored, run, end - b.load(read, run))
    return [launch(b.kernel(), count_blocks(size, THREADS))]


def expand_selected(out: Spec, source: Spec, mask: Spec, rank: Spec) -> list[DeviceLaunch]:
    """The launch that writes the elements where a mask is true, in row-major order, as a vector.

    Args:
        out: of at least as many elements as there are true ones.
        source: of the mask's shape and `out`'s dtype, dense.
        mask, rank: as for `compact`.
    """
    size = prod(mask.shape)
    if not size:
        return []
    b = KernelBuilder("select_true", THREADS)
    stored, values, read, places = (b.buffer(each.dtype) for each in (out, source, mask, rank))
    index = INT32 if size < 1 << 30 else INT64
    linear = cast(b.block, index) * THREADS + cast(b.thread, index)
    with b.when(linear < size):
        is_true = b.load(read, linear)
        b.store(stored, b.load(places, linear), b.load(values, linear, is_true), is_true)
    return [launch(b.kernel(), count_blocks(size, THREADS))]


__all__ = ["compact", "exclusive_sum", "expand_selected", "ranks", "run_lengths", "sum_before_entries"]

