"""Objects named by how they are reached from a function, so that another process finds its own in the same places.

Every step is one that Python takes too: an attribute, an entry of a list or a dict, an entry under a key that is an
object itself, a member of a class. What stands at the end of the way must look like what stood there: the same code,
the same class, tensors of the same shape, and no two ways lead to one object that led to two.
"""

from __future__ import annotations

import functools
import sys
import types
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from .fingerprints import BypassCache, described, is_compiled, is_value, library_name

#: containers of more entries than this are not looked into
LIMIT = 10_000
#: no more objects than this are looked at
MOST = 50_000
#: a step: what is done (of `_STEPS`), and with what
Step = tuple[str, Any]
_MISSING: Any = object()

class Place(NamedTuple):
    """Where an object is.

    Attributes:
        of: the number of the place it is reached from; -1 for where all begins.
        step: how.
        said: what is there, as every process would describe it.
    """

    of: int
    step: Step
    said: str


# ----- steps --------------------------------------------------------------------------------


def _member(cls: type, name: str) -> Any:
    return cls.__dict__[name]


def _entry(container: Any, key: Any) -> Any:
    return dict.__getitem__(container, key) if isinstance(container, dict) else container[key]


#: what a step does with the object that it is taken from
_STEPS: dict[str, Callable[[Any, Any], Any]] = {
    "attribute": getattr, "entry": _entry, "member": _member, "class": lambda x, _: type(x)}


def _attributes_of(thing: Any) -> tuple[str, ...]:
    """The attributes that lead on from an object, whatever names the function uses."""
    if isinstance(thing, types.FunctionType):
        return "__globals__", "__closure__", "__defaults__", "__kwdefaults__", "__dict__", "__wrapped__"
    if isinstance(thing, types.MethodType):
        return "__self__", "__func__"
    if isinstance(thing, types.CellType):
        return ("cell_contents",)
    if isinstance(thing, functools.partial):
        return "func", "args", "keywords"
    if isinstance(thing, (staticmethod, classmethod)):
        return ("__func__",)
    if isinstance(thing, property):
        return "fget", "fset"
    if isinstance(thing, type):
        return ("__mro__",)
    if is_compiled(thing):
        return ("function",)
    return ("__dict__",)


def _codes_of(member: Any) -> Iterator[types.CodeType]:
    """The code of a class's member."""
    for f in (member, getattr(member, "__func__", None), getattr(member, "fget", None), getattr(member, "fset", None)):
        if isinstance(f, types.FunctionType):
            yield f.__code__


