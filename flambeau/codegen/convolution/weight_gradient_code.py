"""Weight gradient kernels: sums over positions of the output's gradient times the input at each tap.

The register tile covers elements of the weights: scalars are neighbouring input channels (taps, in a depthwise
convolution) in rows of several runs, vectors are over output channels. A block's positions are summed in registers,
then added to a panel of the chunk's piece; pieces are added up after all chunks.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from llvmlite import ir

from ...runtime import compilation
from ..llvm import kernel_entry
from ..llvm.loop_nests import I1, I64, POINTER, at, i64, local, loop, smaller, word
from . import chunks, scratch_slots
from .plan import GRADIENT
from .plan_fields import Callee, Plan
from .register_tile import Tile
from .winograd.tile_transform import TRANSFORM

#: plan; addresses of the block's source, output's gradient and panel; the tile's index among runs and within them;
#: positions along n, d, h and w; whether to add to the panel
SUM = ir.FunctionType(ir.VoidType(), [POINTER] * 4 + [I64] * 6 + [I1])


def library(tile: Tile) -> compilation.Library:
    """The compiled `sum`: one tile's sums over a block."""
    recipe = (f"convolution gradient {tile.dtype} {tile.rows}x{tile.columns}x{tile.vectors}x{tile.lanes}"
              f"{' depthwise' * tile.depthwise}")
    return compilation.load(recipe, ("sum",), lambda: _sum(tile), "few")


def _sum(tile: Tile) -> str:
    module = ir.Module("gradient")
    function, b = kernel_entry.begin(module, "sum", SUM)
    words, source, factor, panel, run_job, column_job, images, depth, height, width, again = function.args
    plan = Plan(b, words, GRADIENT)
    read = {name: plan[name] for name in (
        "from.n", "from.d", "from.h", "from.w", "factor.n", "factor.d", "factor.h", "factor.w", "from.column",
        "runs", "length", "offsets.at")}
    runs, length = read["runs"], read["length"]
    step: Any = read["from.column"] if tile.depthwise else tile.dtype.itemsize
    first_run, column = b.mul(run_job, i64(tile.rows)), b.mul(column_job, i64(tile.columns))
    # the last tile overlaps the one before it, so that it ends with the run
    first = smaller(b, column, b.sub(length, i64(tile.columns)))
    bases, places = [], []
    for r in range(tile.rows):
        run = smaller(b, b.add(first_run, i64(r)), b.sub(runs, i64(1)))
        offset = word(b, words, b.add(read["offsets.at"], run))
        bases.append(at(b, source, b.add(offset, b.mul(first, i64(step) if isinstance(step, int) else step))))
        places.append(at(b, panel, b.mul(b.add(b.mul(run, length), first), i64(tile.bytes))))
    sums = tile.zeros(b)
    with ExitStack() as nest:
        for axis, count in (("n", images), ("d", depth), ("h", height)):
            index = nest.enter_context(loop(b, i64(0), count))
            bases = [at(b, base, b.mul(index, read[f"from.{axis}"])) for base in bases]
            factor = at(b, factor, b.mul(index, read[f"factor.{axis}"]))
        tile.accumulate(b, sums, bases, step, factor, width, read["from.w"], read["factor.w"])
    missed = b.sub(column, first)
    for i, row, q, vector in tile.places():
        # skip elements of the overlapped tile, and repeated runs
        valid = b.and_(b.icmp_signed("<", b.add(first_run, i64(row)), runs), b.icmp_signed(">=", i64(q), missed))
        with b.if_then(valid):
            place = at(b, places[row], q * tile.bytes + vector * tile.lanes * tile.dtype.itemsize)
            total = b.load(sums[i], typ=tile.vector)
            with b.if_else(again) as (add, write):
                with add:
                    before = b.load(place, typ=tile.vector, align=tile.dtype.itemsize)
                    b.store(b.fadd(before, total), place, align=tile.dtype.itemsize)
                with write:
                    b.store(total, place, align=tile.dtype.itemsize)
    b.ret_void()
    return str(module)


