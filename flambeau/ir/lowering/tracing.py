"""Tracing of declarations: the graph of what a declaration computes of arrays of given shapes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...dtypes import NARROW
from ..graph.inputs import input_for_array, view_as_array
from ..graph.target import Target
from ..graph.value import Graph, Unsupported, Value
from .namespace import namespace_of

#: a function from a namespace `xp` to the declaration's function of arrays and parameters
Declaration = Callable[[Any], Callable[..., Any]]


class TracedDeclaration(NamedTuple):
    """A declaration trace_declaration into a graph.

    Attributes:
        targets: the results, then the values stored into list arguments.
        result: target indices in the structure of the result: an index, None, or a tuple of these.
        list_outputs: pairs of a list argument's position and the target indices of its new elements (`saved` lists).
        arrays: the number of array arguments.
    """

    graph: Graph
    targets: list[Target]
    result: Any
    list_outputs: list[tuple[int, list[int]]]
    arrays: int


def trace_declaration(title: str, declaration: Declaration, args: Sequence[Any], params: dict[str, Any],
                      widens: bool = False) -> TracedDeclaration:
    """Trace a declaration over values that stand for arrays.

    Args:
        title: its name in debug output and errors.
        args, params: the arguments of a call with arrays.
        widens: whether the declaration itself converts float16 and bfloat16.

    Raises:
        Unsupported: it needs something that IR values do not have.
    """
    graph = Graph()
    graph.counts_at_runtime = True
    count = 0

    def value_of(x: Any) -> Any:
        nonlocal count
        if x.__class__ is np.ndarray:
            if x.dtype in NARROW and not widens:
                raise Unsupported(f"{title} of {x.dtype}")
            count += 1
            return view_as_array(graph, input_for_array(graph, x, count - 1), x)
        return [value_of(each) for each in x] if x.__class__ is list else x

    values = [value_of(x) for x in (*args, *params.values())]
    lists = [(i, list(x)) for i, x in enumerate(values) if x.__class__ is list]
    call_args = values[:len(args)], dict(zip(params, values[len(args):], strict=True))
    outputs = _call(declaration(namespace_of(graph)), *call_args)
    targets: list[Target] = []

    def add_target(value: Any) -> Any:
        if value is None:
            return None
        if isinstance(value, (tuple, list)):
            return tuple(add_target(each) for each in value)
        if not isinstance(value, Value):
            raise Unsupported(f"{title} gives a {type(value).__name__}")
        targets.append(Target(value if value.op != "view" else graph.copy(value)))
        return len(targets) - 1

    result = add_target(outputs)
    list_outputs = [(i, [add_target(v) for v in values[i]]) for i, before in lists if values[i] != before]
    return TracedDeclaration(graph, targets, result, list_outputs, count)


def _call(declaration: Callable[..., Any], args: Sequence[Any], params: dict[str, Any]) -> Any:
    try:
        return declaration(*args, **params)
    except (AttributeError, TypeError, ValueError, IndexError, RuntimeError) as error:
        # it uses an attribute that values lack, or rejects its arguments: it raises the same error over arrays
        raise Unsupported(str(error)) from error


__all__ = ["Declaration", "TracedDeclaration", "trace_declaration"]
