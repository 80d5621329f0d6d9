"""Containers in results: a replay makes them anew, so they may not be known elsewhere."""

from __future__ import annotations

import sys
import types
from collections import OrderedDict, defaultdict, deque
from collections.abc import Collection, Iterator
from typing import Any

import numpy as np

from ..._tensor import Tensor
from ...config import module_of
from ...trees import container_functions, is_container
from ..guards.object_kinds import CONSTANT_TYPES, PACKAGE

_VALUES = (*CONSTANT_TYPES, Tensor, range, slice, np.generic, np.dtype, frozenset, type, types.FunctionType,
           types.BuiltinFunctionType, types.ModuleType, types.CodeType)
_DICTIONARIES = (dict, OrderedDict, defaultdict)


def held_elsewhere(result: Any, recorded: Collection[int]) -> str | None:
    """Return why a replay cannot return something like a part's result; None if it can.

    A mutable container must have no other owner, since a replay returns another one; an object that is neither a
    tensor nor a constant must have one, since a replay returns the same.

    Args:
        result: what the part returned, which one variable of the caller holds.
        recorded: identities of objects that the frame hook refers to.
    """
    count = sys.getrefcount(result) - (id(result) in recorded)  # before the call, which refers to it too
    return _check(result, count > _HELD_BY_CALLER, recorded)


def _check(x: Any, is_shared: bool, recorded: Collection[int]) -> str | None:
    if isinstance(x, tuple):
        entries: Any = x
    elif not is_container(x):
        if isinstance(x, _VALUES) or module_of(type(x)).partition(".")[0] == PACKAGE or is_shared:
            return None
        return f"a new object of class {type(x).__name__}"
    elif is_shared or type(x) not in (list, deque, *_DICTIONARIES):
        return f"a {type(x).__name__} that other objects may refer to"
    else:
        entries = x.values() if type(x) in _DICTIONARIES else x
    for each in entries:
        count = sys.getrefcount(each) - (id(each) in recorded)
        found = _check(each, count > _HELD_BY_CONTAINER, recorded)
        if found is not None:
            return found
    return None


def shared_containers(result: Any, recorded: Collection[int]) -> list[Any]:
    """Return the mutable containers in a result that other objects refer to, too.

    Args:
        result: what a function returned, which one variable of the caller holds.
        recorded: identities of objects that the frame hook refers to.
    """
    count = sys.getrefcount(result) - (id(result) in recorded)
    found: list[Any] = []
    _add_shared(result, count > _HELD_BY_CALLER, recorded, found)
    return found


def _add_shared(x: Any, is_shared: bool, recorded: Collection[int], found: list[Any]) -> None:
    if isinstance(x, tuple):
        entries: Any = x
    elif not is_container(x):
        return
    elif is_shared or type(x) not in (list, deque, *_DICTIONARIES):
        found.append(x)
        return
    else:
        entries = x.values() if type(x) in _DICTIONARIES else x
    for each in entries:
        count = sys.getrefcount(each) - (id(each) in recorded)
        _add_shared(each, count > _HELD_BY_CONTAINER, recorded, found)


def mutable_containers(x: Any) -> Iterator[int]:
    """Yield the identities of the mutable containers in a tree.

    >>> inner = []
    >>> list(mutable_containers((inner, 1))) == [id(inner)]
    True
    """
    if is_container(x):
        if not isinstance(x, tuple):
            yield id(x)
        for each in x.values() if isinstance(x, dict) else container_functions(type(x))[0](x)[0] if (
                not isinstance(x, tuple)) else x:
            yield from mutable_containers(each)


def _held_by_caller(result: Any) -> int:
    return sys.getrefcount(result)


def _references() -> tuple[int, int]:
    """Return the counts of an object that only the caller holds, and of one in a container, as they are taken above."""
    result: list[Any] = [[]]
    held = _held_by_caller(result)
    for each in result:
        count = sys.getrefcount(each)
        return held, count
    raise AssertionError


_HELD_BY_CALLER, _HELD_BY_CONTAINER = _references()

__all__ = ["held_elsewhere", "mutable_containers", "shared_containers"]
