"""Traces of operators: a function is run, and each operator that it applies below autograd becomes a node."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

import flambeau as torch

from ..._subclasses.fake_tensor import FakeTensor
from ..._tensor.overriding.dispatch import handles
from ..._tensor.parameter import Parameter
from ...environment.extension import _storage_address
from ...func.functional import frames
from ...ops.function_operators import recorders
from ...utils._python_dispatch import TorchDispatchMode
from ...utils._pytree import tree_flatten, tree_leaves, tree_map, tree_unflatten
from .._lazy_graph_module import _make_graph_module
from .._symbolic_trace import Tracer
from ..code.pytree_codegen import _PyTreeCodeGen, _PyTreeInfo
from ..graph import Graph
from ..proxy import Proxy
from .functionalization import Functionalizer
from .subgraphs import record

__all__ = ["ProxyTorchDispatchMode", "PythonKeyTracer", "dispatch_trace", "get_isolated_graphmodule",
           "get_proxy_mode", "make_fx", "maybe_disable_thunkify", "py_sym_types"]

py_sym_types = (torch.SymInt, torch.SymFloat, torch.SymBool)
#: overload -> the function that computes it of other operators, in the block
CURRENT_DECOMPOSITION_TABLE: dict[Any, Callable[..., Any]] = {}
_modes: list[Any] = []


class PythonKeyTracer(Tracer):
    """The tracer of operators: tensors that the function did not compute become attributes."""

    def __init__(self) -> None:
        super().__init__(autowrap_modules=())
        self.root = torch.nn.Module()
        self.graph = Graph(tracer_cls=type(self))
        self.tensor_attrs = {}
        self.tensor_tracker: dict[int, tuple[Any, Proxy]] = {}
        self._by_array: dict[int, tuple[Any, Any]] = {}  # saved tensors come back as other objects of the same array
        self._by_memory: dict[tuple[Any, ...], tuple[Any, Any]] = {}
        self.constants: dict[int, Any] = {}  # made of numbers by the function

    def for_subgraph(self, name: str, inputs: list[Any], lifted: list[Any]) -> _SubgraphTracer:
        """A tracer for a function among the arguments of an operator of this one's graph."""
        return _SubgraphTracer(name, inputs, lifted)

    def check_write(self, x: torch.Tensor) -> None:
        """Called before an operator writes to a tensor."""

    def create_arg(self, a: Any) -> Any:
        """A value as the argument of a node."""
        if isinstance(a, torch.Tensor):
            found = self.tracked(a)
            if found is not None:
                return found.node
        if isinstance(a, np.ndarray) and (proxy := self._on_memory(a)) is not None:
            return proxy.node
        if isinstance(a, Parameter):
            name = next((name for name, p in self.root.named_parameters() if p is a), None)
            if name is None:
                name = self.get_fresh_qualname("_param_constant")
                setattr(self.root, name, a)
            return self.create_node("get_attr", name, (), {})
        return super().create_arg(a)

    def tracked(self, value: torch.Tensor) -> Any:
        """The proxy of a tensor that the function was given or computed; None of others."""
        found = self.tensor_tracker.get(id(value))
        if found is not None:
            return found[1]
        array = getattr(value, "_array", None)
        entry = self._by_array.get(id(array))
        if entry is not None and entry[0] is array:
            return entry[1]
        return self._on_memory(array) if type(value) is torch.Tensor else None  # a statistic that an operator saved

    def _on_memory(self, array: Any) -> Any:
        """The proxy of the tensor on the memory of an array that an operator saved, such as the indices of maxima."""
        entry = self._by_memory.get(_elements(array)) if array.__class__ is np.ndarray and array.size else None
        return None if entry is None else entry[1]

    def track(self, value: Any, proxy: Any) -> None:
        """Remember the node that computes a value, and those of its items."""
        if isinstance(value, torch.Tensor):
            self.tensor_tracker[id(value)] = (value, proxy)
            if type(value) is torch.Tensor or type(value) is Parameter:  # arrays of wrappers are placeholders
                self._by_array[id(value._array)] = value._array, proxy
                if value._array.__class__ is np.ndarray and value._array.size:
                    self._by_memory[_elements(value._array)] = value._array, proxy
            proxy.node.meta.setdefault("val", _metadata(value))
        elif isinstance(value, (list, tuple)):
            proxy.node.meta.setdefault("val", tree_map(_metadata, value))
            for i, item in enumerate(value):
                if isinstance(item, torch.Tensor):
                    self.track(item, proxy[i])


