"""Compiled functions under a profiler: a span for each run of a program, and in it one for each kernel."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from ...engine.profiler_events import recording
from ...ir import printing
from ...ir.kernels.cost_model import Work, work
from ...ir.schedule.program import Program, Watch

_contents: WeakKeyDictionary[Program, list[tuple[str, Work]]] = WeakKeyDictionary()


def watch(program: Program, name: str) -> Watch | None:
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


def _described(program: Program) -> list[tuple[str, Work]]:
    """What each kernel is called, and its work; last, copies to where leaves lie."""
    plan = program.plan
    copied = sum(2 * leaf.size * leaf.dtype.itemsize for leaf, _ in plan.late)
    return [*((printing.title(kernel), work(kernel)) for kernel in plan.kernels), ("copy", Work(copied, 0, False))]


__all__ = ["watch"]
