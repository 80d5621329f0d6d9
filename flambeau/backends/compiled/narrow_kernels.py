"""Kernels that compute operators on bfloat16 without widening the operands.

`NARROW_KERNELS` has, by operator, a function of the operands and parameters. It returns None where the operands have to
be widened.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ... import dtypes
from . import bfloat16_products, reduce_arrays
from .thresholds import NARROW_CASTS


def _mm(values: Sequence[Any], params: dict[str, Any]) -> Any:
    x, y = values
    kernels = bfloat16_products(x.size + y.size)
    return None if kernels is None else kernels.mm(x, y)


def _bmm(values: Sequence[Any], params: dict[str, Any]) -> Any:
    x, y = values
    kernels = bfloat16_products(x.size + y.size)
    return None if kernels is None else kernels.bmm(x, y)


def _addmm(values: Sequence[Any], params: dict[str, Any]) -> Any:
    bias, x, y = values
    kernels = bfloat16_products(x.size + y.size) if params.get("beta", 1) == 1 == params.get("alpha", 1) else None
    return None if kernels is None else kernels.mm(x, y, bias)


def _sum(values: Sequence[Any], params: dict[str, Any]) -> Any:
    [x] = values
    dim = params.get("dim")
    if x.dtype != dtypes.BFLOAT16 or x.size <= NARROW_CASTS[0] or params.get("dtype") is not None or (
            dim is not None and (dim.__class__ is not int or not -x.ndim <= dim < x.ndim)):
        return None
    sums = reduce_arrays(("sum",), "", (x,), dim, params.get("keepdim", False))
    return None if sums is None else dtypes.cast(sums[0], dtypes.BFLOAT16)


NARROW_KERNELS: dict[str, Callable[[Sequence[Any], dict[str, Any]], Any]] = {
    "mm": _mm, "bmm": _bmm, "addmm": _addmm, "sum": _sum}
#: operators whose gradients, of this input and those after it, are products, scaled by 1 or by a factor
PRODUCT_RULES = {"mm": 0, "bmm": 0, "addmm": 1}


def multiplies_bfloat16(elements: int) -> bool:
    """Whether matrices of bfloat16 of that many elements are multiplied without widening."""
    kernels = bfloat16_products(elements)
    return kernels is not None and bool(kernels.is_available())


__all__ = ["NARROW_KERNELS", "PRODUCT_RULES", "multiplies_bfloat16"]
