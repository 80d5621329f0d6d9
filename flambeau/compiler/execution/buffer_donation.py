"""Buffer donation: a gradient that a call replaces without reading it donates its memory to the new gradient.

Without it both exist while the program runs. Donation requires that only the tensor refers to the old gradient, and
only the gradient to its array (by reference counts), so that no one observes the write.
"""

from __future__ import annotations

import sys
from sys import getrefcount
from types import SimpleNamespace
from typing import Any

import numpy as np

from ...backends.compiled.allocator import MIN_BYTES
from ...ir.schedule.program import Program
from ..guards.arguments import TensorRef
from ..tracing.trace import Trace


def _references(tensor: Any) -> tuple[int, int]:
    old = tensor._grad
    array = old._array
    return getrefcount(old), getrefcount(array)


# Reference counts, in this Python, of a gradient that only its tensor refers to, and of its array. On a free-threaded
# build reference counts are not exact: never donate.
_GRADIENT_REFERENCES, _ARRAY_REFERENCES = (
    _references(SimpleNamespace(_grad=SimpleNamespace(_array=np.empty(1))))
    if getattr(sys, "_is_gil_enabled", lambda: True)() else (-1, -1))


def donated_buffers(trace: Trace, program: Program) -> dict[int, TensorRef]:
    """Return, by index of a result of the program, the tensor whose old gradient may donate its memory.

    A replay whose data guard fails must leave old gradients unchanged, so all conditions must precede the first write,
    and no kernel may raise. Small arrays are allocated as fast as the check takes.
    """
    if program.single is None:
        return {}
    read = [source[1] for source in trace.sources.values() if source[0] == "gradient of"]
    donated: dict[int, TensorRef] = {}
    for ref, layout in trace.grad_updates:
        if ref.kind == "result" or layout is None or layout.array < 0 or any(ref.same(each) for each in read):
            continue
        shape, dtype = program.output_specs[layout.array]
        if np.prod(shape) * dtype.itemsize >= MIN_BYTES and (
                program.execution_plan.writes_after_conditions(layout.array)):
            donated[layout.array] = ref
    return donated


def allocate_or_reuse(tensor: Any, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Return an array for a tensor's next gradient: the old gradient's if it fits and is not shared, else a new one."""
    old = tensor._grad
    if old is not None and getrefcount(old) <= _GRADIENT_REFERENCES:
        array = old._array
        if getrefcount(array) <= _ARRAY_REFERENCES and (
                array.shape == shape and array.dtype == dtype and array.base is None):
            flags = array.flags
            if flags.c_contiguous and flags.owndata and flags.writeable:
                return array
    return np.empty(shape, dtype)


__all__ = ["allocate_or_reuse", "donated_buffers"]
