"""Checks of a graph: owners, order, names, targets."""

from __future__ import annotations

from typing import Any

import flambeau as torch

_LEGAL = frozenset(("call_function", "call_method", "get_attr", "call_module", "placeholder", "output"))


def check(graph: Any) -> None:
    """Check a graph.

    Raises:
        RuntimeError, ValueError: it is not well-formed.
    """
    names: set[str] = set()
    defined: set[Any] = set()
    for node in graph.nodes:
        if node.op not in _LEGAL:
            raise RuntimeError(f"Node {node} had unknown opcode {node.op}!")
        if node.graph is not graph:
            raise RuntimeError(f"Node '{node}' does not belong to this Graph!")
        if node not in graph._find_nodes_lookup_table:
            raise RuntimeError(f"Node '{node}' is not added to the side table")
        for arg in node._input_nodes:
            if arg.graph is not graph:
                raise RuntimeError(
                    f"Argument '{arg}' of Node '{node}' does not belong to this Graph, but was used as an argument! If "
                    "you are copying nodes from another graph, make sure to use ``arg_transform`` on node_copy() to "
                    f"remap values\n{graph}")
            if arg not in defined:
                raise RuntimeError(
                    f"Argument '{arg}' of Node '{node}' was used before it has been defined! Please check that Nodes "
                    f"in the graph are topologically ordered\n{graph}")
        defined.add(node)
        if node.name in names:
            raise RuntimeError(f"Node redefined name {node.name}!")
        names.add(node.name)
    if graph.owning_module:
        for node in graph.nodes:
            _check_target(node, graph.owning_module)


def _check_target(node: Any, owner: Any) -> None:
    if node.op == "call_function":
        if not callable(node.target):
            raise ValueError(f"Node {node} target {node.target} has type {torch.typename(node.target)} but a Callable "
                             "is expected")
    elif not isinstance(node.target, str):
        raise ValueError(f"Node {node} target {node.target} has type {torch.typename(node.target)} but a str is "
                         "expected")
    if node.op in ("get_attr", "call_module"):
        path = node.target.split(".")
        for i, name in enumerate(path):
            seen = ".".join(path[:i])
            owner = getattr(owner, name, None)
            if owner is None:
                raise RuntimeError(f"Node {node} target {node.target} references nonexistent attribute {name} of "
                                   f"{seen}")
            if node.op == "call_module" and not isinstance(owner, torch.nn.Module):
                raise RuntimeError(f"Node {node} target {node.target} {name} of {seen} does not reference an nn.Module")


__all__ = ["check"]