class _SubgraphTracer(PythonKeyTracer):
    """The tracer of a function among an operator's arguments: tensors from outside become more arguments.

    Args:
        name: of the function, for errors.
        inputs: its arguments.
        lifted: the tensors from outside; the tracer adds to it.
    """

    def __init__(self, name: str, inputs: list[Any], lifted: list[Any]) -> None:
        super().__init__()
        self.name, self.lifted = name, lifted
        self._inputs = [x for x in inputs if isinstance(x, torch.Tensor)]

    def create_arg(self, a: Any) -> Any:
        """A value as the argument of a node."""
        if isinstance(a, torch.Tensor) and self.tracked(a) is None and id(a) not in self.constants:
            self.lifted.append(a)
            last = next((n for n in reversed(self.graph.nodes) if n.op == "placeholder"), None)
            with self.graph.inserting_after(last) if last else self.graph.inserting_before(None):
                self.track(a, self.create_proxy("placeholder", f"arg{len(self.tensor_tracker)}_1", (), {}))
        return super().create_arg(a)

    def check_write(self, x: torch.Tensor) -> None:
        """Refuse to write to a tensor from outside.

        Raises:
            RuntimeError: it is from outside.
        """
        if id(x) not in self.tensor_tracker or any(
                _storage_address(x) == _storage_address(y) for y in (*self._inputs, *self.lifted)):
            raise RuntimeError(f"{self.name} might be modifying the input!")


def _elements(array: np.ndarray) -> tuple[Any, ...]:
    """Which elements of memory an array has, and in which order."""
    return array.__array_interface__["data"][0], array.shape, array.strides, array.dtype


def _metadata(value: Any) -> Any:
    """A value without data."""
    return value.detach().to("meta") if isinstance(value, torch.Tensor) else value


class ProxyTorchDispatchMode(TorchDispatchMode):
    """A mode in which operators become nodes.

    Args:
        tracer: the tracer.
        tracing_mode: `real`: values are computed.
        pre_dispatch: not supported.
    """

    def __init__(self, tracer: PythonKeyTracer, tracing_mode: str = "real", pre_dispatch: bool = False,
                 **settings: Any) -> None:
        super().__init__()
        self.tracer, self.tracing_mode, self.enable_tracing = tracer, tracing_mode, True

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if not self.enable_tracing:
            return func(*args, **kwargs)
        if not all(self._can_record(x) for x in tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor)):
            return NotImplemented  # the handler of the subclass runs operators on the tensors that it wraps
        if func.overloadpacket.__name__ == "lift_fresh":  # the constant may be written later
            func = torch.ops.aten.lift_fresh_copy.default
            with disable_proxy_modes_tracing():
                args = (args[0].detach().clone(),)
            self.tracer.constants[id(args[0])] = args[0]
        decomposition = CURRENT_DECOMPOSITION_TABLE.get(func)
        if decomposition is not None:
            with self:
                result = decomposition(*args, **kwargs)
            if result is not NotImplemented:
                return result
        if _writes(func) and isinstance(args[0], torch.Tensor):
            self.tracer.check_write(args[0])
        if frames:
            frame = frames[-1]
            if frame.functionalizer is None:
                frame.functionalizer = Functionalizer(self.tracer, copies=frame.copies)
            return frame.functionalizer.operator(func, args, kwargs)
        if _writes(func) and isinstance(args[0], torch.Tensor) and id(args[0]) not in self.tracer.tensor_tracker:
            self._copy_constant(args[0])
        name = func.overloadpacket.__name__
        name = self.tracer.graph._target_to_str(name)
        proxy = self.tracer.create_proxy("call_function", func, args, kwargs, name=name)
        try:
            result = func(*args, **kwargs)
        except Exception:  # the program may go on another way, as `reshape` does where there is no view
            self.tracer.graph.erase_node(proxy.node)
            raise
        self.tracer.track(result, proxy)
        return result

    def _can_record(self, x: torch.Tensor) -> bool:
        """Whether a tensor may be the argument of a node: a plain one, or one of the function's arguments."""
        return (type(x) in (torch.Tensor, Parameter) or not handles(type(x)) or isinstance(x, FakeTensor)
                or id(x) in self.tracer.tensor_tracker)

    def _copy_constant(self, value: Any) -> None:
        """Make a constant that is about to be written a copy of its present value."""
        with disable_proxy_modes_tracing():
            constant = value.detach().clone()
        clone = torch.ops.aten.clone.default
        self.tracer.track(value, self.tracer.create_proxy("call_function", clone, (constant,), {}))


