"""A weight's gradient made into launches: sums over pieces of the positions, then their combination.

How positions fall into pieces depends on sizes alone, so that sums do not depend on how many threads there are.
"""

from __future__ import annotations

from math import prod

import numpy as np

from ...kernels import threads as limits
from ...runtime import compilation
from ...runtime.launch import ALIGNMENT, Launch, Spec
from . import input_packing, scratch_slots, weight_gradient_code
from .blocking import CHUNKS, EACH, SMALLEST, finer, nested, region
from .correlation import CROWDED, Images, aligned, joined, thinned
from .geometry import Correlation
from .plan import GRADIENT
from .register_tile import Tile, choose, lanes_for
from .weight_panels import Weights

#: bytes of a block's source and output's gradient: a part of a core's second cache; and where the sums, which are met
#: again for every block, have more bytes than HEAVY
BLOCK, LARGE_BLOCK = 1 << 19, 1 << 20
#: bytes of all pieces' sums, at most, unless there is only one; how many pieces there are of sums of more than so many
#: bytes, which are met again for every block
PIECES, HEAVY, FEW = 1 << 22, 1 << 18, 4


class Reading:
    """One of the two arrays that are read: where it lies, or its copy, channels last."""

    def __init__(self, images: Images, channels: int, extents: tuple[int, ...], copied: bool, whole: tuple[int, ...],
                 count: int) -> None:
        """`whole` are the spatial sizes of a copy, of `count` images."""
        self.images, self.channels, self.extents, self.copied = images, channels, extents, copied
        self.pitches, self.bytes = images.outer, 0
        self.size = images.dtype.itemsize
        if copied:
            pitch = channels * self.size
            if pitch % CROWDED == 0:
                pitch += ALIGNMENT
            self.pitches = (prod(whole) * pitch, whole[1] * whole[2] * pitch, whole[2] * pitch, pitch)
            # vectors may reach past the last channel
            self.bytes = aligned(count * self.pitches[0] + ALIGNMENT)

    @property
    def about(self) -> tuple[int, ...]:
        return input_packing.about(self.extents, self.images.outer, self.images.c, self.channels, self.pitches)

    @property
    def fill(self) -> compilation.Library:
        kind = input_packing.kind(self.channels, self.images.c, self.images.w, self.size)
        return input_packing.library(self.images.dtype, kind)


