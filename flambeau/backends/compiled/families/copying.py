"""Large arrays copied, filled, and cut by masks, by several threads, as bytes: nothing is computed."""

from __future__ import annotations

from functools import cache
from typing import Any, Literal

import numpy as np

from ....codegen.scalar.scalar_ir import BOOL, select, variable
from .. import room, room_like
from ..elementwise import Runner

#: what elements of so many bytes are moved as
_KINDS: dict[int, np.dtype] = {1: np.dtype(np.uint8), 2: np.dtype(np.uint16), 4: np.dtype(np.float32),
                               8: np.dtype(np.float64)}


@cache
def _mover(kind: np.dtype) -> Runner:
    return Runner([variable(0, kind)], [kind])


def copy(to: Any, source: Any) -> bool:
    """Write an array, stretched as needed, or a number over an array; whether that was done."""
    x: Any = source
    if x.__class__ is not np.ndarray:
        x = np.asarray(source, to.dtype if np.isscalar(source) else None)
    kind = None if to.dtype.hasobject or to.dtype != x.dtype else _KINDS.get(to.dtype.itemsize)
    if kind is None or to.__class__ is not np.ndarray or np.may_share_memory(to, x):
        return False
    _mover(kind).into([to.view(kind)], [x.view(kind)])
    return True


def copied(x: np.ndarray, order: Literal["C", "K"] = "C") -> np.ndarray:
    """A copy of an array: row by row, or in the order in which its elements lie."""
    found = room_like(x, x.dtype, order)
    if not copy(found, x):
        found[...] = x
    return found


def zeros(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """An array of zeros, in memory that is there already if there is some."""
    found = room(shape, dtype)
    return found if copy(found, np.zeros((), dtype)) else np.zeros(shape, dtype)


@cache
def _filler(kind: np.dtype) -> Runner:
    return Runner([select(variable(1, BOOL), variable(2, kind), variable(0, kind))], [kind, BOOL, kind])


def filled(out: np.ndarray, x: np.ndarray, mask: np.ndarray, value: np.ndarray) -> bool:
    """Write `x`, and `value` where the mask holds, over a new array that both stretch to; whether that was done.

    Args:
        value: of the dtype of `x`, without dimensions.
    """
    kind = None if x.dtype.hasobject or value.dtype != x.dtype else _KINDS.get(x.dtype.itemsize)
    if kind is None:
        return False
    _filler(kind).into([out.view(kind)], [x.view(kind), mask, value.view(kind)])
    return True


__all__ = ["copied", "copy", "filled", "zeros"]
