"""Winograd's sums for kernels of 3 × 3 positions, tile by tile of 2 × 2 outputs, as LLVM code.

With d the 4 × 4 elements of one channel that a tile sees, and g the kernel, the tile is

    Y = Aᵀ [Σ over channels of (G g Gᵀ) · (Bᵀ d B)] A

where the product in the middle is element by element: 16 multiplications instead of 36. `points` computes Bᵀ d B of all
channels and tiles of a block, `weights` G g Gᵀ of a panel, and `sweep` the sums and what Aᵀ and A make of them.

The weight's gradient is the transpose: Gᵀ [Σ over tiles of (A gy Aᵀ) · (Bᵀ d B)] G. `points` makes both factors, the
sums are those of `convolution_gradient_code`, and `convolution_winograd_taps` makes of them what is wanted.

Differences of an infinity, or of numbers whose products overflow, are not what the sums themselves would be. So tiles
that see such elements are marked, and left to the sums as they are defined.

Source: Lavin, Gray: Fast algorithms for convolutional neural networks, 2015 (arXiv:1509.09308).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from llvmlite import ir

from . import calling, compiled
from .convolution_plan import CORRELATION, OPERAND
from .convolution_store import Ending
from .convolution_sweep import SWEEP
from .convolution_tile import Tile
from .convolution_words import Plan
from .lanes import host_fuses
from .launch import Launch
from .loops import I32, I64, POINTER, at, first_lanes, i64, local, loop, smaller, word
from .lowering import intrinsic, number, stored

#: outputs along a tile, elements that it sees, and taps
OUT, IN, TAPS = 2, 4, 3
#: products of a tile, for each pair of channels
POINTS = IN * IN
#: so many products are added up one after the other; such sums then are, which makes them better than those of nine
#: products that it takes longer to add up
LONGEST = 32

#: list, source, where the points go, images, depth, height, width in tiles: how many tiles are marked
MAKING = ir.FunctionType(I64, [POINTER] * 3 + [I64] * 4)

#: of the list: bytes between tiles in the source, and between their points, along n, d, h and w; bytes from point to
#: point; channels
LIST = ("read.n", "read.d", "read.h", "read.w", "to.n", "to.d", "to.h", "to.w", "plane", "channels")

#: of the weights' plan: number of scratch memory's pointer; bytes before the panels, those made of them, and the
#: panels' marks; input channels; a group's vectors, and those of a panel; panels of a group, of all, of a chunk
_WEIGHTS = ("scratch", "panels.at", "made.at", "marks.at", "depth", "vectors", "panel", "panels", "jobs", "share")
#: a chunk makes panels of at least so many elements
GRAIN = 1 << 14


def _bt(builder: ir.IRBuilder, d: Sequence[Any]) -> list[Any]:
    """Bᵀ times a column."""
    b = builder
    return [b.fsub(d[0], d[2]), b.fadd(d[1], d[2]), b.fsub(d[2], d[1]), b.fsub(d[1], d[3])]


def _g(builder: ir.IRBuilder, g: Sequence[Any]) -> list[Any]:
    """G times a column."""
    b = builder
    half = number(0.5, g[0].type)
    outer, inner = b.fmul(b.fadd(g[0], g[2]), half), b.fmul(g[1], half)
    return [g[0], b.fadd(outer, inner), b.fsub(outer, inner), g[2]]


def _at(builder: ir.IRBuilder, m: Sequence[Any]) -> list[Any]:
    """Aᵀ times a column."""
    b = builder
    return [b.fadd(b.fadd(m[0], m[1]), m[2]), b.fsub(b.fsub(m[1], m[2]), m[3])]


def _a(builder: ir.IRBuilder, g: Sequence[Any]) -> list[Any]:
    """A times a column."""
    return [g[0], builder.fadd(g[0], g[1]), builder.fsub(g[0], g[1]), builder.fneg(g[1])]


def both(builder: ir.IRBuilder, along: Any, square: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """The matrix of `along` times a square, given by rows, times its transpose; by rows."""
    columns = [along(builder, column) for column in zip(*square, strict=True)]
    return [along(builder, row) for row in zip(*columns, strict=True)]


class Squares:
    """A running sum of squares: finite if all that was added is, and far from where products overflow."""

    def __init__(self, builder: ir.IRBuilder, vector: ir.VectorType) -> None:
        self.builder, self.vector = builder, vector
        self.total = local(builder, vector)

    def clear(self) -> None:
        self.builder.store(number(0.0, self.vector), self.total)

    def add(self, values: Sequence[Any]) -> None:
        b = self.builder
        total = b.load(self.total, typ=self.vector)
        for value in values:
            total = (intrinsic(b, "fma", self.vector, [value, value, total]) if host_fuses()
                     else b.fadd(b.fmul(value, value), total))
        b.store(total, self.total)

    def unbounded(self) -> Any:
        """1 if the sum is infinite or NaN in any lane, else 0, as an integer."""
        b = self.builder
        total = b.load(self.total, typ=self.vector)
        largest = number(float(np.finfo(np.float32).max), self.vector)
        outside = b.not_(b.fcmp_ordered("<=", total, largest))
        return b.zext(intrinsic(b, "vector.reduce.or", ir.IntType(1), [outside], [outside.type]), I64)


def points(dtype: np.dtype, lanes: int, transposed: bool) -> compiled.Library:
    """The compiled `points`: of images, or (transposed) of an output's gradient; by point, then tile, then channel."""
    name = "gradient's points" if transposed else "points"
    return compiled.load(f"convolution winograd {name} {dtype} {lanes}", ("points",),
                         lambda: _Points(dtype, lanes, transposed).text, "few")


