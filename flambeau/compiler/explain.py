"""What became of a function: its programs, what they depend on, and what keeps calls from being replayed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from .. import codegen
from .._tensor import Tensor
from ..ir import printing
from ..ir.debug_output import pluralize
from ..ir.graph.value import Value
from ..ir.schedule.program import Program
from ..modes import special
from ..trees import tree_flatten
from .api import compile
from .execution.cache_entry import GUARDS_FAILED, CacheEntry
from .execution.compiled_function import MAX_TRACES, MAX_UNSTABLE_SIGNATURES, CompiledFunction, is_static_argument
from .execution.provenance import backward_provenance, backward_result_uses, result_uses
from .guard_descriptions import advice, guards_of
from .guards.environment import is_traversable
from .tracing.provenance import Provenance, place_of
from .tracing.provenance_tracer import ProvenanceTracer
from .tracing.trace import Trace


class Explanation:
    """What `compile.explain` found; printing it tells all.

    Attributes:
        replay: the program of the call, or None.
        reason: why there is none, with the line.
        graph_count: how many programs the call is.
        graph_break_count: 0 where the whole call is one program, else 1.
        break_reasons: the reason, in a list, where there is one.
    """

    def __init__(self, function: Callable[..., Any], call: tuple[tuple, dict[str, Any]], entry: CacheEntry | None,
                 reason: str | None, origins: Provenance | None = None) -> None:
        self.name = getattr(function, "__name__", type(function).__name__)
        self.replay, self.reason = entry, reason
        self._origins = origins or Provenance({}, {}, {})
        self._emit_guards = [] if entry is None else guards_of(entry, self._origins, function, call)
        self.graph_count, self.graph_break_count = int(entry is not None), int(entry is None)
        self.break_reasons = [] if reason is None else [reason]

    @property
    def kernels(self) -> list[str]:
        """The kernels in the order in which they run: each with its number, what it computes, and the lines it is from.

        Those of a backward program come after the others.
        """
        if self.replay is None:
            return []
        found = _kernels(self.replay.program, self._origins, result_uses(self.replay, self._origins))
        backward = self.replay.backward
        if backward is not None:
            found += _kernels(backward.program, backward_provenance(self._origins, backward),
                              backward_result_uses(backward, self._origins))
        return found

    @property
    def guards(self) -> list[str]:
        """What has to hold for a call to be replayed."""
        return [*self._emit_guards]

    @property
    def fallbacks(self) -> list[str]:
        """Operators that NumPy computes, between compiled pieces: each with the reason and the line."""
        if self.replay is None:
            return []
        told: Counter[str] = Counter()
        plan = self.replay.program.schedule
        for kernel in plan.kernels:
            if kernel.name == "foreign":
                lines = "".join(f"\n  from {line}" for line in self._origins.lines(plan, kernel))
                told[f"{kernel.outputs[0].args[0].attrs.why}{lines}"] += 1
        return [text + (f", {times} times" if times > 1 else "") for text, times in told.items()]

    @property
    def next_process(self) -> str:
        """What the next process that calls the function does first, and why."""
        if self.replay is None:
            return "runs each call eagerly"
        why = self.replay.bypass_reason
        return "replays the first call" if why is None else f"captures a call before any is replayed: {why}"

    def __str__(self) -> str:
        if self.replay is None:
            return self._refusal()
        program, backward = self.replay.program, self.replay.backward
        head = (f"{self.name} is compiled: a call is one program of "
                f"{pluralize(len(program.schedule.kernels), 'kernel')}, "
                f"with {program.schedule.arena:,} bytes of memory of its own.")
        if backward is not None:
            head += ("\nWhat it returns may be differentiated: backward is a program of "
                     f"{pluralize(len(backward.program.schedule.kernels), 'kernel')}.")
        parts = [head, _section("Kernels, in the order in which they run",
                                _kernels(program, self._origins, result_uses(self.replay, self._origins)))]
        if backward is not None:
            of_backward = backward_provenance(self._origins, backward)
            parts.append(_section("Kernels of backward", _kernels(backward.program, of_backward,
                                                                  backward_result_uses(backward, self._origins))))
        parts.append(_section("Run by the interpreter, between compiled pieces", self.fallbacks))
        parts.append(_section("A call is replayed if", self.guards))
        return "\n\n".join(part for part in parts if part)

    __repr__ = __str__

    def _refusal(self) -> str:
        reason = self.reason or ""
        place = place_of(reason)
        why = reason if place is None else reason[:reason.rindex(" (")]
        lines = [f"{self.name} is not compiled: each call runs eagerly.", "", f"  {why}"]
        if place is not None:
            lines.append(f"  {place.said}")
        hint = advice(why)
        return "\n".join([*lines, *(["", hint] if hint else [])])


def _section(title: str, entries: Sequence[str]) -> str:
    return "\n".join([f"{title}:", *("  " + entry.replace("\n", "\n  ") for entry in entries)]) if entries else ""


def _kernels(program: Program, origins: Provenance, fate: dict[Value, list[str]]) -> list[str]:
    found = []
    for number, kernel in enumerate(program.schedule.kernels):
        lines = [f"{number}  {printing.kernel_title(kernel)}"]
        lines += [f"     {line}" for line in printing.statements(kernel, origins.names)]
        lines += [f"     {line.format(value)}" for value in kernel.outputs for line in fate.get(value, ())]
        lines += [f"     from {line}" for line in origins.lines(program.schedule, kernel)]
        found.append("\n".join(lines))
    return found


def make_explainer(function: Callable[..., Any]) -> Callable[..., Explanation]:
    """A function that calls `function` a few times with its arguments, and tells what became of it."""
    made = function if isinstance(function, CompiledFunction) else getattr(function, "__dict__", {}).get("_run")
    if not isinstance(made, CompiledFunction):
        made = compile(function)
    if not isinstance(made, CompiledFunction):
        made = made.__dict__["_run"]

    def told(*args: Any, **kwargs: Any) -> Explanation:
        call = (args, kwargs)
        before, made.records_provenance = made.records_provenance, True
        try:
            entry = _program(made, args, kwargs)
        finally:
            made.records_provenance = before
        if entry is None:
            return Explanation(made.function, call, None, _why_not(made, args, kwargs))
        origins = entry.trace.provenance or _origins(made.function, entry, args, kwargs)
        return Explanation(made.function, call, entry, None, origins)

    return told


def _program(made: CompiledFunction, args: tuple, kwargs: dict[str, Any]) -> CacheEntry | None:
    """The program that a call runs, after as many calls as it takes to have one."""
    tensors = [x for x in tree_flatten((args, kwargs))[0] if isinstance(x, Tensor)]
    for _ in range(MAX_TRACES):
        kind = made.signature_cache(args, kwargs)
        known = [] if kind is None else [*kind.entries]
        for entry in known:
            if entry.run(tensors) is not GUARDS_FAILED:
                return entry
        if kind is not None and kind.skip_reason is not None:
            return None
        made(*args, **kwargs)
        kind = made.signature_cache(args, kwargs)
        if kind is not None and len(kind.entries) > len(known):
            return kind.entries[0]
    return None


def _why_not(made: CompiledFunction, args: tuple, kwargs: dict[str, Any]) -> str | None:
    kind = made.signature_cache(args, kwargs)
    if kind is not None and (kind.skip_reason or kind.mismatch):
        return kind.skip_reason or kind.mismatch
    if not codegen.available():
        return "there is no llvmlite, or FLAMBEAU_JIT is 0"
    if not made.enabled:
        return "its backend runs functions as they are"
    if special[0]:
        return "a mode is on in which operators run one by one: anomaly mode, forward mode, vmap, saved-tensor hooks"
    unstable = [x for x in tree_flatten((args, kwargs))[0] if not is_static_argument(x)]
    for x in unstable:
        if not is_traversable(x):
            return f"an argument is of class {type(x).__name__}: what it holds is not looked at"
    if unstable and made._num_unstable >= MAX_UNSTABLE_SIGNATURES:
        return f"an argument is another object each time, of class {type(unstable[0]).__name__}"
    return f"there are {made.limit} kinds of calls already (recompile_limit)"


def _origins(function: Callable[..., Any], entry: CacheEntry, args: tuple, kwargs: dict[str, Any]) -> Provenance | None:
    """The lines and names of a program that was made without them: the function is called once more, and watched."""
    tracer = ProvenanceTracer(function, args, kwargs)
    tensors = [x for x in tree_flatten((args, kwargs))[0] if isinstance(x, Tensor)]
    with tracer:
        tracer.begin(tensors)
        trace = Trace(tracer, tensors, function(*args, **kwargs))
    if entry.trace.difference(trace) is not None:
        return None
    found = tracer.provenance(trace)
    of = {value.number: value for value in entry.trace.graph.values}
    return Provenance(found.places, {of[value.number]: name for value, name in found.names.items()}, found.labels)
