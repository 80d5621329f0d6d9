"""Compiled functions under a profiler: a span for each run of a program, and in it one for each kernel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from ..._tensor import Tensor
from ...engine.profiler_events import recording
from ...ir import printing
from ...ir.kernels.cost_model import Work, work
from ...ir.schedule.program import Program, Watch
from ...trees import tree_flatten

if TYPE_CHECKING:
    from .compiled_function import Replay

_contents: WeakKeyDictionary[Program, list[tuple[str, Work]]] = WeakKeyDictionary()


def run(replay: Replay, arguments: Sequence[Any]) -> Any:
    """Replay a run kernel by kernel, if this thread is profiled; `MISSED` where it does not fit."""
    timeline = recording()
    if timeline is None:
        return replay.run(arguments)
    span = timeline.enter(f"compiled {replay.name}", given=arguments)
    try:
        found = replay.run(arguments, watch(replay.program, replay.name))
        if timeline.memory:
            made = [x._array for x in tree_flatten(found)[0] if isinstance(x, Tensor)]
            timeline.made(span, made, [x._array for x in arguments])
        return found
    finally:
        timeline.leave(span)


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


__all__ = ["run", "watch"]
