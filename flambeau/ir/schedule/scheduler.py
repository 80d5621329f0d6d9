"""Scheduling: the order of kernels, and the memory location of every stored value.

A stored value is located in a new output array, in the memory of an input that it overwrites, in a constant, or in the
arena, where values with disjoint live ranges share bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

import numpy as np

from ...runtime.symbolic_integers import greater
from ..fusion.groups import Fusion
from ..fusion.intervals import shows_whole_base
from ..graph import view_algebra as algebra
from ..graph.rewrites import merge_matmul_sums
from ..graph.row_blocks import compute_in_row_blocks
from ..graph.target import Target
from ..graph.value import Graph, Value
from ..kernels.emission import lower_group
from ..kernels.families import CPU, KernelFamilies
from ..kernels.pointwise import Kernel
from .memory_planner import LiveRange, assign_offsets
from .strided_results import written_in_place


class Schedule:
    """The kernels of a program in order, and the location of every value.

    Args:
        targets: the outputs.
        conditions: data guards: bool values and their required outcomes. Where one fails, no output is written.
        effects: values that are computed even if no target depends on them.
        captured: the number of values that the graph had before planning; None: as many as it has now.
        families: make the kernels' launches.

    Attributes:
        rewritten: values created by rewrites, and the original values that they replace.
        kernels: in order of execution.
        kernels_before_conditions: the number of kernels that run before the data guards are checked.
        locations: for each stored value, the table entry and an offset in bytes.
        inputs: in the order of their entries, which come first in the table.
        output_specs: shapes and dtypes of the new arrays, whose entries follow; a value that is returned twice is
            computed once and copied.
        constants: arrays, whose entries follow the arena's.
        deferred_copies: inputs that are overwritten after all kernels, and the values copied over them.
        regions: the part of each input that may be written, if not all of it.
        arena: size in bytes. Its entry follows those of the new arrays.
        scratch: the offset in the arena of the scratch memory of each kernel that needs some.
        subarrays: values that are computed in place inside an assembled value, with that value and the offset.
        live_ranges: of the values, and of the scratch memory of kernels, that are in the arena.
    """

    def __init__(self, graph: Graph, targets: Sequence[Target],
                 conditions: Sequence[tuple[Value, bool]] = (), effects: Sequence[Value] = (),
                 captured: int | None = None, families: KernelFamilies = CPU) -> None:
        self.graph, self.captured = graph, len(graph.values) if captured is None else captured
        targets = self._distinct_targets(targets)
        self.targets = targets
        self.conditions = [(v if v.op == "input" else graph.copy(v), outcome) for v, outcome in conditions
                           if v.base.op != "constant"]
        roots = [*(each.value for each in targets), *(v for v, _ in self.conditions), *effects]
        replacements = merge_matmul_sums(graph, roots)
        blocked = compute_in_row_blocks(graph, [replacements[each] for each in roots], families.is_constant)
        replacements = {old: blocked.get(new, new) for old, new in replacements.items()}
        self.rewritten = {new: old for old, new in replacements.items() if new is not old}
        targets = self.targets = [each._replace(value=replacements[each.value]) for each in targets]
        self.conditions = [(replacements[v], outcome) for v, outcome in self.conditions]
        guards = [v for v, _ in self.conditions]
        outputs = [*(each.value for each in targets), *guards, *(replacements[v] for v in effects)]
        fusion = Fusion(graph, outputs, guards, families)
        self.fusion = fusion
        self.kernels: list[Kernel] = []
        for group in fusion.groups[:fusion.kernels_before_conditions]:
            self.kernels += lower_group(fusion, group, fusion.stored)
        self.kernels_before_conditions = len(self.kernels)
        for group in fusion.groups[fusion.kernels_before_conditions:]:
            self.kernels += lower_group(fusion, group, fusion.stored)
        if families is not None and families.writes_parts:
            self.kernels, dropped = written_in_place(self.kernels, set(outputs))
            self._drop(dropped)
        self.inputs = sorted({v for v in fusion.live if v.op == "input"}
                             | {t.overwrites for t in targets if t.overwrites is not None}, key=lambda v: v.attrs)
        self.output_specs = [(t.value.shape, t.value.dtype) for t in targets if t.overwrites is None]
        self.constants: list[np.ndarray] = []
        self.deferred_copies: list[tuple[Value, Value]] = []
        self.regions = {t.overwrites: t.region for t in targets if t.overwrites is not None and t.region is not None}
        self.locations: dict[Value, tuple[int, int]] = {}
        self.scratch: dict[int, int] = {}
        self.subarrays = self._assemble_in_place()
        self._assign_locations(fusion)

    @staticmethod
    def _distinct_targets(targets: Sequence[Target]) -> list[Target]:
        """Targets with values of their own: copies replace inputs, constants, views and repeated values."""
        result: list[Target] = []
        taken: set[Value] = set()
        for target in targets:
            value, graph = target.value, target.value.graph
            if value.op in ("input", "constant", "view"):
                value = _distinct_copy(graph, value, None)
            while value in taken and value.size:
                value = _distinct_copy(graph, value, len(result))
            taken.add(value)
            result.append(target._replace(value=value))
        return result

    # ----- memory -----

    def _assemble_in_place(self) -> dict[Value, tuple[Value, int]]:
        """Values that are computed inside the array that is assembled of them: that array and the offset.

        Their copy kernels are dropped.
        """
        subarrays: dict[Value, tuple[Value, int]] = {}
        computed = {v for kernel in self.kernels for v in kernel.outputs}
        outputs = {t.value for t in self.targets} | {v for v, _ in self.conditions}
        overwriting = {t.value for t in self.targets if t.overwrites is not None}
        dropped: set[int] = set()
        for number, kernel in enumerate(self.kernels):
            if kernel.name != "copy" or not kernel.inputs:
                continue
            (assembled,), ((base, start),), (shift,) = kernel.outputs, kernel.inputs, kernel.output_offsets
            has_background, *locations = assembled.attrs
            if (has_background or start or base not in computed or base in outputs or base in subarrays
                    or assembled in overwriting):
                continue
            size = assembled.dtype.itemsize
            in_place = [arg for arg, (strides, offset) in zip(assembled.args, locations, strict=True)
                    if arg.base is base and offset * size == shift and shows_whole_base(arg)
                    and algebra.is_dense(arg.shape, strides)]
            if in_place and base.op != "getitem":
                subarrays[base] = (assembled, shift)
                dropped.add(number)
        self._nest_assemblies(subarrays, dropped)
        self._drop(dropped)
        return subarrays

    def _drop(self, dropped: set[int]) -> None:
        """Leave kernels out, by their numbers."""
        self.kernels_before_conditions -= sum(number < self.kernels_before_conditions for number in dropped)
        self.kernels = [kernel for number, kernel in enumerate(self.kernels) if number not in dropped]

    def _nest_assemblies(self, subarrays: dict[Value, tuple[Value, int]], dropped: set[int]) -> None:
        """Nest arrays whose pieces are all adjacent in another assembled array."""
        copies: dict[Value, list[int]] = {}
        for number, kernel in enumerate(self.kernels):
            if kernel.name == "copy":
                copies.setdefault(kernel.outputs[0], []).append(number)
        targets = {t.value for t in self.targets}
        for assembled, numbers in copies.items():
            if (assembled.attrs[0] or assembled in targets or assembled in subarrays
                    or any(n in dropped for n in numbers) or len(numbers) != len(assembled.args)):
                continue
            size = assembled.dtype.itemsize
            starts: set[tuple[Value, int]] = set()
            for arg, (strides, offset) in zip(assembled.args, assembled.attrs[1:], strict=True):
                outer_array, start = subarrays.get(arg.base, (None, 0))
                if outer_array is None or not shows_whole_base(arg) or not algebra.is_dense(arg.shape, strides):
                    starts.clear()
                    break
                starts.add((outer_array, start - offset * size))
            if len(starts) == 1:
                [(outer_array, start)] = starts
                subarrays[assembled] = (outer_array, start)
                dropped.update(numbers)

    def _root(self, value: Value) -> tuple[Value, int]:
        """The outermost array that contains a value, and the offset in it."""
        offset = 0
        while value in self.subarrays:
            value, more = self.subarrays[value]
            offset += more
        return value, offset

    def _assign_locations(self, fusion: Fusion) -> None:
        locations = self.locations
        for i, graph_input in enumerate(self.inputs):
            locations[graph_input] = (i, 0)
        entry = len(self.inputs)
        for target in self.targets:
            if target.overwrites is None:
                locations[target.value] = (entry, 0)
                entry += 1
        arena = entry
        entry += 1
        first: dict[Value, int] = {}
        last: dict[Value, int] = {}
        for step, kernel in enumerate(self.kernels):
            for value in kernel.outputs:
                first.setdefault(value, step)
                last.setdefault(value, step)
                root, _ = self._root(value)
                last[root] = max(last.get(root, step), step)
            for value, _ in kernel.inputs:
                last[value] = step
                last[self._root(value)[0]] = step
                if value.op == "constant" and value not in locations:
                    locations[value] = (entry, 0)
                    self.constants.append(np.ascontiguousarray(fusion.graph.array(value)))
                    entry += 1
        for value, _ in self.conditions:
            if value.op != "input":
                last[value] = max(last[value], self.kernels_before_conditions)
        for target in self.targets:
            if target.overwrites is not None:
                if self._can_overwrite(target.value, target.overwrites, first[target.value], last.get(target.overwrites,
                                                                                                     -1)):
                    locations[target.value] = locations[target.overwrites]
                else:
                    self.deferred_copies.append((target.overwrites, target.value))
                    last[target.value] = len(self.kernels)
        self.entries = entry
        self.arena_entry = arena
        self._assign_arena_offsets(last)

    def _assign_arena_offsets(self, last: Mapping[Value, int]) -> None:
        """Assign arena offsets to values without a location, and to scratch memory.

        Args:
            last: for each value, the last kernel that reads it.
        """
        locations = self.locations
        live_ranges: dict[Value | int, LiveRange] = {}
        for step, kernel in enumerate(self.kernels):
            for value in kernel.outputs:
                root, _ = self._root(value)
                if root not in locations and root not in live_ranges:
                    live_ranges[root] = LiveRange(step, last[root], root.size * root.dtype.itemsize)
            scratch = reduce(greater, (each.scratch for each in kernel.launches), 0)
            if scratch:
                live_ranges[step] = LiveRange(step, step, scratch)
        self.live_ranges = live_ranges
        offsets, self.arena = assign_offsets(list(live_ranges.values()))
        for each, begin in zip(live_ranges, offsets, strict=True):
            if isinstance(each, Value):
                locations[each] = (self.arena_entry, begin)
            else:
                self.scratch[each] = begin
        for value in self.subarrays:
            root, offset = self._root(value)
            locations[value] = (locations[root][0], locations[root][1] + offset)

    def _can_overwrite(self, value: Value, graph_input: Value, step: int, read: int) -> bool:
        """Whether a value may be computed in the memory of an input.

        That is the case if no later kernel reads the input, and the kernel itself reads it elementwise.

        Args:
            step: the kernel that computes the value.
            read: the last kernel that reads the input.
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
    """A copy as a value of its own; `number` distinguishes several copies."""
    if value.dtype.kind != "c":
        return graph.make("copy", (value,), number, value.shape, value.dtype)
    return graph.assemble(value.shape, None, [value], [(algebra.dense_strides(value.shape),
                                                        0)])  # a copy of the last copy


__all__ = ["Schedule", "Target"]
