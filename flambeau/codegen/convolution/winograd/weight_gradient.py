"""A weight's gradient of 3 × 3 positions by Winograd's sums, made into launches.

Sums of points over tiles are those of a convolution of 1 × 1 with 16 groups, one for each point, whose positions are
tiles: images and the output's gradient are copied, made into points, and added up as `convolution_gradient_code` does.
"""

from __future__ import annotations

from math import prod

import numpy as np

from ....kernels import threads as limits
from ....runtime import compilation
from ....runtime.launch import ALIGNMENT, Launch, Spec
from .. import scratch_slots, weight_gradient_code
from ..blocking import CHUNKS, SMALLEST, finer, nested, region
from ..correlation import CROWDED, Images, aligned
from ..geometry import Correlation
from ..plan import GRADIENT
from ..register_tile import Tile, choose, lanes_for
from ..weight_gradient import FEW, HEAVY, PIECES, Gradient, Reading
from ..weight_panels import Weights
from . import filter_transform as winograd_taps
from . import tile_transform as winograd_points
from .correlation import FINISHED, SEEN, SLOWER, apart, tiled
from .tile_transform import IN, LIST, OUT, POINTS, TAPS

#: bytes of a block's points: a core's second cache, in which they are met again for every tile of sums
BLOCK = 1 << 19
#: fewer channels than this, and fewer tiles, are left to sums; a piece has so many tiles or more; and what taps made of
#: points cost, in tiles
CHANNELS, TILES, PIECE, MADE = 16, 192, 64, 64


def pays_back(problem: Correlation) -> bool:
    """Whether Winograd's sums are the quicker way, for a problem that `fits` them."""
    if problem.groups > 1 or problem.depth < CHANNELS or problem.width < CHANNELS:
        return False
    tiles = problem.batch * prod(tiled(problem).grid)
    pairs = problem.depth * problem.width
    usual = problem.batch * prod(problem.grid) * TAPS * TAPS * pairs
    sums = POINTS * (tiles * (pairs * SLOWER + SEEN * problem.depth + FINISHED * problem.width) + MADE * pairs)
    return tiles >= TILES and sums < usual


