"""Special functions of large arrays, for which NumPy takes some thirty passes in float64."""

from __future__ import annotations

from functools import cache

import numpy as np

from ....codegen.scalar.scalar_ir import apply, variable
from ...errstate import run_quietly
from ..elementwise import Runner


@cache
def _runner(name: str, dtype: np.dtype) -> Runner:
    return Runner([apply(name, variable(0, dtype))], [dtype])


def computed(name: str, x: np.ndarray) -> np.ndarray | None:
    """A function of an array by its kernel; None where there is none for its dtype."""
    if x.dtype.char not in "fd" or not x.dtype.isnative:
        return None
    found: np.ndarray = run_quietly(_runner(name, x.dtype), (x,))[0]
    return found


__all__ = ["computed"]
