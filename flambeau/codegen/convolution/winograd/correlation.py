"""Winograd convolution F(2 × 2, 3 × 3): the launches of a correlation with a 3 × 3 kernel.

Positions are tiles of 2 × 2 outputs, which take 4 multiplications per output and pair of channels instead of 9, plus
additions per channel of the source and of the target. Measured against float64 with 32 to 512 channels, the error is at
most that of the direct sums, because fewer products are accumulated.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from ....runtime import compilation
from ....runtime.launch import ALIGNMENT, Launch, Spec
from ...scalar.scalar_ir import Node
from .. import body as chunk_body
from .. import input_packing, scratch_slots
from ..blocking import Blocking, choose_blocking
from ..correlation import CONFLICT_STRIDE, DirectCorrelation, Images, aligned
from ..epilogue import Epilogue
from ..geometry import Correlation, Phase
from ..plan import CORRELATION, OPERAND
from ..register_tile import Tile
from . import filter_transform, panel_pass, tile_transform
from .tile_transform import IN, OUT, POINTS, TAPS, TRANSFORM_FIELDS

#: costs in units of one vector FMA: transforming an element of the input, of the weights, of the output; and the factor
#: by which an FMA of the 16 small matmuls is slower than one of the direct convolution
INPUT_TRANSFORM, FILTER_TRANSFORM, OUTPUT_TRANSFORM, FMA_FACTOR = 6.0, 16.0, 5.0, 1.2
#: minimum number of channels
MIN_CHANNELS = 16


def fits(problem: Correlation, dtype: np.dtype) -> bool:
    """Whether Winograd applies: a dense 3 × 3 kernel of stride 1, in float32."""
    ones = (1, 1, 1)
    return (dtype == np.float32 and problem.kernel == (1, TAPS, TAPS)
            and problem.source_step == problem.target_step == ones and all(problem.grid)
            and all(b - a == size - 1 for a, b, size in zip(problem.min_offset, problem.max_offset, problem.kernel,
                                                            strict=True)))


def pays(problem: Correlation) -> bool:
    """Whether Winograd is estimated to be faster than direct convolution."""
    if problem.in_channels < MIN_CHANNELS or problem.out_channels < MIN_CHANNELS:
        return False
    tiles = problem.batch * prod(tiled(problem).grid)
    pairs = problem.in_channels * problem.out_channels
    direct = problem.batch * prod(problem.grid) * TAPS * TAPS * pairs
    winograd = POINTS * (tiles * (pairs * FMA_FACTOR + INPUT_TRANSFORM * problem.in_channels
                                  + OUTPUT_TRANSFORM * problem.out_channels) + FILTER_TRANSFORM * pairs)
    return winograd < direct


def tiled(problem: Correlation) -> Correlation:
    """The correlation over tiles instead of positions: 16 points replace the 9 taps."""
    depth, height, width = problem.grid
    counts = depth, -(-height // OUT), -(-width // OUT)
    phases = tuple(Phase((0, 0, 0), counts, (problem.min_offset,), (i,), (1, 1, 1)) for i in range(POINTS))
    step = (1, OUT, OUT)
    d, h, w = problem.min_offset
    return problem._replace(kernel=(1, IN, IN), source_step=step, target_step=step, phases=phases,
                            max_offset=(d, h + IN - 1, w + IN - 1))


def conflict_free_stride(size: int) -> int:
    """The size rounded up to an odd number of cache lines: arrays at this stride do not share cache sets."""
    lines = -(-size // ALIGNMENT)
    return (lines + 1 - lines % 2) * ALIGNMENT


class WinogradCorrelation(DirectCorrelation):
    """Plans the launches of a correlation that `fits`; arguments are those of `DirectCorrelation`."""

    def __init__(self, problem: Correlation, nodes: tuple[Node, ...], source: Images,
                 operands: Sequence[Images]) -> None:
        self.direct_plan = DirectCorrelation(problem, nodes, source, operands, False)
        super().__init__(tiled(problem), nodes, source, operands, False)
        self._align_layout(self.direct_plan)

    def _choose_blocking(self) -> Blocking:
        # the 2 × 2 elements of a tile become 16, which may be in L3: they are read sequentially
        bytes_ = self.channels * self.size * (1 + POINTS // OUT ** 2) // 2
        return choose_blocking(self.problem, bytes_, self.size, self.lanes, False, True)

    def _row(self, limit: int) -> int:
        return self.problem.grid[2] * OUT if self.full_rows else limit

    @property
    def flat(self) -> bool:
        return super().flat and self.problem.target_sizes[2] % OUT == 0

    def _align_layout(self, direct: DirectCorrelation) -> None:
        """Make the direct fallback use the strides, panels and buffer of this plan."""
        direct.pitches, direct.target, direct.buffer = self.pitches, self.target, self.buffer
        direct.tile = self.tile._replace(rows=OUT, columns=1)
        direct.blocking = direct.blocking._replace(tile=self.blocking.tile)

    def _layout(self) -> None:
        super()._layout()
        counts = self.blocking.block[0], *self.counts
        pitch = aligned(self.channels * self.size)
        if pitch % CONFLICT_STRIDE == 0:
            pitch += ALIGNMENT
        strides = [pitch]
        for count in reversed(counts[1:]):
            strides.insert(0, strides[0] * count)
        self.strides = strides
        overrun = self.tile.columns  # tiles computed past the end of a run
        self.point_bytes = conflict_free_stride(strides[0] * counts[0])
        self.points_bytes = (POINTS + 1) * self.point_bytes + aligned(overrun * pitch)
        self.sum_bytes = conflict_free_stride(prod(self.part) * self.tile.bytes)
        self.sums_bytes = POINTS * self.sum_bytes + aligned(overrun * self.tile.bytes)

    def epilogue(self) -> Epilogue | None:
        return self._epilogue()

    def _panel_pass(self, tile: Tile, masked: bool, epilogue: Epilogue | None) -> compilation.Word:
        return panel_pass.library(tile, masked, epilogue).symbol("panel_pass")

    def launches(self, w: Spec, lane: int, group: int, channel: int, constant: bool = False) -> list[Launch]:
        problem, blocking, direct = self.problem, self.blocking, self.direct_plan
        phases, offsets, order = direct._phases()
        weights = self._weights(w, lane, group, channel, order)
        scratch, source = len(self.operands) + 2, self.count
        jobs = weights.panels * problem.groups
        # scratch memory: slot header; packed weights, transformed weights, their flags; slots of (copy, transformed
        # tiles, sums of a part, buffer)
        panels_at = scratch_slots.HEADER
        transformed_at = panels_at + aligned(weights.bytes)
        transformed_bytes = weights.bytes // TAPS ** 2 * POINTS
        flags_at = transformed_at + aligned(transformed_bytes)
        slots_at = flags_at + aligned(8 * jobs)
        sums_at = self.copy_bytes + self.points_bytes
        buffer_at = sums_at + self.sums_bytes
        slot = buffer_at + self.buffer_bytes
        chunks = prod(blocking.blocks) * blocking.splits
        slots = scratch_slots.count(chunks)
        fill_fields = input_packing.fill_fields(problem.source_sizes, self.source.outer, self.source.c, self.channels,
                                         self.pitches)
        places = {"source": source, "scratch": scratch, "panels.from": scratch, "target": 0, "buffer.at": buffer_at,
                  "packed.at": 0, "pack": 0, "fill": self._fill().symbol("fill") if self.copied else 0}
        operands_at = CORRELATION.end
        fill_fields_at = operands_at + len(self.operands) * OPERAND
        transform_at = fill_fields_at + len(fill_fields)
        fallback_at = transform_at + len(TRANSFORM_FIELDS)
        values = self._words(weights, slots, slots_at, slot) | places
        values |= {
            "panels.at": transformed_at, "panel.bytes": self.tile.bytes * POINTS * problem.in_channels,
            "group.bytes": transformed_bytes // problem.groups, "phases": 0, "phases.at": 0, "operands.at": operands_at,
            "fill_fields.at": fill_fields_at, "pack.at": 0, "fallback.at": fallback_at,
            "transform": tile_transform.library(self.dtype, self.lanes, False).symbol("transform"),
            "transform.at": transform_at, "point.bytes": self.point_bytes, "sum.bytes": self.sum_bytes,
            "in_channels": problem.in_channels,
            "points.at": self.copy_bytes, "sums.at": sums_at, "flags.at": flags_at,
        }
        for axis, stride in zip("ndhw", self.strides, strict=True):
            values[f"from.{axis}"] = stride
        fallback = direct._words(weights, slots, slots_at, slot) | places
        fallback |= {"panels.at": panels_at, "phases": len(direct.problem.phases), "phases.at": CORRELATION.end,
                  "operands.at": CORRELATION.end + len(phases) + len(offsets), "fill_fields.at": 0, "pack.at": 0}
        body = chunk_body.library()
        transform_fields = *(values[f"read.{axis}"] for axis in "ndhw"), *self.strides, self.point_bytes, self.channels
        plan = (*CORRELATION.plan(values, *self._strides(), *fill_fields), *transform_fields,
                *CORRELATION.plan(fallback, *phases, *offsets, *self._strides()))
        return [
            scratch_slots.initializing(scratch, slots), weights.launch("pack", source + 1, scratch, panels_at),
            filter_transform.transform(self.dtype, self.lanes, scratch, panels_at, transformed_at, flags_at,
                                       problem.in_channels,
                                    weights.vectors, self.tile.vectors, problem.groups),
            Launch(body, body.symbol("body"), chunks, plan, 0, slots_at + slots * slot,
                   prepared=tuple(start + CORRELATION.places["panels.from"] for start in (0, fallback_at)))]
