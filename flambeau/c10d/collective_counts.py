"""Who counts collectives: those that programs and wrappers start, and those of functions that return new tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

#: called with the namespace of the operator, `c10d` or `c10d_functional`, and its name
listeners: list[Callable[[str, str], None]] = []
_is_counted: ContextVar[bool] = ContextVar("collective_is_counted", default=False)


@contextmanager
def functional(name: str) -> Iterator[None]:
    """Count the collectives in the block as one operator of `c10d_functional`.

    Args:
        name: `all_reduce`, `all_gather_into_tensor`, ...
    """
    if not listeners or _is_counted.get():
        yield
        return
    for listener in tuple(listeners):
        listener("c10d_functional", name)
    token = _is_counted.set(True)
    try:
        yield
    finally:
        _is_counted.reset(token)


def note(name: str) -> None:
    """Count a collective of a process group, unless it is part of another operator.

    Args:
        name: of the operator of `c10d`: `allreduce_`, `_allgather_base_`, ...
    """
    if not _is_counted.get():
        for listener in tuple(listeners):
            listener("c10d", name)


__all__ = ["functional", "listeners", "note"]
