"""The base of tracers: values become arguments, calls become nodes."""

from __future__ import annotations

import collections
import copy
import enum
import inspect
import logging
import os
import sys
import traceback
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from types import FrameType
from typing import Any

import flambeau as torch

from ...ops.overloads import OpOverload
from .. import traceback as fx_traceback
from .._compatibility import compatibility
from ..graph import Graph
from ..node import Node, Target, base_types, map_arg
from ..operator_schemas import check_for_mutable_operation

log = logging.getLogger(__name__)

_COPY_META_FIELDS = [
    "nn_module_stack", "torch_fn", "source_fn_stack", "original_aten", "recompute", "ac_graph_id", "has_backward_hook",
    "from_node", "quantization_tag", "_numeric_debug_handle", "custom", "partitioner_tag"]

#: [the class `Attribute`], set by the module that defines it
attribute_of: list[Any] = []
_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_PACKAGE = os.path.dirname(_HERE)


@compatibility(is_backward_compatible=False)
class Scope:
    """The module whose `forward` is being traced: its path and its class."""

    def __init__(self, module_path: str, module_type: Any) -> None:
        self.module_path, self.module_type = module_path, module_type


@compatibility(is_backward_compatible=False)
class ScopeContextManager:
    """A context manager that changes a scope until its end."""

    def __init__(self, scope: Scope, current_scope: Scope) -> None:
        self._former = copy.copy(scope)
        scope.module_path, scope.module_type = current_scope.module_path, current_scope.module_type
        self._scope = scope

    def __enter__(self) -> Scope:
        return self._scope

    def __exit__(self, *args: object) -> None:
        self._scope.module_path, self._scope.module_type = self._former.module_path, self._former.module_type


@compatibility(is_backward_compatible=True)
class TraceError(ValueError):
    """Raised where a traced value would have to be known."""


@compatibility(is_backward_compatible=True)
class TracerBase:
    """The base of tracers.

    Attributes:
        graph: the graph to which nodes are added.
        record_stack_traces: whether nodes keep the Python stack.
        check_mutable_operations: whether functions that write to their arguments are refused.
        trace_asserts: whether `assert` of traced values becomes a node.
        proxy_buffer_attributes: whether buffers become nodes where they are read, instead of where they are used.
        traced_func_name: the method of modules that is traced.
        scope: the module whose `forward` is being traced.
        module_stack: the modules whose calls are active.
        node_name_to_scope: name of a node -> path and class of the module that made it.
    """

    graph: Graph
    record_stack_traces: bool = False
    _record_forward_stack_traces_only: bool = False
    check_mutable_operations: bool = False
    trace_asserts: bool = False
    proxy_buffer_attributes: bool = False
    traced_func_name: str = "forward"
    scope: Scope
    module_stack: OrderedDict[str, tuple[str, Any]]
    node_name_to_scope: dict[str, tuple[str, Any]]

    def create_node(self, kind: str, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any],
                    name: str | None = None, type_expr: Any = None) -> Node:
        """Add a node to the graph; a subclass may check or change what is added."""
        if kind == "call_function" and self.check_mutable_operations:
            check_for_mutable_operation(target, args, kwargs)  # type: ignore[arg-type]
        node = self.graph.create_node(kind, target, args, kwargs, name, type_expr)
        self.node_name_to_scope[node.name] = (self.scope.module_path, self.scope.module_type)
        if fx_traceback.has_preserved_node_meta():
            _inherit(node)
        elif self.module_stack:
            node.meta["nn_module_stack"] = copy.copy(self.module_stack)
        if self.record_stack_traces and not node.stack_trace:
            frames = self._filter_traceback_frames(traceback.StackSummary.extract(_frames(sys._getframe(1))))
            if frames:
                node.stack_trace = "".join(frames.format()).strip()
        log.debug("create_node %s", node)
        return node

    def _filter_traceback_frames(self, user_stack_summary: traceback.StackSummary) -> traceback.StackSummary:
        """The frames of a stack that belong to the traced program."""
        frames = list(user_stack_summary)
        if self._record_forward_stack_traces_only:
            frames = [f for f in frames if f.name == "forward" or f.filename.endswith("flambeau/__init__.py")
                      or (f.filename, f.name) in fx_traceback._STACK_TRACE_ANCHORS]
        else:
            first = next((i for i, f in enumerate(frames) if f.name == "forward"), len(frames))
            frames = frames[first:]
        return traceback.StackSummary.from_list([f for f in frames if not f.filename.startswith(_HERE)])

    def proxy(self, node: Node) -> Any:
        """The proxy of a node's value."""
        return torch.fx.proxy.Proxy(node, self)

    def create_proxy(self, kind: str, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any],
                     name: str | None = None, type_expr: Any = None,
                     proxy_factory_fn: Callable[[Node], Any] | None = None) -> Any:
        """Add a node, of arguments that may contain proxies; the proxy of its value.

        Args:
            kind: the opcode.
            target: the target.
            args: the positional arguments.
            kwargs: the keyword arguments.
            name: the node's name; None: after the target.
            type_expr: the annotation.
            proxy_factory_fn: makes the proxy; None: `proxy`.
        """
        args_, kwargs_ = self.create_arg(args), self.create_arg(kwargs)
        if not isinstance(args_, tuple):
            raise AssertionError(f"Expected args_ to be tuple, got {type(args_)}")
        if not isinstance(kwargs_, dict):
            raise AssertionError(f"Expected kwargs_ to be dict, got {type(kwargs_)}")
        node = self.create_node(kind, target, args_, kwargs_, name, type_expr)
        return (proxy_factory_fn or self.proxy)(node)

    def _find_user_frame(self) -> FrameType | None:
        """The innermost frame of the traced program."""
        frame = inspect.currentframe()
        while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
            frame = frame.f_back
        return frame

    def create_arg(self, a: Any) -> Any:
        """A value as the argument of a node; a subclass may accept more values.

        Raises:
            NotImplementedError: nodes cannot have it as argument.
        """
        proxies = torch.fx.proxy.Proxy
        if isinstance(a, proxies):
            return a.node
        if hasattr(a, "__fx_create_arg__"):
            return a.__fx_create_arg__(self)
        if isinstance(a, tuple):
            items = [self.create_arg(item) for item in a]
            return type(a)(*items) if hasattr(a, "_fields") else type(a)(items)
        if isinstance(a, list):
            return [self.create_arg(item) for item in a]
        if isinstance(a, dict):
            return {self._key(key): self.create_arg(value) for key, value in a.items()}
        if isinstance(a, slice):
            return slice(self.create_arg(a.start), self.create_arg(a.stop), self.create_arg(a.step))
        if isinstance(a, range):
            return range(self.create_arg(a.start), self.create_arg(a.stop), self.create_arg(a.step))
        if isinstance(a, (OpOverload, torch._ops.HigherOrderOperator)):
            return a
        if is_dataclass(a) and not isinstance(a, type):
            kwargs = {field.name: self.create_arg(getattr(a, field.name)) for field in fields(a)}
            return self.create_node("call_function", type(a), (), kwargs)
        if isinstance(a, (*base_types, enum.Enum)) or a is None or a is ...:
            return a
        raise NotImplementedError(f"argument of type: {type(a)}")

    def _key(self, key: Any) -> Any:
        if isinstance(key, str):
            return key
        key = self.create_arg(key)

        def refuse(node: Node) -> Any:
            raise RuntimeError(f"Keys for dictionaries used as an argument cannot contain a Node. Got key: {node}")

        map_arg(key, refuse)
        return key

    def to_bool(self, obj: Any) -> bool:
        """Called where a proxy is tested; a subclass may know the value.

        Raises:
            TraceError: always.
        """
        raise TraceError("symbolically traced variables cannot be used as inputs to control flow")

    def iter(self, obj: Any) -> Iterator[Any]:
        """Called where a proxy is iterated; a subclass may know its length.

        Raises:
            TraceError: always.
        """
        raise TraceError("Proxy object cannot be iterated. This can be attempted when the Proxy is used in a loop or "
                         "as a *args or **kwargs function argument. See the torch.fx docs on pytorch.org for a more "
                         "detailed explanation of what types of control flow can be traced, and check out the Proxy "
                         "docstring for help troubleshooting Proxy iteration errors")

    def keys(self, obj: Any) -> Any:
        """Called where a proxy is unpacked by `**`: a node that reads its keys."""
        return attribute_of[0](obj, "keys")()


