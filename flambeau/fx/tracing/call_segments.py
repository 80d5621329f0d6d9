"""Segments of a recorded call: the operations between graph breaks, one graph each, as Dynamo divides functions.

A function that breaks has a segment before and after each break. So has each function on the stack at the break: what
calls a function that breaks does not contain it. A function that breaks in a loop runs in Python from its last break
on; the functions that it calls are segments of their own.
"""

from __future__ import annotations

import dis
import functools
from collections.abc import Sequence
from types import CodeType, FrameType
from typing import Any, NamedTuple

from .call_graph import RecordedOperation


class GraphBreak(NamedTuple):
    """A graph break.

    Attributes:
        at: the number of operations before it.
        frames: frames of user code on the stack, the outermost first: their numbers, and whether they are in a loop.
        reads: identities of tensors whose elements Python reads.
    """

    at: int
    frames: tuple[tuple[int, bool], ...]
    reads: tuple[int, ...]


@functools.lru_cache(maxsize=1024)
def _jumps(code: CodeType) -> tuple[tuple[int, int], ...]:
    """The offsets of jumps back, and of their targets."""
    return tuple([(x.offset, x.argval) for x in dis.get_instructions(code)
                  if "JUMP" in x.opname and isinstance(x.argval, int) and x.argval < x.offset])


def is_in_loop(code: CodeType, instruction: int) -> bool:
    """Whether a jump after an instruction leads to before it.

    >>> def f(x):
    ...     for _ in range(3):
    ...         x = x + 1
    ...     return x
    >>> loop = next(x.offset for x in dis.get_instructions(f) if x.opname == "BINARY_OP")
    >>> is_in_loop(f.__code__, loop), is_in_loop(f.__code__, 0)
    (True, False)
    """
    return any(target < instruction <= offset for offset, target in _jumps(code))


@functools.lru_cache(maxsize=1024)
def _reads(code: CodeType) -> tuple[tuple[int, str], ...]:
    """The offsets of instructions that read variables, and the variables."""
    return tuple([(x.offset, x.argval) for x in dis.get_instructions(code)
                  if x.opname.startswith(("LOAD_FAST", "LOAD_DEREF", "LOAD_CLOSURE"))])


def live_values(frame: FrameType) -> list[Any]:
    """The values of the variables of a frame that instructions after the current one read."""
    code, at = frame.f_code, frame.f_lasti
    everything = is_in_loop(code, at)
    names = {name for offset, name in _reads(code) if everything or offset > at}
    return [value for name, value in frame.f_locals.items() if name in names]


def segments_of(operations: Sequence[RecordedOperation], breaks: Sequence[GraphBreak]
                ) -> list[tuple[int, list[RecordedOperation]]]:
    """Divide the operations of a call.

    Args:
        operations: the operations.
        breaks: the graph breaks, in their order.

    Returns:
        the segments, in the order in which they ran: the number of the frame that each belongs to, 0 if that is no
        user code, and its operations. Operations that run in Python are left out.
    """
    python_from: dict[int, int] = {}  # by frame that broke, the first operation that is not in a graph
    last: dict[int, int] = {}
    for each in breaks:
        for frame, in_loop in each.frames:
            if in_loop:
                python_from.setdefault(frame, last.get(frame, 0))
            last[frame] = each.at
    segments: list[tuple[int, list[RecordedOperation]]] = []
    before: tuple[int | None, int] | None = None
    passed = 0
    for at, operation in enumerate(operations):
        while passed < len(breaks) and breaks[passed].at <= at:
            passed += 1
        owner: int | None = 0
        for frame in operation.frames:
            if frame not in last:
                owner = frame if owner is None else owner
                break
            owner = None if at >= python_from.get(frame, len(operations)) else frame
        if owner is not None:
            if (owner, passed) != before:
                segments.append((owner, []))
            segments[-1][1].append(operation)
        before = owner, passed
    return segments


__all__ = ["GraphBreak", "is_in_loop", "live_values", "segments_of"]
