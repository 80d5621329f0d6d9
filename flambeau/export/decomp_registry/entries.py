"""The table of functions that are written out, and what their modules share."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..._tensor import Tensor
from ...dtypes import NARROW, dtype, float32
from ...ops import aten
from ...trees import tree_map

#: overload -> function
decomposition_table: dict[Any, Callable[..., Any]] = {}


def decomposes(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator that enters a function for overloads, `var.correction`; `default` may be left out."""
    def enter(function: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            operator, _, overload = name.partition(".")
            decomposition_table[getattr(getattr(aten, operator), overload or "default")] = function
        return function

    return enter


def in_float32(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that computes with float16 and bfloat16 in float32 and rounds its results."""
    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        narrow: list[dtype] = []

        def widened(x: Any) -> Any:
            if isinstance(x, Tensor) and x.dtype.numpy in NARROW:
                narrow.append(x.dtype)
                return x.to(float32)
            return x

        wide = tree_map(widened, (args, kwargs))
        result = function(*wide[0], **wide[1])
        return tree_map(lambda x: x.to(narrow[0]) if isinstance(x, Tensor) and x.dtype is float32 else x,
                        result) if narrow else result

    return run


def dims_of(x: Tensor, dim: Any) -> list[int]:
    """The dimensions that a reduction is over: all of them for None and an empty list."""
    chosen = [dim] if isinstance(dim, int) else list(dim or range(x.dim()))
    return [d % x.dim() if x.dim() else 0 for d in chosen]


__all__ = ["decomposes", "decomposition_table", "dims_of", "in_float32"]