def _frames(frame: FrameType | None) -> list[tuple[FrameType, int]]:
    """The frames of the stack, outermost first, with their lines."""
    found = []
    while frame is not None:
        found.append((frame, frame.f_lineno))
        frame = frame.f_back
    return found[::-1]


def _inherit(node: Node) -> None:
    """Give a new node the data of the node that is being executed."""
    current = fx_traceback.get_current_meta()
    stack = current.get("stack_trace")
    if stack:
        node.stack_trace = stack
        if fx_traceback.GRADIENT_ACC_SPECIAL_STACK in stack:
            node.meta["is_gradient_acc"] = node.meta["autograd_backward"] = True
    node.meta.update((field, copy.copy(current[field])) for field in _COPY_META_FIELDS if field in current)
    if current.get("in_grad_fn", 0) > 0:
        node.meta["seq_nr"] = current["grad_fn_seq_nr"][-1]
    elif current.get("seq_nr") is not None:
        node.meta["seq_nr"] = current["seq_nr"]
    replayed = fx_traceback.get_current_replay_node()
    if replayed is not None:
        node.meta["is_functional_regenerated"] = True
        node.meta.update((key, replayed.meta[key]) for key in ("custom", "stack_trace") if key in replayed.meta)
    if current.get("autograd_backward", False):
        node.meta["autograd_backward"] = True


@compatibility(is_backward_compatible=True)
class GraphAppendingTracer(TracerBase):
    """The tracer of proxies outside of tracing: nodes are added to a graph."""

    def __init__(self, graph: Graph) -> None:
        super().__init__()
        self.graph = graph
        self.scope = Scope("", None)
        self.module_stack = collections.OrderedDict()
        self.node_name_to_scope = {}


__all__ = ["GraphAppendingTracer", "Scope", "ScopeContextManager", "TraceError", "TracerBase"]
