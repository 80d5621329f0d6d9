"""`torch.jit.script` and `trace`: functions and modules of TorchScript's classes, which run as Python.

A scripted module shares parameters and buffers with the module that it is made of. Its class is a subclass of the
module's own, so that all methods remain. Traced programs have graphs; there is no TorchScript code: `code`, saving and
loading are refused.
"""

from __future__ import annotations

import enum
import functools
import importlib
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, NamedTuple

from .._tensor.creation.generators import get_rng_state, set_rng_state
from ..engine.grad_mode import no_grad
from ..nn import Module
from ..nn.parameter import is_lazy
from ..nn.typename import typename
from .arguments import DeclaredArguments
from .interpreter import TorchScriptUnsupported, interpret
from .modifiers import FunctionModifiers, get_torchscript_modifier
from .tracer_warnings import WarnOfConstants

_tracing = [0]

#: what errors call a module that is traced, in PyTorch
_TRACED = "torch.jit._trace.TracedModule.__init__.<locals>.QualnameWrapper"


class Attribute(NamedTuple):
    """A value with the type that TorchScript gives it.

    >>> import flambeau as torch
    >>> torch.jit.Attribute(0.5, float).value
    0.5
    """

    value: Any
    type: Any


def is_tracing() -> bool:
    """Whether `torch.jit.trace` is running.

    >>> import flambeau as torch
    >>> torch.jit.is_tracing()
    False
    """
    return bool(_tracing[0])


def is_scripting() -> bool:
    """Whether compiled TorchScript is running: False, scripted code runs as Python.

    >>> import flambeau as torch
    >>> torch.jit.is_scripting()
    False
    """
    return False


#: the state of the trace of a graph that is running; None outside of one
tracing_state: list[Any] = [None]


def traced_graph(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], *,
                 attributes: bool = False, inline: bool = True, warns: bool = True) -> tuple[Any, Any]:
    """The graph of a call of a function or module, and the result of the call.

    Args:
        function: the function or module.
        args, kwargs: its arguments.
        attributes: whether the module is the graph's first input, and its parameters are attributes of it.
        inline: whether calls of its children are the children's nodes; otherwise they are one node each.
        warns: whether tensors that become constants are warned of.
    """
    record = importlib.import_module(f"{__package__.rpartition('.')[0]}.export.script.recording").record

    def enter(state: Any) -> None:
        tracing_state[0] = state

    with _trace_block(warns=False):
        return record(function, args, kwargs, enter, attributes=attributes, inline=inline,
                      inside=WarnOfConstants() if warns else None)


def _graph_of_examples(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], inline: bool = True) -> Any:
    """The graph of a call like that of a trace; buffers and random numbers are as before."""
    is_module = isinstance(function, Module)
    kept = {name: buffer.clone() for name, buffer in function.named_buffers()} if is_module else {}
    state = get_rng_state()
    try:
        return traced_graph(function, args, kwargs, attributes=is_module, inline=inline, warns=False)[0]
    finally:
        set_rng_state(state)
        for name, buffer in function.named_buffers() if is_module else ():
            with no_grad():
                buffer.copy_(kept[name])


