"""A group with reductions, one kernel after another: each level of reductions, then what is elementwise.

This is for groups that no single kernel computes. Results of reductions are stored, and expressions that several of
the kernels need are computed by each.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..fusion.groups import Fusion, FusionGroup, reduced_intervals
from ..graph.value import Value
from .pointwise import GroupExpressions, Kernel, elementwise_kernel, reduction_kernel


def multipass_kernels(fusion: Fusion, group: FusionGroup, outputs: Sequence[Value]) -> list[Kernel]:
    """The kernels, in order; every reduction that others use is among their outputs."""
    members = set(group.members)
    level: dict[Value, int] = {}
    for member in group.members:
        before = [level[a.base] for a in member.args if a.base in members]
        level[member] = max(before, default=0) + (member.op == "reduce")
    groups: dict[tuple, list[Value]] = {}
    for member in group.members:
        if member.op == "reduce":
            groups.setdefault((level[member], member.args[0].size, reduced_intervals(member)), []).append(member)
    found: list[Kernel] = []
    for key in sorted(groups, key=lambda each: each[0]):
        reductions = groups[key]
        full = key[1] == group.size
        part = _subgroup(group, reductions, group.space if full else reductions[0].args[0].shape)
        part.rows = group.rows if full else None
        found.append(reduction_kernel(GroupExpressions(fusion, part, key[2]), reductions))
    by_shape: dict[int, list[Value]] = {}
    for value in outputs:
        if value.op != "reduce":
            by_shape.setdefault(value.size, []).append(value)
    for values in by_shape.values():
        part = _subgroup(group, values, values[0].shape if values[0].size != group.size else group.space)
        part.rows = group.rows if values[0].size == group.size else None
        found.append(elementwise_kernel(GroupExpressions(fusion, part), values))
    return found


def _subgroup(group: FusionGroup, values: Sequence[Value], space: tuple[int, ...]) -> FusionGroup:
    """A group of what these values are computed from, reductions apart."""
    members = set(group.members)
    inside: set[Value] = set()
    stack = list(values)
    while stack:
        value = stack.pop()
        if value in inside:
            continue
        inside.add(value)
        stack.extend(a.base for a in value.args if a.base in members and a.base.op != "reduce")
    ordered = sorted(inside, key=lambda v: v.number)
    part = FusionGroup(ordered[0], space)
    part.members = ordered
    return part
