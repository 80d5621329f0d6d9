"""Places of Python state that functions assign: items of dictionaries, closure variables, slots and containers."""

from __future__ import annotations

import types
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ... import dtypes
from ..._tensor import Tensor
from ...optim.optimizer import Optimizer
from ..guards.guard import (
    ABSENT,
    ATTRIBUTE,
    CELL,
    DICT,
    ITEM,
    LIST,
    MISSING,
    MODULE,
    MODULE_INTERNALS,
    SET,
    UNSUPPORTED,
    Guard,
    ModuleNames,
    current_value,
    module_snapshot,
    values_match,
)
from ..guards.object_kinds import CONSTANT_TYPES, is_range_or_slice
from ..symbolic.rollback import restorers
from .structure import MUTABLE, Flattened, NoStructure, is_mutable, is_record_class

#: dictionaries of a module whose entries are places
_MEMBERS = ("_buffers", "_parameters")


class Absent:
    """Stands for the value of a place that has none."""


class Place:
    """A place whose value changes from call to call.

    Args:
        kind: ITEM (`holder[key]` of a dictionary: attributes, globals), CELL (a closure variable), ATTRIBUTE (a slot),
            or LIST (the container `holder` itself, which nothing else leads to).
        holder: the dictionary, cell, object or container.
        key: the name; None for cells and containers.
        name: as in Python source, for messages.
        is_of_module: whether it belongs to a module of `nn`.
    """

    __slots__ = ("holder", "is_of_module", "key", "kind", "name")

    def __init__(self, kind: int, holder: Any, key: Any = None, name: str = "", is_of_module: bool = False) -> None:
        self.kind, self.holder, self.key, self.name, self.is_of_module = kind, holder, key, name, is_of_module

    @property
    def identity(self) -> tuple[Any, ...]:
        """What two objects for one place have in common."""
        return self.kind, id(self.holder), self.key

    def read(self) -> Any:
        """Return the value, `Absent` if there is none."""
        if self.kind == ITEM:
            return self.holder.get(self.key, Absent)
        if self.kind == LIST:
            return self.holder
        found = current_value(self.kind, self.holder, self.key) if self.kind == CELL else getattr(
            self.holder, self.key, MISSING)
        return Absent if found is MISSING else found

    def write(self, value: Any) -> None:
        """Assign a value; a container keeps its identity, and has been filled already."""
        if self.kind == ITEM:
            if value is Absent:
                self.holder.pop(self.key, None)
            else:
                self.holder[self.key] = value
        elif self.kind == CELL:
            if value is Absent:
                del self.holder.cell_contents
            else:
                self.holder.cell_contents = value
        elif self.kind == ATTRIBUTE:
            slot = getattr(type(self.holder), self.key)
            if value is Absent:
                slot.__delete__(self.holder)
            else:
                slot.__set__(self.holder, value)

    def restorers(self) -> list[Callable[[], None]]:
        """Return functions that restore the value that the place has now."""
        kind = self.kind
        if kind == LIST:
            kind = LIST if isinstance(self.holder, (list, deque)) else SET if isinstance(self.holder, set) else DICT
        elif kind == ATTRIBUTE and self.read() is Absent:
            return [lambda: self.write(Absent)]
        return restorers([Guard(kind, self.holder, self.key, None, "")])


class Excluded:
    """What guards do not check in a trace, because it is an input.

    Args:
        places: the places.
        before, after: their values at the beginning and at the end of the call.
    """

    def __init__(self, places: Sequence[Place], before: Flattened, after: Flattened) -> None:
        self.places = {each.identity: each for each in places}
        self.containers = {id(x): x for x in (*before.containers, *after.containers)}
        self._attributes = {id(x.__dict__) for x in self.containers.values() if is_record_class(x.__class__)}
        self._roots = {id(value): each for each in places if is_mutable(value := each.read())}

    def covers(self, kind: int, holder: Any, key: Any) -> bool:
        """Whether a guard is on a place, or on the entries of a container in one."""
        if kind in (LIST, DICT, SET):
            return id(holder) in self.containers
        if kind in (ITEM, ABSENT) and id(holder) in self._attributes:
            return True
        return (ITEM if kind == ABSENT else kind, id(holder), key) in self.places

    def of_module(self, module: Any) -> tuple[frozenset[str], ...]:
        """Return the names of attributes, buffers and parameters of a module that are places."""
        own = module.__dict__
        return tuple([frozenset([key for kind, holder, key in self.places if kind == ITEM and holder == id(members)])
                      for members in (own, *(own[name] for name in _MEMBERS))])

    def pins(self, guards: Sequence[Guard]) -> list[Guard] | None:
        """Return guards that containers in places are those that other guards lead to, too; None if there are none.

        Args:
            guards: the guards of the trace.
        """
        found = []
        for guard in guards:
            for value in guard.value if isinstance(guard.value, tuple) else (guard.value,):
                if id(value) in self.containers and value is self.containers[id(value)]:
                    place = self._roots.get(id(value))
                    if place is None:
                        return None
                    if place.kind != LIST:
                        found.append(Guard(place.kind, place.holder, place.key, value, guard.path))
        return found


