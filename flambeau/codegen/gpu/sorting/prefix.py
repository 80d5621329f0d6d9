"""Prefix sums among the threads of a block, and ranks: for each element of an array how many before it are true."""

from __future__ import annotations

from math import prod

from ....runtime.launch import Spec
from ...scalar.scalar_ir import Node, cast, constant, select
from ..coordinates import INT32, INT64, coordinates, count_blocks
from ..kernel_ir import WARP, KernelBuilder
from ..launches import VECTOR, Argument, DeviceLaunch, launch
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


class _Tile:
    """A block's tile of a mask: neighbouring elements for each thread.

    Args:
        b: the kernel's builder.
        mask: the mask's buffer.
        size: its number of elements.

    Attributes:
        places: of a thread's elements.
        flags: the elements, int32.
        total: how many of them are true.
    """

    def __init__(self, b: KernelBuilder, mask: Buffer, size: int) -> None:
        self.b, self.size = b, size
        index = INT32 if size < 1 << 30 else INT64
        first = (cast(b.block, index) * THREADS + cast(b.thread, index)) * ITEMS
        self.places = [first + i for i in range(ITEMS)]
        self.flags = [cast(each, INT32) for each in self.load(mask)]
        self.total = self.flags[0]
        for each in self.flags[1:]:
            self.total = self.total + each

    def load(self, buffer: Buffer) -> list[Node]:
        """A thread's elements of an array, as vectors if there are no others; 0 beyond its end."""
        width = min(VECTOR // buffer.dtype.itemsize, ITEMS) if self.size % ITEMS == 0 else 1
        found: list[Node] = []
        for at in self.places[::width]:
            found += self.b.load_vector(buffer, at, width, at < self.size)
        return found

    def ranks(self, sums: Buffer) -> list[Node]:
        """For each element the true ones before it, given those before each tile."""
        before, _ = exclusive_sum(self.b, self.total)
        rank = self.b.load(sums, self.b.block) + cast(before, INT64)
        found = []
        for each in self.flags:
            found.append(rank)
            rank = rank + cast(each, INT64)
        return found


def tiles_of(size: int) -> int:
    """The number of tiles of a mask."""
    return max(count_blocks(size, TILE), 1)


def _check(mask: Spec) -> int:
    if mask.dtype.kind != "b":
        raise TypeError(f"a mask of dtype {mask.dtype}")
    return prod(mask.shape)


def count_true(outs: list[Spec], mask: Spec) -> list[DeviceLaunch]:
    """Launches that count the true elements of a mask.

    Args:
        outs: those before each tile, (tiles_of(size),) int64, and the number of all, (1,) int64.
        mask: bool, dense.

    Raises:
        TypeError: a mask of another dtype.
    """
    size = _check(mask)
    b = KernelBuilder("count_true", THREADS)
    read, written = b.buffer(mask.dtype), b.buffer(INT64)
    _, total = exclusive_sum(b, _Tile(b, read, size).total)
    b.store(written, b.block, cast(total, INT64), b.thread < 1)
    work = [launch(b.kernel(), tiles_of(size), [Argument(2), Argument(0)])]
    b = KernelBuilder("sum_counts", _SCANNING)
    sums, number = b.buffer(INT64), b.buffer(INT64)
    whole = sum_before_entries(b, sums, constant(0, INT32), tiles_of(size))
    b.store(number, 0, whole, b.thread < 1)
    return [*work, launch(b.kernel(), 1, [Argument(0), Argument(1)])]


def ranks(out: Spec, mask: Spec, sums: Spec) -> list[DeviceLaunch]:
    """The launch that writes, for each element of a mask in row-major order, how many true ones are before it.

    Args:
        out: int64, of the mask's shape, dense.
        mask, sums: as for `count_true`.
    """
    size = _check(mask)
    b = KernelBuilder("ranks", THREADS)
    written, read, before = b.buffer(INT64), b.buffer(mask.dtype), b.buffer(INT64)
    tile = _Tile(b, read, size)
    for at, rank in zip(tile.places, tile.ranks(before), strict=True):
        b.store(written, at, rank, at < size)
    return [launch(b.kernel(), tiles_of(size))]


def places(out: Spec, mask: Spec, sums: Spec, number: Spec) -> list[DeviceLaunch]:
    """The launch that writes the places of true elements, in row-major order: for each dimension all coordinates.

    Args:
        out: int64, a vector; of each dimension it has as many coordinates as there are true elements.
        mask, sums, number: as for `count_true`.
    """
    size = _check(mask)
    if not size:
        return []
    b = KernelBuilder("places", THREADS)
    stored, read, before, counted = (b.buffer(each.dtype) for each in (out, mask, sums, number))
    tile = _Tile(b, read, size)
    total = b.load(counted, 0)
    for at, flag, rank in zip(tile.places, tile.flags, tile.ranks(before), strict=True):
        for d, each in enumerate(reversed(coordinates(at, [max(n, 1) for n in reversed(mask.shape)]))):
            b.store(stored, rank + total * d, cast(each, INT64), flag > 0)
    return [launch(b.kernel(), tiles_of(size))]


def select_true(out: Spec, source: Spec, mask: Spec, sums: Spec) -> list[DeviceLaunch]:
    """The launch that writes the elements where a mask is true, in row-major order, as a vector.

    Args:
        out: of at least as many elements as there are true ones.
        source: of the mask's shape and `out`'s dtype, dense.
        mask, sums: as for `count_true`.
    """
    size = _check(mask)
    if not size:
        return []
    b = KernelBuilder("select_true", THREADS)
    stored, values, read, before = (b.buffer(each.dtype) for each in (out, source, mask, sums))
    tile = _Tile(b, read, size)
    for value, flag, rank in zip(tile.load(values), tile.flags, tile.ranks(before), strict=True):
        b.store(stored, rank, value, flag > 0)
    return [launch(b.kernel(), tiles_of(size))]


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


__all__ = ["count_true", "exclusive_sum", "places", "ranks", "run_lengths", "select_true", "sum_before_entries",
           "tiles_of"]
