"""A rewrite for GPUs: matrices of large products of float16 and bfloat16 whose rows are aligned to 16 bytes.

The library's fast kernels want that: a product with 50,257 columns takes many times as long as one with 50,264. Such a
result is a view of a wider product, whose last columns nothing reads; such a factor is copied into wider rows.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...dtypes import NARROW
from ..graph.rewrites import rebuild
from ..graph.value import Graph, Value, reachable

#: elements that rows are multiples of, and the fewest multiplications of a product that pays for a copy
ELEMENTS, LEAST = 8, 1 << 32


def aligned_products(graph: Graph, outputs: Sequence[Value]) -> dict[Value, Value]:
    """The replacement of each output and of every value that it is computed from."""
    live = reachable(outputs)
    views: dict[Value, list[Value]] = {}
    for value in live:
        if value.op == "view":
            views.setdefault(value.base, []).append(value)
    kept = {each.base for each in outputs}
    copies: dict[Value, Value] = {}
    replacements: dict[Value, Value] = {}
    for value in live:
        if value in replacements:
            continue
        args = [replacements[x] for x in value.args]
        if _is_large(value):
            args = [_factor(graph, x, copies) for x in args]
            if value.shape[1] % ELEMENTS and value not in kept and _are_in_rows(views.get(value, ()), value.shape[1]):
                _widen_result(graph, value, args, views.get(value, ()), replacements)
                continue
        changed = any(new is not x for new, x in zip(args, value.args, strict=True))
        replacements[value] = rebuild(graph, value, args) if changed else value
    return replacements


def _is_large(value: Value) -> bool:
    if value.op != "matmul" or value.ndim != 2 or value.args[0].dtype not in NARROW:
        return False
    return value.size * value.args[0].shape[1] >= LEAST


def _wider(n: int) -> int:
    return -(-n // ELEMENTS) * ELEMENTS


def _factor(graph: Graph, x: Value, copies: dict[Value, Value]) -> Value:
    """A factor, or a view of a copy in wider rows."""
    base = x.base
    length = max(x.strides)
    if min(x.strides) != 1 or x.offset or not length % ELEMENTS or x.shape[x.strides.index(1)] != length or (
            base.size != x.size or base.op == "constant"):
        return x
    rows, wide = x.size // length, _wider(length)
    copy = copies.get(base)
    if copy is None:
        copy = copies[base] = graph.assemble((rows, wide), None, [graph.view(base, (rows, length), (length, 1), 0)],
                                             [((wide, 1), 0)])
    return graph.view(copy, x.shape, (wide, 1) if x.strides[1] == 1 else (1, wide), 0)


def _are_in_rows(views: Sequence[Value], length: int) -> bool:
    """Whether the dimensions of views are over rows of this length, or within one."""
    return all(stride % length == 0 or view.offset % length + (n - 1) * stride < length
               for view in views for n, stride in zip(view.shape, view.strides, strict=True))


def _widen_result(graph: Graph, value: Value, args: Sequence[Value], views: Sequence[Value],
                  replacements: dict[Value, Value]) -> None:
    """Replace a product, and the views of it, by views of one with more columns."""
    (m, n), (a, b), wide = value.shape, args, _wider(value.shape[1])
    by_column = b.strides[0] == 1
    rows = graph.permute(b, (1, 0)) if by_column else b
    shape = (wide, rows.shape[1]) if by_column else (rows.shape[0], wide)
    copy = graph.assemble(shape, None, [rows], [((shape[1], 1), 0)])
    product = graph.make("matmul", (a, graph.permute(copy, (1, 0)) if by_column else copy), None, (m, wide),
                         value.dtype)
    replacements[value] = graph.view(product, (m, n), (wide, 1), 0)
    for view in views:
        strides = tuple([s // n * wide if s % n == 0 else s for s in view.strides])
        replacements[view] = graph.view(product, view.shape, strides, view.offset // n * wide + view.offset % n)


__all__ = ["aligned_products"]
