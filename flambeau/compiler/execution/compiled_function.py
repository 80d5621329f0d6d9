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
from ...modes import captures, capturing, profiled, special
from ...runtime import debug_output
from ...trees import tree_flatten
from ..cache import program_cache, trace_cache
from ..debug_output import report
from ..differential_check import checked
from ..errors import FailOnRecompileLimitHit, RecompileError, Unsupported
from ..guards.environment import CHANGING, Surroundings, is_followed, is_span
from ..stance import conduct, existing
from ..tracing.aliasing import by_memory, owner, place
from ..tracing.provenance_tracer import Lined
from ..tracing.trace import TRIES, Trace
from ..tracing.tracer import Capture
from .cache_entry import MISSED, Replay
from .call_stub import call_stub

#: kinds of calls with objects that wait for a program: where each call has an object of its own there would be no end
STRANGERS = 8
#: captures of one kind that may change what they saw: the first ones may set up something
CHANGES = 3
#: traces of different ways that wait for their like
WAYS = 4
#: calls that may set up something before the first one of which an earlier process left the program
SET_UP = 2


def described(x: Any) -> Any:
    """What of an argument decides whether a program fits."""
    if isinstance(x, Tensor):
        a = x._array
        return ("tensor", a.shape, a.strides, a.dtype, x._requires_grad, x._node is None, type(x), x._inference)
    if isinstance(x, (float, complex, np.generic)):
        return (type(x), repr(x))  # which tells zeros of both signs apart, and finds NaN equal to itself
    if isinstance(x, (bool, int, str, bytes, type(None))):
        return (type(x), x)
    if is_span(x):
        return (type(x), repr(x))
    return ("object", id(x))


def described_places(tensors: Sequence[Any]) -> tuple:
    """Which of the arguments are one, and how those lie that share memory; nothing where none do."""
    if len({id(owner(x._array)) for x in tensors}) == len(tensors):
        return ()
    found = []
    for members in by_memory(tensors):
        if len(members) > 1:
            places = [place(tensors[i]._array) for i in members]
            start = min(each[0] for each in places)
            same = [next(j for j in members if tensors[j] is tensors[i]) for i in members]
            found.append((tuple(members), tuple(each[0] - start for each in places), tuple(same)))
    return tuple(found)


def is_fixed(x: Any) -> bool:
    """Whether an argument says by its value, or by what it is, all that it can say."""
    from ...nn import Module

    if isinstance(x, Tensor):
        return type(x) in (Tensor, Parameter)
    return is_span(x) or isinstance(x, (bool, int, float, complex, str, bytes, type(None), type, types.FunctionType,
                                        types.BuiltinFunctionType, dtypes.dtype, Module, np.generic))


class _Kind:
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

    __slots__ = ("changes", "is_strange", "objects", "pending", "refused", "replays", "tries", "trusting", "why")

    def __init__(self, arguments: Sequence[Any]) -> None:
        self.objects = [(i, weakly(x)) for i, x in enumerate(arguments) if described(x)[0] == "object"]
        self.pending: list[Trace] = []
        self.replays: list[Replay] = []
        self.tries = 0
        self.refused: str | None = None
        self.why: str | None = None
        self.changes = 0
        self.is_strange = False
        self.trusting = True

    def is_of(self, arguments: Sequence[Any]) -> bool:
        """Whether arguments that look alike are the same objects, too."""
        return all(ref() is arguments[i] for i, ref in self.objects)


def weakly(x: Any) -> Callable[[], Any]:
    """What gives an object for as long as it lives, or for ever where it cannot be referred to weakly."""
    try:
        return weakref.ref(x)
    except TypeError:
        return lambda: x


