"""Pattern matching: the places where a graph contains another one."""

from __future__ import annotations

import copy
import logging
import re
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

import flambeau as torch

from ....ops.overloads import OpOverload
from ..._compatibility import compatibility
from ...graph import Graph
from ...module_paths import _get_attr
from ...node import Node
from .partitions import validate_partition

__all__ = ["InternalMatch", "SubgraphMatcher"]

logger = logging.getLogger(__name__)


@compatibility(is_backward_compatible=False)
@dataclass
class InternalMatch:
    """A match.

    Attributes:
        anchors: the nodes of the pattern from which it was found.
        nodes_map: node of the pattern -> node of the graph.
        placeholder_nodes: what the parameters of the pattern match.
        returning_nodes: the nodes that the pattern returns.
        name_node_map: name in the pattern -> node of the graph, for patterns that name nodes.
    """

    anchors: list[Node]
    nodes_map: dict[Node, Any] = field(default_factory=dict)
    placeholder_nodes: list[Any] = field(default_factory=list)
    returning_nodes: list[Node] = field(default_factory=list)
    name_node_map: dict[str, Node] = field(default_factory=dict)

    def __copy__(self) -> InternalMatch:
        return InternalMatch(self.anchors, self.nodes_map.copy(), self.placeholder_nodes.copy(),
                             self.returning_nodes.copy())


