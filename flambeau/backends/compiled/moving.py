"""Large arrays copied, filled, and cut by masks, by several threads, as bytes: nothing is computed."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from ...jit.expression import BOOL, compare, constant, select, variable
from ..errstate import run_quietly
from .elementwise import Runner
from .running import made, strides_of

#: what elements of so many bytes are moved as
_KINDS: dict[int, np.dtype] = {1: np.dtype(np.uint8), 4: np.dtype(np.float32), 8: np.dtype(np.float64)}

#: numbers of rows and columns, and how many there may be
_PLACE, _MOST = np.dtype(np.int32), 1 << 30


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


def copied(x: np.ndarray) -> np.ndarray:
    """A copy of an array that lies row by row."""
    found: np.ndarray = run_quietly(np.empty, x.shape, x.dtype)
    return found if copy(found, x) else x.copy()


def zeros(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """An array of zeros, in memory that is there already if there is some."""
    found: np.ndarray = run_quietly(np.empty, shape, dtype)
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


@cache
def _cutter(kind: np.dtype, op: str) -> Runner:
    kept = compare(op, variable(2, _PLACE), variable(1, _PLACE))
    return Runner([select(kept, variable(0, kind), constant(0, kind))], [kind, _PLACE, _PLACE])


def triangle(x: np.ndarray, diagonal: int, upper: bool) -> np.ndarray | None:
    """Matrices with zeros below a diagonal, or above it; None: NumPy is to do that. They lie as NumPy's do."""
    kind = None if x.dtype.hasobject else _KINDS.get(x.dtype.itemsize)
    rows, columns = x.shape[-2:]
    if kind is None or max(rows, columns) >= _MOST:
        return None
    strides = None
    if not x.flags.c_contiguous:
        strides = strides_of(x.shape, (np.empty((rows, columns), np.bool_), x), x.dtype)
    out = made(x.shape, x.dtype, strides)
    first = np.arange(rows, dtype=_PLACE) + _PLACE.type(min(max(diagonal, -rows), columns))
    _cutter(kind, "ge" if upper else "le").into([out.view(kind)], [x.view(kind), first[:, None],
                                                                   np.arange(columns, dtype=_PLACE)])
    return out


__all__ = ["copied", "copy", "filled", "triangle", "zeros"]
