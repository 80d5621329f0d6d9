"""From taps to Winograd's points, and back: G g Gᵀ of weights, and Gᵀ U G for their gradient.

Panels of 9 taps and of 16 points lie as `convolution_panels` has them. Weights that are not finite, or so large that
products might overflow, mark their panel. Where something of that kind went into a gradient's sums, these are no longer
finite, and the gradient is computed as it is defined, by launches that are otherwise passed over.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from llvmlite import ir

from ....runtime import compilation
from ....runtime.launch import Launch
from ...llvm import kernel_entry
from ...llvm.loop_nests import I64, POINTER, at, i64, local, loop, smaller, word
from ...llvm.lowering import number, stored
from ..plan_fields import Callee
from ..weight_panels import GRAIN
from .tile_transform import IN, POINTS, TAPS, Squares, both

#: of the weights' plan: number of scratch memory's pointer; bytes before the panels, those made of them, and the
#: panels' marks; input channels; a group's vectors, and those of a panel; panels of a group, of all, of a chunk
_WEIGHTS = ("scratch", "panels.at", "made.at", "marks.at", "depth", "vectors", "panel", "panels", "jobs", "share")


def _read(builder: ir.IRBuilder, pointers: Any, plan: Any, names: Sequence[str]) -> tuple[dict[str, Any], Any]:
    """A plan's words by name, and the address of scratch memory."""
    read = {name: word(builder, plan, i) for i, name in enumerate(names)}
    place = builder.gep(pointers, [read["scratch"]], source_etype=POINTER)
    return read, builder.load(place, typ=POINTER)


def _g(builder: ir.IRBuilder, g: Sequence[Any]) -> list[Any]:
    """G times a column."""
    b = builder
    half = number(0.5, g[0].type)
    outer, inner = b.fmul(b.fadd(g[0], g[2]), half), b.fmul(g[1], half)
    return [g[0], b.fadd(outer, inner), b.fsub(outer, inner), g[2]]


def _gt(builder: ir.IRBuilder, u: Sequence[Any]) -> list[Any]:
    """Gᵀ times a column."""
    b = builder
    half = number(0.5, u[0].type)
    total, difference = b.fmul(b.fadd(u[1], u[2]), half), b.fmul(b.fsub(u[1], u[2]), half)
    return [b.fadd(u[0], total), difference, b.fadd(total, u[3])]


