"""`torch._logging._internal`: the module from which packages import the names of `torch._logging`."""

from __future__ import annotations

from . import (
    LazyString,
    dtrace_structured,
    get_structured_logging_overhead,
    getArtifactLogger,
    set_logs,
    trace_structured,
    warning_once,
)

__all__ = ["LazyString", "dtrace_structured", "getArtifactLogger", "get_structured_logging_overhead", "set_logs",
           "trace_structured", "warning_once"]
