"""A module split into submodules, by tags of its nodes."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any

from ...nn.modules.container import ModuleList
from .._compatibility import compatibility
from ..graph import Graph
from ..graph_module import GraphModule
from ..node import Node, map_arg
from ..proxy import Proxy
from .utils.common import HolderModule, lift_subgraph_as_module

__all__ = ["Component", "getattr_recursive", "setattr_recursive", "split_by_tags"]


@compatibility(is_backward_compatible=False)
def getattr_recursive(obj: Any, name: str) -> Any:
    """The attribute of a path; None if there is none."""
    for each in name.split("."):
        if isinstance(obj, ModuleList):
            obj = obj._modules.get(each)
        else:
            obj = getattr(obj, each, None)
        if obj is None:
            return None
    return obj


@compatibility(is_backward_compatible=False)
def setattr_recursive(obj: Any, attr: str, value: Any) -> None:
    """Set the attribute of a path."""
    *path, name = attr.split(".")
    for each in path:
        obj = getattr(obj, each)
    setattr(obj, name, value)


@compatibility(is_backward_compatible=False)
@dataclass
class Component:
    """The submodule of a tag.

    Attributes:
        graph: its graph.
        order: its place among the tags.
        name: the tag.
        input_placeholders: the parameters of `graph`.
        orig_inputs: the nodes of the split graph that are passed for them.
        orig_outputs: the nodes of the split graph that it returns.
        getattr_maps: attribute read of the split graph -> that of `graph`.
        constructor_args: not used.
        gm: the submodule.
    """

    graph: Graph
    order: int
    name: str
    input_placeholders: list[Node] = field(default_factory=list)
    orig_inputs: list[Node] = field(default_factory=list)
    orig_outputs: list[Node] = field(default_factory=list)
    getattr_maps: dict[Node, Node] = field(default_factory=dict)
    constructor_args: list[str] = field(default_factory=list)
    gm: GraphModule | None = None

    def local(self, x: Node, component_of: dict[Node, Component], copies: dict[Node, Node], used: Any) -> Node:
        """A value of the split graph in `graph`."""
        if x.op == "get_attr":
            if x not in self.getattr_maps:
                self.getattr_maps[x] = self.graph.get_attr(x.target, type_expr=x.type)
                self.getattr_maps[x].meta = copy.copy(x.meta)
            return self.getattr_maps[x]
        if x.op != "placeholder" and component_of[x] is self:
            return copies[x]
        if x not in self.orig_inputs:
            self.orig_inputs.append(x)
            placeholder = self.graph.placeholder(x.name, type_expr=x.type)
            placeholder.meta = copy.copy(x.meta)
            self.input_placeholders.append(placeholder)
            used[x] = None
        return self.input_placeholders[self.orig_inputs.index(x)]


@compatibility(is_backward_compatible=False)
def split_by_tags(gm: GraphModule, tags: list[str], return_fqn_mapping: bool = False, return_tuple: bool = False,
                  GraphModuleCls: Any = GraphModule) -> Any:
    """Split a module into one submodule for each tag; `node.tag` is the tag of a node that calls something.

    Args:
        gm: the module.
        tags: the tags, in the order in which the submodules are called.
        return_fqn_mapping: whether old path -> new path of submodules and attributes is returned, too.
        return_tuple: whether submodules return tuples also where they return one value.
        GraphModuleCls: the class of the result.
    """
    components = [Component(Graph(), i, str(tag)) for i, tag in enumerate(tags)]
    by_tag = dict(zip(tags, components, strict=True))
    component_of: dict[Node, Component] = {}
    copies: dict[Node, Node] = {}
    used: dict[Node, None] = {}
    main = Graph()
    values: dict[Node, Node] = {}
    output: Node | None = None
    for node in gm.graph.nodes:
        if node.op == "output":
            if output is not None:
                raise RuntimeError("Multiple output nodes in graph!")
            output = node
        elif node.op == "placeholder":
            values[node] = main.placeholder(node.name, type_expr=node.type)
            values[node].meta = copy.copy(node.meta)
        elif node.op != "get_attr":
            if not hasattr(node, "tag"):
                raise AssertionError(f"Node does not have tag: {node.format_node()}")
            component = component_of[node] = by_tag[node.tag]
            upstream = [x for x in node.all_input_nodes if x.op not in ("placeholder", "get_attr")]
            latest = max((component_of[x].order for x in upstream), default=0)
            if component.order < latest:
                raise AssertionError(f"Component {component.name} order must be >= max of its upstream components, "
                                     f"order={component.order} and max={latest}")
            def local(x: Node, component: Component = component) -> Node:
                return component.local(x, component_of, copies, used)

            new: Any = component.graph.node_copy(node, local)
            new.tag = node.tag
            copies[node] = new
            component_of[new] = component
    if output is None:
        raise RuntimeError("Graph had no output node!")
    returned: list[Node] = []
    map_arg(output.args[0], returned.append)
    for x in returned:
        if x.op == "get_attr":
            values[x] = main.get_attr(x.name, type_expr=x.type)
        else:
            used[x] = None
    for node in used:
        if node.op != "placeholder":
            component_of[node].orig_outputs.append(node)
    paths: dict[str, str] = {}
    for component in components:
        results = tuple(copies[node] for node in component.orig_outputs)
        single = len(results) == 1 and not return_tuple
        component.graph.output(results[0] if single else results)
        component.gm, lifted = lift_subgraph_as_module(gm, subgraph=component.graph, comp_name=component.name)
        paths.update(lifted)
        call = main.call_module(component.name, args=tuple(values[x] for x in component.orig_inputs), kwargs=None)
        item: Any = Proxy(call)
        for i, node in enumerate(component.orig_outputs):
            values[node] = call if single else item[i].node
    main.output(map_arg(output.args[0], values.__getitem__))
    main._codegen = gm.graph._codegen
    root = HolderModule({component.name: component.gm for component in components})
    for x in returned:
        if x.op == "get_attr":
            setattr(root, x.name, getattr_recursive(gm, x.target))
    result = GraphModuleCls(root, main)
    return (result, paths) if return_fqn_mapping else result
