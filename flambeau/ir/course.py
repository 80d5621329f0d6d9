"""What a program needs of a plan to run: steps in order, and where their arrays lie."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..jit import elementwise, launch
from ..jit.expression import variable
from .emission import in_parts
from .planning import Plan
from .value import Value
from .whole import Foreign, Native

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

    whole: Foreign | Native
    inputs: list[View]
    outputs: list[View]
    kernel: int


class Course(NamedTuple):
    """A plan, as it is run.

    Attributes:
        leaves: their numbers, in the order of their entries.
        fresh: shapes and dtypes of the arrays that it makes, whose entries follow.
        constants: arrays, whose entries follow the arena's.
        arena: bytes of what is computed on the way.
        arena_entry, entries: the arena's entry, and how many there are.
        steps: in their order.
    """

    leaves: list[int]
    fresh: list[tuple[tuple[int, ...], np.dtype]]
    constants: list[np.ndarray]
    arena: int
    arena_entry: int
    entries: int
    steps: list[Step | Call]

    @property
    def undecided(self) -> list[Step | Call]:
        """The steps after which a condition may yet end the run."""
        last = max((i for i, step in enumerate(self.steps) if isinstance(step, Step)
                    and isinstance(step.launch, launch.Condition)), default=0)
        return self.steps[:last]

    def is_held_back(self, fresh: int) -> bool:
        """Whether nothing is written to one of the arrays that it makes before the last condition is looked at."""
        entry = len(self.leaves) + fresh
        return all(isinstance(step, Step) and all(entry != each for each, _ in step.pointers)
                   for step in self.undecided)


def course(plan: Plan) -> Course:
    """What a plan comes to."""
    return Course([leaf.attrs for leaf in plan.leaves], plan.fresh, plan.constants, plan.arena, plan.arena_entry,
                  plan.entries, _steps(plan))


def _steps(plan: Plan) -> list[Step | Call]:
    places = plan.places
    found: list[Step | Call] = []
    conditions = [Step(launch.Condition(outcome), [places[value]], None) for value, outcome in plan.conditions]
    for number, kernel in enumerate(plan.kernels):
        if number == plan.early:
            found += conditions
        pointers = [places[v] for v in kernel.outputs]
        if kernel.shifts:
            pointers = [(entry, at + shift) for (entry, at), shift in zip(pointers, kernel.shifts, strict=True)]
        pointers += [(places[v][0], places[v][1] + offset) for v, offset in kernel.inputs]
        whole = kernel.outputs[0].args[0].attrs if kernel.outputs and kernel.outputs[0].op == "part" else None
        if isinstance(whole, Foreign):
            node = kernel.outputs[0].args[0]
            found.append(Call(whole, [_view(plan, x) for x in node.args], [_view(plan, v) for v in kernel.outputs],
                              number))
            continue
        if number in plan.scratch:
            pointers.append((plan.arena_entry, plan.scratch[number]))
        found += [Step(each, pointers, number) for each in kernel.launches]
        if isinstance(whole, Native) and whole.check is not None:
            found.append(Call(whole, [], [_view(plan, v) for v in kernel.outputs if v.attrs in whole.checked], number))
    if plan.early >= len(plan.kernels):
        found += conditions
    for leaf, value in plan.late:
        shape, strides = plan.parts.get(leaf, ((value.size,), (1,)))
        steps_of = tuple(s * value.dtype.itemsize for s in strides)
        flat = in_parts(launch.Spec(shape, steps_of, value.dtype))
        found += [Step(each, [places[leaf], places[value]], len(plan.kernels))
                  for each in elementwise.launches([variable(0, flat.dtype)], [flat], [flat])]
    return found


def _view(plan: Plan, value: Value) -> View:
    entry, offset = plan.places[value.base]
    size = value.dtype.itemsize
    return entry, offset + value.offset * size, value.shape, tuple(s * size for s in value.strides), value.dtype


__all__: list[Any] = ["Call", "Course", "Step", "View", "course"]
