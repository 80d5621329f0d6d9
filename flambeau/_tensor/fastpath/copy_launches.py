"""Launches that copy bytes: joins of arrays, and results that are the same in every call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np

from ... import codegen
from ...runtime.filling import Filling, NewArray, with_filling

ndarray = np.ndarray
empty, arange = np.empty, np.arange
#: the most elements of a result, of one that is joined, and the most bytes of one that is kept
_MOST, _MOST_JOINED, _MOST_KEPT = 16384, 131072, 1 << 15
#: the least elements of a run, in the mean, that is copied at once
_LONG_RUN = 6


def join_launch(join: Callable[[list[ndarray]], Any], arrays: Sequence[ndarray], result: ndarray) -> Any:
    """The launch of a join of arrays of one dtype with a row-major result; None where it copies no blocks.

    Args:
        join: gives the result for a list of arrays of these shapes.
        result: of `arrays`.
    """
    if not codegen.available() or not 0 < result.size <= _MOST_JOINED or not _is_row_major(result):
        return None
    if result.size != sum(a.size for a in arrays) or any(a.dtype is not result.dtype or not a.size for a in arrays):
        return None
    starts = np.cumsum([0, *[a.size for a in arrays]])
    order = np.asarray(join([arange(start, start + a.size).reshape(a.shape)
                             for start, a in zip(starts, arrays, strict=False)]))
    if order.shape != result.shape:
        return None
    rounds = _rounds(order, starts)
    if rounds is None:
        return None
    sizes = [_block(a, rounds) for a in arrays]
    if None in sizes:
        return None
    from ...codegen.indexing import joined_blocks

    copy = joined_blocks.function(rounds, [each for each in sizes if each is not None])
    shape, dtype = result.shape, result.dtype
    launch = with_filling(lambda *given: copy(empty(shape, dtype), *given),
                          Filling(copy, (NewArray(shape, dtype), *range(len(arrays)))))
    return launch if launch(*arrays).tobytes() == result.tobytes() else None


def _is_row_major(a: ndarray) -> bool:
    return a.strides == empty(a.shape, a.dtype).strides


def _rounds(order: ndarray, starts: ndarray) -> int | None:
    """In how many rounds elements follow one another that are numbered array by array; None for another order."""
    shape, sizes = order.shape, np.diff(starts)
    for axis in range(len(shape) + 1):
        rounds = prod(shape[:axis])
        if not (sizes % rounds).any():
            rows = [arange(start, stop).reshape(rounds, -1) for start, stop in pairwise(starts)]
            if np.array_equal(np.concatenate(rows, 1).reshape(shape), order):
                return rounds
    return None


def _block(a: ndarray, rounds: int) -> tuple[int, int] | None:
    """The bytes of an array's block and of the way to its next one; None where blocks are not contiguous."""
    places = _offsets(a).reshape(rounds, -1)
    step = int(places[1, 0]) if rounds > 1 else 0
    size = places.shape[1]
    if not np.array_equal(places, arange(rounds)[:, None] * step + arange(size) * a.itemsize):
        return None
    return size * a.itemsize, step


def constant_launch(result: ndarray) -> Any:
    """The launch without arrays that gives a copy of a small row-major array; None for any other one."""
    if not codegen.available() or not 0 < result.nbytes <= _MOST_KEPT or not _is_row_major(result):
        return None
    from ...codegen.indexing import joined_blocks

    kept = result.copy()
    copy = joined_blocks.function(1, [(kept.nbytes, 0)])
    shape, dtype = kept.shape, kept.dtype
    return with_filling(lambda *_: copy(empty(shape, dtype), kept), Filling(copy, (NewArray(shape, dtype), [kept])))


def _offsets(a: ndarray) -> ndarray:
    """The bytes from an array's first element to each one."""
    places = np.zeros((), np.int64)
    for n, stride in zip(a.shape, a.strides, strict=True):
        places = places[..., None] + arange(n) * stride
    return places


def picking_launch(a: ndarray, index: ndarray) -> Any:
    """The launch that gives elements of an array in another order; None where there is none.

    Args:
        index: the flat positions of the result's elements, in its shape; negative ones stand for 0.
    """
    from ...codegen.indexing import picked_elements

    if not codegen.available() or not a.size or not 0 < index.size <= _MOST or (
            a.itemsize not in picked_elements.SIZES) or min(a.strides, default=0) < 0:
        return None
    flat = np.ascontiguousarray(index, np.int64).reshape(-1)
    places = np.where(flat < 0, -1, _offsets(a).reshape(-1)[flat])
    empty_place = places < 0
    follows = (np.diff(places) == np.where(empty_place[1:], 0, a.itemsize)) & (empty_place[1:] == empty_place[:-1])
    starts = np.concatenate(([0], np.flatnonzero(~follows) + 1))
    shape, dtype = index.shape, a.dtype
    if len(starts) <= picked_elements.RUNS and _LONG_RUN * len(starts) <= flat.size:
        sizes = np.diff(starts, append=flat.size) * a.itemsize
        places = np.ascontiguousarray(np.stack([places[starts], sizes], 1))
        pick = picked_elements.runs(places)
    elif flat.size <= picked_elements.MOST:
        pick = picked_elements.function(a.itemsize, places)
    else:
        return None
    return with_filling(lambda x, _places=places: pick(empty(shape, dtype), x),
                        Filling(pick, (NewArray(shape, dtype), 0), places))


def empty_launch(result: ndarray) -> Any:
    """The launch that gives uninitialised memory; None for what is not row-major, or large."""
    if not codegen.available() or not 0 < result.size <= _MOST or not _is_row_major(result):
        return None
    from ...codegen.indexing import joined_blocks

    leave = joined_blocks.function(0, ())
    shape, dtype = result.shape, result.dtype
    return with_filling(lambda *_: empty(shape, dtype), Filling(leave, (NewArray(shape, dtype),)))


__all__ = ["constant_launch", "empty_launch", "join_launch", "picking_launch"]
