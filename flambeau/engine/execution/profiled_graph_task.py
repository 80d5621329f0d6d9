"""ProfiledGraphTask: a backward pass under a profiler, with a span around each node's evaluation and its rules."""

from __future__ import annotations

from typing import Any

from ..nodes.node import Node
from ..profiler_events import BACKWARD, FUNCTION, Span, active_timeline, record_span
from .graph_task import GraphTask


class ProfiledGraphTask(GraphTask):
    """A backward pass whose nodes open spans of the profiler's timeline."""

    deferred_leaves: list[Node] | None = None  # leaves completed by the node that is being evaluated

    def step(self, node: Node) -> None:
        if self.needed is not None and node not in self.needed and node not in (self.captures or ()):
            super().step(node)
            return
        deferred: list[Node] = []
        self.deferred_leaves = deferred
        with _evaluation_span(node):
            super().step(node)
        for leaf in deferred:
            self._finish_leaf_in_span(leaf)

    def finish_leaf(self, node: Node) -> None:
        if self.deferred_leaves is None:
            self._finish_leaf_in_span(node)
        else:
            self.deferred_leaves.append(node)

    def _finish_leaf_in_span(self, node: Node) -> None:
        if node not in self.buffers or (self.captures is not None and node in self.captures):
            super().finish_leaf(node)
            return
        with _evaluation_span(node), _NodeSpan(node, node.name(), BACKWARD, self.buffers[node]):
            super().finish_leaf(node)

    def call_rules(self, node: Node, g: Any) -> Any:
        with _NodeSpan(node, node.name(), BACKWARD, g) as span:
            grads = super().call_rules(node, g)
            timeline = active_timeline()
            if timeline is not None and span is not None and timeline.memory:
                cotangents = g if isinstance(g, list) else [g]
                timeline.record_allocations(span, [getattr(x, "_array", x) for x in grads],
                                            [getattr(x, "_array", x) for x in cotangents])
        return grads


class _NodeSpan(record_span):
    """A span of a node: it carries the node's sequence number."""

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


def _evaluation_span(node: Node) -> _NodeSpan:
    return _NodeSpan(node, f"autograd::engine::evaluate_function: {node.name()}", FUNCTION)


__all__ = ["ProfiledGraphTask"]
