"""Plain reductions of large arrays, where their kernels are quicker than NumPy's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from ....codegen.scalar import scalar_ir
from ....codegen.scalar.scalar_ir import Node
from ....runtime.thread_pool import pool
from ....shapes import wrap_dims
from ..launching import Plan
from .fused_reductions import Reducer

ndarray = np.ndarray
empty = np.empty

#: what is reduced, of one array or of two that broadcast together
_FORMULAS: dict[str, Callable[..., Node]] = {
    "": lambda x: x,
    "sizes": lambda x: abs(scalar_ir.to_opmath(x)),
    "squares": lambda x: scalar_ir.to_opmath(x) * scalar_ir.to_opmath(x),
    "nonzero": lambda x: scalar_ir.ne(scalar_ir.to_opmath(x), False if x.dtype == scalar_ir.BOOL else 0),
    "deviations": lambda x, mean: (x - mean) * (x - mean),
    "exponentials": lambda x, top: scalar_ir.exp(x - top),
}
#: reductions that NumPy does quickly along elements that follow each other
_PLACES = ("argmax", "argmin")


@cache
def _reducer(ops: tuple[str, ...], of: str, dtypes: tuple[np.dtype, ...]) -> Reducer | None:
    """What reduces arrays of these dtypes; None where kernels are not made of them."""
    try:
        x = _FORMULAS[of](*[scalar_ir.variable(i, dtype) for i, dtype in enumerate(dtypes)])
        return Reducer([(op, x) for op in ops], dtypes)
    except TypeError:
        return None


#: plans that are at hand by all that decides them
KNOWN = 1024
_known: dict[Any, Plan] = {}


def reduced(ops: Sequence[str], of: str, arrays: Sequence[np.ndarray], dim: Any,
            keepdim: bool) -> tuple[np.ndarray, ...] | None:
    """The reductions of arrays over the first one's dimensions, in one pass; None: NumPy is to compute them.

    Args:
        ops: of `sum`, `mean`, `prod`, `max`, `min`, `any`, `all`, `argmax`, `argmin`.
        of: what is reduced: the elements themselves (""), their "sizes", "squares", whether they are "nonzero"; of two
            arrays, the squares of "deviations" from the second, or the "exponentials" of what is above it.
        dim: a dimension, several, or None for all.
    """
    x = arrays[0]
    key = None
    if len(arrays) == 1 and (dim is None or dim.__class__ is int):
        key = (*ops, of, x.dtype, x.shape, x.strides, dim, keepdim)
        plan = _known.get(key)
        if plan is not None:
            shape, dtype, _ = plan.outs[0]
            if plan.scratch:
                result = empty(shape, dtype)
                plan.run((result, x))
                return (result,)
            return (plan.enter(pool(), empty(shape, dtype), x),)
    reducer = _reducer(tuple(ops), of, tuple([each.dtype for each in arrays]))
    if reducer is None or x.__class__ is not ndarray:
        return None
    axes = None
    rank = x.ndim
    if dim is not None and rank:
        axes = (dim % rank,) if dim.__class__ is int and -rank <= dim < rank else tuple(sorted(wrap_dims(dim, rank)))
    if ops[-1] in _PLACES:
        along = rank - 1 if axes is None else axes[0]
        if x.strides[along] == x.itemsize and (axes is not None or x.flags.c_contiguous):
            return None
    found = reducer(arrays, axes, keepdim)
    if key is not None:
        plan = reducer.plan_of(arrays, axes, keepdim)
        if len(plan.outs) == 1 and plan.enter is not None:
            if len(_known) >= KNOWN:
                _known.clear()
            _known[key] = plan
    return found


__all__ = ["reduced"]
