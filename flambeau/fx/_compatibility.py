"""Marks of backward compatibility: which names of `torch.fx` programs may rely on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

_T = TypeVar("_T")

#: the marked objects, as keys
_BACK_COMPAT_OBJECTS: dict[Any, None] = {}
_MARKED_WITH_COMPATIBILITY: dict[Any, None] = {}


def compatibility(is_backward_compatible: bool) -> Callable[[_T], _T]:
    """A decorator that records whether a name is guaranteed to stay as it is."""
    def mark(obj: _T) -> _T:
        if is_backward_compatible:
            _BACK_COMPAT_OBJECTS.setdefault(obj)
        _MARKED_WITH_COMPATIBILITY.setdefault(obj)
        return obj

    return mark
