"""Operators on large arrays: their own declarations, traced over expressions, run as compiled kernels.

`sizes` says which arrays are large. The rest is imported when the first one is met, and needs `jit.available()`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from .sizes import MOVES

if TYPE_CHECKING:
    from types import ModuleType

    import numpy as np

    from .operators import Operators

_operators: list[Operators | None] = []
_reduce: list[Callable[..., Any] | None] = []
_update: list[Callable[..., bool] | None] = []
_moving: list[ModuleType | None] = []


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


def reduced(ops: Sequence[str], of: str, arrays: Sequence[Any], dim: Any, keepdim: bool) -> Any:
    """Reductions of large arrays by their kernel (`reductions.reduced`); None: NumPy is to compute them."""
    if not _reduce:
        if ready():
            from .reductions import reduced as reduce

            _reduce.append(reduce)
        else:
            _reduce.append(None)
    reduce_them = _reduce[0]
    return None if reduce_them is None else reduce_them(ops, of, arrays, dim, keepdim)


def update(rule: Callable[..., None], arrays: Sequence[Any], scalars: Sequence[Any]) -> bool:
    """Run an optimizer's rule on large arrays by its kernel (`updates.update`); whether there is one."""
    if not _update:
        if ready():
            from .updates import update as run

            _update.append(run)
        else:
            _update.append(None)
    run_it = _update[0]
    return run_it is not None and run_it(rule, arrays, scalars)


def mover(elements: int) -> Any:
    """What copies and fills arrays of so many elements (`moving`); None: NumPy is to do that."""
    if elements <= MOVES[0]:
        return None
    if not _moving:
        if ready():
            from . import moving as found

            _moving.append(found)
        else:
            _moving.append(None)
    return _moving[0]


def copy(to: np.ndarray, source: Any) -> None:
    """Write an array or a number over an array."""
    by = mover(to.size)
    if by is None or not by.copy(to, source):
        to[...] = source


__all__ = ["copy", "kernels_of", "mover", "ready", "reduced", "update"]
