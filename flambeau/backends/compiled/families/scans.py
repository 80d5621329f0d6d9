"""Scans of large arrays by kernels: sums, products, extrema, recurrences. Results lie row by row."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np

from ....codegen.scalar import scalar_ir
from ....codegen.scalar.scalar_ir import FLOAT32, FLOAT64, cast, constant, select, variable
from ....codegen.scan.scan import Scan
from ....runtime.launch import Spec
from ..launching import Plan, Plans

ndarray = np.ndarray
_INT64 = np.dtype(np.int64)


def _wide(dtype: np.dtype) -> np.dtype:
    """What numbers are accumulated in: PyTorch's choice."""
    return FLOAT64 if dtype == FLOAT32 else dtype if dtype.kind == "f" else _INT64


def _arithmetic(op: str) -> Callable[[np.dtype], Scan]:
    def scan(dtype: np.dtype) -> Scan:
        wide = _wide(dtype)
        total, x = variable(0, wide), cast(variable(1, dtype), wide)
        neutral = constant({"add": -0.0, "mul": 1.0}[op] if wide.kind == "f" else int(op == "mul"), wide)
        return Scan([scalar_ir.binary(op, total, x)], [neutral], [dtype if dtype.kind == "f" else wide])

    return scan


def _extremum(op: str) -> Callable[[np.dtype], Scan]:
    def scan(dtype: np.dtype) -> Scan:
        best, place, x, step = variable(0, dtype), variable(1, _INT64), variable(2, dtype), variable(3, _INT64)
        fresh = scalar_ir.compare(op, x, best)
        if dtype.kind == "f":
            fresh = fresh | scalar_ir.ne(x, x)
            worst: float | int = -math.inf if op == "ge" else math.inf
        else:
            worst = np.iinfo(dtype).min if op == "ge" else np.iinfo(dtype).max
        return Scan([select(fresh, x, best), select(fresh, step, place)],
                    [constant(worst, dtype), constant(0, _INT64)], [dtype, _INT64])

    return scan


def _logarithms(dtype: np.dtype) -> Scan:
    total, x, step = variable(0, FLOAT64), cast(variable(1, dtype), FLOAT64), variable(2, _INT64)
    more = scalar_ir.log1p(scalar_ir.exp(-abs(x - total)))
    found = select(scalar_ir.eq(x, total), x + math.log(2), scalar_ir.maximum(x, total) + more)
    return Scan([select(scalar_ir.eq(step, 0), x, found)], [constant(0.0, FLOAT64)], [dtype])


def _recurrence(dtype: np.dtype) -> Scan:
    before, x, factor, step = variable(0, dtype), variable(1, dtype), variable(2, dtype), variable(3, _INT64)
    return Scan([select(scalar_ir.eq(step, 0), x, x + factor * before)], [constant(0.0, dtype)], [dtype])


_SCANS: dict[str, Callable[[np.dtype], Scan]] = {
    "add": _arithmetic("add"), "mul": _arithmetic("mul"), "max": _extremum("ge"), "min": _extremum("le"),
    "logarithms": _logarithms, "recurrence": _recurrence,
}
#: dtypes' characters that kernels are made for, where not said otherwise
_FLOATS, _NUMBERS = "fd", "fdilqbhBHI"
#: lines from which on logarithms of several at once are quicker than those of one after the other
SEVERAL = 3
_plans = Plans()


@cache
def scan_of(name: str, dtype: np.dtype) -> Scan:
    """The scan of this name (`scanned`) of elements of a dtype."""
    return _SCANS[name](dtype)


def scanned(name: str, arrays: Sequence[ndarray], dim: int, back: bool) -> tuple[ndarray, ...] | None:
    """The results of a scan; None: NumPy is to compute them.

    Args:
        name: "add", "mul"; "max", "min", which give values and places; "logarithms"; "recurrence" of elements and
            factors.
        arrays: of one shape, with dimensions, and of one dtype.
        dim: from 0 on.
        back: whether it goes from the end.
    """
    x = arrays[0]
    dtype = x.dtype
    if dtype.char not in (_NUMBERS if name in ("add", "mul", "max", "min") else _FLOATS) or not dtype.isnative:
        return None
    if name == "logarithms" and x.size < SEVERAL * x.shape[dim]:
        return None
    key = (name, dtype, dim, back, x.shape, *[each.strides for each in arrays])
    plan = _plans.found.get(key)
    if plan is None:
        scan = scan_of(name, dtype)
        outs = [Spec.dense(x.shape, each) for each in scan.outputs]
        launches = scan.launches(outs, [Spec.of(each) for each in arrays], dim, back)
        plan = _plans.keep(key, Plan([(x.shape, each, None) for each in scan.outputs], launches))
    results = tuple([np.empty(shape, each) for shape, each, _ in plan.outs])
    plan.run((*results, *arrays))
    return results


__all__ = ["scan_of", "scanned"]
