"""Clusters with reductions as kernels over rows: stages of reductions, and what is computed from them on the way."""

from __future__ import annotations

from ...codegen.rows import rows
from ...codegen.scalar.scalar_ir import Node, variable
from ...runtime.launch import Spec
from ..fusion.groups import dims_of
from ..graph.value import Value
from .multipass import kernels_by_parts
from .pointwise import Kernel, Writer


def rows_kernels(writer: Writer, outputs: list[Value]) -> list[Kernel]:
    """The kernels of a cluster with reductions: one, unless it reduces in a way that rows do not."""
    cluster = writer.cluster
    reductions = [v for v in cluster.members if v.op == "reduce"]
    by_row = [v for v in reductions if v.args[0].size == cluster.size and dims_of(v) == cluster.rows]
    rest = [v for v in reductions if v not in by_row]
    if any(v.attrs[0] != "sum" for v in rest) or (len({v.attrs[0] for v in by_row} & {"argmax", "argmin"}) and rest):
        return kernels_by_parts(writer.clustering, cluster, outputs)
    level: dict[Value, int] = {}
    for member in cluster.members:
        before = [level[a.base] for a in member.args if a.base in writer.members]
        level[member] = max(before, default=0) + (member in by_row)
    stages: list[list[Value]] = [[] for _ in range(max((level[v] for v in by_row), default=0))]
    for value in by_row:
        stages[level[value] - 1].append(value)
    number = len(writer.inputs)
    for stage in stages:
        for value in stage:
            writer.terms[value] = number
            number += 1
    made = tuple(tuple((v.attrs[0], writer.argument(v.args[0], v)) for v in stage) for stage in stages)
    full = [v for v in outputs if writer.is_full(v)]
    whole = writer.whole_dims
    columns = [v for v in rest if v.args[0].size == cluster.size and dims_of(v) != whole]
    totals = [v for v in rest if v.args[0].size == cluster.size and dims_of(v) == whole]
    row_totals = [v for v in rest if v.args[0].size != cluster.size]
    per_row = [v for v in outputs if v not in full and v not in rest]

    def argument(value: Value) -> Node:
        return writer.argument(value.args[0], value)

    def result(value: Value) -> Node:
        return variable(writer.terms[value], value.dtype) if value.op == "reduce" else writer.node(value)

    work = rows.Rows(made, tuple([writer.node(v) for v in full]), tuple([result(v) for v in per_row]),
                     tuple([argument(v) for v in columns]), tuple([argument(v) for v in totals]),
                     tuple([argument(v) for v in row_totals]))
    outer, inner = writer.space[:len(writer.space) - writer.inner], writer.space[len(writer.space) - writer.inner:]
    outs = [*(writer.output(v) for v in full), *(Spec.dense(outer, v.dtype) for v in per_row),
            *(Spec.dense(inner, v.dtype) for v in columns),
            *(Spec.dense((), v.dtype) for v in (*totals, *row_totals))]
    results = [*full, *per_row, *columns, *totals, *row_totals]
    asked = work, outs, [spec for spec, _ in writer.inputs], writer.inner
    return [Kernel("rows", rows.launches(*asked), results, [place for _, place in writer.inputs],
                   asked=(rows.launches, asked))]