@compatibility(is_backward_compatible=False)
class SubgraphMatcher:
    """Finds the matches of a pattern.

    Args:
        pattern: the pattern.
        match_output: whether its output is matched, too.
        match_placeholder: whether its parameters match parameters only, instead of any value.
        remove_overlapping_matches: whether of matches that overlap only the first is returned.
        ignore_literals: whether constants match any constant.
    """

    def __init__(self, pattern: Graph, match_output: bool = False, match_placeholder: bool = False,
                 remove_overlapping_matches: bool = True, ignore_literals: bool = False) -> None:
        self.pattern = pattern
        self.match_output = match_output
        self.match_placeholder = match_placeholder
        self.remove_overlapping_matches = remove_overlapping_matches
        self.ignore_literals = ignore_literals
        if len(pattern.nodes) == 0:
            raise ValueError("SubgraphMatcher cannot be initialized with an empty pattern")
        for node in pattern.nodes:
            if node.op != "output" and not node.is_impure() and not node.users:
                raise AssertionError("SubgraphMatcher cannot be initialized with an pattern with dead code")
        self.pattern_placeholder_nodes = [node for node in pattern.nodes if node.op == "placeholder"]
        output = next(iter(reversed(pattern.nodes)))
        self.pattern_returning_nodes: list[Node] = output.all_input_nodes
        self.pattern_anchors = [output] if match_output else [
            node for node in output.all_input_nodes if len(node.users) == 1]

    def _match_attributes(self, pn: Node, gn: Node) -> bool:
        for which, node in (("pn", pn), ("gn", gn)):
            if not isinstance(node.target, str):
                raise AssertionError(f"{which}.target {node.target} must be a string.")
            if node.graph.owning_module is None:
                raise AssertionError(f"{which}.graph.owning_module must not be None")
        expected, found = _get_attr(pn.graph.owning_module, pn.target), _get_attr(gn.graph.owning_module, gn.target)
        if type(expected) is not type(found):
            return False
        if isinstance(expected, torch.Tensor):
            return isinstance(found, torch.Tensor)
        raise RuntimeError(f"Unsupported type {expected} when matching attributes")

    def _nodes_are_equal(self, pn: Node, gn: Node, node_name_match: str = "") -> bool:
        if not self.match_placeholder and pn.op == "placeholder":
            return True
        if node_name_match and node_name_match in gn.name:
            return True
        if pn.op != gn.op:
            return False
        if pn.op in ("placeholder", "output"):
            return True
        return self._match_attributes(pn, gn) if pn.op == "get_attr" else pn.target == gn.target

    def _is_contained(self, nodes_map: dict[Node, Any]) -> bool:
        """Whether nobody else uses values of a match, except those that the pattern returns."""
        inside = {gn: pn for pn, gn in nodes_map.items() if pn.op != "placeholder"}
        return all(pn in self.pattern_returning_nodes or all(user in inside for user in gn.users)
                   for gn, pn in inside.items())

    def _remove_overlapping_matches(self, matches: list[InternalMatch]) -> list[InternalMatch]:
        kept, taken = [], set()
        for match in matches:
            nodes = [gn for pn, gn in match.nodes_map.items() if pn.op not in ("placeholder", "output")]
            if not any(node in taken for node in nodes):
                kept.append(match)
                taken.update(nodes)
        return kept

    def _match_literals(self, pn: Any, gn: Any, match: InternalMatch) -> bool:
        if isinstance(pn, Node) and isinstance(gn, Node):
            raise AssertionError("pn and gn cannot both be Node")
        if isinstance(pn, Node):
            if pn.op != "placeholder":
                return False
            if pn in match.nodes_map:
                return match.nodes_map[pn] == gn
            match.nodes_map[pn] = gn
            return True
        return not isinstance(gn, Node) and type(gn) is type(pn) and gn == pn

    def _match_args(self, args1: Any, args2: Any, match: InternalMatch) -> bool:
        if len(args1) != len(args2):
            return False
        for a, b in zip(args1, args2, strict=True):
            if isinstance(a, Node) and isinstance(b, Node):
                matched = self._match_nodes(a, b, match)
            elif isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
                matched = self._match_args(a, b, match)
            else:
                matched = self._match_literals(a, b, match) or self.ignore_literals
            if not matched:
                return False
        return True

    def _match_nodes(self, pn: Node, gn: Node, match: InternalMatch, node_name_match: str = "") -> bool:
        """Whether two nodes match, and what precedes them; the match is extended by them."""
        if pn in match.nodes_map:
            return match.nodes_map[pn] == gn
        if gn in match.nodes_map.values() or not self._nodes_are_equal(pn, gn, node_name_match):
            return False
        match.nodes_map[pn] = gn
        if pn.op == "placeholder":
            return True
        same_shape = len(pn.args) == len(gn.args) and list(pn.kwargs) == list(gn.kwargs)
        if not same_shape and pn.op == "call_function" and isinstance(pn.target, OpOverload):
            return self._match_args(_all_arguments(pn), _all_arguments(gn), match)
        return same_shape and self._match_args([*pn.args, *pn.kwargs.values()], [*gn.args, *gn.kwargs.values()], match)

    def match(self, graph: Graph, node_name_match: str = "") -> list[InternalMatch]:
        """The matches in a graph; nobody else uses their inner values, and they can be fused into one operation.

        Args:
            graph: the graph.
            node_name_match: a part of the names of nodes that match any node.
        """
        candidates: dict[Node, list[Node]] = defaultdict(list)
        for anchor in self.pattern_anchors:
            for node in graph.nodes:
                if self._nodes_are_equal(anchor, node, node_name_match):
                    candidates[anchor].append(node)
        anchors = list(candidates.items())
        found: list[InternalMatch] = []

        def extend(i: int, match: InternalMatch) -> None:
            if i == len(anchors):
                match.placeholder_nodes = [match.nodes_map[pn] for pn in self.pattern_placeholder_nodes]
                match.returning_nodes = [match.nodes_map[pn] for pn in self.pattern_returning_nodes]
                found.append(match)
                return
            anchor, nodes = anchors[i]
            for node in nodes:
                attempt = copy.copy(match)
                if self._match_nodes(anchor, node, attempt, node_name_match):
                    extend(i + 1, attempt)

        if anchors:
            extend(0, InternalMatch(anchors=self.pattern_anchors))
        valid = [match for match in found if self._is_contained(match.nodes_map) and validate_partition(
            [gn for pn, gn in match.nodes_map.items() if pn.op not in ("placeholder", "output")])]
        logger.info("Matches: %s", valid)
        return self._remove_overlapping_matches(valid) if self.remove_overlapping_matches else valid


def _all_arguments(node: Node) -> list[Any]:
    """The arguments of an overload in the order of its schema, defaults included."""
    values = []
    for i, arg in enumerate(node.target._schema.arguments):
        if arg.name in node.kwargs:
            values.append(node.kwargs[arg.name])
        elif not arg.kwarg_only and i < len(node.args):
            values.append(node.args[i])
        else:
            default, size = arg.default_value, re.search(r"\[(\d+)\]", arg.type)
            values.append([default] * int(size.group(1)) if size and isinstance(default, int) else default)
    return values
