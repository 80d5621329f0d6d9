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
from .execution.cache_entry import GUARDS_FAILED, CacheEntry
from .execution.compiled_function import MAX_TRACES, MAX_UNSTABLE_SIGNATURES, CompiledFunction, is_static_argument
from .execution.provenance import backward_provenance, backward_result_uses, result_uses
from .guard_descriptions import advice, guards_of
from .guards.object_kinds import is_traversable
from .stance import policy
from .tracing.provenance import Provenance, place_of
from .tracing.provenance_tracer import ProvenanceTracer
from .tracing.trace import Trace
from .tracing.trace_comparison import difference


class Explanation:
    """The report of `compile.explain`; printing it shows all parts.

    Attributes:
        replay: the cache entry of the call, or None.
        reason: why there is none, with the line.
        graph_count: 1 if the call is compiled, else 0.
        graph_break_count: 0 if the call is compiled, else 1.
        break_reasons: a list of the reason, empty if the call is compiled.
    """

    def __init__(self, function: Callable[..., Any], call: tuple[tuple, dict[str, Any]], entry: CacheEntry | None,
                 reason: str | None, provenance: Provenance | None = None) -> None:
        self.name = getattr(function, "__name__", type(function).__name__)
        self.replay, self.reason = entry, reason
        self._provenance = provenance or Provenance({}, {}, {})
        self._guards = [] if entry is None else guards_of(entry, self._provenance, function, call)
        self.graph_count, self.graph_break_count = int(entry is not None), int(entry is None)
        self.break_reasons = [] if reason is None else [reason]

    @property
    def kernels(self) -> list[str]:
        """The kernels in execution order, those of backward last: number, formula, and the lines they come from."""
        if self.replay is None:
            return []
        found = _kernels(self.replay.program, self._provenance, result_uses(self.replay, self._provenance))
        backward = self.replay.backward
        if backward is not None:
            found += _kernels(backward.program, backward_provenance(self._provenance, backward),
                              backward_result_uses(backward, self._provenance))
        return found

    @property
    def guards(self) -> list[str]:
        """The conditions under which a call is replayed."""
        return [*self._guards]

    @property
    def fallbacks(self) -> list[str]:
        """Operators that run eagerly between compiled kernels, with reasons and lines."""
        if self.replay is None:
            return []
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

    def _not_compiled(self) -> str:
        reason = self.reason or ""
        place = place_of(reason)
        text = reason if place is None else reason[:reason.rindex(" (")]
        lines = [f"{self.name} is not compiled: each call runs eagerly.", "", f"  {text}"]
        if place is not None:
            lines.append(f"  {place.text}")
        hint = advice(text)
        return "\n".join([*lines, *(["", hint] if hint else [])])


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
        call = (args, kwargs)
        before, made.records_provenance = made.records_provenance, True
        try:
            entry = _compile(made, args, kwargs)
        finally:
            made.records_provenance = before
        if entry is None:
            return Explanation(made.function, call, None, _skip_reason(made, args, kwargs))
        provenance = entry.trace.provenance or _trace_provenance(made.function, entry, args, kwargs)
        return Explanation(made.function, call, entry, None, provenance)

    return explain_call


def _compile(made: CompiledFunction, args: tuple, kwargs: dict[str, Any]) -> CacheEntry | None:
    """Call the function until there is an entry for these arguments; None if it is not compiled."""
    tensors = [x for x in tree_flatten((args, kwargs))[0] if isinstance(x, Tensor)]
    for _ in range(MAX_TRACES):
        cache = made.signature_cache(args, kwargs)
        entries = [] if cache is None else [*cache.entries]
        for entry in entries:
            if entry.run(tensors) is not GUARDS_FAILED:
                return entry
        if cache is not None and cache.skip_reason is not None:
            return None
        made(*args, **kwargs)
        cache = made.signature_cache(args, kwargs)
        if cache is not None and len(cache.entries) > len(entries):
            return cache.entries[0]
    return None


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
