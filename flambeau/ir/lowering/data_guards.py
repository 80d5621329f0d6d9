"""Data guards of a graph: conditions on the elements of inputs under which its results are valid."""

from __future__ import annotations

from ..graph.value import Graph, Value


class DataGuards:
    """Primitives that add conditions to the graph."""

    graph: Graph

    def requires_range(self, index: Value, count: int, but: int | None = None) -> None:
        """Guard the graph on indices in [0, count), except those equal to `but`."""
        graph = self.graph
        if not index.size:
            return
        wrong = graph.apply("or", graph.apply("lt", index, 0), graph.apply("ge", index, count))
        if but is not None:
            wrong = graph.apply("and", wrong, graph.apply("ne", index, but))
        condition = (graph.reduce("any", wrong, range(wrong.ndim)) if wrong.ndim else wrong, False)
        if condition not in graph.conditions:
            graph.conditions.append(condition)

    def check_probabilities(self, *values: Value) -> None:
        """Guard the graph on elements in [0, 1]."""
        g = self.graph
        for x in values:
            inside = g.apply("and", g.apply("ge", x, 0.0), g.apply("le", x, 1.0))
            condition = (g.reduce("all", inside, range(x.ndim)) if x.ndim else inside, True)
            if condition not in g.conditions:
                g.conditions.append(condition)


__all__ = ["DataGuards"]