def body() -> compilation.Library:
    """The compiled `body`: a chunk is a piece of the blocks and a share of the tiles."""
    return compilation.load("convolution gradient body", ("body",), _body, "few")


def _body() -> str:
    module = ir.Module("gradient")
    function, b = kernel_entry.begin(module, "body", kernel_entry.BODY)
    pointers, words, chunk = function.args
    plan = Plan(b, words, GRADIENT)

    def pointer(name: str) -> Any:
        return b.load(b.gep(pointers, [plan[name]], source_etype=POINTER), typ=POINTER)

    scratch = pointer("scratch")
    piece, split = b.udiv(chunk, plan["splits"]), b.urem(chunk, plan["splits"])
    slot = scratch_slots.Slot(b, scratch, plan)
    panels = at(b, at(b, scratch, plan["pieces.at"]), b.mul(piece, plan["piece.bytes"]))
    start = b.mul(piece, plan["piece"])
    with loop(b, start, smaller(b, b.add(start, plan["piece"]), plan["blocks"])) as number:
        first, count = chunks.block(b, plan, number)
        region = chunks.input_region(b, plan, first, count)
        source = chunks.block_pointer(b, plan, pointer("source"), ("fill", "fill_fields.at", "from"), first, count["n"],
                                      region, slot.place)
        positions = [b.mul(each, plan[f"spread.{axis}"]) for axis in "dhw" for each in (first[axis], count[axis])]
        factor = chunks.block_pointer(b, plan, pointer("factor"), ("fill.factor", "fill_fields.factor.at", "factor"),
                                      first, count["n"], positions, at(b, slot.place, plan["factor.at"]))
        counts = [count[axis] for axis in "ndhw"]
        source = _transformed(b, plan, "transform", "points.at", source, slot.place, counts)
        factor = _transformed(b, plan, "transform.factor", "points.factor.at", factor, slot.place, counts)
        again = b.icmp_signed("!=", number, start)
        job = b.mul(split, plan["share"])
        with loop(b, job, smaller(b, b.add(job, plan["share"]), plan["jobs"])) as index:
            _job(b, plan, index, source, factor, panels, counts, again)
    slot.release(b)
    b.ret_void()
    return str(module)


def _transformed(b: ir.IRBuilder, plan: Plan, name: str, place: str, array: Any, slot: Any, counts: list[Any]) -> Any:
    """The address of a block's part of an array, or of its transformed tiles (Winograd), which are computed now."""
    result = local(b, POINTER)
    b.store(array, result)
    with b.if_then(b.icmp_signed("!=", plan[name], i64(0))):
        points = at(b, slot, plan[place])
        b.call(Callee(b, plan[name], TRANSFORM), [plan.list(f"{name}.at"), array, points, *counts])
        b.store(points, result)
    return b.load(result, typ=POINTER)


def _job(b: ir.IRBuilder, plan: Plan, job: Any, source: Any, factor: Any, panels: Any, counts: list[Any],
         again: Any) -> None:
    """Compute one tile's sums: of a group, a panel, some runs and a part of their length."""
    column, rest = b.urem(job, plan["columns.jobs"]), b.udiv(job, plan["columns.jobs"])
    run, rest = b.urem(rest, plan["runs.jobs"]), b.udiv(rest, plan["runs.jobs"])
    number, group = b.urem(rest, plan["panels"]), b.udiv(rest, plan["panels"])
    for name, index in (("group", group), ("panel", number)):
        source = at(b, source, b.mul(index, plan[f"from.{name}"]))
        factor = at(b, factor, b.mul(index, plan[f"factor.{name}"]))
        panels = at(b, panels, b.mul(index, plan[f"{name}.bytes"]))
    last = b.icmp_signed("==", number, b.sub(plan["panels"], i64(1)))
    address = b.select(last, plan["tile_sum.last"], plan["tile_sum"])
    b.call(Callee(b, address, SUM), [plan.words, source, factor, panels, run, column, *counts, again])
