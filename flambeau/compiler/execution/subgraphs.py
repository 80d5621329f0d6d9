"""Programs of parts of a graph: values are copied to a graph of their own, up to values that are its inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ...ir.graph.target import Target
from ...ir.graph.value import BACKWARD, Graph, Value


def subgraph_program(make_program: Callable[[Graph, list[Target]], Any], inputs: Iterable[Value],
                     zeros: Iterable[Value], results: Iterable[Value], rebuilt: dict[Value, Value]) -> Any:
    """Make a program of a part of a graph.

    Args:
        make_program: makes a program of a graph and its targets.
        inputs: the values that the program gets.
        zeros: values that are zero.
        results: the values that it returns, dense in row-major order.
        rebuilt: filled with the value of the new graph for each value.
    """
    graph = Graph()
    for number, value in enumerate(inputs):
        rebuilt[value] = graph.input(number, value.shape, value.dtype)
    for value in zeros:
        rebuilt[value] = graph.expand(graph.constant(np.zeros((), value.dtype)), value.shape)
    results = list(results)
    _rebuild_in_order(graph, results, rebuilt)
    made = [rebuild(graph, value, rebuilt) for value in results]
    return make_program(graph, [Target(graph.copy(value) if value.op == "view" else value) for value in made])


def _rebuild_in_order(graph: Graph, results: list[Value], rebuilt: dict[Value, Value]) -> None:
    """Copy values in their order: that of the traced pass, which needs the least memory.

    The order of the results would compute all gradients of activations before those of the weights. Values that are
    computed again are made as late as possible.
    """
    phases = results[0].graph.phases if results else {}
    needed: set[Value] = set()
    stack = list(results)
    while stack:
        value = stack.pop()
        if value not in needed and value not in rebuilt:
            needed.add(value)
            stack += value.args
    for value in sorted(needed, key=lambda x: x.number):
        made = rebuild(graph, value, rebuilt)
        if phases.get(value, BACKWARD) > BACKWARD:
            graph.phases[made] = phases[value]


def rebuild(graph: Graph, root: Value, rebuilt: dict[Value, Value]) -> Value:
    """Copy a value to another graph, except for the operands that are in `rebuilt`."""
    stack = [root]
    while stack:
        value = stack[-1]
        if value in rebuilt:
            stack.pop()
            continue
        missing = [a for a in value.args if a not in rebuilt]
        if missing:
            stack.extend(missing)
            continue
        stack.pop()
        if value.op == "constant":
            made = rebuilt[value] = graph.constant(value.graph.array(value))
            if value in value.graph.runtime_constants and made.op == "constant":
                graph.runtime_constants.add(made)
            continue
        args = tuple(rebuilt[a] for a in value.args)
        rebuilt[value] = graph.make(value.op, args, value.attrs, value.shape, value.dtype)
        if value.op == "extern":
            graph.extern_outputs[rebuilt[value]] = parts = []
            for part in value.graph.extern_outputs[value]:
                rebuilt[part] = graph.make("getitem", (rebuilt[value],), part.attrs, part.shape, part.dtype)
                parts.append(rebuilt[part])
    return rebuilt[root]


__all__ = ["rebuild", "subgraph_program"]
