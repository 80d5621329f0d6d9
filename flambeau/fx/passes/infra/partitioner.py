"""Partitions: the largest sets of supported nodes that can each be one operation."""

from __future__ import annotations

import collections
import itertools
from collections.abc import Iterable, Sequence
from typing import Any

from ...code.torch_names import qualified_name
from ...graph_module import GraphModule
from ...node import Node
from ..operator_support import OperatorSupportBase
from ..utils.fuser_utils import fuse_by_partitions


class Partition:
    """A set of nodes, with their order counted from the end of the graph.

    Args:
        id: its number.
        nodes: the nodes.
        node_orders: the order of each.
    """

    def __init__(self, id: int | None = None, nodes: Iterable[Node] | None = None,
                 node_orders: Iterable[int] | None = None) -> None:
        self.id = id
        self.nodes: dict[Node, Any] = {}
        if nodes is not None:
            listed = list(nodes)
            orders: list[Any] = [None] * len(listed) if node_orders is None else list(node_orders)
            if len(listed) != len(orders):
                raise AssertionError("nodes and node_orders must have the same length")
            self.nodes = dict(zip(listed, orders, strict=True))

    def __repr__(self) -> str:
        return str(self.nodes)

    def add_node(self, node: Node, node_order: int | None = None) -> None:
        """Add a node."""
        self.nodes[node] = node_order

    def remove_node(self, node: Node) -> None:
        """Remove a node."""
        del self.nodes[node]

    def size(self) -> int:
        """The number of nodes."""
        return len(self.nodes)


class _DependencyViewer:
    """The nodes that depend on each node."""

    def __init__(self, graph_module: GraphModule) -> None:
        self.downstreams: dict[Node, set[Node]] = collections.defaultdict(set)
        for node in reversed(graph_module.graph.nodes):
            for user in node.users:
                self.downstreams[node] |= {user, *self.downstreams[user]}

    def downstreams_of(self, node: Node) -> set[Node]:
        """The nodes that depend on a node."""
        return self.downstreams[node]


class _Assignment:
    """Which partition each node is in, and which partitions depend on each other."""

    def __init__(self, viewer: _DependencyViewer) -> None:
        self.viewer = viewer
        self.of: dict[Node, int] = {}
        self.partitions: dict[int, Partition] = {}
        self.reaches: dict[int, set[int]] = collections.defaultdict(set)  # the partitions that depend on each
        self.order: dict[int, int] = {}
        self.users: dict[int, set[Node]] = {}

    def _downstream(self, users: Iterable[Node], sources: Iterable[int]) -> set[int]:
        found: set[int] = set()
        for user in users:
            for node in (user, *self.viewer.downstreams_of(user)):
                target = self.of.get(node)
                if target is not None:
                    found |= {target, *self.reaches[target]}
        return found - set(sources)

    def place(self, node: Node, order: int | None, number: int | None) -> None:
        """Move a node to a partition, which is made if it does not exist; None: to none."""
        if node in self.of:
            self.partitions[self.of[node]].remove_node(node)
        if number is None:
            self.of.pop(node)
        elif number not in self.partitions:
            if order is None:
                raise AssertionError("node_order is required for new partitions")
            self.of[node] = number
            self.partitions[number] = Partition(id=number, nodes=[node], node_orders=[order])
            self.users[number] = set(node.users)
            self.reaches[number] |= self._downstream(node.users, (number,))
        else:
            self.of[node] = number
            self.partitions[number].add_node(node, order)

    def merge(self, first: int, second: int) -> int:
        """Merge two partitions, unless they would depend on themselves; the number of the first, or of both."""
        ours, others = self.partitions[first].nodes, self.partitions[second].nodes
        users = (self.users[first] | self.users[second]) - set(ours) - set(others)
        for user in users:
            for node in (user, *self.viewer.downstreams_of(user)):
                if node in ours or node in others:
                    return first
                if node in self.of and not self.reaches[self.of[node]].isdisjoint((first, second)):
                    return first
        kept, removed = (second, first) if len(ours) < len(others) else (first, second)
        self.partitions[kept].nodes.update(self.partitions[removed].nodes)
        self.of.update(dict.fromkeys(self.partitions[removed].nodes, kept))
        del self.partitions[removed], self.users[removed]
        self.order[kept] = min(self.order[kept], self.order.pop(removed))
        self.users[kept] = users
        self.reaches[kept] |= self.reaches.pop(removed) | self._downstream(users, (kept, removed))
        self.reaches[kept] -= {kept, removed}
        return kept


