"""`torch.utils._traceback`: stacks of frames that are kept until somebody wants to read them."""

from __future__ import annotations

import contextlib
import os
import traceback
from collections.abc import Iterator
from typing import Any

from ..environment.profiler_extension import CapturedTraceback

__all__ = ["CapturedTraceback", "format_frame", "format_traceback_short", "report_compile_source_on_error",
           "shorten_filename"]


@contextlib.contextmanager
def report_compile_source_on_error() -> Iterator[None]:
    """A block whose errors show the lines of generated code: Python finds those of `linecache` by itself."""
    yield


def shorten_filename(fn: str, *, base: str | None = None) -> str:
    """A file's path below the folder of the package, or of another one."""
    folder = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) if base is None else base
    try:
        prefix = os.path.commonpath([fn, folder])
    except ValueError:
        return fn
    return fn[len(prefix) + 1:]


def format_frame(frame: traceback.FrameSummary, *, base: str | None = None, line: bool = False) -> str:
    """A frame in one line: file, line, function, and the code itself if `line`."""
    code = f"{frame.line}  # " if line else ""
    return f"{code}{shorten_filename(frame.filename, base=base)}:{frame.lineno} in {frame.name}"


def format_traceback_short(tb: Any) -> str:
    """The innermost frame of a traceback, in one line."""
    return format_frame(traceback.extract_tb(tb)[-1])
