"""Passes the lines of growing files on to a stream."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Event
from typing import TextIO

__all__ = ["TailLog", "tail_logfile"]

logger = logging.getLogger(__name__)


def tail_logfile(header: str, file: str, dst: TextIO, finished: Event, interval_sec: float,
                 log_line_filter: Callable[[str], bool] | None = None) -> None:
    """Pass the lines of a file on until it is finished.

    Args:
        header: what is written before each line.
        file: the file; it may come later.
        dst: the stream.
        finished: set when nothing more is written to the file.
        interval_sec: seconds between looks at the file.
        log_line_filter: which lines are passed on; default: all.

    >>> import io, tempfile, threading
    >>> from flambeau.distributed.elastic.multiprocessing.tail_log import tail_logfile
    >>> out, finished = io.StringIO(), threading.Event()
    >>> finished.set()
    >>> with tempfile.NamedTemporaryFile("w+") as file:
    ...     _ = file.write("said")
    ...     file.flush()
    ...     tail_logfile("[0]:", file.name, out, finished, 0.01)
    >>> out.getvalue()
    '[0]:said'
    """
    while not os.path.exists(file):
        if finished.is_set():
            return
        time.sleep(interval_sec)
    with open(file, errors="replace", encoding="utf-8") as lines:
        while True:
            ended = finished.is_set()  # before the last look: what was written until then is read
            for line in lines:
                if log_line_filter is None or log_line_filter(line):
                    dst.write(header + line)
            if ended:
                return
            time.sleep(interval_sec)


class TailLog:
    """Passes the lines of the files of several processes on to a stream, each by a thread.

    Args:
        name: what is written before each line, with the number of the process.
        log_files: number of a process -> its file.
        dst: the stream.
        log_line_prefixes: number of a process -> what is written before its lines in place of that.
        interval_sec: seconds between looks at a file.
        log_line_filter: which lines are passed on.

    >>> import sys
    >>> from flambeau.distributed.elastic.multiprocessing.tail_log import TailLog
    >>> log = TailLog("trainer", {}, sys.stdout).start()
    >>> log.stop()
    >>> log.stopped()
    True
    """

    def __init__(self, name: str, log_files: dict[int, str], dst: TextIO,
                 log_line_prefixes: dict[int, str] | None = None, interval_sec: float = 0.1,
                 log_line_filter: Callable[[str], bool] = lambda line: True) -> None:
        self._threadpool = ThreadPoolExecutor(len(log_files), f"TailLog_{name}") if log_files else None
        self._name, self._dst, self._files, self._interval = name, dst, log_files, interval_sec
        self._prefixes = log_line_prefixes or {}
        self._filter = log_line_filter
        self._finished = Event()
        self._futures: dict[int, Future[None]] = {}
        self._stopped = False

    def start(self) -> TailLog:
        """Start the threads."""
        if self._threadpool is not None:
            for number, file in self._files.items():
                header = self._prefixes.get(number, f"[{self._name}{number}]:")
                self._futures[number] = self._threadpool.submit(tail_logfile, header, file, self._dst, self._finished,
                                                                self._interval, self._filter)
        return self

    def stop(self) -> None:
        """Pass on what is left, and end the threads; errors of theirs are logged."""
        self._finished.set()
        for number, future in self._futures.items():
            error = future.exception()
            if error is not None:
                logger.error("error in log tailer for %s%s. %s", self._name, number, type(error).__name__,
                             exc_info=error)
        self._futures = {}
        if self._threadpool is not None:
            self._threadpool.shutdown()
        self._stopped = True

    def stopped(self) -> bool:
        """Whether it was stopped."""
        return self._stopped
