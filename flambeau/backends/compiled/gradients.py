"""Backward kernels of elementwise operators: the traced gradient rules, as one pass over cotangent and saved arrays.

The gradient of a broadcast input is summed in the pass that computes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import dtypes
from ...codegen.scalar import scalar_ir
from ...codegen.scalar.scalar_ir import Node
from .elementwise import ElementwiseKernel
from .families.fused_reductions import ReductionKernel
from .tracing.declarations import Formula, FormulaCache
from .tracing.namespace import ExpressionNamespace
from .tracing.scalars import SCALAR_TYPES, ScalarParameters
from .tracing.symbolic_elements import SymbolicElement, Trace, Untraceable, as_symbol

ndarray = np.ndarray


class TracedRules:
    """The traced rules of one backward plan: an expression for each gradient that is needed.

    Attributes:
        formula: the gradients, cast to their inputs' dtypes.
        computed: the gradients in the dtypes that they are computed and summed in.
        inputs: the indices of the inputs that they belong to.
        runners: kernels by the gradients that they compute.
        sums: reduction kernels of broadcast inputs, by gradient.
    """

    __slots__ = ("computed", "formula", "inputs", "runners", "sums")

    def __init__(self, formula: Formula, computed: Sequence[Node], inputs: Sequence[int]) -> None:
        self.formula, self.computed, self.inputs = formula, tuple(computed), tuple(inputs)
        self.runners: dict[tuple[int, ...], ElementwiseKernel] = {}
        self.sums: dict[int, ReductionKernel] = {}

    def run(self, arrays: Sequence[np.ndarray], scalars: Sequence[Any], shapes: Sequence[Any] | None,
            count: int) -> list[Any]:
        """The gradients, by input.

        Args:
            arrays: the cotangent, then the saved arrays.
            scalars: the runtime scalars.
            shapes: of the inputs; None: all have the cotangent's.
            count: the number of inputs.
        """
        gradients: list[Any] = [None] * count
        formula, shape = self.formula, arrays[0].shape
        fused = []
        for k, i in enumerate(self.inputs):
            if shapes is not None and shapes[i] != shape:
                gradients[i] = self._summed(k, arrays, scalars, shapes[i])
            elif formula.passthrough[k] == 0:
                gradients[i] = arrays[0]
            else:
                fused.append(k)
        if fused:
            key = tuple(fused)
            runner = self.runners.get(key)
            if runner is None:
                runner = self.runners[key] = ElementwiseKernel([formula.outputs[k] for k in fused], formula.inputs,
                                                               formula.scalar_dtypes)
            for k, gradient in zip(fused, runner(arrays, scalars), strict=True):
                gradients[self.inputs[k]] = gradient
        return gradients

    def _summed(self, k: int, arrays: Sequence[np.ndarray], scalars: Sequence[Any], shape: tuple[int, ...]) -> Any:
        reducer = self.sums.get(k)
        if reducer is None:
            reducer = self.sums[k] = ReductionKernel([("sum", self.computed[k])], self.formula.inputs,
                                                     self.formula.scalar_dtypes)
        full = arrays[0].shape
        missing = len(full) - len(shape)
        axes = tuple([dim for dim, extent in enumerate(full)
                      if dim < missing or (shape[dim - missing] == 1 and extent != 1)])
        [total] = reducer(arrays, axes, True, scalars)
        total = total.reshape(shape)
        return dtypes.cast(total, self.formula.outputs[k].dtype)


class Gradients:
    """The traced rules of all operators."""

    def __init__(self, xp: ExpressionNamespace) -> None:
        self.xp = xp
        self._rules: dict[Any, FormulaCache] = {}

    def direct(self, node: Any, g: np.ndarray, arrays: Sequence[np.ndarray], scalars: Sequence[Any]) -> Any:
        """A fast function of arrays and scalars that gives the gradients, by input; None where there is none.

        Args:
            node: of an elementwise operator whose inputs have the cotangent's shape and dtype.
            g: the cotangent.
            arrays, scalars: the saved values.
        """
        if any(x.__class__ is not ndarray or x.dtype != g.dtype for x in arrays):
            return None
        formula = self._formula(node, [g, *arrays], [g.dtype] * (1 + len(arrays)) + [x.__class__ for x in scalars],
                                list(scalars), [], None)
        if formula is None or formula.guard is not None:
            return None
        rules: TracedRules = formula.runner
        count, inputs, values = len(node.plan.needs), rules.inputs, formula.scalar_values
        if any(source is not None for source in formula.passthrough):
            return None if not all(source == 0 for source in formula.passthrough) else _pass_through(count, inputs)
        runner = ElementwiseKernel(formula.outputs, formula.inputs, formula.scalar_dtypes)
        rules.runners[tuple(range(len(inputs)))] = runner
        if inputs == tuple(range(count)):
            if values is None:
                return runner
            return lambda arrays, scalars: runner(arrays, values(*scalars))

        def run(arrays: Sequence[np.ndarray], scalars: Sequence[Any]) -> list[Any]:
            gradients: list[Any] = [None] * count
            for i, gradient in zip(inputs, runner(arrays, () if values is None else values(*scalars)),
                                       strict=True):
                gradients[i] = gradient
            return gradients

        return run

    def run(self, node: Any, g: np.ndarray, saved: Sequence[Any]) -> Any:
        """The gradients of a node's inputs; None where NumPy has to compute them.

        Args:
            node: of an elementwise operator.
            g: the cotangent.
            saved: the saved arrays and numbers, in the order of the plan.
        """
        fix = node.fix
        shapes, types, conjugate, _ = fix or (None, None, False, False)
        if conjugate:
            return None
        arrays, values = [g], []
        argument_types: list[Any] = [g.dtype]
        for value in saved:
            if value.__class__ is ndarray:
                arrays.append(value)
                argument_types.append(value.dtype)
            elif value.__class__ in SCALAR_TYPES:
                values.append(value)
                argument_types.append(value.__class__)
            else:
                return None
        constants: list[Any] = []
        for value in node.consts:
            if value.__class__ is float or value.__class__ is int:
                values.append(value)
                constants.append(value.__class__)
            else:
                constants.append(value)
        formula = self._formula(node, arrays, argument_types, values, constants, types)
        if formula is None:
            return None
        scalars = () if formula.scalar_values is None else formula.scalar_values(*values)
        rules: TracedRules = formula.runner
        return rules.run(arrays, scalars, shapes, len(node.plan.needs))

    def _formula(self, node: Any, arrays: Sequence[np.ndarray], argument_types: Sequence[Any], values: Sequence[Any],
                 constants: Sequence[Any], types: Any) -> Formula | None:
        formulas = self._rules.get(node.plan)
        if formulas is None:
            formulas = self._rules[node.plan] = FormulaCache()
        return formulas.find((*argument_types, types, *constants), values, lambda: self._traced(
            node, len(arrays), argument_types, constants, values, types))

    def _traced(self, node: Any, count: int, argument_types: Sequence[Any], constants: Sequence[Any],
                values: Sequence[Any], types: Any) -> Formula:
        plan = node.plan
        parameters = ScalarParameters([f"n{i}" for i in range(len(values))])
        trace = Trace(parameters, count)
        scalars = iter([parameters.scalar(f"n{i}", value) for i, value in enumerate(values)])
        arguments: list[Any] = []
        position = 0
        for cls in argument_types:
            if isinstance(cls, np.dtype):
                element = trace.variable(position, cls)
                arguments.append(SymbolicElement(scalar_ir.to_opmath(element.node), trace))
                position += 1
            else:
                arguments.append(next(scalars))
        consts = [next(scalars) if cls in (int, float) else cls for cls in constants]
        all_arguments = (arguments[0], self.xp, plan.needs, *arguments[1:], *consts)
        if plan.joint is not None:
            function, pick = plan.joint
            results = dict(enumerate(function(*pick(all_arguments))))
        else:
            results = {i: function(*pick(all_arguments)) for i, function, pick in plan.steps}
        like = scalar_ir.to_opmath(trace.variable(0, argument_types[0]).node).dtype
        computed: list[Node] = []
        outputs: list[Node] = []
        inputs = []
        for i, value in results.items():
            if value is None or not plan.needs[i]:
                continue
            dtype = argument_types[0] if types is None else types[i]
            if dtype.kind == "c":
                raise Untraceable("complex numbers")
            expression = as_symbol(value, trace, like).node
            computed.append(expression)
            is_cotangent = expression is arguments[0].node and dtype == argument_types[0]
            outputs.append(trace.variable(0, dtype).node if is_cotangent else scalar_ir.cast(expression, dtype))
            inputs.append(i)
        formula = Formula(outputs, array_dtypes(argument_types), parameters)
        formula.runner = TracedRules(formula, computed, inputs)
        return formula


def _pass_through(count: int, inputs: Sequence[int]) -> Any:
    """A rule that passes the cotangent to these inputs."""
    def run(arrays: Sequence[np.ndarray], scalars: Sequence[Any]) -> list[Any]:
        return [arrays[0] if i in inputs else None for i in range(count)]

    return run


def array_dtypes(types: Sequence[Any]) -> list[np.dtype]:
    """The dtypes among dtypes and number types."""
    return [cls for cls in types if isinstance(cls, np.dtype)]


__all__ = ["Gradients", "TracedRules"]
