"""Scan kernels: sums, products, extrema, linear recurrences, paths through labels. Results are C-contiguous."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from ....codegen.scalar import scalar_ir
from ....codegen.scalar.scalar_ir import FLOAT32, FLOAT64, cast, constant, select, variable
from ....codegen.scan import label_paths as path_sums
from ....codegen.scan.scan import Scan
from ....runtime.launch import Spec
from ..launching import Plan, PlanCache, launch_of_outputs

ndarray = np.ndarray
_INT64 = np.dtype(np.int64)


def _accumulator_dtype(dtype: np.dtype) -> np.dtype:
    """The accumulator dtype, as in PyTorch."""
    return FLOAT64 if dtype == FLOAT32 else dtype if dtype.kind == "f" else _INT64


def _arithmetic(op: str) -> Callable[[np.dtype], Scan]:
    def scan(dtype: np.dtype) -> Scan:
        wide = _accumulator_dtype(dtype)
        total, x = variable(0, wide), cast(variable(1, dtype), wide)
        neutral = constant({"add": -0.0, "mul": 1.0}[op] if wide.kind == "f" else int(op == "mul"), wide)
        return Scan([scalar_ir.binary(op, total, x)], [neutral], [dtype if dtype.kind == "f" else wide])

    return scan


def _extremum(op: str) -> Callable[[np.dtype], Scan]:
    def scan(dtype: np.dtype) -> Scan:
        best, index, x, step = variable(0, dtype), variable(1, _INT64), variable(2, dtype), variable(3, _INT64)
        is_new = scalar_ir.compare(op, x, best)
        if dtype.kind == "f":
            is_new = is_new | scalar_ir.ne(x, x)
            worst: float | int = -math.inf if op == "ge" else math.inf
        else:
            worst = np.iinfo(dtype).min if op == "ge" else np.iinfo(dtype).max
        return Scan([select(is_new, x, best), select(is_new, step, index)],
                    [constant(worst, dtype), constant(0, _INT64)], [dtype, _INT64])

    return scan


def _logarithms(dtype: np.dtype) -> Scan:
    total, x, step = variable(0, FLOAT64), cast(variable(1, dtype), FLOAT64), variable(2, _INT64)
    correction = scalar_ir.log1p(scalar_ir.exp(-abs(x - total)))
    next_total = select(scalar_ir.eq(x, total), x + math.log(2), scalar_ir.maximum(x, total) + correction)
    return Scan([select(scalar_ir.eq(step, 0), x, next_total)], [constant(0.0, FLOAT64)], [dtype])


def _recurrence(dtype: np.dtype) -> Scan:
    before, x, factor, step = variable(0, dtype), variable(1, dtype), variable(2, dtype), variable(3, _INT64)
    return Scan([select(scalar_ir.eq(step, 0), x, x + factor * before)], [constant(0.0, dtype)], [dtype])


_SCANS: dict[str, Callable[[np.dtype], Scan]] = {
    "add": _arithmetic("add"), "mul": _arithmetic("mul"), "max": _extremum("ge"), "min": _extremum("le"),
    "logarithms": _logarithms, "recurrence": _recurrence,
}
#: the dtypes that kernels support
_FLOAT_DTYPES, _ARITHMETIC_DTYPES = "fd", "fdilqbhBHI"
#: the fewest lines for which the logcumsumexp kernel, which vectorizes across lines, is faster than NumPy
MIN_LOGSUMEXP_LINES = 3
_plans = PlanCache()


@cache
def scan_of(name: str, dtype: np.dtype) -> Scan:
    """The scan of this name (see `scan_arrays`) for a dtype."""
    return _SCANS[name](dtype)


def scan_arrays(name: str, arrays: Sequence[ndarray], dim: int, back: bool) -> tuple[ndarray, ...] | None:
    """The results of a scan; None: NumPy has to compute them.

    Args:
        name: "add", "mul"; "max", "min", which give values and indices; "logarithms" (logcumsumexp); "recurrence" of
            elements and factors, y[i] = x[i] + factor[i] · y[i - 1].
        arrays: of one shape, with at least one dimension, and of one dtype.
        dim: non-negative.
        back: whether the scan runs from the end.
    """
    x = arrays[0]
    dtype = x.dtype
    key: tuple[Any, ...] = (name, dtype, dim, back, x.shape, x.strides)
    if len(arrays) > 1:
        key = (*key, *[each.strides for each in arrays[1:]])
    plan = _plans.plans.get(key)
    if plan is None:
        supported = _ARITHMETIC_DTYPES if name in ("add", "mul", "max", "min") else _FLOAT_DTYPES
        if dtype.char not in supported or not dtype.isnative:
            return None
        if name == "logarithms" and x.size < MIN_LOGSUMEXP_LINES * x.shape[dim]:
            return None
        scan = scan_of(name, dtype)
        outs = [Spec.dense(x.shape, each) for each in scan.outputs]
        launches = scan.launches(outs, [Spec.of(each) for each in arrays], dim, back)
        plan = _plans.insert(key, Plan([(x.shape, each, None) for each in scan.outputs], launches))
    results = tuple([np.empty(shape, each) for shape, each, _ in plan.outs])
    plan.run((*results, *arrays))
    return results


def scan_launch(name: str, x: ndarray, dim: int) -> Callable[[ndarray], tuple[ndarray, ...]] | None:
    """The scan of row-major arrays of this layout that gives several results."""
    if x.dtype.char not in _FLOAT_DTYPES:
        return None
    scan = scan_of(name, x.dtype)
    outs = tuple([(x.shape, each) for each in scan.outputs])
    return launch_of_outputs(outs, scan.launches([Spec.dense(*each) for each in outs], [Spec.of(x)], dim, False))


def label_paths(emission: np.ndarray, skips: np.ndarray, steps: np.ndarray, states: np.ndarray, back: bool
                ) -> np.ndarray | None:
    """The logarithms of sums over paths; -inf at steps and states that a sample has not; None: there is no kernel.

    Args:
        emission: (steps, samples, states), float32 or float64.
        skips: (samples, states), whether a state is entered from the one two before.
        steps, states: (samples,), of each sample; at least one state.
        back: whether paths run from the last step of a sample to its first.
    """
    if emission.dtype.char not in "fd":
        return None
    find = path_sums.function(emission.dtype.char, *emission.shape[1:], back)
    sums = np.full(emission.shape, -np.inf, emission.dtype)
    if find is None or not sums.size:
        return None
    arrays = (np.ascontiguousarray(each) for each in (emission, skips, steps, states))
    found: np.ndarray = find(None, sums, *arrays)
    return found


__all__ = ["label_paths", "scan_arrays", "scan_launch", "scan_of"]
