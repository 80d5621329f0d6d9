"""Running expressions element by element: results made, or written into arrays that are there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...codegen import iteration_space
from ...codegen.elementwise import elementwise
from ...codegen.scalar.scalar_ir import Node, topological_order
from ...runtime import thread_pool
from ...runtime.launch import Spec
from .launching import Plan, Plans, made, strides_of

asarray = np.asarray
empty = np.empty


class Runner:
    """Compiled code for expressions of arrays and numbers, with its plans.

    Args:
        outputs: the expressions; variables are the arrays, then the numbers.
        arrays: the arrays' dtypes.
        numbers: the numbers' dtypes.
    """

    __slots__ = ("arrays", "dtypes", "numbers", "outputs", "plain", "plans", "used")

    def __init__(self, outputs: Sequence[Node], arrays: Sequence[np.dtype], numbers: Sequence[np.dtype] = ()) -> None:
        self.outputs, self.arrays, self.numbers = tuple(outputs), tuple(arrays), tuple(numbers)
        self.dtypes = tuple(node.dtype for node in outputs)
        self.plans = Plans()
        self.plain = all(dtype.kind == "f" and dtype.itemsize > 2 for dtype in self.numbers)
        #: the arrays that each output is made of, which say how it lies in memory
        self.used = tuple(sorted({each.const for each in topological_order([node]) if each.op == "input"
                                  and each.const < len(arrays)}) for node in outputs)

    def __call__(self, arrays: Sequence[np.ndarray], numbers: Sequence[Any] = ()) -> tuple[np.ndarray, ...]:
        """New results."""
        key = tuple([each for x in arrays for each in (x.shape, x.strides)])
        plan = self.plans.found.get(key)
        if plan is None:
            plan = self.plans.keep(key, self._plan(arrays))
        results = tuple([made(*out) for out in plan.outs])
        if plan.enter is not None:
            plan.enter(thread_pool.pool(), *results, *arrays, *self.taken(numbers))
        return results

    def into(self, outs: Sequence[np.ndarray], arrays: Sequence[np.ndarray], numbers: Sequence[Any] = ()) -> None:
        """Results written into arrays of the shape that the operands broadcast to.

        Each may be one of the operands, in the same layout; else it shares no memory with them.
        """
        key = (len(outs), *[each for x in (*outs, *arrays) for each in (x.shape, x.strides)])
        plan = self.plans.found.get(key)
        if plan is None:
            plan = self.plans.keep(key, self.plan_into(outs, arrays))
        if plan.enter is not None:
            plan.enter(thread_pool.pool(), *outs, *arrays, *self.taken(numbers))

    def taken(self, numbers: Sequence[Any]) -> Sequence[Any]:
        """Numbers as compiled code takes them: floats as they are, others as arrays."""
        return numbers if self.plain else list(map(asarray, numbers, self.numbers))

    def plan_into(self, outs: Sequence[np.ndarray], arrays: Sequence[np.ndarray]) -> Plan:
        """A plan of `into`."""
        return self._made([Spec.of(x) for x in outs], arrays)

    def of_one(self) -> Callable[[np.ndarray], np.ndarray]:
        """The function of one array with one result: as calling this, and quicker."""
        found, pool = self.plans.found.get, thread_pool.pool

        def run(a: np.ndarray) -> np.ndarray:
            plan = found((a.shape, a.strides))
            if plan is None or plan.enter is None:
                return self((a,))[0]
            shape, dtype, strides = plan.outs[0]
            result = empty(shape, dtype) if strides is None else made(shape, dtype, strides)
            return plan.enter(pool(), result, a)

        return run

    def of_two(self) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
        """The function of two arrays with one result."""
        found, pool = self.plans.found.get, thread_pool.pool

        def run(a: np.ndarray, b: np.ndarray) -> np.ndarray:
            plan = found((a.shape, a.strides, b.shape, b.strides))
            if plan is None or plan.enter is None:
                return self((a, b))[0]
            shape, dtype, strides = plan.outs[0]
            result = empty(shape, dtype) if strides is None else made(shape, dtype, strides)
            return plan.enter(pool(), result, a, b)

        return run

    def _plan(self, arrays: Sequence[np.ndarray]) -> Plan:
        shape = iteration_space.broadcast([x.shape for x in arrays])
        outs = []
        for dtype, used in zip(self.dtypes, self.used, strict=True):
            strides = strides_of(shape, [arrays[i] for i in used or range(len(arrays))], dtype)
            outs.append(Spec.dense(shape, dtype) if strides is None else Spec(shape, strides, dtype))
        return self._made(outs, arrays)

    def _made(self, outs: Sequence[Spec], arrays: Sequence[np.ndarray]) -> Plan:
        ins = [Spec.of(x) for x in arrays] + [Spec((), (), dtype) for dtype in self.numbers]
        launches = elementwise.launches(self.outputs, outs, ins)
        results = [(out.shape, out.dtype, None if out == Spec.dense(out.shape, out.dtype) else out.strides)
                   for out in outs]
        return Plan(results, launches, self.numbers if self.plain else ())


__all__ = ["Runner"]
