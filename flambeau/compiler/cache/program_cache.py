"""Persistent program cache: traces with their guards on disk, so that the next process replays its first call.

A stored program is a trace (graph, sources, results) and the guards of its objects, which are identified by sources
(`compiler/sources.py`). The next process resolves the sources, compares the objects, checks the guards, and replays
the program without calling the function; if anything differs, it traces. Not stored: programs whose call warned or
called an impure C function, or that depend on objects which cannot be compared (`BypassCache`).
"""

from __future__ import annotations

import pickle
import types
from collections.abc import Sequence
from typing import Any

from ..._tensor import Tensor
from ...ir.schedule import plan_cache
from ...nn import Module
from ...runtime.cache_store import PROGRAMS
from ..fingerprints import BypassCache, argument_fingerprint, is_value, object_fingerprint
from ..guards.guard_set import GuardSet
from ..tracing.recomputation import current_budget
from .program_reader import read_program
from .program_writer import ProgramWriter
from .saved_program import SavedProgram
from .trace_cache import signature_fingerprint

#: the largest number of programs of one key, with different guarded values
MAX_PROGRAMS = 4


def program_key(function: Any, call: Sequence[Any], arguments: Sequence[Any]) -> str | None:
    """Return the cache key of calls of a function with one signature; None if they cannot be cached.

    Args:
        function: the function.
        call: the signature of the call (`CompiledFunction._signature`).
        arguments: the call's arguments, tensors and others.
    """
    python_function = _function_of(function)
    if python_function is None:
        return None
    try:
        of_function = object_fingerprint(python_function)
        if isinstance(function, types.MethodType) and isinstance(function.__self__, Module):
            of_function += object_fingerprint(type(function.__self__).forward)  # `Module.compile` compiles `_call_impl`
        of_arguments = [argument_fingerprint(x) for x in arguments if not isinstance(x, Tensor)]
    except (BypassCache, ValueError, RecursionError):  # an empty cell, or an object that contains itself
        return None
    return PROGRAMS.key(plan_cache.environment(), repr(current_budget()), of_function, *of_arguments,
                        *map(signature_fingerprint, call))


def _function_of(function: Any) -> types.FunctionType | None:
    if isinstance(function, types.MethodType):
        function = function.__func__
    elif isinstance(function, Module):
        function = type(function).forward
    return function if isinstance(function, types.FunctionType) else None


def store(key: str, function: Any, arguments: Sequence[Any], saved: SavedProgram, guard_set: GuardSet,
          initial: Sequence[Any], num_calls_before: int) -> str | None:
    """Store a program; return the reason if that is not possible, else None.

    Args:
        key: the cache key (`program_key`).
        function: the function.
        arguments: the call's arguments, tensors and others.
        saved: the program.
        guard_set: all guards of its trace.
        initial: tensors of zeros that optimizers made as initial state.
        num_calls_before: how many calls preceded the first one that the program replays; they may initialize something.
    """
    try:
        payload = ProgramWriter(function, arguments, saved, guard_set, initial, num_calls_before).payload()
    except (BypassCache, pickle.PicklingError) as error:
        return str(error)
    others = [each for each in _payloads(key) if each != payload]
    PROGRAMS.write(key, pickle.dumps([*others[1 - MAX_PROGRAMS:], payload]))
    return None


def _payloads(key: str) -> list[tuple[bytes, bytes]]:
    payload = PROGRAMS.read(key)
    if payload is None:
        return []
    try:
        return list(pickle.loads(payload))
    except (pickle.UnpicklingError, EOFError, ValueError, TypeError):  # a valid entry, but not of this format
        PROGRAMS.discard(key)
        return []


def load(key: str, function: Any, arguments: Sequence[Any], num_calls: int) -> SavedProgram | None:
    """Load the latest program of a key whose objects are all found and whose guards hold; None if there is none.

    Args:
        key: the cache key (`program_key`).
        function: the function.
        arguments: the call's arguments, tensors and others.
        num_calls: how many calls with this signature preceded this one.
    """
    roots = [function, *(x for x in arguments if not isinstance(x, Tensor) and not is_value(x))]
    tensors = [x for x in arguments if isinstance(x, Tensor)]
    for head, body in reversed(_payloads(key)):
        initialized_states: list[tuple[Any, Any]] = []
        try:
            return read_program(head, body, roots, tensors, num_calls, initialized_states)
        except (BypassCache, pickle.UnpicklingError, LookupError, AttributeError, ImportError, TypeError, ValueError,
                RecursionError):
            discard_initial_state(initialized_states)
    return None


def discard_initial_state(initialized_states: Sequence[tuple[Any, Any]]) -> None:
    """Remove the optimizers' state that was created while loading a program."""
    for optimizer, param in initialized_states:
        optimizer.state.pop(param, None)


__all__ = ["SavedProgram", "discard_initial_state", "load", "program_key", "store"]
