"""Code generation for blocked matmul: one module per dtype serves all sizes, strides and epilogues through its plan.

A region of C is computed panel by panel. If B must be packed, the part that a panel needs is packed into a stack buffer
just before its use, while the next part is prefetched. The epilogue is a separate function, whose address is in the
plan.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from llvmlite import ir

from ...runtime import launch, target
from ..llvm import kernel_entry
from ..llvm.kernel_entry import FunctionPointer
from ..llvm.loop_nests import I64, POINTER, at, i64, larger, loop, smaller, word
from ..llvm.lowering import memory_type
from .microkernel import ARGUMENTS, EPILOGUE, emit_panel, positive_loop, register_blocking
from .pack_left import emit_pack_left
from .pack_right import Packers, panel_width, split_evenly
from .plan import BUFFERED_ROWS, DEPTH, Plan, RightLayout


def generate(dtype: np.dtype) -> str:
    """Return the module: `body` computes regions of a product, `combine` adds up split-K slices."""
    module = ir.Module("matmul")
    _Body(module, dtype).emit()
    _emit_combine(module, dtype)
    return str(module)


def stack_buffer(builder: ir.IRBuilder, size: int) -> Any:
    """Allocate a stack buffer of `size` bytes, aligned for vectors."""
    with builder.goto_entry_block():
        pointer = builder.alloca(POINTER, -(-size // (4 if target.host().triple.startswith("wasm32") else 8)))
        pointer.align = launch.ALIGNMENT
        return pointer


def load_pointer(builder: ir.IRBuilder, pointers: Any, i: Any) -> Any:
    """Load pointer `i` of a list."""
    return builder.load(builder.gep(pointers, [i], source_etype=POINTER), typ=POINTER)


def store_operand_addresses(builder: ir.IRBuilder, bases: Any, pointers: Any, plan: Any, operands: Any,
                            batch: Any) -> None:
    """Store the addresses of all operands for a batch index in the list `bases`."""
    count = builder.add(operands, i64(2))

    def slot(i: Any) -> Any:
        return builder.gep(bases, [i], source_etype=POINTER)

    with loop(builder, i64(0), count) as i:
        which = word(builder, plan, builder.add(i, i64(Plan.POINTERS)))
        builder.store(load_pointer(builder, pointers, which), slot(i))
    dims = builder.gep(plan, [builder.add(count, i64(Plan.POINTERS))], source_etype=I64)
    with positive_loop(builder, [word(builder, plan, Plan.RANK), batch, dims]) as (values, following):
        left, rest, dim = values
        extent = word(builder, dim, 0)
        index = builder.srem(rest, extent)
        with loop(builder, i64(0), count) as i:
            stride = word(builder, dim, builder.add(i, i64(1)))
            builder.store(at(builder, load_pointer(builder, bases, i), builder.mul(stride, index)), slot(i))
        following += [builder.sub(left, i64(1)), builder.sdiv(rest, extent),
                      builder.gep(dim, [builder.add(count, i64(1))], source_etype=I64)]


class Region:
    """A region of C and the addresses of its operands, from the plan and the region's number."""

    def __init__(self, builder: ir.IRBuilder, p: dict[Plan, Any], bases: Any, pointers: Any, plan: Any,
                 item: Any) -> None:
        self.across = builder.srem(item, p[Plan.COLUMN_REGIONS])
        rest = builder.sdiv(item, p[Plan.COLUMN_REGIONS])
        down, self.batch = builder.srem(rest, p[Plan.ROW_REGIONS]), builder.sdiv(rest, p[Plan.ROW_REGIONS])
        store_operand_addresses(builder, bases, pointers, plan, p[Plan.OPERANDS], self.batch)
        self.bases = bases
        self.strides = builder.gep(plan, [p[Plan.STRIDES]], source_etype=I64)
        self.row = builder.mul(down, p[Plan.ROWS])
        self.rows = smaller(builder, p[Plan.ROWS], builder.sub(p[Plan.M], self.row))
        self.a = at(builder, load_pointer(builder, bases, p[Plan.OPERANDS]), builder.mul(self.row, p[Plan.A_ROW]))
        self.left = at(builder, load_pointer(builder, pointers, larger(builder, p[Plan.LEFT], i64(0))), builder.add(
            p[Plan.LEFT_OFFSET], builder.mul(item, p[Plan.LEFT_BYTES])))
        self.b = load_pointer(builder, bases, builder.add(p[Plan.OPERANDS], i64(1)))
        self.start, self.vectors = split_evenly(builder, p[Plan.ALL_VECTORS], self.across, p[Plan.COLUMN_REGIONS])


