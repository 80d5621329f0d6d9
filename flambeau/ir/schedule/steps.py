"""Execution plans: the steps of a program, and the table entries of its arrays."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...runtime import launch
from ..graph.extern_kernels import ExternKernel, FallbackKernel

#: an array for a fallback kernel: table entry, offset, shape, strides in bytes, dtype
View = tuple[int, int, tuple[int, ...], tuple[int, ...], np.dtype]


class Step(NamedTuple):
    """A step of compiled code.

    Attributes:
        launch: a kernel launch, or a data guard.
        pointers: for each operand the table entry and an offset in bytes.
        kernel: the number of the kernel in the schedule; None for data guards.
    """

    launch: launch.Launch | launch.Condition
    pointers: list[tuple[int, int]]
    kernel: int | None


class Call(NamedTuple):
    """A step of the interpreter: a fallback kernel, or the check of an extern kernel's outputs."""

    extern: FallbackKernel | ExternKernel
    inputs: list[View]
    outputs: list[View]
    kernel: int


class ExecutionPlan(NamedTuple):
    """A schedule in the form that is executed and cached.

    The table of addresses has entries for the inputs, the new outputs, the arena and the constants, in this order.

    Attributes:
        inputs: the numbers of the inputs.
        output_specs: shapes and dtypes of the new arrays.
        constants: constant arrays.
        arena: the size of the arena of intermediate values, in bytes.
        arena_entry, entries: the table entry of the arena, and the number of entries.
        steps: in order of execution.
    """

    inputs: list[int]
    output_specs: list[tuple[tuple[int, ...], np.dtype]]
    constants: list[np.ndarray]
    arena: int
    arena_entry: int
    entries: int
    steps: list[Step | Call]

    @property
    def steps_before_conditions(self) -> list[Step | Call]:
        """The steps before the last data guard, which may still end the run."""
        last = max((i for i, step in enumerate(self.steps) if isinstance(step, Step)
                    and isinstance(step.launch, launch.Condition)), default=0)
        return self.steps[:last]

    def writes_after_conditions(self, output: int) -> bool:
        """Whether a new array is only written after the last data guard."""
        entry = len(self.inputs) + output
        return all(isinstance(step, Step) and all(entry != each for each, _ in step.pointers)
                   for step in self.steps_before_conditions)


__all__: list[Any] = ["Call", "ExecutionPlan", "Step", "View"]
