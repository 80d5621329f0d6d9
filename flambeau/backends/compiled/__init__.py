"""Operators on large arrays: their own declarations, traced over expressions, run as compiled kernels.

`sizes` says which arrays are large. The rest is imported when the first one is met, and needs `jit.available()`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from .sizes import MOVES

if TYPE_CHECKING:
    import numpy as np

    from .operators import Operators

_operators: list[Operators | None] = []


def ready() -> bool:
    """Whether kernels can be compiled here; large arrays' memory is kept from then on."""
    from ... import jit
    from .sizes import MET, SINGLE_UPDATES

    MET[0] = True
    if not jit.available():
        return False
    from .allocator import allocator
    from .updates import fuses

    allocator()
    if fuses():
        SINGLE_UPDATES[0] = min(SINGLE_UPDATES[0], 0)
    return True


def kernels_of(registry: dict[str, Any]) -> Operators | None:
    """The declared operators' kernels, made ready when first asked for; None where there are none.

    Args:
        registry: the operators by name.
    """
    if not _operators:
        if ready():
            from .operators import Operators

            _operators.append(Operators(registry))
        else:
            _operators.append(None)
    return _operators[0]


@cache
def _module(name: str) -> Any:
    """A module of this package, made ready when first asked for; None where there are no kernels."""
    return import_module(f"{__name__}.{name}") if ready() else None


def reduced(ops: Sequence[str], of: str, arrays: Sequence[Any], dim: Any, keepdim: bool) -> Any:
    """Reductions of large arrays by their kernel (`reductions.reduced`); None: NumPy is to compute them."""
    found = _module("reductions")
    return None if found is None else found.reduced(ops, of, arrays, dim, keepdim)


def scanned(name: str, arrays: Sequence[Any], dim: int, back: bool = False) -> Any:
    """Scans of large arrays by their kernel (`scanning.scanned`); None: NumPy is to compute them."""
    found = _module("scanning")
    return None if found is None else found.scanned(name, arrays, dim, back)


def best(rows: Any, count: int, largest: bool) -> Any:
    """Where the best elements of large arrays' rows are (`selecting.best`); None: NumPy is to find them."""
    found = _module("selecting")
    return None if found is None else found.best(rows, count, largest)


def ordered(rows: Any, back: bool) -> Any:
    """Large arrays' rows in order (`selecting.ordered`); None: NumPy is to sort them."""
    found = _module("selecting")
    return None if found is None else found.ordered(rows, back)


def update(rule: Callable[..., None], arrays: list[Any], missing: int, scalars: tuple[Any, ...],
           row_major: bool) -> bool:
    """Run an optimizer's rule on large arrays by its kernel (`updates.update`); whether there is one."""
    found = _module("updates")
    return found is not None and found.update(rule, arrays, missing, scalars, row_major)


def mover() -> Any:
    """What copies and fills large arrays, of more than `MOVES` elements (`moving`); None: NumPy is to do that."""
    return _module("moving")


def indexer() -> Any:
    """What indexes large arrays, of more than `INDEXED` elements (`indexing`); None: NumPy is to do that."""
    return _module("indexing")


def copy(to: np.ndarray, source: Any) -> None:
    """Write an array or a number over an array."""
    by = mover() if to.size > MOVES[0] else None
    if by is None or not by.copy(to, source):
        to[...] = source


__all__ = ["best", "copy", "indexer", "kernels_of", "mover", "ordered", "ready", "reduced", "scanned", "update"]
