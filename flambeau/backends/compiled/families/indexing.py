"""Gather and scatter kernels along one dimension of large arrays.

Every function returns None where NumPy has to compute the result: there is no kernel, or an index is out of range,
which the NumPy implementation reports with PyTorch's message.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ....codegen.indexing import indexing
from ....runtime.launch import Spec
from ..launching import PlanCache
from ..plan_families import FAMILIES_OF_PLANS
from .copying import new_copy

ndarray = np.ndarray
#: dtypes whose scatter-add rounds as NumPy's, element by element
_SUMMED_DTYPES = "fdilq"
_plans = PlanCache()


def _is_supported(x: ndarray, index: ndarray) -> bool:
    return (x.__class__ is ndarray and index.__class__ is ndarray and x.dtype.itemsize in (1, 2, 4, 8)
            and not x.dtype.hasobject and x.dtype.isnative and index.dtype.char in "ilq")


def take(x: ndarray, index: ndarray, dim: int, shape: tuple[int, ...], wrap: bool = False) -> ndarray | None:
    """Gather: a new array with out[p] = x[p with p[dim] = index[p]].

    Args:
        x: has the result's shape, except in `dim`.
        index: integers, of a shape that broadcasts to the result's.
        wrap: whether negative indices count from the end.
    """
    if not _is_supported(x, index):
        return None
    out, flag = np.empty(shape, x.dtype), np.empty(2, np.int64)
    key = ("take", dim, wrap, x.dtype, index.dtype, shape, x.shape, x.strides, index.shape, index.strides)
    plan = _plans.plans.get(key)
    if plan is None:
        specs = Spec.of(out), Spec.of(flag), Spec.of(x), Spec.of(index)
        plan = _plans.insert(key, FAMILIES_OF_PLANS.plan(
            ("take", dim, wrap), (), specs,
            lambda each: indexing.take(each[0], each[1], each[2], each[3], dim, wrap), 2))
    plan.run((out, flag, x, index))
    return None if flag[0] else out


def _put(out: ndarray, index: ndarray, source: ndarray, dim: int, op: str, fill: bool, wrap: bool) -> ndarray | None:
    flag = np.empty(2, np.int64)
    key = (op, dim, fill, wrap, out.dtype, index.dtype, out.shape, out.strides, source.shape, source.strides,
           index.shape, index.strides)
    plan = _plans.plans.get(key)
    if plan is None:
        specs = Spec.of(out), Spec.of(flag), Spec.of(source), Spec.of(index)
        plan = _plans.insert(key, FAMILIES_OF_PLANS.plan(
            (op, dim, fill, wrap), (), specs,
            lambda each: indexing.put(each[0], each[1], each[2], each[3], dim, op, fill, wrap), 2))
    plan.run((out, flag, source, index))
    return None if flag[0] else out


def put(x: ndarray, index: ndarray, source: ndarray, dim: int, op: str) -> ndarray | None:
    """Scatter into a C-contiguous copy: out[p with p[dim] = index[p]] = source[p], or +=.

    Args:
        index: integers, of a shape that broadcasts to the source's.
        source: of the dtype of `x`, and not larger than `x` except in `dim`.
        op: "set" or "add".
    """
    if not _is_supported(x, index) or (op == "add" and x.dtype.char not in _SUMMED_DTYPES):
        return None
    if x.size and not any(x.strides) and not any(x[(0,) * x.ndim].tobytes()) and all(
            n == m for d, (n, m) in enumerate(zip(x.shape, source.shape, strict=True)) if d != dim):
        return put_into_zeros(index, source, dim, x.shape, op)  # `x` is a broadcast zero
    out = new_copy(x)
    region = out[tuple([slice(None) if d == dim else slice(n) for d, n in enumerate(source.shape)])]
    return None if _put(region, index, source, dim, op, False, False) is None else out


def put_into_zeros(index: ndarray, source: ndarray, dim: int, shape: tuple[int, ...], op: str = "add",
           wrap: bool = False) -> ndarray | None:
    """Scatter into zeros of this shape, which is the source's except in `dim`."""
    if not _is_supported(source, index) or (op == "add" and source.dtype.char not in _SUMMED_DTYPES):
        return None
    return _put(np.empty(shape, source.dtype), index, source, dim, op, True, wrap)


def index_along(index: Any, dim: int, rank: int) -> ndarray:
    """A 1-d index reshaped to be an index along `dim` of arrays of `rank` dimensions."""
    result: ndarray = index.reshape((1,) * dim + (-1,) + (1,) * (rank - 1 - dim))
    return result


__all__ = ["index_along", "put", "put_into_zeros", "take"]
