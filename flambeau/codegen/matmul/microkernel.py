"""The innermost part of a matrix product: a block of the result that stays in registers while K runs.

A block has some rows of as many vectors as its panel is wide. One step of K loads a vector of B for every vector of
the panel, and spreads an element of A over a vector for every row: rows × vectors multiplications and additions for
rows + vectors loads. A is read by its strides and B by the distance of its rows, so that both may lie where they
are or be packed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir

from ...runtime import target
from ...runtime.nontemporal_stores import LINE
from ..llvm.loop_nests import I1, I32, I64, POINTER, after, at, first_lanes, i64, loop, smaller, word
from ..llvm.lowering import intrinsic, stored

VOID = ir.VoidType()
#: tile, bytes between its rows, operands' addresses, their strides, row, column, rows, columns
FINISH = ir.FunctionType(VOID, [POINTER, I64, POINTER, POINTER, I64, I64, I64, I64])
#: what a panel's function is told, in order
ARGUMENTS = {
    "a": POINTER, "by_row": I64, "by_k": I64, "by_block": I64,  # bytes; the last ones from block to block, a row
    "b": POINTER, "pitch": I64, "depth": I64,  # bytes between B's rows; K
    "into": POINTER, "apart": I64, "advance": I64,  # where the result goes; bytes between a block's rows, and blocks'
    "rows": I64, "columns": I64, "add": I1,  # whether to add to what is there
    "finish": POINTER, "bases": POINTER, "strides": POINTER, "first": I64, "column": I64,  # as for FINISH
    "operands": I64,  # how many it has, whose strides by row stand before those by column
    "soon": POINTER, "soon_k": I64, "soon_bytes": I64,  # what will be read next: bytes between its rows, and of a row
}
PANEL = ir.FunctionType(VOID, [*ARGUMENTS.values()])

#: steps of K in a turn of a block's loop; how many steps before its use the left operand is asked for, where a step's
#: elements lie together
STEPS, AHEAD = 4, 8


class Tiling(NamedTuple):
    """How the result is cut into blocks that fit the machine's registers.

    Attributes:
        lanes: elements in a vector.
        rows: the height of blocks, and of those for the rows that are left.
        vectors: the greatest width of a panel.
        masked: whether loading a part of a vector costs no more than loading the whole.
    """

    lanes: int
    rows: tuple[int, int]
    vectors: int
    masked: bool

    @property
    def width(self) -> int:
        """Elements of the widest panel's row."""
        return self.lanes * self.vectors


@cache
def tiling(dtype: np.dtype) -> Tiling:
    """The blocks for products of this dtype on this machine."""
    host = target.host()
    lanes = host.vector_bits // 8 // dtype.itemsize
    if host.vector_bits == 512:
        return Tiling(lanes, (8, 4), 3, True)
    if host.triple.startswith(("aarch64", "arm64")):  # as many registers, but no masks
        return Tiling(lanes, (8, 4), 3, False)
    return Tiling(lanes, (4, 2), 3, False)


class Called:
    """A function known by its address, as a callee."""

    def __init__(self, address: Any, function_type: ir.FunctionType) -> None:
        self.address, self.function_type, self.type = address, function_type, address.type

    def get_reference(self) -> str:
        return str(self.address.get_reference())


@contextmanager
def carried(builder: ir.IRBuilder, count: Any, start: Sequence[Any]) -> Iterator[tuple[list[Any], list[Any]]]:
    """A loop of `count` turns that carries values along: (values before a turn, a list to put those after it in).

    Behind the loop the first list holds what the last turn left.
    """
    before = builder.block
    turn, after = (builder.append_basic_block(name) for name in ("turn", "carried"))
    builder.cbranch(builder.icmp_signed(">", count, i64(0)), turn, after)
    builder.position_at_end(turn)
    left = builder.phi(I64)
    left.add_incoming(count, before)
    values = [builder.phi(each.type) for each in start]
    following: list[Any] = []
    carrying = list(values)
    yield carrying, following
    rest = builder.sub(left, i64(1))
    left.add_incoming(rest, builder.block)
    for phi, each in zip(values, following, strict=True):
        phi.add_incoming(each, builder.block)
    builder.cbranch(builder.icmp_signed(">", rest, i64(0)), turn, after)
    last = builder.block
    builder.position_at_end(after)
    for i, (phi, first, each) in enumerate(zip(values, start, following, strict=True)):
        phi.add_incoming(first, before)
        carrying[i] = builder.phi(each.type)
        carrying[i].add_incoming(first, before)
        carrying[i].add_incoming(each, last)


