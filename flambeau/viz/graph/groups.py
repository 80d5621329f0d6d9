"""Boxes of nodes: what a collapsed graph is made of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from .model import GraphNode


@dataclass(eq=False)
class Group:
    """A box.

    Attributes:
        title: what it is: a module's path and class, a line's place and text, "4 nodes".
        kind: "module", "source", "repeat" or "part" (a stretch of nodes that nothing else holds together).
        items: what is in it, newest first; of repeated structure, the newest repetition.
        count: how often it comes in a row.
        elided: the nodes of the repetitions that are not among the items.
        leaves: those leaves that only nodes in it use.
    """

    title: str
    kind: str
    items: list[Item]
    count: int = 1
    elided: list[GraphNode] = field(default_factory=list)
    leaves: list[GraphNode] = field(default_factory=list)

    def nodes(self) -> Iterator[GraphNode]:
        """All nodes in it but leaves, those in inner boxes included."""
        for item in self.items:
            if isinstance(item, Group):
                yield from item.nodes()
            else:
                yield item
        yield from self.elided

    @property
    def bytes(self) -> int:
        """The memory that its nodes keep for backward."""
        return sum(node.bytes for node in self.nodes())


Item: TypeAlias = "Group | GraphNode"

__all__ = ["Group", "Item"]
