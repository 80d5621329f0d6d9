"""A plan as something to run: compiled code over a table of addresses, and between its pieces the interpreter.

Memory between runs is kept: the arena belongs to the program. While one thread runs it, another takes an arena of its
own.
"""

from __future__ import annotations

import ctypes
import functools
import threading
from collections.abc import Callable, Sequence
from itertools import groupby
from time import perf_counter_ns
from typing import Any

import numpy as np

from ..jit import compiled, launch
from .emission import in_parts
from .planning import Plan, Target
from .value import Graph, Value
from .whole import Foreign, Native

#: told of each kernel of a run: its number in the plan, when it began, and when it ended, in nanoseconds. Copies to
#: where leaves lie, after all kernels, count as one more.
Watch = Callable[[int, int, int], None]


class _Piece:
    """Kernels that run without the interpreter.

    Attributes:
        kernels: of each step, the number of the kernel; None for conditions.
    """

    __slots__ = ("kernels", "program")

    def __init__(self, program: launch.Program, kernels: list[int | None]) -> None:
        self.program, self.kernels = program, kernels


class _Call:
    """A function of arrays that the interpreter calls, or what it checks after a kernel."""

    __slots__ = ("inputs", "kernel", "outputs", "whole")

    def __init__(self, whole: Any, inputs: list[Any], outputs: list[Any], kernel: int) -> None:
        self.whole, self.inputs, self.outputs, self.kernel = whole, inputs, outputs, kernel


