"""How a plan is run: its kernels as steps, and where their arrays lie."""

from __future__ import annotations

from typing import Any

from ...codegen.elementwise import elementwise
from ...codegen.scalar.scalar_ir import variable
from ...runtime import launch
from ..graph.extern_kernels import Foreign, Native
from ..graph.value import Value
from ..kernels.emission import in_parts
from .scheduler import Plan
from .steps import Call, Course, Step, View


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


__all__: list[Any] = ["course"]
