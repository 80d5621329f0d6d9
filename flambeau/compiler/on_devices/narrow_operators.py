"""Operators of float16 and bfloat16 that the CPU runs outside of programs, as values for GPU kernels.

The tensor cores read narrow factors and add in float32; attention is the flash kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..._tensor import Tensor
from ...dtypes import NARROW
from ...ir.gpu.attention_products import WIDEST_HEADS, attention_kernel
from ...ir.graph.value import FLOAT32, Graph, Value
from ...ops.declare import Op

#: products -> the position of the first factor; before it, what is added
_FACTORS = {"mm": 0, "bmm": 0, "linear_nobias": 0, "addmm": 1, "baddbmm": 1}


def lowered(graph: Graph, op: Op, inputs: Sequence[Any], params: dict[str, Any], value_of: Callable[[Any], Value]
            ) -> list[Value] | None:
    """The values of an operator's results; None for operators and dtypes that are lowered as on the CPU."""
    tensors = [x for x in inputs if isinstance(x, Tensor)]
    if not tensors or tensors[0]._array.dtype not in NARROW or any(
            x._array.dtype != tensors[0]._array.dtype for x in tensors):
        return None
    if op.name == "_flash_attention":
        return _attention(graph, inputs, params, value_of)
    first = _FACTORS.get(op.name)
    if first is None or len(tensors) != first + 2:
        return None
    a, b = (value_of(x) for x in tensors[first:])
    if op.name == "linear_nobias":
        b = graph.permute(b, (1, 0))
    if a.ndim != b.ndim or a.ndim not in (2, 3):
        return None
    result = graph.make("matmul", (a, b), None, (*a.shape[:-1], b.shape[-1]), FLOAT32)
    alpha, beta = params.get("alpha", 1), params.get("beta", 1)
    if alpha != 1:
        result = result * float(alpha)
    if first and beta:
        added = graph.expand(graph.cast(value_of(tensors[0]), FLOAT32), result.shape)
        result = result + (added if beta == 1 else added * float(beta))
    return [graph.cast(result, tensors[0]._array.dtype)]


def _attention(graph: Graph, inputs: Sequence[Any], params: dict[str, Any], value_of: Callable[[Any], Value]
               ) -> list[Value] | None:
    """Flash attention without a mask; None where the kernel does not apply."""
    query, key, value, *mask = inputs
    shapes = [x._array.shape for x in (query, key, value)]
    if any(each is not None for each in mask) or any(len(each) != 4 or not all(each) for each in shapes) or (
            shapes[1] != shapes[2] or shapes[0][:2] != shapes[1][:2] or shapes[0][3] != shapes[1][3]) or (
            shapes[0][3] > WIDEST_HEADS):
        return None
    out, _ = graph.extern(attention_kernel(params["scale"], params["is_causal"]),
                          [value_of(x) for x in (query, key, value)],
                          [(shapes[0], query._array.dtype), (shapes[0][:3], FLOAT32)])
    return [out]


__all__ = ["lowered"]
