"""Graph rewrites that run before fusion.

`merge_matmul_sums`: a sum of many matmuls becomes one matmul of concatenated matrices,
Σ AᵢBᵢ = [A₁ A₂ ...][B₁; B₂; ...]. It serves the gradient of a weight that is used
many times, as in a recurrent network.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from . import view_algebra as algebra
from .value import Graph, Value, reachable

#: the fewest matmuls in a sum that are merged
MIN_TERMS = 3


def merge_matmul_sums(graph: Graph, outputs: Sequence[Value]) -> dict[Value, Value]:
    """Merge sums of matmuls: the replacement of each output and of every value that it is computed from."""
    live = reachable(outputs)
    uses = Counter(arg for value in live for arg in value.args)
    uses.update(outputs)
    terms = {arg for value in live if value.op == "add" for arg in value.args if uses[arg] == 1}
    sums = {value: summands for value in live if value.op == "add" and value not in terms
            for summands in [_flatten_sum(value, uses)]
            if sum(_is_single_use_matmul(x, uses) for x in summands) >= MIN_TERMS}
    if not sums:
        return {value: value for value in live}
    replacements: dict[Value, Value] = {}
    for value in live:
        summands = sums.get(value)
        if summands is not None:
            replacements[value] = _merge_terms(graph, [replacements[x] for x in summands],
                                       [_is_single_use_matmul(x, uses) for x in summands])
        elif any(replacements[a] is not a for a in value.args):
            replacements[value] = rebuild(graph, value, [replacements[a] for a in value.args])
        else:
            replacements[value] = value
    return replacements


def _is_single_use_matmul(value: Value, uses: Counter[Value]) -> bool:
    return value.op == "matmul" and value.ndim == 2 and uses[value] == 1


def _flatten_sum(top: Value, uses: Counter[Value]) -> list[Value]:
    """The terms of a tree of additions."""
    terms: list[Value] = []
    stack = [top]
    while stack:
        value = stack.pop()
        if value is top or (value.op == "add" and value.shape == top.shape and uses[value] == 1):
            stack.extend(reversed(value.args))
        else:
            terms.append(value)
    return terms


def _merge_terms(graph: Graph, terms: Sequence[Value], is_matmul: Sequence[bool]) -> Value:
    by_shape: dict[tuple, list[Value]] = {}
    rest: list[Value] = []
    for term, mergeable in zip(terms, is_matmul, strict=True):
        if mergeable:
            by_shape.setdefault((term.shape, term.dtype), []).append(term)
        else:
            rest.append(term)
    for group in by_shape.values():
        # computed operands can be written into the concatenation in place; inputs would have to be copied
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


def _concatenated_matmul(graph: Graph, matmuls: Sequence[Value]) -> Value:
    left = [p.args[0] for p in matmuls]
    right = [p.args[1] for p in matmuls]
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
    """Whether a matrix is column-major."""
    rows, columns = value.shape
    return value.op == "view" and algebra.is_dense((columns, rows), value.strides[::-1])


def rebuild(graph: Graph, value: Value, args: list[Value]) -> Value:
    """The same operation on other arguments."""
    if value.op == "view":
        base = args[0] if args[0].op != "view" else graph.copy(args[0])
        return graph.view(base, value.shape, value.strides, value.offset)
    result = graph.make(value.op, tuple(args), value.attrs, value.shape, value.dtype)
    if value.op == "extern" and result not in graph.extern_outputs:
        graph.extern_outputs[result] = [graph.make("getitem", (result,), output.attrs, output.shape, output.dtype)
                                      for output in graph.extern_outputs[value]]
    return result
