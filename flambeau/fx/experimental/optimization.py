"""Optimizations for inference: normalization fused into layers, dropout removed."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

from ...nn.modules.batchnorm import BatchNorm1d, BatchNorm2d, BatchNorm3d
from ...nn.modules.conv import Conv1d, Conv2d, Conv3d
from ...nn.modules.dropout import Dropout
from ...nn.modules.linear import Linear
from ...nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval
from .._symbolic_trace import symbolic_trace
from ..graph import Graph
from ..graph_module import GraphModule
from ..interpreter import Transformer
from ..node import Node

__all__ = ["UnionFind", "extract_subgraph", "fuse", "matches_module_pattern", "remove_dropout", "replace_node_module"]


def _parent_name(target: str) -> tuple[str, str]:
    """The path of a module's parent, and its name there."""
    parent, _, name = target.rpartition(".")
    return parent, name


def matches_module_pattern(pattern: Iterable[type], node: Node, modules: dict[str, Any]) -> bool:
    """Whether a node calls a module of the second class with the result of one of the first.

    Args:
        pattern: the two classes.
        node: the node.
        modules: path -> module.
    """
    if not node.args:
        return False
    return all(isinstance(each, Node) and each.op == "call_module" and each.target in modules
               and type(modules[each.target]) is expected
               for expected, each in zip(pattern, (node.args[0], node), strict=False))


def replace_node_module(node: Node, modules: dict[str, Any], new_module: Any) -> None:
    """Replace the module that a node calls."""
    parent, name = _parent_name(node.target)
    modules[node.target] = new_module
    setattr(modules[parent], name, new_module)


def fuse(model: Any, inplace: bool = False, no_trace: bool = False) -> Any:
    """Fuse batch normalization into the convolutions and linear layers before it, for inference.

    Args:
        model: the module, in evaluation mode.
        inplace: whether its layers are changed; else those of a copy.
        no_trace: whether a graph module is not traced again.
    """
    if not inplace:
        model = copy.deepcopy(model)
    traced: Any = model if no_trace and isinstance(model, GraphModule) else symbolic_trace(model)
    modules = dict(traced.named_modules())
    graph = copy.deepcopy(traced.graph)
    for pattern in ((Conv1d, BatchNorm1d), (Conv2d, BatchNorm2d), (Conv3d, BatchNorm3d), (Linear, BatchNorm1d)):
        for node in graph.nodes:
            if not matches_module_pattern(pattern, node, modules) or len(node.args[0].users) > 1:
                continue
            layer, norm = modules[node.args[0].target], modules[node.target]
            if not norm.track_running_stats:
                continue
            fused = fuse_linear_bn_eval(layer, norm) if pattern[0] is Linear else fuse_conv_bn_eval(layer, norm)
            replace_node_module(node.args[0], modules, fused)
            node.replace_all_uses_with(node.args[0])
            graph.erase_node(node)
    return GraphModule(traced, graph)


def remove_dropout(model: Any) -> GraphModule:
    """Trace a module without its dropout layers."""
    class DropoutRemover(Transformer):
        def call_module(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            if isinstance(self.submodules[target], Dropout):
                if len(args) != 1:
                    raise AssertionError(f"Expected 1 arg for Dropout, got {len(args)}")
                return args[0]
            return super().call_module(target, args, kwargs)

    return DropoutRemover(symbolic_trace(model)).transform()


def extract_subgraph(orig_module: Any, nodes: list[Node], inputs: list[Node], outputs: list[Node]) -> GraphModule:
    """A module of some nodes of another one.

    Args:
        orig_module: the other module.
        nodes: the nodes, in order.
        inputs: the nodes whose values are its parameters.
        outputs: the nodes whose values it returns.
    """
    graph = Graph()
    copies = {node: graph.placeholder(node.name) for node in inputs}
    for node in nodes:
        copies[node] = graph.node_copy(node, lambda x: copies[x])
    graph.output([copies[node] for node in outputs])
    graph.lint()
    return GraphModule(orig_module, graph)


class UnionFind:
    """Disjoint sets of numbers.

    Args:
        n: one more than the largest number.
    """

    def __init__(self, n: int) -> None:
        self.parent: list[int | None] = [None] * n
        self.size: list[int] = [0] * n

    def make_set(self, v: int) -> None:
        """Make the set of a number."""
        self.parent[v] = v
        self.size[v] = 1

    def find(self, v: int) -> int:
        """The representative of a number's set."""
        parent = self.parent[v]
        if parent is None:
            raise AssertionError(f"Node {v} not in union-find structure")
        if parent != v:
            self.parent[v] = parent = self.find(parent)
        return parent

    def join(self, a: int, b: int) -> int:
        """Join the sets of two numbers; the representative."""
        a, b = self.find(a), self.find(b)
        if a == b:
            return a
        if self.size[a] < self.size[b]:
            a, b = b, a
        self.parent[b] = a
        self.size[a] += self.size[b]
        return a
