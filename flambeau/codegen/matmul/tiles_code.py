"""Products of bfloat16 matrices by AMX: code generation.

`tdpbf16ps` adds the products of 16 lines of 32 elements and of 16 pairs of 16 lines to a tile of 16 x 16 float32. Four
such tiles, a block of 32 x 32 results, stay in registers while K runs; two tiles of each operand are loaded for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir

from ..llvm import kernel_entry
from ..llvm.loop_nests import (
    I8,
    I32,
    POINTER,
    as_opaque_pointer,
    at,
    first_lanes,
    i64,
    larger,
    local,
    loop,
    smaller,
    transpose_vectors,
    word,
)
from ..llvm.lowering import BFloatType, constant, intrinsic

LINES, STEP, BLOCK = 16, 32, 32
#: bytes of a tile, and of its rows
TILE, ROW = 1024, 64
_I16 = ir.IntType(16)
_HALVES = ir.VectorType(_I16, STEP)
_WORDS = ir.VectorType(I32, LINES)
_FLOATS = ir.VectorType(ir.FloatType(), LINES)
_ROW_MASK = ir.VectorType(ir.IntType(1), STEP)
#: fields of all plans
LEFT_LINES, RIGHT_LINES, DEPTH, STEPS, BLOCKS, PANELS = range(6)
#: of packing: the operand's pointer, bytes between lines (or, of contiguous lines, along K) and matrices, the target;
#: blocks or panels of a chunk
SOURCE, STRIDE, BATCH, TARGET, GANG = range(6, 11)
#: of multiplying: the left operand's pointer, bytes between lines, steps, tiles of lines and matrices, its offset;
#: blocks and panels of a chunk; whether there is a bias; bytes of a packed right operand
(LEFT, LINE, LEFT_STEP, LEFT_TILE, LEFT_BATCH, LEFT_OFFSET, BLOCK_GROUP, PANEL_GROUP, HAS_BIAS,
 RIGHT_BATCH) = range(6, 16)
#: tile registers: sums by tile of lines and half of the panel, then the operands'
_SUMS, _LEFTS, _RIGHTS = ((0, 1), (2, 3)), (4, 5), (6, 7)


def _operand(b: ir.IRBuilder, pointers: Any, index: Any) -> Any:
    return b.load(b.gep(pointers, [index if not isinstance(index, int) else i64(index)], source_etype=POINTER),
                  typ=POINTER)


def _call(b: ir.IRBuilder, name: str, args: Sequence[Any], result: ir.Type | None = None) -> Any:
    """Call an intrinsic of x86."""
    full = f"llvm.x86.{name}"
    function = b.module.globals.get(full)
    if function is None:
        function = ir.Function(b.module, ir.FunctionType(result or ir.VoidType(), [arg.type for arg in args]), full)
    return b.call(function, args)


def _tile(index: int) -> ir.Constant:
    return ir.Constant(I8, index)


def _masked_load(b: ir.IRBuilder, place: Any, count: Any, type_: ir.VectorType) -> Any:
    """The first `count` elements from an address, the others 0."""
    return intrinsic(b, "masked.load", type_, [place, ir.Constant(I32, 2), first_lanes(b, count, type_.count),
                                               constant(0, type_)], [type_, POINTER])


def _masked_store(b: ir.IRBuilder, value: Any, place: Any, mask: Any) -> None:
    intrinsic(b, "masked.store", ir.VoidType(), [value, place, ir.Constant(I32, 2), mask], [value.type, POINTER])


def _lines_of_pairs(b: ir.IRBuilder, source: Any, stride: Any, first: Any, lines: Any, element: Any,
                    depth: Any) -> list[Any]:
    """16 lines from `first` on of 16 pairs from an element on, of an operand that is contiguous along K; 0 outside."""
    rest = b.sub(depth, element)
    vectors = []
    for i in range(LINES):
        line = b.add(first, i64(i))
        inside = b.icmp_signed("<", line, lines)
        place = at(b, source, b.add(b.mul(b.select(inside, line, i64(0)), stride), b.shl(element, i64(1))))
        vectors.append(b.bitcast(_masked_load(b, place, b.select(inside, rest, i64(0)), _HALVES), _WORDS))
    return vectors


def _pairs_of_lines(b: ir.IRBuilder, source: Any, stride: Any, first: Any, lines: Any, element: Any, depth: Any,
                    width: int) -> list[Any]:
    """16 pairs from an element on, of `width` lines from `first` on, of an operand of contiguous lines; 0 outside."""
    rest = b.sub(lines, first)
    narrow, wide = ir.VectorType(_I16, width), ir.VectorType(I32, width)
    vectors = []
    for i in range(LINES):
        halves = []
        for half in range(2):
            row = b.add(element, i64(2 * i + half))
            inside = b.icmp_signed("<", row, depth)
            place = at(b, source, b.add(b.mul(b.select(inside, row, i64(0)), stride), b.shl(first, i64(1))))
            halves.append(b.zext(_masked_load(b, place, b.select(inside, rest, i64(0)), narrow), wide))
        vectors.append(b.or_(halves[0], b.shl(halves[1], constant(16, wide))))
    return vectors


def _pack(side: str, contiguous: str, width: int) -> str:
    """`pack`: a block of lines of the left operand, tile after tile along K, or a panel of the right one, [pair][line].

    Pointers: (result, x, y, bias, scratch). A chunk packs a gang of blocks or panels of a
    matrix, where lines are contiguous one step of all before the next: so long pieces of a row are read at once.
    """
    module = ir.Module("pack")
    body, b = kernel_entry.begin(module, "pack", kernel_entry.BODY)
    pointers, plan, chunk = body.args
    is_left = side == "left"
    lines, depth, steps, groups = (word(b, plan, i) for i in (
        LEFT_LINES if is_left else RIGHT_LINES, DEPTH, STEPS, BLOCKS if is_left else PANELS))
    size = word(b, plan, GANG)
    gangs = b.sdiv(b.add(groups, b.sub(size, i64(1))), size)
    matrix, gang = b.sdiv(chunk, gangs), b.srem(chunk, gangs)
    source = at(b, _operand(b, pointers, word(b, plan, SOURCE)), b.mul(matrix, word(b, plan, BATCH)))
    stride = word(b, plan, STRIDE)
    half_bytes = b.mul(steps, i64(TILE))
    group_bytes = b.mul(half_bytes, i64(width // LINES))
    target = at(b, _operand(b, pointers, 4), b.add(word(b, plan, TARGET), b.mul(b.mul(matrix, groups), group_bytes)))
    begin = b.mul(gang, size)
    end = smaller(b, b.add(begin, size), groups)
    outer, inner = ((i64(0), steps), (begin, end)) if contiguous == "lines" else ((begin, end), (i64(0), steps))
    with loop(b, *outer) as i, loop(b, *inner) as j:
        step, group = (i, j) if contiguous == "lines" else (j, i)
        element, first = b.mul(step, i64(STEP)), b.mul(group, i64(width))
        place = at(b, target, b.mul(group, group_bytes))
        if not is_left and contiguous == "lines":
            place = at(b, place, b.mul(step, i64(TILE * width // LINES)))
            for i, vector in enumerate(_pairs_of_lines(b, source, stride, first, lines, element, depth, width)):
                b.store(vector, at(b, place, i * 4 * width), align=ROW)
        for half in range(0 if not is_left and contiguous == "lines" else width // LINES):
            line = b.add(first, i64(half * LINES))
            if contiguous == "depth":
                vectors = _lines_of_pairs(b, source, stride, line, lines, element, depth)
            else:
                vectors = _pairs_of_lines(b, source, stride, line, lines, element, depth, LINES)
            if is_left:
                here, pitch = at(b, place, b.add(b.mul(half_bytes, i64(half)), b.mul(step, i64(TILE)))), ROW
            else:
                here, pitch = at(b, place, b.add(b.mul(step, i64(TILE * width // LINES)), i64(half * ROW))), 4 * width
            if is_left != (contiguous == "depth"):
                vectors = transpose_vectors(b, vectors)
            for i, vector in enumerate(vectors):
                b.store(vector, at(b, here, i * pitch), align=ROW)
    b.ret_void()
    return str(module)


def _configure(b: ir.IRBuilder, memory: Any, rows: Sequence[Any]) -> None:
    """Set the tiles' shapes: 64 bytes a row; sums and left operands have the block's rows, right ones 16."""
    for tile in range(8):
        which = next((i for i in range(2) if tile in _SUMS[i] or tile == _LEFTS[i]), None)
        count = i64(LINES) if which is None else rows[which]
        b.store(b.trunc(count, I8), at(b, memory, 48 + tile), align=1)
    _call(b, "ldtilecfg", [memory])


def _multiply(width: int, is_transposed: bool) -> str:
    """`body`: blocks of the result, of a group of blocks of the left operand and of panels of the right one."""
    module = ir.Module("multiply")
    body, b = kernel_entry.begin(module, "body", kernel_entry.BODY)
    pointers, plan, chunk = body.args
    out, bias, scratch = (_operand(b, pointers, i) for i in (0, 3, 4))
    (left_lines, right_lines, steps, blocks, panels, line, left_step, left_tile, block_group, panel_group,
     has_bias, right_batch) = (word(b, plan, i) for i in (
         LEFT_LINES, RIGHT_LINES, STEPS, BLOCKS, PANELS, LINE, LEFT_STEP, LEFT_TILE, BLOCK_GROUP, PANEL_GROUP,
         HAS_BIAS, RIGHT_BATCH))
    halves = width // LINES
    groups = [b.sdiv(b.add(total, b.sub(group, i64(1))), group)
              for total, group in ((blocks, block_group), (panels, panel_group))]
    per_matrix = b.mul(*groups)
    matrix, within = b.sdiv(chunk, per_matrix), b.srem(chunk, per_matrix)
    first_block, first_panel = b.mul(b.sdiv(within, groups[1]), block_group), b.mul(b.srem(within, groups[1]),
                                                                                   panel_group)
    last_block = smaller(b, b.add(first_block, block_group), blocks)
    last_panel = smaller(b, b.add(first_panel, panel_group), panels)
    left = at(b, _operand(b, pointers, word(b, plan, LEFT)),
              b.add(word(b, plan, LEFT_OFFSET), b.mul(matrix, word(b, plan, LEFT_BATCH))))
    right = at(b, scratch, b.mul(matrix, right_batch))
    out = at(b, out, b.mul(matrix, b.mul(b.mul(left_lines, right_lines), i64(2))))
    right_step = i64(TILE * halves)
    panel_bytes = b.mul(steps, right_step)
    with b.goto_entry_block():
        memory = b.alloca(ir.VectorType(I8, ROW))
        sums = b.alloca(ir.VectorType(I8, ROW), size=ir.Constant(I32, BLOCK * 2))
        for each in (memory, sums):
            each.align = ROW
    memory, sums = as_opaque_pointer(b, memory), as_opaque_pointer(b, sums)
    b.store(ir.Constant(ir.VectorType(I8, ROW), [1, *[0] * 15, *[ROW, 0] * 8, *[0] * 32]), memory, align=ROW)
    added = [local(b, _FLOATS) for _ in range(2)]
    for each in added:
        b.store(constant(0, _FLOATS), each)
    biased = b.icmp_signed("!=", has_bias, i64(0))
    with loop(b, first_block, last_block) as block:
        start = b.mul(block, i64(BLOCK))
        rest = b.sub(left_lines, start)
        # a tile without rows is an error: the second one repeats a line where it has none
        _configure(b, memory, [smaller(b, rest, i64(LINES)),
                               smaller(b, larger(b, b.sub(rest, i64(LINES)), i64(1)), i64(LINES))])
        tiles = [at(b, left, b.mul(b.mul(block, i64(2)), left_tile))]
        tiles.append(b.select(b.icmp_signed(">", rest, i64(LINES)), at(b, tiles[0], left_tile), tiles[0]))
        if is_transposed:
            with b.if_then(biased):
                _load_bias(b, bias, start, left_lines, added)
        with loop(b, first_panel, last_panel) as panel:
            packed = at(b, right, b.mul(panel, panel_bytes))
            used = [(tile, t * LINES * 2 * ROW + h * ROW) for t, pair in enumerate(_SUMS)
                    for h, tile in enumerate(pair[:halves])]
            for tile, _ in used:
                _call(b, "tilezero", [_tile(tile)])
            with loop(b, i64(0), steps) as step:
                _multiply_step(b, [at(b, tile, b.mul(step, left_step)) for tile in tiles], line,
                               at(b, packed, b.mul(step, right_step)), halves)
            for tile, place in used:
                _call(b, "tilestored64", [_tile(tile), at(b, sums, place), i64(2 * ROW)])
            column = b.mul(panel, i64(width))
            if is_transposed:
                _store_transposed(b, sums, added, out, start, column, left_lines, right_lines, halves)
            else:
                with b.if_then(biased):
                    _load_bias(b, bias, column, right_lines, added)
                _store(b, sums, added, out, start, column, left_lines, right_lines, halves)
    _call(b, "tilerelease", [])
    b.ret_void()
    return str(module)


def _multiply_step(b: ir.IRBuilder, lefts: Sequence[Any], line: Any, right: Any, halves: int) -> None:
    """One step along K of all sums."""
    for h in range(halves):
        _call(b, "tileloadd64", [_tile(_RIGHTS[h]), at(b, right, h * ROW), i64(ROW * halves)])
    for t, left in enumerate(lefts):
        _call(b, "tileloadd64", [_tile(_LEFTS[t]), left, line])
        for h in range(halves):
            _call(b, "tdpbf16ps", [_tile(_SUMS[t][h]), _tile(_LEFTS[t]), _tile(_RIGHTS[h])])


def _load_bias(b: ir.IRBuilder, bias: Any, start: Any, count: Any, added: Sequence[Any]) -> None:
    """Two vectors of the bias as float32, from an index on."""
    narrow = ir.VectorType(_I16, LINES)
    for h, memory in enumerate(added):
        first = b.add(start, i64(h * LINES))
        bits = _masked_load(b, at(b, bias, b.shl(first, i64(1))), b.sub(count, first), narrow)
        b.store(b.bitcast(b.shl(b.zext(bits, _WORDS), constant(16, _WORDS)), _FLOATS), memory)


def _rounded(b: ir.IRBuilder, values: Sequence[Any]) -> Any:
    """One or two vectors of float32 as bfloat16, with zeros for a missing one."""
    narrow = ir.VectorType(_I16, LINES)
    halves = [b.bitcast(_call(b, "avx512bf16.cvtneps2bf16.512", [value], ir.VectorType(BFloatType(), LINES)), narrow)
              for value in values]
    other = halves[1] if len(halves) == 2 else constant(0, narrow)
    return b.shuffle_vector(halves[0], other, ir.Constant(ir.VectorType(I32, STEP), list(range(STEP))))


def _sum_vector(b: ir.IRBuilder, sums: Any, row: Any, half: int) -> Any:
    return b.load(at(b, sums, b.add(b.mul(row, i64(128)), i64(half * ROW))), typ=_FLOATS, align=ROW)


def _store(b: ir.IRBuilder, sums: Any, added: Sequence[Any], out: Any, start: Any, column: Any, rows: Any, columns: Any,
           halves: int) -> None:
    """Round a block of sums into the result."""
    mask = first_lanes(b, b.sub(columns, column), STEP)
    shifts = [b.load(memory, typ=_FLOATS) for memory in added[:halves]]
    with loop(b, i64(0), smaller(b, b.sub(rows, start), i64(BLOCK))) as row:
        values = [b.fadd(_sum_vector(b, sums, row, h), shift) for h, shift in enumerate(shifts)]
        place = at(b, out, b.shl(b.add(b.mul(b.add(start, row), columns), column), i64(1)))
        _masked_store(b, _rounded(b, values), place, mask)


def _store_transposed(b: ir.IRBuilder, sums: Any, added: Sequence[Any], out: Any, start: Any, row: Any, columns: Any,
                      rows: Any, halves: int) -> None:
    """Round a block of sums into the result, whose rows are the panel's lines."""
    mask = first_lanes(b, b.sub(columns, start), STEP)
    shifts = [b.load(memory, typ=_FLOATS) for memory in added]
    for h in range(halves):
        parts = [transpose_vectors(b, [_sum_vector(b, sums, i64(t * LINES + i), h) for i in range(LINES)])
                 for t in range(2)]
        for i, pair in enumerate(zip(*parts, strict=True)):
            here = b.add(row, i64(h * LINES + i))
            inside = b.icmp_signed("<", here, rows)
            place = at(b, out, b.shl(b.add(b.mul(b.select(inside, here, i64(0)), columns), start), i64(1)))
            values = [b.fadd(value, shift) for value, shift in zip(pair, shifts, strict=True)]
            _masked_store(b, _rounded(b, values), place, b.select(inside, mask, constant(0, _ROW_MASK)))


def generate(kind: str) -> str:
    """The text of a module: "pack left" or "pack right" and what is contiguous, or "multiply"; widths of panels."""
    what, *options = kind.split()
    if what == "multiply":
        return _multiply(int(options[0]), options[1] == "transposed")
    side, contiguous, *width = options
    return _pack(side, contiguous, int(width[0]) if width else BLOCK)


__all__ = ["BLOCK", "LINES", "STEP", "generate"]
