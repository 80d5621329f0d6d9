"""Debug output of the compiler: the graph and the kernels of each new program (`FLAMBEAU_DEBUG=ir,kernels`)."""

from __future__ import annotations

from ..ir import debug_output
from .execution.cache_entry import CacheEntry
from .execution.provenance import backward_provenance, program_provenance


def report(entry: CacheEntry) -> None:
    """Print the enabled views of a cache entry's programs, the backward program first."""
    provenance = entry.trace.provenance
    if provenance is None:
        return
    provenance = program_provenance(provenance, entry)
    if entry.backward is not None:
        backward = backward_provenance(provenance, entry.backward)
        debug_output.report(entry.backward.program, entry.backward.name, entry.libraries_before, backward.names,
                            backward.lines)
    debug_output.report(entry.program, entry.name, entry.libraries_before, provenance.names, provenance.lines)


__all__ = ["report"]
