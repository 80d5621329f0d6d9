"""Top-k code generation: a sorted list of the best elements so far, whose last one all others are compared with.

Elements are compared as integer *keys* of the same order. Plan: elements of a row, rows, rows of a chunk, k.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir

from ..llvm import kernel_entry
from ..llvm.loop_nests import I8, I64, POINTER, as_opaque_pointer, at, i64, local, loop, smaller, word
from ..llvm.lowering import constant, intrinsic, splat, value_type


class Emitter:
    """Emits one module.

    Args:
        dtype: the elements' dtype.
        lanes: elements compared at once.
        largest: whether the largest are selected.
        max_k: maximum k.
    """

    def __init__(self, dtype: np.dtype, lanes: int, largest: bool, max_k: int) -> None:
        self.dtype, self.lanes, self.largest, self.max_k = dtype, lanes, largest, max_k
        self.bits = 8 * dtype.itemsize
        self.key = ir.IntType(self.bits)
        self.worst = ir.Constant(self.key, -(1 << (self.bits - 1)))

    def module(self) -> str:
        """The module's text."""
        module = ir.Module("top_k")
        body, self.b = kernel_entry.begin(module, "body", kernel_entry.BODY)
        b = self.b
        pointers, plan, chunk = body.args
        values, places, ambiguous, x = (b.load(b.gep(pointers, [i64(i)], source_etype=POINTER), typ=POINTER)
                                       for i in range(4))
        n, rows, chunk_rows, self.count = (word(b, plan, i) for i in range(4))
        self.last = b.sub(self.count, i64(1))
        self.keys = as_opaque_pointer(b, local(b, self.key, self.max_k))
        self.places = as_opaque_pointer(b, local(b, I64, self.max_k))
        self.block = as_opaque_pointer(b, local(b, self.key, self.lanes))
        self.limit, self.tie = local(b, self.key), local(b, self.key)
        first = b.mul(chunk, chunk_rows)
        with loop(b, first, smaller(b, b.add(first, chunk_rows), rows)) as row:
            with loop(b, i64(0), self.count) as i:
                b.store(self.worst, self._key(i))
            b.store(self.worst, self.limit)
            b.store(self.worst, self.tie)
            source, first_of = at(b, x, b.mul(b.mul(row, n), i64(self.dtype.itemsize))), b.mul(row, self.count)
            self._row(source, n)
            self._finish(source, b.gep(values, [first_of], source_etype=value_type(self.dtype)),
                         b.gep(places, [first_of], source_etype=I64), at(b, ambiguous, row))
        b.ret_void()
        return str(module)

    def _key(self, i: Any) -> Any:
        return self.b.gep(self.keys, [i], source_etype=self.key)

    def _place(self, i: Any) -> Any:
        return self.b.gep(self.places, [i], source_etype=I64)

    def _sort_key(self, x: Any, lanes: int) -> Any:
        """Integers that compare as elements do; larger keys are selected first."""
        b, type_ = self.b, value_type(np.dtype(f"i{self.dtype.itemsize}"), lanes)
        bits = b.bitcast(b.fadd(x, constant(0.0, x.type)), type_)  # the two zeros are equal
        greatest = constant((1 << (self.bits - 1)) - 1, type_)
        ordered = b.xor(bits, b.and_(b.ashr(bits, constant(self.bits - 1, type_)), greatest))
        key = b.select(b.fcmp_unordered("uno", x, x), greatest, ordered)
        return key if self.largest else b.not_(key)

    def _row(self, x: Any, n: Any) -> None:
        b, lanes = self.b, self.lanes
        kind = value_type(self.dtype)
        full_end = b.sub(n, b.srem(n, i64(lanes)))
        left = local(b, ir.IntType(lanes))
        with loop(b, i64(0), full_end, lanes) as j:
            elements = b.load(b.gep(x, [j], source_etype=kind), typ=ir.VectorType(kind, lanes), align=1)
            keys = self._sort_key(elements, lanes)
            candidates = b.icmp_signed(">=", keys, splat(b, b.load(self.limit, typ=self.key), lanes))
            mask = b.bitcast(candidates, left.type.pointee)
            with b.if_then(b.icmp_unsigned("!=", mask, ir.Constant(mask.type, 0)), likely=False):
                b.store(keys, self.block, align=1)
                b.store(mask, left)
                self._insert_candidates(left, j)
        with loop(b, full_end, n) as j:
            self._insert(self._sort_key(b.load(b.gep(x, [j], source_etype=kind), typ=kind, align=1), 0), j)

    def _insert_candidates(self, left: Any, start: Any) -> None:
        """Insert the elements of a block whose mask bits are set, in order."""
        b = self.b
        again, done = b.append_basic_block("again"), b.append_basic_block("inserted")
        b.branch(again)
        b.position_at_end(again)
        mask = b.load(left, typ=left.type.pointee)
        one = ir.Constant(mask.type, 1)
        lane = intrinsic(b, "cttz", mask.type, [mask, ir.Constant(ir.IntType(1), 1)], [mask.type])
        rest = b.and_(mask, b.sub(mask, one))
        b.store(rest, left)
        lane = lane if lane.type == I64 else b.zext(lane, I64)
        key = b.load(b.gep(self.block, [lane], source_etype=self.key), typ=self.key, align=1)
        self._insert(key, b.add(start, lane))
        b.cbranch(b.icmp_unsigned("!=", rest, ir.Constant(mask.type, 0)), again, done)
        b.position_at_end(done)

    def _insert(self, key: Any, place: Any) -> None:
        """Insert an element if it is better than the last; record a tie if an equal one is left out."""
        b = self.b
        limit = b.load(self.limit, typ=self.key)
        with b.if_then(b.icmp_signed("==", key, limit)):
            b.store(limit, self.tie)
        with b.if_then(b.icmp_signed(">", key, limit)):
            at_place = self._shift_down(key)
            b.store(key, self._key(at_place))
            b.store(place, self._place(at_place))
            now = b.load(self._key(self.last), typ=self.key)
            b.store(now, self.limit)
            with b.if_then(b.icmp_signed("==", now, limit)):
                b.store(limit, self.tie)

    def _shift_down(self, key: Any) -> Any:
        """Shift the elements below a key down by one, dropping the last; the free position."""
        b = self.b
        before = b.block
        head, compare, move, after = (b.append_basic_block(name) for name in ("head", "compare", "move", "free"))
        b.branch(head)
        b.position_at_end(head)
        i = b.phi(I64)
        i.add_incoming(self.last, before)
        above = b.sub(i, i64(1))
        b.cbranch(b.icmp_signed(">", i, i64(0)), compare, after)
        b.position_at_end(compare)
        other = b.load(self._key(above), typ=self.key)
        b.cbranch(b.icmp_signed("<", other, key), move, after)
        b.position_at_end(move)
        b.store(other, self._key(i))
        b.store(b.load(self._place(above), typ=I64), self._place(i))
        i.add_incoming(above, move)
        b.branch(head)
        b.position_at_end(after)
        return i

    def _finish(self, x: Any, values: Any, places: Any, ambiguous: Any) -> None:
        """Write the row's results, and whether they are ambiguous."""
        b = self.b
        last = b.load(self._key(self.last), typ=self.key)
        ambiguity = local(b, I8)
        b.store(b.zext(b.or_(b.icmp_signed("==", last, self.worst),
                             b.icmp_signed("==", last, b.load(self.tie, typ=self.key))), I8), ambiguity)
        with loop(b, i64(0), self.last) as i:
            same = b.icmp_signed("==", b.load(self._key(i), typ=self.key),
                                 b.load(self._key(b.add(i, i64(1))), typ=self.key))
            b.store(b.or_(b.load(ambiguity, typ=I8), b.zext(same, I8)), ambiguity)
        with loop(b, i64(0), self.count) as i:
            b.store(b.load(self._place(i), typ=I64), b.gep(places, [i], source_etype=I64))
        b.store(b.load(ambiguity, typ=I8), ambiguous)
        # the indices of an ambiguous row may be invalid
        with b.if_then(b.icmp_signed("==", b.load(ambiguity, typ=I8), ir.Constant(I8, 0))), loop(
                b, i64(0), self.count) as i:
            kind = value_type(self.dtype)
            element = b.load(b.gep(x, [b.load(self._place(i), typ=I64)], source_etype=kind), typ=kind, align=1)
            b.store(element, b.gep(values, [i], source_etype=kind), align=1)