class Program:
    """What computes certain values of a graph.

    Args:
        graph: the graph.
        targets: what a run is to leave behind.
        conditions: truths on which all depends, and what they should be.

    Attributes:
        plan: kernels and memory.
        leaves: the numbers of the leaves it reads or writes, in the order in which `run` takes their arrays.
    """

    def __init__(self, graph: Graph, targets: Sequence[Target],
                 conditions: Sequence[tuple[Value, bool]] = ()) -> None:
        with compiled.ahead():
            plan = self.plan = Plan(graph, targets, conditions)
        self.leaves = [leaf.attrs for leaf in plan.leaves]
        self.fresh = plan.fresh
        self._objects = len(plan.leaves) + len(plan.fresh)
        self.template = (ctypes.c_void_p * (launch.FIRST + plan.entries))()
        for i, array in enumerate(plan.constants):
            self.template[launch.FIRST + plan.arena_entry + 1 + i] = array.ctypes.data
        self.lock = threading.Lock()
        self.pieces = self._cut()
        self.first_out = launch.FIRST + len(plan.leaves)
        only = self.pieces[0] if len(self.pieces) == 1 else None
        self.single = only.program if isinstance(only, _Piece) else None
        if self.single is not None:
            self.single.enter(self.template)

    def _cut(self) -> list[_Piece | _Call]:
        plan = self.plan
        places = plan.places
        pieces: list[_Piece | _Call] = []
        steps: list[tuple[launch.Launch | launch.Condition, list[tuple[int, int]]]] = []
        owners: list[int | None] = []  # of the steps

        def flush() -> None:
            if steps:
                pieces.append(_Piece(launch.Program(steps, self._objects, plan.entries), [*owners]))
                steps.clear()
                owners.clear()

        def conditions() -> None:
            for value, outcome in plan.conditions:
                steps.append((launch.Condition(outcome), [places[value]]))
                owners.append(None)

        for number, kernel in enumerate(plan.kernels):
            if number == plan.early:
                conditions()
            pointers = [places[v] for v in kernel.outputs]
            if kernel.shifts:
                pointers = [(entry, at + shift) for (entry, at), shift in zip(pointers, kernel.shifts, strict=True)]
            pointers += [(places[v][0], places[v][1] + offset) for v, offset in kernel.inputs]
            whole = kernel.outputs[0].args[0].attrs if kernel.outputs and kernel.outputs[0].op == "part" else None
            if isinstance(whole, Foreign):
                flush()
                node = kernel.outputs[0].args[0]
                given = [self._view(x) for x in node.args]
                pieces.append(_Call(whole, given, [self._view(v) for v in kernel.outputs], number))
                continue
            if any(each.scratch for each in kernel.launches):
                pointers.append((plan.arena_entry, plan.scratch))
            steps += [(each, pointers) for each in kernel.launches]
            owners += [number] * len(kernel.launches)
            if isinstance(whole, Native) and whole.check is not None:
                flush()
                checked = [self._view(v) for v in kernel.outputs if v.attrs in whole.checked]
                pieces.append(_Call(whole, [], checked, number))
        if plan.early >= len(plan.kernels):
            conditions()
        if plan.late:
            from ..jit import elementwise
            from ..jit.expression import variable

            for leaf, value in plan.late:
                shape, strides = plan.parts.get(leaf, ((value.size,), (1,)))
                steps_of = tuple(s * value.dtype.itemsize for s in strides)
                flat = in_parts(launch.Spec(shape, steps_of, value.dtype))
                for each in elementwise.launches([variable(0, flat.dtype)], [flat], [flat]):
                    steps.append((each, [places[leaf], places[value]]))
                    owners.append(len(plan.kernels))
        flush()
        return pieces

    def _view(self, value: Value) -> tuple[int, int, tuple[int, ...], tuple[int, ...], np.dtype]:
        """Where the interpreter finds a value: entry, offset, shape, strides in bytes, dtype."""
        entry, offset = self.plan.places[value.base]
        size = value.dtype.itemsize
        return entry, offset + value.offset * size, value.shape, tuple(s * size for s in value.strides), value.dtype

    def run(self, leaves: Sequence[np.ndarray], fresh: Sequence[np.ndarray] | None = None,
            watch: Watch | None = None) -> list[np.ndarray] | None:
        """Run it over the leaves' arrays; the arrays that it makes, or None where a condition does not hold.

        Args:
            leaves: arrays in the order of `leaves`, laid out as the leaves are.
            fresh: the arrays to make use of for what it returns, instead of new ones.
            watch: kernels are run one at a time, and this is told of each.
        """
        outs = [np.empty(shape, dtype) for shape, dtype in self.fresh] if fresh is None else list(fresh)
        table = self.template.__class__.from_buffer_copy(self.template)
        i = launch.FIRST
        for array in leaves:
            table[i] = id(array)
            i += 1
        for array in outs:
            table[i] = id(array)
            i += 1
        mine = self.lock.acquire(blocking=False)
        try:
            arena = self.arena if mine else launch.aligned(self.plan.arena)
            table[launch.FIRST + self.plan.arena_entry] = arena[1]
            if self.single is not None and watch is None:
                holds = not self.single(table)
            else:
                holds = self.run_pieces(table, [*leaves, *outs, *self.rest(arena)], watch)
        finally:
            if mine:
                self.lock.release()
        return outs if holds else None

    @functools.cached_property
    def arena(self) -> tuple[np.ndarray, int]:
        """The memory of what is computed on the way, and its aligned address; the lock's holder may use it."""
        return launch.aligned(self.plan.arena)

    def rest(self, arena: tuple[np.ndarray, int]) -> list[np.ndarray]:
        """The arrays of a table behind leaves and results: what is computed on the way, and constants."""
        memory, address = arena
        return [memory[address - memory.ctypes.data:], *self.plan.constants]

    def run_pieces(self, table: Any, owners: list[np.ndarray], watch: Watch | None = None) -> bool:
        """Run it piece by piece over a filled table; False where a condition does not hold.

        Args:
            owners: the arrays whose addresses the table has.
        """
        for piece in self.pieces:
            if isinstance(piece, _Piece):
                piece.program.enter(table)
                if piece.program(table) if watch is None else _one_by_one(piece, table, watch):
                    return False
                continue
            start = perf_counter_ns()
            outputs = [self._array(owners, place) for place in piece.outputs]
            if isinstance(piece.whole, Native):
                piece.whole.check(*outputs)  # type: ignore[misc]
                continue
            found = piece.whole.run(*[self._array(owners, place) for place in piece.inputs])
            for out, array in zip(outputs, found, strict=True):
                out[...] = array
            if watch is not None:
                watch(piece.kernel, start, perf_counter_ns())
        return True

    def _array(self, owners: list[np.ndarray], place: tuple) -> np.ndarray:
        entry, offset, shape, strides, dtype = place
        owner = owners[entry]
        if not owner.flags.c_contiguous:
            count = 1 + sum((n - 1) * (s // owner.itemsize) for n, s in zip(owner.shape, owner.strides, strict=True))
            owner = np.lib.stride_tricks.as_strided(owner, (count if owner.size else 0,), (owner.itemsize,))
        return np.ndarray(shape, dtype, owner.reshape(-1).view(np.uint8), offset, strides)


def _one_by_one(piece: _Piece, record: Any, watch: Watch) -> bool:
    """Run a piece's kernels, each by itself; whether a condition does not hold."""
    call, first = piece.program.call, 0
    for kernel, steps in groupby(piece.kernels):
        count = len(list(steps))
        piece.program.only(record, first, count)
        start = perf_counter_ns()
        failed = call(record)
        end = perf_counter_ns()
        if failed:
            return True
        if kernel is not None:
            watch(kernel, start, end)
        first += count
    return False


__all__ = ["Graph", "Program", "Target", "Watch"]
