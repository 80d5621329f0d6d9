"""Attributes of modules by path: `a.b.weight`."""

from __future__ import annotations

from typing import Any

import flambeau as torch


def _place(module: Any, field: str, value: Any) -> None:
    """Set an attribute; a tensor that is no parameter becomes a buffer."""
    if isinstance(value, torch.Tensor) and not isinstance(value, torch.nn.Parameter):
        module.register_buffer(field, value)
    else:
        setattr(module, field, value)


def _copy_attr(from_module: Any, to_module: Any, target: str) -> None:
    """Copy the attribute of a path; modules on the path that are missing are made."""
    *prefix, field = target.split(".")
    for name in prefix:
        source, found = getattr(from_module, name), getattr(to_module, name, None)
        if source is found:  # a parent has been copied, and all that it contains with it
            return
        if found is None:
            found = torch.nn.Module()
            setattr(to_module, name, found)
        from_module, to_module = source, found
    _place(to_module, field, getattr(from_module, field))


def _assign_attr(from_obj: Any, to_module: Any, target: str) -> None:
    """Set the attribute of a path; modules on the path that are missing are made."""
    *prefix, field = target.split(".")
    for name in prefix:
        found = getattr(to_module, name, None)
        if found is None:
            found = torch.nn.Module()
            setattr(to_module, name, found)
        to_module = found
    _place(to_module, field, from_obj)


def _get_attr_via_attr_list(model: Any, attr_list: list[str]) -> Any:
    if not attr_list:
        return model
    *prefix, field = attr_list
    for name in prefix:
        model = getattr(model, name, None)
        if model is None:
            raise AssertionError(f"Attribute '{name}' not found in model")
    return getattr(model, field)


def _get_attr(model: Any, attr_name: str) -> Any:
    return _get_attr_via_attr_list(model, attr_name.split("."))


def _del_attr(model: Any, attr_name: str) -> None:
    path = attr_name.split(".")
    delattr(_get_attr_via_attr_list(model, path[:-1]), path[-1])


def _has_attr(model: Any, attr_name: str) -> bool:
    missing = object()
    for name in attr_name.split("."):
        model = getattr(model, name, missing)
        if model is missing:
            return False
    return True


__all__: list[str] = []
