"""`CompiledFunction`: dispatches each call to a cache entry whose guards hold, or traces it.

Order: the call stub of the latest entry; the entries of the call's signature; the persistent cache; a trace. Two traces
that agree, or one that agrees with a record of an earlier process, become a new entry.
"""

from __future__ import annotations

import functools
import threading
import types
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from time import perf_counter
from typing import Any, NamedTuple

from ..._tensor import Tensor
from ...amp import state as autocast
from ...backends.compiled.allocator import trim
from ...backends.elementless_array import any_without_elements, elementless_used
from ...engine.profiler_events import record_span
from ...modes import active_autocasts, active_profilers, active_tracer, active_tracers, device_memory, special
from ...runtime import debug_output
from ...trees import tree_flatten
from ..cache import program_cache, trace_cache
from ..counters import counters
from ..debug_output import report
from ..differential_check import checked
from ..errors import ConstraintViolationError, FailOnRecompileLimitHit, RecompileError, Unsupported
from ..guards.guard import CHANGING
from ..guards.guard_set import GuardSet
from ..guards.object_kinds import is_traversable
from ..splitting.part_results import held_elsewhere, mutable_containers, shared_containers
from ..splitting.split_function import SplitFunction, resolve
from ..stance import compiled_functions, policy
from ..state.places import Place, changed_places, values_of
from ..state.stateful_function import StatefulFunction
from ..state.structure import is_mutable
from ..state.with_state import WithState
from ..tracing.break_frames import BreakFrame
from ..tracing.provenance_tracer import ProvenanceTracer
from ..tracing.trace import MAX_TRACES, Trace
from ..tracing.trace_comparison import difference
from ..tracing.tracer import Tracer
from .cache_entry import GUARDS_FAILED, CacheEntry
from .call_stub import call_stub
from .dynamic_marks import DYNAMIC, STATIC, WEAKLY_DYNAMIC, marked_dimensions, tensor_names
from .recompile_reasons import recompile_reasons, signature_difference
from .shape_families import LONG, ShapeFamily, family_key
from .signatures import (
    SignatureCache,
    argument_signature,
    is_static_argument,
    objects_of,
    signature_of,
    without_numbers,
    without_values,
)

#: uncompiled signatures with object arguments, which may be another object in each call
MAX_UNSTABLE_SIGNATURES = 8
#: traces of one signature that change guarded values: the first ones may initialize something
MAX_MUTATIONS = 3
#: traces of one signature, of different branches, that wait for one that agrees
MAX_PENDING_TRACES = 4
#: signatures of a part before it is divided; those that differ in numbers only, which may be others in each call; those
#: that differ in numbers and sizes only, which may depend on data
MAX_PART_SIGNATURES, MAX_NUMBERS, MAX_SIZES = 64, 6, 16
#: traces of a part that differ before it is divided
MAX_PART_TRACES = 4
#: signatures of programs that were made from templates, and bytes of their arenas, which programs keep; the least
#: recently used are dropped
MAX_INSTANCES, MAX_ARENAS = 64, 1 << 28
#: those of one signature, with other guards
MAX_INSTANCES_OF_KEY = 4
#: programs made from templates, from which on a new size runs eagerly at first, if sizes came again less often
MAX_NEW_SIZES, CALLS_PER_SIZE = 24, 8
#: templates from which on a size that none serves runs eagerly, if each of them served less calls than this
MAX_TEMPLATES, CALLS_PER_TEMPLATE = 8, 8
#: signatures that are remembered in that case
MAX_SEEN = 1024
#: calls that may initialize something before a program of the persistent cache is replayed
MAX_SETUP_CALLS = 2


#: objects among the arguments, each with state of its own
MAX_STATEFUL = 64
#: signatures with objects as arguments that wait for a program, from which on the attributes are inputs instead
MAX_OBJECTS = 2
#: the key of the form whose inputs are in the structure of the arguments
_OF_CALL = ("call",)
#: why a call cannot be traced whose containers are leaves
_CONTAINER_FAILURES = ("a container among the arguments is changed", "a container among the arguments is returned",
                       "a container is returned twice")
