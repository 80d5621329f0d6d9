"""Comparison of traces: whether two calls of a function did the same, and which arguments they fix."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any

from ...ir.graph.value import Value
from ..guards.arguments import OutputTensor
from ..guards.object_kinds import is_immutable
from .trace import Trace


def difference(trace_a: Trace, trace_b: Trace) -> str | None:
    """Return what differs between two traces; None if they agree."""
    for trace in (trace_a, trace_b):
        if trace.failure is not None:
            return trace.failure
    a, b = trace_a.graph.values, trace_b.graph.values
    for x, y in islice(zip(a, b, strict=False), min(trace_a.num_values, trace_b.num_values)):
        if not _same_value(x, y):
            return f"{x.text} in one call, {y.text} in the next{trace_a.location(x)}"
    if trace_a.num_values != trace_b.num_values:
        return "more was computed in one call than in the next"
    if len(trace_a.sources) != len(trace_b.sources):
        return "other arrays were used"
    for number, source in trace_a.sources.items():
        if not same_source(source, trace_b.sources[number]):
            return f"an array that was another one in the next call{trace_a.location(trace_a.leaf(number))}"
    if [(_n(t.value), _n(t.overwrites)) for t in trace_a.targets] != [(_n(t.value), _n(t.overwrites))
                                                                   for t in trace_b.targets]:
        return "other results were computed"
    if [(g.value.number, g.outcome) for g in trace_a.data_guards] != [
            (g.value.number, g.outcome) for g in trace_b.data_guards]:
        return "another branch was taken"
    if not _same_results(trace_a.outputs, trace_b.outputs) or trace_a.tree != trace_b.tree:
        return "another kind of result was returned"
    if not {*map(id, trace_a.shared_containers)}.isdisjoint(map(id, trace_b.shared_containers)):
        return "a container that outlives the call is returned"
    if (trace_a.joint is None) != (trace_b.joint is None) or (
            trace_a.joint is not None and trace_b.joint is not None
            and [_n(v) for v in trace_a.joint.gradients] != [_n(v) for v in trace_b.joint.gradients]):
        return "other results are differentiable"
    if trace_a.storage_offsets != trace_b.storage_offsets:
        return "an argument had another storage offset"
    if trace_a.version_bumps != trace_b.version_bumps or trace_a.written_leaves != trace_b.written_leaves:
        return "other arguments were written to"
    if len(trace_a.grad_updates) != len(trace_b.grad_updates) or not all(
            a.same(b) and x == y for (a, x), (b, y) in zip(trace_a.grad_updates, trace_b.grad_updates, strict=True)):
        return "other gradients were set"
    if len(trace_a.grad_presence) != len(trace_b.grad_presence) or not all(
            a.same(b) and x is y for (a, x), (b, y) in zip(trace_a.grad_presence, trace_b.grad_presence, strict=True)):
        return "other gradients were read"
    if trace_a.recomputation != trace_b.recomputation:
        return "other regions were checkpointed"
    if trace_a.guard_set is None or trace_b.guard_set is None:
        return None
    return trace_a.guard_set.difference(trace_b.guard_set)


def pins(trace_a: Trace, trace_b: Trace) -> list[tuple[Any, Any, int]]:
    """Return, by argument, the tensor, memory owner and address that a replay requires; None for what is free.

    The function may also reach an argument through a global or closure. An argument that was the same in both
    traces is therefore pinned; two traces that agree on different arguments show that there is no such alias.
    """
    found: list[tuple[Any, Any, int]] = []
    for (tensor, memory, place), (other_tensor, other_memory, other_place) in zip(
            trace_a.argument_memory, trace_b.argument_memory, strict=True):
        found.append((other_tensor if tensor() is other_tensor() is not None else None,
                     other_memory if memory() is other_memory() is not None and place == other_place else None,
                     other_place))
    return found


def _n(value: Value | None) -> int:
    return -1 if value is None else value.number


def _same_value(x: Value, y: Value) -> bool:
    if (x.op, x.shape, x.dtype) != (y.op, y.shape, y.dtype) or [a.number for a in x.args] != [
            a.number for a in y.args]:
        return False
    if x.op == "extern":
        return repr(x.attrs) == repr(y.attrs)
    return bool(x.attrs == y.attrs)


def same_source(x: tuple, y: tuple) -> bool:
    """Whether inputs of two traces come from the same place."""
    if x[0] != y[0]:
        return False
    if x[0] == "tensor":
        return (x[1] is not None and x[1] is y[1] and x[3] is y[3]) or x[2] is y[2]
    if x[0] == "gradient of":
        return bool(x[1].same(y[1]))
    if x[0] == "number":
        return x[1] is y[1] and x[2:] == y[2:]
    return bool(x == y)


def _same_results(x: Sequence[tuple], y: Sequence[tuple]) -> bool:
    if len(x) != len(y):
        return False
    for a, b in zip(x, y, strict=True):
        if a[0] != b[0]:
            return False
        if isinstance(a, OutputTensor):
            if not a.same(b):  # type: ignore[arg-type]
                return False
        elif a[0] == "same":
            if a[1] is not b[1]:
                return False
        elif a[0] == "gradient of":
            if not a[1].same(b[1]):
                return False
        elif a[0] == "constant":
            if a[1] is not b[1] and not (type(a[1]) is type(b[1]) and is_immutable(a[1])
                                         and bool(a[1] == b[1])):
                return False
        elif a[1:] != b[1:]:
            return False
    return True


__all__ = ["difference", "pins", "same_source"]
