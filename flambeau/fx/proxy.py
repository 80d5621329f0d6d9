"""Proxies: values of a function being traced, which record what is done with them."""

from __future__ import annotations

import collections
import copy
import dis
import inspect
import logging
import operator
from bisect import bisect_left
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import flambeau as torch

from .._tensor.overriding.entry_points import note_instance
from .._tensor.parameter import Parameter
from ..utils._pytree import tree_map_
from ._compatibility import compatibility
from .code.operator_text import magic_methods, reflectable_magic_methods
from .code.python_functions import complete, method_of
from .code.torch_names import find, method_name
from .node import Node
from .tracing.tracer_base import GraphAppendingTracer, Scope, ScopeContextManager, TraceError, TracerBase, attribute_of

__all__ = ["Attribute", "GraphAppendingTracer", "MetaProxy", "ParameterProxy", "Proxy", "Scope", "ScopeContextManager",
           "TraceError", "TracerBase"]

log = logging.getLogger(__name__)


@compatibility(is_backward_compatible=False)
def assert_fn(x: object) -> None:
    """What a traced `assert` calls.

    Raises:
        AssertionError: the value is false.
    """
    if not x:
        raise AssertionError("Assertion failed")


def _instruction(frame: FrameType) -> tuple[list[dis.Instruction], int]:
    """The instructions of a frame and the index of the one that it executes."""
    instructions = list(dis.get_instructions(frame.f_code))
    return instructions, bisect_left(instructions, frame.f_lasti, key=lambda x: x.offset)


@compatibility(is_backward_compatible=True)
class Proxy:
    """A value of a function being traced: functions, methods and operators applied to it become nodes.

    Args:
        node: the node that computes the value.
        tracer: what makes the nodes; None: they are appended to the graph of `node`.

    >>> import flambeau as torch
    >>> graph = torch.fx.Graph()
    >>> x = torch.fx.Proxy(graph.placeholder("x"))
    >>> torch.relu(x) + 1
    Proxy(add)
    """

    node: Node
    tracer: TracerBase

    def __init__(self, node: Node, tracer: TracerBase | None = None) -> None:
        self.tracer = GraphAppendingTracer(node.graph) if tracer is None else tracer
        self.node = node
        note_instance(self)

    def __repr__(self) -> str:
        return f"Proxy({self.node.name})"

    def __getattr__(self, k: str) -> Attribute:
        return Attribute(self, k)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__

    def __setstate__(self, d: dict[str, Any]) -> None:
        self.__dict__ = d

    def __deepcopy__(self, memo: dict[int, Any]) -> Proxy:
        values = {}
        for name, value in self.__dict__.items():
            try:
                values[name] = copy.deepcopy(value, memo)
            except Exception:
                log.warning("Shallow copy %s of Proxy because it cannot be deepcopied. Proxy is created for node %s",
                            name, self.node.name)
                values[name] = copy.copy(value)
        result = Proxy(values["node"], values["tracer"])
        result.__dict__.update(values)
        return result

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __iter__(self) -> Iterator[Proxy]:
        frame = inspect.currentframe()
        calling = frame.f_back if frame is not None else None
        if calling is not None:
            instructions, i = _instruction(calling)
            if instructions[i].opname == "UNPACK_SEQUENCE":
                return (self[k] for k in range(instructions[i].argval))  # type: ignore[index]
        return self.tracer.iter(self)

    def __abs__(self) -> Proxy:
        return self.tracer.create_proxy("call_function", operator.abs, (self,), {})

    def __bool__(self) -> bool:
        if self.tracer.trace_asserts:
            frame = inspect.currentframe()
            calling = frame.f_back if frame is not None else None
            if calling is not None and _is_assertion(calling):
                self.tracer.create_proxy("call_function", assert_fn, (self,), {})
                return True
        return self.tracer.to_bool(self)

    def keys(self) -> Any:
        """The keys of a mapping, as `**` asks for them."""
        return self.tracer.keys(self)

    def __len__(self) -> int:
        raise RuntimeError("'len' is not supported in symbolic tracing by default. If you want this call to be "
                           "recorded, please call torch.fx.wrap('len') at module scope")

    @classmethod
    def __torch_function__(cls, orig_method: Any, types: Any, args: Any = None, kwargs: Any = None) -> Proxy:
        args, kwargs = args or (), kwargs or {}
        tracers: dict[TracerBase, None] = {}

        def find_tracer(value: Any) -> None:
            if isinstance(value, cls):
                tracers[value.tracer] = None

        tree_map_(find_tracer, args)
        tree_map_(find_tracer, kwargs)
        if len(tracers) > 1:
            raise RuntimeError(f"Found multiple different tracers {list(tracers)} while trying to trace operations "
                               f"{orig_method}")
        tracer = next(iter(tracers))
        if torch.overrides.is_tensor_method_or_property(orig_method):
            return tracer.create_proxy("call_method", method_name(orig_method), args, kwargs)
        if isinstance(orig_method, torch._ops.HigherOrderOperator):
            found = _find_arbitrary_callable(args, kwargs)
            if found is not None:
                raise RuntimeError(f"Unable to symbolically trace the HigherOrderOperator {orig_method._name} because "
                                   f"it received an arbitrary callable argument {found}. Use make_fx or dynamo tracing "
                                   "instead.")
        method = method_of(orig_method)
        if method is not None:
            return tracer.create_proxy("call_method", method, args, kwargs)
        args, kwargs = complete(orig_method, args, kwargs)
        known = find(orig_method)
        name = orig_method.__name__ if known is None else known.rpartition(".")[2]
        return tracer.create_proxy("call_function", orig_method, args, kwargs, name=tracer.graph._target_to_str(name))


