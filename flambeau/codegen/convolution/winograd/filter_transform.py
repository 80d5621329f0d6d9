"""Winograd filter transforms: G g Gᵀ of weights, and Gᵀ U G for their gradient.

Panels of 9 taps and of 16 points are laid out as in `weight_panels.py`. Weights that are not finite, or whose squares
overflow, flag their panel. Sums of a gradient that are not finite flag its panel, too: then the direct weight gradient
is computed, by launches that return at once otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from llvmlite import ir

from ....runtime import compilation
from ....runtime.launch import Launch, Preparation
from ...llvm import kernel_entry
from ...llvm.loop_nests import I64, POINTER, at, i64, local, loop, smaller, word
from ...llvm.lowering import constant, memory_type
from ..plan_fields import Callee
from ..weight_panels import GRAIN
from .tile_transform import IN, POINTS, TAPS, OverflowCheck, apply_2d

#: plan fields of `transform`: pointer index of scratch memory; offsets of the packed panels, the transformed panels and
#: their flags; input channels; vectors per group and per panel; panels per group, in all, and per chunk
_TRANSFORM = ("scratch", "panels.at", "transformed.at", "flags.at", "depth", "vectors", "panel", "panels", "jobs",
              "share")


def _read(builder: ir.IRBuilder, pointers: Any, plan: Any, names: Sequence[str]) -> tuple[dict[str, Any], Any]:
    """A plan's fields by name, and the address of scratch memory."""
    read = {name: word(builder, plan, i) for i, name in enumerate(names)}
    place = builder.gep(pointers, [read["scratch"]], source_etype=POINTER)
    return read, builder.load(place, typ=POINTER)


def _g(builder: ir.IRBuilder, g: Sequence[Any]) -> list[Any]:
    """G times a column."""
    b = builder
    half = constant(0.5, g[0].type)
    outer, inner = b.fmul(b.fadd(g[0], g[2]), half), b.fmul(g[1], half)
    return [g[0], b.fadd(outer, inner), b.fsub(outer, inner), g[2]]


def _gt(builder: ir.IRBuilder, u: Sequence[Any]) -> list[Any]:
    """Gᵀ times a column."""
    b = builder
    half = constant(0.5, u[0].type)
    total, difference = b.fmul(b.fadd(u[1], u[2]), half), b.fmul(b.fsub(u[1], u[2]), half)
    return [b.fadd(u[0], total), difference, b.fadd(total, u[3])]


