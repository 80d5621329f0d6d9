"""One element of an array while a formula is traced: arithmetic on it builds expressions, with NumPy's promotion.

A declaration's line runs on symbols as it runs on arrays. What has no expression (complex numbers, shapes, functions
without a kernel) raises `Untraceable`, and the operator stays with NumPy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ....codegen.scalar import scalar_ir
from ....codegen.scalar.scalar_ir import BOOL, FLOAT64, Node
from .scalars import PLAIN, Numbers, Scalar


class Untraceable(Exception):
    """A formula of which no kernel can be made, and why."""


class Symbol:
    """An element: the expression that computes it.

    Attributes:
        node: the expression.
        trace: what the formula is traced in, which keeps the numbers that kernels take.
    """

    __slots__ = ("node", "trace")

    def __init__(self, node: Node, trace: Trace) -> None:
        self.node, self.trace = node, trace

    def __repr__(self) -> str:
        return f"<symbol {self.node}>"

    @property
    def dtype(self) -> np.dtype:
        return self.node.dtype

    def __getattr__(self, name: str) -> Any:
        raise Untraceable(f"asks an element for its {name}")

    def __bool__(self) -> bool:
        raise Untraceable("asks whether an element is true")

    def __iter__(self) -> Any:
        raise Untraceable("goes through elements")

    __hash__ = None  # type: ignore[assignment]

    def __add__(self, other: Any) -> Symbol:
        return binary("add", self, other)

    def __radd__(self, other: Any) -> Symbol:
        return binary("add", other, self)

    def __sub__(self, other: Any) -> Symbol:
        return binary("sub", self, other)

    def __rsub__(self, other: Any) -> Symbol:
        return binary("sub", other, self)

    def __mul__(self, other: Any) -> Symbol:
        return binary("mul", self, other)

    def __rmul__(self, other: Any) -> Symbol:
        return binary("mul", other, self)

    def __truediv__(self, other: Any) -> Symbol:
        return floating("div", self, other)

    def __rtruediv__(self, other: Any) -> Symbol:
        return floating("div", other, self)

    def __neg__(self) -> Symbol:
        if self.dtype == BOOL:
            raise Untraceable("the negative of a bool")
        return Symbol(-self.node, self.trace)

    def __pos__(self) -> Symbol:
        return self

    def __eq__(self, other: Any) -> Symbol:  # type: ignore[override]
        return binary("eq", self, other)

    def __ne__(self, other: Any) -> Symbol:  # type: ignore[override]
        return binary("ne", self, other)

    def __lt__(self, other: Any) -> Symbol:
        return binary("lt", self, other)

    def __le__(self, other: Any) -> Symbol:
        return binary("le", self, other)

    def __gt__(self, other: Any) -> Symbol:
        return binary("gt", self, other)

    def __ge__(self, other: Any) -> Symbol:
        return binary("ge", self, other)


class Trace:
    """The tracing of one formula.

    Attributes:
        numbers: the Python numbers among its parameters.
        inputs: how many arrays come before the numbers that its kernel takes.
    """

    def __init__(self, numbers: Numbers, inputs: int) -> None:
        self.numbers, self.inputs = numbers, inputs

    def variable(self, index: int, dtype: np.dtype) -> Symbol:
        """The element of array number `index`."""
        try:
            return Symbol(scalar_ir.variable(index, dtype), self)
        except TypeError as error:
            raise Untraceable(str(error)) from None

    def number(self, value: Any, dtype: np.dtype) -> Node:
        """A number beside elements of a dtype, which does not widen them."""
        if isinstance(value, Scalar):
            return scalar_ir.variable(self.inputs + self.numbers.keep(value, dtype), dtype)
        return scalar_ir.constant(_checked(value, dtype), dtype)

    def node(self, value: Any, dtype: np.dtype) -> Node:
        """An operand's expression in a dtype."""
        if isinstance(value, Symbol):
            return scalar_ir.cast(value.node, dtype)
        return self.number(value, dtype)


def _checked(value: Any, dtype: np.dtype) -> Any:
    """A number that can be one of a dtype."""
    if dtype.kind in "iu" and not isinstance(value, bool):
        limits = np.iinfo(dtype)
        if value != value or not limits.min <= value <= limits.max:
            raise Untraceable(f"{value} among {dtype}")
        return int(value)
    return value


def promoted(*operands: Any) -> np.dtype:
    """The dtype that operands are computed in together: numbers widen only from one kind to a higher one."""
    kinds = []
    for x in operands:
        if isinstance(x, Symbol):
            kinds.append(x.dtype)
        elif type(x) in PLAIN:
            kinds.append(x)
        elif isinstance(x, Scalar):
            kinds.append(type(x.value)(1))
        else:
            raise Untraceable(f"an operand of type {type(x).__name__}")
    return np.result_type(*kinds)


def trace_of(*operands: Any) -> Trace:
    """The trace that the symbols among these belong to."""
    for x in operands:
        if isinstance(x, Symbol):
            return x.trace
    raise Untraceable("numbers alone")


def binary(op: str, *operands: Any) -> Symbol:
    """An operation of operands promoted to one dtype."""
    for x in operands:
        if not isinstance(x, (Symbol, Scalar)) and type(x) not in PLAIN:
            return NotImplemented
    trace, dtype = trace_of(*operands), promoted(*operands)
    nodes = [trace.node(x, dtype) for x in operands]
    if dtype == BOOL and op in _OF_BOOLS:
        if _OF_BOOLS[op] is None:
            raise Untraceable(f"{op} of bools")
        op = _OF_BOOLS[op]
    return Symbol(scalar_ir.apply(op, *nodes), trace)


_OF_BOOLS: dict[str, Any] = {"add": "or", "mul": "and", "maximum": "or", "minimum": "and", "fmax": "or", "fmin": "and",
                             "sub": None, "abs": None}


def floating(op: str, *operands: Any) -> Symbol:
    """An operation that has floats for results: integers become float64, as NumPy has it."""
    for x in operands:
        if not isinstance(x, (Symbol, Scalar)) and type(x) not in PLAIN:
            return NotImplemented
    trace, dtype = trace_of(*operands), promoted(*operands)
    if dtype.kind != "f":
        dtype = FLOAT64
    return Symbol(scalar_ir.apply(op, *[trace.node(x, dtype) for x in operands]), trace)


def as_symbol(value: Any, trace: Trace, dtype: np.dtype) -> Symbol:
    """A formula's result: numbers become elements of a dtype."""
    return value if isinstance(value, Symbol) else Symbol(trace.number(value, dtype), trace)


Function = Callable[..., Any]

__all__ = ["Symbol", "Trace", "Untraceable", "as_symbol", "binary", "floating", "promoted", "trace_of"]
