"""`HashStore`: a store in the memory of one process."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from ..errors import DistStoreError, QueueEmptyError
from .store import Store, as_bytes, checked_text


class HashStore(Store):
    """A store in the memory of one process, for its threads.

    >>> import flambeau as torch
    >>> store = torch.distributed.HashStore()
    >>> store.add("visitors", 2), store.add("visitors", 1), store.check(["visitors"])
    (2, 3, True)
    """

    def __init__(self) -> None:
        self._values: dict[str, bytes] = {}
        self._queues: dict[str, deque[bytes]] = {}
        self._changed = threading.Condition()

    def _wait_until(self, ready: Callable[[], Any], timeout: timedelta | None) -> None:
        """Wait while the condition is held, for the default duration if `timeout` is None."""
        end = time.monotonic() + (self._timeout if timeout is None else timeout).total_seconds()
        while not ready():
            left = end - time.monotonic()
            if left <= 0:
                raise DistStoreError("Wait timeout")
            self._changed.wait(left)

    def _has(self, key: str) -> bool:
        return key in self._values or key in self._queues

    def set(self, key: str, value: str | bytes) -> None:
        checked_text(self, "set", key, value)
        with self._changed:
            self._values[key] = as_bytes(value)
            self._changed.notify_all()

    def get(self, key: str) -> bytes:
        checked_text(self, "get", key)
        with self._changed:
            self._wait_until(lambda: key in self._values, None)
            return self._values[key]

    def add(self, key: str, amount: int) -> int:
        with self._changed:
            try:
                total = int(self._values.get(key, b"0")) + amount
            except ValueError:
                raise ValueError("stoll") from None
            self._values[key] = str(total).encode()
            self._changed.notify_all()
            return total

    def check(self, keys: Sequence[str]) -> bool:
        with self._changed:
            return all(self._has(key) for key in keys)

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        with self._changed:
            self._wait_until(lambda: all(self._has(key) for key in keys), timeout)

    def compare_set(self, key: str, expected_value: str | bytes, desired_value: str | bytes) -> bytes:
        with self._changed:
            present = self._values.get(key)
            expected = as_bytes(expected_value)
            if present is None and expected:
                return expected
            if present is None or present == expected:
                self._values[key] = as_bytes(desired_value)
                self._changed.notify_all()
            return self._values[key]

    def delete_key(self, key: str) -> bool:
        with self._changed:
            return self._values.pop(key, None) is not None

    def num_keys(self) -> int:
        with self._changed:
            return len(self._values)

    def list_keys(self) -> list[str]:
        with self._changed:
            return list(self._values)

    def has_extended_api(self) -> bool:
        return True

    def append(self, key: str, value: str | bytes) -> None:
        with self._changed:
            self._values[key] = self._values.get(key, b"") + as_bytes(value)
            self._changed.notify_all()

    def multi_get(self, keys: Sequence[str]) -> list[bytes]:
        with self._changed:
            self._wait_until(lambda: all(key in self._values for key in keys), None)
            return [self._values[key] for key in keys]

    def multi_set(self, keys: Sequence[str], values: Sequence[str | bytes]) -> None:
        with self._changed:
            self._values.update((key, as_bytes(value)) for key, value in zip(keys, values, strict=False))
            self._changed.notify_all()

    def queue_push(self, key: str, value: str | bytes) -> None:
        with self._changed:
            self._queues.setdefault(key, deque()).append(as_bytes(value))
            self._changed.notify_all()

    def queue_pop(self, key: str, block: bool = True) -> bytes:
        return self.pop_within(key, None if block else timedelta())

    def pop_within(self, key: str, timeout: timedelta | None) -> bytes:
        """Take the first value of a queue, waiting for the default duration if `timeout` is None."""
        with self._changed:
            if timeout is not None and not timeout and not self._queues.get(key):
                raise QueueEmptyError("queue is empty")
            self._wait_until(lambda: self._queues.get(key), timeout)
            values = self._queues[key]
            first = values.popleft()
            if not values:
                del self._queues[key]
            return first

    def queue_len(self, key: str) -> int:
        with self._changed:
            return len(self._queues.get(key, ()))


__all__ = ["HashStore"]
