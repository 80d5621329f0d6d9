"""The timers of the processes of one machine, and how late processes are ended."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable
from typing import Any, TypeVar

from .api import TimerRequest

logger = logging.getLogger(__name__)
R = TypeVar("R", bound=TimerRequest)


def register(timers: dict[tuple[Any, str], R], requests: Iterable[R]) -> None:
    """Start and stop timers.

    Args:
        timers: (worker, block) -> request; changed.
        requests: those whose time is negative stop a timer.
    """
    for each in requests:
        key = each.worker_id, each.scope_id
        if each.expiration_time < 0:
            timers.pop(key, None)
        else:
            timers[key] = each


def expired(timers: dict[tuple[Any, str], R], deadline: float) -> dict[Any, list[R]]:
    """The timers that expire until a time, by worker."""
    found: dict[Any, list[R]] = {}
    for each in timers.values():
        if each.expiration_time <= deadline:
            found.setdefault(each.worker_id, []).append(each)
    return found


def end_process(pid: int, number: int) -> bool:
    """Send a signal to a process; whether it was sent, or there is no such process."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        logger.info("process %s has ended already", pid)
    except Exception:
        logger.exception("process %s could not be ended", pid)
        return False
    return True


__all__ = ["end_process", "expired", "register"]
