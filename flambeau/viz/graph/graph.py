"""`Graph`: the autograd graph behind a tensor, printed, drawn, collapsed and measured.

    graph = loss.graph(params=model)      # or Graph.of([loss, other])
    print(graph)                          # as text; in a notebook, as a picture
    graph.nodes[0].saved                  # newest first
    graph.to_dict()                       # as JSON data
"""

from __future__ import annotations

from typing import Any

from ..drawing.svg import html_of, svg_of
from ..drawing.text import MOST_NODES, text_of, text_of_boxes
from .collapse import Grouping
from .memory import MemoryReport
from .model import GraphModel, GraphNode, Saved


class _Display:
    """Rich display in notebooks: text, SVG and HTML."""

    def _repr_svg_(self) -> str:
        raise NotImplementedError

    def _repr_html_(self) -> str:
        raise NotImplementedError

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        bundle = {"text/plain": str(self), "image/svg+xml": self._repr_svg_(), "text/html": self._repr_html_()}
        return {kind: data for kind, data in bundle.items()
                if (not include or kind in include) and kind not in (exclude or ())}


class Collapsed(_Display, Grouping):
    """A graph grouped into boxes, the result of `Graph.collapsed`.

    >>> import flambeau as torch
    >>> x = y = torch.ones(2, requires_grad=True)
    >>> for _ in range(1000):
    ...     y = torch.tanh(y * 1.01)
    >>> boxes = y.sum().graph().collapsed()
    >>> [(item.title, item.count) for item in boxes.items if hasattr(item, "title")]
    [('mul · tanh', 1000)]
    >>> print(boxes)
    a graph of 2001 nodes and 1 leaf, which keeps 8.0 kB for backward
    ● SumBackward0  ()
    ▣ mul · tanh × 1000  (2,)  8.0 kB
    ○ leaf  (2,)
    """

    def __str__(self) -> str:
        return text_of_boxes(self)

    def _repr_svg_(self) -> str:
        return svg_of(self)

    def _repr_html_(self) -> str:
        return html_of(self)


class Graph(_Display, GraphModel):
    """The nodes of the graph of one or several tensors, newest first.

    Args:
        roots: autograd nodes.
        labels: names of leaves by the id of the tensor.
        outputs: known outputs of the roots: (node, output number) -> (shape, dtype name).

    >>> import flambeau as torch
    >>> x = torch.ones(2, 3, requires_grad=True)
    >>> graph = (x * 2.5).exp().sum().graph(params={"x": x})
    >>> [node.name for node in graph]
    ['SumBackward0', 'ExpBackward0', 'MulBackward0', 'AccumulateGrad']
    >>> graph.nodes[1].outputs, graph.nodes[1].bytes, graph.nodes[1].edges
    ([((2, 3), 'float32')], 24, [(2, 0, 0)])
    >>> print(graph)
    a graph of 3 nodes and 1 leaf, which keeps 24 bytes for backward
    ● SumBackward0  ()
    ● ExpBackward0  (2, 3)  keeps result (24 bytes)
    ● MulBackward0  (2, 3)
    ○ x  (2, 3)
    """

    def collapsed(self, by: str | None = None, limit: int = 40) -> Collapsed:
        """The graph with its nodes grouped into boxes.

        Args:
            by: "module", "source" (line) or "repeat" (repeated structure); None: whichever shows at most `limit` items
                per level.
            limit: the maximum number of items per level.
        """
        return Collapsed(self, by, limit)

    def memory(self) -> MemoryReport:
        """The bytes that nodes and source lines save for backward, as a printable table."""
        return MemoryReport(self)

    def svg(self, by: str | None = None, limit: int = 40) -> str:
        """The graph as an SVG document; its boxes can be opened where scripts run."""
        return svg_of(self.collapsed(by, limit))

    def __str__(self) -> str:
        return text_of(self) if len(self) <= MOST_NODES else str(self.collapsed())

    def _repr_svg_(self) -> str:
        return self.svg()

    def _repr_html_(self) -> str:
        return html_of(self.collapsed())


__all__ = ["Collapsed", "Graph", "GraphNode", "Saved"]
