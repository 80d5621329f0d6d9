"""`torch.jit`: scripted and traced programs, which run as Python with the same results.

TorchScript's compiler, its graphs and its files are left out: what needs them raises NotImplementedError.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from ..runtime.futures import Future, check_futures
from .interpreter import Error, TorchScriptUnsupported
from .modifiers import (
    _copy_to_script_wrapper,
    _drop,
    _IgnoreContextManager,
    _isinstance,
    _overload,
    _overload_method,
    export,
    ignore,
    unused,
)
from .scripting import (
    Attribute,
    RecursiveScriptModule,
    ScriptFunction,
    ScriptModule,
    TopLevelTracedModule,
    TracedModule,
    freeze,
    interface,
    is_scripting,
    is_tracing,
    optimize_for_inference,
    script,
    script_if_tracing,
    script_method,
    trace,
    trace_module,
    traced_graph,
)
from .tracer_warnings import TracerWarning

importlib.import_module(f"{__name__}.annotations")  # instead of the name that `from __future__` leaves here
JITException, isinstance_ = Error, isinstance  # `isinstance` is TorchScript's below
_script_if_tracing = script_if_tracing


def _get_trace_graph(f: Any, args: Any = (), kwargs: Any = None, strict: bool = True, _force_outplace: bool = False,
                     return_inputs: bool = False, _return_inputs_states: bool = False) -> Any:
    """The graph of a call of a function or module, and the result of the call.

    Args:
        f: the function or module; a module's parameters and buffers are inputs of the graph, after the arguments.
        args: the arguments, a tuple or one tensor.
        kwargs: the arguments by name.
        return_inputs: whether the inputs are returned, too.

    >>> import flambeau as torch
    >>> graph, result = torch.jit._get_trace_graph(torch.nn.Linear(2, 3), torch.ones(1, 2))
    >>> [node.kind() for node in graph.nodes()], next(graph.outputs()).type().sizes()
    (['aten::linear'], [1, 3])
    """
    args = args if isinstance_(args, tuple) else (args,)
    graph, result = traced_graph(f, args, kwargs or {})
    return (graph, result, args) if return_inputs or _return_inputs_states else (graph, result)


class ScriptWarning(Warning):
    """A warning about scripted code."""


class TracingCheckError(Exception):
    """A traced function that disagrees with the original."""


class CompilationUnit:
    """TorchScript source code to be compiled, which is refused.

    >>> import flambeau as torch
    >>> torch.jit.CompilationUnit().get_functions()
    []
    """

    def __init__(self, lang: str | None = None, _frames_up: int = 0) -> None:
        if lang is not None:
            raise TorchScriptUnsupported("CompilationUnit")

    def define(self, lang: str, rcb: Any = None, _frames_up: int = 0) -> None:
        """Compile source code, which is refused."""
        raise TorchScriptUnsupported("CompilationUnit.define")

    def create_function(self, *args: Any) -> Any:
        """Add a function of a graph, which is refused."""
        raise TorchScriptUnsupported("CompilationUnit.create_function")

    def find_function(self, name: str) -> None:
        """The function of a name: None, the unit is empty."""

    def get_functions(self) -> list[Any]:
        """The functions: none."""
        return []

    def get_class(self, name: str) -> Any:
        """The class of a name: there is none."""
        raise TorchScriptUnsupported("CompilationUnit.get_class")

    def get_interface(self, name: str) -> Any:
        """The interface of a name: there is none."""
        raise TorchScriptUnsupported("CompilationUnit.get_interface")

    def set_optimized(self, optimized: bool) -> None:
        """Whether functions are optimized; no effect."""

    def drop_all_functions(self) -> None:
        """Remove all functions: there are none."""


def annotate(the_type: Any, the_value: Any) -> Any:
    """A value, whose type TorchScript would not infer.

    >>> import flambeau as torch
    >>> torch.jit.annotate(list[int], [])
    []
    """
    return the_value


def isinstance(obj: Any, target_type: Any) -> bool:
    """Whether a value is of a type such as `list[int]`, with all of its elements.

    >>> import flambeau as torch
    >>> torch.jit.isinstance([1, 2], list[int]), torch.jit.isinstance([1, "a"], list[int])
    (True, False)
    """
    return _isinstance(obj, target_type)


def save(m: Any, f: Any, _extra_files: Any = None) -> None:
    """Write a TorchScript file, which is refused.

    Raises:
        NotImplementedError: always.

    >>> import flambeau as torch
    >>> torch.jit.save(torch.jit.script(torch.nn.Linear(1, 1)), "model.pt")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
      ...
    flambeau.jit.interpreter.TorchScriptUnsupported: torch.jit.save: flambeau runs scripted programs as Python ...
    """
    raise TorchScriptUnsupported("torch.jit.save")


def load(f: Any, map_location: Any = None, _extra_files: Any = None, _restore_shapes: bool = False) -> Any:
    """Read a TorchScript file, which is refused.

    Raises:
        NotImplementedError: always.

    >>> import flambeau as torch
    >>> torch.jit.load("model.pt")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
      ...
    flambeau.jit.interpreter.TorchScriptUnsupported: torch.jit.load: flambeau runs scripted programs as Python ...
    """
    raise TorchScriptUnsupported("torch.jit.load")


def fork(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Future[Any]:
    """A future of a call, which is run at once.

    >>> import flambeau as torch
    >>> torch.jit.wait(torch.jit.fork(abs, -1))
    1
    """
    future: Future[Any] = Future()
    try:
        future.set_result(func(*args, **kwargs))
    except Exception as error:
        future.set_exception(error)
    return future


def wait(future: Future[Any]) -> Any:
    """The result of a future.

    >>> import flambeau as torch
    >>> torch.jit.wait(torch.jit.fork(abs, -1))
    1
    """
    check_futures((future,))
    return future.wait()


_fork, _wait = fork, wait


class strict_fusion:
    """A block whose operators TorchScript should fuse: outside of TorchScript it warns.

    >>> import warnings
    >>> import flambeau as torch
    >>> with warnings.catch_warnings(action="ignore"), torch.jit.strict_fusion():
    ...     print(torch.ones(1))
    tensor([1.])
    """

    def __init__(self) -> None:
        warnings.warn("Only works in script mode", stacklevel=2)

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exception: object) -> None:
        return None


@contextmanager
def fuser(name: str) -> Iterator[None]:
    """A block with a fuser of TorchScript's; no effect."""
    yield


