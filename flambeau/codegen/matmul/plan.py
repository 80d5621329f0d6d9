"""Matmul planning: cache and thread blocking, from shapes and strides to the integers that compiled code reads.

The plan does not change the result: the order in which an element's products are added depends on K alone.
"""

from __future__ import annotations

from enum import IntEnum, auto
from math import prod
from typing import NamedTuple

import numpy as np

from ...kernels import threads as limits
from ...runtime import cpu_cache, target
from ...runtime.compilation import Symbol
from ...runtime.symbolic_integers import is_symbolic, typical

#: longest part of K accumulated in registers before it is added to the partial result; it bounds the rounding error
DEPTH = 256
#: K of a slab: the part of A and B used for all columns of a region before the next part
SLAB = 1024
#: largest size in bytes of a region's rows of A within a slab, and the share of a core's own cache that they may take:
#: they must stay cached while all columns are computed
CACHED_LEFT_BYTES, CACHED_LEFT_SHARE = 1 << 20, 0.75
#: most rows of a region; most rows if A exceeds that cache; most rows if the partial sums wait in a stack buffer for
#: the other parts of K
REGION_ROWS, UNCACHED_REGION_ROWS, BUFFERED_ROWS = 512, 256, 256
#: pitch of B's rows in bytes from which B is packed, and the smallest number of rows of A for which that pays
FAR_PITCH, FAR_ROWS = 256, 32
#: with vectors of a full cache line, B is packed only if its rows map to few sets of the L1 cache (pitch is a multiple
#: of the first number of bytes), or if it has more bytes than certainly stay cached
CONFLICT_PITCH, NEAR_BYTES = 1024, 4 << 20
#: number of row regions from which B is packed entirely, once, by a launch of its own
PREPACK_REGIONS = 3
#: packing of A: smallest bytes from k to k + 1, smallest bytes over all of K, and smallest number of multiplications
LEFT_PITCH, LEFT_SPAN, LEFT_PRODUCTS = 2048, 1 << 18, 1 << 22
#: regions that pack A: fewest vectors, fewest rows, and regions per thread
LEFT_VECTORS, LEFT_ROWS, LEFT_REGIONS = 9, 64, 4
#: bytes of a column that are loaded at once when B's columns are contiguous
SEGMENT = 16
#: fewest rows of a region when C is cut finer than the cache requires; rows of a region when deciding on split-K
SMALLEST_REGION, SPLIT_K_ROWS = 32, 128
#: cost model: packing B's part, in rows of a region; nanoseconds to start a region; the part of a region for which one
#: thread waits at the end; accumulators needed to hide the latency of a fused multiply-add
PACKING_COST, REGION_START, IMBALANCE, INDEPENDENT_SUMS = 16, 700, 0.2, 9
#: panels of a column region where B is constant, with several threads and with one
FEW_PANELS, MANY_PANELS = 2, 6
#: split-K: smallest K, smallest K relative to M and N, and the number of regions from which it does not pay
SPLIT_K_MINIMUM, SPLIT_K_RATIO, SPLIT_K_REGIONS = 2048, 8, 16
#: largest K for which storing C dominates: C is then computed in row order, which suits memory
SHALLOW_K = 8
#: fewest vectors of a region of one row, times the bytes of an element; divided by the number of rows
ROW_SEGMENT = 64
#: throughput of one thread per nanosecond: float32 multiply-adds by vector width in bits, and in WebAssembly; bytes
PRODUCTS_PER_NS, WASM_PRODUCTS_PER_NS, BYTES_PER_NS = {128: 40, 256: 80, 512: 160}, 16, 12
#: nanoseconds of work worth a chunk of one matrix, a chunk of a batch, an otherwise idle thread; least work that is
#: parallelized; most chunks per thread
CHUNK_NS, BATCHED_CHUNK_NS, THREAD_NS, PARALLEL_NS, CHUNKS_PER_THREAD = 30_000, 10_000, 2_500, 5_000, 8


