"""Cotangents of rows that are zero but for one element each, as losses over classes have them: not written out.

What `nll_loss` hands to a `log_softmax` before it is such a matrix. The gradient that comes of it, g - e^y Σ g, needs
no more of it than where its elements are: a pass over memory to write zeros, and one to read them, are saved. Anybody
else who looks at it sees an array (`gathered.settled`).
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ..backends.compiled import mover, negative_share
from ..backends.compiled.thresholds import MOVES
from ..backends.errstate import run_in_quiet
from .compiled_rules import kept, quiet_run
from .deferred_accumulation import Gathered


class Named(Gathered):
    """A matrix of zeros but for one element in each row.

    Args:
        places: of these elements, as if the matrix were one row.
        value: all of them.
        shape: of the matrix.
    """

    __slots__ = ("places", "shape", "value")

    def __init__(self, places: np.ndarray, value: Any, shape: tuple[int, ...]) -> None:
        self.places, self.value, self.shape = places, value, shape

    def __add__(self, other: Any) -> Any:
        return np.asarray(self) + np.asarray(other)

    __radd__ = __add__

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """The matrix."""
        whole = written(self.places, self.value, self.shape)
        return whole if dtype is None else whole.astype(dtype, copy=False)


def written(places: np.ndarray, value: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Such a matrix as an array; arguments are those of `Named`."""
    by = mover() if prod(shape) > MOVES[0] else None
    whole: np.ndarray = np.zeros(shape, value.dtype) if by is None else by.zeros(shape, value.dtype)
    whole.reshape(-1)[places] = value
    return whole


def takes_named(node: Any) -> bool:
    """Whether a node is a large `log_softmax` along rows, which nothing watches; it is told what may come."""
    if node is None or node.extra is not None or (node.run is not quiet_run and node.run is not _slope):
        return False
    if node.plan.op.name != "log_softmax" or node.consts not in ((1,), (-1,)) or (
            node.saved0.__class__ is not np.ndarray):
        return False
    node.run = _slope
    return True


def still_takes(node: Any) -> bool:
    """Whether `takes_named` still holds."""
    return node.run is _slope


def _slope(node: Any, g: Any) -> Any:
    """The run of such a node."""
    if g.__class__ is Named:
        out = kept(node)
        if out is not None:
            found = run_in_quiet(_of_named, (*out[0], g))
            if found is not None:
                return (found,)
        g = np.asarray(g)
    return quiet_run(node, g)


def _of_named(out: np.ndarray, g: Named) -> np.ndarray | None:
    found: np.ndarray | None = negative_share(out, g.value)
    if found is not None:
        found.reshape(-1)[g.places] += g.value
    return found