class Compiled:
    """A function whose runs are captured, and replayed where a call is like an earlier one; `compile` makes it.

    Args:
        function: the function.
        fullgraph: whether a call that cannot be replayed is an error.
        limit: how many kinds of calls get programs; None: as many as is said of all (`stance.conduct`).
        check: whether each replayed call is run eagerly as well, and compared.
        works: whether anything is captured at all.
    """

    def __init__(self, function: Callable[..., Any], *, fullgraph: bool = False, limit: int | None = None,
                 check: bool = False, works: bool = True) -> None:
        self.function = function
        if not isinstance(function, functools.partial) and hasattr(function, "__name__"):
            functools.update_wrapper(self, function, updated=())
        self.fullgraph, self.limit, self.check, self.works = fullgraph, limit, check, works
        self._kinds: dict[Any, _Kind] = {}
        self._lock = threading.RLock()
        self._fast: Callable[..., Any] | None = None
        self._count = 0  # of programs
        self._strange = 0  # kinds of calls with objects that have no program yet
        self.explained = False  # whether captures note lines and names
        existing.add(self)

    def __repr__(self) -> str:
        return f"<compiled {self.function!r}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (self.function, self.fullgraph, self.limit, self.check, self.works)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def slow_down(self) -> None:
        """Take the long way at the next call, which looks at what is said of all functions."""
        self._fast = None

    def forget(self) -> None:
        """Drop all programs."""
        self._kinds, self._fast, self._strange = {}, None, 0

    @property
    def _title(self) -> str:
        return getattr(self.function, "__name__", type(self.function).__name__)

    def _name(self) -> str:
        """What the next program is called: as the function, with its number from the second on."""
        self._count += 1
        return self._title if self._count == 1 else f"{self._title}#{self._count}"

    def kind_of(self, args: tuple, kwargs: dict[str, Any]) -> _Kind | None:
        """What is known of calls with such arguments."""
        return self._kinds.get(self._key(*tree_flatten((args, kwargs))))

    @staticmethod
    def _key(arguments: list[Any], tree: Any) -> tuple:
        tensors = [x for x in arguments if isinstance(x, Tensor)]
        return (repr(tree), *map(described, arguments), described_places(tensors), grad_mode.get(), inference.get(),
                dtypes.get_default_dtype())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        fast = self._fast
        if fast is not None and not kwargs:
            result = fast(*args)
            if result is not MISSED:
                return result
        if (special[0] and (special[0] != profiled[0] + captures[0] or capturing.get() is not None)) or not self.works:
            return self.function(*args, **kwargs)
        if not conduct.is_usual and conduct.is_eager:
            return self.function(*args, **kwargs)
        arguments, tree = tree_flatten((args, kwargs))
        key = self._key(arguments, tree)
        kind = self._kinds.get(key)
        if kind is not None and not kind.is_of(arguments):
            del self._kinds[key]
            kind = None
        if kind is None:
            if not conduct.is_usual:
                return self._uncompiled(args, kwargs)
            if conduct.objects and self._kinds:
                raise RecompileError(f"a call of {self._title} differs from those before by shapes, dtypes, modes or "
                                     "other arguments, and torch._dynamo.config.error_on_recompile is set")
            strange = [x for x in arguments if not is_fixed(x)]
            if len(self._kinds) >= (self.limit or conduct.limit):
                return self._one_too_many(args, kwargs)
            if strange and (self._strange >= STRANGERS or not all(map(is_followed, strange))):
                return self.function(*args, **kwargs)
            kind = self._kinds.setdefault(key, _Kind(arguments))
            kind.is_strange = bool(strange)
            self._strange += kind.is_strange
            self._recall(kind, key, arguments)
        elif kind.trusting and 0 < kind.tries <= SET_UP:
            self._recall(kind, key, arguments)
        tensors = [x for x in arguments if isinstance(x, Tensor)]
        for replay in [*kind.replays]:
            if self.check:
                result = checked(self.function, replay, tensors, args, kwargs)
            else:
                result = replay.run(tensors) if not special[0] else replay.profiled(tensors)
            if result is not MISSED:
                if replay.is_tried and not self.check and conduct.is_usual:
                    self._fast = call_stub(replay, args, kwargs)  # which takes as long to write as many calls
                replay.is_tried = True
                return result
            if replay.begun and not replay.is_tried:
                program_cache.take_back(replay.begun)
                kind.replays.remove(replay)
        if kind.refused is not None:
            return self.function(*args, **kwargs)
        return self._captured(kind, tensors, args, kwargs)

    def _uncompiled(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        """A call of a kind that was not met before, while nothing new is to be compiled."""
        if not conduct.refuses:
            return self.function(*args, **kwargs)
        code = getattr(self.function, "__code__", None)
        where = "" if code is None else f" filename: {code.co_filename!r}, line number: {code.co_firstlineno},"
        raise RuntimeError(f"Detected recompile when torch.compile stance is {conduct.stance!r}.{where} function name: "
                           f"{self._title!r}: a call of this kind was not compiled before the stance was taken")

    def _one_too_many(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        """A call of one more kind than get programs."""
        if not self.fullgraph and not conduct.fails:
            return self.function(*args, **kwargs)
        raise FailOnRecompileLimitHit(
            f"{self._title} was compiled for {len(self._kinds)} kinds of calls, as many as recompile_limit allows, and "
            "this is one more. Its arguments change from call to call: hand it tensors of the same shapes, or raise "
            "torch.compile(recompile_limit=...)")

    def _entry(self, trace: Trace, args: tuple, kwargs: dict[str, Any]) -> str:
        return trace_cache.name(trace, self._key(*tree_flatten((args, kwargs))))

    def _agreed(self, kind: _Kind, trace: Trace, other: Trace, args: tuple, kwargs: dict[str, Any]) -> Replay:
        """The program of a trace that agrees with another, which later processes know of."""
        mine, theirs = trace.surroundings, other.surroundings
        assert mine is not None
        assert theirs is not None
        run = program_cache.Recalled(trace, mine.agreed(theirs), self._entry(trace, args, kwargs),
                                    trace_cache.learned(mine, theirs))
        replay = Replay(trace, self._name(), run.seen, other, run.entry, run.known)
        replay.remember()
        if kind.tries <= SET_UP + 1:
            mine.asked_outside = mine.asked_outside or theirs.asked_outside
            self._leave(replay, run, mine, [*trace.initial, *other.initial], kind.tries - 1, args, kwargs)
        else:
            replay.forgotten = "the first calls were not like the others"
        trace.initial = []
        return replay

    def _leave(self, replay: Replay, run: program_cache.Recalled, surroundings: Surroundings, initial: list[Any],
               after: int, args: tuple, kwargs: dict[str, Any]) -> None:
        """Leave a program to the next process, if that can find all that it depends on."""
        arguments, tree = tree_flatten((args, kwargs))
        place = program_cache.name(self.function, self._key(arguments, tree), arguments)
        if place is not None:
            known = run.known._replace(free=(True,) * len(run.trace.shared))
            try:
                replay.forgotten = program_cache.write(place, self.function, arguments, run._replace(known=known),
                                                      surroundings, initial, after)
            except Exception as error:
                replay.forgotten = self._breaks("cannot be kept for the next process", error)

    def _recall(self, kind: _Kind, key: tuple, arguments: list[Any]) -> None:
        """Let calls be replayed as an earlier process found that they can be, if everything is as it was there."""
        if self.explained or debug_output.wanted("ir", "kernels"):  # who wants to see everything sees how it came to be
            return
        place = program_cache.name(self.function, key, arguments)
        if place is None:
            return
        with self._lock:
            try:
                found = program_cache.read(place, self.function, arguments, kind.tries)
            except Exception as error:
                self._breaks("cannot be looked up", error)
                return
        if found is not None:
            kind.trusting = not self._plan(kind, lambda: self._remembered(found))

    def _breaks(self, what: str, error: Exception) -> str:
        """Warn of an error of flambeau's own, without which all goes on; what it is."""
        said = f"an error of flambeau's own: {type(error).__name__}: {error}"
        warnings.warn(f"{self._title} {what}, by {said}. Please report it.", RuntimeWarning, stacklevel=4)
        return said

    def _remembered(self, found: program_cache.Recalled) -> Replay:
        """The program of a run of an earlier process."""
        replay = Replay(found.trace, self._name(), found.seen, found.trace, found.entry, found.known)
        replay.is_recalled, replay.begun = True, found.begun
        return replay

    def _recognized(self, kind: _Kind, trace: Trace, args: tuple, kwargs: dict[str, Any]) -> Replay | None:
        """The program of a trace like those on which an earlier process agreed."""
        surroundings = trace.surroundings
        if surroundings is None:
            return None
        entry = self._entry(trace, args, kwargs)
        for known in trace_cache.read(entry):
            seen = known.among(surroundings) if len(known.free) == len(trace.shared) else None
            if seen is not None:
                replay = Replay(trace, self._name(), seen, trace, entry, known)
                if kind.tries <= SET_UP:
                    self._leave(replay, program_cache.Recalled(trace, seen, entry, known), surroundings, trace.initial,
                                kind.tries, args, kwargs)
                trace.initial = []
                return replay
        return None

    def _plan(self, kind: _Kind, make: Callable[[], Replay | None]) -> bool:
        """Let calls of a kind be replayed, if there is a program for them; whether all is settled.

        An error on the way is flambeau's own: the calls run eagerly, and a warning says so.
        """
        try:
            replay = make()
        except Exception as error:
            if self.fullgraph:
                raise
            kind.refused, kind.pending = f"an error of flambeau's own: {type(error).__name__}: {error}", []
            warnings.warn(f"calls of {self._title} run eagerly, since flambeau failed to compile them: "
                          f"{type(error).__name__}: {error}. Please report it; compile(fullgraph=True) raises it.",
                          RuntimeWarning, stacklevel=4)
            return True
        if replay is None:
            return False
        kind.replays.insert(0, replay)
        self._strange -= kind.is_strange
        kind.is_strange = False
        if replay.trace.origins is not None:
            report(replay)
        kind.tries = 0
        trim()  # what the eager runs took, the program does not need
        return True

    def _lined(self, args: tuple, kwargs: dict[str, Any]) -> Capture:
        """A capture that notes lines and names."""
        return Lined(self.function, args, kwargs)

    def _captured(self, kind: _Kind, tensors: Sequence[Any], args: tuple, kwargs: dict[str, Any]) -> Any:
        known = len(kind.replays)
        with self._lock, spanned(f"capture of {self._title}"):
            if len(kind.replays) != known:  # another thread was first
                return self.function(*args, **kwargs)
            last = kind.pending[-1].surroundings if kind.pending else None
            moved = None if last is None else last.moved()
            told = self.explained or debug_output.wanted("ir", "kernels")
            capture = self._lined(args, kwargs) if told else Capture()
            capture.watch.hand(self._title, self.function)
            leaves, tree = tree_flatten((args, kwargs))
            for x in leaves:
                if not isinstance(x, Tensor):
                    capture.watch.hand(type(x).__name__, x)
            with capture:
                capture.begin(tensors)
                result = self.function(*args, **kwargs)
                after, now = tree_flatten((args, kwargs))
                if now != tree or any(x is not y for x, y in zip(leaves, after, strict=True)):
                    capture.fail("a container among the arguments is changed")
                trace = Trace(capture, tensors, result)
            trace.origins = capture.origins(trace)
            capture.forget()
            if any(replay.frees(trace) for replay in kind.replays):
                return result
            if trace.failed is None:
                for other in reversed(kind.pending):
                    why = other.difference(trace)
                    if why is None:
                        kind.pending.remove(other)
                        self._plan(kind, lambda other=other: self._agreed(  # type: ignore[misc]
                            kind, trace, other, args, kwargs))
                        return result
                    if other is kind.pending[-1]:
                        kind.why = why
                if kind.trusting and not told and self._plan(  # who wants to see everything sees what two runs name
                        kind, lambda: self._recognized(kind, trace, args, kwargs)):
                    kind.trusting = False
                    return result
                if last is not None and moved is not None and trace.surroundings is not None:
                    changed = last.changed(trace.surroundings, moved)
                    if changed is not None:
                        kind.changes += 1
                        if kind.why is None or CHANGING in kind.why:
                            kind.why = changed
                kind.pending = [*kind.pending[-WAYS:], trace]
                kind.tries += 1
                if kind.tries >= TRIES or kind.changes >= CHANGES:
                    kind.refused, kind.pending = kind.why, []
            else:
                kind.tries, kind.why = kind.tries + trace.cost, trace.failed
                if kind.tries >= TRIES:
                    kind.refused, kind.pending = trace.failed, []
        if self.fullgraph and kind.refused is not None:
            raise Unsupported(f"a call of {self.function!r} cannot be compiled as a whole: {kind.refused}")
        return result


def _again(function: Callable[..., Any], fullgraph: bool, limit: int | None, check: bool, works: bool) -> Compiled:
    return Compiled(function, fullgraph=fullgraph, limit=limit, check=check, works=works)


__all__ = ["TRIES", "Compiled"]
