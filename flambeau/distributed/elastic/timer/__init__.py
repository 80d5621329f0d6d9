"""`torch.distributed.elastic.timer`: blocks of a worker that must end in time; a server ends workers that are late."""

from __future__ import annotations

from .api import TimerClient, TimerRequest, TimerServer, configure, expires
from .file_based_local_timer import FileTimerClient, FileTimerRequest, FileTimerServer
from .local_timer import LocalTimerClient, LocalTimerServer

__all__ = ["FileTimerClient", "FileTimerRequest", "FileTimerServer", "LocalTimerClient", "LocalTimerServer",
           "TimerClient", "TimerRequest", "TimerServer", "configure", "expires"]