class CapabilityBasedPartitioner:
    """Finds partitions of the nodes that a backend supports.

    Args:
        graph_module: the module.
        operator_support: which nodes are supported.
        allows_single_node_partition: whether partitions with one computing node are kept.
        non_compute_ops: the names of functions that compute nothing.
        allowed_single_node_partition_ops: the names of functions that may be alone in a partition.
        skip_horizontal_fusion: whether only nodes that use each other are merged.
    """

    def __init__(self, graph_module: GraphModule, operator_support: OperatorSupportBase,
                 allows_single_node_partition: bool = False, non_compute_ops: Sequence[str] | None = None,
                 allowed_single_node_partition_ops: Sequence[str] | None = None,
                 skip_horizontal_fusion: bool = False) -> None:
        self.graph_module = graph_module
        self.operator_support = operator_support
        self.allows_single_node_partition = allows_single_node_partition
        self.non_compute_ops = non_compute_ops or []
        self.allowed_single_node_partition_ops = allowed_single_node_partition_ops or []
        self.skip_horizontal_fusion = skip_horizontal_fusion
        self.dependency_viewer = _DependencyViewer(graph_module)

    def _is_node_supported(self, node: Node) -> bool:
        return self.operator_support.is_node_supported(dict(self.graph_module.named_modules()), node)

    def propose_partitions(self) -> list[Partition]:
        """The partitions."""
        state = _Assignment(self.dependency_viewer)
        numbers = itertools.count()
        for order, node in enumerate(reversed(self.graph_module.graph.nodes)):
            candidates: dict[int, None] = {}
            if self._is_node_supported(node) and node not in state.of:
                number = next(numbers)
                state.order[number] = number
                state.place(node, order, number)
                candidates[number] = None
                if self.skip_horizontal_fusion:
                    candidates.update((state.of[user], None) for user in node.users if user in state.of)
            if not self.skip_horizontal_fusion:
                candidates.update(dict.fromkeys(sorted(state.order, key=state.order.__getitem__)))
            first, *others = candidates or [-1]
            for other in others:
                first = state.merge(first, other)
        for partition in state.partitions.values():
            partition.nodes = dict(sorted(partition.nodes.items(), key=lambda item: item[1], reverse=True))
        self._follow_producers(state)
        if not self.allows_single_node_partition:
            for number in [n for n, partition in state.partitions.items() if self._computing(partition) <= 1]:
                del state.partitions[number]
        return [partition for partition in state.partitions.values() if partition.size() > 0]

    def _follow_producers(self, state: _Assignment) -> None:
        """Move the nodes that take items of a tuple to the partition of the node that computes the tuple."""
        while True:
            moved: dict[Node, int | None] = {}
            for node in self.graph_module.graph.nodes:
                if all(user.op == "call_function" and qualified_name(user.target) == "_operator.getitem"
                       for user in node.users):
                    number = state.of.get(node)
                    moved.update((user, number) for user in node.users if state.of.get(user) != number)
            if not moved:
                return
            for node, number in moved.items():
                state.place(node, None, number)

    def _computing(self, partition: Partition) -> int:
        idle = {"torch.ops.aten.view", "_operator.getitem", *self.non_compute_ops}
        names = [qualified_name(node.target) for node in partition.nodes if node.op == "call_function"]
        return sum((name not in idle) + (name in self.allowed_single_node_partition_ops) for name in names)

    def fuse_partitions(self, partitions: list[Partition], prefix: str = "fused_") -> GraphModule:
        """Replace partitions by calls of submodules."""
        return fuse_by_partitions(self.graph_module, [partition.nodes for partition in partitions], prefix=prefix)

    def remove_bookend_non_compute_ops(self, partitions: list[Partition]) -> None:
        """Remove nodes that compute nothing from the beginnings and ends of partitions."""
        idle = set(self.non_compute_ops)

        def computes_nothing(node: Node) -> bool:
            return node.op == "call_function" and qualified_name(node.target) in idle

        known: tuple[dict[Node, bool], dict[Node, bool]] = {}, {}

        def at_edge(node: Node, inside: set[Node], removed: set[Node], ends: bool) -> bool:
            if node.op == "placeholder" or node not in inside or node in removed:
                return True
            found = known[ends]
            if node not in found:
                neighbours = node.users if ends else node.all_input_nodes
                found[node] = computes_nothing(node) and all(
                    at_edge(each, inside, removed, ends) for each in neighbours)
            return found[node]

        for partition in partitions:
            removed: set[Node] = set()
            inside = set(partition.nodes)
            for node in partition.nodes:
                if computes_nothing(node) and (at_edge(node, inside, removed, False)
                                               or at_edge(node, inside, removed, True)):
                    removed.add(node)
            for node in removed:
                partition.nodes.pop(node, None)

    def partition_and_fuse(self, prefix: str = "fused_") -> GraphModule:
        """Find partitions and replace them by calls of submodules."""
        return self.fuse_partitions(self.propose_partitions(), prefix=prefix)
