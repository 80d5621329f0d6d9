"""Order of nodes, names of targets, and groups that pass other values than tensors."""

from __future__ import annotations

import collections
import heapq
import operator
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import flambeau as torch

from .._compatibility import compatibility
from ..code.torch_names import module_of, qualified_name
from ..graph import Graph
from ..graph_module import GraphModule
from ..node import Node

__all__ = ["FxNetAccFusionsFinder", "get_acc_ops_name", "get_node_target", "is_node_output_tensor", "legalize_graph",
           "stable_topological_sort"]

Tensors = tuple[torch.Tensor] | list[torch.Tensor]
TensorOrTensors = torch.Tensor | Tensors
NodeList = list[Node]
NodeSet = set[Node]
Names = list[str]
CALLABLE_NODE_OPS = {"call_module", "call_function", "call_method"}


@compatibility(is_backward_compatible=False)
def get_acc_ops_name(k: Any) -> str:
    """The name of a class of modules with its module."""
    if isinstance(k, str):
        return k
    if k.__module__ and "acc_ops" in k.__module__:
        return f"acc_ops.{k.__name__}"
    return f"{(module_of(k) or '').replace('torch._ops', 'torch.ops')}.{k.__name__}"


@compatibility(is_backward_compatible=False)
def get_node_target(submodules: Mapping[str, Any], node: Node) -> str:
    """What a node calls: the method, the qualified name of the function, or of the module's class.

    Args:
        submodules: path -> module.
        node: the node.
    """
    if node.op not in CALLABLE_NODE_OPS:
        raise AssertionError("Expect op types of " + ", ".join(CALLABLE_NODE_OPS) + f", but found {node.op}")
    if node.op == "call_module":
        module = submodules[node.target]
        return get_acc_ops_name(getattr(module, "_base_class_origin", type(module)))
    if node.op == "call_function":
        module_name = node.target.__module__
        if module_name is not None and "acc_ops" in module_name:
            return f"acc_ops.{node.target.__name__}"
        return qualified_name(node.target)
    return node.target


@compatibility(is_backward_compatible=False)
def is_node_output_tensor(node: Node) -> bool:
    """Whether a node's value is a tensor; `ShapeProp` has found it."""
    kind = node.meta.get("type", None)
    return kind is not None and issubclass(kind, torch.Tensor)


@compatibility(is_backward_compatible=False)
class FxNetAccFusionsFinder:
    """Finds groups of nodes that pass other values than tensors to each other.

    Args:
        module: the module.
        acc_nodes: the nodes; changed: groups that contain other nodes are removed.
    """

    def __init__(self, module: GraphModule, acc_nodes: NodeSet) -> None:
        self.module = module
        self.nodes = list(module.graph.nodes)
        self.acc_nodes = acc_nodes
        self.node_index = {node: i for i, node in enumerate(self.nodes)}

    @dataclass
    class FusionGroup:
        """A group.

        Attributes:
            top_node_idx: the least index of its nodes.
            nodes: its nodes.
            inputs: the nodes that it uses.
            nodes_need_process: its nodes whose neighbours have not been examined.
        """

        top_node_idx: int
        nodes: NodeSet
        inputs: NodeSet
        nodes_need_process: NodeSet

        def add_node(self, node: Node) -> None:
            """Add a node."""
            if node in self.nodes:
                return
            self.nodes_need_process.add(node)
            self.nodes.add(node)
            self.inputs.discard(node)
            self.inputs.update(n for n in node.all_input_nodes if n.op in CALLABLE_NODE_OPS and n not in self.nodes)

    def recursive_add_node(self, fusion_group: FxNetAccFusionsFinder.FusionGroup, inputs: Any,
                           visited: NodeSet | None = None) -> bool:
        """Add the nodes on paths from the group to nodes; whether there is one."""
        for arg in inputs:
            if visited is not None:
                if arg in visited:
                    continue
                visited.add(arg)
            if arg.op not in CALLABLE_NODE_OPS or self.node_index[arg] < fusion_group.top_node_idx:
                continue
            if arg in fusion_group.nodes:
                return True
            if self.recursive_add_node(fusion_group, arg.all_input_nodes, visited):
                fusion_group.add_node(arg)
                return True
        return False

    def __call__(self) -> dict[Node, NodeSet]:
        result: dict[Node, NodeSet] = {}
        for node in list(self.acc_nodes):
            if node in result or node.op not in CALLABLE_NODE_OPS or "tensor_meta" in node.meta or (
                    node not in self.acc_nodes):
                continue
            group = self.FusionGroup(top_node_idx=self.node_index[node], nodes={node},
                                     inputs=set(node.all_input_nodes), nodes_need_process={node})
            while group.nodes_need_process:
                current = group.nodes_need_process.pop()
                self.recursive_add_node(group, group.inputs, visited=set())
                if "tensor_meta" not in current.meta:
                    for user in current.users:
                        if user.op in CALLABLE_NODE_OPS and user not in group.nodes:
                            group.add_node(user)
                            self.recursive_add_node(group, group.inputs, visited=set())
                for arg in current.all_input_nodes:
                    if arg.op in CALLABLE_NODE_OPS and "tensor_meta" not in arg.meta and arg not in group.nodes:
                        group.add_node(arg)
                        group.top_node_idx = min(group.top_node_idx, self.node_index[arg])
                        self.recursive_add_node(group, group.inputs, visited=set())
            if group.nodes <= self.acc_nodes:
                result.update(dict.fromkeys(group.nodes, group.nodes))
            else:
                self.acc_nodes -= group.nodes
        return result


