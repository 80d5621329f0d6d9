"""`StoredPrograms`: cache entries from traces that agree, records of earlier processes and the persistent cache."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from ...backends.compiled.allocator import trim
from ...trees import tree_flatten
from ..cache import program_cache, trace_cache
from ..counters import counters
from ..debug_output import report
from ..guards.guard_set import GuardSet
from ..tracing.trace import Trace
from .cache_entry import CacheEntry
from .function_caches import FunctionCaches
from .shape_families import ShapeFamily
from .signatures import SignatureCache, signature_of

#: calls that may initialize something before a program of the persistent cache is replayed
MAX_SETUP_CALLS = 2


class StoredPrograms(FunctionCaches):
    """Cache entries from traces that agree, records of earlier processes and the persistent cache."""

    def _trace_key(self, trace: Trace, args: tuple, kwargs: dict[str, Any]) -> str:
        return trace_cache.trace_key(trace, signature_of(*tree_flatten((args, kwargs))))

    def _compile_agreed(self, cache: SignatureCache, trace: Trace, other: Trace, args: tuple,
                        kwargs: dict[str, Any]) -> CacheEntry:
        """Compile a trace that agrees with another, and store it in the persistent caches."""
        guard_set, other_set = trace.guard_set, other.guard_set
        assert guard_set is not None
        assert other_set is not None
        saved = program_cache.SavedProgram(
            trace, guard_set.common_guards(other_set), self._trace_key(trace, args, kwargs),
            trace_cache.record_agreement(guard_set, other_set))
        entry = CacheEntry(trace, self._next_program_name(), saved.guards, other, saved.trace_key, saved.record)
        entry.store_record()
        if cache.num_traces <= MAX_SETUP_CALLS + 1:
            guard_set.external_call = guard_set.external_call or other_set.external_call
            self._save(entry, saved, guard_set, [*trace.initial_state, *other.initial_state],
                       cache.num_traces - 1, args, kwargs)
        else:
            entry.bypass_reason = "the first calls were not like the others"
        trace.initial_state = []
        family = self._families.get(cache.family)
        if family is not None:
            family.adopt(entry, other)
        return entry

    def _save(self, entry: CacheEntry, saved: program_cache.SavedProgram, guard_set: GuardSet, initial: list[Any],
              num_calls_before: int, args: tuple, kwargs: dict[str, Any]) -> None:
        """Store a program in the persistent cache, or record in the entry why that is not possible."""
        arguments, tree = tree_flatten((args, kwargs))
        key = program_cache.program_key(self.function, signature_of(arguments, tree), arguments)
        if key is not None:
            record = saved.record._replace(free=(True,) * len(saved.trace.argument_memory))
            try:
                entry.bypass_reason = program_cache.store(key, self.function, arguments, saved._replace(record=record),
                                                          guard_set, initial, num_calls_before)
            except Exception as error:
                entry.bypass_reason = self._warn_internal_error("cannot be stored in the persistent cache", error)

    def _load(self, cache: SignatureCache, signature: tuple, arguments: list[Any]) -> None:
        """Add the entry that an earlier process stored for this signature, if there is one and its guards hold."""
        if self._needs_provenance:
            return
        key = program_cache.program_key(self.function, signature, arguments)
        if key is None:
            return
        with self._lock:
            try:
                saved = program_cache.load(key, self.function, arguments, cache.num_traces)
            except Exception as error:
                self._warn_internal_error("cannot be loaded from the persistent cache", error)
                return
        if saved is not None:
            cache.may_use_record = not self._add_entry(cache, lambda: self._entry_from_saved(saved))

    def _entry_from_saved(self, saved: program_cache.SavedProgram) -> CacheEntry:
        """Compile a trace of an earlier process."""
        entry = CacheEntry(saved.trace, self._next_program_name(), saved.guards, saved.trace, saved.trace_key,
                           saved.record)
        entry.is_from_cache, entry.initialized_states = True, saved.initialized_states
        return entry

    def _compile_known(self, cache: SignatureCache, trace: Trace, args: tuple,
                       kwargs: dict[str, Any]) -> CacheEntry | None:
        """Compile a trace that agrees with a record of an earlier process; None if there is no such record."""
        guard_set = trace.guard_set
        if guard_set is None:
            return None
        trace_key = self._trace_key(trace, args, kwargs)
        for record in trace_cache.load(trace_key):
            guards = record.matching_guards(guard_set) if len(record.free) == len(trace.argument_memory) else None
            if guards is not None:
                entry = CacheEntry(trace, self._next_program_name(), guards, trace, trace_key, record)
                if cache.num_traces <= MAX_SETUP_CALLS:
                    self._save(entry, program_cache.SavedProgram(trace, guards, trace_key, record), guard_set,
                               trace.initial_state, cache.num_traces, args, kwargs)
                trace.initial_state = []
                return entry
        return None

    def _add_entry(self, cache: SignatureCache, make: Callable[[], CacheEntry | None]) -> bool:
        """Add the entry that `make` returns; return False if it returns None.

        An error while compiling is an internal error: calls run eagerly from then on, with a warning.
        """
        try:
            entry = make()
        except Exception as error:
            if self.fullgraph:
                raise
            cache.skip_reason, cache.pending_traces = f"internal error: {type(error).__name__}: {error}", []
            warnings.warn(f"calls of {self._title} run eagerly because of an internal error while compiling, "
                          f"{type(error).__name__}: {error}. Please report it; compile(fullgraph=True) raises it.",
                          RuntimeWarning, stacklevel=4)
            return True
        if entry is None:
            return False
        cache.entries.insert(0, entry)
        cache.values = None
        if cache.family is not None and (cache.layouts or cache.numbers):
            self._families.setdefault(cache.family, ShapeFamily()).add(
                entry, cache.layouts, cache.numbers, cache.seconds)
        self._num_unstable -= cache.has_unstable_objects
        cache.has_unstable_objects = False
        if entry.trace.provenance is not None:
            report(entry)
        cache.num_traces = 0
        counters["frames"]["ok"] += 1
        counters["stats"]["unique_graphs"] += 1
        values = entry.trace.graph.values[:entry.trace.num_values]
        counters["stats"]["calls_captured"] += sum(x.op not in ("input", "constant", "view") for x in values)
        trim()  # return the memory of the traced calls to the system
        return True


__all__ = ["StoredPrograms"]
