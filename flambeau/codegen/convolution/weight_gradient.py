"""Weight gradient launches: sums over pieces of the positions, which are then added up.

Pieces depend on sizes alone, so that results do not depend on the number of threads.
"""

from __future__ import annotations

from math import prod

import numpy as np

from ...kernels import threads as limits
from ...runtime import compilation
from ...runtime.launch import ALIGNMENT, Launch, Spec
from . import input_packing, scratch_slots, weight_gradient_code
from .blocking import CHUNKS_PER_THREAD, MAX_CHUNKS, MIN_CHUNK_WORK, grow_block, input_extent, split_block
from .correlation import CONFLICT_STRIDE, Images, aligned, collapse_dims, drop_skipped
from .geometry import Correlation
from .plan import GRADIENT
from .register_tile import Tile, choose_tile, lanes_for
from .weight_panels import Weights

#: bytes of a block of the source and of the output's gradient (a share of L2); and where the sums, which every block
#: reads and writes again, are larger than LARGE_SUMS_BYTES
BLOCK_BYTES, LARGE_BLOCK_BYTES = 1 << 19, 1 << 20
#: maximum bytes of all pieces' sums, unless there is one piece; the size from which sums are large, and their maximum
#: number of pieces
PIECES_BYTES, LARGE_SUMS_BYTES, MAX_LARGE_PIECES = 1 << 22, 1 << 18, 4


class PackedImages:
    """One of the two input arrays, read in place or from a channels-last copy."""

    def __init__(self, images: Images, channels: int, extents: tuple[int, ...], copied: bool, sizes: tuple[int, ...],
                 count: int) -> None:
        """A copy has `count` images of spatial `sizes`."""
        self.images, self.channels, self.extents, self.copied = images, channels, extents, copied
        self.pitches, self.bytes = images.outer, 0
        self.size = images.dtype.itemsize
        if copied:
            pitch = channels * self.size
            if pitch % CONFLICT_STRIDE == 0:
                pitch += ALIGNMENT
            self.pitches = (prod(sizes) * pitch, sizes[1] * sizes[2] * pitch, sizes[2] * pitch, pitch)
            # vectors may extend past the last channel
            self.bytes = aligned(count * self.pitches[0] + ALIGNMENT)

    @property
    def fill_fields(self) -> tuple[int, ...]:
        return input_packing.fill_fields(self.extents, self.images.outer, self.images.c, self.channels, self.pitches)

    @property
    def fill(self) -> compilation.Library:
        kind = input_packing.kind(self.channels, self.images.c, self.images.w, self.size)
        return input_packing.library(self.images.dtype, kind)


