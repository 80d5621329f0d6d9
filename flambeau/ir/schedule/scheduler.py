"""The order of kernels and the memory of arrays: a program that needs only its inputs.

Every stored value gets a place: in an array that the program is to return, in the memory of a leaf that it replaces,
or in the arena, where values whose lifetimes do not meet share bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ..fusion.groups import Clustering, is_whole
from ..graph import view_algebra as algebra
from ..graph.rewrites import merge_products
from ..graph.target import Target
from ..graph.value import Graph, Value
from ..kernels.emission import kernels
from ..kernels.pointwise import Kernel
from .memory_planner import Stay, placed


class Plan:
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
        leaves: in the order of their entries, which are the first.
        fresh: shapes and dtypes of the arrays to be returned, whose entries follow; values that are given twice are
            computed once and copied.
        constants: arrays, whose entries follow the arena's.
        arena: its bytes. Its entry follows those of the returned arrays.
        scratch: where in the arena the scratch memory of those kernels is that ask for any, by their numbers.
        inside: values that are parts of others, and at which offset.
        stays: what lies in the arena, values and the scratch memory of kernels, and how long.
    """

    def __init__(self, graph: Graph, targets: Sequence[Target],
                 conditions: Sequence[tuple[Value, bool]] = (), effects: Sequence[Value] = (),
                 captured: int | None = None) -> None:
        self.graph, self.captured = graph, len(graph.values) if captured is None else captured
        targets = self._distinct(targets)
        self.targets = targets
        self.conditions = [(v if v.op == "leaf" else graph.copy(v), outcome) for v, outcome in conditions
                           if v.base.op != "constant"]
        made = merge_products(graph, [*(each.value for each in targets), *(v for v, _ in self.conditions), *effects])
        self.rewritten = {new: old for old, new in made.items() if new is not old}
        targets = self.targets = [each._replace(value=made[each.value]) for each in targets]
        self.conditions = [(made[v], outcome) for v, outcome in self.conditions]
        asked = [v for v, _ in self.conditions]
        clustering = Clustering(graph, [*(each.value for each in targets), *asked, *(made[v] for v in effects)], asked)
        self.clustering = clustering
        self.kernels: list[Kernel] = []
        for cluster in clustering.clusters[:clustering.early]:
            self.kernels += kernels(clustering, cluster, clustering.stored)
        self.early = len(self.kernels)
        for cluster in clustering.clusters[clustering.early:]:
            self.kernels += kernels(clustering, cluster, clustering.stored)
        self.leaves = sorted({v for v in clustering.live if v.op == "leaf"}
                             | {t.leaf for t in targets if t.leaf is not None}, key=lambda v: v.attrs)
        self.fresh = [(t.value.shape, t.value.dtype) for t in targets if t.leaf is None]
        self.constants: list[np.ndarray] = []
        self.late: list[tuple[Value, Value]] = []  # leaves that are overwritten when all is done, and by what
        self.parts = {t.leaf: t.part for t in targets if t.leaf is not None and t.part is not None}
        self.places: dict[Value, tuple[int, int]] = {}
        self.scratch: dict[int, int] = {}
        self.inside = self._built_in_place()
        self._place(clustering)

    @staticmethod
    def _distinct(targets: Sequence[Target]) -> list[Target]:
        """Targets that are values of their own: not leaves, constants or views, and none twice."""
        found: list[Target] = []
        taken: set[Value] = set()
        for target in targets:
            value, graph = target.value, target.value.graph
            if value.op in ("leaf", "constant", "view"):
                value = _copied(graph, value, None)
            while value in taken and value.size:
                value = _copied(graph, value, len(found))
            taken.add(value)
            found.append(target._replace(value=value))
        return found

    # ----- memory -----

    def _built_in_place(self) -> dict[Value, tuple[Value, int]]:
        """Values that are computed where they are wanted in an array assembled of them: the array and the offset.

        Their copies are dropped.
        """
        found: dict[Value, tuple[Value, int]] = {}
        made = {v for kernel in self.kernels for v in kernel.outputs}
        taken = {t.value for t in self.targets} | {v for v, _ in self.conditions}
        replacing = {t.value for t in self.targets if t.leaf is not None}
        dropped: set[int] = set()
        for number, kernel in enumerate(self.kernels):
            if kernel.name != "copy" or not kernel.inputs:
                continue
            (whole,), ((base, start),), (shift,) = kernel.outputs, kernel.inputs, kernel.shifts
            has_background, *places = whole.attrs
            if has_background or start or base not in made or base in taken or base in found or whole in replacing:
                continue
            size = whole.dtype.itemsize
            fits = [arg for arg, (strides, offset) in zip(whole.args, places, strict=True)
                    if arg.base is base and offset * size == shift and is_whole(arg)
                    and algebra.is_dense(arg.shape, strides)]
            if fits and base.op != "part":
                found[base] = (whole, shift)
                dropped.add(number)
        self._parts_of_others(found, dropped)
        self.early -= sum(number < self.early for number in dropped)
        self.kernels = [kernel for number, kernel in enumerate(self.kernels) if number not in dropped]
        return found

    def _parts_of_others(self, found: dict[Value, tuple[Value, int]], dropped: set[int]) -> None:
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
                if inside is None or not is_whole(arg) or not algebra.is_dense(arg.shape, strides):
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
        while value in self.inside:
            value, more = self.inside[value]
            offset += more
        return value, offset

    def _place(self, clustering: Clustering) -> None:
        places = self.places
        for i, leaf in enumerate(self.leaves):
            places[leaf] = (i, 0)
        entry = len(self.leaves)
        for target in self.targets:
            if target.leaf is None:
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
                    self.constants.append(np.ascontiguousarray(clustering.graph.array(value)))
                    entry += 1
        for value, _ in self.conditions:
            if value.op != "leaf":
                last[value] = max(last[value], self.early)
        for target in self.targets:
            if target.leaf is not None:
                if self._can_replace(target.value, target.leaf, made[target.value], last.get(target.leaf, -1)):
                    places[target.value] = places[target.leaf]
                else:
                    self.late.append((target.leaf, target.value))
                    last[target.value] = len(self.kernels)
        self.entries = entry
        self.arena_entry = arena
        self._place_in_arena(last)

    def _place_in_arena(self, last: Mapping[Value, int]) -> None:
        """Places for what has none yet, and for kernels' scratch memory.

        Args:
            last: which kernel is the last to need a value.
        """
        places = self.places
        stays: dict[Value | int, Stay] = {}
        for step, kernel in enumerate(self.kernels):
            for value in kernel.outputs:
                root, _ = self._root(value)
                if root not in places and root not in stays:
                    stays[root] = Stay(step, last[root], root.size * root.dtype.itemsize)
            scratch = max((each.scratch for each in kernel.launches), default=0)
            if scratch:
                stays[step] = Stay(step, step, scratch)
        self.stays = stays
        starts, self.arena = placed(list(stays.values()))
        for each, start in zip(stays, starts, strict=True):
            if isinstance(each, Value):
                places[each] = (self.arena_entry, start)
            else:
                self.scratch[each] = start
        for value in self.inside:
            root, offset = self._root(value)
            places[value] = (places[root][0], places[root][1] + offset)

    def _can_replace(self, value: Value, leaf: Value, step: int, read: int) -> bool:
        """Whether a value may be written where a leaf lies: nobody reads that later, or elsewhere than he writes.

        Args:
            step: which kernel computes the value.
            read: the last one that reads the leaf.
        """
        if value.dtype != leaf.dtype or value.size != leaf.size or leaf in self.parts:
            return False
        if step < self.early or read > step:
            return False
        kernel = self.kernels[step]
        reads = [i for i, (base, _) in enumerate(kernel.inputs) if base is leaf]
        if not reads:
            return True
        return kernel.name in ("elementwise", "matmul", "convolve") and all(i in kernel.alike for i in reads)


def _copied(graph: Graph, value: Value, number: int | None) -> Value:
    """A value of its own with the same elements; `number` tells several of them apart."""
    if value.dtype.kind != "c":
        return graph.make("copy", (value,), number, value.shape, value.dtype)
    return graph.assemble(value.shape, None, [value], [(algebra.dense(value.shape), 0)])  # a copy of the last copy


__all__ = ["Plan", "Target"]
