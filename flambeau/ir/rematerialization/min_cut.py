"""Minimum cuts of directed graphs with capacities, by Dinic's algorithm."""

from __future__ import annotations

from collections import deque

#: a capacity that no cut contains
UNBOUNDED = 1 << 80


class FlowNetwork:
    """A directed graph with capacities, from node 0, the source, to node 1, the sink.

    Args:
        nodes: the number of nodes.

    >>> network = FlowNetwork(3)
    >>> network.add_edge(0, 2, 5)
    >>> network.add_edge(2, 1, 3)
    >>> sorted(network.source_side())
    [0, 2]
    """

    def __init__(self, nodes: int) -> None:
        self._edges: list[list[int]] = [[] for _ in range(nodes)]  # by node, the numbers of the edges that leave it
        self._heads: list[int] = []
        self._left: list[int] = []  # by edge, the capacity that is left; the edge `number ^ 1` is its reverse

    def add_edge(self, tail: int, head: int, capacity: int) -> None:
        """Add an edge."""
        for a, b, c in ((tail, head, capacity), (head, tail, 0)):
            self._edges[a].append(len(self._heads))
            self._heads.append(b)
            self._left.append(c)

    def source_side(self) -> set[int]:
        """Return the nodes on the source's side of a minimum cut: the smallest such set.

        Raises:
            ValueError: each cut contains an edge of unbounded capacity.
        """
        flow = 0
        while True:
            levels = self._levels()
            if levels[1] < 0:
                return {node for node, level in enumerate(levels) if level >= 0}
            flow += self._blocking_flow(levels)
            if flow >= UNBOUNDED:
                raise ValueError("no cut of bounded capacity")

    def _levels(self) -> list[int]:
        """The distances of all nodes from the source along edges with capacity left; -1: not reached."""
        levels = [-1] * len(self._edges)
        levels[0] = 0
        queue = deque([0])
        while queue:
            node = queue.popleft()
            for edge in self._edges[node]:
                head = self._heads[edge]
                if self._left[edge] and levels[head] < 0:
                    levels[head] = levels[node] + 1
                    queue.append(head)
        return levels

    def _blocking_flow(self, levels: list[int]) -> int:
        """Send flow along shortest paths until each contains an edge without capacity; return how much."""
        edges, heads, left = self._edges, self._heads, self._left
        following = [0] * len(edges)  # by node, the edge to try next
        total = 0
        path: list[int] = []
        node = 0
        while True:
            if node == 1:
                sent = min([left[edge] for edge in path])
                total += sent
                first = len(path)
                for at in range(len(path) - 1, -1, -1):
                    edge = path[at]
                    left[edge] -= sent
                    left[edge ^ 1] += sent
                    if not left[edge]:
                        first = at
                node = heads[path[first] ^ 1]
                del path[first:]
                continue
            of_node, at = edges[node], following[node]
            below = levels[node] + 1
            while at < len(of_node) and not (left[of_node[at]] and levels[heads[of_node[at]]] == below):
                at += 1
            following[node] = at
            if at < len(of_node):
                path.append(of_node[at])
                node = heads[of_node[at]]
            elif path:
                node = heads[path.pop() ^ 1]
                following[node] += 1
            else:
                return total


__all__ = ["UNBOUNDED", "FlowNetwork"]
