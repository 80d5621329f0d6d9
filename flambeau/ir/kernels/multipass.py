"""Multi-pass reductions: a fusion group as one kernel per level of reductions, then elementwise kernels.

For groups that no single kernel computes. Results of reductions are stored; expressions that several kernels need are
recomputed by each.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..fusion.groups import Fusion, FusionGroup
from ..fusion.intervals import reduced_intervals
from ..graph.value import Value
from .pointwise import GroupExpressions, Kernel, elementwise_kernel, reduction_kernel


def multipass_kernels(fusion: Fusion, group: FusionGroup, outputs: Sequence[Value]) -> list[Kernel]:
    """The kernels, in order; every reduction is stored."""
    members = set(group.members)
    level: dict[Value, int] = {}
    for member in group.members:
        levels = [level[a.base] for a in member.args if a.base in members]
        level[member] = max(levels, default=0) + (member.op == "reduce")
    groups: dict[tuple, list[Value]] = {}
    for member in group.members:
        if member.op == "reduce":
            groups.setdefault((level[member], member.args[0].size, reduced_intervals(member)), []).append(member)
    kernels: list[Kernel] = []
    for key in sorted(groups, key=lambda each: each[0]):
        reductions = groups[key]
        is_full = key[1] == group.size
        subgroup = _subgroup(group, reductions, group.space if is_full else reductions[0].args[0].shape)
        subgroup.rows = group.rows if is_full else None
        kernels.append(reduction_kernel(GroupExpressions(fusion, subgroup, key[2]), reductions))
    by_shape: dict[int, list[Value]] = {}
    for value in outputs:
        if value.op != "reduce":
            by_shape.setdefault(value.size, []).append(value)
    for values in by_shape.values():
        subgroup = _subgroup(group, values, values[0].shape if values[0].size != group.size else group.space)
        subgroup.rows = group.rows if values[0].size == group.size else None
        kernels.append(elementwise_kernel(GroupExpressions(fusion, subgroup), values))
    return kernels


def _subgroup(group: FusionGroup, values: Sequence[Value], space: tuple[int, ...]) -> FusionGroup:
    """A group of these values and the members that they depend on, except reductions."""
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
    subgroup = FusionGroup(ordered[0], space)
    subgroup.members = ordered
    return subgroup
