"""Functions compiled: captured as they run, and replayed as programs of few kernels.

`compile` is the way in. `capture` writes a run down as a graph (`flambeau.ir`), recognizing arrays by their memory
(`storages`); `trace` says what the run amounts to, `compiled` replays it, `fast` is the short way into a program and
`joint` the gradient of what is differentiated outside. `recollection` keeps programs for the next process, and
`experience` what their runs have in common.
"""

from .explaining import explain
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

__all__ = ["allow_in_graph", "assume_constant_result", "compile", "cudagraph_mark_step_begin", "disable", "explain",
           "get_default_backend", "is_compiling", "list_backends", "reset"]
