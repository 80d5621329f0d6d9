"""Histories of views whose dtype or bits differ from their base's (`view_as_real`, `view_as_complex`, `conj`).

Shape, strides and offset do not determine such a view. So it, and every view of it, stores the chain of views from the
base (`_view_steps`), which is replayed to regenerate its history after a write.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...backends.bit_views import bits_of
from ...backends.numpy.memory import address, element_strides, owner
from ...dtypes import is_complex
from ...engine.grad_mode import grad_mode
from ...engine.nodes.node import Node
from ...engine.tensor_interface import layer

#: for each view of the chain, its array; the operator that changed the dtype or a bit
Steps = tuple[np.ndarray | str, ...]


def view_steps_to(array: np.ndarray, source: Any) -> Steps:
    """The chain of views from the base to a view of `source` whose array is `array`."""
    steps: Steps = source._view_steps or (() if source._base is None else (source._array,))
    return (*steps, _changed(array, source._array) or array)


def _changed(array: np.ndarray, source: np.ndarray) -> str | None:
    """The operator by which the dtype or bits of a view differ from its source's."""
    if array.dtype != source.dtype:
        return "view_as_real" if is_complex(source.dtype) else "view_as_complex"
    (conjugated, negated), (was_conjugated, was_negated) = bits_of(array), bits_of(source)
    return "_conj_view" if conjugated != was_conjugated else "_neg_view" if negated != was_negated else None


def replay_view(view: Any) -> Node:
    """The history of a view: its chain of views applied to the base in its present state."""
    x = view._base
    functions = layer.functions
    enabled = grad_mode.set(True)
    try:
        for step in view._view_steps:
            if isinstance(step, str):
                x = getattr(functions, step)(x)
            else:
                offset = (address(step) - address(owner(step))) // step.itemsize
                x = functions.as_strided(x, step.shape, element_strides(step), offset)
    finally:
        grad_mode.reset(enabled)
    node: Node = x._node
    return node
