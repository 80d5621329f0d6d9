"""A backward pass that somebody observes: each node, each leaf, each thing that is freed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .engine import Edge
from .node import Node
from .observers import observers
from .profiled_run import TimedRun


class ObservedRun(TimedRun):
    """One backward pass of which observers are told; a profiler's spans are opened as well, if one is on."""

    def __init__(self, roots: Sequence[Edge], retain: bool, create: bool) -> None:
        super().__init__(roots, retain, create)
        self.observers = observers()

    def watched(self, node: Node, g: Any) -> Any:
        found = super().watched(node, g)
        for observer in self.observers:
            observer.runs(node, g, found)
        return found

    def let_go(self, node: Node) -> None:
        for observer in self.observers:
            observer.frees(node)
        super().let_go(node)

    def _timed_leaf(self, node: Node) -> None:
        g = self.pending.get(node)
        captured = self.targets is not None and node in self.targets
        if g is None or not (captured or self.wanted is None or node in self.wanted):
            super()._timed_leaf(node)
            return
        for observer in self.observers:
            observer.arrives(node, g, captured)
        del g  # the leaf may take the array over
        super()._timed_leaf(node)
        if not captured:
            for observer in self.observers:
                observer.accumulated(node)