class _ModuleValues(NamedTuple):
    """What a guard on a module compares: places with their values, and the rest."""

    places: dict[tuple[Any, ...], tuple[Place, Any]]
    rest: tuple[Any, ...]


def values_of(guards: Sequence[Guard]) -> list[Any]:
    """Return the current values of guards, `Absent` where there is none."""
    found: list[Any] = []
    for guard in guards:
        try:
            if guard.kind == MODULE:
                places = {each.identity: (each, each.read()) for each in _places_of_module(guard)}
                own = guard.holder.__dict__
                nothing = ModuleNames(frozenset(), frozenset(), *[frozenset(own[kind]) for kind in _MEMBERS])
                found.append(_ModuleValues(places, module_snapshot(guard.holder, nothing)))
            else:
                found.append(guard.current())
        except (LookupError, AttributeError, ValueError, TypeError, RuntimeError):
            found.append(Absent)
    return found


def changed_places(guards: Sequence[Guard], before: Sequence[Any], after: Sequence[Any]) -> list[Place] | None:
    """Return the places that changed; None if something changed that is no place.

    Args:
        guards: guards of a trace.
        before, after: their values at two times, as `values_of` returns them.
    """
    found: dict[tuple[Any, ...], Place] = {}
    roots: dict[int, Place] | None = None
    for guard, old, new in zip(guards, before, after, strict=True):
        if guard.kind == MODULE and old.__class__ is new.__class__ is _ModuleValues:
            places = [*_changed_in_module(old, new)]
            if not values_match(MODULE, old.rest, new.rest):
                return None
        elif guard.kind == UNSUPPORTED or (  # which no two traces share, or they do not agree
                old is not Absent and new is not Absent and values_match(guard.kind, old, new)):
            continue
        elif guard.kind in (LIST, DICT, SET) and guard.holder.__class__ in MUTABLE:
            if roots is None:
                roots = _roots(guards)
            places = [roots.get(id(guard.holder)) or Place(LIST, guard.holder, None, guard.path)]
        elif (place := _place(guard)) is not None:
            places = [place]
        else:
            return None
        found.update({each.identity: each for each in places})
    if not found:
        return []
    optimizers = [x.__dict__ for guard in guards for x in (
        guard.value if isinstance(guard.value, tuple) else (guard.value,)) if isinstance(x, Optimizer)]
    if any(each.holder is own for each in found.values() for own in optimizers):
        return None
    try:
        leaves = Flattened([each.read() for each in found.values()]).leaves
    except NoStructure:
        return None
    return [*found.values()] if all(map(_is_state, leaves)) else None


def _is_state(x: Any) -> bool:
    """Whether a value may be an input or result of a program."""
    return isinstance(x, (Tensor, *CONSTANT_TYPES, np.generic, dtypes.dtype)) or x is Absent or is_range_or_slice(x)


def _changed_in_module(old: _ModuleValues, new: _ModuleValues) -> Iterator[Place]:
    """Yield the places of a module that changed."""
    for identity in {**old.places, **new.places}:
        place, now = new.places.get(identity, (None, Absent))
        place_before, before = old.places.get(identity, (None, Absent))
        if now is not before and not values_match(ITEM, before, now):
            yield place or place_before  # type: ignore[misc]


def _place(guard: Guard) -> Place | None:
    """Return the place of a guard; None if it is on something else."""
    kind, holder, key = guard.kind, guard.holder, guard.key
    if kind in (ITEM, ABSENT) and holder.__class__ is dict:
        return Place(ITEM, holder, key, guard.path)
    if kind == CELL:
        return Place(CELL, holder, None, guard.path)
    if kind == ATTRIBUTE and isinstance(getattr(type(holder), key, None), types.MemberDescriptorType):
        return Place(ATTRIBUTE, holder, key, guard.path)
    return None


def _places_of_module(guard: Guard) -> Iterator[Place]:
    """Yield the places that a guard on a module compares."""
    own, names = guard.holder.__dict__, guard.key
    without: tuple[frozenset[str], ...] = (frozenset(),) * 3
    if names.__class__ is ModuleNames:
        names, *without = names  # type: ignore[assignment]
    for name in own:
        if name not in MODULE_INTERNALS and (names is None or name in names) and name not in without[0]:
            yield Place(ITEM, own, name, f"{guard.path}.{name}", True)
    for kind, excluded in zip(_MEMBERS, without[1:], strict=True):
        for name in own[kind]:
            if name not in excluded:
                yield Place(ITEM, own[kind], name, f"{guard.path}.{name}", True)


def _roots(guards: Sequence[Guard]) -> dict[int, Place]:
    """Return, by identity of containers, the places that hold them, directly or in others."""
    found: dict[int, Place] = {}
    for guard in guards:
        if guard.kind == MODULE:
            places = [*_places_of_module(guard)]
        else:
            place = _place(guard)
            places = [] if place is None else [place]
        for each in places:
            value = each.read()
            if isinstance(value, tuple) or is_mutable(value):
                try:
                    for container in Flattened([value]).containers:
                        found.setdefault(id(container), each)
                except NoStructure:
                    continue
    return found


__all__ = ["Absent", "Excluded", "Place", "changed_places", "values_of"]
