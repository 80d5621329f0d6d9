"""Large arrays indexed along one dimension, by kernels: elements taken, put and added.

Every function gives None where NumPy is to do it: there is no kernel, or an index is out of range, which NumPy's way
says in PyTorch's words.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ....codegen.indexing import indexing
from ....runtime.launch import Spec
from ..launching import Plan, Plans
from .copying import copied

ndarray = np.ndarray
#: characters of dtypes whose sums kernels round as NumPy does, one element after the other
_ADDED = "fdilq"
_plans = Plans()


def _fits(x: ndarray, index: ndarray) -> bool:
    return (x.__class__ is ndarray and index.__class__ is ndarray and x.dtype.itemsize in (1, 2, 4, 8)
            and not x.dtype.hasobject and x.dtype.isnative and index.dtype.char in "ilq")


def taken(x: ndarray, index: ndarray, dim: int, shape: tuple[int, ...], wrap: bool = False) -> ndarray | None:
    """A new array of this shape, with `x[p, but index[p] along dim]` at every place p.

    Args:
        x: of the result's shape, but for `dim`.
        index: integers, of a shape that broadcasts to the result's.
        wrap: whether -1 is the last.
    """
    if not _fits(x, index):
        return None
    out, flag = np.empty(shape, x.dtype), np.empty(2, np.int64)
    key = ("take", dim, wrap, x.dtype, index.dtype, shape, x.shape, x.strides, index.shape, index.strides)
    plan = _plans.found.get(key)
    if plan is None:
        specs = Spec.of(out), Spec.of(flag), Spec.of(x), Spec.of(index)
        plan = _plans.keep(key, Plan((), indexing.take(*specs, dim, wrap)))
    plan.run((out, flag, x, index))
    return None if flag[0] else out


def _put(out: ndarray, index: ndarray, source: ndarray, dim: int, op: str, fill: bool, wrap: bool) -> ndarray | None:
    flag = np.empty(2, np.int64)
    key = (op, dim, fill, wrap, out.dtype, index.dtype, out.shape, out.strides, source.shape, source.strides,
           index.shape, index.strides)
    plan = _plans.found.get(key)
    if plan is None:
        specs = Spec.of(out), Spec.of(flag), Spec.of(source), Spec.of(index)
        plan = _plans.keep(key, Plan((), indexing.put(*specs, dim, op, fill, wrap)))
    plan.run((out, flag, source, index))
    return None if flag[0] else out


def put(x: ndarray, index: ndarray, source: ndarray, dim: int, op: str) -> ndarray | None:
    """A copy of `x`, row by row, with the source put, or added, at every place p's `index[p]` along `dim`.

    Args:
        index: integers, of a shape that broadcasts to the source's.
        source: of the dtype of `x`, and of its shape or less, but for `dim`.
        op: "set" or "add".
    """
    if not _fits(x, index) or (op == "add" and x.dtype.char not in _ADDED):
        return None
    if x.size and not any(x.strides) and not any(x[(0,) * x.ndim].tobytes()) and all(
            n == m for d, (n, m) in enumerate(zip(x.shape, source.shape, strict=True)) if d != dim):
        return placed(index, source, dim, x.shape, op)  # zeros that are nowhere written out
    out = copied(x)
    part = out[tuple([slice(None) if d == dim else slice(n) for d, n in enumerate(source.shape)])]
    return None if _put(part, index, source, dim, op, False, False) is None else out


def placed(index: ndarray, source: ndarray, dim: int, shape: tuple[int, ...], op: str = "add",
           wrap: bool = False) -> ndarray | None:
    """Zeros of this shape, that of the source but for `dim`, with the source put, or added, where the index says."""
    if not _fits(source, index) or (op == "add" and source.dtype.char not in _ADDED):
        return None
    return _put(np.empty(shape, source.dtype), index, source, dim, op, True, wrap)


def along(index: Any, dim: int, rank: int) -> ndarray:
    """An index of one dimension as one along `dim` of arrays of so many dimensions."""
    found: ndarray = index.reshape((1,) * dim + (-1,) + (1,) * (rank - 1 - dim))
    return found


__all__ = ["along", "placed", "put", "taken"]
