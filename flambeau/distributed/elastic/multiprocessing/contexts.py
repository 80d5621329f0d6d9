"""Processes of a launcher: functions, or programs, that are watched together."""

from __future__ import annotations

import abc
import contextlib
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TextIO

from .... import multiprocessing as mp
from .errors import ProcessFailure, record
from .logs import LogsSpecs
from .redirects import redirect_stderr, redirect_stdout
from .signals import _terminate_process_handler
from .subprocess_handler import SubprocessHandler, get_subprocess_handler
from .tail_log import TailLog

__all__ = ["MultiprocessContext", "PContext", "RunProcsResult", "SubprocessContext"]

logger = logging.getLogger(__name__)


def _validate_full_rank(d: dict[int, Any], nprocs: int, what: str) -> None:
    """Check that a mapping has one entry for each process."""
    expected, actual = set(range(nprocs)), set(d)
    if actual != expected:
        raise RuntimeError(f"{what}, local rank mapping mismatch, expected: {expected}, actual: {actual}")


def _has_any(texts: list[str], line: str) -> bool:
    return any(text in line for text in texts)


@dataclass
class RunProcsResult:
    """What processes have returned, or how they failed, by local rank.

    Args:
        return_values: what functions have returned; None for programs.
        failures: how processes failed.
        stdouts, stderrs: the files of their output.

    >>> from flambeau.distributed.elastic.multiprocessing import RunProcsResult
    >>> RunProcsResult({0: 3}).is_failed()
    False
    """

    return_values: dict[int, Any] = field(default_factory=dict)
    failures: dict[int, ProcessFailure] = field(default_factory=dict)
    stdouts: dict[int, str] = field(default_factory=dict)
    stderrs: dict[int, str] = field(default_factory=dict)

    def is_failed(self) -> bool:
        """Whether a process has failed."""
        return bool(self.failures)


class PContext(abc.ABC):
    """Processes that were started together.

    Args:
        name: of all of them, in their output.
        entrypoint: a function, or a program's path.
        args: local rank -> its arguments.
        envs: local rank -> its variables, beside those of this process.
        logs_specs: where output goes.
        log_line_prefixes: local rank -> what is written before its lines.
        duplicate_stdout_filters, duplicate_stderr_filters: lines with one of these texts go to a file of all, too.
    """

    def __init__(self, name: str, entrypoint: Callable[..., Any] | str, args: dict[int, tuple[Any, ...]],
                 envs: dict[int, dict[str, str]], logs_specs: LogsSpecs,
                 log_line_prefixes: dict[int, str] | None = None, duplicate_stdout_filters: list[str] | None = None,
                 duplicate_stderr_filters: list[str] | None = None) -> None:
        self.name, self.entrypoint, self.args, self.envs, self.nprocs = name, entrypoint, args, envs, len(args)
        files = logs_specs.reify(envs)
        _validate_full_rank(files.stdouts, self.nprocs, "stdouts")
        _validate_full_rank(files.stderrs, self.nprocs, "stderrs")
        self.stdouts, self.stderrs, self.error_files = files.stdouts, files.stderrs, files.error_files
        self._tail_logs = [TailLog(name, files.tee_stdouts, sys.stdout, log_line_prefixes),
                           TailLog(name, files.tee_stderrs, sys.stderr, log_line_prefixes)]
        self._filtered: list[TextIO] = []
        for texts, copied, file in ((duplicate_stdout_filters, files.tee_stdouts, files.filtered_stdout),
                                    (duplicate_stderr_filters, files.tee_stderrs, files.filtered_stderr)):
            if texts:
                stream = open(file, "w", errors="replace", buffering=1, encoding="utf-8")  # noqa: SIM115
                self._filtered.append(stream)
                self._tail_logs.append(TailLog(name, copied, stream, log_line_prefixes,
                                               log_line_filter=partial(_has_any, texts)))

    def start(self) -> None:
        """Start the processes; signals that end this process are exceptions from now on."""
        if threading.current_thread() is threading.main_thread():
            names = os.environ.get("TORCHELASTIC_SIGNALS_TO_HANDLE", "SIGTERM,SIGINT,SIGHUP,SIGQUIT")
            for name in names.split(","):
                try:
                    signal.signal(getattr(signal, name.strip()), _terminate_process_handler)
                except (AttributeError, ValueError):
                    logger.warning("Failed to register signal handler for %s", name, exc_info=True)
        else:
            logger.warning("signals that end this process do not end the processes that it starts: it starts them in "
                           "a thread")
        self._start()
        for log in self._tail_logs:
            log.start()

    @abc.abstractmethod
    def _start(self) -> None:
        """Start the processes."""

    @abc.abstractmethod
    def _poll(self) -> RunProcsResult | None:
        """What has become of them, once all have ended or one has failed; None before."""

    @abc.abstractmethod
    def pids(self) -> dict[int, int]:
        """Local rank -> the process's id."""

    @abc.abstractmethod
    def _close(self, death_sig: signal.Signals, timeout: int = 30) -> None:
        """End the processes by a signal, and those that are left by SIGKILL."""

    def wait(self, timeout: float = -1, period: float = 1) -> RunProcsResult | None:
        """Wait until all have ended or one has failed; the others are ended then.

        Args:
            timeout: seconds; 0 only looks, a negative number waits for ever.
            period: seconds between looks.

        Returns:
            What has become of them; None if they still run.
        """
        end = time.monotonic() + timeout if timeout >= 0 else float("inf")
        while True:
            result = self._poll()
            if result is not None or timeout == 0:
                return result
            time.sleep(period)
            if time.monotonic() >= end:
                return None

    def close(self, death_sig: signal.Signals | None = None, timeout: int = 30) -> None:
        """End the processes, and pass on what is left of their output.

        Args:
            death_sig: the signal; default: SIGTERM.
            timeout: seconds until SIGKILL.
        """
        self._close(death_sig or signal.SIGTERM, timeout)
        for log in self._tail_logs:
            log.stop()
        for stream in self._filtered:
            stream.close()


