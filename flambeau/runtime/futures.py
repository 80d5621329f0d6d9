"""`torch.futures`: results that another thread will supply."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Future(Generic[T]):
    """A result that is set later, with callbacks.

    Args:
        devices: the devices of its tensors; the CPU needs none.

    >>> import flambeau as torch
    >>> future = torch.futures.Future()
    >>> doubled = future.then(lambda done: 2 * done.value())
    >>> future.set_result(3)
    >>> doubled.wait()
    6
    """

    def __init__(self, *, devices: Any = None) -> None:
        self._condition = threading.Condition()
        self._completed = False
        self._value: Any = None
        self._error: BaseException | None = None
        self._callbacks: list[Callable[[], None]] = []

    def done(self) -> bool:
        """Whether the result, or an error, is set."""
        return self._completed

    def wait(self) -> T:
        """Wait for the result.

        Raises:
            Exception: the error that was set instead of a result.
        """
        with self._condition:
            self._condition.wait_for(self.done)
        return self._outcome()

    def value(self) -> T:
        """The result.

        Raises:
            RuntimeError: it is not set.
            Exception: the error that was set instead of a result.
        """
        if not self._completed:
            raise RuntimeError("value() called on a future that is not completed")
        return self._outcome()

    def _outcome(self) -> T:
        if self._error is not None:
            raise self._error
        return self._value

    def _complete(self, value: Any, error: BaseException | None) -> None:
        with self._condition:
            if self._completed:
                raise RuntimeError("Future already completed")
            self._completed, self._value, self._error = True, value, error
            callbacks, self._callbacks = self._callbacks, []
            self._condition.notify_all()
        for callback in callbacks:
            callback()

    def _call_when_done(self, callback: Callable[[], None]) -> None:
        with self._condition:
            if not self._completed:
                self._callbacks.append(callback)
                return
        callback()

    def then(self, callback: Callable[[Future[T]], Any]) -> Future[Any]:
        """A future of what `callback(self)` returns once this one is done."""
        following: Future[Any] = Future()

        def run() -> None:
            try:
                result = callback(self)
            except Exception as error:
                following._complete(None, error)
            else:
                following._complete(result, None)

        self._call_when_done(run)
        return following

    def add_done_callback(self, callback: Callable[[Future[T]], None]) -> None:
        """Call `callback(self)` once this future is done."""
        self._call_when_done(lambda: callback(self))

    def set_result(self, result: T) -> None:
        """Set the result.

        Raises:
            RuntimeError: it is set already.
        """
        self._complete(result, None)

    def set_exception(self, result: Any) -> None:
        """Set an error, which `wait` and `value` raise."""
        assert isinstance(result, Exception), f"{result} is of type {type(result)}, not an Exception."
        self._complete(None, result)


def collect_all(futures: list[Future[Any]]) -> Future[list[Future[Any]]]:
    """A future of the given futures, done when all of them are.

    >>> import flambeau as torch
    >>> first, second = torch.futures.Future(), torch.futures.Future()
    >>> both = torch.futures.collect_all([first, second])
    >>> first.set_result(1), second.set_result(2)
    (None, None)
    >>> [future.value() for future in both.wait()]
    [1, 2]
    """
    together: Future[list[Future[Any]]] = Future()
    left = [len(futures)]
    lock = threading.Lock()

    def count(_: Any) -> None:
        with lock:
            left[0] -= 1
            last = left[0] == 0
        if last:
            together.set_result(futures)

    if not futures:
        together.set_result(futures)
    for future in futures:
        future.add_done_callback(count)
    return together


def wait_all(futures: list[Future[Any]]) -> list[Any]:
    """Wait for all futures.

    Returns:
        Their results.

    >>> import flambeau as torch
    >>> future = torch.futures.Future()
    >>> future.set_result(1)
    >>> torch.futures.wait_all([future])
    [1]
    """
    return [future.wait() for future in collect_all(futures).wait()]


__all__ = ["Future", "collect_all", "wait_all"]
