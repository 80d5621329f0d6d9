"""`torch._C._profiler`: stacks of frames, and the enumerations of profilers."""

from __future__ import annotations

import sys
import traceback
from types import FrameType
from typing import Any

from ..profiler import ProfilerActivity


class CapturedTraceback:
    """A stack, of which only code and line numbers are kept until it is read.

    Attributes:
        skip: the number of innermost frames that are left out.

    >>> from flambeau.utils._traceback import CapturedTraceback
    >>> CapturedTraceback.extract().summary()[-1].name
    '<module>'
    """

    __slots__ = ("skip", "tb")

    def __init__(self, tb: Any, skip: int = 0) -> None:
        self.tb, self.skip = tb, skip

    @classmethod
    def extract(cls, *, script: bool = False, cpp: bool = False, skip: int = 0) -> CapturedTraceback:
        """The stack of the caller.

        Args:
            script, cpp: whether frames of TorchScript and C++ are wanted; there are none.
            skip: the number of innermost frames to leave out.
        """
        frames = []
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            frames.append((frame.f_code, frame.f_lineno))
            frame = frame.f_back
        return cls(frames, skip)

    def cleanup(self) -> None:
        """Drop the stack."""
        self.tb = None

    def summary(self) -> traceback.StackSummary:
        """The stack as `traceback` has it, outermost first; empty after `cleanup`."""
        if self.tb is None:
            return traceback.StackSummary()
        return traceback.StackSummary.from_list([
            traceback.FrameSummary(code.co_filename, line, code.co_name)
            for code, line in reversed(self.tb[self.skip:])])

    def format(self) -> list[str]:
        """The lines of a printed traceback."""
        return traceback.format_list(self.summary())

    @staticmethod
    def format_all(tbs: list[CapturedTraceback | None]) -> list[list[str] | None]:
        """`format` of each."""
        return [None if each is None else each.format() for each in tbs]

    def __getstate__(self) -> Any:
        return None, {"tb": None, "skip": self.skip}  # code is not pickled


def gather_traceback(python: bool, script: bool, cpp: bool) -> CapturedTraceback:
    """The stack of the caller; frames of TorchScript and C++ there are none."""
    captured = CapturedTraceback.extract(skip=1)
    if not python:
        captured.cleanup()
    return captured


def symbolize_tracebacks(tracebacks: list[CapturedTraceback]) -> list[list[dict[str, Any]]]:
    """The frames of each stack, innermost first: name, file and line."""
    return [[{"name": frame.name, "filename": frame.filename, "line": frame.lineno}
             for frame in reversed(each.summary())] for each in tracebacks]


__all__ = ["CapturedTraceback", "ProfilerActivity", "gather_traceback", "symbolize_tracebacks"]
