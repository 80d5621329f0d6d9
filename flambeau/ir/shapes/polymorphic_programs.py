"""Shape-polymorphic programs: a polymorphic plan and the structure of its results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..graph.value import Unsupported
from ..lowering.tracing import Declaration, TracedDeclaration, trace_declaration
from ..schedule.program import Program
from ..schedule.scheduler import Schedule
from .polymorphic_plans import NotPolymorphic, PolymorphicPlan, build_polymorphic_plan
from .symbolic_shapes import ShapeSignature


class PolymorphicProgram(NamedTuple):
    """The programs of one shape signature.

    Attributes:
        plan: their execution plan, symbolic in the extents.
        result, list_outputs, arrays: as in `tracing.TracedDeclaration`.
    """

    plan: PolymorphicPlan
    result: Any
    list_outputs: list[tuple[int, list[int]]]
    arrays: int

    def program(self, extents: Sequence[int]) -> Program:
        """The program for these extents."""
        return Program.from_execution_plan(self.plan.instantiate(extents))


def build_polymorphic_program(title: str, declaration: Declaration, args: Sequence[Any], params: dict[str, Any],
                              signature: ShapeSignature, widens: bool = False) -> PolymorphicProgram | None:
    """Build the polymorphic program of a declaration; None where the shapes cannot be symbolic.

    Args:
        title, declaration, widens: as `tracing.trace_declaration` takes them.
        args, params: the arguments of a call; arrays of other extents replace the arrays among them.
        signature: the signature of the arrays.
    """
    traces: list[TracedDeclaration] = []

    def build_schedule(arrays: list[np.ndarray]) -> Schedule:
        replacements = iter(arrays)

        def replace(x: Any) -> Any:
            if x.__class__ is np.ndarray:
                return next(replacements)
            return [replace(each) for each in x] if x.__class__ is list else x

        values = [replace(x) for x in (*args, *params.values())]
        traced = trace_declaration(title, declaration, values[:len(args)],
                                   dict(zip(params, values[len(args):], strict=True)), widens)
        traces.append(traced)
        return Schedule(traced.graph, traced.targets, traced.graph.conditions)

    try:
        plan = build_polymorphic_plan(signature, build_schedule)
    except (NotPolymorphic, Unsupported):
        return None
    first, second = traces
    return PolymorphicProgram(plan, *first[2:]) if first[2:] == second[2:] else None


__all__ = ["PolymorphicProgram", "build_polymorphic_program"]
