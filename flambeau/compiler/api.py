"""The public functions of `torch.compiler`: `compile`, `disable`, backends, and PyTorch's hints to its compiler."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any, NoReturn

import numpy as np

from .. import codegen
from ..modes import active_tracer
from ..trees import tree_map
from .backend_registry import BUILT_IN, backend_named
from .execution.compiled_function import CompiledFunction, runs_unchanged
from .stance import compiled_functions

_default_backend: list[Any] = ["inductor"]
_MODES = ("default", "lite", "reduce-overhead", "max-autotune-no-cudagraphs", "max-autotune")


def compile(model: Callable[..., Any] | None = None, *, fullgraph: bool = False, dynamic: bool | None = None,
            backend: Any = None, mode: str | None = None, options: dict[str, Any] | None = None,
            name: str | None = None, disable: bool = False, recompile_limit: int | None = None,
            isolate_recompiles: bool = False, shapes_spec: Any = None, check: bool = False) -> Any:
    """Compile a function or a module: trace its first calls, then replay them as one program of fused kernels.

    The first calls run eagerly while a tracer records every operator: forward, backward and optimizer steps. When two
    traces of calls with the same signature agree, later calls whose guards hold replay the program: few kernels,
    planned memory, no Python per operator. Each signature (dtypes, Python arguments, grad mode, aliasing) is compiled
    separately, and so are shapes until a second one shows which sizes vary; optimizers' hyperparameters are inputs and
    may change. A call that cannot be traced runs eagerly; `compile.explain(f)(...)` reports the line that prevents it.

    Args:
        model: the function or module. None: return a decorator.
        fullgraph: raise `Unsupported` where a call cannot be compiled, instead of running it eagerly.
        dynamic: whether a program serves all sizes of tensors. None: from the second shape on, for the sizes that
            differ; True: from the first one on; False: each shape is compiled separately.
        backend: "inductor" compiles; "eager" and "aot_eager" run the function unchanged. None: the default backend
            (`compiler.set_default_backend`), initially "inductor". A function gets the graph of a call, a `GraphModule`
            of functions and methods of tensors, and examples of its inputs, and returns a function that computes the
            results of this call and of later equal ones.
        mode, options, name, isolate_recompiles, shapes_spec: accepted, without effect. Names and types of options are
            checked: they are settings of `torch._inductor.config`.
        disable: return `model` unchanged.
        recompile_limit: the largest number of compiled signatures; calls with further ones run eagerly.
        check: run each call eagerly as well, and compare the results operator by operator.

    Raises:
        AssertionError: `model` is not callable.
        RuntimeError: an unknown backend (`torch._dynamo.exc.InvalidBackend`), mode or option; with `fullgraph`, a call
            that cannot be compiled (`Unsupported`); with `check`, a compiled result that differs from the eager one.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.compile.html

    >>> import flambeau as torch
    >>> @torch.compile
    ... def f(x):
    ...     return (x * x + 1).sum()
    >>> [float(f(torch.full((3,), float(i)))) for i in range(4)]
    [3.0, 6.0, 15.0, 30.0]
    """
    if model is None:
        return functools.partial(compile, fullgraph=fullgraph, dynamic=dynamic, backend=backend, mode=mode,
                                 options=options, name=name, disable=disable, recompile_limit=recompile_limit,
                                 isolate_recompiles=isolate_recompiles, shapes_spec=shapes_spec, check=check)
    if mode is not None and options is not None:
        raise RuntimeError("Either mode or options can be specified, but both can't be specified at the same time.")
    if mode is not None and mode not in _MODES:
        raise RuntimeError(f"Unrecognized mode={mode}, should be one of: {', '.join(_MODES)}")
    backend = _default_backend[0] if backend is None else _check_backend(backend)
    if not callable(model):
        raise AssertionError(f"A callable function is expected, but {type(model)} is provided.")
    from ..nn import Module

    if options and backend == "inductor":
        from .inductor import check_options

        check_options({key: value for key, value in options.items() if key != "guard_filter_fn"})
    if disable:
        return model
    make: Callable[[Callable[..., Any]], CompiledFunction]
    if callable(backend):
        from .execution.backend_function import BackendFunction

        make = functools.partial(BackendFunction, backend=backend, fullgraph=fullgraph, limit=recompile_limit,
                                 dynamic=dynamic)
    else:
        make = functools.partial(compiled, fullgraph=fullgraph, recompile_limit=recompile_limit, check=check,
                                 compiles=BUILT_IN[backend] and codegen.available(), dynamic=dynamic)
    if isinstance(model, Module):
        from .module import OptimizedModule

        inner: Any = model.module if hasattr(type(model), "_call_through") else model  # of DistributedDataParallel
        return OptimizedModule(model, make(inner))
    if isinstance(model, CompiledFunction):
        model = model.function
    if isinstance(model, type):  # its instances are called, not the class
        name = "forward" if issubclass(model, Module) else "__call__"
        if name == "forward" or any(name in each.__dict__ for each in model.__mro__):
            method = getattr(model, name)
            method = method.function if isinstance(method, CompiledFunction) else method
            setattr(model, name, make(method))
        return model
    return make(model)


def _check_backend(backend: Any) -> Any:
    return backend if callable(backend) else backend_named(backend)


def compiled(function: Callable[..., Any], fullgraph: bool, recompile_limit: int | None, check: bool,
             compiles: bool, dynamic: bool | None = None) -> CompiledFunction:
    """Wrap a function in a `CompiledFunction`."""
    return CompiledFunction(function, fullgraph=fullgraph, limit=recompile_limit, check=check, enabled=compiles,
                            dynamic=dynamic)


def reset() -> None:
    """Drop the programs of all compiled functions, which are then traced again.

    >>> import flambeau as torch
    >>> torch.compiler.reset()
    """
    for function in list(compiled_functions):
        function.reset()


#: whether `torch.export.export` runs a module in this thread
active_export: ContextVar[bool] = ContextVar("active_export", default=False)


def is_compiling() -> bool:
    """Return whether a compiled function is being traced, or a module exported, in this thread.

    Functions of the backends "eager" and "aot_eager", which compile nothing, count as traced.

    >>> import flambeau as torch
    >>> torch.compiler.is_compiling()
    False
    """
    return active_tracer.get() is not None or runs_unchanged.get() or active_export.get()


def is_dynamo_compiling() -> bool:
    """Return whether a compiled function is being traced in this thread.

    >>> import flambeau as torch
    >>> torch.compiler.is_dynamo_compiling()
    False
    """
    return active_tracer.get() is not None or runs_unchanged.get()


def is_exporting() -> bool:
    """Return whether `torch.export.export` runs a module in this thread.

    >>> import flambeau as torch
    >>> torch.compiler.is_exporting()
    False
    """
    return active_export.get()


def disable(fn: Callable[..., Any] | None = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """Exclude a function from compilation: a compiled function that calls it runs eagerly.

    Args:
        fn: the function. None: return a decorator.
        recursive: accepted, without effect: functions that `fn` calls are excluded too.
        reason: the text that `explain` gives as the reason.

    >>> import flambeau as torch
    >>> @torch.compiler.disable(reason="logs")
    ... def double(x):
    ...     return x * 2
    >>> double(torch.ones(2))
    tensor([2., 2.])
    """
    if fn is None:
        return functools.partial(disable, recursive=recursive, reason=reason)
    function = fn

    @functools.wraps(function)
    def disabled(*args: Any, **kwargs: Any) -> Any:
        tracer = active_tracer.get()
        if tracer is not None:
            detail = f": {reason}" if reason else ""
            tracer.graph_break(f"{getattr(function, '__name__', function)} is excluded from compilation{detail}")
            if tracer.on_break is not None:
                tracer.on_break((args, kwargs))
            with tracer.outside_of_graphs():
                return function(*args, **kwargs)
        if not runs_unchanged.get():
            return function(*args, **kwargs)
        token = runs_unchanged.set(False)
        try:
            return function(*args, **kwargs)
        finally:
            runs_unchanged.reset(token)

    vars(disabled).update(_torchdynamo_disable=True, _torchdynamo_disable_msg=reason,
                          _torchdynamo_disable_recursive=recursive, _torchdynamo_orig_callable=function)
    return disabled


_disable_dynamo = disable  # its name in `torch`, which PyTorch's own code uses


def get_default_backend() -> Any:
    """Return the backend that `compile` uses if none is given.

    >>> import flambeau as torch
    >>> torch.compiler.get_default_backend()
    'inductor'
    """
    return _default_backend[0]


def set_default_backend(backend: Any) -> None:
    """Set the backend that `compile` uses if none is given.

    Args:
        backend: one of `list_backends(None)`, or a function, as for `compile`. None: "inductor".

    Raises:
        RuntimeError: an unknown backend (`torch._dynamo.exc.InvalidBackend`).

    >>> import flambeau as torch
    >>> torch.compiler.set_default_backend("eager")
    >>> torch.compiler.get_default_backend()
    'eager'
    >>> torch.compiler.set_default_backend(None)
    """
    _default_backend[0] = "inductor" if backend is None else _check_backend(backend)


def cudagraph_mark_step_begin() -> None:
    """Do nothing: there are no CUDA graphs.

    >>> import flambeau as torch
    >>> torch.compiler.cudagraph_mark_step_begin()
    """


def allow_in_graph(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Return `fn` unchanged: its operators are traced like any others.

    >>> import flambeau as torch
    >>> torch.compiler.allow_in_graph(abs) is abs
    True
    """
    return fn


