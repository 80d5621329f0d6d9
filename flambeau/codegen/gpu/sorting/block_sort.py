"""Sorts of short rows: a block sorts whole rows, or pieces of rows, by a bitonic network in shared memory.

A network sorts pairs of a key and a place, so equal elements keep their order. Longer rows are sorted in pieces, whose
first elements are candidates for the next stage, until one piece is left: a selection of few elements.
"""

from __future__ import annotations

import numpy as np

from ....runtime.launch import Spec
from ...scalar.scalar_ir import Node, cast, constant, select
from ..coordinates import INT32, INT64, count_blocks
from ..kernel_ir import WARP, KernelBuilder
from ..launches import Argument, DeviceLaunch, launch
from .keys import UINT32, UINT64, bits_dtype, key_dtype, key_of

#: the longest piece that a block sorts
LONGEST = 4096
#: pairs that a block sorts at least, of several rows
_LEAST = 512


class _Network:
    """Pairs of a key and a place in shared memory; keys of 32 bits are packed with their places.

    Args:
        b: the kernel's builder.
        keys: the keys' dtype.
        size: the number of pairs.
    """

    def __init__(self, b: KernelBuilder, keys: np.dtype, size: int) -> None:
        self.b, self.packed, self.size = b, keys == UINT32, size
        self._keys = b.shared(UINT64, size)
        self._places = None if self.packed else b.shared(UINT32, size)

    def put(self, at: Node, key: Node, place: Node, exists: Node) -> None:
        """Write a pair; one that does not exist is above all others."""
        if self.packed:
            pair = cast(key, UINT64) * constant(1 << 32, UINT64) + cast(place, UINT64)
            self.b.store(self._keys, at, select(exists, pair, constant((1 << 64) - 1, UINT64)))
            return
        assert self._places is not None
        self.b.store(self._keys, at, select(exists, key, constant((1 << 64) - 1, UINT64)))
        self.b.store(self._places, at, select(exists, place, constant((1 << 32) - 1, UINT32)))

    def place(self, at: Node) -> Node:
        """The place of a pair; 2³² - 1 of one that does not exist."""
        if self._places is not None:
            return self.b.load(self._places, at)
        return cast(self.b.load(self._keys, at), UINT32)

    def exchange(self, low: Node, high: Node, ascending: Node | None) -> None:
        """Order two pairs; None: the first one is the smaller one."""
        b = self.b
        first, second = b.load(self._keys, low), b.load(self._keys, high)
        above, places = first > second, None
        if self._places is not None:
            places = b.load(self._places, low), b.load(self._places, high)
            above = above | (~(first < second) & ~above & (places[0] > places[1]))
        swap = above if ascending is None else above ^ ~ascending
        b.store(self._keys, low, select(swap, second, first))
        b.store(self._keys, high, select(swap, first, second))
        if self._places is not None and places is not None:
            b.store(self._places, low, select(swap, places[1], places[0]))
            b.store(self._places, high, select(swap, places[0], places[1]))


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

    def where(i: int) -> tuple[Node, Node, Node, Node]:
        """The number of a pair in shared memory, its place in the piece, and the row and number of the piece."""
        at = b.thread + i * threads
        local = cast(cast(at, UINT32) / padded, INT32)
        whole = cast(b.block, INT64) * at_once + cast(local, INT64)
        row = whole if pieces == 1 else cast(cast(whole, UINT64) / pieces, INT64)
        return at, at - local * padded, row, whole

    for i in range(size // threads):
        at, inner, row, whole = where(i)
        place = cast(inner, INT64) + (whole - row * pieces) * piece
        exists = (inner < min(piece, length)) & (place < length) & (whole < total)
        if chosen is not None:
            place = cast(b.load(chosen, row * length + place, exists), INT64)
            exists = exists & (place >= 0)
        key = key_of(b.load(source, row * n + place, exists), x.dtype, descending)
        network.put(at, key, cast(place, UINT32), exists)
    span = 2
    while span <= padded:
        gap = span // 2
        while gap:
            b.barrier()
            for i in range(size // 2 // threads):
                pair = cast(b.thread + i * threads, UINT32)
                low = cast(pair + pair / gap * gap, INT32)
                upward = None if span == padded else (cast(low, UINT32) / span - cast(low, UINT32) / (
                    2 * span) * 2) < 1
                network.exchange(low, low + gap, upward)
            gap //= 2
        span *= 2
    b.barrier()
    for i in range(size // threads):
        at, inner, row, whole = where(i)
        exists = (inner < keep) & (whole < total)
        place = network.place(at)
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
