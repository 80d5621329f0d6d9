"""A module split into submodules, by a function that tells the part of each node."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import flambeau as torch

from .._compatibility import compatibility
from .._lazy_graph_module import _make_graph_module
from ..graph import Graph
from ..graph_module import GraphModule
from ..node import Node, map_arg
from ..proxy import Proxy

__all__ = ["Partition", "split_module"]


@compatibility(is_backward_compatible=True)
class Partition:
    """A part: its nodes, what it takes and returns, and the graph made of it.

    Args:
        name: its name.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.submod_name = f"submod_{name}"
        self.node_names: list[str] = []
        self.inputs: dict[str, None] = {}
        self.outputs: dict[str, None] = {}
        self.dependencies: dict[str, None] = {}
        self.dependents: dict[str, None] = {}
        self.graph = Graph()
        self.environment: dict[Node, Node] = {}
        self.targets: dict[str, Any] = {}

    def __repr__(self) -> str:
        return (f"name: {self.name},\n nodes: {self.node_names},\n inputs: {self.inputs},\n outputs: {self.outputs},\n"
                f" partitions depended on: {self.dependencies},\n partition dependents: {self.dependents}")


def _get_attr_from_qualname(mod: Any, qualname: str) -> Any:
    for name in qualname.split("."):
        if not hasattr(mod, name):
            raise AttributeError(f"Node target {qualname} not found!")
        mod = getattr(mod, name)
    return mod


def _nodes_in(argument: Any) -> list[Node]:
    found: list[Node] = []
    map_arg(argument, found.append)
    return found


_GRAD = torch.set_grad_enabled
_ENTER, _EXIT = torch.amp._enter_autocast, torch.amp._exit_autocast


