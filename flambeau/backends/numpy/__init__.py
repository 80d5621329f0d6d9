"""NumPy's namespace under flambeau's names: the primitives that the operators' lines rest on.

`xp.<operator>` is the primitive of that name here where there is one, else the operator's
own declared forward, run over this namespace. Parameters are spelt as PyTorch spells them
(`dim`, `keepdim`). Arrays stay arrays: 0-d results may be NumPy scalars, which the caller
wraps once.
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
    scan,
    softmax,
    summation,
    views,
)

FAMILIES = (elementwise, summation, reduction, scan, softmax, ordering, memory, views, rearranging, padding, joining,
            indexing, linalg, neural, recurrent)


class ArrayNamespace:
    """Operators on arrays: primitives first, then whatever is declared."""

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
    """What NumPy offers, by flambeau's names."""
    found: dict[str, Callable[..., Any]] = {}
    for family in FAMILIES:
        found.update(family.PRIMITIVES)
    return found
