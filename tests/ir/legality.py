"""Verifier: invariants of a graph, its fusion groups and its schedule, checked after each pass.

Each function raises AssertionError, naming the value or the kernel.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from flambeau.ir.fusion.groups import Fusion
from flambeau.ir.graph import view_algebra as algebra
from flambeau.ir.graph.value import Graph, Value
from flambeau.ir.schedule.scheduler import Schedule
from tests.ir.evaluator import elements as shown

_GIVEN = ("input", "constant")


def check_graph(graph: Graph) -> None:
    """Values are numbered in the order of making, depend on earlier ones, and are made once; views stay inside."""
    seen: set[tuple] = set()
    for number, value in enumerate(graph.values):
        assert value.number == number, f"{value.text}: its place is {number}"
        assert value.graph is graph, f"{value.text}: of another graph"
        for arg in value.args:
            assert arg.number < number, f"{value.text}: depends on a later value"
            assert graph.values[arg.number] is arg, f"{value.text}: {arg} is of another graph"
        key = (value.op, value.args, value.attrs, value.shape, value.dtype)
        assert key not in seen, f"{value.text}: made twice"
        seen.add(key)
        if value.op == "view":
            _check_view(value)
        elif value.op == "getitem":
            assert graph.extern_outputs[value.args[0]][value.attrs] is value, f"{value.text}: not a part of its whole"
        elif value.op == "assemble":
            _check_assembled(value)
        elif value.op == "reduce":
            _, axes, shape = value.attrs
            kept = tuple(n for d, n in enumerate(value.args[0].shape) if d not in axes)
            assert prod(kept) == value.size, f"{value.text}: reduces {value.args[0].shape}"
            assert shape == value.shape, f"{value.text}: of another shape"
        elif value.op == "matmul":
            a, b = value.args
            assert (*a.shape[:-1], b.shape[-1]) == value.shape, f"{value.text}: {a.shape} @ {b.shape}"
        elif value.op not in ("input", "constant", "extern", "copy", "cast", "convolve"):
            for arg in value.args:
                assert arg.shape in ((), value.shape), f"{value.text}: an argument of shape {arg.shape}"


def _check_view(value: Value) -> None:
    strides, offset = value.attrs
    base = value.args[0]
    assert base.op != "view", f"{value.text}: a view of a view"
    assert len(strides) == value.ndim, f"{value.text}: strides of other dimensions"
    _check_inside(value, value.shape, strides, offset, base.size)


def _check_inside(value: Value, shape: Any, strides: Any, offset: int, size: int) -> None:
    if prod(shape) == 0:
        return
    low = offset + sum(min(0, (n - 1) * s) for n, s in zip(shape, strides, strict=True))
    high = offset + sum(max(0, (n - 1) * s) for n, s in zip(shape, strides, strict=True))
    assert low >= 0, f"{value.text}: begins {low} before its base"
    assert high < size, f"{value.text}: ends at {high} in a base of {size}"


def _check_assembled(value: Value) -> None:
    has_background, *places = value.attrs
    pieces = value.args[1:] if has_background else value.args
    if has_background:
        assert value.args[0].shape == value.shape, f"{value.text}: a background of {value.args[0].shape}"
    for piece, (strides, offset) in zip(pieces, places, strict=True):
        assert piece.dtype == value.dtype, f"{value.text}: a piece of {piece.dtype}"
        _check_inside(value, piece.shape, strides, offset, value.size)
    if not has_background:
        filled: set[int] = set()
        for piece, (strides, offset) in zip(pieces, places, strict=True):
            mine = {offset}
            for n, s in zip(piece.shape, strides, strict=True):
                mine = {at + i * s for at in mine for i in range(n)}
            assert not (filled & mine), f"{value.text}: pieces overlap"
            filled |= mine
        assert len(filled) == value.size, f"{value.text}: {value.size - len(filled)} elements are never written"


def check_groups(fusion: Fusion) -> None:
    """Each value is computed in one group; a group reads inputs, values stored by earlier groups, or its own."""
    done: set[Value] = set()
    homes: Counter[Value] = Counter()
    for group in fusion.groups:
        members = set(group.members)
        assert len(members) == len(group.members), f"group of {group.members[0]}: a member twice"
        homes.update(members)
        for member in group.members:
            if member is not group.contraction:
                assert fusion.of[member] is group, f"{member}: assigned to another group"
            for arg in member.args:
                base = arg.base
                if base.op in _GIVEN:
                    continue
                if base in members:
                    assert base.number < member.number, f"{member}: before {base} in its group"
                    continue
                home = base.args[0] if base.op == "getitem" else base
                assert home in done, f"{member}: needs {base}, which comes later"
                assert base in fusion.stored, f"{member}: needs {base}, which is not stored"
        done |= members
    for value in fusion.live:
        if value.op in _GIVEN or value.op in ("view", "getitem"):
            continue
        assert homes[value] == 1, f"{value.text}: in {homes[value]} groups"
    for value in fusion.outputs:
        assert value.op in _GIVEN or value in fusion.stored, f"{value.text}: an output that is not stored"


class _Memory:
    """A simulation of memory while kernels run in order: a symbolic name for every byte of every element."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self.names: dict[Value, np.ndarray] = {}
        self.next = 1
        self.bytes: dict[int, np.ndarray] = {}  # by entry

    def elements(self, value: Value) -> np.ndarray:
        """The names of a value's elements; copies have the same names."""
        found = self.names.get(value)
        if found is None:
            found = self.names[value] = self._named(value)
        return found

    def _named(self, value: Value) -> np.ndarray:
        if value.op == "view":
            return shown(self.elements(value.args[0]), value.shape, *value.attrs)
        if value.op == "assemble":
            has_background, *places = value.attrs
            made = self.elements(value.args[0]).reshape(-1).copy() if has_background else np.zeros(value.size, int)
            for piece, (strides, offset) in zip(value.args[has_background:], places, strict=True):
                made[shown(np.arange(value.size), piece.shape, strides, offset)] = self.elements(piece)
            return made.reshape(value.shape)
        made = np.arange(self.next, self.next + value.size).reshape(value.shape)
        self.next += value.size
        return made

    def content(self, value: Value) -> np.ndarray:
        """The names of a value's bytes, in memory order."""
        size = value.dtype.itemsize
        return (self.elements(value).reshape(-1, 1) * 16 + np.arange(size)).reshape(-1)

    def room(self, entry: int, end: int) -> np.ndarray:
        """The bytes of an entry, at least `end`."""
        held = self.bytes.get(entry, np.zeros(0, int))
        if held.size < end:
            held = self.bytes[entry] = np.concatenate([held, np.zeros(end - held.size, int)])
        return held

    def span(self, value: Value) -> tuple[int, int, int]:
        """The location of a value: entry, first byte, end."""
        entry, start = self.schedule.locations[value]
        return entry, start, start + value.size * value.dtype.itemsize

    def holds(self, value: Value, place: Value | None = None) -> bool:
        """Whether a value is at its location, or at that of `place`."""
        entry, start, end = self.span(value if place is None else place)
        return np.array_equal(self.room(entry, end)[start:end], self.content(value))

    def write(self, value: Value, place: Value | None = None) -> None:
        """Write a value to its location, or to that of `place`."""
        entry, start, end = self.span(value if place is None else place)
        self.room(entry, end)[start:end] = self.content(value)

    def write_piece(self, value: Value, piece: Value, strides: Sequence[int], offset: int) -> np.ndarray:
        """Write a piece of an assembled array; return the indices of its bytes in the entry."""
        entry, start, end = self.span(value)
        size = value.dtype.itemsize
        at = start + (shown(np.arange(value.size), piece.shape, strides, offset).reshape(-1, 1) * size
                      + np.arange(size)).reshape(-1)
        names = (self.elements(piece).reshape(-1, 1) * 16 + np.arange(size)).reshape(-1)
        self.room(entry, end)[at] = names
        return at


