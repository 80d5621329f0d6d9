"""Notifications to the tracer of a compiled function: values read, created and overwritten outside operators.

Callers ask `special[0]` first: without a mode that intercepts operators, no tracer runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..modes import active_tracer

if TYPE_CHECKING:
    from .tensor import Tensor


def tell_created(array: np.ndarray, unset: bool = False) -> None:
    """Tell a function's capture of an array that was made of nothing but what the function says."""
    tracer = active_tracer.get()
    if tracer is not None:
        tracer.on_create(array, unset)


def tell_reading(self: Tensor, how: str) -> None:
    """Tell a function's capture that the interpreter is handed a tensor's numbers."""
    tracer = active_tracer.get()
    if tracer is not None:
        tracer.on_read(self, how)


def tell_overwritten(out: Tensor, array: np.ndarray, moved: bool = False) -> None:
    """Tell a function's capture that a tensor was overwritten with an array, or `moved` into other memory for it."""
    tracer = active_tracer.get()
    if tracer is not None:
        if moved:
            tracer.on_memory_change("out=")
        else:
            tracer.on_overwrite(out, array)
