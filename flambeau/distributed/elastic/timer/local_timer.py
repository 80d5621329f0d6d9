"""Timers of workers that share a queue of `multiprocessing` with their server."""

from __future__ import annotations

import os
import signal
import time
from queue import Empty
from typing import Any

from . import timer_table
from .api import RequestQueue, TimerClient, TimerRequest, TimerServer

__all__ = ["LocalTimerClient", "LocalTimerServer", "MultiprocessingRequestQueue"]


class LocalTimerClient(TimerClient):
    """A worker's side of `LocalTimerServer`; workers are known by their process's number.

    Args:
        mp_queue: the server's queue.
    """

    def __init__(self, mp_queue: Any) -> None:
        self._mp_queue = mp_queue

    def acquire(self, scope_id: str, expiration_time: float) -> None:
        self._mp_queue.put(TimerRequest(os.getpid(), scope_id, expiration_time))

    def release(self, scope_id: str) -> None:
        self._mp_queue.put(TimerRequest(os.getpid(), scope_id, -1))


class MultiprocessingRequestQueue(RequestQueue):
    """Requests in a queue of `multiprocessing`.

    Args:
        mp_queue: the queue.
    """

    def __init__(self, mp_queue: Any) -> None:
        self._mp_queue = mp_queue

    def size(self) -> int:
        return int(self._mp_queue.qsize())

    def get(self, size: int, timeout: float) -> list[TimerRequest]:
        found: list[TimerRequest] = []
        until = time.monotonic() + timeout
        while len(found) < size:
            remaining = until - time.monotonic()
            if found and remaining <= 0:
                break
            try:
                found.append(self._mp_queue.get(timeout=max(0.0, remaining)))
            except Empty:
                break
        return found


class LocalTimerServer(TimerServer):
    """Ends child processes whose timers have expired.

    Args:
        mp_queue: a queue of `multiprocessing` that the workers have, too.
        max_interval: how many seconds it waits for a request before it looks for expired timers.
        daemon: whether the process may end while the server runs.
    """

    def __init__(self, mp_queue: Any, max_interval: float = 60, daemon: bool = True) -> None:
        super().__init__(MultiprocessingRequestQueue(mp_queue), max_interval, daemon)
        self._timers: dict[tuple[Any, str], TimerRequest] = {}

    def register_timers(self, timer_requests: list[TimerRequest]) -> None:
        timer_table.register(self._timers, timer_requests)

    def clear_timers(self, worker_ids: set[Any]) -> None:
        self._timers = {key: each for key, each in self._timers.items() if key[0] not in worker_ids}

    def get_expired_timers(self, deadline: float) -> dict[Any, list[TimerRequest]]:
        return timer_table.expired(self._timers, deadline)

    def _reap_worker(self, worker_id: int) -> bool:
        return timer_table.end_process(worker_id, signal.SIGKILL)
