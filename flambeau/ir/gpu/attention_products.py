"""A rewrite for GPUs: two products of float16 or bfloat16 with a softmax between them become flash attention.

The matrix of scores is then never in memory. It applies where nothing else reads scores or weights: not in the forward
part of a program whose backward part saves them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from ...dtypes import NARROW
from ..graph.extern_kernels import ExternKernel
from ..graph.rewrites import rebuild
from ..graph.value import FLOAT32, Graph, Unsupported, Value, reachable
from ..graph.view_algebra import dense_strides

#: the widest heads of the flash kernel
WIDEST_HEADS = 128


class _Attention(NamedTuple):
    query: Value
    key: Value
    value: Value
    scale: float


def attention_kernel(scale: float, causal: bool) -> ExternKernel:
    """The extern kernel of flash attention: query, key, value -> result, logarithms of the sums."""
    return ExternKernel("flash_attention", _on_devices_only, {"scale": float(scale), "causal": bool(causal)})


def attention_gradient_kernel(scale: float, causal: bool) -> ExternKernel:
    """The extern kernel of its gradient: of the result, query, key, value, the logarithms, the sums of gradient times
    result -> the gradients of query, key and value."""
    return ExternKernel("flash_attention_gradient", _on_devices_only, {"scale": float(scale), "causal": bool(causal)})


def _on_devices_only(outputs: Any, inputs: Any, **params: Any) -> Any:
    raise Unsupported("flash attention has kernels for GPUs only")


def attention_products(graph: Graph, outputs: Sequence[Value]) -> dict[Value, Value]:
    """The replacement of each output and of every value that it is computed from."""
    live = reachable(outputs)
    uses = Counter(arg for value in live for arg in value.args)
    uses.update(outputs)
    found = {value: match for value in live if (match := _match(graph, value, uses)) is not None}
    replacements: dict[Value, Value] = {}
    for value in live:
        match = found.get(value)
        if match is not None:
            replacements[value] = _flash(graph, value, match, replacements)
        elif any(replacements[x] is not x for x in value.args):
            replacements[value] = rebuild(graph, value, [replacements[x] for x in value.args])
        else:
            replacements[value] = value
    return replacements


def _only_cast(value: Value, uses: Counter[Value]) -> Value | None:
    """What a value is a cast or another shape of, over any number of them; None if anything else reads one of them."""
    while value.op == "cast" or _is_reshaped(value):
        if uses[value] != 1:
            return None
        value = value.args[0]
    return value


def _is_reshaped(value: Value) -> bool:
    """Whether a value has all elements of another one, in their order."""
    return value.op == "view" and not value.offset and value.size == value.base.size and (
        value.strides == dense_strides(value.shape))


def _match(graph: Graph, product: Value, uses: Counter[Value]) -> _Attention | None:
    """The operands of attention, if a product is one of its weights and its values."""
    if product.op != "matmul" or product.ndim not in (3, 4) or product.args[1].dtype not in NARROW:
        return None
    weights = _only_cast(product.args[0], uses)
    if weights is None or weights.op != "div" or uses[weights] != 1:
        return None
    exponentials, total = weights.args
    last = weights.ndim - 1
    if exponentials.op != "exp" or uses[exponentials] != 2 or not _is_row(total, "sum", exponentials, last):
        return None
    shifted = exponentials.args[0]
    if shifted.op != "sub" or uses[shifted] != 1 or not _is_row(shifted.args[1], "max", shifted.args[0], last) or (
            uses[shifted.args[0]] != 2):
        return None
    scores, scale = shifted.args[0], 1.0
    while scores.op in ("cast", "mul") or _is_reshaped(scores):
        if scores.op == "mul":
            factor = scores.args[1]
            if factor.op != "constant" or factor.size != 1:
                return None
            scale *= float(graph.array(factor).reshape(()))
        scores = scores.args[0]
        if uses[scores] != 1:
            return None
    if scores.op != "matmul" or scores.args[0].dtype != product.args[1].dtype:
        return None
    query, transposed = scores.args
    axes = (*range(transposed.ndim - 2), transposed.ndim - 1, transposed.ndim - 2)
    key, value = graph.permute(transposed, axes), product.args[1]
    if key.shape != value.shape or query.shape[:-2] != key.shape[:-2] or query.shape[-1] > WIDEST_HEADS:
        return None
    return _Attention(query, key, value, scale)


def _is_row(value: Value, op: str, of: Value, axis: int) -> bool:
    """Whether a value is the sum or maximum over the last axis of another one, in each of the axis's places."""
    base = value.base
    return value.op == "view" and base.op == "reduce" and base.attrs[0] == op and tuple(base.attrs[1]) == (axis,) and (
        base.args[0] is of) and value.strides[-1] == 0 and value.offset == 0


def _flash(graph: Graph, product: Value, match: _Attention, replacements: dict[Value, Value]) -> Value:
    operands = [_with_heads(graph, _replaced(graph, each, replacements)) for each in match[:3]]
    shape = operands[0].shape
    out, _ = graph.extern(attention_kernel(match.scale, False), operands, [
        (shape, match.query.dtype), (shape[:3], FLOAT32)])
    return graph.cast(graph.reshape(out, product.shape), product.dtype)


def _replaced(graph: Graph, value: Value, replacements: dict[Value, Value]) -> Value:
    """A value, or the view that was made of one, over what replaces it."""
    if value in replacements:
        return replacements[value]
    return graph.view(replacements[value.base], value.shape, value.strides, value.offset)


def _with_heads(graph: Graph, x: Value) -> Value:
    """A value with a dimension of heads."""
    return x if x.ndim == 4 else graph.reshape(x, (x.shape[0], 1, *x.shape[1:]))


__all__ = ["WIDEST_HEADS", "attention_gradient_kernel", "attention_kernel", "attention_products"]
