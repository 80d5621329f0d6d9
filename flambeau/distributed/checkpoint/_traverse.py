"""Nested state dicts as paths: keys of dicts are strings, positions in lists integers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..._tensor import Tensor
from .metadata import STATE_DICT_TYPE

PATH_ITEM = str | int
OBJ_PATH = tuple[PATH_ITEM, ...]

__all__ = ["get_element", "set_element", "traverse_state_dict"]


def _keep_visiting_tensors(value: Any) -> bool:
    return isinstance(value, Tensor)


def traverse_state_dict(state_dict: STATE_DICT_TYPE, visitor: Callable[[OBJ_PATH, Any], None],
                        keep_traversing: Callable[[Any], bool] = _keep_visiting_tensors) -> None:
    """Visit all values of a nested state dict, in order.

    Dicts are entered, and lists that have a dict or a value of interest in them, however deep.

    Args:
        state_dict: the state dict.
        visitor: is called with each path and value.
        keep_traversing: which values make a list be entered; tensors.
    """
    def is_entered(value: Any) -> bool:
        if isinstance(value, Mapping):
            return True
        return isinstance(value, list) and any(is_entered(each) or keep_traversing(each) for each in value)

    pending: list[tuple[OBJ_PATH, Any]] = []
    pending += [((str(key),), value) for key, value in state_dict.items()][::-1]
    while pending:
        path, value = pending.pop()
        if not is_entered(value):
            visitor(path, value)
        elif isinstance(value, Mapping):
            pending += [((*path, str(key)), each) for key, each in value.items()][::-1]
        else:
            pending += [((*path, i), each) for i, each in enumerate(value)][::-1]


def set_element(root_dict: STATE_DICT_TYPE, path: OBJ_PATH, value: Any) -> None:
    """Put a value at a path, with the dicts and lists that it needs.

    Args:
        root_dict: the outermost dict.
        path: keys and positions.
        value: the value.
    """
    place: Any = root_dict
    for key, following in zip(path, [*path[1:], None], strict=True):
        if isinstance(key, int):
            place += [None] * (key + 1 - len(place))
        if following is None:
            place[key] = value
            return
        inner = place.get(key) if isinstance(place, Mapping) else place[key]
        if inner is None:
            inner = place[key] = [] if isinstance(following, int) else {}
        place = inner


def get_element(root_dict: STATE_DICT_TYPE, path: OBJ_PATH, default_value: Any = None) -> Any:
    """The value at a path.

    Args:
        root_dict: the outermost dict.
        path: keys and positions.
        default_value: the result if there is none.
    """
    place: Any = root_dict
    for key in path:
        if isinstance(key, int):
            if not isinstance(place, list) or len(place) <= key:
                return default_value
        elif not isinstance(place, Mapping) or key not in place:
            return default_value
        place = place[key]
    return place
