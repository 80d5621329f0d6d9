"""Sorts of short rows: a block sorts whole rows, or pieces of rows, by a bitonic network.

A network sorts pairs of a key and a place, so equal elements keep their order. Longer rows are sorted in pieces, whose
first elements are candidates for the next stage, until one piece is left: a selection of few elements.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ....runtime.launch import Spec
from ...scalar.scalar_ir import Node, cast, constant, select
from ..coordinates import INT32, INT64, count_blocks
from ..kernel_ir import WARP, KernelBuilder
from ..launches import Argument, DeviceLaunch, launch
from ..statements import Local
from .keys import UINT32, UINT64, bits_dtype, key_dtype, key_of

#: the longest piece that a block sorts
LONGEST = 4096
#: pairs that a block sorts at least, of several rows
_LEAST = 512


class _Network:
    """Pairs of a key and a place, some in each thread's registers; keys of 32 bits are packed with their places.

    Args:
        b: the kernel's builder.
        keys: the keys' dtype.
        size: the number of pairs; a thread has those at its number, and at multiples of the threads from there.
    """

    def __init__(self, b: KernelBuilder, keys: np.dtype, size: int) -> None:
        self.b, self.packed, self.count = b, keys == UINT32, size // b.threads
        self._shared = [b.shared(UINT64, size), *([] if self.packed else [b.shared(UINT32, size)])]
        self._pairs: list[list[Local]] = []

    def at(self, i: int) -> Node:
        """The place in the network of a thread's pair."""
        return self.b.thread + i * self.b.threads

    def add(self, key: Node, place: Node, exists: Node) -> None:
        """Add a thread's next pair; one that does not exist is above all others."""
        most = constant((1 << 64) - 1, UINT64)
        if self.packed:
            pair = [select(exists, cast(key, UINT64) * constant(1 << 32, UINT64) + cast(place, UINT64), most)]
        else:
            pair = [select(exists, key, most), select(exists, place, constant((1 << 32) - 1, UINT32))]
        self._pairs.append([self.b.local(each) for each in pair])

    def place(self, i: int) -> Node:
        """The place of a thread's pair; 2³² - 1 of one that does not exist."""
        return cast(self.b.get(self._pairs[i][-1]), UINT32)

    @staticmethod
    def _is_above(first: list[Node], second: list[Node]) -> Node:
        above = first[0] > second[0]
        if len(first) == 1:
            return above
        return above | (~(first[0] < second[0]) & (first[1] > second[1]))

    def order(self, gap: int, ascending: Callable[[Node], Node]) -> None:
        """Order pairs that are `gap` apart: in registers, within a warp, or through shared memory.

        Args:
            ascending: for a place in the network whether the smaller pair of two is the first one.
        """
        b = self.b
        mine = [[b.get(each) for each in pair] for pair in self._pairs]
        if gap >= b.threads:
            self._order_own(mine, gap // b.threads, ascending)
            return
        if gap < WARP:
            others = [[b.shuffle_xor(each, gap) for each in pair] for pair in mine]
        else:
            b.barrier()
            for i, pair in enumerate(mine):
                for buffer, each in zip(self._shared, pair, strict=True):
                    b.store(buffer, self.at(i), each)
            b.barrier()
            others = [[b.load(buffer, self.at(i) ^ gap) for buffer in self._shared] for i in range(self.count)]
        for i, (pair, other) in enumerate(zip(mine, others, strict=True)):
            is_first = (self.at(i) & gap) < 1
            keeps_smaller = ~(is_first ^ ascending(self.at(i)))
            takes_other = self._is_above(pair, other) ^ ~keeps_smaller
            for local, own, new in zip(self._pairs[i], pair, other, strict=True):
                b.set(local, select(takes_other, new, own))

    def _order_own(self, pairs: list[list[Node]], apart: int, ascending: Callable[[Node], Node]) -> None:
        for i, first in enumerate(pairs):
            if i & apart:
                continue
            second = pairs[i + apart]
            swap = self._is_above(first, second) ^ ~ascending(self.at(i))
            for k, (x, y) in enumerate(zip(first, second, strict=True)):
                self.b.set(self._pairs[i][k], select(swap, y, x))
                self.b.set(self._pairs[i + apart][k], select(swap, x, y))


def _power(n: int) -> int:
    return 1 << max(n - 1, 0).bit_length()


def _stage(x: Spec, candidates: bool, length: int, piece: int, keep: int, descending: bool, last: bool
           ) -> tuple[KernelBuilder, int]:
    """The kernel of one stage, and its blocks. Its buffers: order, values (in the last stage), x, candidates.

    Args:
        candidates: whether places are those of candidates.
        length: elements of a row, or candidates.
        piece: elements of a piece.
        keep: elements of a piece that are written.
    """
    rows, n = x.shape
    pieces = count_blocks(length, piece)
    padded = _power(min(piece, length))
    at_once = max(_LEAST // padded, 1)
    size = max(padded * at_once, 2 * WARP)
    at_once = size // padded
    threads = min(size // 2, 1024)
    b = KernelBuilder("block_sort", threads)
    bits = bits_dtype(x.dtype)
    order = b.buffer(INT64 if last else INT32)
    values = b.buffer(bits) if last else None
    source = b.buffer(bits)
    chosen = b.buffer(INT32) if candidates else None
    network = _Network(b, key_dtype(x.dtype), size)
    total = rows * pieces

    def where(i: int) -> tuple[Node, Node, Node]:
        """The place of a thread's pair in its piece, and the row and number of the piece."""
        at = network.at(i)
        local = cast(cast(at, UINT32) / padded, INT32)
        whole = cast(b.block, INT64) * at_once + cast(local, INT64)
        row = whole if pieces == 1 else cast(cast(whole, UINT64) / pieces, INT64)
        return at - local * padded, row, whole

    for i in range(size // threads):
        inner, row, whole = where(i)
        place = cast(inner, INT64) + (whole - row * pieces) * piece
        exists = (inner < min(piece, length)) & (place < length) & (whole < total)
        if chosen is not None:
            place = cast(b.load(chosen, row * length + place, exists), INT64)
            exists = exists & (place >= 0)
        key = key_of(b.load(source, row * n + place, exists), x.dtype, descending)
        network.add(key, cast(place, UINT32), exists)
    spans = b.constants([1 << i for i in range(1, padded.bit_length())])
    with b.loop(0, padded.bit_length() - 1) as stage:
        span = b.load(spans, stage)
        gap = padded // 2
        while gap:
            with b.when(span > gap):  # for all threads of the block, or none
                network.order(gap, lambda at: (at & (padded - 1) & span) < 1)
            gap //= 2
    for i in range(size // threads):
        inner, row, whole = where(i)
        exists = (inner < keep) & (whole < total)
        place = network.place(i)
        to = whole * keep + cast(inner, INT64)
        if values is None:
            b.store(order, to, cast(place, INT32), exists)  # -1: there is none
        else:
            b.store(order, to, cast(place, INT64), exists)
            b.store(values, to, b.load(source, row * n + cast(place, INT64), exists), exists)
    return b, count_blocks(total, at_once)


def launches(order: Spec, values: Spec, x: Spec, keep: int, descending: bool) -> list[DeviceLaunch]:
    """Launches that write the first elements of each sorted row, equal ones in their order.

    Args:
        order: the places in the rows, (rows, keep), int64, dense.
        values: the elements, of the dtype of `x`, dense.
        x: (rows, n), dense; n is at least `keep`, and at most `LONGEST` unless `keep` is at most a quarter of that.
        descending: whether the largest elements are first.

    Raises:
        ValueError: rows are too long.
    """
    rows, n = x.shape
    if not rows or not keep:
        return []
    if n > LONGEST and keep > LONGEST // 4:
        raise ValueError(f"{keep} of rows of {n} elements")
    stages, length = [], n
    while length > LONGEST:
        pieces = count_blocks(length, LONGEST)
        stages.append((length, LONGEST, pieces))
        length = pieces * keep
    sizes = [rows * pieces * keep * INT32.itemsize for _, _, pieces in stages]
    scratch, work, before = sum(sizes[:2]), [], None
    for number, (count, piece, _) in enumerate(stages):
        b, blocks = _stage(x, before is not None, count, piece, keep, descending, False)
        made = Argument(3, (number % 2) * sizes[0], sizes[number] // INT32.itemsize)
        work.append(launch(b.kernel(), blocks, [made, Argument(2), *([] if before is None else [before])], scratch))
        before = made
    b, blocks = _stage(x, before is not None, length, length, keep, descending, True)
    arguments = [Argument(0), Argument(1), Argument(2), *([] if before is None else [before])]
    return [*work, launch(b.kernel(), blocks, arguments, scratch)]


__all__ = ["LONGEST", "launches"]
