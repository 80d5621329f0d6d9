"""`compile`, and what goes with it, as users call it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .. import jit
from ..modes import capturing
from .compiled import Compiled, existing

#: backends by name: whether they make programs
_BACKENDS = {"inductor": True, "aot_eager": False, "eager": False}
_MODES = ("default", "lite", "reduce-overhead", "max-autotune-no-cudagraphs", "max-autotune")


def compile(model: Callable[..., Any] | None = None, *, fullgraph: bool = False, dynamic: bool | None = None,
            backend: Any = "inductor", mode: str | None = None, options: dict[str, Any] | None = None,
            name: str | None = None, disable: bool = False, recompile_limit: int | None = None,
            check: bool = False) -> Any:
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
        backend: "inductor" compiles; "eager" and "aot_eager" run the function as it is.
        mode, options, name: accepted, and of no effect.
        disable: return the function as it is.
        recompile_limit: how many kinds of calls get programs; further ones run eagerly.
        check: run each call eagerly as well, and compare.

    Raises:
        AssertionError: what is to be compiled cannot be called.
        RuntimeError: an unknown backend or mode; with `fullgraph`, a call that cannot be replayed; with `check`, a
            result that differs, naming the first operator whose result does.

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
                                 check=check)
    if mode is not None and options is not None:
        raise RuntimeError("Either mode or options can be specified, but both can't be specified at the same time.")
    if mode is not None and mode not in _MODES:
        raise RuntimeError(f"Unrecognized mode={mode}, should be one of: {', '.join(_MODES)}")
    if callable(backend):
        raise RuntimeError("backends of one's own get a graph of PyTorch's FX, which flambeau has not: backend may be "
                           f"one of {', '.join(_BACKENDS)}")
    if backend not in _BACKENDS:
        raise RuntimeError(f"Invalid backend: {backend!r}, see `torch.compiler.list_backends()` for available "
                           "backends.")
    if not callable(model):
        raise AssertionError(f"A callable function is expected, but {type(model)} is provided.")
    from ..nn import Module

    if disable:
        return model
    works = _BACKENDS[backend] and jit.available()
    if isinstance(model, Module):
        from .module import OptimizedModule

        return OptimizedModule(model, compiled(model, fullgraph, recompile_limit, check, works))
    if isinstance(model, Compiled):
        model = model.function
    return compiled(model, fullgraph, recompile_limit, check, works)


def compiled(function: Callable[..., Any], fullgraph: bool, recompile_limit: int | None, check: bool,
             works: bool) -> Compiled:
    """The compiled form of a function."""
    return Compiled(function, fullgraph=fullgraph, limit=recompile_limit, check=check, works=works)


def reset() -> None:
    """Forget all programs: every compiled function begins anew."""
    for each in list(existing):
        each.forget()


def is_compiling() -> bool:
    """Whether this runs inside a compiled function that is being captured.

    >>> import flambeau as torch
    >>> torch.compiler.is_compiling()
    False
    """
    return capturing.get() is not None


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
        capture = capturing.get()
        if capture is not None:
            why = f": {reason}" if reason else ""
            capture.fail(f"{getattr(called, '__name__', called)} is not to be compiled{why}")
        return called(*args, **kwargs)

    return outside


def list_backends(exclude_tags: Any = ()) -> list[str]:
    """The backends that `compile` knows."""
    return sorted(_BACKENDS)


def get_default_backend() -> str:
    """What `compile` does where no backend is named."""
    return "inductor"


def cudagraph_mark_step_begin() -> None:
    """Nothing: there are no CUDA graphs."""


def allow_in_graph(fn: Callable[..., Any]) -> Callable[..., Any]:
    """The function itself: what it does with tensors is written down like anything else."""
    return fn


def assume_constant_result(fn: Callable[..., Any]) -> Callable[..., Any]:
    """The function itself: what it returns to Python is taken as it is."""
    return fn
