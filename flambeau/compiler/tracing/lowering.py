"""Lowering rules of operators whose graph is not that of their declaration: random numbers, data-dependent sizes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from ...ir.graph.value import Unsupported, Value
from ...lazy_modules import OPERATORS
from ...ops.declare import REGISTRY


class OperatorTracer(Protocol):
    """The methods of the tracer that the rules use."""

    def known_value(self, a: np.ndarray) -> Value | None: ...

    def graph_break(self, reason: str) -> None: ...

    def trace_extern_call(self, op: Any, inputs: Sequence[Any], params: dict[str, Any], outs: Sequence[Any],
                          reason: str) -> list[Value]: ...


Rule = Callable[[OperatorTracer, Any, Sequence[Any], dict[str, Any], Sequence[Any]], list[Value]]


def _lower_random_fill(tracer: OperatorTracer, op: Any, inputs: Sequence[Any], params: dict[str, Any],
                       outs: Sequence[Any]) -> list[Value]:
    """Return the value of the numbers that were drawn for the operator."""
    value = tracer.known_value(params["values"])
    if value is None:
        raise Unsupported("random numbers in another memory layout")
    return [value]


def _lower_dynamic_shape(tracer: OperatorTracer, op: Any, inputs: Sequence[Any], params: dict[str, Any],
                         outs: Sequence[Any]) -> list[Value]:
    """Break the graph: the size of the result depends on data."""
    tracer.graph_break(f"the size of the result of {op.name} depends on a tensor's elements")
    return tracer.trace_extern_call(op, inputs, params, outs, "")


_DYNAMIC_SHAPES = ("_nonzero", "argwhere", "masked_select", "_unique_all", "_unique_dim", "_unique_consecutive",
                   "bincount")

LOWERED: dict[str, Rule] = dict.fromkeys([REGISTRY[key].name for key in _DYNAMIC_SHAPES], _lower_dynamic_shape) | {
    op.name: _lower_random_fill for op in map(REGISTRY.__getitem__, OPERATORS["shape.random"].split())
    if "values" in op.params}

__all__ = ["LOWERED"]
