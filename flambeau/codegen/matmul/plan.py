"""How a product is shared between threads and walked: from shapes and strides to the integers that compiled code reads.

Nothing here changes what is computed: an element's sum is taken in parts of K that depend on K alone.
"""

from __future__ import annotations

from enum import IntEnum, auto
from math import prod
from typing import NamedTuple

import numpy as np

from ...kernels import threads as limits
from ...runtime import cache_blocking, target
from ...runtime.compilation import Symbol

#: the longest part of K that is summed up in registers, then added to what was before: the sum's error stays small
DEPTH = 256
#: K of a slab: what is used of A and B for all columns of a region before the next part
SLAB = 1024
#: bytes of A's rows, within a slab, that are one region, at most, and the part of a processor's own cache that they may
#: take: they are to stay there while all columns are computed
WHOLE, PART = 1 << 20, 0.75
#: rows of a region, at most; where they are more than such a cache holds; and where the sums wait in the function's own
#: memory for the other parts of K
MOST, TALLEST, WAITING = 512, 256, 256
#: bytes from a row of B to the next one, from which it is copied, and the rows of A for which that pays
FAR, MANY = 256, 32
#: with vectors that are whole lines of memory, B is copied only where its rows begin in few of the first cache's places
#: (multiples of this), or where it has more bytes than are surely near
PLACES, NEARBY = 1024, 4 << 20
#: regions above each other for which B is packed as a whole
TALL = 3
#: bytes from k to k + 1 in A, and over all of K, from which regions copy their part of it; and multiplications for
#: which that pays
APART, SPAN, WORTH = 2048, 1 << 18, 1 << 22
#: vectors and rows of such a region, at least, and how many of them a thread should have
WIDE, HIGH, EACH = 9, 64, 4
#: bytes of a column that are read at once where columns' elements lie together
PIECE = 16
#: rows of a region, at least, where the result is cut more often than it must be; and of regions that are enough
PLACED, SPLIT = 32, 128
#: what copying B's part costs, in rows of a region; nanoseconds to begin a region; the part of a region for which one
#: thread waits for another in the end; and sums that must run side by side
COPYING, BEGIN, LATE, WAIT = 16, 700, 0.2, 9
#: K that is long beside the result's sides, by itself and as their multiple, if there are fewer regions than these
LONG, MULTIPLE, REGIONS = 2048, 8, 16
#: K up to which storing the result takes most of the time: it is done row by row, as memory likes it
SHALLOW = 8
#: vectors of a region of one row, at least, for the bytes of an element: the more rows the fewer
LENGTH = 64
#: what one thread does in a nanosecond: multiplications of float32 by a vector's bits, and bytes
PRODUCTS, BYTES = {128: 40, 256: 80, 512: 160}, 12
#: nanoseconds of work that are worth a chunk of one matrix, of a batch, or a thread that would have none; those from
#: which there are several; and how many there are, at most, for each thread
CHUNK, BATCHED, THREAD, SHARED, CHUNKS = 30_000, 10_000, 2_500, 5_000, 8


class Way(IntEnum):
    """How B lies in memory: as it is wanted; elements together by row, by column, or not; packed already."""

    IN_PLACE = 0
    ROWS = auto()
    COLUMNS = auto()
    STRIDED = auto()
    PACKED = auto()


class Packing(IntEnum):
    """Where the integers stand that say how the whole of B is packed."""

    VECTORS = 0  # in a chunk; 0: a chunk is a region of columns
    REGIONS = auto()
    ALL_VECTORS = auto()
    COLUMNS = auto()
    K = auto()
    WAY = auto()
    BY_K = auto()
    BY_COLUMN = auto()
    SOURCE = auto()  # the number of B's pointer
    TARGET = auto()  # of the pointer to scratch memory


class Plan(IntEnum):
    """Where the plan's integers stand.

    After these come, for every batch dimension (the fastest first), its extent and all operands' strides; then all
    outputs' and extras' strides by row, then those by column. Operands stand in the order outputs, extras, A, B.
    """

    ITEMS = 0  # regions of the result: batches × row regions × column regions
    PER_CHUNK = auto()  # of them
    COLUMN_REGIONS = auto()
    ROW_REGIONS = auto()
    M = auto()
    N = auto()
    K = auto()  # of one slice
    K_TOTAL = auto()
    SLICES = auto()  # of K: the fastest batch dimension, where there are several
    ROWS = auto()  # of a region
    ALL_VECTORS = auto()  # of a row, shared evenly between the column regions
    DEPTH = auto()  # of K that is summed up at once
    SLAB = auto()
    A_ROW = auto()
    A_K = auto()
    LEFT = auto()  # the number of the pointer to memory that regions pack A into; -1: A is read where it lies
    LEFT_OFFSET = auto()  # of the first region's from there
    LEFT_BYTES = auto()  # of a region
    B_K = auto()
    B_COLUMN = auto()
    WAY = auto()
    FINISH = auto()  # the address of the epilogue; 0: the result is stored as it is
    OPERANDS = auto()  # outputs and extras
    RANK = auto()  # batch dimensions
    STRIDES = auto()  # where the strides by row begin
    POINTERS = auto()  # from here on: which pointers the operands are, A and B last


