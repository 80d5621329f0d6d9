"""How a row kernel goes through arrays: in which direction its vectors lie, and what a chunk is.

The vectors lie *along* the rows, where their elements follow each other in memory, or *across* them, where the rows
are short or lie crosswise: then every lane has a row of its own. A chunk is some whole rows; where there are only few
of them, it is a *piece* of every row, and each loop over the rows is a launch of its own, whose pieces' states
are merged before the next one begins. All of it follows from the shape alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ...runtime import nontemporal_stores, thread_pool
from .. import iteration_space
from ..llvm.tails import ANY_LENGTH, TailInfo, tail_info

#: rows, or blocks of rows, that are enough to go by whole rows
ENOUGH = 16
#: vectors that lie across rows together, where an element takes little, and their lanes, at most
WIDE_BLOCK, MOST_LANES = 4, 64
#: elements of a row, in vectors, up to which blocks of rows are turned
TURNED_ROW = 3
#: rows that are added up one after the other in a column sum, at most: the rest is pairwise
RUN_OF_ROWS = 32
#: bytes of buffers for a row (or one row in each lane), at most, and elements
KEPT_BYTES, KEPT_ELEMENTS = 1 << 17, 1 << 14
#: elements of column sums that are merged at once when all is done: where there are more, by several threads
FINISHED_AT_ONCE = 1 << 15

#: the plan's integers
(ROWS, TALL, N, PIECE, RUN, SIDE, PITCH, WIDTH, PARTS, WIDE, OUTER_RANK, INNER_RANK, FIRST) = range(13)


class Operands:
    """How many operands of each kind there are: those that every row has, column sums, totals, and inputs.

    Attributes:
        number: all of them.
        first_input: the position of the first input.
        walked: positions of those that change from row to row (elementwise, per row, inputs), for which the plan
            lists strides for the rows.
        elements: positions of those that change from element to element (elementwise, column sums, inputs).
    """

    def __init__(self, elementwise: int, per_row: int, columns: int, totals: int, inputs: int) -> None:
        self.elementwise, self.per_row, self.columns, self.totals, self.inputs = (
            elementwise, per_row, columns, totals, inputs)
        self.first_input = elementwise + per_row + columns + totals
        self.number = self.first_input + inputs
        given = range(self.first_input, self.number)
        self.walked = [*range(elementwise + per_row), *given]
        self.elements = [*range(elementwise), *range(elementwise + per_row, elementwise + per_row + columns), *given]


class Course(NamedTuple):
    """The dimensions that rows and elements are walked along, and the kind of code that this takes.

    Attributes:
        lanes: elements of a vector.
        across: whether each lane has a row of its own.
        whole: whether chunks are whole rows.
        steps: how each operand steps from lane to lane: "c", "b", "s"; "t" is "s" where a block's elements are first
            brought side by side, since those of a row follow each other.
        of_row: of every input, whether it is the same for all of a row.
        long: whether rows are so long that their elements' states are merged pairwise.
        outer, inner: the dimensions, their strides those of the walked operands and of the elements'.
        rows, n: extents altogether.
        tail: what is known about the lengths of a row's runs of elements.
        past: whether what is written for every element goes past the caches (see `caches`).
    """

    lanes: int
    across: bool
    whole: bool
    steps: str
    of_row: tuple[bool, ...]
    long: bool
    outer: iteration_space.Dims
    inner: iteration_space.Dims
    rows: int
    n: int
    tail: TailInfo = ANY_LENGTH
    past: bool = False

    @property
    def flat_rows(self) -> bool:
        """Whether rows lie at one distance."""
        return len(self.outer.extents) <= 1

    @property
    def flat_elements(self) -> bool:
        """Whether a row's elements lie at one distance."""
        return len(self.inner.extents) <= 1

    @property
    def blocks(self) -> int:
        """How many rows, or blocks of a row in each lane, there are."""
        if not self.across or not self.outer.extents:
            return self.rows
        side = self.outer.extents[0]
        return self.rows // max(1, side) * -(-side // self.lanes)


