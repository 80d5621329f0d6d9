"""The matmul micro-kernel: a register block of C that stays in registers while K runs.

A block has a few rows, each as many vectors wide as its panel. One step of K loads a vector of B for every vector of
the panel and splats an element of A for every row: rows × vectors multiply-adds for rows + vectors loads. A is read by
its strides and B by its row pitch, so that both may be read in place or packed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir

from ...runtime import target
from ...runtime.nontemporal_stores import CACHE_LINE
from ..llvm.kernel_entry import FunctionPointer
from ..llvm.loop_nests import (
    I1,
    I32,
    I64,
    POINTER,
    at,
    first_lanes,
    i64,
    inside_array,
    loop,
    opaque,
    order_after,
    shared_base,
    smaller,
    word,
)
from ..llvm.lowering import intrinsic, memory_type, splat

VOID = ir.VoidType()
#: tile, its row pitch in bytes, operands' addresses, their strides, row, column, rows, columns
EPILOGUE = ir.FunctionType(VOID, [POINTER, I64, POINTER, POINTER, I64, I64, I64, I64])
#: the arguments of a panel's function, in order; strides and pitches in bytes
ARGUMENTS = {
    # A; its block stride is that from block to block, divided by a block's rows
    "a": POINTER, "a_row_stride": I64, "a_k_stride": I64, "a_block_stride": I64,
    "b": POINTER, "b_pitch": I64, "depth": I64,  # B, its row pitch; K
    "c": POINTER, "c_row_stride": I64, "c_block_stride": I64,  # the result, likewise
    "rows": I64, "columns": I64, "accumulate": I1,  # whether to add to the result that is there
    "epilogue": POINTER, "bases": POINTER, "strides": POINTER, "row": I64, "column": I64,  # as for EPILOGUE
    "operands": I64,  # how many the epilogue has; their row strides precede their column strides
    "next": POINTER, "next_k_stride": I64, "next_row_bytes": I64,  # what is read after this panel, to prefetch
}
PANEL = ir.FunctionType(VOID, [*ARGUMENTS.values()])

#: steps of K in an unrolled iteration; prefetch distance of A in steps, if A's columns are contiguous
UNROLL, PREFETCH_STEPS = 4, 8


class RegisterBlocking(NamedTuple):
    """Register blocking: how C is cut into blocks that fit the machine's registers.

    Attributes:
        lanes: elements per vector.
        rows: height of full blocks, and of the blocks for the remaining rows.
        vectors: width of the widest panel, in vectors.
        masked: whether a masked load costs no more than a full one.
    """

    lanes: int
    rows: tuple[int, int]
    vectors: int
    masked: bool

    @property
    def width(self) -> int:
        """Elements per row of the widest panel."""
        return self.lanes * self.vectors


@cache
def register_blocking(dtype: np.dtype) -> RegisterBlocking:
    """Return the register blocking for products of this dtype on this machine."""
    host = target.host()
    lanes = host.vector_bits // 8 // dtype.itemsize
    if host.vector_bits == 512:
        return RegisterBlocking(lanes, (8, 4), 3, True)
    if host.triple.startswith(("aarch64", "arm64")):  # as many registers, but no masked loads
        return RegisterBlocking(lanes, (8, 4), 3, False)
    if host.is_wasm:  # engines load all that a step reads first, and keep one of the 16 registers for themselves
        return RegisterBlocking(lanes, (2, 2), 4, False)
    return RegisterBlocking(lanes, (4, 2), 3, False)


@contextmanager
def counted_loop(builder: ir.IRBuilder, count: Any, start: Sequence[Any]) -> Iterator[tuple[list[Any], list[Any]]]:
    """Emit a loop of `count` iterations with carried values: yields (values before an iteration, list for those after).

    After the loop the first list holds the values after the last iteration.
    """
    before = builder.block
    body, after = (builder.append_basic_block(name) for name in ("iteration", "after"))
    builder.cbranch(builder.icmp_signed(">", count, i64(0)), body, after)
    builder.position_at_end(body)
    left = builder.phi(I64)
    left.add_incoming(count, before)
    values = [builder.phi(each.type) for each in start]
    following: list[Any] = []
    values_after = list(values)
    yield values_after, following
    rest = builder.sub(left, i64(1))
    left.add_incoming(rest, builder.block)
    for phi, each in zip(values, following, strict=True):
        phi.add_incoming(each, builder.block)
    builder.cbranch(builder.icmp_signed(">", rest, i64(0)), body, after)
    last = builder.block
    builder.position_at_end(after)
    for i, (phi, first, each) in enumerate(zip(values, start, following, strict=True)):
        phi.add_incoming(first, before)
        values_after[i] = builder.phi(each.type)
        values_after[i].add_incoming(first, before)
        values_after[i].add_incoming(each, last)


def stepwise_loop(builder: ir.IRBuilder, count: Any, start: Sequence[Any], unroll: int,
                  step: Callable[[list[Any], int], list[Any]], advance: Callable[[Any], Any]) -> list[Any]:
    """Emit `count` steps of a loop with carried values, each a basic block of its own; return the values after them.

    Engines of WebAssembly order the instructions of a block anew: all steps of one accumulator after another, with what
    they load kept in memory meanwhile.

    Args:
        builder: of the function.
        count: the number of steps.
        start: the values before the first step; the last is the place.
        unroll: steps in an iteration, which share a place.
        step: the values without the place, after step i of an iteration.
        advance: the place of the next iteration.
    """
    before = builder.block
    body, after = (builder.append_basic_block(name) for name in ("iteration", "after"))
    ends: list[tuple[Any, list[Any]]] = [(before, list(start[:-1]))]
    builder.cbranch(builder.icmp_signed(">", count, i64(0)), body, after)
    builder.position_at_end(body)
    left = builder.phi(I64)
    left.add_incoming(count, before)
    phis = [builder.phi(each.type) for each in start]
    values = list(phis)
    for i in range(unroll):
        values[:-1] = step(values, i)
        ends.append((builder.block, values[:-1]))
        if i + 1 < unroll:
            following = builder.append_basic_block(f"step{i + 1}")
            builder.cbranch(builder.icmp_signed(">", left, i64(i + 1)), following, after)
            builder.position_at_end(following)
    values[-1] = advance(values[-1])
    rest = builder.sub(left, i64(unroll))
    left.add_incoming(rest, builder.block)
    for phi, first, each in zip(phis, start, values, strict=True):
        phi.add_incoming(first, before)
        phi.add_incoming(each, builder.block)
    builder.cbranch(builder.icmp_signed(">", rest, i64(0)), body, after)
    builder.position_at_end(after)
    results = []
    for i, each in enumerate(start[:-1]):
        result = builder.phi(each.type)
        for block, ended in ends:
            result.add_incoming(ended[i], block)
        results.append(result)
    return results


@contextmanager
def positive_loop(builder: ir.IRBuilder, start: Sequence[Any]) -> Iterator[tuple[list[Any], list[Any]]]:
    """Emit a loop with carried values that runs while the first is positive: yields (values, list of the next)."""
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


def fmuladd(builder: ir.IRBuilder, x: Any, y: Any, z: Any) -> Any:
    """Return x y + z, as a fused multiply-add if the processor has one that is as fast."""
    return intrinsic(builder, "fmuladd", x.type, [x, y, z])


def prefetch(builder: ir.IRBuilder, address: Any, write: bool, locality: int) -> None:
    """Prefetch an address for writing or reading; `locality` is 3 for the L1 cache down to 0 for none."""
    flags = (ir.Constant(I32, i) for i in (int(write), locality, 1))
    intrinsic(builder, "prefetch", VOID, [address, *flags], [POINTER])


#: a step of K: (accumulators, addresses) before it to those after it
Step = Callable[[list[Any], list[Any]], tuple[list[Any], list[Any]]]


class _Panel:
    """Code generation of the function (`PANEL`) that computes all rows of a panel, block by block."""

    def __init__(self, module: ir.Module, dtype: np.dtype, vectors: int) -> None:
        self.shape, self.vectors = register_blocking(dtype), vectors
        self.size, self.kind = dtype.itemsize, memory_type(dtype)
        self.line = self.shape.lanes * self.size
        self.vector = ir.VectorType(self.kind, self.shape.lanes)
        self.zero = ir.Constant(self.vector, None)
        self.function = ir.Function(module, PANEL, f"panel.{vectors}")
        self.builder = builder = ir.IRBuilder(self.function.append_basic_block("entry"))
        self.args = dict(zip(ARGUMENTS, self.function.args, strict=True))
        self.has_epilogue = builder.icmp_unsigned("!=", builder.ptrtoint(self.args["epilogue"], I64), i64(0))
        self.mask = None
        if vectors == 1 and self.shape.masked:
            self.mask = first_lanes(builder, self.args["columns"], self.shape.lanes)

    def emit(self) -> ir.Function:
        builder, rows = self.builder, self.args["rows"]
        high, low = self.shape.rows
        full_rows = builder.sub(rows, builder.srem(rows, i64(high)))
        with loop(builder, i64(0), full_rows, high) as row:
            self._full_block(row, high)
        with loop(builder, full_rows, rows, low) as row:
            self._partial_block(row, low)
        builder.ret_void()
        return self.function

    def _load(self, address: Any, v: int) -> Any:
        if self.mask is None:
            address = inside_array(self.builder, address, v * self.line)
            return self.builder.load(address, typ=self.vector, align=self.size)
        return intrinsic(self.builder, "masked.load", self.vector,
                         [address, ir.Constant(I32, self.size), self.mask, self.zero], [self.vector, POINTER])

    def _store(self, value: Any, address: Any, v: int) -> None:
        if self.mask is None:
            self.builder.store(value, inside_array(self.builder, address, v * self.line), align=self.size)
        else:
            intrinsic(self.builder, "masked.store", VOID, [value, address, ir.Constant(I32, self.size), self.mask],
                      [self.vector, POINTER])

    def _multiply_accumulate(self, sums: list[Any], rows: list[Any], line: Any) -> list[Any]:
        """Return the accumulators after one more step of K: B's row at `line`, A's elements at `rows`."""
        builder, vectors = self.builder, self.vectors
        line = shared_base(builder, line)
        panel = [self._load(line, v) for v in range(vectors)]
        products = []
        for i, address in enumerate(rows):
            factor = splat(builder, builder.load(address, typ=self.kind, align=self.size), self.shape.lanes)
            products += [fmuladd(builder, factor, each, sums[i * vectors + v]) for v, each in enumerate(panel)]
        return products

    def _full_block(self, row: Any, height: int) -> None:
        """Emit a block of `height` rows."""
        builder, args = self.builder, self.args
        corner = at(builder, args["a"], builder.mul(row, args["a_block_stride"]))
        # LLVM must not see how the offsets are related: it would compute all rows' addresses by one chain of additions,
        # which takes longer than the multiplications of a narrow panel
        offsets = [i64(0), *(opaque(builder, builder.mul(args["a_row_stride"], i64(i))) for i in range(1, height))]
        count = height * self.vectors

        def step(sums: list[Any], addresses: list[Any]) -> tuple[list[Any], list[Any]]:
            line, first = addresses
            sums = self._multiply_accumulate(sums, [at(builder, first, offset) for offset in offsets], line)
            return sums, [at(builder, line, args["b_pitch"]), at(builder, first, args["a_k_stride"])]

        def accumulate() -> list[Any]:
            start = [*[self.zero] * count, args["b"], corner]
            # the steps of one vector are so short that prefetches would cost time; those of WebAssembly, which has no
            # prefetches, are each a basic block (`stepwise_loop`)
            if self.vectors == 1 or target.host().is_wasm:
                return self._k_loop(args["depth"], start, step)[:count]
            # as many parts of K as there are rows: each prefetches one row of the next block
            rest = builder.srem(args["depth"], i64(UNROLL))
            iterations = builder.sdiv(args["depth"], i64(UNROLL))
            most = builder.sdiv(builder.add(iterations, i64(height - 1)), i64(height))
            start += [self._next_prefetch_address(row, height), i64(0)]
            with counted_loop(builder, i64(height), start) as (values, following):
                part = values[-1]
                self._prefetch_result(row, part)
                done = builder.mul(part, most)
                length = smaller(builder, most, builder.sub(iterations, done))
                hints = [values[-2], self._left_prefetch_address(corner, part, done, height)]
                following += self._prefetching_k_loop(length, values[:-2], hints, step, height)
                following.append(builder.add(part, i64(1)))
            return self._k_loop(rest, values[:-2], step)[:count]

        self._emit_block(row, [i64(i) for i in range(height)], accumulate)

    def _k_loop(self, count: Any, start: list[Any], step: Step) -> list[Any]:
        """Emit `count` steps of K; return the accumulators and addresses after them."""
        sums = len(start) - 2
        with counted_loop(self.builder, count, start) as (values, following):
            products, advanced = step(values[:sums], values[sums:])
            following += [*products, *advanced]
        return values

    def _prefetching_k_loop(self, count: Any, start: list[Any], hints: list[Any], step: Step, height: int) -> list[Any]:
        """Emit `count` iterations of `UNROLL` steps with prefetches.

        Returns:
            The accumulators, the addresses, and the first prefetch address after them.
        """
        builder, args, number = self.builder, self.args, len(start)
        k_bytes = builder.mul(args["a_k_stride"], i64(UNROLL))
        left_step = builder.select(self._is_transposed(), k_bytes, builder.mul(k_bytes, i64(height)))
        next_step = builder.mul(args["next_k_stride"], i64(UNROLL))
        with counted_loop(builder, count, [*start, *hints]) as (values, following):
            next_address, left_address = values[number:]
            prefetch(builder, next_address, False, 2)
            for offset in range(0, height * UNROLL * self.size, CACHE_LINE):
                prefetch(builder, at(builder, left_address, offset), False, 3)
            products, advanced = values[:number - 2], values[number - 2:number]
            for i in range(UNROLL):  # interleaving the loads of two steps would spill registers
                products, advanced = step(products, order_after(builder, advanced, products) if i else advanced)
            following += [*products, *advanced, at(builder, next_address, next_step),
                          at(builder, left_address, left_step)]
        return values[:-1]

    def _is_transposed(self) -> Any:
        """Whether A's k stride is larger than its row stride: its columns are contiguous."""
        by_k, by_row = self.args["a_k_stride"], self.args["a_row_stride"]
        return self.builder.icmp_signed(">", self.builder.mul(by_k, by_k), self.builder.mul(by_row, by_row))

    def _left_prefetch_address(self, corner: Any, part: Any, done: Any, height: int) -> Any:
        """Return the address from which a part of K prefetches A: a row of the next block.

        If A's columns are contiguous, it is the next steps of K of this block.
        """
        builder, args = self.builder, self.args
        below = builder.add(builder.mul(args["a_block_stride"], i64(height)), builder.mul(part, args["a_row_stride"]))
        further = builder.mul(args["a_k_stride"], builder.add(builder.mul(done, i64(UNROLL)), i64(PREFETCH_STEPS)))
        return at(builder, corner, builder.select(self._is_transposed(), further, below))

    def _next_prefetch_address(self, row: Any, height: int) -> Any:
        """Return the address from which a block prefetches what is read after this panel.

        Block i prefetches one cache line of every row whose index is i modulo `UNROLL`; blocks beyond the last line
        repeat it, which is cached by then.
        """
        builder, args = self.builder, self.args
        block = builder.sdiv(row, i64(height))
        within = smaller(builder, builder.mul(builder.sdiv(block, i64(UNROLL)), i64(CACHE_LINE)),
                         builder.sub(args["next_row_bytes"], i64(1)))
        rest = builder.mul(args["next_k_stride"], builder.srem(block, i64(UNROLL)))
        return at(builder, args["next"], builder.add(within, rest))

    def _partial_block(self, row: Any, height: int) -> None:
        """Emit a block of up to `height` rows; rows beyond the last repeat it, to no effect."""
        builder, args = self.builder, self.args
        last = builder.sub(builder.sub(args["rows"], row), i64(1))
        row_indices = [smaller(builder, i64(i), last) for i in range(height)]
        inside = builder.srem(row, i64(self.shape.rows[0]))
        corner = at(builder, at(builder, args["a"], builder.mul(builder.sub(row, inside), args["a_block_stride"])),
                    builder.mul(inside, args["a_row_stride"]))
        starts = [at(builder, corner, builder.mul(i, args["a_row_stride"])) for i in row_indices]

        def step(sums: list[Any], values: list[Any]) -> tuple[list[Any], list[Any]]:
            line, offset = values
            sums = self._multiply_accumulate(sums, [at(builder, each, offset) for each in starts], line)
            return sums, [at(builder, line, args["b_pitch"]), builder.add(offset, args["a_k_stride"])]

        count = len(row_indices) * self.vectors
        start = [*[self.zero] * count, args["b"], i64(0)]
        self._emit_block(row, row_indices, lambda: self._k_loop(args["depth"], start, step)[:count])

    def _emit_block(self, row: Any, row_indices: list[Any], accumulate: Callable[[], list[Any]]) -> None:
        """Accumulate over K, add the previous partial result if requested, store, and call the epilogue."""
        builder, args, vectors = self.builder, self.args, self.vectors
        target = at(builder, args["c"], builder.mul(row, args["c_block_stride"]))
        lines = [at(builder, target, builder.mul(i, args["c_row_stride"])) for i in row_indices]
        if vectors == 1 or len(row_indices) < self.shape.rows[0]:  # otherwise row by row, while K runs
            for line in lines:
                for v in range(vectors):  # prefetched now, as they are needed after K has run
                    prefetch(builder, at(builder, line, v * self.line), True, 3)
        for k, result in enumerate(self._accumulate(accumulate(), lines)):
            self._store(result, lines[k // vectors], k % vectors)
        with builder.if_then(self.has_epilogue):
            rows = builder.add(row_indices[-1], i64(1))
            builder.call(FunctionPointer(args["epilogue"], EPILOGUE), [
                target, args["c_row_stride"], args["bases"], args["strides"], builder.add(args["row"], row),
                args["column"], rows, args["columns"]])

    def _prefetch_result(self, row: Any, part: Any) -> None:
        """Prefetch row `part` of a block's result, and what the epilogue reads and writes there.

        This runs between parts of K. Prefetching all rows at once would delay the loads of the next steps of K: a
        processor has few outstanding cache misses.
        """
        builder, args = self.builder, self.args
        target = at(builder, args["c"], builder.mul(row, args["c_block_stride"]))
        line = at(builder, target, builder.mul(part, args["c_row_stride"]))
        for v in range(self.vectors):
            prefetch(builder, at(builder, line, v * self.line), True, 3)
        with builder.if_then(self.has_epilogue), loop(builder, i64(0), args["operands"]) as i:
            base = builder.load(builder.gep(args["bases"], [i], source_etype=POINTER), typ=POINTER)
            by_row = word(builder, args["strides"], i)
            by_column = word(builder, args["strides"], builder.add(i, args["operands"]))
            down = builder.mul(builder.add(builder.add(args["row"], row), part), by_row)
            place = at(builder, at(builder, base, down), builder.mul(args["column"], by_column))
            for element in range(0, self.vectors * self.shape.lanes, CACHE_LINE // self.size):
                prefetch(builder, at(builder, place, builder.mul(by_column, i64(element))), False, 3)

    def _accumulate(self, sums: list[Any], lines: list[Any]) -> list[Any]:
        """Return the sums, with the partial result at `lines` added if requested."""
        builder, vectors = self.builder, self.vectors
        alone, adding, added = builder.block, *(builder.append_basic_block(name) for name in ("adding", "added"))
        builder.cbranch(self.args["accumulate"], adding, added)
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
    """Emit the function (`PANEL`) that computes all rows of a panel of `vectors` vectors.

    Only a panel of one vector may have fewer columns than its width: its masked loads cost nothing.
    """
    return _Panel(module, dtype, vectors).emit()
