"""Direct convolution launches of a correlation: weights are packed into panels, then blocks of positions computed."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

import numpy as np

from ...runtime import compilation
from ...runtime.launch import ALIGNMENT, Launch, Spec
from ...runtime.symbolic_integers import lesser, typical
from ..iteration_space import broadcast_strides
from ..scalar.scalar_ir import Node
from . import body as chunk_body
from . import epilogue as epilogue_code
from . import input_packing, panel_pass, scratch_slots
from .blocking import Blocking, balanced_size, choose_blocking, input_extent
from .epilogue import Epilogue
from .geometry import Correlation, Triple, triple
from .plan import CORRELATION, OPERAND, PHASE
from .register_tile import Tile, lanes_for
from .weight_panels import Weights


class Images(NamedTuple):
    """An array of images in five dimensions: strides in bytes, 0 along dimensions of extent 1."""

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
        """The strides of an array broadcast to images of this shape."""
        n, c, *spatial = broadcast_strides(spec.shape, spec.strides, shape)
        return cls(spec.dtype, c, n, *triple(spatial, 0))

    def steps_along(self, stride: int) -> str:
        """The step kind of this stride (`loop_nests.Operand`)."""
        return "b" if stride == 0 else "c" if stride == self.dtype.itemsize else "s"


#: maximum products accumulated sequentially; longer sums are sums of such partial sums, to limit rounding error
MAX_SEQUENTIAL = 192
#: position strides that are multiples of this would map to the same few L1 sets
CONFLICT_STRIDE = 1024


def drop_skipped(problem: Correlation, source: Images) -> tuple[Correlation, Images]:
    """The correlation over only those source elements that are read, along dimensions of one tap and a step above 1.

    Rows that are contiguous in memory are excluded: they are copied in blocks.
    """
    extents, steps, strides = list(problem.source_sizes), list(problem.source_step), list(source.outer)
    for i, step in enumerate(steps):
        count = problem.grid[i]
        if i == 2 and source.c != source.dtype.itemsize:
            continue
        if step > 1 and problem.min_offset[i] == problem.max_offset[i] == 0 and (count - 1) * step < extents[i]:
            extents[i], steps[i] = count, 1
            strides[i + 1] *= step
    n, d, h, w = strides
    return (problem._replace(source_sizes=triple(extents, 1), source_step=triple(steps, 1)),
            source._replace(n=n, d=d, h=h, w=w))


def collapse_dims(problem: Correlation, arrays: Sequence[Images]) -> tuple[Correlation, list[Images]]:
    """The correlation with dimensions collapsed that are contiguous in all arrays, if the kernel has a single tap."""
    ones = (1, 1, 1)
    if not (problem.kernel == problem.source_step == problem.target_step == ones
            and problem.min_offset == problem.max_offset == (0, 0, 0) and problem.source_sizes == problem.target_sizes):
        return problem, list(arrays)
    extents = [problem.batch, *problem.target_sizes]
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
    return (problem._replace(batch=extents[0], source_sizes=sizes, target_sizes=sizes, phases=(phase,)),
            [Images(each.dtype, each.c, *outer) for each, outer in zip(arrays, strides, strict=True)])


def aligned(size: int) -> int:
    """The size rounded up to a multiple of the alignment."""
    return -(-size // ALIGNMENT) * ALIGNMENT


class DirectCorrelation:
    """Plans the launches of a correlation.

    Args:
        problem: the correlation.
        nodes: the epilogue's expressions, one per output.
        source, operands: the arrays; operands are outputs, then the epilogue's other arrays.
        depthwise: each channel is convolved separately: the problem is then one group of all channels.
    """

    def __init__(self, problem: Correlation, nodes: tuple[Node, ...], source: Images, operands: Sequence[Images],
                 depthwise: bool) -> None:
        problem, source = drop_skipped(problem, source)
        problem, (self.source, *self.operands) = collapse_dims(problem, [source, *operands])
        self.problem, self.nodes, self.depthwise = problem, nodes, depthwise
        self.dtype = source.dtype
        self.size = size = source.dtype.itemsize
        self.channels = problem.out_channels if depthwise else problem.in_channels * problem.groups
        self.lanes = lanes_for(problem.out_channels, self.dtype)
        self.count = len(nodes)
        self.direct = problem.out_channels > 1 and all(each.c == each.dtype.itemsize
                                                       for each in self.operands[:self.count])
        # an incomplete last vector of channels would be read past the array's end
        self.copied = not problem.inside or not (source.c == size or self.channels == 1) or (
            depthwise and problem.out_channels % self.lanes != 0)
        self.blocking = self._choose_blocking()
        self.tile = Tile(self.dtype, self.blocking.tile.rows, self.blocking.tile.columns, self.blocking.tile.vectors,
                         self.lanes,
                         depthwise)
        self.pixel = self.tile.vectors * self.lanes * size  # of the buffer
        self.span = [high - low + 1 for low, high in zip(problem.min_offset, problem.max_offset, strict=True)]
        self._layout()

    def _choose_blocking(self) -> Blocking:
        return choose_blocking(self.problem, self.channels * self.size, self.size, self.lanes, self.depthwise)

    @property
    def part(self) -> list[int]:
        """Maximum positions of a part along n, d, h and w."""
        every = zip((typical(self.problem.batch), *self.problem.grid), self.blocking.part, strict=True)
        return [lesser(a, b + self.blocking.min_last * (i == 3)) for i, (a, b) in enumerate(every)]

    def _layout(self) -> None:
        """Choose the strides of the source or its copy, and of the target or the buffer."""
        problem, blocking = self.problem, self.blocking
        d, h, w = blocking.block[1:]
        width = lesser(problem.grid[2], w + blocking.min_last)
        self.counts = problem.grid if blocking.pack_per_chunk else (d, h, width)
        self.copy_bytes = 0
        self.pitches = self.source.outer
        if self.copied:
            sizes = [input_extent(*each) for each in zip(self.counts, problem.source_step, self.span, strict=True)]
            pitch = self.channels * self.size
            if pitch % CONFLICT_STRIDE == 0:
                pitch += ALIGNMENT
            self.pitches = (prod(sizes) * pitch, sizes[1] * sizes[2] * pitch, sizes[2] * pitch, pitch)
            images = problem.batch if blocking.pack_per_chunk else blocking.block[0]
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
            # the last transposed block may read past the last position
            self.buffer_bytes = aligned(n * images + self.lanes * self.pixel)

    def _row(self, limit: int) -> int:
        """Positions of a buffer row; parts have at most `limit`."""
        return self.problem.target_sizes[2] if self.full_rows else limit

    @property
    def full_rows(self) -> bool:
        """Whether parts consist of entire rows."""
        width = self.problem.grid[2]
        return self.blocking.blocks[3] == 1 and self.blocking.part[3] + self.blocking.min_last >= width

    @property
    def flat(self) -> bool:
        """Whether rows are contiguous in the buffer and in all operands."""
        width = self.problem.target_sizes[2]
        return self.full_rows and all(each.h == width * each.w for each in self.operands)

    def _merged(self) -> bool:
        """Whether the channels of neighbouring taps are contiguous in the source."""
        if self.depthwise or self.problem.groups > 1 or self.pitches[3] != self.channels * self.size:
            return False
        return all(b[2] - a[2] == 1 for phase in self.problem.phases
                   for a, b in list(zip(phase.offsets, phase.offsets[1:], strict=False))[:phase.along[2] - 1])

    def _offset(self, tap: Triple) -> int:
        """The offset in bytes of a tap in the source."""
        return sum((each - low) * pitch
                   for each, low, pitch in zip(tap, self.problem.min_offset, self.pitches[1:], strict=True))

    def _phases(self) -> tuple[list[int], list[int], list[int]]:
        """The phases' plan fields; then offsets and lengths of their runs; the order of taps in the panels."""
        table: list[int] = []
        after = CORRELATION.end + len(self.problem.phases) * len(PHASE)
        offsets: list[int] = []
        order: list[int] = []
        merged, depth = self._merged(), 1 if self.depthwise else self.problem.in_channels
        for phase in self.problem.phases:
            run = phase.along[2] if merged else 1
            starts = phase.offsets[::run] if run else ()
            target = sum(a * b for a, b in zip(phase.start, self.target[1:], strict=True))
            pieces = _pieces(run * depth)
            fold = max(1, MAX_SEQUENTIAL // pieces[0][1]) if pieces else 1
            table += [*phase.counts, *phase.start, target, len(starts) * len(pieces), fold, after + len(offsets),
                      len(order) * depth]
            offsets += [word for tap in starts for before, length in pieces
                        for word in (self._offset(tap) + before * self.size, length)]
            order += phase.kernel
        return table, offsets, order

    def epilogue(self) -> Epilogue | None:
        """The epilogue; None where the sums are stored as they are."""
        if self.direct and len(self.nodes) == 1 and self.nodes[0].op == "input" and self.nodes[0].const == 0:
            return None
        return self._epilogue()

    def _epilogue(self) -> Epilogue:
        steps = "".join(each.steps_along(each.c if self.direct else each.w) for each in self.operands)
        return Epilogue(self.nodes, tuple(each.dtype for each in self.operands), steps, self.dtype)

    def launches(self, w: Spec, lane: int, group: int, channel: int, constant: bool = False) -> list[Launch]:
        """The launches, for weights with these strides by target channel, group and source channel.

        Args:
            constant: whether the weights are constant, so that it pays to pack them beforehand, where that is
                otherwise done by each chunk.
        """
        problem, blocking = self.problem, self.blocking
        phases, offsets, order = self._phases()
        weights = self._weights(w, lane, group, channel, order)
        taps, depth = weights.taps, weights.depth
        chunks = prod(blocking.blocks) * blocking.splits
        scratch, source = len(self.operands) + 2, self.count
        # scratch memory: slot header; packed weights or the copy; slots of (copy or panel, buffer)
        shared_at = scratch_slots.HEADER
        panel_bytes = aligned(self.tile.bytes * len(taps) * depth)
        first = panel_bytes if blocking.pack_per_chunk else self.copy_bytes
        slot = first + self.buffer_bytes
        slots = scratch_slots.count(chunks) if slot else 0
        pack_per_chunk = blocking.pack_per_chunk and not constant
        panels_at = shared_at
        copy_at = shared_at if pack_per_chunk else aligned(panels_at + weights.bytes)
        slots_at = aligned(copy_at + self.copy_bytes) if blocking.pack_per_chunk else copy_at
        fill_fields = input_packing.fill_fields(problem.source_sizes, self.source.outer, self.source.c, self.channels,
                                         self.pitches)
        values = self._words(weights, slots, slots_at, slot)
        values |= {"source": source, "scratch": scratch, "panels.from": scratch, "panels.at": panels_at, "target": 0,
                   "buffer.at": first, "packed.at": 0, "fill": 0}
        operands_at = CORRELATION.end + len(phases) + len(offsets)
        fill_fields_at = operands_at + len(self.operands) * OPERAND
        values |= {"phases": len(problem.phases), "phases.at": CORRELATION.end, "operands.at": operands_at,
                   "fill_fields.at": fill_fields_at, "pack": 0, "pack.at": fill_fields_at + len(fill_fields)}
        before: list[Launch] = [scratch_slots.initializing(scratch, slots)] if slots else []
        packing: tuple[int, ...] = ()
        if pack_per_chunk:
            values["pack"], packing = weights.library("pack").symbol("panel"), weights.words()
        else:
            before.append(weights.launch("pack", source + 1, scratch, panels_at))
        if blocking.pack_per_chunk:
            if self.copied:
                sizes = [input_extent(*each) for each in zip(self.counts, problem.source_step, self.span, strict=True)]
                before.append(input_packing.copying(self._fill(), source, scratch, copy_at, problem.min_offset, sizes,
                                                         problem.batch, fill_fields))
                values |= {"source": scratch, "read.first": copy_at}
        elif self.copied:
            values["fill"] = self._fill().symbol("fill")
        body = chunk_body.library()
        plan = CORRELATION.plan(values, *phases, *offsets, *self._strides(), *fill_fields, *packing)
        return [*before, Launch(body, body.symbol("body"), chunks, plan, 0, slots_at + slots * slot,
                                prepared=() if pack_per_chunk else (CORRELATION.places["panels.from"],))]

    def _weights(self, w: Spec, lane: int, group: int, channel: int, order: Sequence[int]) -> Weights:
        """The packed weights, with taps in this order."""
        # taps that no position uses come last
        taps = [sum(i * s for i, s in zip(index, w.strides[2:], strict=True)) for index in np.ndindex(w.shape[2:])]
        place = {tap: i for i, tap in enumerate([*order, *sorted(set(range(len(taps))) - set(order))])}
        return Weights(self.dtype, self.lanes, self.problem.out_channels,
                       1 if self.depthwise else self.problem.in_channels,
                       self.problem.groups, lane, group, channel, taps, [place[i] for i in range(len(taps))],
                       self.tile.vectors)

    def _panel_pass(self, tile: Tile, masked: bool, epilogue: Epilogue | None) -> compilation.Word:
        """The code that computes a panel's sums."""
        return panel_pass.library(tile, masked, epilogue).symbol("panel_pass")

    def _words(self, weights: Weights, slots: int, slots_at: int, slot: int) -> dict[str, compilation.Word]:
        problem, blocking, tile = self.problem, self.blocking, self.tile
        panels = -(-weights.vectors // tile.vectors)
        epilogue = self.epilogue()
        last = tile._replace(vectors=blocking.tile.last)
        masked = self.direct and problem.out_channels % self.lanes != 0
        within = epilogue if self.direct else None
        values: dict[str, compilation.Word] = {
            "batch": problem.batch, "jobs": problem.groups * panels, "splits": blocking.splits,
            "share": -(-problem.groups * panels // blocking.splits), "panels": panels,
            "panel.bytes": tile.bytes * len(weights.taps) * weights.depth,
            "group.bytes": weights.bytes // problem.groups, "panel.channels": tile.vectors * self.lanes,
            "out_channels": problem.out_channels, "min_last_part": blocking.min_last, "slots": slots,
            "slots.at": slots_at, "slot.bytes": slot,
            "flush": 0, "prefetch": epilogue_code.prefetch().symbol("prefetch"),
            "panel_pass": self._panel_pass(tile, False, within) if panels > 1 else 0,
            "panel_pass.last": self._panel_pass(last, masked, within),
            "from.group": 0 if self.depthwise else problem.in_channels * self.size,
            "from.panel": tile.bytes if self.depthwise else 0,
            "read.first": sum(a * b for a, b in zip(problem.min_offset, self.pitches[1:], strict=True)),
            "target.c": self.size, "target.size": self.operands[0].dtype.itemsize, "flat": int(self.flat),
            "weights": self.count + 1, "transform": 0, "transform.at": 0, "point.bytes": 0, "sum.bytes": 0,
            "in_channels": 0, "points.at": 0,
            "sums.at": 0, "flags.at": 0, "fallback.at": 0,
        }
        if not self.direct:
            assert epilogue is not None
            library = epilogue_code.library(epilogue, self.dtype, self.lanes)
            values["flush"] = library.symbol("flush")
        steps, spread = (1, *problem.source_step), (1, *problem.target_step)
        for i, axis in enumerate("ndhw"):
            values[f"block.{axis}"], values[f"part.{axis}"] = blocking.block[i], blocking.part[i]
            values[f"from.{axis}"] = values[f"read.{axis}"] = self.pitches[i] * steps[i]
            values[f"target.{axis}"] = self.target[i] * spread[i]
            values[f"buffer.{axis}"] = self.buffer[i]
        for i, axis in enumerate("dhw"):
            values |= {f"grid.{axis}": problem.grid[i], f"blocks.{axis}": blocking.blocks[i + 1],
                       f"step.{axis}": problem.source_step[i], f"min_offset.{axis}": problem.min_offset[i],
                       f"span.{axis}": self.span[i], f"spread.{axis}": spread[i + 1],
                       f"size.{axis}": problem.target_sizes[i]}
        return values

    def _strides(self) -> list[int]:
        """The operands' strides."""
        return [word for each in self.operands for word in (*each.outer, each.c)]

    def _fill(self) -> compilation.Library:
        """The code that packs the source."""
        kind = input_packing.kind(self.channels, self.source.c, self.source.w, self.size)
        return input_packing.library(self.dtype, kind)


def _pieces(length: int) -> list[tuple[int, int]]:
    """(start, length) of the fewest nearly equal pieces of a run of at most `MAX_SEQUENTIAL`."""
    if not length:
        return []
    size = balanced_size(length, MAX_SEQUENTIAL)
    return [(start, min(size, length - start)) for start in range(0, length, size)]
