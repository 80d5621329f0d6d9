"""Copies of a product's right operand, or of parts of it, so that its elements lie as the registers' blocks read them.

What is packed is cut into panels of the result's widths, whose rows, one for every k, lie one after the other. They
are whole vectors: what lies beyond the matrix is never looked at.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir

from ...runtime.nontemporal_stores import LINE
from ..llvm import kernel_entry
from ..llvm.loop_nests import I32, I64, POINTER, at, first_lanes, i64, loop, settle, smaller, store_past, word
from ..llvm.lowering import intrinsic, number, stored
from .microkernel import VOID, Tiling, positive, tiling
from .plan import PIECE, Packing, Way

#: panel, matrix, bytes from k to k + 1, bytes from column to column, length of K, columns
PACK = ir.FunctionType(VOID, [POINTER, POINTER, I64, I64, I64, I64])
#: rows that are copied for all panels of a region before the next ones: the lines that they share are read once
ROWS_AT_ONCE = 32


def panels(builder: ir.IRBuilder, shape: Tiling, left: Any, columns: Any) -> Any:
    """How many of the `left` vectors, which hold so many columns, the next panel takes.

    A part of a vector is a panel by itself; four vectors are two and two, not three and one.
    """
    whole = smaller(builder, left, builder.sdiv(columns, i64(shape.lanes)))
    even = builder.icmp_signed("==", whole, i64(shape.vectors + 1))
    take = builder.select(even, i64((shape.vectors + 2) // 2), smaller(builder, whole, i64(shape.vectors)))
    return builder.select(builder.icmp_signed("==", whole, i64(0)), i64(1), take)


def shared_evenly(builder: ir.IRBuilder, extent: Any, part: Any, parts: Any) -> tuple[Any, Any]:
    """Where part number `part` of equal ones begins, and how long it is."""
    start, stop = (builder.sdiv(builder.mul(each, extent), parts) for each in (part, builder.add(part, i64(1))))
    return start, builder.sub(stop, start)


class Packers:
    """The functions (`PACK`) that copy panels, whatever their source.

    `past`: whether copies that all threads will read go past the caches. A line that two of them have read is written
    anew only after all others have given it up, one line after the other: 6 ns each where two cores share a cache, 27
    where they do not (Zen 4), beside 1.3 ns for a line that is written past the caches.
    """

    def __init__(self, module: ir.Module, dtype: np.dtype, past: bool = False) -> None:
        shape = tiling(dtype)
        self.past = past
        self.module, self.kind, self.size, self.lanes = module, stored(dtype), dtype.itemsize, shape.lanes
        self.from_rows = {wide: self._rows(wide) for wide in range(1, shape.vectors + 1)}
        self.from_columns, self.from_anything = self._columns(), self._strided()

    def pack(self, builder: ir.IRBuilder, way: Any, take: Any, arguments: list[Any]) -> None:
        """Copy a panel of `take` vectors from a source that lies so in memory (`Way`)."""
        done, other = builder.append_basic_block("packed"), builder.append_basic_block("anyhow")
        choice = builder.switch(builder.add(builder.mul(way, i64(8)), take), other)
        blocks = [(other, self.from_anything)]
        for wide, function in self.from_rows.items():
            for kind, packer in ((Way.ROWS, function), (Way.COLUMNS, self.from_columns)):
                block = builder.append_basic_block("packing")
                choice.add_case(i64(8 * kind + wide), block)
                blocks.append((block, packer))
        for block, packer in blocks:
            builder.position_at_end(block)
            builder.call(packer, arguments)
            builder.branch(done)
        builder.position_at_end(done)

    def _begin(self, name: str) -> tuple[ir.Function, ir.IRBuilder]:
        function = ir.Function(self.module, PACK, f"pack.{name}")
        function.linkage = "internal"
        function.attributes.add("noinline")
        return function, ir.IRBuilder(function.append_basic_block("entry"))

    def _rows(self, vectors: int) -> ir.Function:
        """From rows whose elements lie together; only a panel of one vector may have fewer columns than it is wide."""
        function, builder = self._begin(f"rows.{vectors}")
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
                        address, ir.Constant(I32, self.size), mask, number(0.0, vector)], [vector, POINTER])
                self._write(builder, value, at(builder, place, v * line), self.past)
        builder.ret_void()
        return function

    def _columns(self) -> ir.Function:
        """From columns whose elements lie together; of each a piece of some bytes is read at once.

        Where vectors are whole lines of memory, so are pieces: a line that were read in parts might have left the
        first cache before its next part is wanted, since columns that begin at multiples of some KB share its places.
        """
        function, builder = self._begin("columns")
        _, _, _, _, depth, _ = function.args
        line = self.lanes * self.size
        if line % LINE:
            self._pieces(function, builder, PIECE)
        else:
            with builder.if_else(builder.icmp_signed(">=", depth, i64(self.lanes))) as (long, short):
                with long:
                    self._pieces(function, builder, line)
                with short:
                    self._pieces(function, builder, PIECE)
        builder.ret_void()
        return function

    def _pieces(self, function: ir.Function, builder: ir.IRBuilder, length: int) -> None:
        """Turn pieces of so many bytes, of as many columns as a vector has lanes.

        They are put side by side, one piece in a lane of `length` bytes, and turned there. Columns beyond the matrix
        repeat its last one. K is a piece at least.
        """
        lanes, size = self.lanes, self.size
        panel, matrix, _, by_column, depth, columns = function.args
        piece = length // size
        part = ir.VectorType(self.kind, piece)
        pitch = builder.mul(builder.sdiv(builder.add(columns, i64(lanes - 1)), i64(lanes)), i64(lanes * size))
        last, whole = builder.sub(columns, i64(1)), lanes * size % LINE == 0
        with loop(builder, i64(0), columns, lanes) as column:
            starts = [at(builder, matrix, builder.mul(smaller(builder, builder.add(column, i64(lane)), last),
                                                      by_column)) for lane in range(lanes)]
            place = at(builder, panel, builder.mul(column, i64(size)))
            with loop(builder, i64(0), depth, piece) as k:
                # the last piece ends with K, and may repeat what the one before it has written
                begin = smaller(builder, k, builder.sub(depth, i64(piece)))
                offset = builder.mul(begin, i64(size))
                rows = []
                for j in range(piece):
                    parts = [builder.load(at(builder, starts[lane], offset), typ=part, align=size)
                             for lane in range(j, lanes, piece)]
                    while len(parts) > 1:
                        parts = [_shuffled(builder, x, y, list(range(2 * x.type.count)))
                                 for x, y in zip(parts[::2], parts[1::2], strict=True)]
                    rows.append(parts[0])
                first = at(builder, place, builder.mul(begin, pitch))
                for j, row in enumerate(_turned(builder, rows, piece)):
                    # half a line would wait for the other one too long
                    self._write(builder, row, at(builder, first, builder.mul(pitch, i64(j))), self.past and whole)

    def _write(self, builder: ir.IRBuilder, value: Any, place: Any, past: bool) -> None:
        if past:
            store_past(builder, value, place, self.lanes * self.size)
        else:
            builder.store(value, place, align=PIECE)

    def _strided(self) -> ir.Function:
        """Element by element."""
        lanes, size, kind = self.lanes, self.size, self.kind
        function, builder = self._begin("strided")
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


def _shuffled(builder: ir.IRBuilder, x: Any, y: Any, order: list[int]) -> Any:
    return builder.shuffle_vector(x, y, ir.Constant(ir.VectorType(I32, len(order)), order))


def _turned(builder: ir.IRBuilder, vectors: list[Any], piece: int) -> list[Any]:
    """Square blocks of `piece` elements, side by side in `piece` vectors, each block turned."""
    lanes = vectors[0].type.count
    half = piece // 2
    while half:
        groups = range(0, lanes, 2 * half)
        low = [i for g in groups for i in (*range(g, g + half), *range(lanes + g, lanes + g + half))]
        high = [i for g in groups for i in (*range(g + half, g + 2 * half),
                                            *range(lanes + g + half, lanes + g + 2 * half))]
        result = list(vectors)
        for i in range(piece):
            if not i & half:
                result[i] = _shuffled(builder, vectors[i], vectors[i + half], low)
                result[i + half] = _shuffled(builder, vectors[i], vectors[i + half], high)
        vectors, half = result, half // 2
    return vectors


def generate(dtype: np.dtype) -> str:
    """The code: `body` packs the panels of a chunk's columns, some rows of all of them at a time."""
    module = ir.Module("packing")
    shape, size = tiling(dtype), dtype.itemsize
    packers = Packers(module, dtype, past=True)
    _, builder = kernel_entry.begin(module, "body", kernel_entry.BODY)
    pointers, plan, chunk = builder.function.args
    p = {field: word(builder, plan, field) for field in Packing}
    source, target = (builder.load(builder.gep(pointers, [p[field]], source_etype=POINTER), typ=POINTER)
                      for field in (Packing.SOURCE, Packing.TARGET))
    region, its = shared_evenly(builder, p[Packing.ALL_VECTORS], chunk, p[Packing.REGIONS])
    begin = builder.mul(chunk, p[Packing.VECTORS])
    several = builder.icmp_signed("==", p[Packing.VECTORS], i64(0))
    start = builder.select(several, region, begin)
    vectors = builder.select(several, its, smaller(builder, p[Packing.VECTORS],
                                                   builder.sub(p[Packing.ALL_VECTORS], begin)))
    with positive(builder, [p[Packing.K], i64(0)]) as (slab, next_slab):
        rest, k = slab
        # what would be left for a last turn of its own, and might be less than a piece of a column, is taken along
        few = builder.icmp_signed("<", rest, i64(2 * ROWS_AT_ONCE))
        count = builder.select(few, rest, i64(ROWS_AT_ONCE))
        with positive(builder, [vectors, builder.mul(start, i64(shape.lanes))]) as (values, following):
            left, column = values
            some = builder.sub(p[Packing.COLUMNS], column)
            take = panels(builder, shape, left, some)
            full = builder.mul(take, i64(shape.lanes))
            before = builder.add(builder.mul(column, p[Packing.K]), builder.mul(k, full))
            matrix = builder.add(builder.mul(k, p[Packing.BY_K]), builder.mul(column, p[Packing.BY_COLUMN]))
            packers.pack(builder, p[Packing.WAY], take, [
                at(builder, target, builder.mul(before, i64(size))), at(builder, source, matrix), p[Packing.BY_K],
                p[Packing.BY_COLUMN], count, smaller(builder, full, some)])
            following += [builder.sub(left, take), builder.add(column, full)]
        next_slab += [builder.sub(rest, count), builder.add(k, count)]
    settle(builder)
    builder.ret_void()
    return str(module)
