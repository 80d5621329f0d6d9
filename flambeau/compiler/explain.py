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
from .execution.cache_entry import MISSED, Replay
from .execution.compiled_function import STRANGERS, TRIES, Compiled, is_fixed
from .execution.provenance import backward_origins, fates, fates_of_backward
from .guard_descriptions import advice, guards_of
from .guards.environment import is_followed
from .tracing.provenance import Origins, place_of
from .tracing.provenance_tracer import Lined
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

    def __init__(self, function: Callable[..., Any], call: tuple[tuple, dict[str, Any]], replay: Replay | None,
                 reason: str | None, origins: Origins | None = None) -> None:
        self.name = getattr(function, "__name__", type(function).__name__)
        self.replay, self.reason = replay, reason
        self._origins = origins or Origins({}, {}, {})
        self._guards = [] if replay is None else guards_of(replay, self._origins, function, call)
        self.graph_count, self.graph_break_count = int(replay is not None), int(replay is None)
        self.break_reasons = [] if reason is None else [reason]

    @property
    def kernels(self) -> list[str]:
        """The kernels in the order in which they run: each with its number, what it computes, and the lines it is from.

        Those of a backward program come after the others.
        """
        if self.replay is None:
            return []
        found = _kernels(self.replay.program, self._origins, fates(self.replay, self._origins))
        backward = self.replay.backward
        if backward is not None:
            found += _kernels(backward.program, backward_origins(self._origins, backward),
                              fates_of_backward(backward, self._origins))
        return found

    @property
    def guards(self) -> list[str]:
        """What has to hold for a call to be replayed."""
        return [*self._guards]

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
        why = self.replay.forgotten
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
                                _kernels(program, self._origins, fates(self.replay, self._origins)))]
        if backward is not None:
            of_backward = backward_origins(self._origins, backward)
            parts.append(_section("Kernels of backward", _kernels(backward.program, of_backward,
                                                                  fates_of_backward(backward, self._origins))))
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


def _kernels(program: Program, origins: Origins, fate: dict[Value, list[str]]) -> list[str]:
    found = []
    for number, kernel in enumerate(program.schedule.kernels):
        lines = [f"{number}  {printing.kernel_title(kernel)}"]
        lines += [f"     {line}" for line in printing.statements(kernel, origins.names)]
        lines += [f"     {line.format(value)}" for value in kernel.outputs for line in fate.get(value, ())]
        lines += [f"     from {line}" for line in origins.lines(program.schedule, kernel)]
        found.append("\n".join(lines))
    return found


def explanation(function: Callable[..., Any]) -> Callable[..., Explanation]:
    """A function that calls `function` a few times with its arguments, and tells what became of it."""
    made = function if isinstance(function, Compiled) else getattr(function, "__dict__", {}).get("_run")
    if not isinstance(made, Compiled):
        made = compile(function)
    if not isinstance(made, Compiled):
        made = made.__dict__["_run"]

    def told(*args: Any, **kwargs: Any) -> Explanation:
        call = (args, kwargs)
        before, made.explained = made.explained, True
        try:
            replay = _program(made, args, kwargs)
        finally:
            made.explained = before
        if replay is None:
            return Explanation(made.function, call, None, _why_not(made, args, kwargs))
        origins = replay.trace.origins or _origins(made.function, replay, args, kwargs)
        return Explanation(made.function, call, replay, None, origins)

    return told


def _program(made: Compiled, args: tuple, kwargs: dict[str, Any]) -> Replay | None:
    """The program that a call runs, after as many calls as it takes to have one."""
    tensors = [x for x in tree_flatten((args, kwargs))[0] if isinstance(x, Tensor)]
    for _ in range(TRIES):
        kind = made.kind_of(args, kwargs)
        known = [] if kind is None else [*kind.replays]
        for replay in known:
            if replay.run(tensors) is not MISSED:
                return replay
        if kind is not None and kind.refused is not None:
            return None
        made(*args, **kwargs)
        kind = made.kind_of(args, kwargs)
        if kind is not None and len(kind.replays) > len(known):
            return kind.replays[0]
    return None


def _why_not(made: Compiled, args: tuple, kwargs: dict[str, Any]) -> str | None:
    kind = made.kind_of(args, kwargs)
    if kind is not None and (kind.refused or kind.why):
        return kind.refused or kind.why
    if not codegen.available():
        return "there is no llvmlite, or FLAMBEAU_JIT is 0"
    if not made.works:
        return "its backend runs functions as they are"
    if special[0]:
        return "a mode is on in which operators run one by one: anomaly mode, forward mode, vmap, saved-tensor hooks"
    strange = [x for x in tree_flatten((args, kwargs))[0] if not is_fixed(x)]
    for x in strange:
        if not is_followed(x):
            return f"an argument is of class {type(x).__name__}: what it holds is not looked at"
    if strange and made._strange >= STRANGERS:
        return f"an argument is another object each time, of class {type(strange[0]).__name__}"
    return f"there are {made.limit} kinds of calls already (recompile_limit)"


def _origins(function: Callable[..., Any], replay: Replay, args: tuple, kwargs: dict[str, Any]) -> Origins | None:
    """The lines and names of a program that was made without them: the function is called once more, and watched."""
    capture = Lined(function, args, kwargs)
    tensors = [x for x in tree_flatten((args, kwargs))[0] if isinstance(x, Tensor)]
    with capture:
        capture.begin(tensors)
        trace = Trace(capture, tensors, function(*args, **kwargs))
    if replay.trace.difference(trace) is not None:
        return None
    found = capture.origins(trace)
    of = {value.number: value for value in replay.trace.graph.values}
    return Origins(found.places, {of[value.number]: name for value, name in found.names.items()}, found.labels)
