"""Containers of samples: rebuilt with converted elements, in a container of the same type where that is possible."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any


def is_namedtuple(value: Any) -> bool:
    """Whether a value is a named tuple."""
    return isinstance(value, tuple) and hasattr(value, "_fields")


def rebuild_mapping(like: Mapping[Any, Any], convert: Callable[[Any], Any]) -> Any:
    """A mapping of the type of `like`, with the value `convert(key)` for each of its keys.

    A mutable mapping may have attributes, and is copied; a type that cannot be made so becomes a dict.
    """
    try:
        if isinstance(like, MutableMapping):
            clone: Any = copy.copy(like)
            clone.update({key: convert(key) for key in like})
            return clone
        return type(like)({key: convert(key) for key in like})  # type: ignore[call-arg]
    except TypeError:
        return {key: convert(key) for key in like}


def rebuild_sequence(like: Sequence[Any], values: Sequence[Any], convert: Callable[[Any], Any]) -> Any:
    """A sequence of the type of `like` of the converted values.

    A mutable sequence may have attributes, and is copied; a type that cannot be made so becomes a list.
    """
    try:
        if isinstance(like, MutableSequence):
            clone: Any = copy.copy(like)
            for i, value in enumerate(values):
                clone[i] = convert(value)
            return clone
        return type(like)([convert(value) for value in values])  # type: ignore[call-arg]
    except TypeError:
        return [convert(value) for value in values]
