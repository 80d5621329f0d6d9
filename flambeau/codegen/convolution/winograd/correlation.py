"""Correlations of kernels of 3 × 3 positions by Winograd's sums, made into launches.

Positions are tiles of 2 × 2 outputs, which take 4 multiplications an output and pair of channels instead of 9, and
additions for each channel of the source and of the target. Measured against float64 with 32 to 512 channels, the error
is that of nine products an output, or smaller: there are fewer to add up.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from ....runtime import compilation
from ....runtime.launch import ALIGNMENT, Launch, Spec
from ...scalar.scalar_ir import Node
from .. import body as convolution_body
from .. import input_packing, scratch_slots
from ..blocking import Cut, cut
from ..correlation import CROWDED, Correlating, Images, aligned
from ..epilogue import Ending
from ..geometry import Correlation, Phase
from ..plan import CORRELATION, OPERAND
from ..register_tile import Tile
from . import filter_transform as winograd_taps
from . import panel_pass as convolution_winograd_sweep
from . import tile_transform as winograd_points
from .tile_transform import IN, LIST, OUT, POINTS, TAPS

#: what takes the time of a multiplication and addition of vectors: making a point's element, or a weight's; finishing
#: a sum's; and by how much products are slower that are cut into points
SEEN, MADE, FINISHED, SLOWER = 6.0, 16.0, 5.0, 1.2
#: fewer channels than this are left to sums
CHANNELS = 16


def fits(problem: Correlation, dtype: np.dtype) -> bool:
    """Whether a correlation is one of 3 × 3 neighbours, in float32."""
    ones = (1, 1, 1)
    return (dtype == np.float32 and problem.kernel == (1, TAPS, TAPS)
            and problem.source_step == problem.target_step == ones and all(problem.grid)
            and all(b - a == size - 1 for a, b, size in zip(problem.least, problem.most, problem.kernel, strict=True)))


def pays(problem: Correlation) -> bool:
    """Whether Winograd's sums are the quicker way."""
    if problem.depth < CHANNELS or problem.width < CHANNELS:
        return False
    tiles = problem.batch * prod(tiled(problem).grid)
    pairs = problem.depth * problem.width
    usual = problem.batch * prod(problem.grid) * TAPS * TAPS * pairs
    sums = tiles * POINTS * (pairs * SLOWER + SEEN * problem.depth + FINISHED * problem.width) + MADE * POINTS * pairs
    return sums < usual


