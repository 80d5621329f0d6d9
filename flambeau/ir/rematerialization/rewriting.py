"""Rewriting of a graph: backward passes read values that they compute again, not those of the forward part.

The values that are computed again are values of their own, made just before the first value of backward that reads
them, so the schedule computes them there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ..graph.extern_kernels import FallbackKernel
from ..graph.value import BACKWARD, FORWARD, Graph, Value, reachable


class Rewritten(NamedTuple):
    """A rewritten graph.

    Attributes:
        graph: the new graph.
        copies: its value for each value of the old graph.
        in_backward: values that are computed in backward passes although no cotangent is needed for them.
    """

    graph: Graph
    copies: dict[Value, Value]
    in_backward: set[Value]


class Rewriting:
    """Copies a graph.

    Args:
        passes: the ranges of value numbers of the backward passes.
        regions: by number, the values to compute again, with the number of their region.
        outputs: the values that are needed.
    """

    def __init__(self, graph: Graph, passes: Sequence[tuple[int, int]], regions: Mapping[int, int],
                 outputs: Sequence[Value]) -> None:
        self._passes, self._regions = passes, regions
        self._new = Graph()
        self._new.counts_at_runtime = graph.counts_at_runtime
        self._copies: dict[Value, Value] = {}
        self._again: dict[Value, Value] = {}
        self._in_backward: set[Value] = set()
        self._last_place = max(regions.values(), default=0)
        self._live = reachable(outputs)

    def run(self) -> Rewritten:
        """Copy all values that are needed."""
        for value in self._live:
            at = pass_of(value, self._passes)
            if value in self._copies:  # an output of an extern value
                continue
            if at is None:
                copy_of(self._new, value, [self._copies[x] for x in value.args], self._copies)
                continue
            args = [self._operand(x, at) for x in value.args]
            copy_of(self._new, value, args, self._copies)
            if value.number in self._regions or any(x.base in self._in_backward for x in args):
                self._in_backward.add(self._copies[value])
        phases = self._new.phases
        for value, copied in self._copies.items():
            if pass_of(value, self._passes) is None:
                phases.setdefault(copied, FORWARD)
        return Rewritten(self._new, self._copies, self._in_backward)

    def _operand(self, value: Value, at: int) -> Value:
        """The value that a value of a backward pass reads for an argument."""
        base = value.base
        if base.number not in self._regions or pass_of(base, self._passes) == at:
            return self._copies[value]
        return self._recomputed(value)

    def _recomputed(self, root: Value) -> Value:
        """A value that is computed again from those that are kept."""
        again, new = self._again, self._new
        self._last_place += 1
        stack = [root]
        while stack:
            value = stack[-1]
            if value in again:
                stack.pop()
                continue
            if value.base.number not in self._regions and not (
                    value.op == "extern" and any(x.number in self._regions for x in value.graph.extern_outputs[value])):
                again[value] = self._copies[value]
                continue
            replayed = replay_of(value)
            needed = value.args if replayed is None else replayed[1]
            missing = [x for x in needed if x not in again]
            if missing:
                stack.extend(missing)
                continue
            stack.pop()
            first = len(new.values)
            with new.apart():
                if replayed is None:
                    copy_of(new, value, [again[x] for x in needed], again)
                else:
                    kernel = FallbackKernel(f"replay of {value.args[0].attrs.name}", replayed[0], "random numbers")
                    [again[value]] = new.extern(kernel, [again[x] for x in needed], [(value.shape, value.dtype)])
            region = self._regions.get(value.base.number, -1)
            if region < 0:  # a place of its own
                region = self._last_place
            for made in new.values[first:]:
                new.phases[made] = BACKWARD + 1 + region
                self._in_backward.add(made)
        return again[root]


def pass_of(value: Value, passes: Sequence[tuple[int, int]]) -> int | None:
    """Return the backward pass that a value was made in; None for values of the forward part."""
    if value.op in ("input", "constant"):
        return None
    number = value.base.number if value.op == "view" and value.base.op in ("input", "constant") else value.number
    return next((i for i, (start, end) in enumerate(passes) if start <= number < end), None)


def replay_of(value: Value) -> tuple[Any, list[Value]] | None:
    """Return how random numbers are drawn again, and from what: the state before the draw, and arguments.

    None for other values.
    """
    if value.op != "getitem" or not isinstance(value.args[0].attrs, FallbackKernel):
        return None
    replay = getattr(value.args[0].attrs.run, "replay", None)
    if replay is None:
        return None
    draw = value.args[0]
    return replay, [draw.graph.extern_outputs[draw][-1], *draw.args[:replay.count]]


def is_deterministic(value: Value) -> bool:
    """Whether a value can be computed again: it is no draw of random numbers, or one that is recorded."""
    extern = value.args[0] if value.op == "getitem" else value
    if extern.op != "extern" or not isinstance(extern.attrs, FallbackKernel) or extern.attrs.stream is None:
        return True
    return value.op == "getitem" and value.attrs == 0 and replay_of(value) is not None


def copy_of(graph: Graph, value: Value, args: Sequence[Value], copies: dict[Value, Value]) -> None:
    """Copy a value to another graph, with other arguments; with it, all outputs of an extern value."""
    if value.op == "constant":
        made = copies[value] = graph.constant(value.graph.array(value))
        if value in value.graph.runtime_constants and made.op == "constant":
            graph.runtime_constants.add(made)
        return
    made = copies[value] = graph.make(value.op, tuple(args), value.attrs, value.shape, value.dtype)
    if value.op == "extern":
        graph.extern_outputs[made] = parts = []
        for part in value.graph.extern_outputs[value]:
            copies[part] = graph.make("getitem", (made,), part.attrs, part.shape, part.dtype)
            parts.append(copies[part])


__all__ = ["Rewriting", "Rewritten", "is_deterministic", "pass_of", "replay_of"]
