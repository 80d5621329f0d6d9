"""`Work`: a collective that was started, and the thread that carries collectives out."""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from ..modes import active_tracer, special
from ..runtime.futures import Future


class Work:
    """A collective that was started.

    Programs may implement it themselves for their own backends: they override `wait` and `get_future`.
    """

    _source = -1

    def __init__(self) -> None:
        if special[0] and (tracer := active_tracer.get()) is not None:
            tracer.graph_break("a collective exchanges tensors with other processes")
        self._future: Future[Any] = Future()
        self._result: list[Any] = []

    def _finish(self, result: list[Any], error: BaseException | None = None) -> None:
        self._result = result
        if error is None:
            self._future.set_result(result)
        else:
            self._future._complete(None, error)

    def is_completed(self) -> bool:
        """Whether it has ended, with or without an error."""
        return self._future.done()

    def is_success(self) -> bool:
        """Whether it has ended without an error."""
        return self.is_completed() and self.exception() is None

    def exception(self) -> BaseException | None:
        """The error with which it ended."""
        return self._future._error

    def wait(self, timeout: timedelta = timedelta(0)) -> bool:
        """Wait for its end.

        Args:
            timeout: how long; 0 waits as long as the process group's timeout allows.

        Returns:
            True.

        Raises:
            RuntimeError: it ended with an error, or has not ended in time.
        """
        if timeout:
            with self._future._condition:
                if not self._future._condition.wait_for(self._future.done, timeout.total_seconds()):
                    raise RuntimeError("Operation timed out!")
        self._future.wait()
        return True

    def synchronize(self) -> None:
        """Wait for its end."""
        self.wait()

    def result(self) -> list[Any]:
        """The tensors that it wrote.

        Raises:
            RuntimeError: it has not ended.
        """
        if not self.is_completed():
            raise RuntimeError("Work needs to be completed before calling result(). Should call wait() before "
                               "result().")
        return self._result

    def get_future(self) -> Future[Any]:
        """A future of the tensors that it writes."""
        return self._future

    def source_rank(self) -> int:
        """The rank that a message came from.

        Raises:
            RuntimeError: it receives no message.
        """
        if self._source < 0:
            raise RuntimeError("sourceRank() may only be called on work objects that correspond to a recv or "
                               "recv-from-any call.")
        return self._source

    _source_rank = source_rank

    def boxed(self) -> Work:
        """This object."""
        return self

    unbox = staticmethod(lambda work: work)


def end(work: Any) -> None:
    """Wait for the end of a work that a program may have implemented, whose `wait` need not have a default."""
    work.wait(timedelta(0))


def create_work_from_future(future: Future[Any]) -> Work:
    """A work that ends when a future does: `torch._C._distributed_c10d._create_work_from_future`."""
    work = Work()
    work._future = future
    return work


class ReceiveWork(Work):
    """A message that is expected; waiting for it receives it."""

    def __init__(self, receive: Callable[[], tuple[int, list[Any]]], arrived: Callable[[], bool]) -> None:
        super().__init__()
        self._receive, self._arrived, self._lock = receive, arrived, threading.Lock()

    def is_completed(self) -> bool:
        if not self._future.done() and self._arrived():
            self._complete()
        return self._future.done()

    def _complete(self) -> None:
        with self._lock:
            if self._future.done():
                return
            try:
                self._source, result = self._receive()
            except Exception as error:
                self._finish([], error)
            else:
                self._finish(result)

    def wait(self, timeout: timedelta = timedelta(0)) -> bool:
        self._complete()
        return super().wait(timeout)

    def get_future(self) -> Future[Any]:
        if not self._future.done():
            threading.Thread(target=self._complete, name="c10d receive", daemon=True).start()
        return self._future


class _Task:
    __slots__ = ("run", "work")

    def __init__(self, work: Work, run: Callable[[], list[Any]]) -> None:
        self.work, self.run = work, run

    def __call__(self) -> None:
        try:
            result = self.run()
        except BaseException as error:
            self.work._finish([], error)
        else:
            self.work._finish(result)


class _Queue:
    """What the thread and its owner share; the thread must not keep its owner alive."""

    def __init__(self) -> None:
        self.tasks: deque[_Task] = deque()
        self.changed = threading.Condition()
        self.busy = False  # a task runs, in the thread or in the caller of `run`
        self.runner = -1  # the thread that runs it
        self.ended = False


def _serve(queue: _Queue) -> None:
    while True:
        with queue.changed:
            queue.changed.wait_for(lambda: queue.ended or (queue.tasks and not queue.busy))
            if not queue.tasks:
                return
            task = queue.tasks.popleft()
            queue.busy, queue.runner = True, threading.get_ident()
        task()
        del task  # it refers to tensors
        with queue.changed:
            queue.busy, queue.runner = False, -1
            queue.changed.notify_all()


class WorkQueue:
    """Collectives of one process group, one after another in the order they were started."""

    def __init__(self) -> None:
        self._queue = _Queue()
        self._thread: threading.Thread | None = None
        weakref.finalize(self, _end, self._queue).atexit = False

    def start(self, run: Callable[[], list[Any]]) -> Work:
        """Run a function in the queue's thread; its result becomes the work's."""
        work, queue = Work(), self._queue
        if queue.runner == threading.get_ident():  # a callback of a future: what it starts, it may wait for
            _Task(work, run)()
            return work
        with queue.changed:
            if queue.ended:
                raise RuntimeError("The process group was destroyed")
            queue.tasks.append(_Task(work, run))
            if self._thread is None:
                self._thread = threading.Thread(target=_serve, args=(queue,), name="c10d work", daemon=True)
                self._thread.start()
            queue.changed.notify_all()
        return work

    def run(self, run: Callable[[], list[Any]]) -> Work:
        """Run a function after all that were started; in this thread if there are none."""
        queue = self._queue
        with queue.changed:
            if queue.ended:
                raise RuntimeError("The process group was destroyed")
            direct = not queue.tasks and not queue.busy
            if direct:
                queue.busy, queue.runner = True, threading.get_ident()
        if not direct:
            work = self.start(run)
            work.wait()
            return work
        work = Work()
        try:
            _Task(work, run)()
        finally:
            with queue.changed:
                queue.busy, queue.runner = False, -1
                queue.changed.notify_all()
        work.wait()
        return work

    def drain(self) -> None:
        """Wait until all that was started has ended."""
        queue = self._queue
        with queue.changed:
            queue.changed.wait_for(lambda: not queue.tasks and not queue.busy)

    def close(self) -> None:
        """Refuse further work; what was started still runs."""
        _end(self._queue)


def _end(queue: _Queue) -> None:
    with queue.changed:
        queue.ended = True
        queue.changed.notify_all()


__all__ = ["ReceiveWork", "Work", "WorkQueue", "create_work_from_future", "end"]
