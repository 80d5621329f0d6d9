"""Gradients that a call replaces without reading them: the new one takes the old one's memory, if nobody else has it.

Otherwise both would be there while the program runs. An old gradient is nobody else's if nothing but its tensor refers
to it, and nothing but it to its array; nobody can then tell that the numbers in it are others.
"""

from __future__ import annotations

import sys
from sys import getrefcount
from types import SimpleNamespace
from typing import Any

import numpy as np

from ...backends.compiled.allocator import LEAST
from ...ir.schedule.program import Program
from ..guards.arguments import TensorRef
from ..tracing.trace import Trace


def _references(tensor: Any) -> tuple[int, int]:
    old = tensor._grad
    array = old._array
    return getrefcount(old), getrefcount(array)


# What reference counts are, as this Python counts, of a gradient that only its tensor refers to and of its array.
# Without the global interpreter lock a count says nothing certain.
_GRADIENT, _ARRAY = (_references(SimpleNamespace(_grad=SimpleNamespace(_array=np.empty(1))))
                     if getattr(sys, "_is_gil_enabled", lambda: True)() else (-1, -1))


def donated_buffers(trace: Trace, program: Program) -> dict[int, TensorRef]:
    """The arrays that a program returns which may lie where an old gradient does, by number, and whose that is.

    A run that ends before its time must leave old gradients as they were. So conditions come before the first write,
    and no kernel raises. Small arrays are made as quickly as looked at.
    """
    if program.single is None:
        return {}
    read = [source[1] for source in trace.sources.values() if source[0] == "gradient of"]
    found: dict[int, TensorRef] = {}
    for held, shown in trace.grad_updates:
        if held.kind == "result" or shown is None or shown.array < 0 or any(held.same(each) for each in read):
            continue
        shape, dtype = program.output_specs[shown.array]
        if np.prod(shape) * dtype.itemsize >= LEAST and program.execution_plan.writes_after_conditions(shown.array):
            found[shown.array] = held
    return found


def allocate_or_reuse(tensor: Any, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """An array for a tensor's next gradient: that of the last one, if it is such an array and nobody else's."""
    old = tensor._grad
    if old is not None and getrefcount(old) <= _GRADIENT:
        array = old._array
        if getrefcount(array) <= _ARRAY and array.shape == shape and array.dtype == dtype and array.base is None:
            flags = array.flags
            if flags.c_contiguous and flags.owndata and flags.writeable:
                return array
    return np.empty(shape, dtype)


__all__ = ["allocate_or_reuse", "donated_buffers"]
