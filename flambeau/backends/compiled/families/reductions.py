"""Reductions of large arrays, and the fast path to their launch plans."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from ....codegen.scalar import scalar_ir
from ....codegen.scalar.scalar_ir import Node
from ....dtypes import BFLOAT16
from ....runtime.filling import with_filling
from ....runtime.launch import ALIGNMENT
from ....runtime.thread_pool import pool
from ....shapes import wrap_dims
from ..launching import Plan, filling_of
from .fused_reductions import ReductionKernel

ndarray = np.ndarray
empty = np.empty

#: the reduced expressions, of one array or of two that broadcast
_ELEMENT_FUNCTIONS: dict[str, Callable[..., Node]] = {
    "": lambda x: scalar_ir.to_opmath(x) if x.dtype == BFLOAT16 else x,
    "abs": lambda x: abs(scalar_ir.to_opmath(x)),
    "squares": lambda x: scalar_ir.to_opmath(x) * scalar_ir.to_opmath(x),
    "nonzero": lambda x: scalar_ir.ne(scalar_ir.to_opmath(x), False if x.dtype == scalar_ir.BOOL else 0),
    "deviations": lambda x, mean: (x - mean) * (x - mean),
    "exponentials": lambda x, top: scalar_ir.exp(x - top),
}
#: reductions that NumPy does fast over contiguous elements
_ARG_REDUCTIONS = ("argmax", "argmin")


@cache
def _reducer(ops: tuple[str, ...], of: str, dtypes: tuple[np.dtype, ...]) -> ReductionKernel | None:
    """The kernel for arrays of these dtypes; None where there is none."""
    try:
        x = _ELEMENT_FUNCTIONS[of](*[scalar_ir.variable(i, dtype) for i, dtype in enumerate(dtypes)])
        return ReductionKernel([(op, x) for op in ops], dtypes)
    except TypeError:
        return None


#: the most plans of the fast path
MAX_FAST_PLANS = 1024
_fast_plans: dict[Any, Plan] = {}


def reduce_arrays(ops: tuple[str, ...], of: str, arrays: Sequence[np.ndarray], dim: Any,
            keepdim: bool) -> tuple[np.ndarray, ...] | None:
    """Reductions over dimensions of the first array, in one pass; None: NumPy has to compute them.

    Args:
        ops: of `sum`, `mean`, `prod`, `max`, `min`, `any`, `all`, `argmax`, `argmin`.
        of: what is reduced: the elements (""), "abs", "squares", "nonzero"; of two arrays x and y, "deviations"
            ((x - y)²) or "exponentials" (exp(x - y)).
        dim: a dimension, several, or None for all.
    """
    x = arrays[0]
    key = None
    if len(arrays) == 1 and (dim is None or dim.__class__ is int or dim.__class__ is tuple):
        key = (ops, of, x.dtype, x.shape, x.strides, dim, keepdim)
        plan = _fast_plans.get(key)
        if plan is not None:
            shape, dtype, _ = plan.outs[0]
            if plan.scratch:
                result = empty(shape, dtype)
                plan.run((result, x))
                return (result,)
            return (plan.enter(pool(), empty(shape, dtype), x),)
    reducer = _reducer(ops, of, tuple([each.dtype for each in arrays]))
    if reducer is None or x.__class__ is not ndarray:
        return None
    axes = None
    rank = x.ndim
    if dim is not None and rank:
        axes = (dim % rank,) if dim.__class__ is int and -rank <= dim < rank else tuple(sorted(wrap_dims(dim, rank)))
    if ops[-1] in _ARG_REDUCTIONS:
        axis = rank - 1 if axes is None else axes[0]
        if x.strides[axis] == x.itemsize and (axes is not None or x.flags.c_contiguous):
            return None
    results = reducer(arrays, axes, keepdim)
    if key is not None:
        plan = reducer.plan_of(arrays, axes, keepdim)
        if len(plan.outs) == 1 and plan.enter is not None:
            if len(_fast_plans) >= MAX_FAST_PLANS:
                _fast_plans.clear()
            _fast_plans[key] = plan
    return results


def reduce_launch(op: str, of: str, x: np.ndarray, dim: Any, keepdim: bool) -> Callable[..., Any] | None:
    """`reduce_arrays` by one operation, of arrays of this layout; None where it has no plan."""
    if dim is not None and dim.__class__ is not int and dim.__class__ is not tuple:
        return None
    if reduce_arrays((op,), of, (x,), dim, keepdim) is None:
        return None
    plan = _fast_plans.get(((op,), of, x.dtype, x.shape, x.strides, dim, keepdim))
    if plan is None:
        return None
    (shape, dtype, strides), = plan.outs
    if strides is not None:
        return None
    enter: Any = plan.enter
    if plan.scratch:
        bytes_ = plan.scratch + ALIGNMENT

        def run_with_scratch(a: np.ndarray, _plan: Plan = plan) -> Any:  # which owns what `enter` reads
            result = empty(shape, dtype)
            enter(pool(), empty(bytes_, np.uint8), result, a)
            return result

        return with_filling(run_with_scratch, filling_of(plan, (0,)))

    def run(a: np.ndarray, _plan: Plan = plan) -> Any:
        return enter(pool(), empty(shape, dtype), a)

    return with_filling(run, filling_of(plan, (0,)))


__all__ = ["reduce_arrays", "reduce_launch"]
