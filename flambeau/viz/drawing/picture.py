"""A picture before it is drawn: boxes and arrows in the order they were found.

Whoever walks a graph (`dot`, `traces`) fills a `Picture`; whoever draws one
(`dot` for Graphviz, `layered` where there is no Graphviz) reads it. Neither knows
the other.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple


class Box(NamedTuple):
    """One node of a picture; of two boxes with the same key the later one's looks win."""

    key: str
    label: str
    colour: str = ""  # Graphviz's name of the filling; empty for the picture's default


class Arrow(NamedTuple):
    """One edge of a picture, from the box `tail` to the box `head`."""

    tail: str
    head: str
    dotted: bool = False
    headless: bool = False


@dataclass
class Picture:
    """Boxes and arrows, and how the whole is laid out.

    Attributes:
        direction: "TB" (downward), "LR" (to the right) or "RL" (to the left).
        round: whether the nodes are circles instead of boxes.
        title: what the picture is of.
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
        """The boxes, one for each key, as the last piece with that key shows it."""
        return list({piece.key: piece for piece in self.pieces if isinstance(piece, Box)}.values())

    def arrows(self) -> list[Arrow]:
        """The arrows, in the order of discovery."""
        return [piece for piece in self.pieces if isinstance(piece, Arrow)]
