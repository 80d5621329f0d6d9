"""Products of bfloat16 matrices on processors that multiply them, rounded once, as in PyTorch.

Every function returns None where the operands are to be widened: the processor has no such instruction, or the product
is small, or, without AMX, has so few rows that packing a matrix takes longer than multiplying.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from .... import codegen
from ....dtypes import BFLOAT16
from ....runtime.launch import Launch, Spec
from .. import empty_array, new_copy
from ..launching import Plan, PlanCache

ndarray = np.ndarray
#: multiplications of a product from which the kernel is faster, and rows at least, without AMX
MIN_MULTIPLICATIONS, MIN_ROWS = 1 << 14, 4
#: multiplications of one of several products from which its kernel is faster than widening all: calling it takes 2 us
MIN_SINGLE_MULTIPLICATIONS = 1 << 17
_plans = PlanCache()


@cache
def is_available() -> bool:
    """Whether the processor multiplies bfloat16."""
    from ....codegen.matmul import bfloat16

    return codegen.available() and (has_tiles() or bfloat16.is_available())


@cache
def has_tiles() -> bool:
    """Whether it does so by AMX."""
    from ....codegen.matmul import tiles

    return codegen.available() and tiles.is_available()


def mm(x: ndarray, y: ndarray, bias: ndarray | None = None) -> ndarray | None:
    """x @ y, plus a vector that is added to each row before rounding.

    Args:
        x: (M, K) of bfloat16.
        y: (K, N).
        bias: (N).
    """
    if x.ndim != 2 or y.ndim != 2 or (bias is not None and (bias.dtype != BFLOAT16 or bias.shape != y.shape[1:])):
        return None
    return _product(x, y, bias)


def bmm(x: ndarray, y: ndarray) -> ndarray | None:
    """x @ y for batches of matrices, (B, M, K) and (B, K, N) of bfloat16."""
    if x.ndim != 3 or y.ndim != 3:
        return None
    if len(x) == 1:
        product = mm(x[0], y[0])
        return None if product is None else product[None]
    return _product(x, y, None) if has_tiles() else _products(x, y)


def _products(x: ndarray, y: ndarray) -> ndarray | None:
    """The products of the matrices of two batches, one after the other."""
    from ....codegen.matmul import bfloat16

    rows, columns = x.shape[1], y.shape[2]
    if rows * x.shape[2] * columns < MIN_SINGLE_MULTIPLICATIONS or y.dtype != BFLOAT16 or x.dtype != BFLOAT16 or (
            rows < MIN_ROWS or not is_available()):
        return None
    if bfloat16.layout(_layout(x[0]), False) is None:
        x = new_copy(x)
    if bfloat16.layout(_layout(y[0]), True) is None:
        y = new_copy(y)
    key = x.shape[1:], x.strides[1:], y.shape[1:], y.strides[1:], True
    plan = _plans.plans.get(key)
    if plan is None:
        plan = _plans.insert(key, Plan((), _launches(_layout(x[0]), _layout(y[0]), False)))
    out = empty_array((len(x), rows, columns), BFLOAT16)
    for product, left, right in zip(out, x, y, strict=True):
        plan.run((product, left, right, left))
    return out


def _product(x: ndarray, y: ndarray, bias: ndarray | None) -> ndarray | None:
    rows, columns = x.shape[-2], y.shape[-1]
    if x.size * columns < MIN_MULTIPLICATIONS or y.dtype != BFLOAT16 or x.dtype != BFLOAT16 or not is_available() or (
            rows < MIN_ROWS and not has_tiles()):
        return None
    key = x.shape, x.strides, y.shape, y.strides, bias is None
    plan = _plans.plans.get(key)
    if plan is None:
        x, y = _readable(x, y)
        key = x.shape, x.strides, y.shape, y.strides, bias is None
        plan = _plans.plans.get(key)
        if plan is None:
            plan = _plans.insert(key, Plan((), _launches(_layout(x), _layout(y), bias is not None)))
    out = empty_array((*x.shape[:-1], columns), BFLOAT16)
    plan.run((out, x, y, x if bias is None else np.ascontiguousarray(bias)))
    return out


def _layout(x: ndarray) -> Spec:
    """The layout of one or several matrices, with strides of dense ones where a dimension has one element."""
    strides, dense = list(x.strides), x.itemsize
    for dim in (-1, -2):
        if x.shape[dim] == 1:
            strides[dim] = dense
        dense = max(dense, strides[dim]) * x.shape[dim]
    return Spec(x.shape, tuple(strides), x.dtype)


def _launches(x: Spec, y: Spec, has_bias: bool) -> list[Launch]:
    from ....codegen.matmul import bfloat16, tiles

    if has_tiles():
        return tiles.launches(_batch(x), _batch(y), has_bias)
    return bfloat16.launches(x, y, has_bias)


def _batch(x: Spec) -> Spec:
    return x if len(x.shape) == 3 else Spec((1, *x.shape), (0, *x.strides), x.dtype)


def _readable(x: ndarray, y: ndarray) -> tuple[ndarray, ndarray]:
    """The matrices, copied where kernels do not read their layout."""
    from ....codegen.matmul import bfloat16, tiles

    if has_tiles():
        readable = tiles.are_packable(_batch(_layout(x)), _batch(_layout(y)))
    else:
        readable = bfloat16.layout(_layout(x), False) is not None, bfloat16.layout(_layout(y), True) is not None
    left, right = (each if fits else new_copy(each) for each, fits in zip((x, y), readable, strict=True))
    return left, right


__all__ = ["MIN_MULTIPLICATIONS", "MIN_ROWS", "bmm", "has_tiles", "is_available", "mm"]