def tiled(problem: Correlation) -> Correlation:
    """The same with tiles for positions: 16 products of points instead of 9 taps."""
    depth, height, width = problem.grid
    counts = depth, -(-height // OUT), -(-width // OUT)
    phases = tuple(Phase((0, 0, 0), counts, (problem.least,), (i,), (1, 1, 1)) for i in range(POINTS))
    step = (1, OUT, OUT)
    d, h, w = problem.least
    return problem._replace(kernel=(1, IN, IN), source_step=step, target_step=step, phases=phases,
                            most=(d, h + IN - 1, w + IN - 1))


def apart(size: int) -> int:
    """As many bytes or more, so that what follows in such distances does not fall on the same lines of a cache."""
    lines = -(-size // ALIGNMENT)
    return (lines + 1 - lines % 2) * ALIGNMENT


class Winograd(Correlating):
    """A correlation that `fits`, made into launches; arguments are those of `Correlating`."""

    def __init__(self, problem: Correlation, nodes: tuple[Node, ...], source: Images,
                 operands: Sequence[Images]) -> None:
        self.sums = Correlating(problem, nodes, source, operands, False)
        super().__init__(tiled(problem), nodes, source, operands, False)
        self._as_here(self.sums)

    def _cut(self) -> Cut:
        # a tile's 2 × 2 elements of the source become 16, which may lie in the third cache: they are read in order
        bytes_ = self.channels * self.size * (1 + POINTS // OUT ** 2) // 2
        return cut(self.problem, bytes_, self.size, self.lanes, False, True)

    def _row(self, most: int) -> int:
        return self.problem.grid[2] * OUT if self.rowed else most

    @property
    def flat(self) -> bool:
        return super().flat and self.problem.sizes[2] % OUT == 0

    def _as_here(self, sums: Correlating) -> None:
        """Have the correlation, as it is defined, find and leave everything where this one does."""
        sums.pitches, sums.target, sums.buffer = self.pitches, self.target, self.buffer
        sums.tile = self.tile._replace(rows=OUT, columns=1)
        sums.cut = sums.cut._replace(tile=self.cut.tile)

    def _layout(self) -> None:
        super()._layout()
        counts = self.cut.block[0], *self.counts
        pitch = aligned(self.channels * self.size)
        if pitch % CROWDED == 0:
            pitch += ALIGNMENT
        strides = [pitch]
        for count in reversed(counts[1:]):
            strides.insert(0, strides[0] * count)
        self.strides = strides
        behind = self.tile.columns  # are computed, too, where a run of tiles ends
        self.point_bytes = apart(strides[0] * counts[0])
        self.points_bytes = (POINTS + 1) * self.point_bytes + aligned(behind * pitch)
        self.sum_bytes = apart(prod(self.part) * self.tile.bytes)
        self.sums_bytes = POINTS * self.sum_bytes + aligned(behind * self.tile.bytes)

    def ending(self) -> Ending | None:
        return self._ending()

    def _sweep(self, tile: Tile, masked: bool, ending: Ending | None) -> compilation.Word:
        return convolution_winograd_sweep.library(tile, masked, ending).symbol("sweep")

    def launches(self, w: Spec, lane: int, group: int, channel: int) -> list[Launch]:
        problem, cut_, sums = self.problem, self.cut, self.sums
        phases, offsets, order = sums._phases()
        weights = self._weights(w, lane, group, channel, order)
        scratch, source = len(self.operands) + 2, self.count
        jobs = weights.panels * problem.groups
        # scratch memory: slots' header; panels of taps, of points, and their marks; slots of a copy, points, sums of
        # a part, and a buffer
        panels_at = scratch_slots.HEADER
        made_at = panels_at + aligned(weights.bytes)
        made_bytes = weights.bytes // TAPS ** 2 * POINTS
        marks_at = made_at + aligned(made_bytes)
        slots_at = marks_at + aligned(8 * jobs)
        sums_at = self.copy_bytes + self.points_bytes
        buffer_at = sums_at + self.sums_bytes
        slot = buffer_at + self.buffer_bytes
        chunks = prod(cut_.blocks) * cut_.splits
        slots = scratch_slots.count(chunks)
        about = input_packing.about(problem.extents, self.source.outer, self.source.c, self.channels,
                                         self.pitches)
        places = {"source": source, "scratch": scratch, "target": 0, "buffer.at": buffer_at, "packed.at": 0, "pack": 0,
                  "fill": self._fill().symbol("fill") if self.copied else 0}
        operands_at = CORRELATION.end
        about_at = operands_at + len(self.operands) * OPERAND
        making_at = about_at + len(about)
        plainly_at = making_at + len(LIST)
        values = self._words(weights, slots, slots_at, slot) | places
        values |= {
            "panels.at": made_at, "panel.bytes": self.tile.bytes * POINTS * problem.depth,
            "group.bytes": made_bytes // problem.groups, "phases": 0, "phases.at": 0, "operands.at": operands_at,
            "about.at": about_at, "pack.at": 0, "plainly.at": plainly_at,
            "making": winograd_points.points(self.dtype, self.lanes, False).symbol("points"),
            "making.at": making_at, "points": self.point_bytes, "sums": self.sum_bytes, "inside": problem.depth,
            "points.at": self.copy_bytes, "sums.at": sums_at, "marks.at": marks_at,
        }
        for axis, stride in zip("ndhw", self.strides, strict=True):
            values[f"from.{axis}"] = stride
        plain = sums._words(weights, slots, slots_at, slot) | places
        plain |= {"panels.at": panels_at, "phases": len(sums.problem.phases), "phases.at": CORRELATION.end,
                  "operands.at": CORRELATION.end + len(phases) + len(offsets), "about.at": 0, "pack.at": 0}
        body = convolution_body.library()
        making = *(values[f"read.{axis}"] for axis in "ndhw"), *self.strides, self.point_bytes, self.channels
        plan = (*CORRELATION.plan(values, *self._strides(), *about), *making,
                *CORRELATION.plan(plain, *phases, *offsets, *self._strides()))
        return [
            scratch_slots.opening(scratch, slots), weights.launch("pack", source + 1, scratch, panels_at),
            winograd_taps.weights(self.dtype, self.lanes, scratch, panels_at, made_at, marks_at,
                                              problem.depth, weights.vectors, self.tile.vectors, problem.groups),
            Launch(body, body.symbol("body"), chunks, plan, 0, slots_at + slots * slot)]
