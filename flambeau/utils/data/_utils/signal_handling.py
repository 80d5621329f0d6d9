"""Detection of workers that died: SIGCHLD in the loader's process, and reports of fatal signals in the workers."""

from __future__ import annotations

import signal
import threading
from typing import Any

from ....runtime.process_control import raise_if_any_worker_failed as _error_if_any_worker_fails
from ....runtime.process_control import release as _remove_worker_pids
from ....runtime.process_control import set_worker_signal_handlers as _set_worker_signal_handlers
from ....runtime.process_control import supervise as _set_worker_pids
from . import IS_WINDOWS

__all__ = ["_error_if_any_worker_fails", "_remove_worker_pids", "_set_SIGCHLD_handler", "_set_worker_pids",
           "_set_worker_signal_handlers"]

_SIGCHLD_handler_set = False


def _set_SIGCHLD_handler() -> None:
    """Check the workers whenever a child process ends; one handler serves all loaders of the process.

    The handler raises in the main thread, wherever that is: a loader that waits for a batch does not wait in vain.
    """
    global _SIGCHLD_handler_set
    if IS_WINDOWS or _SIGCHLD_handler_set or threading.current_thread() is not threading.main_thread():
        return
    previous = signal.getsignal(signal.SIGCHLD)

    def handler(signum: int, frame: Any) -> None:
        _error_if_any_worker_fails()
        if callable(previous):
            previous(signum, frame)

    signal.signal(signal.SIGCHLD, handler)
    _SIGCHLD_handler_set = True
