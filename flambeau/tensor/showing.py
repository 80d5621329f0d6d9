"""The tensor's own ways to show its graph, lent by the package above that draws."""

from __future__ import annotations

from typing import Any

from .tensor import Tensor


def graph(self: Tensor, params: Any = None) -> Any:
    """The graph behind this tensor: print it, show it in a notebook, ask it for its memory (`viz.Graph`).

    Args:
        params: names of leaves: `{name: tensor}`, or a module, whose parameters' names are taken.

    Raises:
        RuntimeError: the tensor has no graph.

    >>> import flambeau as torch
    >>> x = torch.ones(3, requires_grad=True)
    >>> print((x * x).sum().graph(params={"x": x}))
    a graph of 2 nodes and 1 leaf, which keeps nothing for backward but its leaf
    ● SumBackward0  ()
    ● MulBackward0  (3,)  keeps self, other (12 bytes)
    ○ x  (3,)
    """
    from ..viz.graph import Graph

    return Graph.of(self, params)


METHODS: dict[str, Any] = {"graph": graph}

__all__: list[str] = []
