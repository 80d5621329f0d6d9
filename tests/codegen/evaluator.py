"""Scalar IR evaluated by NumPy in float64: the reference for kernels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from flambeau import dtypes
from flambeau.codegen.rows.rows import Rows
from flambeau.codegen.scalar.scalar_ir import Node, topological_order

_FUNCTIONS = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "neg": np.negative, "abs": np.abs,
    "exp": np.exp, "log": np.log, "sqrt": np.sqrt, "tanh": np.tanh, "rsqrt": lambda x: 1 / np.sqrt(x),
    "recip": lambda x: 1 / x, "minimum": np.minimum, "maximum": np.maximum, "eq": np.equal, "ne": np.not_equal,
    "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "select": np.where,
    "and": np.logical_and, "or": np.logical_or, "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
}
_REDUCTIONS = {"sum": np.sum, "mean": np.mean, "prod": np.prod, "max": np.max, "min": np.min, "any": np.any,
               "all": np.all}


def widen(array: np.ndarray) -> np.ndarray:
    """Floats as float64, everything else as it is."""
    array = np.asarray(array)
    return dtypes.widen(array).astype(np.float64) if array.dtype.kind in "fV" else array


def evaluate(node: Node, variables: Sequence[np.ndarray]) -> np.ndarray:
    """An expression's value, of variables that broadcast together."""
    values: dict[Node, np.ndarray] = {}
    with np.errstate(all="ignore"):
        for each in topological_order([node]):
            if each.op == "input":
                values[each] = widen(variables[each.const])
            elif each.op == "constant":
                values[each] = np.asarray(each.value)
            elif each.op == "cast":
                value = values[each.args[0]]
                values[each] = value.astype(each.dtype) if each.dtype.kind in "biu" else value.astype(np.float64)
            else:
                values[each] = _FUNCTIONS[each.op](*(values[arg] for arg in each.args))
    return values[node]


def rows(work: Rows, inputs: Sequence[np.ndarray], inner: int) -> list[np.ndarray]:
    """The outputs of a row kernel."""
    shape = np.broadcast_shapes(*(x.shape for x in inputs))
    outer, within = tuple(range(len(shape) - inner)), tuple(range(len(shape) - inner, len(shape)))
    known = [widen(x) for x in inputs]

    def over(x: Node, axes: tuple[int, ...], op: str = "sum", keepdims: bool = False) -> np.ndarray:
        value = np.broadcast_to(evaluate(x, known), shape)
        if op.startswith("arg"):
            flat = value.reshape(*value.shape[:len(outer)], -1)
            found = getattr(np, op)(flat, -1)
            return found.reshape(*found.shape, *[1] * inner)
        with np.errstate(all="ignore"):
            return np.asarray(_REDUCTIONS[op](value, axes, keepdims=keepdims))

    for stage in work.stages:
        found = [over(x, within, op, True) for op, x in stage]
        known += found
    results = [np.broadcast_to(evaluate(x, known), shape) for x in work.elementwise]
    first = (..., *[0] * inner)
    one = shape[:len(outer)] + (1,) * inner
    results += [np.broadcast_to(evaluate(x, known), one)[first] for x in work.per_row]
    results += [over(x, outer) for x in work.column_sums]
    results += [over(x, outer + within) for x in work.totals]
    results += [np.broadcast_to(evaluate(x, known), one).sum() for x in work.row_totals]
    return results