class Gradient:
    """The gradient of a convolution's weight.

    Args:
        problem: the convolution.
        x, gy: its input and its output's gradient.
        apart: whether each channel is convolved alone: the problem is then one group of as many channels.
    """

    def __init__(self, problem: Correlation, x: Images, gy: Images, apart: bool) -> None:
        problem, x = thinned(problem, x)
        self.problem, (x, gy) = joined(problem, [x, gy])
        problem = self.problem
        self.apart, self.dtype, self.size = apart, x.dtype, x.dtype.itemsize
        self.channels = problem.width if apart else problem.depth * problem.groups
        self.lanes = lanes_for(problem.width, self.dtype)
        self.span = tuple(most - least + 1 for least, most in zip(problem.least, problem.most, strict=True))
        ragged = problem.width % self.lanes != 0
        x_copied = not problem.inside or not (x.c == self.size or self.channels == 1) or (apart and ragged)
        gy_copied = ragged or gy.c != self.size
        pitch = self.channels * self.size
        close = pitch % CROWDED != 0 if x_copied else x.w == pitch
        self.merged = not apart and problem.groups == 1 and self.span[2] == problem.kernel[2] and close
        self._cut(x_copied or gy_copied)
        counts = problem.grid if self.shared else self.block[1:]
        images = problem.batch if self.shared else self.block[0]
        seen = tuple(map(region, counts, problem.source_step, self.span))
        self.seen, self.counts = seen, counts
        self.x = Reading(x, self.channels, problem.extents, x_copied, seen, images)
        self.gy = Reading(gy, problem.width * problem.groups, problem.grid, gy_copied, tuple(counts), images)

    def _cut(self, copied: bool) -> None:
        """Blocks of positions, pieces of blocks, tiles of sums, and how chunks share both."""
        problem, size = self.problem, self.size
        taps = prod(problem.kernel)
        row = problem.kernel[2] if self.merged or self.apart else 1
        self.runs = taps // row
        self.length = row * (1 if self.apart else problem.depth)
        vectors = -(-problem.width // self.lanes)
        choice = choose(self.length, self.runs, vectors, self.apart)
        self.tile = Tile(self.dtype, choice.rows, choice.columns, choice.vectors, self.lanes, self.apart)
        self.last = choice.last
        self.panels = -(-vectors // choice.vectors)
        self.run_jobs, self.column_jobs = -(-self.runs // choice.rows), -(-self.length // choice.columns)
        self.jobs = problem.groups * self.panels * self.run_jobs * self.column_jobs
        every = (problem.batch, *problem.grid)
        channels = (self.channels + problem.width * problem.groups) * size
        sums = problem.groups * vectors * self.lanes * self.length * self.runs * size
        bytes_ = LARGE_BLOCK if sums > HEAVY else BLOCK

        def fits(*counts: int) -> int:
            return max(1, bytes_ // max(1, prod(map(region, counts, problem.source_step, self.span)) * channels))

        worth = max(1, problem.multiplications // SMALLEST)
        # pieces take memory, but so would copies that chunks share
        copies = (prod(problem.extents) * self.channels + prod(problem.grid) * problem.width * problem.groups)
        most = max(PIECES, problem.batch * copies * size // 2 if copied else 0)
        pieces = min(worth, FEW if sums > HEAVY else CHUNKS, max(1, most // max(1, sums)))
        block = finer(every, nested(every, 64, fits), pieces)
        self.block = (block[0], block[1], block[2], block[3])
        self.blocks = tuple(max(1, -(-a // b)) for a, b in zip(every, block, strict=True))
        count = prod(self.blocks)
        self.piece = -(-count // min(count, pieces))
        self.pieces = -(-count // self.piece)
        # only how chunks share the tiles may depend on how many threads there are
        self.splits = min(self.jobs, -(-min(worth, max(FEW, EACH * limits.count())) // self.pieces))
        self.shared = copied and self.splits > 1

    def launches(self, w: Spec, lane: int, group: int, channel: int) -> list[Launch]:
        """The launches, for a gradient laid out as `w` with these strides; pointers are that, x, gy, scratch."""
        problem, size, tile = self.problem, self.size, self.tile
        taps = [sum(i * s for i, s in zip(index, w.strides[2:], strict=True)) for index in np.ndindex(w.shape[2:])]
        depth = 1 if self.apart else problem.depth
        weights = Weights(self.dtype, self.lanes, problem.width, depth, problem.groups, lane, group, channel, taps,
                          range(len(taps)), tile.vectors)
        pieces_at = scratch_slots.HEADER
        slot = 0 if self.shared else self.x.bytes + self.gy.bytes
        slots = scratch_slots.count(self.pieces * self.splits) if slot else 0
        piece_bytes = aligned(weights.bytes)
        copies_at = pieces_at + self.pieces * piece_bytes
        slots_at = copies_at + (self.x.bytes + self.gy.bytes if self.shared else 0)
        run = problem.kernel[2] if self.merged or self.apart else 1
        offsets = [sum((each - least) * pitch for each, least, pitch in zip(
            tap, problem.least, self.x.pitches[1:], strict=True)) for tap in problem.phases[0].offsets[::run]]
        about, about_factor = self.x.about, self.gy.about
        offsets_at = GRADIENT.end
        dilation = problem.phases[0].offsets[1][2] - problem.phases[0].offsets[0][2] if problem.kernel[2] > 1 else 0
        values: dict[str, compilation.Word] = {
            "batch": problem.batch, "blocks": prod(self.blocks), "piece": self.piece, "jobs": self.jobs,
            "share": -(-self.jobs // self.splits), "splits": self.splits, "panels": self.panels,
            "runs.jobs": self.run_jobs, "columns.jobs": self.column_jobs, "runs": self.runs, "length": self.length,
            "panel.bytes": tile.bytes * self.runs * self.length, "group.bytes": weights.bytes // problem.groups,
            "source": 1, "factor": 2, "scratch": 3, "slots": slots, "slots.at": slots_at, "slot.bytes": slot,
            "pieces.at": pieces_at, "piece.bytes": piece_bytes, "factor.at": self.x.bytes,
            "fill": 0, "fill.factor": 0,
            "sweep": weight_gradient_code.library(tile).symbol("sum"),
            "sweep.last": weight_gradient_code.library(tile._replace(vectors=self.last)).symbol("sum"),
            "from.group": problem.depth * size, "from.panel": tile.bytes if self.apart else 0,
            "from.first": sum(a * b for a, b in zip(problem.least, self.x.pitches[1:], strict=True)),
            "from.column": dilation * self.x.pitches[3], "factor.group": problem.width * size,
            "factor.panel": tile.bytes, "factor.first": 0, "offsets.at": offsets_at,
            "about.at": offsets_at + len(offsets), "about.factor.at": offsets_at + len(offsets) + len(about),
            "spread.d": 1, "spread.h": 1, "spread.w": 1, "making": 0, "making.at": 0, "points.at": 0,
            "making.factor": 0, "making.factor.at": 0, "points.factor.at": 0,
        }
        for i, axis in enumerate("ndhw"):
            step = problem.source_step[i - 1] if i else 1
            values |= {f"block.{axis}": self.block[i], f"blocks.{axis}": self.blocks[i],
                       f"from.{axis}": self.x.pitches[i] * step, f"factor.{axis}": self.gy.pitches[i]}
        for i, axis in enumerate("dhw"):
            values |= {f"grid.{axis}": problem.grid[i], f"step.{axis}": problem.source_step[i],
                       f"least.{axis}": problem.least[i], f"span.{axis}": self.span[i]}
        before = [scratch_slots.opening(3, slots)] if slots else []
        place = copies_at
        for array, number, fill, first, sizes, name in (
                (self.x, 1, "fill", problem.least, self.seen, "from"),
                (self.gy, 2, "fill.factor", (0, 0, 0), self.counts, "factor")):
            if not array.copied:
                continue
            if self.shared:
                before.append(input_packing.copying(array.fill, number, 3, place, first, sizes, problem.batch,
                                                         array.about))
                values["source" if name == "from" else "factor"] = 3
                values[f"{name}.first"] = place
                place += array.bytes
            else:
                values[fill] = array.fill.symbol("fill")
        body = weight_gradient_code.body()
        main = Launch(body, body.symbol("body"), self.pieces * self.splits,
                      GRADIENT.plan(values, *offsets, *about, *about_factor), 0, slots_at + slots * slot)
        return [*before, main, weights.launch("combine", 0, 3, pieces_at, self.pieces)]
