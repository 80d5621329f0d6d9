"""An operator's line over values: the graph of what it computes of arrays of certain shapes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...dtypes import NARROW
from ..graph.inputs import input_for_array, view_as_array
from ..graph.target import Target
from ..graph.value import Graph, Unsupported, Value
from .namespace import namespace_of

#: a line for a namespace
Line = Callable[[Any], Callable[..., Any]]


class Traced(NamedTuple):
    """A line, written over values.

    Attributes:
        targets: what it gives, and what it keeps.
        result: places of what it gives among the targets, None, or a tuple of such.
        kept: the places of what goes into each list among the arguments.
        arrays: how many arrays it was given.
    """

    graph: Graph
    targets: list[Target]
    result: Any
    kept: list[tuple[int, list[int]]]
    arrays: int


def traced(title: str, line: Line, args: Sequence[Any], params: dict[str, Any]) -> Traced:
    """A line over values that stand for arrays.

    Args:
        title: what reports call it.
        args, params: as it is to be called with arrays.

    Raises:
        Unsupported: it asks for what values have not.
    """
    graph = Graph()
    graph.counts_at_runtime = True
    count = 0

    def value_of(x: Any) -> Any:
        nonlocal count
        if x.__class__ is np.ndarray:
            if x.dtype in NARROW:
                raise Unsupported(f"{title} of {x.dtype}")
            count += 1
            return view_as_array(graph, input_for_array(graph, x, count - 1), x)
        return [value_of(each) for each in x] if x.__class__ is list else x

    given = [value_of(x) for x in (*args, *params.values())]
    lists = [(i, list(x)) for i, x in enumerate(given) if x.__class__ is list]
    run = given[:len(args)], dict(zip(params, given[len(args):], strict=True))
    found = _written(line(namespace_of(graph)), *run)
    targets: list[Target] = []

    def place(value: Any) -> Any:
        if value is None:
            return None
        if isinstance(value, (tuple, list)):
            return tuple(place(each) for each in value)
        if not isinstance(value, Value):
            raise Unsupported(f"{title} gives a {type(value).__name__}")
        targets.append(Target(value if value.op != "view" else graph.copy(value)))
        return len(targets) - 1

    result = place(found)
    kept = [(i, [place(v) for v in given[i]]) for i, before in lists if given[i] != before]
    return Traced(graph, targets, result, kept, count)


def _written(line: Callable[..., Any], args: Sequence[Any], params: dict[str, Any]) -> Any:
    try:
        return line(*args, **params)
    except (AttributeError, TypeError, ValueError, IndexError, RuntimeError) as error:
        # the line asks of an array what a value has not, or refuses what it is given: it is to do so over arrays
        raise Unsupported(str(error)) from error


__all__ = ["Line", "Traced", "traced"]
