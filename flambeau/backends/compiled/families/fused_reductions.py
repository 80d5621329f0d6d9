"""Reducing expressions over axes of arrays: sums, means, extrema, and where they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....codegen import iteration_space
from ....codegen.rows import reduction
from ....codegen.scalar.reduction_ops import result_dtype
from ....codegen.scalar.scalar_ir import Node
from ....runtime.launch import Spec
from ..launching import Plan, Plans

asarray = np.asarray
empty = np.empty


class Reducer:
    """Compiled code for reductions of expressions in one pass, with its plans.

    Args:
        terms: pairs of a reduction's name and an expression, whose variables are the arrays, then the numbers.
        arrays: the arrays' dtypes.
        numbers: the numbers' dtypes.
    """

    __slots__ = ("arrays", "dtypes", "numbers", "plain", "plans", "terms")

    def __init__(self, terms: Sequence[tuple[str, Node]], arrays: Sequence[np.dtype],
                 numbers: Sequence[np.dtype] = ()) -> None:
        self.terms, self.arrays, self.numbers = tuple(terms), tuple(arrays), tuple(numbers)
        self.dtypes = tuple(result_dtype(op, node) for op, node in terms)
        self.plans = Plans()
        self.plain = all(dtype.kind == "f" and dtype.itemsize > 2 for dtype in self.numbers)

    def __call__(self, arrays: Sequence[np.ndarray], axes: tuple[int, ...] | None, keepdims: bool,
                 numbers: Sequence[Any] = ()) -> tuple[np.ndarray, ...]:
        """The results, in row-major order.

        Args:
            axes: those of the arrays' common shape that are reduced, from 0 on; all, if None.
            keepdims: whether they stay, with extent 1.
        """
        plan = self.plan_of(arrays, axes, keepdims)
        results = tuple([empty(shape, dtype) for shape, dtype, _ in plan.outs])
        plan.run((*results, *arrays, *(numbers if self.plain else map(asarray, numbers, self.numbers))))
        return results

    def plan_of(self, arrays: Sequence[np.ndarray], axes: tuple[int, ...] | None, keepdims: bool) -> Plan:
        """The plan for arrays that lie as these do."""
        key = (axes, keepdims, *[each for x in arrays for each in (x.shape, x.strides)])
        plan = self.plans.found.get(key)
        return self.plans.keep(key, self._plan(arrays, axes, keepdims)) if plan is None else plan

    def _plan(self, arrays: Sequence[np.ndarray], axes: tuple[int, ...] | None, keepdims: bool) -> Plan:
        shape = iteration_space.broadcast([x.shape for x in arrays])
        reduced = range(len(shape)) if axes is None else axes
        left = tuple([1 if dim in reduced else extent for dim, extent in enumerate(shape)
                      if keepdims or dim not in reduced])
        outs = [Spec.dense(left, dtype) for dtype in self.dtypes]
        ins = [Spec.of(x) for x in arrays] + [Spec((), (), dtype) for dtype in self.numbers]
        launches = reduction.launches(self.terms, outs, ins, axes)
        return Plan([(left, out.dtype, None) for out in outs], launches, self.numbers if self.plain else ())


__all__ = ["Reducer"]
