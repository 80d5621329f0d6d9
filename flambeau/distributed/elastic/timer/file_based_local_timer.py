"""Timers of workers that write to a named pipe, for processes that have nothing else in common with their server."""

from __future__ import annotations

import json
import logging
import os
import select
import signal as signals
import threading
import time
from collections.abc import Callable
from typing import Any, TextIO

from . import timer_table
from .api import TimerClient, TimerRequest, scopes_of

__all__ = ["FileTimerClient", "FileTimerRequest", "FileTimerServer"]

logger = logging.getLogger(__name__)
_TRIES, _PAUSE = 10, 0.1  # of a client that finds no server


class FileTimerRequest(TimerRequest):
    """A timer that a process starts, or stops.

    Args:
        worker_pid: the process's number.
        scope_id: names the block.
        expiration_time: when it expires; negative: the timer is stopped.
        signal: what the server sends to the process; 0: nothing.
    """

    __slots__ = ("signal", "version")

    def __init__(self, worker_pid: int, scope_id: str, expiration_time: float, signal: int = 0) -> None:
        super().__init__(worker_pid, scope_id, expiration_time)
        self.version, self.signal = 1, signal

    @property
    def worker_pid(self) -> int:
        """The process's number."""
        return int(self.worker_id)

    def _key(self) -> tuple[Any, ...]:
        return (*super()._key(), self.version, self.signal)

    def to_json(self) -> str:
        """The line that is sent.

        >>> from flambeau.distributed.elastic.timer import FileTimerRequest
        >>> FileTimerRequest(7, "step", 1.5, 9).to_json()
        '{"version": 1, "pid": 7, "scope_id": "step", "expiration_time": 1.5, "signal": 9}'
        """
        return json.dumps({"version": self.version, "pid": self.worker_pid, "scope_id": self.scope_id,
                           "expiration_time": self.expiration_time, "signal": self.signal})


class FileTimerClient(TimerClient):
    """A process's side of `FileTimerServer`.

    Args:
        file_path: the server's pipe.
        signal: what the server sends to this process if it is late; 0 or less: nothing.
    """

    def __init__(self, file_path: str, signal: int = signals.SIGKILL) -> None:
        self._file_path, self.signal = file_path, signal

    def _open(self) -> int:
        """The pipe; without a server, opening would wait for one.

        Raises:
            BrokenPipeError: there is no server (PyTorch's text).
        """
        for number in range(_TRIES):
            try:
                return os.open(self._file_path, os.O_WRONLY | os.O_NONBLOCK)
            except OSError as error:
                if number == _TRIES - 1:
                    raise BrokenPipeError("Could not send the FileTimerRequest because FileTimerServer is not "
                                          "available.") from error
                time.sleep(_PAUSE)
        raise AssertionError

    def _send_request(self, request: FileTimerRequest) -> None:
        text = request.to_json()
        if len(text) >= select.PIPE_BUF:  # longer ones could be mixed with those of other processes
            raise RuntimeError(f"FileTimerRequest larger than {select.PIPE_BUF} bytes is not supported: {text}")
        pipe = self._open()
        try:
            os.write(pipe, f"{text}\n".encode())
        finally:
            os.close(pipe)

    def acquire(self, scope_id: str, expiration_time: float) -> None:
        self._send_request(FileTimerRequest(os.getpid(), scope_id, expiration_time, self.signal))

    def release(self, scope_id: str) -> None:
        self._send_request(FileTimerRequest(os.getpid(), scope_id, -1))


