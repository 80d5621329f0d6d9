"""Compiled functions: a call that is like an earlier one is replayed."""

from __future__ import annotations

import functools
import threading
import types
import warnings
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ... import dtypes
from ..._tensor import Tensor
from ..._tensor.parameter import Parameter
from ...backends.compiled.allocator import trim
from ...engine.grad_mode import grad_mode, inference
from ...engine.profiler_events import spanned
from ...modes import active_tracer, active_tracers, profiled, special
from ...runtime import debug_output
from ...trees import tree_flatten
from ..cache import program_cache, trace_cache
from ..debug_output import report
from ..differential_check import checked
from ..errors import FailOnRecompileLimitHit, RecompileError, Unsupported
from ..guards.environment import CHANGING, GuardSet, is_range_or_slice, is_traversable
from ..stance import compiled_functions, policy
from ..tracing.aliasing import group_by_storage, owner, place
from ..tracing.provenance_tracer import ProvenanceTracer
from ..tracing.trace import MAX_TRACES, Trace
from ..tracing.tracer import Tracer
from .cache_entry import GUARDS_FAILED, CacheEntry
from .call_stub import call_stub

#: kinds of calls with objects that wait for a program: where each call has an object of its own there would be no end
MAX_UNSTABLE_SIGNATURES = 8
#: captures of one kind that may change what they saw: the first ones may set up something
MAX_MUTATIONS = 3
#: traces of different ways that wait for their like
MAX_PENDING_TRACES = 4
#: calls that may set up something before the first one of which an earlier process left the program
MAX_SETUP_CALLS = 2


def argument_signature(x: Any) -> Any:
    """What of an argument decides whether a program fits."""
    if isinstance(x, Tensor):
        a = x._array
        return ("tensor", a.shape, a.strides, a.dtype, x._requires_grad, x._node is None, type(x), x._inference)
    if isinstance(x, (float, complex, np.generic)):
        return (type(x), repr(x))  # which tells zeros of both signs apart, and finds NaN equal to itself
    if isinstance(x, (bool, int, str, bytes, type(None))):
        return (type(x), x)
    if is_range_or_slice(x):
        return (type(x), repr(x))
    return ("object", id(x))


def alias_signature(tensors: Sequence[Any]) -> tuple:
    """Which of the arguments are one, and how those lie that share memory; nothing where none do."""
    if len({id(owner(x._array)) for x in tensors}) == len(tensors):
        return ()
    found = []
    for members in group_by_storage(tensors):
        if len(members) > 1:
            places = [place(tensors[i]._array) for i in members]
            start = min(each[0] for each in places)
            same = [next(j for j in members if tensors[j] is tensors[i]) for i in members]
            found.append((tuple(members), tuple(each[0] - start for each in places), tuple(same)))
    return tuple(found)


def is_static_argument(x: Any) -> bool:
    """Whether an argument says by its value, or by what it is, all that it can say."""
    from ...nn import Module

    if isinstance(x, Tensor):
        return type(x) in (Tensor, Parameter)
    return is_range_or_slice(x) or isinstance(x, (bool, int, float, complex, str, bytes, type(None), type,
                                                  types.FunctionType, types.BuiltinFunctionType, dtypes.dtype, Module,
                                                  np.generic))


