"""Loop nests of row kernels: the vectorized dimension, and how the work is divided into chunks.

Vectors are *along* rows where a row's elements are contiguous, or *across* rows (each lane has its own row) where rows
are short or strided. A chunk is some entire rows. Where there are few rows, a chunk is a *piece* of every row: each
loop over the rows is then a separate launch, and the pieces' states are merged before the next launch. All choices
depend on the shape alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ...runtime import nontemporal_stores, thread_pool
from ...runtime.symbolic_integers import estimate, greater, lesser
from .. import iteration_space
from ..llvm.tails import ANY_LENGTH, TailInfo, reduced_tail_info

#: minimum rows, or blocks of rows, for chunks of entire rows
MIN_ROW_BLOCKS = 16
#: vectors per block of rows where an element costs little, and maximum lanes of a block
WIDE_BLOCK, MAX_LANES = 4, 64
#: maximum length of rows, in vectors, of blocks that are transposed
MAX_TRANSPOSED_ROW = 3
#: maximum rows added up sequentially in a column sum; beyond, sums are pairwise
MAX_SEQUENTIAL_ROWS = 32
#: maximum bytes of buffers for a row (or one row in each lane), and maximum elements of a buffered row
MAX_BUFFER_BYTES, MAX_BUFFERED_ROW = 1 << 17, 1 << 14
#: elements of column sums above which their final merge is a parallel launch
MAX_SERIAL_MERGE = 1 << 15

#: indices of the plan's fields
(ROWS, CHUNK_ROWS, N, PIECE, RUN, SIDE, PITCH, WIDTH, PARTS, CHUNK_COLUMNS, OUTER_RANK, INNER_RANK, FIRST) = range(13)


class Operands:
    """The number of operands of each kind: elementwise and per-row outputs, column sums, totals, and inputs.

    Attributes:
        number: the number of all operands.
        first_input: the index of the first input.
        walked: indices of the operands with row strides (elementwise, per row, inputs).
        elements: indices of the operands with element strides (elementwise, column sums, inputs).
    """

    def __init__(self, elementwise: int, per_row: int, columns: int, totals: int, inputs: int) -> None:
        self.elementwise, self.per_row, self.columns, self.totals, self.inputs = (
            elementwise, per_row, columns, totals, inputs)
        self.first_input = elementwise + per_row + columns + totals
        self.number = self.first_input + inputs
        inputs_range = range(self.first_input, self.number)
        self.walked = [*range(elementwise + per_row), *inputs_range]
        self.elements = [*range(elementwise), *range(elementwise + per_row, elementwise + per_row + columns),
                         *inputs_range]


class LoopNest(NamedTuple):
    """The dimensions of rows and elements, and what determines the generated code.

    Attributes:
        lanes: elements of a vector.
        across: whether each lane has its own row.
        entire_rows: whether chunks are entire rows.
        steps: each operand's step kind from lane to lane: "c", "b", "s"; "t" is "s" where blocks are transposed first,
            because rows are contiguous.
        of_row: for each input, whether it is constant along a row.
        long: whether rows are so long that partial states are merged pairwise.
        outer, inner: dimensions of rows and elements, with the strides of the operands in `walked` and `elements`.
        rows, n: number of rows, elements of a row.
        tail: what is known about the lengths of a row's runs of elements.
        nontemporal: whether elementwise outputs are written by non-temporal stores (`runtime/nontemporal_stores.py`).
    """

    lanes: int
    across: bool
    entire_rows: bool
    steps: str
    of_row: tuple[bool, ...]
    long: bool
    outer: iteration_space.Dims
    inner: iteration_space.Dims
    rows: int
    n: int
    tail: TailInfo = ANY_LENGTH
    nontemporal: bool = False

    @property
    def flat_rows(self) -> bool:
        """Whether rows have a uniform stride."""
        return len(self.outer.extents) <= 1

    @property
    def flat_elements(self) -> bool:
        """Whether a row's elements have a uniform stride."""
        return len(self.inner.extents) <= 1

    @property
    def blocks(self) -> int:
        """The number of rows, or of blocks with one row per lane."""
        if not self.across or not self.outer.extents:
            return self.rows
        side = self.outer.extents[0]
        return self.rows // max(1, side) * -(-side // self.lanes)


