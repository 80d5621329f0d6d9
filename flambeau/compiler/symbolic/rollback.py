"""Python objects as they were before a retrace: what guards name is restored, if the function has changed it.

A function that is compiled changes no objects for the sizes that it was traced for. For others it may, as a module that
caches a table of positions until a longer one is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..guards.guard import ABSENT, ARRAY, ATTRIBUTE, CELL, DICT, ITEM, LIST, MISSING, MODULE, QUERY, SET, Guard
from ..guards.object_kinds import LRU_CACHE
from .formulas import NotSymbolic

#: entries of a module's `__dict__` that are containers of its own
_MEMBERS = ("_parameters", "_buffers", "_modules")


@contextmanager
def preserved_objects(guards: Sequence[Guard]) -> Iterator[None]:
    """Restore afterwards what guards name.

    Args:
        guards: the guards on Python objects of an earlier trace.

    Raises:
        NotSymbolic: one of them is on a cache that cannot be restored.
    """
    undo = [each for guard in guards for each in _restorers(guard)]
    try:
        yield
    finally:
        for restore in undo:
            restore()


def _restorers(guard: Guard) -> list[Callable[[], None]]:
    """Return functions that restore what a guard is on."""
    kind, holder, key = guard.kind, guard.holder, guard.key
    if kind == MODULE:
        return [_dict_restorer(each) for each in (holder.__dict__, *(holder.__dict__[name] for name in _MEMBERS))]
    if kind in (DICT, ITEM, ABSENT) and isinstance(holder, dict):
        return [_dict_restorer(holder)] if kind == DICT else [_item_restorer(holder, key)]
    if kind == ATTRIBUTE and isinstance(getattr(holder, "__dict__", None), dict):
        return [_item_restorer(holder.__dict__, key)]
    if kind == CELL:
        return [_cell_restorer(holder)]
    if kind == LIST and isinstance(holder, list):
        return [_list_restorer(holder)]
    if kind == SET and isinstance(holder, set):
        return [_set_restorer(holder)]
    if kind == ARRAY:
        return [_array_restorer(holder)]
    if kind == QUERY and isinstance(holder, LRU_CACHE):
        raise NotSymbolic("a function with a cache of its results")
    return []


def _dict_restorer(holder: dict[Any, Any]) -> Callable[[], None]:
    before = list(holder.items())

    def restore() -> None:
        now = list(holder.items())
        if len(now) != len(before) or any(a is not c or b is not d for (a, b), (c, d) in zip(now, before, strict=True)):
            holder.clear()
            holder.update(before)

    return restore


def _item_restorer(holder: dict[Any, Any], key: Any) -> Callable[[], None]:
    before = holder.get(key, MISSING)

    def restore() -> None:
        if before is MISSING:
            holder.pop(key, None)
        elif holder.get(key, MISSING) is not before:
            holder[key] = before

    return restore


def _cell_restorer(cell: Any) -> Callable[[], None]:
    try:
        before = cell.cell_contents
    except ValueError:  # empty
        before = MISSING

    def restore() -> None:
        if before is not MISSING:
            cell.cell_contents = before

    return restore


def _list_restorer(holder: list[Any]) -> Callable[[], None]:
    before = [*holder]

    def restore() -> None:
        if len(holder) != len(before) or any(a is not b for a, b in zip(holder, before, strict=True)):
            holder[:] = before

    return restore


def _set_restorer(holder: set[Any]) -> Callable[[], None]:
    before = {*holder}

    def restore() -> None:
        if holder != before:
            holder.clear()
            holder.update(before)

    return restore


def _array_restorer(holder: np.ndarray) -> Callable[[], None]:
    before = holder.copy()

    def restore() -> None:
        if holder.tobytes() != before.tobytes():
            holder[...] = before

    return restore


__all__ = ["preserved_objects"]
