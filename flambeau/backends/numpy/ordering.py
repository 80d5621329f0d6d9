"""Sorting, order statistics, unique elements, search and histograms on arrays; kernels are imported on first use."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import dtypes
from ...kernels.histogram import bincount, histc, searchsorted
from ...shapes import wrap_dim
from ..compiled import histogram, modes_of_rows, order_tied_rows, select_top_k, sort_rows
from ..compiled.thresholds import TOP_K
from .memory import match_layout
from .reduction import gather_dim

SHORT = 16  # up to here PyTorch's unstable sort is an insertion sort, which is stable


def _short_order(x: Any, axis: int, descending: bool) -> Any:
    """Return the stable order along a short axis by NumPy's argsort; None where it differs from PyTorch's."""
    if not descending:
        return x.argsort(axis, kind="stable")
    kind = x.dtype.kind
    if kind == "f":
        if np.isnan(x).any():  # PyTorch puts them first
            return None
        return (-x).argsort(axis, kind="stable")
    return (~x).argsort(axis, kind="stable") if kind in "biu" else None


def _sorted_rows(rows: Any, descending: bool, stable: bool) -> tuple[Any, Any] | None:
    """Return sorted rows and their indices by a compiled kernel; None where there is none."""
    n, exchanges = rows.shape[-1], not stable and rows.shape[-1] > SHORT
    if exchanges and rows.dtype in dtypes.NARROW:  # whose few bits repeat in each long row
        return order_tied_rows(rows, n, bool(descending), True)
    result = sort_rows(rows, bool(descending))
    if result is None:
        return None
    values, order, repeated = result
    if exchanges and repeated.any():
        values[repeated], order[repeated] = order_tied_rows(rows[repeated], n, bool(descending), True)
    return values, order


def _like(result: Any, x: Any, axis: int) -> Any:
    """Return a result in the memory layout of the input; `result` may have been computed with that axis last."""
    if not x.flags.c_contiguous:
        return match_layout(result, x)
    return np.array(result, order="C") if axis < x.ndim - 1 else result


def _sort(x: Any, dim: int = -1, descending: bool = False, stable: bool = False) -> Any:
    axis = wrap_dim(dim, x.ndim)
    result = _sorted_rows(x.swapaxes(axis, -1), descending, stable) if x.size > TOP_K[0] and x.ndim else None
    if result is not None:
        return tuple(_like(each.swapaxes(axis, -1), x, axis) for each in result)
    if x.ndim and x.shape[axis] <= SHORT and x.dtype.kind != "V":
        order = _short_order(x, axis, descending)
        if order is not None:
            return _like(gather_dim(x, order, axis), x, axis), _like(order, x, axis)
    from ...kernels.sorting import sort

    values, order = sort(x, axis, bool(descending), stable)
    return _like(values, x, axis), _like(order, x, axis)


def _sort_stable(x: Any, stable: bool = True, dim: int = -1, descending: bool = False) -> Any:
    return _sort(x, dim, descending, bool(stable))


def _argsort(x: Any, dim: int = -1, descending: bool = False, stable: bool = False) -> Any:
    axis = wrap_dim(dim, x.ndim)
    result = _sorted_rows(x.swapaxes(axis, -1), descending, stable) if x.size > TOP_K[0] and x.ndim else None
    if result is not None:
        return _like(result[1].swapaxes(axis, -1), x, axis)
    if x.ndim and x.shape[axis] <= SHORT and x.dtype.kind != "V":
        order = _short_order(x, axis, descending)
        if order is not None:
            return _like(order, x, axis)
    from ...kernels.sorting import argsort

    return _like(argsort(x, axis, bool(descending), stable), x, axis)


def _selected(rows: Any, k: int, largest: bool) -> tuple[Any, Any] | None:
    """Return the k best elements of rows and their indices by a compiled kernel; None where there is none."""
    result = select_top_k(rows, k, largest)
    if result is None:
        return order_tied_rows(rows, k, largest, False)
    values, order, has_ties = result
    if has_ties.any():
        values[has_ties], order[has_ties] = order_tied_rows(rows[has_ties], k, largest, False)
    return values, order


def _topk(x: Any, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    from ...kernels.sorting import topk

    axis = wrap_dim(dim, x.ndim)
    if not 0 <= k <= (x.shape[axis] if x.ndim else 1):
        raise RuntimeError("selected index k out of range")
    result = _selected(x.swapaxes(axis, -1), k, bool(largest)) if x.size > TOP_K[0] and x.ndim and k else None
    if result is not None:
        if axis == x.ndim - 1:
            return result
        values, order = (np.array(each.swapaxes(axis, -1), order="C") for each in result)
        return values, order
    if x.ndim and 0 < x.shape[axis] <= 64 and x.dtype.kind == "f":
        if x.shape[axis] <= 32:  # NumPy's sort is as fast
            order = _short_order(x, axis, largest)
        else:
            from ...kernels.sorting import argsort

            order = argsort(x, axis, bool(largest))
        if order is not None:
            lead = (slice(None),) * axis
            first = order[(*lead, slice(k + 1))]
            values = gather_dim(x, first, axis)
            after, before = values[(*lead, slice(1, None))], values[(*lead, slice(-1))]
            if (after < before if largest else after > before).all():  # no ties and no NaN
                return np.array(values[(*lead, slice(k))], order="C"), np.array(first[(*lead, slice(k))], order="C")
    values, order = topk(x, k, axis, bool(largest))
    return np.array(values, order="C"), np.array(order, order="C")  # not views of larger arrays


def _check_nonempty(x: Any, name: str, dim: int) -> int:
    axis = wrap_dim(dim, x.ndim)
    if not x.size and x.ndim and x.shape[axis] == 0:
        raise IndexError(f"{name}(): Expected reduction dim {axis if dim < 0 else dim} to have non-zero size.")
    return axis


def _with_keepdim(result: tuple[Any, Any], axis: int, keepdim: bool, ndim: int) -> Any:
    values, index = result
    if keepdim and ndim:
        return np.expand_dims(values, axis), np.expand_dims(index, axis)
    return values, index


def _kthvalue(x: Any, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    from ...kernels.sorting import kthvalue

    axis = _check_nonempty(x, "kthvalue", dim)
    if not 1 <= k <= (x.shape[axis] if x.ndim else 1):
        raise RuntimeError(f"kthvalue(): selected number k out of range for dimension {axis}")
    if not x.size:
        return _empty_result(x, axis, keepdim)
    return _with_keepdim(kthvalue(x, k, axis), axis, keepdim, x.ndim)


def _empty_result(x: Any, axis: int, keepdim: bool) -> Any:
    """Return the empty result of an order statistic."""
    shape = x.shape[:axis] + ((1,) if keepdim else ()) + x.shape[axis + 1:]
    return np.zeros(shape, x.dtype), np.zeros(shape, np.int64)


#: elements from which modes are found by a kernel in any case
_MANY = 2048


def _repeats(x: Any) -> bool:
    """Whether the first row has equal elements: only then the order of exchanges counts, else NumPy sorts faster."""
    row = np.sort(x.reshape(-1, x.shape[-1])[0])
    return bool((row[1:] == row[:-1]).any())


def _mode(x: Any, dim: int = -1, keepdim: bool = False) -> Any:
    from ...kernels.sorting import mode

    axis = _check_nonempty(x, "mode", dim)
    if not x.size:
        return _empty_result(x, axis, keepdim)
    found = modes_of_rows(x) if axis == x.ndim - 1 and x.size >= _MANY and _repeats(x) else None
    return _with_keepdim(mode(x, axis) if found is None else found, axis, keepdim, x.ndim)


def _median_of(ignore_nan: bool) -> Any:
    def along(x: Any, dim: int, keepdim: bool = False) -> Any:
        from ...kernels.sorting import median

        axis = _check_nonempty(x, "median", dim)
        if not x.size:
            return _empty_result(x, axis, keepdim)
        return _with_keepdim(median(x, axis, ignore_nan), axis, keepdim, x.ndim)

    def of_all(x: Any) -> Any:
        from ...kernels.sorting import median

        if not x.size:
            if x.dtype.kind == "i":  # what NaN is as an integer
                return np.array(np.iinfo(x.dtype).min if x.dtype.itemsize >= 4 else 0, x.dtype)
            return np.zeros((), x.dtype) if x.dtype.kind == "u" else dtypes.cast(np.array(np.nan), x.dtype)
        flat = x.reshape(-1)
        if x.dtype.kind == "V" or (x.dtype.kind == "f" and np.isnan(flat).any()):
            return median(flat, 0, ignore_nan)[0]
        middle = (flat.size - 1) // 2
        return np.partition(flat, middle)[middle]

    return along, of_all


def _unique_all(x: Any) -> Any:
    from ...kernels.unique import unique

    return unique(x)


def _unique_dim(x: Any, dim: int) -> Any:
    from ...kernels.unique import unique_slices

    axis = wrap_dim(dim, x.ndim)
    if not x.ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    if not x.size and (x.shape[axis] or any(s == 0 for i, s in enumerate(x.shape) if i != axis)):
        raise RuntimeError("There are 0 sized dimensions, and they aren't selected, so unique cannot be applied")
    return unique_slices(x, axis)


def _unique_consecutive(x: Any, dim: int | None = None) -> Any:
    from ...kernels.unique import unique_consecutive

    if dim is None:
        return unique_consecutive(x)
    if not x.ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    axis = wrap_dim(dim, x.ndim)
    if not x.size and (x.shape[axis] or any(s == 0 for i, s in enumerate(x.shape) if i != axis)):
        raise RuntimeError("There are 0 sized dimensions, and they aren't selected, so unique cannot be applied")
    return unique_consecutive(x, axis)


def _searchsorted(boundaries: Any, values: Any, sorter: Any = None, right: bool = False,
                  out_int32: bool = False) -> Any:
    if values.__class__ is not np.ndarray:
        values = np.asarray(values)
    if values.dtype != boundaries.dtype and values.dtype.kind == boundaries.dtype.kind == "f":
        wide = np.result_type(values, boundaries)
        values, boundaries = values.astype(wide), boundaries.astype(wide)
    result = searchsorted(boundaries, values, right, sorter)
    return result.astype(np.int32) if out_int32 else result


def _isin(elements: Any, tests: Any, assume_unique: bool = False, invert: bool = False) -> Any:
    return np.isin(elements, tests, assume_unique=False, invert=invert)


def _bincount(x: Any, weights: Any = None, minlength: int = 0) -> Any:
    return bincount(x, weights, minlength, histogram)


def _histc(x: Any, bins: int = 100, min: float = 0, max: float = 0) -> Any:
    return histc(x, bins, min, max)


def _histogram(x: Any, edges: Any = None, weight: Any = None, count: Any = None, range: Any = None,
               density: bool = False) -> Any:
    flat = x.reshape(-1)
    if edges is None:
        low, high = (range if range is not None else (flat.min(), flat.max()) if flat.size else (0.0, 1.0))
        if low == high:
            low, high = low - 0.5, high + 0.5
        edges = np.linspace(float(low), float(high), count + 1).astype(x.dtype)
        inside = (flat >= edges[0]) & (flat <= edges[-1])
        width = (edges[-1] - edges[0]) or 1
        at = ((flat[inside] - edges[0]) * count / width).astype(np.int64)
        at = np.minimum(at, count - 1)
        at -= flat[inside] < edges[at]
        at += flat[inside] >= edges[np.minimum(at + 1, count)]
    else:
        edges, count = edges.copy(), len(edges) - 1
        inside = (flat >= edges[0]) & (flat <= edges[-1])
        at = np.searchsorted(edges, flat[inside], "right") - 1
    at = np.minimum(at, count - 1)
    heights = np.bincount(at, None if weight is None else weight.reshape(-1)[inside], count).astype(x.dtype)
    if density:
        heights = heights / (heights.sum() * np.diff(edges))
    return heights, edges


_median_dim, _median_all = _median_of(False)
_nanmedian_dim, _nanmedian_all = _median_of(True)

PRIMITIVES = {
    "_sort": _sort, "_sort_stable": _sort_stable, "argsort": _argsort, "topk": _topk, "kthvalue": _kthvalue,
    "mode": _mode,
    "_median_dim": _median_dim, "_median_all": _median_all, "_nanmedian_dim": _nanmedian_dim,
    "_nanmedian_all": _nanmedian_all, "_unique_all": _unique_all, "_unique_dim": _unique_dim,
    "_unique_consecutive": _unique_consecutive, "_searchsorted": _searchsorted, "_isin": _isin,
    "bincount": _bincount, "histc": _histc, "_histogram": _histogram,
}
