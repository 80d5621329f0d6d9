"""`FLAMBEAU_DEBUG=ir,kernels`: what a compiled function was made into, when it is."""

from __future__ import annotations

from ..ir import debug_output
from .execution.cache_entry import CacheEntry
from .execution.provenance import backward_provenance


def report(entry: CacheEntry) -> None:
    """Print the views that are asked for of a function's programs, backward's first."""
    origins = entry.trace.provenance
    if origins is None:
        return
    if entry.backward is not None:
        of = backward_provenance(origins, entry.backward)
        debug_output.report(entry.backward.program, entry.backward.name, entry.libraries_before, of.names, of.lines)
    debug_output.report(entry.program, entry.name, entry.libraries_before, origins.names, origins.lines)


__all__ = ["report"]
