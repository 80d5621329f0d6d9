"""Fusion: sets of nodes become submodules."""

from __future__ import annotations

import copy
from typing import Any

from ..._compatibility import compatibility
from ...graph import Graph
from ...graph_module import GraphModule
from ...node import Node
from ...proxy import Proxy
from ..tools_common import NodeList, NodeSet, legalize_graph, stable_topological_sort
from .common import lift_subgraph_as_module
from .partitions import topo_sort, validate_partition


@compatibility(is_backward_compatible=False)
def fuse_as_graphmodule(gm: GraphModule, nodes: NodeList, module_name: str,
                        partition_lookup_table: dict[Node, Any] | None = None, *,
                        always_return_tuple: bool = False) -> tuple[GraphModule, tuple[Node, ...], tuple[Node, ...]]:
    """Copy nodes of a module into a new module.

    Args:
        gm: the module.
        nodes: the nodes, in order of execution.
        module_name: the name of the new module's class.
        partition_lookup_table: the nodes as keys.
        always_return_tuple: whether a single output is returned as a tuple.

    Returns:
        The new module, the nodes that it takes as inputs, and the nodes that others use.

    Raises:
        AssertionError: the nodes are not of this module, or a path leaves them and returns.
    """
    for node in nodes:
        if node.graph.owning_module is not gm:
            raise AssertionError(f"{node} doesn't belong to passed in graph module {gm._get_name()}")
        if node._erased:  # type: ignore[attr-defined]
            raise AssertionError(f"{node} has been removed from owning graph")
        if node not in gm.graph._find_nodes_lookup_table:
            raise AssertionError(f"{node} is not found in graph module {gm._get_name()}")
    if not validate_partition(nodes):
        raise AssertionError("Invalid partition, found dependency cycles")
    inside = dict.fromkeys(nodes) if partition_lookup_table is None else partition_lookup_table
    subgraph = Graph()
    inputs: dict[Node, Node] = {}
    copies: dict[Node, Node] = {}

    def local(x: Node) -> Node:
        if x in inside:
            return copies[x]
        if x not in inputs:
            inputs[x] = subgraph.placeholder(x.name, type_expr=x.type)
            inputs[x].meta = copy.copy(x.meta)
        return inputs[x]

    for node in nodes:
        copies[node] = subgraph.node_copy(node, local)
    outputs = {node: copies[node] for node in nodes if any(user not in inside for user in node.users)}
    values = tuple(outputs.values())
    subgraph.output(values[0] if len(values) == 1 and not always_return_tuple else values)
    subgraph.lint()
    fused, _ = lift_subgraph_as_module(gm, subgraph, comp_name="", class_name=module_name)
    return fused, tuple(inputs), tuple(outputs)


@compatibility(is_backward_compatible=False)
def insert_subgm(gm: GraphModule, sub_gm: GraphModule, orig_inputs: tuple[Node, ...], orig_outputs: tuple[Node, ...],
                 insertion_point: Node | None = None) -> GraphModule:
    """Call a module in another one, and use its results instead of nodes.

    Args:
        gm: the outer module; changed.
        sub_gm: the inner module.
        orig_inputs: the nodes that are its arguments.
        orig_outputs: the nodes whose values it returns.
        insertion_point: the node after which it is called; None: the last of `orig_outputs`.
    """
    name = type(sub_gm).__name__
    gm.add_submodule(name, sub_gm)
    if insertion_point is None:
        insertion_point = next((node for node in reversed(gm.graph.nodes) if node in orig_outputs), None)
        if insertion_point is None:
            raise AssertionError("Cannot determine insertion point: no insertion_point provided and orig_outputs is "
                                 "empty. Pass the last partition node as insertion_point.")
    with gm.graph.inserting_after(insertion_point):
        call = gm.graph.call_module(name, args=orig_inputs, kwargs=None)
        output = sub_gm.graph.output_node()
    if orig_outputs:
        with gm.graph.inserting_before(call.next):
            if len(orig_outputs) == 1 and not isinstance(output.args[0], tuple):
                orig_outputs[0].replace_all_uses_with(call, propagate_meta=True)
            else:
                for i, node in enumerate(orig_outputs):
                    item: Any = Proxy(call)
                    node.replace_all_uses_with(item[i].node, propagate_meta=True)
                call.meta["val"] = tuple(node.meta.get("val", None) for node in orig_outputs)
    return gm


@compatibility(is_backward_compatible=False)
def erase_nodes(gm: GraphModule, nodes: NodeList) -> None:
    """Erase nodes, last first."""
    for node in reversed(nodes):
        gm.graph.erase_node(node)


@compatibility(is_backward_compatible=False)
def fuse_by_partitions(gm: GraphModule, partitions: list[dict[Node, Any]], prefix: str = "fused_",
                       always_return_tuple: bool = False) -> GraphModule:
    """Replace each set of nodes by the call of a submodule `fused_0`, `fused_1`, ..."""
    for i, partition in enumerate(partitions):
        nodes = topo_sort(list(partition))
        sub_gm, inputs, outputs = fuse_as_graphmodule(gm, nodes, f"{prefix}{i}", partition,
                                                      always_return_tuple=always_return_tuple)
        insert_subgm(gm, sub_gm, inputs, outputs, nodes[-1])
        erase_nodes(gm, nodes)
    stable_topological_sort(gm)
    gm.graph.lint()
    return gm


__all__ = ["NodeList", "NodeSet", "erase_nodes", "fuse_as_graphmodule", "fuse_by_partitions", "insert_subgm",
           "legalize_graph", "topo_sort", "validate_partition"]
