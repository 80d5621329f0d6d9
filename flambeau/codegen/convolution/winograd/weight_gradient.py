"""Winograd weight gradient of 3 × 3 kernels: its launches.

Summing points over tiles is the weight gradient of a 1 × 1 convolution with 16 groups, one per point, whose positions
are tiles. Images and the output's gradient are copied and transformed; `../weight_gradient_code.py` computes the sums.
"""

from __future__ import annotations

from math import prod

import numpy as np

from ....kernels import threads as limits
from ....runtime import compilation
from ....runtime.launch import ALIGNMENT, Launch, Spec
from .. import scratch_slots, weight_gradient_code
from ..blocking import MAX_CHUNKS, MIN_CHUNK_WORK, grow_block, input_extent, split_block
from ..correlation import CONFLICT_STRIDE, Images, aligned
from ..geometry import Correlation
from ..plan import GRADIENT
from ..register_tile import Tile, choose_tile, lanes_for
from ..weight_gradient import LARGE_SUMS_BYTES, MAX_LARGE_PIECES, PIECES_BYTES, DirectWeightGradient, PackedImages
from ..weight_panels import Weights
from . import filter_transform, tile_transform
from .correlation import FMA_FACTOR, INPUT_TRANSFORM, OUTPUT_TRANSFORM, conflict_free_stride, tiled
from .tile_transform import IN, OUT, POINTS, TAPS, TRANSFORM_FIELDS

#: bytes of a block's transformed tiles, which every tile of sums reads again from L2
BLOCK_BYTES = 1 << 19
#: minimum channels and tiles; minimum tiles of a piece; the cost of the inverse filter transform, in tiles
MIN_CHANNELS, MIN_TILES, MIN_PIECE, INVERSE_TRANSFORM = 16, 192, 64, 64


def gradient_pays(problem: Correlation) -> bool:
    """Whether Winograd is estimated to be faster than the direct weight gradient, for a problem that `fits`."""
    if problem.groups > 1 or problem.in_channels < MIN_CHANNELS or problem.out_channels < MIN_CHANNELS:
        return False
    tiles = problem.batch * prod(tiled(problem).grid)
    pairs = problem.in_channels * problem.out_channels
    direct = problem.batch * prod(problem.grid) * TAPS * TAPS * pairs
    winograd = POINTS * (tiles * (pairs * FMA_FACTOR + INPUT_TRANSFORM * problem.in_channels
                                  + OUTPUT_TRANSFORM * problem.out_channels) + INVERSE_TRANSFORM * pairs)
    return tiles >= MIN_TILES and winograd < direct


