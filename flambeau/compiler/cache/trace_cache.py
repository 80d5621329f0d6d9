"""What earlier processes learned: runs that another one agreed with are kept on disk, by what they did and saw.

Two runs must agree before calls are replayed, since one does not show what changes from call to call. A run that did
what runs of an earlier process did, which agreed, after the same code saw the same numbers and names, is the second of
two already: so from the second process on one run is enough. Kept is what such runs saw alike, what each saw for itself
(objects that it made), and which arguments are free; the plan and the code have entries of their own.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

from ...ir.schedule import plan_cache
from ...runtime.cache_store import TRACES
from ..fingerprints import code_fingerprint, value_fingerprint
from ..guards.arguments import OutputTensor
from ..guards.environment import ARRAY, MODULE, RNG_STATE, SET, Guard, GuardSet
from ..tracing.frame_hook import is_user_code
from ..tracing.trace import Trace

#: runs of one name, which saw other numbers, that are kept
MAX_RECORDS = 8


def trace_key(trace: Trace, call: Sequence[Any]) -> str:
    """The name of the entry for a run.

    Args:
        call: what the call looked like (`Compiled._key`).
    """
    guard_set = trace.guard_set
    assert guard_set is not None
    program = plan_cache.cache_key(trace.graph, trace.targets, [(g.value, g.outcome) for g in trace.data_guards],
                                   trace.effects)
    codes = sorted(code_fingerprint(code) for code in guard_set.codes if is_user_code(code))
    return TRACES.key(sys.version, program, *_run(trace), *map(signature_fingerprint, call), *codes)


class TraceRecord(NamedTuple):
    """What is known of runs of a name.

    Attributes:
        lasting: hashes of what all of them saw, values included.
        passing: hashes of what each saw for itself, without values.
        free: which arguments may be any.
    """

    lasting: frozenset[str]
    passing: frozenset[str]
    free: tuple[bool, ...] = ()

    def among(self, guard_set: GuardSet) -> list[Guard] | None:
        """What of a run's surroundings all runs saw, modules last; None where this run saw something else."""
        found, met = [], set()
        for each in guard_set.seen.values():
            said = _seen(each)
            if said in self.lasting:
                met.add(said)
                if each.kind != RNG_STATE:
                    found.append(each)
            elif _place(each) not in self.passing:
                return None
        if met != self.lasting:
            return None
        return sorted(found, key=lambda each: each.kind == MODULE)


def record_agreement(mine: GuardSet, other: GuardSet) -> TraceRecord:
    """What two runs that agree show."""
    lasting = {_seen(each) for key, each in mine.seen.items() if key in other.seen}
    passing = {_place(each) for run, beside in ((mine, other), (other, mine))
               for key, each in run.seen.items() if key not in beside.seen}
    return TraceRecord(frozenset(lasting), frozenset(passing))


def load(entry: str) -> list[TraceRecord]:
    """What is known of runs of this name, the latest last: some saw other numbers."""
    payload = TRACES.read(entry)
    if payload is None:
        return []
    try:
        return [TraceRecord(frozenset(lasting), frozenset(passing), tuple(map(bool, free)))
                for lasting, passing, free in json.loads(payload)]
    except (ValueError, TypeError):
        TRACES.discard(entry)
        return []


def store(entry: str, known: TraceRecord) -> None:
    """Keep what is known of runs of this name."""
    others = [each for each in load(entry) if each.lasting != known.lasting]
    TRACES.write(entry, json.dumps([(sorted(each.lasting), sorted(each.passing), each.free)
                                  for each in (*others[1 - MAX_RECORDS:], known)]).encode())


# ----- what a run did -----------------------------------------------------------------------


def _run(trace: Trace) -> list[str]:
    """What a program's graph does not say of a run: where its leaves come from, what becomes of its results."""
    sources = [(number, source[0], *_plain(source[1:])) for number, source in sorted(trace.sources.items())]
    results = [each._replace(base=None) if isinstance(each, OutputTensor) else (each[0], *_plain(each[1:]))
               for each in trace.outputs]
    gradients = [(held.kind, *_plain((held.which,)), shown) for held, shown in trace.grad_updates]
    without = [(held.kind, *_plain((held.which,))) for held in trace.grad_absent]
    grad_presence = [(held.kind, *_plain((held.which,)), has_one) for held, has_one in trace.grad_presence]
    scalar_guards = [(key, index, compare.__name__, other, outcome)
                 for _, key, index, compare, other, outcome in trace.scalar_guards]
    joint = None if trace.joint is None else [v if v is None else v.number for v in trace.joint.gradients]
    return [repr(each) for each in (sources, results, gradients, without, grad_presence, scalar_guards, joint,
                                    trace.tree, trace.storage_offsets, trace.version_bumps, trace.written_leaves)]


def _plain(things: Sequence[Any]) -> list[str]:
    return [value_fingerprint(x) for x in things]


def signature_fingerprint(x: Any) -> str:
    """What of a call's key another process can have, too."""
    return repr(x[0]) if isinstance(x, tuple) and x and x[0] == "object" else repr(x)


# ----- what it saw --------------------------------------------------------------------------


def _place(each: Guard) -> str:
    """How a thing is reached, by a hash."""
    key = sorted(each.key) if isinstance(each.key, frozenset) else each.key if isinstance(each.key, str) else None
    return _hash(f"{each.kind} {each.path} {key}")


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _seen(each: Guard) -> str:
    """How a thing is reached and what was there, by a hash."""
    value = each.value
    if each.kind == RNG_STATE:  # which stands somewhere else in each process
        said = ""
    elif each.kind == ARRAY:
        said = f"{value.dtype} {value.shape} {hashlib.sha256(value.tobytes()).hexdigest()}"
    elif each.kind == SET:
        said = repr(sorted(map(value_fingerprint, value)))
    else:
        said = value_fingerprint(value)
    return _hash(f"{_place(each)} {said}")


__all__ = ["TraceRecord", "load", "record_agreement", "signature_fingerprint", "store", "trace_key"]
