"""Compilation of a job for the current target: plans, kernels and the program's module as object files."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from ...ir.kernels import cost_model
from ...ir.schedule.execution_plan import build_execution_plan
from ...ir.schedule.scheduler import Schedule
from ...ir.schedule.steps import Call, Step
from ...kernels import threads
from ...runtime import object_emission, target, thread_pool
from ...runtime.compilation import Library, Symbol
from ...runtime.launch import Launch
from .errors import ExportError
from .jobs import KernelReport, SizedJob, VariantCode, VariantJob, decode_graph
from .kernel_objects import kernel_object
from .prepacking import ConstantInputs, PackedWeights, prepack
from .program_ir import PACKED, Place, SizedPlan, program_module


def compile_variant(job: VariantJob) -> VariantCode:
    """Compile a job for the current target.

    Raises:
        ExportError: a kernel runs in the interpreter.
    """
    plans: list[SizedPlan] = []
    reports: list[KernelReport] = []
    packed = PackedWeights()
    weights = np.load(job.weights, mmap_mode="r") if job.weights else np.zeros(0, np.uint8)
    with threads.assumed(job.threads):
        for sized in job.sized:
            plan, reports = _plan(sized, job, weights, packed)
            plans.append(plan)
    libraries = _libraries(plans)
    workers = thread_pool.library() if job.threads > 1 else None
    if workers is not None:
        libraries.append(workers)
    with ThreadPoolExecutor(max(1, threads.count()), "flambeau export") as pool:
        kernels = [*pool.map(kernel_object, libraries)]
    pointer_bytes = 4 if target.host().triple.startswith("wasm32") else 8
    module = program_module(job.name, plans, job.arena + 1, pointer_bytes, workers)
    objects = [object_emission.emit_object(module, "few"), *kernels]
    return VariantCode(objects, [p.plan.arena for p in plans], reports, packed.data, [_read(p) for p in plans])


def _read(sized: SizedPlan) -> set[int]:
    """The numbers of the inputs that a plan reads."""
    entries = {entry for step in sized.plan.steps if isinstance(step, Step) for entry, _ in step.pointers}
    return {number for entry, number in enumerate(sized.plan.inputs) if entry in entries}


def _plan(
    sized: SizedJob, job: VariantJob, weights: np.ndarray, packed: PackedWeights
) -> tuple[SizedPlan, list[KernelReport]]:
    graph, targets, guards = decode_graph(sized)
    schedule = Schedule(graph, targets, guards, families=ConstantInputs(frozenset(sized.constants)))
    numbers = [guard[2] for guard, (value, _) in zip(sized.guards, guards, strict=True) if value.base.op != "constant"]
    plan = build_execution_plan(schedule)
    for step in plan.steps:
        if isinstance(step, Call):
            raise ExportError(f"{step.extern!r} has no compiled kernel: it runs in NumPy")
    places: list[Place] = [sized.inputs[number] for number in plan.inputs]
    places += [(job.first_output + i, 0) for i in range(len(plan.output_specs))]
    places.append((job.arena, 0))
    bases = dict(enumerate(places))
    constants = {}
    for entry, number in enumerate(plan.inputs):
        if number in sized.constants:
            start, size = sized.constants[number]
            constants[entry] = weights[start : start + size]
    plan, entries = prepack(plan, constants, packed)
    bases |= {entry: (PACKED, offset) for entry, offset in entries.items()}
    reports = [KernelReport(kernel.name, *_cost(kernel)) for kernel in schedule.kernels]
    return SizedPlan(sized.sizes, plan, bases, numbers), reports


def _cost(kernel: Any) -> tuple[int, int]:
    cost = cost_model.cost_of(kernel)
    return cost.bytes, cost.flops


def _libraries(plans: list[SizedPlan]) -> list[Library]:
    found: dict[int, Library] = {}
    for sized in plans:
        for step in sized.plan.steps:
            assert isinstance(step, Step)
            if isinstance(step.launch, Launch):
                for word in (step.launch.body, step.launch.then, *step.launch.words):
                    if isinstance(word, Symbol):
                        found[id(word.library)] = word.library
    return list(found.values())


__all__ = ["compile_variant"]
