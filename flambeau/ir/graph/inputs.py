"""Graph inputs for arrays: the array's memory as a dense input, and the array as a view of that input."""

from __future__ import annotations

import numpy as np

from .value import Graph, Unsupported, Value


def memory_order(a: np.ndarray) -> list[int] | None:
    """The dimensions from the largest to the smallest stride; None where the elements leave gaps or overlap."""
    if not a.size:
        return list(range(a.ndim))
    order = sorted(range(a.ndim), key=lambda d: (a.shape[d] != 1, -a.strides[d]))
    stride = a.itemsize
    for d in reversed(order):
        if a.shape[d] != 1:
            if a.strides[d] != stride:
                return None
            stride *= a.shape[d]
    return order


def input_for_array(graph: Graph, a: np.ndarray, number: int) -> Value:
    """The input that covers an array's memory from its first to its last element, in memory order.

    Raises:
        Unsupported: strides that are negative, or not multiples of the item size.
    """
    order = memory_order(a)
    if order is not None:
        return graph.input(number, tuple(a.shape[d] for d in order), a.dtype)
    if any(s < 0 or s % a.itemsize for s in a.strides):
        raise Unsupported("negative or unaligned strides")
    span = 1 + sum((n - 1) * (s // a.itemsize) for n, s in zip(a.shape, a.strides, strict=True))
    return graph.input(number, (span,), a.dtype)


def view_as_array(graph: Graph, graph_input: Value, a: np.ndarray) -> Value:
    """The array as a view of the input made for its memory."""
    return graph.view(graph_input, a.shape, tuple(s // a.itemsize for s in a.strides) if a.size else (0,) * a.ndim, 0)
