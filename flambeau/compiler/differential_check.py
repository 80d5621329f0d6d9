"""The differential check of `compile(f, check=True)`: each call runs eagerly, and the program runs on copies.

The results of every operator are compared, then the writes of the program as compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import dtypes
from .._tensor.creation.generators import default_generator
from ..backends.bit_views import resolve
from ..ir.graph.target import Target
from ..ir.graph.value import Value
from ..ir.schedule.program import Program
from .execution.cache_entry import GUARDS_FAILED, CacheEntry
from .tracing.storage_tracer import user_location
from .tracing.trace import Trace
from .tracing.trace_comparison import difference
from .tracing.tracer import Tracer

#: largest difference relative to the largest element, by the item size of the dtype in bytes
_TOLERANCES = {2: 2e-2, 4: 1e-4, 8: 1e-9}


class _RecordingTracer(Tracer):
    """A tracer that copies the results of every operator."""

    def __init__(self) -> None:
        super().__init__()
        self.operator_results: list[tuple[str, str, Value, np.ndarray]] = []

    def record_results(self, name: str, values: Sequence[Value], outs: Sequence[Any]) -> None:
        location = user_location()
        for value, out in zip(values, outs, strict=True):
            self.operator_results.append((name, location, value, np.array(resolve(out._array), copy=True)))


def checked(function: Callable[..., Any], entry: CacheEntry, tensors: Sequence[Any], args: tuple,
            kwargs: dict[str, Any]) -> Any:
    """Run a call eagerly, compare it with the program of a cache entry, and return the eager result.

    Returns:
        The eager result; `GUARDS_FAILED` if the entry does not apply.

    Raises:
        RuntimeError: the results differ. It names the first operator that differs.
    """
    if not entry.check_guards(tensors):
        return GUARDS_FAILED
    trace = entry.trace
    numbers = sorted(trace.sources)
    arrays = entry.input_arrays(numbers, tensors)
    if arrays is None:
        return GUARDS_FAILED
    before = dict(zip(numbers, [np.array(a, order="K", copy=True) for a in arrays], strict=True))
    state = default_generator.get_state()
    tracer = _RecordingTracer()
    with tracer:
        tracer.bind_arguments(tensors)
        result = function(*args, **kwargs)
        eager_trace = Trace(tracer, tensors, result)
    if difference(trace, eager_trace) is not None:  # e.g. another branch was taken
        return result
    state_after = default_generator.get_state()
    default_generator.set_state(state)
    try:
        _compare(tracer, eager_trace, entry, before, arrays, numbers)
    finally:
        default_generator.set_state(state_after)
    return result


def _compare(tracer: _RecordingTracer, eager_trace: Trace, entry: CacheEntry, before: dict[int, np.ndarray],
             after: Sequence[np.ndarray], numbers: Sequence[int]) -> None:
    by_operator = Program(tracer.graph, [Target(value) for _, _, value, _ in tracer.operator_results])
    results = by_operator.run([before[number] for number in by_operator.inputs])
    assert results is not None
    for (name, location, _, eager), compiled in zip(tracer.operator_results, results, strict=True):
        _assert_close(f"{name} ({location})", eager, compiled)
    program = entry.program
    program.run([before[number] for number in program.inputs])
    eager_arrays = dict(zip(numbers, after, strict=True))
    for number in eager_trace.written_leaves:
        _assert_close(f"the write to {eager_trace.sources[number][0]} {number}", eager_arrays[number], before[number])


def _assert_close(name: str, eager: np.ndarray, compiled: np.ndarray) -> None:
    a, b = dtypes.widen(eager), dtypes.widen(compiled.reshape(eager.shape))
    if a.dtype.kind != "f":
        if not np.array_equal(a, b):
            raise RuntimeError(f"the compiled result of {name} differs from the eager one")
        return
    with np.errstate(all="ignore"):
        equal = (a == b) | (np.isnan(a) & np.isnan(b))
        difference = np.where(equal, 0, np.abs(a.astype(np.float64) - b))
        finite = np.abs(a[np.isfinite(a)])
        scale = float(finite.max()) if finite.size else 1.0
    worst = float(difference.max()) if difference.size else 0.0
    if not worst <= _TOLERANCES[eager.dtype.itemsize] * max(scale, 1e-30):
        raise RuntimeError(f"the compiled result of {name} differs from the eager one by {worst:.3g}, where its "
                           f"largest element is {scale:.3g}")
