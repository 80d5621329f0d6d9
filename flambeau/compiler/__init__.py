"""Functions compiled: captured as they run, and replayed as programs of few kernels.

`compile` is the way in. `capture` writes a run down as a graph (`flambeau.ir`), recognizing arrays by their memory
(`storages`); `trace` says what the run amounts to, `compiled` replays it, `fast` is the short way into a program and
`joint` the gradient of what is differentiated outside. `recollection` keeps programs for the next process, and
`experience` what their runs have in common.
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
    list_backends,
    load_cache_artifacts,
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
from .config_defaults import COMPILER
from .stance import set_stance

if TYPE_CHECKING:
    from .explain import Explanation


def explain(function: Callable[..., Any]) -> Callable[..., Explanation]:
    """A function that calls `function` a few times with its arguments, and tells what became of it.

    The calls are real: whatever they change is changed.

    >>> import flambeau as torch
    >>> from flambeau import codegen
    >>> found = torch.compile.explain(lambda x: (x * 2).exp().sum())(torch.ones(4))
    >>> found.graph_break_count if codegen.available() else 0
    0
    """
    from .explain import make_explainer  # with all that shows programs, which a program does not need

    return make_explainer(function)


compile.explain = explain  # type: ignore[attr-defined]

#: settings, kept as they are written and of no effect
config = Settings("torch.compiler.config", COMPILER)

__all__ = ["allow_in_graph", "assume_constant_result", "compile", "config", "cudagraph_mark_step_begin", "disable",
           "explain", "get_default_backend", "is_compiling", "is_dynamo_compiling", "is_exporting",
           "keep_portable_guards_unsafe", "keep_tensor_guards_unsafe", "list_backends", "load_cache_artifacts",
           "nested_compile_region", "reset", "save_cache_artifacts", "set_default_backend",
           "set_enable_guard_collectives", "set_stance", "skip_all_guards_unsafe",
           "skip_guard_on_all_nn_modules_unsafe", "skip_guard_on_globals_unsafe",
           "skip_guard_on_inbuilt_nn_modules_unsafe", "substitute_in_graph", "wrap_numpy"]