class SignatureCache:
    """Calls that look alike.

    Attributes:
        pending: traces that wait for one that agrees: of several ways through the function, perhaps.
        replays: programs, the latest first.
        tries: how often this was captured since a program was made.
        refused: why it is no more, or None.
        why: what the last two captures did not agree on.
        objects: arguments that are told apart by identity, weakly: others may take their places in memory.
        changes: how many captures changed what they saw.
        is_strange: whether they are objects that may be others each time, and there is no program yet.
        trusting: whether a run that another process knows needs no other to agree with; once, lest each is the last.
    """

    __slots__ = ("entries", "has_unstable_objects", "may_use_record", "mismatch", "num_mutations", "num_traces",
                 "object_refs", "pending_traces", "skip_reason")

    def __init__(self, arguments: Sequence[Any]) -> None:
        self.object_refs = [(i, weak_reference(x)) for i, x in enumerate(arguments)
                            if argument_signature(x)[0] == "object"]
        self.pending_traces: list[Trace] = []
        self.entries: list[CacheEntry] = []
        self.num_traces = 0
        self.skip_reason: str | None = None
        self.mismatch: str | None = None
        self.num_mutations = 0
        self.has_unstable_objects = False
        self.may_use_record = True

    def matches(self, arguments: Sequence[Any]) -> bool:
        """Whether arguments that look alike are the same objects, too."""
        return all(ref() is arguments[i] for i, ref in self.object_refs)


def weak_reference(x: Any) -> Callable[[], Any]:
    """What gives an object for as long as it lives, or for ever where it cannot be referred to weakly."""
    try:
        return weakref.ref(x)
    except TypeError:
        return lambda: x