class SourceTable:
    """What can be reached from where a call begins, each object by one of the shortest ways.

    Args:
        roots: where all begins: the function, and what it is given.
        names: of dicts of names, classes and objects with slots, by identity: the names that are followed.
        codes: code by identity: members of classes that run it are followed, too.

    Attributes:
        whole: whether all was looked at.
    """

    def __init__(self, roots: Sequence[Any], names: dict[int, set[str]], codes: Collection[int]) -> None:
        self._names, self._codes = names, codes
        self.things: list[Any] = []
        self._ways: list[tuple[int, Step]] = []
        self._at: dict[int, int] = {}
        self.whole = True
        later: list[tuple[int, Any, Any]] = []  # entries under keys that are objects
        for i, root in enumerate(roots):
            self._add(-1, ("root", i), root)
        for module in [*sys.modules.values()]:
            if id(getattr(module, "__dict__", None)) in names:
                self._add(-1, ("module", module.__name__), module)
        done = 0
        while done < len(self.things) or later:
            if len(self.things) > MOST:
                self.whole = False
                break
            if done == len(self.things):
                at, key, value = later.pop(0)
                if id(key) in self._at:
                    self._add(at, ("under", id(key)), value)
                continue
            for step, child in self._children(self.things[done]):
                if step[0] == "under":
                    later.append((done, *child))
                else:
                    self._add(done, step, child)
            done += 1

    def _add(self, at: int, step: Step, thing: Any) -> None:
        if id(thing) not in self._at and not is_value(thing) and library_name(thing) is None and not (
                type(thing) is tuple and not thing):
            self._at[id(thing)] = len(self.things)
            self.things.append(thing)
            self._ways.append((at, step))

    def _children(self, thing: Any) -> Iterator[tuple[Step, Any]]:
        if isinstance(thing, np.ndarray):
            return
        if isinstance(thing, (list, tuple, deque)):
            if len(thing) > LIMIT:
                self.whole = False
                return
            for i, x in enumerate(thing):
                yield ("entry", i), x
            if type(thing) in (list, tuple):
                return
        elif isinstance(thing, dict):
            if "__builtins__" in thing:  # the names of a module
                for name in sorted(self._names.get(id(thing), ())):
                    if name in thing:
                        yield ("entry", name), thing[name]
                return
            if len(thing) > LIMIT:
                self.whole = False
                return
            for key, x in dict.items(thing):
                yield (("entry", key), x) if is_value(key) else (("under", None), (key, x))
            if type(thing) is dict:
                return
        own = self._names.get(id(thing), ())
        if isinstance(thing, type):
            for name, member in thing.__dict__.items():
                if name in own or any(id(code) in self._codes for code in _codes_of(member)):
                    yield ("member", name), member
        else:
            for name in sorted(own):
                yield ("attribute", name), getattr(thing, name, None)
            yield ("class", None), type(thing)
        for name in _attributes_of(thing):
            try:
                found = getattr(thing, name, None)
            except ValueError:  # an empty cell
                continue
            if name == "__dict__" and not isinstance(found, dict):
                continue
            yield ("attribute", name), found

    def running(self, code: types.CodeType) -> list[int]:
        """The numbers of the functions that run a piece of code."""
        return [at for at, x in enumerate(self.things) if isinstance(x, types.FunctionType) and x.__code__ is code]

    def __contains__(self, thing: Any) -> bool:
        return id(thing) in self._at

    def at(self, thing: Any) -> int:
        """The number of an object.

        Raises:
            Unnameable: it cannot be reached, or not be described.
        """
        found = self._at.get(id(thing))
        if found is None:
            raise BypassCache(f"a {type(thing).__module__}.{type(thing).__qualname__} that no name leads to")
        return found

    def class_of(self, identity: int) -> Any:
        """The object of this identity.

        Raises:
            Unnameable: it cannot be reached.
        """
        found = self._at.get(identity)
        if found is None:
            raise BypassCache("a class that no name leads to")
        return self.things[found]

    def places(self, wanted: Iterable[int]) -> tuple[list[Place], dict[int, int]]:
        """The places of objects by number, with those on the ways to them; and which each number is among these."""
        needed: set[int] = set()
        stack = list(wanted)
        while stack:
            at = stack.pop()
            if at >= 0 and at not in needed:
                needed.add(at)
                of, (kind, key) = self._ways[at]
                stack.append(of)
                if kind == "under":
                    stack.append(self._at[key])
        order = {at: i for i, at in enumerate(sorted(needed))}
        found = []
        for at in order:
            of, (kind, key) = self._ways[at]
            step = (kind, order[self._at[key]]) if kind == "under" else (kind, key)
            found.append(Place(-1 if of < 0 else order[of], step, described(self.things[at])))
        return found, order


class SourceResolver:
    """Objects at places, looked up as they are asked for.

    Args:
        roots: where all begins here.
    """

    def __init__(self, places: Sequence[Place], roots: Sequence[Any]) -> None:
        self._places, self._roots = places, roots
        self._things: list[Any] = [_MISSING] * len(places)
        self._numbers: dict[int, int] = {}

    def __getitem__(self, number: int) -> Any:
        """The object at a place.

        Raises:
            Unnameable: there is none, or one that does not look like it, or it is at another place, too.
        """
        thing = self._things[number]
        if thing is not _MISSING:
            return thing
        of, (kind, key), said = self._places[number]
        try:
            if kind == "root":
                thing = self._roots[key]
            elif kind == "module":
                thing = sys.modules[key]
            elif kind == "under":
                thing = dict.__getitem__(self[of], self[key])
            else:
                thing = _STEPS[kind](self[of], key)
        except (LookupError, AttributeError, TypeError, ValueError) as error:
            raise BypassCache(f"{kind} {key}: {error}") from None
        if described(thing) != said:
            raise BypassCache(f"{said} is {described(thing)} now")
        if self._numbers.setdefault(id(thing), number) != number:
            raise BypassCache("one object where there were two")
        self._things[number] = thing
        return thing


__all__ = ["Place", "SourceResolver", "SourceTable"]
