"""`CallRecorder`: a graph of the functions and methods that a call applies to tensors, as Dynamo gives to backends.

The call runs on its arguments while a `TorchFunctionMode` records it, so control flow is that of these arguments.
Tensors that the call reads, arguments and others, become placeholders when they are first used.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from typing import Any

import flambeau as torch

from ..._tensor.overriding.function_modes import TorchFunctionMode
from ...trees import tree_flatten, tree_map
from ..graph import Graph
from ..graph_module import GraphModule
from ..node import Node


class NotRecorded(RuntimeError):
    """A call does something that no graph of functions repeats."""


#: methods that stand for operators; which of both a program wrote is not known
_OPERATORS = {"add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv, "matmul":
              operator.matmul, "gt": operator.gt, "lt": operator.lt, "ge": operator.ge, "le": operator.le,
              "eq": operator.eq, "ne": operator.ne}


def _version(tensor: Any) -> int:
    """The number of writes to a tensor: `_version`, whose use in a program breaks the graph."""
    counter = tensor._counter
    return 0 if counter is None else counter[0]


def _attribute_of(found: Any) -> str:
    """The name of a property of tensors."""
    return next((name for cls in torch.Tensor.__mro__ for name, x in vars(cls).items() if x is found),
                found.fget.__name__)


def _set_grad_enabled(mode: bool) -> None:
    torch.set_grad_enabled(mode)


class CallRecorder(TorchFunctionMode):
    """A block whose functions of tensors are recorded.

    Args:
        tensors: the tensors among the arguments, with names.
        is_created: whether a tensor was made in the call.

    Attributes:
        failure: why the call cannot be repeated, or None.
        sources: by placeholder, the position of an argument, or a tensor that is none.

    >>> x = torch.ones(2)
    >>> with CallRecorder([(x, "L_x_")], lambda tensor: False) as record:
    ...     y = (x + 1).sum()
    >>> [node.op for node in record.finish([y])[0].graph.nodes]
    ['placeholder', 'call_function', 'call_method', 'output']
    """

    def __init__(self, tensors: Sequence[tuple[Any, str]], is_created: Callable[[Any], bool]) -> None:
        super().__init__()
        self._graph = Graph()
        self._arguments = {id(x): (i, name) for i, (x, name) in enumerate(tensors)}
        self._is_created = is_created
        self._nodes: dict[int, Node] = {}
        self._kept: list[Any] = [x for x, _ in tensors]  # identities stay unique as long as they live
        self._names: set[str] = set()
        self._grad = torch.is_grad_enabled()
        self.failure: str | None = None
        self.sources: list[Any] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        versions = [(x, _version(x)) for x in tree_flatten((args, kwargs))[0] if isinstance(x, torch.Tensor)]
        result = func(*args, **kwargs)
        if self.failure is None:
            try:
                self._record(func, args, kwargs, result, any(_version(x) != before for x, before in versions))
            except NotRecorded as error:
                self.failure = str(error)
        return result

    def _record(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any, writes: bool) -> None:
        outputs, _ = tree_flatten(result)
        if not writes and not any(isinstance(x, torch.Tensor) for x in outputs):
            return  # sizes and flags are constants
        if torch.is_grad_enabled() != self._grad:
            self._grad = torch.is_grad_enabled()
            self._graph.call_function(_set_grad_enabled, (self._grad,))
        node_args, node_kwargs = tree_map(self._operand, (args, kwargs))
        name = getattr(func, "__name__", "")
        if name == "__get__":
            node = self._graph.call_function(getattr, (*node_args[:1], _attribute_of(func.__self__)))
        elif name in ("__setitem__", "__getitem__"):
            node = self._graph.call_function(operator.setitem if name == "__setitem__" else operator.getitem, node_args)
        elif name in _OPERATORS and len(node_args) == 2 and not node_kwargs:
            node = self._graph.call_function(_OPERATORS[name], node_args)
        elif getattr(torch.Tensor, name, None) is func:
            node = self._graph.call_method(name, node_args, node_kwargs)
        else:
            node = self._graph.call_function(func, node_args, node_kwargs)
        node.meta["example_value"] = result
        if isinstance(result, torch.Tensor):
            self._bind(result, node)
        else:
            self._bind_parts(result, node)

    def _bind(self, tensor: Any, node: Node) -> None:
        self._nodes[id(tensor)] = node
        self._kept.append(tensor)

    def _bind_parts(self, result: Any, node: Node) -> None:
        if not isinstance(result, (tuple, list)):
            if any(isinstance(x, torch.Tensor) for x in tree_flatten(result)[0]):
                raise NotRecorded(f"a function that returns a {type(result).__name__}")
            return
        for i, part in enumerate(result):
            item = self._graph.call_function(operator.getitem, (node, i))
            if isinstance(part, torch.Tensor):
                self._bind(part, item)
            else:
                self._bind_parts(part, item)

    def _operand(self, x: Any) -> Any:
        if isinstance(x, torch.Tensor):
            return self._node_of(x)
        return x

    def _node_of(self, tensor: Any) -> Node:
        node = self._nodes.get(id(tensor))
        if node is not None:
            return node
        at, name = self._arguments.get(id(tensor), (None, "L_tensor_"))
        if at is None and self._is_created(tensor):
            raise NotRecorded("a tensor that was made by a function which takes none, such as an autograd.Function")
        self.sources.append(tensor if at is None else at)
        self._kept.append(tensor)
        base, count = re.sub(r"\W", "_", name), 0
        name = base
        while name in self._names:
            count += 1
            name = f"{base}{count}_"
        self._names.add(name)
        last = next((n for n in reversed(self._graph.nodes) if n.op == "placeholder"), None)
        first = next(iter(self._graph.nodes), None)
        if last is not None:
            with self._graph.inserting_after(last):
                node = self._graph.placeholder(name)
        elif first is not None:
            with self._graph.inserting_before(first):
                node = self._graph.placeholder(name)
        else:
            node = self._graph.placeholder(name)
        node.meta["example_value"] = tensor
        self._nodes[id(tensor)] = node
        return node

    def finish(self, results: Sequence[Any]) -> tuple[GraphModule, list[Any]]:
        """Return the graph of the call, whose output is a tuple of tensors, and examples of its inputs.

        Args:
            results: the tensors of the call's result.

        Raises:
            NotRecorded: the call cannot be repeated.
        """
        if self.failure is not None:
            raise NotRecorded(self.failure)
        if torch.is_grad_enabled() != self._grad:
            self._graph.call_function(_set_grad_enabled, (torch.is_grad_enabled(),))
        self._graph.output(tuple([self._node_of(x) for x in results]))
        for node in list(reversed(self._graph.nodes)):
            if not node.users and node.op == "call_function" and node.target in (operator.getitem, getattr):
                self._graph.erase_node(node)
        examples = [self._kept[x] if isinstance(x, int) else x for x in self.sources]
        return GraphModule({}, self._graph), examples


__all__ = ["CallRecorder", "NotRecorded"]
