"""Nodes grouped by the module or function of the program that they come from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ..._compatibility import compatibility
from ...graph import Graph
from ...node import Node

__all__ = ["SourcePartition", "check_subgraphs_connected", "get_source_partitions"]


@compatibility(is_backward_compatible=False)
@dataclass
class SourcePartition:
    """The nodes of one call of a module or function.

    Attributes:
        nodes: the nodes.
        source: the class or function.
        input_nodes: the values from outside, except parameters.
        output_nodes: the nodes that others use.
        params: the parameters.
    """

    nodes: list[Node]
    source: Any
    input_nodes: list[Node] = field(default_factory=list)
    output_nodes: list[Node] = field(default_factory=list)
    params: list[Node] = field(default_factory=list)


def _source_of(node: Node, wanted: list[Any]) -> tuple[Any, Any] | None:
    """(source, name of the call) of a node, if the source is wanted."""
    stack = node.meta.get("source_fn_stack")
    if stack is not None:
        name, source = stack[-1][0], stack[-1][1]
        return (source, name) if source in wanted else None
    function = node.meta.get("torch_fn")
    if function is not None:
        name, source = function[0], function[1].split(".")[1]
        if source in wanted:
            return source, name
    modules = node.meta.get("nn_module_stack") if node.op == "call_function" else None
    if modules:
        path, cls = list(modules.values())[-1]
        for each in wanted:
            if isinstance(each, type):
                if (isinstance(cls, type) and issubclass(cls, each)) or cls == f"{each.__module__}.{each.__qualname__}":
                    return each, path
            elif cls == each:
                return each, path
    return None


@compatibility(is_backward_compatible=False)
def get_source_partitions(graph: Graph, wanted_sources: list[Any],
                          filter_fn: Callable[[Node], bool] | None = None) -> dict[Any, list[SourcePartition]]:
    """The nodes of a graph by the module or function that they come from.

    Args:
        graph: the graph.
        wanted_sources: the classes of modules and the functions.
        filter_fn: a condition that all nodes of a group satisfy.
    """
    groups: dict[Any, dict[Any, list[Node]]] = {}
    for node in graph.nodes:
        found = _source_of(node, wanted_sources)
        if found is not None:
            groups.setdefault(found[0], {}).setdefault(found[1], []).append(node)
    return {source: [_partition(nodes, source) for nodes in calls.values()
                     if filter_fn is None or all(map(filter_fn, nodes))] for source, calls in groups.items()}


def _partition(nodes: list[Node], source: Any) -> SourcePartition:
    inputs: dict[Node, None] = {}
    for node in nodes:
        inputs.update((arg, None) for arg in node.args
                      if isinstance(arg, Node) and arg not in nodes and arg.op != "get_attr")
    params = [node for node in nodes if node.op == "get_attr"]
    outputs = [node for node in nodes if node.op != "get_attr" and any(user not in nodes for user in node.users)]
    return SourcePartition(nodes, source, list(inputs), outputs, params)


@compatibility(is_backward_compatible=False)
def check_subgraphs_connected(subgraph1: SourcePartition, subgraph2: SourcePartition) -> bool:
    """Whether a node of the second group uses one of the first."""
    return any(user in subgraph2.nodes for node in subgraph1.nodes for user in node.users)
