"""`CompiledFunction`: dispatches each call to a cache entry whose guards hold, or traces it.

Order: the call stub of the latest entry; the entries of the call's signature; the persistent cache; a trace. Two traces
that agree, or one that agrees with a record of an earlier process, become a new entry.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any, NamedTuple

from ..._tensor import Tensor
from ...backends.elementless_array import any_without_elements, elementless_used
from ...modes import active_autocasts, active_profilers, active_tracer, active_tracers, device_memory, special
from ...runtime import debug_output
from ...trees import tree_flatten
from ..cache import program_cache
from ..differential_check import checked
from ..errors import RecompileError
from ..guards.guard_set import GuardSet
from ..guards.object_kinds import is_traversable
from ..splitting.split_function import SplitFunction
from ..stance import policy
from ..state.places import Place
from ..state.stateful_function import StatefulFunction
from ..state.structure import is_mutable
from ..state.with_state import WithState
from ..tracing.break_frames import BreakFrame
from ..tracing.trace import Trace
from .cache_entry import GUARDS_FAILED, CacheEntry
from .call_stub import call_stub
from .calls_with_state import OF_CALL
from .dynamic_marks import DYNAMIC
from .recompile_reasons import recompile_reasons, signature_difference
from .shape_families import family_key
from .signatures import SignatureCache, is_static_argument, objects_of, signature_of
from .stored_programs import MAX_SETUP_CALLS
from .traced_calls import TracedCalls

#: signatures of a part before it is divided
MAX_PART_SIGNATURES = 64
#: uncompiled signatures with object arguments, which may be another object in each call
MAX_UNSTABLE_SIGNATURES = 8
#: templates from which on a size that none serves runs eagerly, if each of them served less calls than this
MAX_TEMPLATES, CALLS_PER_TEMPLATE = 8, 8
#: signatures with objects as arguments that wait for a program, from which on the attributes are inputs instead
MAX_OBJECTS = 2
#: whether a function of a backend that compiles nothing runs
runs_unchanged: ContextVar[bool] = ContextVar("runs_unchanged", default=False)
#: a list to which replayed calls are added, unless a call stub runs them
recorded_calls: ContextVar[list[RecordedCall] | None] = ContextVar("recorded_calls", default=None)


class RecordedCall(NamedTuple):
    """A replayed call: the function, its cache entry and the arguments."""

    function: Callable[..., Any]
    entry: CacheEntry
    args: tuple
    kwargs: dict[str, Any]


class CompiledFunction(TracedCalls):
    """A function whose calls are traced and replayed; `compile` returns it.

    Args:
        function: the function.
        fullgraph: raise `Unsupported` where a call cannot be compiled.
        limit: the largest number of compiled signatures; None: `policy.recompile_limit`.
        check: run each replayed call eagerly as well, and compare.
        enabled: whether calls are traced at all.
        part_of: for a part of a function that is split: the function, and the key of the part.
        dynamic: whether sizes may vary without tracing: True, from the first shape on; None, from the second one on.
    """

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickle, (self.function, self.fullgraph, self.limit, self.check, self.enabled, self.dynamic)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def like(self, function: Callable[..., Any]) -> CompiledFunction:
        """Another function, compiled with these options."""
        return CompiledFunction(function, fullgraph=self.fullgraph, limit=self.limit, check=self.check,
                                enabled=self.enabled, dynamic=self.dynamic)

    def _run_unchanged(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Run a call of a backend that compiles nothing; `compiler.is_compiling` holds, as where a graph is made."""
        if not policy.is_default and policy.runs_eagerly:
            return self.function(*args, **kwargs)
        token = runs_unchanged.set(True)
        try:
            return self.function(*args, **kwargs)
        finally:
            runs_unchanged.reset(token)

    def _on_device(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Run a call with tensors in a device's memory; NotImplemented if it has none."""
        from ..on_devices.device_calls import DeviceCalls, device_of  # imported where a device is in use

        device = device_of(args, kwargs, self.function)
        if device is None or (not policy.is_default and policy.runs_eagerly):
            return NotImplemented
        if self._device_calls is None:
            self._device_calls = DeviceCalls(self.function, self.fullgraph)
        result = self._device_calls(args, kwargs, device)
        if self._device_calls is not None and policy.is_default:
            self._call_stub = self._device_calls.call_stub or self._call_stub
        return result

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        stub = self._call_stub
        if stub is not None and not kwargs:
            result = stub(*args)
            if result is not GUARDS_FAILED:
                return result
        if self.enabled and device_memory.count and (result := self._on_device(args, kwargs)) is not NotImplemented:
            return result
        if not self.enabled:
            return self._run_unchanged(args, kwargs)
        if special[0] and (
                special[0] != active_profilers[0] + active_tracers[0] + active_autocasts[0]
                or active_tracer.get() is not None):
            return self.function(*args, **kwargs)
        if not policy.is_default and policy.runs_eagerly:
            return self.function(*args, **kwargs)
        arguments, tree = tree_flatten((args, kwargs))
        if elementless_used[0] and any_without_elements(arguments):
            return self.function(*args, **kwargs)
        key = signature_of(arguments, tree)
        cache = self._signatures.get(key)
        if cache is not None and not cache.matches(arguments):
            del self._signatures[key]
            cache = None
        if self.stateful and (cache is None or cache.skip_reason is None):
            stateful = self.stateful.get(objects_of(key))
            if stateful is not None and stateful.matches(arguments):
                return self._call_stateful(stateful, key, arguments, args, kwargs)
            stateful = self.stateful.get(OF_CALL)
            if stateful is not None and (cache is None or not cache.entries):
                return self._call_stateful(stateful, key, arguments, args, kwargs)
        if cache is None and self._families:
            cache = self._instance(key, arguments)
            if cache is None and key in self._seen:
                return self._run_new_size(key, args, kwargs)
        if cache is None:
            if self.split is not None and self.split.is_ready and not self.fullgraph:
                return self._call_split(args, kwargs)  # parts check their own arguments
            if not policy.is_default:
                return self._skipped_compilation(args, kwargs)
            if policy.error_on_recompile and self._signatures:
                raise RecompileError(f"a call of {self._title} has a new signature (shapes, dtypes, modes or other "
                                     "arguments), and torch._dynamo.config.error_on_recompile is set")
            if self._signatures and debug_output.is_enabled("recompiles"):
                debug_output.show(f"{self._title}: new signature\n  "
                                  f"{signature_difference([*self._signatures][-1], key)}")
            family = self._families.get(family_key(key)) if self._families else None
            if family is not None and MAX_TEMPLATES <= family.num_templates > family.num_served / CALLS_PER_TEMPLATE:
                return self._run_new_size(key, args, kwargs)  # each call is beyond the template of the one before
            if family is not None and self._make_template(key, arguments, args, kwargs):
                family.num_templates += 1
                return self(*args, **kwargs)
            unstable = [x for x in arguments if not is_static_argument(x)]
            if unstable and (self._num_unstable >= MAX_OBJECTS or any(x.__class__ is set for x in unstable)) and any(
                    map(is_mutable, unstable)) and (stateful := self._add_structures()) is not None:
                return self._call_stateful(stateful, key, arguments, args, kwargs)
            if len(self._signatures) >= (self.limit or policy.recompile_limit) or (
                    (self._part_of is not None or self.has_state) and self._number_varies(key)):
                return self._limit_reached(args, kwargs)
            if unstable and (self._num_unstable >= MAX_UNSTABLE_SIGNATURES or not all(map(is_traversable, unstable))):
                if self._part_of is not None:
                    self._divide((), f"an argument of class {type(unstable[0]).__name__}")
                return self.function(*args, **kwargs)
            cache = self._signatures.setdefault(key, SignatureCache(arguments, family_key(key)))
            cache.has_unstable_objects = bool(unstable)
            self._num_unstable += cache.has_unstable_objects
            self._load(cache, key, arguments)
            if not cache.entries:
                self._expect_trace(cache, arguments, args, kwargs)
        elif cache.may_use_record and 0 < cache.num_traces <= MAX_SETUP_CALLS:
            self._load(cache, key, arguments)
        tensors = [x for x in arguments if isinstance(x, Tensor)]
        for entry in [*cache.entries]:
            computed = entry.computed_inputs(arguments)
            if computed is None:
                continue
            if self.check:
                result = checked(self.function, entry, tensors, args, kwargs)
            else:
                result = entry.run(tensors, None, computed) if not special[0] else entry.run_profiled(tensors, computed)
            if result is not GUARDS_FAILED:
                recorder = recorded_calls.get()
                if recorder is not None:
                    recorder.append(RecordedCall(self.function, entry, args, kwargs))
                elif entry.has_run and not self.check and policy.is_default and not active_autocasts[0]:
                    # not at the first replay: generating the stub takes as long as many calls
                    self._call_stub = call_stub(entry, args, kwargs)
                entry.has_run = True
                return result
            if entry.initialized_states and not entry.has_run:
                program_cache.discard_initial_state(entry.initialized_states)
                cache.entries.remove(entry)
        if cache.skip_reason is not None:
            return self.function(*args, **kwargs) if self.split is None else self._call_split(args, kwargs)
        if cache.entries and not cache.pending_traces and debug_output.is_enabled("recompiles"):  # once for two traces
            debug_output.show(recompile_reasons(self._title, cache.entries, tensors))
        result = self._trace_call(cache, tensors, args, kwargs)
        if cache.entries and cache.family is not None and (
                self._varies is True or any("_has_dynamo_dim_marking" in x.__dict__ for x in tensors)):
            self._make_template(key, arguments, args, kwargs)
        elif cache.num_traces == 1 and cache.pending_traces and any(DYNAMIC in x.__dict__ for x in tensors):
            self._check_marks(cache.pending_traces[-1], tensors, arguments, args, kwargs)
        return result

    def _make_part(self, function: Callable[..., Any], split: SplitFunction, key: str) -> CompiledFunction:
        """Compile a part of a function that is split."""
        made = CompiledFunction(function, limit=MAX_PART_SIGNATURES, check=self.check, part_of=(split, key),
                                dynamic=self.dynamic)
        made.records_provenance = self.records_provenance
        return made

    def _compile_with_state(self, function: WithState, stateful: StatefulFunction) -> CompiledFunction:
        made = _CompiledWithState(function, fullgraph=self.fullgraph, limit=self.limit, part_of=self._part_of,
                                  dynamic=self.dynamic)
        made.stateful_function, made.records_provenance = stateful, self.records_provenance
        return made


class _CompiledWithState(CompiledFunction):
    """A compiled `WithState`; failures and further places are those of `stateful_function`."""

    function: WithState
    stateful_function: StatefulFunction
    has_state = True

    def _add_state(self, places: Sequence[Place], args: tuple, kwargs: dict[str, Any]) -> bool:
        return self.stateful_function.extend(places)

    def _divide(self, frames: Sequence[BreakFrame], reason: str) -> None:
        self.stateful_function.failure = frames, reason

    def _limit_reached(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        self._divide((), "the state that the function changes is another number in each call, or has another size")
        return self.function(*args, **kwargs)

    def _load(self, cache: SignatureCache, signature: tuple, arguments: list[Any]) -> None:
        cache.may_use_record = False  # programs with state are not stored

    def _save(self, entry: CacheEntry, saved: program_cache.SavedProgram, guard_set: GuardSet, initial: list[Any],
              num_calls_before: int, args: tuple, kwargs: dict[str, Any]) -> None:
        entry.bypass_reason = "the function changes Python state"

    def _trace_key(self, trace: Trace, args: tuple, kwargs: dict[str, Any]) -> str:
        return ""


def _unpickle(function: Callable[..., Any], fullgraph: bool, limit: int | None, check: bool,
              enabled: bool, dynamic: bool | None) -> CompiledFunction:
    return CompiledFunction(function, fullgraph=fullgraph, limit=limit, check=check, enabled=enabled, dynamic=dynamic)


__all__ = ["MAX_PART_SIGNATURES", "MAX_UNSTABLE_SIGNATURES", "CompiledFunction", "RecordedCall", "recorded_calls",
           "runs_unchanged"]
