"""`FLAMBEAU_DEBUG=ir,kernels`: what a compiled function was made into, when it is."""

from __future__ import annotations

from ..ir import debug_output
from .execution.cache_entry import Replay
from .execution.provenance import backward_origins


def report(replay: Replay) -> None:
    """Print the views that are asked for of a function's programs, backward's first."""
    origins = replay.trace.origins
    if origins is None:
        return
    if replay.backward is not None:
        of = backward_origins(origins, replay.backward)
        debug_output.report(replay.backward.program, replay.backward.name, replay.since, of.names, of.lines)
    debug_output.report(replay.program, replay.name, replay.since, origins.names, origins.lines)


__all__ = ["report"]
