"""Backward on large arrays: an operator's rules, traced, as one pass over its cotangent and what it kept.

A gradient of an input that was broadcast is summed in the same pass that computes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import dtypes
from ...codegen.scalar import scalar_ir
from ...codegen.scalar.scalar_ir import Node
from .elementwise import Runner
from .families.fused_reductions import Reducer
from .tracing.declarations import Formula, Formulas
from .tracing.namespace import ExpressionNamespace
from .tracing.scalars import PLAIN, Numbers
from .tracing.symbolic_elements import Symbol, Trace, Untraceable, as_symbol

ndarray = np.ndarray


class Rules:
    """What one use of an operator does backward, traced: for each input that wants a gradient its expression.

    Attributes:
        formula: the expressions, their dtypes already their inputs'.
        computed: the same, of the dtypes that they are computed in, as sums are too.
        places: the inputs whose gradients they are.
    """

    __slots__ = ("computed", "formula", "places", "runners", "sums")

    def __init__(self, formula: Formula, computed: Sequence[Node], places: Sequence[int]) -> None:
        self.formula, self.computed, self.places = formula, tuple(computed), tuple(places)
        self.runners: dict[tuple[int, ...], Runner] = {}
        self.sums: dict[int, Reducer] = {}

    def run(self, arrays: Sequence[np.ndarray], numbers: Sequence[Any], shapes: Sequence[Any] | None,
            count: int) -> list[Any]:
        """The gradients, by input.

        Args:
            arrays: the cotangent, then what was kept.
            shapes: the inputs' shapes; None: all are the cotangent's.
            count: how many inputs there are.
        """
        found: list[Any] = [None] * count
        formula, shape = self.formula, arrays[0].shape
        together = []
        for k, place in enumerate(self.places):
            if shapes is not None and shapes[place] != shape:
                found[place] = self._summed(k, arrays, numbers, shapes[place])
            elif formula.same[k] == 0:
                found[place] = arrays[0]
            else:
                together.append(k)
        if together:
            key = tuple(together)
            runner = self.runners.get(key)
            if runner is None:
                runner = self.runners[key] = Runner([formula.outputs[k] for k in together], formula.inputs,
                                                    formula.numbers)
            for k, gradient in zip(together, runner(arrays, numbers), strict=True):
                found[self.places[k]] = gradient
        return found

    def _summed(self, k: int, arrays: Sequence[np.ndarray], numbers: Sequence[Any], shape: tuple[int, ...]) -> Any:
        reducer = self.sums.get(k)
        if reducer is None:
            reducer = self.sums[k] = Reducer([("sum", self.computed[k])], self.formula.inputs, self.formula.numbers)
        full = arrays[0].shape
        missing = len(full) - len(shape)
        axes = tuple([dim for dim, extent in enumerate(full)
                      if dim < missing or (shape[dim - missing] == 1 and extent != 1)])
        [total] = reducer(arrays, axes, True, numbers)
        total = total.reshape(shape)
        return dtypes.cast(total, self.formula.outputs[k].dtype)


class Gradients:
    """The rules of all operators over expressions."""

    def __init__(self, xp: ExpressionNamespace) -> None:
        self.xp = xp
        self._rules: dict[Any, Formulas] = {}

    def usual(self, node: Any, g: np.ndarray, arrays: Sequence[np.ndarray], numbers: Sequence[Any]) -> Any:
        """A function of arrays and numbers that gives the gradients, by input; None where there is none that simple.

        Args:
            node: of an elementwise operator, whose inputs have the cotangent's shape and dtype.
            g: its cotangent.
            arrays, numbers: what it kept.
        """
        if any(x.__class__ is not ndarray or x.dtype != g.dtype for x in arrays):
            return None
        formula = self._formula(node, [g, *arrays], [g.dtype] * (1 + len(arrays)) + [x.__class__ for x in numbers],
                                list(numbers), [], None)
        if formula is None or formula.holds is not None:
            return None
        rules: Rules = formula.runner
        count, places, values = len(node.plan.needs), rules.places, formula.values
        if any(same is not None for same in formula.same):
            return None if not all(same == 0 for same in formula.same) else _handing_on(count, places)
        runner = rules.runners[tuple(range(len(places)))] = Runner(formula.outputs, formula.inputs, formula.numbers)
        if places == tuple(range(count)):
            if values is None:
                return runner
            return lambda arrays, numbers: runner(arrays, values(*numbers))

        def run(arrays: Sequence[np.ndarray], numbers: Sequence[Any]) -> list[Any]:
            found: list[Any] = [None] * count
            for place, gradient in zip(places, runner(arrays, () if values is None else values(*numbers)),
                                       strict=True):
                found[place] = gradient
            return found

        return run

    def run(self, node: Any, g: np.ndarray, saved: Sequence[Any]) -> Any:
        """The gradients of a node's inputs; None: NumPy is to compute them.

        Args:
            node: of an elementwise operator.
            g: its cotangent.
            saved: what it kept, in its plan's order: arrays, numbers.
        """
        fix = node.fix
        shapes, types, conjugate, _ = fix or (None, None, False, False)
        if conjugate:
            return None
        arrays, values = [g], []
        kinds: list[Any] = [g.dtype]
        for value in saved:
            if value.__class__ is ndarray:
                arrays.append(value)
                kinds.append(value.dtype)
            elif value.__class__ in PLAIN:
                values.append(value)
                kinds.append(value.__class__)
            else:
                return None
        fixed: list[Any] = []
        for value in node.consts:
            if value.__class__ is float or value.__class__ is int:
                values.append(value)
                fixed.append(value.__class__)
            else:
                fixed.append(value)
        formula = self._formula(node, arrays, kinds, values, fixed, types)
        if formula is None:
            return None
        numbers = () if formula.values is None else formula.values(*values)
        rules: Rules = formula.runner
        return rules.run(arrays, numbers, shapes, len(node.plan.needs))

    def _formula(self, node: Any, arrays: Sequence[np.ndarray], kinds: Sequence[Any], values: Sequence[Any],
                 fixed: Sequence[Any], types: Any) -> Formula | None:
        found = self._rules.get(node.plan)
        if found is None:
            found = self._rules[node.plan] = Formulas()
        return found.find((*kinds, types, *fixed), values, lambda: self._traced(
            node, len(arrays), kinds, fixed, values, types))

    def _traced(self, node: Any, count: int, kinds: Sequence[Any], fixed: Sequence[Any], values: Sequence[Any],
                types: Any) -> Formula:
        plan = node.plan
        numbers = Numbers([f"n{i}" for i in range(len(values))])
        trace = Trace(numbers, count)
        scalars = iter([numbers.scalar(f"n{i}", value) for i, value in enumerate(values)])
        given: list[Any] = []
        position = 0
        for kind in kinds:
            if isinstance(kind, np.dtype):
                element = trace.variable(position, kind)
                given.append(Symbol(scalar_ir.to_opmath(element.node), trace))
                position += 1
            else:
                given.append(next(scalars))
        consts = [next(scalars) if kind in (int, float) else kind for kind in fixed]
        every = (given[0], self.xp, plan.needs, *given[1:], *consts)
        if plan.joint is not None:
            function, pick = plan.joint
            results = dict(enumerate(function(*pick(every))))
        else:
            results = {i: function(*pick(every)) for i, function, pick in plan.steps}
        like = scalar_ir.to_opmath(trace.variable(0, kinds[0]).node).dtype
        computed: list[Node] = []
        outputs: list[Node] = []
        places = []
        for i, value in results.items():
            if value is None or not plan.needs[i]:
                continue
            wanted = kinds[0] if types is None else types[i]
            if wanted.kind == "c":
                raise Untraceable("complex numbers")
            node_of = as_symbol(value, trace, like).node
            computed.append(node_of)
            outputs.append(trace.variable(0, wanted).node if node_of is given[0].node and wanted == kinds[0] else
                           scalar_ir.cast(node_of, wanted))
            places.append(i)
        formula = Formula(outputs, kinds_of(kinds), numbers)
        formula.runner = Rules(formula, computed, places)
        return formula


def _handing_on(count: int, places: Sequence[int]) -> Any:
    """What gives the cotangent itself to these inputs."""
    def run(arrays: Sequence[np.ndarray], numbers: Sequence[Any]) -> list[Any]:
        return [arrays[0] if i in places else None for i in range(count)]

    return run


def kinds_of(kinds: Sequence[Any]) -> list[np.dtype]:
    """The dtypes of the arrays among what a node was given."""
    return [kind for kind in kinds if isinstance(kind, np.dtype)]


__all__ = ["Gradients", "Rules"]
