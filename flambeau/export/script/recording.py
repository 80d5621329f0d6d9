"""Recording of a call as TorchScript's graph: the call runs as it is, and each operator of PyTorch's becomes a node.

Operators that PyTorch composes of others (`linear`, `batch_norm`) are one node each, and arguments are complete.
Sizes that the call reads are constants of the graph.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import flambeau as torch

from ..._tensor.dispatch.handlers import handlers
from ..._tensor.overriding.protocol import skip_once
from ...environment.extension import _storage_address
from ...environment.script_types import TensorType, TupleType
from ...nn.recurrent import CELL_FUNCTIONS, SEQUENCE_FUNCTIONS
from ...ops.overloads import OpOverload
from ...utils._pytree import tree_leaves
from ..tracing.calls import resolve
from ..tracing.lowerings import METADATA
from ..tracing.tracer import FunctionRecorder, OperatorRecorder
from .graph import ClassType, Graph, Node, Value, plain, type_of

_ROOT = __file__.rpartition("/export/")[0] + "/"
#: operators that TorchScript's tracer records as `_convolution`: the rank, and whether they are transposed
_CONVOLUTIONS = {f"conv{'_transpose' * transposed}{rank}d": (rank, transposed) for rank in (1, 2, 3)
                 for transposed in (False, True)}
_PLACEHOLDERS = frozenset(METADATA.values())
_RECURRENT = frozenset(SEQUENCE_FUNCTIONS.values())


class TracingState:
    """The state of a trace: the scopes that are open, and the graph.

    Args:
        graph: the graph.
        call: runs a call that becomes one node, whose operators do not.
    """

    def __init__(self, graph: Graph, call: Callable[..., Any]) -> None:
        self._graph, self._scopes, self.call = graph, [], call  # type: ignore[var-annotated]

    def push_scope(self, name: str) -> None:
        """Open a scope."""
        self._scopes.append(name)

    def pop_scope(self) -> None:
        """Close the innermost scope."""
        self._scopes.pop()

    def current_scope(self) -> str:
        """The names of the open scopes, joined by slashes."""
        return "/".join(self._scopes)

    def graph(self) -> Graph:
        """The graph so far."""
        return self._graph


class Recorder:
    """Makes nodes of calls of operators; what the recorders of functions and operators call a builder."""

    def __init__(self) -> None:
        self.graph, self.recording = Graph(), True
        self.state = TracingState(self.graph, self.opaque_call)
        self._values: dict[int, tuple[Any, Value]] = {}
        self._attributes: dict[int, tuple[Any, str]] = {}
        self._modules: dict[str, Value] = {}
        self.storages: dict[int, int] = {}

    # ----- tensors and constants -----

    def input(self, tensor: Any, name: str) -> None:
        """Make a tensor an input of the graph."""
        self._remember(tensor, self.graph._value(self.graph.param_node(), type_of(tensor), name))

    def module(self, module: Any) -> None:
        """Make a module the first input; its parameters and buffers are attributes."""
        self._modules[""] = self.graph._value(self.graph.param_node(), ClassType(module), "self")
        self._paths = dict(module.named_modules())
        for path, child in self._paths.items():
            for name, tensor in (*child._parameters.items(), *child._buffers.items()):
                if tensor is not None:
                    self._attributes.setdefault(id(tensor), (tensor, f"{path}.{name}".strip(".")))

    def call(self, path: str, args: tuple[Any, ...], result: Any) -> None:
        """A node for a call of a child."""
        tensors = [leaf for leaf in tree_leaves(args) if isinstance(leaf, torch.Tensor)]
        node = self._node("prim::CallMethod", [self._module(path), *map(self.argument, tensors)])
        node._name = "forward"
        self._results(node, result)

    def opaque_call(self, kind: str, name: str, function: Callable[..., Any], args: tuple[Any, ...],
                    kwargs: dict[str, Any]) -> Any:
        """The result of a call that becomes one node: of a scripted function, or of an `autograd.Function`."""
        if not self.recording:
            return function(*args, **kwargs)
        tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
        values = [self.argument(tensor) for tensor in tensors]
        if kind == "prim::CallFunction":
            called = self._node("prim::Constant", [])
            called._name = name
            values.insert(0, self.graph._value(called, type_of(None), name))
        node = self._node(kind, values)
        if kind == "prim::PythonOp":
            node._name = name
        with self.silent():
            result = function(*args, **kwargs)
        self._results(node, result)
        return result

    def function_call(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result of a call of an `autograd.Function`, as one node; NotImplemented while nothing is recorded."""
        if not self.recording:
            return NotImplemented
        return self.opaque_call("prim::PythonOp", function.__name__, function.apply, args, kwargs)

    def _results(self, node: Node, result: Any) -> None:
        """The tensors of a result as values of a node."""
        leaves = [leaf for leaf in tree_leaves(result) if isinstance(leaf, torch.Tensor)]
        if not isinstance(result, torch.Tensor):
            packed = self.graph._value(node, TupleType([TensorType.get()] * len(leaves)))
            node = self._node("prim::TupleUnpack", [packed])
        for leaf in leaves:
            self._remember(leaf, self.graph._value(node, TensorType.get()))

    def _module(self, path: str) -> Value:
        if path not in self._modules:
            self._modules[path] = self._attribute(path, ClassType(self._paths[path]))
        return self._modules[path]

    def _attribute(self, target: str, type: Any) -> Value:
        path, _, name = target.rpartition(".")
        node = self.graph._append(Node(self.graph, "prim::GetAttr", [self._module(path)]))
        node._name = name
        return self.graph._value(node, type, name)

    def _remember(self, tensor: Any, value: Value) -> None:
        self._values[id(tensor)] = tensor, value
        self.storages[id(value)] = _storage_address(tensor)

    def argument(self, given: Any) -> Value:
        """The value of an argument; of tensors that the call did not compute, a constant."""
        if isinstance(given, torch.Tensor):
            found = self._values.get(id(given))
            if found is not None:
                return found[1]
            if id(given) in self._attributes:
                value = self._attribute(self._attributes[id(given)][1], TensorType.get())
                self._remember(given, value)
                return value
        given = plain(given)
        if isinstance(given, (list, tuple)):
            node = self._node("prim::ListConstruct", [self.argument(each) for each in given])
            return self.graph._value(node, type_of(list(given)))
        value = self.graph._value(self._node("prim::Constant", []), type_of(given), constant=given)
        if isinstance(given, torch.Tensor):
            self._remember(given, value)
        return value

    def constant(self, given: Any, name: str | None = None) -> Any:
        """A tensor that the program holds: the tensor."""
        return given

    def _node(self, kind: str, inputs: list[Value], schema: str | None = None) -> Node:
        return self.graph._append(Node(self.graph, kind, inputs, self.state.current_scope(), _source(), schema))

    # ----- calls -----

    def emit(self, overload: OpOverload, args: Any, kwargs: Any, function: Callable[..., Any], given: Any,
             named: Any) -> Any:
        """A node for a call of an overload; the result of the call.

        Args:
            args, kwargs: the arguments of the overload.
            function: computes the result.
            given, named: the arguments of the function.
        """
        name = overload.overloadpacket.__name__
        if name in ("lift_fresh_copy", "lift_fresh", "detach_"):  # of a tensor made of numbers: a constant
            return args[0]
        if function in _PLACEHOLDERS:
            function, given, named = overload, args, kwargs
        with self.silent():
            result = function(*given, **named)
        schema = overload._given_schema
        if schema is None:
            values = [*args, *kwargs.values()]
        else:
            bound = schema.bind(args, kwargs)
            values = [_listed(bound.get(a.name, a.default_value), a.type_name, self) for a in schema.arguments]
        if name in _CONVOLUTIONS:
            name, values = "_convolution", _convolution(*_CONVOLUTIONS[name], values)
        node = self._node(f"aten::{name}", [self.argument(value) for value in values],
                          None if schema is None or name == "_convolution" else f"aten::{schema}".replace(
                              "aten::aten::", "aten::"))
        if name.endswith("_") and not name.endswith("__") and isinstance(result, torch.Tensor):
            node._written = _storage_address(result)
        if isinstance(result, (list, tuple)) and schema is not None and len(schema.returns) == 1:
            packed = self.graph._value(node, type_of(list(result)))
            node = self._node("prim::ListUnpack", [packed])
        for each in result if isinstance(result, (list, tuple)) else (result,):
            value = self.graph._value(node, type_of(plain(each)))
            if isinstance(each, torch.Tensor):
                self._remember(each, value)
        return result

    def rebind(self, x: Any, value: Value) -> None:
        """No change: a tensor keeps the value that was computed last."""

    def lane(self, values: Any, lane: int) -> Any:
        """The values: there is one lane."""
        return values

    def into_trace(self, values: Any) -> Any:
        """The values: tensors are those of the program."""
        return values

    def check_metadata(self, x: Any) -> None:
        """No node: TorchScript does not assert metadata before conversions."""

    @contextmanager
    def silent(self) -> Iterator[None]:
        """A context manager in which nothing becomes a node."""
        former, self.recording = self.recording, False
        try:
            yield
        finally:
            self.recording = former


