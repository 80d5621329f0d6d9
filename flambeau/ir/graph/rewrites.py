"""Rewritings of a graph before it is cut into kernels.

`merge_matmul_sums`: a sum of many products of matrices is one of longer matrices, Σ AᵢBᵢ = [A₁ A₂ ...][B₁; B₂; ...]:
the
gradient of a weight that was used many times, as in a recurrent network.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from . import view_algebra as algebra
from .value import Graph, Value, reachable

#: products in a sum, from which on they are merged
MIN_TERMS = 3


def merge_matmul_sums(graph: Graph, wanted: Sequence[Value]) -> dict[Value, Value]:
    """What stands for the wanted values, and for all that they are computed from, where sums of products are merged."""
    live = reachable(wanted)
    uses = Counter(arg for value in live for arg in value.args)
    uses.update(wanted)
    terms = {arg for value in live if value.op == "add" for arg in value.args if uses[arg] == 1}
    tops = {value: summands for value in live if value.op == "add" and value not in terms
            for summands in [_flatten_sum(value, uses)]
            if sum(_is_single_use_matmul(x, uses) for x in summands) >= MIN_TERMS}
    if not tops:
        return {value: value for value in live}
    made: dict[Value, Value] = {}
    for value in live:
        summands = tops.get(value)
        if summands is not None:
            made[value] = _merge_terms(graph, [made[x] for x in summands],
                                       [_is_single_use_matmul(x, uses) for x in summands])
        elif any(made[a] is not a for a in value.args):
            made[value] = rebuild(graph, value, [made[a] for a in value.args])
        else:
            made[value] = value
    return made


def _is_single_use_matmul(value: Value, uses: Counter[Value]) -> bool:
    return value.op == "matmul" and value.ndim == 2 and uses[value] == 1


def _flatten_sum(top: Value, uses: Counter[Value]) -> list[Value]:
    """The terms of a sum, those of its terms' sums included."""
    found: list[Value] = []
    stack = [top]
    while stack:
        value = stack.pop()
        if value is top or (value.op == "add" and value.shape == top.shape and uses[value] == 1):
            stack.extend(reversed(value.args))
        else:
            found.append(value)
    return found


def _merge_terms(graph: Graph, terms: Sequence[Value], products: Sequence[bool]) -> Value:
    by_shape: dict[tuple, list[Value]] = {}
    rest: list[Value] = []
    for term, is_product in zip(terms, products, strict=True):
        if is_product:
            by_shape.setdefault((term.shape, term.dtype), []).append(term)
        else:
            rest.append(term)
    for group in by_shape.values():
        # what is computed here may be computed where it is wanted; what was there before would have to be copied
        computed = [p for p in group if all(x.base.op not in ("input", "constant") for x in p.args)]
        if len(computed) >= MIN_TERMS:
            rest += [p for p in group if p not in computed]
            group = computed
        if len(group) >= MIN_TERMS:
            group.sort(key=lambda p: [(x.base.number, x.offset) for x in reversed(p.args)])
            rest.append(_concatenated_matmul(graph, group))
        else:
            rest += group
    return _sum(graph, rest)


def _sum(graph: Graph, terms: Sequence[Value]) -> Value:
    total = terms[0]
    for term in terms[1:]:
        total = graph.apply("add", total, term)
    return total


def _concatenated_matmul(graph: Graph, products: Sequence[Value]) -> Value:
    left = [p.args[0] for p in products]
    right = [p.args[1] for p in products]
    if all(_is_column_major(a) for a in left):
        a = graph.permute(graph.cat([graph.permute(x, (1, 0)) for x in left], 0), (1, 0))
    else:
        a = graph.cat(left, 1)
    if all(_is_column_major(b) for b in right):
        b = graph.permute(graph.cat([graph.permute(x, (1, 0)) for x in right], 1), (1, 0))
    else:
        b = graph.cat(right, 0)
    return graph.matmul(a, b)


def _is_column_major(value: Value) -> bool:
    """Whether a matrix lies in memory column by column."""
    rows, columns = value.shape
    return value.op == "view" and algebra.is_dense((columns, rows), value.strides[::-1])


def rebuild(graph: Graph, value: Value, args: list[Value]) -> Value:
    """The same operation on other values."""
    if value.op == "view":
        base = args[0] if args[0].op != "view" else graph.copy(args[0])
        return graph.view(base, value.shape, value.strides, value.offset)
    made = graph.make(value.op, tuple(args), value.attrs, value.shape, value.dtype)
    if value.op == "extern" and made not in graph.extern_outputs:
        graph.extern_outputs[made] = [graph.make("getitem", (made,), part.attrs, part.shape, part.dtype)
                             for part in graph.extern_outputs[value]]
    return made
