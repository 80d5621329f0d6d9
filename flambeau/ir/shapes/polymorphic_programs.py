"""The form of an operator's programs: their pattern, and how their results are put together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..graph.value import Unsupported
from ..lowering.tracing import Line, Traced, traced
from ..schedule.program import Program
from ..schedule.scheduler import Plan
from .polymorphic_plans import NoPattern, Pattern, pattern_of
from .symbolic_shapes import Likeness


class Form(NamedTuple):
    """What programs for arrays that are alike have in common.

    Attributes:
        pattern: of their plans.
        result, kept, arrays: as in `lines.Traced`.
    """

    pattern: Pattern
    result: Any
    kept: list[tuple[int, list[int]]]
    arrays: int

    def program(self, extents: Sequence[int]) -> Program:
        """The program for these extents."""
        return Program.of_course(self.pattern.course(extents))


def form_of(title: str, line: Line, args: Sequence[Any], params: dict[str, Any], like: Likeness) -> Form | None:
    """The form of an operator's programs; None where there is none.

    Args:
        title, line: of the operator, as `lines.traced` takes them.
        args, params: as it is called; other arrays take the place of those among them.
        like: what the arrays have in common.
    """
    made: list[Traced] = []

    def planned(arrays: list[np.ndarray]) -> Plan:
        left = iter(arrays)

        def other(x: Any) -> Any:
            if x.__class__ is np.ndarray:
                return next(left)
            return [other(each) for each in x] if x.__class__ is list else x

        given = [other(x) for x in (*args, *params.values())]
        found = traced(title, line, given[:len(args)], dict(zip(params, given[len(args):], strict=True)))
        made.append(found)
        return Plan(found.graph, found.targets, found.graph.conditions)

    try:
        pattern = pattern_of(like, planned)
    except (NoPattern, Unsupported):
        return None
    first, second = made
    return Form(pattern, *first[2:]) if first[2:] == second[2:] else None


__all__ = ["Form", "form_of"]
