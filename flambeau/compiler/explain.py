"""`explain`: a report of a compiled function's kernels and guards, or of the reason why it is not compiled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from .. import codegen
from .._tensor import Tensor
from ..ir import printing
from ..ir.debug_output import pluralize
from ..ir.graph.value import Value
from ..ir.kernels.pointwise import FALLBACK
from ..ir.schedule.program import Program
from ..modes import special
from ..trees import tree_flatten
from .api import compile
from .execution.cache_entry import CacheEntry
from .execution.compiled_function import MAX_UNSTABLE_SIGNATURES, CompiledFunction, RecordedCall, recorded_calls
from .execution.provenance import backward_provenance, backward_result_uses, program_provenance, result_uses
from .execution.signatures import is_static_argument
from .execution.traced_calls import num_traces
from .guard_descriptions import advice, guards_of
from .guards.object_kinds import is_traversable
from .repeated_calls import RepeatedCalls
from .stance import policy
from .state.with_state import WithState
from .tracing.provenance import Provenance, place_of
from .tracing.provenance_tracer import ProvenanceTracer
from .tracing.trace import MAX_TRACES, Trace
from .tracing.trace_comparison import difference

#: calls until a function that is split is traced no more
_MAX_CALLS = 64


class Explanation:
    """The report of `compile.explain`; printing it shows all parts.

    Attributes:
        replay: the cache entry of the call, or None.
        reason: why there is none, with the line.
        not_split: why a function that is not compiled cannot be split either, or None.
        parts: reports of the programs that ran, in order, of a call that is split.
        graph_count: the number of programs that a call runs.
        graph_break_count: one less, as in PyTorch: 0 if the call is one program, -1 if it is not compiled.
        break_reasons: why the call is not one program, a reason for each break.
    """

    def __init__(self, function: Callable[..., Any], call: tuple[tuple, dict[str, Any]], entry: CacheEntry | None,
                 reason: str | None, provenance: Provenance | None = None, parts: Sequence[Explanation] = (),
                 reasons: Sequence[str] = (), not_split: str | None = None) -> None:
        self.name = getattr(function, "__name__", type(function).__name__)
        self.replay, self.reason = entry, reason
        self._provenance = provenance or Provenance({}, {}, {})
        self._guards = [] if entry is None else guards_of(entry, self._provenance, function, call)
        if entry is not None:
            self._provenance = program_provenance(self._provenance, entry)
        self.parts, self.not_split = [*parts], not_split
        self.graph_count = len(parts) + (entry is not None)
        self.graph_break_count = self.graph_count - 1
        self.break_reasons = [*reasons] if reason is None else [reason]

    @property
    def kernels(self) -> list[str]:
        """The kernels in execution order, those of backward last: number, formula, and the lines they come from."""
        if self.replay is None:
            return [kernel for part in self.parts for kernel in part.kernels]
        found = _kernels(self.replay.program, self._provenance, result_uses(self.replay, self._provenance))
        backward = self.replay.backward
        if backward is not None:
            found += _kernels(backward.program, backward_provenance(self._provenance, backward),
                              backward_result_uses(backward, self._provenance))
        return found

    @property
    def guards(self) -> list[str]:
        """The conditions under which a call is replayed."""
        return [*self._guards, *(guard for part in self.parts for guard in part.guards)]

    @property
    def fallbacks(self) -> list[str]:
        """Operators that run eagerly between compiled kernels, with reasons and lines."""
        if self.replay is None:
            return [text for part in self.parts for text in part.fallbacks]
        counts: Counter[str] = Counter()
        plan = self.replay.program.schedule
        for kernel in plan.kernels:
            if kernel.name == FALLBACK:
                lines = "".join(f"\n  from {line}" for line in self._provenance.lines(plan, kernel))
                counts[f"{kernel.outputs[0].args[0].attrs.why}{lines}"] += 1
        return [text + (f", {times} times" if times > 1 else "") for text, times in counts.items()]

    @property
    def next_process(self) -> str:
        """Whether the next process replays the program from the persistent cache at once, and why not."""
        if self.replay is None:
            return "runs each call eagerly"
        why = self.replay.bypass_reason
        return "replays the first call" if why is None else f"traces a call before it replays: {why}"

    def __str__(self) -> str:
        if self.parts:
            return self._split()
        if self.replay is None:
            return self._not_compiled()
        program, backward = self.replay.program, self.replay.backward
        head = (f"{self.name} is compiled: a call is one program of "
                f"{pluralize(len(program.schedule.kernels), 'kernel')}, "
                f"with {program.schedule.arena:,} bytes of intermediate buffers.")
        if backward is not None:
            head += ("\nIts results are differentiable: backward is a program of "
                     f"{pluralize(len(backward.program.schedule.kernels), 'kernel')}.")
        parts = [head, _section("Kernels, in the order in which they run",
                                _kernels(program, self._provenance, result_uses(self.replay, self._provenance)))]
        if backward is not None:
            backward_names = backward_provenance(self._provenance, backward)
            parts.append(_section("Kernels of backward", _kernels(backward.program, backward_names,
                                                                  backward_result_uses(backward, self._provenance))))
        parts.append(_section("Operators that run eagerly, between compiled kernels", self.fallbacks))
        parts.append(_section("A call is replayed if", self.guards))
        return "\n\n".join(part for part in parts if part)

    __repr__ = __str__

    def _split(self) -> str:
        head = f"{self.name} is split: a call runs {pluralize(self.graph_count, 'program')}, with Python between them."
        breaks = [text for reason in dict.fromkeys(self.break_reasons) for text in [_with_line(reason)]]
        return "\n\n".join([head, _section("It is split because", breaks), *map(str, self.parts)])

    def _not_compiled(self) -> str:
        reason = self.reason or ""
        text = _with_line(reason)
        lines = [f"{self.name} is not compiled: each call runs eagerly.", "", *(f"  {x}" for x in text.split("\n"))]
        if self.not_split is not None:
            lines += ["", f"It cannot be split: {self.not_split}."]
        hint = advice(reason)
        return "\n".join([*lines, *(["", hint] if hint else [])])


def _with_line(reason: str) -> str:
    """Return a reason, with the text of its line below."""
    place = place_of(reason)
    return reason if place is None else f"{reason[:reason.rindex(' (')]}\n{place.text}"


def _section(title: str, entries: Sequence[str]) -> str:
    return "\n".join([f"{title}:", *("  " + entry.replace("\n", "\n  ") for entry in entries)]) if entries else ""


def _kernels(program: Program, provenance: Provenance, uses: dict[Value, list[str]]) -> list[str]:
    texts = []
    for number, kernel in enumerate(program.schedule.kernels):
        lines = [f"{number}  {printing.kernel_title(kernel)}"]
        lines += [f"     {line}" for line in printing.statements(kernel, provenance.names)]
        lines += [f"     {line.format(value)}" for value in kernel.outputs for line in uses.get(value, ())]
        lines += [f"     from {line}" for line in provenance.lines(program.schedule, kernel)]
        texts.append("\n".join(lines))
    return texts


def make_explainer(function: Callable[..., Any]) -> Callable[..., Explanation]:
    """Return the function that `compile.explain` returns."""
    made = function if isinstance(function, CompiledFunction) else getattr(function, "__dict__", {}).get("_run")
    if not isinstance(made, CompiledFunction):
        made = compile(function)
    if not isinstance(made, CompiledFunction):
        made = made.__dict__["_run"]

    def explain_call(*args: Any, **kwargs: Any) -> Explanation:
        call: tuple[tuple, dict[str, Any]] = (args, kwargs)
        function = made.function
        before, made.records_provenance = made.records_provenance, True
        calls_of = RepeatedCalls(function, args, kwargs)
        try:
            entry = _compile(made, args, kwargs, calls_of)
            calls = [] if entry is not None else _stateful_calls(made, args, kwargs, calls_of)
            if entry is None and len(calls) == 1 and isinstance(calls[0].function, WithState):
                function, entry, *call = calls.pop()  # type: ignore[assignment]
            elif not calls and entry is None:
                calls = _split_calls(made, args, kwargs, calls_of)
        finally:
            made.records_provenance = before
        if calls:
            assert made.split is not None
            parts = [Explanation(each.function, each[2:], each.entry, None, each.entry.trace.provenance)
                     for each in calls if each.entry.program.schedule.kernels]  # a graph without operators is none
            return Explanation(made.function, call, None, None, parts=parts, reasons=made.split.break_reasons())
        if entry is None:
            reason = _skip_reason(made, args, kwargs)
            not_split = None if made.split is None else made.split.failure
            return Explanation(made.function, call, None, reason, not_split=not_split)
        provenance = entry.trace.provenance or calls_of.run(lambda: _trace_provenance(function, entry, *call))
        return Explanation(function, (call[0], call[1]), entry, None, provenance)

    return explain_call


def _compile(made: CompiledFunction, args: tuple, kwargs: dict[str, Any], calls: RepeatedCalls) -> CacheEntry | None:
    """Call the function until there is an entry for these arguments; None if it is not compiled."""
    tensors = [x for x in tree_flatten((args, kwargs))[0] if isinstance(x, Tensor)]
    for _ in range(MAX_TRACES):
        cache = made.signature_cache(args, kwargs)
        entries = [] if cache is None else [*cache.entries]
        for entry in entries:
            if calls.replay(entry, tensors):
                return entry
        if made.stateful or (cache is not None and cache.skip_reason is not None):
            return None
        calls.run(lambda: made(*args, **kwargs))
        cache = made.signature_cache(args, kwargs)
        if cache is not None and len(cache.entries) > len(entries):
            return cache.entries[0]
    return None


def _stateful_calls(made: CompiledFunction, args: tuple, kwargs: dict[str, Any], calls: RepeatedCalls
                    ) -> list[RecordedCall]:
    """Call a function whose state is an input until nothing is traced; return the programs that a call then runs."""
    return _recorded_calls(made, args, kwargs, calls, lambda: any(made.stateful.values()) and made.split is None)


def _split_calls(made: CompiledFunction, args: tuple, kwargs: dict[str, Any], calls: RepeatedCalls
                 ) -> list[RecordedCall]:
    """Call a function that is split until nothing is traced; return the programs that a call then runs."""
    return _recorded_calls(made, args, kwargs, calls, lambda: made.split is not None and made.split.is_ready)


def _recorded_calls(made: CompiledFunction, args: tuple, kwargs: dict[str, Any], repeated: RepeatedCalls,
                    goes_on: Callable[[], bool]) -> list[RecordedCall]:
    for _ in range(_MAX_CALLS):
        before = num_traces[0]
        if not goes_on():
            return []
        policy.change()  # no call stubs, which do not record calls
        calls: list[RecordedCall] = []
        token = recorded_calls.set(calls)
        try:
            repeated.run(lambda: made(*args, **kwargs))
        finally:
            recorded_calls.reset(token)
        if num_traces[0] == before:
            return calls
    return []


def _skip_reason(made: CompiledFunction, args: tuple, kwargs: dict[str, Any]) -> str | None:
    cache = made.signature_cache(args, kwargs)
    if cache is not None and (cache.skip_reason or cache.mismatch):
        return cache.skip_reason or cache.mismatch
    if not codegen.available():
        return "there is no llvmlite, or FLAMBEAU_JIT is 0"
    if not made.enabled:
        return "its backend runs functions eagerly"
    if special[0]:
        return "a mode is active that is not compiled: anomaly mode, forward mode, vmap, saved-tensor hooks"
    unstable = [x for x in tree_flatten((args, kwargs))[0] if not is_static_argument(x)]
    for x in unstable:
        if not is_traversable(x):
            return f"an argument is of class {type(x).__name__}, whose contents cannot be guarded"
    if unstable and made._num_unstable >= MAX_UNSTABLE_SIGNATURES:
        return f"an argument is another object each time, of class {type(unstable[0]).__name__}"
    return f"there are {made.limit or policy.recompile_limit} compiled signatures already (recompile_limit)"


def _trace_provenance(function: Callable[..., Any], entry: CacheEntry, args: tuple, kwargs: dict[str, Any]
                      ) -> Provenance | None:
    """Trace the function once more to get the provenance of an entry that was compiled without."""
    tracer = ProvenanceTracer(function, args, kwargs)
    tensors = [x for x in tree_flatten((args, kwargs))[0] if isinstance(x, Tensor)]
    with tracer:
        tracer.bind_arguments(tensors)
        trace = Trace(tracer, tensors, function(*args, **kwargs))
    if difference(entry.trace, trace) is not None:
        return None
    provenance = tracer.provenance(trace)
    by_number = {value.number: value for value in entry.trace.graph.values}
    names = {by_number[value.number]: name for value, name in provenance.names.items()}
    return Provenance(provenance.places, names, provenance.labels)
