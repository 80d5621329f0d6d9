"""Plan layouts of convolution kernels: the names and positions of the 64-bit fields that compiled code reads."""

from __future__ import annotations

from collections.abc import Mapping

from ...runtime.compilation import Word


class PlanLayout:
    """The names of a plan's fields, in order; "a.dhw" expands to "a.d", "a.h" and "a.w", "b.ndhw" to four names."""

    def __init__(self, names: str) -> None:
        expanded: list[str] = []
        for name in names.split():
            stem, _, axes = name.partition(".")
            expanded += [f"{stem}.{axis}" for axis in axes] if axes in ("dhw", "ndhw") else [name]
        self.names = tuple(expanded)
        self.places = {name: i for i, name in enumerate(expanded)}

    @property
    def end(self) -> int:
        """The index of the first element after the named fields, where lists begin."""
        return len(self.names)

    def plan(self, values: Mapping[str, Word], *lists: int) -> tuple[Word, ...]:
        """The plan: the values of all fields, then the lists."""
        return tuple([values[name] for name in self.names]) + lists


#: of a correlation: positions, blocks and parts; panels and their distribution over chunks; pointer indices
#: (panels.from: of the memory that has packed weights) and scratch offsets; code addresses; strides of the source, the
#: target and the buffer; for Winograd: the transform's code and fields, strides between points and between their sums,
#: channels per group, offsets in the slot and of the panels' flags, and the start of the fallback plan
CORRELATION = PlanLayout("""
    batch grid.dhw block.ndhw blocks.dhw part.ndhw min_last_part
    jobs share splits panels panel.bytes group.bytes panel.channels out_channels
    source weights scratch panels.from slots slots.at slot.bytes panels.at packed.at buffer.at
    fill panel_pass panel_pass.last flush prefetch pack
    from.ndhw from.group from.panel read.ndhw read.first step.dhw min_offset.dhw span.dhw
    target.ndhw target.c target.size target buffer.ndhw flat spread.dhw size.dhw
    phases phases.at operands.at fill_fields.at pack.at
    transform transform.at point.bytes sum.bytes in_channels points.at sums.at flags.at fallback.at
""")

#: of a weight gradient: positions, blocks, and blocks per piece; tiles of the sums and their distribution over chunks;
#: pointer indices and scratch offsets; code addresses; strides of the images and of the output's gradient; for
#: Winograd: the transforms' code and fields, and offsets in the slot
GRADIENT = PlanLayout("""
    batch grid.dhw block.ndhw blocks.ndhw blocks piece
    jobs share splits panels runs.jobs columns.jobs runs length panel.bytes group.bytes
    source factor scratch slots slots.at slot.bytes pieces.at piece.bytes factor.at
    fill fill.factor tile_sum tile_sum.last
    from.ndhw from.group from.panel from.first from.column step.dhw min_offset.dhw span.dhw
    factor.ndhw factor.group factor.panel factor.first
    offsets.at fill_fields.at fill_fields.factor.at
    spread.dhw transform transform.at points.at transform.factor transform.factor.at points.factor.at
""")

#: fields of a phase: number of positions and the first one; its byte offset in the target; contiguous runs in the
#: source, runs per partial sum, start of the list of their offsets and lengths; panel rows of the phases before
PHASE = ("count.d", "count.h", "count.w", "start.d", "start.h", "start.w", "target", "runs", "fold", "offsets",
         "before")
#: fields of an operand: strides by n, d, h, w and channel
OPERAND = 5
