"""A cluster with reductions, one kernel after another: each level of reductions, then what is elementwise.

This is for clusters that no single kernel computes. Results of reductions are stored, and expressions that several of
the kernels need are computed by each.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..fusion.groups import Cluster, Clustering, dims_of
from ..graph.value import Value
from .pointwise import Kernel, Writer, elementwise_kernel, reduction_kernel


def kernels_by_parts(clustering: Clustering, cluster: Cluster, outputs: Sequence[Value]) -> list[Kernel]:
    """The kernels, in order; every reduction that others use is among their outputs."""
    members = set(cluster.members)
    level: dict[Value, int] = {}
    for member in cluster.members:
        before = [level[a.base] for a in member.args if a.base in members]
        level[member] = max(before, default=0) + (member.op == "reduce")
    groups: dict[tuple, list[Value]] = {}
    for member in cluster.members:
        if member.op == "reduce":
            groups.setdefault((level[member], member.args[0].size, dims_of(member)), []).append(member)
    found: list[Kernel] = []
    for key in sorted(groups, key=lambda each: each[0]):
        reductions = groups[key]
        full = key[1] == cluster.size
        part = _part(cluster, reductions, cluster.space if full else reductions[0].args[0].shape)
        part.rows = cluster.rows if full else None
        found.append(reduction_kernel(Writer(clustering, part, key[2]), reductions))
    by_shape: dict[int, list[Value]] = {}
    for value in outputs:
        if value.op != "reduce":
            by_shape.setdefault(value.size, []).append(value)
    for values in by_shape.values():
        part = _part(cluster, values, values[0].shape if values[0].size != cluster.size else cluster.space)
        part.rows = cluster.rows if values[0].size == cluster.size else None
        found.append(elementwise_kernel(Writer(clustering, part), values))
    return found


def _part(cluster: Cluster, values: Sequence[Value], space: tuple[int, ...]) -> Cluster:
    """A cluster of what these values are computed from, reductions apart."""
    members = set(cluster.members)
    inside: set[Value] = set()
    stack = list(values)
    while stack:
        value = stack.pop()
        if value in inside:
            continue
        inside.add(value)
        stack.extend(a.base for a in value.args if a.base in members and a.base.op != "reduce")
    ordered = sorted(inside, key=lambda v: v.number)
    part = Cluster(ordered[0], space)
    part.members = ordered
    return part
