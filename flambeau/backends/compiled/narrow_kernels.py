"""Kernels that compute operators on bfloat16 without widening the operands.

`NARROW_KERNELS` has, by operator, a function of the operands and parameters. It returns None where the operands have to
be widened.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

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


def _nll_loss(values: Sequence[Any], params: dict[str, Any]) -> Any:
    """The loss of a matrix without weights: only the elements of the targets are widened."""
    x, target, weight = values
    if x.dtype not in dtypes.NARROW or x.ndim != 2 or weight is not None or target.shape != x.shape[:1] or (
            x.size <= NARROW_CASTS[0] or not x.flags.c_contiguous):
        return None
    ignored = target == params["ignore_index"]
    rows, classes = x.shape
    if np.logical_or.reduce(((target < 0) | (target >= classes)) & ~ignored):
        return None
    positions = np.arange(0, rows * classes, classes)
    positions += np.where(ignored, 0, target)
    losses = -dtypes.widen(x.reshape(-1).view(np.uint16)[positions].view(x.dtype))
    losses[ignored] = 0
    if params["reduction"] != "none":
        total = np.add.reduce(losses)
        counted = np.float32(rows - np.count_nonzero(ignored) if params["reduction"] == "mean" else 1)
        losses = np.asarray(total / counted)
    return dtypes.cast(losses, x.dtype)


NARROW_KERNELS: dict[str, Callable[[Sequence[Any], dict[str, Any]], Any]] = {
    "mm": _mm, "bmm": _bmm, "addmm": _addmm, "sum": _sum, "_nll_loss": _nll_loss}
#: operators whose gradients, of this input and those after it, are products, scaled by 1 or by a factor
PRODUCT_RULES = {"mm": 0, "bmm": 0, "addmm": 1}


def multiplies_bfloat16(elements: int) -> bool:
    """Whether matrices of bfloat16 of that many elements are multiplied without widening."""
    kernels = bfloat16_products(elements)
    return kernels is not None and bool(kernels.is_available())


__all__ = ["NARROW_KERNELS", "PRODUCT_RULES", "multiplies_bfloat16"]
