"""Graphs of recorded calls: functions and methods of tensors, in the order in which they ran."""

from __future__ import annotations

import enum
import operator
import re
import types
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import flambeau as torch

from ...ops.function_operators import HigherOrderOperator
from ...ops.overloads import OpOverload
from ...trees import tree_flatten, tree_map
from ..graph import Graph
from ..graph_module import GraphModule
from ..node import Node


class NotRecorded(RuntimeError):
    """A call does something that no graph of functions repeats."""


#: arguments other than tensors that generated code contains
_IN_CODE = (bool, int, float, complex, str, bytes, type(None), type(Ellipsis), slice, range, enum.Enum, torch.dtype,
            torch.device, torch.layout, torch.memory_format, OpOverload, HigherOrderOperator, type, types.FunctionType,
            types.BuiltinFunctionType, types.MethodType)


class Modes(NamedTuple):
    """The modes that a graph switches.

    Attributes:
        grad: whether gradients are recorded.
        autocast: the dtype of autocast on the CPU and whether it keeps casts; None if it is off.
    """

    grad: bool
    autocast: tuple[Any, bool] | None


class RecordedOperation(NamedTuple):
    """A call of a function or method of tensors.

    Attributes:
        op: "call_function" or "call_method".
        target: the function, or the name of the method.
        args, kwargs: the arguments, with tensors.
        result: what it returned.
        modes: the modes in which it ran.
        frames: numbers of the frames of user code that called it, the outermost first.
    """

    op: str
    target: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    result: Any
    modes: Modes
    frames: tuple[int, ...] = ()

    @property
    def inputs(self) -> list[Any]:
        """The tensors among the arguments."""
        return [x for x in tree_flatten((self.args, self.kwargs))[0] if isinstance(x, torch.Tensor)]

    @property
    def outputs(self) -> list[Any]:
        """The tensors in the result."""
        return [x for x in tree_flatten(self.result)[0] if isinstance(x, torch.Tensor)]

    @property
    def all_outputs(self) -> list[Any]:
        """The tensors in the result, and in those of the operations of functions that it calls."""
        inner = [each for x in self.args if isinstance(x, Body) for each in x.operations]
        return [*self.outputs, *(x for each in inner for x in each.all_outputs)]


class Body:
    """A function that an operator calls, among its arguments: its operations, and the tensors that it returns."""

    def __init__(self, operations: Sequence[RecordedOperation], results: Sequence[Any], modes: Modes) -> None:
        self.operations, self.results, self.modes = operations, results, modes
        self.inputs = CallGraph({}, lambda tensor: None, modes).add_all(operations, results, modes)[1]

    def graph(self, arguments: dict[int, tuple[int, str]]) -> GraphModule:
        """The graph, whose placeholders are named after tensors of the outer graph where they have names."""
        return CallGraph(arguments, lambda tensor: None, self.modes).add_all(
            self.operations, self.results, self.modes)[0]


def _set_grad_enabled(mode: bool) -> None:
    torch.set_grad_enabled(mode)


