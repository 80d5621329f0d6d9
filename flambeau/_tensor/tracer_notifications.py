"""Notifications to the compiler's tracer: values read, created and overwritten outside operators.

Callers test `special[0]` first; while it is 0, no tracer is active.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..modes import active_tracer

if TYPE_CHECKING:
    from .tensor import Tensor


def notify_created(array: np.ndarray, unset: bool = False) -> None:
    """Notify the tracer of a new array whose contents depend on no tensor.

    Args:
        unset: the elements are uninitialised.
    """
    tracer = active_tracer.get()
    if tracer is not None:
        tracer.on_create(array, unset)


def notify_read(self: Tensor, how: str) -> None:
    """Notify the tracer that Python code reads a tensor's elements.

    Args:
        how: the function that reads them, for messages.
    """
    tracer = active_tracer.get()
    if tracer is not None:
        tracer.on_read(self, how)


def notify_overwritten(out: Tensor, array: np.ndarray, moved: bool = False) -> None:
    """Notify the tracer that an array was written into a tensor.

    Args:
        moved: the tensor got new memory for it.
    """
    tracer = active_tracer.get()
    if tracer is not None:
        if moved:
            tracer.on_memory_change("out=")
        else:
            tracer.on_overwrite(out, array)