def _writes(func: Any) -> bool:
    """Whether an overload writes to its first argument."""
    try:
        return bool(func._schema.is_mutable)
    except AttributeError:
        return False


def get_proxy_mode() -> ProxyTorchDispatchMode | None:
    """The mode in which operators become nodes, if one is active."""
    return _modes[-1] if _modes else None


get_innermost_proxy_mode = get_proxy_mode


@contextmanager
def disable_proxy_modes_tracing(*args: Any, **kwargs: Any) -> Iterator[None]:
    """A context manager in which operators do not become nodes."""
    mode = get_proxy_mode()
    if mode is None:
        yield
        return
    mode.enable_tracing = False
    recorders.append(None)
    try:
        yield
    finally:
        recorders.pop()
        mode.enable_tracing = True


@contextmanager
def maybe_disable_thunkify() -> Iterator[None]:
    """A context manager that changes nothing: sizes are known numbers."""
    yield


maybe_enable_thunkify = maybe_disable_thunkify


@contextmanager
def decompose(decomposition_table: Any) -> Iterator[dict[Any, Any]]:
    """A context manager in which a table of decompositions is used."""
    global CURRENT_DECOMPOSITION_TABLE
    former = CURRENT_DECOMPOSITION_TABLE
    CURRENT_DECOMPOSITION_TABLE = dict(decomposition_table or {})
    try:
        yield CURRENT_DECOMPOSITION_TABLE
    finally:
        CURRENT_DECOMPOSITION_TABLE = former


def _is_public(function: Any) -> bool:
    return getattr(torch, getattr(function, "__name__", ""), None) is function


def _parameter_names(f: Any, count: int) -> list[str]:
    """The names of a function's parameters; `arg0`, ... if they are not known."""
    function = inspect.unwrap(getattr(f, "forward", f) if isinstance(f, torch.nn.Module) else f, stop=_is_public)
    code = getattr(function, "__code__", None)
    if (code is None or isinstance(f, torch.nn.Module) or code.co_flags & inspect.CO_VARARGS
            or _is_public(function)):  # PyTorch's functions have no signature
        return [f"arg{i}" for i in range(count)]
    return list(code.co_varnames[:code.co_argcount + code.co_kwonlyargcount])


