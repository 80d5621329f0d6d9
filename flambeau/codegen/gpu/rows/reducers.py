"""Reductions as scalar IR: the identity, the lift of an element, the merge of states, the result.

A state is a list of nodes: the value, and for argmax and argmin the element's index. The CPU's are `llvm.reducers`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...scalar import scalar_ir
from ...scalar.reduction_ops import INT64, to_accumulator
from ...scalar.scalar_ir import Node, apply, cast, eq, maximum, minimum, ne, select


class Reduction:
    """A reduction of an expression.

    Args:
        op: a name of `reduction_ops.OPERATIONS`.
        expression: what is reduced.

    Attributes:
        expression: cast to the accumulator's dtype.
        dtypes: of the state.

    >>> from flambeau.codegen.scalar.scalar_ir import variable
    >>> most = Reduction("argmax", variable(0, "float32"))
    >>> print(*most.dtypes)
    float32 int64
    """

    def __init__(self, op: str, expression: Node) -> None:
        self.op = op
        self.expression = to_accumulator(op, expression)
        value = self.expression.dtype
        self.dtypes = [value, INT64] if op.startswith("arg") else [value]

    @property
    def identity(self) -> list[Node]:
        """The state of no elements."""
        dtype, op = self.dtypes[0], self.op
        if op in ("sum", "mean"):
            return [scalar_ir.constant(-0.0 if dtype.kind == "f" else 0, dtype)]  # 0.0 + -0.0 is 0.0
        if op == "prod":
            return [scalar_ir.constant(1.0 if dtype.kind == "f" else 1, dtype)]
        if op in ("any", "all"):
            return [scalar_ir.constant(op == "all", dtype)]
        if dtype.kind == "f":
            least = scalar_ir.constant(-np.inf if op.endswith("max") else np.inf, dtype)
        else:
            limits = np.iinfo(dtype)
            least = scalar_ir.constant(int(limits.min if op.endswith("max") else limits.max), dtype)
        return [least, scalar_ir.constant(2**63 - 1, INT64)] if len(self.dtypes) > 1 else [least]

    def lift(self, value: Node, index: Node) -> list[Node]:
        """The state of one element, whose position is `index`."""
        return [value, cast(index, INT64)] if len(self.dtypes) > 1 else [value]

    def merge(self, a: Sequence[Node], b: Sequence[Node]) -> list[Node]:
        """The state of the elements of both."""
        op = self.op
        if op in ("sum", "mean"):
            return [a[0] + b[0]]
        if op == "prod":
            return [a[0] * b[0]]
        if op in ("any", "all"):
            return [apply("or" if op == "any" else "and", a[0], b[0])]
        if op in ("max", "min"):
            return [(maximum if op == "max" else minimum)(a[0], b[0])]
        (x, i), (y, j) = a, b
        better, equal = (x > y if op == "argmax" else x < y), eq(x, y)
        if x.dtype.kind == "f":  # NaN precedes all numbers
            x_nan, y_nan = ne(x, x), ne(y, y)
            better, equal = better | (x_nan & ~y_nan), equal | (x_nan & y_nan)
        first = better | (equal & (i < j))
        return [select(first, x, y), select(first, i, j)]

    def finish(self, state: Sequence[Node], count: int) -> Node:
        """The result, of `count` elements; in the accumulator's dtype, but bool for any and all, int64 for arg."""
        value = state[-1]
        return value / float(count) if self.op == "mean" else value


__all__ = ["Reduction"]
