"""Launched processes: their errors, and where their output goes."""

from __future__ import annotations

from .errors import ChildFailedError, ProcessFailure, record
from .logs import DefaultLogsSpecs, LogsSpecs, Std
from .signals import SignalException

__all__ = ["ChildFailedError", "DefaultLogsSpecs", "LogsSpecs", "ProcessFailure", "SignalException", "Std", "record"]
