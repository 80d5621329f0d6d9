"""Operators of float16 and bfloat16 that the CPU runs outside of programs, as values for GPU kernels.

The tensor cores read narrow factors and add in float32; attention is the flash kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..._tensor import Tensor
from ...dtypes import NARROW
from ...ir.gpu import flash_attention
from ...ir.graph.value import FLOAT32, Graph, Value
from ...ops.declare import Op

#: products -> the position of the first factor; before it, what is added
_FACTORS = {"mm": 0, "bmm": 0, "linear_nobias": 0, "addmm": 1, "baddbmm": 1}


class Attention(NamedTuple):
    """Attention that is the flash kernel.

    Attributes:
        out: the result.
        sums: the logarithms of the sums of exponentials.
        scale, causal: of the kernel.
    """

    out: Value
    sums: Value
    scale: float
    causal: bool


#: by the values of query, key and value
Attentions = dict[tuple[Value, ...], Attention]


def lowered(graph: Graph, op: Op, inputs: Sequence[Any], params: dict[str, Any], value_of: Callable[[Any], Value],
            attentions: Attentions) -> list[Value] | None:
    """The values of an operator's results; None for operators and dtypes that are lowered as on the CPU.

    Args:
        graph: the graph.
        op, inputs, params: the operator and its arguments.
        value_of: gives the value of a tensor.
        attentions: gets the attention that the flash kernel computes.
    """
    tensors = [x for x in inputs if isinstance(x, Tensor)]
    if not tensors or tensors[0]._array.dtype not in NARROW or any(
            x._array.dtype != tensors[0]._array.dtype for x in tensors):
        return None
    if op.name == "_flash_attention":
        return _attention(graph, inputs, params, value_of, attentions)
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


def _attention(graph: Graph, inputs: Sequence[Any], params: dict[str, Any], value_of: Callable[[Any], Value],
               attentions: Attentions) -> list[Value] | None:
    """Flash attention without a mask; None where the kernel does not apply."""
    query, key, value, *mask = inputs
    arrays = [x._array for x in (query, key, value)]
    if any(each is not None for each in mask) or not flash_attention.applies(
            [each.shape for each in arrays], [each.dtype for each in arrays]):
        return None
    scale, causal = float(params["scale"]), bool(params["is_causal"])
    operands = tuple([value_of(x) for x in (query, key, value)])
    out, sums = flash_attention.attention(graph, operands, scale, causal)
    attentions[operands] = Attention(out, sums, scale, causal)
    return [out]


def attention_gradients(graph: Graph, operands: tuple[Value, ...], grad: Value, found: Attention) -> list[Value]:
    """The gradients of query, key and value.

    Args:
        graph: the graph.
        operands: query, key and value.
        grad: of the result.
        found: the attention.
    """
    return flash_attention.gradients(graph, operands, grad, found.out, found.sums, found.scale, found.causal)


__all__ = ["Attention", "Attentions", "attention_gradients", "lowered"]
