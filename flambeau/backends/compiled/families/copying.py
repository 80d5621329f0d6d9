"""Multi-threaded copies, fills and masked fills of large arrays of any dtype."""

from __future__ import annotations

from functools import cache
from typing import Any, Literal

import numpy as np

from ....codegen.scalar.scalar_ir import BOOL, select, variable
from ...bit_views import resolve
from .. import empty_array, empty_array_like
from ..elementwise import ElementwiseKernel

#: the dtype that elements of a size are copied as
_DTYPE_OF_SIZE: dict[int, np.dtype] = {1: np.dtype(np.uint8), 2: np.dtype(np.uint16), 4: np.dtype(np.float32),
                               8: np.dtype(np.float64)}


@cache
def _copy_kernel(dtype: np.dtype) -> ElementwiseKernel:
    return ElementwiseKernel([variable(0, dtype)], [dtype])


def copy(to: Any, source: Any) -> bool:
    """Write an array, with broadcasting, or a scalar over an array; whether there is a kernel."""
    x: Any = source
    if x.__class__ is not np.ndarray:
        x = np.asarray(resolve(source), to.dtype if np.isscalar(source) else None)
    dtype = None if to.dtype.hasobject or to.dtype != x.dtype else _DTYPE_OF_SIZE.get(to.dtype.itemsize)
    if dtype is None or to.__class__ is not np.ndarray or np.may_share_memory(to, x):
        return False
    _copy_kernel(dtype).run_into([to.view(dtype)], [x.view(dtype)])
    return True


def new_copy(x: np.ndarray, order: Literal["C", "K"] = "C") -> np.ndarray:
    """A copy of an array: C-contiguous, or in the memory order of its elements ("K")."""
    result = empty_array_like(x, x.dtype, order)
    if not copy(result, x):
        result[...] = x
    return result


def zeros(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """An array of zeros, in memory of the allocator."""
    result = empty_array(shape, dtype)
    return result if copy(result, np.zeros((), dtype)) else np.zeros(shape, dtype)


@cache
def _fill_kernel(dtype: np.dtype) -> ElementwiseKernel:
    return ElementwiseKernel([select(variable(1, BOOL), variable(2, dtype), variable(0, dtype))], [dtype, BOOL, dtype])


def fill_masked(out: np.ndarray, x: np.ndarray, mask: np.ndarray, value: np.ndarray) -> bool:
    """Write `x`, and `value` where the mask is true, into `out`, with broadcasting; whether there is a kernel.

    Args:
        value: of the dtype of `x`, without dimensions.
    """
    dtype = None if x.dtype.hasobject or value.dtype != x.dtype else _DTYPE_OF_SIZE.get(x.dtype.itemsize)
    if dtype is None:
        return False
    _fill_kernel(dtype).run_into([out.view(dtype)], [x.view(dtype), mask, value.view(dtype)])
    return True


__all__ = ["copy", "fill_masked", "new_copy", "zeros"]
