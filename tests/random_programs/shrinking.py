"""Reduction of a program: statements are dropped while the two libraries still disagree."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

from .comparison import Disagreement, compare
from .execution import Step, run


def disagreement(program: list[str], here: ModuleType, there: ModuleType) -> Disagreement | None:
    """Where a program does not do the same under two libraries."""
    steps = run(program, there)
    return decided(program, compare(run(program, here), steps), steps, here, there)


def decided(program: list[str], found: Disagreement | None, steps: list[Step], here: ModuleType,
            there: ModuleType) -> Disagreement | None:
    """A disagreement, unless it is about values that another rounding changes as much: jumps at ties, noise of zeros.

    That is so if rounding changes the values there, or makes those here what they are there.

    Args:
        steps: what the program did under `there`.
    """
    if found is None or found.kind not in ("value", "shape"):  # shapes of `nonzero`, too
        return found
    program, steps = program[: found.index + 1], steps[: found.index + 1]
    for noise in range(3):
        if compare(run(program, there, noise), steps) is not None or compare(run(program, here, noise), steps) is None:
            return None
    return found


def shrunk(program: list[str], found: Disagreement, here: ModuleType,
           there: ModuleType) -> tuple[list[str], Disagreement]:
    """A program as short as dropping statements makes it, and how the libraries disagree about it."""
    return shortened(program, found, lambda shorter: disagreement(shorter, here, there))


def shortened(program: list[str], found: Disagreement,
              check: Callable[[list[str]], Disagreement | None]) -> tuple[list[str], Disagreement]:
    """A program as short as dropping statements makes it, of which `check` finds the same kind of disagreement."""
    program = program[: found.index + 1]
    size = max(1, len(program) // 2)
    while True:
        dropped = False
        start = len(program) - size
        while start > -size:
            begin = max(start, 0)
            shorter = program[:begin] + program[start + size:]
            still = check(shorter) if shorter else None
            if still is not None and still.kind == found.kind:
                program, found, dropped = shorter[: still.index + 1], still, True
                start = min(start, len(program))
            start -= size
        if size == 1 and not dropped:
            return program, found
        size = max(1, size // 2) if not dropped or size > 1 else 1
