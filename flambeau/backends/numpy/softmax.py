"""Softmax and log-softmax on arrays, and their gradients."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import dtypes
from ...shapes import wrap_dim
from .summation import sum_axes

_add: Any = np.add.reduce
_maximum: Any = np.maximum.reduce
_exp = np.exp
_subtract = np.subtract
_multiply = np.multiply
_divide = np.true_divide


def _axis(x: Any, dim: int) -> int:
    if not x.ndim:
        wrap_dim(dim, 0)
    return dim if 0 <= dim < x.ndim else wrap_dim(dim, x.ndim)


def _total(x: Any, axis: int) -> Any:
    return _add(x, axis, None, None, True) if x.shape[axis] <= 128 else sum_axes(x, axis, True)


def _softmax(x: Any, dim: int, dtype: Any = None) -> Any:
    if dtype is not None:
        x = dtypes.cast(x, dtype.numpy)
    axis = _axis(x, dim)
    if not x.ndim:
        return np.exp(x - x)
    if not x.size:
        return x.copy()
    e = x - _maximum(x, axis, None, None, True)
    _exp(e, e)
    return _divide(e, _total(e, axis), e)


def _log_softmax(x: Any, dim: int, dtype: Any = None) -> Any:
    if dtype is not None:
        x = dtypes.cast(x, dtype.numpy)
    axis = _axis(x, dim)
    if not x.ndim:
        return x - x
    if not x.size:
        return x.copy()
    e = x - _maximum(x, axis, None, None, True)
    return _subtract(e, np.log(_total(_exp(e), axis)), e)


def _softmax_backward(g: Any, out: Any, dim: int) -> Any:
    weighted = g * out
    if not out.ndim:
        return weighted - out * weighted
    total = _total(weighted, _axis(out, dim))
    return _subtract(weighted, out * total, weighted)


def _log_softmax_backward(g: Any, out: Any, dim: int) -> Any:
    if not out.ndim:
        return g - _exp(out) * g
    e = _exp(out)
    _multiply(e, _total(g, _axis(out, dim)), e)
    return _subtract(g, e, e)


PRIMITIVES = {"softmax": _softmax, "log_softmax": _log_softmax, "_softmax_backward": _softmax_backward,
              "_log_softmax_backward": _log_softmax_backward}