class _Points:
    """Writes `points`."""

    def __init__(self, dtype: np.dtype, lanes: int, transposed: bool) -> None:
        module = ir.Module("points")
        function, b = calling.begin(module, "points", MAKING)
        table, source, results, *counts = function.args
        read = {name: word(b, table, i) for i, name in enumerate(LIST)}
        self.builder, self.lanes, self.size = b, lanes, dtype.itemsize
        self.side = OUT if transposed else IN
        self.matrix: Any = _a if transposed else _bt
        self.vector = ir.VectorType(stored(dtype), lanes)
        self.squares = Squares(b, self.vector)
        self.pitches = [b.sdiv(read[f"read.{axis}"], i64(OUT)) for axis in "hw"]
        self.plane = read["plane"]
        left = b.urem(read["channels"], i64(lanes))
        whole = b.sub(read["channels"], left)
        mask = first_lanes(b, left, lanes)
        marked = local(b, I64)
        b.store(i64(0), marked)
        with (loop(b, i64(0), counts[0]) as n, loop(b, i64(0), counts[1]) as d, loop(b, i64(0), counts[2]) as h,
              loop(b, i64(0), counts[3]) as w):
            place, result = source, results
            for index, axis in zip((n, d, h, w), "ndhw", strict=True):
                place = at(b, place, b.mul(index, read[f"read.{axis}"]))
                result = at(b, result, b.mul(index, read[f"to.{axis}"]))
            self.squares.clear()
            with loop(b, i64(0), whole, lanes) as c:
                offset = b.mul(c, i64(self.size))
                self._make(at(b, place, offset), at(b, result, offset), None)
            with b.if_then(b.icmp_signed(">", left, i64(0))):
                offset = b.mul(whole, i64(self.size))
                self._make(at(b, place, offset), at(b, result, offset), mask)
            mark = self.squares.unbounded()
            b.store(b.trunc(mark, I32), at(b, result, b.mul(self.plane, i64(POINTS))))
            b.store(b.add(b.load(marked, typ=I64), mark), marked)
        b.ret(b.load(marked, typ=I64))
        self.text = str(module)

    def _make(self, place: Any, result: Any, mask: Any) -> None:
        """All points of one vector of channels."""
        b = self.builder
        rows = [at(b, place, b.mul(self.pitches[0], i64(i))) for i in range(self.side)]
        square = [[self._load(at(b, row, b.mul(self.pitches[1], i64(j))), mask) for j in range(self.side)]
                  for row in rows]
        made = [each for row in both(b, self.matrix, square) for each in row]
        self.squares.add(made)
        for i, value in enumerate(made):
            b.store(value, at(b, result, b.mul(self.plane, i64(i))), align=self.size)

    def _load(self, place: Any, mask: Any) -> Any:
        if mask is None:
            return self.builder.load(place, typ=self.vector, align=self.size)
        return intrinsic(self.builder, "masked.load", self.vector, [
            place, ir.Constant(I32, self.size), mask, number(0.0, self.vector)], [self.vector, POINTER])


