"""`torch.profiler.itt`: ranges and marks for Intel's ITT tools. No tool is attached, so they have no effect."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


def is_available() -> bool:
    """Whether ITT markers are available: they are not.

    >>> import flambeau as torch
    >>> torch.profiler.itt.is_available()
    False
    """
    return False


def range_push(msg: str) -> None:
    """Begin a range; no effect.

    >>> import flambeau as torch
    >>> torch.profiler.itt.range_push("forward")
    """


def range_pop() -> None:
    """End a range; no effect.

    >>> import flambeau as torch
    >>> torch.profiler.itt.range_pop()
    """


def mark(msg: str) -> None:
    """Mark a moment; no effect.

    >>> import flambeau as torch
    >>> torch.profiler.itt.mark("epoch")
    """


@contextmanager
def range(msg: str, *args: Any, **kwargs: Any) -> Iterator[None]:
    """A block, or decorated function, that is a range; its name is formatted with the arguments.

    >>> import flambeau as torch
    >>> with torch.profiler.itt.range("step {}", 1):
    ...     pass
    """
    range_push(msg.format(*args, **kwargs))
    try:
        yield
    finally:
        range_pop()


__all__ = ["is_available", "mark", "range", "range_pop", "range_push"]
