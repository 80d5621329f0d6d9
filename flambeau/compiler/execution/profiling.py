"""Profiling of compiled functions: one event for each kernel of a program."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from ...engine.profiler_events import active_timeline
from ...ir import printing
from ...ir.kernels.cost_model import Cost, cost_of
from ...ir.schedule.program import KernelCallback, Program

_kernel_costs: WeakKeyDictionary[Program, list[tuple[str, Cost]]] = WeakKeyDictionary()


def watch(program: Program, name: str) -> KernelCallback | None:
    """Return the callback that records a program's kernels in the profile of this thread; None without a profiler."""
    timeline = active_timeline()
    if timeline is None:
        return None
    costs = _kernel_costs.get(program)
    if costs is None:
        costs = _kernel_costs[program] = _costs_of(program)

    def on_kernel(kernel: int, start: int, end: int) -> None:
        title, cost = costs[kernel]
        timeline.record_kernel(f"{name}[{kernel}] {title}", start, end, cost)

    return on_kernel


def _costs_of(program: Program) -> list[tuple[str, Cost]]:
    """Return the title and the cost of each kernel; last, those of the deferred copies to inputs."""
    plan = program.schedule
    copied = sum(2 * leaf.size * leaf.dtype.itemsize for leaf, _ in plan.deferred_copies)
    costs = [(printing.kernel_title(kernel), cost_of(kernel)) for kernel in plan.kernels]
    return [*costs, ("copy", Cost(copied, 0, False))]


__all__ = ["watch"]
