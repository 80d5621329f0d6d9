"""Elementwise operators on large arrays: kernels of their forwards, found by dtypes and parameters.

>>> from flambeau import codegen
>>> from flambeau.ops.declare import REGISTRY
>>> import numpy as np
>>> F32 = np.dtype(np.float32)
>>> if codegen.available():
...     gelu = Operators(REGISTRY).kernel_for(REGISTRY["gelu"], [F32], {"approximate": "none"})
...     print(gelu.runner.outputs)
... else:
...     print("(mul(x0, mul(0.5, add(1.0, erf(mul(x0, 0.7071067690849304))))),)")
(mul(x0, mul(0.5, add(1.0, erf(mul(x0, 0.7071067690849304))))),)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...codegen.scalar.scalar_ir import FLOAT32
from ...runtime import thread_pool
from .elementwise import Runner
from .gradients import Gradients
from .launching import made
from .tracing.declarations import Formula, Formulas, elements, result, split
from .tracing.namespace import ExpressionNamespace
from .tracing.scalars import Numbers
from .tracing.symbolic_elements import Trace, Untraceable

NO_PARAMS: dict[str, Any] = {}
#: parameters of one operator whose formula is kept at hand
KNOWN = 256


def _no_numbers(*_: Any) -> tuple[Any, ...]:
    return ()


class Operators:
    """The declared operators over expressions.

    Args:
        registry: the operators by name.
    """

    def __init__(self, registry: dict[str, Any]) -> None:
        self.xp = ExpressionNamespace(registry)
        self.gradients = Gradients(self.xp)
        self._forwards: dict[Any, Formulas] = {}

    def forwards(self, op: Any) -> Formulas:
        """The traces of an operator's forward."""
        found = self._forwards.get(op)
        if found is None:
            found = self._forwards[op] = Formulas()
        return found

    def kernel_for(self, op: Any, dtypes: Sequence[np.dtype], params: dict[str, Any] = NO_PARAMS,
                   compute: np.dtype | None = None, narrow: np.dtype | None = None,
                   zero_dims: Sequence[bool] = ()) -> Formula | None:
        """The formula of an operator's forward, its kernel in `runner`; None where there is none.

        Args:
            op: an elementwise operator.
            dtypes: its inputs' dtypes.
            compute: the dtype that they are promoted to; None: they are alike.
            narrow: the dtype that the result is rounded to.
            zero_dims: which inputs have no dimensions, where narrow dtypes are mixed.
        """
        parts, names, values = split(params)
        return self.forwards(op).find((*dtypes, compute, narrow, *zero_dims, parts), values, lambda: self._traced(
            op, dtypes, params, Numbers(names), compute, narrow, zero_dims))

    def _traced(self, op: Any, dtypes: Sequence[np.dtype], params: dict[str, Any], numbers: Numbers,
                compute: np.dtype | None, narrow: np.dtype | None, zero_dims: Sequence[bool]) -> Formula:
        if op.n_outputs != 1 or op.variadic:
            raise Untraceable("several results")
        trace = Trace(numbers, len(dtypes))
        promoted = [name not in op.unpromoted for name in op.inputs]
        rounded = [name not in op.unrounded or not zero for name, zero in
                   zip(op.inputs, zero_dims or [False] * len(dtypes), strict=False)]
        values = elements(trace, dtypes, compute, narrow, promoted, rounded)
        given = {name: numbers.scalar(name, value) if name in numbers.names else value
                 for name, value in params.items()}
        found = op.forward(self.xp, *values, **given) if op.takes_xp else op.forward(*values, **given)
        formula = Formula([result(found, trace, compute or FLOAT32, narrow)], dtypes, numbers)
        if formula.same[0] is not None:
            raise Untraceable("gives its input back")
        formula.runner = Runner(formula.outputs, dtypes, formula.numbers)
        return formula

    def run(self, op: Any, arrays: Sequence[np.ndarray], params: dict[str, Any], compute: np.dtype | None,
            narrow: np.dtype | None, out: np.ndarray | None = None) -> Any:
        """An operator's result on arrays, or None: NumPy is to compute it.

        Args:
            compute: the dtype that the arrays are promoted to, as far as they are not of it; None: they are alike.
            narrow: the dtype that the result is rounded to.
            out: where it is written, if it has the result's dtype and shares memory with no other of the arrays.
        """
        dtypes = [x.dtype for x in arrays]
        if narrow is None and compute is not None and dtypes.count(compute) == len(dtypes):
            compute = None
        zero_dims = () if narrow is None else [not x.ndim for x in arrays]
        formula = self.kernel_for(op, dtypes, params, compute, narrow, zero_dims)
        if formula is None:
            return None
        numbers = () if formula.values is None else formula.values(*split(params)[2])
        if out is None:
            return formula.runner(arrays, numbers)[0]
        if formula.runner.dtypes[0] != out.dtype:
            return None
        formula.runner.into([out], arrays, numbers)
        return out

    def of_one(self, op: Any) -> Callable[[np.ndarray, tuple[Any, ...]], Any]:
        """The function of an array and all parameters, by position, for an operator of one input.

        It gives None where NumPy is to compute the result.
        """
        # by dtype, parameters and their classes: the runner, the kernel's numbers, and the parameters they are made of
        known: dict[Any, tuple[Runner, Callable[..., tuple[Any, ...]], tuple[int, ...]]] = {}
        names, pool = op.params, thread_pool.pool

        def run(a: np.ndarray, params: tuple[Any, ...]) -> Any:
            key = (a.dtype, params, *map(type, params))
            try:
                runner, values, places = known[key]
            except (KeyError, TypeError):  # or a parameter that is no key
                return anew(a, params, key)
            numbers = values(*[params[i] for i in places])
            plan = runner.plans.found.get((a.shape, a.strides))
            if plan is None or plan.enter is None or not runner.plain:
                return runner((a,), numbers)[0]
            shape, dtype, strides = plan.outs[0]
            result = np.empty(shape, dtype) if strides is None else made(shape, dtype, strides)
            return plan.enter(pool(), result, a, *numbers)

        def anew(a: np.ndarray, params: tuple[Any, ...], key: Any) -> Any:
            named = dict(zip(names, params, strict=True))
            formula = self.kernel_for(op, [a.dtype], named)
            if formula is None:
                return None
            numbered = split(named)[1]
            places = tuple(i for i, name in enumerate(names) if name in numbered)
            if len(known) >= KNOWN:
                known.clear()
            known[key] = formula.runner, formula.values or _no_numbers, places
            return run(a, params)

        return run

    def simple(self, op: Any, dtype: np.dtype) -> Callable[..., np.ndarray] | None:
        """The function of one or two arrays of one dtype, for an operator without parameters; None: there is none."""
        count = len(op.inputs)
        formula = self.kernel_for(op, [dtype] * count)
        if formula is None or formula.numbers:
            return None
        runner: Runner = formula.runner
        return runner.of_one() if count == 1 else runner.of_two()


__all__ = ["Operators"]