def assume_constant_result(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Return `fn` unchanged: results that are Python objects are constants of the trace anyway.

    >>> import flambeau as torch
    >>> torch.compiler.assume_constant_result(len) is len
    True
    """
    return fn


def nested_compile_region(fn: Callable[..., Any] | None = None, **_: Any) -> Any:
    """Return `fn` unchanged (without it, a decorator that does): its operators are traced wherever it is called.

    >>> import flambeau as torch
    >>> torch.compiler.nested_compile_region(abs) is abs
    True
    """
    return (lambda function: function) if fn is None else fn


def substitute_in_graph(original_fn: Callable[..., Any], *, can_constant_fold_through: bool = False,
                        skip_signature_check: bool = False) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that returns its function unchanged: traced calls run the original function.

    Args:
        original_fn: the function that PyTorch would replace while tracing.
        can_constant_fold_through, skip_signature_check: accepted, without effect.

    Raises:
        TypeError: `original_fn`, or the decorated object, is not callable.

    >>> import flambeau as torch
    >>> @torch.compiler.substitute_in_graph(abs)
    ... def absolute(x):
    ...     return x if x >= 0 else -x
    >>> absolute(-1)
    1
    """
    if not callable(original_fn):
        raise TypeError(f"substitute_in_graph expects a function but got {type(original_fn)!r}")

    def wrapper(traceable_fn: Callable[..., Any]) -> Callable[..., Any]:
        if not callable(traceable_fn):
            raise TypeError(f"@substitute_in_graph(...) expects a function but got {type(traceable_fn)!r}")
        return traceable_fn

    return wrapper


def wrap_numpy(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that converts tensors to NumPy arrays, calls `fn`, and converts arrays back to tensors.

    Args:
        fn: a function of NumPy arrays, also within lists, tuples and dicts.

    >>> import numpy as np
    >>> import flambeau as torch
    >>> torch.compiler.wrap_numpy(np.flip)(torch.arange(3))
    tensor([2, 1, 0])
    """
    from .._tensor import Tensor
    from .._tensor.functions import asarray

    def to_array(x: Any) -> Any:
        return x.numpy() if isinstance(x, Tensor) else x

    def to_tensor(x: Any) -> Any:
        return asarray(np.ascontiguousarray(x)) if isinstance(x, np.ndarray) else x

    @functools.wraps(fn)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = tree_map(to_array, (args, kwargs))
        return tree_map(to_tensor, fn(*args, **kwargs))

    return wrapped


def skip_all_guards_unsafe(guard_entries: Sequence[Any]) -> list[bool]:
    """Guard filter for `options={"guard_filter_fn": ...}`, which `compile` ignores: all guards are checked.

    Args:
        guard_entries: the guards.

    Returns:
        False for each guard, as PyTorch's filter does.

    >>> import flambeau as torch
    >>> torch.compiler.skip_all_guards_unsafe(["a guard"])
    [False]
    """
    return [False] * len(guard_entries)


skip_guard_on_inbuilt_nn_modules_unsafe = skip_guard_on_all_nn_modules_unsafe = skip_all_guards_unsafe
keep_portable_guards_unsafe = skip_guard_on_globals_unsafe = skip_all_guards_unsafe


def keep_tensor_guards_unsafe(guard_entries: Sequence[Any], keep_parameters: bool = False) -> list[bool]:
    """Guard filter for `options={"guard_filter_fn": ...}`, which `compile` ignores: all guards are checked.

    >>> import flambeau as torch
    >>> torch.compiler.keep_tensor_guards_unsafe(["a guard"])
    [False]
    """
    return skip_all_guards_unsafe(guard_entries)


def save_cache_artifacts() -> None:
    """Return None: programs are stored in the persistent cache (`FLAMBEAU_CACHE_DIR`) as they are compiled.

    >>> import flambeau as torch
    >>> torch.compiler.save_cache_artifacts() is None
    True
    """


def load_cache_artifacts(serialized_artifacts: bytes) -> None:
    """Return None: programs are read from the persistent cache (`FLAMBEAU_CACHE_DIR`) when they are needed.

    >>> import flambeau as torch
    >>> torch.compiler.load_cache_artifacts(b"") is None
    True
    """


def load_compiled_function(file: Any, *, f_globals: dict[str, Any] | None = None,
                           external_data: dict[str, Any] | None = None) -> NoReturn:
    """Refuse: compiled functions are not written to files.

    Raises:
        NotImplementedError: always; the text says what is there instead.

    >>> import io
    >>> import flambeau as torch
    >>> torch.compiler.load_compiled_function(io.BytesIO())
    Traceback (most recent call last):
      ...
    NotImplementedError: torch.compiler.load_compiled_function: ...
    """
    raise NotImplementedError("torch.compiler.load_compiled_function: compiled functions are not written to files; "
                              "torch.export.save and ExportedProgram.save write programs, and the code of compiled "
                              "functions is kept in the persistent cache (FLAMBEAU_CACHE_DIR)")


def set_enable_guard_collectives(enabled: bool) -> bool:
    """Return False: there is no distributed training.

    >>> import flambeau as torch
    >>> torch.compiler.set_enable_guard_collectives(True)
    False
    """
    return False
