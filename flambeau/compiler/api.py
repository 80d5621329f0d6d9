"""`compile`, and what goes with it, as users call it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import codegen
from ..modes import active_tracer
from ..trees import tree_map
from .errors import InvalidBackend
from .execution.compiled_function import CompiledFunction
from .stance import compiled_functions

#: backends by name: whether they make programs
_BACKENDS = {"inductor": True, "aot_eager": False, "eager": False}
_usual = ["inductor"]
_MODES = ("default", "lite", "reduce-overhead", "max-autotune-no-cudagraphs", "max-autotune")


def compile(model: Callable[..., Any] | None = None, *, fullgraph: bool = False, dynamic: bool | None = None,
            backend: Any = None, mode: str | None = None, options: dict[str, Any] | None = None,
            name: str | None = None, disable: bool = False, recompile_limit: int | None = None,
            isolate_recompiles: bool = False, shapes_spec: Any = None, check: bool = False) -> Any:
    """A function, or a module, whose calls are captured as they run and then replayed as compiled programs.

    The first calls run as they always would, and are written down: forward, backward and optimizer steps, whatever
    the function does with tensors. When two calls that look alike did the same, later ones replay it as one program:
    few kernels, memory planned, no Python per operator. Calls of another look (shapes, dtypes, Python arguments, modes
    of modules, grad mode) get programs of their own; hyperparameters of optimizers may change freely. What cannot be
    replayed goes on running eagerly: `compile.explain(f)(...)` says which line is why.

    Args:
        model: the function or module; without one a decorator is returned.
        fullgraph: raise where a call cannot be replayed, instead of running it eagerly.
        dynamic: programs are made for the shapes that come; accepted, and of no effect.
        backend: "inductor" compiles; "eager" and "aot_eager" run the function as it is. None: what
            `compiler.set_default_backend` says, at first "inductor".
        mode, options, name, isolate_recompiles, shapes_spec: accepted, and of no effect.
        disable: return the function as it is.
        recompile_limit: how many kinds of calls get programs; further ones run eagerly.
        check: run each call eagerly as well, and compare.

    Raises:
        AssertionError: what is to be compiled cannot be called.
        RuntimeError: an unknown backend (`torch._dynamo.exc.InvalidBackend`) or mode; with `fullgraph`, a call that
            cannot be replayed (`Unsupported`); with `check`, a result that differs, naming the first operator whose
            result does.

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
    backend = _usual[0] if backend is None else _known(backend)
    if not callable(model):
        raise AssertionError(f"A callable function is expected, but {type(model)} is provided.")
    from ..nn import Module

    if disable:
        return model
    works = _BACKENDS[backend] and codegen.available()
    if isinstance(model, Module):
        from .module import OptimizedModule

        return OptimizedModule(model, compiled(model, fullgraph, recompile_limit, check, works))
    if isinstance(model, CompiledFunction):
        model = model.function
    return compiled(model, fullgraph, recompile_limit, check, works)


def _known(backend: Any) -> str:
    if callable(backend):
        raise RuntimeError("backends of one's own get a graph of PyTorch's FX, which flambeau has not: backend may be "
                           f"one of {', '.join(_BACKENDS)}")
    if backend not in _BACKENDS:
        raise InvalidBackend(backend)
    return backend


def compiled(function: Callable[..., Any], fullgraph: bool, recompile_limit: int | None, check: bool,
             works: bool) -> CompiledFunction:
    """The compiled form of a function."""
    return CompiledFunction(function, fullgraph=fullgraph, limit=recompile_limit, check=check, enabled=works)


def reset() -> None:
    """Forget all programs: every compiled function begins anew."""
    for each in list(compiled_functions):
        each.reset()


def is_compiling() -> bool:
    """Whether this runs inside a compiled function that is being captured.

    >>> import flambeau as torch
    >>> torch.compiler.is_compiling()
    False
    """
    return active_tracer.get() is not None


def is_dynamo_compiling() -> bool:
    """Whether this runs inside a compiled function that is being captured: `is_compiling`."""
    return is_compiling()


def is_exporting() -> bool:
    """False: there is no `torch.export`."""
    return False


