"""A backward pass under a profiler: two spans for each node, one around its rules and one around all of its turn."""

from __future__ import annotations

from typing import Any

from .engine import _Run
from .node import Node
from .profiler_events import BACKWARD, FUNCTION, Span, recording, spanned


class TimedRun(_Run):
    """One backward pass that is written down."""

    ready: list[Node] | None = None  # leaves whose turn comes when that of the node that completed them is over

    def step(self, node: Node) -> None:
        if self.wanted is not None and node not in self.wanted and node not in (self.targets or ()):
            super().step(node)
            return
        ready: list[Node] = []
        self.ready = ready
        with _turn(node):
            super().step(node)
        for leaf in ready:
            self._timed_leaf(leaf)

    def leaf(self, node: Node) -> None:
        if self.ready is None:
            self._timed_leaf(node)
        else:
            self.ready.append(node)

    def _timed_leaf(self, node: Node) -> None:
        if node not in self.pending or (self.targets is not None and node in self.targets):
            super().leaf(node)
            return
        with _turn(node), _of(node, node.name(), BACKWARD, self.pending[node]):
            super().leaf(node)

    def watched(self, node: Node, g: Any) -> Any:
        with _of(node, node.name(), BACKWARD, g) as span:
            found = super().watched(node, g)
            timeline = recording()
            if timeline is not None and span is not None and timeline.memory:
                given = [*g] if isinstance(g, list) else [g]
                timeline.made(span, [getattr(x, "_array", x) for x in found], [getattr(x, "_array", x) for x in given])
        return found


class _of(spanned):
    """A span that has to do with a node."""

    def __init__(self, node: Node, name: str, scope: int, g: Any = None) -> None:
        super().__init__(name, scope)
        self.node, self.g = node, g

    def __enter__(self) -> Span | None:
        span = super().__enter__()
        if span is not None:
            if self.scope == BACKWARD and span.shapes is not None:
                cotangents = self.g if isinstance(self.g, list) else [self.g]
                span.shapes = [list(getattr(x, "shape", ())) for x in cotangents]
            if not self.node.is_leaf:
                span.sequence = self.node.seq
            span.forward_thread = span.thread
        return span


def _turn(node: Node) -> _of:
    return _of(node, f"autograd::engine::evaluate_function: {node.name()}", FUNCTION)