class WinogradGradient:
    """The gradient of a convolution's weight, for a problem for which `pays_back` is true.

    Args:
        problem: the convolution.
        x, gy: its input and its output's gradient.
    """

    def __init__(self, problem: Correlation, x: Images, gy: Images) -> None:
        self.plain = Gradient(problem, x, gy, False)
        self.problem = tiles = tiled(problem)
        self.dtype, self.size = x.dtype, x.dtype.itemsize
        self.lanes = lanes_for(problem.width, x.dtype)
        self.vectors = -(-problem.width // self.lanes)
        choice = choose(problem.depth, 1, self.vectors, False)
        self.tile = Tile(self.dtype, 1, choice.columns, choice.vectors, self.lanes)
        self.last = choice.last
        self.panels = -(-self.vectors // choice.vectors)
        self.column_jobs = -(-problem.depth // choice.columns)
        self.jobs = POINTS * self.panels * self.column_jobs
        self._cut()
        n, *counts = self.block
        seen = tuple(map(region, counts, (1, OUT, OUT), (1, IN, IN)))
        self.x = Reading(x, problem.depth, tiles.extents, True, seen, n)
        positions = tuple(count * step for count, step in zip(counts, (1, OUT, OUT), strict=True))
        self.gy = Reading(gy, problem.width, tiles.sizes, True, positions, n)
        self.of_x = self._layout(problem.depth)
        self.of_gy = self._layout(self.vectors * self.lanes)

    def _cut(self) -> None:
        """Blocks of tiles, pieces of blocks, and how chunks share both."""
        problem = self.problem
        every = (problem.batch, *problem.grid)
        tiles = BLOCK // (POINTS * (problem.depth + self.vectors * self.lanes) * self.size)
        sums = POINTS * self.vectors * self.lanes * problem.depth * self.size
        worth = max(1, min(problem.multiplications // SMALLEST, prod(every) // PIECE))
        pieces = min(worth, FEW if sums > HEAVY else CHUNKS, max(1, PIECES // sums))
        block = finer(every, nested(every, 16, lambda d, h, w: max(1, tiles // (d * h * w))), pieces)
        self.block = (block[0], block[1], block[2], block[3])
        self.blocks = tuple(-(-a // b) for a, b in zip(every, block, strict=True))
        count = prod(self.blocks)
        self.piece = -(-count // min(count, pieces))
        self.pieces = -(-count // self.piece)
        # only how chunks share the tiles of sums may depend on how many threads there are
        self.splits = min(self.jobs, -(-min(worth, max(FEW, limits.count())) // self.pieces))

    def _layout(self, channels: int) -> list[int]:
        """Bytes between tiles' points along n, d, h and w, between points, and of all of them."""
        pitch = aligned(channels * self.size)
        if pitch % CROWDED == 0:
            pitch += ALIGNMENT
        strides = [pitch]
        for count in reversed(self.block[1:]):
            strides.insert(0, strides[0] * count)
        plane = apart(strides[0] * self.block[0])
        return [*strides, plane, (POINTS + 1) * plane + ALIGNMENT]

    def _list(self, read: Reading, layout: list[int], channels: int) -> tuple[int, ...]:
        """What making points is told."""
        n, d, h, w = read.pitches
        found = (n, d, h * OUT, w * OUT, *layout[:5], channels)
        assert len(found) == len(LIST)
        return found

    def launches(self, w: Spec, lane: int, group: int, channel: int) -> list[Launch]:
        """The launches, for a gradient laid out as `w` with these strides; pointers are that, x, gy, scratch."""
        problem, tile = self.problem, self.tile
        taps = [sum(i * s for i, s in zip(index, w.strides[2:], strict=True)) for index in np.ndindex(w.shape[2:])]
        weights = Weights(self.dtype, self.lanes, problem.width, problem.depth, 1, lane, group, channel, taps,
                          range(len(taps)), tile.vectors)
        usual = self.plain.launches(w, lane, group, channel)
        point_bytes = self.vectors * self.lanes * problem.depth * self.size
        piece_bytes = aligned(POINTS * point_bytes)
        # scratch memory: slots' header; pieces' sums of points; panels of taps; slots of copies and points; marks,
        # which stay while it is used again
        pieces_at = scratch_slots.HEADER
        panels_at = pieces_at + self.pieces * piece_bytes
        slots_at = panels_at + aligned(weights.bytes)
        factor_at = self.x.bytes
        points_at = factor_at + self.gy.bytes
        points_factor_at = points_at + self.of_x[-1]
        slot = points_factor_at + self.of_gy[-1]
        slots = scratch_slots.count(self.pieces * self.splits)
        marks_at = max(slots_at + slots * slot, *(aligned(each.scratch) for each in usual))
        scratch = marks_at + aligned(8 * self.panels)
        about, about_factor = self.x.about, self.gy.about
        offsets_at = GRADIENT.end
        about_at = offsets_at + 1
        making_at = about_at + len(about) + len(about_factor)
        values: dict[str, compilation.Word] = {
            "batch": problem.batch, "blocks": prod(self.blocks), "piece": self.piece, "jobs": self.jobs,
            "share": -(-self.jobs // self.splits), "splits": self.splits, "panels": self.panels, "runs.jobs": 1,
            "columns.jobs": self.column_jobs, "runs": 1, "length": problem.depth,
            "panel.bytes": tile.bytes * problem.depth, "group.bytes": point_bytes, "source": 1, "factor": 2,
            "scratch": 3, "slots": slots, "slots.at": slots_at, "slot.bytes": slot, "pieces.at": pieces_at,
            "piece.bytes": piece_bytes, "factor.at": factor_at, "fill": self.x.fill.symbol("fill"),
            "fill.factor": self.gy.fill.symbol("fill"),
            "sweep": weight_gradient_code.library(tile).symbol("sum"),
            "sweep.last": weight_gradient_code.library(tile._replace(vectors=self.last)).symbol("sum"),
            "from.group": self.of_x[4], "from.panel": 0, "from.first": 0, "from.column": 0,
            "factor.group": self.of_gy[4], "factor.panel": tile.bytes, "factor.first": 0, "offsets.at": offsets_at,
            "about.at": about_at, "about.factor.at": about_at + len(about), "spread.d": 1, "spread.h": OUT,
            "spread.w": OUT, "making": self._points(False), "making.at": making_at, "points.at": points_at,
            "making.factor": self._points(True), "making.factor.at": making_at + len(LIST),
            "points.factor.at": points_factor_at,
        }
        for i, axis in enumerate("ndhw"):
            values |= {f"block.{axis}": self.block[i], f"blocks.{axis}": self.blocks[i],
                       f"from.{axis}": self.of_x[i], f"factor.{axis}": self.of_gy[i]}
        for i, axis in enumerate("dhw"):
            values |= {f"grid.{axis}": problem.grid[i], f"step.{axis}": problem.source_step[i],
                       f"least.{axis}": problem.least[i], f"span.{axis}": (1, IN, IN)[i]}
        plan = GRADIENT.plan(values, 0, *about, *about_factor, *self._list(self.x, self.of_x, problem.depth),
                             *self._list(self.gy, self.of_gy, problem.width))
        body = weight_gradient_code.body()
        return [
            scratch_slots.opening(3, slots),
            Launch(body, body.symbol("body"), self.pieces * self.splits, plan, 0, scratch),
            winograd_taps.taps(self.dtype, self.lanes, 3, pieces_at, panels_at, marks_at, self.pieces, piece_bytes,
                               point_bytes, problem.depth, self.vectors, tile.vectors),
            weights.launch("combine", 0, 3, panels_at),
            *(winograd_taps.if_marked(each, 3, marks_at, self.panels) for each in usual)]

    def _points(self, transposed: bool) -> compilation.Word:
        return winograd_points.points(self.dtype, self.lanes, transposed).symbol("points")