class CompiledFunction:
    """A function whose runs are captured, and replayed where a call is like an earlier one; `compile` makes it.

    Args:
        function: the function.
        fullgraph: whether a call that cannot be replayed is an error.
        limit: how many kinds of calls get programs; None: as many as is said of all (`stance.conduct`).
        check: whether each replayed call is run eagerly as well, and compared.
        works: whether anything is captured at all.
    """

    def __init__(self, function: Callable[..., Any], *, fullgraph: bool = False, limit: int | None = None,
                 check: bool = False, enabled: bool = True) -> None:
        self.function = function
        if not isinstance(function, functools.partial) and hasattr(function, "__name__"):
            functools.update_wrapper(self, function, updated=())
        self.fullgraph, self.limit, self.check, self.enabled = fullgraph, limit, check, enabled
        self._signatures: dict[Any, SignatureCache] = {}
        self._lock = threading.RLock()
        self._call_stub: Callable[..., Any] | None = None
        self._count = 0  # of programs
        self._num_unstable = 0  # kinds of calls with objects that have no program yet
        self.records_provenance = False  # whether captures note lines and names
        compiled_functions.add(self)

    def __repr__(self) -> str:
        return f"<compiled {self.function!r}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickle, (self.function, self.fullgraph, self.limit, self.check, self.enabled)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def clear_call_stub(self) -> None:
        """Take the long way at the next call, which looks at what is said of all functions."""
        self._call_stub = None

    def reset(self) -> None:
        """Drop all programs."""
        self._signatures, self._call_stub, self._num_unstable = {}, None, 0

    @property
    def _title(self) -> str:
        return getattr(self.function, "__name__", type(self.function).__name__)

    def _next_program_name(self) -> str:
        """What the next program is called: as the function, with its number from the second on."""
        self._count += 1
        return self._title if self._count == 1 else f"{self._title}#{self._count}"

    def signature_cache(self, args: tuple, kwargs: dict[str, Any]) -> SignatureCache | None:
        """What is known of calls with such arguments."""
        return self._signatures.get(self._signature(*tree_flatten((args, kwargs))))

    @staticmethod
    def _signature(arguments: list[Any], tree: Any) -> tuple:
        tensors = [x for x in arguments if isinstance(x, Tensor)]
        return (repr(tree), *map(argument_signature, arguments), alias_signature(tensors), grad_mode.get(),
                inference.get(), dtypes.get_default_dtype())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        fast = self._call_stub
        if fast is not None and not kwargs:
            result = fast(*args)
            if result is not GUARDS_FAILED:
                return result
        if not self.enabled or (special[0] and (
                special[0] != profiled[0] + active_tracers[0] or active_tracer.get() is not None)):
            return self.function(*args, **kwargs)
        if not policy.is_default and policy.runs_eagerly:
            return self.function(*args, **kwargs)
        arguments, tree = tree_flatten((args, kwargs))
        key = self._signature(arguments, tree)
        kind = self._signatures.get(key)
        if kind is not None and not kind.matches(arguments):
            del self._signatures[key]
            kind = None
        if kind is None:
            if not policy.is_default:
                return self._skipped_compilation(args, kwargs)
            if policy.error_on_recompile and self._signatures:
                raise RecompileError(f"a call of {self._title} differs from those before by shapes, dtypes, modes or "
                                     "other arguments, and torch._dynamo.config.error_on_recompile is set")
            unstable = [x for x in arguments if not is_static_argument(x)]
            if len(self._signatures) >= (self.limit or policy.recompile_limit):
                return self._limit_reached(args, kwargs)
            if unstable and (self._num_unstable >= MAX_UNSTABLE_SIGNATURES or not all(map(is_traversable, unstable))):
                return self.function(*args, **kwargs)
            kind = self._signatures.setdefault(key, SignatureCache(arguments))
            kind.has_unstable_objects = bool(unstable)
            self._num_unstable += kind.has_unstable_objects
            self._load(kind, key, arguments)
        elif kind.may_use_record and 0 < kind.num_traces <= MAX_SETUP_CALLS:
            self._load(kind, key, arguments)
        tensors = [x for x in arguments if isinstance(x, Tensor)]
        for entry in [*kind.entries]:
            if self.check:
                result = checked(self.function, entry, tensors, args, kwargs)
            else:
                result = entry.run(tensors) if not special[0] else entry.run_profiled(tensors)
            if result is not GUARDS_FAILED:
                if entry.has_run and not self.check and policy.is_default:
                    self._call_stub = call_stub(entry, args, kwargs)  # which takes as long to write as many calls
                entry.has_run = True
                return result
            if entry.initialized_states and not entry.has_run:
                program_cache.discard_initial_state(entry.initialized_states)
                kind.entries.remove(entry)
        if kind.skip_reason is not None:
            return self.function(*args, **kwargs)
        return self._trace_call(kind, tensors, args, kwargs)

    def _skipped_compilation(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        """A call of a kind that was not met before, while nothing new is to be compiled."""
        if not policy.fails_on_recompile:
            return self.function(*args, **kwargs)
        code = getattr(self.function, "__code__", None)
        where = "" if code is None else f" filename: {code.co_filename!r}, line number: {code.co_firstlineno},"
        raise RuntimeError(f"Detected recompile when torch.compile stance is {policy.stance!r}.{where} function name: "
                           f"{self._title!r}: a call of this kind was not compiled before the stance was taken")

    def _limit_reached(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        """A call of one more kind than get programs."""
        if not self.fullgraph and not policy.fail_on_recompile_limit_hit:
            return self.function(*args, **kwargs)
        raise FailOnRecompileLimitHit(
            f"{self._title} was compiled for {len(self._signatures)} kinds of calls, as many as recompile_limit "
            "allows, and "
            "this is one more. Its arguments change from call to call: hand it tensors of the same shapes, or raise "
            "torch.compile(recompile_limit=...)")

    def _trace_key(self, trace: Trace, args: tuple, kwargs: dict[str, Any]) -> str:
        return trace_cache.trace_key(trace, self._signature(*tree_flatten((args, kwargs))))

    def _compile_agreed(self, kind: SignatureCache, trace: Trace, other: Trace, args: tuple,
                        kwargs: dict[str, Any]) -> CacheEntry:
        """The program of a trace that agrees with another, which later processes know of."""
        mine, theirs = trace.guard_set, other.guard_set
        assert mine is not None
        assert theirs is not None
        run = program_cache.SavedProgram(trace, mine.common_guards(theirs), self._trace_key(trace, args, kwargs),
                                    trace_cache.record_agreement(mine, theirs))
        entry = CacheEntry(trace, self._next_program_name(), run.seen, other, run.entry, run.known)
        entry.store_record()
        if kind.num_traces <= MAX_SETUP_CALLS + 1:
            mine.external_call = mine.external_call or theirs.external_call
            self._save(entry, run, mine, [*trace.initial_state, *other.initial_state],
                       kind.num_traces - 1, args, kwargs)
        else:
            entry.bypass_reason = "the first calls were not like the others"
        trace.initial_state = []
        return entry

    def _save(self, entry: CacheEntry, run: program_cache.SavedProgram, guard_set: GuardSet, initial: list[Any],
               after: int, args: tuple, kwargs: dict[str, Any]) -> None:
        """Leave a program to the next process, if that can find all that it depends on."""
        arguments, tree = tree_flatten((args, kwargs))
        place = program_cache.program_key(self.function, self._signature(arguments, tree), arguments)
        if place is not None:
            known = run.known._replace(free=(True,) * len(run.trace.argument_memory))
            try:
                entry.bypass_reason = program_cache.store(place, self.function, arguments, run._replace(known=known),
                                                      guard_set, initial, after)
            except Exception as error:
                entry.bypass_reason = self._warn_internal_error("cannot be kept for the next process", error)

    def _load(self, kind: SignatureCache, key: tuple, arguments: list[Any]) -> None:
        """Let calls be replayed as an earlier process found that they can be, if everything is as it was there."""
        # provenance and debug output need a trace of this process
        if self.records_provenance or debug_output.is_enabled("ir", "kernels"):
            return
        place = program_cache.program_key(self.function, key, arguments)
        if place is None:
            return
        with self._lock:
            try:
                found = program_cache.load(place, self.function, arguments, kind.num_traces)
            except Exception as error:
                self._warn_internal_error("cannot be looked up", error)
                return
        if found is not None:
            kind.may_use_record = not self._add_entry(kind, lambda: self._entry_from_saved(found))

    def _warn_internal_error(self, what: str, error: Exception) -> str:
        """Warn of an error of flambeau's own, without which all goes on; what it is."""
        said = f"an error of flambeau's own: {type(error).__name__}: {error}"
        warnings.warn(f"{self._title} {what}, by {said}. Please report it.", RuntimeWarning, stacklevel=4)
        return said

    def _entry_from_saved(self, found: program_cache.SavedProgram) -> CacheEntry:
        """The program of a run of an earlier process."""
        entry = CacheEntry(found.trace, self._next_program_name(), found.seen, found.trace, found.entry, found.known)
        entry.is_from_cache, entry.initialized_states = True, found.initialized_states
        return entry

    def _compile_known(self, kind: SignatureCache, trace: Trace, args: tuple,
                       kwargs: dict[str, Any]) -> CacheEntry | None:
        """The program of a trace like those on which an earlier process agreed."""
        guard_set = trace.guard_set
        if guard_set is None:
            return None
        trace_key = self._trace_key(trace, args, kwargs)
        for known in trace_cache.load(trace_key):
            seen = known.among(guard_set) if len(known.free) == len(trace.argument_memory) else None
            if seen is not None:
                entry = CacheEntry(trace, self._next_program_name(), seen, trace, trace_key, known)
                if kind.num_traces <= MAX_SETUP_CALLS:
                    self._save(entry, program_cache.SavedProgram(trace, seen, trace_key, known), guard_set,
                               trace.initial_state, kind.num_traces, args, kwargs)
                trace.initial_state = []
                return entry
        return None

    def _add_entry(self, kind: SignatureCache, make: Callable[[], CacheEntry | None]) -> bool:
        """Let calls of a kind be replayed, if there is a program for them; whether all is settled.

        An error on the way is flambeau's own: the calls run eagerly, and a warning says so.
        """
        try:
            entry = make()
        except Exception as error:
            if self.fullgraph:
                raise
            kind.skip_reason, kind.pending_traces = f"an error of flambeau's own: {type(error).__name__}: {error}", []
            warnings.warn(f"calls of {self._title} run eagerly, since flambeau failed to compile them: "
                          f"{type(error).__name__}: {error}. Please report it; compile(fullgraph=True) raises it.",
                          RuntimeWarning, stacklevel=4)
            return True
        if entry is None:
            return False
        kind.entries.insert(0, entry)
        self._num_unstable -= kind.has_unstable_objects
        kind.has_unstable_objects = False
        if entry.trace.provenance is not None:
            report(entry)
        kind.num_traces = 0
        trim()  # what the eager runs took, the program does not need
        return True

    def _lined(self, args: tuple, kwargs: dict[str, Any]) -> Tracer:
        """A capture that notes lines and names."""
        return ProvenanceTracer(self.function, args, kwargs)

    def _trace_call(self, kind: SignatureCache, tensors: Sequence[Any], args: tuple, kwargs: dict[str, Any]) -> Any:
        known = len(kind.entries)
        with self._lock, spanned(f"capture of {self._title}"):
            if len(kind.entries) != known:  # another thread was first
                return self.function(*args, **kwargs)
            last = kind.pending_traces[-1].guard_set if kind.pending_traces else None
            moved = None if last is None else last.moved()
            told = self.records_provenance or debug_output.is_enabled("ir", "kernels")
            tracer = self._lined(args, kwargs) if told else Tracer()
            tracer.frame_hook.hand(self._title, self.function)
            leaves, tree = tree_flatten((args, kwargs))
            for x in leaves:
                if not isinstance(x, Tensor):
                    tracer.frame_hook.hand(type(x).__name__, x)
            with tracer:
                tracer.begin(tensors)
                result = self.function(*args, **kwargs)
                after, now = tree_flatten((args, kwargs))
                if now != tree or any(x is not y for x, y in zip(leaves, after, strict=True)):
                    tracer.graph_break("a container among the arguments is changed")
                trace = Trace(tracer, tensors, result)
            trace.provenance = tracer.provenance(trace)
            tracer.forget()
            if any(entry.relax_pins(trace) for entry in kind.entries):
                return result
            if trace.failure is None:
                for other in reversed(kind.pending_traces):
                    why = other.difference(trace)
                    if why is None:
                        kind.pending_traces.remove(other)
                        self._add_entry(kind, lambda other=other: self._compile_agreed(  # type: ignore[misc]
                            kind, trace, other, args, kwargs))
                        return result
                    if other is kind.pending_traces[-1]:
                        kind.mismatch = why
                if kind.may_use_record and not told and self._add_entry(
                        kind, lambda: self._compile_known(kind, trace, args, kwargs)):
                    kind.may_use_record = False
                    return result
                if last is not None and moved is not None and trace.guard_set is not None:
                    changed = last.changed(trace.guard_set, moved)
                    if changed is not None:
                        kind.num_mutations += 1
                        if kind.mismatch is None or CHANGING in kind.mismatch:
                            kind.mismatch = changed
                kind.pending_traces = [*kind.pending_traces[-MAX_PENDING_TRACES:], trace]
                kind.num_traces += 1
                if kind.num_traces >= MAX_TRACES or kind.num_mutations >= MAX_MUTATIONS:
                    kind.skip_reason, kind.pending_traces = kind.mismatch, []
            else:
                kind.num_traces, kind.mismatch = kind.num_traces + trace.retry_cost, trace.failure
                if kind.num_traces >= MAX_TRACES:
                    kind.skip_reason, kind.pending_traces = trace.failure, []
        if self.fullgraph and kind.skip_reason is not None:
            raise Unsupported(f"a call of {self.function!r} cannot be compiled as a whole: {kind.skip_reason}")
        return result


def _unpickle(function: Callable[..., Any], fullgraph: bool, limit: int | None, check: bool,
              enabled: bool) -> CompiledFunction:
    return CompiledFunction(function, fullgraph=fullgraph, limit=limit, check=check, enabled=enabled)


__all__ = ["MAX_TRACES", "CompiledFunction"]
