"""Radix sort code generation: one counting sort per digit of packed (key, index) pairs.

Plan: elements of a row, rows, rows of a chunk.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ..llvm import kernel_entry
from ..llvm.loop_nests import I8, I32, I64, POINTER, as_opaque_pointer, at, i64, local, loop, smaller, word
from ..llvm.lowering import constant

DIGITS, VALUES = 4, 256
_FLOAT = ir.FloatType()


class Emitter:
    """Emits one module.

    Args:
        descending: whether the largest come first.
    """

    def __init__(self, descending: bool) -> None:
        self.descending = descending

    def module(self) -> str:
        """The module's text."""
        module = ir.Module("order")
        body, self.b = kernel_entry.begin(module, "body", kernel_entry.BODY)
        b = self.b
        pointers, plan, chunk = body.args
        order, repeated, x, scratch = (b.load(b.gep(pointers, [i64(i)], source_etype=POINTER), typ=POINTER)
                                       for i in range(4))
        self.n, rows, chunk_rows = (word(b, plan, i) for i in range(3))
        self.counts = [as_opaque_pointer(b, local(b, I64, VALUES)) for _ in range(DIGITS)]
        packed = at(b, scratch, b.mul(chunk, b.shl(self.n, i64(4))))
        spare = b.gep(packed, [self.n], source_etype=I64)
        first = b.mul(chunk, chunk_rows)
        with loop(b, first, smaller(b, b.add(first, chunk_rows), rows)) as row:
            start = b.mul(row, self.n)
            self._pack(b.gep(x, [start], source_etype=_FLOAT), packed)
            for digit in range(DIGITS):
                self._counting_sort(digit, *((spare, packed) if digit % 2 else (packed, spare)))
            self._finish(packed, b.gep(order, [start], source_etype=I64), at(b, repeated, row))
        b.ret_void()
        return str(module)

    def _sort_key(self, x: Any) -> Any:
        """An unsigned integer that compares as the element does, or inversely if descending."""
        b = self.b
        bits = b.bitcast(b.fadd(x, constant(0.0, _FLOAT)), I32)  # the two zeros are equal
        ordered = b.xor(bits, b.or_(b.ashr(bits, constant(31, I32)), constant(-(1 << 31), I32)))
        key = b.select(b.fcmp_unordered("uno", x, x), constant(-1, I32), ordered)
        return b.not_(key) if self.descending else key

    def _digit(self, digit: int, packed: Any) -> Any:
        b = self.b
        return b.and_(b.lshr(packed, i64(32 + 8 * digit)), i64(VALUES - 1))

    def _pack(self, x: Any, to: Any) -> None:
        """Write packed keys and indices, and histograms of all digits."""
        b = self.b
        with loop(b, i64(0), i64(VALUES)) as i:
            for counts in self.counts:
                b.store(i64(0), b.gep(counts, [i], source_etype=I64))
        with loop(b, i64(0), self.n) as j:
            key = self._sort_key(b.load(b.gep(x, [j], source_etype=_FLOAT), typ=_FLOAT, align=1))
            packed = b.or_(b.shl(b.zext(key, I64), i64(32)), j)
            b.store(packed, b.gep(to, [j], source_etype=I64))
            for digit, counts in enumerate(self.counts):
                place = b.gep(counts, [self._digit(digit, packed)], source_etype=I64)
                b.store(b.add(b.load(place, typ=I64), i64(1)), place)

    def _counting_sort(self, digit: int, source: Any, to: Any) -> None:
        """Sort stably by one digit."""
        b, counts = self.b, self.counts[digit]
        total = local(b, I64)
        b.store(i64(0), total)
        with loop(b, i64(0), i64(VALUES)) as i:
            place = b.gep(counts, [i], source_etype=I64)
            before, count = b.load(total, typ=I64), b.load(place, typ=I64)
            b.store(before, place)
            b.store(b.add(before, count), total)
        with loop(b, i64(0), self.n) as j:
            packed = word(b, source, j)
            place = b.gep(counts, [self._digit(digit, packed)], source_etype=I64)
            free = b.load(place, typ=I64)
            b.store(packed, b.gep(to, [free], source_etype=I64))
            b.store(b.add(free, i64(1)), place)

    def _finish(self, source: Any, order: Any, repeated: Any) -> None:
        b = self.b
        last, same = local(b, I64), local(b, I8)
        b.store(i64(-1), last)  # differs from all 32-bit keys
        b.store(ir.Constant(I8, 0), same)
        with loop(b, i64(0), self.n) as j:
            packed = word(b, source, j)
            key = b.lshr(packed, i64(32))
            b.store(b.or_(b.load(same, typ=I8), b.zext(b.icmp_signed("==", key, b.load(last, typ=I64)), I8)), same)
            b.store(key, last)
            b.store(b.and_(packed, i64(0xFFFFFFFF)), b.gep(order, [j], source_etype=I64))
        b.store(b.load(same, typ=I8), repeated)
