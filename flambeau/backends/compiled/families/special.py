"""Special functions of large arrays, for which NumPy takes about 30 passes in float64."""

from __future__ import annotations

from functools import cache

import numpy as np

from ....codegen.scalar.scalar_ir import apply, variable
from ....errstate import run_quietly
from ..elementwise import ElementwiseKernel


@cache
def _kernel(name: str, dtype: np.dtype) -> ElementwiseKernel:
    return ElementwiseKernel([apply(name, variable(0, dtype))], [dtype])


def special_function(name: str, x: np.ndarray) -> np.ndarray | None:
    """A special function of an array; None where there is no kernel for its dtype."""
    if x.dtype.char not in "fd" or not x.dtype.isnative:
        return None
    result: np.ndarray = run_quietly(_kernel(name, x.dtype), (x,))[0]
    return result


__all__ = ["special_function"]
