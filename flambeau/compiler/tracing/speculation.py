"""Speculation: user code that a trace runs where an eager call would not, or less often, without other effects.

The joint graph is traced by a backward pass that the user has not asked for. What it may run (custom Functions, unpack
hooks) is found before it starts, and all Python objects that this code can reach are restored afterwards. Code that was
not found, a side effect, and a write to memory that exists already end the pass before they happen.

A checkpointed function runs once in a program, and twice in eager code. It is tried once; if it has effects, these are
undone, and it is checkpointed.
"""

from __future__ import annotations

import random
import sys
import types
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..._tensor.creation.generators import default_generator
from ..._tensor.custom_functions.node import FunctionNode
from ...engine.nodes.op_node import OpNode
from ...engine.saved.saved_tensors import Packed
from ...ir.graph.value import Unsupported
from ...trees import tree_flatten
from ..guards.guard import ATTRIBUTE, QUERY, RNG_STATE, UNSUPPORTED, Guard
from ..guards.guard_set import GuardSet
from ..guards.object_kinds import LRU_CACHE
from ..symbolic.formulas import NotSymbolic
from ..symbolic.rollback import preserved_objects, restorers
from . import aliasing
from .frame_hook import FrameHook, SideEffect, global_state, is_own_function, is_stdlib_file

#: a limit of rounds in which code leads to names, and names to code
_MAX_ROUNDS = 10
#: methods that run although no code names them
_IMPLICIT = ("forward", "backward", "__call__", "__enter__", "__exit__", "__getattr__", "__next__",
             "__torch_function__", *dir(int), *dir(list), *dir(dict))
_IMPLICIT_NAMES = compile(", ".join(f"x.{name}" for name in _IMPLICIT), "<methods>", "eval")


class _ReachableCode(GuardSet):
    """The guards on all that code can reach, and the functions among it."""

    def __init__(self, hook: FrameHook) -> None:
        self.found: dict[int, tuple[types.CodeType, dict[str, Any]]] = {}
        super().__init__(hook, ())

    def _function(self, function: types.FunctionType, path: str) -> None:
        if not is_own_function(function) and not is_stdlib_file(function.__code__.co_filename):
            self.found.update(with_nested(function))
        super()._function(function, path)


def with_nested(function: types.FunctionType) -> Iterator[tuple[int, tuple[types.CodeType, dict[str, Any]]]]:
    """Yield, by identity, the code of a function and of those that are defined in it, with its globals."""
    pending = [function.__code__]
    while pending:
        code = pending.pop()
        yield id(code), (code, function.__globals__)
        pending += [x for x in code.co_consts if isinstance(x, types.CodeType)]


def reachable(roots: Iterable[Any]) -> tuple[_ReachableCode, set[int]]:
    """Return the guards on what roots lead to, and the identities of the code that they may run."""
    known = FrameHook()
    known.codes[id(_IMPLICIT_NAMES)] = _IMPLICIT_NAMES, None
    known.objects = {id(x): (getattr(x, "__name__", type(x).__name__), x) for x in roots}
    for _ in range(_MAX_ROUNDS):
        reached = _ReachableCode(known)
        if reached.failure is not None:
            raise Unsupported(reached.failure)
        if reached.found.keys() <= known.codes.keys():
            return reached, set(known.codes)
        known.codes |= {key: found for key, found in reached.found.items() if key not in known.codes}
    raise Unsupported("a backward pass that may run too much user code")


def user_code_of(outputs: Sequence[Any], ends: set[Any]) -> list[Any]:
    """Return the functions and objects through which a backward pass may run user code.

    Args:
        outputs: the tensors where it starts.
        ends: the nodes where it ends.
    """
    roots: list[Any] = []
    pending = [x._node for x in outputs]
    seen = {*pending, *ends}
    while pending:
        node = pending.pop()
        if isinstance(node, FunctionNode):
            function = node._forward_cls
            own = function if hasattr(function, "backward") else type(node)
            roots += [each for each in (getattr(own, "backward", None), getattr(own, "vjp", None))
                      if each is not None and not is_own_function(each)]
            roots.append(node.__dict__)
        roots += [part for packed in packed_values(node) for part in (packed.unpack_hook, packed.data)]
        for below in node.edges:
            if below is not None and below not in seen:
                seen.add(below)
                pending.append(below)
    return roots


def packed_values(node: Any) -> list[Packed]:
    """Return what saved-tensor hooks packed of a node's saved tensors."""
    if isinstance(node, FunctionNode):
        return [value for kind, value, *_ in node._saved if kind == "packed"]
    if not isinstance(node, OpNode):
        return []
    entries = [entry[0] if isinstance(entry, tuple) else entry for entry in node.saved or ()]
    return [entry for entry in entries if entry.__class__ is Packed]