class _ScriptFunctionRecorder(FunctionRecorder):
    """Public functions become nodes: a recurrent network is one, a recurrent cell one for each of its operators."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in CELL_FUNCTIONS:
            with self, skip_once():
                return func(*args, **(kwargs or {}))
        if func in _RECURRENT and self.builder.recording:
            resolved = resolve(func.__name__, args, kwargs or {})
            if resolved is not None:
                overload, given, named = resolved
                return self.builder.emit(overload, given, named, func, args, kwargs or {})
        return super().__torch_function__(func, types, args, kwargs)


def _listed(value: Any, type_name: str, recorder: Recorder) -> Any:
    """An argument in the form of its declared type: lists of numbers, numbers as tensors."""
    if "[" in type_name and isinstance(value, int) and not isinstance(value, bool):
        count = type_name.partition("[")[2].partition("]")[0]
        return [value] * int(count or 1)
    if type_name.startswith("Tensor") and isinstance(value, (bool, int, float, complex)):
        with recorder.silent():
            return torch.tensor(value, dtype=torch.float64 if isinstance(value, float) else None)
    return value


def _convolution(rank: int, transposed: bool, values: list[Any]) -> list[Any]:
    """The arguments of `_convolution` for a convolution's."""
    if transposed:
        x, weight, bias, stride, padding, output_padding, groups, dilation = values
    else:
        x, weight, bias, stride, padding, dilation, groups = values
        output_padding = [0] * rank
        if isinstance(padding, str):
            padding = [0 if padding == "valid" else (n - 1) * d // 2 for n, d in zip(
                weight.shape[2:], dilation, strict=True)]
    lists = [list(each) * (rank if len(each) == 1 else 1) for each in (stride, padding, dilation, output_padding)]
    return [x, weight, bias, lists[0], lists[1], lists[2], transposed, lists[3], groups, False, False, True, True]