@contextmanager
def positive(builder: ir.IRBuilder, start: Sequence[Any]) -> Iterator[tuple[list[Any], list[Any]]]:
    """A loop that carries values along while the first of them is above 0: (values, a list to put the next ones in)."""
    before = builder.block
    head, body, after = (builder.append_basic_block(name) for name in ("while", "do", "done"))
    builder.branch(head)
    builder.position_at_end(head)
    values = [builder.phi(each.type) for each in start]
    for phi, each in zip(values, start, strict=True):
        phi.add_incoming(each, before)
    builder.cbranch(builder.icmp_signed(">", values[0], i64(0)), body, after)
    builder.position_at_end(body)
    following: list[Any] = []
    yield values, following
    for phi, each in zip(values, following, strict=True):
        phi.add_incoming(each, builder.block)
    builder.branch(head)
    builder.position_at_end(after)


def spread(builder: ir.IRBuilder, value: Any, lanes: int) -> Any:
    """A vector whose elements all are `value`."""
    nothing = ir.Constant(ir.VectorType(value.type, lanes), ir.Undefined)
    one = builder.insert_element(nothing, value, ir.Constant(I32, 0))
    return builder.shuffle_vector(one, nothing, ir.Constant(ir.VectorType(I32, lanes), None))


def fused(builder: ir.IRBuilder, x: Any, y: Any, z: Any) -> Any:
    """x y + z, rounded once where the processor does that as quickly."""
    return intrinsic(builder, "fmuladd", x.type, [x, y, z])


def prefetch(builder: ir.IRBuilder, address: Any, write: bool, near: int) -> None:
    """Ask for the memory at this address, to be written or read, as near to the processor as 3 or as far as 0."""
    intrinsic(builder, "prefetch", VOID, [address, *(ir.Constant(I32, i) for i in (int(write), near, 1))], [POINTER])


def _opaque(builder: ir.IRBuilder, value: Any) -> Any:
    """The same integer, of which LLVM does not know where it comes from."""
    return builder.asm(ir.FunctionType(I64, [I64]), "", "=r,0", [value], False)


#: from sums and places to those after a step of K
Step = Callable[[list[Any], list[Any]], tuple[list[Any], list[Any]]]


