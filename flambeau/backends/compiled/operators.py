"""Forward kernels of elementwise operators, cached by dtypes and parameters.

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
from functools import cached_property
from typing import Any

import numpy as np

from ...codegen.scalar.scalar_ir import FLOAT32
from ...runtime import thread_pool
from ...runtime.filling import with_filling
from .elementwise import ElementwiseKernel
from .gradients import Gradients
from .launching import Plan, filling_of, new_array
from .tracing.declarations import Formula, FormulaCache, operand_elements, rounded_result, split_scalars
from .tracing.namespace import ExpressionNamespace, RoundedNamespace
from .tracing.scalars import ScalarParameters
from .tracing.symbolic_elements import Trace, Untraceable

NO_PARAMS: dict[str, Any] = {}
#: the most cached (dtype, parameters) of one operator's fast path
MAX_FAST_PATHS = 256


def _no_scalars(*_: Any) -> tuple[Any, ...]:
    return ()


def _launch_function(plan: Plan, arrays: Sequence[np.ndarray], constant: Sequence[bool],
                     scalars: Sequence[Any]) -> Callable[..., np.ndarray]:
    """The function of the arrays that are not constant that runs a plan of one row-major result.

    It keeps the plan, which owns what its entry point reads.
    """
    pool, empty, enter, (shape, dtype, _) = thread_pool.pool, np.empty, plan.enter, plan.outs[0]
    given = iter(range(len(arrays)))
    operands = [[x] if fixed else next(given) for x, fixed in zip(arrays, constant, strict=True)]
    filling = filling_of(plan, (*operands, *[[each] for each in scalars]))
    if not any(constant):
        if len(arrays) == 1:
            return with_filling(lambda a, _plan=plan: enter(pool(), empty(shape, dtype), a, *scalars), filling)
        return with_filling(lambda *given, _plan=plan: enter(pool(), empty(shape, dtype), *given, *scalars), filling)
    if len(arrays) == 2 and constant[1]:
        fixed = arrays[1]
        return with_filling(lambda a, _plan=plan: enter(pool(), empty(shape, dtype), a, fixed, *scalars), filling)

    def launch(*given: np.ndarray, _plan: Plan = plan) -> np.ndarray:
        rest = iter(given)
        operands = [x if fixed else next(rest) for x, fixed in zip(arrays, constant, strict=True)]
        result: np.ndarray = enter(pool(), empty(shape, dtype), *operands, *scalars)
        return result

    return with_filling(launch, filling)


class Operators:
    """The kernels of declared operators.

    Args:
        registry: the operators by name.
        rounded: whether transcendental functions of float32 are computed in double and rounded.
    """

    def __init__(self, registry: dict[str, Any], rounded: bool = False) -> None:
        self.registry = registry
        self.xp = RoundedNamespace(registry) if rounded else ExpressionNamespace(registry)
        self.gradients = Gradients(self.xp)
        self._forwards: dict[Any, FormulaCache] = {}

    @cached_property
    def rounded(self) -> Operators:
        """The kernels that have NumPy's bits on small arrays."""
        return Operators(self.registry, rounded=True)

    def forwards(self, op: Any) -> FormulaCache:
        """The traced formulas of an operator's forward."""
        formulas = self._forwards.get(op)
        if formulas is None:
            formulas = self._forwards[op] = FormulaCache()
        return formulas

    def kernel_for(self, op: Any, dtypes: Sequence[np.dtype], params: dict[str, Any] = NO_PARAMS,
                   compute: np.dtype | None = None, narrow: np.dtype | None = None,
                   zero_dims: Sequence[bool] = ()) -> Formula | None:
        """The formula of an operator's forward, with its kernel in `runner`; None where it cannot be traced.

        Args:
            op: an elementwise operator.
            dtypes: of the inputs.
            compute: the dtype that inputs are promoted to; None: they have one dtype.
            narrow: the dtype that the result is rounded to.
            zero_dims: which inputs have no dimensions, where narrow dtypes are mixed.
        """
        parts, names, values = split_scalars(params)
        return self.forwards(op).find((*dtypes, compute, narrow, *zero_dims, parts), values, lambda: self._traced(
            op, dtypes, params, ScalarParameters(names), compute, narrow, zero_dims))

    def _traced(self, op: Any, dtypes: Sequence[np.dtype], params: dict[str, Any], scalars: ScalarParameters,
                compute: np.dtype | None, narrow: np.dtype | None, zero_dims: Sequence[bool]) -> Formula:
        if op.n_outputs != 1 or op.variadic:
            raise Untraceable("several results")
        trace = Trace(scalars, len(dtypes))
        promoted = [name not in op.unpromoted for name in op.inputs]
        rounded = [name not in op.unrounded or not zero for name, zero in
                   zip(op.inputs, zero_dims or [False] * len(dtypes), strict=False)]
        elements = operand_elements(trace, dtypes, compute, narrow, promoted, rounded)
        arguments = {name: scalars.scalar(name, value) if name in scalars.names else value
                 for name, value in params.items()}
        output = op.forward(self.xp, *elements, **arguments) if op.takes_xp else op.forward(*elements, **arguments)
        formula = Formula([rounded_result(output, trace, compute or FLOAT32, narrow)], dtypes, scalars)
        if formula.passthrough[0] is not None:
            raise Untraceable("the result is the input")
        formula.runner = ElementwiseKernel(formula.outputs, dtypes, formula.scalar_dtypes)
        return formula

    def run(self, op: Any, arrays: Sequence[np.ndarray], params: dict[str, Any], compute: np.dtype | None,
            narrow: np.dtype | None, out: np.ndarray | None = None) -> Any:
        """An operator's result on arrays; None where NumPy has to compute it.

        Args:
            compute: the dtype that the arrays are promoted to; None: they have one dtype.
            narrow: the dtype that the result is rounded to.
            out: the array for the result, of its dtype; shares no memory with the operands, unless it is one.
        """
        dtypes = [x.dtype for x in arrays]
        if narrow is None and compute is not None and dtypes.count(compute) == len(dtypes):
            compute = None
        zero_dims = () if narrow is None else [not x.ndim for x in arrays]
        formula = self.kernel_for(op, dtypes, params, compute, narrow, zero_dims)
        if formula is None:
            return None
        scalars = () if formula.scalar_values is None else formula.scalar_values(*split_scalars(params)[2])
        if out is None:
            return formula.runner(arrays, scalars)[0]
        if formula.runner.dtypes[0] != out.dtype:
            return None
        formula.runner.run_into([out], arrays, scalars)
        return out

    def launch(self, op: Any, arrays: Sequence[np.ndarray], params: dict[str, Any], compute: np.dtype | None = None,
               constant: Sequence[bool] = ()) -> Callable[..., np.ndarray] | None:
        """A function of arrays of these layouts that launches an operator's kernel; None where there is none, or its
        result is not row-major.

        Args:
            compute: the dtype that the arrays are promoted to; None: they have one dtype.
            constant: which arrays the function does not take, as they are always these.
        """
        dtypes = [x.dtype for x in arrays]
        if compute is not None and dtypes.count(compute) == len(dtypes):
            compute = None
        formula = self.kernel_for(op, dtypes, params, compute)
        if formula is None or not formula.runner.direct_scalars:
            return None
        scalars = () if formula.scalar_values is None else formula.scalar_values(*split_scalars(params)[2])
        runner = formula.runner
        runner(arrays, scalars)
        plan = runner.plans.plans.get(tuple([each for x in arrays for each in (x.shape, x.strides)]))
        if plan is None or plan.enter is None or plan.scratch or len(plan.outs) != 1 or plan.outs[0][2] is not None:
            return None
        return _launch_function(plan, arrays, constant or [False] * len(arrays), scalars)

    def unary_with_parameters(self, op: Any) -> Callable[[np.ndarray, tuple[Any, ...]], Any]:
        """A fast function of an array and a tuple of all parameters, for an operator of one input.

        It returns None where NumPy has to compute the result.
        """
        # by dtype, parameters and their classes: the kernel, the function of its scalars, the indices of its arguments
        cache: dict[Any, tuple[ElementwiseKernel, Callable[..., tuple[Any, ...]], tuple[int, ...]]] = {}
        names, pool = op.params, thread_pool.pool

        def run(a: np.ndarray, params: tuple[Any, ...]) -> Any:
            key = (a.dtype, params, *map(type, params))
            try:
                runner, values, indices = cache[key]
            except (KeyError, TypeError):  # or an unhashable parameter
                return trace_and_run(a, params, key)
            scalars = values(*[params[i] for i in indices])
            plan = runner.plans.plans.get((a.shape, a.strides))
            if plan is None or plan.enter is None or not runner.direct_scalars:
                return runner((a,), scalars)[0]
            shape, dtype, strides = plan.outs[0]
            result = np.empty(shape, dtype) if strides is None else new_array(shape, dtype, strides)
            return plan.enter(pool(), result, a, *scalars)

        def trace_and_run(a: np.ndarray, params: tuple[Any, ...], key: Any) -> Any:
            by_name = dict(zip(names, params, strict=True))
            formula = self.kernel_for(op, [a.dtype], by_name)
            if formula is None:
                return None
            scalar_names = split_scalars(by_name)[1]
            indices = tuple(i for i, name in enumerate(names) if name in scalar_names)
            if len(cache) >= MAX_FAST_PATHS:
                cache.clear()
            cache[key] = formula.runner, formula.scalar_values or _no_scalars, indices
            return run(a, params)

        return run

    def without_parameters(self, op: Any, dtype: np.dtype) -> Callable[..., np.ndarray] | None:
        """A fast function of one or two arrays of a dtype, for an operator without parameters; None: there is none."""
        count = len(op.inputs)
        formula = self.kernel_for(op, [dtype] * count)
        if formula is None or formula.scalar_dtypes:
            return None
        runner: ElementwiseKernel = formula.runner
        return runner.unary() if count == 1 else runner.binary()


__all__ = ["Operators"]
