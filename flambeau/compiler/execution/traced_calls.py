"""`TracedCalls`: calls that run eagerly while they are recorded, and become cache entries if two agree."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import Any

from ..._tensor import Tensor
from ...amp import state as autocast
from ...engine.profiler_events import record_span
from ...trees import tree_flatten
from ..counters import counters
from ..errors import Unsupported
from ..guards.guard import CHANGING
from ..splitting.part_results import held_elsewhere, mutable_containers, shared_containers
from ..state.places import changed_places, values_of
from ..state.structure import is_mutable
from ..tracing.provenance_tracer import ProvenanceTracer
from ..tracing.trace import MAX_TRACES, Trace
from ..tracing.trace_comparison import difference
from ..tracing.tracer import Tracer
from .calls_with_state import CallsWithState
from .shape_families import family_key
from .signatures import SignatureCache, signature_of

#: traces of one signature that change guarded values: the first ones may initialize something
MAX_MUTATIONS = 3
#: traces of one signature, of different branches, that wait for one that agrees
MAX_PENDING_TRACES = 4
#: traces of a part that differ before it is divided
MAX_PART_TRACES = 4
#: why a call cannot be traced whose containers are leaves
_CONTAINER_FAILURES = ("a container among the arguments is changed", "a container among the arguments is returned",
                       "a container is returned twice")
#: traces from which on what changes outside of the function becomes an input
MAX_CHANGES = 3
#: how many calls were traced
num_traces = [0]


class TracedCalls(CallsWithState):
    """Calls that run eagerly while they are recorded, and become cache entries if two agree."""

    def _trace_call(self, cache: SignatureCache, tensors: Sequence[Any], args: tuple, kwargs: dict[str, Any]) -> Any:
        num_entries = len(cache.entries)
        num_traces[0] += 1
        counters["frames"]["total"] += not cache.num_traces
        with self._lock, record_span(f"capture of {self._title}"):
            if len(cache.entries) != num_entries:  # another thread has compiled this signature
                return self.function(*args, **kwargs)
            last = cache.pending_traces[-1].guard_set if cache.pending_traces else None
            violated = None if last is None else last.violated()
            guards = [] if last is None else [*last.guards.values()]
            before = values_of(guards)
            with_provenance = self._needs_provenance
            tracer = ProvenanceTracer(self.function, args, kwargs) if with_provenance else Tracer()
            tracer.needs_independent_results = self._needs_independent_results
            tracer.frame_hook.add_object(self._title, self.function)
            leaves, tree = tree_flatten((args, kwargs))
            for x in leaves:
                if not isinstance(x, Tensor):
                    tracer.frame_hook.add_object(type(x).__name__, x)
            with tracer, autocast.own_cache():
                tracer.bind_arguments(tensors)
                started = perf_counter()
                result = self.function(*args, **kwargs)
                cache.seconds = perf_counter() - started
                after, now = tree_flatten((args, kwargs))
                if now != tree or any(x is not y for x, y in zip(leaves, after, strict=True)):
                    tracer.graph_break("a container among the arguments is changed")
                if self._part_of is not None and (held := held_elsewhere(result, tracer.frame_hook.objects)):
                    tracer.graph_break(held)
                shared = shared_containers(result, tracer.frame_hook.objects)
                if shared and not {*mutable_containers((args, kwargs))}.isdisjoint(map(id, shared)):
                    tracer.graph_break("a container among the arguments is returned")
                elif len({*map(id, shared)}) < len(shared):
                    tracer.graph_break("a container is returned twice")
                trace = Trace(tracer, tensors, result)
                trace.shared_containers = shared
            trace.provenance = tracer.provenance(trace)
            tracer.release()
            if any(entry.relax_pins(trace) for entry in cache.entries) or self._relax_template(cache, leaves, trace):
                return result
            if cache.is_of_template:  # traced entries have no guards on numbers: they belong to the signature
                arguments, tree = tree_flatten((args, kwargs))
                key = signature_of(arguments, tree)
                cache = self._signatures.setdefault(key, SignatureCache(arguments, family_key(key)))
            places = changed_places(guards, before, values_of(guards))
            if places and self._add_state(places, args, kwargs):
                cache.pending_traces, cache.num_traces, cache.values = [], 0, None
                return result
            if trace.failure is not None and trace.failure.startswith(_CONTAINER_FAILURES) and self._add_structures():
                return result
            if trace.failure is None:
                # a call that changes objects agrees with none: guards are on what they were afterwards
                for other in reversed(cache.pending_traces if places == [] else []):
                    mismatch = difference(other, trace)
                    if mismatch is None:
                        cache.pending_traces.remove(other)
                        self._add_entry(cache, lambda other=other: self._compile_agreed(  # type: ignore[misc]
                            cache, trace, other, args, kwargs))
                        self._leave_if_empty(cache)
                        return result
                    if other is cache.pending_traces[-1]:
                        cache.mismatch = mismatch
                        if any(map(is_mutable, tree_flatten(result)[0])) and self._add_structures():
                            cache.pending_traces, cache.num_traces = [], 0
                            return result
                if cache.may_use_record and not with_provenance and not places and self._add_entry(
                        cache, lambda: self._compile_known(cache, trace, args, kwargs)):
                    cache.may_use_record = False
                    return result
                if places == [] and cache.num_traces >= MAX_CHANGES and (
                        cache.values is not None and cache.values[0] is last):
                    places = changed_places(guards, cache.values[1], before)
                if places and self._add_state(places, args, kwargs):
                    cache.pending_traces, cache.num_traces, cache.values = [], 0, None
                    return result
                if trace.guard_set is not None:
                    cache.values = trace.guard_set, values_of([*trace.guard_set.guards.values()])
                if last is not None and violated is not None and trace.guard_set is not None:
                    mutation = last.mutation(trace.guard_set, violated)
                    if mutation is not None:
                        cache.num_mutations += 1
                        if cache.mismatch is None or CHANGING in cache.mismatch:
                            cache.mismatch = mutation
                cache.pending_traces = [*cache.pending_traces[-MAX_PENDING_TRACES:], trace]
                self._add_pending(cache, trace)
                cache.num_traces += 1
                frames = tracer.frame_hook.external_frames
                enough = MAX_TRACES if self._part_of is None else MAX_PART_TRACES
                if cache.num_traces >= enough or cache.num_mutations >= MAX_MUTATIONS:
                    cache.skip_reason, cache.pending_traces = cache.mismatch, []
            else:
                frames = tracer.break_frames or tracer.frame_hook.effect_frames
                is_effect = tracer.frame_hook.effect is not None and trace.failure is tracer.frame_hook.effect
                cost = MAX_TRACES if (self._part_of is not None and frames) or (
                    self.fullgraph and is_effect) else trace.retry_cost
                cache.num_traces, cache.mismatch = cache.num_traces + cost, trace.failure
                counters["graph_break"][trace.failure] += 1
                if cache.num_traces >= MAX_TRACES:
                    cache.skip_reason, cache.pending_traces = trace.failure, []
            if cache.skip_reason is not None and not self.fullgraph:
                self._divide(frames, cache.skip_reason)
        if self.fullgraph and cache.skip_reason is not None:
            raise Unsupported(f"a call of {self.function!r} cannot be compiled as one graph: {cache.skip_reason}")
        return result


__all__ = ["TracedCalls"]
