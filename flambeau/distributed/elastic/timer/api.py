"""Requests of timers, what sends them, and the server that ends workers whose timers have expired."""

from __future__ import annotations

import logging
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

__all__ = ["RequestQueue", "TimerClient", "TimerRequest", "TimerServer", "configure", "expires"]

logger = logging.getLogger(__name__)


class TimerRequest:
    """A timer that a worker starts, or stops.

    Args:
        worker_id: the worker, as client and server know it.
        scope_id: names the block.
        expiration_time: when it expires, in seconds of `time.time()`; negative: the timer is stopped.
    """

    __slots__ = ("expiration_time", "scope_id", "worker_id")

    def __init__(self, worker_id: Any, scope_id: str, expiration_time: float) -> None:
        self.worker_id, self.scope_id, self.expiration_time = worker_id, scope_id, expiration_time

    def _key(self) -> tuple[Any, ...]:
        return self.worker_id, self.scope_id, self.expiration_time

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and self._key() == other._key()

    __hash__ = None  # type: ignore[assignment]


class TimerClient(ABC):
    """What a worker starts and stops timers with."""

    @abstractmethod
    def acquire(self, scope_id: str, expiration_time: float) -> None:
        """Start a timer.

        Args:
            scope_id: names the block.
            expiration_time: when it expires, in seconds of `time.time()`.
        """

    @abstractmethod
    def release(self, scope_id: str) -> None:
        """Stop a timer.

        Args:
            scope_id: names the block.
        """


class RequestQueue(ABC):
    """Requests that workers sent."""

    @abstractmethod
    def size(self) -> int:
        """How many requests there are at least."""

    @abstractmethod
    def get(self, size: int, timeout: float) -> list[TimerRequest]:
        """Take requests out.

        Args:
            size: how many at most.
            timeout: how many seconds to wait for them.
        """


class TimerServer(ABC):
    """A thread that ends workers whose timers have expired.

    Args:
        request_queue: the requests.
        max_interval: how many seconds it waits for a request before it looks for expired timers.
        daemon: whether the process may end while it runs.
    """

    def __init__(self, request_queue: RequestQueue, max_interval: float, daemon: bool = True) -> None:
        self._request_queue, self._max_interval, self._daemon = request_queue, max_interval, daemon
        self._watchdog_thread: threading.Thread | None = None
        self._stop_signaled = False

    @abstractmethod
    def register_timers(self, timer_requests: list[TimerRequest]) -> None:
        """Start and stop timers.

        Args:
            timer_requests: the requests, in their order.
        """

    @abstractmethod
    def clear_timers(self, worker_ids: set[Any]) -> None:
        """Forget the timers of some workers.

        Args:
            worker_ids: the workers.
        """

    @abstractmethod
    def get_expired_timers(self, deadline: float) -> dict[Any, list[TimerRequest]]:
        """The timers that have expired, by worker.

        Args:
            deadline: the time until which they have.
        """

    @abstractmethod
    def _reap_worker(self, worker_id: Any) -> bool:
        """End a worker; whether it has ended."""

    def _reap_worker_no_throw(self, worker_id: Any) -> bool:
        """End a worker; one that cannot be ended because of an error counts as ended."""
        try:
            return self._reap_worker(worker_id)
        except Exception:
            logger.exception("_reap_worker of worker %s raised; its timers are removed", worker_id)
            return True

    def _watchdog_loop(self) -> None:
        while not self._stop_signaled:
            try:
                self._run_watchdog()
            except Exception:
                logger.exception("the timer server failed in one round")

    def _run_watchdog(self) -> None:
        """One round: take the requests, and end the workers that are late."""
        waiting = max(1, self._request_queue.size())
        self.register_timers(self._request_queue.get(waiting, self._max_interval))
        ended = set()
        for worker, expired in self.get_expired_timers(time.time()).items():
            logger.info("worker %s is late in %s", worker, scopes_of(expired))
            if self._reap_worker_no_throw(worker):
                ended.add(worker)
            else:
                logger.error("worker %s could not be ended; the next round tries again", worker)
        self.clear_timers(ended)

    def start(self) -> None:
        """Start the thread."""
        self._watchdog_thread = threading.Thread(target=self._watchdog_loop, daemon=self._daemon)
        self._watchdog_thread.start()

    def stop(self) -> None:
        """Stop the thread, after its round."""
        self._stop_signaled = True
        if self._watchdog_thread is not None:
            self._watchdog_thread.join(self._max_interval)
            self._watchdog_thread = None


def scopes_of(requests: Sequence[TimerRequest]) -> list[str]:
    """The blocks of some timers."""
    return [each.scope_id for each in requests]


_client: TimerClient | None = None


def configure(timer_client: TimerClient) -> None:
    """Set the client that `expires` uses.

    Args:
        timer_client: the client.
    """
    global _client
    _client = timer_client


@contextmanager
def expires(after: float, scope: str | None = None, client: TimerClient | None = None) -> Iterator[None]:
    """Let the block end within some seconds; otherwise the server may end this worker.

    Args:
        after: the seconds.
        scope: names the block; default: the caller's file and line.
        client: sends the requests; default: that of `configure`.

    Raises:
        RuntimeError: there is no client.

    >>> import queue
    >>> from flambeau.distributed.elastic import timer
    >>> requests = queue.Queue()
    >>> with timer.expires(after=60, scope="step", client=timer.LocalTimerClient(requests)):
    ...     requests.get().scope_id
    'step'
    >>> requests.get().expiration_time
    -1
    """
    used = _client if client is None else client
    if used is None:
        raise RuntimeError("Configure timer client before using countdown timers.")
    if scope is None:
        caller = sys._getframe(2)  # above is the context manager
        scope = f"{caller.f_code.co_filename}#{caller.f_lineno}"
    used.acquire(scope, time.time() + after)
    try:
        yield
    finally:
        used.release(scope)
