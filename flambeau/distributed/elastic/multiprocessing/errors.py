"""Errors of launched processes: written to files by the processes, read and raised by the launcher."""

from __future__ import annotations

import functools
import json
import os
import signal
import socket
import time
import traceback
from collections.abc import Callable
from datetime import datetime
from typing import Any, ParamSpec, TypeVar

__all__ = ["ChildFailedError", "ProcessFailure", "SignalException", "record"]

_Args = ParamSpec("_Args")
_R = TypeVar("_R")
_NO_FILE = "<N/A>"
_HINT = "To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html"


class SignalException(Exception):
    """A signal ended the launcher.

    Args:
        msg: what happened.
        sigval: the signal.
    """

    def __init__(self, msg: str, sigval: signal.Signals) -> None:
        super().__init__(msg)
        self.sigval = sigval


class ProcessFailure:
    """How a process failed.

    Args:
        local_rank: its number on its machine.
        pid: its process id.
        exitcode: its exit code; negative for a signal.
        error_file: the file that `record` has written its error to.
        rank: its number among all processes.
    """

    def __init__(self, local_rank: int, pid: int, exitcode: int, error_file: str = _NO_FILE, rank: int = -1) -> None:
        self.local_rank, self.pid, self.exitcode = local_rank, pid, exitcode
        self.rank = local_rank if rank < 0 else rank
        self.error_file = _NO_FILE
        self.timestamp = int(time.time())
        self.message = f"Signal {-exitcode} ({self.signal_name()}) received by PID {pid}" if exitcode < 0 else _HINT
        if os.path.isfile(error_file):
            with open(error_file, encoding="utf-8") as file:
                details = json.load(file)["message"]
            self.error_file = error_file
            self.message = details["extraInfo"]["py_callstack"]
            self.timestamp = int(details["extraInfo"]["timestamp"])

    def signal_name(self) -> str:
        """The signal that ended it; <N/A> if none did."""
        return signal.Signals(-self.exitcode).name if self.exitcode < 0 else _NO_FILE

    def timestamp_isoformat(self) -> str:
        """When it failed."""
        return datetime.fromtimestamp(self.timestamp).isoformat(sep="_")

    def lines(self) -> list[str]:
        """What is known about it."""
        ended = f"({self.signal_name()})" if self.exitcode < 0 else ""
        return [f"  time      : {self.timestamp_isoformat()}", f"  host      : {socket.getfqdn()}",
                f"  rank      : {self.rank} (local_rank: {self.local_rank})",
                f"  exitcode  : {self.exitcode} (pid: {self.pid}) {ended}", f"  error_file: {self.error_file}",
                f"  traceback : {self.message}"]


class ChildFailedError(Exception):
    """Processes failed; the message tells how each did, the first one last.

    Args:
        name: of the program.
        failures: number -> how it failed.
    """

    def __init__(self, name: str, failures: dict[int, ProcessFailure]) -> None:
        assert failures, "failures must not be empty"
        self.name, self.failures = name, failures
        number, first = self.get_first_failure()
        others = [line for i, each in sorted(failures.items()) if i != number for line in (f"[{i}]:", *each.lines())]
        super().__init__("\n".join([
            "", "=" * 60, f"{name} FAILED", "-" * 60, "Failures:", *(others or ["  <NO_OTHER_FAILURES>"]), "-" * 60,
            "Root Cause (first observed failure):", f"[{number}]:", *first.lines(), "=" * 60]))

    def get_first_failure(self) -> tuple[int, ProcessFailure]:
        """The number and the failure of the process that failed first: those that were ended after it do not count."""
        return min(self.failures.items(), key=lambda item: (item[1].exitcode == -signal.SIGTERM, item[1].timestamp))


def record(fn: Callable[_Args, _R], error_handler: Any = None) -> Callable[_Args, _R | None]:
    """Decorate a program's main function: its uncaught exception is written to the launcher's file.

    Args:
        fn: the function.
        error_handler: without effect.

    >>> from flambeau.distributed.elastic.multiprocessing.errors import record
    >>> record(lambda: 3)()
    3
    """
    @functools.wraps(fn)
    def wrapper(*args: _Args.args, **kwargs: _Args.kwargs) -> _R | None:
        try:
            return fn(*args, **kwargs)
        except ChildFailedError:
            raise
        except Exception as error:
            file_name = os.environ.get("TORCHELASTIC_ERROR_FILE")
            if file_name:
                details = {"message": {"message": f"{type(error).__name__}: {error}", "extraInfo": {
                    "py_callstack": traceback.format_exc(), "timestamp": str(int(time.time()))}}}
                with open(file_name, "w", encoding="utf-8") as file:
                    json.dump(details, file)
            raise

    return wrapper
