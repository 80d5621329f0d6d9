"""Products of bfloat16 matrices by AVX512-BF16: code generation.

`vdpbf16ps` adds products of pairs of adjacent elements to float32. Both operands are packed as pairs along K, padded
with zeros: blocks of `ROWS` rows of the left one, [pair][row]; panels of `COLUMNS` columns of the right one,
[pair][column]. A chunk multiplies some blocks by some panels, with the block of the result in registers while K runs.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ..llvm import kernel_entry
from ..llvm.loop_nests import (
    I32,
    I64,
    POINTER,
    at,
    first_lanes,
    i64,
    local,
    loop,
    smaller,
    transpose_vectors,
    word,
)
from ..llvm.lowering import BFloatType, constant, intrinsic, splat, to_bfloat16

#: rows of a block, and columns of a panel: 24 accumulators
ROWS, LANES, COLUMNS = 12, 16, 32
_I16 = ir.IntType(16)
_HALVES = ir.VectorType(_I16, 2 * LANES)
_PAIRS = ir.VectorType(I32, LANES)
_FLOATS = ir.VectorType(ir.FloatType(), LANES)
#: fields of the plan
ROW_COUNT, COLUMN_COUNT, DEPTH, STRIDE, BLOCKS, PANELS, BLOCK_GROUP, PANEL_GROUP, HAS_BIAS, LEFT, RIGHT = range(11)
_BFLOATS = ir.VectorType(BFloatType(), 2 * LANES)


def _operand(b: ir.IRBuilder, pointers: Any, index: int) -> Any:
    return b.load(b.gep(pointers, [i64(index)], source_etype=POINTER), typ=POINTER)


def _masked_halves(b: ir.IRBuilder, place: Any, count: Any) -> Any:
    """The first `count` of 32 elements from an address, the others 0."""
    mask = first_lanes(b, count, 2 * LANES)
    return intrinsic(b, "masked.load", _HALVES, [place, ir.Constant(I32, 2), mask, constant(0, _HALVES)],
                     [_HALVES, POINTER])


def _pack_lines(kind: str, lines: int) -> str:
    """`pack`: lines whose elements are contiguous along K, `lines` of them at a time: [pair][line].

    Pointers: (result, left, right, bias, scratch). The chunk is the block of lines.
    """
    left = kind == "left"
    module = ir.Module("pack")
    body, b = kernel_entry.begin(module, "pack", kernel_entry.BODY)
    pointers, plan, chunk = body.args
    source, scratch = _operand(b, pointers, 1 if left else 2), _operand(b, pointers, 4)
    count, depth, stride = word(b, plan, ROW_COUNT if left else COLUMN_COUNT), word(b, plan, DEPTH), word(
        b, plan, STRIDE)
    pairs = b.ashr(b.add(depth, i64(1)), i64(1))
    first = b.mul(chunk, i64(lines))
    target = at(b, scratch, b.add(word(b, plan, LEFT if left else RIGHT), b.mul(chunk, b.mul(pairs, i64(4 * lines)))))
    with loop(b, i64(0), pairs, LANES) as pair:
        rest = b.sub(depth, b.shl(pair, i64(1)))
        for half in range(0, lines, LANES):
            vectors = []
            for i in range(LANES):
                line = b.add(first, i64(half + i))
                inside = b.icmp_signed("<", line, count) if half + i < lines else ir.Constant(ir.IntType(1), 0)
                place = at(b, source, b.mul(b.add(b.mul(b.select(inside, line, i64(0)), stride), b.shl(pair, i64(1))),
                                            i64(2)))
                vectors.append(b.bitcast(_masked_halves(b, place, b.select(inside, rest, i64(0))), _PAIRS))
            width = min(LANES, lines - half)
            mask = first_lanes(b, i64(width), LANES)
            for r, row in enumerate(transpose_vectors(b, vectors)):
                here = b.add(pair, i64(r))
                with b.if_then(b.icmp_signed("<", here, pairs)):
                    place = at(b, target, b.add(b.mul(here, i64(4 * lines)), i64(4 * half)))
                    intrinsic(b, "masked.store", ir.VoidType(), [row, place, ir.Constant(I32, 4), mask],
                              [_PAIRS, POINTER])
    b.ret_void()
    return str(module)


def _pack_rows() -> str:
    """`pack`: panels of a right operand whose rows are contiguous."""
    module = ir.Module("pack")
    body, b = kernel_entry.begin(module, "pack", kernel_entry.BODY)
    pointers, plan, chunk = body.args
    source, scratch = _operand(b, pointers, 2), _operand(b, pointers, 4)
    columns, depth, stride = (word(b, plan, i) for i in (COLUMN_COUNT, DEPTH, STRIDE))
    pairs = b.ashr(b.add(depth, i64(1)), i64(1))
    first = b.mul(chunk, i64(COLUMNS))
    left = b.sub(columns, first)
    target = at(b, scratch, b.add(word(b, plan, RIGHT), b.mul(chunk, b.mul(pairs, i64(4 * COLUMNS)))))
    wide = ir.VectorType(I32, COLUMNS)
    with loop(b, i64(0), pairs) as pair:
        row = b.shl(pair, i64(1))
        rows = []
        for k in range(2):
            here = b.add(row, i64(k))
            inside = b.icmp_signed("<", here, depth)
            place = at(b, source, b.mul(b.add(b.mul(b.select(inside, here, i64(0)), stride), first), i64(2)))
            rows.append(b.zext(_masked_halves(b, place, b.select(inside, left, i64(0))), wide))
        value = b.or_(rows[0], b.shl(rows[1], constant(16, wide)))
        b.store(value, at(b, target, b.mul(pair, i64(4 * COLUMNS))), align=4)
    b.ret_void()
    return str(module)


def _multiply() -> str:
    """`body`: blocks of the result."""
    module = ir.Module("multiply")
    body, b = kernel_entry.begin(module, "body", kernel_entry.BODY)
    pointers, plan, chunk = body.args
    out, bias, scratch = (_operand(b, pointers, i) for i in (0, 3, 4))
    (row_count, column_count, depth, blocks, panels, block_group, panel_group, has_bias) = (
        word(b, plan, i) for i in (ROW_COUNT, COLUMN_COUNT, DEPTH, BLOCKS, PANELS, BLOCK_GROUP, PANEL_GROUP, HAS_BIAS))
    pairs = b.ashr(b.add(depth, i64(1)), i64(1))
    groups = b.sdiv(b.add(panels, b.sub(panel_group, i64(1))), panel_group)
    first_block = b.mul(b.sdiv(chunk, groups), block_group)
    first_panel = b.mul(b.srem(chunk, groups), panel_group)
    last_block = smaller(b, b.add(first_block, block_group), blocks)
    last_panel = smaller(b, b.add(first_panel, panel_group), panels)
    left_at, right_at = word(b, plan, LEFT), word(b, plan, RIGHT)
    added = [local(b, _FLOATS) for _ in range(2)]
    with loop(b, first_panel, last_panel) as panel:
        column = b.mul(panel, i64(COLUMNS))
        masks = [first_lanes(b, b.sub(b.sub(column_count, column), i64(h * LANES)), LANES) for h in range(2)]
        right = at(b, scratch, b.add(right_at, b.mul(panel, b.mul(pairs, i64(4 * COLUMNS)))))
        for memory in added:
            b.store(constant(0, _FLOATS), memory)
        with b.if_then(b.icmp_signed("!=", has_bias, i64(0))):
            for h, memory in enumerate(added):
                place = at(b, bias, b.mul(b.add(column, i64(h * LANES)), i64(2)))
                b.store(_widened(b, place, masks[h]), memory)
        with loop(b, first_block, last_block) as block:
            left = at(b, scratch, b.add(left_at, b.mul(block, b.mul(pairs, i64(4 * ROWS)))))
            sums = _sums(b, left, right, pairs)
            for r in range(ROWS):
                row = b.add(b.mul(block, i64(ROWS)), i64(r))
                with b.if_then(b.icmp_signed("<", row, row_count)):
                    for h in range(2):
                        value = b.select(b.icmp_signed("!=", has_bias, i64(0)),
                                         b.fadd(sums[r][h], b.load(added[h], typ=_FLOATS)), sums[r][h])
                        place = at(b, out, b.mul(b.add(b.mul(row, column_count), b.add(column, i64(h * LANES))),
                                                 i64(2)))
                        rounded = to_bfloat16(b, value, LANES)
                        intrinsic(b, "masked.store", ir.VoidType(), [rounded, place, ir.Constant(I32, 2), masks[h]],
                                  [rounded.type, POINTER])
    b.ret_void()
    return str(module)


def _widened(b: ir.IRBuilder, place: Any, mask: Any) -> Any:
    """16 elements as float32."""
    narrow = ir.VectorType(_I16, LANES)
    bits = intrinsic(b, "masked.load", narrow, [place, ir.Constant(I32, 2), mask, constant(0, narrow)],
                     [narrow, POINTER])
    return b.bitcast(b.shl(b.zext(bits, _PAIRS), constant(16, _PAIRS)), _FLOATS)


def _sums(b: ir.IRBuilder, left: Any, right: Any, pairs: Any) -> list[list[Any]]:
    """The accumulators of a block after all pairs: by row, two vectors."""
    before = b.block
    head, inner, after = (b.function.append_basic_block(name) for name in ("pairs", "pair", "multiplied"))
    b.branch(head)
    b.position_at_end(head)
    k = b.phi(I64)
    k.add_incoming(i64(0), before)
    sums = [[b.phi(_FLOATS) for _ in range(2)] for _ in range(ROWS)]
    for row in sums:
        for phi in row:
            phi.add_incoming(constant(0, _FLOATS), before)
    b.cbranch(b.icmp_signed("<", k, pairs), inner, after)
    b.position_at_end(inner)
    panel, block = at(b, right, b.mul(k, i64(4 * COLUMNS))), at(b, left, b.mul(k, i64(4 * ROWS)))
    columns = [b.bitcast(b.load(at(b, panel, 64 * h), typ=_PAIRS, align=4), _BFLOATS) for h in range(2)]
    for r, row in enumerate(sums):
        one = splat(b, b.load(at(b, block, 4 * r), typ=I32, align=4), LANES)
        factor = b.bitcast(one, _BFLOATS)
        for h, phi in enumerate(row):
            phi.add_incoming(_multiplied(b, phi, columns[h], factor), inner)
    k.add_incoming(b.add(k, i64(1)), inner)
    b.branch(head)
    b.position_at_end(after)
    return sums


def _multiplied(b: ir.IRBuilder, total: Any, x: Any, y: Any) -> Any:
    name = "llvm.x86.avx512bf16.dpbf16ps.512"
    function = b.module.globals.get(name)
    if function is None:
        function = ir.Function(b.module, ir.FunctionType(_FLOATS, [_FLOATS, _BFLOATS, _BFLOATS]), name)
    return b.call(function, [total, x, y])


def generate(kind: str) -> str:
    """The text of a module: "left" and "right" (lines contiguous along K), "right rows", or "multiply"."""
    if kind == "multiply":
        return _multiply()
    if kind == "right rows":
        return _pack_rows()
    return _pack_lines(kind, ROWS if kind == "left" else COLUMNS)


__all__ = ["COLUMNS", "ROWS", "generate"]
