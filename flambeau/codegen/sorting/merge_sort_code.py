"""Merge sort code generation: short runs are sorted by insertion, then merged from one buffer into another and back.

Elements are compared as 64-bit integer *keys* of the same order. Plan: elements of a row, rows, rows of a chunk, passes
that merge. Scratch memory of a chunk: two buffers of a row's keys and places.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir

from ..llvm import kernel_entry
from ..llvm.loop_nests import I64, POINTER, at, i64, local, loop, smaller, word
from ..llvm.lowering import constant, memory_type, value_type


class Emitter:
    """Emits one module.

    Args:
        dtype: the elements' dtype.
        descending: whether the largest come first.
        run: elements of a run that is sorted by insertion.
    """

    def __init__(self, dtype: np.dtype, descending: bool, run: int) -> None:
        self.dtype, self.descending, self.run = dtype, descending, run

    def module(self) -> str:
        """The module's text."""
        module = ir.Module("merge_sort")
        body, self.b = kernel_entry.begin(module, "body", kernel_entry.BODY)
        b = self.b
        pointers, plan, chunk = body.args
        values, places, x, scratch = (b.load(b.gep(pointers, [i64(i)], source_etype=POINTER), typ=POINTER)
                                      for i in range(4))
        self.n, rows, chunk_rows, merges = (word(b, plan, i) for i in range(4))
        self.i, self.j = local(b, I64), local(b, I64)
        width, source, target = local(b, I64), local(b, POINTER), local(b, POINTER)
        size = self.dtype.itemsize
        own = at(b, scratch, b.mul(chunk, b.shl(self.n, i64(5))))
        first = b.mul(chunk, chunk_rows)
        with loop(b, first, smaller(b, b.add(first, chunk_rows), rows)) as row:
            start = b.mul(row, self.n)
            elements = at(b, x, b.mul(start, i64(size)))
            b.store(own, source)
            b.store(at(b, own, b.shl(self.n, i64(4))), target)
            b.store(i64(self.run), width)
            self._load(elements, own)
            self._insert(own)
            with loop(b, i64(0), merges):
                old, new = b.load(source, typ=POINTER), b.load(target, typ=POINTER)
                step = b.load(width, typ=I64)
                with loop(b, i64(0), self.n, b.shl(step, i64(1))) as begin:
                    middle = smaller(b, b.add(begin, step), self.n)
                    self._merge(old, new, begin, middle, smaller(b, b.add(middle, step), self.n))
                b.store(old, target)
                b.store(new, source)
                b.store(b.shl(step, i64(1)), width)
            result = b.load(source, typ=POINTER)
            kind = memory_type(self.dtype)
            with loop(b, i64(0), self.n) as i:
                place, to = self._place(result, i), b.add(start, i)
                found = b.load(place, typ=I64)
                b.store(found, b.gep(places, [to], source_etype=I64))
                element = b.load(at(b, elements, b.mul(found, i64(size))), typ=kind, align=1)
                b.store(element, at(b, values, b.mul(to, i64(size))), align=1)
        b.ret_void()
        return str(module)

    def _key(self, buffer: Any, i: Any) -> Any:
        """The address of a key."""
        return self.b.gep(buffer, [i], source_etype=I64)

    def _place(self, buffer: Any, i: Any) -> Any:
        """The address of a place."""
        return self.b.gep(buffer, [self.b.add(self.n, i)], source_etype=I64)

    def _load(self, x: Any, buffer: Any) -> None:
        b = self.b
        with loop(b, i64(0), self.n) as i:
            element = b.load(at(b, x, b.mul(i, i64(self.dtype.itemsize))), typ=memory_type(self.dtype), align=1)
            b.store(self._sort_key(element), self._key(buffer, i))
            b.store(i, self._place(buffer, i))

    def _sort_key(self, x: Any) -> Any:
        """A 64-bit integer that compares as the element does, or inversely if descending."""
        b, kind = self.b, self.dtype.kind
        if kind == "f":
            bits = 8 * self.dtype.itemsize
            type_ = value_type(np.dtype(f"i{self.dtype.itemsize}"))
            greatest = constant((1 << (bits - 1)) - 1, type_)
            pattern = b.bitcast(b.fadd(x, constant(0.0, x.type)), type_)  # the two zeros are equal
            ordered = b.xor(pattern, b.and_(b.ashr(pattern, constant(bits - 1, type_)), greatest))
            key = b.select(b.fcmp_unordered("uno", x, x), greatest, ordered)
        else:
            key = x
        if key.type != I64:
            key = b.sext(key, I64) if kind in "fi" else b.zext(key, I64)
        return b.not_(key) if self.descending else key

    def _insert(self, buffer: Any) -> None:
        """Sort runs by insertion."""
        b = self.b
        with loop(b, i64(0), self.n, self.run) as begin:
            end = smaller(b, b.add(begin, i64(self.run)), self.n)
            with loop(b, b.add(begin, i64(1)), end) as i:
                key, place = (b.load(each(buffer, i), typ=I64) for each in (self._key, self._place))
                head, compare, move, done = (b.append_basic_block(name)
                                             for name in ("head", "compare", "move", "inserted"))
                before = b.block
                b.branch(head)
                b.position_at_end(head)
                at_ = b.phi(I64)
                at_.add_incoming(i, before)
                above = b.sub(at_, i64(1))
                b.cbranch(b.icmp_signed(">", at_, begin), compare, done)
                b.position_at_end(compare)
                other = b.load(self._key(buffer, above), typ=I64)
                b.cbranch(b.icmp_signed("<", key, other), move, done)
                b.position_at_end(move)
                b.store(other, self._key(buffer, at_))
                b.store(b.load(self._place(buffer, above), typ=I64), self._place(buffer, at_))
                at_.add_incoming(above, move)
                b.branch(head)
                b.position_at_end(done)
                b.store(key, self._key(buffer, at_))
                b.store(place, self._place(buffer, at_))

    def _merge(self, old: Any, new: Any, begin: Any, middle: Any, end: Any) -> None:
        """Merge two sorted runs; the first one's elements come first among equal ones."""
        b = self.b
        b.store(begin, self.i)
        b.store(middle, self.j)
        last = b.sub(self.n, i64(1))
        with loop(b, begin, end) as k:
            i, j = b.load(self.i, typ=I64), b.load(self.j, typ=I64)
            left = b.load(self._key(old, smaller(b, i, last)), typ=I64)
            right = b.load(self._key(old, smaller(b, j, last)), typ=I64)
            is_left = b.and_(b.icmp_signed("<", i, middle),
                             b.or_(b.icmp_signed(">=", j, end), b.icmp_signed("<=", left, right)))
            b.store(b.select(is_left, left, right), self._key(new, k))
            chosen = b.select(is_left, i, j)
            b.store(b.load(self._place(old, chosen), typ=I64), self._place(new, k))
            step = b.zext(is_left, I64)
            b.store(b.add(i, step), self.i)
            b.store(b.add(j, b.sub(i64(1), step)), self.j)