def _wrap(local_rank: int, fn: Callable[..., Any], args: dict[int, tuple[Any, ...]], envs: dict[int, dict[str, str]],
          stdout_redirects: dict[int, str], stderr_redirects: dict[int, str], ret_vals: dict[int, Any],
          queue_finished_reading_event: Any, numa_options: Any = None) -> None:
    """In the process of a function: call it, and send what it returns."""
    os.environ.update(envs[local_rank])
    with contextlib.ExitStack() as stack:
        for file, redirect in ((stdout_redirects[local_rank], redirect_stdout),
                               (stderr_redirects[local_rank], redirect_stderr)):
            if file:
                stack.enter_context(redirect(file))
        result = record(fn)(*args[local_rank])
    ret_vals[local_rank].put(result)
    queue_finished_reading_event.wait()


class MultiprocessContext(PContext):
    """Processes of a function.

    Args:
        name, entrypoint, args, envs, logs_specs, log_line_prefixes, duplicate_stdout_filters,
            duplicate_stderr_filters: as for `PContext`.
        start_method: "spawn", "fork" or "forkserver".
        numa_options: without effect.
    """

    def __init__(self, name: str, entrypoint: Callable[..., Any], args: dict[int, tuple[Any, ...]],
                 envs: dict[int, dict[str, str]], start_method: str, logs_specs: LogsSpecs,
                 log_line_prefixes: dict[int, str] | None = None, numa_options: Any = None,
                 duplicate_stdout_filters: list[str] | None = None,
                 duplicate_stderr_filters: list[str] | None = None) -> None:
        super().__init__(name, entrypoint, args, envs, logs_specs, log_line_prefixes, duplicate_stdout_filters,
                         duplicate_stderr_filters)
        self.start_method = start_method
        context = mp.get_context(start_method)
        self._ret_vals = {rank: context.SimpleQueue() for rank in range(self.nprocs)}
        self._return_values: dict[int, Any] = {}
        self._worker_finished_event = context.Event()  # a process lives until its result was read
        self._pc: Any = None

    def _start(self) -> None:
        if self._pc:
            raise ValueError("The process context already initialized. Most likely the start method got called twice.")
        self._pc = mp.start_processes(_wrap, nprocs=self.nprocs, join=False, daemon=False,
                                      start_method=self.start_method, args=(
                                          self.entrypoint, self.args, self.envs, self.stdouts, self.stderrs,
                                          self._ret_vals, self._worker_finished_event))

    def _poll(self) -> RunProcsResult | None:
        try:
            self._pc.join(-1)
            for rank, queue in self._ret_vals.items():
                if rank not in self._return_values and not queue.empty():
                    self._return_values[rank] = queue.get()
            if not self._is_done():
                return None
            self._worker_finished_event.set()
            while not self._pc.join():
                pass
            self.close()
            values = {rank: self._return_values[rank] for rank in range(self.nprocs)}
            return RunProcsResult(return_values=values, stdouts=self.stdouts, stderrs=self.stderrs)
        except (mp.ProcessRaisedException, mp.ProcessExitedException) as error:
            rank = error.error_index
            code = self._pc.processes[rank].exitcode
            logger.exception("failed (exitcode: %s) local_rank: %s (pid: %s) of fn: %s (start_method: %s)", code, rank,
                             error.error_pid, getattr(self.entrypoint, "__qualname__", self.entrypoint),
                             self.start_method)
            self.close()
            failure = ProcessFailure(rank, error.error_pid, code, self.error_files[rank])
            return RunProcsResult(failures={rank: failure}, stdouts=self.stdouts, stderrs=self.stderrs)

    def _is_done(self) -> bool:
        return len(self._return_values) == self.nprocs

    def pids(self) -> dict[int, int]:
        return dict(enumerate(self._pc.pids()))

    def _close(self, death_sig: signal.Signals, timeout: int = 30) -> None:
        if self._pc is None:
            return
        for process in self._pc.processes:
            if process.is_alive():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process.pid, death_sig)
        end = time.monotonic() + timeout
        for process in self._pc.processes:
            process.join(max(0.0, end - time.monotonic()))
        for process in self._pc.processes:
            if process.is_alive():
                logger.warning("Unable to shutdown process %s via %s, forcefully exiting via SIGKILL", process.pid,
                               death_sig.name)
                process.kill()
            process.join(timeout)


