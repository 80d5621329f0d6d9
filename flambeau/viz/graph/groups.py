"""Groups of nodes, the boxes of a collapsed graph."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from .model import GraphNode


@dataclass(eq=False)
class Group:
    """A group of nodes, drawn as a box.

    Attributes:
        title: a module's path and class, a source line's location and text, or "4 nodes".
        kind: "module", "source", "repeat" or "part" (a range of nodes).
        items: its nodes and groups, newest first; of repeated structure, those of the newest repetition.
        count: the number of consecutive repetitions.
        elided: the nodes of the other repetitions.
        leaves: the leaves that only its nodes use.
    """

    title: str
    kind: str
    items: list[Item]
    count: int = 1
    elided: list[GraphNode] = field(default_factory=list)
    leaves: list[GraphNode] = field(default_factory=list)

    def nodes(self) -> Iterator[GraphNode]:
        """All its nodes except leaves, including those of nested groups."""
        for item in self.items:
            if isinstance(item, Group):
                yield from item.nodes()
            else:
                yield item
        yield from self.elided

    @property
    def bytes(self) -> int:
        """The memory that its nodes save for backward."""
        return sum(node.bytes for node in self.nodes())


Item: TypeAlias = "Group | GraphNode"

__all__ = ["Group", "Item"]
