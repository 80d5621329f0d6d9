"""Reductions, scans and gathers along dimensions of rows, as steps of calls of any number of rows (`rows`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from ....backends.compiled.thresholds import COPIES, INDEXING, REDUCTIONS, SCANS, SUMS
from ....codegen.indexing import flat_positions, picked_rows
from ....codegen.rows import few_elements, reduction
from ....codegen.scalar.scalar_ir import variable
from ....codegen.scan import few_elements as few_scanned
from ....errstate import quietly
from ....ops.declare import Op
from ....runtime.filling import Filling, NewRows
from ....shapes import wrap_dim
from .rows import Range, Rows, Setting, Step, launch_of_filling, planned_by_rows

ndarray = np.ndarray
_LONG = np.dtype(np.int64)


def _setting(function: Any, word: int, factor: int) -> Setting:
    """The word of a built-in function's block."""
    return function.__self__.ctypes.data + 8 * word, 0, 0, factor, 0


def _reduced(x: Any, params: dict[str, Any]) -> tuple[Rows, int] | None:
    """The result of a reduction along the last dimension, of rows of one dimension, and their length."""
    dim, keepdim = params.get("dim"), params.get("keepdim", False)
    if dim.__class__ is tuple and len(dim) == 1:
        dim, = dim
    if x.__class__ is not Rows or len(x.rest) != 1 or dim.__class__ is not int or keepdim.__class__ is not bool or (
            wrap_dim(dim, x.free + 1) != x.free or params.get("dtype") is not None or x.dtype.char not in "fd"):
        return None
    return x.like((1,) if keepdim else (), x.dtype), x.rest[0]


