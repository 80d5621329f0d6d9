"""The form of an operator's programs: their pattern, and how their results are put together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..graph.value import Unsupported
from ..lowering.tracing import Line, Traced, traced
from ..schedule.program import Program
from ..schedule.scheduler import Schedule
from .polymorphic_plans import NotPolymorphic, PolymorphicPlan, build_polymorphic_plan
from .symbolic_shapes import ShapeSignature


class PolymorphicProgram(NamedTuple):
    """What programs for arrays that are alike have in common.

    Attributes:
        pattern: of their plans.
        result, kept, arrays: as in `lines.Traced`.
    """

    pattern: PolymorphicPlan
    result: Any
    kept: list[tuple[int, list[int]]]
    arrays: int

    def program(self, extents: Sequence[int]) -> Program:
        """The program for these extents."""
        return Program.from_execution_plan(self.pattern.instantiate(extents))


def build_polymorphic_program(title: str, line: Line, args: Sequence[Any], params: dict[str, Any],
                              like: ShapeSignature) -> PolymorphicProgram | None:
    """The form of an operator's programs; None where there is none.

    Args:
        title, line: of the operator, as `lines.traced` takes them.
        args, params: as it is called; other arrays take the place of those among them.
        like: what the arrays have in common.
    """
    made: list[Traced] = []

    def planned(arrays: list[np.ndarray]) -> Schedule:
        left = iter(arrays)

        def other(x: Any) -> Any:
            if x.__class__ is np.ndarray:
                return next(left)
            return [other(each) for each in x] if x.__class__ is list else x

        given = [other(x) for x in (*args, *params.values())]
        found = traced(title, line, given[:len(args)], dict(zip(params, given[len(args):], strict=True)))
        made.append(found)
        return Schedule(found.graph, found.targets, found.graph.conditions)

    try:
        pattern = build_polymorphic_plan(like, planned)
    except (NotPolymorphic, Unsupported):
        return None
    first, second = made
    return PolymorphicProgram(pattern, *first[2:]) if first[2:] == second[2:] else None


__all__ = ["PolymorphicProgram", "build_polymorphic_program"]