_FIRST = frozenset((operator.add, operator.mul, operator.sub, operator.floordiv, operator.truediv, operator.mod,
                    operator.le, operator.lt, operator.ge, operator.gt, operator.eq, operator.ne))


def _waiting(gm: GraphModule) -> dict[Node, int]:
    return {node: len(node.all_input_nodes) for node in gm.graph.nodes}


@compatibility(is_backward_compatible=False)
def legalize_graph(gm: GraphModule) -> GraphModule:
    """Sort the nodes of a module so that each follows those that it uses; independent nodes may change places.

    Raises:
        RuntimeError: nodes depend on each other.
    """
    waiting = _waiting(gm)
    graph = Graph()
    queue = collections.deque(node for node, count in waiting.items() if not count)
    copies: dict[Node, Node] = {}
    while queue:
        node = queue.popleft()
        copies[node] = graph.node_copy(node, lambda x: copies[x])
        for user in node.users:
            waiting[user] -= 1
            if waiting[user] == 0:
                if user.op == "call_function" and user.target in _FIRST:
                    queue.appendleft(user)
                else:
                    queue.append(user)
    if len(graph.nodes) < len(gm.graph.nodes):
        raise RuntimeError(f"Input graph has cycles, unable to add {[node for node in waiting if waiting[node] != 0]}")
    graph._codegen = gm.graph._codegen
    gm.graph = graph
    return gm


@compatibility(is_backward_compatible=False)
def stable_topological_sort(gm: GraphModule) -> GraphModule:
    """Sort the nodes of a module so that each follows those that it uses; independent nodes keep their order.

    Raises:
        AssertionError: nodes depend on each other.
    """
    waiting = _waiting(gm)
    position = {node: i for i, node in enumerate(gm.graph.nodes)}
    ready = [(position[node], node) for node, count in waiting.items() if not count]
    heapq.heapify(ready)
    graph = Graph()
    copies: dict[Node, Node] = {}
    while ready:
        _, node = heapq.heappop(ready)
        copies[node] = graph.node_copy(node, lambda x: copies[x])
        for user in node.users:
            waiting[user] -= 1
            if waiting[user] == 0:
                heapq.heappush(ready, (position[user], user))
    if len(graph.nodes) != len(gm.graph.nodes):
        raise AssertionError(
            f"Input graph has cycles, unable to add {[node for node in waiting if waiting[node] != 0]}")
    graph._codegen = gm.graph._codegen
    gm.graph = graph
    return gm