def choose_loop_nest(shape: tuple[int, ...], inner: int, strides: Sequence[Sequence[int]], operands: Operands,
                     sizes: Sequence[int], lanes: int, grain: int, tracks_index: bool, fast_transposes: bool,
                     cheap: bool) -> LoopNest:
    """The loop nest over these operands.

    Args:
        shape: extents of the outer and inner dimensions.
        inner: the number of inner dimensions, the last ones, which form a row.
        strides: each operand's strides, 0 where it is constant.
        operands: the number of operands of each kind.
        sizes: the operands' item sizes in bytes.
        lanes: elements of a vector.
        grain: minimum elements of a chunk.
        tracks_index: whether the order of a row's elements matters (argmax, argmin).
        fast_transposes: whether the machine transposes blocks fast.
        cheap: whether memory access dominates the cost of an element.
    """
    split = len(shape) - inner
    outer_shape, inner_shape = shape[:split], shape[split:]
    rows, n = iteration_space.numel(outer_shape), iteration_space.numel(inner_shape)
    walked, elements = operands.walked, operands.elements
    by_row = [strides[i][:split] for i in walked]
    by_element = [strides[i][split:] for i in elements]
    outer, within = (iteration_space.Dims([], [[] for _ in each]) for each in (walked, elements))
    if rows:
        outer = iteration_space.collapse(outer_shape, by_row, iteration_space.memory_order(outer_shape, by_row))
    if n:
        order = list(range(inner)) if tracks_index else iteration_space.memory_order(inner_shape, by_element)
        within = iteration_space.collapse(inner_shape, by_element, order)
    first = operands.first_input
    of_row = tuple(not any(each[split:]) for each in strides[first:])
    full = [i for i in range(operands.number) if i < operands.elementwise or (i >= first and not of_row[i - first])]

    if not tracks_index and within.extents and within.extents[0] < lanes:
        longest = max(range(len(within.extents)), key=within.extents.__getitem__)
        if within.extents[longest] >= 4 * within.extents[0]:
            within = iteration_space.move_innermost(within, longest)
    side = outer.extents[0] if outer.extents else 1
    run = within.extents[0] if within.extents else 1
    by_side, by_run = _steps(outer, walked, sizes), _steps(within, elements, sizes)
    transposed = [i for i in full if by_side[i] == "s" and by_run[i] == "c" and sizes[i] >= 4]
    square = n * lanes * sum(sizes[i] for i in transposed)
    if not (fast_transposes and lanes <= 16 and len(within.extents) <= 1 and square <= MAX_BUFFER_BYTES // 2):
        transposed = []
    narrow = n < (MAX_TRANSPOSED_ROW * lanes if transposed else lanes // 2)
    along, down = ([steps[i] for i in full] for steps in (by_run, by_side))
    strided_rows = along.count("s") - along.count("c") > down.count("s") - down.count("c")
    across = (narrow and side >= min(lanes, 2 * run)) or (strided_rows and side >= lanes // 2)
    steps = by_side if across else by_run
    long = n > (64 if across else 64 * lanes)
    if across and not transposed and not operands.columns:
        # a block of several vectors reads at least entire cache lines
        block_lanes = WIDE_BLOCK * lanes if cheap or _conflicts(within, n) else nontemporal_stores.CACHE_LINE // min(
            (sizes[i] for i in full), default=nontemporal_stores.CACHE_LINE)
        if side >= block_lanes:
            lanes = max(lanes, min(block_lanes, MAX_LANES))
    nest = LoopNest(lanes, across, True, "", of_row, long, outer, within, rows, n)
    few = estimate(nest.blocks) < MIN_ROW_BLOCKS and estimate(rows * n) > 4 * grain and n >= 4 * lanes
    if across and not few:
        steps = ["t" if i in transposed else each for i, each in enumerate(steps)]
    tail = reduced_tail_info(n, 1 if across else lanes, rows * n) if not few and nest.flat_elements else ANY_LENGTH
    nontemporal = not across and operands.elementwise > 0 and nontemporal_stores.are_faster(
        iteration_space.bytes_accessed(shape, strides, sizes))
    return nest._replace(entire_rows=not few, steps="".join(steps), tail=tail, nontemporal=nontemporal)


#: bytes of a way of the first-level cache: lines that are a multiple of it apart compete for the same places
CACHE_WAY = 4096
#: lines of a row that such caches keep
MAX_CONFLICTS = 128


def _conflicts(elements: iteration_space.Dims, n: int) -> bool:
    """Whether the lines of a strided row displace each other, so that each pass reads them from memory."""
    return bool(n > MAX_CONFLICTS and any(each and each[0] and each[0] % CACHE_WAY == 0 for each in elements.strides))


def _steps(dims: iteration_space.Dims, of: Sequence[int], sizes: Sequence[int]) -> list[str]:
    """Each operand's step kind along the innermost of these dimensions, which have the strides of the operands `of`."""
    steps = ["b"] * len(sizes)
    if dims.extents:
        for strides, i in zip(dims.strides, of, strict=True):
            if strides[0]:
                steps[i] = "c" if strides[0] == sizes[i] else "s"
    return steps


class Plan(NamedTuple):
    """A call's plan fields, its number of chunks, bytes of scratch memory, and chunks of the final merge."""

    words: list[int]
    chunks: int
    scratch: int
    finishing: int


def plan(nest: LoopNest, operands: Operands, regions: Sequence[tuple[str, int]], grain: int) -> Plan:
    """The plan of a call.

    Args:
        nest: its loop nest.
        operands: the number of operands of each kind.
        regions: (contents, item size) of the parts of scratch memory.
        grain: minimum elements of a chunk.
    """
    rows, n, lanes, blocks = nest.rows, nest.n, nest.lanes, nest.blocks
    side_lanes = lanes if nest.across else 1
    pitch = -(-rows // lanes) * lanes + lanes
    width = (-(-n // lanes) * lanes + lanes) * side_lanes
    if nest.entire_rows:
        chunk_rows = greater(1, grain // greater(1, estimate(n) * side_lanes))
        if operands.columns:
            chunk_rows = greater(chunk_rows, lesser(MAX_SEQUENTIAL_ROWS, estimate(blocks) // MIN_ROW_BLOCKS))
        if operands.columns or operands.totals:
            chunk_rows = lesser(chunk_rows, MAX_SEQUENTIAL_ROWS)
        chunks, chunk_rows = iteration_space.blocks(blocks, chunk_rows, 1)
        chunks = parts = greater(1, chunks)
        piece = n
    else:
        chunk_rows = blocks
        chunks, piece = iteration_space.blocks(n, greater(lanes, grain // greater(1, estimate(blocks) * side_lanes)))
        parts = chunks
    finishing, chunk_columns = 1, n
    if nest.entire_rows and operands.columns * parts * width > MAX_SERIAL_MERGE:
        finishing, chunk_columns = iteration_space.blocks(n, max(64,
                                                        MAX_SERIAL_MERGE // (operands.columns * parts * side_lanes)))
    sizes = {"column": width * (parts if nest.entire_rows else 1), "total": parts if nest.entire_rows else pitch,
             "state": parts * pitch, "result": pitch}
    places, scratch = [], 0
    for holds, itemsize in regions:
        places.append(scratch)
        scratch += -(-sizes[holds] * itemsize // 64) * 64
    outer, inner = nest.outer, nest.inner
    side = outer.extents[0] if outer.extents else 1
    extents, outer_strides = list(outer.extents), outer.strides
    if nest.across and extents:
        extents[0] = -(-side // lanes)
        outer_strides = [[each[0] * lanes, *each[1:]] for each in outer_strides]
    words = [blocks, chunk_rows, n, piece, inner.extents[0] if inner.extents else 1, side, pitch, width, parts,
             chunk_columns,
             len(extents), max(0, len(inner.extents) - 1), *places,
             *(each[0] if each else 0 for each in inner.strides), *(each[0] if each else 0 for each in outer.strides),
             *extents, *(stride for each in outer_strides for stride in each),
             *inner.extents[1:], *(stride for each in inner.strides for stride in each[1:])]
    if chunks > 1 and estimate(rows * n) <= grain // 2:  # divided only for pairwise summation
        chunks += thread_pool.CALLER_ONLY
    return Plan(words, chunks, scratch, finishing)
