"""The order of kernels and the memory of arrays: a program that needs only its inputs.

Every stored value gets a place: in an array that the program is to return, in the memory of a graph_input that it
replaces,
or in the arena, where values whose lifetimes do not meet share bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ..fusion.groups import Fusion, shows_whole_base
from ..graph import view_algebra as algebra
from ..graph.rewrites import merge_matmul_sums
from ..graph.target import Target
from ..graph.value import Graph, Value
from ..kernels.emission import lower_group
from ..kernels.pointwise import Kernel
from .memory_planner import LiveRange, assign_offsets


class Schedule:
    """Kernels in order, and where every value lies.

    Args:
        targets: what a run is to leave behind.
        conditions: truths on which all depends, and what they should be: where one is not, nothing is left behind.
        effects: values that are computed though nobody may want them.
        captured: how many values the graph had before anything was planned; as many as it has now, if None.

    Attributes:
        rewritten: values that stand for others of the graph, and these.
        kernels: to be run one after the other.
        early: how many of them come before the conditions are looked at.
        places: of stored values: the table of bases' entry and an offset in bytes.
        inputs: in the order of their entries, which are the first.
        output_specs: shapes and dtypes of the arrays to be returned, whose entries follow; values that are given twice
        are
            computed once and copied.
        constants: arrays, whose entries follow the arena's.
        arena: its bytes. Its entry follows those of the returned arrays.
        scratch: where in the arena the scratch memory of those kernels is that ask for any, by their numbers.
        inside: values that are parts of others, and at which offset.
        live_ranges: what lies in the arena, values and the scratch memory of kernels, and how long.
    """

    def __init__(self, graph: Graph, targets: Sequence[Target],
                 conditions: Sequence[tuple[Value, bool]] = (), effects: Sequence[Value] = (),
                 captured: int | None = None) -> None:
        self.graph, self.captured = graph, len(graph.values) if captured is None else captured
        targets = self._distinct_targets(targets)
        self.targets = targets
        self.conditions = [(v if v.op == "input" else graph.copy(v), outcome) for v, outcome in conditions
                           if v.base.op != "constant"]
        made = merge_matmul_sums(graph, [*(each.value for each in targets), *(v for v, _ in self.conditions), *effects])
        self.rewritten = {new: old for old, new in made.items() if new is not old}
        targets = self.targets = [each._replace(value=made[each.value]) for each in targets]
        self.conditions = [(made[v], outcome) for v, outcome in self.conditions]
        asked = [v for v, _ in self.conditions]
        fusion = Fusion(graph, [*(each.value for each in targets), *asked, *(made[v] for v in effects)], asked)
        self.fusion = fusion
        self.kernels: list[Kernel] = []
        for group in fusion.groups[:fusion.kernels_before_conditions]:
            self.kernels += lower_group(fusion, group, fusion.stored)
        self.kernels_before_conditions = len(self.kernels)
        for group in fusion.groups[fusion.kernels_before_conditions:]:
            self.kernels += lower_group(fusion, group, fusion.stored)
        self.inputs = sorted({v for v in fusion.live if v.op == "input"}
                             | {t.overwrites for t in targets if t.overwrites is not None}, key=lambda v: v.attrs)
        self.output_specs = [(t.value.shape, t.value.dtype) for t in targets if t.overwrites is None]
        self.constants: list[np.ndarray] = []
        # inputs that are overwritten after all kernels, and the values copied over them
        self.deferred_copies: list[tuple[Value, Value]] = []
        self.regions = {t.overwrites: t.region for t in targets if t.overwrites is not None and t.region is not None}
        self.locations: dict[Value, tuple[int, int]] = {}
        self.scratch: dict[int, int] = {}
        self.subarrays = self._assemble_in_place()
        self._assign_locations(fusion)

    @staticmethod
    def _distinct_targets(targets: Sequence[Target]) -> list[Target]:
        """Targets that are values of their own: not inputs, constants or views, and none twice."""
        found: list[Target] = []
        taken: set[Value] = set()
        for target in targets:
            value, graph = target.value, target.value.graph
            if value.op in ("input", "constant", "view"):
                value = _distinct_copy(graph, value, None)
            while value in taken and value.size:
                value = _distinct_copy(graph, value, len(found))
            taken.add(value)
            found.append(target._replace(value=value))
        return found

    # ----- memory -----

    def _assemble_in_place(self) -> dict[Value, tuple[Value, int]]:
        """Values that are computed where they are wanted in an array assembled of them: the array and the offset.

        Their copies are dropped.
        """
        found: dict[Value, tuple[Value, int]] = {}
        made = {v for kernel in self.kernels for v in kernel.outputs}
        taken = {t.value for t in self.targets} | {v for v, _ in self.conditions}
        replacing = {t.value for t in self.targets if t.overwrites is not None}
        dropped: set[int] = set()
        for number, kernel in enumerate(self.kernels):
            if kernel.name != "copy" or not kernel.inputs:
                continue
            (whole,), ((base, start),), (shift,) = kernel.outputs, kernel.inputs, kernel.output_offsets
            has_background, *places = whole.attrs
            if has_background or start or base not in made or base in taken or base in found or whole in replacing:
                continue
            size = whole.dtype.itemsize
            fits = [arg for arg, (strides, offset) in zip(whole.args, places, strict=True)
                    if arg.base is base and offset * size == shift and shows_whole_base(arg)
                    and algebra.is_dense(arg.shape, strides)]
            if fits and base.op != "getitem":
                found[base] = (whole, shift)
                dropped.add(number)
        self._nest_assemblies(found, dropped)
        self.kernels_before_conditions -= sum(number < self.kernels_before_conditions for number in dropped)
        self.kernels = [kernel for number, kernel in enumerate(self.kernels) if number not in dropped]
        return found

    def _nest_assemblies(self, found: dict[Value, tuple[Value, int]], dropped: set[int]) -> None:
        """Arrays assembled of neighbours in another one need no memory of their own."""
        copies: dict[Value, list[int]] = {}
        for number, kernel in enumerate(self.kernels):
            if kernel.name == "copy":
                copies.setdefault(kernel.outputs[0], []).append(number)
        targets = {t.value for t in self.targets}
        for whole, numbers in copies.items():
            if whole.attrs[0] or whole in targets or whole in found or any(n in dropped for n in numbers) or len(
                    numbers) != len(whole.args):
                continue
            size = whole.dtype.itemsize
            starts: set[tuple[Value, int]] = set()
            for arg, (strides, offset) in zip(whole.args, whole.attrs[1:], strict=True):
                inside, start = found.get(arg.base, (None, 0))
                if inside is None or not shows_whole_base(arg) or not algebra.is_dense(arg.shape, strides):
                    starts.clear()
                    break
                starts.add((inside, start - offset * size))
            if len(starts) == 1:
                [(inside, start)] = starts
                found[whole] = (inside, start)
                dropped.update(numbers)

    def _root(self, value: Value) -> tuple[Value, int]:
        """The array that a value is a part of, and where in it."""
        offset = 0
        while value in self.subarrays:
            value, more = self.subarrays[value]
            offset += more
        return value, offset

    def _assign_locations(self, fusion: Fusion) -> None:
        places = self.locations
        for i, graph_input in enumerate(self.inputs):
            places[graph_input] = (i, 0)
        entry = len(self.inputs)
        for target in self.targets:
            if target.overwrites is None:
                places[target.value] = (entry, 0)
                entry += 1
        arena = entry
        entry += 1
        made: dict[Value, int] = {}
        last: dict[Value, int] = {}
        for step, kernel in enumerate(self.kernels):
            for value in kernel.outputs:
                made.setdefault(value, step)
                last.setdefault(value, step)
                root, _ = self._root(value)
                last[root] = max(last.get(root, step), step)
            for value, _ in kernel.inputs:
                last[value] = step
                last[self._root(value)[0]] = step
                if value.op == "constant" and value not in places:
                    places[value] = (entry, 0)
                    self.constants.append(np.ascontiguousarray(fusion.graph.array(value)))
                    entry += 1
        for value, _ in self.conditions:
            if value.op != "input":
                last[value] = max(last[value], self.kernels_before_conditions)
        for target in self.targets:
            if target.overwrites is not None:
                if self._can_overwrite(target.value, target.overwrites, made[target.value], last.get(target.overwrites,
                                                                                                     -1)):
                    places[target.value] = places[target.overwrites]
                else:
                    self.deferred_copies.append((target.overwrites, target.value))
                    last[target.value] = len(self.kernels)
        self.entries = entry
        self.arena_entry = arena
        self._assign_arena_offsets(last)

    def _assign_arena_offsets(self, last: Mapping[Value, int]) -> None:
        """Places for what has none yet, and for kernels' scratch memory.

        Args:
            last: which kernel is the last to need a value.
        """
        places = self.locations
        live_ranges: dict[Value | int, LiveRange] = {}
        for step, kernel in enumerate(self.kernels):
            for value in kernel.outputs:
                root, _ = self._root(value)
                if root not in places and root not in live_ranges:
                    live_ranges[root] = LiveRange(step, last[root], root.size * root.dtype.itemsize)
            scratch = max((each.scratch for each in kernel.launches), default=0)
            if scratch:
                live_ranges[step] = LiveRange(step, step, scratch)
        self.live_ranges = live_ranges
        starts, self.arena = assign_offsets(list(live_ranges.values()))
        for each, start in zip(live_ranges, starts, strict=True):
            if isinstance(each, Value):
                places[each] = (self.arena_entry, start)
            else:
                self.scratch[each] = start
        for value in self.subarrays:
            root, offset = self._root(value)
            places[value] = (places[root][0], places[root][1] + offset)

    def _can_overwrite(self, value: Value, graph_input: Value, step: int, read: int) -> bool:
        """Whether a value may be written where a graph_input lies: nobody reads that later, or elsewhere than he
        writes.

        Args:
            step: which kernel computes the value.
            read: the last one that reads the graph_input.
        """
        if value.dtype != graph_input.dtype or value.size != graph_input.size or graph_input in self.regions:
            return False
        if step < self.kernels_before_conditions or read > step:
            return False
        kernel = self.kernels[step]
        reads = [i for i, (base, _) in enumerate(kernel.inputs) if base is graph_input]
        if not reads:
            return True
        return kernel.name in ("elementwise", "matmul", "convolve") and all(i in kernel.same_layout for i in reads)


def _distinct_copy(graph: Graph, value: Value, number: int | None) -> Value:
    """A value of its own with the same elements; `number` tells several of them apart."""
    if value.dtype.kind != "c":
        return graph.make("copy", (value,), number, value.shape, value.dtype)
    return graph.assemble(value.shape, None, [value], [(algebra.dense_strides(value.shape),
                                                        0)])  # a copy of the last copy


__all__ = ["Schedule", "Target"]
