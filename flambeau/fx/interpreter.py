"""Interpreters: graphs executed node by node, by methods that subclasses change."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from . import traceback as fx_traceback
from ._compatibility import compatibility
from ._lazy_graph_module import _make_graph_module
from ._symbolic_trace import Tracer
from .graph import Graph
from .graph_module import GraphModule
from .node import Node, Target, map_aggregate, map_arg
from .proxy import Proxy

log = logging.getLogger(__name__)

__all__ = ["Interpreter", "Transformer"]


@compatibility(is_backward_compatible=True)
class Interpreter:
    """Executes the graph of a module node by node.

    `run` calls `run_node`, which calls the method of the node's opcode: `placeholder`, `get_attr`, `call_function`,
    `call_method`, `call_module` or `output`.

    Args:
        module: the module.
        garbage_collect_values: whether values are freed after their last use.
        graph: the graph; None: that of the module.

    >>> import flambeau as torch
    >>> class Names(torch.fx.Interpreter):
    ...     def run_node(self, n):
    ...         print(n.name)
    ...         return super().run_node(n)
    >>> Names(torch.fx.symbolic_trace(lambda x: x + 1)).run(torch.ones(1))
    x
    add
    output
    tensor([2.])
    """

    def __init__(self, module: Any, garbage_collect_values: bool = True, graph: Graph | None = None) -> None:
        self.module = module
        self.submodules = dict(module.named_modules())
        self.graph: Graph = module.graph if graph is None else graph
        self.env: dict[Node, Any] = {}
        self.name = "Interpreter"
        self.garbage_collect_values = garbage_collect_values
        self.extra_traceback = True
        if garbage_collect_values:
            self.user_to_last_uses: dict[Node, list[Node]] = {}
            seen: set[Node] = set()
            for node in reversed(self.graph.nodes):
                for used in node._input_nodes:
                    if used not in seen:
                        seen.add(used)
                        self.user_to_last_uses.setdefault(node, []).append(used)

    def run(self, *args: Any, initial_env: dict[Node, Any] | None = None, enable_io_processing: bool = True) -> Any:
        """Execute the graph; its result.

        Args:
            args: the arguments.
            initial_env: values of nodes, which are not executed.
            enable_io_processing: whether arguments and result are those of the generated function, or of the graph.
        """
        self.env = {} if initial_env is None else initial_env
        if enable_io_processing:
            args = self.graph.process_inputs(*args)
        self.args_iter: Iterator[Any] = iter(args)
        for node in self.graph.nodes:
            if node in self.env:
                continue
            try:
                self.env[node] = self.run_node(node)
            except Exception as error:
                if self.extra_traceback:
                    message = f"While executing {node.format_node()}"
                    message = f"{error.args[0]}\n\n{message}" if error.args else message
                    message += (f"\nOriginal traceback:\n{node.stack_trace}\nUse tlparse to see full graph. "
                                "(https://github.com/pytorch/tlparse?tab=readme-ov-file"
                                "#tlparse-parse-structured-pt2-logs)")
                    error.args = (message, *error.args[1:])
                    if isinstance(error, KeyError):
                        raise RuntimeError(*error.args) from error
                raise
            if self.garbage_collect_values:
                for used in self.user_to_last_uses.get(node, ()):
                    del self.env[used]
            if node.op == "output":
                value = self.env[node]
                return self.graph.process_outputs(value) if enable_io_processing else value
        return None

    def boxed_run(self, args_list: list[Any]) -> Any:
        """Execute the graph with a list of arguments, which is cleared, so that they are freed early."""
        placeholders = [node for node in self.graph.nodes if node.op == "placeholder"]
        if len(args_list) != len(placeholders):
            detail = "extra arguments" if len(args_list) > len(placeholders) else "missing arguments"
            raise RuntimeError(f"Interpreter.boxed_run expected {len(placeholders)} arguments for placeholders but "
                               f"received {len(args_list)} ({detail})")
        env = dict(zip(placeholders, args_list, strict=True))
        args_list.clear()
        return self.run(initial_env=env)

    @contextmanager
    def _set_current_node(self, node: Node) -> Iterator[None]:
        with fx_traceback.set_current_meta(node, f"Interpreter_{type(self).__name__}"):
            yield

    def run_node(self, n: Node) -> Any:
        """Execute a node; its value."""
        with self._set_current_node(n):
            args, kwargs = self.fetch_args_kwargs_from_env(n)
            return getattr(self, n.op)(n.target, args, kwargs)

    def placeholder(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The next argument; for a parameter with a star, all that remain."""
        if not isinstance(target, str):
            raise AssertionError(f"Expected target to be str, got {type(target)}")
        if target.startswith("*"):
            return list(self.args_iter)
        try:
            return next(self.args_iter)
        except StopIteration as error:
            if args:
                return args[0]
            raise RuntimeError(f"Expected positional argument for parameter {target}, but one was not passed in!"
                               ) from error

    def get_attr(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The attribute of a path."""
        if not isinstance(target, str):
            raise AssertionError(f"Expected target to be str, got {type(target)}")
        return self.fetch_attr(target)

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a function."""
        if isinstance(target, str):
            raise AssertionError("target should not be a string for call_function")
        return target(*args, **kwargs)

    def call_method(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a method of the first argument."""
        first, *rest = args
        if not isinstance(target, str):
            raise AssertionError(f"Expected target to be str, got {type(target)}")
        return getattr(first, target)(*rest, **kwargs)

    def call_module(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a submodule."""
        if not isinstance(target, str):
            raise AssertionError(f"Expected target to be str, got {type(target)}")
        return self.fetch_attr(target)(*args, **kwargs)

    def output(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result."""
        return args[0]

    def fetch_attr(self, target: str) -> Any:
        """The attribute of a path from the module.

        Raises:
            RuntimeError: there is none.
        """
        path = target.split(".")
        value = self.module
        for i, name in enumerate(path):
            if not hasattr(value, name):
                raise RuntimeError(f"Node referenced nonexistent target {'.'.join(path[:i + 1])}")
            value = getattr(value, name)
        return value

    def fetch_args_kwargs_from_env(self, n: Node) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The values of a node's arguments."""
        args, kwargs = self.map_nodes_to_values(n.args, n), self.map_nodes_to_values(n.kwargs, n)
        if not isinstance(args, tuple):
            raise AssertionError(f"Expected args to be tuple, got {type(args)}")
        if not isinstance(kwargs, dict):
            raise AssertionError(f"Expected kwargs to be dict, got {type(kwargs)}")
        return args, kwargs

    def map_nodes_to_values(self, args: Any, n: Node) -> Any:
        """An argument of a node, with the values of the nodes in it."""
        def load(node: Node) -> Any:
            if node not in self.env:
                raise RuntimeError(f"Node {n} referenced nonexistent value {node}! Run Graph.lint() to diagnose such "
                                   "issues")
            return self.env[node]

        return map_arg(args, load)


@compatibility(is_backward_compatible=True)
class Transformer(Interpreter):
    """An interpreter that makes a new module: its methods are given proxies, and what they do becomes the graph.

    >>> import flambeau as torch
    >>> class Swap(torch.fx.Transformer):
    ...     def call_function(self, target, args, kwargs):
    ...         if target is torch.neg:
    ...             target = torch.sigmoid
    ...         return super().call_function(target, args, kwargs)
    >>> gm = Swap(torch.fx.symbolic_trace(lambda x: torch.neg(x))).transform()
    >>> gm(torch.zeros(1))
    tensor([0.5000])
    """

    def __init__(self, module: Any) -> None:
        super().__init__(module)
        self.new_graph = Graph()
        self.new_graph.set_codegen(module.graph._codegen)

        class TransformerTracer(Tracer):
            def __init__(self, graph: Graph) -> None:
                super().__init__()
                self.graph = graph
                self.tensor_attrs = {}

            def is_leaf_module(self, _: Any, __: str) -> bool:
                return True

        self.tracer = TransformerTracer(self.new_graph)
        self.tracer.root = module

    def placeholder(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Proxy:
        """A placeholder of the new graph."""
        if not isinstance(target, str):
            raise AssertionError(f"Expected target to be str, got {type(target)}")
        default = next(iter(args)) if args else inspect.Signature.empty
        return Proxy(self.new_graph.placeholder(target, default_value=default), self.tracer)

    def get_attr(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Proxy:
        """An attribute read of the new graph."""
        if not isinstance(target, str):
            raise AssertionError(f"Expected target to be str, got {type(target)}")
        return self.tracer.create_proxy("get_attr", target, args, kwargs)

    def call_module(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The call of a submodule in the new graph."""
        if not isinstance(target, str):
            raise AssertionError(f"Expected target to be str, got {type(target)}")
        module = self.fetch_attr(target)
        return self.tracer.call_module(module, module.forward, args, kwargs)

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The call of a function in the new graph."""
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    def transform(self) -> GraphModule:
        """The new module."""
        with fx_traceback.preserve_node_meta():
            result = super().run(enable_io_processing=False)
        if result is not None:
            output = self.new_graph.output(map_aggregate(result, lambda x: x.node if isinstance(x, Proxy) else x))
            former = list(self.graph.nodes)[-1]
            if former.op != "output":
                raise AssertionError(f"Expected output node, got op={former.op}")
            output.meta.update(former.meta)
        return _make_graph_module(self.module, self.new_graph)
