"""Clusters with reductions as kernels over rows: stages of reductions, and what is computed from them on the way."""

from __future__ import annotations

from ...codegen.rows import rows
from ...codegen.scalar.scalar_ir import Node, variable
from ...runtime.launch import Spec
from ..fusion.groups import reduced_intervals
from ..graph.value import Value
from .multipass import multipass_kernels
from .pointwise import GroupExpressions, Kernel


def row_kernels(expressions: GroupExpressions, outputs: list[Value]) -> list[Kernel]:
    """The kernels of a group with reductions: one, unless it reduces in a way that rows do not."""
    group = expressions.group
    reductions = [v for v in group.members if v.op == "reduce"]
    by_row = [v for v in reductions if v.args[0].size == group.size and reduced_intervals(v) == group.rows]
    rest = [v for v in reductions if v not in by_row]
    if any(v.attrs[0] != "sum" for v in rest) or (len({v.attrs[0] for v in by_row} & {"argmax", "argmin"}) and rest):
        return multipass_kernels(expressions.fusion, group, outputs)
    level: dict[Value, int] = {}
    for member in group.members:
        before = [level[a.base] for a in member.args if a.base in expressions.members]
        level[member] = max(before, default=0) + (member in by_row)
    stages: list[list[Value]] = [[] for _ in range(max((level[v] for v in by_row), default=0))]
    for value in by_row:
        stages[level[value] - 1].append(value)
    number = len(expressions.inputs)
    for stage in stages:
        for value in stage:
            expressions.reduction_variables[value] = number
            number += 1
    made = tuple(tuple((v.attrs[0], expressions.argument_node(v.args[0], v)) for v in stage) for stage in stages)
    full = [v for v in outputs if expressions.is_full(v)]
    whole = expressions.whole_dims
    columns = [v for v in rest if v.args[0].size == group.size and reduced_intervals(v) != whole]
    totals = [v for v in rest if v.args[0].size == group.size and reduced_intervals(v) == whole]
    row_totals = [v for v in rest if v.args[0].size != group.size]
    per_row = [v for v in outputs if v not in full and v not in rest]

    def argument(value: Value) -> Node:
        return expressions.argument_node(value.args[0], value)

    def result(value: Value) -> Node:
        return variable(expressions.reduction_variables[value],
                        value.dtype) if value.op == "reduce" else expressions.node(value)

    work = rows.Rows(made, tuple([expressions.node(v) for v in full]), tuple([result(v) for v in per_row]),
                     tuple([argument(v) for v in columns]), tuple([argument(v) for v in totals]),
                     tuple([argument(v) for v in row_totals]))
    reduced_from = len(expressions.space) - expressions.inner
    outer, inner = expressions.space[:reduced_from], expressions.space[reduced_from:]
    outs = [*(expressions.output(v) for v in full), *(Spec.dense(outer, v.dtype) for v in per_row),
            *(Spec.dense(inner, v.dtype) for v in columns),
            *(Spec.dense((), v.dtype) for v in (*totals, *row_totals))]
    results = [*full, *per_row, *columns, *totals, *row_totals]
    factory = work, outs, [spec for spec, _ in expressions.inputs], expressions.inner
    return [Kernel("rows", rows.launches(*factory), results, [place for _, place in expressions.inputs],
                   factory=(rows.launches, factory))]
