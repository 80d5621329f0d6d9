"""Targets replaced in a graph, and the bytes of its values."""

from __future__ import annotations

from typing import Any, NamedTuple

import flambeau as torch

from .._compatibility import compatibility
from ..graph import Graph
from ..graph_module import GraphModule
from ..node import Node, Target, map_arg
from .shape_prop import ShapeProp, TensorMetadata

__all__ = ["get_size_of_all_nodes", "get_size_of_node", "get_tensor_meta", "replace_target_nodes_with", "size_bytes"]


@compatibility(is_backward_compatible=False)
def replace_target_nodes_with(fx_module: GraphModule, old_op: str, old_target: Target, new_op: str,
                              new_target: Target) -> None:
    """Make the nodes of an opcode and target those of others."""
    graph = Graph()
    copies: dict[Node, Node] = {}
    for node in fx_module.graph.nodes:
        if node.op == old_op and node.target == old_target:
            args, kwargs = (map_arg(each, lambda n: copies[n]) for each in (node.args, node.kwargs))
            copies[node] = graph.create_node(new_op, new_target, args, kwargs, node.name)
        else:
            copies[node] = graph.node_copy(node, lambda n: copies[n])
    fx_module.graph = graph


@compatibility(is_backward_compatible=False)
class size_bytes(NamedTuple):
    """The bytes of a value, and of it with the parameters that compute it."""

    output_size: int
    total_size: int


@compatibility(is_backward_compatible=False)
def get_size_of_all_nodes(fx_module: GraphModule, args: list[Any] | None = None) -> None:
    """Set the attribute `size_bytes` of all nodes; with arguments, run the module with them first."""
    if args is not None:
        ShapeProp(fx_module).propagate(*args)
    for node in fx_module.graph.nodes:
        if node.op == "output":
            break
        node.size_bytes = get_size_of_node(fx_module, node)


@compatibility(is_backward_compatible=False)
def get_tensor_meta(node: Node) -> TensorMetadata:
    """The metadata of a node's value.

    Raises:
        RuntimeError: they are not known.
    """
    meta = node.meta.get("tensor_meta")
    if not meta:
        raise RuntimeError(f"Node {node} has no tensor metadata associated with it! Check that shape propagation has "
                           "run.")
    return meta


@compatibility(is_backward_compatible=False)
def get_size_of_node(fx_module: GraphModule, node: Node) -> size_bytes:
    """The bytes of a node's value and parameters."""
    meta: Any = get_tensor_meta(node)
    output = meta.shape.numel()
    parameters = 0
    if node.op == "call_module":
        parameters = sum(p.numel() for p in dict(fx_module.named_modules())[node.target].parameters())
    item = torch.tensor([], dtype=meta.dtype).element_size()
    return size_bytes(item * output, item * (output + parameters))
