"""Kernels of products of sparse and dense matrices: code generation.

Elements are sorted by their *outer* index, which is compressed (element k of outer index i: starts[i] <= k <
starts[i + 1]) or given for each element. Sums are in the order of the elements, each product and sum rounded as
written. Nothing outside of the operands is read or written for any indices: a chunk that finds an index out of
range, or outer indices that are not sorted, sets the flag.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from llvmlite import ir

from ..llvm import kernel_entry
from ..llvm.loop_nests import I32, I64, POINTER, at, first_lanes, i64, larger, local, loop, smaller, while_loop, word
from ..llvm.lowering import constant, intrinsic, memory_type, splat, value_type

#: vectors of the dense columns that are summed in registers at a time, largest first
VECTORS = (8, 4, 1)
#: vectors of partial sums of a dot product
DOT_VECTORS = 4


class Emitter:
    """Emits one module.

    Args:
        dtype: of the values, float32 or float64.
        index: of the indices, int32 or int64.
        compressed: whether outer indices are compressed.
        lanes: elements of a vector; 1 for narrow dense matrices.
    """

    def __init__(self, dtype: np.dtype, index: np.dtype, compressed: bool, lanes: int) -> None:
        self.dtype, self.index, self.compressed, self.lanes = dtype, index, compressed, lanes
        self.element = memory_type(dtype)
        self.size = dtype.itemsize

    # ----- parts -----

    def _begin(self, module: ir.Module) -> None:
        """Begin the body: operands, and the plan's fields."""
        body, self.b = kernel_entry.begin(module, "body", kernel_entry.BODY)
        b = self.b
        pointers, plan, self.chunk = body.args
        self.out, self.flag, self.outer, self.inner, self.first, self.second = (
            b.load(b.gep(pointers, [i64(i)], source_etype=POINTER), typ=POINTER) for i in range(6))
        (self.chunks, self.share, self.outer_count, self.inner_count, self.count, self.width, self.first_stride,
         self.second_stride) = (word(b, plan, i) for i in range(8))

    def _index(self, base: Any, k: Any) -> Any:
        """Index `k` as 64 bits."""
        b, kind = self.b, memory_type(self.index)
        value = b.load(b.gep(base, [k], source_etype=kind), typ=kind)
        return value if kind == I64 else b.sext(value, I64)

    def _is_below(self, index: Any, size: Any) -> Any:
        """Whether an index is in range; if it is not, the flag is set."""
        b = self.b
        valid = b.icmp_unsigned("<", index, size)
        with b.if_then(b.not_(valid), likely=False):
            b.store(i64(1), self.flag)
        return valid

    def _search(self, target: Any) -> Any:
        """The first i of 0 ... outer_count with starts[i] + i >= target: chunks have as many elements and rows."""
        b = self.b
        low, high = local(b, I64), local(b, I64)
        b.store(i64(0), low)
        b.store(self.outer_count, high)
        with while_loop(b, lambda: b.icmp_signed("<", b.load(low, typ=I64), b.load(high, typ=I64))):
            begin, end = b.load(low, typ=I64), b.load(high, typ=I64)
            middle = b.ashr(b.add(begin, end), i64(1))
            reached = b.icmp_signed(">=", b.add(self._index(self.outer, middle), middle), target)
            b.store(b.select(reached, begin, b.add(middle, i64(1))), low)
            b.store(b.select(reached, middle, end), high)
        return b.load(low, typ=I64)

    def _share_of_rows(self) -> tuple[Any, Any]:
        """The compressed outer indices of this chunk."""
        b = self.b
        target = b.mul(self.chunk, self.share)
        last = b.icmp_signed("==", b.add(self.chunk, i64(1)), self.chunks)
        end = self._search(b.add(target, self.share))
        return self._search(target), b.select(last, self.outer_count, end)

    def _row_elements(self, row: Any) -> tuple[Any, Any]:
        """The elements of a compressed outer index, none if these are out of range."""
        b = self.b
        begin, end = self._index(self.outer, row), self._index(self.outer, b.add(row, i64(1)))
        valid = b.and_(b.icmp_signed(">=", begin, i64(0)), b.icmp_signed("<=", end, self.count))
        valid = b.and_(valid, b.icmp_signed("<=", begin, end))
        with b.if_then(b.not_(valid), likely=False):
            b.store(i64(1), self.flag)
        return begin, b.select(valid, end, begin)

    def _run_start(self, k: Any) -> Any:
        """The first element from `k` on whose outer index differs from that of its predecessor."""
        b, place = self.b, local(self.b, I64)
        b.store(smaller(b, k, self.count), place)
        self._advance(place, lambda at_: b.and_(
            b.icmp_signed(">", at_, i64(0)), b.icmp_signed("<", at_, self.count)),
            lambda at_: b.icmp_signed("==", self._index(self.outer, at_),
                                      self._index(self.outer, b.sub(at_, i64(1)))))
        return b.load(place, typ=I64)

    def _advance(self, place: Any, inside: Callable[[Any], Any], repeats: Callable[[Any], Any]) -> None:
        """Increment `place` while it is inside and repeats."""
        b = self.b
        head, check, step, after = (b.function.append_basic_block(name) for name in ("run", "check", "step", "end"))
        b.branch(head)
        b.position_at_end(head)
        value = b.load(place, typ=I64)
        b.cbranch(inside(value), check, after)
        b.position_at_end(check)
        b.cbranch(repeats(value), step, after)
        b.position_at_end(step)
        b.store(b.add(value, i64(1)), place)
        b.branch(head)
        b.position_at_end(after)

    def _load(self, base: Any, j: Any, mask: Any) -> Any:
        """A vector of a row from column `j` on."""
        b, address = self.b, self.b.gep(base, [j], source_etype=self.element)
        vector = value_type(self.dtype, self.lanes)
        if mask is None:
            return b.load(address, typ=vector, align=1)
        return intrinsic(b, "masked.load", vector, [address, ir.Constant(I32, 1), mask, constant(0, vector)],
                         [vector, POINTER])

    def _store(self, value: Any, base: Any, j: Any, mask: Any) -> None:
        b, address = self.b, self.b.gep(base, [j], source_etype=self.element)
        if mask is None:
            b.store(value, address, align=1)
        else:
            intrinsic(b, "masked.store", ir.VoidType(), [value, address, ir.Constant(I32, 1), mask],
                      [value.type, POINTER])

    def _column_blocks(self, start: Any, end: Any, emit: Callable[[list[Any], Any], None],
                       blocks: Sequence[int] = VECTORS) -> None:
        """Emit blocks of vectors that cover the columns from `start` to `end`; the last has a mask."""
        b, lanes = self.b, self.lanes
        for vectors in blocks:
            step = i64(vectors * lanes)
            masked = vectors == 1 and lanes > 1
            stop = end if masked else b.sub(end, b.srem(b.sub(end, start), step))
            with loop(b, start, stop, step) as j:
                mask = first_lanes(b, b.sub(end, j), lanes) if masked else None
                emit([b.add(j, i64(u * lanes)) for u in range(vectors)], mask)
            start = stop

    def _zero_rows(self, begin: Any, end: Any) -> None:
        """Zero rows of the result."""
        b = self.b
        with loop(b, begin, end) as row:
            self._zero(at(b, self.out, b.mul(row, b.mul(self.width, i64(self.size)))), i64(0), self.width)

    def _zero(self, row: Any, start: Any, end: Any) -> None:
        """Zero columns of a row of the result."""
        zero = constant(0, value_type(self.dtype, self.lanes))

        def emit(columns: list[Any], mask: Any) -> None:
            for j in columns:
                self._store(zero, row, j, mask)

        self._column_blocks(start, end, emit, VECTORS[-1:])

    # ----- rows of the result are sums over elements: gathers -----

    def gather(self) -> str:
        """out[i] = the sum of first[k] * second[inner[k]] over the elements k of outer index i."""
        module = ir.Module("gather")
        self._begin(module)
        b = self.b
        if self.compressed:
            begin_row, end_row = self._share_of_rows()
            with loop(b, begin_row, end_row) as row:
                begin, end = self._row_elements(row)
                self._sum_row(row, begin, end)
            b.ret_void()
            return str(module)
        begin = self._run_start(b.mul(self.chunk, self.share))
        end = self._run_start(b.mul(b.add(self.chunk, i64(1)), self.share))
        place = local(b, I64)
        b.store(begin, place)
        head, body, after = (b.function.append_basic_block(name) for name in ("runs", "one_run", "all_runs"))
        b.branch(head)
        b.position_at_end(head)
        k = b.load(place, typ=I64)
        b.cbranch(b.icmp_signed("<", k, end), body, after)
        b.position_at_end(body)
        row, before = self._index(self.outer, k), self._row_before(k)
        following = local(b, I64)
        b.store(b.add(k, i64(1)), following)
        self._advance(following, lambda at_: b.icmp_signed("<", at_, self.count),
                      lambda at_: b.icmp_signed("==", self._index(self.outer, at_), row))
        stop = b.load(following, typ=I64)
        with b.if_then(self._is_below(row, self.outer_count)):
            sorted_ = b.icmp_signed("<", before, row)
            with b.if_then(b.not_(sorted_), likely=False):
                b.store(i64(1), self.flag)
            self._zero_rows(b.add(before, i64(1)), row)
            self._sum_row(row, k, stop)
        b.store(stop, place)
        b.branch(head)
        b.position_at_end(after)
        with b.if_then(b.icmp_signed("==", b.add(self.chunk, i64(1)), self.chunks)):
            self._zero_rows(b.add(self._row_before(self.count), i64(1)), self.outer_count)
        b.ret_void()
        return str(module)

    def _row_before(self, k: Any) -> Any:
        """The outer index of the element before `k`; -1 before the first."""
        b = self.b
        some = b.icmp_signed(">", k, i64(0))
        place = local(b, I64)
        b.store(i64(-1), place)
        with b.if_then(some):
            b.store(larger(b, self._index(self.outer, b.sub(k, i64(1))), i64(-1)), place)
        return b.load(place, typ=I64)

    def _sum_row(self, row: Any, begin: Any, end: Any) -> None:
        b = self.b
        target = at(b, self.out, b.mul(row, b.mul(self.width, i64(self.size))))

        def emit(columns: list[Any], mask: Any) -> None:
            vector = value_type(self.dtype, self.lanes)
            sums = self._loop_with_sums(begin, end, [constant(0, vector)] * len(columns), columns, mask)
            for j, each in zip(columns, sums, strict=True):
                self._store(each, target, j, mask)

        self._column_blocks(i64(0), self.width, emit)

    def _loop_with_sums(self, begin: Any, end: Any, zeros: list[Any], columns: list[Any], mask: Any) -> list[Any]:
        """The sums over elements, held in registers."""
        b = self.b
        before = b.block
        head, body, after = (b.function.append_basic_block(name) for name in ("elements", "element", "summed"))
        b.branch(head)
        b.position_at_end(head)
        k, sums = b.phi(I64), [b.phi(each.type) for each in zeros]
        k.add_incoming(begin, before)
        for phi, zero in zip(sums, zeros, strict=True):
            phi.add_incoming(zero, before)
        b.cbranch(b.icmp_signed("<", k, end), body, after)
        b.position_at_end(body)
        inner = self._index(self.inner, k)
        valid = self._is_below(inner, self.inner_count)
        source = at(b, self.second, b.mul(b.select(valid, inner, i64(0)), self.second_stride))
        value = splat(b, b.load(b.gep(self.first, [k], source_etype=self.element), typ=self.element), self.lanes)
        new = [b.fadd(total, b.fmul(value, self._load(source, j, mask)))
               for total, j in zip(sums, columns, strict=True)]
        for phi, each in zip(sums, new, strict=True):
            phi.add_incoming(each, b.block)
        k.add_incoming(b.add(k, i64(1)), b.block)
        b.branch(head)
        b.position_at_end(after)
        return sums

    # ----- elements add to rows of the result in any order: scatters -----

    def scatter(self) -> str:
        """out[inner[k]] += first[k] * second[i] over the elements k of outer index i; a chunk has some columns."""
        module = ir.Module("scatter")
        self._begin(module)
        b = self.b
        low = b.mul(self.chunk, self.share)
        high = smaller(b, b.add(low, self.share), self.width)
        row_size = b.mul(self.width, i64(self.size))
        with loop(b, i64(0), self.inner_count) as row:
            self._zero(at(b, self.out, b.mul(row, row_size)), low, high)

        def element(k: Any, outer: Any) -> None:
            inner = self._index(self.inner, k)
            with b.if_then(self._is_below(inner, self.inner_count)):
                source = at(b, self.second, b.mul(outer, self.second_stride))
                target = at(b, self.out, b.mul(inner, row_size))
                value = splat(b, b.load(b.gep(self.first, [k], source_etype=self.element), typ=self.element),
                              self.lanes)

                def emit(columns: list[Any], mask: Any) -> None:
                    new = [b.fadd(self._load(target, j, mask), b.fmul(value, self._load(source, j, mask)))
                           for j in columns]
                    for j, each in zip(columns, new, strict=True):
                        self._store(each, target, j, mask)

                self._column_blocks(low, high, emit)

        if self.compressed:
            with loop(b, i64(0), self.outer_count) as outer:
                begin, end = self._row_elements(outer)
                with loop(b, begin, end) as k:
                    element(k, outer)
        else:
            with loop(b, i64(0), self.count) as k:
                outer = self._index(self.outer, k)
                with b.if_then(self._is_below(outer, self.outer_count)):
                    element(k, outer)
        b.ret_void()
        return str(module)

    # ----- elements are dot products of rows: samples -----

    def sample(self) -> str:
        """out[k] = first[i] · second[inner[k]] for the elements k of outer index i."""
        module = ir.Module("sample")
        self._begin(module)
        b = self.b
        if self.compressed:
            begin_row, end_row = self._share_of_rows()
            with loop(b, begin_row, end_row) as row:
                begin, end = self._row_elements(row)
                with loop(b, begin, end) as k:
                    self._dot(k, row)
        else:
            low = b.mul(self.chunk, self.share)
            with loop(b, low, smaller(b, b.add(low, self.share), self.count)) as k:
                outer = self._index(self.outer, k)
                with b.if_then(self._is_below(outer, self.outer_count)):
                    self._dot(k, outer)
        b.ret_void()
        return str(module)

    def _dot(self, k: Any, row: Any) -> None:
        b, lanes = self.b, self.lanes
        inner = self._index(self.inner, k)
        with b.if_then(self._is_below(inner, self.inner_count)):
            left = at(b, self.first, b.mul(row, self.first_stride))
            right = at(b, self.second, b.mul(inner, self.second_stride))
            vector = value_type(self.dtype, lanes)
            places = [local(b, vector) for _ in range(DOT_VECTORS)]
            for place in places:
                b.store(constant(0, vector), place)
            full = b.sub(self.width, b.srem(self.width, i64(DOT_VECTORS * lanes)))
            for begin, end, count in ((i64(0), full, DOT_VECTORS), (full, self.width, 1)):
                with loop(b, begin, end, count * lanes) as j:
                    mask = first_lanes(b, b.sub(end, j), lanes) if count == 1 and lanes > 1 else None
                    for u, place in enumerate(places[:count]):
                        at_ = b.add(j, i64(u * lanes))
                        product = b.fmul(self._load(left, at_, mask), self._load(right, at_, mask))
                        b.store(b.fadd(b.load(place, typ=vector), product), place)
            sums = [b.load(place, typ=vector) for place in places]
            while len(sums) > 1:
                sums = [b.fadd(x, y) for x, y in zip(sums[::2], sums[1::2], strict=True)]
            b.store(self._sum_lanes(sums[0]), b.gep(self.out, [k], source_etype=self.element))

    def _sum_lanes(self, value: Any) -> Any:
        """The sum of a vector's lanes, by halves."""
        b, lanes = self.b, self.lanes
        while lanes > 1:
            lanes //= 2
            halves = [b.shuffle_vector(value, value, ir.Constant(ir.VectorType(I32, lanes), list(order)))
                      for order in (range(lanes), range(lanes, 2 * lanes))]
            value = b.fadd(*halves)
        return b.extract_element(value, ir.Constant(I32, 0))


def generate(kind: str, dtype: np.dtype, index: np.dtype, compressed: bool, lanes: int) -> str:
    """The module's text.

    Args:
        kind: "gather", "scatter" or "sample".
        dtype, index, compressed, lanes: of `Emitter`.
    """
    emit: dict[str, Callable[[Emitter], str]] = {
        "gather": Emitter.gather, "scatter": Emitter.scatter, "sample": Emitter.sample}
    return emit[kind](Emitter(dtype, index, compressed, lanes))


__all__: Sequence[str] = ["Emitter", "generate"]