def transform(dtype: np.dtype, lanes: int, scratch: int, panels_at: int, transformed_at: int, flags_at: int, depth: int,
              vectors: int, panel: int, groups: int) -> Launch:
    """The launch that transforms panels of 9 taps to panels of 16 points, and flags those that overflow.

    Args:
        scratch: pointer index of scratch memory.
        panels_at, transformed_at, flags_at: offsets in it of the packed panels, the transformed panels, their flags.
        depth: input channels of a group.
        vectors, panel: vectors of output channels, of a group and of a panel.
    """
    library = compilation.load(f"convolution winograd weights {dtype} {lanes}", ("body",),
                            lambda: _transform(dtype, lanes), "few")
    panel_count = -(-vectors // panel)
    share = max(1, GRAIN // (POINTS * depth * panel * lanes))
    jobs = groups * panel_count
    return Launch(library, library.symbol("body"), -(-jobs // share),
                  (scratch, panels_at, transformed_at, flags_at, depth, vectors, panel, panel_count, jobs, share),
                  preparation=Preparation(-1, transformed_at, flags_at + 8 * jobs))


def _transform(dtype: np.dtype, lanes: int) -> str:
    module = ir.Module("weights")
    function, b = kernel_entry.begin(module, "body", kernel_entry.BODY)
    pointers, plan, chunk = function.args
    read, scratch = _read(b, pointers, plan, _TRANSFORM)
    vector, size = ir.VectorType(memory_type(dtype), lanes), lanes * dtype.itemsize
    squares = OverflowCheck(b, vector)
    first = b.mul(chunk, read["share"])
    with loop(b, first, smaller(b, b.add(first, read["share"]), read["jobs"])) as job:
        group, index = b.udiv(job, read["panels"]), b.urem(job, read["panels"])
        done = b.mul(index, read["panel"])
        count = smaller(b, read["panel"], b.sub(read["vectors"], done))
        before = b.mul(b.mul(b.add(b.mul(group, read["vectors"]), done), read["depth"]), i64(size))
        source = at(b, at(b, scratch, read["panels.at"]), b.mul(before, i64(TAPS * TAPS)))
        result = at(b, at(b, scratch, read["transformed.at"]), b.mul(before, i64(POINTS)))
        pitch = b.mul(b.mul(count, read["depth"]), i64(size))  # of a tap, and of a point
        squares.clear()
        with loop(b, i64(0), pitch, size) as offset:
            taps = [b.load(at(b, at(b, source, offset), b.mul(pitch, i64(i))), typ=vector, align=dtype.itemsize)
                    for i in range(TAPS * TAPS)]
            points = apply_2d(b, _g, [taps[i:i + TAPS] for i in range(0, TAPS * TAPS, TAPS)])
            flat = [each for row in points for each in row]
            squares.add(flat)
            for i, value in enumerate(flat):
                b.store(value, at(b, at(b, result, offset), b.mul(pitch, i64(i))), align=dtype.itemsize)
        flags = at(b, scratch, read["flags.at"])
        b.store(squares.overflowed(), b.gep(flags, [job], source_etype=I64))
    b.ret_void()
    return str(module)


#: plan fields of `inverse_transform`: pointer index of scratch memory; offsets of the sums of points, the panels and
#: their flags; pieces to add up and their stride; bytes between points; input channels; vectors, in all and per
#: panel; panels, in all and per chunk
_INVERSE = ("scratch", "sums.at", "panels.at", "flags.at", "pieces", "piece.bytes", "point.bytes", "depth",
            "vectors", "panel", "jobs", "share")


def inverse_transform(dtype: np.dtype, lanes: int, scratch: int, sums_at: int, panels_at: int, flags_at: int,
                      pieces: int, piece_bytes: int, point_bytes: int, depth: int, vectors: int, panel: int) -> Launch:
    """The launch that transforms sums of 16 points to panels of 9 taps, and flags those that are not finite.

    Args:
        scratch: pointer index of scratch memory.
        sums_at, panels_at, flags_at: offsets in it.
        pieces, piece_bytes: number of pieces to add up, and their stride.
        point_bytes: bytes from one point's panels to the next one's.
        depth: input channels.
        vectors, panel: vectors of output channels, in all and per panel.
    """
    library = compilation.load(f"convolution winograd taps {dtype} {lanes}", ("body",),
                               lambda: _inverse_transform(dtype, lanes),
                               "few")
    jobs = -(-vectors // panel)
    share = max(1, GRAIN // (POINTS * depth * panel * lanes))
    return Launch(library, library.symbol("body"), -(-jobs // share),
                  (scratch, sums_at, panels_at, flags_at, pieces, piece_bytes, point_bytes, depth, vectors, panel, jobs,
                   share))


def _inverse_transform(dtype: np.dtype, lanes: int) -> str:
    module = ir.Module("taps")
    function, b = kernel_entry.begin(module, "body", kernel_entry.BODY)
    pointers, plan, chunk = function.args
    read, scratch = _read(b, pointers, plan, _INVERSE)
    vector, size = ir.VectorType(memory_type(dtype), lanes), lanes * dtype.itemsize
    squares = OverflowCheck(b, vector)
    sums = [local(b, vector) for _ in range(POINTS)]
    first = b.mul(chunk, read["share"])
    with loop(b, first, smaller(b, b.add(first, read["share"]), read["jobs"])) as job:
        done = b.mul(job, read["panel"])
        count = smaller(b, read["panel"], b.sub(read["vectors"], done))
        before = b.mul(b.mul(done, read["depth"]), i64(size))
        source = at(b, at(b, scratch, read["sums.at"]), before)
        result = at(b, at(b, scratch, read["panels.at"]), b.mul(before, i64(TAPS * TAPS)))
        pitch = b.mul(b.mul(count, read["depth"]), i64(size))  # of a tap
        squares.clear()
        with loop(b, i64(0), pitch, size) as offset:
            for each in sums:
                b.store(constant(0.0, vector), each)
            with loop(b, i64(0), read["pieces"]) as piece:
                place = at(b, at(b, source, offset), b.mul(piece, read["piece.bytes"]))
                for i, each in enumerate(sums):
                    value = b.load(at(b, place, b.mul(read["point.bytes"], i64(i))), typ=vector, align=dtype.itemsize)
                    b.store(b.fadd(b.load(each, typ=vector), value), each)
            flat = [b.load(each, typ=vector) for each in sums]
            squares.add(flat)
            taps = apply_2d(b, _gt, [flat[i:i + IN] for i in range(0, POINTS, IN)])
            for i, value in enumerate([each for row in taps for each in row]):
                b.store(value, at(b, at(b, result, offset), b.mul(pitch, i64(i))), align=dtype.itemsize)
        flags = at(b, scratch, read["flags.at"])
        b.store(squares.overflowed(), b.gep(flags, [job], source_etype=I64))
    b.ret_void()
    return str(module)


#: plan fields of a conditional launch, which precede the plan of the other body: pointer index of scratch memory, the
#: offset and number of the flags, the address of the other body
_CONDITIONAL = ("scratch", "flags.at", "flags", "body")


def if_flagged(launch: Launch, scratch: int, flags_at: int, flags: int) -> Launch:
    """The launch made conditional: it returns at once unless one of the flags is set."""
    library = compilation.load("convolution winograd if flagged", ("body",), _if_flagged, "few")
    return launch._replace(library=library, body=library.symbol("body"),
                           words=(scratch, flags_at, flags, launch.body, *launch.words))


def _if_flagged() -> str:
    module = ir.Module("if_flagged")
    function, b = kernel_entry.begin(module, "body", kernel_entry.BODY)
    pointers, plan, chunk = function.args
    read, scratch = _read(b, pointers, plan, _CONDITIONAL)
    flagged = local(b, I64)
    b.store(i64(0), flagged)
    with loop(b, i64(0), read["flags"], 1) as i:
        b.store(b.or_(b.load(flagged, typ=I64), word(b, at(b, scratch, read["flags.at"]), i)), flagged)
    with b.if_then(b.icmp_signed("!=", b.load(flagged, typ=I64), i64(0))):
        rest = b.gep(plan, [i64(len(_CONDITIONAL))], source_etype=I64)
        b.call(Callee(b, read["body"], kernel_entry.BODY), [pointers, rest, chunk])
    b.ret_void()
    return str(module)
