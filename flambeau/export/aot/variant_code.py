"""Compilation of a job for the current target: plans, kernels and the program's module as object files."""

from __future__ import annotations

from collections.abc import Sequence
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
from ...runtime.symbolic_integers import PlannedSizes, typical
from .errors import ExportError
from .jobs import KernelReport, SizedJob, VariantCode, VariantJob, decode_graph
from .kernel_objects import kernel_object
from .prepacking import ConstantInputs, PackedWeights, prepack
from .program_ir import PACKED, Place, SizedPlan, arena_bytes, program_module, table_bytes
from .sizes.formulas import extended
from .sizes.templates import columns_of, evaluated


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
        read = []
        for sized in job.sized:
            found, reports = _plans(sized, job, weights, packed)
            plans += found
            read.append(set().union(*map(_read, found)))
    libraries = _libraries(plans)
    workers = thread_pool.library() if job.threads > 1 else None
    if workers is not None:
        libraries.append(workers)
    with ThreadPoolExecutor(max(1, threads.count()), "flambeau export") as pool:
        kernels = [*pool.map(kernel_object, libraries)]
    pointer_bytes = 4 if target.host().triple.startswith("wasm32") else 8
    module = program_module(job.name, plans, job.arena + 1, pointer_bytes, workers)
    objects = [object_emission.emit_object(module, "few"), *kernels]
    arenas = {sizes: arena_bytes(each, sizes) for each in plans for sizes in each.sizes}
    tables = max(map(table_bytes, plans))
    return VariantCode(objects, arenas, tables, reports, packed.data, read)


def _read(sized: SizedPlan) -> set[int]:
    """The numbers of the inputs that a plan reads."""
    entries = {entry for step in sized.plan.steps if isinstance(step, Step) for entry, _ in step.pointers}
    return {number for entry, number in enumerate(sized.plan.inputs) if entry in entries}


def _plans(
    sized: SizedJob, job: VariantJob, weights: np.ndarray, packed: PackedWeights
) -> tuple[list[SizedPlan], list[KernelReport]]:
    """The plans for all combinations of sizes, and the kernels for the last one.

    Each plan is made for one combination, and serves all for which planning would have come to the same.
    """
    plans: list[SizedPlan] = []
    reports: list[KernelReport] = []
    if len(sized.sizes) == 1:
        plan, reports = _plan(sized, sized.sizes[0], sized.sizes, None, job, weights, packed)
        return [plan], reports
    left = list(sized.sizes)
    while left:
        sizes = PlannedSizes(columns_of(left), len(left) - 1)
        plan, found = _plan(sized, sizes.symbols(), left, sizes, job, weights, packed)
        reports = reports or found
        plans.append(plan)
        left = [each for each, served in zip(left, sizes.served, strict=True) if not served]
    return plans, reports


def _plan(
    sized: SizedJob,
    symbols: Sequence[Any],
    combinations: Sequence[tuple[int, ...]],
    planned: PlannedSizes | None,
    job: VariantJob,
    weights: np.ndarray,
    packed: PackedWeights,
) -> tuple[SizedPlan, list[KernelReport]]:
    symbols = extended(symbols, sized.derived)
    graph, targets, guards = decode_graph(sized, symbols, lambda x: evaluated(x, symbols))
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
    served = list(combinations)
    if planned is not None:
        for step in plan.steps:  # decisions by what is emitted
            if isinstance(step, Step) and isinstance(step.launch, Launch):
                _ = step.launch.shared
        served = [sizes for sizes, is_served in zip(combinations, planned.served, strict=True) if is_served]
    return SizedPlan(served, plan, bases, numbers), reports


def _cost(kernel: Any) -> tuple[int, int]:
    cost = cost_model.cost_of(kernel)
    return typical(cost.bytes), typical(cost.flops)


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
