"""The process group of sharded tensors that are unpickled."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .. import distributed_c10d as c10d

_current: list[Any] = []


@contextmanager
def load_with_process_group(process_group: Any) -> Iterator[Any]:
    """A `with` block in which sharded tensors are unpickled for a process group.

    Raises:
        RuntimeError: inside of another one.

    >>> with load_with_process_group("group"):
    ...     _get_current_process_group()
    'group'
    """
    if _current:
        raise RuntimeError('ProcessGroup already set by previous "load_with_process_group" context manager')
    _current.append(process_group)
    try:
        yield process_group
    finally:
        _current.clear()


def _get_current_process_group() -> Any:
    """The process group of the block, or the default one."""
    return _current[0] if _current else c10d._get_default_group()


__all__ = ["load_with_process_group"]