def _source() -> str:
    """The file and line of the program's innermost frame."""
    frame = sys._getframe(1)
    while frame is not None:
        filename = frame.f_code.co_filename
        if not filename.startswith(_ROOT):
            return f"{filename}:{frame.f_lineno}:0"
        frame = frame.f_back  # type: ignore[assignment]
    return ""


def record(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any],
           enter: Callable[[TracingState | None], Any], *, attributes: bool = False, inline: bool = True,
           inside: AbstractContextManager[Any] | None = None) -> tuple[Graph, Any]:
    """The graph of a call, whose inputs are the arguments' tensors and then a module's state, and its result.

    Args:
        function: a function or module.
        args, kwargs: its arguments.
        enter: is told the state while the trace runs, and None after it.
        attributes: whether a module is the first input instead of its state.
        inline: whether calls of its children are the children's nodes; otherwise they are one node each.
        inside: a mode that sees the calls before they become nodes.
    """
    recorder = Recorder()
    if attributes:
        with recorder.silent():
            recorder.module(function)
    names = _names(function, len(args))
    for i, value in enumerate(args):
        for leaf in tree_leaves(value):
            if isinstance(leaf, torch.Tensor):
                recorder.input(leaf, names[i])
    for name, value in kwargs.items():
        for leaf in tree_leaves(value):
            if isinstance(leaf, torch.Tensor):
                recorder.input(leaf, name)
    if isinstance(function, torch.nn.Module) and not attributes:
        with recorder.silent():
            state = list(function.state_dict(keep_vars=True).values())
        for tensor in {id(tensor): tensor for tensor in state if isinstance(tensor, torch.Tensor)}.values():
            recorder.input(tensor, "")
    former, handlers.record_function = handlers.record_function, recorder.function_call
    enter(recorder.state)
    try:
        with (_children(function, recorder, inline) if attributes else nullcontext(),
              OperatorRecorder(recorder), _ScriptFunctionRecorder(recorder),  # type: ignore[arg-type]
              inside or nullcontext()):
            result = function(*args, **kwargs)
    finally:
        enter(None)
        handlers.record_function = former
    graph = recorder.graph
    results = [recorder.argument(leaf) for leaf in tree_leaves(result) if isinstance(leaf, torch.Tensor)]
    if isinstance(result, (list, tuple)):
        packed = graph._append(Node(graph, "prim::TupleConstruct", results))
        results = [graph._value(packed, TupleType([value.type() for value in results]))]
    for value in results:
        graph.return_node()._add_input(value)
    graph._eliminate_dead_code(recorder.storages)
    return graph, result


@contextmanager
def _children(module: Any, recorder: Recorder, inline: bool) -> Iterator[None]:
    """A context manager in which a call of a child is a scope, or a node."""
    depth = [0]

    def before(path: str, *arguments: Any) -> None:
        recorder.state.push_scope(f"__module.{path}")
        depth[0] += 1
        recorder.recording = inline

    def after(path: str, child: Any, args: Any, result: Any) -> None:
        recorder.state.pop_scope()
        depth[0] -= 1
        recorder.recording = inline or not depth[0]
        if recorder.recording and not inline:
            recorder.call(path, args, result)

    handles = []
    for path, child in module.named_modules():
        if path:
            handles += [child.register_forward_pre_hook(functools.partial(before, path)),
                        child.register_forward_hook(functools.partial(after, path))]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _names(function: Any, count: int) -> list[str]:
    """The names of a function's parameters by position."""
    called = function.forward if isinstance(function, torch.nn.Module) else function
    try:
        parameters = inspect.signature(called).parameters
    except (TypeError, ValueError):
        return [""] * count
    names = [name for name, each in parameters.items() if each.kind is each.POSITIONAL_OR_KEYWORD]
    return (names + [""] * count)[:count]


__all__ = ["Recorder", "TracingState", "record"]
