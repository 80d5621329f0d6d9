"""Compiled functions under a profiler: a span for each run of a program, and in it one for each kernel."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from ...engine.profiler_events import recording
from ...ir import printing
from ...ir.kernels.cost_model import Cost, cost_of
from ...ir.schedule.program import KernelCallback, Program

_contents: WeakKeyDictionary[Program, list[tuple[str, Cost]]] = WeakKeyDictionary()


def watch(program: Program, name: str) -> KernelCallback | None:
    """What writes a program's kernels down, if this thread is profiled."""
    timeline = recording()
    if timeline is None:
        return None
    contents = _contents.get(program)
    if contents is None:
        contents = _contents[program] = _described(program)

    def ran(kernel: int, start: int, end: int) -> None:
        title, done = contents[kernel]
        timeline.ran(f"{name}[{kernel}] {title}", start, end, done)

    return ran


def _described(program: Program) -> list[tuple[str, Cost]]:
    """What each kernel is called, and its work; last, copies to where leaves lie."""
    plan = program.schedule
    copied = sum(2 * leaf.size * leaf.dtype.itemsize for leaf, _ in plan.deferred_copies)
    return [*((printing.kernel_title(kernel), cost_of(kernel)) for kernel in plan.kernels), ("copy", Cost(copied, 0,
                                                                                                          False))]


__all__ = ["watch"]
