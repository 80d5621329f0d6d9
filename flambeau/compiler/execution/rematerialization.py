"""`program_graph`: the graph from which the programs of a trace are made, in which backward computes values again."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from copy import copy
from typing import NamedTuple

from ...ir.graph.target import Target
from ...ir.graph.value import Graph, Value, reachable
from ...ir.rematerialization.budget import Choice
from ...ir.rematerialization.rewriting import Rewriting, pass_of
from ..tracing.joint_graph import JointGraph
from ..tracing.trace import Trace


class ProgramGraph(NamedTuple):
    """What programs are made of.

    Attributes:
        graph: the trace's graph, or another one with values that are computed again.
        targets, conditions, effects: of the forward program, as for `Program`.
        joint: the joint graph, if results are differentiable.
        copies: by value of the trace's graph, the value of another graph; None if it is the trace's.
    """

    graph: Graph
    targets: list[Target]
    conditions: list[tuple[Value, bool]]
    effects: list[Value]
    joint: JointGraph | None
    copies: dict[Value, Value] | None


def program_graph(trace: Trace, not_kept: Collection[int]) -> ProgramGraph:
    """Return the graph of a trace's programs.

    Args:
        trace: the trace.
        not_kept: numbers of the inputs whose memory may change before a backward pass outside of the function.
    """
    conditions = [(g.value, g.outcome) for g in trace.data_guards]
    joint, effects, wanted = trace.joint, list(trace.effects), trace.recomputation
    unchanged = ProgramGraph(trace.graph, trace.targets, conditions, effects, joint, None)
    if not wanted.is_asked_for or (joint is None and not wanted.passes):
        return unchanged
    outputs = [t.value for t in trace.targets]
    outputs += [t.overwrites for t in trace.targets if t.overwrites is not None]
    outputs += [*effects, *(v for v, _ in conditions)]
    passes = list(wanted.passes)
    if joint is not None:
        outputs += [*joint.cotangents, *(v for v in joint.gradients if v is not None)]
        passes.append((min(v.number for v in joint.cotangents), trace.num_values))
    live = reachable(outputs)
    regions = dict(wanted.regions)
    if wanted.budget < 1:
        regions = _chosen(live, joint, passes, regions, wanted.budget, not_kept)
    if not any(value.number in regions for value in live):
        return unchanged
    rewritten = Rewriting(trace.graph, passes, regions, outputs).run()
    copies = rewritten.copies
    if joint is not None:
        joint = copy(joint)
        joint.cotangents = [copies[v] for v in joint.cotangents]
        joint.gradients = [None if v is None else copies[v] for v in joint.gradients]
        joint.recomputed = rewritten.in_backward
    targets = [t._replace(value=copies[t.value], overwrites=None if t.overwrites is None else copies[t.overwrites])
               for t in trace.targets]
    return ProgramGraph(rewritten.graph, targets, [(copies[v], outcome) for v, outcome in conditions],
                        [copies[v] for v in effects], joint, copies)


def _chosen(live: Sequence[Value], joint: JointGraph | None, passes: Sequence[tuple[int, int]],
            regions: dict[int, int], budget: float, not_kept: Collection[int]) -> dict[int, int]:
    """Return the values to compute again for a memory budget, with regions; -1 for values that are in none."""
    of_joint = None if joint is None else len(passes) - 1
    dependent = set() if joint is None else set(joint.cotangents)
    floating: dict[Value, bool] = {}  # made by the joint pass without cotangents: whether they must be made again
    read: list[Value] = []
    for value in live:
        at = pass_of(value, passes)
        if at is None:
            continue
        if at == of_joint:
            if any(x in dependent for x in value.args) or value in dependent:
                dependent.add(value)
            else:
                floating[value] = any(x.base.number in regions or floating.get(x.base) for x in value.args)
                continue
        read += [x.base for x in value.args if x.base.op != "constant" and x.base not in dependent
                 and (x.base in floating or pass_of(x.base, passes) != at)]
    if joint is not None:
        read += [v.base for v in joint.gradients if v is not None and v.base not in dependent
                 and v.base.op != "constant"]
    choice = Choice(read, lambda value: value in floating or pass_of(value, passes) is None,
                    lambda value: value.op == "input" and value.attrs not in not_kept,
                    lambda value: value.number in regions or floating.get(value, False))
    return {value.number: regions.get(value.number, -1) for value in choice.within(budget)}


__all__ = ["ProgramGraph", "program_graph"]
