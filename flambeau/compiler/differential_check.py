"""`compile(f, check=True)`: each call runs eagerly, its program runs on copies beside it, operator by operator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import dtypes
from .._tensor.creation.random import default_generator
from ..ir.graph.target import Target
from ..ir.graph.value import Value
from ..ir.schedule.program import Program
from .execution.cache_entry import GUARDS_FAILED, CacheEntry
from .tracing.trace import Trace
from .tracing.tracer import Tracer, user_location

#: how far apart two results may be, beside their largest element, by the size of a float
_CLOSE = {2: 2e-2, 4: 1e-4, 8: 1e-9}


class _RecordingTracer(Tracer):
    """A capture that keeps a copy of what every operator gave."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: list[tuple[str, str, Value, np.ndarray]] = []

    def note(self, name: str, values: Sequence[Value], outs: Sequence[Any]) -> None:
        where = user_location()
        for value, out in zip(values, outs, strict=True):
            self.kept.append((name, where, value, np.array(out._array, copy=True)))


def checked(function: Callable[..., Any], entry: CacheEntry, tensors: Sequence[Any], args: tuple,
            kwargs: dict[str, Any]) -> Any:
    """The eager result of a call, after its program's was compared with it; MISSED where no program fits.

    Raises:
        RuntimeError: they differ; it names the first operator whose result does.
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
        tracer.begin(tensors)
        result = function(*args, **kwargs)
        own = Trace(tracer, tensors, result)
    if trace.difference(own) is not None:  # it went another way this time
        return result
    done = default_generator.get_state()
    default_generator.set_state(state)
    try:
        _compare(tracer, own, entry, before, arrays, numbers)
    finally:
        default_generator.set_state(done)
    return result


def _compare(tracer: _RecordingTracer, own: Trace, entry: CacheEntry, before: dict[int, np.ndarray],
             after: Sequence[np.ndarray], numbers: Sequence[int]) -> None:
    step = Program(tracer.graph, [Target(value) for _, _, value, _ in tracer.kept])
    found = step.run([before[number] for number in step.inputs])
    assert found is not None
    for (name, where, _, eager), compiled in zip(tracer.kept, found, strict=True):
        _close(f"{name} ({where})", eager, compiled)
    whole = entry.program
    whole.run([before[number] for number in whole.inputs])
    eagerly = dict(zip(numbers, after, strict=True))
    for number in own.written_leaves:
        _close(f"what is written to {own.sources[number][0]} {number}", eagerly[number], before[number])


def _close(name: str, eager: np.ndarray, compiled: np.ndarray) -> None:
    a, b = dtypes.widen(eager), dtypes.widen(compiled.reshape(eager.shape))
    if a.dtype.kind != "f":
        if not np.array_equal(a, b):
            raise RuntimeError(f"the compiled result of {name} differs from the eager one")
        return
    with np.errstate(all="ignore"):
        values_match = (a == b) | (np.isnan(a) & np.isnan(b))
        apart = np.where(values_match, 0, np.abs(a.astype(np.float64) - b))
        finite = np.abs(a[np.isfinite(a)])
        scale = float(finite.max()) if finite.size else 1.0
    worst = float(apart.max()) if apart.size else 0.0
    if not worst <= _CLOSE[eager.dtype.itemsize] * max(scale, 1e-30):
        raise RuntimeError(f"the compiled result of {name} differs from the eager one by {worst:.3g}, where its "
                           f"largest element is {scale:.3g}")