class ScriptFunction:
    """A scripted or traced function: it runs as Python.

    >>> import flambeau as torch
    >>> double = torch.jit.script(lambda x: 2 * x)
    >>> isinstance(double, torch.jit.ScriptFunction), double(torch.ones(2))
    (True, tensor([2., 2.]))
    """

    _traced = False

    def __init__(self, function: Callable[..., Any], traced: bool = False, graph: Any = None) -> None:
        functools.update_wrapper(self, function)
        self._make_graph, self._graph = graph, None
        self._torchdynamo_inline = function
        self._declared = None if traced else DeclaredArguments(function)
        if traced:
            self._traced = True
        self.name = getattr(function, "__name__", type(function).__name__)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        state = tracing_state[0]
        if state is not None and not self._traced:
            return state.call("prim::CallFunction", self.name, self._run, args, kwargs)
        return self._run(*args, **kwargs)

    def _run(self, *args: Any, **kwargs: Any) -> Any:
        if self._declared is not None:
            args, kwargs = self._declared.convert(args, kwargs)
        with _trace_block(warns=False) if self._traced else nullcontext():  # the branches that the trace took
            return interpret(self._torchdynamo_inline, args, kwargs, traced=self._traced)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    @property
    def code(self) -> str:
        """The TorchScript code: there is none."""
        raise TorchScriptUnsupported("ScriptFunction.code")

    @property
    def graph(self) -> Any:
        """The graph of a traced function; of a scripted one there is none."""
        if self._graph is None:
            if self._make_graph is None:
                raise TorchScriptUnsupported("ScriptFunction.graph")
            self._graph = self._make_graph()
        return self._graph

    inlined_graph = graph

    @property
    def schema(self) -> Any:
        """The TorchScript schema: there is none."""
        raise TorchScriptUnsupported("ScriptFunction.schema")

    @property
    def qualified_name(self) -> str:
        """The name, with that of the namespace of TorchScript before it."""
        return f"__torch__.{getattr(self, '__qualname__', self.name)}"

    def graph_for(self, *args: Any, **kwargs: Any) -> Any:
        """The optimized graph for some arguments: there is none."""
        raise TorchScriptUnsupported("ScriptFunction.graph_for")

    def get_debug_state(self) -> Any:
        """The state of TorchScript's executor: there is none."""
        raise TorchScriptUnsupported("ScriptFunction.get_debug_state")

    def save_to_buffer(self, *args: Any, **kwargs: Any) -> bytes:
        """The bytes of a TorchScript file, which is refused."""
        raise TorchScriptUnsupported("ScriptFunction.save_to_buffer")

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Write a TorchScript file, which is refused."""
        raise TorchScriptUnsupported("ScriptFunction.save")

    def __reduce__(self) -> Any:
        return ScriptFunction, (self._torchdynamo_inline, self._traced)


class ScriptModule(Module):  # type: ignore[misc]
    """The base class of scripted modules, and of modules whose author declares them as such.

    >>> import flambeau as torch
    >>> isinstance(torch.jit.script(torch.nn.Linear(2, 3)), torch.jit.ScriptModule)
    True
    """

    _refuses_stateless_calls = "Jitted modules"

    @property
    def code(self) -> str:
        """The TorchScript code: there is none."""
        raise TorchScriptUnsupported("ScriptModule.code")

    @property
    def graph(self) -> Any:
        """The graph of a traced module, where a child's call is one node; of a scripted one there is none."""
        return self._traced_graph("graph", inline=False)

    @property
    def inlined_graph(self) -> Any:
        """The graph of a traced module, with those of its children; of a scripted one there is none."""
        return self._traced_graph("inlined_graph", inline=True)

    def _traced_graph(self, name: str, *, inline: bool) -> Any:
        make = self.__dict__.get("_make_graph")
        if make is None:
            raise TorchScriptUnsupported(f"ScriptModule.{name}")
        graphs = self.__dict__.setdefault("_graphs", {})
        if name not in graphs:
            graphs[name] = make(inline=inline)
        return graphs[name]

    @property
    def code_with_constants(self) -> Any:
        """The TorchScript code and its constants: there is none."""
        raise TorchScriptUnsupported("ScriptModule.code_with_constants")

    @property
    def original_name(self) -> str:
        """The name of the class."""
        return type(self).__name__

    def define(self, src: str) -> None:
        """Compile source code as a method, which is refused."""
        raise TorchScriptUnsupported("ScriptModule.define")

    def graph_for(self, *args: Any, **kwargs: Any) -> Any:
        """The optimized graph for some arguments: there is none."""
        raise TorchScriptUnsupported("ScriptModule.graph_for")

    def get_debug_state(self, *args: Any, **kwargs: Any) -> Any:
        """The state of TorchScript's executor: there is none."""
        raise TorchScriptUnsupported("ScriptModule.get_debug_state")

    def forward_magic_method(self, method_name: str, *args: Any, **kwargs: Any) -> Any:
        """Call a special method of the class.

        Raises:
            NotImplementedError: the class has none.
        """
        method = getattr(type(self), method_name, None)
        if method is None:
            raise NotImplementedError
        return method(self, *args, **kwargs)

    def save(self, f: Any, **kwargs: Any) -> None:
        """Write a TorchScript file, which is refused."""
        raise TorchScriptUnsupported("ScriptModule.save")

    def save_to_buffer(self, *args: Any, **kwargs: Any) -> bytes:
        """The bytes of a TorchScript file, which is refused."""
        raise TorchScriptUnsupported("ScriptModule.save_to_buffer")


class RecursiveScriptModule(ScriptModule):
    """A module made by `script`: its class also derives from the original's."""

    _traced = False

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not self._traced:
            args, kwargs = _declared_arguments(_original_class(self).forward).convert(args, kwargs, method=True)
        with _trace_block(warns=False) if self._traced else nullcontext():
            return interpret(super().__call__, args, kwargs, traced=self._traced)

    @property
    def original_name(self) -> str:
        """The name of the original's class."""
        return _original_class(self).__name__

    def _get_name(self) -> str:
        return "RecursiveScriptModule"

    def extra_repr(self) -> str:
        return f"original_name={self.original_name}"