@contextmanager
def region_loop(module: ir.Module, name: str) -> Iterator[tuple[ir.IRBuilder, dict[Plan, Any], Region]]:
    """Begin function `name` with a loop over a chunk's regions: (builder, the plan's integers, the region)."""
    function, builder = kernel_entry.begin(module, name, kernel_entry.BODY)
    pointers, plan, chunk = function.args
    bases = stack_buffer(builder, 8 * launch.POINTERS)
    p: dict[Plan, Any] = {field: word(builder, plan, field) for field in Plan if field is not Plan.POINTERS}
    first = builder.mul(chunk, p[Plan.PER_CHUNK])
    with loop(builder, first, smaller(builder, builder.add(first, p[Plan.PER_CHUNK]), p[Plan.ITEMS])) as item:
        yield builder, p, Region(builder, p, bases, pointers, plan, item)
    builder.ret_void()


class _Body:
    """Code generation of `body(pointers, plan, chunk)`: the loop nest K slab, panel, part of K, register block."""

    def __init__(self, module: ir.Module, dtype: np.dtype) -> None:
        self.module, self.shape, self.size = module, register_blocking(dtype), dtype.itemsize
        self.packers = Packers(module, dtype)
        self.pack_left = emit_pack_left(module, dtype)
        self.panels = {wide: emit_panel(module, dtype, wide) for wide in range(1, self.shape.vectors + 1)}

    def emit(self) -> None:
        shape = self.shape
        with region_loop(self.module, "body") as (builder, p, region):
            self.builder, self.p, self.region = builder, p, region
            self.packed = stack_buffer(builder, DEPTH * shape.width * self.size)
            self.buffer = stack_buffer(builder, BUFFERED_ROWS * shape.width * self.size)
            self.epilogue = builder.inttoptr(p[Plan.EPILOGUE], POINTER)
            self.is_plain = builder.icmp_signed("==", p[Plan.EPILOGUE], i64(0))
            self.by_row = word(builder, region.strides, 0)
            self.c = at(builder, load_pointer(builder, region.bases, i64(0)), builder.mul(region.row, self.by_row))
            done = builder.mul(builder.srem(region.batch, p[Plan.SLICES]), p[Plan.K])
            self.depth = smaller(builder, p[Plan.K], builder.sub(p[Plan.K_TOTAL], done))
            self.has_parts = builder.icmp_signed(">", self.depth, p[Plan.DEPTH])
            with positive_loop(builder, [self._at_least_one(self.depth), i64(0)]) as (slab, next_slab):
                end = smaller(builder, builder.add(slab[1], p[Plan.SLAB]), self.depth)
                self._prepare_left(slab[1], end)
                column = builder.mul(region.start, i64(shape.lanes))
                with positive_loop(builder, [region.vectors, column]) as (panel, next_panel):
                    vectors = self._compute_panel(panel[0], panel[1], slab[1], end)
                    next_panel += [builder.sub(panel[0], vectors),
                                   builder.add(panel[1], builder.mul(vectors, i64(shape.lanes)))]
                next_slab += [builder.sub(slab[0], p[Plan.SLAB]), builder.add(slab[1], p[Plan.SLAB])]

    def _prepare_left(self, begin: Any, end: Any) -> None:
        """Pack A's part of a K slab if the plan says so; set its address and strides."""
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

    def _at_least_one(self, depth: Any) -> Any:
        """Return K, or 1 if K is 0, so that an empty sum is computed, too: it is 0."""
        return self.builder.select(self.builder.icmp_signed(">", depth, i64(0)), depth, i64(1))

    def _compute_panel(self, left: Any, column: Any, begin: Any, end: Any) -> Any:
        """Compute the next panel of the `left` vectors from `column` on for a K slab; return the vectors it took."""
        builder, p, shape, region = self.builder, self.p, self.shape, self.region
        remaining = builder.sub(p[Plan.N], column)
        vectors = panel_width(builder, shape, left, remaining)
        full = builder.mul(vectors, i64(shape.lanes))
        pitch = builder.mul(full, i64(self.size))
        columns = smaller(builder, full, remaining)
        layout = p[Plan.LAYOUT]
        if not shape.masked:  # vectors that cannot be loaded in part are packed
            partial = builder.icmp_signed("<", columns, full)
            in_place = builder.icmp_signed("==", layout, i64(RightLayout.IN_PLACE))
            layout = builder.select(builder.and_(partial, in_place), i64(RightLayout.ROWS), layout)
        is_packed = builder.icmp_signed("==", layout, i64(RightLayout.PACKED))
        by_k = builder.select(is_packed, pitch, p[Plan.B_K])
        right = at(builder, region.b, builder.mul(column, p[Plan.B_COLUMN]))
        after_panel = at(builder, at(builder, right, builder.mul(columns, p[Plan.B_COLUMN])), builder.mul(begin, by_k))
        result = builder.select(self.is_plain, at(builder, self.c, builder.mul(column, i64(self.size))), self.buffer)
        result_pitch = builder.select(self.is_plain, self.by_row, pitch)
        advance = builder.select(builder.or_(self.is_plain, self.has_parts), result_pitch, i64(0))
        # only rows are prefetched: along columns the hardware prefetcher suffices, and what is read in place is used
        # again soon
        by_rows = builder.or_(is_packed, builder.icmp_signed("==", layout, i64(RightLayout.ROWS)))
        with positive_loop(builder, [self._at_least_one(builder.sub(end, begin)), begin]) as (part, next_part):
            k = part[1]
            count = smaller(builder, p[Plan.DEPTH], builder.sub(end, k))
            source = at(builder, right, builder.mul(k, by_k))
            right_address, right_pitch = self._prepare_right(layout, is_packed, vectors, source, by_k, count, columns,
                                                             pitch)
            following = builder.add(k, count)
            more = builder.icmp_signed("<", following, end)
            soon = builder.select(more, at(builder, source, builder.mul(count, by_k)), after_panel)
            ahead = builder.and_(by_rows, builder.or_(more, builder.icmp_signed(">", left, vectors)))
            last = builder.icmp_signed(">=", following, self.depth)
            self._call_panel(vectors, {
                "a": at(builder, self.a, builder.mul(builder.sub(k, begin), self.a_k)), "a_row_stride": self.a_row,
                "a_k_stride": self.a_k, "a_block_stride": self.a_block,
                "b": right_address, "b_pitch": right_pitch, "depth": count,
                "c": result, "c_row_stride": result_pitch, "c_block_stride": advance,
                "rows": region.rows, "columns": columns, "accumulate": builder.icmp_signed(">", k, i64(0)),
                "epilogue": builder.select(last, self.epilogue, ir.Constant(POINTER, None)),
                "bases": region.bases, "strides": region.strides, "row": region.row, "column": column,
                "operands": p[Plan.OPERANDS],
                "next": builder.select(ahead, soon, right_address),
                "next_k_stride": builder.select(ahead, by_k, i64(0)), "next_row_bytes": pitch})
            next_part += [builder.sub(part[0], p[Plan.DEPTH]), following]
        return vectors

    def _call_panel(self, vectors: Any, values: dict[str, Any]) -> None:
        builder = self.builder
        arguments = [values[name] for name in ARGUMENTS]
        computed, impossible = builder.append_basic_block("computed"), builder.append_basic_block("unreachable")
        choice = builder.switch(vectors, impossible)
        for wide, panel in self.panels.items():
            block = builder.append_basic_block(f"panel{wide}")
            choice.add_case(i64(wide), block)
            builder.position_at_end(block)
            builder.call(panel, arguments)
            builder.branch(computed)
        builder.position_at_end(impossible)
        builder.unreachable()
        builder.position_at_end(computed)

    def _prepare_right(self, layout: Any, is_packed: Any, vectors: Any, source: Any, by_k: Any, count: Any,
                       columns: Any, pitch: Any) -> tuple[Any, Any]:
        """Return the address and the row pitch of the panel's part of B, after packing it if necessary."""
        builder = self.builder
        here = builder.block
        pack, ready = (builder.append_basic_block(name) for name in ("pack", "ready"))
        in_place = builder.or_(is_packed, builder.icmp_signed("==", layout, i64(RightLayout.IN_PLACE)))
        builder.cbranch(in_place, ready, pack)
        builder.position_at_end(pack)
        self.packers.pack(builder, layout, vectors, [self.packed, source, by_k, self.p[Plan.B_COLUMN], count, columns])
        copied = builder.block
        builder.branch(ready)
        builder.position_at_end(ready)
        address, address_pitch = builder.phi(POINTER), builder.phi(I64)
        address.add_incoming(source, here)
        address_pitch.add_incoming(by_k, here)
        address.add_incoming(self.packed, copied)
        address_pitch.add_incoming(pitch, copied)
        return address, address_pitch