class Problem(NamedTuple):
    """C[b, m, n] = A[b, m, k] B[b, k, n] with everything known but the addresses; strides in bytes."""

    dtype: np.dtype
    m: int
    n: int
    k: int
    batch: tuple[int, ...]  # extents, the fastest first
    strides: tuple[tuple[int, ...], ...]  # of outputs, extras, A, B by batch dimension
    a: tuple[int, int]  # by row, by k
    b: tuple[int, int]  # by k, by column
    others: tuple[tuple[int, int], ...]  # of outputs and extras, by row and by column
    pointers: tuple[int, ...]  # of outputs, extras, A, B


def way(problem: Problem) -> Way:
    """How B is brought to the registers."""
    (by_k, by_column), size = problem.b, problem.dtype.itemsize
    if by_column == size or problem.n == 1:
        return Way.ROWS if problem.m >= MANY and _far(abs(by_k), problem.k) else Way.IN_PLACE
    return Way.COLUMNS if by_k == size and problem.k * size >= PIECE else Way.STRIDED


def _far(pitch: int, k: int) -> bool:
    """Whether rows of B that begin so many bytes apart are better copied than read where they lie."""
    if target.host().vector_bits == 512:
        return pitch >= FAR and (pitch % PLACES == 0 or pitch * k > NEARBY)
    return pitch >= FAR


