"""`torch.distributed.elastic.multiprocessing.api`: processes, their results and their output."""

from __future__ import annotations

from .contexts import MultiprocessContext, PContext, RunProcsResult, SubprocessContext, _validate_full_rank, _wrap
from .logs import DefaultLogsSpecs, LogsDest, LogsSpecs, Std, to_map
from .signals import SignalException, _terminate_process_handler

__all__ = ["DefaultLogsSpecs", "LogsDest", "LogsSpecs", "MultiprocessContext", "PContext", "RunProcsResult",
           "SignalException", "Std", "SubprocessContext", "_terminate_process_handler", "_validate_full_rank", "_wrap",
           "to_map"]