def _sum(op: Op, operands: Sequence[Any], params: dict[str, Any], rows: Range) -> Step | None:
    x, = operands
    found = _reduced(x, params)
    if found is None:
        return None
    result, length = found
    if rows.now * length > SUMS[0]:
        return _by_kernel("sum", x, result, rows.between(SUMS[0] // length + 1, rows.most))
    interval = rows.between(0, SUMS[0] // length)
    if not 0 < length <= few_elements.MOST_TERMS or interval is None:
        return None
    add = few_elements.sums(x.dtype, 1, length, row_step=length)
    filling = Filling(add, (NewRows(result.rest, result.dtype), 0))
    return Step([(launch_of_filling(filling), (0,))], result, interval, [_setting(add, 0, 1)])


def _mean(op: Op, operands: Sequence[Any], params: dict[str, Any], rows: Range) -> Step | None:
    step = _sum(op, operands, params, rows)
    if step is None:
        return None
    x, = operands
    count, result = np.asarray(x.dtype.type(x.rest[0])), step.result
    filling = Filling(quietly, ([np.true_divide], 0, [count], NewRows(result.rest, result.dtype)))
    return step._replace(launches=[*step.launches, (launch_of_filling(filling), (-1,))])


def _extremum(name: str) -> Callable[..., Step | None]:
    def make(op: Op, operands: Sequence[Any], params: dict[str, Any], rows: Range) -> Step | None:
        x, = operands
        found = _reduced(x, params)
        if found is None or rows.now * found[1] <= REDUCTIONS[0]:
            return None
        return _by_kernel(name, x, found[0], rows.between(REDUCTIONS[0] // found[1] + 1, rows.most))

    return make


def _by_kernel(name: str, x: Rows, result: Rows, rows: Range | None) -> Step | None:
    """A reduction of each row by the compiled kernel."""
    if rows is None:
        return None
    flat = x.like((), result.dtype)
    return planned_by_rows(lambda n: reduction.launches(
        [(name, variable(0, x.dtype))], [flat.spec(n)], [x.spec(n)], (1,)), rows, [result], (0,))


def _scan(product: bool) -> Callable[..., Step | None]:
    def make(op: Op, operands: Sequence[Any], params: dict[str, Any], rows: Range) -> Step | None:
        x, = operands
        if x.__class__ is not Rows or x.dtype.char not in "fd" or params["dtype"] is not None or (
                params["dim"].__class__ is not int):
            return None
        axis = wrap_dim(params["dim"], x.free + len(x.rest)) - x.free
        interval = rows.between(0, SCANS[0] // max(prod(x.rest), 1))
        if axis < 0 or interval is None:
            return None
        outer = prod(x.rest[:axis])
        scan = few_scanned.function(product, x.dtype, outer, x.rest[axis], prod(x.rest[axis + 1:]))
        filling = Filling(scan, (NewRows(x.rest, x.dtype), 0))
        return Step([(launch_of_filling(filling), (0,))], x, interval, [_setting(scan, 0, outer)])

    return make


def _gather(op: Op, operands: Sequence[Any], params: dict[str, Any], rows: Range) -> Step | None:
    """Elements of each row by the row's indices."""
    x, index = operands
    if x.__class__ is not Rows or index.__class__ is not Rows or len(x.rest) != 1 or len(index.rest) != 1 or (
            index.dtype is not _LONG or wrap_dim(params["dim"], x.free + 1) != x.free or x.dtype.char not in "fdl"
            or not x.rest[0]):
        return None
    (size,), (count,) = x.rest, index.rest
    interval = rows.between(0, flat_positions.MOST // max(count, 1))
    if interval is None:
        return None
    bases = np.repeat(np.arange(interval.most) * size, count)
    move, owners = flat_positions.function(flat_positions.GATHER, x.dtype, bases, np.arange(bases.size), [(size, 1)],
                                           interval.most * size)
    filling = Filling(move, ([None], NewRows(index.rest, x.dtype), 0, 1), owners)
    return Step([(launch_of_filling(filling), (0, 1))], x.like(index.rest, x.dtype), interval,
                [_setting(move, 0, count), _setting(move, 3, size)])


def _rows_of(a: Any, index: Any, rows: Range, wraps: bool, most: int) -> Step | None:
    """Rows of an array by any number of indices."""
    if a.__class__ is not ndarray or index.__class__ is not Rows or index.dtype is not _LONG or not (a.size and a.ndim):
        return None
    per_index = prod(index.rest)
    row = prod(a.shape[1:])
    interval = rows.between(0, most // max(row * per_index, 1))
    if interval is None or not row:
        return None
    pick = picked_rows.function(1, 1, a.shape[0], row * a.itemsize, wraps)
    rest = (*index.rest, *a.shape[1:])
    filling = Filling(pick, ([None], NewRows(rest, a.dtype), 0, 1))
    return Step([(launch_of_filling(filling), (0, 1))], index.like(rest, a.dtype), interval,
                [_setting(pick, 1, per_index)])


def _index_select(op: Op, operands: Sequence[Any], params: dict[str, Any], rows: Range) -> Step | None:
    a, index = operands
    if a.__class__ is not ndarray or wrap_dim(params["dim"], a.ndim) or index.__class__ is not Rows or (
            index.free + len(index.rest) != 1):
        return None
    return _rows_of(a, index, rows, False, COPIES[0])


def _index(op: Op, operands: Sequence[Any], params: dict[str, Any], rows: Range) -> Step | None:
    if len(operands) != 2 or params:
        return None
    a, index = operands
    return _rows_of(a, index, rows, True, (COPIES if a.__class__ is ndarray and a.ndim > 1 else INDEXING)[0])


def _embedding(op: Op, operands: Sequence[Any], params: dict[str, Any], rows: Range) -> Step | None:
    weight, index = operands
    return _rows_of(weight, index, rows, False, COPIES[0])


STEPS: dict[str, Callable[..., Step | None]] = {
    "sum": _sum, "mean": _mean, "amax": _extremum("max"), "amin": _extremum("min"), "cumsum": _scan(False),
    "cumprod": _scan(True), "gather": _gather, "index_select": _index_select, "index": _index, "embedding": _embedding}

__all__ = ["STEPS"]