@contextmanager
def without_effects(tracer: Any, roots: Sequence[Any]) -> Iterator[None]:
    """A block in which user code runs that leaves no effects.

    Args:
        tracer: the tracer.
        roots: functions and objects that lead to this code.

    Raises:
        Unsupported: it has effects that cannot be undone, or cannot be found.
    """
    if not roots:
        yield
        return
    hook = tracer.frame_hook
    reached, codes = reachable(roots)
    if any(guard.kind in (RNG_STATE, UNSUPPORTED) for guard in reached.guards.values()):
        raise Unsupported("a backward pass with an iterator or a random number generator")
    known = frozenset(tracer.storages)

    def check_write(tensor: Any) -> None:
        root = id(aliasing.owner(tensor._array))
        if root in known or root not in tracer.storages:
            raise SideEffect("a write to a tensor")

    states, before = random_states(), (hook.known_codes, tracer.check_write)
    hook.known_codes, tracer.check_write = codes, check_write
    try:
        contexts = {id(each) for each in roots}  # of custom Functions: each call makes its own
        with preserved_objects([*reached.guards.values()]):
            yield
            for guard in reached.guards.values():
                if id(guard.holder) not in contexts and guard.kind != QUERY and not guard.holds():
                    raise Unsupported(f"a backward pass that changes {guard.path}")
    except SideEffect as effect:
        raise Unsupported(f"a backward pass with a side effect: {effect}") from None
    except NotSymbolic as error:
        raise Unsupported(str(error)) from None
    finally:
        hook.known_codes, tracer.check_write = before
        for restore in states:
            restore()


def run_once(tracer: Any, function: Callable[..., Any], args: tuple, kwargs: dict[str, Any],
             roots: Sequence[Any] = ()) -> tuple[bool, Any]:
    """Call a function that eager code runs twice, unless it does something that shows how often it runs.

    Args:
        tracer: the tracer.
        function, args, kwargs: what is called.
        roots: other functions and objects that lead to code which runs meanwhile.

    Returns:
        Whether it was called, and its result. If not, the graph is broken, and nothing remains of a call.
    """
    hook = tracer.frame_hook
    if hook.known_codes is not None:
        return True, function(*args, **kwargs)
    if tracer.failure is not None:
        return False, None
    hook.pause()
    try:
        reached, codes = reachable([function, *roots, *tree_flatten((args, kwargs))[0]])
        guards = [guard for guard in reached.guards.values() if not isinstance(guard.holder, LRU_CACHE)]
        undo = [*restorers(guards), *random_states()]
        python = global_state()
    except Unsupported as error:
        tracer.graph_break(f"a checkpointed function: {error}")
        return False, None
    finally:
        hook.resume()
    written: dict[int, tuple[Any, Any, np.ndarray, int]] = {}

    def check_write(tensor: Any) -> None:
        if not tracer.is_created(tensor) and id(tensor) not in written:
            counter = 0 if tensor._counter is None else tensor._counter[0]
            written[id(tensor)] = tensor, tensor._array, tensor._array.copy(order="K"), counter

    hook.known_codes, tracer.check_write = codes, check_write
    effect = None
    try:
        result = function(*args, **kwargs)
    except SideEffect as error:
        effect = str(error)
    finally:
        hook.known_codes = tracer.check_write = None
    if effect is None and all(guard.holds() for guard in guards) and global_state() == python:
        return True, result
    tracer.graph_break(f"a checkpointed function with a side effect: {effect or 'a changed object'}")
    for tensor, array, content, version in reversed(written.values()):
        array[...] = content
        if tensor._counter is not None:
            tensor._counter[0] = version
    for restore in undo:
        restore()
    return False, None


def known_codes(function: Any, trace: Any, guards: Sequence[Guard]) -> set[int]:
    """Return the identities of the code of which guards of an earlier trace know what it depends on.

    Args:
        function: the function that was traced.
        trace: the trace.
        guards: its guards on Python objects.
    """
    if trace.codes is not None:
        return set(trace.codes)
    codes = [guard.value for guard in guards if guard.kind == ATTRIBUTE and guard.key == "__code__"]
    codes += [part.__code__ for part in (function, *(getattr(function, name, None) for name in (
        "__func__", "func", "forward"))) if part is not None and hasattr(part, "__code__")]
    known: set[int] = set()
    while codes:
        code = codes.pop()
        known.add(id(code))
        codes += [x for x in code.co_consts if isinstance(x, types.CodeType)]
    return known


def random_states() -> list[Callable[[], None]]:
    """Return functions that restore the global random number generators."""
    engine, snapshot, python = default_generator.engine, default_generator.engine.snapshot(), random.getstate()
    restorers = [lambda: engine.restore(snapshot), lambda: random.setstate(python)]
    if "numpy.random" in sys.modules:
        state = np.random.get_state()
        restorers.append(lambda: np.random.set_state(state))
    return restorers


__all__ = ["known_codes", "packed_values", "random_states", "reachable", "run_once", "user_code_of", "without_effects"]
