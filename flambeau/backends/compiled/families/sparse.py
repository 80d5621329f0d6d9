"""Kernels of products of sparse and dense matrices.

Every function returns None where NumPy has to compute the result: the dtype has no kernel, or an index is out of
range.
"""

from __future__ import annotations

import numpy as np

from ....codegen.sparse import products
from .. import empty_array
from ..launching import Plan, PlanCache

ndarray = np.ndarray
_DTYPES = (np.dtype(np.float32), np.dtype(np.float64))
_INDICES = (np.dtype(np.int32), np.dtype(np.int64))
_plans = PlanCache()


def _with_contiguous_rows(x: ndarray) -> ndarray:
    """A matrix (or vector: one column) whose rows are contiguous."""
    x = x if x.ndim == 2 else x[:, None]
    return x if x.shape[1] < 2 or x.strides[1] == x.itemsize else np.ascontiguousarray(x)


def _run(kind: str, shape: tuple[int, ...], outer: ndarray, inner: ndarray, counts: tuple[int, int], compressed: bool,
         first: ndarray, second: ndarray) -> ndarray | None:
    dtype, index = second.dtype, outer.dtype
    is_sample = kind == "sample"
    if (dtype not in _DTYPES or first.dtype != dtype or index not in _INDICES or inner.dtype != index
            or min(counts) < 1 or second.shape[1] == 0
            or outer.size != (counts[0] + 1 if compressed else inner.size)
            or second.shape[0] != counts[kind != "scatter"]
            or first.shape != ((counts[0], second.shape[1]) if is_sample else inner.shape)
            or not all(x.__class__ is ndarray for x in (outer, inner, first, second))):
        return None
    outer, inner = np.ascontiguousarray(outer), np.ascontiguousarray(inner)
    strides = first.strides[0] if is_sample else 0, second.strides[0]
    key = kind, dtype, index, counts, compressed, inner.size, second.shape[1], strides
    plan = _plans.plans.get(key)
    if plan is None:
        plan = _plans.insert(key, Plan((), products.launches(kind, dtype, index, compressed, *counts, inner.size,
                                                             second.shape[1], strides)))
    out, flag = empty_array(shape, dtype), np.zeros(1, np.int64)
    plan.run((out, flag, outer, inner, first if is_sample else np.ascontiguousarray(first), second))
    return None if flag[0] else out


def gather(outer: ndarray, inner: ndarray, values: ndarray, dense: ndarray, counts: tuple[int, int],
           compressed: bool) -> ndarray | None:
    """A sparse matrix times a dense one (or a vector), the elements sorted by row.

    Args:
        outer: the rows, compressed (rows + 1,) or of each element (n,).
        inner: (n,), the columns.
        values: (n,).
        dense: (columns, width) or (columns,).
        counts: the numbers of rows and columns.
        compressed: whether the rows are compressed.
    """
    matrix = _with_contiguous_rows(dense)
    out = _run("gather", (counts[0], matrix.shape[1]), outer, inner, counts, compressed, values, matrix)
    return out if out is None or dense.ndim == 2 else out[:, 0]


def scatter(outer: ndarray, inner: ndarray, values: ndarray, dense: ndarray, counts: tuple[int, int],
            compressed: bool) -> ndarray | None:
    """`gather` for elements in any order: `outer` are the columns, `inner` the rows, `counts` of columns and rows."""
    matrix = _with_contiguous_rows(dense)
    out = _run("scatter", (counts[1], matrix.shape[1]), outer, inner, counts, compressed, values, matrix)
    return out if out is None or dense.ndim == 2 else out[:, 0]


def sample(outer: ndarray, inner: ndarray, left: ndarray, right: ndarray, compressed: bool) -> ndarray | None:
    """The elements of left @ right at given places.

    Args:
        outer: the rows, compressed (rows + 1,) or of each element (n,).
        inner: (n,), the columns.
        left: (rows, k).
        right: (k, columns).
        compressed: whether the rows are compressed.
    """
    first, second = _with_contiguous_rows(left), _with_contiguous_rows(right.T)
    return _run("sample", inner.shape, outer, inner, (first.shape[0], second.shape[0]), compressed, first, second)


__all__ = ["gather", "sample", "scatter"]