class RightLayout(IntEnum):
    """How B is laid out: read in place; contiguous rows, contiguous columns, or strided to pack; already packed."""

    IN_PLACE = 0
    ROWS = auto()
    COLUMNS = auto()
    STRIDED = auto()
    PACKED = auto()


class PackingPlan(IntEnum):
    """Positions of the integers in the plan of the launch that packs all of B."""

    VECTORS = 0  # per chunk; 0: a chunk is a column region
    REGIONS = auto()
    ALL_VECTORS = auto()
    COLUMNS = auto()
    K = auto()
    LAYOUT = auto()
    BY_K = auto()
    BY_COLUMN = auto()
    SOURCE = auto()  # index of B's pointer
    TARGET = auto()  # index of the scratch memory's pointer


class Plan(IntEnum):
    """Positions of the integers in a matmul plan.

    They are followed by the extent and all operands' strides of each batch dimension (the fastest first), all outputs'
    and extras' row strides, and all outputs' and extras' column strides. Operands are ordered outputs, extras, A, B.
    """

    ITEMS = 0  # regions of C: batches × row regions × column regions
    PER_CHUNK = auto()  # regions per chunk
    COLUMN_REGIONS = auto()
    ROW_REGIONS = auto()
    M = auto()
    N = auto()
    K = auto()  # of one split-K slice
    K_TOTAL = auto()
    SLICES = auto()  # split-K slices: the fastest batch dimension if there are several
    ROWS = auto()  # of a region
    ALL_VECTORS = auto()  # vectors per row of C, split evenly between the column regions
    DEPTH = auto()  # part of K accumulated in registers
    SLAB = auto()
    A_ROW = auto()
    A_K = auto()
    LEFT = auto()  # index of the pointer to the memory into which regions pack A; -1: A is read in place
    LEFT_OFFSET = auto()  # byte offset of the first region's packed A
    LEFT_BYTES = auto()  # bytes of packed A per region
    B_K = auto()
    B_COLUMN = auto()
    LAYOUT = auto()
    EPILOGUE = auto()  # address of the epilogue; 0: the product is stored
    OPERANDS = auto()  # number of outputs and extras
    RANK = auto()  # number of batch dimensions
    STRIDES = auto()  # position of the row strides
    POINTERS = auto()  # from here on: the operands' pointer indices, A and B last


class Problem(NamedTuple):
    """C[b, m, n] = A[b, m, k] B[b, k, n]: extents, strides in bytes and pointer indices, without addresses."""

    dtype: np.dtype
    m: int
    n: int
    k: int
    batch: tuple[int, ...]  # extents, the fastest dimension first
    strides: tuple[tuple[int, ...], ...]  # by batch dimension, of outputs, extras, A, B
    a: tuple[int, int]  # row stride, k stride
    b: tuple[int, int]  # k stride, column stride
    others: tuple[tuple[int, int], ...]  # row and column strides of outputs and extras
    pointers: tuple[int, ...]  # indices of outputs, extras, A, B


def right_layout(problem: Problem, repeated: bool = False) -> RightLayout:
    """Return whether B is read in place, or from which layout it is packed; `repeated`: once for many products."""
    (by_k, by_column), size = problem.b, problem.dtype.itemsize
    if by_column == size or problem.n == 1:
        is_far = (repeated or typical(problem.m) >= FAR_ROWS) and _is_far(abs(by_k), problem.k)
        return RightLayout.ROWS if is_far else RightLayout.IN_PLACE
    return RightLayout.COLUMNS if by_k == size and problem.k * size >= SEGMENT else RightLayout.STRIDED


def _is_far(pitch: int, k: int) -> bool:
    """Whether B's rows, `pitch` bytes apart, are better packed than read in place."""
    if target.host().vector_bits == 512:
        return pitch >= FAR_PITCH and (pitch % CONFLICT_PITCH == 0 or pitch * k > NEAR_BYTES)
    return pitch >= FAR_PITCH


