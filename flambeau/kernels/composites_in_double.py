"""Softmax, `logsumexp`, variances and batch norm in training of small float32 arrays, in float64 and rounded once.

The functions return None for what they leave to the primitives of the same names: other shapes than matrices, several
dimensions, and elements whose exponentials overflow. A sum is a product with ones, because BLAS takes half of what a
reduction of 64 elements costs in NumPy. Log-softmax subtracts the maximum and sums as the primitive does: its results
near 0 would change in the last bit.
"""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from typing import Any

import numpy as np

ndarray = np.ndarray
_F32, _F64 = np.dtype(np.float32), np.dtype(np.float64)
_dot, _exp, _log, _subtract, _multiply, _divide = np.dot, np.exp, np.log, np.subtract, np.multiply, np.true_divide
_sqrt = np.sqrt
_add: Any = np.add.reduce
_maximum: Any = np.maximum.reduce

#: the longest rows whose log-softmax is computed here: NumPy adds longer ones in blocks
LONGEST_ROW = 128
#: sums of squares below which sums of exponentials neither overflow nor lose digits: no element is beyond 600
MOST_SQUARES = 600.0 ** 2


class _Ones(dict[int, Any]):
    """Vectors of ones by length."""

    def __missing__(self, n: int) -> Any:
        result = self[n] = np.ones(n)
        return result


_ones = _Ones()


def _exponentials(x: Any) -> Any:
    """The exponentials in float64; None where they, or their sums, may overflow."""
    e = x.astype(_F64)
    flat = e.ravel()
    return _exp(e, e) if _dot(flat, flat) < MOST_SQUARES else None


def _softmax(x: Any, dim: int, dtype: Any = None) -> Any:
    if x.ndim != 2 or not -2 <= dim < 2:
        return None
    e = _exponentials(x)
    if e is None:
        return None
    if dim == 1 or dim == -1:
        columns, total = e.T, e.dot(_ones[e.shape[1]])
    else:
        columns, total = e, e.T.dot(_ones[e.shape[0]])
    _divide(columns, total, columns)
    return e.astype(_F32)


def _log_softmax(x: Any, dim: int, dtype: Any = None) -> Any:
    if not -x.ndim <= dim < x.ndim or not 0 < x.shape[dim] <= LONGEST_ROW:
        return None
    y = x.astype(_F64)
    _subtract(y, _maximum(y, dim, None, None, True), y)
    total = _add(_exp(y), dim, None, None, True)
    return _subtract(y, _log(total, total), y).astype(_F32)


def _logsumexp(x: Any, dim: Any, keepdim: bool = False) -> Any:
    if x.ndim != 2 or dim.__class__ is not int or not -2 <= dim < 2:
        return None
    e = _exponentials(x)
    if e is None:
        return None
    last = dim == 1 or dim == -1
    total = e.dot(_ones[e.shape[1]]) if last else e.T.dot(_ones[e.shape[0]])
    result = _log(total, total).astype(_F32)
    return result if not keepdim else result.reshape((-1, 1) if last else (1, -1))


def _variance(x: Any, dim: Any, correction: float | None, keepdim: bool) -> Any:
    """The variance in float64: a number of all elements, a vector along a dimension of a matrix, None of others."""
    if dim is None:
        if keepdim:
            return None
        y = x.astype(_F64).ravel()
        n = y.size
        _subtract(y, _add(y) / n, y)
        degrees_of_freedom = n - (1 if correction is None else correction)
        return _dot(y, y) / (degrees_of_freedom if degrees_of_freedom > 0 else 0)
    if x.ndim != 2 or keepdim or dim.__class__ is not int or not -2 <= dim < 2:
        return None
    y = x.astype(_F64)
    if dim == 1 or dim == -1:
        y = y.T
    n = y.shape[0]
    ones = _ones[n]
    mean = y.T.dot(ones)
    _divide(mean, n, mean)
    _subtract(y, mean, y)
    _multiply(y, y, y)
    squares = y.T.dot(ones)
    degrees_of_freedom = n - (1 if correction is None else correction)
    return _divide(squares, degrees_of_freedom if degrees_of_freedom > 0 else 0, squares)


def _var(x: Any, dim: Any = None, correction: float | None = None, keepdim: bool = False) -> Any:
    result = _variance(x, dim, correction, keepdim)
    if result.__class__ is ndarray:
        return result.astype(_F32)
    return None if result is None else np.array(result, _F32)


def _std(x: Any, dim: Any = None, correction: float | None = None, keepdim: bool = False) -> Any:
    result = _variance(x, dim, correction, keepdim)
    if result.__class__ is ndarray:
        return np.sqrt(result, result).astype(_F32)
    return None if result is None else np.array(sqrt(result), _F32)


def _batch_norm(x: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any, training: bool, eps: float,
                saved: list[Any]) -> Any:
    if x.ndim < 2 or not x.size:
        return None
    n, c = x.shape[:2]
    y = x.astype(_F64).reshape(n, c, -1)
    length = y.shape[2]
    count, samples, positions = n * length, _ones[n], _ones[length]
    mean = samples.dot(y.dot(positions))
    _divide(mean, count, mean)
    _subtract(y, mean[:, None], y)
    variance = samples.dot(_multiply(y, y).dot(positions))
    _divide(variance, count, variance)
    rstd = 1 / _sqrt(variance + eps)
    _multiply(y, (rstd if weight is None else rstd * weight)[:, None], y)
    if bias is not None:
        y += bias[:, None]
    saved[:] = mean.astype(_F32), rstd.astype(_F32), variance.astype(_F32)
    return y.astype(_F32).reshape(x.shape)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "softmax": _softmax, "log_softmax": _log_softmax, "logsumexp": _logsumexp, "var": _var, "std": _std,
    "batch_norm": _batch_norm}
