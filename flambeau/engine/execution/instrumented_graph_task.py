"""InstrumentedGraphTask: a backward pass that notifies observers of each node, each leaf, and freed values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..nodes.node import Node
from ..observers import observers
from .profiled_graph_task import ProfiledGraphTask
from .topological_order import Edge


class InstrumentedGraphTask(ProfiledGraphTask):
    """A backward pass that notifies observers; under a profiler it opens spans as well."""

    def __init__(self, roots: Sequence[Edge], keep_graph: bool, create_graph: bool) -> None:
        super().__init__(roots, keep_graph, create_graph)
        self.observers = observers()

    def call_rules(self, node: Node, g: Any) -> Any:
        grads = super().call_rules(node, g)
        for observer in self.observers:
            observer.on_node(node, g, grads)
        return grads

    def release(self, node: Node) -> None:
        for observer in self.observers:
            observer.on_release(node)
        super().release(node)

    def _finish_leaf_in_span(self, node: Node) -> None:
        g = self.buffers.get(node)
        captured = self.captures is not None and node in self.captures
        if g is None or not (captured or self.needed is None or node in self.needed):
            super()._finish_leaf_in_span(node)
            return
        for observer in self.observers:
            observer.on_leaf(node, g, captured)
        del g  # the leaf may take the array over if nothing else refers to it
        super()._finish_leaf_in_span(node)
        if not captured:
            for observer in self.observers:
                observer.on_accumulate(node)


__all__ = ["InstrumentedGraphTask"]
