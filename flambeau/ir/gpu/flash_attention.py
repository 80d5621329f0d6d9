"""Flash attention and its gradient as values of a graph for GPUs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...dtypes import NARROW
from ..graph.value import FLOAT32, Graph, Value
from .attention_products import WIDEST_HEADS, attention_gradient_kernel, attention_kernel


def applies(shapes: Sequence[tuple[int, ...]], dtypes: Sequence[np.dtype]) -> bool:
    """Whether the flash kernel computes attention of query, key and value: (batch, heads, length, width), narrow."""
    query, key, value = shapes
    if dtypes[0] not in NARROW or any(each != dtypes[0] for each in dtypes):
        return False
    return (len(query) == len(key) == 4 and all(query) and all(key) and key == value and query[:2] == key[:2]
            and query[3] == key[3] <= WIDEST_HEADS)


def attention(graph: Graph, operands: Sequence[Value], scale: float, causal: bool) -> tuple[Value, Value]:
    """The result, and the logarithms of the sums of exponentials.

    Args:
        operands: query, key and value.
    """
    query = operands[0]
    out, sums = graph.extern(attention_kernel(scale, causal), list(operands), [
        (query.shape, query.dtype), (query.shape[:3], FLOAT32)])
    return out, sums


def gradients(graph: Graph, operands: Sequence[Value], grad: Value, out: Value, sums: Value, scale: float,
              causal: bool) -> list[Value]:
    """The gradients of query, key and value.

    Args:
        operands: query, key and value.
        grad: of the result.
        out, sums: what `attention` gives.
    """
    products = graph.apply("mul", graph.cast(grad, FLOAT32), graph.cast(out, FLOAT32))
    delta = graph.reduce("sum", products, (3,))
    return list(graph.extern(attention_gradient_kernel(scale, causal), [grad, *operands, sums, delta],
                             [(x.shape, x.dtype) for x in operands]))


__all__ = ["applies", "attention", "gradients"]