def _piece_of(kernel: Any, done: set[int]) -> int:
    """The index of the argument of an assembled array that a kernel copies."""
    [value] = kernel.outputs
    has_background, *places = value.attrs
    places = [((), 0)] * has_background + places
    size = value.dtype.itemsize
    for k, (arg, (_, offset)) in enumerate(zip(value.args, places, strict=True)):
        read = [(arg.base, arg.offset * size)] if kernel.inputs else []
        if k not in done and arg.size and kernel.output_offsets == (offset * size,) and kernel.inputs == read and (
                bool(read) or arg.base.op == "constant"):
            return k
    raise AssertionError(f"a copy into {value} that matches no piece")


def check_plan(schedule: Schedule) -> None:
    """Simulate a schedule: every kernel reads valid memory, and all targets are valid at the end.

    Overlapping live values are detected when the overwritten one is read. A kernel may write to memory that it reads
    only where it reads element by element.
    """
    memory = _Memory(schedule)
    places = schedule.locations
    for given in (*schedule.inputs, *(v for v in places if v.op == "constant")):
        memory.write(given)
    written: Counter[Value] = Counter()
    pieces: dict[Value, set[int]] = {}

    def check_conditions() -> None:
        for value, _ in schedule.conditions:
            assert memory.holds(value), f"condition {value} is not computed before it is checked"
        for graph_input in schedule.inputs:
            assert memory.holds(graph_input), f"{graph_input} is overwritten before the conditions are checked"

    for step, kernel in enumerate(schedule.kernels):
        if step == schedule.kernels_before_conditions:
            check_conditions()
        said = f"kernel {step} ({kernel.name}) of {kernel.outputs}"
        for value, offset in kernel.inputs:
            assert memory.holds(value), f"{said}: {value} is not where it is read"
            assert 0 <= offset < max(1, value.size * value.dtype.itemsize), f"{said}: reads outside of {value}"
        if kernel.name == "copy" and kernel.outputs[0].op == "assemble":
            _check_copy(memory, kernel, pieces.setdefault(kernel.outputs[0], set()), said)
            continue
        spans = [memory.span(value) for value in kernel.outputs]
        for i, a in enumerate(spans):
            for b in spans[:i]:
                assert not _overlap(a, b), f"{said}: outputs share memory"
        for number, (value, _) in enumerate(kernel.inputs):
            read = memory.span(value)
            for span in spans:
                if _overlap(span, read):
                    assert number in kernel.same_layout, f"{said}: writes over {value}, which it reads"
                    assert span == read, f"{said}: writes over {value} at another place"
        if step in schedule.scratch:
            size = max(each.scratch for each in kernel.launches)
            scratch = (schedule.arena_entry, schedule.scratch[step], schedule.scratch[step] + size)
            assert scratch[2] <= schedule.arena, f"{said}: scratch memory ends after the arena"
            for value in (*kernel.outputs, *(value for value, _ in kernel.inputs)):
                assert not _overlap(scratch, memory.span(value)), f"{said}: {value} overlaps the scratch memory"
            memory.room(scratch[0], scratch[2])[scratch[1]:scratch[2]] = 0
        else:
            assert not any(each.scratch for each in kernel.launches), f"{said}: no scratch memory"
        for value, (entry, _, end) in zip(kernel.outputs, spans, strict=True):
            if entry == schedule.arena_entry:
                assert end <= schedule.arena, f"{said}: {value} ends after the arena"
            assert not written[value], f"{said}: {value} is written twice"
            written[value] += 1
            memory.write(value)
    if schedule.kernels_before_conditions >= len(schedule.kernels):
        check_conditions()
    for graph_input, value in schedule.deferred_copies:
        assert memory.holds(value), f"{value}, which {graph_input} is overwritten with, is not valid"
    for graph_input, value in schedule.deferred_copies:
        memory.write(value, graph_input)
    for target in schedule.targets:
        place = target.value if target.overwrites is None else target.overwrites
        assert place.size == target.value.size, f"{target.value} does not fit {place}"
        assert place.dtype == target.value.dtype, f"{target.value} does not fit {place}"
        assert memory.holds(target.value, place), f"target {target.value} is not valid at the end"


def _check_copy(memory: _Memory, kernel: Any, done: set[int], said: str) -> None:
    """Check the copy of one piece of an assembled array."""
    [value] = kernel.outputs
    has_background, *places = value.attrs
    k = _piece_of(kernel, done)
    done.add(k)
    dense = (algebra.dense_strides(value.shape), 0)
    piece = value.args[k]
    at = memory.write_piece(value, piece, *(dense if has_background and not k else places[k - has_background]))
    if kernel.inputs:
        entry, start, _ = memory.span(piece.base)
        size = piece.dtype.itemsize
        read = start + shown(np.arange(piece.base.size), piece.shape, piece.strides, piece.offset).reshape(-1) * size
        if entry == memory.schedule.locations[value][0]:
            assert not np.isin(at, (read.reshape(-1, 1) + np.arange(size)).reshape(-1)).any(), (
                f"{said}: writes over {piece.base}, which it reads")


def _overlap(a: tuple[int, int, int], b: tuple[int, int, int]) -> bool:
    return a[0] == b[0] and a[1] < b[2] and b[1] < a[2]


def check(schedule: Schedule) -> None:
    """Check a schedule's graph, groups and memory."""
    check_graph(schedule.graph)
    check_groups(schedule.fusion)
    check_plan(schedule)
