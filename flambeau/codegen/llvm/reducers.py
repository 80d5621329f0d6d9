"""What a reduction carries along: a state that single elements are lifted to, and that merges with another one.

A state is a list of LLVM values, scalars or vectors: for each term of the reduction one, and for argmax and argmin
the place where it was found beside it. Merging is associative but for rounding, so that a reduction may be cut up
and put together at will.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from llvmlite import ir

from ..scalar.reduction_ops import BYTE, INT64
from ..scalar.reduction_ops import prepared as prepared
from ..scalar.reduction_ops import result_dtype as result_dtype
from ..scalar.scalar_ir import BOOL, Node, cast, variable
from .lowering import computed, extreme, lower, number, splat

_LAST = (1 << 63) - 1


def _least(dtype: np.dtype, op: str) -> Any:
    """What every element beats."""
    if dtype.kind == "f":
        return np.array(-np.inf if op.endswith("max") else np.inf, dtype).tobytes()
    limits = np.iinfo(dtype)
    return int(limits.min if op.endswith("max") else limits.max)


class Monoid:
    """The states of several terms, reduced together in one pass.

    Attributes:
        ops, expressions: the terms; the expressions as `prepared` left them.
        dtypes: of the state's components, as they are kept in memory.
    """

    def __init__(self, terms: Sequence[tuple[str, Node]]) -> None:
        self.ops = [op for op, _ in terms]
        self.expressions = [prepared(op, expression) for op, expression in terms]
        self.results = [result_dtype(op, expression) for op, expression in terms]
        self.dtypes: list[np.dtype] = []
        self.positions: list[int] = []
        for op, expression in zip(self.ops, self.expressions, strict=True):
            self.positions.append(len(self.dtypes))
            self.dtypes.append(BYTE if expression.dtype == BOOL else expression.dtype)
            if op.startswith("arg"):
                self.dtypes.append(INT64)

    @property
    def finds_places(self) -> bool:
        """Whether a component is an element's place."""
        return any(op.startswith("arg") for op in self.ops)

    def types(self, lanes: int) -> list[ir.Type]:
        """The LLVM types of a state's components."""
        return [computed(dtype, lanes) for dtype in self.dtypes]

    def identity(self, lanes: int) -> list[Any]:
        """The state of no elements."""
        state: list[Any] = []
        for op, position in zip(self.ops, self.positions, strict=True):
            dtype = self.dtypes[position]
            type_ = computed(dtype, lanes)
            if op in ("sum", "mean"):
                # minus zero changes nothing at all
                state.append(number(np.array(-0.0, dtype).tobytes() if dtype.kind == "f" else 0, type_))
            elif op == "prod":
                state.append(number(1.0 if dtype.kind == "f" else 1, type_))
            elif op in ("any", "all"):
                state.append(number(int(op == "all"), type_))
            else:
                state.append(number(_least(dtype, op), type_))
                if op.startswith("arg"):
                    state.append(number(_LAST, computed(INT64, lanes)))
        return state

    def lift(self, builder: ir.IRBuilder, values: Sequence[Any], place: Any, lanes: int) -> list[Any]:
        """The state of one element (in each lane): the expressions' values, found at this place."""
        state = []
        for op, expression, value in zip(self.ops, self.expressions, values, strict=True):
            state.append(builder.zext(value, computed(BYTE, lanes)) if expression.dtype == BOOL else value)
            if op.startswith("arg"):
                state.append(place)
        return state

    def merge(self, builder: ir.IRBuilder, a: Sequence[Any], b: Sequence[Any]) -> list[Any]:
        """The state of both's elements."""
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
                state.append(extreme(builder, f"{op}imum", kind, x, y))
            else:
                state += self._first_best(builder, op, kind, (x, a[position + 1]), (y, b[position + 1]))
        return state

    @staticmethod
    def _first_best(builder: ir.IRBuilder, op: str, kind: str, a: tuple[Any, Any], b: tuple[Any, Any]) -> list[Any]:
        """argmax and argmin: NaN beats all numbers, and of equals the first wins."""
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
        mine = builder.or_(better, builder.and_(equal, earlier))
        return [builder.select(mine, x, y), builder.select(mine, i, j)]

    def finish(self, builder: ir.IRBuilder, state: Sequence[Any], count: Any, lanes: int) -> list[Any]:
        """The terms' results, from the state of `count` elements (an i64)."""
        found = []
        for op, expression, position, result in zip(self.ops, self.expressions, self.positions, self.results,
                                                    strict=True):
            value = state[position]
            if op.startswith("arg"):
                value = state[position + 1]
            elif op in ("any", "all") or result == BOOL:
                value = builder.icmp_unsigned("!=", value, number(0, value.type))
            else:
                if op == "mean":
                    one = builder.sitofp(count, computed(expression.dtype))
                    value = builder.fdiv(value, splat(builder, one, lanes))
                if result != expression.dtype:
                    x = variable(0, expression.dtype)
                    [value] = lower(builder, [cast(x, result)], {x: value}, lanes)
            found.append(value)
        return found
