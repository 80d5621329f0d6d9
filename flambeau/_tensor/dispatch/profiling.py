"""Operators under a profiler: each application is a span, `aten::mul`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...engine.profiler_events import Span, Timeline, recording
from ...ops.declare import COMPOSITE, Op
from ..tensor import Tensor


def timed(op: Op, name: str, inputs: Sequence[Any], params: dict[str, Any], run: Callable[..., Any]) -> Any:
    """What `run()` gives, its time, shapes and memory written down under `aten::` and the name."""
    timeline = recording()
    if timeline is None:
        return run()
    span = timeline.enter(f"aten::{name}", given=inputs, parameters=len(params))
    try:
        found = run()
        _results(timeline, span, found, inputs, op.kind == COMPOSITE)
        return found
    finally:
        timeline.leave(span)


def _results(timeline: Timeline, span: Span, found: Any, inputs: Sequence[Any], composite: bool) -> None:
    outs = [x for x in (found if isinstance(found, (list, tuple)) else (found,)) if isinstance(x, Tensor)]
    if not composite and outs and outs[0]._node is not None:
        span.sequence = outs[0]._node.seq
    if timeline.memory:
        timeline.made(span, [x._array for x in outs], [x._array for x in inputs if isinstance(x, Tensor)])
