"""A plan as something to run: compiled code over a table of addresses, and between its pieces the interpreter.

Memory between runs is kept, unless `keeps_arena` is False: the arena belongs to the program. While one thread runs it,
another takes an arena of its own.
"""

from __future__ import annotations

import ctypes
import functools
import threading
from collections.abc import Callable, Sequence
from itertools import groupby
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

import numpy as np

from ...runtime import compilation, launch, thread_pool
from ..graph.extern_kernels import Foreign, Native
from ..graph.target import Target
from ..graph.value import Graph, Value
from . import plan_cache
from .steps import Call, Course, Step

if TYPE_CHECKING:
    from .scheduler import Plan

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


class Program:
    """What computes certain values of a graph.

    Args:
        graph: the graph.
        targets: what a run is to leave behind.
        conditions: truths on which all depends, and what they should be.
        effects: values that are computed though nobody may want them.
        entry: the name of its entry on disk, if it is known.

    Attributes:
        entry: that name.
        leaves: the numbers of the leaves it reads or writes, in the order in which `run` takes their arrays.
        fresh: shapes and dtypes of the arrays that it makes.
        keeps_arena: whether the memory of what is computed on the way stays its own between runs. Where there are many
            programs, one for each length of a text, each asks for some when it runs.
    """

    keeps_arena = True

    def __init__(self, graph: Graph, targets: Sequence[Target],
                 conditions: Sequence[tuple[Value, bool]] = (), effects: Sequence[Value] = (),
                 entry: str | None = None) -> None:
        self._asked, self._captured = (graph, targets, conditions, effects), len(graph.values)
        self.entry = plan_cache.name(*self._asked) if entry is None else entry
        self._prepare(self._course())

    @classmethod
    def of_course(cls, course: Course) -> Program:
        """A program whose course is known; it has no plan."""
        made = cls.__new__(cls)
        made._prepare(course)
        return made

    def _prepare(self, course: Course) -> None:
        self.course = course
        self.leaves, self.fresh = course.leaves, course.fresh
        self._objects = len(course.leaves) + len(course.fresh)
        self.template = (ctypes.c_void_p * (launch.FIRST + course.entries))()
        for i, array in enumerate(course.constants):
            self.template[launch.FIRST + course.arena_entry + 1 + i] = array.ctypes.data
        self.lock = threading.Lock()
        self.pieces = self._cut()
        self._streams = self._drawn_before_conditions()
        self.first_out = launch.FIRST + len(course.leaves)
        only = self.pieces[0] if len(self.pieces) == 1 else None
        self.single = only.program if isinstance(only, _Piece) else None
        self.start: Callable[..., Any] | None = None
        if self.single is not None:
            self.single.enter(self.template)
            self.start = self.single.starter(self.template, launch.FIRST + course.arena_entry)

    def _course(self) -> Course:
        """What there is to run: as it is kept on disk, else planned."""
        found = plan_cache.read(self.entry, self._asked[0])
        if found is None:
            from .execution_plan import course  # which a process whose plans are on disk does not need

            with compilation.ahead():
                found = course(self.plan)
            plan_cache.write(self.entry, found, self._asked[0])
        return found

    @functools.cached_property
    def plan(self) -> Plan:
        """Its kernels, as formulas, and the memory of its arrays."""
        from .scheduler import Plan

        return Plan(*self._asked, self._captured)

    def _drawn_before_conditions(self) -> list[Any]:
        """The streams of random numbers that a run goes back on if a condition does not hold."""
        found = [step.whole.stream for step in self.course.undecided
                 if isinstance(step, Call) and isinstance(step.whole, Foreign)]
        return list({id(stream): stream for stream in found if stream is not None}.values())

    def _cut(self) -> list[_Piece | Call]:
        pieces: list[_Piece | Call] = []
        for calls, group in groupby(self.course.steps, lambda step: isinstance(step, Call)):
            if calls:
                pieces += group  # type: ignore[arg-type]
                continue
            steps: list[Step] = list(group)  # type: ignore[arg-type]
            made = launch.Program([(each.launch, each.pointers) for each in steps], self._objects, self.course.entries)
            pieces.append(_Piece(made, [each.kernel for each in steps]))
        return pieces

    def run(self, leaves: Sequence[np.ndarray], fresh: Sequence[np.ndarray] | None = None,
            watch: Watch | None = None) -> list[np.ndarray] | None:
        """Run it over the leaves' arrays; the arrays that it makes, or None where a condition does not hold.

        Args:
            leaves: arrays in the order of `leaves`, laid out as the leaves are.
            fresh: the arrays to make use of for what it returns, instead of new ones.
            watch: kernels are run one at a time, and this is told of each.
        """
        outs = [np.empty(shape, dtype) for shape, dtype in self.fresh] if fresh is None else list(fresh)
        if self.start is not None and watch is None:
            return outs if self._started(leaves, outs) else None
        table = self.template.__class__.from_buffer_copy(self.template)
        i = launch.FIRST
        for array in leaves:
            table[i] = id(array)
            i += 1
        for array in outs:
            table[i] = id(array)
            i += 1
        mine = self.keeps_arena and self.lock.acquire(blocking=False)
        try:
            arena = self.arena if mine else launch.aligned(self.course.arena)
            table[launch.FIRST + self.course.arena_entry] = arena[1]
            holds = self.run_pieces(table, [*leaves, *outs, *self.rest(arena)], watch)
        finally:
            if mine:
                self.lock.release()
        return outs if holds else None

    def _started(self, leaves: Sequence[np.ndarray], outs: Sequence[np.ndarray]) -> bool:
        """Run it in one piece; whether all conditions hold."""
        pool = thread_pool.pool()
        if not self.course.arena:
            return self.start(pool, 0, *leaves, *outs) is not pool  # type: ignore[misc]
        mine = self.keeps_arena and self.lock.acquire(blocking=False)
        try:
            memory = self.arena if mine else launch.aligned(self.course.arena)
            return self.start(pool, memory[1], *leaves, *outs) is not pool  # type: ignore[misc]
        finally:
            if mine:
                self.lock.release()

    @functools.cached_property
    def arena(self) -> tuple[np.ndarray, int]:
        """The memory of what is computed on the way, and its aligned address; the lock's holder may use it."""
        return launch.aligned(self.course.arena)

    def rest(self, arena: tuple[np.ndarray, int]) -> list[np.ndarray]:
        """The arrays of a table behind leaves and results: what is computed on the way, and constants."""
        memory, address = arena
        return [memory[address - memory.ctypes.data:], *self.course.constants]

    def run_pieces(self, table: Any, owners: list[np.ndarray], watch: Watch | None = None) -> bool:
        """Run it piece by piece over a filled table; False where a condition does not hold.

        Args:
            owners: the arrays whose addresses the table has.
        """
        before = [(stream, stream.snapshot()) for stream in self._streams]
        for piece in self.pieces:
            if isinstance(piece, _Piece):
                piece.program.enter(table)
                if piece.program(table) if watch is None else _one_by_one(piece, table, watch):
                    for stream, snapshot in before:
                        stream.restore(snapshot)
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
