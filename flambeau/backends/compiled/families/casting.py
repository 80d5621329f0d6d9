"""Multi-threaded casts of large arrays; give the bits of `dtypes.cast`."""

from __future__ import annotations

from functools import cache

import numpy as np

from .... import dtypes
from ....codegen.scalar.scalar_ir import cast, variable
from ....errstate import run_quietly
from ..elementwise import ElementwiseKernel
from ..thresholds import CASTS, NARROW_CASTS


@cache
def _kernel(source: np.dtype, to: np.dtype) -> ElementwiseKernel | None:
    """The cast kernel; None where its result would differ from NumPy's."""
    if not all(kind in dtypes.NARROW or kind.kind in "biuf" for kind in (source, to)):
        return None
    if source.kind in "fV" and to.kind == "u" and to.itemsize > 2:  # NumPy's overflow behaviour is its own
        return None
    return ElementwiseKernel([cast(variable(0, source), to)], [source])


def convert(x: np.ndarray, to: np.dtype) -> np.ndarray | None:
    """`x` in another dtype, in the layout of `astype`; None: NumPy has to convert it."""
    narrow = x.dtype in dtypes.NARROW or to in dtypes.NARROW
    if x.__class__ is not np.ndarray or x.size <= (NARROW_CASTS if narrow else CASTS)[0]:
        return None
    runner = _kernel(x.dtype, to)
    return None if runner is None else run_quietly(_run, runner, x, to)


def _run(runner: ElementwiseKernel, x: np.ndarray, to: np.dtype) -> np.ndarray:
    if 0 not in x.strides:
        return runner((x,))[0]
    result = np.empty(x.shape, to)  # row-major, as NumPy does for expanded arrays
    runner.run_into((result,), (x,))
    return result


__all__ = ["convert"]
