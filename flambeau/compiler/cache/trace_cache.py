"""Persistent trace cache: records of traces that agreed, so that one trace suffices in later processes.

Two traces must agree before calls are replayed. A trace that equals one of an earlier process, in graph, code and
guarded values, counts as the second. A record holds hashes of the guards that both traces had in common, of those that
only one had (objects that the call created), and which arguments are free.
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
from ..guards.guard import ARRAY, MODULE, RNG_STATE, SET, Guard
from ..guards.guard_set import GuardSet
from ..tracing.frame_hook import is_user_code
from ..tracing.trace import Trace

#: the largest number of records of one key, with different guarded values
MAX_RECORDS = 8


def trace_key(trace: Trace, call: Sequence[Any]) -> str:
    """Return the cache key of a trace: a hash of its graph, sources, results, code and signature.

    Args:
        trace: the trace.
        call: the signature of the call (`CompiledFunction._signature`).
    """
    guard_set = trace.guard_set
    assert guard_set is not None
    program = plan_cache.cache_key(trace.graph, trace.targets, [(g.value, g.outcome) for g in trace.data_guards],
                                   trace.effects)
    codes = sorted(code_fingerprint(code) for code in guard_set.codes if is_user_code(code))
    return TRACES.key(sys.version, program, *_trace_fingerprints(trace), *map(signature_fingerprint, call), *codes)


class TraceRecord(NamedTuple):
    """The record of two traces that agreed.

    Attributes:
        common: hashes of the guards of both, values included.
        separate: hashes of the guards of one of them, without values.
        free: by argument, whether it is not pinned.
    """

    common: frozenset[str]
    separate: frozenset[str]
    free: tuple[bool, ...] = ()

    def matching_guards(self, guard_set: GuardSet) -> list[Guard] | None:
        """Return the guards of a trace that are in `common`, modules last; None if the trace does not agree."""
        matching, hashes = [], set()
        for guard in guard_set.guards.values():
            guard_hash = _guard_hash(guard)
            if guard_hash in self.common:
                hashes.add(guard_hash)
                if guard.kind != RNG_STATE:
                    matching.append(guard)
            elif _place_hash(guard) not in self.separate:
                return None
        if hashes != self.common:
            return None
        return sorted(matching, key=lambda guard: guard.kind == MODULE)


def record_agreement(a: GuardSet, b: GuardSet) -> TraceRecord:
    """Return the record of two traces that agree, from their guards."""
    common = {_guard_hash(guard) for key, guard in a.guards.items() if key in b.guards}
    separate = {_place_hash(guard) for mine, other in ((a, b), (b, a))
                for key, guard in mine.guards.items() if key not in other.guards}
    return TraceRecord(frozenset(common), frozenset(separate))


def load(key: str) -> list[TraceRecord]:
    """Return the records of a key, the latest last."""
    payload = TRACES.read(key)
    if payload is None:
        return []
    try:
        return [TraceRecord(frozenset(common), frozenset(separate), tuple(map(bool, free)))
                for common, separate, free in json.loads(payload)]
    except (ValueError, TypeError):
        TRACES.discard(key)
        return []


def store(key: str, record: TraceRecord) -> None:
    """Add a record to a key."""
    others = [each for each in load(key) if each.common != record.common]
    TRACES.write(key, json.dumps([(sorted(each.common), sorted(each.separate), each.free)
                                  for each in (*others[1 - MAX_RECORDS:], record)]).encode())


# ----- fingerprints of traces ---------------------------------------------------------------


def _trace_fingerprints(trace: Trace) -> list[str]:
    """Return descriptions of a trace's metadata (all but its graph): sources, results, `.grad` updates, guards."""
    sources = [(number, source[0], *_value_fingerprints(source[1:]))
               for number, source in sorted(trace.sources.items())]
    results = [each._replace(base=None) if isinstance(each, OutputTensor) else (
        each[0], *_value_fingerprints(each[1:])) for each in trace.outputs]
    gradients = [(ref.kind, *_value_fingerprints((ref.which,)), layout) for ref, layout in trace.grad_updates]
    grad_absent = [(ref.kind, *_value_fingerprints((ref.which,))) for ref in trace.grad_absent]
    grad_presence = [(ref.kind, *_value_fingerprints((ref.which,)), has_grad) for ref, has_grad in trace.grad_presence]
    scalar_guards = [(key, index, compare.__name__, other, outcome)
                     for _, key, index, compare, other, outcome in trace.scalar_guards]
    joint = None if trace.joint is None else [v if v is None else v.number for v in trace.joint.gradients]
    return [repr(each) for each in (sources, results, gradients, grad_absent, grad_presence, scalar_guards, joint,
                                    trace.tree, trace.storage_offsets, trace.version_bumps, trace.written_leaves,
                                    trace.recomputation)]


def _value_fingerprints(values: Sequence[Any]) -> list[str]:
    return [value_fingerprint(x) for x in values]


def signature_fingerprint(x: Any) -> str:
    """Return the part of a signature that is the same in every process: without identities of objects."""
    return repr(x[0]) if isinstance(x, tuple) and x and x[0] == "object" else repr(x)


# ----- fingerprints of guards ---------------------------------------------------------------


def _place_hash(guard: Guard) -> str:
    """Return a hash of the place that a guard checks."""
    key = sorted(guard.key) if isinstance(guard.key, frozenset) else guard.key if isinstance(guard.key, str) else None
    return _hash(f"{guard.kind} {guard.path} {key}")


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _guard_hash(guard: Guard) -> str:
    """Return a hash of a guard's place and value."""
    value = guard.value
    if guard.kind == RNG_STATE:  # differs between processes
        fingerprint = ""
    elif guard.kind == ARRAY:
        fingerprint = f"{value.dtype} {value.shape} {hashlib.sha256(value.tobytes()).hexdigest()}"
    elif guard.kind == SET:
        fingerprint = repr(sorted(map(value_fingerprint, value)))
    else:
        fingerprint = value_fingerprint(value)
    return _hash(f"{_place_hash(guard)} {fingerprint}")


__all__ = ["TraceRecord", "load", "record_agreement", "signature_fingerprint", "store", "trace_key"]
