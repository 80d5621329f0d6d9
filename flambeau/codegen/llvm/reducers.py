"""Reducers: the identity, the lift of an element, the merge and the final result of reductions, as LLVM values.

A state is a list of LLVM values, scalars or vectors: one per reduction, and for argmax and argmin also the element's
index. Merging is associative up to rounding, so a reduction may be split in any way.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from llvmlite import ir

from ..scalar.reduction_ops import BYTE, INT64, result_dtype, to_accumulator
from ..scalar.scalar_ir import BOOL, Node, cast, variable
from .lowering import constant, lower, min_or_max, splat, value_type

_MAX_INDEX = (1 << 63) - 1


def _extremum_identity(dtype: np.dtype, op: str) -> Any:
    """The identity of max or min: bytes of a float, or an integer."""
    if dtype.kind == "f":
        return np.array(-np.inf if op.endswith("max") else np.inf, dtype).tobytes()
    limits = np.iinfo(dtype)
    return int(limits.min if op.endswith("max") else limits.max)


class Reducer:
    """Several reductions of the same elements, computed in one pass.

    Args:
        terms: pairs of a reduction's name (`reduction_ops.OPERATIONS`) and the expression that it reduces.

    Attributes:
        ops: the reductions' names.
        expressions: what they reduce, cast to the dtype of the accumulator.
        results: the dtypes of the results.
        dtypes: the dtypes of the state's components in memory.
        positions: of each reduction, the index of its first component.
    """

    def __init__(self, terms: Sequence[tuple[str, Node]]) -> None:
        self.ops = [op for op, _ in terms]
        self.expressions = [to_accumulator(op, expression) for op, expression in terms]
        self.results = [result_dtype(op, expression) for op, expression in terms]
        self.dtypes: list[np.dtype] = []
        self.positions: list[int] = []
        for op, expression in zip(self.ops, self.expressions, strict=True):
            self.positions.append(len(self.dtypes))
            self.dtypes.append(BYTE if expression.dtype == BOOL else expression.dtype)
            if op.startswith("arg"):
                self.dtypes.append(INT64)

    @property
    def tracks_index(self) -> bool:
        """Whether a component of the state is an element's index."""
        return any(op.startswith("arg") for op in self.ops)

    def types(self, lanes: int) -> list[ir.Type]:
        """The LLVM types of a state's components."""
        return [value_type(dtype, lanes) for dtype in self.dtypes]

    def identity(self, lanes: int) -> list[Any]:
        """The state of no elements, the neutral element of `merge`."""
        state: list[Any] = []
        for op, position in zip(self.ops, self.positions, strict=True):
            dtype = self.dtypes[position]
            type_ = value_type(dtype, lanes)
            if op in ("sum", "mean"):
                # -0.0, since 0.0 + -0.0 is 0.0
                state.append(constant(np.array(-0.0, dtype).tobytes() if dtype.kind == "f" else 0, type_))
            elif op == "prod":
                state.append(constant(1.0 if dtype.kind == "f" else 1, type_))
            elif op in ("any", "all"):
                state.append(constant(int(op == "all"), type_))
            else:
                state.append(constant(_extremum_identity(dtype, op), type_))
                if op.startswith("arg"):
                    state.append(constant(_MAX_INDEX, value_type(INT64, lanes)))
        return state

    def lift(self, builder: ir.IRBuilder, values: Sequence[Any], index: Any, lanes: int) -> list[Any]:
        """The state of one element (in each lane).

        Args:
            builder: of the function.
            values: the values of the expressions.
            index: the element's index, an i64, for argmax and argmin.
            lanes: elements per vector.
        """
        state = []
        for op, expression, value in zip(self.ops, self.expressions, values, strict=True):
            state.append(builder.zext(value, value_type(BYTE, lanes)) if expression.dtype == BOOL else value)
            if op.startswith("arg"):
                state.append(index)
        return state

    def merge(self, builder: ir.IRBuilder, a: Sequence[Any], b: Sequence[Any]) -> list[Any]:
        """The state of the elements of both."""
        state: list[Any] = []
        for op, position in zip(self.ops, self.positions, strict=True):
            x, y, kind = a[position], b[position], self.dtypes[position].kind
            if op in ("sum", "mean"):
                state.append(builder.fadd(x, y) if kind == "f" else builder.add(x, y))
            elif op == "prod":
                state.append(builder.fmul(x, y) if kind == "f" else builder.mul(x, y))
            elif op in ("any", "all"):
                state.append(builder.or_(x, y) if op == "any" else builder.and_(x, y))
            elif op in ("max", "min"):
                state.append(min_or_max(builder, f"{op}imum", kind, x, y))
            else:
                state += self._merge_arg(builder, op, kind, (x, a[position + 1]), (y, b[position + 1]))
        return state

    @staticmethod
    def _merge_arg(builder: ir.IRBuilder, op: str, kind: str, a: tuple[Any, Any], b: tuple[Any, Any]) -> list[Any]:
        """Merge (value, index) pairs of argmax or argmin: NaN precedes all numbers, then the lower index."""
        (x, i), (y, j) = a, b
        sign = ">" if op == "argmax" else "<"
        earlier = builder.icmp_signed("<", i, j)
        if kind == "f":
            x_nan, y_nan = (builder.fcmp_unordered("uno", each, each) for each in (x, y))
            better = builder.or_(builder.fcmp_ordered(sign, x, y), builder.and_(x_nan, builder.not_(y_nan)))
            equal = builder.or_(builder.fcmp_ordered("==", x, y), builder.and_(x_nan, y_nan))
        else:
            compare = builder.icmp_signed if kind == "i" else builder.icmp_unsigned
            better, equal = compare(sign, x, y), compare("==", x, y)
        first = builder.or_(better, builder.and_(equal, earlier))
        return [builder.select(first, x, y), builder.select(first, i, j)]

    def finish(self, builder: ir.IRBuilder, state: Sequence[Any], count: Any, lanes: int) -> list[Any]:
        """The results of the reductions, from the state of `count` elements (an i64)."""
        results = []
        for op, expression, position, result in zip(self.ops, self.expressions, self.positions, self.results,
                                                    strict=True):
            value = state[position]
            if op.startswith("arg"):
                value = state[position + 1]
            elif op in ("any", "all") or result == BOOL:
                value = builder.icmp_unsigned("!=", value, constant(0, value.type))
            else:
                if op == "mean":
                    one = builder.sitofp(count, value_type(expression.dtype))
                    value = builder.fdiv(value, splat(builder, one, lanes))
                if result != expression.dtype:
                    x = variable(0, expression.dtype)
                    [value] = lower(builder, [cast(x, result)], {x: value}, lanes)
            results.append(value)
        return results
