"""Elementwise kernels: scalar expressions over arrays, into new arrays or into existing ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...codegen import iteration_space
from ...codegen.elementwise import elementwise
from ...codegen.scalar.scalar_ir import Node, topological_order
from ...runtime import thread_pool
from ...runtime.launch import Launch, Spec
from .launching import Plan, PlanCache, new_array, result_strides
from .plan_families import FAMILIES_OF_PLANS

asarray = np.asarray
empty = np.empty


class ElementwiseKernel:
    """A kernel of scalar expressions over arrays and Python scalars, with its launch plans.

    Args:
        outputs: the expressions; the variables are the arrays, then the scalars.
        arrays: dtypes of the arrays.
        scalars: dtypes of the scalars.

    Attributes:
        dtypes: of the results.
        direct_scalars: whether all scalars are float32 or float64, which entry points take as Python floats.
        layout_operands: for each result the arrays that it depends on, which determine its strides.
    """

    __slots__ = ("arrays", "direct_scalars", "dtypes", "layout_operands", "outputs", "plans", "scalars")

    def __init__(self, outputs: Sequence[Node], arrays: Sequence[np.dtype], scalars: Sequence[np.dtype] = ()) -> None:
        self.outputs, self.arrays, self.scalars = tuple(outputs), tuple(arrays), tuple(scalars)
        self.dtypes = tuple(node.dtype for node in outputs)
        self.plans = PlanCache()
        self.direct_scalars = all(dtype.kind == "f" and dtype.itemsize > 2 for dtype in self.scalars)
        self.layout_operands = tuple(sorted({each.const for each in topological_order([node]) if each.op == "input"
                                  and each.const < len(arrays)}) for node in outputs)

    def __call__(self, arrays: Sequence[np.ndarray], scalars: Sequence[Any] = ()) -> tuple[np.ndarray, ...]:
        """New arrays with the results."""
        key = tuple([each for x in arrays for each in (x.shape, x.strides)])
        plan = self.plans.plans.get(key)
        if plan is None:
            plan = self.plans.insert(key, self._plan(arrays))
        results = tuple([new_array(*out) for out in plan.outs])
        if plan.enter is not None:
            plan.enter(thread_pool.pool(), *results, *arrays, *self.scalar_arguments(scalars))
        return results

    def run_into(self, outs: Sequence[np.ndarray], arrays: Sequence[np.ndarray], scalars: Sequence[Any] = ()) -> None:
        """Write the results into arrays of the broadcast shape.

        A result may be one of the operands, in the same layout; otherwise it must not share memory with them.
        """
        key = (len(outs), *[each for x in (*outs, *arrays) for each in (x.shape, x.strides)])
        plan = self.plans.plans.get(key)
        if plan is None:
            plan = self.plans.insert(key, self.plan_into(outs, arrays))
        if plan.enter is not None:
            plan.enter(thread_pool.pool(), *outs, *arrays, *self.scalar_arguments(scalars))

    def scalar_arguments(self, scalars: Sequence[Any]) -> Sequence[Any]:
        """Scalars as arguments of the entry point: floats as they are, others as arrays."""
        return scalars if self.direct_scalars else list(map(asarray, scalars, self.scalars))

    def plan_into(self, outs: Sequence[np.ndarray], arrays: Sequence[np.ndarray]) -> Plan:
        """The plan of `run_into`."""
        return self._build([Spec.of(x) for x in outs], arrays)

    def unary(self) -> Callable[[np.ndarray], np.ndarray]:
        """A fast function of one array with one result."""
        lookup, pool = self.plans.plans.get, thread_pool.pool

        def run(a: np.ndarray) -> np.ndarray:
            plan = lookup((a.shape, a.strides))
            if plan is None or plan.enter is None:
                return self((a,))[0]
            shape, dtype, strides = plan.outs[0]
            result = empty(shape, dtype) if strides is None else new_array(shape, dtype, strides)
            return plan.enter(pool(), result, a)

        return run

    def binary(self) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
        """A fast function of two arrays with one result."""
        lookup, pool = self.plans.plans.get, thread_pool.pool

        def run(a: np.ndarray, b: np.ndarray) -> np.ndarray:
            plan = lookup((a.shape, a.strides, b.shape, b.strides))
            if plan is None or plan.enter is None:
                return self((a, b))[0]
            shape, dtype, strides = plan.outs[0]
            result = empty(shape, dtype) if strides is None else new_array(shape, dtype, strides)
            return plan.enter(pool(), result, a, b)

        return run

    def _plan(self, arrays: Sequence[np.ndarray]) -> Plan:
        shape = iteration_space.broadcast([x.shape for x in arrays])
        specs = []
        for dtype, operands in zip(self.dtypes, self.layout_operands, strict=True):
            strides = result_strides(shape, [arrays[i] for i in operands or range(len(arrays))], dtype)
            specs.append(Spec.dense(shape, dtype) if strides is None else Spec(shape, strides, dtype))
        return self._build(specs, arrays)

    def _build(self, outs: Sequence[Spec], arrays: Sequence[np.ndarray]) -> Plan:
        ins = [Spec.of(x) for x in arrays] + [Spec((), (), dtype) for dtype in self.scalars]

        def make(specs: Sequence[Spec]) -> Sequence[Launch]:
            return elementwise.launches(self.outputs, specs[:len(outs)], specs[len(outs):])

        results = tuple([(out.shape, out.dtype, None if out == Spec.dense(out.shape, out.dtype) else out.strides)
                         for out in outs])
        return FAMILIES_OF_PLANS.plan(self, results, [*outs, *ins], make, len(outs),
                                      self.scalars if self.direct_scalars else ())


__all__ = ["ElementwiseKernel"]
