"""`Picture`: boxes and arrows, the interface between graph traversals and drawing back ends.

Traversals (`dot`, `traces`) create pictures. Back ends (`dot` for Graphviz, `layered` and `svg` without it) draw them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple


class Box(NamedTuple):
    """One node of a picture; a later box with the same key replaces an earlier one."""

    key: str
    label: str
    colour: str = ""  # Graphviz's name of the fill colour; empty for the default


class Arrow(NamedTuple):
    """One edge of a picture, from the box `tail` to the box `head`."""

    tail: str
    head: str
    dotted: bool = False
    headless: bool = False


@dataclass
class Picture:
    """Boxes and arrows, and the direction of the layout.

    Attributes:
        direction: "TB" (downward), "LR" (to the right) or "RL" (to the left).
        round: whether the nodes are circles instead of boxes.
        title: the title.
        pieces: the boxes and arrows, in the order of discovery.

    >>> from flambeau.viz.drawing.picture import Arrow, Box, Picture
    >>> picture = Picture(pieces=[Box("a", "x"), Box("b", "y"), Arrow("a", "b")])
    >>> [box.label for box in picture.boxes()], len(picture.arrows())
    (['x', 'y'], 1)
    """

    direction: str = "TB"
    round: bool = False
    title: str = ""
    pieces: list[Box | Arrow] = field(default_factory=list)

    def boxes(self) -> list[Box]:
        """The boxes, the last one for each key."""
        return list({piece.key: piece for piece in self.pieces if isinstance(piece, Box)}.values())

    def arrows(self) -> list[Arrow]:
        """The arrows, in the order of discovery."""
        return [piece for piece in self.pieces if isinstance(piece, Arrow)]
