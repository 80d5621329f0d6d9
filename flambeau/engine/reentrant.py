"""Backward within backward: passes that are nested deeply go on in a fresh thread, whose stack is empty.

A Function's backward, a hook or a checkpoint may begin another pass, and so on without end. Each
pass takes a dozen frames of Python's stack, so every so many of them the next begins in a thread
of its own, with the same context, and who asked for it waits.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import ContextVar, copy_context
from typing import Any

#: how many passes are nested in one thread
PER_THREAD = 30

_depth: ContextVar[int] = ContextVar("backward_depth", default=0)


def nested(begin: Callable[[], Any]) -> Any:
    """Run a pass that was asked for within another.

    Raises:
        Exception: whatever the pass raises, in whichever thread it runs.
    """
    depth = _depth.get() + 1
    entered = _depth.set(depth)
    try:
        return begin() if depth % PER_THREAD else _elsewhere(begin)
    finally:
        _depth.reset(entered)


def _elsewhere(begin: Callable[[], Any]) -> Any:
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


__all__ = ["nested"]