def _emit_combine(module: ir.Module, dtype: np.dtype) -> None:
    """Emit `combine(pointers, plan, chunk)`: the sums of split-K slices, tile by tile, through the epilogue.

    A holds the slices, one after the other along k; their rows are padded to full vectors.
    """
    shape, size = register_blocking(dtype), dtype.itemsize
    height, line, wide = shape.rows[0], shape.lanes * size, shape.width * size
    vector = ir.VectorType(memory_type(dtype), shape.lanes)
    with region_loop(module, "combine") as (builder, p, region):
        tile = stack_buffer(builder, height * wide)
        with loop(builder, i64(0), region.rows, height) as row, loop(builder, i64(0), p[Plan.N], shape.width) as column:
            rows = smaller(builder, i64(height), builder.sub(region.rows, row))
            columns = smaller(builder, i64(shape.width), builder.sub(p[Plan.N], column))
            corner = at(builder, region.a, builder.add(builder.mul(row, p[Plan.A_ROW]), builder.mul(column, i64(size))))
            with loop(builder, i64(0), rows) as r, loop(builder, i64(0), columns, shape.lanes) as j:
                offset = builder.mul(j, i64(size))
                place = at(builder, corner, builder.add(builder.mul(r, p[Plan.A_ROW]), offset))
                with positive_loop(builder, [p[Plan.SLICES], place, ir.Constant(vector, None)]) as (values, following):
                    left, address, total = values
                    following += [builder.sub(left, i64(1)), at(builder, address, p[Plan.A_K]),
                                  builder.fadd(total, builder.load(address, typ=vector, align=size))]
                target = at(builder, tile, builder.add(builder.mul(r, i64(wide)), offset))
                builder.store(values[2], target, align=line)
            builder.call(FunctionPointer(builder.inttoptr(p[Plan.EPILOGUE], POINTER), EPILOGUE),
                         [tile, i64(wide), region.bases, region.strides, builder.add(region.row, row), column, rows,
                          columns])
