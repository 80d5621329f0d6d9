"""`torch._dynamo`: PyTorch's names for tracing, its settings, and hints to its tracer."""

from __future__ import annotations

import functools
import importlib
import warnings
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
    reset,
    substitute_in_graph,
)
from ..module import OptimizedModule
from ..stance import DEFAULT_RECOMPILE_LIMIT, policy, set_stance
from . import backends as backends
from . import eval_frame as eval_frame
from . import utils as utils
from .backends.registry import list_backends, lookup_backend, register_backend
from .eval_frame import is_dynamo_supported

_LIMITS = ("recompile_limit", "cache_size_limit")
#: modules of this package that are imported when they are first read
_LAZY = frozenset(("compiled_autograd", "_trace_wrapped_higher_order_op", "decorators", "external_utils"))


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")



def _agrees(graph: Any, run: Callable[..., Any], examples: list[Any]) -> bool:
    """Whether what a backend returned computes what its graph does."""
    return utils.same(graph(*utils.clone_inputs(examples)), run(*utils.clone_inputs(examples)))


def _on_change(name: str, value: Any) -> None:
    """Apply a new value of a setting to the dispatch policy."""
    if name == "disable":
        policy.change(disabled=bool(value))
    elif name in _LIMITS:
        config._values.update(dict.fromkeys(_LIMITS, value))
        policy.change(recompile_limit=DEFAULT_RECOMPILE_LIMIT if value == config_defaults.DYNAMO[name] else value)
    elif name in ("fail_on_recompile_limit_hit", "fail_on_cache_limit_hit"):
        policy.change(fail_on_recompile_limit_hit=bool(value))
    elif name == "verify_correctness":
        policy.change(verify_correctness=_agrees if value else None)
    elif name in ("error_on_recompile", "automatic_dynamic_shapes", "assume_static_by_default"):
        policy.change(**{name: bool(value)})


#: settings; `disable`, `recompile_limit`, `fail_on_recompile_limit_hit`, `error_on_recompile`, `verify_correctness`,
#: `automatic_dynamic_shapes` and `assume_static_by_default` have effects, the others are stored without effect
config = Settings("torch._dynamo.config", config_defaults.DYNAMO, _on_change)
patch_dynamo_config = config.patch


def optimize(backend: Any = "inductor", *, nopython: bool = False, disable: bool = False, dynamic: bool | None = None,
             **_: Any) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator that compiles: the deprecated form of `compile`.

    Args:
        backend, disable, dynamic: as for `compile`.
        nopython: `fullgraph` of `compile`.

    Raises:
        RuntimeError: an unknown backend (`torch._dynamo.exc.InvalidBackend`).

    >>> import flambeau as torch
    >>> torch._dynamo.optimize()(lambda x: x + 1)(torch.ones(2))
    tensor([2., 2.])
    """
    return lambda function: compile(function, backend=backend, fullgraph=nopython, disable=disable, dynamic=dynamic)


def optimize_assert(backend: Any = "inductor", **kwargs: Any) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator that compiles with `fullgraph=True`.

    >>> import flambeau as torch
    >>> torch._dynamo.optimize_assert()(lambda x: x + 1)(torch.ones(2))
    tensor([2., 2.])
    """
    return optimize(backend, nopython=True, **kwargs)


