"""From a correlation and the layouts of its arrays to launches: weights into panels, then blocks of positions."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

import numpy as np

from ...runtime import compilation
from ...runtime.launch import ALIGNMENT, Launch, Spec
from ..iteration_space import stretched
from ..scalar.scalar_ir import Node
from . import body as convolution_body
from . import epilogue as convolution_store
from . import input_packing, scratch_slots
from . import panel_pass as convolution_sweep
from .blocking import Cut, cut, even, region
from .epilogue import Ending
from .geometry import Correlation, Triple, triple
from .plan import CORRELATION, OPERAND, PHASE
from .register_tile import Tile, lanes_for
from .weight_panels import Weights


class Images(NamedTuple):
    """An array of images as five dimensions: strides in bytes, 0 along dimensions of extent 1."""

    dtype: np.dtype
    c: int
    n: int
    d: int
    h: int
    w: int

    @property
    def outer(self) -> tuple[int, int, int, int]:
        """Strides by n, d, h and w."""
        return self.n, self.d, self.h, self.w

    @classmethod
    def of(cls, spec: Spec, shape: tuple[int, ...]) -> Images:
        """An array that broadcasts to images of this shape."""
        n, c, *spatial = stretched(spec.shape, spec.strides, shape)
        return cls(spec.dtype, c, n, *triple(spatial, 0))

    def steps_along(self, stride: int) -> str:
        """How elements follow each other at this stride, as `loops.Operand` names it."""
        return "b" if stride == 0 else "c" if stride == self.dtype.itemsize else "s"


#: so many products at most are added up one after the other; such sums then are
LONGEST = 192
#: positions of a copy at a multiple of so many bytes would fall on the same few lines of the first cache
CROWDED = 1024


def thinned(problem: Correlation, source: Images) -> tuple[Correlation, Images]:
    """The same with only those of the source's elements that positions step on, where they see only one each.

    Not along rows that lie together in memory and are copied in blocks.
    """
    extents, steps, strides = list(problem.extents), list(problem.source_step), list(source.outer)
    for i, step in enumerate(steps):
        count = problem.grid[i]
        if i == 2 and source.c != source.dtype.itemsize:
            continue
        if step > 1 and problem.least[i] == problem.most[i] == 0 and (count - 1) * step < extents[i]:
            extents[i], steps[i] = count, 1
            strides[i + 1] *= step
    n, d, h, w = strides
    return (problem._replace(extents=triple(extents, 1), source_step=triple(steps, 1)),
            source._replace(n=n, d=d, h=h, w=w))


def joined(problem: Correlation, arrays: Sequence[Images]) -> tuple[Correlation, list[Images]]:
    """The same with dimensions made one that follow each other in all arrays, if positions see only themselves."""
    ones = (1, 1, 1)
    if not (problem.kernel == problem.source_step == problem.target_step == ones
            and problem.least == problem.most == (0, 0, 0) and problem.extents == problem.sizes):
        return problem, list(arrays)
    extents = [problem.batch, *problem.sizes]
    strides = [list(each.outer) for each in arrays]
    for axis in (2, 1, 0):
        if extents[axis] == 1:
            continue
        if extents[3] == 1:
            for each in strides:
                each[3] = each[axis]
        elif any(each[axis] != extents[3] * each[3] for each in strides):
            break
        for each in strides:
            each[axis] = 0
        extents[3] *= extents[axis]
        extents[axis] = 1
    sizes = triple(extents[1:], 1)
    phase = problem.phases[0]._replace(counts=sizes)
    return (problem._replace(batch=extents[0], extents=sizes, sizes=sizes, phases=(phase,)),
            [Images(each.dtype, each.c, *outer) for each, outer in zip(arrays, strides, strict=True)])


def aligned(size: int) -> int:
    """The next multiple of the alignment."""
    return -(-size // ALIGNMENT) * ALIGNMENT


class Correlating:
    """A correlation made into launches.

    Args:
        problem: what is computed.
        nodes: expressions of the sums, one for each output.
        source, operands: the arrays; operands are outputs, then what else the expressions take.
        apart: whether each channel is convolved alone: the problem is then one group of as many channels.
    """

    def __init__(self, problem: Correlation, nodes: tuple[Node, ...], source: Images, operands: Sequence[Images],
                 apart: bool) -> None:
        problem, source = thinned(problem, source)
        problem, (self.source, *self.operands) = joined(problem, [source, *operands])
        self.problem, self.nodes, self.apart = problem, nodes, apart
        self.dtype = source.dtype
        self.size = size = source.dtype.itemsize
        self.channels = problem.width if apart else problem.depth * problem.groups
        self.lanes = lanes_for(problem.width, self.dtype)
        self.count = len(nodes)
        self.direct = problem.width > 1 and all(each.c == each.dtype.itemsize for each in self.operands[:self.count])
        # vectors of channels that end in the middle would be read past an array's end
        self.copied = not problem.inside or not (source.c == size or self.channels == 1) or (
            apart and problem.width % self.lanes != 0)
        self.cut = self._cut()
        self.tile = Tile(self.dtype, self.cut.tile.rows, self.cut.tile.columns, self.cut.tile.vectors, self.lanes,
                         apart)
        self.pixel = self.tile.vectors * self.lanes * size  # of the buffer
        self.span = [most - least + 1 for least, most in zip(problem.least, problem.most, strict=True)]
        self._layout()

    def _cut(self) -> Cut:
        return cut(self.problem, self.channels * self.size, self.size, self.lanes, self.apart)

    @property
    def part(self) -> list[int]:
        """Positions along n, d, h and w that a part has at most."""
        every = zip((self.problem.batch, *self.problem.grid), self.cut.part, strict=True)
        return [min(a, b + self.cut.least * (i == 3)) for i, (a, b) in enumerate(every)]

    def _layout(self) -> None:
        """Distances in the source or its copy, and in the target or the buffer."""
        problem, cut_ = self.problem, self.cut
        d, h, w = cut_.block[1:]
        self.counts = problem.grid if cut_.deep else (d, h, min(problem.grid[2], w + cut_.least))
        self.copy_bytes = 0
        self.pitches = self.source.outer
        if self.copied:
            sizes = [region(*each) for each in zip(self.counts, problem.source_step, self.span, strict=True)]
            pitch = self.channels * self.size
            if pitch % CROWDED == 0:
                pitch += ALIGNMENT
            self.pitches = (prod(sizes) * pitch, sizes[1] * sizes[2] * pitch, sizes[2] * pitch, pitch)
            images = problem.batch if cut_.deep else cut_.block[0]
            self.copy_bytes = aligned(images * self.pitches[0] + ALIGNMENT)
        spread = problem.target_step
        if self.direct:
            self.buffer, self.buffer_bytes = (0, 0, 0, 0), 0
            self.target = self.operands[0].outer
        else:
            images, depth, height, width = self.part
            h = self._row(width * spread[2]) * self.pixel
            d = h * height * spread[1]
            n = d * depth * spread[0]
            self.target = self.buffer = (n, d, h, self.pixel)
            # blocks that end with the last position read some more
            self.buffer_bytes = aligned(n * images + self.lanes * self.pixel)

    def _row(self, most: int) -> int:
        """Positions of a row of the buffer, which parts have `most` of."""
        return self.problem.sizes[2] if self.rowed else most

    @property
    def rowed(self) -> bool:
        """Whether parts have whole rows."""
        width = self.problem.grid[2]
        return self.cut.blocks[3] == 1 and self.cut.part[3] + self.cut.least >= width

    @property
    def flat(self) -> bool:
        """Whether rows follow each other in the buffer and in all operands."""
        width = self.problem.sizes[2]
        return self.rowed and all(each.h == width * each.w for each in self.operands)

    def _merged(self) -> bool:
        """Whether neighbouring taps' channels lie together in the source."""
        if self.apart or self.problem.groups > 1 or self.pitches[3] != self.channels * self.size:
            return False
        return all(b[2] - a[2] == 1 for phase in self.problem.phases
                   for a, b in list(zip(phase.offsets, phase.offsets[1:], strict=False))[:phase.along[2] - 1])

    def _offset(self, tap: Triple) -> int:
        return sum((each - least) * pitch
                   for each, least, pitch in zip(tap, self.problem.least, self.pitches[1:], strict=True))

    def _phases(self) -> tuple[list[int], list[int], list[int]]:
        """Words of the phases; offsets and lengths of runs, which follow those; the order of taps in the panels."""
        table: list[int] = []
        after = CORRELATION.end + len(self.problem.phases) * len(PHASE)
        offsets: list[int] = []
        order: list[int] = []
        merged, depth = self._merged(), 1 if self.apart else self.problem.depth
        for phase in self.problem.phases:
            run = phase.along[2] if merged else 1
            starts = phase.offsets[::run] if run else ()
            target = sum(a * b for a, b in zip(phase.start, self.target[1:], strict=True))
            pieces = _pieces(run * depth)
            fold = max(1, LONGEST // pieces[0][1]) if pieces else 1
            table += [*phase.counts, *phase.start, target, len(starts) * len(pieces), fold, after + len(offsets),
                      len(order) * depth]
            offsets += [word for tap in starts for before, length in pieces
                        for word in (self._offset(tap) + before * self.size, length)]
            order += phase.kernel
        return table, offsets, order

    def ending(self) -> Ending | None:
        """What is done with the sums; None where a tile's sums are what is stored."""
        if self.direct and len(self.nodes) == 1 and self.nodes[0].op == "input" and self.nodes[0].const == 0:
            return None
        return self._ending()

    def _ending(self) -> Ending:
        steps = "".join(each.steps_along(each.c if self.direct else each.w) for each in self.operands)
        return Ending(self.nodes, tuple(each.dtype for each in self.operands), steps, self.dtype)

    def launches(self, w: Spec, lane: int, group: int, channel: int) -> list[Launch]:
        """The launches: of weights with strides by the target's channel, by group and by the source's channel."""
        problem, cut_ = self.problem, self.cut
        phases, offsets, order = self._phases()
        weights = self._weights(w, lane, group, channel, order)
        taps, depth = weights.taps, weights.depth
        chunks = prod(cut_.blocks) * cut_.splits
        scratch, source = len(self.operands) + 2, self.count
        # scratch memory: slots' header; weights' panels, or the copy; slots of a copy or a panel, and a buffer
        shared_at = scratch_slots.HEADER
        panel_bytes = aligned(self.tile.bytes * len(taps) * depth)
        first = panel_bytes if cut_.deep else self.copy_bytes
        slot = first + self.buffer_bytes
        slots = scratch_slots.count(chunks) if slot else 0
        slots_at = aligned(shared_at + (self.copy_bytes if cut_.deep else weights.bytes))
        about = input_packing.about(problem.extents, self.source.outer, self.source.c, self.channels,
                                         self.pitches)
        values = self._words(weights, slots, slots_at, slot)
        values |= {"source": source, "scratch": scratch, "panels.at": shared_at, "target": 0, "buffer.at": first,
                   "packed.at": 0, "fill": 0}
        operands_at = CORRELATION.end + len(phases) + len(offsets)
        about_at = operands_at + len(self.operands) * OPERAND
        values |= {"phases": len(problem.phases), "phases.at": CORRELATION.end, "operands.at": operands_at,
                   "about.at": about_at, "pack": 0, "pack.at": about_at + len(about)}
        before: list[Launch] = [scratch_slots.opening(scratch, slots)] if slots else []
        packing: tuple[int, ...] = ()
        if cut_.deep:
            values["pack"], packing = weights.library("pack").symbol("panel"), weights.words()
            if self.copied:
                sizes = [region(*each) for each in zip(self.counts, problem.source_step, self.span, strict=True)]
                before.append(input_packing.copying(self._fill(), source, scratch, shared_at, problem.least, sizes,
                                                         problem.batch, about))
                values |= {"source": scratch, "read.first": shared_at}
        else:
            before.append(weights.launch("pack", source + 1, scratch, shared_at))
            if self.copied:
                values["fill"] = self._fill().symbol("fill")
        body = convolution_body.library()
        plan = CORRELATION.plan(values, *phases, *offsets, *self._strides(), *about, *packing)
        return [*before, Launch(body, body.symbol("body"), chunks, plan, 0, slots_at + slots * slot)]

    def _weights(self, w: Spec, lane: int, group: int, channel: int, order: Sequence[int]) -> Weights:
        """The weights, whose taps are met in this order."""
        # a tap that no position meets stands behind all others
        taps = [sum(i * s for i, s in zip(index, w.strides[2:], strict=True)) for index in np.ndindex(w.shape[2:])]
        place = {tap: i for i, tap in enumerate([*order, *sorted(set(range(len(taps))) - set(order))])}
        return Weights(self.dtype, self.lanes, self.problem.width, 1 if self.apart else self.problem.depth,
                       self.problem.groups, lane, group, channel, taps, [place[i] for i in range(len(taps))],
                       self.tile.vectors)

    def _sweep(self, tile: Tile, masked: bool, ending: Ending | None) -> compilation.Word:
        """The code of a panel's sums."""
        return convolution_sweep.library(tile, masked, ending).symbol("sweep")

    def _words(self, weights: Weights, slots: int, slots_at: int, slot: int) -> dict[str, compilation.Word]:
        problem, cut_, tile = self.problem, self.cut, self.tile
        panels = -(-weights.vectors // tile.vectors)
        ending = self.ending()
        last = tile._replace(vectors=cut_.tile.last)
        masked = self.direct and problem.width % self.lanes != 0
        within = ending if self.direct else None
        values: dict[str, compilation.Word] = {
            "batch": problem.batch, "jobs": problem.groups * panels, "splits": cut_.splits,
            "share": -(-problem.groups * panels // cut_.splits), "panels": panels,
            "panel.bytes": tile.bytes * len(weights.taps) * weights.depth,
            "group.bytes": weights.bytes // problem.groups, "panel.channels": tile.vectors * self.lanes,
            "width": problem.width, "least.part": cut_.least, "slots": slots, "slots.at": slots_at, "slot.bytes": slot,
            "flush": 0, "ahead": convolution_store.ahead().symbol("ahead"),
            "sweep": self._sweep(tile, False, within) if panels > 1 else 0,
            "sweep.last": self._sweep(last, masked, within),
            "from.group": 0 if self.apart else problem.depth * self.size,
            "from.panel": tile.bytes if self.apart else 0,
            "read.first": sum(a * b for a, b in zip(problem.least, self.pitches[1:], strict=True)),
            "target.c": self.size, "target.size": self.operands[0].dtype.itemsize, "flat": int(self.flat),
            "weights": self.count + 1, "making": 0, "making.at": 0, "points": 0, "sums": 0, "inside": 0, "points.at": 0,
            "sums.at": 0, "marks.at": 0, "plainly.at": 0,
        }
        if not self.direct:
            assert ending is not None
            library = convolution_store.library(ending, self.dtype, self.lanes)
            values["flush"] = library.symbol("flush")
        steps, spread = (1, *problem.source_step), (1, *problem.target_step)
        for i, axis in enumerate("ndhw"):
            values[f"block.{axis}"], values[f"part.{axis}"] = cut_.block[i], cut_.part[i]
            values[f"from.{axis}"] = values[f"read.{axis}"] = self.pitches[i] * steps[i]
            values[f"target.{axis}"] = self.target[i] * spread[i]
            values[f"buffer.{axis}"] = self.buffer[i]
        for i, axis in enumerate("dhw"):
            values |= {f"grid.{axis}": problem.grid[i], f"blocks.{axis}": cut_.blocks[i + 1],
                       f"step.{axis}": problem.source_step[i], f"least.{axis}": problem.least[i],
                       f"span.{axis}": self.span[i], f"spread.{axis}": spread[i + 1],
                       f"size.{axis}": problem.sizes[i]}
        return values

    def _strides(self) -> list[int]:
        """The operands'."""
        return [word for each in self.operands for word in (*each.outer, each.c)]

    def _fill(self) -> compilation.Library:
        """The code that copies the source."""
        kind = input_packing.kind(self.channels, self.source.c, self.source.w, self.size)
        return input_packing.library(self.dtype, kind)


def _pieces(length: int) -> list[tuple[int, int]]:
    """Where pieces of a run begin and how long they are: as few as can be of no more than LONGEST, and nearly equal."""
    if not length:
        return []
    size = even(length, LONGEST)
    return [(start, min(size, length - start)) for start in range(0, length, size)]