#: traces from which on what changes outside of the function becomes an input
MAX_CHANGES = 3


class RecordedCall(NamedTuple):
    """A replayed call: the function, its cache entry and the arguments."""

    function: Callable[..., Any]
    entry: CacheEntry
    args: tuple
    kwargs: dict[str, Any]


#: a list to which replayed calls are added, unless a call stub runs them
recorded_calls: ContextVar[list[RecordedCall] | None] = ContextVar("recorded_calls", default=None)
#: how many calls were traced
num_traces = [0]


class CompiledFunction:
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

    has_state = False  # whether Python state is among the arguments

    def __init__(self, function: Callable[..., Any], *, fullgraph: bool = False, limit: int | None = None,
                 check: bool = False, enabled: bool = True, part_of: tuple[SplitFunction, str] | None = None,
                 dynamic: bool | None = None) -> None:
        self.function, self.dynamic = function, dynamic
        if not isinstance(function, functools.partial) and hasattr(function, "__name__"):
            functools.update_wrapper(self, function, updated=())
        self.fullgraph, self.limit, self.check, self.enabled = fullgraph, limit, check, enabled
        self._signatures: dict[Any, SignatureCache] = {}
        self._families: dict[Any, ShapeFamily] = {}
        self._instances: dict[Any, SignatureCache] = {}  # of templates, the least recently used first
        self._seen: dict[Any, float] = {}  # seconds of eager calls of signatures that have no program yet
        self._num_instances = self._num_reused = 0
        self._seconds_of_instances = 0.0
        self._lock = threading.RLock()
        self._call_stub: Callable[..., Any] | None = None
        self._num_programs = 0
        self._num_unstable = 0  # signatures with `has_unstable_objects`
        self.records_provenance = False  # whether to trace with `ProvenanceTracer`
        self.split: SplitFunction | None = None  # the function in parts, once a trace has failed
        self._part_of = part_of
        self._device_calls: Any = None
        self.stateful: dict[tuple, StatefulFunction | None] = {}  # by objects among the arguments; None: not possible
        compiled_functions.add(self)

    def __repr__(self) -> str:
        return f"<compiled {self.function!r}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickle, (self.function, self.fullgraph, self.limit, self.check, self.enabled, self.dynamic)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    @property
    def _torchdynamo_orig_callable(self) -> Callable[..., Any]:
        """The function, under the name by which packages recognise compiled ones."""
        return self.function

    def like(self, function: Callable[..., Any]) -> CompiledFunction:
        """Another function, compiled with these options."""
        return CompiledFunction(function, fullgraph=self.fullgraph, limit=self.limit, check=self.check,
                                enabled=self.enabled, dynamic=self.dynamic)

    def clear_call_stub(self) -> None:
        """Drop the call stub, so that the next call checks the policy."""
        self._call_stub = None

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

    def reset(self) -> None:
        """Drop all programs."""
        self._device_calls = None
        self._signatures, self._call_stub, self._num_unstable, self.split = {}, None, 0, None
        self._families, self._instances, self._seen, self.stateful = {}, {}, {}, {}
        self._num_instances = self._num_reused = 0
        self._seconds_of_instances = 0.0

    @property
    def _title(self) -> str:
        return getattr(self.function, "__name__", type(self.function).__name__)

    def _next_program_name(self) -> str:
        """Return the name of the next program: the function's, with "#2" and so on from the second on."""
        self._num_programs += 1
        return self._title if self._num_programs == 1 else f"{self._title}#{self._num_programs}"

    def signature_cache(self, args: tuple, kwargs: dict[str, Any]) -> SignatureCache | None:
        """Return the cache of calls with these arguments; None if there is none."""
        return self._signatures.get(signature_of(*tree_flatten((args, kwargs))))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        stub = self._call_stub
        if stub is not None and not kwargs:
            result = stub(*args)
            if result is not GUARDS_FAILED:
                return result
        if self.enabled and device_memory.count and (result := self._on_device(args, kwargs)) is not NotImplemented:
            return result
        if not self.enabled or (special[0] and (
                special[0] != active_profilers[0] + active_tracers[0] + active_autocasts[0]
                or active_tracer.get() is not None)):
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
            stateful = self.stateful.get(_OF_CALL)
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

    # ----- state that the function changes -----

    def _call_stateful(self, stateful: StatefulFunction, key: tuple, arguments: list[Any], args: tuple,
                       kwargs: dict[str, Any]) -> Any:
        """Run a call whose state is among the arguments and results of what is compiled."""
        result = stateful(args, kwargs)
        if stateful.failure is not None:
            self._note_failure(stateful, key, arguments)
        elif self._call_stub is None and policy.is_default and not kwargs:
            self._call_stub = self._stateful_stub(stateful, arguments, args)
        return result

    def _note_failure(self, stateful: StatefulFunction, key: tuple, arguments: list[Any]) -> None:
        """Divide the function, because a call with its state as an input cannot be compiled."""
        assert stateful.failure is not None
        (frames, reason), stateful.failure = stateful.failure, None
        if self.stateful.get(_OF_CALL) is stateful:
            self.stateful[_OF_CALL] = None
        cache = self._signatures.setdefault(key, SignatureCache(arguments, family_key(key)))
        cache.skip_reason, cache.pending_traces = reason, []
        self._call_stub = None
        if self.fullgraph:
            raise Unsupported(f"a call of {self.function!r} cannot be compiled as one graph: {reason}")
        self._divide(frames, reason)

    def _stateful_stub(self, stateful: StatefulFunction, arguments: list[Any], args: tuple
                       ) -> Callable[..., Any] | None:
        """Return the call stub of a function with state: it checks what selects the state; None if there is none."""
        if len(arguments) != len(args) or any(cache.skip_reason is not None for cache in self._signatures.values()):
            return None
        kinds = [x.__class__ for x in args]
        if not stateful.of_call and any(argument_signature(x)[0] == "object" for x in args):
            return None

        def call_stateful(*args: Any) -> Any:
            if [x.__class__ for x in args] != kinds:
                return GUARDS_FAILED
            result = stateful(args, {})
            if stateful.failure is not None:
                arguments, tree = tree_flatten((args, {}))
                self._note_failure(stateful, signature_of(arguments, tree), arguments)
            return result

        return call_stateful

    def _add_state(self, places: Sequence[Place], args: tuple, kwargs: dict[str, Any]) -> bool:
        """Make places that the function changes inputs and results from the next call on; whether that is possible."""
        arguments, tree = tree_flatten((args, kwargs))
        key = objects_of(signature_of(arguments, tree))
        known = self.stateful.get(key)
        if self.check or len(self.stateful) >= MAX_STATEFUL or (known is not None and known.matches(arguments)):
            return False
        self.stateful[key] = StatefulFunction(self.function, places, self._compile_with_state,
                                              SignatureCache(arguments).object_refs, is_whole=self._part_of is None)
        return True

    def _add_structures(self) -> StatefulFunction | None:
        """Make what containers and objects among arguments and results hold inputs and results; None if impossible."""
        if self.check or self.has_state or self._part_of is not None or _OF_CALL in self.stateful:
            return self.stateful.get(_OF_CALL)
        made = self.stateful[_OF_CALL] = StatefulFunction(self.function, (), self._compile_with_state, of_call=True)
        return made

    def _compile_with_state(self, function: WithState, stateful: StatefulFunction) -> CompiledFunction:
        made = _CompiledWithState(function, fullgraph=self.fullgraph, limit=self.limit, part_of=self._part_of,
                                  dynamic=self.dynamic)
        made.stateful_function, made.records_provenance = stateful, self.records_provenance
        return made

    def all_entries(self) -> Iterator[CacheEntry]:
        """Yield the cache entries of all signatures, those of templates last."""
        for cache in (*self._signatures.values(), *self._instances.values()):
            yield from cache.entries

    def _check_marks(self, trace: Trace, tensors: Sequence[Any], arguments: list[Any], args: tuple,
                     kwargs: dict[str, Any]) -> None:
        """Raise after the first call if the function depends on the size of a marked dimension."""
        marked, static = (marked_dimensions(tensors, kind) for kind in (DYNAMIC, STATIC))
        with self._lock:
            if ShapeFamily().depends_on(self.function, args, kwargs, arguments, static, marked, trace,
                                        self._needs_independent_results):
                self._raise_violation(tensors, marked, args, kwargs)

    def _raise_violation(self, tensors: Sequence[Any], marked: Sequence[frozenset[int]], args: tuple,
                         kwargs: dict[str, Any]) -> None:
        raise ConstraintViolationError([(f"{name}.size()[{d}]", x.shape[d]) for name, x, dims in zip(
            tensor_names(self.function, args, kwargs), tensors, marked, strict=True) for d in sorted(dims)])

    @property
    def _needs_provenance(self) -> bool:
        """Whether programs need a trace of this process, for provenance or debug output."""
        return self.records_provenance or debug_output.is_enabled("ir", "kernels")

    @property
    def _needs_independent_results(self) -> bool:
        """Whether traces must have `Tracer.needs_independent_results`."""
        return self._part_of is not None and self._part_of[0].inspects_gradients

    @property
    def _varies(self) -> bool | None:
        """Whether sizes may vary: from the first shape on, not at all, or (None) from the second one on."""
        if self.dynamic is not None:
            return self.dynamic
        if not policy.assume_static_by_default:
            return True
        return None if policy.automatic_dynamic_shapes else False

    def _instance(self, key: tuple, arguments: list[Any]) -> SignatureCache | None:
        """Return the cache of a signature whose program a template gives.

        None if there is no such template; also, with the signature in `_seen`, if most sizes do not come again often,
        and calls of this one have not yet taken as long eagerly as making its program takes.
        """
        family = self._families.get(family_key(key))
        free = [] if family is None or self.check else family.free_arguments()
        for instance_key in (key, *(without_values(key, positions) for positions in free)):
            cache = self._instances.pop(instance_key, None)
            if cache is not None:
                self._instances[instance_key] = cache
                if cache.matches(arguments) and any(entry.computed_inputs(arguments) is not None
                                                    and entry.python_guards_hold() for entry in cache.entries):
                    self._num_reused += 1
                    if family is not None:
                        family.num_served += 1
                    return cache
        if family is None or not policy.is_default:
            return None
        with self._lock:
            try:
                if self._num_instances >= MAX_NEW_SIZES and (
                        self._num_reused < CALLS_PER_SIZE * self._num_instances
                        and self._seen.get(key, 0.0) * self._num_instances < self._seconds_of_instances
                        and family.serves(arguments)):
                    self._seen.setdefault(key, 0.0)
                    return None
                self._seen.pop(key, None)
                started = perf_counter()
                entry = family.instance(arguments, self._next_program_name, self.check)
                self._seconds_of_instances += perf_counter() - started
            except Exception as error:
                self._warn_internal_error("has no program for other sizes", error)
                return None
        if entry is None:
            return None
        cache = SignatureCache(arguments, family_key(key))
        cache.entries.append(entry)
        size = entry.arena_bytes + sum(each.arena_bytes for made in self._instances.values() for each in made.entries)
        while self._instances and (len(self._instances) >= MAX_INSTANCES or size > MAX_ARENAS):
            dropped = self._instances.pop(next(iter(self._instances)))
            size -= sum(each.arena_bytes for each in dropped.entries)
        instance_key, cache.is_of_template = without_values(key, entry.free_arguments), True
        known = self._instances.pop(instance_key, None)  # their guards on Python objects do not hold
        if known is not None and known.matches(arguments):
            cache.entries += known.entries[:MAX_INSTANCES_OF_KEY - 1]
        self._instances[instance_key] = cache
        self._num_instances += 1
        family.num_served += 1
        return cache

    def _run_new_size(self, key: tuple, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Run a call eagerly, and record how long calls of its signature took in all."""
        started = perf_counter()
        result = self.function(*args, **kwargs)
        seconds = self._seen.pop(key, 0.0) + perf_counter() - started
        if len(self._seen) >= MAX_SEEN:
            self._seen.pop(next(iter(self._seen)), None)
        self._seen[key] = seconds
        return result

    def _expect_trace(self, cache: SignatureCache, arguments: list[Any], args: tuple, kwargs: dict[str, Any]) -> None:
        """Let the first trace of a call agree with that of a call with other sizes or numbers, if it does the same."""
        family, varies = self._families.get(cache.family), self._varies
        if family is None or varies is False or active_profilers[0] or self._needs_provenance:
            return
        static = marked_dimensions([x for x in arguments if isinstance(x, Tensor)], STATIC)
        with self._lock:
            try:
                trace = family.agreeing_trace(self.function, args, kwargs, arguments, static,
                                              self._needs_independent_results)
            except Exception as error:
                self._warn_internal_error("is compiled for each size", error)
                return
        if trace is not None:
            cache.pending_traces, cache.num_traces = [trace], 1

    def _make_template(self, key: tuple, arguments: list[Any], args: tuple, kwargs: dict[str, Any]) -> bool:
        """Try to make a template that serves a call with new sizes; return whether there is one."""
        family, varies = self._families.get(family_key(key)), self._varies
        if family is None or family.needs_other_tensors(arguments) or active_profilers[0] or (
                self._needs_provenance):
            return False
        tensors = [x for x in arguments if isinstance(x, Tensor)]
        marked, possible, static = (marked_dimensions(tensors, kind) for kind in (DYNAMIC, WEAKLY_DYNAMIC, STATIC))
        if varies is True:
            possible = [frozenset(range(x.ndim)) for x in tensors]
        if varies is False and not any(marked) and not any(possible):
            return False
        with self._lock:
            try:
                made = family.make_template(self.function, args, kwargs, arguments, static, marked, possible,
                                            self._needs_independent_results)
                made = made and (self._instance(key, arguments) is not None or key in self._seen)
            except Exception as error:
                self._warn_internal_error("is compiled for each size", error)
                return False
            if not made and any(marked) and key in self._signatures and any(
                    x.shape[d] > 1 for x, dims in zip(tensors, marked, strict=True) for d in dims):
                self._raise_violation(tensors, marked, args, kwargs)
            if not made and debug_output.is_enabled("recompiles"):
                debug_output.show(f"{self._title}: no program for other sizes\n  {family.reason}")
            return made

    def _number_varies(self, key: tuple) -> bool:
        """Whether a signature differs in numbers only, or in numbers and sizes only, from several others."""
        # state of other numbers or sizes is expected where there are programs
        others = [other for other, cache in self._signatures.items() if not (self.has_state and cache.entries)]
        return any(sum(without_numbers(other, sizes) == without_numbers(key, sizes) for other in others)
                   >= limit for sizes, limit in ((False, MAX_NUMBERS), (True, MAX_SIZES)))

    def _skipped_compilation(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Run a call with a new signature while the stance forbids compiling."""
        if not policy.fails_on_recompile:
            return self.function(*args, **kwargs)
        code = getattr(self.function, "__code__", None)
        file, line = ("", 0) if code is None else (code.co_filename, code.co_firstlineno)
        raise RuntimeError(f"Detected recompile when torch.compile stance is {policy.stance!r}. filename: {file!r}, "
                           f"function name: {self._title!r}, line number: {line}")

    def _limit_reached(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Run a call with one more signature than `recompile_limit` allows."""
        if self._part_of is not None:
            self._divide((), "an argument is another number in each call")
            return self.function(*args, **kwargs)
        if not self.fullgraph and not policy.fail_on_recompile_limit_hit:
            return self.function(*args, **kwargs)
        raise FailOnRecompileLimitHit(
            f"{self._title} has {len(self._signatures)} compiled signatures, as many as recompile_limit allows, and "
            "this call has another one. Pass tensors of the same shapes, or raise torch.compile(recompile_limit=...)")

    def _divide(self, frames: Sequence[BreakFrame], reason: str) -> None:
        """Split the function, or this part of one, because it cannot be compiled as a whole.

        Args:
            frames: the stack where the graph broke; () if unknown.
            reason: the reason.
        """
        if debug_output.is_enabled("graph_breaks"):
            debug_output.show(f"{self._title}: graph break\n  {reason}")
        if self._part_of is not None:
            split, key = self._part_of
            split.add_failure(frames, reason, key)
            return
        found = resolve(self.function)
        if found is None:
            return
        if self.split is None or self.split.function is not found[0]:
            self.split = SplitFunction(found[0], self._make_part, compile_module=self.like)
        self.split.add_failure(frames, reason)

    def _make_part(self, function: Callable[..., Any], split: SplitFunction, key: str) -> CompiledFunction:
        """Compile a part of a function that is split."""
        made = CompiledFunction(function, limit=MAX_PART_SIGNATURES, check=self.check, part_of=(split, key),
                                dynamic=self.dynamic)
        made.records_provenance = self.records_provenance
        return made

    def _call_split(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Run a call in parts."""
        split, found = self.split, resolve(self.function)
        if split is None or found is None or found[0] is not split.function or not split.is_ready:
            return self.function(*args, **kwargs)
        if policy.is_default and not any(cache.entries for cache in self._signatures.values()):
            self._call_stub = self._split_stub(split)
        return split(*found[1], *args, **kwargs)

    def _split_stub(self, split: SplitFunction) -> Callable[..., Any]:
        """Return the call stub of a function that is always run in parts: these check their own arguments."""
        function = self.function
        if function is split.function:
            code = split.function.__code__

            def call_function(*args: Any) -> Any:
                if special[0] or split.function.__code__ is not code:
                    return GUARDS_FAILED
                return split(*args)

            return call_function

        def call_split(*args: Any) -> Any:
            found = resolve(function)
            if special[0] or found is None or found[0] is not split.function or not split.is_ready:
                return GUARDS_FAILED
            return split(*found[1], *args)

        return call_split

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

    def _warn_internal_error(self, what: str, error: Exception) -> str:
        """Warn of an internal error that does not affect results, and return its description."""
        text = f"internal error: {type(error).__name__}: {error}"
        warnings.warn(f"{self._title} {what}: {text}. Please report it.", RuntimeWarning, stacklevel=4)
        return text

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

    def _relax_template(self, cache: SignatureCache, arguments: list[Any], trace: Trace) -> bool:
        """Let a template serve calls with other tensors, if that is the only reason why it did not; whether it was."""
        family = None if trace.failure is not None else self._families.get(cache.family)
        entry = None if family is None else family.relax_pins(arguments, trace)
        if entry is None:
            return False
        self._instances = {key: made for key, made in self._instances.items()
                           if (template := made.entries[0].template) is None or template.entry is not entry}
        self._call_stub = None
        return True

    def _add_pending(self, cache: SignatureCache, trace: Trace) -> None:
        """Let the traces of calls with other sizes or numbers agree with this one, unless finding out takes long."""
        if cache.family is not None and (cache.layouts or cache.numbers) and cache.seconds <= LONG:
            self._families.setdefault(cache.family, ShapeFamily()).pending = trace, cache.layouts, cache.numbers

    def _leave_if_empty(self, cache: SignatureCache) -> None:
        """Let a part run in Python if it has no kernels."""
        if self._part_of is not None and cache.entries and not cache.entries[0].program.schedule.kernels:
            split, key = self._part_of
            split.run_in_python(key)


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


__all__ = ["MAX_TRACES", "CompiledFunction"]
