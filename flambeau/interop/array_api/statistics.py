"""Reductions and scans."""

from __future__ import annotations

import builtins
from typing import Any

from ... import dtypes
from ..._tensor import Tensor, functions

_Axis = int | tuple[int, ...] | None


def _axes(x: Tensor, axis: _Axis) -> tuple[int, ...]:
    if axis is None:
        return tuple(range(x.ndim))
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    for each in axes:
        if not -builtins.max(x.ndim, 1) <= each < builtins.max(x.ndim, 1):
            raise IndexError(f"axis {each} is out of bounds for array of dimension {x.ndim}")
    return tuple(each % x.ndim for each in axes) if x.ndim else ()


def _summed_dtype(x: Tensor, dtype: Any) -> Any:
    """The dtype of sums and products: small integers are summed in the default integer of their signedness."""
    if dtype is not None:
        return dtype
    if x.dtype in (dtypes.uint8, dtypes.uint16, dtypes.uint32, dtypes.uint64):
        return dtypes.uint64
    return x.dtype if x.dtype.is_floating_point or x.dtype.is_complex else dtypes.int64


def _accumulated(x: Tensor, dtype: Any) -> Tensor:
    """The operand of a sum or product, in the dtype in which PyTorch has kernels for it."""
    return x.to(dtypes.int64 if dtype in (dtypes.uint16, dtypes.uint32, dtypes.uint64) else dtype)


def _flattened(x: Tensor, axes: tuple[int, ...]) -> Tensor:
    """The array with the axes of a reduction as its last one, flattened."""
    kept = [each for each in range(x.ndim) if each not in axes]
    moved = functions.permute(x, (*kept, *axes))
    length = 1
    for each in axes:
        length *= x.shape[each]
    return functions.reshape(moved, (*(x.shape[each] for each in kept), length))


def _kept(out: Tensor, x: Tensor, axes: tuple[int, ...], keepdims: builtins.bool) -> Tensor:
    """The result of a reduction of the flattened axes, with axes of length 1 if they are kept."""
    if not keepdims:
        return out
    return functions.reshape(out, tuple(1 if at in axes else length for at, length in enumerate(x.shape)))


def sum(x: Tensor, /, *, axis: _Axis = None, dtype: Any = None, keepdims: builtins.bool = False) -> Tensor:
    """The sum over axes; over all by default. Integers are summed in int64, unsigned ones in uint64.

    >>> from flambeau.interop import array_api as xp
    >>> xp.sum(xp.asarray([[1, 2], [3, 4]]), axis=0)
    tensor([4, 6])
    """
    dtype, axes = _summed_dtype(x, dtype), _axes(x, axis)
    x = _accumulated(x, dtype)
    if not axes:
        out = functions.clone(x)
    else:
        out = functions.sum(x, axes, keepdim=keepdims)
    return out.to(dtype)


def prod(x: Tensor, /, *, axis: _Axis = None, dtype: Any = None, keepdims: builtins.bool = False) -> Tensor:
    """The product over axes; over all by default. Integers are multiplied in int64, unsigned ones in uint64.

    >>> from flambeau.interop import array_api as xp
    >>> xp.prod(xp.asarray([[1, 2], [3, 4]]))
    tensor(24)
    """
    dtype, axes = _summed_dtype(x, dtype), _axes(x, axis)
    x = _accumulated(x, dtype)
    if not axes:
        return functions.clone(x).to(dtype)
    return _kept(functions.prod(_flattened(x, axes), -1), x, axes, keepdims).to(dtype)


def mean(x: Tensor, /, *, axis: _Axis = None, keepdims: builtins.bool = False) -> Tensor:
    """The mean over axes; over all by default.

    >>> from flambeau.interop import array_api as xp
    >>> xp.mean(xp.asarray([1., 2., 6.]))
    tensor(3.)
    """
    axes = _axes(x, axis)
    return functions.mean(x, axes, keepdim=keepdims) if axes else functions.clone(x)


def var(x: Tensor, /, *, axis: _Axis = None, correction: float = 0.0, keepdims: builtins.bool = False) -> Tensor:
    """The variance over axes, ∑(x - mean)² / (N - correction).

    >>> from flambeau.interop import array_api as xp
    >>> xp.var(xp.asarray([1., 3.]))
    tensor(1.)
    """
    axes = _axes(x, axis)
    if not axes:  # one element each
        return x - x if correction < 1 else functions.full_like(x, float("nan"))
    if not isinstance(correction, int):
        count = 1
        for each in axes:
            count *= x.shape[each]
        if count - correction <= 0:
            return functions.var(x, axes, correction=count, keepdim=keepdims)
        scale = count / (count - correction) if count else 1.0
        return functions.var(x, axes, correction=0, keepdim=keepdims) * scale
    return functions.var(x, axes, correction=correction, keepdim=keepdims)


