"""Patterns that name their nodes: `return relu, {"conv": conv, "relu": relu}`."""

from __future__ import annotations

from typing import Any

from ....utils._pytree import tree_flatten, tree_unflatten
from ..._compatibility import compatibility
from ...graph import Graph
from ...node import Node
from .matcher_utils import InternalMatch, SubgraphMatcher

__all__ = ["SubgraphMatcherWithNameNodeMap"]


def _split_to_graph_and_name_node_map(gm: Any) -> tuple[Any, dict[str, Node]]:
    """Remove the dictionary of names from the output of a pattern."""
    names: dict[str, Node] = {}
    for node in gm.graph.nodes:
        if node.op != "output":
            continue
        if gm._out_spec is None:
            raise AssertionError("gm._out_spec is None")
        output = tree_unflatten(node.args[0], gm._out_spec)
        if not isinstance(output, tuple):
            raise AssertionError("Expecting the pattern graph to return a tuple")
        if len(output) < 2:
            raise AssertionError("Expecting the pattern graph to have at least two outputs")
        *values, names = output
        if not isinstance(names, dict):
            raise AssertionError("Expecting the input graph to have a dict output as the last element")
        flat, spec = tree_flatten(values)
        node.args = (flat,)
        gm._graph._codegen.pytree_info = gm._graph._codegen.pytree_info._replace(out_spec=spec)
    gm.recompile()
    return gm, names


@compatibility(is_backward_compatible=False)
class SubgraphMatcherWithNameNodeMap(SubgraphMatcher):
    """A matcher whose matches know the nodes that the pattern names.

    Args:
        pattern_gm: the pattern; its output ends with a dictionary name -> node. It is changed.
        match_output, match_placeholder, remove_overlapping_matches, ignore_literals: see `SubgraphMatcher`.
    """

    def __init__(self, pattern_gm: Any, match_output: bool = False, match_placeholder: bool = False,
                 remove_overlapping_matches: bool = True, ignore_literals: bool = False) -> None:
        pattern_gm, self.name_node_map = _split_to_graph_and_name_node_map(pattern_gm)
        super().__init__(pattern_gm.graph, match_output, match_placeholder, remove_overlapping_matches, ignore_literals)

    def match(self, graph: Graph, node_name_match: str = "") -> list[InternalMatch]:
        """The matches in a graph, with `name_node_map`."""
        matches = super().match(graph, node_name_match)
        for match in matches:
            match.name_node_map.update((name, match.nodes_map[node]) for name, node in self.name_node_map.items())
        return matches
