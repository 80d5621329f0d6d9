"""Launched processes: their errors, and where their output goes."""

from __future__ import annotations

from .errors import ChildFailedError, ProcessFailure, SignalException, record
from .logs import DefaultLogsSpecs, LogsSpecs, Std

__all__ = ["ChildFailedError", "DefaultLogsSpecs", "LogsSpecs", "ProcessFailure", "SignalException", "Std", "record"]
