"""Symbolic array elements: arithmetic on them builds scalar expressions, with NumPy's promotion.

An elementwise declaration runs on symbolic elements as it runs on arrays. Whatever has no expression (complex numbers,
shapes, functions without a kernel) raises `Untraceable`; NumPy then computes the operator.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ....codegen.scalar import scalar_ir
from ....codegen.scalar.scalar_ir import BOOL, FLOAT64, Node
from .scalars import SCALAR_TYPES, Scalar, ScalarParameters


class Untraceable(Exception):
    """A declaration that cannot be a kernel, and why."""


class SymbolicElement:
    """An element of an array in a trace.

    Attributes:
        node: the expression that computes it.
        trace: the trace, which has the scalars that kernels take.
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
        raise Untraceable(f"attribute {name} of an element")

    def __bool__(self) -> bool:
        raise Untraceable("bool() of an element")

    def __iter__(self) -> Any:
        raise Untraceable("iteration over elements")

    __hash__ = None  # type: ignore[assignment]

    def __add__(self, other: Any) -> SymbolicElement:
        return binary("add", self, other)

    def __radd__(self, other: Any) -> SymbolicElement:
        return binary("add", other, self)

    def __sub__(self, other: Any) -> SymbolicElement:
        return binary("sub", self, other)

    def __rsub__(self, other: Any) -> SymbolicElement:
        return binary("sub", other, self)

    def __mul__(self, other: Any) -> SymbolicElement:
        return binary("mul", self, other)

    def __rmul__(self, other: Any) -> SymbolicElement:
        return binary("mul", other, self)

    def __truediv__(self, other: Any) -> SymbolicElement:
        return floating("div", self, other)

    def __rtruediv__(self, other: Any) -> SymbolicElement:
        return floating("div", other, self)

    def __neg__(self) -> SymbolicElement:
        if self.dtype == BOOL:
            raise Untraceable("the negative of a bool")
        return SymbolicElement(-self.node, self.trace)

    def __pos__(self) -> SymbolicElement:
        return self

    def __eq__(self, other: Any) -> SymbolicElement:  # type: ignore[override]
        return binary("eq", self, other)

    def __ne__(self, other: Any) -> SymbolicElement:  # type: ignore[override]
        return binary("ne", self, other)

    def __lt__(self, other: Any) -> SymbolicElement:
        return binary("lt", self, other)

    def __le__(self, other: Any) -> SymbolicElement:
        return binary("le", self, other)

    def __gt__(self, other: Any) -> SymbolicElement:
        return binary("gt", self, other)

    def __ge__(self, other: Any) -> SymbolicElement:
        return binary("ge", self, other)


class Trace:
    """The trace of one declaration.

    Attributes:
        scalars: the Python numbers among the parameters.
        inputs: the number of arrays, whose variables precede those of the scalars.
    """

    def __init__(self, scalars: ScalarParameters, inputs: int) -> None:
        self.scalars, self.inputs = scalars, inputs

    def variable(self, index: int, dtype: np.dtype) -> SymbolicElement:
        """The element of array number `index`."""
        try:
            return SymbolicElement(scalar_ir.variable(index, dtype), self)
        except TypeError as error:
            raise Untraceable(str(error)) from None

    def number(self, value: Any, dtype: np.dtype) -> Node:
        """The expression of a number of a dtype."""
        if isinstance(value, Scalar):
            return scalar_ir.variable(self.inputs + self.scalars.add_runtime_scalar(value, dtype), dtype)
        return scalar_ir.constant(_in_range(value, dtype), dtype)

    def node(self, value: Any, dtype: np.dtype) -> Node:
        """The expression of an operand, cast to a dtype."""
        if isinstance(value, SymbolicElement):
            return scalar_ir.cast(value.node, dtype)
        return self.number(value, dtype)


def _in_range(value: Any, dtype: np.dtype) -> Any:
    """A number, if it can be represented in a dtype."""
    if dtype.kind in "iu" and not isinstance(value, bool):
        limits = np.iinfo(dtype)
        if value != value or not limits.min <= value <= limits.max:
            raise Untraceable(f"{value} is out of range of {dtype}")
        return int(value)
    return value


def promoted_dtype(*operands: Any) -> np.dtype:
    """The common dtype of operands; Python numbers only promote to a higher kind."""
    dtypes = []
    for x in operands:
        if isinstance(x, SymbolicElement):
            dtypes.append(x.dtype)
        elif type(x) in SCALAR_TYPES:
            dtypes.append(x)
        elif isinstance(x, Scalar):
            dtypes.append(type(x.value)(1))
        else:
            raise Untraceable(f"an operand of type {type(x).__name__}")
    return np.result_type(*dtypes)


def trace_of(*operands: Any) -> Trace:
    """The trace of the symbolic elements among the operands."""
    for x in operands:
        if isinstance(x, SymbolicElement):
            return x.trace
    raise Untraceable("operands that are all numbers")


def binary(op: str, *operands: Any) -> SymbolicElement:
    """An operation on operands promoted to one dtype."""
    for x in operands:
        if not isinstance(x, (SymbolicElement, Scalar)) and type(x) not in SCALAR_TYPES:
            return NotImplemented
    trace, dtype = trace_of(*operands), promoted_dtype(*operands)
    nodes = [trace.node(x, dtype) for x in operands]
    if dtype == BOOL and op in _BOOL_OPERATIONS:
        if _BOOL_OPERATIONS[op] is None:
            raise Untraceable(f"{op} of bools")
        op = _BOOL_OPERATIONS[op]
    return SymbolicElement(scalar_ir.apply(op, *nodes), trace)


_BOOL_OPERATIONS: dict[str, Any] = {"add": "or", "mul": "and", "maximum": "or", "minimum": "and", "fmax": "or",
                                    "fmin": "and", "sub": None, "abs": None}


def floating(op: str, *operands: Any) -> SymbolicElement:
    """An operation with a float result: integers become float64, as in NumPy."""
    for x in operands:
        if not isinstance(x, (SymbolicElement, Scalar)) and type(x) not in SCALAR_TYPES:
            return NotImplemented
    trace, dtype = trace_of(*operands), promoted_dtype(*operands)
    if dtype.kind != "f":
        dtype = FLOAT64
    return SymbolicElement(scalar_ir.apply(op, *[trace.node(x, dtype) for x in operands]), trace)


def as_symbol(value: Any, trace: Trace, dtype: np.dtype) -> SymbolicElement:
    """A result as an element; numbers become elements of a dtype."""
    return value if isinstance(value, SymbolicElement) else SymbolicElement(trace.number(value, dtype), trace)


Function = Callable[..., Any]

__all__ = ["SymbolicElement", "Trace", "Untraceable", "as_symbol", "binary", "floating", "promoted_dtype", "trace_of"]