def disable(fn: Callable[..., Any] | None = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """A function that is never written down: a compiled function that calls it runs eagerly.

    Args:
        fn: the function; without one a decorator is returned.
        recursive: accepted; what it calls is not written down either.
        reason: what `explain` says of it.
    """
    if fn is None:
        return functools.partial(disable, recursive=recursive, reason=reason)
    called = fn

    @functools.wraps(called)
    def outside(*args: Any, **kwargs: Any) -> Any:
        tracer = active_tracer.get()
        if tracer is not None:
            why = f": {reason}" if reason else ""
            tracer.graph_break(f"{getattr(called, '__name__', called)} is not to be compiled{why}")
        return called(*args, **kwargs)

    return outside


def list_backends(exclude_tags: Any = ("debug", "experimental")) -> list[str]:
    """The backends that `compile` knows, without those for finding faults: they run everything eagerly.

    >>> import flambeau as torch
    >>> torch.compiler.list_backends(), torch.compiler.list_backends(None)
    (['inductor'], ['aot_eager', 'eager', 'inductor'])
    """
    return sorted(name for name, works in _BACKENDS.items() if works or "debug" not in (exclude_tags or ()))


def get_default_backend() -> str:
    """What `compile` does where no backend is named."""
    return _usual[0]


def set_default_backend(backend: str | None) -> None:
    """What `compile` is to do where no backend is named; None: "inductor".

    >>> import flambeau as torch
    >>> torch.compiler.set_default_backend("eager")
    >>> torch.compiler.get_default_backend()
    'eager'
    >>> torch.compiler.set_default_backend(None)
    """
    _usual[0] = "inductor" if backend is None else _known(backend)


def cudagraph_mark_step_begin() -> None:
    """Nothing: there are no CUDA graphs."""


def allow_in_graph(fn: Callable[..., Any]) -> Callable[..., Any]:
    """The function itself: what it does with tensors is written down like anything else."""
    return fn


def assume_constant_result(fn: Callable[..., Any]) -> Callable[..., Any]:
    """The function itself: what it returns to Python is taken as it is."""
    return fn


def nested_compile_region(fn: Callable[..., Any] | None = None, **_: Any) -> Any:
    """The function itself: what it does with tensors is written down wherever it is called."""
    return (lambda function: function) if fn is None else fn


def substitute_in_graph(original_fn: Callable[..., Any], *, can_constant_fold_through: bool = False,
                        skip_signature_check: bool = False) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator that returns its function: captured calls run the original one.

    Raises:
        TypeError: one of the two is no function.
    """
    if not callable(original_fn):
        raise TypeError(f"substitute_in_graph expects a function but got {type(original_fn)!r}")

    def taken(traceable_fn: Callable[..., Any]) -> Callable[..., Any]:
        if not callable(traceable_fn):
            raise TypeError(f"@substitute_in_graph(...) expects a function but got {type(traceable_fn)!r}")
        return traceable_fn

    return taken


def wrap_numpy(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A function of tensors from one of NumPy's arrays.

    >>> import numpy as np
    >>> import flambeau as torch
    >>> torch.compiler.wrap_numpy(np.flip)(torch.arange(3))
    tensor([2, 1, 0])
    """
    from .._tensor import Tensor
    from .._tensor.functions import asarray

    def given(x: Any) -> Any:
        return x.numpy() if isinstance(x, Tensor) else x

    def found(x: Any) -> Any:
        return asarray(np.ascontiguousarray(x)) if isinstance(x, np.ndarray) else x

    @functools.wraps(fn)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = tree_map(given, (args, kwargs))
        return tree_map(found, fn(*args, **kwargs))

    return wrapped


def skip_all_guards_unsafe(guard_entries: Sequence[Any]) -> list[bool]:
    """A filter for `options={"guard_filter_fn": ...}`, which has no effect: all that was seen is looked at."""
    return [False] * len(guard_entries)


skip_guard_on_inbuilt_nn_modules_unsafe = skip_guard_on_all_nn_modules_unsafe = skip_all_guards_unsafe
keep_portable_guards_unsafe = skip_guard_on_globals_unsafe = skip_all_guards_unsafe


def keep_tensor_guards_unsafe(guard_entries: Sequence[Any], keep_parameters: bool = False) -> list[bool]:
    """A filter for `options={"guard_filter_fn": ...}`, which has no effect: all that was seen is looked at."""
    return skip_all_guards_unsafe(guard_entries)


def save_cache_artifacts() -> None:
    """None: what is compiled is kept on disk by itself (`FLAMBEAU_CACHE_DIR`)."""


def load_cache_artifacts(serialized_artifacts: bytes) -> None:
    """None: what is compiled is kept on disk by itself (`FLAMBEAU_CACHE_DIR`)."""


def set_enable_guard_collectives(enabled: bool) -> bool:
    """False: no processes train together."""
    return False
