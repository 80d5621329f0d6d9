"""Launched processes: their errors, their results, and where their output goes."""

from __future__ import annotations

from .api import (
    DefaultLogsSpecs,
    LogsDest,
    LogsSpecs,
    MultiprocessContext,
    PContext,
    RunProcsResult,
    SignalException,
    Std,
    SubprocessContext,
    to_map,
)
from .errors import ChildFailedError, ProcessFailure, record
from .start import start_processes

__all__ = ["ChildFailedError", "DefaultLogsSpecs", "LogsDest", "LogsSpecs", "MultiprocessContext", "PContext",
           "ProcessFailure", "RunProcsResult", "SignalException", "Std", "SubprocessContext", "record",
           "start_processes", "to_map"]