class _Split:
    """One split of a module."""

    def __init__(self, m: GraphModule, split_callback: Callable[[Node], int], affix: str | None) -> None:
        self.m, self.callback, self.affix = m, split_callback, affix
        self.partitions: dict[str, Partition] = {}
        self.nodes: dict[str, Node] = {}
        self.part_of: dict[Node, str] = {}
        self.grad_regions: dict[Node, Any] = {}
        self.autocast_regions: dict[Node, Any] = {}
        self.autocast_exits: dict[Node, Node | None] = {}

    def assign(self) -> None:
        """Ask for the part of each node, and find the parts in which grad modes and autocasts are active."""
        grad: Node | None = None
        autocasts: dict[Node, None] = {}
        for node in self.m.graph.nodes:
            if node.op in ("placeholder", "get_attr", "output"):
                continue
            number = self.callback(node)
            name = str(number) if self.affix is None else f"{self.affix}_{number}"
            partition = self.partitions.setdefault(name, Partition(name))
            partition.node_names.append(node.name)
            self.part_of[node] = node._fx_partition = name
            if node.op == "call_function":
                if node.target is _GRAD:
                    grad = node
                    self.grad_regions[node] = {number}
                elif node.target is _ENTER:
                    autocasts[node] = None
                    self.autocast_regions[node] = {number}
                    self.autocast_exits[node] = None
                elif node.target is _EXIT:
                    self.autocast_regions[node.args[0]].add(number)
                    del autocasts[node.args[0]]
                    self.autocast_exits[node.args[0]] = node
            if grad is not None:
                self.grad_regions[grad].add(number)
            for each in autocasts:
                self.autocast_regions[each].add(number)
        if not all(node is not None for node in self.autocast_exits.values()):
            raise AssertionError("autocast must exit")
        for regions in (self.grad_regions, self.autocast_regions):
            regions.update((node, sorted(numbers)) for node, numbers in list(regions.items()))

    def _use(self, defined: Node, user: Node | None) -> None:
        """Record that a part uses a node of another one."""
        source, target = self.part_of.get(defined), None if user is None else self.part_of.get(user)
        if source == target:
            return
        if source is not None:
            self.partitions[source].outputs.setdefault(defined.name)
            if target is not None:
                self.partitions[source].dependents.setdefault(target)
        if target is not None:
            self.partitions[target].inputs.setdefault(defined.name)
            if source is not None:
                self.partitions[target].dependencies.setdefault(source)

    def connect(self) -> None:
        """Find what parts take and return."""
        increasing, highest = bool(self.grad_regions or self.autocast_regions), -1
        for node in self.m.graph.nodes:
            self.nodes[node.name] = node
            if node.op in ("placeholder", "get_attr"):
                continue
            if node.op == "output":
                map_arg(node.args[0], lambda n: self._use(n, None))
                continue
            if increasing:
                number = self.callback(node)
                if highest > number:
                    raise AssertionError("autocast or set_grad_enabled require monotonically increasing partitions: "
                                         f"highest: {highest}, this node's: {number}")
                highest = number
            if node.op != "call_function" or node.target not in (_GRAD, _ENTER, _EXIT):
                for each in (node.args, node.kwargs):
                    for used in _nodes_in(each):
                        self._use(used, node)

    def sorted_names(self) -> list[str]:
        """The parts, each after those that it depends on.

        Raises:
            RuntimeError: parts depend on each other.
        """
        ready = [name for name, partition in self.partitions.items() if not partition.dependencies]
        result = []
        while ready:
            name = ready.pop()
            result.append(name)
            for dependent in self.partitions[name].dependents:
                self.partitions[dependent].dependencies.pop(name)
                if not self.partitions[dependent].dependencies:
                    ready.append(dependent)
        if len(result) != len(self.partitions):
            raise RuntimeError("cycle exists between partitions!")
        return result

    def _copy_into(self, partition: Partition, node: Node, args: tuple[Any, ...]) -> Node:
        new = partition.graph.create_node(op=node.op, target=node.target, args=args, kwargs={}, type_expr=node.type)
        new.meta = node.meta.copy()
        return new

    def enter_regions(self) -> None:
        """Enter grad modes and autocasts in each part in which they are active."""
        for regions in (self.autocast_regions, self.grad_regions):
            for node, numbers in regions.items():
                self.partitions[str(numbers[0])].environment[node] = node
                for number in numbers[1:]:
                    partition = self.partitions[str(number)]
                    partition.environment[node] = self._copy_into(partition, node, tuple(node.args))

    def leave_regions(self) -> None:
        """Leave autocasts at the end of each part but the last in which they are active."""
        for node in reversed(list(self.autocast_regions)):
            for number in self.autocast_regions[node][:-1]:
                partition = self.partitions[str(number)]
                end: Any = self.autocast_exits[node]
                self._copy_into(partition, end, (partition.environment[node],))

    def add_placeholders(self, names: list[str], keep_input_name: bool) -> None:
        """Add the parameters of each part; modules among its inputs become attributes."""
        for name in names:
            partition = self.partitions[name]
            nodes = [self.nodes[each] for each in partition.inputs]

            def is_module(node: Node) -> bool:
                return node.op == "get_attr" and isinstance(_get_attr_from_qualname(self.m, node.target),
                                                            torch.nn.Module)

            inputs: dict[str, None] = {}
            for node in sorted(nodes, key=is_module):
                if is_module(node):
                    new = partition.graph.get_attr(node.target)
                    partition.targets[node.target] = _get_attr_from_qualname(self.m, node.target)
                else:
                    parameter = node.name if keep_input_name else f"arg_{len(inputs)}"
                    new = partition.graph.placeholder(parameter, type_expr=node.type)
                    inputs[node.name] = None
                new.meta = node.meta.copy()
                partition.environment[node] = new
            partition.inputs = inputs

    def copy_nodes(self, qualname_map: dict[str, str] | None, keep_names: bool) -> None:
        """Copy the nodes into the graphs of their parts."""
        for node, name in self.part_of.items():
            partition = self.partitions[name]
            environment = partition.environment
            args, kwargs = map_arg(node.args, environment.__getitem__), map_arg(node.kwargs, environment.__getitem__)
            target = node.target
            if node.op in ("call_module", "get_attr"):
                target = node.target.replace(".", "_")
                partition.targets[target] = _get_attr_from_qualname(self.m, node.target)
                if qualname_map is not None:
                    qualname_map[f"{partition.submod_name}.{target}"] = node.target
            new = partition.graph.create_node(op=node.op, target=target, args=args, kwargs=kwargs,
                                              type_expr=node.type, name=node.name if keep_names else None)
            new.meta = node.meta.copy()
            environment[node] = new


