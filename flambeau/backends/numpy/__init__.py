"""NumPy primitives: the functions that operator declarations call as `xp.<name>` on arrays.

`ArrayNamespace` is `xp` for arrays. An attribute is the primitive of that name or, where there is none, the declared
operator's forward over this namespace. Parameters have PyTorch's names (`dim`, `keepdim`); a primitive named after a
declared operator takes the operator's parameters. 0-d results may be NumPy scalars; the tensor layer wraps them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from . import (
    elementwise,
    indexing,
    joining,
    linalg,
    memory,
    neural,
    ordering,
    padding,
    rearranging,
    recurrent,
    reduction,
    resampling,
    scan,
    segments,
    softmax,
    spectral,
    summation,
    views,
)

FAMILIES = (elementwise, summation, reduction, scan, softmax, ordering, memory, views, rearranging, padding, joining,
            indexing, linalg, neural, recurrent, resampling, segments, spectral)


class ArrayNamespace:
    """`xp` over arrays: the primitives, then the declared operators."""

    def __init__(self, primitives: dict[str, Callable[..., Any]], registry: dict[str, Any]) -> None:
        self.__dict__.update(primitives)
        self._registry = registry

    def __getattr__(self, name: str) -> Callable[..., Any]:
        op = self._registry.get(name)
        if op is None:
            raise AttributeError(f"the array namespace has no operator {name!r}")
        bound: Any = op.forward
        if op.takes_xp:
            bound = partial(op.forward, self)
            bound.__name__ = name
        setattr(self, name, bound)
        return bound


def primitives() -> dict[str, Callable[..., Any]]:
    """Return all primitives by name."""
    result: dict[str, Callable[..., Any]] = {}
    for family in FAMILIES:
        result.update(family.PRIMITIVES)
    return result
