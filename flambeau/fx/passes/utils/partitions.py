"""Sets of nodes: their order, and whether they can be one operation."""

from __future__ import annotations

import heapq

from ..._compatibility import compatibility
from ...node import Node


@compatibility(is_backward_compatible=False)
def topo_sort(nodes: list[Node]) -> list[Node]:
    """Nodes in an order of execution; nodes that are independent keep their order.

    Raises:
        AssertionError: they depend on each other.
    """
    position = {node: i for i, node in enumerate(nodes)}
    waiting = {node: sum(used in position for used in node.all_input_nodes) for node in nodes}
    ready = [(position[node], node) for node in nodes if not waiting[node]]
    heapq.heapify(ready)
    result: list[Node] = []
    while ready:
        _, node = heapq.heappop(ready)
        result.append(node)
        for user in node.users:
            if user in waiting:
                waiting[user] -= 1
                if not waiting[user]:
                    heapq.heappush(ready, (position[user], user))
    if len(nodes) != len(result):
        raise AssertionError("topological sorted nodes doesn't have same length as input nodes")
    return result


@compatibility(is_backward_compatible=False)
def validate_partition(partition: list[Node]) -> bool:
    """Whether no path leaves a set of nodes and returns to it."""
    inside = set(partition)
    pending = [user for node in partition for user in node.users if user not in inside]
    seen: set[Node] = set()
    while pending:
        node = pending.pop()
        if node in inside:
            return False
        if node not in seen:
            seen.add(node)
            pending.extend(node.users)
    return True


__all__ = ["topo_sort", "validate_partition"]
