"""Subgraphs as modules, and graphs compared."""

from __future__ import annotations

from typing import Any

from ....nn.modules.module import Module
from ..._compatibility import compatibility
from ...graph import Graph
from ...graph_module import GraphModule
from .matcher_utils import SubgraphMatcher

__all__ = ["HolderModule", "compare_graphs", "lift_subgraph_as_module"]


@compatibility(is_backward_compatible=False)
class HolderModule(Module):
    """A module of given submodules."""

    def __init__(self, d: dict[str, Any]) -> None:
        super().__init__()
        for name, module in d.items():
            self.add_module(name, module)


@compatibility(is_backward_compatible=False)
def lift_subgraph_as_module(gm: GraphModule, subgraph: Graph, comp_name: str = "",
                            class_name: str = "GraphModule") -> tuple[GraphModule, dict[str, str]]:
    """A module of a graph, with the attributes and submodules of another module that it names.

    Args:
        gm: the other module.
        subgraph: the graph.
        comp_name: the path of the new module.
        class_name: the name of its class.

    Returns:
        The module, and old path -> new path of what was taken.
    """
    root = HolderModule({})
    paths: dict[str, str] = {}
    for node in subgraph.nodes:
        if node.op not in ("call_module", "get_attr"):
            continue
        if not isinstance(node.target, str):
            raise AssertionError(f"Expected str target, got {type(node.target)}")
        *path, leaf = node.target.split(".")
        holder: Any = root
        source: Any = gm
        for name in path:
            if not hasattr(holder, name):
                holder.add_module(name, HolderModule({}))
            holder, source = getattr(holder, name), getattr(source, name)
        paths[node.target] = f"{comp_name}.{node.target}"
        setattr(holder, leaf, getattr(source, leaf))
    return GraphModule(root, subgraph, class_name), paths


@compatibility(is_backward_compatible=False)
def compare_graphs(left: Graph, right: Graph) -> bool:
    """Whether two graphs have the same nodes, connected in the same way, and the same inputs and outputs."""
    return len(SubgraphMatcher(left, match_output=True, match_placeholder=True).match(right)) > 0
