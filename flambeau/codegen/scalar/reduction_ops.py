"""The terms of reductions: their operations, the dtypes that they compute in and give, and what no elements give."""

from __future__ import annotations

import numpy as np

from .scalar_ir import BOOL, Node, cast, wide

OPERATIONS = ("sum", "mean", "prod", "max", "min", "any", "all", "argmax", "argmin")
INT64, BYTE = np.dtype(np.int64), np.dtype(np.uint8)


def prepared(op: str, expression: Node) -> Node:
    """The expression in the dtype that it is reduced in: integers are added as int64, narrow floats as float32.

    Raises:
        TypeError: an unknown reduction, or the mean of what is not floating.
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
    return wide(expression)


def result_dtype(op: str, expression: Node) -> np.dtype:
    """The dtype of the result, as PyTorch has it."""
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
        ValueError: there is none.
    """
    found = {"sum": 0, "prod": 1, "any": False, "all": True, "mean": float("nan")}.get(op)
    if found is None:
        raise ValueError(f"{op} of no elements")
    return found