def make_fx(f: Callable[..., Any], decomposition_table: Any = None, tracing_mode: str = "real",
            _allow_non_fake_inputs: bool = False, *, pre_dispatch: bool = False,
            record_module_stack: bool = False, _allow_fake_constant: bool = False,
            _error_on_data_dependent_ops: bool = True, record_stack_traces: bool = False, **settings: Any) -> Any:
    """A function that runs `f` and returns a module of the operators that it applies below autograd.

    Args:
        f: the function or module.
        decomposition_table: overload -> function that computes it of others.
        tracing_mode: `real`, `fake` or `symbolic`: values are computed, and sizes are constants, in each of them.
        record_stack_traces: whether nodes keep the Python stack.
        pre_dispatch, record_module_stack: kept for callers; not used.

    >>> import flambeau as torch
    >>> from flambeau.fx.experimental.proxy_tensor import make_fx
    >>> print(make_fx(lambda x: torch.exp(x) * 2)(torch.ones(2)).code.strip())
    def forward(self, x_1):
        exp = torch.ops.aten.exp.default(x_1);  x_1 = None
        mul = torch.ops.aten.mul.Tensor(exp, 2);  exp = None
        return mul
    """
    if tracing_mode not in ("real", "fake", "symbolic"):
        raise AssertionError(f"tracing_mode must be one of 'real', 'fake', 'symbolic', got {tracing_mode}")

    def wrapped(*args: Any) -> Any:
        tracer = PythonKeyTracer()
        tracer.record_stack_traces = record_stack_traces
        with decompose(decomposition_table):
            graph = _trace(tracer, f, args)
        name = type(f).__name__ if isinstance(f, torch.nn.Module) else getattr(f, "__name__", type(f).__name__)
        return _make_graph_module(tracer.root, graph, name)

    return wrapped


def _trace(tracer: PythonKeyTracer, f: Any, args: tuple[Any, ...]) -> Graph:
    if isinstance(f, torch.nn.Module):
        tracer.root = torch.nn.Module()
    names = _parameter_names(f, len(args))
    if len(names) != len(args):
        raise RuntimeError(f"Tracing expected {len(names)} arguments but got {len(args)} concrete arguments")
    replaced: list[Any] = []
    for name, value in zip(names, args, strict=True):
        leaves, spec = tree_flatten(value)
        own = []
        for i, leaf in enumerate(leaves):
            proxy = tracer.create_proxy("placeholder", f"{name}_{i + 1}", (), {})
            if isinstance(leaf, torch.Tensor):
                if id(leaf) in tracer.tensor_tracker:
                    leaf = leaf.view_as(leaf)
                tracer.track(leaf, proxy)
            own.append(leaf)
        replaced.append(tree_unflatten(own, spec))
    _, in_spec = tree_flatten(args)
    mode = ProxyTorchDispatchMode(tracer)
    _modes.append(mode)
    recorders.append(functools.partial(record, mode, _trace, disable_proxy_modes_tracing))
    try:
        with mode:
            result = f(*replaced)
    finally:
        recorders.pop()
        _modes.pop()
    leaves, out_spec = tree_flatten(result)
    nested = not all(child.is_leaf() for child in in_spec.children())
    output = tracer.create_arg(leaves if nested else result)
    called = f.forward if isinstance(f, torch.nn.Module) else f
    annotations = {} if _is_public(inspect.unwrap(called, stop=_is_public)) else getattr(called, "__annotations__", {})
    tracer.create_node("output", "output", (output,), {}, type_expr=annotations.get("return"))
    if nested:
        tracer.graph._codegen = _PyTreeCodeGen(_PyTreeInfo(names, in_spec, out_spec))
    return tracer.graph


def dispatch_trace(root: Any, tracer: PythonKeyTracer, concrete_args: tuple[Any, ...] = ()) -> Any:
    """The module of the operators that a function applies to arguments."""
    return _make_graph_module(tracer.root, _trace(tracer, root, tuple(concrete_args)), type(root).__name__)


def get_isolated_graphmodule(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], tracing_mode: str = "real",
                             decomposition_table: Any = None) -> Any:
    """A module of the operators that a function applies, of the leaves of its arguments."""
    leaves, spec = tree_flatten((args, kwargs))

    def flat(*values: Any) -> Any:
        positional, named = tree_unflatten(list(values), spec)
        return func(*positional, **named)

    return make_fx(flat, decomposition_table, tracing_mode)(*leaves)
