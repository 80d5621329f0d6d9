"""Python objects as they were before a retrace: what guards name is restored, if the function has changed it.

A function that is compiled changes no objects for the sizes that it was traced for. For others it may, as a module that
caches a table of positions until a longer one is needed.
"""

from __future__ import annotations

import types
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ...optim.optimizer import Optimizer
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
    undo = restorers(guards)
    try:
        yield
    finally:
        for restore in undo:
            restore()


def restorers(guards: Iterable[Guard]) -> list[Callable[[], None]]:
    """Return functions that restore what guards name; see `preserved_objects`."""
    guards = [*guards]
    values = [x for guard in guards for x in (guard.value if isinstance(guard.value, tuple) else (guard.value,))]
    optimizers = {id(x): x for x in values if isinstance(x, Optimizer)}
    return [each for guard in guards for each in _restorers(guard)] + [
        each for optimizer in optimizers.values() for each in _optimizer_restorers(optimizer)]


def _optimizer_restorers(optimizer: Optimizer) -> list[Callable[[], None]]:
    """Return functions that restore the groups and the state of an optimizer: schedulers change them."""
    own = optimizer.__dict__
    groups, state = own.get("param_groups", []), own.get("state", {})
    return [_dict_restorer(own), _list_restorer(groups), _dict_restorer(state),
            *map(_dict_restorer, groups), *[_dict_restorer(entry) for entry in state.values() if type(entry) is dict]]


def _restorers(guard: Guard) -> list[Callable[[], None]]:
    """Return functions that restore what a guard is on."""
    kind, holder, key = guard.kind, guard.holder, guard.key
    if kind == MODULE:
        return [_dict_restorer(each) for each in (holder.__dict__, *(holder.__dict__[name] for name in _MEMBERS))]
    if kind in (DICT, ITEM, ABSENT) and isinstance(holder, dict):
        return [_dict_restorer(holder)] if kind == DICT else [_item_restorer(holder, key)]
    if kind == ATTRIBUTE and isinstance(getattr(type(holder), key, None), types.MemberDescriptorType):
        return [_slot_restorer(holder, getattr(type(holder), key))]
    if kind == ATTRIBUTE and isinstance(getattr(holder, "__dict__", None), dict):
        return [_item_restorer(holder.__dict__, key)]
    if kind == CELL:
        return [_cell_restorer(holder)]
    if kind == LIST and isinstance(holder, (list, deque)):
        return [_list_restorer(holder)]
    if kind == SET and isinstance(holder, set):
        return [_set_restorer(holder)]
    if kind == SET and isinstance(holder, bytearray):
        return [_list_restorer(holder)]
    if kind == ARRAY:
        return [_array_restorer(holder)]
    if kind == QUERY and isinstance(holder, LRU_CACHE):
        raise NotSymbolic("a function with a cache of its results")
    return []


def _dict_restorer(holder: dict[Any, Any]) -> Callable[[], None]:
    kind = OrderedDict if isinstance(holder, OrderedDict) else dict  # methods of subclasses may do something else
    before = list(kind.items(holder))

    def restore() -> None:
        now = list(kind.items(holder))
        if len(now) != len(before) or any(a is not c or b is not d for (a, b), (c, d) in zip(now, before, strict=True)):
            kind.clear(holder)
            for key, value in before:
                kind.__setitem__(holder, key, value)

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


def _slot_restorer(holder: Any, slot: types.MemberDescriptorType) -> Callable[[], None]:
    before = slot.__get__(holder)

    def restore() -> None:
        slot.__set__(holder, before)

    return restore


def _list_restorer(holder: Any) -> Callable[[], None]:
    kind: Any = next(each for each in (list, deque, bytearray) if isinstance(holder, each))
    before = [*kind.__iter__(holder)]

    def restore() -> None:
        now = [*kind.__iter__(holder)]
        if len(now) != len(before) or any(a is not b for a, b in zip(now, before, strict=True)):
            kind.clear(holder)
            kind.extend(holder, before)

    return restore


def _set_restorer(holder: set[Any]) -> Callable[[], None]:
    before = {*holder}

    def restore() -> None:
        if holder != before:
            set.clear(holder)
            set.update(holder, before)

    return restore


def _array_restorer(holder: np.ndarray) -> Callable[[], None]:
    before = holder.copy()

    def restore() -> None:
        if holder.tobytes() != before.tobytes():
            holder[...] = before

    return restore


__all__ = ["preserved_objects", "restorers"]
