"""Rewriting: the matches of a pattern in a graph are replaced by another graph."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import flambeau as torch

from ._compatibility import compatibility
from ._symbolic_trace import symbolic_trace
from .graph import Graph
from .graph_module import GraphModule
from .node import Node
from .passes.utils.matcher_utils import SubgraphMatcher

__all__ = ["Match", "ReplacedPatterns", "replace_pattern", "replace_pattern_with_filters"]


@compatibility(is_backward_compatible=True)
class Match(NamedTuple):
    """A match.

    Attributes:
        anchor: the node of the pattern from which it was found.
        nodes_map: node of the pattern -> node of the graph.
    """

    anchor: Node
    nodes_map: dict[Node, Node]


@compatibility(is_backward_compatible=False)
@dataclass
class ReplacedPatterns:
    """A match that was replaced.

    Attributes:
        anchor: the node of the pattern from which it was found.
        nodes_map: node of the pattern -> node of the graph.
        replacements: the nodes that were inserted.
    """

    anchor: Node
    nodes_map: dict[Node, Node]
    replacements: list[Node]


def _attribute(module: Any, target: str) -> Any:
    path, _, name = target.rpartition(".")
    try:
        return getattr(module.get_submodule(path), name, None)
    except AttributeError:
        return None


def _replace_attributes(gm: GraphModule, replacement: Any) -> None:
    """Copy the submodules and attributes that the inserted nodes name from the replacement."""
    gm.delete_all_unused_submodules()
    if isinstance(replacement, GraphModule):
        replacement.graph.lint()
    for node in gm.graph.nodes:
        if node.op not in ("call_module", "get_attr") or _attribute(gm, node.target) is not None:
            continue
        found = _attribute(replacement, node.target)
        if found is None:
            raise RuntimeError('Attempted to create a "', node.op,
                               '" node during subgraph rewriting '
                               f"with target {node.target}, but the referenced attribute does not exist in the "
                               "replacement GraphModule")
        new = copy.deepcopy(found)
        if isinstance(found, torch.nn.Module):
            gm.add_submodule(node.target, new)
        else:
            setattr(gm, node.target, new)
    gm.graph.lint()


@compatibility(is_backward_compatible=True)
def replace_pattern(gm: GraphModule, pattern: Any, replacement: Any) -> list[Match]:
    """Replace the matches of a pattern, which do not overlap, in a module.

    The return value of the pattern may be used anywhere in the module; other values of it may not be used outside.

    Args:
        gm: the module; changed.
        pattern: a function or module; its parameters match any value.
        replacement: a function or module of the same parameters.

    Returns:
        The matches.

    >>> import flambeau as torch
    >>> gm = torch.fx.symbolic_trace(lambda x, y: torch.cat([x, y]).sum())
    >>> _ = torch.fx.replace_pattern(gm, lambda a, b: torch.cat([a, b]), lambda a, b: torch.stack([a, b]))
    >>> print(gm.code.strip())
    def forward(self, x, y):
        stack = torch.stack([x, y]);  x = y = None
        sum_1 = stack.sum();  stack = None
        return sum_1
    """
    return [Match(anchor=m.anchor, nodes_map=m.nodes_map) for m in _replace_pattern(gm, pattern, replacement)]


@compatibility(is_backward_compatible=False)
def replace_pattern_with_filters(gm: GraphModule, pattern: Any, replacement: Any = None,
                                 match_filters: list[Callable[..., bool]] | None = None, ignore_literals: bool = False,
                                 replacement_callback: Callable[..., Graph] | None = None,
                                 node_name_match: str = "") -> list[ReplacedPatterns]:
    """Replace the matches of a pattern that satisfy conditions.

    Args:
        gm: the module; changed.
        pattern: a function, graph or module.
        replacement: a function, graph or module of the same parameters.
        match_filters: functions of a match, the graph and the pattern's graph; a match is replaced if all return True.
        ignore_literals: whether constants match any constant.
        replacement_callback: makes the replacement's graph of a match, the graph and the pattern's graph.
        node_name_match: a part of the names of nodes that match any node.

    Returns:
        The matches with the inserted nodes.
    """
    return _replace_pattern(gm, pattern, replacement, match_filters, ignore_literals, replacement_callback,
                            node_name_match)


def _graph_of(function: Any) -> Graph:
    if isinstance(function, GraphModule):
        return function.graph
    return function if isinstance(function, Graph) else symbolic_trace(function).graph


def _replace_pattern(gm: GraphModule, pattern: Any, replacement: Any = None,
                     match_filters: list[Callable[..., bool]] | None = None, ignore_literals: bool = False,
                     replacement_callback: Callable[..., Graph] | None = None,
                     node_name_match: str = "") -> list[ReplacedPatterns]:
    graph, pattern_graph = gm.graph, _graph_of(pattern)
    matcher = SubgraphMatcher(pattern_graph, match_output=False, match_placeholder=False,
                              remove_overlapping_matches=True, ignore_literals=ignore_literals)
    matches = [match for match in matcher.match(graph, node_name_match=node_name_match)
               if all(accepts(match, graph, pattern_graph) for accepts in match_filters or ())]
    common: Graph | None = None
    if isinstance(replacement, (GraphModule, Graph)) or callable(replacement):
        common = _graph_of(replacement)
    elif replacement_callback is None:
        raise AssertionError("Must provide either a replacement GraphModule or a replacement callback")
    replaced: dict[Node, Node] = {}
    results = []
    for match in matches:
        new_graph: Any = common if replacement_callback is None else replacement_callback(match, graph, pattern_graph)
        results.append(_replace_match(gm, match, pattern_graph, new_graph, replaced))
    gm.recompile()
    if isinstance(replacement, torch.nn.Module):
        _replace_attributes(gm, replacement)
    return results


def _replace_match(gm: GraphModule, match: Any, pattern_graph: Graph, new_graph: Graph,
                   replaced: dict[Node, Node]) -> ReplacedPatterns:
    """Replace one match.

    Args:
        replaced: node that a former match has replaced -> new node; updated.
    """
    graph = gm.graph
    parameters = [node for node in new_graph.nodes if node.op == "placeholder"]
    if len(match.placeholder_nodes) != len(parameters):
        raise AssertionError(f"Placeholder count mismatch: {len(match.placeholder_nodes)} vs {len(parameters)}")
    values: dict[Node, Any] = {}
    for parameter, node in zip(parameters, list(match.placeholder_nodes), strict=True):
        values[parameter] = current = replaced.get(node, node) if isinstance(node, Node) else node
        if current is not node:
            match.placeholder_nodes[match.placeholder_nodes.index(node)] = current
            key = next(key for key, value in match.nodes_map.items() if value is node)
            match.nodes_map[key] = current
    users = {user for node in match.returning_nodes for user in node.users}
    before = next((node for node in graph.nodes if node in users), None)
    if before is None:  # after the last node of the match
        following = None
        for node in reversed(graph.nodes):
            if node in match.returning_nodes:
                before = following
                break
            following = node
    if before is None:
        raise AssertionError("The insert point can't be None")
    with graph.inserting_before(before):
        copied = graph.graph_copy(new_graph, values)
    if isinstance(copied, Node):
        copied = (copied,)
    inserted = [value for value in values.values() if value not in match.placeholder_nodes]
    if len(match.returning_nodes) != len(copied):
        raise AssertionError(f"Returning nodes count mismatch: {len(match.returning_nodes)} vs {len(copied)}")
    for node, new in zip(match.returning_nodes, copied, strict=True):
        node.replace_all_uses_with(new)
        replaced[node] = new
    for node in reversed(pattern_graph.nodes):
        if node.op not in ("placeholder", "output"):
            graph.erase_node(match.nodes_map[node])
    return ReplacedPatterns(anchor=match.anchors[0], nodes_map=match.nodes_map, replacements=inserted)