class FileTimerServer:
    """Ends processes of this machine whose timers have expired, and then its own.

    Args:
        file_path: the pipe, which is made.
        run_id: names the job in logs.
        max_interval: how many seconds a round waits for requests.
        daemon: whether the process may end while the server runs.
        log_event: is called with what happens: a text, and the request.
    """

    def __init__(self, file_path: str, run_id: str, max_interval: float = 10, daemon: bool = True,
                 log_event: Callable[[str, FileTimerRequest | None], None] | None = None) -> None:
        self._file_path, self._run_id, self._max_interval, self._daemon = file_path, run_id, max_interval, daemon
        self._log_event = log_event or (lambda name, request: None)
        self._timers: dict[tuple[Any, str], FileTimerRequest] = {}
        self._stop_signaled = self._run_once = self._is_client_started = False
        self._watchdog_thread: threading.Thread | None = None
        self._request_count = 0
        self._last_progress_time = int(time.time())
        self._remove_pipe()
        os.mkfifo(file_path)

    def _remove_pipe(self) -> None:
        if os.path.exists(self._file_path):
            os.remove(self._file_path)

    def start(self) -> None:
        """Start the thread; it waits for the first client."""
        self._watchdog_thread = threading.Thread(target=self._watchdog_loop, daemon=self._daemon)
        self._watchdog_thread.start()
        self._log_event("watchdog started", None)

    def _join(self, timeout: float | None) -> None:
        if self._watchdog_thread is not None:
            self._watchdog_thread.join(timeout)
            self._watchdog_thread = None
        self._remove_pipe()

    def stop(self) -> None:
        """Stop the thread, after its round."""
        self._stop_signaled = True
        self._join(self._max_interval)
        self._log_event("watchdog stopped", None)

    def run_once(self) -> None:
        """Handle the requests that were sent, and stop the thread."""
        self._run_once = True
        self._join(None)

    @staticmethod
    def is_process_running(pid: int) -> bool:
        """Whether there is a process of a number that signals can be sent to.

        Args:
            pid: the number.
        """
        try:
            os.kill(pid, 0)
        except OSError:
            return False
        return True

    def _watchdog_loop(self) -> None:
        with open(self._file_path) as pipe:  # waits for the first client
            self._is_client_started = True
            while not self._stop_signaled:
                last = self._run_once
                try:
                    self._run_watchdog(pipe)
                    self._last_progress_time = int(time.time())
                except Exception:
                    logger.exception("the timer server failed in one round")
                if last:
                    return

    def _run_watchdog(self, pipe: TextIO) -> None:
        """One round: read the requests, and end the processes that are late."""
        self.register_timers(self._get_requests(pipe, self._max_interval))
        late = self.get_expired_timers(time.time())
        if late:
            logger.info("timers of run %s expired: %s", self._run_id,
                        {pid: [each.to_json() for each in expired] for pid, expired in late.items()})
        sent = 0
        for pid, expired in late.items():
            deadly = next((each for each in self._in_order(expired) if each.signal > 0), None)
            if deadly is None:
                logger.info("process %s is late in %s; it asked for no signal", pid, scopes_of(expired))
            elif self._reap_worker(pid, deadly.signal):
                self._log_event("kill worker process", deadly)
                sent = deadly.signal
        if sent:  # the job is over, as PyTorch's is
            self._reap_worker(os.getpid(), sent)
        self.clear_timers(set(late))

    def _in_order(self, expired: list[FileTimerRequest]) -> list[FileTimerRequest]:
        """Timers by the time they expired, up to the first with a signal; each is reported."""
        found = []
        for each in sorted(expired, key=lambda each: each.expiration_time):
            self._log_event("timer expired", each)
            found.append(each)
            if each.signal > 0:
                break
        return found

    def _get_requests(self, pipe: TextIO, max_interval: float) -> list[FileTimerRequest]:
        """The requests that arrive within some seconds."""
        found: list[FileTimerRequest] = []
        until = time.monotonic() + max_interval
        while not self._stop_signaled or self._run_once:
            line = pipe.readline()
            if line:
                fields = json.loads(line)
                found.append(FileTimerRequest(fields["pid"], fields["scope_id"], fields["expiration_time"],
                                              fields["signal"]))
            elif self._run_once:
                break
            else:  # no client has the pipe open
                time.sleep(min(max_interval, 1))
            if time.monotonic() > until:
                break
        return found

    def register_timers(self, timer_requests: list[FileTimerRequest]) -> None:
        """Start and stop timers.

        Args:
            timer_requests: the requests, in their order.
        """
        self._request_count += len(timer_requests)
        timer_table.register(self._timers, timer_requests)

    def clear_timers(self, worker_pids: set[int]) -> None:
        """Forget the timers of some processes, and of those that have ended.

        Args:
            worker_pids: the processes.
        """
        self._timers = {key: each for key, each in self._timers.items()
                        if key[0] not in worker_pids and self.is_process_running(key[0])}

    def get_expired_timers(self, deadline: float) -> dict[int, list[FileTimerRequest]]:
        """The timers that have expired, by process.

        Args:
            deadline: the time until which they have.
        """
        return timer_table.expired(self._timers, deadline)

    def _reap_worker(self, worker_pid: int, signal: int) -> bool:
        return timer_table.end_process(worker_pid, signal)

    def get_last_progress_time(self) -> int:
        """When the last round ended, in seconds of `time.time()`; now, before the first client."""
        return self._last_progress_time if self._is_client_started else int(time.time())