def course(shape: tuple[int, ...], inner: int, strides: Sequence[Sequence[int]], operands: Operands,
           sizes: Sequence[int], lanes: int, grain: int, tracks_index: bool, turnable: bool, cheap: bool) -> Course:
    """The course through these operands.

    Args:
        shape: of the outer and inner dimensions.
        inner: how many of them, the last ones, are a row's.
        strides: of every operand, 0 where it does not change.
        operands: what they are.
        sizes: the operands' elements' bytes.
        lanes: elements of a vector.
        grain: elements that take one thread some microseconds.
        tracks_index: whether the order of a row's elements matters.
        turnable: whether the machine turns blocks quickly.
        cheap: whether an element takes so little that reading counts.
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
    turning = [i for i in full if by_side[i] == "s" and by_run[i] == "c" and sizes[i] >= 4]
    square = n * lanes * sum(sizes[i] for i in turning)
    if not (turnable and lanes <= 16 and len(within.extents) <= 1 and square <= KEPT_BYTES // 2):
        turning = []
    narrow = n < (TURNED_ROW * lanes if turning else lanes // 2)
    along, down = ([steps[i] for i in full] for steps in (by_run, by_side))
    crosswise = along.count("s") - along.count("c") > down.count("s") - down.count("c")
    across = (narrow and side >= min(lanes, 2 * run)) or (crosswise and side >= lanes // 2)
    steps = by_side if across else by_run
    long = n > (64 if across else 64 * lanes)
    if across and not turning and not operands.columns:
        # a block of several vectors reads as much together: at least all that a line of memory brings
        wide = WIDE_BLOCK * lanes if cheap else nontemporal_stores.CACHE_LINE // min(
            (sizes[i] for i in full), default=nontemporal_stores.CACHE_LINE)
        if side >= wide:
            lanes = max(lanes, min(wide, MOST_LANES))
    found = Course(lanes, across, True, "", of_row, long, outer, within, rows, n)
    few = found.blocks < ENOUGH and rows * n > 4 * grain and n >= 4 * lanes
    if across and not few:
        steps = ["t" if i in turning else each for i, each in enumerate(steps)]
    tail = tail_info([n], 1 if across else lanes, rows * n) if not few and found.flat_elements else ANY_LENGTH
    past = not across and operands.elementwise > 0 and nontemporal_stores.are_faster(
        iteration_space.bytes_accessed(shape, strides, sizes))
    return found._replace(whole=not few, steps="".join(steps), tail=tail, past=past)


def _steps(dims: iteration_space.Dims, of: Sequence[int], sizes: Sequence[int]) -> list[str]:
    """How every operand steps along the innermost of these dimensions, which are those of the operands `of`."""
    found = ["b"] * len(sizes)
    if dims.extents:
        for strides, i in zip(dims.strides, of, strict=True):
            if strides[0]:
                found[i] = "c" if strides[0] == sizes[i] else "s"
    return found


class Plan(NamedTuple):
    """A call's integers, its chunks (see `Launch`), its scratch memory, and in how many chunks it is finished."""

    words: list[int]
    chunks: int
    scratch: int
    finishing: int


def plan(found: Course, operands: Operands, regions: Sequence[tuple[str, int]], grain: int) -> Plan:
    """The integers of a call.

    Args:
        found: its course.
        operands: what they are.
        regions: parts of the scratch memory: what they hold, and the bytes of an element.
        grain: elements that take one thread some microseconds.
    """
    rows, n, lanes, blocks = found.rows, found.n, found.lanes, found.blocks
    side_lanes = lanes if found.across else 1
    pitch = -(-rows // lanes) * lanes + lanes
    width = (-(-n // lanes) * lanes + lanes) * side_lanes
    if found.whole:
        tall = max(1, grain // max(1, n * side_lanes))
        if operands.columns:
            tall = max(tall, min(RUN_OF_ROWS, blocks // ENOUGH))
        if operands.columns or operands.totals:
            tall = min(tall, RUN_OF_ROWS)
        chunks, tall = iteration_space.blocks(blocks, tall, 1)
        chunks, parts, piece = max(1, chunks), max(1, chunks), n
    else:
        tall = blocks
        chunks, piece = iteration_space.blocks(n, max(lanes, grain // max(1, blocks * side_lanes)))
        parts = chunks
    finishing, wide = 1, n
    if found.whole and operands.columns * parts * width > FINISHED_AT_ONCE:
        finishing, wide = iteration_space.blocks(n, max(64,
                                                        FINISHED_AT_ONCE // (operands.columns * parts * side_lanes)))
    sizes = {"column": width * (parts if found.whole else 1), "total": parts if found.whole else pitch,
             "state": parts * pitch, "result": pitch}
    places, scratch = [], 0
    for holds, itemsize in regions:
        places.append(scratch)
        scratch += -(-sizes[holds] * itemsize // 64) * 64
    outer, inner = found.outer, found.inner
    side = outer.extents[0] if outer.extents else 1
    extents, outer_strides = list(outer.extents), outer.strides
    if found.across and extents:
        extents[0] = -(-side // lanes)
        outer_strides = [[each[0] * lanes, *each[1:]] for each in outer_strides]
    words = [blocks, tall, n, piece, inner.extents[0] if inner.extents else 1, side, pitch, width, parts, wide,
             len(extents), max(0, len(inner.extents) - 1), *places,
             *(each[0] if each else 0 for each in inner.strides), *(each[0] if each else 0 for each in outer.strides),
             *extents, *(stride for each in outer_strides for stride in each),
             *inner.extents[1:], *(stride for each in inner.strides for stride in each[1:])]
    if chunks > 1 and rows * n <= grain // 2:  # parted for the sake of exactness alone
        chunks += thread_pool.CALLER_ONLY
    return Plan(words, chunks, scratch, finishing)
