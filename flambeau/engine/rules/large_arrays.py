"""Addition of gradients: by a compiled kernel where the arrays are large."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy import ndarray

from ...backends.compiled import compiled_operators
from ...backends.compiled.thresholds import NARROW_CASTS, threshold_of
from ...dtypes import NARROW
from ...errstate import run_quietly
from ...ops.declare import REGISTRY

_FLOATS = (np.dtype(np.float32), np.dtype(np.float64))
_add = REGISTRY["add"]
_limit = threshold_of("add")


def add(a: Any, b: Any, out: Any = None) -> Any:
    """a + b: large arrays by a compiled kernel, others by NumPy.

    Args:
        out: the array that receives the sum; it may be `a`.
    """
    if a.__class__ is ndarray:
        if b.__class__ is ndarray and a.size > _limit[0] and a.shape == b.shape and a.dtype == b.dtype and (
                a.dtype in _FLOATS):
            kernels = compiled_operators(REGISTRY)
            if kernels is not None:
                result = run_quietly(kernels.run, _add, (a, b), {}, None, None, out)
                if result is not None:
                    return result
        elif b.__class__ is ndarray and a.size > NARROW_CASTS[0] and a.dtype in NARROW and a.shape == b.shape and (
                a.dtype is b.dtype):
            kernels = compiled_operators(REGISTRY)
            if kernels is not None:
                result = run_quietly(kernels.run, _add, (a, b), {}, _FLOATS[0], a.dtype, out)
                if result is not None:
                    return result
    elif out is None:  # scalars, or a `DeferredSum`
        return a + b
    return np.add(a, b, out)


__all__ = ["add"]
