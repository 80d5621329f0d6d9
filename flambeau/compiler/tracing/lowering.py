"""Operators whose graph is not their declaration's: random numbers, and what is computed by a family of kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from ...ir.graph.value import Unsupported, Value
from ...ops.declare import REGISTRY


class OperatorTracer(Protocol):
    """The part of the tracer that the rules use."""

    def known(self, a: np.ndarray) -> Value | None: ...

    def graph_break(self, why: str) -> None: ...

    def whole(self, op: Any, inputs: Sequence[Any], params: dict[str, Any], outs: Sequence[Any],
              why: str) -> list[Value]: ...


Rule = Callable[[OperatorTracer, Any, Sequence[Any], dict[str, Any], Sequence[Any]], list[Value]]


def _filled(tracer: OperatorTracer, op: Any, inputs: Sequence[Any], params: dict[str, Any], outs: Sequence[Any]
            ) -> list[Value]:
    """What was drawn before it was written."""
    value = tracer.known(params["values"])
    if value is None:
        raise Unsupported("random numbers that were laid out anew")
    return [value]


def _of_unknown_size(tracer: OperatorTracer, op: Any, inputs: Sequence[Any], params: dict[str, Any],
                     outs: Sequence[Any]) -> list[Value]:
    """Results whose sizes depend on numbers."""
    tracer.graph_break(f"the size of what {op.name} gives depends on a tensor's numbers")
    return tracer.whole(op, inputs, params, outs, "")


_UNKNOWN_SIZES = ("nonzero", "_nonzero", "argwhere", "masked_select", "_unique_all", "_unique_dim",
                  "_unique_consecutive", "unique_all", "unique_dim", "unique_consecutive", "bincount",
                  "repeat_interleave")

LOWERED: dict[str, Rule] = dict.fromkeys(_UNKNOWN_SIZES, _of_unknown_size) | {
    op.name: _filled for op in REGISTRY.values() if "values" in op.params}

__all__ = ["LOWERED"]
