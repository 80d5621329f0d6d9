"""Large arrays converted to another dtype by several threads, as `dtypes.cast` converts them."""

from __future__ import annotations

from functools import cache

import numpy as np

from .... import dtypes
from ....codegen.scalar.scalar_ir import cast, variable
from ...errstate import run_quietly
from ..elementwise import Runner
from ..thresholds import CASTS, NARROW_CASTS


@cache
def _runner(source: np.dtype, to: np.dtype) -> Runner | None:
    """What converts one dtype to another; None where NumPy's conversion has bits that a kernel's lacks."""
    if not all(kind in dtypes.NARROW or kind.kind in "biuf" for kind in (source, to)):
        return None
    if source.kind in "fV" and to.kind == "u" and to.itemsize > 2:  # what does not fit wraps in a way of NumPy's own
        return None
    return Runner([cast(variable(0, source), to)], [source])


def converted(x: np.ndarray, to: np.dtype) -> np.ndarray | None:
    """`x` in another dtype, laid out as NumPy's `astype` does; None: NumPy is to convert it."""
    narrow = x.dtype in dtypes.NARROW or to in dtypes.NARROW
    if x.__class__ is not np.ndarray or x.size <= (NARROW_CASTS if narrow else CASTS)[0]:
        return None
    runner = _runner(x.dtype, to)
    return None if runner is None else run_quietly(_run, runner, x, to)


def _run(runner: Runner, x: np.ndarray, to: np.dtype) -> np.ndarray:
    if 0 not in x.strides:
        return runner((x,))[0]
    found = np.empty(x.shape, to)  # row by row: expanded dimensions would come last otherwise
    runner.into((found,), (x,))
    return found


__all__ = ["converted"]
