"""Constant folding: what depends on attributes only is computed once."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any

import flambeau as torch

from ..._tensor.parameter import Parameter
from .._symbolic_trace import symbolic_trace
from ..graph import Graph
from ..graph_module import GraphModule
from ..node import Node, map_arg
from ..passes.split_module import split_module

__all__ = ["FoldedGraphModule", "get_unique_attr_name_in_module", "split_const_subgraphs"]


class FoldedGraphModule(GraphModule):
    """A module whose constants are computed by its first call.

    Args:
        root: the module from which attributes are taken.
        graph: the graph.
        const_subgraph: the graph that computes the constants; None: there are none.
        fx_const_folded_attrs_name: the attribute in which they are stored.
        device_for_folded_attrs: the device of constants that are numbers.
    """

    def __init__(self, root: Any, graph: Graph, const_subgraph: Graph | None = None,
                 fx_const_folded_attrs_name: str | None = None, device_for_folded_attrs: str = "cuda") -> None:
        super().__init__(root, graph)
        self.const_subgraph_module = None if const_subgraph is None else GraphModule(root, const_subgraph)
        self.has_folding_been_run = False
        self.fx_const_folded_attrs_name = fx_const_folded_attrs_name
        self.device_for_folded_attrs = device_for_folded_attrs

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not self.has_folding_been_run:
            self.run_folding()
        return super().__call__(*args)

    def run_folding(self) -> None:
        """Compute the constants."""
        if self.const_subgraph_module is None or self.fx_const_folded_attrs_name is None:
            return
        if self.has_folding_been_run:
            raise AssertionError("Folding has already been run")
        self.has_folding_been_run = True
        values = self.const_subgraph_module()

        def parameter(value: Any) -> Any:
            if isinstance(value, int):
                data = torch.Tensor([value]).to(device=self.device_for_folded_attrs)
                return Parameter(data, requires_grad=False)
            return Parameter(value.detach().clone(), requires_grad=value.requires_grad)

        stored = torch.nn.ParameterList(list(map(parameter, values))) if isinstance(values, tuple) else (
            parameter(values))
        setattr(self, self.fx_const_folded_attrs_name, stored)


def _inline_module(gm: GraphModule, inline_mod_name: str, run_dce: bool = True) -> dict[Node, Any]:
    """Replace the call of a submodule by the nodes of its graph; its node -> node of the outer graph."""
    inner = dict(gm.named_modules())[inline_mod_name]
    if not isinstance(inner, GraphModule):
        raise AssertionError(f"Expected GraphModule, got {type(inner)}")
    call = next((node for node in gm.graph.nodes if node.op == "call_module" and node.target == inline_mod_name), None)
    if call is None:
        raise AssertionError(f"Could not find call_module node for {inline_mod_name}")
    values: dict[Node, Any] = {}
    count = 0

    def value_of(node: Node) -> Any:
        values[node].meta = node.meta.copy()
        return values[node]

    for node in inner.graph.nodes:
        if node.op == "placeholder":
            values[node] = call.kwargs[node.name] if node.name in call.kwargs else call.args[count]
            count += 1
        elif node.op == "output":
            result = map_arg(node.args[0], value_of)
            items = [user for user in call.users if user.op == "call_function" and user.target is operator.getitem
                     and isinstance(user.args[1], int)] if isinstance(result, (list, tuple)) else []
            if isinstance(result, Node):
                call.replace_all_uses_with(result)
            else:
                for user in items:
                    user.replace_all_uses_with(result[user.args[1]])
                    gm.graph.erase_node(user)
                    values[user] = result[user.args[1]]
                for user in list(call.users):
                    def replaced(n: Node) -> Any:
                        return result if n is call else n  # noqa: B023

                    user.args, user.kwargs = map_arg(user.args, replaced), map_arg(user.kwargs, replaced)
        else:
            with gm.graph.inserting_before(call):
                values[node] = gm.graph.node_copy(node, value_of)
    gm.graph.erase_node(call)
    if run_dce:
        gm.graph.eliminate_dead_code()
    return values


def get_unique_attr_name_in_module(mod_traced: Any, name: str) -> str:
    """A name like the given one that is an identifier and no attribute of a module."""
    name = re.sub("[^0-9a-zA-Z_]+", "_", name)
    if name[0].isdigit():
        name = f"_{name}"
    while hasattr(mod_traced, name):
        match = re.match(r"(.*)_(\d+)$", name)
        name = f"{name}_1" if match is None else f"{match.group(1)}_{int(match.group(2)) + 1}"
    return name


def _has_side_effects(module: GraphModule) -> bool:
    for node in module.graph.nodes:
        if node.op == "call_function" and node.is_impure():
            return True
        if node.op == "call_module":
            inner = module.get_submodule(node.target)
            if isinstance(inner, GraphModule):
                return _has_side_effects(inner)
    return False


def split_const_subgraphs(module: Any, skip_folding_node_fn: Callable[[Node], bool] | None = None,
                          device_for_folded_attrs: str = "cpu") -> FoldedGraphModule:
    """Separate what depends on attributes only from the rest of a module.

    Args:
        module: the module; traced if it has no graph.
        skip_folding_node_fn: which nodes are not constant in any case.
        device_for_folded_attrs: the device of constants that are numbers.

    Returns:
        A module that computes the constants on its first call.
    """
    traced = module if isinstance(module, GraphModule) else symbolic_trace(module)
    constant: set[Node] = set()
    for node in traced.graph.nodes:
        if node.op in ("placeholder", "output") or (
                node.op != "get_attr" and not set(node.all_input_nodes) <= constant):
            continue
        if (skip_folding_node_fn and skip_folding_node_fn(node)) or node.is_impure():
            continue
        if node.op == "call_module":
            inner = traced.get_submodule(node.target)
            if isinstance(inner, GraphModule) and _has_side_effects(inner):
                continue
        constant.add(node)
    if all(node.op == "get_attr" for node in constant):
        return FoldedGraphModule(traced, traced.graph)
    split: Any = split_module(traced, module, lambda node: 0 if node in constant else 1)
    const_gm, rest = split.submod_0, getattr(split, "submod_1", None)
    for part in (rest, const_gm):
        if part is not None:
            for node in part.graph.nodes:
                if node.op == "call_module":
                    setattr(split, node.target, getattr(part, node.target))
    call = next(node for node in split.graph.nodes if node.op == "call_module" and node.target == "submod_0")
    root = GraphModule(split, const_gm.graph)
    arguments = iter(call.args)
    several = False
    for node in root.graph.nodes:
        if node.op == "output":
            several = isinstance(node.args[0], tuple)
        elif node.op == "placeholder":  # what the constants depend on are attributes
            source = next(arguments)
            if source.op != "get_attr":
                raise AssertionError(f"Expected get_attr, got {source.op}")
            with root.graph.inserting_before(node):
                read = root.graph.get_attr(source.target)
            read.meta = node.meta.copy()
            node.replace_all_uses_with(read)
            root.graph.erase_node(node)
    name = get_unique_attr_name_in_module(traced, "_FX_CONST_FOLDED_ATTRS")
    setattr(split, name, torch.nn.ParameterList() if several else Parameter(torch.empty(0)))
    with split.graph.inserting_before(call):
        folded = split.graph.get_attr(name)
    folded.meta = call.meta.copy()
    call.replace_all_uses_with(folded)
    if rest is not None:
        _inline_module(split, "submod_1")
    split.graph.eliminate_dead_code()
    return FoldedGraphModule(split, split.graph, root.graph, name, device_for_folded_attrs)