def k_slab(problem: Problem, part: int, complete_sums: bool) -> int:
    """Return the K slab: how much of `part` of K is used for all columns of a region before the next.

    `complete_sums`: K is not cut for the cache's sake, because the epilogue takes complete sums.
    """
    # decided for each symbolic size: the order of the additions depends on it
    limit = SLAB if complete_sums or part <= DEPTH or (
        problem.m * part * problem.dtype.itemsize <= _cached_left_bytes()) else DEPTH
    return -(-part // max(1, -(-part // limit))) or 1


def region_rows(problem: Problem, slab: int, height: int, buffered: bool) -> int:
    """Return the most rows of a region; `buffered`: partial sums stay in a stack buffer until they are complete."""
    if typical(problem.m * slab) * problem.dtype.itemsize <= _cached_left_bytes():
        return BUFFERED_ROWS if buffered and slab > DEPTH else REGION_ROWS
    return -(-UNCACHED_REGION_ROWS // height) * height


def _cached_left_bytes() -> int:
    """Return the bytes of A that stay in a core's own cache while all columns are computed."""
    return min(CACHED_LEFT_BYTES, int(CACHED_LEFT_SHARE * cpu_cache.l2_size()))


def packs_right(problem: Problem, partition: Partition, layout: RightLayout, constant: bool) -> bool:
    """Whether all of B is packed once, because it is constant or many row regions would pack the same part of it."""
    return (layout is not RightLayout.IN_PLACE and not problem.batch
            and (constant or partition.rows * (PREPACK_REGIONS - 1) < typical(problem.m)))


def packs_left(problem: Problem) -> bool:
    """Whether regions pack A: its columns are contiguous, and far apart."""
    apart = abs(problem.a[1])
    return (problem.a[0] == problem.dtype.itemsize and apart >= LEFT_PITCH and apart * problem.k >= LEFT_SPAN
            and not problem.batch and typical(problem.m * problem.n * problem.k) >= LEFT_PRODUCTS)


def packing_plan(problem: Problem, partition: Partition, layout: RightLayout, lanes: int, panel: int,
                 pointer: int) -> tuple[int, ...]:
    """Return the plan (`PackingPlan`) that packs B into the memory of pointer index `pointer`."""
    vectors, part = -(-problem.n // lanes), 0
    if partition.column_regions == 1:  # parts of the only column region, which end at panel boundaries
        part = -(-vectors // (2 * max(2, limits.count()) * panel)) * panel
        while part < vectors and problem.n // lanes % part == 1:
            part += panel
    return (part, partition.column_regions, vectors, problem.n, problem.k, int(layout), *problem.b,
            problem.pointers[-1], pointer)


def chunk_count(problem: Problem) -> int:
    """Return the number of chunks worth making; a small number is even."""
    m, n, k, size = problem.m, problem.n, max(1, problem.k), problem.dtype.itemsize
    batch = prod(problem.batch)
    left, right = (prod(extent for extent, stride in zip(problem.batch, strides, strict=True) if stride)
                   for strides in problem.strides[-2:])
    moved = size * (left * m * k + right * k * n + len(problem.others) * batch * m * n)
    time = max(batch * m * n * k * size // 4 // _products_per_ns(), moved // BYTES_PER_NS)
    if time < PARALLEL_NS:
        return 1
    workers = max(2, limits.count())
    worth = time // (BATCHED_CHUNK_NS if problem.batch else CHUNK_NS)
    count = max(min(CHUNKS_PER_THREAD * workers, worth), min(workers, time // THREAD_NS))
    return count if count >= 8 or count % 2 == 0 else max(1, count - 1)


def _products_per_ns() -> int:
    """Return the float32 multiplications that one thread does per nanosecond."""
    host = target.host()
    return WASM_PRODUCTS_PER_NS if host.is_wasm else PRODUCTS_PER_NS[host.vector_bits]


def needs_split_k(problem: Problem, vectors: int) -> bool:
    """Whether K is split between threads, because C has too few elements to keep them busy."""
    return bool(problem.k >= SPLIT_K_MINIMUM and problem.k >= SPLIT_K_RATIO * problem.m
                and problem.k >= SPLIT_K_RATIO * problem.n
                and -(-vectors // 3) * -(-problem.m // SPLIT_K_ROWS) < SPLIT_K_REGIONS)


class Tile(NamedTuple):
    """Register blocking: elements per vector, vectors per panel, rows per block."""

    lanes: int
    panel: int
    height: int


class Partition(NamedTuple):
    """Partition of C: rows of a region, number of column regions, regions per chunk, and chunks."""

    rows: int
    column_regions: int
    per_chunk: int
    chunks: int


def estimated(problem: Problem) -> Problem:
    """The product for the sizes that are planned for, where they are symbolic."""
    strides = tuple(tuple(map(typical, each)) for each in problem.strides)
    return problem._replace(m=typical(problem.m), n=typical(problem.n), k=typical(problem.k),
                            batch=tuple(map(typical, problem.batch)), strides=strides)


def _even(extent: int, limit: int, multiple: int) -> int:
    """Return the size of equal parts no larger than `limit`, rounded up to a multiple."""
    part = -(-extent // -(-extent // limit))
    return -(-part // multiple) * multiple


def of_regions(problem: Problem, rows: int, column_regions: int, per_chunk: int) -> Partition:
    """Return the partition of C into regions of so many rows."""
    regions = prod(problem.batch) * column_regions * -(-problem.m // rows)
    return Partition(rows, column_regions, per_chunk, -(-regions // per_chunk))


def choose_partition(problem: Problem, vectors: int, max_rows: int, tile: Tile, packed: bool,
                     constant: bool = False) -> Partition:
    """Return the partition of C with the least estimated time; of symbolic sizes, for those that are planned for.

    Args:
        problem: the product.
        vectors: vectors per row of C.
        max_rows: most rows of a region.
        tile: the register blocking.
        packed: whether a region packs its part of B.
        constant: whether B is packed once for products of any number of rows: column regions do not depend on it.
    """
    if any(map(is_symbolic, (problem.m, problem.n, problem.k, *problem.batch))):
        found = choose_partition(estimated(problem), typical(vectors), typical(max_rows), tile, packed, constant)
        return of_regions(problem, found.rows, found.column_regions, found.per_chunk)
    target_count, batch, m = chunk_count(problem), prod(problem.batch), problem.m
    shallow = problem.k <= SHALLOW_K and vectors > tile.panel
    rows = tile.height if shallow else _even(m, max_rows, tile.height)
    row_parts = -(-m // rows)
    if shallow or (not constant and (batch >= target_count or target_count == 1)):
        per_chunk = -(-batch * row_parts // target_count)
        return Partition(rows, 1, per_chunk, -(-batch * row_parts // per_chunk))
    # with few rows, memory bandwidth is the limit, and long segments of B's rows use it best
    least = ROW_SEGMENT // (m * problem.dtype.itemsize)
    shares = [share for share in range(tile.panel, 7 * tile.panel, tile.panel) if least <= share < vectors]
    workers = max(2, limits.count())
    row_ns = tile.lanes * max(1, problem.k) * problem.dtype.itemsize / 4 / _products_per_ns()
    best: tuple[float, Partition] | None = None
    counts = [1, *(-(-vectors // share) for share in shares)]
    if target.host().is_wasm:  # products take longer there, so that a region for each thread is worth it
        workers = limits.count()
        counts.append(min(workers, vectors))
    if constant:
        counts = [max(1, vectors // (tile.panel * (FEW_PANELS if limits.count() > 1 else MANY_PANELS)))]
    for column_regions in dict.fromkeys(counts):
        # makespan: of the column regions, `wider` have one vector more
        narrow, wider = divmod(vectors, column_regions)
        narrow_cost, wide_cost = _panel_cost(narrow, tile), _panel_cost(narrow + 1, tile)
        imbalance = IMBALANCE * (wide_cost if wider else narrow_cost)
        previous = 0
        finest = min(m // SMALLEST_REGION, -(-2 * target_count // (batch * column_regions)))
        for parts in range(row_parts, max(row_parts, finest) + 1):
            rows = _even(m, -(-m // parts), tile.height)
            if rows == previous:
                continue
            previous = rows
            row_regions = batch * -(-m // rows)
            region_time = (rows + (PACKING_COST if packed else 0)) * row_ns
            items = -(-column_regions * row_regions // workers)
            wide = min(items, -(-wider * row_regions // workers))
            time = (wide * (region_time * wide_cost + REGION_START)
                    + (items - wide) * (region_time * narrow_cost + REGION_START) + region_time * imbalance)
            if best is None or time < best[0]:
                best = time, Partition(rows, column_regions, 1, column_regions * row_regions)
    assert best is not None
    return best[1]


def choose_partition_packing_left(problem: Problem, vectors: int, max_rows: int, tile: Tile) -> Partition:
    """Return the partition of C if regions pack A: every column region repeats the packing, so there are few of them.

    The arguments are those of `choose_partition`.
    """
    if any(map(is_symbolic, (problem.m, problem.n, problem.k))):
        found = choose_partition_packing_left(estimated(problem), typical(vectors), typical(max_rows), tile)
        return of_regions(problem, found.rows, found.column_regions, found.per_chunk)
    target_count = LEFT_REGIONS * max(2, limits.count())
    row_parts = max(-(-problem.m // max_rows), min(target_count, problem.m // LEFT_ROWS), 1)
    column_regions = max(1, min(-(-target_count // row_parts), vectors // LEFT_VECTORS))
    rows = _even(problem.m, -(-problem.m // row_parts), tile.height)
    return Partition(rows, column_regions, 1, column_regions * -(-problem.m // rows))


def _panel_cost(vectors: int, tile: Tile) -> float:
    """Return the cost of a row of panels, in vectors of the widest panel: narrow panels wait for their accumulators."""
    narrow = vectors % tile.panel
    if narrow == 1 and vectors > 1:  # instead of a panel of one vector there are two panels that lack a vector
        return vectors + 2 * _latency_cost(tile.panel - 1, tile)
    return vectors + (_latency_cost(narrow, tile) if narrow else 0.0)


def _latency_cost(narrow: int, tile: Tile) -> float:
    return min(1.0, max(0.05 * narrow, INDEPENDENT_SUMS / tile.height - narrow))


def plan_words(problem: Problem, partition: Partition, part: int, epilogue: int | Symbol, lanes: int, slab: int,
               layout: RightLayout, left: tuple[int, int, int] = (-1, 0, 0)) -> tuple[int | Symbol, ...]:
    """Return the plan, in the order of `Plan`; `left` holds the three integers that describe packed A."""
    vectors, depth = -(-problem.n // lanes), -(-slab // -(-slab // DEPTH))
    column_regions, row_parts = partition.column_regions, -(-problem.m // partition.rows)
    dims = [each for i, extent in enumerate(problem.batch) for each in (extent, *(s[i] for s in problem.strides))]
    return (
        prod(problem.batch) * column_regions * row_parts, partition.per_chunk, column_regions, row_parts, problem.m,
        problem.n, part, problem.k,
        max(1, -(-problem.k // max(1, part))), partition.rows, vectors, depth, slab, *problem.a,
        *left, *problem.b, int(layout), epilogue, len(problem.others), len(problem.batch),
        Plan.POINTERS + len(problem.pointers) + len(dims), *problem.pointers, *dims,
        *(row for row, _ in problem.others), *(column for _, column in problem.others))
