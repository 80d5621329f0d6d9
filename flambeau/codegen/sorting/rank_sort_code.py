"""Rank sort code generation: blocks of elements, each compared with every element of the row.

Elements are compared as integer *keys* of the same order. Stability: an equal element before a block ranks before it,
one behind does not. Plan: elements of a row, rows, rows of a chunk.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir

from ..llvm import kernel_entry
from ..llvm.loop_nests import (
    I8,
    I32,
    I64,
    POINTER,
    as_opaque_pointer,
    at,
    first_lanes,
    i64,
    lane_indices,
    local,
    loop,
    smaller,
    word,
)
from ..llvm.lowering import constant, splat

_FLOAT = ir.FloatType()


class Emitter:
    """Emits one module.

    Args:
        lanes: elements of a block.
        descending: whether the largest come first.
        max_row: maximum elements of a row.
    """

    def __init__(self, lanes: int, descending: bool, max_row: int) -> None:
        self.lanes, self.descending, self.max_row = lanes, descending, max_row
        self.vector = ir.VectorType(I32, lanes)

    def module(self) -> str:
        """The module's text."""
        module = ir.Module("rank")
        body, self.b = kernel_entry.begin(module, "body", kernel_entry.BODY)
        b = self.b
        pointers, plan, chunk = body.args
        values, order, repeated, x = (b.load(b.gep(pointers, [i64(i)], source_etype=POINTER), typ=POINTER)
                                      for i in range(4))
        self.n, rows, chunk_rows = (word(b, plan, i) for i in range(3))
        # padded to entire blocks
        self.keys, self.sorted = (as_opaque_pointer(b, local(b, I32, self.max_row + self.lanes)) for _ in range(2))
        self.ranks = as_opaque_pointer(b, local(b, I32, self.lanes))
        self.total = local(b, self.vector)
        first = b.mul(chunk, chunk_rows)
        with loop(b, first, smaller(b, b.add(first, chunk_rows), rows)) as row:
            start = b.mul(row, self.n)
            source = b.gep(x, [start], source_etype=_FLOAT)
            self._write_keys(source)
            with loop(b, i64(0), self.n, self.lanes) as j:
                self._rank(j)
                self._scatter(j, source, b.gep(values, [start], source_etype=_FLOAT),
                              b.gep(order, [start], source_etype=I64))
            self._write_repeated(at(b, repeated, row))
        b.ret_void()
        return str(module)

    def _sort_key(self, x: Any, type_: ir.Type) -> Any:
        """Signed integers that compare as elements do."""
        b = self.b
        bits = b.bitcast(b.fadd(x, constant(0.0, x.type)), type_)  # the two zeros are equal
        ordered = b.xor(bits, b.and_(b.ashr(bits, constant(31, type_)), constant((1 << 31) - 1, type_)))
        key = b.select(b.fcmp_unordered("uno", x, x), constant((1 << 31) - 1, type_), ordered)
        return b.not_(key) if self.descending else key

    def _write_keys(self, x: Any) -> None:
        b, lanes = self.b, self.lanes
        full_end = b.sub(self.n, b.srem(self.n, i64(lanes)))
        with loop(b, i64(0), full_end, lanes) as j:
            elements = b.load(b.gep(x, [j], source_etype=_FLOAT), typ=ir.VectorType(_FLOAT, lanes), align=1)
            b.store(self._sort_key(elements, self.vector), b.gep(self.keys, [j], source_etype=I32), align=4)
        with loop(b, full_end, self.n) as j:
            element = b.load(b.gep(x, [j], source_etype=_FLOAT), typ=_FLOAT, align=1)
            b.store(self._sort_key(element, I32), b.gep(self.keys, [j], source_etype=I32))

    def _key(self, j: Any) -> Any:
        return self.b.load(self.b.gep(self.keys, [j], source_etype=I32), typ=I32)

    def _count(self, start: Any, stop: Any, before: Callable[[Any, Any], Any]) -> None:
        """Add to the block's ranks how many of the elements from `start` to `stop` come before its elements."""
        b = self.b
        with loop(b, start, stop) as j:
            before_block = b.sext(before(splat(b, self._key(j), self.lanes), j), self.vector)
            b.store(b.sub(b.load(self.total, typ=self.vector), before_block), self.total)

    def _rank(self, j: Any) -> None:
        """Compute the ranks of a block's elements."""
        b = self.b
        block = b.load(b.gep(self.keys, [j], source_etype=I32), typ=self.vector, align=4)
        end = smaller(b, b.add(j, i64(self.lanes)), self.n)
        b.store(constant(0, self.vector), self.total)

        def within(key: Any, i: Any) -> Any:
            behind = b.icmp_signed(">", lane_indices(self.lanes, I32),
                                   splat(b, b.trunc(b.sub(i, j), I32), self.lanes))
            return b.or_(b.icmp_signed("<", key, block), b.and_(b.icmp_signed("==", key, block), behind))

        self._count(i64(0), j, lambda key, _: b.icmp_signed("<=", key, block))
        self._count(j, end, within)
        self._count(end, self.n, lambda key, _: b.icmp_signed("<", key, block))
        b.store(b.load(self.total, typ=self.vector), self.ranks, align=4)

    def _scatter(self, j: Any, x: Any, values: Any, order: Any) -> None:
        """Write a block's elements and indices at their ranks."""
        b = self.b
        with loop(b, i64(0), smaller(b, i64(self.lanes), b.sub(self.n, j))) as i:
            place = b.sext(b.load(b.gep(self.ranks, [i], source_etype=I32), typ=I32), I64)
            here = b.add(j, i)
            b.store(self._key(here), b.gep(self.sorted, [place], source_etype=I32))
            b.store(here, b.gep(order, [place], source_etype=I64))
            element = b.load(b.gep(x, [here], source_etype=_FLOAT), typ=_FLOAT, align=1)
            b.store(element, b.gep(values, [place], source_etype=_FLOAT), align=1)

    def _write_repeated(self, repeated: Any) -> None:
        b, lanes = self.b, self.lanes
        any_repeated = local(b, ir.IntType(lanes))
        b.store(ir.Constant(ir.IntType(lanes), 0), any_repeated)
        pairs = b.sub(self.n, i64(1))
        with loop(b, i64(0), pairs, lanes) as j:
            here, next_ = (b.load(b.gep(self.sorted, [b.add(j, i64(k))], source_etype=I32), typ=self.vector, align=4)
                           for k in (0, 1))
            same = b.and_(b.icmp_signed("==", here, next_), first_lanes(b, b.sub(pairs, j), lanes))
            b.store(b.or_(b.load(any_repeated, typ=any_repeated.type.pointee),
                          b.bitcast(same, any_repeated.type.pointee)), any_repeated)
        repeats = b.load(any_repeated, typ=any_repeated.type.pointee)
        b.store(b.zext(b.icmp_unsigned("!=", repeats, ir.Constant(repeats.type, 0)), I8), repeated)