def slab(problem: Problem, part: int, whole: bool) -> int:
    """How much of `part` of K is used for all columns of a region before the next; `whole`: all that can be at once."""
    limit = SLAB if whole or problem.m * part * problem.dtype.itemsize <= _near() else DEPTH
    return -(-part // max(1, -(-part // limit))) or 1


def rows(problem: Problem, slab: int, high: int, waits: bool) -> int:
    """How many rows a region has, at most; `waits`: its sums are not stored before they are complete."""
    if problem.m * slab * problem.dtype.itemsize <= _near():
        return WAITING if waits and slab > DEPTH else MOST
    return -(-TALLEST // high) * high


def _near() -> int:
    """Bytes of A that stay in a processor's own cache while all columns are computed."""
    return min(WHOLE, int(PART * cache_blocking.size()))


def packs(problem: Problem, shared: Regions, how: Way) -> bool:
    """Whether B is packed as a whole, because many regions would pack the same part of it."""
    return how is not Way.IN_PLACE and not problem.batch and shared.rows * (TALL - 1) < problem.m


def packs_left(problem: Problem) -> bool:
    """Whether regions pack A: a k's elements lie together, but far from the next."""
    apart = abs(problem.a[1])
    return (problem.a[0] == problem.dtype.itemsize and apart >= APART and apart * problem.k >= SPAN
            and not problem.batch and problem.m * problem.n * problem.k >= WORTH)


def packing(problem: Problem, shared: Regions, how: Way, lanes: int, panel: int, place: int) -> tuple[int, ...]:
    """The integers that say how B is packed (`Packing`) into the memory that pointer number `place` points to."""
    vectors, part = -(-problem.n // lanes), 0
    if shared.across == 1:  # parts of the only region, which end where its panels do
        part = -(-vectors // (2 * max(2, limits.count()) * panel)) * panel
        while part < vectors and problem.n // lanes % part == 1:
            part += panel
    return part, shared.across, vectors, problem.n, problem.k, int(how), *problem.b, problem.pointers[-1], place


def chunks(problem: Problem) -> int:
    """Into how many chunks a product is worth cutting: an even number where they are few."""
    m, n, k, size = problem.m, problem.n, max(1, problem.k), problem.dtype.itemsize
    batch = prod(problem.batch)
    left, right = (prod(extent for extent, stride in zip(problem.batch, strides, strict=True) if stride)
                   for strides in problem.strides[-2:])
    moved = size * (left * m * k + right * k * n + len(problem.others) * batch * m * n)
    time = max(batch * m * n * k * size // 4 // _products(), moved // BYTES)
    if time < SHARED:
        return 1
    workers = max(2, limits.count())
    count = max(min(CHUNKS * workers, time // (BATCHED if problem.batch else CHUNK)), min(workers, time // THREAD))
    return count if count >= 8 or count % 2 == 0 else max(1, count - 1)


def _products() -> int:
    """Multiplications of float32 that one thread does in a nanosecond."""
    return PRODUCTS[target.host().vector_bits]


def long(problem: Problem, vectors: int) -> bool:
    """Whether K is to be shared between threads, because the result has too few elements for that."""
    return (problem.k >= max(LONG, MULTIPLE * max(problem.m, problem.n))
            and -(-vectors // 3) * -(-problem.m // SPLIT) < REGIONS)


class Tile(NamedTuple):
    """How the innermost code cuts the result: elements of a vector, vectors of a panel, rows of a block."""

    lanes: int
    panel: int
    high: int


class Regions(NamedTuple):
    """How the result is shared: a region's rows, regions beside each other, regions in a chunk, and chunks."""

    rows: int
    across: int
    per_chunk: int
    chunks: int


def _even(extent: int, most: int, multiple: int) -> int:
    """The size of equal parts that are no larger than `most`, rounded up."""
    part = -(-extent // -(-extent // most))
    return -(-part // multiple) * multiple


def regions(problem: Problem, vectors: int, most: int, tile: Tile, packed: bool) -> Regions:
    """The regions of a product whose rows are so many vectors: those that should be done first.

    Args:
        problem: the product.
        vectors: in a row of the result.
        most: rows of a region, at most.
        tile: how the innermost code cuts the result.
        packed: whether a region copies its part of B.
    """
    wanted, batch, m = chunks(problem), prod(problem.batch), problem.m
    shallow = problem.k <= SHALLOW and vectors > tile.panel
    rows = tile.high if shallow else _even(m, most, tile.high)
    down = -(-m // rows)
    if batch >= wanted or wanted == 1 or shallow:
        per_chunk = -(-batch * down // wanted)
        return Regions(rows, 1, per_chunk, -(-batch * down // per_chunk))
    # few rows leave memory's speed as the limit, which wants long rows of B
    least = LENGTH // (m * problem.dtype.itemsize)
    shares = [share for share in range(tile.panel, 7 * tile.panel, tile.panel) if least <= share < vectors]
    workers = max(2, limits.count())
    each = tile.lanes * max(1, problem.k) * problem.dtype.itemsize / 4 / _products()  # nanoseconds for a row
    found: tuple[float, Regions] | None = None
    for across in dict.fromkeys([1, *(-(-vectors // share) for share in shares)]):
        # when the last thread is done: of the regions beside each other, `wider` have a vector more
        narrow, wider = divmod(vectors, across)
        little, more = _effort(narrow, tile), _effort(narrow + 1, tile)
        late = LATE * (more if wider else little)
        before = 0
        for parts in range(down, max(down, min(m // PLACED, -(-2 * wanted // (batch * across)))) + 1):
            rows = _even(m, -(-m // parts), tile.high)
            if rows == before:
                continue
            before = rows
            times = batch * -(-m // rows)
            turn = (rows + (COPYING if packed else 0)) * each
            items = -(-across * times // workers)
            wide = min(items, -(-wider * times // workers))
            time = wide * (turn * more + BEGIN) + (items - wide) * (turn * little + BEGIN) + turn * late
            if found is None or time < found[0]:
                found = time, Regions(rows, across, 1, across * times)
    assert found is not None
    return found[1]


def regions_left(problem: Problem, vectors: int, most: int, tile: Tile) -> Regions:
    """The regions of a product that pack A: each of its columns' regions does so again, so there are few.

    The arguments are those of `regions`.
    """
    wanted = EACH * max(2, limits.count())
    down = max(-(-problem.m // most), min(wanted, problem.m // HIGH), 1)
    across = max(1, min(-(-wanted // down), vectors // WIDE))
    rows = _even(problem.m, -(-problem.m // down), tile.high)
    return Regions(rows, across, 1, across * -(-problem.m // rows))


def _effort(vectors: int, tile: Tile) -> float:
    """What so many vectors cost, in vectors of the widest panels: narrow ones wait for their own sums."""
    narrow = vectors % tile.panel
    if narrow == 1 and vectors > 1:  # instead of one such panel there are two that lack a vector
        return vectors + 2 * _waiting(tile.panel - 1, tile)
    return vectors + (_waiting(narrow, tile) if narrow else 0.0)


def _waiting(narrow: int, tile: Tile) -> float:
    return min(1.0, max(0.05 * narrow, WAIT / tile.high - narrow))


def words(problem: Problem, shared: Regions, part: int, finish: int | Symbol, lanes: int, slab: int,
          how: Way, left: tuple[int, int, int] = (-1, 0, 0)) -> tuple[int | Symbol, ...]:
    """The plan's integers, in the order of `Plan`; `left`: those that say where A is packed."""
    vectors, depth = -(-problem.n // lanes), -(-slab // -(-slab // DEPTH))
    across, down = shared.across, -(-problem.m // shared.rows)
    dims = [each for i, extent in enumerate(problem.batch) for each in (extent, *(s[i] for s in problem.strides))]
    return (
        prod(problem.batch) * across * down, shared.per_chunk, across, down, problem.m, problem.n, part, problem.k,
        max(1, -(-problem.k // max(1, part))), shared.rows, vectors, depth, slab, *problem.a,
        *left, *problem.b, int(how), finish, len(problem.others), len(problem.batch),
        Plan.POINTERS + len(problem.pointers) + len(dims), *problem.pointers, *dims,
        *(row for row, _ in problem.others), *(column for _, column in problem.others))