def weights(dtype: np.dtype, lanes: int, scratch: int, before: int, made: int, marks: int, depth: int, vectors: int,
            panel: int, groups: int) -> Launch:
    """The launch that makes panels of 16 points from panels of 9 taps, and marks those that are not to be used.

    Args:
        scratch: the number of scratch memory's pointer.
        before, made, marks: places in it: of the panels that there are, of those that are made, and of their marks.
        depth: input channels of a group.
        vectors, panel: vectors of output channels, of a group and of a panel.
    """
    library = compiled.load(f"convolution winograd weights {dtype} {lanes}", ("body",),
                            lambda: _weights(dtype, lanes), "few")
    panels = -(-vectors // panel)
    share = max(1, GRAIN // (POINTS * depth * panel * lanes))
    jobs = groups * panels
    return Launch(library, library.symbol("body"), -(-jobs // share),
                  (scratch, before, made, marks, depth, vectors, panel, panels, jobs, share))


def _weights(dtype: np.dtype, lanes: int) -> str:
    module = ir.Module("weights")
    function, b = calling.begin(module, "body", calling.BODY)
    pointers, plan, chunk = function.args
    read = {name: word(b, plan, i) for i, name in enumerate(_WEIGHTS)}
    scratch = b.load(b.gep(pointers, [read["scratch"]], source_etype=POINTER), typ=POINTER)
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


def sweep(tile: Tile, masked: bool, ending: Ending | None) -> compiled.Library:
    """The compiled `sweep`: as `convolution_sweep`'s, but that positions are tiles of 2 × 2 and the source is points.

    Args:
        tile: of one row; its numbers are neighbouring tiles of the convolution.
        masked: whether the last vector may reach past the last channel.
        ending: what is stored; None for the sums themselves, into a buffer.
    """
    recipe = (f"convolution winograd sweep {tile.dtype} {tile.columns}x{tile.vectors}x{tile.lanes}"
              f"{' masked' * masked} {ending.recipe if ending else ''}")
    return compiled.load(recipe, ("sweep",), lambda: _Sweep(tile, masked, ending).text, "few")


class _Sweep:
    """Writes `sweep`."""

    def __init__(self, tile: Tile, masked: bool, ending: Ending | None) -> None:
        self.tile, self.ending = tile, ending
        module = ir.Module("sweep")
        function, b = calling.begin(module, "sweep", SWEEP)
        self.builder = b
        (words, self.pointers, self.source, self.target, self.panel, self.sums, self.n, self.images, self.d, self.depth,
         self.h, self.height, self.w, self.width, self.channel) = function.args
        plan = self.plan = Plan(b, words, CORRELATION)
        self.channels, self.points, self.plane = plan["inside"], plan["points"], plan["sums"]
        self.strides = {axis: plan[f"from.{axis}"] for axis in "ndhw"}
        group = b.udiv(self.channel, plan["width"])
        # tiles are marked for all groups at once, where the first begins
        self.marks = at(b, at(b, self.source, b.mul(self.points, i64(POINTS))),
                        b.neg(b.mul(group, plan["from.group"])))
        left = b.sub(b.mul(b.add(group, i64(1)), plan["width"]), self.channel)
        self.mask = first_lanes(b, b.sub(left, i64((tile.vectors - 1) * tile.lanes)), tile.lanes) if masked else None
        self.accumulators = tile.zeros(b)
        if ending is not None:
            self._operands(ending)
        self._multiply()
        self._finish()
        b.ret_void()
        self.text = str(module)

    def _operands(self, ending: Ending) -> None:
        b, plan, tile = self.builder, self.plan, self.tile
        self.steps = [[plan.operand(i, j) for j in range(OPERAND)] for i in range(len(ending.dtypes))]
        self.bases = []
        for i, steps in enumerate(self.steps):
            base = b.load(b.gep(self.pointers, [i64(ending.pointer(i))], source_etype=POINTER), typ=POINTER)
            self.bases.append(at(b, base, b.mul(self.channel, steps[4])))
        self.finished = local(b, tile.vector, OUT * OUT * tile.vectors)

    def _multiply(self) -> None:
        """The products of all points: tiles by channels, with channels by a panel's vectors."""
        b = self.builder
        # rows of tiles, and images, that follow each other are one run
        length, rows, depth, images = self.width, self.height, self.depth, self.images
        for axis, count in (("h", rows), ("d", depth), ("n", images)):
            follow = b.or_(b.icmp_signed("==", count, i64(1)),
                           b.icmp_signed("==", b.mul(length, self.strides["w"]), self.strides[axis]))
            if axis == "h":
                flat = follow
                length, rows = b.select(flat, b.mul(length, count), length), b.select(flat, i64(1), count)
            elif axis == "d":
                flat = b.and_(flat, follow)
                length, depth = b.select(flat, b.mul(length, count), length), b.select(flat, i64(1), count)
            else:
                flat = b.and_(flat, follow)
                length, images = b.select(flat, b.mul(length, count), length), b.select(flat, i64(1), count)
        run_bytes = b.mul(length, i64(self.tile.bytes))
        point_bytes = b.mul(self.channels, i64(self.tile.bytes))
        with loop(b, i64(0), i64(POINTS)) as point:
            source = at(b, self.source, b.mul(point, self.points))
            panel = at(b, self.panel, b.mul(point, point_bytes))
            sums = local(b, POINTER)
            b.store(at(b, self.sums, b.mul(point, self.plane)), sums)
            with loop(b, i64(0), images) as n, loop(b, i64(0), depth) as d, loop(b, i64(0), rows) as h:
                place = source
                for axis, index in zip("ndh", (n, d, h), strict=True):
                    place = at(b, place, b.mul(index, self.strides[axis]))
                here = b.load(sums, typ=POINTER)
                with loop(b, i64(0), length, self.tile.columns) as column:
                    # what is behind a run is overwritten by the next one
                    self._product(at(b, place, b.mul(column, self.strides["w"])), panel,
                                  at(b, here, b.mul(column, i64(self.tile.bytes))))
                b.store(at(b, here, run_bytes), sums)

    def _product(self, place: Any, panel: Any, sums: Any) -> None:
        """A tile of the product, whose rows begin at `place`, into `sums`."""
        b, tile, size = self.builder, self.tile, self.tile.dtype.itemsize
        with loop(b, i64(0), self.channels, LONGEST) as first:
            for each in self.accumulators:
                b.store(number(0.0, tile.vector), each)
            count = smaller(b, b.sub(self.channels, first), i64(LONGEST))
            tile.accumulate(b, self.accumulators, [at(b, place, b.mul(first, i64(size)))], self.strides["w"],
                            at(b, panel, b.mul(first, i64(tile.bytes))), count, size, tile.bytes)
            places = [at(b, sums, q * tile.bytes + v * tile.lanes * size)
                      for q in range(tile.columns) for v in range(tile.vectors)]
            with b.if_else(b.icmp_signed("==", first, i64(0))) as (one, more):
                with one:
                    for each, to in zip(self.accumulators, places, strict=True):
                        b.store(b.load(each, typ=tile.vector), to, align=size)
                with more:
                    for each, to in zip(self.accumulators, places, strict=True):
                        total = b.load(to, typ=tile.vector, align=size)
                        b.store(b.fadd(total, b.load(each, typ=tile.vector)), to, align=size)

    def _finish(self) -> None:
        """What becomes of the sums, tile by tile."""
        b, tile = self.builder, self.tile
        sums = local(b, POINTER)
        b.store(self.sums, sums)
        with (loop(b, i64(0), self.images) as n, loop(b, i64(0), self.depth) as d, loop(b, i64(0), self.height) as h,
              loop(b, i64(0), self.width) as w):
            here = b.load(sums, typ=POINTER)
            b.store(at(b, here, tile.bytes), sums)
            mark = self.marks
            for axis, index in zip("ndhw", (n, d, h, w), strict=True):
                mark = at(b, mark, b.mul(index, self.strides[axis]))
            with b.if_then(b.icmp_signed("==", b.load(mark, typ=I32), ir.Constant(I32, 0))):
                made = [self._made(here, v) for v in range(tile.vectors)]
                if self.ending is None:
                    self._store(made, (n, d, h, w))
                else:
                    self._end(self.ending, made, (n, d, h, w))

    def _made(self, here: Any, vector: int) -> list[list[Any]]:
        """The tile's 2 × 2 outputs of one vector of channels."""
        b, tile, size = self.builder, self.tile, self.tile.dtype.itemsize
        here = at(b, here, vector * tile.lanes * size)
        points = [b.load(at(b, here, b.mul(self.plane, i64(i))), typ=tile.vector, align=size) for i in range(POINTS)]
        return both(b, _at, [points[i:i + IN] for i in range(0, POINTS, IN)])

    def _store(self, made: Sequence[list[list[Any]]], indices: Sequence[Any]) -> None:
        """Into the buffer, which has room for tiles that reach over the edge."""
        b, tile, size = self.builder, self.tile, self.tile.dtype.itemsize
        target = self.target
        for axis, index in zip("ndhw", indices, strict=True):
            target = at(b, target, b.mul(index, self.plan[f"target.{axis}"]))
        for i in range(OUT):
            for j in range(OUT):
                to = at(b, target, b.add(b.mul(self.plan["buffer.h"], i64(i)), b.mul(self.plan["buffer.w"], i64(j))))
                for v, each in enumerate(made):
                    b.store(each[i][j], at(b, to, v * tile.lanes * size), align=size)

    def _end(self, ending: Ending, made: Sequence[list[list[Any]]], indices: Sequence[Any]) -> None:
        """Compute and store what the ending says, at positions that there are."""
        b, tile = self.builder, self.tile
        for i in range(OUT):
            for j in range(OUT):
                for v, each in enumerate(made):
                    number_ = i64((i * OUT + j) * tile.vectors + v)
                    b.store(each[i][j], b.gep(self.finished, [number_], source_etype=tile.vector))
        n, d, h, w = (b.add(index, first) for index, first in zip(indices, (self.n, self.d, self.h, self.w),
                                                                   strict=True))
        h, w = b.mul(h, i64(OUT)), b.mul(w, i64(OUT))
        rows = smaller(b, b.sub(self.plan["size.h"], h), i64(OUT))
        columns = smaller(b, b.sub(self.plan["size.w"], w), i64(OUT))
        with loop(b, i64(0), rows) as i, loop(b, i64(0), columns) as j:
            where = n, d, b.add(h, i), b.add(w, j)
            here = []
            for base, steps in zip(self.bases, self.steps, strict=True):
                for index, step in zip(where, steps, strict=False):
                    base = at(b, base, b.mul(index, step))
                here.append(base)
            first = b.mul(b.add(b.mul(i, i64(OUT)), j), i64(tile.vectors))
            for v in range(tile.vectors):
                value = b.load(b.gep(self.finished, [b.add(first, i64(v))], source_etype=tile.vector), typ=tile.vector)
                mask = self.mask if v == tile.vectors - 1 else None
                ending.finish(b, value, here, [each[4] for each in self.steps], i64(v * tile.lanes), tile.lanes, mask)
