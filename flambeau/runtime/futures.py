"""`torch.futures`: results that another thread will supply."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence
from datetime import datetime
from types import FrameType
from typing import Any, Generic, NoReturn, TypeVar

from ..devices import device

T = TypeVar("T")

COMPLETED = ("Attempting to mark a completed Future as complete again. Note that a Future can only be marked "
             "completed once.")


def _callback_error(error: Exception) -> str:
    """The text about a callback that raised, with the frames of the calls, innermost first."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    frame: FrameType | None = trace.tb_frame if trace is not None else None
    line = trace.tb_lineno if trace is not None else 0
    calls = []
    while frame is not None:
        if not (frame.f_code.co_filename == __file__ and frame.f_code.co_name.startswith("_")):
            calls.append(f"  {frame.f_code.co_filename}({line}): {frame.f_code.co_name}\n")
        frame = frame.f_back
        line = frame.f_lineno if frame is not None else 0
    return (f"Got the following error when running the callback: {type(error).__name__}: {error}\n\nAt:\n"
            + "".join(calls))


def _check_devices(devices: Sequence[Any]) -> None:
    for each in map(device, devices):
        if each.index is None:
            raise ValueError(f"Expected devices to have indices, got {each}")
        if each.type != "cpu":
            raise RuntimeError(f"PyTorch is not linked with support for {each.type} devices")


class Future(Generic[T]):
    """A result that is set later, with callbacks.

    Args:
        devices: the devices of its tensors, with their indices; the CPU needs none.

    Raises:
        ValueError: a device without an index.
        RuntimeError: a device that is not there.

    >>> import flambeau as torch
    >>> future = torch.futures.Future()
    >>> doubled = future.then(lambda done: 2 * done.value())
    >>> future.set_result(3)
    >>> doubled.wait()
    6
    """

    def __init__(self, *, devices: Any = None) -> None:
        _check_devices(devices or ())
        self._condition = threading.Condition()
        self._completed = False
        self._value: Any = None
        self._error: BaseException | None = None  # of the callback whose result this is, or of communication
        self._raises = False  # whether the value is an exception, which `wait` and `value` raise
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

    def __getstate__(self) -> NoReturn:
        raise RuntimeError("Can not pickle torch.futures.Future")

    def _outcome(self) -> T:
        if self._error is not None:
            raise self._error
        if self._raises:
            raise self._value
        return self._value

    def _complete(self, value: Any, error: BaseException | None) -> None:
        with self._condition:
            if self._completed:
                raise RuntimeError(COMPLETED)
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
        """A future of what `callback(self)` returns once this one is done.

        An error of the callback becomes a RuntimeError, which the new future raises.
        """
        following: Future[Any] = Future()

        def _run() -> None:
            try:
                result = callback(self)
            except Exception as error:
                following._complete(None, RuntimeError(_callback_error(error)))
            else:
                following._complete(result, None)

        self._call_when_done(_run)
        return following

    def add_done_callback(self, callback: Callable[[Future[T]], None]) -> None:
        """Call `callback(self)` once this future is done; an error is written to stderr and goes no further."""
        def _run() -> None:
            try:
                callback(self)
            except Exception as error:
                print(f"[E{datetime.now():%m%d %H:%M:%S.%f} futures.py] {_callback_error(error)}", file=sys.stderr)

        self._call_when_done(_run)

    def set_result(self, result: T) -> None:
        """Set the result.

        Raises:
            RuntimeError: it is set already.
        """
        self._complete(result, None)

    def set_exception(self, result: Any) -> None:
        """Set an error, which `wait` and `value` raise.

        Raises:
            AssertionError: not an exception.
            RuntimeError: a result or an error is set already.
        """
        assert isinstance(result, Exception), f"{result} is of type {type(result)}, not an Exception."
        self._raises = True
        self._complete(result, None)


def check_futures(futures: Sequence[Any]) -> None:
    """Refuse None among futures.

    Raises:
        RuntimeError: a future is None.
    """
    if any(future is None for future in futures):
        raise RuntimeError("Future can't be None")


def collect_all(futures: list[Future[Any]]) -> Future[list[Future[Any]]]:
    """A future of the given futures, done when all of them are, or one of their callbacks raised.

    Raises:
        RuntimeError: a future is None.

    >>> import flambeau as torch
    >>> first, second = torch.futures.Future(), torch.futures.Future()
    >>> both = torch.futures.collect_all([first, second])
    >>> first.set_result(1), second.set_result(2)
    (None, None)
    >>> [future.value() for future in both.wait()]
    [1, 2]
    """
    check_futures(futures)
    together: Future[list[Future[Any]]] = Future()
    left = [len(futures)]
    lock = threading.Lock()

    def count(future: Future[Any]) -> None:
        with lock:
            left[0] -= 1
            finished = not together.done() and (left[0] == 0 or future._error is not None)
            if finished:
                together._complete(futures, future._error)

    if not futures:
        together.set_result(futures)
    for future in futures:
        future.add_done_callback(count)
    return together


def wait_all(futures: list[Future[Any]]) -> list[Any]:
    """Wait for all futures.

    Returns:
        Their results.

    Raises:
        RuntimeError: a future is None, or a callback raised.

    >>> import flambeau as torch
    >>> future = torch.futures.Future()
    >>> future.set_result(1)
    >>> torch.futures.wait_all([future])
    [1]
    """
    return [future.wait() for future in collect_all(futures).wait()]


__all__ = ["Future", "collect_all", "wait_all"]
