"""Convolution blocking: the block of output positions of a chunk, the parts that it is computed in, and their tile."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import NamedTuple

from ...kernels import threads as limits
from ...runtime.symbolic_integers import typical
from .geometry import Correlation
from .register_tile import TileShape, choose_tile

#: maximum bytes of a block's source, which each panel of weights reads again (a share of L2); and where the weights,
#: which each block reads again, are larger than that
SOURCE_BYTES, LARGE_SOURCE_BYTES = 1 << 18, 1 << 19
#: bytes of a part's buffered output (a share of L1)
BUFFER_BYTES = 1 << 14
#: above this size weights are not read again for every block: a chunk computes one panel at all positions
LARGE_WEIGHTS_BYTES = 1 << 20
#: minimum multiplications of a chunk, maximum number of chunks, and maximum per thread where each reads many weights
MIN_CHUNK_WORK, MAX_CHUNKS, CHUNKS_PER_THREAD = 1 << 20, 16, 2

#: rows of so many positions lose little to the incomplete last tile, for any tile
WIDE = 840

#: parts whose rows are contiguous runs may have this many times the rows that fit into L1
MAX_RUN_FACTOR = 4

Quadruple = tuple[int, int, int, int]


class Blocking(NamedTuple):
    """Sizes of blocks and parts along (n, d, h, w), in positions of the largest phase.

    Along w the last block, and the last part of a block, include the remainder, so that none is narrower than a tile.

    Attributes:
        blocks: number of blocks along each dimension.
        min_last: where a row has several parts, the last one is wider than this.
        splits: number of chunks that share the panels of a block.
        pack_per_chunk: each panel is packed by the chunk that uses it, and the entire source is copied beforehand.
    """

    block: Quadruple
    blocks: Quadruple
    part: Quadruple
    min_last: int
    splits: int
    pack_per_chunk: bool
    tile: TileShape


def balanced_size(extent: int, limit: int) -> int:
    """The size of nearly equal parts of at most `limit`.

    >>> balanced_size(28, 10)
    10
    >>> balanced_size(26, 14)
    13
    """
    count = -(-extent // max(1, min(limit, extent)))
    return -(-extent // count)


def input_extent(count: int, step: int, span: int) -> int:
    """Source elements along one dimension that `count` positions read."""
    return (count - 1) * step + span


def choose_blocking(problem: Correlation, channel_bytes: int, itemsize: int, lanes: int, depthwise: bool,
                    runs: bool = False) -> Blocking:
    """The blocking for this machine.

    Args:
        channel_bytes: bytes of all source channels at one position.
        depthwise: each channel is convolved separately.
        runs: tiles continue across rows, and weights are always packed beforehand (Winograd).
    """
    sizes = problem.grid
    batch = typical(problem.batch)
    # blocks may be larger than the extents along n, d and h: those of symbolic sizes are chosen for typical ones
    extents = (batch, typical(sizes[0]), typical(sizes[1]), sizes[2])
    span = [high - low + 1 for high, low in zip(problem.max_offset, problem.min_offset, strict=True)]
    vectors = -(-problem.out_channels // lanes)

    def source_bytes(d: int, h: int, w: int) -> int:
        return typical(prod(map(input_extent, (d, h, w), problem.source_step, span)) * channel_bytes)

    narrow = min(phase.counts[2] for phase in problem.phases if prod(phase.counts))
    tile = (choose_tile(WIDE, 1, vectors, depthwise) if runs
            else choose_tile(min(typical(narrow), WIDE), min(8, prod(extents[:3])), vectors, depthwise))
    if not runs and tile.columns > narrow:  # of symbolic widths, drops those that are narrower
        raise AssertionError("a tile that is wider than the narrowest row")
    pixel = tile.vectors * lanes * itemsize * prod(problem.target_step)
    row = tile.columns * max(1, BUFFER_BYTES // (pixel * tile.columns))
    min_last = 2 * tile.columns

    jobs = problem.groups * -(-vectors // tile.vectors)
    weights = problem.groups * problem.in_channels * problem.out_channels * prod(problem.kernel) * itemsize
    heavy = weights > SOURCE_BYTES
    chunks = max(1, min(max(4, CHUNKS_PER_THREAD * limits.count()) if heavy else MAX_CHUNKS,
                        typical(problem.multiplications) // MIN_CHUNK_WORK))
    image_bytes = source_bytes(*sizes)
    block = _block(extents, source_bytes, LARGE_SOURCE_BYTES if heavy else SOURCE_BYTES, row, min_last)
    splits, pack_per_chunk = 1, False
    if (not runs and weights > LARGE_WEIGHTS_BYTES and jobs >= 4
            and jobs * image_bytes * batch < _count(extents, block) * weights):
        # few positions for many weights
        pack_per_chunk, splits = True, jobs
        block = [-(-batch // min(batch, -(-chunks // jobs))), *sizes]
    else:
        block = split_block(extents, block, chunks)
        if _count(extents, block) < chunks:
            splits = min(jobs, -(-chunks // _count(extents, block)))
    blocks = [-(-extent // size) for extent, size in zip((problem.batch, *sizes), block, strict=True)]
    blocks[3] = part_count(sizes[2], block[3], min_last)
    part = _part(block, row, pixel, tile)
    if runs and part[2] < block[2] and part[3] == block[3]:
        part = 1, 1, _rows(block[2], block[3], part[2], tile.columns), block[3]
    return Blocking(_four(block), _four(blocks), part, min_last, splits, pack_per_chunk, tile)


def grow_block(extents: tuple[int, ...], min_width: int, fits: Callable[[int, int, int], int]) -> list[int]:
    """A block that extends to the next outer dimension once it spans all of an inner one.

    Args:
        min_width: minimum number of positions along w.
        fits: how many regions of (d, h, w) positions fit into a block.
    """
    n, d, h, w = extents
    block = [1, 1, 1, balanced_size(w, max(min_width, fits(1, 1, 1)))]
    if block[3] == w:
        block[2] = balanced_size(h, fits(1, 1, w))
    if block[2:] == [h, w]:
        block[1] = balanced_size(d, fits(1, h, w))
    if block[1:] == [d, h, w]:
        block[0] = balanced_size(max(1, n), fits(d, h, w))
    return block


def split_block(extents: tuple[int, ...], block: list[int], min_blocks: int) -> list[int]:
    """The block, split along n, d and h until there are at least `min_blocks`."""
    block = list(block)
    for axis in (0, 1, 2):
        while block[axis] > 1 and _count(extents, block) < min_blocks:
            block[axis] = balanced_size(extents[axis], block[axis] - 1)
    return block


def part_count(extent: int, size: int, min_last: int) -> int:
    """The number of parts if the last includes the remainder and is wider than `min_last`."""
    return max(1, -(-(extent - min_last) // size))


def _four(values: list[int]) -> Quadruple:
    n, d, h, w = values
    return n, d, h, w


def _block(extents: tuple[int, ...], source_bytes: Callable[[int, int, int], int], limit: int, row: int,
           min_last: int) -> list[int]:
    """A block whose source has at most `limit` bytes, or one part's width where even that has more."""
    n, d, h, w = extents
    if source_bytes(1, 1, w) > limit and w > row + min_last:
        w = row * _largest_count(w // row, limit, lambda count: source_bytes(1, 1, count * row))
        return [1, 1, 1, w]
    h = balanced_size(h, _largest_count(h, limit, lambda count: source_bytes(1, count, w)))
    if h < extents[2]:
        return [1, 1, h, w]
    d = balanced_size(d, _largest_count(d, limit, lambda count: source_bytes(count, h, w)))
    if d < extents[1]:
        return [1, d, h, w]
    return [balanced_size(n, max(1, limit // max(1, source_bytes(d, h, w)))), d, h, w]


def _part(block: list[int], row: int, pixel: int, tile: TileShape) -> Quadruple:
    n, d, h, w = block
    if w > row + 2 * tile.columns:
        return 1, 1, 1, row
    rows = max(tile.rows, BUFFER_BYTES // (pixel * typical(w)))
    if rows < h:
        return 1, 1, tile.rows * (rows // tile.rows), w
    if rows < h * d:
        return 1, max(1, rows // h), h, w
    return min(n, -(-rows // (h * d))), d, h, w


def _rows(extent: int, width: int, rows: int, columns: int) -> int:
    """Approximately `rows` rows, but such that few tiles cover their runs of positions: last tiles are seldom full."""
    def tiles(count: int) -> int:
        parts, rest = divmod(typical(extent), count)
        return parts * -(-count * typical(width) // columns) + -(-rest * typical(width) // columns)

    return min(range(1, min(typical(extent), MAX_RUN_FACTOR * rows) + 1),
               key=lambda count: (tiles(count), max(count, rows), -count))


def _largest_count(extent: int, limit: int, bytes_of: Callable[[int], int]) -> int:
    """The greatest count from 1 to `extent` of at most `limit` bytes."""
    low, high = 1, max(1, extent)
    while low < high:
        middle = (low + high + 1) // 2
        if bytes_of(middle) <= limit:
            low = middle
        else:
            high = middle - 1
    return low


def _count(extents: tuple[int, ...], block: list[int]) -> int:
    return prod(-(-a // b) for a, b in zip(extents, block, strict=True))
