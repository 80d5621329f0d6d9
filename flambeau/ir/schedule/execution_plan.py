"""Building an execution plan from a schedule: its kernels as steps with table entries and offsets."""

from __future__ import annotations

from typing import Any

from ...codegen.scalar.scalar_ir import variable
from ...runtime import launch
from ..graph.extern_kernels import ExternKernel, FallbackKernel
from ..graph.value import Value
from ..kernels.emission import as_real_pairs
from .scheduler import Schedule
from .steps import Call, ExecutionPlan, Step, View


def build_execution_plan(schedule: Schedule) -> ExecutionPlan:
    """Build the execution plan of a schedule."""
    return ExecutionPlan([graph_input.attrs for graph_input in schedule.inputs], schedule.output_specs,
                         schedule.constants, schedule.arena, schedule.arena_entry, schedule.entries, _steps(schedule))


def _steps(schedule: Schedule) -> list[Step | Call]:
    locations = schedule.locations
    steps: list[Step | Call] = []
    conditions = [Step(launch.Condition(outcome), [locations[value]], None) for value, outcome in schedule.conditions]
    for number, kernel in enumerate(schedule.kernels):
        if number == schedule.kernels_before_conditions:
            steps += conditions
        pointers = [locations[v] for v in kernel.outputs]
        if kernel.output_offsets:
            pointers = [(entry, at + shift) for (entry, at), shift in zip(pointers, kernel.output_offsets, strict=True)]
        pointers += [(locations[v][0], locations[v][1] + offset) for v, offset in kernel.inputs]
        extern = kernel.outputs[0].args[0].attrs if kernel.outputs and kernel.outputs[0].op == "getitem" else None
        if isinstance(extern, FallbackKernel):
            node = kernel.outputs[0].args[0]
            steps.append(Call(extern, [_view(schedule, x) for x in node.args],
                              [_view(schedule, v) for v in kernel.outputs], number))
            continue
        if number in schedule.scratch:
            pointers.append((schedule.arena_entry, schedule.scratch[number]))
        steps += [Step(each, pointers, number) for each in kernel.launches]
        if isinstance(extern, ExternKernel) and extern.check is not None:
            steps.append(Call(extern, [], [_view(schedule, v) for v in kernel.outputs if v.attrs in extern.checked],
                              number))
    if schedule.kernels_before_conditions >= len(schedule.kernels):
        steps += conditions
    for graph_input, value in schedule.deferred_copies:
        shape, strides = schedule.regions.get(graph_input, ((value.size,), (1,)))
        byte_strides = tuple(s * value.dtype.itemsize for s in strides)
        spec = as_real_pairs(launch.Spec(shape, byte_strides, value.dtype))
        steps += [Step(each, [locations[graph_input], locations[value]], len(schedule.kernels))
                  for each in schedule.fusion.families.elementwise([variable(0, spec.dtype)], [spec], [spec])]
    return steps


def _view(schedule: Schedule, value: Value) -> View:
    entry, offset = schedule.locations[value.base]
    size = value.dtype.itemsize
    return entry, offset + value.offset * size, value.shape, tuple(s * size for s in value.strides), value.dtype


__all__: list[Any] = ["build_execution_plan"]
