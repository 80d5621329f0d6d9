"""`CheckpointException`: what went wrong at which rank."""

from __future__ import annotations

import traceback
from typing import Any

__all__ = ["CheckpointException"]

WRAPPED_EXCEPTION = tuple[BaseException, traceback.StackSummary]


def _wrap_exception(exc: BaseException) -> WRAPPED_EXCEPTION:
    """An error with the lines that led to it, which can be sent to another process."""
    summary = traceback.extract_tb(exc.__traceback__)
    for frame in summary:
        if hasattr(frame, "_code"):  # from Python 3.13 on; code cannot be pickled
            object.__setattr__(frame, "_code", None)
    return exc, summary


def _is_wrapped_exception(obj: Any) -> bool:
    return (isinstance(obj, tuple) and len(obj) == 2 and isinstance(obj[0], BaseException)
            and isinstance(obj[1], traceback.StackSummary))


class CheckpointException(BaseException):
    """A step of saving or loading failed at one or more ranks; all ranks raise it.

    Args:
        msg: the step.
        failures: rank -> its error and the lines that led to it.
    """

    def __init__(self, msg: str, failures: dict[int, WRAPPED_EXCEPTION]) -> None:
        super().__init__(msg, failures)
        self._failures = failures

    @property
    def failures(self) -> dict[int, WRAPPED_EXCEPTION]:
        """Rank -> its error and the lines that led to it."""
        return self._failures

    def __str__(self) -> str:
        text = f"CheckpointException ranks:{self._failures.keys()}\n"
        for rank, (error, lines) in self._failures.items():
            text += f"Traceback (most recent call last): (RANK {rank})\n"
            text += "".join(traceback.format_list(lines) if lines is not None else ())
            text += "".join(traceback.format_exception_only(type(error), value=error))
        return text
