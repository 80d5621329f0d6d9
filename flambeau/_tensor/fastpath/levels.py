"""Tensors beside levels: plain tensors that operators may treat as if no transform ran.

Levels of `vmap` and of forward mode concern only the tensors that belong to them: batched tensors and tensors with
tangents. All others, the values of batched tensors among them, may take the fast paths while nothing but levels is
active.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy import ndarray

from ...engine.tensor_interface import layer
from ...modes import dispatch_in_use, forward_levels, level_count, special
from ..tensor import Tensor


def beside_levels(*inputs: Any) -> bool:
    """Whether only levels are active, and no input belongs to one; called while `special` is not 0."""
    if special[0] != level_count[0]:
        return False
    for x in inputs:
        if isinstance(x, Tensor):
            if x._array.__class__ is not ndarray:
                return False
            if forward_levels and has_tangents(x):
                return False
    return True


def beside_vmap(*arrays: Any) -> bool:
    """`beside_levels` of the tensors of these arrays, as far as arrays tell: False while forward mode has a level."""
    if special[0] != level_count[0] or forward_levels:
        return False
    for a in arrays:  # noqa: SIM110 - a generator takes twice as long
        if a.__class__ is not ndarray:
            return False
    return True


def beside_handlers(x: Tensor) -> bool:
    """Whether nothing but handlers of other tensors' operators is active; called while `special` is not 0."""
    return special[0] == dispatch_in_use[0] and not layer.is_handled(x)


def has_tangents(x: Tensor) -> bool:
    """Whether a tensor, or the base of a view, has tangents of any level."""
    return bool(x._tangents) or (x._base is not None and bool(x._base._tangents))


def any_tangents(inputs: Sequence[Any]) -> bool:
    """Whether one of an operator's inputs has tangents."""
    for x in inputs:  # noqa: SIM110 - a generator takes twice as long
        if isinstance(x, Tensor) and (x._tangents or (x._base is not None and x._base._tangents)):
            return True
    return False


__all__ = ["any_tangents", "beside_handlers", "beside_levels", "beside_vmap", "has_tangents"]
