"""Functions compiled: captured as they run, and replayed as programs of few kernels.

`compile` is the way in. `capture` writes a run down as a graph (`flambeau.ir`), recognizing arrays by their memory
(`storages`); `trace` says what the run amounts to, `compiled` replays it, `fast` is the short way into a program and
`joint` the gradient of what is differentiated outside. `recollection` keeps programs for the next process, and
`experience` what their runs have in common.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .interface import (
    allow_in_graph,
    assume_constant_result,
    compile,
    cudagraph_mark_step_begin,
    disable,
    get_default_backend,
    is_compiling,
    list_backends,
    reset,
)

if TYPE_CHECKING:
    from .explaining import Explanation


def explain(function: Callable[..., Any]) -> Callable[..., Explanation]:
    """A function that calls `function` a few times with its arguments, and tells what became of it.

    The calls are real: whatever they change is changed.

    >>> import flambeau as torch
    >>> from flambeau import jit
    >>> found = torch.compile.explain(lambda x: (x * 2).exp().sum())(torch.ones(4))
    >>> found.graph_break_count if jit.available() else 0
    0
    """
    from .explaining import explanation  # with all that shows programs, which a program does not need

    return explanation(function)


compile.explain = explain  # type: ignore[attr-defined]

__all__ = ["allow_in_graph", "assume_constant_result", "compile", "cudagraph_mark_step_begin", "disable", "explain",
           "get_default_backend", "is_compiling", "list_backends", "reset"]
