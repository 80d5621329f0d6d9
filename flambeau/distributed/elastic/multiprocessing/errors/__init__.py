"""Errors of launched processes: written to files by the processes, read and raised by the launcher."""

from __future__ import annotations

import functools
import json
import logging
import os
import signal
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ParamSpec, TypeVar

from .error_handler import ErrorHandler
from .handlers import get_error_handler

__all__ = ["ChildFailedError", "ErrorHandler", "ProcessFailure", "get_error_handler", "record"]

_Args = ParamSpec("_Args")
_R = TypeVar("_R")
_NO_FILE = "<N/A>"
_HINT = "To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html"

logger = logging.getLogger(__name__)


@dataclass
class ProcessFailure:
    """How a process failed.

    Args:
        local_rank: its number on its machine.
        pid: its process id.
        exitcode: its exit code; negative for a signal.
        error_file: the file that `record` has written its error to.

    >>> from flambeau.distributed.elastic.multiprocessing import ProcessFailure
    >>> ProcessFailure(0, 12, -9, "").message
    'Signal 9 (SIGKILL) received by PID 12'
    """

    local_rank: int
    pid: int
    exitcode: int
    error_file: str
    error_file_data: Any = field(init=False)
    message: Any = field(init=False)
    timestamp: int = field(init=False)

    def __post_init__(self) -> None:
        self.error_file_data, self.message, self.timestamp = {"message": "<NONE>"}, "", int(time.time())
        if os.path.isfile(self.error_file):
            with open(self.error_file, encoding="utf-8") as file:
                self.error_file_data = json.load(file)
            self.message = self.error_file_data["message"]
            details = self.error_file_data if isinstance(self.message, str) else self.message["extraInfo"]
            self.timestamp = int(details.get("timestamp", 0))
        else:
            self.error_file = _NO_FILE
        if not self.message:
            if self.exitcode < 0:
                self.message = f"Signal {-self.exitcode} ({self.signal_name()}) received by PID {self.pid}"
            else:
                self.error_file_data["errorTraits"] = {"category": "system_terminated_error", "retryability": "False"}
                self.message = _HINT

    def signal_name(self) -> str:
        """The signal that ended it; <N/A> if none did."""
        try:
            return signal.Signals(-self.exitcode).name if self.exitcode < 0 else _NO_FILE
        except ValueError:  # a number without name
            return _NO_FILE

    def timestamp_isoformat(self) -> str:
        """When it failed."""
        return datetime.fromtimestamp(self.timestamp).isoformat(sep="_")

    def traceback(self) -> str:
        """What it said."""
        if isinstance(self.message, str):
            return self.message
        said = self.message.get("extraInfo", {}).get("py_callstack", self.message.get("message", _NO_FILE))
        return str(said).replace("\n", "\n  ")

    def lines(self, rank: int) -> list[str]:
        """What is known about it.

        Args:
            rank: its number among all processes.
        """
        ended = f" ({self.signal_name()})" if self.signal_name() != _NO_FILE else ""
        return [f"  time      : {self.timestamp_isoformat()}", f"  host      : {socket.getfqdn()}",
                f"  rank      : {rank} (local_rank: {self.local_rank})",
                f"  exitcode  : {self.exitcode} (pid: {self.pid}){ended}", f"  error_file: {self.error_file}",
                f"  traceback : {self.traceback()}"]


class ChildFailedError(Exception):
    """Processes failed; the message tells how each did, the first one last.

    Args:
        name: of the program.
        failures: rank -> how it failed.

    >>> from flambeau.distributed.elastic.multiprocessing.errors import ChildFailedError, ProcessFailure
    >>> error = ChildFailedError("train.py", {3: ProcessFailure(1, 12, 1, "")})
    >>> error.get_first_failure()[0]
    3
    """

    def __init__(self, name: str, failures: dict[int, ProcessFailure]) -> None:
        assert failures, "failures must not be empty"
        self.name, self.failures = name, failures
        super().__init__(self.format_msg())

    def get_first_failure(self) -> tuple[int, ProcessFailure]:
        """The rank and the failure of the process that failed first: those that were ended after it do not count."""
        return min(self.failures.items(), key=lambda item: (item[1].exitcode == -signal.SIGTERM, item[1].timestamp))

    def format_msg(self, boarder_delim: str = "=", section_delim: str = "-") -> str:
        """The message.

        Args:
            boarder_delim: the character of the lines around it.
            section_delim: the character of the lines in it.
        """
        root, _ = self.get_first_failure()
        texts = {rank: [f"[{index}]:", *each.lines(rank)] for index, (rank, each) in enumerate(self.failures.items())}
        title = f"{self.name} FAILED"
        width = min(60, max(len(line) for text in ([title], *texts.values()) for line in "\n".join(text).split("\n")))
        others = [line for rank, text in texts.items() if rank != root for line in text]
        border, section = boarder_delim * width, section_delim * width
        return "\n".join(["", border, title, section, "Failures:", *(others or ["  <NO_OTHER_FAILURES>"]), section,
                          "Root Cause (first observed failure):", *texts[root], border])


def record(fn: Callable[_Args, _R], error_handler: ErrorHandler | None = None) -> Callable[_Args, _R | None]:
    """Decorate a program's main function: its uncaught exception is written to the launcher's file.

    Args:
        fn: the function.
        error_handler: writes it; default: `get_error_handler()`.

    >>> from flambeau.distributed.elastic.multiprocessing.errors import record
    >>> record(lambda: 3)()
    3
    """
    handler = error_handler or get_error_handler()

    @functools.wraps(fn)
    def wrapper(*args: _Args.args, **kwargs: _Args.kwargs) -> _R | None:
        handler.initialize()
        try:
            return fn(*args, **kwargs)
        except SystemExit as end:
            if end.code == 0:
                return None
            raise
        except ChildFailedError as error:
            rank, failure = error.get_first_failure()
            if failure.error_file != _NO_FILE:
                handler.dump_error_file(failure.error_file, failure.exitcode)
            else:
                logger.info("rank %s FAILED with no error file. Decorate your entrypoint fn with @record for traceback "
                            "info. See: https://pytorch.org/docs/stable/elastic/errors.html", rank)
            raise
        except Exception as error:
            handler.record_exception(error)
            raise

    return wrapper