def explain(f: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Explain a compiled function, as `explain(f)(...)` or `explain(f, ...)`; see `compile.explain`.

    Args:
        f: the function.
        args, kwargs: its arguments; without any, return a function that takes them.

    >>> import flambeau as torch
    >>> from flambeau import codegen
    >>> explanation = torch._dynamo.explain(lambda x: x.exp())(torch.ones(4))
    >>> explanation.graph_break_count if codegen.available() else 0
    0
    """
    from ..explain import make_explainer  # imports the printers, which replay does not need

    explainer = make_explainer(f)
    return explainer(*args, **kwargs) if args or kwargs else explainer


def reset_code_caches() -> None:
    """Drop the programs of all compiled functions; settings and marks stay.

    >>> import flambeau as torch
    >>> torch._dynamo.reset_code_caches()
    """
    reset()


def is_inductor_supported() -> bool:
    """Whether functions can be compiled to machine code: whether LLVM is there.

    >>> import flambeau as torch
    >>> from flambeau import codegen
    >>> torch._dynamo.is_inductor_supported() == codegen.available()
    True
    """
    from ... import codegen

    return codegen.available()


def run(fn: Callable[..., Any] | None = None) -> Any:
    """Let compiled functions replay the programs that they have, and run eagerly otherwise; nothing is compiled.

    Args:
        fn: a function, such as a compiled one. None: return a decorator.

    >>> import flambeau as torch
    >>> compiled = torch.compile(lambda x: x + 1)
    >>> torch._dynamo.run(compiled)(torch.ones(2))
    tensor([2., 2.])
    """
    if fn is None:
        return run

    @functools.wraps(fn, updated=())
    def replayed(*args: Any, **kwargs: Any) -> Any:
        with set_stance("eager_on_recompile"):
            return fn(*args, **kwargs)

    return replayed


def export(f: Callable[..., Any], *extra_args: Any, aten_graph: bool = False, pre_dispatch: bool = False,
           decomposition_table: Any = None, tracing_mode: str = "symbolic", dynamic_shapes: Any = None,
           specialize_float: bool = True, assume_static_by_default: bool = False, same_signature: bool = True,
           disable_constraint_solver: bool = False, prefer_deferred_runtime_asserts_over_guards: bool = False,
           _log_export_usage: bool = True, constraints: Any = None, **extra_kwargs: Any) -> Any:
    """Export a call of a function as a graph of functions and methods of tensors: `export(f)(*args)`.

    Args:
        f: a function or a module.
        extra_args, extra_kwargs: arguments of the call, in the deprecated form `export(f, *args)`.
        aten_graph: make a graph of the operators in `torch.ops.aten`.
        decomposition_table: decompositions of these operators.
        same_signature: give the graph the function's arguments and results; else the tensors that it reads.
        dynamic_shapes, constraints, and all others: accepted, without effect: sizes are those of the call.

    Returns:
        A pair: `graph_module` and `guards`.

    Raises:
        UserError: a branch depends on a tensor's elements (`torch._dynamo.exc.UserError`).
        Unsupported: the call cannot be one graph.

    >>> import flambeau as torch
    >>> graph, guards = torch._dynamo.export(lambda x: x.sin() + 1)(torch.zeros(2))
    >>> graph(torch.zeros(2))
    tensor([1., 1.])
    """
    def exported(*args: Any, **kwargs: Any) -> Any:
        made: Any = importlib.import_module(f"{__name__}.exporting")
        return made.export(f, args, kwargs, aten_graph, decomposition_table, same_signature)

    if extra_args or extra_kwargs:
        warnings.warn("export(f, *args, **kwargs) is deprecated, use export(f)(*args, **kwargs) instead.  "
                      "If you don't migrate, we may break your export call in the future if your user defined kwargs "
                      "conflict with future kwargs added to export(f).", FutureWarning, stacklevel=2)
        return exported(*extra_args, **extra_kwargs)
    return exported


def graph_break(msg: str = "") -> None:
    """Break the graph: a compiled function that calls this runs eagerly.

    Args:
        msg: added to the reason that `explain` reports.

    >>> import flambeau as torch
    >>> torch._dynamo.graph_break()
    """
    tracer = active_tracer.get()
    if tracer is not None:
        tracer.graph_break("graph_break()" + (f": {msg}" if msg else ""))


skip_frame = graph_break


def disallow_in_graph(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Exclude a function from compilation, as `compiler.disable` does.

    >>> import flambeau as torch
    >>> torch._dynamo.disallow_in_graph(len)([1, 2])
    2
    """
    return disable(fn)


def nonstrict_trace(traceable_fn: Callable[..., Any]) -> Callable[..., Any]:
    """Return `traceable_fn` unchanged: its operators are traced like any others.

    >>> import flambeau as torch
    >>> torch._dynamo.nonstrict_trace(len) is len
    True
    """
    return traceable_fn


def dont_skip_tracing(fn: Callable[..., Any] | None = None) -> Any:
    """Return `fn` unchanged: no functions are skipped.

    >>> import flambeau as torch
    >>> torch._dynamo.dont_skip_tracing(len) is len
    True
    """
    return (lambda function: function) if fn is None else fn


def mark_dynamic(t: Any, index: Any, *, hint_override: int | None = None, min: int | None = None,
                 max: int | None = None, specialize_on: list[Any] | None = None) -> None:
    """Mark a dimension of a tensor: programs serve all sizes of it, from the first shape on.

    Args:
        t: an argument of a compiled function.
        index: the dimension, or several.
        hint_override, min, max, specialize_on: accepted, without effect.

    Raises:
        AssertionError: `index` is of another type.

    A call that is compiled raises `torch.fx.experimental.symbolic_shapes.ConstraintViolationError` if the function
    depends on the size, except for sizes of 0 and 1.

    >>> import flambeau as torch
    >>> x = torch.ones(2)
    >>> torch._dynamo.mark_dynamic(x, 0)
    >>> x._dynamo_dynamic_indices
    {0}
    """
    _mark(t, "_dynamo_dynamic_indices", index)


def mark_unbacked(t: Any, index: Any, hint_override: int | None = None, strict: bool = False,
                  specialize_on: list[Any] | None = None, shape_id: str | None = None, min: int | None = None,
                  max: int | None = None) -> None:
    """Mark a dimension of a tensor: a program serves all sizes of it, 0 and 1 as any other.

    Args:
        t: an argument of a compiled function.
        index: the dimension, or several.
        hint_override, strict, specialize_on, shape_id, min, max: accepted, without effect.

    Raises:
        AssertionError: `index` is of another type.

    >>> import flambeau as torch
    >>> torch._dynamo.decorators.mark_unbacked(torch.ones(2), 0)
    """
    _mark(t, "_dynamo_unbacked_indices", index)
    _mark(t, "_dynamo_weak_dynamic_indices", index)


def maybe_mark_dynamic(t: Any, index: Any) -> None:
    """Mark a dimension of a tensor as `mark_dynamic` does, without an error if the function depends on its size.

    Args:
        t: an argument of a compiled function.
        index: the dimension, or several.

    Raises:
        AssertionError: `index` is of another type.

    >>> import flambeau as torch
    >>> torch._dynamo.maybe_mark_dynamic(torch.ones(2), 0)
    """
    _mark(t, "_dynamo_weak_dynamic_indices", index)


def mark_static(t: Any, index: Any = None) -> Any:
    """Mark a dimension of a tensor: a program serves one size of it.

    Args:
        t: an argument of a compiled function, or a class of modules, which is returned.
        index: the dimension, or several. None: all.

    Raises:
        TypeError: `t` is neither.
        AssertionError: `index` is of another type.

    >>> import flambeau as torch
    >>> torch._dynamo.mark_static(torch.ones(2), 0)
    """
    from ..._tensor import Tensor
    from ...nn import Module

    if isinstance(t, type) and issubclass(t, Module):
        t._dynamo_marked_static = True  # type: ignore[attr-defined]
        return t
    if not isinstance(t, Tensor):
        raise TypeError(f"mark_static expects a tensor/nn.Module class but received {type(t)}")
    _mark(t, "_dynamo_static_indices", list(range(t.ndim)) if index is None else index)
    return None


def _mark(t: Any, name: str, index: Any) -> None:
    if isinstance(index, int):
        index = (index,)
    if not isinstance(index, (list, tuple)):
        raise AssertionError(f"Expected index to be int, list, or tuple, got {type(index)}")
    if not hasattr(t, name):
        setattr(t, name, set())
    getattr(t, name).update(index)
    t._has_dynamo_dim_marking = True


def mark_static_address(t: Any, guard: bool = False) -> None:
    """Do nothing: there are no CUDA graphs.

    >>> import flambeau as torch
    >>> torch._dynamo.mark_static_address(torch.ones(2))
    """


__all__ = ["OptimizedModule", "allow_in_graph", "assume_constant_result", "config", "disable", "disallow_in_graph",
           "dont_skip_tracing", "exc", "explain", "export", "graph_break", "is_compiling", "is_dynamo_supported",
           "is_inductor_supported", "list_backends", "lookup_backend", "mark_dynamic", "mark_static",
           "mark_static_address", "maybe_mark_dynamic", "nonstrict_trace", "optimize", "optimize_assert",
           "patch_dynamo_config", "register_backend", "reset", "reset_code_caches", "run", "set_stance", "skip_frame",
           "substitute_in_graph"]
