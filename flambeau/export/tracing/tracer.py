"""The tracer of exports: a program runs on fake tensors, and each public function that it calls becomes a node."""

from __future__ import annotations

import operator
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

import flambeau as torch

from ..._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from ..._tensor.overriding.function_modes import TorchFunctionMode
from ..._tensor.overriding.protocol import skip_once
from ...fx.graph import Graph
from ...fx.node import Node
from ...fx.passes.shape_prop import _extract_tensor_metadata
from ...ops import aten
from ...ops.overloads import OpOverload, OpOverloadPacket, runner
from ...utils._python_dispatch import TorchDispatchMode
from ...utils._pytree import tree_flatten, tree_leaves, tree_map, tree_unflatten
from .expressions import Expression, fitted, symbol
from .lowerings import METADATA, lowering_of
from .symbolic_numbers import SizesDisagree, SymbolicFloat, SymbolicInt, SymbolicSize, in_lane, is_symbolic
from .traced_tensor import TracedTensor, shown


class ElementsNeeded(RuntimeError):
    """An operator takes elements of a tensor as they are, so that the graph would be valid for these only."""


class GraphBuilder:
    """The graph of a trace, and which node computes each tensor.

    Args:
        mode: the mode of fake tensors.
        lanes: how many assignments of dynamic sizes the program is traced for.

    Attributes:
        constants: name -> tensor that is neither a parameter nor a buffer.
        constant_names: id of a tensor -> its names, where it is an attribute of modules; the first is the constant's.
    """

    def __init__(self, mode: FakeTensorMode, lanes: int = 1) -> None:
        self.mode, self.graph, self.lanes = mode, Graph(), lanes
        self.traced: dict[int, tuple[Any, TracedTensor]] = {}
        self.nodes: dict[int, tuple[Any, Node]] = {}
        self.constants: dict[str, Any] = {}
        self.constant_names: dict[int, list[str]] = {}
        self.constant_tensors: dict[int, tuple[Any, TracedTensor]] = {}
        self.first_input: Node | None = None
        self.last_placeholder: Node | None = None
        self.modules: list[tuple[str, str, str]] = []
        self.recording = True
        self.lifted = 0
        self.expressions: dict[tuple[int, ...], Expression] = {}
        self.symbol_nodes: dict[str, Node] = {}
        self.symbol_sources: dict[str, tuple[Node, int]] = {}
        self.expression_nodes: dict[Expression, Node] = {}
        self.unknown = 0
        self.current = ""
        self.meta: dict[str, Any] | None = None  # of the nodes to come, where a graph is run again

    # ----- tensors -----

    def tensor(self, lanes: tuple[FakeTensor, ...]) -> TracedTensor:
        """The tensor of the trace with these fake tensors, the same one each time."""
        found = self.traced.get(id(lanes[0]))
        if found is not None and found[0] is lanes[0]:
            found[1].refresh()
            return found[1]
        made: TracedTensor = TracedTensor(self, lanes)
        self.traced[id(lanes[0])] = lanes[0], made
        return made

    def fake(self, value: Any, shapes: list[tuple[int, ...]] | None = None) -> TracedTensor:
        """The tensor of the trace for a tensor of the program.

        Args:
            shapes: its shape in each lane; default: its own.
        """
        if isinstance(value, FakeTensor) and value.fake_mode is not self.mode:
            # an example of shapes alone: its metadata in the mode of the trace
            first = self.mode.fake_tensor_converter.from_meta_and_device(self.mode, value, value.device)
            first._requires_grad = value.requires_grad
        else:
            first = self.mode.from_tensor(value)
        if shapes is None:
            return self.tensor((first,) * self.lanes)
        lanes = [first]
        for shape in shapes[1:]:
            order = sorted(range(value.dim()), key=lambda d: (-value.stride(d), d))
            made = torch.empty([shape[d] for d in order], dtype=value.dtype, device="meta").permute(
                *(order.index(d) for d in range(value.dim()))) if value.dim() else first
            fake = self.mode.fake_tensor_converter.from_meta_and_device(self.mode, made, value.device)
            fake._requires_grad = value.requires_grad
            lanes.append(fake)
        return self.tensor(tuple(lanes))

    def placeholder(self, name: str, value: Any) -> Node:
        """A parameter of the graph."""
        node = self.graph.create_node("placeholder", name, (), {}, name)
        self.last_placeholder = node
        self.track(value, node)
        return node

    def track(self, value: Any, node: Node) -> None:
        """Remember the node that computes a value, and its metadata."""
        node.meta["val"] = self.described(value)
        if isinstance(value, TracedTensor):
            self.nodes[id(value.lanes[0])] = value, node
            node.meta["tensor_meta"] = _extract_tensor_metadata(value)

    def rebind(self, x: TracedTensor, node: Node) -> None:
        """Let a tensor be what another node computes."""
        self.nodes[id(x.lanes[0])] = x, node

    def described(self, value: Any) -> Any:
        """A value as metadata of a node."""
        return tree_map(lambda x: shown(x) if isinstance(x, TracedTensor) else x, value)

    def constant(self, value: Any, name: str | None = None) -> TracedTensor:
        """The tensor of the trace for one that the program holds; its placeholder comes before the first input."""
        found = self.constant_tensors.get(id(value))
        if found is not None:
            return found[1]
        name = name or next(iter(self.constant_names.get(id(value), ())), None)
        if name is None:
            name = f"lifted_tensor_{self.lifted}"
            self.lifted += 1
        self.constants[name] = value
        detached = value.detach() if value.requires_grad else value
        with self.silent():
            made = self.fake(detached)
        for lane in made.lanes:
            lane.constant = detached if value.numel() == 1 else None
        with self._before_inputs():
            text = "c_" + name.replace(".", "_")
            node = self.graph.create_node("placeholder", text, (), {}, text)
        node.meta["constant"] = name
        self.last_placeholder = self.last_placeholder or node
        self.track(made, node)
        self.constant_tensors[id(value)] = value, made
        return made

    @contextmanager
    def _before_inputs(self) -> Iterator[None]:
        if self.first_input is None:
            yield
        else:
            with self.graph.inserting_before(self.first_input):
                yield

    def into_trace(self, values: Any) -> Any:
        """Values whose tensors are tensors of the trace."""
        def convert(x: Any) -> Any:
            if not isinstance(x, torch.Tensor) or isinstance(x, TracedTensor):
                return x
            if isinstance(x, FakeTensor) and x.fake_mode is self.mode:
                found = self.traced.get(id(x))
                return found[1] if found is not None else self.tensor((x,) * self.lanes)
            return self.constant(x)

        return _mapped(convert, values)

    def lane(self, values: Any, lane: int) -> Any:
        """Values of the trace in one lane."""
        def convert(x: Any) -> Any:
            if isinstance(x, TracedTensor):
                return x.lanes[lane]
            return in_lane(x, lane)

        return _mapped(convert, values)

    # ----- numbers -----

    def number(self, lanes: tuple[Any, ...], expression: Expression | None = None, node: Any = None) -> Any:
        """A number with these values; a plain one if they are equal."""
        if all(x == lanes[0] for x in lanes):
            return lanes[0]
        if isinstance(lanes[0], float):
            return SymbolicFloat(self, lanes, None, node)
        if expression is None:
            expression = fitted(lanes, self.expressions)
        if expression is None:
            expression = symbol(f"u{self.unknown}")
            self.unknown += 1
        self.expressions.setdefault(lanes, expression)
        return SymbolicInt(self, lanes, expression, node)

    def size(self, tensor: TracedTensor, dim: int, lanes: tuple[int, ...]) -> Any:
        """A size of a tensor, which its node computes when it is needed."""
        return self.number(lanes, None, lambda: self._size_node(tensor, dim))

    def _size_node(self, tensor: TracedTensor, dim: int) -> Node:
        arguments = self.argument(tensor), dim
        node = self.graph.create_node("call_function", aten.sym_size.int, arguments, {}, "sym_size_int")
        self._describe(node)
        return node

    def combined(self, function: Any, left: Any, right: Any, lanes: tuple[Any, ...], expression: Any) -> Any:
        """The result of arithmetic on numbers of the trace."""
        operands = (left,) if right is None else (left, right)

        def make() -> Node:
            return self.graph.create_node("call_function", function, tuple(map(self.argument, operands)), {})

        return self.number(lanes, expression, make)

    def number_node(self, value: Any) -> Node:
        """The node of a number."""
        expression = value.expression
        if expression is not None and expression.is_symbol and str(expression) in self.symbol_sources:
            return self._symbol_node(str(expression))
        if expression is not None and expression in self.expression_nodes:
            return self.expression_nodes[expression]
        if callable(value._node):
            value._node = value._node()
        node = value._node
        if node is None:
            raise SizesDisagree(f"no operator computes the dynamic size {value}")
        node.meta["val"] = value
        if expression is not None:
            self.expression_nodes[expression] = node
        return node

    def _symbol_node(self, name: str) -> Node:
        """The node that reads a symbol's size of an input, after the placeholders."""
        found = self.symbol_nodes.get(name)
        if found is None:
            source, dim = self.symbol_sources[name]
            anchor = self.last_placeholder
            assert anchor is not None
            while anchor.next.op == "placeholder" or anchor.next in self.symbol_nodes.values():
                anchor = anchor.next
            with self.graph.inserting_after(anchor):
                found = self.graph.create_node("call_function", aten.sym_size.int, (source, dim), {}, "sym_size_int")
            lanes = next(lanes for lanes, e in self.expressions.items() if str(e) == name)
            found.meta["val"] = SymbolicInt(self, lanes, symbol(name), found)
            self.symbol_nodes[name] = found
        return found

    # ----- nodes -----

    def argument(self, value: Any) -> Any:
        """A value as the argument of a node."""
        if isinstance(value, TracedTensor):
            found = self.nodes.get(id(value.lanes[0]))
            if found is None:
                raise RuntimeError(f"a tensor of the trace has no node: {value}")
            return found[1]
        if isinstance(value, torch.Tensor):
            return self.argument(self.into_trace(value))
        if isinstance(value, np.ndarray):
            raise ElementsNeeded(f"{self.current} is called with elements of a tensor, which are not known while a "
                                 "program is exported")
        return self.number_node(value) if is_symbolic(value) else value

    def arguments(self, values: Any) -> Any:
        """Values in containers as the arguments of a node."""
        if isinstance(values, (list, tuple)):
            made = [self.arguments(x) for x in values]
            return made if not isinstance(values, tuple) else tuple(made)
        if isinstance(values, dict):
            return {key: self.arguments(x) for key, x in values.items()}
        if isinstance(values, slice):
            return slice(*(self.arguments(x) for x in (values.start, values.stop, values.step)))
        return self.argument(values)

    def emit(self, overload: OpOverload, args: Any, kwargs: Any, function: Callable[..., Any], given: Any,
             named: Any) -> Any:
        """A node for a call of an overload; its value.

        Args:
            args, kwargs: the arguments of the overload.
            function: computes the value on fake tensors.
            given, named: the arguments of the function.
        """
        self.current = str(overload)
        schema = overload._given_schema
        given, named = self.into_trace(given), self.into_trace(named)
        result = self.run(function, given, named)
        args, kwargs = self.into_trace(args), self.into_trace(kwargs)
        if schema is not None:
            args, kwargs = schema.normalized(schema.bind(args, kwargs))
            args = tuple(_listed(value, argument.type_name) for value, argument in zip(args, schema.arguments,
                                                                                      strict=False))
        node_args, node_kwargs = self.arguments(args), self.arguments(kwargs)
        name = self.graph._target_to_str(overload.overloadpacket.__name__)
        node = self.graph.create_node("call_function", overload, node_args, node_kwargs, name)
        self._describe(node)
        self.bind(node, result, schema)
        return result

    def run(self, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """The value of a call, in all lanes."""
        results = []
        with self.silent():
            for lane in range(self.lanes):
                if lane and not self.depends(args, kwargs):
                    break
                try:
                    results.append(function(*self.lane(args, lane), **self.lane(kwargs, lane)))
                except SizesDisagree:
                    raise
                except Exception as error:
                    if not lane:
                        raise
                    raise SizesDisagree(f"{self.current} fails for other values of the dynamic sizes: "
                                        f"{error}") from error
        return self._joined(results)

    def depends(self, args: Any, kwargs: Any) -> bool:
        """Whether the lanes of a call differ."""
        for x in _leaves((args, kwargs)):
            if is_symbolic(x):
                return True
            if isinstance(x, TracedTensor) and any(lane is not x.lanes[0] for lane in x.lanes):
                return True
        return False

    def _joined(self, results: list[Any]) -> Any:
        leaves, spec = tree_flatten(results[0])
        every = [leaves, *(tree_leaves(result) for result in results[1:])]
        if any(len(each) != len(leaves) for each in every):
            raise SizesDisagree(f"the number of results of {self.current} depends on a dynamic size")
        joined: list[Any] = []
        for values in zip(*every, strict=True):
            first = values[0]
            if isinstance(first, torch.Tensor):
                if any(x.dim() != first.dim() for x in values):
                    raise SizesDisagree(f"the rank of a result of {self.current} depends on a dynamic size")
                fakes = tuple(x if isinstance(x, FakeTensor) else self.mode.from_tensor(x) for x in values)
                joined.append(self.tensor(fakes if len(fakes) == self.lanes else fakes * self.lanes))
            elif isinstance(first, (int, float)) and not isinstance(first, bool) and len(values) > 1:
                joined.append(self.number(tuple(values)))
            else:
                if any(type(x) is type(first) and isinstance(x, (bool, str)) and x != first for x in values):
                    raise SizesDisagree(f"a result of {self.current} depends on a dynamic size")
                joined.append(first)
        return tree_unflatten(joined, spec)

    def bind(self, node: Node, result: Any, schema: Any) -> None:
        """Remember which tensors a node computes: its result, or the items of its result."""
        if isinstance(result, (list, tuple)):
            node.meta["val"] = self.described(list(result) if schema is not None and len(
                schema.returns) == 1 else tuple(result))
            for i, item in enumerate(result):
                if isinstance(item, torch.Tensor):
                    part = self.graph.create_node("call_function", operator.getitem, (node, i), {}, "getitem")
                    part.meta.update({key: node.meta[key] for key in _INHERITED if key in node.meta})
                    self.track(item, part)
        elif isinstance(result, TracedTensor):
            self.track(result, node)
        else:
            if is_symbolic(result):
                result._node = node
            node.meta["val"] = result

    def check_metadata(self, x: Any) -> None:
        """A node that asserts dtype, device and layout of a tensor, as before conversions."""
        overload = aten._assert_tensor_metadata.default
        node = self.graph.create_node("call_function", overload, (self.argument(x),), {
            "dtype": x.dtype, "device": x.device, "layout": x.layout}, "_assert_tensor_metadata_default")
        self._describe(node)
        node.meta["val"] = None

    def _describe(self, node: Node) -> None:
        if self.meta is not None:
            node.meta.update(self.meta)
            return
        node.meta["nn_module_stack"] = {key: (path, kind) for key, path, kind in self.modules}
        frames = program_frames()
        if frames:
            node.meta["stack_trace"] = "".join(traceback.format_list(frames)).strip()

    @contextmanager
    def silent(self) -> Iterator[None]:
        """A context manager in which nothing becomes a node."""
        former, self.recording = self.recording, False
        try:
            yield
        finally:
            self.recording = former


_INHERITED = ("nn_module_stack", "stack_trace")
_ROOT = __file__.rpartition("/export/")[0]
_MODULES = _ROOT + "/nn/modules/"


def program_frames() -> list[traceback.FrameSummary]:
    """The frames of the program's own files and of modules, outermost first, from the traced call on."""
    found: list[traceback.FrameSummary] = []
    frame = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if code.co_filename.startswith(_ROOT) and code.co_name == "trace_program":
            break
        if is_program(code.co_filename):
            found.append(traceback.FrameSummary(code.co_filename, frame.f_lineno, code.co_name, lookup_line=True))
        frame = frame.f_back  # type: ignore[assignment]
    return found[::-1]


def is_program(filename: str) -> bool:
    """Whether a file is the program's own, or one that defines modules."""
    if not filename.startswith(_ROOT):
        return True
    return filename.startswith(_MODULES) and not filename.startswith(_MODULES + "base/")


def _mapped(convert: Callable[[Any], Any], values: Any) -> Any:
    """Values in containers, converted; shapes become lists of numbers where they are symbolic."""
    if isinstance(values, (list, tuple)):
        made = [_mapped(convert, x) for x in values]
        if isinstance(values, SymbolicSize):
            return torch.Size(made) if not any(map(is_symbolic, made)) else SymbolicSize(made)
        if hasattr(values, "_fields"):
            return type(values)(*made)
        return type(values)(made) if type(values) in (list, tuple, torch.Size) else tuple(made)
    if isinstance(values, dict):
        return {key: _mapped(convert, x) for key, x in values.items()}
    if isinstance(values, slice):
        return slice(*(convert(x) for x in (values.start, values.stop, values.step)))
    return convert(values)


def _leaves(values: Any) -> Iterator[Any]:
    if isinstance(values, (list, tuple)):
        for x in values:
            yield from _leaves(x)
    elif isinstance(values, dict):
        yield from _leaves(list(values.values()))
    elif isinstance(values, slice):
        yield from (values.start, values.stop, values.step)
    else:
        yield values


def _listed(value: Any, type_name: str) -> Any:
    """An argument in the form of its declared type: lists of numbers."""
    if "[" in type_name:
        if isinstance(value, tuple):
            return list(value)
        if isinstance(value, int) and not isinstance(value, bool) and not type_name.startswith("Tensor"):
            count = type_name.partition("[")[2].partition("]")[0]
            return [value] * int(count) if count else [value]
    return value


class FunctionRecorder(TorchFunctionMode):
    """Public functions become nodes of the operators that PyTorch calls for them."""

    def __init__(self, builder: GraphBuilder) -> None:
        super().__init__()
        self.builder = builder

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        builder = self.builder
        if isinstance(func, (OpOverload, OpOverloadPacket)):
            if not builder.recording or getattr(func, "overloadpacket", func).__name__ in _UNRECORDED:
                return func(*args, **kwargs)
            which = func if isinstance(func, OpOverload) else runner.resolve(
                func, builder.lane(builder.into_trace(args), 0), builder.lane(builder.into_trace(kwargs), 0))
            return builder.emit(which, args, kwargs, METADATA.get(which.overloadpacket.__name__, which), args, kwargs)
        if builder.recording:
            lowering = lowering_of(func)
            if lowering is not None:
                result = lowering(builder, func, args, kwargs)
                if result is not NotImplemented:
                    return result
        with self, skip_once():
            return func(*args, **kwargs)


class OperatorRecorder(TorchDispatchMode):
    """Operators that no public function accounts for become nodes."""

    def __init__(self, builder: GraphBuilder) -> None:
        super().__init__()
        self.builder = builder

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        builder = self.builder
        if not builder.recording or func.overloadpacket.__name__ in _UNRECORDED:
            if not builder.recording:
                return func(*args, **kwargs)
            return func(*builder.lane(builder.into_trace(args), 0), **builder.lane(builder.into_trace(kwargs), 0))
        return builder.emit(func, args, kwargs, func, args, kwargs)


_UNRECORDED = frozenset(("_local_scalar_dense", "item", "equal", "is_nonzero"))

__all__ = ["ElementsNeeded", "FunctionRecorder", "GraphBuilder", "OperatorRecorder", "is_program", "program_frames"]
