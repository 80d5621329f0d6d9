"""`torch.compiler`: the public interface of the tracing compiler.

`compile` (`api.py`) wraps a function. `tracing/` records a call as a graph (`flambeau.ir`), `guards/` holds the
conditions under which the graph may be replayed, `execution/` runs compiled programs and their backward graphs, and
`cache/` keeps traces and programs on disk. See `docs/internals/tracer-and-guards.md`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..settings import Settings
from .api import (
    allow_in_graph,
    assume_constant_result,
    compile,
    cudagraph_mark_step_begin,
    disable,
    get_default_backend,
    is_compiling,
    is_dynamo_compiling,
    is_exporting,
    keep_portable_guards_unsafe,
    keep_tensor_guards_unsafe,
    load_cache_artifacts,
    load_compiled_function,
    nested_compile_region,
    reset,
    save_cache_artifacts,
    set_default_backend,
    set_enable_guard_collectives,
    skip_all_guards_unsafe,
    skip_guard_on_all_nn_modules_unsafe,
    skip_guard_on_globals_unsafe,
    skip_guard_on_inbuilt_nn_modules_unsafe,
    substitute_in_graph,
    wrap_numpy,
)
from .backend_registry import list_backends
from .config_defaults import COMPILER
from .stance import set_stance

if TYPE_CHECKING:
    from .explain import Explanation


def explain(function: Callable[..., Any]) -> Callable[..., Explanation]:
    """Return a function that calls `function` until it is compiled, and reports its kernels and guards.

    The calls have their usual side effects.

    Args:
        function: a function, a module, or the result of `compile`.

    Returns:
        A callable with the arguments of `function`, which returns an `Explanation`.

    >>> import flambeau as torch
    >>> from flambeau import codegen
    >>> explanation = torch.compile.explain(lambda x: (x * 2).exp().sum())(torch.ones(4))
    >>> explanation.graph_break_count if codegen.available() else 0
    0
    """
    from .explain import make_explainer  # imports the printers, which replay does not need

    return make_explainer(function)


compile.explain = explain  # type: ignore[attr-defined]

#: settings of `torch.compiler.config`: stored, without effect
config = Settings("torch.compiler.config", COMPILER)

__all__ = ["allow_in_graph", "assume_constant_result", "compile", "config", "cudagraph_mark_step_begin", "disable",
           "explain", "get_default_backend", "is_compiling", "is_dynamo_compiling", "is_exporting",
           "keep_portable_guards_unsafe", "keep_tensor_guards_unsafe", "list_backends", "load_cache_artifacts",
           "load_compiled_function", "nested_compile_region", "reset", "save_cache_artifacts", "set_default_backend",
           "set_enable_guard_collectives", "set_stance", "skip_all_guards_unsafe",
           "skip_guard_on_all_nn_modules_unsafe", "skip_guard_on_globals_unsafe",
           "skip_guard_on_inbuilt_nn_modules_unsafe", "substitute_in_graph", "wrap_numpy"]
