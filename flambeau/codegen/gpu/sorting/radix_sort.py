"""Sorts of long rows: passes over four bits of the keys, each of which keeps the order of equal ones.

A pass writes keys without the digit that it has sorted by, so that all passes but the first and the last one have the
same code. A pass has three kernels: every block counts the digits of a tile, one block for each row adds the counts up,
and every block sorts its tile by the digit in shared memory and writes it to the places of its digits, so that
neighbours go to neighbours.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ....runtime.launch import Spec
from ...scalar.scalar_ir import Node, cast, constant, select
from ..coordinates import INT32, INT64, count_blocks
from ..kernel_ir import Kernel, KernelBuilder
from ..launches import Argument, DeviceLaunch, launch
from ..statements import Buffer
from .keys import UINT32, bits_dtype, key_bits, key_dtype, key_of
from .prefix import exclusive_sum, sum_before_entries

THREADS, BITS = 256, 4
DIGITS = 1 << BITS
#: threads of the block that adds up a row's counts
_SCANNING = 1024


class _Rows(NamedTuple):
    """What is sorted.

    Attributes:
        x: the rows.
        descending: whether the largest elements are first.
        items: elements of a tile for each thread.
    """

    x: Spec
    descending: bool
    items: int

    @property
    def tile(self) -> int:
        """Elements of a tile."""
        return THREADS * self.items

    @property
    def tiles(self) -> int:
        """Tiles of a row."""
        return count_blocks(self.x.shape[1], self.tile)

    @property
    def places(self) -> np.dtype:
        """The dtype of places in all rows."""
        return INT32 if self.x.shape[0] * self.tiles * max(self.tile, DIGITS) < 1 << 30 else INT64


class _Tile:
    """A block's tile in a kernel: its row, its number, and its elements' keys."""

    def __init__(self, rows: _Rows, b: KernelBuilder, keys: Buffer, first: bool) -> None:
        self.rows, self.b, self._keys, self._first = rows, b, keys, first
        block = cast(b.block, rows.places)
        self.row = block / rows.tiles
        self.number = block - self.row * rows.tiles
        self.start = self.number * rows.tile
        self.base = self.row * rows.x.shape[1]

    def key(self, inner: Node) -> tuple[Node, Node]:
        """The key of an element of the tile, and whether there is one."""
        at = self.start + cast(inner, self.rows.places)
        exists = at < self.rows.x.shape[1]
        loaded = self.b.load(self._keys, self.base + at, exists)
        return key_of(loaded, self.rows.x.dtype, self.rows.descending) if self._first else loaded, exists


def _digit(key: Node) -> Node:
    """The lowest digit of a key."""
    return cast(key & constant(DIGITS - 1, key.dtype), INT32)


def _spread(at: Node) -> Node:
    """A place in shared memory such that threads that are 16 elements apart use different banks."""
    return at + cast(cast(at, UINT32) / 16, INT32)


def _shared(b: KernelBuilder, dtype: np.dtype, size: int) -> Buffer:
    return b.shared(dtype, size + size // 16)


def _keys_buffer(b: KernelBuilder, rows: _Rows, first: bool) -> Buffer:
    return b.buffer(bits_dtype(rows.x.dtype) if first else key_dtype(rows.x.dtype))


@lru_cache(256)
def _count(rows: _Rows, first: bool) -> Kernel:
    """The kernel that counts each digit in each tile. Its buffers: keys, counts (rows, digits, tiles)."""
    b = KernelBuilder("radix_count", THREADS)
    keys, counts = _keys_buffer(b, rows, first), b.buffer(INT32)
    tile = _Tile(rows, b, keys, first)
    own = b.shared(INT32, DIGITS * THREADS)
    for i in range(DIGITS):
        b.store(own, b.thread + i * THREADS, constant(0, INT32))
    for i in range(rows.items):
        key, exists = tile.key(b.thread + i * THREADS)
        at = _digit(key) * THREADS + b.thread
        b.store(own, at, b.load(own, at, exists) + 1, exists)
    b.barrier()
    parts = THREADS // DIGITS
    digit = b.thread / parts
    part = b.thread - digit * parts
    total = b.local(constant(0, INT32))
    with b.loop(0, THREADS // parts) as step:
        b.set(total, b.get(total) + b.load(own, digit * THREADS + step * parts + part))
    whole = b.get(total)
    lanes = parts // 2
    while lanes:
        whole = whole + b.shuffle_xor(whole, lanes)
        lanes //= 2
    at = (tile.row * DIGITS + cast(digit, rows.places)) * rows.tiles + tile.number
    b.store(counts, at, whole, part < 1)
    return b.kernel()


@lru_cache(256)
def _sum(rows: _Rows) -> Kernel:
    """The kernel in which a block for each row adds up its counts. Its buffer: counts."""
    b = KernelBuilder("radix_sum", _SCANNING)
    counts = b.buffer(INT32)
    entries = DIGITS * rows.tiles
    sum_before_entries(b, counts, cast(b.block, rows.places) * entries, entries)
    return b.kernel()


@lru_cache(256)
def _move(rows: _Rows, first: bool, last: bool) -> Kernel:
    """The kernel that writes elements to the places of their digits.

    Its buffers: counts, keys and places (but in the first pass, in which places are those of the elements), then those
    that it writes: keys and places, or in the last pass the order, the values, and `x`.
    """
    b = KernelBuilder("radix_move", THREADS)
    wide = key_dtype(rows.x.dtype)
    counts, keys = b.buffer(INT32), _keys_buffer(b, rows, first)
    places = None if first else b.buffer(INT32)
    out_keys, out_places = (None, b.buffer(INT64)) if last else (b.buffer(wide), b.buffer(INT32))
    bits = bits_dtype(rows.x.dtype)
    values, source = (b.buffer(bits), b.buffer(bits)) if last else (None, None)
    tile = _Tile(rows, b, keys, first)
    held, held_places = _shared(b, wide, rows.tile), _shared(b, INT32, rows.tile)
    before, begin = _shared(b, INT32, DIGITS * THREADS), b.shared(INT32, DIGITS)
    for i in range(rows.items):  # neighbours of the array are read by neighbouring threads
        inner = b.thread + i * THREADS
        key, exists = tile.key(inner)
        b.store(held, _spread(inner), select(exists, key, constant((1 << 8 * wide.itemsize) - 1, wide)))
        place = cast(tile.start, INT32) + inner if places is None else b.load(
            places, tile.base + tile.start + cast(inner, rows.places), exists)
        b.store(held_places, _spread(inner), place)
    for i in range(DIGITS):
        b.store(before, _spread(b.thread + i * THREADS), constant(0, INT32))
    b.barrier()
    own_keys, own_places, own_digits, ranks = [], [], [], []
    for i in range(rows.items):  # and then counted in their order: each thread has neighbouring ones
        inner = b.thread * rows.items + i
        key = b.load(held, _spread(inner))
        digit = select(cast(inner, rows.places) + tile.start < rows.x.shape[1], _digit(key), DIGITS - 1)
        at = _spread(digit * THREADS + b.thread)
        rank = b.load(before, at)
        b.store(before, at, rank + 1)
        own_keys.append(key)
        own_places.append(b.load(held_places, _spread(inner)))
        own_digits.append(digit)
        ranks.append(rank)
    b.barrier()
    entries = [_spread(b.thread * DIGITS + i) for i in range(DIGITS)]
    amounts = [b.load(before, at) for at in entries]
    total = amounts[0]
    for each in amounts[1:]:
        total = total + each
    running, _ = exclusive_sum(b, total)
    for at, each in zip(entries, amounts, strict=True):
        b.store(before, at, running)
        running = running + each
    b.barrier()
    for key, place, digit, rank in zip(own_keys, own_places, own_digits, ranks, strict=True):
        to = b.load(before, _spread(digit * THREADS + b.thread)) + rank
        b.store(held, _spread(to), key)
        b.store(held_places, _spread(to), place)
    with b.when(b.thread < DIGITS):
        at = (tile.row * DIGITS + cast(b.thread, rows.places)) * rows.tiles + tile.number
        b.store(begin, b.thread, b.load(counts, at) - b.load(before, _spread(b.thread * THREADS)))
    b.barrier()
    for i in range(rows.items):
        inner = b.thread + i * THREADS
        exists = cast(inner, rows.places) + tile.start < rows.x.shape[1]
        key, place = b.load(held, _spread(inner)), b.load(held_places, _spread(inner))
        to = tile.base + cast(b.load(begin, _digit(key)) + inner, rows.places)
        if out_keys is not None:
            b.store(out_keys, to, key / constant(DIGITS, wide), exists)
        b.store(out_places, to, place, exists)
        if values is not None and source is not None:
            b.store(values, to, b.load(source, tile.base + cast(place, rows.places), exists), exists)
    return b.kernel()


def launches(order: Spec, values: Spec, x: Spec, descending: bool, bits: int | None = None) -> list[DeviceLaunch]:
    """Launches that sort rows; equal elements keep their order.

    Args:
        order: the places in the rows, of the shape of `x`, int64, dense.
        values: the elements, of the dtype of `x`, dense.
        x: (rows, n), dense; n is less than 2³⁰.
        descending: whether the largest elements are first.
        bits: bits that keys may have set; None: all of the dtype.
    """
    count, n = x.shape
    if not count or not n:
        return []
    wide = key_dtype(x.dtype)
    rows = _Rows(x, descending, 16 if wide.itemsize == 4 else 8)
    passes = count_blocks(key_bits(x.dtype) if bits is None else bits, BITS)
    tables = count * DIGITS * rows.tiles
    sizes = [tables * 4, *([count * n * wide.itemsize, count * n * 4] * 2 if passes > 1 else [])]
    offsets, end = [], 0
    for size in sizes:
        offsets.append(end)
        end += -(-size // 16) * 16
    counts = Argument(3, 0, tables)
    buffers = [(Argument(3, k, count * n), Argument(3, p, count * n)) for k, p in (
        zip(offsets[1::2], offsets[2::2], strict=True))]
    work, before = [], None
    for number in range(passes):
        last = number == passes - 1
        keys = Argument(2) if before is None else before[0]
        blocks = count * rows.tiles
        work.append(launch(_count(rows, not number), blocks, [keys, counts], end))
        work.append(launch(_sum(rows), count, [counts], end))
        given = [counts, keys, *([] if before is None else [before[1]])]
        after = None if last else buffers[number % 2]
        made = [Argument(0), Argument(1), Argument(2)] if after is None else [*after]
        work.append(launch(_move(rows, not number, last), blocks, [*given, *made], end))
        before = after
    return work


__all__ = ["launches"]
