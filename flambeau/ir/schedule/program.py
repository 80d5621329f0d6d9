"""Programs: execution of a plan, as segments of compiled code over a table of addresses and calls between them.

A program retains its arena between runs, unless `keeps_arena` is False. While one thread runs the program, other
threads allocate arenas of their own.
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

#: called after each kernel of a profiled run: its number in the schedule, start and end in nanoseconds. The deferred
#: copies to inputs, after all kernels, count as one more kernel.
KernelCallback = Callable[[int, int, int], None]


class _Segment:
    """Consecutive steps of compiled code.

    Attributes:
        kernels: the kernel number of each step; None for data guards.
    """

    __slots__ = ("kernels", "program")

    def __init__(self, program: launch.Program, kernels: list[int | None]) -> None:
        self.program, self.kernels = program, kernels


class Program:
    """An executable computation of some values of a graph.

    Args:
        graph: the graph.
        targets: the outputs.
        conditions: data guards: bool values and their required outcomes.
        effects: values that are computed even if no target depends on them.
        cache_key: the key in the plan cache, if it is known.

    Attributes:
        cache_key: that key.
        inputs: the numbers of the inputs that are read or written, in the order in which `run` takes their arrays.
        output_specs: shapes and dtypes of the new arrays.
        keeps_arena: whether the arena is retained between runs. Without it, each run allocates one: many programs, one
            for every sequence length, would hold too much memory.
        start: runs a program of one segment (`launch.Program.start_function`); None for others.
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
        """A program of an execution plan; it has no schedule."""
        program = cls.__new__(cls)
        program._prepare(execution_plan)
        return program

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
        """The execution plan, from the persistent cache or built from the schedule."""
        plan = plan_cache.read(self.cache_key, self._definition[0])
        if plan is None:
            from .execution_plan import build_execution_plan  # not needed where plans are cached

            with compilation.compile_in_background():
                plan = build_execution_plan(self.schedule)
            plan_cache.write(self.cache_key, plan, self._definition[0])
        return plan

    @functools.cached_property
    def schedule(self) -> Schedule:
        """The schedule, built on first use."""
        from .scheduler import Schedule

        return Schedule(*self._definition, self._captured)

    def _random_streams_before_conditions(self) -> list[Any]:
        """The random streams to restore if a data guard fails."""
        streams = [step.extern.stream for step in self.execution_plan.steps_before_conditions
                 if isinstance(step, Call) and isinstance(step.extern, FallbackKernel)]
        return list({id(stream): stream for stream in streams if stream is not None}.values())

    def _split_segments(self) -> list[_Segment | Call]:
        segments: list[_Segment | Call] = []
        for calls, group in groupby(self.execution_plan.steps, lambda step: isinstance(step, Call)):
            if calls:
                segments += group  # type: ignore[arg-type]
                continue
            steps: list[Step] = list(group)  # type: ignore[arg-type]
            compiled = launch.Program([(each.launch, each.pointers) for each in steps], self._objects,
                                  self.execution_plan.entries)
            segments.append(_Segment(compiled, [each.kernel for each in steps]))
        return segments

    def run(self, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray] | None = None,
            callback: KernelCallback | None = None) -> list[np.ndarray] | None:
        """Run the program: the new arrays, or None where a data guard fails.

        Args:
            inputs: arrays in the order of `inputs`, in the layouts of the inputs.
            outputs: arrays to write, instead of new ones.
            callback: called for each kernel; kernels then run one at a time.
        """
        results = [np.empty(shape, dtype) for shape, dtype in self.output_specs] if outputs is None else list(outputs)
        if self.start is not None and callback is None:
            return results if self._run_single(inputs, results) else None
        table = self.template.__class__.from_buffer_copy(self.template)
        i = launch.FIRST
        for array in inputs:
            table[i] = id(array)
            i += 1
        for array in results:
            table[i] = id(array)
            i += 1
        owns_arena = self.keeps_arena and self.lock.acquire(blocking=False)
        try:
            arena = self.arena if owns_arena else launch.allocate_aligned(self.execution_plan.arena)
            table[launch.FIRST + self.execution_plan.arena_entry] = arena[1]
            holds = self.run_segments(table, [*inputs, *results, *self.internal_arrays(arena)], callback)
        finally:
            if owns_arena:
                self.lock.release()
        return results if holds else None

    def _run_single(self, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray]) -> bool:
        """Run a program of one segment; whether all data guards hold."""
        pool = thread_pool.pool()
        if not self.execution_plan.arena:
            return self.start(pool, 0, *inputs, *outputs) is not pool  # type: ignore[misc]
        owns_arena = self.keeps_arena and self.lock.acquire(blocking=False)
        try:
            memory = self.arena if owns_arena else launch.allocate_aligned(self.execution_plan.arena)
            return self.start(pool, memory[1], *inputs, *outputs) is not pool  # type: ignore[misc]
        finally:
            if owns_arena:
                self.lock.release()

    @functools.cached_property
    def arena(self) -> tuple[np.ndarray, int]:
        """The retained arena and its aligned address, for the holder of the lock."""
        return launch.allocate_aligned(self.execution_plan.arena)

    def internal_arrays(self, arena: tuple[np.ndarray, int]) -> list[np.ndarray]:
        """The arrays of the table after inputs and outputs: the arena and the constants."""
        memory, address = arena
        return [memory[address - memory.ctypes.data:], *self.execution_plan.constants]

    def run_segments(self, table: Any, owners: list[np.ndarray], callback: KernelCallback | None = None) -> bool:
        """Run all segments over a filled table; False where a data guard fails.

        Args:
            owners: the arrays of the table's entries.
        """
        snapshots = [(stream, stream.snapshot()) for stream in self._streams]
        for segment in self.segments:
            if isinstance(segment, _Segment):
                segment.program.enter(table)
                if segment.program(table) if callback is None else _run_kernels_separately(segment, table, callback):
                    for stream, snapshot in snapshots:
                        stream.restore(snapshot)
                    return False
                continue
            start = perf_counter_ns()
            outputs = [self._array(owners, view) for view in segment.outputs]
            if isinstance(segment.extern, ExternKernel):
                segment.extern.check(*outputs)  # type: ignore[misc]
                continue
            results = segment.extern.run(*[self._array(owners, view) for view in segment.inputs])
            for out, array in zip(outputs, results, strict=True):
                out[...] = array
            if callback is not None:
                callback(segment.kernel, start, perf_counter_ns())
        return True

    def _array(self, owners: list[np.ndarray], view: tuple) -> np.ndarray:
        entry, offset, shape, strides, dtype = view
        owner = owners[entry]
        if not owner.flags.c_contiguous:
            count = 1 + sum((n - 1) * (s // owner.itemsize) for n, s in zip(owner.shape, owner.strides, strict=True))
            owner = np.lib.stride_tricks.as_strided(owner, (count if owner.size else 0,), (owner.itemsize,))
        return np.ndarray(shape, dtype, owner.reshape(-1).view(np.uint8), offset, strides)


def _run_kernels_separately(segment: _Segment, table: Any, callback: KernelCallback) -> bool:
    """Run a segment's kernels one at a time; whether a data guard failed."""
    call, first = segment.program.call, 0
    for kernel, steps in groupby(segment.kernels):
        count = len(list(steps))
        segment.program.restrict(table, first, count)
        start = perf_counter_ns()
        failed = call(table)
        end = perf_counter_ns()
        if failed:
            return True
        if kernel is not None:
            callback(kernel, start, end)
        first += count
    return False


__all__ = ["Graph", "KernelCallback", "Program", "Target"]
