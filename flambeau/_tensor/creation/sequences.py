"""Tensors of numbers in sequence: ranges, evenly spaced points, the identity."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from ... import dtypes
from ...dtypes import dtype as dtype_type
from ..tensor import Tensor
from .constants import put_out
from .from_data import finished

__all__ = ["arange", "eye", "linspace", "logspace", "range"]


def _number(x: Any) -> Any:
    return x.item() if isinstance(x, (Tensor, np.generic)) else x


def _placed(array: np.ndarray, out: Any, device: Any, requires_grad: bool, dtype: dtype_type | None = None) -> Tensor:
    if out is not None:
        return put_out(array, out, dtype)
    return finished(array, device, requires_grad)


def _steps(start: Any, end: Any, step: Any) -> None:
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if not (math.isfinite(start) and math.isfinite(end)):
        raise RuntimeError(f"unsupported range: {_shown(start)} -> {_shown(end)}")
    if (step > 0 and start > end) or (step < 0 and start < end):
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")


def _shown(x: Any) -> str:
    return f"{x:g}" if isinstance(x, float) else str(x)


def arange(start: Any = None, end: Any = None, step: Any = 1, *, out: Any = None, dtype: dtype_type | None = None,
           layout: Any = None, device: Any = None, pin_memory: bool = False, requires_grad: bool = False) -> Tensor:
    """Numbers from `start` up to, not including, `end`.

    Raises:
        RuntimeError: the step is zero or leads away from the end.

    >>> import flambeau as torch
    >>> torch.arange(1, 7, 2)
    tensor([1, 3, 5])
    """
    if start is None:
        start = 0
    elif end is None:
        start, end = 0, start
    start, end, step = _number(start), _number(end), _number(step)
    _steps(start, end, step)
    whole = all(isinstance(x, int) for x in (start, end, step))
    if dtype is None:
        dtype = out.dtype if out is not None else dtypes.int64 if whole else dtypes.get_default_dtype()
    if dtype.category == dtypes.INTEGER:
        if int(step) == 0:
            raise ValueError("step must be nonzero")
        if whole or dtype is dtypes.int64:
            array = np.arange(int(start), int(end), int(step), dtype=np.int64)
        else:
            array = int(start) + np.arange(math.ceil((end - start) / step)) * int(step)
    else:
        array = start + np.arange(math.ceil((end - start) / step), dtype=np.float64) * step
    return _placed(dtypes.cast(array, dtype.numpy), out, device, requires_grad, dtype)


def range(start: Any = 0, end: Any = None, step: Any = 1, *, out: Any = None, dtype: dtype_type | None = None,
          layout: Any = None, device: Any = None, pin_memory: bool = False, requires_grad: bool = False) -> Tensor:
    """Numbers from `start` up to and including `end`; deprecated in favour of `arange`."""
    warnings.warn("torch.range is deprecated and will be removed in a future release because its behavior is "
                  "inconsistent with Python's range builtin. Instead, use torch.arange, which produces values in "
                  "[start, end).",
                  UserWarning, stacklevel=2)
    if end is None:
        start, end = 0, start
    start, end, step = _number(start), _number(end), _number(step)
    _steps(start, end, step)
    count = math.floor((end - start) / step) + 1
    array = start + np.arange(count, dtype=np.float64) * step
    return _placed(dtypes.cast(array, (dtype or dtypes.get_default_dtype()).numpy), out, device, requires_grad, dtype)


def _points(start: Any, end: Any, steps: int, dtype: dtype_type) -> np.ndarray:
    """Evenly spaced, worked out from both ends to the middle, and rounded at each step, as PyTorch does."""
    if not isinstance(steps, int) or isinstance(steps, bool):
        raise TypeError(f"linspace(): argument 'steps' (position 3) must be int, not {type(steps).__name__}")
    if steps < 0:
        raise RuntimeError("number of steps must be non-negative")
    compute = dtype.numpy if dtype.is_complex else np.dtype(np.float64) if dtype is dtypes.float64 or (
        dtype.category < dtypes.FLOATING) else np.dtype(np.float32)
    if steps == 0:
        return np.zeros(0, compute)
    a, b = compute.type(start), compute.type(end)
    if steps == 1:
        return np.array([a])
    if dtype.category < dtypes.FLOATING:
        a, b = compute.type(int(start)), compute.type(int(end))

    def rounded(x: Any) -> Any:
        return dtypes.widen(dtypes.cast(np.asarray(x), dtype.numpy)) if dtype.numpy in dtypes.NARROW else x

    a, b = rounded(a), rounded(b)
    step = rounded(rounded(b - a) / compute.type(steps - 1))
    order = np.arange(steps)
    half = steps // 2
    low, high = order.astype(compute), (steps - 1 - order).astype(compute)
    if dtype.is_complex or dtype.numpy in dtypes.NARROW:
        return np.where(order < half, a + rounded(step * low), b - rounded(step * high)).astype(compute)
    from ...kernels.random.fma import fma32, fma64  # PyTorch's loop is compiled with contraction
    fma = fma32 if compute == np.float32 else fma64
    return np.where(order < half, fma(low, float(step), float(a)), fma(high, -float(step), float(b)))


def linspace(start: Any, end: Any, steps: Any, *, out: Any = None, dtype: dtype_type | None = None, layout: Any = None,
             device: Any = None, pin_memory: bool = False, requires_grad: bool = False) -> Tensor:
    """`steps` evenly spaced numbers from `start` to `end`, both included.

    >>> import flambeau as torch
    >>> torch.linspace(0, 1, 5)
    tensor([0.0000, 0.2500, 0.5000, 0.7500, 1.0000])
    """
    start, end, steps = _number(start), _number(end), _number(steps)
    if dtype is None:
        dtype = out.dtype if out is not None else _default_for(start, end)
    return _placed(dtypes.cast(_points(start, end, steps, dtype), dtype.numpy), out, device, requires_grad, dtype)


def _default_for(start: Any, end: Any) -> dtype_type:
    return dtypes.default_complex() if isinstance(start, complex) or isinstance(end, complex) else (
        dtypes.get_default_dtype())


def logspace(start: Any, end: Any, steps: Any, base: float = 10.0, *, out: Any = None,
             dtype: dtype_type | None = None, layout: Any = None, device: Any = None, pin_memory: bool = False,
             requires_grad: bool = False) -> Tensor:
    """`base` to the power of `steps` evenly spaced numbers from `start` to `end`.

    >>> import flambeau as torch
    >>> torch.logspace(0, 2, 3)
    tensor([  1.,  10., 100.])
    """
    start, end, steps, base = _number(start), _number(end), _number(steps), _number(base)
    if dtype is None:
        dtype = out.dtype if out is not None else _default_for(start, end)
    points = _points(start, end, steps, dtype)
    powers = dtypes.cast(np.power(points.dtype.type(base), points), dtype.numpy)
    return _placed(powers, out, device, requires_grad, dtype)


def eye(n: int, m: int | None = None, *, out: Any = None, dtype: dtype_type | None = None, layout: Any = None,
        device: Any = None, pin_memory: bool = False, requires_grad: bool = False) -> Tensor:
    """Ones on the diagonal, zeros elsewhere.

    >>> import flambeau as torch
    >>> torch.eye(2)
    tensor([[1., 0.],
            [0., 1.]])
    """
    if n < 0:
        raise RuntimeError(f"n must be greater or equal to 0, got {n}")
    if m is not None and m < 0:
        raise RuntimeError(f"m must be greater or equal to 0, got {m}")
    d = dtype or (out.dtype if out is not None else dtypes.get_default_dtype())
    return _placed(dtypes.cast(np.eye(n, m), d.numpy), out, device, requires_grad, dtype)