def std(x: Tensor, /, *, axis: _Axis = None, correction: float = 0.0, keepdims: builtins.bool = False) -> Tensor:
    """The standard deviation over axes, √(∑(x - mean)² / (N - correction)).

    >>> from flambeau.interop import array_api as xp
    >>> xp.std(xp.asarray([1., 3.]))
    tensor(1.)
    """
    return functions.sqrt(var(x, axis=axis, correction=correction, keepdims=keepdims))


def max(x: Tensor, /, *, axis: _Axis = None, keepdims: builtins.bool = False) -> Tensor:
    """The largest element over axes; over all by default. NaN if there is one.

    >>> from flambeau.interop import array_api as xp
    >>> xp.max(xp.asarray([[1, 5], [3, 4]]), axis=1)
    tensor([5, 4])
    """
    axes = _axes(x, axis)
    return functions.amax(x, axes, keepdim=keepdims) if axes else functions.clone(x)


def min(x: Tensor, /, *, axis: _Axis = None, keepdims: builtins.bool = False) -> Tensor:
    """The smallest element over axes; over all by default. NaN if there is one.

    >>> from flambeau.interop import array_api as xp
    >>> xp.min(xp.asarray([[1, 5], [3, 4]]), axis=1)
    tensor([1, 3])
    """
    axes = _axes(x, axis)
    return functions.amin(x, axes, keepdim=keepdims) if axes else functions.clone(x)


def all(x: Tensor, /, *, axis: _Axis = None, keepdims: builtins.bool = False) -> Tensor:
    """Whether all elements over axes are true; over all axes by default.

    >>> from flambeau.interop import array_api as xp
    >>> xp.all(xp.asarray([True, False]))
    tensor(False)
    """
    x, axes = x.to(dtypes.bool_), _axes(x, axis)
    return functions.all(x, axes, keepdim=keepdims) if axes else functions.clone(x)


def any(x: Tensor, /, *, axis: _Axis = None, keepdims: builtins.bool = False) -> Tensor:
    """Whether one of the elements over axes is true; over all axes by default.

    >>> from flambeau.interop import array_api as xp
    >>> xp.any(xp.asarray([True, False]))
    tensor(True)
    """
    x, axes = x.to(dtypes.bool_), _axes(x, axis)
    return functions.any(x, axes, keepdim=keepdims) if axes else functions.clone(x)


def _scan(function: Any, neutral: int, x: Tensor, axis: int | None, dtype: Any,
          include_initial: builtins.bool) -> Tensor:
    dtype = _summed_dtype(x, dtype)
    if axis is None:
        if x.ndim != 1:
            raise ValueError(f"axis must be given for an array of shape {tuple(x.shape)}")
        axis = 0
    out = function(_accumulated(x, dtype), axis)
    if include_initial:
        shape = list(out.shape)
        shape[axis] = 1
        out = functions.cat([functions.full(shape, neutral, dtype=out.dtype), out], axis)
    return out.to(dtype)


def cumulative_sum(x: Tensor, /, *, axis: int | None = None, dtype: Any = None,
                   include_initial: builtins.bool = False) -> Tensor:
    """The sums of the first elements along an axis, beginning with 0 if `include_initial`.

    Raises:
        ValueError: no axis, and the array has not one dimension.

    >>> from flambeau.interop import array_api as xp
    >>> xp.cumulative_sum(xp.asarray([1, 2, 3]), include_initial=True)
    tensor([0, 1, 3, 6])
    """
    return _scan(functions.cumsum, 0, x, axis, dtype, include_initial)


def cumulative_prod(x: Tensor, /, *, axis: int | None = None, dtype: Any = None,
                    include_initial: builtins.bool = False) -> Tensor:
    """The products of the first elements along an axis, beginning with 1 if `include_initial`.

    Raises:
        ValueError: no axis, and the array has not one dimension.

    >>> from flambeau.interop import array_api as xp
    >>> xp.cumulative_prod(xp.asarray([1, 2, 3]))
    tensor([1, 2, 6])
    """
    return _scan(functions.cumprod, 1, x, axis, dtype, include_initial)


def diff(x: Tensor, /, *, axis: int = -1, n: int = 1, prepend: Tensor | None = None,
         append: Tensor | None = None) -> Tensor:
    """The n-th differences of neighbours along an axis.

    >>> from flambeau.interop import array_api as xp
    >>> xp.diff(xp.asarray([1, 4, 9]))
    tensor([3, 5])
    """
    parts = [each for each in (prepend, x, append) if each is not None]
    if len(parts) > 1:
        x = functions.cat(parts, axis)
    return functions.diff(x, n, axis) if n else x
