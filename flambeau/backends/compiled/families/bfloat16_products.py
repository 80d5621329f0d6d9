"""Products of bfloat16 matrices on processors that multiply them, rounded once, as in PyTorch.

Every function returns None where the operands are to be widened: the processor has no such instruction, or the product
is small, or has so few rows that reading a matrix takes longer than multiplying.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from .... import codegen
from ....dtypes import BFLOAT16
from ....runtime.launch import Spec
from .. import empty_array
from ..launching import Plan, PlanCache

ndarray = np.ndarray
#: multiplications of a product from which the kernel is faster, and rows at least
MIN_MULTIPLICATIONS, MIN_ROWS = 1 << 14, 4
_plans = PlanCache()


@cache
def is_available() -> bool:
    """Whether the processor multiplies bfloat16."""
    from ....codegen.matmul import bfloat16

    return codegen.available() and bfloat16.is_available()


def _packable(x: ndarray, is_right: bool) -> ndarray:
    """A matrix in a layout that the kernel packs; copied where it has another."""
    from ....codegen.matmul import bfloat16

    return x if bfloat16.layout(Spec.of(x), is_right) is not None else np.ascontiguousarray(x)


def mm(x: ndarray, y: ndarray, bias: ndarray | None = None) -> ndarray | None:
    """x @ y, plus a vector that is added to each row before rounding.

    Args:
        x: (M, K) of bfloat16.
        y: (K, N).
        bias: (N).
    """
    if x.ndim != 2 or y.ndim != 2 or y.dtype != BFLOAT16 or x.dtype != BFLOAT16:
        return None
    (rows, depth), columns = x.shape, y.shape[1]
    if rows * depth * columns < MIN_MULTIPLICATIONS or rows < MIN_ROWS or not is_available() or (
            bias is not None and (bias.dtype != BFLOAT16 or bias.shape != (columns,))):
        return None
    key = x.shape, x.strides, y.shape, y.strides, bias is None
    plan = _plans.plans.get(key)
    if plan is None:
        x, y = _packable(x, False), _packable(y, True)
        key = x.shape, x.strides, y.shape, y.strides, bias is None
        plan = _plans.plans.get(key)
        if plan is None:
            from ....codegen.matmul import bfloat16

            launches = bfloat16.launches(Spec.of(x), Spec.of(y), bias is not None)
            plan = _plans.insert(key, Plan((), launches))
    out = empty_array((rows, columns), BFLOAT16)
    plan.run((out, x, y, x if bias is None else np.ascontiguousarray(bias)))
    return out


__all__ = ["MIN_MULTIPLICATIONS", "MIN_ROWS", "is_available", "mm"]