class TracedModule(RecursiveScriptModule):
    """A module made by `trace`."""

    _traced = True

    def _get_name(self) -> str:
        return _original_class(self).__name__


class TopLevelTracedModule(TracedModule):
    """The outermost module made by `trace`."""


def _original_class(module: Module) -> Any:
    original: type = type(module)._original
    return original


_declared_arguments = functools.cache(DeclaredArguments)


@functools.cache
def _scripted_class(kind: Any, original: type) -> type:
    module = "torch.jit._trace" if kind._traced else "torch.jit._script"
    return type(kind.__name__, (kind, original), {"_original": original, "__module__": module,
                                                  "__doc__": original.__doc__})


def _scripted_module(module: Module, kind: type, inner: type) -> Module:
    """A module of a scripted class that shares parameters, buffers and hooks with the original."""
    if isinstance(module, ScriptModule):
        return module
    cls: Any = type(module)
    result: Module = object.__new__(_scripted_class(kind, cls))
    result.__dict__.update(module.__dict__)
    for name in ("_parameters", "_buffers", "_modules"):
        result.__dict__[name] = dict(module.__dict__[name])
    for name, child in result.__dict__["_modules"].items():
        if isinstance(child, Module):
            result.__dict__["_modules"][name] = _scripted_module(child, inner, inner)
    return result


def _require_initialized(module: Module, name: str | None = None) -> None:
    for each in module.modules():
        for kind, tensors in (("parameters", each._parameters), ("buffers", each._buffers)):
            for key, tensor in tensors.items():
                if tensor is not None and is_lazy(tensor):
                    raise RuntimeError(f"'{name or typename(each)}' has uninitialized {kind} {key}. Did you forget to "
                                       "run a forward pass?")


def script(obj: Any, optimize: None = None, _frames_up: int = 0, _rcb: Any = None, example_inputs: Any = None) -> Any:
    """A function, module or class as TorchScript's classes know it; it runs as Python.

    Args:
        obj: a function, module or class.

    Returns:
        A `ScriptFunction`, a `RecursiveScriptModule` that shares the module's parameters, or the class itself.

    Raises:
        RuntimeError: anything else, or a module with uninitialized parameters.

    >>> import flambeau as torch
    >>> double = torch.jit.script(lambda x: 2 * x)
    >>> double(torch.ones(1))
    tensor([2.])
    """
    if isinstance(obj, (ScriptFunction, ScriptModule)):
        return obj
    if isinstance(obj, Module):
        prepare = getattr(obj, "__prepare_scriptable__", None)
        prepared = prepare() if prepare is not None else obj
        _require_initialized(prepared)
        return _scripted_module(prepared, RecursiveScriptModule, RecursiveScriptModule)
    if inspect.isclass(obj):
        if issubclass(obj, Module):
            raise RuntimeError(f"Type '{obj}' cannot be compiled since it inherits from nn.Module, consider passing an "
                               "instance instead")
        return obj
    if isinstance(obj, (dict, list, enum.Enum)):
        return obj
    if callable(obj):
        if get_torchscript_modifier(obj) is FunctionModifiers.UNUSED:
            return obj
        return ScriptFunction(getattr(obj, "__func__", obj) if inspect.ismethod(obj) is False else obj)
    raise RuntimeError(f"Could not get name of python class object: {obj!r} cannot be scripted")


@contextmanager
def _trace_block(warns: bool = True) -> Iterator[None]:
    _tracing[0] += 1
    try:
        with WarnOfConstants() if warns else nullcontext():
            yield
    finally:
        _tracing[0] -= 1


def _as_arguments(example_inputs: Any) -> tuple[Any, ...]:
    if isinstance(example_inputs, (tuple, list)):
        return tuple(example_inputs)
    return (example_inputs,)