class SubprocessContext(PContext):
    """Processes of a program.

    Args:
        name, entrypoint, args, envs, logs_specs, log_line_prefixes, duplicate_stdout_filters,
            duplicate_stderr_filters: as for `PContext`.
        numa_options: without effect.
    """

    def __init__(self, name: str, entrypoint: str, args: dict[int, tuple[Any, ...]], envs: dict[int, dict[str, str]],
                 logs_specs: LogsSpecs, log_line_prefixes: dict[int, str] | None = None, numa_options: Any = None,
                 duplicate_stdout_filters: list[str] | None = None,
                 duplicate_stderr_filters: list[str] | None = None) -> None:
        super().__init__(name, entrypoint, args, envs, logs_specs, log_line_prefixes, duplicate_stdout_filters,
                         duplicate_stderr_filters)
        self._running_local_ranks = set(range(self.nprocs))
        self._failures: dict[int, ProcessFailure] = {}
        self.subprocess_handlers: dict[int, SubprocessHandler] = {}

    def _start(self) -> None:
        if self.subprocess_handlers:
            raise ValueError("The subprocess handlers already initialized. Most likely the start method got called "
                             "twice.")
        for rank in range(self.nprocs):
            self.subprocess_handlers[rank] = get_subprocess_handler(
                str(self.entrypoint), self.args[rank], self.envs[rank], self.stdouts[rank], self.stderrs[rank], rank)

    def _look(self) -> None:
        """Note which have ended, and how those failed that did."""
        for rank in sorted(self._running_local_ranks):
            process = self.subprocess_handlers[rank].proc
            code = process.poll()
            if code is not None:
                self._running_local_ranks.discard(rank)
                if code:
                    self._failures[rank] = ProcessFailure(rank, process.pid, code, self.error_files[rank])

    def _poll(self) -> RunProcsResult | None:
        self._look()
        if self._running_local_ranks and not self._failures:
            return None
        self.close()
        self._look()
        result = RunProcsResult(failures=self._failures, stdouts=self.stdouts, stderrs=self.stderrs)
        if not self._failures:
            result.return_values = dict.fromkeys(range(self.nprocs))
            return result
        first = min(self._failures.values(), key=lambda each: each.timestamp)
        logger.error("failed (exitcode: %s) local_rank: %s (pid: %s) of binary: %s", first.exitcode, first.local_rank,
                     first.pid, self.entrypoint)
        return result

    def pids(self) -> dict[int, int]:
        return {rank: each.proc.pid for rank, each in self.subprocess_handlers.items()}

    def _close(self, death_sig: signal.Signals, timeout: int = 30) -> None:
        for each in self.subprocess_handlers.values():
            if each.proc.poll() is None:
                each.close(death_sig)
        end = time.monotonic() + timeout
        for each in self.subprocess_handlers.values():
            with contextlib.suppress(subprocess.TimeoutExpired):
                each.proc.wait(max(0.0, end - time.monotonic()))
        for each in self.subprocess_handlers.values():
            if each.proc.poll() is None:
                logger.warning("Unable to shutdown process %s via %s, forcefully exiting via SIGKILL", each.proc.pid,
                               death_sig.name)
                each.close(signal.SIGKILL)
                each.proc.wait(timeout)
