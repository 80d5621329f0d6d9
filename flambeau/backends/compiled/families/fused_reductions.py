"""Reduction kernels: scalar expressions reduced over axes, by sums, means, extrema and arg extrema."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....codegen import iteration_space
from ....codegen.rows import reduction
from ....codegen.scalar.reduction_ops import result_dtype
from ....codegen.scalar.scalar_ir import Node
from ....runtime.launch import Launch, Spec
from ..launching import Plan, PlanCache
from ..plan_families import FAMILIES_OF_PLANS

asarray = np.asarray
empty = np.empty


class ReductionKernel:
    """A kernel of several reductions in one pass, with its launch plans.

    Args:
        terms: pairs of a reduction's name and an expression, whose variables are the arrays, then the scalars.
        arrays: dtypes of the arrays.
        scalars: dtypes of the scalars.
    """

    __slots__ = ("arrays", "direct_scalars", "dtypes", "plans", "scalars", "terms")

    def __init__(self, terms: Sequence[tuple[str, Node]], arrays: Sequence[np.dtype],
                 scalars: Sequence[np.dtype] = ()) -> None:
        self.terms, self.arrays, self.scalars = tuple(terms), tuple(arrays), tuple(scalars)
        self.dtypes = tuple(result_dtype(op, node) for op, node in terms)
        self.plans = PlanCache()
        self.direct_scalars = all(dtype.kind == "f" and dtype.itemsize > 2 for dtype in self.scalars)

    def __call__(self, arrays: Sequence[np.ndarray], axes: tuple[int, ...] | None, keepdims: bool,
                 scalars: Sequence[Any] = ()) -> tuple[np.ndarray, ...]:
        """New row-major arrays with the results.

        Args:
            axes: the reduced axes of the broadcast shape, non-negative; None: all.
            keepdims: whether they remain with extent 1.
        """
        plan = self.plan_of(arrays, axes, keepdims)
        results = tuple([empty(shape, dtype) for shape, dtype, _ in plan.outs])
        plan.run((*results, *arrays, *(scalars if self.direct_scalars else map(asarray, scalars, self.scalars))))
        return results

    def plan_of(self, arrays: Sequence[np.ndarray], axes: tuple[int, ...] | None, keepdims: bool) -> Plan:
        """The plan for arrays of these shapes and strides."""
        key = (axes, keepdims, *[each for x in arrays for each in (x.shape, x.strides)])
        plan = self.plans.plans.get(key)
        return self.plans.insert(key, self._plan(arrays, axes, keepdims)) if plan is None else plan

    def _plan(self, arrays: Sequence[np.ndarray], axes: tuple[int, ...] | None, keepdims: bool) -> Plan:
        shape = iteration_space.broadcast([x.shape for x in arrays])
        reduced = range(len(shape)) if axes is None else axes
        result_shape = tuple([1 if dim in reduced else extent for dim, extent in enumerate(shape)
                      if keepdims or dim not in reduced])
        output_specs = [Spec.dense(result_shape, dtype) for dtype in self.dtypes]
        input_specs = [Spec.of(x) for x in arrays] + [Spec((), (), dtype) for dtype in self.scalars]

        def make(specs: Sequence[Spec]) -> Sequence[Launch]:
            return reduction.launches(self.terms, specs[:len(output_specs)], specs[len(output_specs):], axes)

        return FAMILIES_OF_PLANS.plan((self, axes), tuple([(result_shape, out.dtype, None) for out in output_specs]),
                                      [*output_specs, *input_specs], make, len(output_specs),
                                      self.scalars if self.direct_scalars else ())


__all__ = ["ReductionKernel"]
