"""Marks of dimensions (`torch._dynamo.mark_dynamic`), and the names that PyTorch gives to arguments."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ..._tensor import Tensor
from ...nn import Module

#: attributes of tensors: dimensions that vary, that vary if possible, and that do not
DYNAMIC, WEAKLY_DYNAMIC, STATIC = (
    "_dynamo_dynamic_indices", "_dynamo_weak_dynamic_indices", "_dynamo_static_indices")


def marked_dimensions(tensors: Sequence[Any], kind: str) -> list[frozenset[int]]:
    """Return, by tensor, the dimensions with a mark."""
    return [frozenset([d % x.ndim for d in x.__dict__.get(kind, ()) if -x.ndim <= d < x.ndim]) for x in tensors]


def tensor_names(function: Callable[..., Any], args: tuple, kwargs: dict[str, Any]) -> list[str]:
    """Return the names of the tensors among arguments.

    >>> import flambeau as torch
    >>> tensor_names(lambda x, many: x, (torch.ones(2), [1, torch.ones(2)]), {})
    ["L['x']", "L['many'][1]"]
    """
    try:
        bound = inspect.signature(function.forward if isinstance(function, Module) else function).bind(*args, **kwargs)
        named = bound.arguments
    except (TypeError, ValueError):
        named = {**{f"args[{i}]": x for i, x in enumerate(args)}, **kwargs}
    return [name for key, x in named.items() for name in _tensors_in(x, f"L[{key!r}]")]


def _tensors_in(x: Any, name: str) -> Iterator[str]:
    if isinstance(x, Tensor):
        yield name
    elif isinstance(x, dict):
        for key, each in x.items():
            yield from _tensors_in(each, f"{name}[{key!r}]")
    elif isinstance(x, (list, tuple)):
        for i, each in enumerate(x):
            yield from _tensors_in(each, f"{name}[{i}]")


__all__ = ["DYNAMIC", "STATIC", "WEAKLY_DYNAMIC", "marked_dimensions", "tensor_names"]
