"""Sources: how an object is reached from a function and its arguments, so that another process finds its counterpart.

A source is a chain of steps: attribute, container entry, dict entry under a key that is itself an object, class member.
When it is resolved, the object must have the same fingerprint as the original, and two sources of different objects
must not lead to one.
"""

from __future__ import annotations

import functools
import sys
import types
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from .fingerprints import BypassCache, is_compiled, is_value, library_name, object_fingerprint

#: the largest containers whose entries are visited
MAX_ENTRIES = 10_000
#: the largest number of objects that are visited
MAX_OBJECTS = 50_000
#: (kind of `_STEPS`, its operand)
Step = tuple[str, Any]
_MISSING: Any = object()


class Source(NamedTuple):
    """The last step of a source, and the source from which it is taken.

    Attributes:
        base: the number of that source; -1 for a root.
        step: the step.
        fingerprint: the fingerprint of the object.
    """

    base: int
    step: Step
    fingerprint: str


# ----- steps --------------------------------------------------------------------------------


def _member(cls: type, name: str) -> Any:
    return cls.__dict__[name]


def _entry(container: Any, key: Any) -> Any:
    return dict.__getitem__(container, key) if isinstance(container, dict) else container[key]


#: by kind of step, the function that resolves it
_STEPS: dict[str, Callable[[Any, Any], Any]] = {
    "attribute": getattr, "entry": _entry, "member": _member, "class": lambda x, _: type(x)}


def _attributes_of(thing: Any) -> tuple[str, ...]:
    """Return the attributes of an object that are always visited."""
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
    """Yield the code objects of a class member."""
    for f in (member, getattr(member, "__func__", None), getattr(member, "fget", None), getattr(member, "fset", None)):
        if isinstance(f, types.FunctionType):
            yield f.__code__


class SourceTable:
    """The objects that are reachable from the roots, each with a shortest source (breadth-first search).

    Args:
        roots: the function and the arguments that are not tensors.
        names: by identity of a module's dict, a class or an object, the attribute names that are followed.
        codes: identities of code objects; class members with such code are followed.

    Attributes:
        objects: the objects, by number.
        is_complete: whether no limit was exceeded.
    """

    def __init__(self, roots: Sequence[Any], names: dict[int, set[str]], codes: Collection[int]) -> None:
        self._names, self._codes = names, codes
        self.objects: list[Any] = []
        self._steps: list[tuple[int, Step]] = []
        self._numbers: dict[int, int] = {}
        self.is_complete = True
        deferred: list[tuple[int, Any, Any]] = []  # dict entries whose keys are objects
        for i, root in enumerate(roots):
            self._add(-1, ("root", i), root)
        for module in [*sys.modules.values()]:
            if id(getattr(module, "__dict__", None)) in names:
                self._add(-1, ("module", module.__name__), module)
        done = 0
        while done < len(self.objects) or deferred:
            if len(self.objects) > MAX_OBJECTS:
                self.is_complete = False
                break
            if done == len(self.objects):
                at, key, value = deferred.pop(0)
                if id(key) in self._numbers:
                    self._add(at, ("under", id(key)), value)
                continue
            for step, child in self._children(self.objects[done]):
                if step[0] == "under":
                    deferred.append((done, *child))
                else:
                    self._add(done, step, child)
            done += 1

    def _add(self, at: int, step: Step, thing: Any) -> None:
        if id(thing) not in self._numbers and not is_value(thing) and library_name(thing) is None and not (
                type(thing) is tuple and not thing):
            self._numbers[id(thing)] = len(self.objects)
            self.objects.append(thing)
            self._steps.append((at, step))

    def _children(self, thing: Any) -> Iterator[tuple[Step, Any]]:
        if isinstance(thing, np.ndarray):
            return
        if isinstance(thing, (list, tuple, deque)):
            if len(thing) > MAX_ENTRIES:
                self.is_complete = False
                return
            for i, x in enumerate(thing):
                yield ("entry", i), x
            if type(thing) in (list, tuple):
                return
        elif isinstance(thing, dict):
            if "__builtins__" in thing:  # a module's globals
                for name in sorted(self._names.get(id(thing), ())):
                    if name in thing:
                        yield ("entry", name), thing[name]
                return
            if len(thing) > MAX_ENTRIES:
                self.is_complete = False
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

    def functions_with_code(self, code: types.CodeType) -> list[int]:
        """Return the numbers of the functions with this code object."""
        return [at for at, x in enumerate(self.objects) if isinstance(x, types.FunctionType) and x.__code__ is code]

    def __contains__(self, thing: Any) -> bool:
        return id(thing) in self._numbers

    def number(self, thing: Any) -> int:
        """Return the number of an object.

        Raises:
            BypassCache: it has no source.
        """
        number = self._numbers.get(id(thing))
        if number is None:
            raise BypassCache(f"a {type(thing).__module__}.{type(thing).__qualname__} that no name leads to")
        return number

    def object_with_id(self, identity: int) -> Any:
        """Return the object of this identity.

        Raises:
            BypassCache: it has no source.
        """
        number = self._numbers.get(identity)
        if number is None:
            raise BypassCache("a class that no name leads to")
        return self.objects[number]

    def sources(self, numbers: Iterable[int]) -> tuple[list[Source], dict[int, int]]:
        """Return the sources of objects and of all that they are based on, and by object number the index there."""
        needed: set[int] = set()
        stack = list(numbers)
        while stack:
            at = stack.pop()
            if at >= 0 and at not in needed:
                needed.add(at)
                base, (kind, key) = self._steps[at]
                stack.append(base)
                if kind == "under":
                    stack.append(self._numbers[key])
        order = {at: i for i, at in enumerate(sorted(needed))}
        sources = []
        for at in order:
            base, (kind, key) = self._steps[at]
            step = (kind, order[self._numbers[key]]) if kind == "under" else (kind, key)
            sources.append(Source(-1 if base < 0 else order[base], step, object_fingerprint(self.objects[at])))
        return sources, order


class SourceResolver:
    """Resolves sources in this process, on demand.

    Args:
        sources: the sources.
        roots: the roots in this process.
    """

    def __init__(self, sources: Sequence[Source], roots: Sequence[Any]) -> None:
        self._sources, self._roots = sources, roots
        self._objects: list[Any] = [_MISSING] * len(sources)
        self._numbers: dict[int, int] = {}

    def __getitem__(self, number: int) -> Any:
        """Return the object of a source.

        Raises:
            BypassCache: there is none, its fingerprint differs, or another source leads to it too.
        """
        thing = self._objects[number]
        if thing is not _MISSING:
            return thing
        base, (kind, key), fingerprint = self._sources[number]
        try:
            if kind == "root":
                thing = self._roots[key]
            elif kind == "module":
                thing = sys.modules[key]
            elif kind == "under":
                thing = dict.__getitem__(self[base], self[key])
            else:
                thing = _STEPS[kind](self[base], key)
        except (LookupError, AttributeError, TypeError, ValueError) as error:
            raise BypassCache(f"{kind} {key}: {error}") from None
        if object_fingerprint(thing) != fingerprint:
            raise BypassCache(f"{fingerprint} is {object_fingerprint(thing)} now")
        if self._numbers.setdefault(id(thing), number) != number:
            raise BypassCache("one object where there were two")
        self._objects[number] = thing
        return thing


__all__ = ["Source", "SourceResolver", "SourceTable"]