class WinogradWeightGradient:
    """Plans the launches of a weight gradient for which `gradient_pays`.

    Args:
        problem: the convolution.
        x, gy: its input and its output's gradient.
    """

    def __init__(self, problem: Correlation, x: Images, gy: Images) -> None:
        self.direct = DirectWeightGradient(problem, x, gy, False)
        self.problem = tiles = tiled(problem)
        self.dtype, self.size = x.dtype, x.dtype.itemsize
        self.lanes = lanes_for(problem.out_channels, x.dtype)
        self.vectors = -(-problem.out_channels // self.lanes)
        shape = choose_tile(problem.in_channels, 1, self.vectors, False)
        self.tile = Tile(self.dtype, 1, shape.columns, shape.vectors, self.lanes)
        self.last = shape.last
        self.panels = -(-self.vectors // shape.vectors)
        self.column_jobs = -(-problem.in_channels // shape.columns)
        self.jobs = POINTS * self.panels * self.column_jobs
        self._choose_blocking()
        n, *counts = self.block
        input_sizes = tuple(map(input_extent, counts, (1, OUT, OUT), (1, IN, IN)))
        self.x = PackedImages(x, problem.in_channels, tiles.source_sizes, True, input_sizes, n)
        positions = tuple(count * step for count, step in zip(counts, (1, OUT, OUT), strict=True))
        self.gy = PackedImages(gy, problem.out_channels, tiles.target_sizes, True, positions, n)
        self.x_layout = self._layout(problem.in_channels)
        self.gy_layout = self._layout(self.vectors * self.lanes)

    def _choose_blocking(self) -> None:
        """Choose blocks of tiles, pieces of blocks, and their distribution over chunks."""
        problem = self.problem
        extents = (problem.batch, *problem.grid)
        tiles = BLOCK_BYTES // (POINTS * (problem.in_channels + self.vectors * self.lanes) * self.size)
        sums = POINTS * self.vectors * self.lanes * problem.in_channels * self.size
        chunks = max(1, min(problem.multiplications // MIN_CHUNK_WORK, prod(extents) // MIN_PIECE))
        pieces = min(chunks, MAX_LARGE_PIECES if sums > LARGE_SUMS_BYTES else MAX_CHUNKS, max(1, PIECES_BYTES // sums))
        block = grow_block(extents, 16, lambda d, h, w: max(1, tiles // (d * h * w)))
        block = split_block(extents, block, pieces)
        self.block = (block[0], block[1], block[2], block[3])
        self.blocks = tuple(-(-a // b) for a, b in zip(extents, block, strict=True))
        count = prod(self.blocks)
        self.piece = -(-count // min(count, pieces))
        self.pieces = -(-count // self.piece)
        # only the distribution of tiles of sums over chunks may depend on the number of threads
        self.splits = min(self.jobs, -(-min(chunks, max(MAX_LARGE_PIECES, limits.count())) // self.pieces))

    def _layout(self, channels: int) -> list[int]:
        """Strides between transformed tiles along n, d, h and w, and between points; total bytes."""
        pitch = aligned(channels * self.size)
        if pitch % CONFLICT_STRIDE == 0:
            pitch += ALIGNMENT
        strides = [pitch]
        for count in reversed(self.block[1:]):
            strides.insert(0, strides[0] * count)
        plane = conflict_free_stride(strides[0] * self.block[0])
        return [*strides, plane, (POINTS + 1) * plane + ALIGNMENT]

    def _transform_fields(self, images: PackedImages, layout: list[int], channels: int) -> tuple[int, ...]:
        """The values of `TRANSFORM_FIELDS`."""
        n, d, h, w = images.pitches
        fields = (n, d, h * OUT, w * OUT, *layout[:5], channels)
        assert len(fields) == len(TRANSFORM_FIELDS)
        return fields

    def launches(self, w: Spec, lane: int, group: int, channel: int) -> list[Launch]:
        """The launches for a gradient `w` with these strides; their pointers are the gradient, x, gy, scratch."""
        problem, tile = self.problem, self.tile
        taps = [sum(i * s for i, s in zip(index, w.strides[2:], strict=True)) for index in np.ndindex(w.shape[2:])]
        weights = Weights(self.dtype, self.lanes, problem.out_channels, problem.in_channels, 1, lane, group, channel,
                          taps,
                          range(len(taps)), tile.vectors)
        direct = self.direct.launches(w, lane, group, channel)
        point_bytes = self.vectors * self.lanes * problem.in_channels * self.size
        piece_bytes = aligned(POINTS * point_bytes)
        # scratch memory: slot header; pieces' sums of points; panels of taps; slots of (copies, transformed tiles);
        # flags, behind everything that the direct launches use
        pieces_at = scratch_slots.HEADER
        panels_at = pieces_at + self.pieces * piece_bytes
        slots_at = panels_at + aligned(weights.bytes)
        factor_at = self.x.bytes
        points_at = factor_at + self.gy.bytes
        points_factor_at = points_at + self.x_layout[-1]
        slot = points_factor_at + self.gy_layout[-1]
        slots = scratch_slots.count(self.pieces * self.splits)
        flags_at = max(slots_at + slots * slot, *(aligned(each.scratch) for each in direct))
        scratch = flags_at + aligned(8 * self.panels)
        fill_fields, factor_fill_fields = self.x.fill_fields, self.gy.fill_fields
        offsets_at = GRADIENT.end
        fill_fields_at = offsets_at + 1
        transform_at = fill_fields_at + len(fill_fields) + len(factor_fill_fields)
        values: dict[str, compilation.Word] = {
            "batch": problem.batch, "blocks": prod(self.blocks), "piece": self.piece, "jobs": self.jobs,
            "share": -(-self.jobs // self.splits), "splits": self.splits, "panels": self.panels, "runs.jobs": 1,
            "columns.jobs": self.column_jobs, "runs": 1, "length": problem.in_channels,
            "panel.bytes": tile.bytes * problem.in_channels, "group.bytes": point_bytes, "source": 1, "factor": 2,
            "scratch": 3, "slots": slots, "slots.at": slots_at, "slot.bytes": slot, "pieces.at": pieces_at,
            "piece.bytes": piece_bytes, "factor.at": factor_at, "fill": self.x.fill.symbol("fill"),
            "fill.factor": self.gy.fill.symbol("fill"),
            "tile_sum": weight_gradient_code.library(tile).symbol("sum"),
            "tile_sum.last": weight_gradient_code.library(tile._replace(vectors=self.last)).symbol("sum"),
            "from.group": self.x_layout[4], "from.panel": 0, "from.first": 0, "from.column": 0,
            "factor.group": self.gy_layout[4], "factor.panel": tile.bytes, "factor.first": 0, "offsets.at": offsets_at,
            "fill_fields.at": fill_fields_at, "fill_fields.factor.at": fill_fields_at + len(fill_fields), "spread.d": 1,
            "spread.h": OUT,
            "spread.w": OUT, "transform": self._transform(False), "transform.at": transform_at, "points.at": points_at,
            "transform.factor": self._transform(True), "transform.factor.at": transform_at + len(TRANSFORM_FIELDS),
            "points.factor.at": points_factor_at,
        }
        for i, axis in enumerate("ndhw"):
            values |= {f"block.{axis}": self.block[i], f"blocks.{axis}": self.blocks[i],
                       f"from.{axis}": self.x_layout[i], f"factor.{axis}": self.gy_layout[i]}
        for i, axis in enumerate("dhw"):
            values |= {f"grid.{axis}": problem.grid[i], f"step.{axis}": problem.source_step[i],
                       f"min_offset.{axis}": problem.min_offset[i], f"span.{axis}": (1, IN, IN)[i]}
        plan = GRADIENT.plan(values, 0, *fill_fields, *factor_fill_fields,
                             *self._transform_fields(self.x, self.x_layout, problem.in_channels),
                             *self._transform_fields(self.gy, self.gy_layout, problem.out_channels))
        body = weight_gradient_code.body()
        return [
            scratch_slots.initializing(3, slots),
            Launch(body, body.symbol("body"), self.pieces * self.splits, plan, 0, scratch),
            filter_transform.inverse_transform(self.dtype, self.lanes, 3, pieces_at, panels_at, flags_at, self.pieces,
                                               piece_bytes,
                               point_bytes, problem.in_channels, self.vectors, tile.vectors),
            weights.launch("combine", 0, 3, panels_at),
            *(filter_transform.if_flagged(each, 3, flags_at, self.panels) for each in direct)]

    def _transform(self, transposed: bool) -> compilation.Word:
        return tile_transform.library(self.dtype, self.lanes, transposed).symbol("transform")
