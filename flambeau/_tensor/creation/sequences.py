"""Factories of sequences: `arange`, `linspace`, `logspace`, and `eye`."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from ... import dtypes
from ...backends.sparse_array import SparseArray
from ...dtypes import dtype as dtype_type
from ...modes import special
from ...warning_location import user_stacklevel
from ..argument_errors.out_arguments import check_records_nothing
from ..argument_errors.type_names import type_name
from ..dispatch.out_tensors import give_shape
from ..dispatch.write_checks import check_overlap
from ..fastpath.repeated_layouts import known_results
from ..shape.resizing import resize_
from ..tensor import Tensor
from .constants import write_new_out
from .factory_arguments import refuse_pinned, refuse_sparse, wrap_new

__all__ = ["arange", "eye", "linspace", "logspace", "range"]


def _item(x: Any) -> Any:
    return x.item() if isinstance(x, (Tensor, np.generic)) else x


def _wrap_or_write(name: str, array: np.ndarray, out: Any, device: Any, requires_grad: bool,
                   dtype: dtype_type | None = None) -> Tensor:
    if out is not None:
        return write_new_out(name, array, out, dtype, requires_grad)
    return wrap_new(array, device, requires_grad)


def _warn_of_size(array: np.ndarray, out: Tensor) -> None:
    """Warn of an `out=` tensor of another number of elements than the sequence, which is resized."""
    if out._array.size:
        warnings.warn(f"The number of elements in the out tensor of shape {list(out._array.shape)} is "
                      f"{out._array.size} which does not match the computed number of elements {array.size}. Note that "
                      "this may occur as a result of rounding error. The out tensor will be resized to a tensor of "
                      f"shape ({array.size},).", UserWarning, stacklevel=user_stacklevel())


def check_out_size(array: np.ndarray, out: Tensor) -> None:
    """Make the size of an `out=` tensor that of a sequence, with a warning where it has elements."""
    if out._array.size != array.size:
        _warn_of_size(array, out)
        _give_shape(out, array.shape)


def _give_shape(out: Tensor, shape: tuple[int, ...]) -> None:
    """Give an `out=` tensor another shape; tracers are told."""
    if not special[0]:
        give_shape(out, shape)
        return
    flag, out._requires_grad = out._requires_grad, False  # which PyTorch does not ask for here
    try:
        resize_(out, shape)
    finally:
        out._requires_grad = flag


def _write_points(name: str, array: np.ndarray, out: Any, device: Any, requires_grad: bool,
                  dtype: dtype_type | None = None, warn: bool = False) -> Tensor:
    """A 1-d result; an `out=` tensor with as many elements keeps its shape and is filled in row-major order.

    Args:
        warn: whether to warn of an `out=` tensor with elements that is resized.
    """
    if out is None or isinstance(out._array, SparseArray) or (dtype is not None and dtype is not out.dtype):
        return _wrap_or_write(name, array, out, device, requires_grad, dtype)
    check_records_nothing(name, (), (out,))
    check_overlap(out._array)
    if out._array.size == array.size:
        return write_new_out(name, array.reshape(out._array.shape), out, dtype, requires_grad)
    if warn:
        _warn_of_size(array, out)
    _give_shape(out, array.shape)
    return write_new_out(name, array, out, dtype, requires_grad)


def _check_bounds(name: str, start: Any, end: Any) -> None:
    """Check that bounds that are tensors have no dimensions."""
    ranks = [(side, x._array.ndim) for side, x in (("start", start), ("end", end)) if isinstance(x, Tensor)]
    if any(rank for _, rank in ranks):
        got = " and ".join(f"{side} with {rank} dimension(s)" for side, rank in ranks)
        raise RuntimeError(f"{name} only supports 0-dimensional start and end tensors, but got {got}.")


def _points_dtype(start: Any, end: Any, out: Any, dtype: Any, name: str, steps: Any) -> dtype_type:
    """The dtype of `linspace` and `logspace`.

    Raises:
        RuntimeError: complex bounds and another dtype, or `steps` is negative.
        NotImplementedError: bool.
    """
    default = _default_for(start, end)
    if dtype is None:
        dtype = out.dtype if out is not None else default
    dtype = dtypes.of_argument(dtype, name)
    if isinstance(steps, int) and steps < 0:
        raise RuntimeError("number of steps must be non-negative")
    if default.is_complex and not dtype.is_complex:
        raise RuntimeError(f"torch.{name}(): inferred dtype {dtypes.C_NAMES[default.name]} can't be safely cast to "
                           f"passed dtype {dtype.scalar_name}")
    if dtype is dtypes.bool_:
        raise NotImplementedError(f"\"{name}_cpu\" not implemented for 'Bool'")
    return dtype


def _check_step(start: Any, end: Any, step: Any) -> None:
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if not (math.isfinite(start) and math.isfinite(end)):
        raise RuntimeError(f"unsupported range: {_format_bound(start)} -> {_format_bound(end)}")
    if (step > 0 and start > end) or (step < 0 and start < end):
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")


def _format_bound(x: Any) -> str:
    return f"{x:g}" if isinstance(x, float) else str(x)


#: so many elements nothing has: the size is checked first
_MANY = 2**40


def _refuse_size(start: Any, end: Any, step: Any, dtype: dtype_type) -> None:
    """Raise if a range has more elements than there are addresses."""
    if all(isinstance(x, int) for x in (start, end, step)) and max(start, end, step) >= 2**63:
        raise RuntimeError("value cannot be converted to type int64_t without overflow")
    size = math.ceil(float(end - start) / float(step))
    if size > 2**63:
        raise RuntimeError("invalid size, possible overflow?")
    if size == 2**63:
        raise RuntimeError(f"IntArrayRef contains an int that cannot be represented as a SymInt: {-2**63}")
    if size * dtype.itemsize >= 2**63:
        raise RuntimeError(f"Storage size calculation overflowed with sizes=[{size}]")


@known_results
def arange(start: Any = None, end: Any = None, step: Any = 1, *, out: Any = None, dtype: dtype_type | None = None,
           layout: Any = None, device: Any = None, pin_memory: bool = False, requires_grad: bool = False) -> Tensor:
    """The values `start`, `start + step`, ... less than `end`, a 1-d tensor.

    Raises:
        RuntimeError: the step is zero or leads away from the end, or a bound is complex.
        NotImplementedError: `dtype` is bool or complex.

    >>> import flambeau as torch
    >>> torch.arange(1, 7, 2)
    tensor([1, 3, 5])
    """
    if pin_memory and out is None:
        refuse_pinned(device, layout)
    if layout is not None:
        refuse_sparse(layout, "arange.start_out")
    if start is None:
        start = 0
    elif end is None:
        start, end = 0, start
    if dtype is None and out is None and start.__class__ is int and end.__class__ is int and step.__class__ is int and (
            step > 0 and start <= end < _MANY):
        return wrap_new(np.arange(start, end, step, dtype=np.int64), device, requires_grad)
    start, end, step = _item(start), _item(end), _item(step)
    if isinstance(start, complex) or isinstance(end, complex) or isinstance(step, complex):
        raise RuntimeError("value cannot be converted to type double without overflow")
    _check_step(start, end, step)
    integral = all(isinstance(x, int) for x in (start, end, step))
    if dtype is None:
        dtype = out.dtype if out is not None else dtypes.int64 if integral else dtypes.get_default_dtype()
    dtype = dtypes.of_argument(dtype, "arange")
    if dtype.is_complex or dtype is dtypes.bool_:
        raise NotImplementedError(f"\"arange_cpu\" not implemented for '{dtype.legacy.removesuffix('Tensor')}'")
    if dtype.category == dtypes.INTEGER and int(step) == 0:
        raise ValueError("step must be nonzero")
    if abs(end - start) >= abs(step) * _MANY:
        _refuse_size(start, end, step, dtype)
    if dtype.category == dtypes.INTEGER:
        if integral or dtype is dtypes.int64:
            array = np.arange(int(start), int(end), int(step), dtype=np.int64)
        else:
            array = int(start) + np.arange(math.ceil((end - start) / step)) * int(step)
    else:
        array = start + np.arange(math.ceil((end - start) / step), dtype=np.float64) * step
    return _write_points("arange", dtypes.cast(array, dtype.numpy), out, device, requires_grad, dtype, warn=True)


def range(start: Any = 0, end: Any = None, step: Any = 1, *, out: Any = None, dtype: dtype_type | None = None,
          layout: Any = None, device: Any = None, pin_memory: bool = False, requires_grad: bool = False) -> Tensor:
    """Values from `start` to `end`, both included, with step `step`. Deprecated: use `arange`.

    Raises:
        RuntimeError: the step is 0 or has the wrong sign.

    >>> import warnings
    >>> import flambeau as torch
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", UserWarning)
    ...     torch.range(1, 3)
    tensor([1., 2., 3.])
    """
    if pin_memory and out is None:
        refuse_pinned(device, layout)
    for x in (start, end, step):
        if x is not None and not isinstance(x, (int, float, complex, Tensor, np.generic)):
            raise TypeError("range(): arguments must be Number")  # a guard says which
    warnings.warn("torch.range is deprecated and will be removed in a future release because its behavior is "
                  "inconsistent with Python's range builtin. Instead, use torch.arange, which produces values in "
                  "[start, end).",
                  UserWarning, stacklevel=user_stacklevel())
    if end is None:
        start, end = 0, start
    start, end, step = _item(start), _item(end), _item(step)
    if out is not None:
        check_records_nothing("range", (), (out,))
    if dtype is None:
        dtype = out.dtype if out is not None else dtypes.get_default_dtype()
    dtype = dtypes.of_argument(dtype, "range")
    if dtype.is_complex or dtype is dtypes.bool_:
        raise NotImplementedError(f"\"range_cpu\" not implemented for '{dtype.scalar_name}'")
    if dtype.category < dtypes.FLOATING and any(math.isinf(x) or math.isnan(x) for x in (start, end, step)):
        raise RuntimeError("value cannot be converted to type int64_t without overflow")
    _check_step(start, end, step)
    count = math.floor((end - start) / step) + 1
    array = start + np.arange(count, dtype=np.float64) * step
    return _write_points("range", dtypes.cast(array, dtype.numpy), out, device, requires_grad, dtype)


def _linear_points(start: Any, end: Any, steps: int, dtype: dtype_type, name: str) -> np.ndarray:
    """Evenly spaced values, computed from both ends and rounded after each operation, as in PyTorch.

    Raises:
        TypeError, RuntimeError: `steps` is no integer, or negative.
        NotImplementedError: several steps in complex32.
    """
    if not isinstance(steps, int) or isinstance(steps, bool):
        raise TypeError(f"linspace(): argument 'steps' (position 3) must be int, not {type_name(steps)}")
    if steps < 0:
        raise RuntimeError("number of steps must be non-negative")
    if dtype.is_complex:
        compute = np.dtype(np.complex64) if dtype is dtypes.complex32 else dtype.numpy
    else:
        double = dtype is dtypes.float64 or dtype.category < dtypes.FLOATING
        compute = np.dtype(np.float64 if double else np.float32)
    if steps == 0:
        return np.zeros(0, compute)
    a, b = compute.type(start), compute.type(end)
    if steps == 1:
        return np.array([a])
    if dtype is dtypes.complex32:
        raise NotImplementedError(f"\"{name}_cpu\" not implemented for '{dtype.scalar_name}'")
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


@known_results
def linspace(start: Any, end: Any, steps: Any, *, out: Any = None, dtype: dtype_type | None = None, layout: Any = None,
             device: Any = None, pin_memory: bool = False, requires_grad: bool = False) -> Tensor:
    """`steps` evenly spaced values from `start` to `end`, both included.

    >>> import flambeau as torch
    >>> torch.linspace(0, 1, 5)
    tensor([0.0000, 0.2500, 0.5000, 0.7500, 1.0000])
    """
    if pin_memory and out is None:
        refuse_pinned(device, layout)
    _check_bounds("linspace", start, end)
    start, end, steps = _item(start), _item(end), _item(steps)
    dtype = _points_dtype(start, end, out, dtype, "linspace", steps)
    if layout is not None:
        refuse_sparse(layout, "linspace.out")
    array = dtypes.cast(_linear_points(start, end, steps, dtype, "linspace"), dtype.numpy)
    return _write_points("linspace", array, out, device, requires_grad, dtype)


def _default_for(start: Any, end: Any) -> dtype_type:
    return dtypes.default_complex() if isinstance(start, complex) or isinstance(end, complex) else (
        dtypes.get_default_dtype())


def logspace(start: Any, end: Any, steps: Any, base: float = 10.0, *, out: Any = None,
             dtype: dtype_type | None = None, layout: Any = None, device: Any = None, pin_memory: bool = False,
             requires_grad: bool = False) -> Tensor:
    """`base` to the power of `linspace(start, end, steps)`.

    >>> import flambeau as torch
    >>> torch.logspace(0, 2, 3)
    tensor([  1.,  10., 100.])
    """
    if pin_memory and out is None:
        refuse_pinned(device, layout)
    _check_bounds("logspace", start, end)
    start, end, steps, base = _item(start), _item(end), _item(steps), _item(base)
    dtype = _points_dtype(start, end, out, dtype, "logspace", steps)
    if layout is not None:
        refuse_sparse(layout, "logspace.out")
    points = _linear_points(start, end, steps, dtype, "logspace")
    powers = dtypes.cast(np.power(points.dtype.type(base), points), dtype.numpy)
    return _write_points("logspace", powers, out, device, requires_grad, dtype)


@known_results
def eye(n: int, m: int | None = None, *, out: Any = None, dtype: dtype_type | None = None, layout: Any = None,
        device: Any = None, pin_memory: bool = False, requires_grad: bool = False) -> Tensor:
    """The identity matrix, (n, n) or (n, m).

    >>> import flambeau as torch
    >>> torch.eye(2)
    tensor([[1., 0.],
            [0., 1.]])
    """
    if pin_memory and out is None:
        refuse_pinned(device, layout)
    if layout is not None:
        refuse_sparse(layout, "eye.m_out")
    if requires_grad is not False and requires_grad is not True and requires_grad is not None:
        raise TypeError("eye(): argument 'requires_grad' must be bool")  # a guard says more
    if n < 0:
        raise RuntimeError(f"n must be greater or equal to 0, got {n}")
    if m is not None and m < 0:
        raise RuntimeError(f"m must be greater or equal to 0, got {m}")
    if dtype is not None:
        dtype = dtypes.of_argument(dtype, "eye")
    d = dtype or (out.dtype if out is not None else dtypes.get_default_dtype())
    columns = n if m is None else m
    if d.numpy.kind == "V":
        array = dtypes.cast(np.eye(n, columns), d.numpy)
    else:
        array = np.zeros((n, columns), d.numpy)
        array.reshape(-1)[:columns * columns:columns + 1] = 1
    return _wrap_or_write("eye", array, out, device, requires_grad, dtype)
