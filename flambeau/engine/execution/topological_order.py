"""The nodes that a backward pass reaches, in topological order, and those on a path to requested inputs."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush
from operator import attrgetter

from ..nodes.node import Node

#: a node and the number of one of its outputs
Edge = tuple[Node, int]

_sequence_number = attrgetter("seq")


def reachable(roots: Sequence[Edge]) -> tuple[list[Node], dict[Node, int]]:
    """The inner nodes that the roots reach, in topological order, and for each leaf the number of edges to it."""
    nodes: list[Node] = []
    seen: set[Node] = set()
    dependencies: dict[Node, int] = {}
    for node, _ in roots:
        if node.is_leaf:
            dependencies.setdefault(node, 0)
        elif node not in seen:
            seen.add(node)
            nodes.append(node)
    for node in nodes:  # grows during the iteration
        for next_node in node.edges:
            if next_node is None:
                continue
            if next_node.is_leaf:
                dependencies[next_node] = dependencies.get(next_node, 0) + 1
            elif next_node not in seen:
                seen.add(next_node)
                nodes.append(next_node)
    if Node.renumbered:
        return _sort_by_dependencies(nodes), dependencies
    nodes.sort(key=_sequence_number, reverse=True)
    return nodes, dependencies


def _sort_by_dependencies(nodes: list[Node]) -> list[Node]:
    """The nodes in topological order; among those that are ready, the one with the highest sequence number is next."""
    dependencies: dict[Node, int] = dict.fromkeys(nodes, 0)
    for node in nodes:
        for next_node in node.edges:
            if next_node in dependencies:
                dependencies[next_node] += 1
    ready = [(-node.seq, i, node) for i, node in enumerate(nodes) if not dependencies[node]]
    ready.sort()
    positions = {node: i for i, node in enumerate(nodes)}
    order = []
    while ready:
        _, _, node = heappop(ready)
        order.append(node)
        for next_node in node.edges:
            if next_node in dependencies:
                dependencies[next_node] -= 1
                if not dependencies[next_node]:
                    heappush(ready, (-next_node.seq, positions[next_node], next_node))
    return order


def needed_nodes(order: list[Node], ends: set[Node]) -> set[Node]:
    """The nodes of a topological order from which a path leads to one of `ends`."""
    needed: set[Node] = set()
    for node in reversed(order):
        for next_node in node.edges:
            if next_node is not None and (next_node in needed or next_node in ends):
                needed.add(node)
                break
    return needed


__all__ = ["Edge", "needed_nodes", "reachable"]
