"""A plan as something to run: compiled code over a table of addresses, and between its segments the interpreter.

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
from ..graph.extern_kernels import ExternKernel, FallbackKernel
from ..graph.target import Target
from ..graph.value import Graph, Value
from . import plan_cache
from .steps import Call, ExecutionPlan, Step

if TYPE_CHECKING:
    from .scheduler import Schedule

#: told of each kernel of a run: its number in the plan, when it began, and when it ended, in nanoseconds. Copies to
#: where inputs lie, after all kernels, count as one more.
KernelCallback = Callable[[int, int, int], None]


class _Segment:
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
        inputs: the numbers of the inputs it reads or writes, in the order in which `run` takes their arrays.
        outputs: shapes and dtypes of the arrays that it makes.
        keeps_arena: whether the memory of what is computed on the way stays its own between runs. Where there are many
            programs, one for each length of a text, each asks for some when it runs.
    """

    keeps_arena = True

    def __init__(self, graph: Graph, targets: Sequence[Target],
                 conditions: Sequence[tuple[Value, bool]] = (), effects: Sequence[Value] = (),
                 cache_key: str | None = None) -> None:
        self._definition, self._captured = (graph, targets, conditions, effects), len(graph.values)
        self.cache_key = plan_cache.cache_key(*self._definition) if cache_key is None else cache_key
        self._prepare(self._load_or_build())

    @classmethod
    def from_execution_plan(cls, execution_plan: ExecutionPlan) -> Program:
        """A program whose execution_plan is known; it has no plan."""
        made = cls.__new__(cls)
        made._prepare(execution_plan)
        return made

    def _prepare(self, execution_plan: ExecutionPlan) -> None:
        self.execution_plan = execution_plan
        self.inputs, self.output_specs = execution_plan.inputs, execution_plan.output_specs
        self._objects = len(execution_plan.inputs) + len(execution_plan.output_specs)
        self.template = (ctypes.c_void_p * (launch.FIRST + execution_plan.entries))()
        for i, array in enumerate(execution_plan.constants):
            self.template[launch.FIRST + execution_plan.arena_entry + 1 + i] = array.ctypes.data
        self.lock = threading.Lock()
        self.segments = self._split_segments()
        self._streams = self._random_streams_before_conditions()
        self.first_out = launch.FIRST + len(execution_plan.inputs)
        only = self.segments[0] if len(self.segments) == 1 else None
        self.single = only.program if isinstance(only, _Segment) else None
        self.start: Callable[..., Any] | None = None
        if self.single is not None:
            self.single.enter(self.template)
            self.start = self.single.start_function(self.template, launch.FIRST + execution_plan.arena_entry)

    def _load_or_build(self) -> ExecutionPlan:
        """What there is to run: as it is kept on disk, else planned."""
        found = plan_cache.read(self.cache_key, self._definition[0])
        if found is None:
            from .execution_plan import build_execution_plan  # which a process whose plans are on disk does not need

            with compilation.compile_in_background():
                found = build_execution_plan(self.schedule)
            plan_cache.write(self.cache_key, found, self._definition[0])
        return found

    @functools.cached_property
    def schedule(self) -> Schedule:
        """Its kernels, as formulas, and the memory of its arrays."""
        from .scheduler import Schedule

        return Schedule(*self._definition, self._captured)

    def _random_streams_before_conditions(self) -> list[Any]:
        """The streams of random numbers that a run goes back on if a condition does not hold."""
        found = [step.extern.stream for step in self.execution_plan.steps_before_conditions
                 if isinstance(step, Call) and isinstance(step.extern, FallbackKernel)]
        return list({id(stream): stream for stream in found if stream is not None}.values())

    def _split_segments(self) -> list[_Segment | Call]:
        segments: list[_Segment | Call] = []
        for calls, group in groupby(self.execution_plan.steps, lambda step: isinstance(step, Call)):
            if calls:
                segments += group  # type: ignore[arg-type]
                continue
            steps: list[Step] = list(group)  # type: ignore[arg-type]
            made = launch.Program([(each.launch, each.pointers) for each in steps], self._objects,
                                  self.execution_plan.entries)
            segments.append(_Segment(made, [each.kernel for each in steps]))
        return segments

    def run(self, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray] | None = None,
            watch: KernelCallback | None = None) -> list[np.ndarray] | None:
        """Run it over the inputs' arrays; the arrays that it makes, or None where a condition does not hold.

        Args:
            inputs: arrays in the order of `inputs`, laid out as the inputs are.
            outputs: the arrays to make use of for what it returns, instead of new ones.
            watch: kernels are run one at a time, and this is told of each.
        """
        outs = [np.empty(shape, dtype) for shape, dtype in self.output_specs] if outputs is None else list(outputs)
        if self.start is not None and watch is None:
            return outs if self._started(inputs, outs) else None
        table = self.template.__class__.from_buffer_copy(self.template)
        i = launch.FIRST
        for array in inputs:
            table[i] = id(array)
            i += 1
        for array in outs:
            table[i] = id(array)
            i += 1
        mine = self.keeps_arena and self.lock.acquire(blocking=False)
        try:
            arena = self.arena if mine else launch.allocate_aligned(self.execution_plan.arena)
            table[launch.FIRST + self.execution_plan.arena_entry] = arena[1]
            holds = self.run_segments(table, [*inputs, *outs, *self.internal_arrays(arena)], watch)
        finally:
            if mine:
                self.lock.release()
        return outs if holds else None

    def _started(self, inputs: Sequence[np.ndarray], outs: Sequence[np.ndarray]) -> bool:
        """Run it in one segment; whether all conditions hold."""
        pool = thread_pool.pool()
        if not self.execution_plan.arena:
            return self.start(pool, 0, *inputs, *outs) is not pool  # type: ignore[misc]
        mine = self.keeps_arena and self.lock.acquire(blocking=False)
        try:
            memory = self.arena if mine else launch.allocate_aligned(self.execution_plan.arena)
            return self.start(pool, memory[1], *inputs, *outs) is not pool  # type: ignore[misc]
        finally:
            if mine:
                self.lock.release()

    @functools.cached_property
    def arena(self) -> tuple[np.ndarray, int]:
        """The memory of what is computed on the way, and its aligned address; the lock's holder may use it."""
        return launch.allocate_aligned(self.execution_plan.arena)

    def internal_arrays(self, arena: tuple[np.ndarray, int]) -> list[np.ndarray]:
        """The arrays of a table behind inputs and results: what is computed on the way, and constants."""
        memory, address = arena
        return [memory[address - memory.ctypes.data:], *self.execution_plan.constants]

    def run_segments(self, table: Any, owners: list[np.ndarray], watch: KernelCallback | None = None) -> bool:
        """Run it segment by segment over a filled table; False where a condition does not hold.

        Args:
            owners: the arrays whose addresses the table has.
        """
        before = [(stream, stream.snapshot()) for stream in self._streams]
        for segment in self.segments:
            if isinstance(segment, _Segment):
                segment.program.enter(table)
                if segment.program(table) if watch is None else _run_kernels_separately(segment, table, watch):
                    for stream, snapshot in before:
                        stream.restore(snapshot)
                    return False
                continue
            start = perf_counter_ns()
            outputs = [self._array(owners, place) for place in segment.outputs]
            if isinstance(segment.extern, ExternKernel):
                segment.extern.check(*outputs)  # type: ignore[misc]
                continue
            found = segment.extern.run(*[self._array(owners, place) for place in segment.inputs])
            for out, array in zip(outputs, found, strict=True):
                out[...] = array
            if watch is not None:
                watch(segment.kernel, start, perf_counter_ns())
        return True

    def _array(self, owners: list[np.ndarray], place: tuple) -> np.ndarray:
        entry, offset, shape, strides, dtype = place
        owner = owners[entry]
        if not owner.flags.c_contiguous:
            count = 1 + sum((n - 1) * (s // owner.itemsize) for n, s in zip(owner.shape, owner.strides, strict=True))
            owner = np.lib.stride_tricks.as_strided(owner, (count if owner.size else 0,), (owner.itemsize,))
        return np.ndarray(shape, dtype, owner.reshape(-1).view(np.uint8), offset, strides)


def _run_kernels_separately(segment: _Segment, record: Any, watch: KernelCallback) -> bool:
    """Run a segment's kernels, each by itself; whether a condition does not hold."""
    call, first = segment.program.call, 0
    for kernel, steps in groupby(segment.kernels):
        count = len(list(steps))
        segment.program.only(record, first, count)
        start = perf_counter_ns()
        failed = call(record)
        end = perf_counter_ns()
        if failed:
            return True
        if kernel is not None:
            watch(kernel, start, end)
        first += count
    return False


__all__ = ["Graph", "KernelCallback", "Program", "Target"]
