"""Row kernels: a fusion group with reductions as one kernel over rows, with stages of dependent reductions."""

from __future__ import annotations

from ...codegen.rows import rows
from ...codegen.scalar.scalar_ir import Node, variable
from ...runtime.launch import Spec
from ..fusion.intervals import reduced_intervals
from ..graph.value import Value
from .multipass import multipass_kernels
from .pointwise import GroupExpressions, Kernel


def row_kernels(expressions: GroupExpressions, outputs: list[Value]) -> list[Kernel]:
    """The kernels of a group with reductions: one row kernel, or several passes where rows cannot express it."""
    group = expressions.group
    reductions = [v for v in group.members if v.op == "reduce"]
    row_reductions = [v for v in reductions if v.args[0].size == group.size and reduced_intervals(v) == group.rows]
    other_reductions = [v for v in reductions if v not in row_reductions]
    has_arg_extremum = not {v.attrs[0] for v in row_reductions}.isdisjoint(("argmax", "argmin"))
    if any(v.attrs[0] != "sum" for v in other_reductions) or (has_arg_extremum and other_reductions):
        return multipass_kernels(expressions.fusion, group, outputs)
    level: dict[Value, int] = {}
    for member in group.members:
        levels = [level[a.base] for a in member.args if a.base in expressions.members]
        level[member] = max(levels, default=0) + (member in row_reductions)
    stages: list[list[Value]] = [[] for _ in range(max((level[v] for v in row_reductions), default=0))]
    for value in row_reductions:
        stages[level[value] - 1].append(value)
    variable_index = len(expressions.inputs)
    for stage in stages:
        for value in stage:
            expressions.reduction_variables[value] = variable_index
            variable_index += 1
    stage_nodes = tuple(tuple((v.attrs[0], expressions.argument_node(v.args[0], v)) for v in stage) for stage in stages)
    per_element = [v for v in outputs if expressions.is_full(v)]
    all_dims = expressions.all_dims
    columns = [v for v in other_reductions if v.args[0].size == group.size and reduced_intervals(v) != all_dims]
    totals = [v for v in other_reductions if v.args[0].size == group.size and reduced_intervals(v) == all_dims]
    row_totals = [v for v in other_reductions if v.args[0].size != group.size]
    per_row = [v for v in outputs if v not in per_element and v not in other_reductions]

    def argument(value: Value) -> Node:
        return expressions.argument_node(value.args[0], value)

    def result(value: Value) -> Node:
        if value.op == "reduce":
            return variable(expressions.reduction_variables[value], value.dtype)
        return expressions.node(value)

    function = rows.Rows(stage_nodes, tuple([expressions.node(v) for v in per_element]),
                         tuple([result(v) for v in per_row]), tuple([argument(v) for v in columns]),
                         tuple([argument(v) for v in totals]), tuple([argument(v) for v in row_totals]))
    reduced_from = len(expressions.space) - expressions.inner
    outer, inner = expressions.space[:reduced_from], expressions.space[reduced_from:]
    output_specs = [*(expressions.output(v) for v in per_element), *(Spec.dense(outer, v.dtype) for v in per_row),
                    *(Spec.dense(inner, v.dtype) for v in columns),
                    *(Spec.dense((), v.dtype) for v in (*totals, *row_totals))]
    results = [*per_element, *per_row, *columns, *totals, *row_totals]
    factory = function, output_specs, [spec for spec, _ in expressions.inputs], expressions.inner
    family = expressions.fusion.families.rows
    return [Kernel("rows", family(*factory), results, [operand for _, operand in expressions.inputs],
                   factory=(family, factory))]
