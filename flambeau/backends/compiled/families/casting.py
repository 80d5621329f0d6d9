"""Multi-threaded casts of large arrays; give the bits of `dtypes.cast`."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from .... import dtypes
from ....codegen.scalar.scalar_ir import cast, variable
from ....errstate import run_quietly
from ....runtime import thread_pool
from ....runtime.filling import with_filling
from ..elementwise import ElementwiseKernel
from ..launching import filling_of
from ..thresholds import CASTS, NARROW_CASTS


@cache
def _conversion(source: np.dtype,
                to: np.dtype) -> tuple[list[int], Callable[[np.ndarray], np.ndarray], ElementwiseKernel] | None:
    """[the most elements that NumPy converts], the conversion, and its kernel; None where its result would differ from
    NumPy's.
    """
    narrow = [kind in dtypes.NARROW for kind in (source, to)]
    if not all(is_narrow or kind.kind in "biuf" for is_narrow, kind in zip(narrow, (source, to), strict=True)):
        return None
    if source.kind in "fV" and to.kind == "u" and to.itemsize > 2:  # NumPy's overflow behaviour is its own
        return None
    kernel = ElementwiseKernel([cast(variable(0, source), to)], [source])
    run = kernel.unary()

    def convert_array(x: np.ndarray) -> np.ndarray:
        if 0 not in x.strides:
            return run(x)
        result = np.empty(x.shape, to)  # row-major, as NumPy does for expanded arrays
        kernel.run_into((result,), (x,))
        return result

    return NARROW_CASTS if any(narrow) else CASTS, convert_array, kernel


def convert(x: np.ndarray, to: np.dtype) -> np.ndarray | None:
    """`x` in another dtype, in the layout of `astype`; None: NumPy has to convert it."""
    conversion = _conversion(x.dtype, to)
    if conversion is None or x.__class__ is not np.ndarray:
        return None
    least, convert_array, _ = conversion
    return run_quietly(convert_array, x) if x.size > least[0] else None


def cast_launch(x: np.ndarray, to: np.dtype) -> Callable[..., np.ndarray] | None:
    """The function of row-major arrays of a layout that converts them; None where there is none."""
    conversion = None if x.dtype is to or not x.flags.c_contiguous or not x.size else _conversion(x.dtype, to)
    if conversion is None:
        return None
    kernel = conversion[2]
    kernel.unary()(x)
    plan = kernel.plans.plans.get((x.shape, x.strides))
    if plan is None or plan.enter is None or plan.scratch or plan.outs[0][2] is not None:
        return None
    enter, shape, pool, empty = plan.enter, x.shape, thread_pool.pool, np.empty
    return with_filling(lambda a, _plan=plan: enter(pool(), empty(shape, to), a), filling_of(plan, (0,)))


__all__ = ["cast_launch", "convert"]
