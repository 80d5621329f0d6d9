"""Nested state dicts as flat ones, whose names are paths joined by dots, and back."""

from __future__ import annotations

from typing import Any

from ._traverse import OBJ_PATH, set_element, traverse_state_dict
from .metadata import STATE_DICT_TYPE

FLATTEN_MAPPING = dict[str, OBJ_PATH]


def flatten_state_dict(state_dict: STATE_DICT_TYPE) -> tuple[STATE_DICT_TYPE, FLATTEN_MAPPING]:
    """The flat state dict, and the path of each of its names.

    Args:
        state_dict: dicts and lists in dicts.

    Raises:
        ValueError: two paths have the same name (PyTorch's text).

    >>> import flambeau as torch
    >>> from flambeau.distributed.checkpoint._nested_dict import flatten_state_dict
    >>> flatten_state_dict({"a": {"b": 1, "c": [2, 3]}})
    ({'a.b': 1, 'a.c': [2, 3]}, {'a.b': ('a', 'b'), 'a.c': ('a', 'c')})
    """
    flattened: STATE_DICT_TYPE = {}
    mappings: FLATTEN_MAPPING = {}

    def add(path: OBJ_PATH, value: Any) -> None:
        name = ".".join(map(str, path))
        if name in flattened:
            raise ValueError(f"duplicated flatten key {name}")
        flattened[name], mappings[name] = value, path

    traverse_state_dict(state_dict, add)
    return flattened, mappings


def unflatten_state_dict(state_dict: STATE_DICT_TYPE, mapping: FLATTEN_MAPPING) -> STATE_DICT_TYPE:
    """The nested state dict of a flat one.

    Args:
        state_dict: the flat state dict.
        mapping: the path of each of its names.
    """
    nested: STATE_DICT_TYPE = {}
    for key, value in state_dict.items():
        set_element(nested, mapping[key], value)
    return nested


__all__ = ["FLATTEN_MAPPING", "flatten_state_dict", "unflatten_state_dict"]
