"""The lists of integers that convolutions' code is steered by: which words there are, and how both sides name them."""

from __future__ import annotations

from collections.abc import Mapping

from ...runtime.compilation import Word


class Words:
    """The names of a plan's words, in order; "a.dhw" stands for "a.d", "a.h" and "a.w", "b.ndhw" for four."""

    def __init__(self, names: str) -> None:
        found: list[str] = []
        for name in names.split():
            stem, _, axes = name.partition(".")
            found += [f"{stem}.{axis}" for axis in axes] if axes in ("dhw", "ndhw") else [name]
        self.names = tuple(found)
        self.places = {name: i for i, name in enumerate(found)}

    @property
    def end(self) -> int:
        """Where lists begin, which stand behind the words."""
        return len(self.names)

    def plan(self, values: Mapping[str, Word], *lists: int) -> tuple[Word, ...]:
        """The plan: values of all names, then the lists."""
        return tuple([values[name] for name in self.names]) + lists


#: of a correlation: positions, blocks and parts of them; panels, and how chunks share them; pointers and places in
#: scratch memory; addresses of code; distances in the source, the target and the buffer; of
#: Winograd's points, what makes them and its list, the bytes between them and between their sums, channels of a group,
#: places in the slot and of the panels' marks; where the plan begins by which marked tiles are computed
CORRELATION = Words("""
    batch grid.dhw block.ndhw blocks.dhw part.ndhw least.part
    jobs share splits panels panel.bytes group.bytes panel.channels width
    source weights scratch slots slots.at slot.bytes panels.at packed.at buffer.at
    fill sweep sweep.last flush ahead pack
    from.ndhw from.group from.panel read.ndhw read.first step.dhw least.dhw span.dhw
    target.ndhw target.c target.size target buffer.ndhw flat spread.dhw size.dhw
    phases phases.at operands.at about.at pack.at
    making making.at points sums inside points.at sums.at marks.at plainly.at
""")

#: of a weight's gradient: positions and blocks of them, and the blocks of a piece; tiles of the sums, and how chunks
#: share them; pointers and places; addresses of code; distances in the images and in the output's gradient; of
#: Winograd's points, what makes them and its lists, and their places in the slot
GRADIENT = Words("""
    batch grid.dhw block.ndhw blocks.ndhw blocks piece
    jobs share splits panels runs.jobs columns.jobs runs length panel.bytes group.bytes
    source factor scratch slots slots.at slot.bytes pieces.at piece.bytes factor.at
    fill fill.factor sweep sweep.last
    from.ndhw from.group from.panel from.first from.column step.dhw least.dhw span.dhw
    factor.ndhw factor.group factor.panel factor.first
    offsets.at about.at about.factor.at
    spread.dhw making making.at points.at making.factor making.factor.at points.factor.at
""")

#: words of a phase: its positions and the first of them; bytes from a target's first position; runs of numbers that
#: lie together in the source, how many are added up at a time, where their offsets and lengths are listed; rows of the
#: panel before
PHASE = ("count.d", "count.h", "count.w", "start.d", "start.h", "start.w", "target", "runs", "fold", "offsets",
         "before")
#: words of an operand: its strides by n, d, h, w and channel
OPERAND = 5