def weights(dtype: np.dtype, lanes: int, scratch: int, before: int, made: int, marks: int, depth: int, vectors: int,
            panel: int, groups: int) -> Launch:
    """The launch that makes panels of 16 points from panels of 9 taps, and marks those that are not to be used.

    Args:
        scratch: the number of scratch memory's pointer.
        before, made, marks: places in it: of the panels that there are, of those that are made, and of their marks.
        depth: input channels of a group.
        vectors, panel: vectors of output channels, of a group and of a panel.
    """
    library = compilation.load(f"convolution winograd weights {dtype} {lanes}", ("body",),
                            lambda: _weights(dtype, lanes), "few")
    panels = -(-vectors // panel)
    share = max(1, GRAIN // (POINTS * depth * panel * lanes))
    jobs = groups * panels
    return Launch(library, library.symbol("body"), -(-jobs // share),
                  (scratch, before, made, marks, depth, vectors, panel, panels, jobs, share))


def _weights(dtype: np.dtype, lanes: int) -> str:
    module = ir.Module("weights")
    function, b = kernel_entry.begin(module, "body", kernel_entry.BODY)
    pointers, plan, chunk = function.args
    read, scratch = _read(b, pointers, plan, _WEIGHTS)
    vector, size = ir.VectorType(stored(dtype), lanes), lanes * dtype.itemsize
    squares = Squares(b, vector)
    first = b.mul(chunk, read["share"])
    with loop(b, first, smaller(b, b.add(first, read["share"]), read["jobs"])) as job:
        group, index = b.udiv(job, read["panels"]), b.urem(job, read["panels"])
        done = b.mul(index, read["panel"])
        beside = smaller(b, read["panel"], b.sub(read["vectors"], done))
        before = b.mul(b.mul(b.add(b.mul(group, read["vectors"]), done), read["depth"]), i64(size))
        source = at(b, at(b, scratch, read["panels.at"]), b.mul(before, i64(TAPS * TAPS)))
        result = at(b, at(b, scratch, read["made.at"]), b.mul(before, i64(POINTS)))
        pitch = b.mul(b.mul(beside, read["depth"]), i64(size))  # of a tap, and of a point
        squares.clear()
        with loop(b, i64(0), pitch, size) as offset:
            taps = [b.load(at(b, at(b, source, offset), b.mul(pitch, i64(i))), typ=vector, align=dtype.itemsize)
                    for i in range(TAPS * TAPS)]
            made = both(b, _g, [taps[i:i + TAPS] for i in range(0, TAPS * TAPS, TAPS)])
            flat = [each for row in made for each in row]
            squares.add(flat)
            for i, value in enumerate(flat):
                b.store(value, at(b, at(b, result, offset), b.mul(pitch, i64(i))), align=dtype.itemsize)
        marks = at(b, scratch, read["marks.at"])
        b.store(squares.unbounded(), b.gep(marks, [job], source_etype=I64))
    b.ret_void()
    return str(module)


#: of the plan of `taps`: number of scratch memory's pointer; bytes before the sums of points, the panels made of them,
#: and their marks; how many sums there are to add, and bytes between them; bytes between points; input channels;
#: vectors, and those of a panel; panels, of all and of a chunk
_TAPS = ("scratch", "sums.at", "panels.at", "marks.at", "pieces", "piece.bytes", "point.bytes", "depth", "vectors",
         "panel", "jobs", "share")


def taps(dtype: np.dtype, lanes: int, scratch: int, sums: int, panels: int, marks: int, pieces: int, piece_bytes: int,
         point_bytes: int, depth: int, vectors: int, panel: int) -> Launch:
    """The launch that makes panels of 9 taps from the sums of 16 points, and marks those that are not finite.

    Args:
        scratch: the number of scratch memory's pointer.
        sums, panels, marks: places in it.
        pieces, piece_bytes: how many sums are to be added up, and how far they lie apart.
        point_bytes: bytes from one point's panels to the next one's.
        depth: input channels.
        vectors, panel: vectors of output channels, of all and of a panel.
    """
    library = compilation.load(f"convolution winograd taps {dtype} {lanes}", ("body",), lambda: _taps(dtype, lanes),
                               "few")
    jobs = -(-vectors // panel)
    share = max(1, GRAIN // (POINTS * depth * panel * lanes))
    return Launch(library, library.symbol("body"), -(-jobs // share),
                  (scratch, sums, panels, marks, pieces, piece_bytes, point_bytes, depth, vectors, panel, jobs, share))


def _taps(dtype: np.dtype, lanes: int) -> str:
    module = ir.Module("taps")
    function, b = kernel_entry.begin(module, "body", kernel_entry.BODY)
    pointers, plan, chunk = function.args
    read, scratch = _read(b, pointers, plan, _TAPS)
    vector, size = ir.VectorType(stored(dtype), lanes), lanes * dtype.itemsize
    squares = Squares(b, vector)
    sums = [local(b, vector) for _ in range(POINTS)]
    first = b.mul(chunk, read["share"])
    with loop(b, first, smaller(b, b.add(first, read["share"]), read["jobs"])) as job:
        done = b.mul(job, read["panel"])
        beside = smaller(b, read["panel"], b.sub(read["vectors"], done))
        before = b.mul(b.mul(done, read["depth"]), i64(size))
        source = at(b, at(b, scratch, read["sums.at"]), before)
        result = at(b, at(b, scratch, read["panels.at"]), b.mul(before, i64(TAPS * TAPS)))
        pitch = b.mul(b.mul(beside, read["depth"]), i64(size))  # of a tap
        squares.clear()
        with loop(b, i64(0), pitch, size) as offset:
            for each in sums:
                b.store(number(0.0, vector), each)
            with loop(b, i64(0), read["pieces"]) as piece:
                place = at(b, at(b, source, offset), b.mul(piece, read["piece.bytes"]))
                for i, each in enumerate(sums):
                    value = b.load(at(b, place, b.mul(read["point.bytes"], i64(i))), typ=vector, align=dtype.itemsize)
                    b.store(b.fadd(b.load(each, typ=vector), value), each)
            flat = [b.load(each, typ=vector) for each in sums]
            squares.add(flat)
            made = both(b, _gt, [flat[i:i + IN] for i in range(0, POINTS, IN)])
            for i, value in enumerate([each for row in made for each in row]):
                b.store(value, at(b, at(b, result, offset), b.mul(pitch, i64(i))), align=dtype.itemsize)
        marks = at(b, scratch, read["marks.at"])
        b.store(squares.unbounded(), b.gep(marks, [job], source_etype=I64))
    b.ret_void()
    return str(module)


#: of a plan that another one follows: number of scratch memory's pointer, where marks begin and how many there are, the
#: other body
_IF = ("scratch", "marks.at", "marks", "body")


def if_marked(launch: Launch, scratch: int, marks_at: int, marks: int) -> Launch:
    """A launch that is only done if any of the marks is set."""
    library = compilation.load("convolution winograd if marked", ("body",), _if_marked, "few")
    return launch._replace(library=library, body=library.symbol("body"),
                           words=(scratch, marks_at, marks, launch.body, *launch.words))


def _if_marked() -> str:
    module = ir.Module("if_marked")
    function, b = kernel_entry.begin(module, "body", kernel_entry.BODY)
    pointers, plan, chunk = function.args
    read, scratch = _read(b, pointers, plan, _IF)
    some = local(b, I64)
    b.store(i64(0), some)
    with loop(b, i64(0), read["marks"], 1) as i:
        b.store(b.or_(b.load(some, typ=I64), word(b, at(b, scratch, read["marks.at"]), i)), some)
    with b.if_then(b.icmp_signed("!=", b.load(some, typ=I64), i64(0))):
        rest = b.gep(plan, [i64(len(_IF))], source_etype=I64)
        b.call(Callee(b, read["body"], kernel_entry.BODY), [pointers, rest, chunk])
    b.ret_void()
    return str(module)