class CallGraph:
    """A graph of operations.

    Args:
        arguments: by identity of a tensor, a position of an argument and the name of its placeholder.
        is_made: why a tensor that no operation returned cannot be an input of the graph, or None.
        modes: the modes in which the graph is called.

    Attributes:
        sources: by placeholder, the position of an argument, or a tensor that is none.
        examples: the tensors of the placeholders.
    """

    def __init__(self, arguments: dict[int, tuple[int, str]], is_made: Callable[[Any], str | None], modes: Modes
                 ) -> None:
        self.graph = Graph()
        self.sources: list[Any] = []
        self.examples: list[Any] = []
        self._arguments, self._is_made = arguments, is_made
        self._nodes: dict[int, Node] = {}
        self._names: set[str] = set()
        self._modules: dict[str, Any] = {}
        self._modes = self._modes_at_start = modes
        self._entered: Node | None = None  # the node that has entered autocast
        self._last_placeholder: Node | None = None

    def add(self, each: RecordedOperation) -> None:
        """Add an operation.

        Raises:
            NotRecorded: it returns what no node stands for, or needs a tensor that is not known.
        """
        self._switch(each.modes)
        args, kwargs = tree_map(self._operand, (each.args, each.kwargs))
        node = self.graph.create_node(each.op, each.target, args, kwargs)
        node.meta["example_value"] = each.result
        if isinstance(each.result, torch.Tensor):
            self._nodes[id(each.result)] = node
        else:
            self._bind_parts(each.result, node)

    def add_all(self, operations: Iterable[RecordedOperation], results: Iterable[Any], modes: Modes
                ) -> tuple[GraphModule, list[Any]]:
        """Add operations; return the module that returns some tensors, and the tensors of its placeholders."""
        for each in operations:
            self.add(each)
        return self.finish(results, modes), self.examples

    def _attribute(self, body: Body) -> Node:
        """The node of a function that an operator calls, which is a submodule."""
        name = f"wrap_body_{len(self._modules)}"
        self._modules[name] = body.graph(self._arguments)
        return self.graph.create_node("get_attr", name)  # the module of the graph is made at the end

    def _switch(self, modes: Modes) -> None:
        """Add nodes that switch grad mode and autocast."""
        if modes.autocast != self._modes.autocast:
            if self._entered is not None:
                self.graph.call_function(torch.amp._exit_autocast, (self._entered,))
                self._entered = None
            if modes.autocast != self._modes_at_start.autocast:
                entered = ("cpu", None, False, None) if modes.autocast is None else (
                    "cpu", modes.autocast[0], True, modes.autocast[1])
                self._entered = self.graph.call_function(torch.amp._enter_autocast, entered)
        if modes.grad != self._modes.grad:
            self.graph.call_function(_set_grad_enabled, (modes.grad,))
        self._modes = modes

    def _bind_parts(self, result: Any, node: Node) -> None:
        if not isinstance(result, (tuple, list)):
            if any(isinstance(x, torch.Tensor) for x in tree_flatten(result)[0]):
                raise NotRecorded(f"a function that returns a {type(result).__name__}")
            return
        for i, part in enumerate(result):
            item = self.graph.call_function(operator.getitem, (node, i))
            if isinstance(part, torch.Tensor):
                self._nodes[id(part)] = item
            else:
                self._bind_parts(part, item)

    def _operand(self, x: Any) -> Any:
        if isinstance(x, Body):
            return self._attribute(x)
        if isinstance(x, torch.Tensor):
            return self.node_of(x)
        if not isinstance(x, _IN_CODE):
            raise NotRecorded(f"an argument of class {type(x).__name__}, which generated code cannot contain")
        return x

    def node_of(self, tensor: Any) -> Node:
        """The node of a tensor; a placeholder for one that no operation has returned.

        Raises:
            NotRecorded: it cannot be an input.
        """
        node = self._nodes.get(id(tensor))
        if node is not None:
            return node
        at, name = self._arguments.get(id(tensor), (None, "L_tensor_"))
        if at is None and (reason := self._is_made(tensor)) is not None:
            raise NotRecorded(reason)
        self.sources.append(tensor if at is None else at)
        self.examples.append(tensor)
        base, count = re.sub(r"\W", "_", name), 0
        name = base
        while name in self._names:
            count += 1
            name = f"{base}{count}_"
        self._names.add(name)
        first = next(iter(self.graph.nodes), None)
        if self._last_placeholder is not None:
            with self.graph.inserting_after(self._last_placeholder):
                node = self.graph.placeholder(name)
        elif first is not None:
            with self.graph.inserting_before(first):
                node = self.graph.placeholder(name)
        else:
            node = self.graph.placeholder(name)
        node.meta["example_value"] = tensor
        self._last_placeholder = self._nodes[id(tensor)] = node
        return node

    def finish(self, results: Iterable[Any], modes: Modes) -> GraphModule:
        """Return the module, whose output is a tuple of tensors.

        Args:
            results: the tensors.
            modes: the modes at the end.

        Raises:
            NotRecorded: a result cannot be computed.
        """
        self._switch(modes)
        self.graph.output(tuple([self.node_of(x) for x in results]))
        for node in list(reversed(self.graph.nodes)):
            if not node.users and node.op == "call_function" and node.target in (operator.getitem, getattr):
                self.graph.erase_node(node)
        return GraphModule(self._modules, self.graph)


def signature_of_graph(module: GraphModule) -> tuple[Any, ...] | None:
    """What two graphs have in common that compute the same: their nodes, but names and results; None if unknown.

    Placeholders that no operation reads do not count. Metadata of the inputs counts.
    """
    numbers: dict[Node, int] = {}
    found: list[Any] = []
    for node in module.graph.nodes:
        if node.op == "output" or (node.op == "placeholder" and all(user.op == "output" for user in node.users)):
            continue
        numbers[node] = len(numbers)
        if node.op == "placeholder":
            x = node.meta["example_value"]
            found.append(("placeholder", tuple(x.shape), x.stride() if x.layout is torch.strided else None, x.dtype,
                          x.requires_grad, type(x), str(x.device)))
            continue
        if node.op == "get_attr":
            inner = signature_of_graph(getattr(module, node.target))
            if inner is None:
                return None
            found.append(("get_attr", inner, tuple(result_positions(
                getattr(module, node.target), next(reversed(getattr(module, node.target).graph.nodes)).args[0]))))
            continue
        leaves, tree = tree_flatten((node.args, dict(node.kwargs)))
        found.append((node.op, node.target, repr(tree), tuple([
            ("node", numbers[x]) if isinstance(x, Node) else
            (type(x), repr(x) if isinstance(x, (float, complex)) else x) for x in leaves])))
    try:
        hash(tuple(found))
    except TypeError:
        return None
    return tuple(found)


def result_positions(module: GraphModule, results: Sequence[Node]) -> list[tuple[bool, int]]:
    """By result, whether it is an input, and the number of its node among the placeholders, or the operations."""
    numbers: dict[Node, tuple[bool, int]] = {}
    inputs = operations = 0
    for node in module.graph.nodes:
        if node.op == "placeholder":
            numbers[node] = True, inputs
            inputs += 1
        elif node.op != "output":
            numbers[node] = False, operations
            operations += 1
    return [numbers[node] for node in results]


__all__ = ["Body", "CallGraph", "Modes", "NotRecorded", "RecordedOperation", "result_positions", "signature_of_graph"]
