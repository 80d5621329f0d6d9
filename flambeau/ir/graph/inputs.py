"""Arrays as leaves: memory in its own order, and an array as a view of it."""

from __future__ import annotations

import numpy as np

from .value import Graph, Unsupported, Value


def memory_order(a: np.ndarray) -> list[int] | None:
    """The dimensions from the slowest to the fastest in memory; None where the elements leave gaps or repeat."""
    if not a.size:
        return list(range(a.ndim))
    order = sorted(range(a.ndim), key=lambda d: (a.shape[d] != 1, -a.strides[d]))
    filled = a.itemsize
    for d in reversed(order):
        if a.shape[d] != 1:
            if a.strides[d] != filled:
                return None
            filled *= a.shape[d]
    return order


def input_for_array(graph: Graph, a: np.ndarray, number: int) -> Value:
    """The graph_input whose memory is an array's, from its first to its last element, in the order of memory.

    Raises:
        Unsupported: strides that are negative, or no multiples of an element's size.
    """
    order = memory_order(a)
    if order is not None:
        return graph.input(number, tuple(a.shape[d] for d in order), a.dtype)
    if any(s < 0 or s % a.itemsize for s in a.strides):
        raise Unsupported("memory seen backwards or at odd addresses")
    span = 1 + sum((n - 1) * (s // a.itemsize) for n, s in zip(a.shape, a.strides, strict=True))
    return graph.input(number, (span,), a.dtype)


def view_as_array(graph: Graph, graph_input: Value, a: np.ndarray) -> Value:
    """The array whose memory a graph_input is."""
    return graph.view(graph_input, a.shape, tuple(s // a.itemsize for s in a.strides) if a.size else (0,) * a.ndim, 0)
