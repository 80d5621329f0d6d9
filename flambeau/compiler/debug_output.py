"""`FLAMBEAU_DEBUG=ir,kernels`: what a compiled function was made into, when it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..ir import debug_output

if TYPE_CHECKING:
    from .execution.compiled_function import Replay


def report(replay: Replay) -> None:
    """Print the views that are asked for of a function's programs, backward's first."""
    origins = replay.trace.origins
    if origins is None:
        return
    if replay.backward is not None:
        of = origins.of_backward(replay.backward)
        debug_output.report(replay.backward.program, replay.backward.name, replay.since, of.names, of.lines)
    debug_output.report(replay.program, replay.name, replay.since, origins.names, origins.lines)


__all__ = ["report"]
