"""Reentrant backward: passes that are started by a pass; deeply nested ones continue in a new thread.

The backward of a custom Function, a hook or a checkpoint may start another pass, to any depth. A pass takes a dozen
frames of Python's stack, so every `PER_THREAD` levels the next pass runs in a thread of its own with a copy of the
context, while its caller waits.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import ContextVar, copy_context
from typing import Any

#: the number of passes nested in one thread
PER_THREAD = 30

_depth: ContextVar[int] = ContextVar("backward_depth", default=0)


def run_reentrant(begin: Callable[[], Any]) -> Any:
    """Run a pass that was started by another one.

    Raises:
        Exception: the exception that the pass raises, in whichever thread it runs.
    """
    depth = _depth.get() + 1
    entered = _depth.set(depth)
    try:
        return begin() if depth % PER_THREAD else _in_new_thread(begin)
    finally:
        _depth.reset(entered)


def _in_new_thread(begin: Callable[[], Any]) -> Any:
    results: list[Any] = []
    errors: list[BaseException] = []
    context = copy_context()

    def run() -> None:
        try:
            results.append(context.run(begin))
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, name="flambeau-backward", daemon=True)
    thread.start()
    thread.join()
    if errors:
        try:
            raise errors[0]
        finally:
            errors.clear()  # the error's traceback holds this frame
    return results[0]


__all__ = ["run_reentrant"]
