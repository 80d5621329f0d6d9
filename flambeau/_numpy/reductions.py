"""Reductions and scans: sums, extrema, means, quantiles."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import flambeau as torch

from . import _dtypes_impl, _util
from ._normalizations import ArrayLike, AxisLike, DTypeLike, KeepDims, OutArray, Unsupported, normalizer


def _along(function: Callable[..., Any]) -> Callable[..., Any]:
    """Axes of a reduction, its second argument, counted from the front; no axis at all reduces a new one of size 1."""
    @functools.wraps(function)
    def wrapped(a: Any, axis: Any = None, *args: Any, **kwargs: Any) -> Any:
        if axis is not None:
            axis = _util.normalize_axis_tuple(axis, a.ndim)
            if not axis:
                a, axis = a.unsqueeze(0), (0,)
        return function(a, axis, *args, **kwargs)

    return wrapped


def _dim(axis: Any) -> dict[str, Any]:
    return {} if axis is None else {"dim": axis}


def _refuse_complex(name: str, a: Any) -> None:
    if a.is_complex():
        raise NotImplementedError(f"{name} with dtype={a.dtype}")


def _summed_dtype(dtype: torch.dtype | None) -> torch.dtype | None:
    return _dtypes_impl.default_dtypes().int_dtype if dtype == torch.bool else dtype


def _float_dtype(dtype: torch.dtype | None, a: Any) -> torch.dtype:
    wanted = a.dtype if dtype is None else dtype
    return wanted if wanted.is_floating_point or wanted.is_complex else _dtypes_impl.default_dtypes().float_dtype


@normalizer
@_along
def count_nonzero(a: ArrayLike, axis: AxisLike = None, *, keepdims: KeepDims = False) -> Any:
    """The number of elements that are not zero."""
    return a.count_nonzero(axis)


def _arg_extremum(name: str) -> Any:
    @_along
    def function(a: ArrayLike, axis: AxisLike = None, out: OutArray = None, *, keepdims: KeepDims = False) -> Any:
        _refuse_complex(name, a)
        a = a.to(torch.uint8) if a.dtype == torch.bool else a
        return getattr(torch, name)(a, _util.allow_only_single_axis(axis))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"The position of the {name[3:]}imum."
    return normalizer(function)


argmax = _arg_extremum("argmax")
argmin = _arg_extremum("argmin")


@normalizer
@_along
def any(a: ArrayLike, axis: AxisLike = None, out: OutArray = None, keepdims: KeepDims = False, *,
        where: Unsupported = None) -> Any:
    """Whether one of the elements is true."""
    return torch.any(a, **_dim(_util.allow_only_single_axis(axis)))


@normalizer
@_along
def all(a: ArrayLike, axis: AxisLike = None, out: OutArray = None, keepdims: KeepDims = False, *,
        where: Unsupported = None) -> Any:
    """Whether all elements are true."""
    return torch.all(a, **_dim(_util.allow_only_single_axis(axis)))


@normalizer
@_along
def amax(a: ArrayLike, axis: AxisLike = None, out: OutArray = None, keepdims: KeepDims = False,
         initial: Unsupported = None, where: Unsupported = None) -> Any:
    """The maximum."""
    _refuse_complex("amax", a)
    return a.amax(axis)


@normalizer
@_along
def amin(a: ArrayLike, axis: AxisLike = None, out: OutArray = None, keepdims: KeepDims = False,
         initial: Unsupported = None, where: Unsupported = None) -> Any:
    """The minimum."""
    _refuse_complex("amin", a)
    return a.amin(axis)


@normalizer
@_along
def ptp(a: ArrayLike, axis: AxisLike = None, out: OutArray = None, keepdims: KeepDims = False) -> Any:
    """The maximum less the minimum."""
    return a.amax(axis) - a.amin(axis)


@_along
def _sum(a: Any, axis: Any = None, dtype: Any = None) -> Any:
    return a.sum(dtype=_summed_dtype(dtype), **_dim(axis))


@normalizer
def sum(a: ArrayLike, axis: AxisLike = None, dtype: DTypeLike = None, out: OutArray = None,
        keepdims: KeepDims = False, initial: Unsupported = None, where: Unsupported = None) -> Any:
    """The sum.

    >>> import flambeau._numpy as np
    >>> np.sum([[1, 2], [3, 4]], axis=0, keepdims=True)
    torch.ndarray([[4, 6]])
    """
    return _sum(a, axis, dtype)


@normalizer
@_along
def prod(a: ArrayLike, axis: AxisLike = None, dtype: DTypeLike = None, out: OutArray = None,
         keepdims: KeepDims = False, initial: Unsupported = None, where: Unsupported = None) -> Any:
    """The product."""
    return a.prod(dtype=_summed_dtype(dtype), **_dim(_util.allow_only_single_axis(axis)))


@_along
def _mean(a: Any, axis: Any = None, dtype: Any = None) -> Any:
    return a.mean(dtype=_float_dtype(dtype, a), **_dim(axis))


@normalizer
def mean(a: ArrayLike, axis: AxisLike = None, dtype: DTypeLike = None, out: OutArray = None,
         keepdims: KeepDims = False, *, where: Unsupported = None) -> Any:
    """The mean; of integers in the default dtype of floating point."""
    return _mean(a, axis, dtype)


@normalizer
@_along
def std(a: ArrayLike, axis: AxisLike = None, dtype: DTypeLike = None, out: OutArray = None, ddof: int = 0,
        keepdims: KeepDims = False, *, where: Unsupported = None) -> Any:
    """The standard deviation; `ddof` is subtracted from the number of elements."""
    result = _util.cast_if_needed(a, _float_dtype(dtype, a)).std(dim=axis, correction=ddof)
    return _util.cast_if_needed(result, dtype)


@normalizer
@_along
def var(a: ArrayLike, axis: AxisLike = None, dtype: DTypeLike = None, out: OutArray = None, ddof: int = 0,
        keepdims: KeepDims = False, *, where: Unsupported = None) -> Any:
    """The variance; `ddof` is subtracted from the number of elements."""
    result = _util.cast_if_needed(a, _float_dtype(dtype, a)).var(dim=axis, correction=ddof)
    return _util.cast_if_needed(result, dtype)


def _scan(name: str, a: Any, axis: Any, dtype: Any) -> Any:
    dtype = _summed_dtype(dtype) or a.dtype
    (a,), axis = _util.axis_none_flatten(a, axis=axis)
    return getattr(torch, name)(a, _util.normalize_axis_index(axis, a.ndim), dtype=dtype)


@normalizer
def cumsum(a: ArrayLike, axis: AxisLike = None, dtype: DTypeLike = None, out: OutArray = None) -> Any:
    """Sums of the elements up to each; without an axis of all elements."""
    return _scan("cumsum", a, axis, dtype)


@normalizer
def cumprod(a: ArrayLike, axis: AxisLike = None, dtype: DTypeLike = None, out: OutArray = None) -> Any:
    """Products of the elements up to each; without an axis of all elements."""
    return _scan("cumprod", a, axis, dtype)


@normalizer
def average(a: ArrayLike, axis: Any = None, weights: ArrayLike = None, returned: bool = False, *,
            keepdims: bool = False) -> Any:
    """The weighted mean, and with `returned` the sums of weights.

    Raises:
        TypeError: the weights have another shape, and are no vector or there is no axis.
        ValueError: the weights of an axis have another length.

    >>> import flambeau._numpy as np
    >>> np.average([1.0, 2.0], weights=[3, 1])
    torch.ndarray(1.2500, dtype=float64)
    """
    if weights is None:
        result = _mean(a, axis)
        total = torch.as_tensor(a.numel() / result.numel(), dtype=result.dtype)
    else:
        a = a if a.is_floating_point() else a.double()
        if a.shape != weights.shape:
            if axis is None:
                raise TypeError("Axis must be specified when shapes of a and weights differ.")
            if weights.ndim != 1:
                raise TypeError("1D weights expected when shapes of a and weights differ.")
            if weights.shape[0] != a.shape[axis]:
                raise ValueError("Length of weights not compatible with specified axis.")
            weights = torch.broadcast_to(weights, (a.ndim - 1) * (1,) + tuple(weights.shape)).swapaxes(-1, axis)
        dtype = _dtypes_impl.result_type_impl(a, weights)
        total = _sum(weights, axis, dtype)
        result = _sum(a * weights, axis, dtype) / total
    if keepdims:
        result = _util.apply_keepdims(result, axis, a.ndim)
    if not returned:
        return result
    return result, total if total.shape == result.shape else torch.broadcast_to(total, result.shape).clone()


def _quantile(a: Any, q: Any, axis: Any, method: str) -> Any:
    a = a if a.is_floating_point() else a.to(_dtypes_impl.default_dtypes().float_dtype)
    a = a.float() if a.dtype == torch.float16 else a
    if axis is None:
        a, q, axis = a.flatten(), q.flatten(), (0,)
    dim = _util.allow_only_single_axis(_util.normalize_axis_tuple(axis, a.ndim))
    return torch.quantile(a, _util.cast_if_needed(q, a.dtype), dim=dim, interpolation=method)


@functools.partial(normalizer, promote_scalar_result=True)
def quantile(a: ArrayLike, q: ArrayLike, axis: AxisLike = None, out: OutArray = None, overwrite_input: bool = False,
             method: str = "linear", keepdims: KeepDims = False, *, interpolation: Unsupported = None) -> Any:
    """Quantiles, for `q` between 0 and 1."""
    return _quantile(a, q, axis, method)


@functools.partial(normalizer, promote_scalar_result=True)
def percentile(a: ArrayLike, q: ArrayLike, axis: AxisLike = None, out: OutArray = None, overwrite_input: bool = False,
               method: str = "linear", keepdims: KeepDims = False, *, interpolation: Unsupported = None) -> Any:
    """Quantiles, for `q` between 0 and 100."""
    if _dtypes_impl.python_type_for_torch(q.dtype) is int:
        q = q.to(_dtypes_impl.default_dtypes().float_dtype)
    return _quantile(a, q / 100.0, axis, method)


@functools.partial(normalizer, promote_scalar_result=True)
def median(a: ArrayLike, axis: Any = None, out: OutArray = None, overwrite_input: bool = False,
           keepdims: KeepDims = False) -> Any:
    """The median; without an axis an array of one element.

    >>> import flambeau._numpy as np
    >>> np.median([3, 1, 2, 4])
    torch.ndarray([2.5000], dtype=float64)
    """
    return _quantile(a, torch.as_tensor(0.5), axis, "linear")


max, min = amax, amin
product, cumproduct = prod, cumprod

__all__ = ["all", "amax", "amin", "any", "argmax", "argmin", "average", "count_nonzero", "cumprod", "cumproduct",
           "cumsum", "max", "mean", "median", "min", "percentile", "prod", "product", "ptp", "quantile", "std", "sum",
           "var"]
