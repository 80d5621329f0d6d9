"""Reflecting and replicating padding as kernels that copy rows with their borders."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from math import prod
from typing import Any

import numpy as np

from ....codegen.indexing import padded_rows
from ....runtime.launch import Launch
from .. import empty_array
from ..launching import Plan, PlanCache, launch_of_result

ndarray = np.ndarray
_plans = PlanCache()
#: the most words of a plan: more are not kept
_MOST_WORDS = 1 << 16


def _sources(size: int, before: int, after: int, mode: str) -> list[int]:
    """The source of each element of a padded dimension, in which no border is longer than the rule reaches."""
    if mode == "edge":
        return [min(max(i, 0), size - 1) for i in range(-before, size + after)]
    return [abs(i) if i < size else 2 * (size - 1) - i for i in range(-before, size + after)]


def _launches(shape: tuple[int, ...], itemsize: int, pad: tuple[int, ...],
              mode: str) -> tuple[tuple[int, ...], list[Launch]] | None:
    """The result's shape and what computes it."""
    rank = len(pad) // 2
    if not pad or min(pad) < 0 or not prod(shape) or itemsize not in (1, 2, 4, 8) or (
            mode != "edge" and any(max(pad[2 * i:2 * i + 2]) >= shape[-1 - i] for i in range(rank))):
        return None
    widths = [(pad[2 * i], pad[2 * i + 1]) for i in range(rank - 1, -1, -1)]
    spatial, lead = shape[len(shape) - rank:], shape[:len(shape) - rank]
    sources = [_sources(size, *width, mode) for size, width in zip(spatial, widths, strict=True)]
    padded = tuple(map(len, sources))
    if prod(padded[:-1]) + padded[-1] > _MOST_WORDS:
        return None
    height = prod(spatial[:-1])
    strides = [prod(spatial[i + 1:-1]) for i in range(rank - 1)]
    rows = [sum(n * stride for n, stride in zip(each, strides, strict=True)) for each in product(*sources[:-1])]
    before, _ = widths[-1]
    launches = padded_rows.launches(itemsize, prod(lead), height, spatial[-1], rows=rows, before=sources[-1][:before],
                                    after=sources[-1][before + spatial[-1]:])
    return (*lead, *padded), launches


def border_pad(x: ndarray, pad: tuple[int, ...], mode: str) -> ndarray | None:
    """A padded array, `mode` "reflect" or "edge"; None where NumPy has to compute it."""
    if x.__class__ is not ndarray or not x.flags.c_contiguous:
        return None
    key = x.shape, x.itemsize, pad, mode
    plan = _plans.plans.get(key)
    if plan is None:
        found = _launches(x.shape, x.itemsize, pad, mode)
        if found is None:
            return None
        plan = _plans.insert(key, Plan([(found[0], x.dtype, None)], found[1]))
    out = empty_array(plan.outs[0][0], x.dtype)
    plan.run((out, x))
    return out


def border_pad_launch(x: ndarray, pad: tuple[int, ...], mode: str) -> Callable[..., Any] | None:
    """The function that pads row-major arrays of a layout; None where there is none."""
    found = _launches(x.shape, x.itemsize, pad, mode) if x.flags.c_contiguous else None
    return None if found is None else launch_of_result(found[0], x.dtype, found[1], 1)


__all__ = ["border_pad", "border_pad_launch"]
