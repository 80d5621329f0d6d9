"""Profiler spans of operator calls, `aten::mul`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...engine.profiler_events import Span, Timeline, active_timeline
from ...ops.declare import COMPOSITE, Op
from ..tensor import Tensor

#: operators that PyTorch computes by another one
_COMPUTED_BY = {"relu": "clamp_min", "relu_": "clamp_min_"}


def run_in_span(op: Op, name: str, inputs: Sequence[Any], params: dict[str, Any], run: Callable[..., Any]) -> Any:
    """The result of `run()`, recorded as a span `aten::name` with its time, shapes and memory."""
    timeline = active_timeline()
    if timeline is None:
        return run()
    span = timeline.enter(f"aten::{name}", inputs=inputs, n_parameters=len(params))
    try:
        inner = _COMPUTED_BY.get(name)
        if inner is None:
            result = run()
        else:
            computing = timeline.enter(f"aten::{inner}", inputs=inputs)
            try:
                result = run()
            finally:
                timeline.leave(computing)
        _record_results(timeline, span, result, inputs, op.kind == COMPOSITE)
        return result
    finally:
        timeline.leave(span)


def _record_results(timeline: Timeline, span: Span, result: Any, inputs: Sequence[Any], composite: bool) -> None:
    outs = [x for x in (result if isinstance(result, (list, tuple)) else (result,)) if isinstance(x, Tensor)]
    if not composite and outs and outs[0]._node is not None:
        span.sequence = outs[0]._node.seq
    if timeline.memory:
        timeline.record_allocations(span, [x._array for x in outs], [x._array for x in inputs if isinstance(x, Tensor)])
