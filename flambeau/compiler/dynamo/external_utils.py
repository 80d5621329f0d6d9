"""`torch._dynamo.external_utils`: helpers that programs import from PyTorch's tracer."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..api import is_compiling


def wrap_inline(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A function that calls another one: what it does is traced.

    >>> wrap_inline(len)([1, 2])
    2
    """
    @functools.wraps(fn)
    def inner(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs)

    return inner


def normalize_as_list(x: Any) -> list[Any]:
    """A tuple or list as a list, another value as a list of one.

    >>> normalize_as_list((1, 2)), normalize_as_list(3)
    ([1, 2], [3])
    """
    return list(x) if isinstance(x, (tuple, list)) else [x]


__all__ = ["is_compiling", "normalize_as_list", "wrap_inline"]
