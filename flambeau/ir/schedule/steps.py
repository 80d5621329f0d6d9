"""What a program needs of a plan to run: steps in order, and where their arrays lie."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...runtime import launch
from ..graph.extern_kernels import ExternKernel, FallbackKernel

#: where the interpreter finds a value: entry, offset, shape, strides in bytes, dtype
View = tuple[int, int, tuple[int, ...], tuple[int, ...], np.dtype]


class Step(NamedTuple):
    """What runs without the interpreter.

    Attributes:
        launch: a kernel, or a condition.
        pointers: of each operand, the entry and an offset in bytes.
        kernel: its number in the plan; None for conditions.
    """

    launch: launch.Launch | launch.Condition
    pointers: list[tuple[int, int]]
    kernel: int | None


class Call(NamedTuple):
    """A function of arrays that the interpreter calls, or what it checks after a kernel."""

    extern: FallbackKernel | ExternKernel
    inputs: list[View]
    outputs: list[View]
    kernel: int


class ExecutionPlan(NamedTuple):
    """A plan, as it is run.

    Attributes:
        inputs: their numbers, in the order of their entries.
        output_specs: shapes and dtypes of the arrays that it makes, whose entries follow.
        constants: arrays, whose entries follow the arena's.
        arena: bytes of what is computed on the way.
        arena_entry, entries: the arena's entry, and how many there are.
        steps: in their order.
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
        """The steps after which a condition may yet end the run."""
        last = max((i for i, step in enumerate(self.steps) if isinstance(step, Step)
                    and isinstance(step.launch, launch.Condition)), default=0)
        return self.steps[:last]

    def writes_after_conditions(self, output: int) -> bool:
        """Whether nothing is written to one of the arrays that it makes before the last condition is looked at."""
        entry = len(self.inputs) + output
        return all(isinstance(step, Step) and all(entry != each for each, _ in step.pointers)
                   for step in self.steps_before_conditions)


__all__: list[Any] = ["Call", "ExecutionPlan", "Step", "View"]