class _Base:
    """The graph that calls the parts."""

    def __init__(self, m: GraphModule, keep_names: bool) -> None:
        self.m, self.keep_names = m, keep_names
        self.graph = Graph()
        self.values: dict[str, Node] = {}
        self.attributes: dict[str, Any] = {}

    def add(self, node: Node) -> None:
        """Copy a parameter or an attribute read; other nodes are left out."""
        if node.op == "placeholder":
            if self.keep_names:
                new = self.graph.create_node("placeholder", node.name, args=tuple(node.args[:1]), type_expr=node.type)
            else:
                default = node.args[0] if node.args else inspect.Signature.empty
                new = self.graph.placeholder(node.target, type_expr=node.type, default_value=default)
        elif node.op == "get_attr":
            new = self.graph.get_attr(node.target)
            self.attributes[node.target] = _get_attr_from_qualname(self.m, node.target)
        else:
            return
        new.meta = node.meta.copy()
        self.values[node.name] = new

    def call(self, partition: Partition, tuple_return: bool) -> None:
        """Call a part."""
        self.attributes[partition.submod_name] = _make_graph_module(partition.targets, partition.graph)
        result = self.graph.call_module(partition.submod_name, tuple(self.values[name] for name in partition.inputs))
        if len(partition.outputs) > 1 or (partition.outputs and tuple_return):
            item: Any = Proxy(result)
            for i, name in enumerate(partition.outputs):
                self.values[name] = item[i].node
        else:
            self.values.update(dict.fromkeys(partition.outputs, result))


@compatibility(is_backward_compatible=True)
def split_module(m: GraphModule, root_m: Any, split_callback: Callable[[Node], int],
                 qualname_map: dict[str, str] | None = None, keep_original_order: bool | None = False,
                 keep_original_node_name: bool | None = False, keep_original_input_name: bool = True, *,
                 partition_affix: str | None = None, tuple_return: bool = False) -> GraphModule:
    """Split a module into submodules `submod_0`, `submod_1`, ...

    Args:
        m: the module.
        root_m: the module that was traced; not used.
        split_callback: the number of the part of a node.
        qualname_map: filled: new path of a submodule -> old path.
        keep_original_order: whether parts are called in the order of their first nodes.
        keep_original_node_name: whether nodes keep their names.
        keep_original_input_name: whether parameters of parts have the names of the nodes; else `arg_0`, ...
        partition_affix: a word in the names of the parts: `submod_word_0`.
        tuple_return: whether parts return tuples also where they return one value.

    Returns:
        The module that calls the parts.

    >>> import flambeau as torch
    >>> from flambeau.fx.passes.split_module import split_module
    >>> gm = torch.fx.symbolic_trace(lambda x: (x + 1).relu())
    >>> print(split_module(gm, gm, lambda node: int(node.name == "relu")).code.strip())
    def forward(self, x):
        submod_0 = self.submod_0(x);  x = None
        submod_1 = self.submod_1(submod_0);  submod_0 = None
        return submod_1
    """
    split = _Split(m, split_callback, partition_affix)
    split.assign()
    split.connect()
    original = list(split.partitions)
    names = split.sorted_names()
    split.enter_regions()
    split.add_placeholders(names, keep_original_input_name)
    split.copy_nodes(qualname_map, bool(keep_original_node_name))
    split.leave_regions()
    base = _Base(m, bool(keep_original_node_name))
    added: set[Node] = set()
    if not keep_original_order:
        for node in m.graph.nodes:
            base.add(node)
    for name in original if keep_original_order else names:
        partition = split.partitions[name]
        values = tuple(partition.environment[split.nodes[each]] for each in partition.outputs)
        partition.graph.output(values[0] if len(values) == 1 and not tuple_return else values)
        if keep_original_order:
            placeholders = [node for node in m.graph.nodes if node.op == "placeholder"]
            for node in [*placeholders, *(split.nodes[each] for each in partition.inputs)]:
                if node not in added:
                    base.add(node)
                    added.add(node)
        base.call(partition, tuple_return)
    if keep_original_order and not base.values:
        for node in m.graph.nodes:
            base.add(node)
    for node in m.graph.nodes:
        if node.op == "output":
            base.graph.output(map_arg(node.args[0], lambda n: base.values[n.name]))
    result = _make_graph_module(base.attributes, base.graph)
    result.meta["partition_names"] = {partition.submod_name for partition in split.partitions.values()}
    return result
