"""Where a graph breaks: the frames from the innermost one to the traced function, as code and instruction."""

from __future__ import annotations

import types
from typing import Any, NamedTuple

_ROOT = "_trace_call"


class BreakFrame(NamedTuple):
    """A frame of the stack at a graph break.

    Attributes:
        code: its code.
        instruction: the offset of the instruction that it was at.
    """

    code: types.CodeType
    instruction: int

    @property
    def position(self) -> tuple[int | None, int | None, int | None, int | None]:
        """The range in the source: first and last line, first and last column."""
        return [*self.code.co_positions()][self.instruction // 2]


def break_frames(frame: Any) -> tuple[BreakFrame, ...]:
    """Return a frame and those that called it, up to the traced function; the innermost is first."""
    found = []
    while frame is not None and frame.f_code.co_name != _ROOT:
        found.append(BreakFrame(frame.f_code, frame.f_lasti))
        frame = frame.f_back
    return tuple(found)


__all__ = ["BreakFrame", "break_frames"]