@contextmanager
def optimized_execution(should_optimize: bool) -> Iterator[None]:
    """A block with or without TorchScript's optimizer; no effect."""
    yield


def set_fusion_strategy(strategy: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """Set how often TorchScript specializes; no effect. Returns the previous strategy.

    >>> import flambeau as torch
    >>> before = torch.jit.set_fusion_strategy([("STATIC", 2)])
    """
    before = list(_strategy)
    _strategy[:] = strategy
    return before


_strategy = [("STATIC", 20), ("DYNAMIC", 0)]
_set_fusion_strategy = set_fusion_strategy


def enable_onednn_fusion(enabled: bool) -> None:
    """Switch TorchScript's fusion with oneDNN; no effect.

    >>> import flambeau as torch
    >>> torch.jit.enable_onednn_fusion(False)
    """
    _onednn[0] = enabled


def onednn_fusion_enabled() -> bool:
    """Whether TorchScript's fusion with oneDNN is on.

    >>> import flambeau as torch
    >>> torch.jit.onednn_fusion_enabled()
    False
    """
    return _onednn[0]


_onednn = [False]


def export_opnames(m: Any) -> list[str]:
    """The operators of a scripted module's code, which is refused."""
    raise TorchScriptUnsupported("torch.jit.export_opnames")


class _TypeStore:
    """The types of scripted modules: none are kept."""

    type_store: dict[Any, Any] = {}  # noqa: RUF012  # as in PyTorch, read and deleted from by programs


class _Recursive:
    concrete_type_store = _TypeStore()


_recursive = _Recursive()
_script = _trace = _serialization = sys.modules[__name__]  # PyTorch's submodules, which hold these names

__all__ = ["Attribute", "CompilationUnit", "Error", "Final", "Future", "RecursiveScriptModule", "ScriptFunction",
           "ScriptModule", "ScriptWarning", "TopLevelTracedModule", "TracedModule", "TracerWarning",
           "TracingCheckError", "_IgnoreContextManager", "_copy_to_script_wrapper", "_drop", "_overload",
           "_overload_method", "annotate", "enable_onednn_fusion", "export", "export_opnames", "fork",
           "freeze", "ignore", "interface", "is_scripting", "is_tracing", "isinstance", "load",
           "onednn_fusion_enabled", "optimize_for_inference", "save", "script", "script_if_tracing", "script_method",
           "set_fusion_strategy", "strict_fusion", "trace", "trace_module", "unused", "wait"]
