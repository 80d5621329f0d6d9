"""`torch._dynamo`: what programs ask PyTorch's capturing of functions for, by its names there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...modes import active_tracer
from ...settings import Settings
from .. import config_defaults
from .. import errors as exc
from ..api import (
    allow_in_graph,
    assume_constant_result,
    compile,
    disable,
    is_compiling,
    list_backends,
    reset,
    substitute_in_graph,
)
from ..module import OptimizedModule
from ..stance import DEFAULT_RECOMPILE_LIMIT, policy, set_stance

_LIMITS = ("recompile_limit", "cache_size_limit")


def _told(name: str, value: Any) -> None:
    """What a setting that has an effect changes."""
    if name == "disable":
        policy.change(disabled=bool(value))
    elif name in _LIMITS:
        config._values.update(dict.fromkeys(_LIMITS, value))
        policy.change(recompile_limit=DEFAULT_RECOMPILE_LIMIT if value == config_defaults.DYNAMO[name] else value)
    elif name in ("fail_on_recompile_limit_hit", "fail_on_cache_limit_hit"):
        policy.change(fail_on_recompile_limit_hit=bool(value))
    elif name == "error_on_recompile":
        policy.change(error_on_recompile=bool(value))


#: settings; `disable`, `recompile_limit`, `fail_on_recompile_limit_hit` and `error_on_recompile` have effects, the
#: others are only kept
config = Settings("torch._dynamo.config", config_defaults.DYNAMO, _told)
patch_dynamo_config = config.patch


def optimize(backend: Any = "inductor", *, nopython: bool = False, disable: bool = False, dynamic: bool | None = None,
             **_: Any) -> Callable[[Callable[..., Any]], Any]:
    """A decorator that compiles: what `compile` was called before.

    >>> import flambeau as torch
    >>> torch._dynamo.optimize()(lambda x: x + 1)(torch.ones(2))
    tensor([2., 2.])
    """
    return lambda function: compile(function, backend=backend, fullgraph=nopython, disable=disable, dynamic=dynamic)


def optimize_assert(backend: Any = "inductor", **kwargs: Any) -> Callable[[Callable[..., Any]], Any]:
    """A decorator that compiles, and raises where a call cannot be one program."""
    return optimize(backend, nopython=True, **kwargs)


def explain(f: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """What becomes of a function: `explain(f)(...)`, or as one call; see `compile.explain`."""
    from ..explain import make_explainer  # with all that shows programs, which a program does not need

    made = make_explainer(f)
    return made(*args, **kwargs) if args or kwargs else made


def graph_break(msg: str = "") -> None:
    """The call that runs this is not one program: it runs eagerly.

    >>> import flambeau as torch
    >>> torch._dynamo.graph_break()
    """
    tracer = active_tracer.get()
    if tracer is not None:
        tracer.graph_break("graph_break()" + (f": {msg}" if msg else ""))


skip_frame = graph_break


def disallow_in_graph(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A function that is never written down, as `compiler.disable` makes it."""
    return disable(fn)


def nonstrict_trace(traceable_fn: Callable[..., Any]) -> Callable[..., Any]:
    """The function itself: what it does with tensors is written down like anything else."""
    return traceable_fn


def dont_skip_tracing(fn: Callable[..., Any] | None = None) -> Any:
    """The function itself: nothing is skipped."""
    return (lambda function: function) if fn is None else fn


def mark_dynamic(t: Any, index: Any, *, hint_override: int | None = None, min: int | None = None,
                 max: int | None = None, specialize_on: list[Any] | None = None) -> None:
    """Nothing: programs are made for the shapes that come."""


def maybe_mark_dynamic(t: Any, index: Any) -> None:
    """Nothing: programs are made for the shapes that come."""


def mark_static(t: Any, index: Any = None) -> None:
    """Nothing: programs are made for the shapes that come."""


def mark_static_address(t: Any, guard: bool = False) -> None:
    """Nothing: there are no CUDA graphs."""


__all__ = ["OptimizedModule", "allow_in_graph", "assume_constant_result", "config", "disable", "disallow_in_graph",
           "dont_skip_tracing", "exc", "explain", "graph_break", "is_compiling", "list_backends", "mark_dynamic",
           "mark_static", "mark_static_address", "maybe_mark_dynamic", "nonstrict_trace", "optimize",
           "optimize_assert", "patch_dynamo_config", "reset", "set_stance", "skip_frame", "substitute_in_graph"]
