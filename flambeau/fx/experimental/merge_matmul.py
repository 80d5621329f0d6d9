"""Products with one right factor become one product of the joined left factors."""

from __future__ import annotations

import itertools
import operator
from typing import Any

import flambeau as torch

from .._symbolic_trace import symbolic_trace
from ..graph_module import GraphModule
from ..node import Node
from ..passes.tools_common import legalize_graph
from ..proxy import Proxy


def split_result_tensors(result: Any, inputs: list[Any]) -> Any:
    """The rows of a product that belong to each of its left factors."""
    sizes = [0] * len(inputs) if isinstance(result, Proxy) else [x.shape[0] for x in inputs]
    return torch.split(result, sizes)


def may_depend_on(a: Node, b: Node, search_depth: int = 6) -> bool:
    """Whether a node may depend on another; True if that is not found out within a number of steps."""
    if a is b:
        return True
    if not a.all_input_nodes:
        return False
    return search_depth == 0 or any(may_depend_on(x, b, search_depth - 1) for x in a.all_input_nodes)


def are_nodes_independent(nodes: list[Node]) -> bool:
    """Whether no node depends on another."""
    return not any(may_depend_on(a, b) or may_depend_on(b, a) for a, b in itertools.combinations(nodes, 2))


def merge_matmul(in_mod: Any) -> GraphModule:
    """Trace a module, and compute `matmul`s of one right factor by one `matmul`.

    Args:
        in_mod: the module.

    Returns:
        The changed graph module.
    """
    gm = symbolic_trace(in_mod)
    graph = gm.graph
    users: dict[Any, list[Node]] = {}
    for node in graph.nodes:
        if node.op == "call_function" and node.target is torch.matmul:
            right = node.args[1]
            users.setdefault(right.target if right.op == "get_attr" else right, []).append(node)
    for right, products in users.items():
        if len(products) < 2 or not are_nodes_independent(products):
            continue
        lefts = [graph.get_attr(product.args[0].target) if product.args[0].op == "get_attr" else product.args[0]
                 for product in products]
        factor = graph.get_attr(right) if isinstance(right, str) else right
        joined = graph.call_function(torch.cat, (lefts,), {})
        product = graph.call_function(torch.matmul, (joined, factor), {})
        parts = graph.call_function(split_result_tensors, (product, lefts), {})
        items = [graph.call_function(operator.getitem, (parts, i), {}) for i in range(len(lefts))]
        for old, new in zip(products, items, strict=True):
            old.replace_all_uses_with(new)
            graph.erase_node(old)
        legalize_graph(gm)
        graph = gm.graph
    gm.recompile()
    gm.graph.lint()
    return gm
