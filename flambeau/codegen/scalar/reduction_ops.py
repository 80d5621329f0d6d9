"""Reduction operations: their names, accumulator dtypes, result dtypes, and results over no elements."""

from __future__ import annotations

import numpy as np

from .scalar_ir import BOOL, Node, cast, to_opmath

OPERATIONS = ("sum", "mean", "prod", "max", "min", "any", "all", "argmax", "argmin")
INT64, BYTE = np.dtype(np.int64), np.dtype(np.uint8)


def to_accumulator(op: str, expression: Node) -> Node:
    """The expression, cast to the accumulator's dtype: int64 for sums of integers, float32 for narrow floats.

    Raises:
        TypeError: the reduction is unknown, or a mean of integers or bools.
    """
    if op not in OPERATIONS:
        raise TypeError(f"unknown reduction {op!r}")
    kind = expression.dtype.kind
    if op in ("any", "all"):
        return cast(expression, BOOL)
    if op == "mean" and kind in "biu":
        raise TypeError(f"mean of {expression.dtype}: cast it to a floating dtype")
    if op in ("sum", "prod") and kind in "biu":
        return cast(expression, INT64)
    if expression.dtype == BOOL:
        return cast(expression, BYTE)
    return to_opmath(expression)


def result_dtype(op: str, expression: Node) -> np.dtype:
    """The dtype of the result, PyTorch's."""
    if op in ("argmax", "argmin"):
        return INT64
    if op in ("any", "all"):
        return BOOL
    if op in ("sum", "prod") and expression.dtype.kind in "biu":
        return INT64
    return expression.dtype


def empty(op: str) -> float:
    """The result over no elements.

    Raises:
        ValueError: the reduction has no result over no elements.
    """
    result = {"sum": 0, "prod": 1, "any": False, "all": True, "mean": float("nan")}.get(op)
    if result is None:
        raise ValueError(f"{op} of no elements")
    return result