def trace(func: Any, example_inputs: Any = None, optimize: None = None, check_trace: bool = True,
          check_inputs: Any = None, check_tolerance: float = 1e-5, strict: bool = True,
          _force_outplace: bool = False, _module_class: Any = None, _compilation_unit: Any = None,
          example_kwarg_inputs: Any = None, _store_inputs: bool = True) -> Any:
    """A function or module of TorchScript's classes, after one call with example arguments; it runs as Python.

    The graph of the call (`graph` of a function, `inlined_graph` of a module) is made when it is asked for: then the
    function is called again with the same arguments.

    In PyTorch a traced function repeats the operators of that call, whichever branches later arguments would take.
    Here later calls take their own branches, but where `is_tracing()` decides: it is True in them, too.

    Args:
        func: a function or module; the method `forward` of a module means the module.
        example_inputs: its arguments, a tuple or one tensor.
        example_kwarg_inputs: its arguments by name, instead.

    Raises:
        AttributeError: another method of a module.

    >>> import flambeau as torch
    >>> double = torch.jit.trace(lambda x: 2 * x, torch.ones(1))
    >>> double(torch.ones(2))
    tensor([2., 2.])
    """
    owner = getattr(func, "__self__", None)
    if isinstance(owner, Module):
        if getattr(func, "__name__", None) != "forward":
            raise AttributeError("trace doesn't support compiling individual module's functions.\n"
                                 "Please use trace_module")
        func = owner
    if isinstance(func, ScriptModule):
        return func
    if example_inputs is None and not isinstance(example_kwarg_inputs, dict):
        raise RuntimeError("example_kwarg_inputs should be a dict")
    if isinstance(func, Module):
        _require_initialized(func, _TRACED)
    kwargs = example_kwarg_inputs or {}
    args = () if example_kwarg_inputs is not None else _as_arguments(example_inputs)
    with _trace_block():
        func(*args, **kwargs)
    make_graph = functools.partial(_graph_of_examples, func, args, kwargs)
    if isinstance(func, Module):
        module = _scripted_module(func, TopLevelTracedModule, TracedModule)
        module.__dict__["_make_graph"] = make_graph
        return module
    return ScriptFunction(func, traced=True, graph=make_graph)


def trace_module(mod: Module, inputs: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
    """A module of TorchScript's classes, after one call of each method with example arguments.

    Args:
        mod: the module.
        inputs: name of a method -> its example arguments.

    >>> import flambeau as torch
    >>> torch.jit.trace_module(torch.nn.Linear(1, 1), {"forward": torch.ones(1)}).original_name
    'Linear'
    """
    if not isinstance(mod, Module):
        raise AttributeError("expected torch.nn.Module as the first argument")
    if not isinstance(inputs, dict):
        raise AttributeError("expected a dictionary of (method_name, input) pairs")
    _require_initialized(mod, _TRACED)
    with _trace_block():
        for name, example in inputs.items():
            (mod if name == "forward" else getattr(mod, name))(*_as_arguments(example))
    return _scripted_module(mod, TopLevelTracedModule, TracedModule)


def script_if_tracing(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A function that PyTorch scripts while it traces; here the function.

    >>> import flambeau as torch
    >>> torch.jit.script_if_tracing(abs)(-1)
    1
    """
    @functools.wraps(fn)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs)

    wrapped.__original_fn = fn  # type: ignore[attr-defined]
    return wrapped


def script_method(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A method of a `ScriptModule` that its author declares as scripted; it runs as Python.

    >>> import flambeau as torch
    >>> class Twice(torch.jit.ScriptModule):
    ...     @torch.jit.script_method
    ...     def forward(self, x):
    ...         return 2 * x
    >>> Twice()(torch.ones(1))
    tensor([2.])
    """
    return fn


def interface(obj: type) -> type:
    """A class that declares methods of modules: the class.

    Raises:
        RuntimeError: not a class.

    >>> import flambeau as torch
    >>> @torch.jit.interface
    ... class Model:
    ...     def forward(self, x: torch.Tensor) -> torch.Tensor: ...
    """
    if not inspect.isclass(obj):
        raise RuntimeError("interface must be applied to a class")
    return obj


def freeze(mod: Any, preserved_attrs: list[str] | None = None, optimize_numerics: bool = True) -> Any:
    """A scripted module in evaluation mode, unchanged.

    Raises:
        RuntimeError: not a scripted module, or in training mode.

    >>> import flambeau as torch
    >>> torch.jit.freeze(torch.jit.script(torch.nn.Linear(1, 1).eval())).training
    False
    """
    if not isinstance(mod, ScriptModule):
        raise RuntimeError("Freezing expects a ScriptModule as input. Please use torch.jit.script or torch.jit.trace "
                           "to script your 'nn.Module'.")
    if mod.training:
        raise RuntimeError("Freezing is currently only implemented for modules in eval mode. Please call .eval() on "
                           "your module before freezing.")
    return mod


def optimize_for_inference(mod: Any, other_methods: list[str] | None = None) -> Any:
    """A scripted module, unchanged.

    >>> import flambeau as torch
    >>> model = torch.jit.script(torch.nn.Linear(1, 1).eval())
    >>> torch.jit.optimize_for_inference(model)(torch.ones(2, 1)).shape
    flambeau.Size([2, 1])
    """
    if not isinstance(mod, ScriptModule):
        raise RuntimeError("optimize_for_inference expects a ScriptModule as input. Please use torch.jit.script or "
                           "torch.jit.trace to script your 'nn.Module'.")
    return mod
