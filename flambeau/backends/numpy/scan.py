"""Scans on arrays; single precision accumulates in double precision, as in PyTorch."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from ... import dtypes
from ...shapes import wrap_dim
from ..compiled import scan_arrays
from ..compiled.thresholds import SCANS

_F32, _F64 = np.dtype(np.float32), np.dtype(np.float64)
_WIDER = {_F32: _F64, np.dtype(np.complex64): np.dtype(np.complex128)}
LARGE = 16384  # arrays with more elements are scanned in blocks
FEW = 16  # with fewer independent scans than this, Python floats are faster than rows


def _by_kernel(name: str, arrays: Sequence[Any], axis: int, reverse: bool = False) -> Any:
    """Return the results of a scan by a compiled kernel; None for small arrays or where there is no kernel."""
    x = arrays[0]
    return scan_arrays(name, arrays, axis, reverse) if x.size > SCANS[0] and x.ndim else None


def _accumulate(ufunc: Any, x: Any, dim: int, dtype: Any = None, reverse: bool = False) -> Any:
    """Return cumulative sums or products; from the end if `reverse`."""
    if dtype is not None:
        x = dtypes.cast(x, dtype.numpy)
    kind, rank = x.dtype.kind, x.ndim
    axis = dim if dim.__class__ is int and 0 <= dim < rank else wrap_dim(dim, rank)
    if kind == "f" or dtype is None or x.dtype == np.int64:
        array = x.view(np.uint8) if kind == "b" else x
        result = _by_kernel("add" if ufunc is np.add else "mul", (array,), axis, reverse)
        if result is not None:
            return result[0]
    if reverse:
        backward = (slice(None),) * axis + (slice(None, None, -1),)
        return np.ascontiguousarray(_accumulate(ufunc, x[backward], axis)[backward])
    if kind in "biu":
        return ufunc.accumulate(np.atleast_1d(x), axis, np.int64 if dtype is None else x.dtype).reshape(x.shape)
    if not x.ndim:
        return x.copy()
    wider = _WIDER.get(x.dtype)
    if wider is None:
        return ufunc.accumulate(x, axis)
    if x.size < LARGE or not x.flags.c_contiguous:
        return ufunc.accumulate(x.astype(wider), axis).astype(x.dtype)
    return _scan_blocks(ufunc, x, axis, wider)


def _scan_blocks(ufunc: Any, x: Any, axis: int, wider: np.dtype) -> Any:
    """Return the same in double precision block by block, each of which fits in the cache."""
    out = np.empty_like(x)
    n, inner = x.shape[axis], prod(x.shape[axis + 1:])
    rows, target = x.reshape(-1, n, inner), out.reshape(-1, n, inner)
    if inner >= 4 * FEW:
        for row, result in zip(rows, target, strict=True):
            total = row[0].astype(wider)
            result[0] = total
            for k in range(1, n):
                ufunc(total, row[k], total)
                result[k] = total
    else:
        step = max(LARGE // (n * inner), 1)
        for i in range(0, len(rows), step):
            target[i:i + step] = ufunc.accumulate(rows[i:i + step].astype(wider), 1)
    return out


def _cumsum(x: Any, dim: int, dtype: Any = None) -> Any:
    return _accumulate(np.add, x, dim, dtype)


def _cumprod(x: Any, dim: int, dtype: Any = None) -> Any:
    return _accumulate(np.multiply, x, dim, dtype)


def _cumsum_backward(g: Any, dim: int) -> Any:
    if not g.ndim:
        return g
    return _accumulate(np.add, g, dim, None, True)


def _shift_along(x: Any, dim: int, by: int, edge: bool = False) -> Any:
    if not x.ndim:
        return x.copy() if edge else np.zeros_like(x)
    out = x.copy() if edge else np.zeros_like(x)
    lead = (slice(None),) * wrap_dim(dim, x.ndim)
    first, last = (*lead, slice(1, None)), (*lead, slice(None, -1))
    if by > 0:
        out[first] = x[last]
    else:
        out[last] = x[first]
    return out


def _recurrence(x: Any, factor: Any, dim: int, reverse: bool = False) -> Any:
    """Return r[k] = x[k] + factor[k] · r[k-1] along `dim`; with r[k+1] if `reverse`."""
    if not x.ndim or not x.size:
        return np.array(x, copy=True)
    if x.shape == factor.shape and x.dtype == factor.dtype:
        by_kernel = _by_kernel("recurrence", (x, factor), wrap_dim(dim, x.ndim), reverse)
        if by_kernel is not None:
            return by_kernel[0]
    rows = np.moveaxis(np.array(np.broadcast_to(x, np.broadcast_shapes(x.shape, factor.shape)), order="C"),
                       wrap_dim(dim, x.ndim), 0)
    factors = np.moveaxis(np.broadcast_to(factor, rows.shape) if factor.shape == () else factor,
                          wrap_dim(dim, x.ndim), 0)
    if reverse:
        lines, factors = rows[::-1], factors[::-1]
    else:
        lines = rows
    n = len(lines)
    if lines.size < FEW * n:
        flat, scale = lines.reshape(n, -1), factors.reshape(n, -1)
        result = np.empty(flat.shape, lines.dtype)
        for lane in range(flat.shape[1]):
            total = 0.0
            totals: list[float] = []
            for value, f in zip(flat[:, lane].tolist(), scale[:, lane].tolist(), strict=True):
                total = value + f * total if totals else value
                totals.append(total)
            result[:, lane] = totals
        lines[...] = result.reshape(lines.shape)
    else:
        previous = lines[0]
        for k in range(1, n):
            line = lines[k]
            line += factors[k] * previous
            previous = line
    return np.moveaxis(rows, 0, wrap_dim(dim, x.ndim))


def _exclusive_cumprod(x: Any, dim: int, reverse: bool = False) -> Any:
    axis = wrap_dim(dim, x.ndim)
    out = np.ones_like(x)
    if not x.ndim:
        return out
    lead = (slice(None),) * axis
    if reverse:
        backward = (*lead, slice(None, None, -1))
        x = x[backward]
    target = out[(*lead, slice(None, -1))][(*lead, slice(None, None, -1))] if reverse else out[(*lead, slice(1, None))]
    target[...] = _accumulate(np.multiply, x[(*lead, slice(None, -1))], axis)
    return out


def _cumprod_backward(g: Any, x: Any, out: Any, dim: int) -> Any:
    if not x.ndim:
        return g
    if np.logical_and.reduce(x, None):
        return _cumsum_backward(g * out, dim) / x
    total = _recurrence(g, _shift_along(x, dim, -1), dim, True)
    return _exclusive_cumprod(x, dim) * total


def _check_scalar_dim(name: str, x: Any, dim: int) -> None:
    if not x.ndim and dim not in (0, -1):
        raise IndexError(f"{name}(): Expected reduction dim -1 or 0 for scalar but got {dim}")


def _cummax(x: Any, dim: int) -> Any:
    from ...kernels.linalg import cummax

    _check_scalar_dim("cummax", x, dim)
    if not x.size:
        return x.copy(), np.zeros(x.shape, np.int64)  # for any `dim`, as in PyTorch
    axis = wrap_dim(dim, x.ndim)
    return _by_kernel("max", (x,), axis) or cummax(x, axis)


def _cummin(x: Any, dim: int) -> Any:
    from ...kernels.linalg import cummin

    _check_scalar_dim("cummin", x, dim)
    if not x.size:
        return x.copy(), np.zeros(x.shape, np.int64)
    axis = wrap_dim(dim, x.ndim)
    return _by_kernel("min", (x,), axis) or cummin(x, axis)


def _logcumsumexp(x: Any, dim: int) -> Any:
    axis = wrap_dim(dim, x.ndim)
    result = _by_kernel("logarithms", (x,), axis)
    if result is not None:
        return result[0]
    if x.dtype is _F32 and x.ndim:
        return np.logaddexp.accumulate(x.astype(_F64), axis).astype(_F32)
    from ...kernels.linalg import logcumsumexp

    wider = _WIDER.get(x.dtype)
    return logcumsumexp(x, axis) if wider is None else logcumsumexp(x.astype(wider), axis).astype(x.dtype)


PRIMITIVES = {
    "cumsum": _cumsum, "cumprod": _cumprod, "_cumsum_backward": _cumsum_backward, "_shift_along": _shift_along,
    "_recurrence": _recurrence, "_exclusive_cumprod": _exclusive_cumprod, "_cumprod_backward": _cumprod_backward,
    "cummax": _cummax, "cummin": _cummin, "logcumsumexp": _logcumsumexp,
}