class DirectWeightGradient:
    """Plans the launches of a convolution's weight gradient.

    Args:
        problem: the convolution.
        x, gy: its input and its output's gradient.
        depthwise: each channel is convolved separately: the problem is then one group of all channels.
    """

    def __init__(self, problem: Correlation, x: Images, gy: Images, depthwise: bool) -> None:
        problem, x = drop_skipped(problem, x)
        self.problem, (x, gy) = collapse_dims(problem, [x, gy])
        problem = self.problem
        self.depthwise, self.dtype, self.size = depthwise, x.dtype, x.dtype.itemsize
        self.channels = problem.out_channels if depthwise else problem.in_channels * problem.groups
        self.lanes = lanes_for(problem.out_channels, self.dtype)
        self.span = tuple(high - low + 1 for low, high in zip(problem.min_offset, problem.max_offset, strict=True))
        ragged = problem.out_channels % self.lanes != 0
        x_copied = not problem.inside or not (x.c == self.size or self.channels == 1) or (depthwise and ragged)
        gy_copied = ragged or gy.c != self.size
        pitch = self.channels * self.size
        close = pitch % CONFLICT_STRIDE != 0 if x_copied else x.w == pitch
        self.merged = not depthwise and problem.groups == 1 and self.span[2] == problem.kernel[2] and close
        self._choose_blocking(x_copied or gy_copied)
        counts = problem.grid if self.shared else self.block[1:]
        images = problem.batch if self.shared else self.block[0]
        input_sizes = tuple(map(input_extent, counts, problem.source_step, self.span))
        self.input_sizes, self.counts = input_sizes, counts
        self.x = PackedImages(x, self.channels, problem.source_sizes, x_copied, input_sizes, images)
        self.gy = PackedImages(gy, problem.out_channels * problem.groups, problem.grid, gy_copied, tuple(counts),
                               images)

    def _choose_blocking(self, copied: bool) -> None:
        """Choose blocks of positions, pieces of blocks, tiles of sums, and their distribution over chunks."""
        problem, size = self.problem, self.size
        taps = prod(problem.kernel)
        row = problem.kernel[2] if self.merged or self.depthwise else 1
        self.runs = taps // row
        self.length = row * (1 if self.depthwise else problem.in_channels)
        vectors = -(-problem.out_channels // self.lanes)
        shape = choose_tile(self.length, self.runs, vectors, self.depthwise)
        self.tile = Tile(self.dtype, shape.rows, shape.columns, shape.vectors, self.lanes, self.depthwise)
        self.last = shape.last
        self.panels = -(-vectors // shape.vectors)
        self.run_jobs, self.column_jobs = -(-self.runs // shape.rows), -(-self.length // shape.columns)
        self.jobs = problem.groups * self.panels * self.run_jobs * self.column_jobs
        extents = (problem.batch, *problem.grid)
        channels = (self.channels + problem.out_channels * problem.groups) * size
        sums = problem.groups * vectors * self.lanes * self.length * self.runs * size
        bytes_ = LARGE_BLOCK_BYTES if sums > LARGE_SUMS_BYTES else BLOCK_BYTES

        def fits(*counts: int) -> int:
            return max(1, bytes_ // max(1, prod(map(input_extent, counts, problem.source_step, self.span)) * channels))

        chunks = max(1, problem.multiplications // MIN_CHUNK_WORK)
        # pieces take memory, but so do copies that chunks share
        copies = (prod(problem.source_sizes) * self.channels
                  + prod(problem.grid) * problem.out_channels * problem.groups)
        max_bytes = max(PIECES_BYTES, problem.batch * copies * size // 2 if copied else 0)
        pieces = min(chunks, MAX_LARGE_PIECES if sums > LARGE_SUMS_BYTES else MAX_CHUNKS,
                     max(1, max_bytes // max(1, sums)))
        block = split_block(extents, grow_block(extents, 64, fits), pieces)
        self.block = (block[0], block[1], block[2], block[3])
        self.blocks = tuple(max(1, -(-a // b)) for a, b in zip(extents, block, strict=True))
        count = prod(self.blocks)
        self.piece = -(-count // min(count, pieces))
        self.pieces = -(-count // self.piece)
        # only the distribution of tiles over chunks may depend on the number of threads
        self.splits = min(self.jobs, -(-min(chunks, max(MAX_LARGE_PIECES,
                                                        CHUNKS_PER_THREAD * limits.count())) // self.pieces))
        self.shared = copied and self.splits > 1

    def launches(self, w: Spec, lane: int, group: int, channel: int) -> list[Launch]:
        """The launches for a gradient `w` with these strides; their pointers are the gradient, x, gy, scratch."""
        problem, size, tile = self.problem, self.size, self.tile
        taps = [sum(i * s for i, s in zip(index, w.strides[2:], strict=True)) for index in np.ndindex(w.shape[2:])]
        depth = 1 if self.depthwise else problem.in_channels
        weights = Weights(self.dtype, self.lanes, problem.out_channels, depth, problem.groups, lane, group, channel,
                          taps,
                          range(len(taps)), tile.vectors)
        pieces_at = scratch_slots.HEADER
        slot = 0 if self.shared else self.x.bytes + self.gy.bytes
        slots = scratch_slots.count(self.pieces * self.splits) if slot else 0
        piece_bytes = aligned(weights.bytes)
        copies_at = pieces_at + self.pieces * piece_bytes
        slots_at = copies_at + (self.x.bytes + self.gy.bytes if self.shared else 0)
        run = problem.kernel[2] if self.merged or self.depthwise else 1
        offsets = [sum((each - low) * pitch for each, low, pitch in zip(
            tap, problem.min_offset, self.x.pitches[1:], strict=True)) for tap in problem.phases[0].offsets[::run]]
        fill_fields, factor_fill_fields = self.x.fill_fields, self.gy.fill_fields
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
            "tile_sum": weight_gradient_code.library(tile).symbol("sum"),
            "tile_sum.last": weight_gradient_code.library(tile._replace(vectors=self.last)).symbol("sum"),
            "from.group": problem.in_channels * size, "from.panel": tile.bytes if self.depthwise else 0,
            "from.first": sum(a * b for a, b in zip(problem.min_offset, self.x.pitches[1:], strict=True)),
            "from.column": dilation * self.x.pitches[3], "factor.group": problem.out_channels * size,
            "factor.panel": tile.bytes, "factor.first": 0, "offsets.at": offsets_at,
            "fill_fields.at": offsets_at + len(offsets),
            "fill_fields.factor.at": offsets_at + len(offsets) + len(fill_fields),
            "spread.d": 1, "spread.h": 1, "spread.w": 1, "transform": 0, "transform.at": 0, "points.at": 0,
            "transform.factor": 0, "transform.factor.at": 0, "points.factor.at": 0,
        }
        for i, axis in enumerate("ndhw"):
            step = problem.source_step[i - 1] if i else 1
            values |= {f"block.{axis}": self.block[i], f"blocks.{axis}": self.blocks[i],
                       f"from.{axis}": self.x.pitches[i] * step, f"factor.{axis}": self.gy.pitches[i]}
        for i, axis in enumerate("dhw"):
            values |= {f"grid.{axis}": problem.grid[i], f"step.{axis}": problem.source_step[i],
                       f"min_offset.{axis}": problem.min_offset[i], f"span.{axis}": self.span[i]}
        before = [scratch_slots.initializing(3, slots)] if slots else []
        place = copies_at
        for array, number, fill, first, sizes, name in (
                (self.x, 1, "fill", problem.min_offset, self.input_sizes, "from"),
                (self.gy, 2, "fill.factor", (0, 0, 0), self.counts, "factor")):
            if not array.copied:
                continue
            if self.shared:
                before.append(input_packing.copying(array.fill, number, 3, place, first, sizes, problem.batch,
                                                         array.fill_fields))
                values["source" if name == "from" else "factor"] = 3
                values[f"{name}.first"] = place
                place += array.bytes
            else:
                values[fill] = array.fill.symbol("fill")
        body = weight_gradient_code.body()
        main = Launch(body, body.symbol("body"), self.pieces * self.splits,
                      GRADIENT.plan(values, *offsets, *fill_fields, *factor_fill_fields), 0, slots_at + slots * slot)
        return [*before, main, weights.launch("combine", 0, 3, pieces_at, self.pieces)]
