"""The code of selection: a list of the best elements so far, and one comparison with the last of them for the others.

Elements are compared as integers, *keys*, whose order is the wanted one. The plan of a call: elements of a row, rows,
rows of a chunk, elements to find.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir

from ..llvm import kernel_entry
from ..llvm.loop_nests import I8, I64, POINTER, at, i64, local, loop, smaller, untyped, word
from ..llvm.lowering import computed, intrinsic, number, splat


class Writer:
    """Writes one module.

    Args:
        dtype: the elements'.
        lanes: elements that are compared at once.
        largest: whether the largest are the best.
        most: elements to find, at most.
    """

    def __init__(self, dtype: np.dtype, lanes: int, largest: bool, most: int) -> None:
        self.dtype, self.lanes, self.largest, self.most = dtype, lanes, largest, most
        self.bits = 8 * dtype.itemsize
        self.key = ir.IntType(self.bits)
        self.worst = ir.Constant(self.key, -(1 << (self.bits - 1)))

    def module(self) -> str:
        """The module's text."""
        module = ir.Module("best")
        body, self.b = kernel_entry.begin(module, "body", kernel_entry.BODY)
        b = self.b
        pointers, plan, chunk = body.args
        values, places, doubtful, x = (b.load(b.gep(pointers, [i64(i)], source_etype=POINTER), typ=POINTER)
                                       for i in range(4))
        n, rows, tall, self.count = (word(b, plan, i) for i in range(4))
        self.last = b.sub(self.count, i64(1))
        self.keys = untyped(b, local(b, self.key, self.most))
        self.places = untyped(b, local(b, I64, self.most))
        self.block = untyped(b, local(b, self.key, self.lanes))
        self.limit, self.tie = local(b, self.key), local(b, self.key)
        first = b.mul(chunk, tall)
        with loop(b, first, smaller(b, b.add(first, tall), rows)) as row:
            with loop(b, i64(0), self.count) as i:
                b.store(self.worst, self._key(i))
            b.store(self.worst, self.limit)
            b.store(self.worst, self.tie)
            source, first_of = at(b, x, b.mul(b.mul(row, n), i64(self.dtype.itemsize))), b.mul(row, self.count)
            self._row(source, n)
            self._finish(source, b.gep(values, [first_of], source_etype=computed(self.dtype)),
                         b.gep(places, [first_of], source_etype=I64), at(b, doubtful, row))
        b.ret_void()
        return str(module)

    def _key(self, i: Any) -> Any:
        return self.b.gep(self.keys, [i], source_etype=self.key)

    def _place(self, i: Any) -> Any:
        return self.b.gep(self.places, [i], source_etype=I64)

    def _keyed(self, x: Any, lanes: int) -> Any:
        """Integers that compare as elements do: the larger the better."""
        b, type_ = self.b, computed(np.dtype(f"i{self.dtype.itemsize}"), lanes)
        bits = b.bitcast(b.fadd(x, number(0.0, x.type)), type_)  # the two zeros are equal
        greatest = number((1 << (self.bits - 1)) - 1, type_)
        turned = b.xor(bits, b.and_(b.ashr(bits, number(self.bits - 1, type_)), greatest))
        key = b.select(b.fcmp_unordered("uno", x, x), greatest, turned)
        return key if self.largest else b.not_(key)

    def _row(self, x: Any, n: Any) -> None:
        b, lanes = self.b, self.lanes
        kind = computed(self.dtype)
        whole = b.sub(n, b.srem(n, i64(lanes)))
        left = local(b, ir.IntType(lanes))
        with loop(b, i64(0), whole, lanes) as j:
            elements = b.load(b.gep(x, [j], source_etype=kind), typ=ir.VectorType(kind, lanes), align=1)
            keys = self._keyed(elements, lanes)
            good = b.icmp_signed(">=", keys, splat(b, b.load(self.limit, typ=self.key), lanes))
            mask = b.bitcast(good, left.type.pointee)
            with b.if_then(b.icmp_unsigned("!=", mask, ir.Constant(mask.type, 0)), likely=False):
                b.store(keys, self.block, align=1)
                b.store(mask, left)
                self._offer_all(left, j)
        with loop(b, whole, n) as j:
            self._offer(self._keyed(b.load(b.gep(x, [j], source_etype=kind), typ=kind, align=1), 0), j)

    def _offer_all(self, left: Any, start: Any) -> None:
        """Offer those elements of a block whose bits are set, in their order."""
        b = self.b
        again, done = b.append_basic_block("again"), b.append_basic_block("offered")
        b.branch(again)
        b.position_at_end(again)
        mask = b.load(left, typ=left.type.pointee)
        one = ir.Constant(mask.type, 1)
        lane = intrinsic(b, "cttz", mask.type, [mask, ir.Constant(ir.IntType(1), 1)], [mask.type])
        rest = b.and_(mask, b.sub(mask, one))
        b.store(rest, left)
        lane = lane if lane.type == I64 else b.zext(lane, I64)
        key = b.load(b.gep(self.block, [lane], source_etype=self.key), typ=self.key, align=1)
        self._offer(key, b.add(start, lane))
        b.cbranch(b.icmp_unsigned("!=", rest, ir.Constant(mask.type, 0)), again, done)
        b.position_at_end(done)

    def _offer(self, key: Any, place: Any) -> None:
        """Enter an element if it is better than the last; note whether one that is as good as that is left out."""
        b = self.b
        limit = b.load(self.limit, typ=self.key)
        with b.if_then(b.icmp_signed("==", key, limit)):
            b.store(limit, self.tie)
        with b.if_then(b.icmp_signed(">", key, limit)):
            at_place = self._moved_down(key)
            b.store(key, self._key(at_place))
            b.store(place, self._place(at_place))
            now = b.load(self._key(self.last), typ=self.key)
            b.store(now, self.limit)
            with b.if_then(b.icmp_signed("==", now, limit)):
                b.store(limit, self.tie)

    def _moved_down(self, key: Any) -> Any:
        """Move what is worse than a key down by one place, the last out; gives the place that is free."""
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

    def _finish(self, x: Any, values: Any, places: Any, doubtful: Any) -> None:
        """Write the best, where they are, and whether others could be."""
        b = self.b
        last = b.load(self._key(self.last), typ=self.key)
        doubt = local(b, I8)
        b.store(b.zext(b.or_(b.icmp_signed("==", last, self.worst),
                             b.icmp_signed("==", last, b.load(self.tie, typ=self.key))), I8), doubt)
        with loop(b, i64(0), self.last) as i:
            same = b.icmp_signed("==", b.load(self._key(i), typ=self.key),
                                 b.load(self._key(b.add(i, i64(1))), typ=self.key))
            b.store(b.or_(b.load(doubt, typ=I8), b.zext(same, I8)), doubt)
        with loop(b, i64(0), self.count) as i:
            b.store(b.load(self._place(i), typ=I64), b.gep(places, [i], source_etype=I64))
        b.store(b.load(doubt, typ=I8), doubtful)
        # what a doubtful row says of places may be none
        with b.if_then(b.icmp_signed("==", b.load(doubt, typ=I8), ir.Constant(I8, 0))), loop(
                b, i64(0), self.count) as i:
            kind = computed(self.dtype)
            element = b.load(b.gep(x, [b.load(self._place(i), typ=I64)], source_etype=kind), typ=kind, align=1)
            b.store(element, b.gep(values, [i], source_etype=kind), align=1)
