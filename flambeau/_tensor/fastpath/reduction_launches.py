"""Launches of reductions of few elements by one built-in function: norms, traces, extrema and counts."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from ... import codegen
from ...backends.compiled import reduce_launch
from ...backends.compiled.thresholds import SUMS
from ...errstate import quietly
from ...runtime.filling import Filling, NewArray, with_filling
from ...shapes import wrap_dim

ndarray = np.ndarray
empty = np.empty
LONG = np.dtype(np.int64)
Launch = Callable[..., Any] | None
#: the most elements of an extremum and of a count
_MOST = 4096
#: the most terms of sums, which NumPy or `backends.numpy.summation` divides from there on
_MOST_TERMS = 128
#: the longest rows whose elements are compared one after the other
_SHORT = 24


def _is_row_major(a: ndarray, chars: str) -> bool:
    return codegen.available() and a.dtype.char in chars and 0 < a.size <= _MOST and bool(a.flags.c_contiguous)


def _summing(a: ndarray, shape: tuple[int, ...], rows: int, length: int, **options: Any) -> Launch:
    from ...codegen.rows import few_elements

    if not length or rows < 1 or (length > few_elements.MOST_TERMS and options.get("kind", few_elements.PLAIN) != (
            few_elements.PLAIN)):
        return None
    add, dtype = few_elements.sums(a.dtype, rows, length, **options), a.dtype
    return with_filling(lambda x: add(empty(shape, dtype), x), Filling(add, (NewArray(shape, dtype), 0)))


def few_along(a: ndarray, what: str, dim: Any, keepdim: Any) -> Launch:
    """The sums, or the largest or smallest elements, along a dimension of few elements.

    Args:
        what: of `codegen.rows.few_slices`.
    """
    if not _is_row_major(a, "fd") or not a.ndim or keepdim.__class__ is not bool:
        return None
    if dim.__class__ is tuple and len(dim) == 1:
        dim, = dim
    if dim.__class__ is not int or not -a.ndim <= dim < a.ndim:
        return None
    from ...codegen.rows import few_slices

    axis, dtype = wrap_dim(dim, a.ndim), a.dtype
    outer, length, inner = prod(a.shape[:axis]), a.shape[axis], prod(a.shape[axis + 1:])
    if inner == 1:
        if what == few_slices.SUM:
            return _sum_of_rows(a, keepdim)
        if length > _SHORT:
            return None
    elif what == few_slices.SUM and length > few_slices.MOST_TERMS:
        return None
    reduce = few_slices.function(dtype, what, outer, length, inner)
    shape = (*a.shape[:axis], *(1,) * keepdim, *a.shape[axis + 1:])
    return with_filling(lambda x: reduce(None, empty(shape, dtype), x),
                        Filling(reduce, ([None], NewArray(shape, dtype), 0)))


def _sum_of_rows(a: ndarray, keepdim: bool) -> Launch:
    """The sums along the last dimension, of so few elements that NumPy does not divide them."""
    length = a.shape[-1]
    if not 1 < length <= _MOST_TERMS:
        return None
    shape = (*a.shape[:-1], 1) if keepdim else a.shape[:-1]
    return _summing(a, shape, prod(shape), length, row_step=length)


def trace(a: ndarray) -> Launch:
    """The sum of the diagonal."""
    if not codegen.available() or a.dtype.char not in "fd" or not a.size or a.ndim != 2 or not a.flags.c_contiguous:
        return None
    return _summing(a, (), 1, min(a.shape), step=a.shape[1] + 1)


def vector_norm(a: ndarray, ord: Any = 2, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Launch:
    """The norm of all elements, or along the last dimension, of order 1 or 2."""
    if not _is_row_major(a, "fd") or dtype is not None or not a.ndim or keepdim.__class__ is not bool or (
            ord.__class__ not in (int, float) or ord not in (1, 2)):
        return None
    if a.size > SUMS[0]:
        return _norm_by_kernel(a, ord, None if dim == () or dim == [] else dim, keepdim)
    from ...codegen.rows import few_elements

    if a.size > few_elements.MOST_TERMS:
        return None
    if dim.__class__ is tuple and len(dim) == 1:
        dim, = dim
    if dim is None:
        shape, length = ((1,) * a.ndim if keepdim else ()), a.size
    elif dim.__class__ is int and wrap_dim(dim, a.ndim) == a.ndim - 1:
        length = a.shape[-1]
        shape = (*a.shape[:-1], 1) if keepdim else a.shape[:-1]
    else:
        return None
    kind = few_elements.SQUARES if ord == 2 else few_elements.MAGNITUDES
    return _summing(a, shape, prod(shape), length, row_step=length, kind=kind, root=ord == 2)


def _norm_by_kernel(a: ndarray, ord: Any, dim: Any, keepdim: bool) -> Launch:
    total = by_kernel("sum", "squares" if ord == 2 else "abs", a, dim, keepdim, SUMS[0])
    if total is None or ord == 1:
        return total
    shape, dtype, root = total(a).shape, a.dtype, np.sqrt
    finish = with_filling(lambda x: root(x, empty(shape, dtype)),
                          Filling(quietly, ([root], 0, NewArray(shape, dtype))))

    def launch(x: ndarray) -> Any:
        return finish(total(x))

    launch.steps = ((total, (0,)), (finish, (1,))), 1  # type: ignore[attr-defined]
    return launch


def extremum_of_all(a: ndarray, largest: bool) -> Launch:
    """The largest or smallest element."""
    if not _is_row_major(a, "fd"):
        return None
    from ...codegen.rows import few_elements

    find, dtype = few_elements.extremum(a.dtype, a.size, largest), a.dtype
    return with_filling(lambda x: find(None, empty((), dtype), x), Filling(find, ([None], NewArray((), dtype), 0)))


def count_nonzero(a: ndarray, dim: Any = None) -> Launch:
    """How many elements are not 0."""
    if dim is not None or not _is_row_major(a, "fdl?"):
        return None
    from ...codegen.rows import few_elements

    count = few_elements.nonzero_count(a.dtype, a.size)
    return with_filling(lambda x: count(empty((), LONG), x), Filling(count, (NewArray((), LONG), 0)))


def by_kernel(op: str, of: str, a: ndarray, dim: Any, keepdim: bool, least: int) -> Launch:
    """The compiled kernel's reduction of an array of more elements than `least`; None for smaller ones."""
    if a.size <= least or a.dtype.char not in "fd" or not a.ndim or keepdim.__class__ is not bool:
        return None
    launch: Launch = reduce_launch(op, of, a, dim, keepdim)
    return launch


__all__ = ["by_kernel", "count_nonzero", "extremum_of_all", "few_along", "trace", "vector_norm"]
