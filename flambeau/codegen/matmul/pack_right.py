"""Packing of matmul's right operand B into panels, in the order in which register blocks read them.

A packed panel has a row of full vectors for every k, one after the other. Its width is that of C's panel. Lanes beyond
the matrix have unspecified values, which do not reach C.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir

from ...runtime.nontemporal_stores import CACHE_LINE
from ..llvm import kernel_entry
from ..llvm.loop_nests import (
    I32,
    I64,
    POINTER,
    at,
    first_lanes,
    i64,
    loop,
    smaller,
    store_fence,
    store_nontemporal,
    word,
)
from ..llvm.lowering import constant, intrinsic, memory_type
from .microkernel import VOID, RegisterBlocking, positive_loop, register_blocking
from .plan import SEGMENT, PackingPlan, RightLayout

#: panel, matrix, k stride in bytes, column stride in bytes, K, columns
PACK_RIGHT = ir.FunctionType(VOID, [POINTER, POINTER, I64, I64, I64, I64])
#: rows copied for all panels of a region before the next rows: panels share cache lines of the source
ROWS_AT_ONCE = 32


def panel_width(builder: ir.IRBuilder, shape: RegisterBlocking, left: Any, columns: Any) -> Any:
    """Return how many of the `left` vectors, which hold `columns` columns, the next panel takes.

    A partial vector is a panel by itself. Four vectors are split into two and two, not three and one.
    """
    full_vectors = smaller(builder, left, builder.sdiv(columns, i64(shape.lanes)))
    even = builder.icmp_signed("==", full_vectors, i64(shape.vectors + 1))
    width = builder.select(even, i64((shape.vectors + 2) // 2), smaller(builder, full_vectors, i64(shape.vectors)))
    return builder.select(builder.icmp_signed("==", full_vectors, i64(0)), i64(1), width)


def split_evenly(builder: ir.IRBuilder, extent: Any, part: Any, parts: Any) -> tuple[Any, Any]:
    """Return begin and length of part `part` of `parts` equal parts."""
    start, stop = (builder.sdiv(builder.mul(each, extent), parts) for each in (part, builder.add(part, i64(1))))
    return start, builder.sub(stop, start)


class Packers:
    """The functions (`PACK_RIGHT`) that pack panels from each layout.

    `nontemporal`: whether to use non-temporal stores, for copies that all threads will read. A line that two cores have
    read is written again only after all others have invalidated it, one line after the other: 6 ns each if two
    cores share a cache, 27 ns if they do not (Zen 4), compared with 1.3 ns for a non-temporal store of a line.
    """

    def __init__(self, module: ir.Module, dtype: np.dtype, nontemporal: bool = False) -> None:
        shape = register_blocking(dtype)
        self.nontemporal = nontemporal
        self.module, self.kind, self.size, self.lanes = module, memory_type(dtype), dtype.itemsize, shape.lanes
        self.from_rows = {wide: self._emit_row_packer(wide) for wide in range(1, shape.vectors + 1)}
        self.from_columns, self.from_strided = self._emit_column_packer(), self._emit_strided_packer()

    def pack(self, builder: ir.IRBuilder, layout: Any, width: Any, arguments: list[Any]) -> None:
        """Pack a panel of `width` vectors from a source of this layout (`RightLayout`)."""
        done, other = builder.append_basic_block("packed"), builder.append_basic_block("anyhow")
        choice = builder.switch(builder.add(builder.mul(layout, i64(8)), width), other)
        blocks = [(other, self.from_strided)]
        for wide, function in self.from_rows.items():
            for kind, packer in ((RightLayout.ROWS, function), (RightLayout.COLUMNS, self.from_columns)):
                block = builder.append_basic_block("packing")
                choice.add_case(i64(8 * kind + wide), block)
                blocks.append((block, packer))
        for block, packer in blocks:
            builder.position_at_end(block)
            builder.call(packer, arguments)
            builder.branch(done)
        builder.position_at_end(done)

    def _begin_function(self, name: str) -> tuple[ir.Function, ir.IRBuilder]:
        function = ir.Function(self.module, PACK_RIGHT, f"pack.{name}")
        function.linkage = "internal"
        function.attributes.add("noinline")
        return function, ir.IRBuilder(function.append_basic_block("entry"))

    def _emit_row_packer(self, vectors: int) -> ir.Function:
        """Emit packing from contiguous rows; only a panel of one vector may have fewer columns than its width."""
        function, builder = self._begin_function(f"rows.{vectors}")
        panel, matrix, by_k, _, depth, columns = function.args
        vector, line = ir.VectorType(self.kind, self.lanes), self.lanes * self.size
        mask = first_lanes(builder, columns, self.lanes)
        with loop(builder, i64(0), depth) as k:
            source, place = at(builder, matrix, builder.mul(k, by_k)), at(builder, panel, builder.mul(
                k, i64(vectors * line)))
            for v in range(vectors):
                address = at(builder, source, v * line)
                if vectors > 1:
                    value = builder.load(address, typ=vector, align=self.size)
                else:
                    value = intrinsic(builder, "masked.load", vector, [
                        address, ir.Constant(I32, self.size), mask, constant(0.0, vector)], [vector, POINTER])
                self._store(builder, value, at(builder, place, v * line), self.nontemporal)
        builder.ret_void()
        return function

    def _emit_column_packer(self) -> ir.Function:
        """Emit packing from contiguous columns: segments of some bytes of each column are loaded and transposed.

        If vectors are full cache lines, so are segments: columns a multiple of some KB apart map to the same sets of
        the L1 cache, and a line read in parts might be evicted before its next part is loaded.
        """
        function, builder = self._begin_function("columns")
        _, _, _, _, depth, _ = function.args
        line = self.lanes * self.size
        if line % CACHE_LINE:
            self._emit_segments(function, builder, SEGMENT)
        else:
            with builder.if_else(builder.icmp_signed(">=", depth, i64(self.lanes))) as (long, short):
                with long:
                    self._emit_segments(function, builder, line)
                with short:
                    self._emit_segments(function, builder, SEGMENT)
        builder.ret_void()
        return function

    def _emit_segments(self, function: ir.Function, builder: ir.IRBuilder, length: int) -> None:
        """Transpose segments of `length` bytes, of as many columns as a vector has lanes.

        The segments are concatenated, one in each lane group of `length` bytes, and transposed there. Columns beyond
        the matrix repeat its last one. K is at least one segment.
        """
        lanes, size = self.lanes, self.size
        panel, matrix, _, by_column, depth, columns = function.args
        segment = length // size
        part = ir.VectorType(self.kind, segment)
        pitch = builder.mul(builder.sdiv(builder.add(columns, i64(lanes - 1)), i64(lanes)), i64(lanes * size))
        last, is_line = builder.sub(columns, i64(1)), lanes * size % CACHE_LINE == 0
        with loop(builder, i64(0), columns, lanes) as column:
            starts = [at(builder, matrix, builder.mul(smaller(builder, builder.add(column, i64(lane)), last),
                                                      by_column)) for lane in range(lanes)]
            place = at(builder, panel, builder.mul(column, i64(size)))
            with loop(builder, i64(0), depth, segment) as k:
                # loop tail: the last segment ends with K, and may repeat what the one before it has written
                begin = smaller(builder, k, builder.sub(depth, i64(segment)))
                offset = builder.mul(begin, i64(size))
                rows = []
                for j in range(segment):
                    parts = [builder.load(at(builder, starts[lane], offset), typ=part, align=size)
                             for lane in range(j, lanes, segment)]
                    while len(parts) > 1:
                        parts = [_shuffle(builder, x, y, list(range(2 * x.type.count)))
                                 for x, y in zip(parts[::2], parts[1::2], strict=True)]
                    rows.append(parts[0])
                first = at(builder, place, builder.mul(begin, pitch))
                for j, row in enumerate(_transpose(builder, rows, segment)):
                    # half a line would stay in the write-combining buffer too long
                    target = at(builder, first, builder.mul(pitch, i64(j)))
                    self._store(builder, row, target, self.nontemporal and is_line)

    def _store(self, builder: ir.IRBuilder, value: Any, place: Any, nontemporal: bool) -> None:
        if nontemporal:
            store_nontemporal(builder, value, place, self.lanes * self.size)
        else:
            builder.store(value, place, align=SEGMENT)

    def _emit_strided_packer(self) -> ir.Function:
        """Emit packing element by element."""
        lanes, size, kind = self.lanes, self.size, self.kind
        function, builder = self._begin_function("strided")
        panel, matrix, by_k, by_column, depth, columns = function.args
        width = builder.mul(builder.sdiv(builder.add(columns, i64(lanes - 1)), i64(lanes)), i64(lanes))
        with loop(builder, i64(0), depth) as k:
            source = at(builder, matrix, builder.mul(k, by_k))
            place = at(builder, panel, builder.mul(k, builder.mul(width, i64(size))))
            with loop(builder, i64(0), columns) as column:
                one = builder.load(at(builder, source, builder.mul(column, by_column)), typ=kind, align=size)
                builder.store(one, builder.gep(place, [column], source_etype=kind), align=size)
            with loop(builder, columns, width) as column:
                builder.store(ir.Constant(kind, 0.0), builder.gep(place, [column], source_etype=kind), align=size)
        builder.ret_void()
        return function


def _shuffle(builder: ir.IRBuilder, x: Any, y: Any, order: list[int]) -> Any:
    return builder.shuffle_vector(x, y, ir.Constant(ir.VectorType(I32, len(order)), order))


def _transpose(builder: ir.IRBuilder, vectors: list[Any], segment: int) -> list[Any]:
    """Transpose the square blocks of `segment` elements that `segment` vectors hold side by side."""
    lanes = vectors[0].type.count
    half = segment // 2
    while half:
        groups = range(0, lanes, 2 * half)
        low = [i for g in groups for i in (*range(g, g + half), *range(lanes + g, lanes + g + half))]
        high = [i for g in groups for i in (*range(g + half, g + 2 * half),
                                            *range(lanes + g + half, lanes + g + 2 * half))]
        result = list(vectors)
        for i in range(segment):
            if not i & half:
                result[i] = _shuffle(builder, vectors[i], vectors[i + half], low)
                result[i + half] = _shuffle(builder, vectors[i], vectors[i + half], high)
        vectors, half = result, half // 2
    return vectors


def generate(dtype: np.dtype) -> str:
    """Return the module: `body` packs the panels of a chunk's columns, some rows of all of them at a time."""
    module = ir.Module("packing")
    shape, size = register_blocking(dtype), dtype.itemsize
    packers = Packers(module, dtype, nontemporal=True)
    _, builder = kernel_entry.begin(module, "body", kernel_entry.BODY)
    pointers, plan, chunk = builder.function.args
    p = {field: word(builder, plan, field) for field in PackingPlan}
    source, target = (builder.load(builder.gep(pointers, [p[field]], source_etype=POINTER), typ=POINTER)
                      for field in (PackingPlan.SOURCE, PackingPlan.TARGET))
    region, length = split_evenly(builder, p[PackingPlan.ALL_VECTORS], chunk, p[PackingPlan.REGIONS])
    begin = builder.mul(chunk, p[PackingPlan.VECTORS])
    by_region = builder.icmp_signed("==", p[PackingPlan.VECTORS], i64(0))
    start = builder.select(by_region, region, begin)
    vectors = builder.select(by_region, length, smaller(
        builder, p[PackingPlan.VECTORS], builder.sub(p[PackingPlan.ALL_VECTORS], begin)))
    with positive_loop(builder, [p[PackingPlan.K], i64(0)]) as (slab, next_slab):
        rest, k = slab
        # loop tail: a remainder, which might be shorter than a column's segment, joins the last iteration
        few = builder.icmp_signed("<", rest, i64(2 * ROWS_AT_ONCE))
        count = builder.select(few, rest, i64(ROWS_AT_ONCE))
        with positive_loop(builder, [vectors, builder.mul(start, i64(shape.lanes))]) as (values, following):
            left, column = values
            remaining = builder.sub(p[PackingPlan.COLUMNS], column)
            width = panel_width(builder, shape, left, remaining)
            full = builder.mul(width, i64(shape.lanes))
            before = builder.add(builder.mul(column, p[PackingPlan.K]), builder.mul(k, full))
            matrix = builder.add(builder.mul(k, p[PackingPlan.BY_K]), builder.mul(column, p[PackingPlan.BY_COLUMN]))
            packers.pack(builder, p[PackingPlan.LAYOUT], width, [
                at(builder, target, builder.mul(before, i64(size))), at(builder, source, matrix), p[PackingPlan.BY_K],
                p[PackingPlan.BY_COLUMN], count, smaller(builder, full, remaining)])
            following += [builder.sub(left, width), builder.add(column, full)]
        next_slab += [builder.sub(rest, count), builder.add(k, count)]
    store_fence(builder)
    builder.ret_void()
    return str(module)
