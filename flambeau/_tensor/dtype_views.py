"""Views of another dtype than their base's: made again from it step by step, after it was written to.

Where a view lies in its base is told by shapes and strides, but not how real numbers became
complex ones on the way. So such views, and views of them, remember the steps that led to them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..backends.numpy.memory import address, element_strides, owner
from ..engine.grad_mode import grad_mode
from ..engine.nodes.node import Node
from ..engine.tensor_interface import layer

#: each step is the array that a view then shows, or None where the dtype changes
Steps = tuple[np.ndarray | None, ...]


def steps_to(array: np.ndarray, source: Any) -> Steps:
    """The steps that lead from a base to a view of `source`, which shows `array`."""
    steps: Steps = source._steps or (() if source._base is None else (source._array,))
    return (*steps, array if array.dtype == source._array.dtype else None)


def replayed(view: Any) -> Node:
    """The history of a view, its steps taken from its base as that now is."""
    x = view._base
    functions = layer.functions
    enabled = grad_mode.set(True)
    try:
        for step in view._steps:
            if step is None:
                x = functions.view_as_real(x) if x._array.dtype.kind == "c" else functions.view_as_complex(x)
            else:
                offset = (address(step) - address(owner(step))) // step.itemsize
                x = functions.as_strided(x, step.shape, element_strides(step), offset)
    finally:
        grad_mode.reset(enabled)
    node: Node = x._node
    return node