class _Panel:
    """The function (`PANEL`) that computes all rows of a panel, block by block."""

    def __init__(self, module: ir.Module, dtype: np.dtype, vectors: int) -> None:
        self.shape, self.size, self.kind, self.vectors = tiling(dtype), dtype.itemsize, stored(dtype), vectors
        self.line = self.shape.lanes * self.size
        self.vector = ir.VectorType(self.kind, self.shape.lanes)
        self.zero = ir.Constant(self.vector, None)
        self.function = ir.Function(module, PANEL, f"panel.{vectors}")
        self.builder = builder = ir.IRBuilder(self.function.append_basic_block("entry"))
        self.given = dict(zip(ARGUMENTS, self.function.args, strict=True))
        self.wanted = builder.icmp_unsigned("!=", builder.ptrtoint(self.given["finish"], I64), i64(0))
        self.mask = None
        if vectors == 1 and self.shape.masked:
            self.mask = first_lanes(builder, self.given["columns"], self.shape.lanes)

    def emit(self) -> ir.Function:
        builder, rows = self.builder, self.given["rows"]
        high, low = self.shape.rows
        whole = builder.sub(rows, builder.srem(rows, i64(high)))
        with loop(builder, i64(0), whole, high) as row:
            self._high(row, high)
        with loop(builder, whole, rows, low) as row:
            self._low(row, low)
        builder.ret_void()
        return self.function

    def _load(self, address: Any, v: int) -> Any:
        if self.mask is None:
            return self.builder.load(at(self.builder, address, v * self.line), typ=self.vector, align=self.size)
        return intrinsic(self.builder, "masked.load", self.vector,
                         [address, ir.Constant(I32, self.size), self.mask, self.zero], [self.vector, POINTER])

    def _store(self, value: Any, address: Any, v: int) -> None:
        if self.mask is None:
            self.builder.store(value, at(self.builder, address, v * self.line), align=self.size)
        else:
            intrinsic(self.builder, "masked.store", VOID, [value, address, ir.Constant(I32, self.size), self.mask],
                      [self.vector, POINTER])

    def _products(self, sums: list[Any], rows: list[Any], line: Any) -> list[Any]:
        """The sums after one more step of K: B's row at `line`, A's elements at `rows`."""
        builder, vectors = self.builder, self.vectors
        panel = [self._load(line, v) for v in range(vectors)]
        found = []
        for i, address in enumerate(rows):
            factor = spread(builder, builder.load(address, typ=self.kind, align=self.size), self.shape.lanes)
            found += [fused(builder, factor, each, sums[i * vectors + v]) for v, each in enumerate(panel)]
        return found

    def _high(self, row: Any, height: int) -> None:
        """A block of `height` rows."""
        builder, given = self.builder, self.given
        corner = at(builder, given["a"], builder.mul(row, given["by_block"]))
        # LLVM must not know how these are related: it would make all rows' addresses one chain of additions, which
        # takes longer than the products of a narrow panel
        offsets = [i64(0), *(_opaque(builder, builder.mul(given["by_row"], i64(i))) for i in range(1, height))]
        count = height * self.vectors

        def step(sums: list[Any], places: list[Any]) -> tuple[list[Any], list[Any]]:
            line, first = places
            sums = self._products(sums, [at(builder, first, offset) for offset in offsets], line)
            return sums, [at(builder, line, given["pitch"]), at(builder, first, given["by_k"])]

        def summed() -> list[Any]:
            start = [*[self.zero] * count, given["b"], corner]
            if self.vectors == 1:  # takes so little time that hints would be felt
                return self._steps(given["depth"], start, step)[:count]
            # K in as many parts as there are rows: in each one row of those that come next is asked for
            rest = builder.srem(given["depth"], i64(STEPS))
            turns = builder.sdiv(given["depth"], i64(STEPS))
            most = builder.sdiv(builder.add(turns, i64(height - 1)), i64(height))
            with carried(builder, i64(height), [*start, self._soon(row, height), i64(0)]) as (values, following):
                part = values[-1]
                self._expect(row, part)
                done = builder.mul(part, most)
                length = smaller(builder, most, builder.sub(turns, done))
                hints = [values[-2], self._coming(corner, part, done, height)]
                following += [*self._turns(length, values[:-2], hints, step, height), builder.add(part, i64(1))]
            return self._steps(rest, values[:-2], step)[:count]

        self._summed(row, [i64(i) for i in range(height)], summed)

    def _steps(self, count: Any, start: list[Any], step: Step) -> list[Any]:
        """So many steps of K: the sums and places after them."""
        sums = len(start) - 2
        with carried(self.builder, count, start) as (values, following):
            found, moved = step(values[:sums], values[sums:])
            following += [*found, *moved]
        return values

    def _turns(self, count: Any, start: list[Any], hints: list[Any], step: Step, height: int) -> list[Any]:
        """Turns of `STEPS` steps, each of which asks for memory: sums, places, and the first hint, after them."""
        builder, given, number = self.builder, self.given, len(start)
        coming = builder.mul(given["by_k"], i64(STEPS))
        beside = builder.select(self._turned(), coming, builder.mul(coming, i64(height)))
        soon = builder.mul(given["soon_k"], i64(STEPS))
        with carried(builder, count, [*start, *hints]) as (values, following):
            later, next_ = values[number:]
            prefetch(builder, later, False, 2)
            for offset in range(0, height * STEPS * self.size, LINE):
                prefetch(builder, at(builder, next_, offset), False, 3)
            found, moved = values[:number - 2], values[number - 2:number]
            for i in range(STEPS):  # loads for two steps at once would need more registers than there are
                found, moved = step(found, after(builder, moved, found) if i else moved)
            following += [*found, *moved, at(builder, later, soon), at(builder, next_, beside)]
        return values[:-1]

    def _turned(self) -> Any:
        """Whether a step's elements of the left operand lie nearer to each other than a row's."""
        by_k, by_row = self.given["by_k"], self.given["by_row"]
        return self.builder.icmp_signed(">", self.builder.mul(by_k, by_k), self.builder.mul(by_row, by_row))

    def _coming(self, corner: Any, part: Any, done: Any, height: int) -> Any:
        """What of the left operand a part of K asks for, from here on: a row of the next block.

        Where a step's elements lie together it is the steps that come next.
        """
        builder, given = self.builder, self.given
        below = builder.add(builder.mul(given["by_block"], i64(height)), builder.mul(part, given["by_row"]))
        further = builder.mul(given["by_k"], builder.add(builder.mul(done, i64(STEPS)), i64(AHEAD)))
        return at(builder, corner, builder.select(self._turned(), further, below))

    def _soon(self, row: Any, height: int) -> Any:
        """What a block asks for, from here on, of what is read after this panel.

        Each of the first blocks does so for a line of every row whose number leaves the same rest; the others keep
        to the last one, which is there.
        """
        builder, given = self.builder, self.given
        block = builder.sdiv(row, i64(height))
        within = smaller(builder, builder.mul(builder.sdiv(block, i64(STEPS)), i64(LINE)),
                         builder.sub(given["soon_bytes"], i64(1)))
        rest = builder.mul(given["soon_k"], builder.srem(block, i64(STEPS)))
        return at(builder, given["soon"], builder.add(within, rest))

    def _low(self, row: Any, height: int) -> None:
        """A block of up to `height` rows: what lies beyond the last row repeats it, to no effect."""
        builder, given = self.builder, self.given
        last = builder.sub(builder.sub(given["rows"], row), i64(1))
        places = [smaller(builder, i64(i), last) for i in range(height)]
        inside = builder.srem(row, i64(self.shape.rows[0]))
        corner = at(builder, at(builder, given["a"], builder.mul(builder.sub(row, inside), given["by_block"])),
                    builder.mul(inside, given["by_row"]))
        starts = [at(builder, corner, builder.mul(i, given["by_row"])) for i in places]

        def step(sums: list[Any], values: list[Any]) -> tuple[list[Any], list[Any]]:
            line, along = values
            sums = self._products(sums, [at(builder, each, along) for each in starts], line)
            return sums, [at(builder, line, given["pitch"]), builder.add(along, given["by_k"])]

        count = len(places) * self.vectors
        self._summed(row, places, lambda: self._steps(given["depth"], [*[self.zero] * count, given["b"], i64(0)],
                                                      step)[:count])

    def _summed(self, row: Any, places: list[Any], summed: Callable[[], list[Any]]) -> None:
        """Sum over K, add what was there before if that is asked for, store, and let the epilogue go over it."""
        builder, given, vectors = self.builder, self.given, self.vectors
        target = at(builder, given["into"], builder.mul(row, given["advance"]))
        lines = [at(builder, target, builder.mul(i, given["apart"])) for i in places]
        if vectors == 1 or len(places) < self.shape.rows[0]:  # else row by row, while K runs (`_expect`)
            for line in lines:
                for v in range(vectors):  # asked for now, as it is needed when K has run
                    prefetch(builder, at(builder, line, v * self.line), True, 3)
        for k, result in enumerate(self._added(summed(), lines)):
            self._store(result, lines[k // vectors], k % vectors)
        with builder.if_then(self.wanted):
            rows = builder.add(places[-1], i64(1))
            builder.call(Called(given["finish"], FINISH), [
                target, given["apart"], given["bases"], given["strides"], builder.add(given["first"], row),
                given["column"], rows, given["columns"]])

    def _expect(self, row: Any, part: Any) -> None:
        """Ask for where row `part` of a block is added to or stored, and for what the epilogue reads and writes there.

        It comes while K runs. All rows at once would hold up what K's next steps ask for: a processor waits for few
        lines at a time.
        """
        builder, given = self.builder, self.given
        target = at(builder, given["into"], builder.mul(row, given["advance"]))
        line = at(builder, target, builder.mul(part, given["apart"]))
        for v in range(self.vectors):
            prefetch(builder, at(builder, line, v * self.line), True, 3)
        with builder.if_then(self.wanted), loop(builder, i64(0), given["operands"]) as i:
            base = builder.load(builder.gep(given["bases"], [i], source_etype=POINTER), typ=POINTER)
            by_row = word(builder, given["strides"], i)
            by_column = word(builder, given["strides"], builder.add(i, given["operands"]))
            down = builder.mul(builder.add(builder.add(given["first"], row), part), by_row)
            place = at(builder, at(builder, base, down), builder.mul(given["column"], by_column))
            for element in range(0, self.vectors * self.shape.lanes, LINE // self.size):
                prefetch(builder, at(builder, place, builder.mul(by_column, i64(element))), False, 3)

    def _added(self, sums: list[Any], lines: list[Any]) -> list[Any]:
        """The sums, with what lies at `lines` added to them if that is asked for."""
        builder, vectors = self.builder, self.vectors
        alone, adding, added = builder.block, *(builder.append_basic_block(name) for name in ("adding", "added"))
        builder.cbranch(self.given["add"], adding, added)
        builder.position_at_end(adding)
        totals = [builder.fadd(each, self._load(lines[k // vectors], k % vectors)) for k, each in enumerate(sums)]
        builder.branch(added)
        builder.position_at_end(added)
        results = [builder.phi(self.vector) for _ in sums]
        for phi, each, total in zip(results, sums, totals, strict=True):
            phi.add_incoming(each, alone)
            phi.add_incoming(total, adding)
        return results


def emit_panel(module: ir.Module, dtype: np.dtype, vectors: int) -> ir.Function:
    """The function (`PANEL`) that computes all rows of a panel of so many vectors.

    Only a panel of one vector may be narrower than its vectors: loading a part costs nothing there.
    """
    return _Panel(module, dtype, vectors).emit()