def _is_assertion(frame: FrameType) -> bool:
    """Whether a frame tests the condition of an `assert` statement."""
    instructions, i = _instruction(frame)
    if instructions[i].opname not in ("POP_JUMP_IF_TRUE", "POP_JUMP_FORWARD_IF_TRUE"):
        return False
    following = instructions[i + 1]
    if not (following.opname == "LOAD_ASSERTION_ERROR"
            or (following.opname == "LOAD_GLOBAL" and following.argval == "AssertionError")):
        return False
    end = next((k for k, each in enumerate(instructions) if each.offset >= instructions[i].argval), len(instructions))
    return any(each.opname == "RAISE_VARARGS" for each in instructions[i:end])


def _find_arbitrary_callable(args: Any, kwargs: Any) -> Any:
    import functools
    import types

    kinds = (types.FunctionType, types.MethodType, types.BuiltinFunctionType, functools.partial)
    found: list[Any] = []
    tree_map_(lambda x: found.append(x) if isinstance(x, kinds) else None, (args, kwargs))
    return found[0] if found else None


@compatibility(is_backward_compatible=False)
class MetaProxy(Proxy):
    """A proxy whose nodes keep example values, computed in a mode, in `meta["val"]`."""

    def __init__(self, node: Node, tracer: TracerBase | None = None, fake_mode: Any = None) -> None:
        super().__init__(node, tracer)
        self.fake_mode = fake_mode

    def __repr__(self) -> str:
        return f"MetaProxy({self.node.name})"

    @classmethod
    def __torch_function__(cls, orig_method: Any, types: Any, args: Any = None, kwargs: Any = None) -> MetaProxy:
        args, kwargs = args or (), kwargs or {}
        first = next((arg for arg in args if isinstance(arg, MetaProxy)), None)
        if first is None:
            raise AssertionError("No MetaProxy found in arguments, but one is expected.")
        proxy = super().__torch_function__(orig_method, types, args, kwargs)
        with first.fake_mode:
            proxy.node.meta["val"] = orig_method(
                *(arg.node.meta["val"] if isinstance(arg, Proxy) else arg for arg in args), **kwargs)
        return MetaProxy(proxy.node, proxy.tracer, first.fake_mode)


@compatibility(is_backward_compatible=True)
class Attribute(Proxy):
    """An attribute of a proxy: a method if it is called, otherwise a value, whose node is made on first use."""

    def __init__(self, root: Proxy, attr: str) -> None:
        self.root, self.attr, self.tracer = root, attr, root.tracer
        self._node: Node | None = None
        note_instance(self)

    @property
    def node(self) -> Node:  # type: ignore[override]
        """The node that reads the attribute."""
        if self._node is None:
            self._node = self.tracer.create_proxy("call_function", getattr, (self.root, self.attr), {}).node
        return self._node

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


attribute_of.append(Attribute)
for _cls in (GraphAppendingTracer, Scope, ScopeContextManager, TraceError, TracerBase):
    _cls.__module__ = __name__


@compatibility(is_backward_compatible=False)
class ParameterProxy(Proxy):
    """The proxy of a parameter whose shape is known while tracing."""

    def __init__(self, tracer: TracerBase, node: Node, name: str, param: Any) -> None:
        super().__init__(node, tracer)
        if not isinstance(param, Parameter):
            raise AssertionError(f"Expected Parameter, got {type(param)}")
        self.param, self.name = param, name

    def __repr__(self) -> str:
        return f"ParameterProxy({self.name})"

    @property
    def shape(self) -> Any:
        """The parameter's shape."""
        return self.param.shape

    def size(self) -> Any:
        """The parameter's shape."""
        return self.param.size()

    def dim(self) -> int:
        """The parameter's number of dimensions."""
        return self.param.dim()

    @property
    def ndim(self) -> int:
        """The parameter's number of dimensions."""
        return self.param.ndim

    def numel(self) -> int:
        """The parameter's number of elements."""
        return self.param.numel()

    def nelement(self) -> int:
        """The parameter's number of elements."""
        return self.param.nelement()


def _define(name: str) -> None:
    target: Callable[..., Any] = getattr(operator, name, None) or operator.truediv

    def operate(*args: Any, **kwargs: Any) -> Proxy:
        return args[0].tracer.create_proxy("call_function", getattr(operator, name), args, kwargs)

    def reflected(self: Proxy, rhs: Any) -> Proxy:
        return self.tracer.create_proxy("call_function", target, (rhs, self), {})

    operate.__name__ = name
    setattr(Proxy, f"__{name.strip('_')}__", operate)
    if name in reflectable_magic_methods:
        reflected.__name__ = reflected.__qualname__ = f"__r{name.strip('_')}__"
        setattr(Proxy, reflected.__name__, reflected)


for _name in magic_methods:
    _define(_name)
_ = collections
