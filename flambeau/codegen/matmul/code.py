"""The code of blocked matrix products, one module per dtype: all sizes, strides and epilogues are served by its plan.

A region of the result is computed panel by panel. The part of B that a panel needs is packed, if it must be, into
memory of the function's own just before its use, while the part that comes next is already asked for. An epilogue is a
function of its own, which the plan brings along.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from llvmlite import ir

from ...runtime import launch
from ..llvm import kernel_entry
from ..llvm.loop_nests import I64, POINTER, at, i64, larger, loop, smaller, word
from ..llvm.lowering import stored
from .microkernel import ARGUMENTS, FINISH, Called, emit_panel, positive, tiling
from .pack_left import emit_left
from .pack_right import Packers, panels, shared_evenly
from .plan import DEPTH, WAITING, Plan, Way


def generate(dtype: np.dtype) -> str:
    """The code: `body` computes regions of a product, `combine` adds up slices of K."""
    module = ir.Module("matmul")
    _Body(module, dtype).emit()
    _emit_combine(module, dtype)
    return str(module)


def memory(builder: ir.IRBuilder, size: int) -> Any:
    """So many bytes of the function's own, aligned for vectors."""
    with builder.goto_entry_block():
        pointer = builder.alloca(POINTER, -(-size // 8))
        pointer.align = launch.ALIGNMENT
        return pointer


def entry(builder: ir.IRBuilder, pointers: Any, i: Any) -> Any:
    """Pointer number `i` of a list."""
    return builder.load(builder.gep(pointers, [i], source_etype=POINTER), typ=POINTER)


def operands_at(builder: ir.IRBuilder, bases: Any, pointers: Any, plan: Any, operands: Any, batch: Any) -> None:
    """Write the addresses of all operands for a batch into the list `bases`."""
    count = builder.add(operands, i64(2))

    def slot(i: Any) -> Any:
        return builder.gep(bases, [i], source_etype=POINTER)

    with loop(builder, i64(0), count) as i:
        which = word(builder, plan, builder.add(i, i64(Plan.POINTERS)))
        builder.store(entry(builder, pointers, which), slot(i))
    dims = builder.gep(plan, [builder.add(count, i64(Plan.POINTERS))], source_etype=I64)
    with positive(builder, [word(builder, plan, Plan.RANK), batch, dims]) as (values, following):
        left, rest, dim = values
        extent = word(builder, dim, 0)
        index = builder.srem(rest, extent)
        with loop(builder, i64(0), count) as i:
            stride = word(builder, dim, builder.add(i, i64(1)))
            builder.store(at(builder, entry(builder, bases, i), builder.mul(stride, index)), slot(i))
        following += [builder.sub(left, i64(1)), builder.sdiv(rest, extent),
                      builder.gep(dim, [builder.add(count, i64(1))], source_etype=I64)]


class Region:
    """A region of the result, and where its operands lie: what a chunk's body walks through."""

    def __init__(self, builder: ir.IRBuilder, p: dict[Plan, Any], bases: Any, pointers: Any, plan: Any,
                 item: Any) -> None:
        self.across = builder.srem(item, p[Plan.COLUMN_REGIONS])
        rest = builder.sdiv(item, p[Plan.COLUMN_REGIONS])
        down, self.batch = builder.srem(rest, p[Plan.ROW_REGIONS]), builder.sdiv(rest, p[Plan.ROW_REGIONS])
        operands_at(builder, bases, pointers, plan, p[Plan.OPERANDS], self.batch)
        self.bases = bases
        self.strides = builder.gep(plan, [p[Plan.STRIDES]], source_etype=I64)
        self.row = builder.mul(down, p[Plan.ROWS])
        self.rows = smaller(builder, p[Plan.ROWS], builder.sub(p[Plan.M], self.row))
        self.a = at(builder, entry(builder, bases, p[Plan.OPERANDS]), builder.mul(self.row, p[Plan.A_ROW]))
        self.left = at(builder, entry(builder, pointers, larger(builder, p[Plan.LEFT], i64(0))), builder.add(
            p[Plan.LEFT_OFFSET], builder.mul(item, p[Plan.LEFT_BYTES])))
        self.b = entry(builder, bases, builder.add(p[Plan.OPERANDS], i64(1)))
        self.start, self.vectors = shared_evenly(builder, p[Plan.ALL_VECTORS], self.across, p[Plan.COLUMN_REGIONS])


@contextmanager
def regions(module: ir.Module, name: str) -> Iterator[tuple[ir.IRBuilder, dict[Plan, Any], Region]]:
    """The function `name` over a chunk's regions: (builder, the plan's integers, the region), inside its loop."""
    function, builder = kernel_entry.begin(module, name, kernel_entry.BODY)
    pointers, plan, chunk = function.args
    bases = memory(builder, 8 * launch.POINTERS)
    p: dict[Plan, Any] = {field: word(builder, plan, field) for field in Plan if field is not Plan.POINTERS}
    first = builder.mul(chunk, p[Plan.PER_CHUNK])
    with loop(builder, first, smaller(builder, builder.add(first, p[Plan.PER_CHUNK]), p[Plan.ITEMS])) as item:
        yield builder, p, Region(builder, p, bases, pointers, plan, item)
    builder.ret_void()


class _Body:
    """`body(pointers, plan, chunk)` of blocked products."""

    def __init__(self, module: ir.Module, dtype: np.dtype) -> None:
        self.module, self.shape, self.size = module, tiling(dtype), dtype.itemsize
        self.packers = Packers(module, dtype)
        self.pack_left = emit_left(module, dtype)
        self.panels = {wide: emit_panel(module, dtype, wide) for wide in range(1, self.shape.vectors + 1)}

    def emit(self) -> None:
        shape = self.shape
        with regions(self.module, "body") as (builder, p, region):
            self.builder, self.p, self.region = builder, p, region
            self.packed = memory(builder, DEPTH * shape.width * self.size)
            self.waiting = memory(builder, WAITING * shape.width * self.size)
            self.finish = builder.inttoptr(p[Plan.FINISH], POINTER)
            self.plain = builder.icmp_signed("==", p[Plan.FINISH], i64(0))
            self.by_row = word(builder, region.strides, 0)
            self.c = at(builder, entry(builder, region.bases, i64(0)), builder.mul(region.row, self.by_row))
            done = builder.mul(builder.srem(region.batch, p[Plan.SLICES]), p[Plan.K])
            self.depth = smaller(builder, p[Plan.K], builder.sub(p[Plan.K_TOTAL], done))
            self.several = builder.icmp_signed(">", self.depth, p[Plan.DEPTH])
            with positive(builder, [self._turns(self.depth), i64(0)]) as (slab, next_slab):
                end = smaller(builder, builder.add(slab[1], p[Plan.SLAB]), self.depth)
                self._left(slab[1], end)
                column = builder.mul(region.start, i64(shape.lanes))
                with positive(builder, [region.vectors, column]) as (panel, next_panel):
                    take = self._panel(panel[0], panel[1], slab[1], end)
                    next_panel += [builder.sub(panel[0], take),
                                   builder.add(panel[1], builder.mul(take, i64(shape.lanes)))]
                next_slab += [builder.sub(slab[0], p[Plan.SLAB]), builder.add(slab[1], p[Plan.SLAB])]

    def _left(self, begin: Any, end: Any) -> None:
        """A's part for a slab of K: packed, if it is to be. Where it lies, and its strides."""
        builder, p, region, size = self.builder, self.p, self.region, i64(self.size)
        depth = builder.sub(end, begin)
        packs = builder.icmp_signed(">=", p[Plan.LEFT], i64(0))
        source = at(builder, region.a, builder.mul(begin, p[Plan.A_K]))
        with builder.if_then(packs):
            builder.call(self.pack_left, [region.left, source, p[Plan.A_K], region.rows, depth])
        self.a = builder.select(packs, region.left, source)
        self.a_row = builder.select(packs, size, p[Plan.A_ROW])
        self.a_k = builder.select(packs, i64(self.shape.rows[0] * self.size), p[Plan.A_K])
        self.a_block = builder.select(packs, builder.mul(depth, size), p[Plan.A_ROW])

    def _turns(self, depth: Any) -> Any:
        """K, or where there is none 1, so that a sum of nothing is computed, too: it is 0."""
        return self.builder.select(self.builder.icmp_signed(">", depth, i64(0)), depth, i64(1))

    def _panel(self, left: Any, column: Any, begin: Any, end: Any) -> Any:
        """The next panel of the `left` vectors from `column` on, for a slab of K; returns how many vectors it took."""
        builder, p, shape, region = self.builder, self.p, self.shape, self.region
        some = builder.sub(p[Plan.N], column)
        take = panels(builder, shape, left, some)
        full = builder.mul(take, i64(shape.lanes))
        pitch = builder.mul(full, i64(self.size))
        columns = smaller(builder, full, some)
        way = p[Plan.WAY]
        if not shape.masked:  # what cannot be loaded in part is copied
            partial = builder.icmp_signed("<", columns, full)
            in_place = builder.icmp_signed("==", way, i64(Way.IN_PLACE))
            way = builder.select(builder.and_(partial, in_place), i64(Way.ROWS), way)
        there = builder.icmp_signed("==", way, i64(Way.PACKED))
        by_k = builder.select(there, pitch, p[Plan.B_K])
        right = at(builder, region.b, builder.mul(column, p[Plan.B_COLUMN]))
        beyond = at(builder, at(builder, right, builder.mul(columns, p[Plan.B_COLUMN])), builder.mul(begin, by_k))
        into = builder.select(self.plain, at(builder, self.c, builder.mul(column, i64(self.size))), self.waiting)
        apart = builder.select(self.plain, self.by_row, pitch)
        advance = builder.select(builder.or_(self.plain, self.several), apart, i64(0))
        # only rows are asked for ahead: the processor does so by itself along columns, and what is used where it lies
        # is used soon again
        rowwise = builder.or_(there, builder.icmp_signed("==", way, i64(Way.ROWS)))
        with positive(builder, [self._turns(builder.sub(end, begin)), begin]) as (part, next_part):
            k = part[1]
            count = smaller(builder, p[Plan.DEPTH], builder.sub(end, k))
            source = at(builder, right, builder.mul(k, by_k))
            ready, ready_by_k = self._ready(way, there, take, source, by_k, count, columns, pitch)
            following = builder.add(k, count)
            more = builder.icmp_signed("<", following, end)
            soon = builder.select(more, at(builder, source, builder.mul(count, by_k)), beyond)
            ahead = builder.and_(rowwise, builder.or_(more, builder.icmp_signed(">", left, take)))
            last = builder.icmp_signed(">=", following, self.depth)
            self._compute(take, {
                "a": at(builder, self.a, builder.mul(builder.sub(k, begin), self.a_k)), "by_row": self.a_row,
                "by_k": self.a_k, "by_block": self.a_block,
                "b": ready, "pitch": ready_by_k, "depth": count, "into": into, "apart": apart, "advance": advance,
                "rows": region.rows, "columns": columns, "add": builder.icmp_signed(">", k, i64(0)),
                "finish": builder.select(last, self.finish, ir.Constant(POINTER, None)),
                "bases": region.bases, "strides": region.strides, "first": region.row, "column": column,
                "operands": p[Plan.OPERANDS],
                "soon": builder.select(ahead, soon, ready), "soon_k": builder.select(ahead, by_k, i64(0)),
                "soon_bytes": pitch})
            next_part += [builder.sub(part[0], p[Plan.DEPTH]), following]
        return take

    def _compute(self, take: Any, given: dict[str, Any]) -> None:
        builder = self.builder
        arguments = [given[name] for name in ARGUMENTS]
        behind, nowhere = builder.append_basic_block("computed"), builder.append_basic_block("nowhere")
        choice = builder.switch(take, nowhere)
        for wide, panel in self.panels.items():
            block = builder.append_basic_block(f"panel{wide}")
            choice.add_case(i64(wide), block)
            builder.position_at_end(block)
            builder.call(panel, arguments)
            builder.branch(behind)
        builder.position_at_end(nowhere)
        builder.unreachable()
        builder.position_at_end(behind)

    def _ready(self, way: Any, there: Any, take: Any, source: Any, by_k: Any, count: Any, columns: Any,
               pitch: Any) -> tuple[Any, Any]:
        """Where the panel's part of B lies, and how far its rows are apart, after it is packed if need be."""
        builder = self.builder
        here = builder.block
        pack, ready = (builder.append_basic_block(name) for name in ("pack", "ready"))
        placed = builder.or_(there, builder.icmp_signed("==", way, i64(Way.IN_PLACE)))
        builder.cbranch(placed, ready, pack)
        builder.position_at_end(pack)
        self.packers.pack(builder, way, take, [self.packed, source, by_k, self.p[Plan.B_COLUMN], count, columns])
        copied = builder.block
        builder.branch(ready)
        builder.position_at_end(ready)
        where, apart = builder.phi(POINTER), builder.phi(I64)
        where.add_incoming(source, here)
        apart.add_incoming(by_k, here)
        where.add_incoming(self.packed, copied)
        apart.add_incoming(pitch, copied)
        return where, apart


def _emit_combine(module: ir.Module, dtype: np.dtype) -> None:
    """`combine(pointers, plan, chunk)`: the slices' sums, a block of rows and columns at a time, through the epilogue.

    A is the slices, one behind the other by k, whose rows are whole vectors.
    """
    shape, size = tiling(dtype), dtype.itemsize
    height, line, wide = shape.rows[0], shape.lanes * size, shape.width * size
    vector = ir.VectorType(stored(dtype), shape.lanes)
    with regions(module, "combine") as (builder, p, region):
        tile = memory(builder, height * wide)
        with loop(builder, i64(0), region.rows, height) as row, loop(builder, i64(0), p[Plan.N], shape.width) as column:
            rows = smaller(builder, i64(height), builder.sub(region.rows, row))
            columns = smaller(builder, i64(shape.width), builder.sub(p[Plan.N], column))
            corner = at(builder, region.a, builder.add(builder.mul(row, p[Plan.A_ROW]), builder.mul(column, i64(size))))
            with loop(builder, i64(0), rows) as r, loop(builder, i64(0), columns, shape.lanes) as j:
                offset = builder.mul(j, i64(size))
                place = at(builder, corner, builder.add(builder.mul(r, p[Plan.A_ROW]), offset))
                with positive(builder, [p[Plan.SLICES], place, ir.Constant(vector, None)]) as (values, following):
                    left, address, total = values
                    following += [builder.sub(left, i64(1)), at(builder, address, p[Plan.A_K]),
                                  builder.fadd(total, builder.load(address, typ=vector, align=size))]
                target = at(builder, tile, builder.add(builder.mul(r, i64(wide)), offset))
                builder.store(values[2], target, align=line)
            builder.call(Called(builder.inttoptr(p[Plan.FINISH], POINTER), FINISH),
                         [tile, i64(wide), region.bases, region.strides, builder.add(region.row, row), column, rows,
                          columns])
