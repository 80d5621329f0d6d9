"""How a convolution is cut up: into blocks that chunks do, parts whose sums are written together, and tiles."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import NamedTuple

from ...kernels import threads as limits
from .geometry import Correlation
from .register_tile import Choice, choose

#: bytes of a block's source, which is met again for every panel: a part of a core's second cache; and where weights,
#: which are met again for every block, have more bytes than that
SOURCE, LARGE_SOURCE = 1 << 18, 1 << 19
#: bytes of sums that wait to be written: a part of the first cache
BUFFER = 1 << 14
#: weights of so many bytes are not read again for every block: a chunk does one panel at all positions
WEIGHTS = 1 << 20
#: chunks are made no smaller than so many multiplications, and no more of them; no more for each thread, where each
#: reads many weights
SMALLEST, CHUNKS, EACH = 1 << 20, 16, 2

#: rows of so many positions are met by whole tiles but for a small part
WIDE = 840

#: by how much parts whose rows are runs may have more rows than fit into the first cache
RUN = 4

Quadruple = tuple[int, int, int, int]


class Cut(NamedTuple):
    """Sizes of blocks and of parts, along (n, d, h, w), in positions of the largest phase.

    Along w the last block, and the last part of a block, take what is left, so that none is narrower than a tile.

    Attributes:
        blocks: how many along each dimension.
        least: what the last part is wider than, where there are several.
        splits: by how many chunks the panels of each block are shared.
        deep: whether each panel is packed by the chunk that needs it, and the source copied as a whole before.
    """

    block: Quadruple
    blocks: Quadruple
    part: Quadruple
    least: int
    splits: int
    deep: bool
    tile: Choice


def even(extent: int, most: int) -> int:
    """The size of equal parts of at most `most`.

    >>> even(28, 10)
    10
    >>> even(26, 14)
    13
    """
    count = -(-extent // max(1, min(most, extent)))
    return -(-extent // count)


def region(count: int, step: int, span: int) -> int:
    """Elements of the source that `count` positions see."""
    return (count - 1) * step + span


def cut(problem: Correlation, channel_bytes: int, itemsize: int, lanes: int, apart: bool, runs: bool = False) -> Cut:
    """The cut for this machine.

    Args:
        channel_bytes: of all channels of the source at one position.
        apart: whether each channel is convolved alone.
        runs: whether tiles go on from one row to the next, and weights are always packed before.
    """
    sizes = problem.grid
    every = (problem.batch, *sizes)
    span = [m - low + 1 for m, low in zip(problem.most, problem.least, strict=True)]
    vectors = -(-problem.width // lanes)

    def seen(d: int, h: int, w: int) -> int:
        return prod(map(region, (d, h, w), problem.source_step, span)) * channel_bytes

    narrow = min(phase.counts[2] for phase in problem.phases if prod(phase.counts))
    tile = (choose(WIDE, 1, vectors, apart) if runs
            else choose(narrow if narrow < WIDE else WIDE, min(8, prod(every[:3])), vectors, apart))
    pixel = tile.vectors * lanes * itemsize * prod(problem.target_step)
    row = tile.columns * max(1, BUFFER // (pixel * tile.columns))
    least = 2 * tile.columns

    jobs = problem.groups * -(-vectors // tile.vectors)
    weights = problem.groups * problem.depth * problem.width * prod(problem.kernel) * itemsize
    heavy = weights > SOURCE
    wanted = max(1, min(max(4, EACH * limits.count()) if heavy else CHUNKS, problem.multiplications // SMALLEST))
    whole = seen(*sizes)
    block = _block(every, seen, LARGE_SOURCE if heavy else SOURCE, row, least)
    splits, deep = 1, False
    if not runs and weights > WEIGHTS and jobs >= 4 and jobs * whole * problem.batch < _count(every, block) * weights:
        # few positions for many weights
        deep, splits = True, jobs
        block = [-(-problem.batch // min(problem.batch, -(-wanted // jobs))), *sizes]
    else:
        block = finer(every, block, wanted)
        if _count(every, block) < wanted:
            splits = min(jobs, -(-wanted // _count(every, block)))
    blocks = [-(-extent // size) for extent, size in zip(every, block, strict=True)]
    blocks[3] = pieces(sizes[2], block[3], least)
    part = _part(block, row, pixel, tile)
    if runs and part[2] < block[2] and part[3] == block[3]:
        part = 1, 1, _rows(block[2], block[3], part[2], tile.columns), block[3]
    return Cut(_four(block), _four(blocks), part, least, splits, deep, tile)


def nested(every: tuple[int, ...], narrowest: int, fits: Callable[[int, int, int], int]) -> list[int]:
    """A block that goes on to the next dimension where it has all of one.

    Args:
        narrowest: positions along w that it has at least.
        fits: how often (d, h, w) positions fit into a block.
    """
    n, d, h, w = every
    block = [1, 1, 1, even(w, max(narrowest, fits(1, 1, 1)))]
    if block[3] == w:
        block[2] = even(h, fits(1, 1, w))
    if block[2:] == [h, w]:
        block[1] = even(d, fits(1, h, w))
    if block[1:] == [d, h, w]:
        block[0] = even(max(1, n), fits(d, h, w))
    return block


def finer(every: tuple[int, ...], block: list[int], wanted: int) -> list[int]:
    """The block, cut further until there are as many as are wanted, but not along w."""
    block = list(block)
    for axis in (0, 1, 2):
        while block[axis] > 1 and _count(every, block) < wanted:
            block[axis] = even(every[axis], block[axis] - 1)
    return block


def pieces(extent: int, size: int, least: int) -> int:
    """How many pieces there are, if the last takes what is left and is wider than `least`."""
    return max(1, -(-(extent - least) // size))


def _four(values: list[int]) -> Quadruple:
    n, d, h, w = values
    return n, d, h, w


def _block(every: tuple[int, ...], seen: Callable[[int, int, int], int], most: int, row: int,
           least: int) -> list[int]:
    """A block whose source has no more than `most` bytes, if one of a part's width has not."""
    n, d, h, w = every
    if seen(1, 1, w) > most and w > row + least:
        w = row * _most(w // row, most, lambda count: seen(1, 1, count * row))
        return [1, 1, 1, w]
    h = even(h, _most(h, most, lambda count: seen(1, count, w)))
    if h < every[2]:
        return [1, 1, h, w]
    d = even(d, _most(d, most, lambda count: seen(count, h, w)))
    if d < every[1]:
        return [1, d, h, w]
    return [even(n, max(1, most // max(1, seen(d, h, w)))), d, h, w]


def _part(block: list[int], row: int, pixel: int, tile: Choice) -> Quadruple:
    n, d, h, w = block
    if w > row + 2 * tile.columns:
        return 1, 1, 1, row
    rows = max(tile.rows, BUFFER // (pixel * w))
    if rows < h:
        return 1, 1, tile.rows * (rows // tile.rows), w
    if rows < h * d:
        return 1, max(1, rows // h), h, w
    return min(n, -(-rows // (h * d))), d, h, w


def _rows(extent: int, width: int, rows: int, columns: int) -> int:
    """About so many rows, but such that runs of their positions are met by few tiles: the last is seldom full."""
    def tiles(count: int) -> int:
        whole, rest = divmod(extent, count)
        return whole * -(-count * width // columns) + -(-rest * width // columns)

    return min(range(1, min(extent, RUN * rows) + 1), key=lambda count: (tiles(count), max(count, rows), -count))


def _most(extent: int, most: int, bytes_of: Callable[[int], int]) -> int:
    """The greatest count from 1 to `extent` of no more than `most` bytes."""
    low, high = 1, max(1, extent)
    while low < high:
        middle = (low + high + 1) // 2
        if bytes_of(middle) <= most:
            low = middle
        else:
            high = middle - 1
    return low


def _count(every: tuple[int, ...], block: list[int]) -> int:
    return prod(-(-a // b) for a, b in zip(every, block, strict=True))
