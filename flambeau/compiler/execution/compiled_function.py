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
from ..._tensor.tensor import INFERENCE, wrap
from ...backends.compiled.allocator import trim
from ...backends.numpy.memory import lying
from ...engine.grad_mode import grad_mode, inference
from ...engine.node import FREED_MESSAGE, LeafHooks, Node, next_number
from ...engine.profiler_events import spanned
from ...ir.graph.target import Target
from ...ir.schedule.program import Program, Watch
from ...modes import captures, capturing, configured, profiled, special
from ...runtime import compilation as code
from ...runtime import debug_output
from ...trees import is_container, tree_flatten, tree_unflatten
from ..cache import program_cache, trace_cache
from ..cache.trace_cache import Known
from ..errors import FailOnRecompileLimitHit, RecompileError, Unsupported
from ..guards.arguments import Made, Shown, advance, become_view
from ..guards.environment import CHANGING, ITEM, MODULE, Seen, Surroundings, is_followed, is_span
from ..guards.tensor_state import Flags, are_hooked, entries_of, optimizer_comparison
from ..stance import conduct, existing
from ..tracing.aliasing import address, by_memory, extent, owner, place, stretch
from ..tracing.trace import TRIES, Trace
from ..tracing.tracer import Capture
from . import profiling
from .backward_graph import Backward, differentiable
from .buffer_donation import again, renewed
from .call_stub import MISSED, fast_call

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


def is_pinned(x: Any, pin: tuple[Any, Any, int]) -> bool:
    """Whether an argument is the tensor, and lies in the memory, that it must."""
    tensor, memory, at = pin
    return (tensor is None or tensor() is x) and (
        memory is None or (memory() is owner(x._array) and address(x._array) == at))


class Spent(Node):
    """The node of a result whose graph was walked already: by the function itself, which called `backward`."""

    __slots__ = ()

    def __init__(self) -> None:
        self.edges = ()
        self.edge_outputs = self.outputs = self.extra = self.run = None
        self.seq = next_number()

    def name(self) -> str:
        return "CompiledFunctionBackward"

    def vjp(self, cotangents: Any, tensors: bool) -> Any:
        raise RuntimeError(FREED_MESSAGE)


class Replay:
    """A program, and what surrounds it: where its arrays come from and what becomes of its results.

    Args:
        seen: what it saw, and a later call must see, too.
        before: a run that did the same.
        entry: the name of such runs on disk.
        known: what there is to be known of them.

    Attributes:
        trace: the run that it repeats.
        pins: what arguments must be, as `Trace.pins` tells; None for those that are free.
        program: what computes.
        name: what it is called where it is shown.
        since: how many libraries of code there were before it.
        environment: what the function saw without being handed it, and must see again.
        remembered: what optimizers remember.
        renewed: new arrays by number, and whose old gradients they may take the memory of.
        source: the Python lines of the short way in, once there is one.
        forgotten: why the next process has to capture a run of its own; None where it has not.
        is_recalled: whether an earlier process made it, and no run of this one was captured for it.
        is_tried: whether it was run.
        begun: what optimizers remember since it was recalled, though no step was done.
    """

    forgotten: str | None = None
    is_recalled = is_tried = False
    begun: Sequence[tuple[Any, Any]] = ()

    def __init__(self, trace: Trace, name: str, seen: list[Seen], before: Trace, entry: str, known: Known) -> None:
        self.trace, self.entry, self.known = trace, entry, known
        trace.surroundings = None
        self.pins: list[tuple[Any, Any, int] | None] = []
        self._pin(before, trace)
        if known.free:
            self.pins = [None if is_free else pin for pin, is_free in zip(self.pins, known.free, strict=True)]
        self.name, self.since = name, code.count()
        written = {t.leaf for t in trace.targets if t.leaf is not None}
        self.backward = None if trace.joint is None else Backward(trace.joint, f"{name} backward", written)
        handed_over = [] if self.backward is None else [Target(v) for v in self.backward.saved]
        self._results_count = sum(t.leaf is None for t in trace.targets)
        self.program = Program(trace.graph, [*trace.targets, *handed_over],
                               [(g.value, g.outcome) for g in trace.guards], trace.effects, trace.plan)
        trace.plan = self.program.entry
        self.renewed = renewed(trace, self.program)
        self.numbers: dict[int, np.ndarray] = {
            number: np.zeros((), np.float64) for number, source in trace.sources.items() if source[0] == "number"}
        self.written = [source for source in (trace.sources[number] for number in trace.written)
                        if source[0] not in ("argument", "memory of")]
        self.environment = [each for each in seen if each.kind != MODULE]
        self.remembered = [Seen(ITEM, *entry, "") for entry in entries_of(trace.groups)]
        self.configured = configured[0]
        self._modules = [each for each in seen if each.kind == MODULE]
        self.flags_are_same = Flags(trace.outside())
        self.optimizers_are_same = optimizer_comparison(trace.groups, trace.bare)
        self._accumulated = [source[1] for source in trace.sources.values() if source[0] == "gradient of"]
        self.owners = frozenset(id(owner(s[2])) for s in trace.sources.values() if s[0] == "tensor")
        self.spent = [Spent() for _ in trace.results]
        self.source: str | None = None
        self._short: tuple[Callable[..., Any] | None] | None = None

    def _pin(self, before: Trace, now: Trace) -> None:
        found: list[tuple[Any, Any, int] | None] = [
            each if each[0] is not None or each[1] is not None else None for each in before.pins(now)]
        if self.pins:
            found = [None if was is None else is_now for was, is_now in zip(self.pins, found, strict=True)]
        self.pins = found

    def frees(self, trace: Trace) -> bool:
        """Whether another run did the same with other arguments, which are then free to be any."""
        if trace.failed is not None or not any(self.pins) or self.trace.difference(trace) is not None:
            return False
        self._pin(self.trace, trace)
        self._short = None
        self.remember()
        return True

    def remember(self) -> None:
        """Let other processes know that runs like this one agree."""
        trace_cache.write(self.entry, self.known._replace(free=tuple(pin is None for pin in self.pins)))

    def is_configured(self) -> bool:
        """Whether all modules are as they were."""
        now = configured[0]
        if self.configured == now:
            return True
        if not all(each.is_as_it_was() for each in self._modules):
            return False
        self.configured = now
        return True

    def _is_in_place(self) -> bool:
        return self.is_configured() and self.flags_are_same(True) and all(
            each.is_as_it_was() for each in (*self.environment, *self.remembered))

    def arrays(self, leaves: Sequence[int], arguments: Sequence[Any]) -> list[np.ndarray] | None:
        """The leaves' arrays; None where one is not what it was."""
        found = []
        sources = self.trace.sources
        for number in leaves:
            source = sources[number]
            kind = source[0]
            if kind == "argument":
                found.append(arguments[source[1]]._array)
            elif kind == "memory of":
                found.append(stretch(arguments[source[1]]._array, source[2]))
            elif kind == "tensor":
                if source[1] is not None and source[1]._array is not source[3]:
                    return None
                found.append(source[2])
            elif kind == "number":
                _, group, key, index = source
                value = group[key]
                array = self.numbers[number]
                array[()] = value if index is None else value[index]
                found.append(array)
            else:
                gradient = source[1].of(arguments)._grad
                strides = self.trace.gradient_strides.get(number)
                leaf = self.trace.leaf(number)
                if gradient is None or gradient._array.size != leaf.size or gradient._array.dtype != leaf.dtype or (
                        gradient._array.strides != strides):
                    return None
                found.append(gradient._array)
        return found

    def holds(self, arguments: Sequence[Any]) -> bool:
        """Whether everything that the run depended on, the arguments' looks and truths apart, is as it was."""
        trace = self.trace
        for held in trace.without:
            if held.of(arguments)._grad is not None:
                return False
        for held, has_one in trace.looked_at:
            if (held.of(arguments)._grad is not None) is not has_one:
                return False
        if trace.hung and not all(trace.hung.isdisjoint(x.__dict__) for x in arguments):
            return False
        for at, start in trace.starts:
            array = arguments[at]._array
            if address(array) - address(owner(array)) != start:
                return False
        for x, pin in zip(arguments, self.pins, strict=True):
            if pin is not None and not is_pinned(x, pin):
                return False
        if trace.ran_backward and LeafHooks.found and are_hooked(*arguments):
            return False
        gradients = [held.of(arguments)._grad for held in self._accumulated]
        if not self.are_apart([x._array for x in arguments], [g._array for g in gradients if g is not None]):
            return False
        for group, key, index, compare, other, outcome in trace.decisions:
            value = group[key]
            if bool(compare(value if index is None else value[index], other)) != outcome:
                return False
        return self.optimizers_are_same() and self._is_in_place()

    def are_apart(self, arrays: Sequence[np.ndarray], gradients: Sequence[np.ndarray] = ()) -> bool:
        """Whether arguments and gradients share no memory with each other, nor with what the function found.

        How arguments share memory with each other is part of how a call looks.
        """
        owners = {id(owner(a)) for a in arrays}
        if gradients:
            count = len(owners) + len(gradients)
            owners |= {id(owner(a)) for a in gradients}
            if len(owners) != count:
                return False
        return self.owners.isdisjoint(owners)

    def fits(self, *arrays: np.ndarray) -> bool:
        """Whether arguments each have memory of their own."""
        owners = {id(owner(a)) for a in arrays}
        return len(owners) == len(arrays) and self.owners.isdisjoint(owners)

    def run(self, arguments: Sequence[Any], watch: Watch | None = None) -> Any:
        """Replay the run, `watch` being told of each kernel; MISSED where it does not fit."""
        trace = self.trace
        if not self.holds(arguments):
            return MISSED
        arrays = self.arrays(self.program.leaves, arguments)
        new = None if arrays is None else self.program.run(arrays, self._fresh(arguments), watch)
        if new is None:
            return MISSED
        for at, times in trace.bumps:
            advance(arguments[at], times)
        for source in self.written:
            tensor = source[1].of(arguments)._grad if source[0] == "gradient of" else source[1]
            if tensor is not None:
                tensor._bump_version()
        for held, shown in trace.gradients:
            if held.kind != "result":
                held.of(arguments)._grad = None if shown is None else wrap(self.array(shown, new, arguments))
        return self.results(new, arguments)

    def _fresh(self, arguments: Sequence[Any]) -> list[np.ndarray] | None:
        """The arrays for what is new; None where all of them may be any."""
        if not self.renewed:
            return None
        return [again(self.renewed[k].of(arguments), shape, dtype) if k in self.renewed else np.empty(shape, dtype)
                for k, (shape, dtype) in enumerate(self.program.fresh)]

    def made(self, new: Sequence[np.ndarray], arguments: Sequence[Any]) -> list[Any]:
        """The results, of the arrays that the program made, and bases that some of them need."""
        trace = self.trace
        results: list[Any] = []
        outputs: list[Any] = [] if trace.joint is None else [None] * trace.joint.count
        for each, spent in zip(trace.results, self.spent, strict=True):
            kind = each[0]
            if isinstance(each, Made):
                tensor = wrap(self.array(each[1], new, arguments), Parameter if each.parameter else Tensor)
                if each.number is not None:
                    outputs[each.number] = tensor
                elif each.requires_grad:
                    tensor._requires_grad = True
                    if not each.leaf:
                        tensor._node = spent
                if each.inference:
                    tensor._inference, tensor._counter = True, INFERENCE
                results.append(tensor)
            elif kind == "argument":
                results.append(arguments[each[1]])
            elif kind == "again":
                results.append(results[each[1]])
            elif kind == "gradient of":
                results.append(each[1].of(arguments)._grad)
            else:
                results.append(each[1])
        for tensor, each in zip(results, trace.results, strict=True):
            if isinstance(each, Made) and each.base is not None:
                become_view(tensor, each, each.base.of(arguments, results))
        if self.backward is not None:
            numbers = [v.attrs for v in self.backward.leaves]
            leaves = self.arrays(numbers, arguments)
            assert leaves is not None
            read = [arguments[source[1]] if source[0] == "argument" else source[1]
                    for source in (trace.sources[n] for n in numbers)
                    if source[0] in ("argument", "tensor") and source[1] is not None]
            differentiable(outputs, self.backward, list(new[self._results_count:]), leaves, arguments, read)
        return results

    def results(self, new: Sequence[np.ndarray], arguments: Sequence[Any]) -> Any:
        """What the function returns, of the arrays that the program made."""
        found = self.made(new, arguments)
        for held, shown in self.trace.gradients:
            if held.kind == "result" and shown is not None:
                found[held.which]._grad = wrap(self.array(shown, new, arguments))
        return tree_unflatten(found[:self.trace.tree.num_leaves], self.trace.tree)

    def short_way(self, args: tuple, kwargs: dict[str, Any]) -> Callable[..., Any] | None:
        """The function written for calls like this one; None where there is none."""
        if self._short is None:
            self._short = (None,)
            if not kwargs and not any(is_container(x) for x in args):
                made = fast_call(self, list(args))
                if made is not None:
                    self._short, self.source = made[:1], made[1]
        return self._short[0]

    def array(self, shown: Shown, new: Sequence[np.ndarray], arguments: Sequence[Any]) -> np.ndarray:
        """The array of a result."""
        if shown.array >= 0:
            array = new[shown.array]
            if array.dtype == shown.dtype and array.shape == shown.shape and array.strides == shown.strides:
                return array
        else:
            [array] = self.arrays([-1 - shown.array], arguments) or []
        if array.dtype == shown.dtype:
            return lying(array, shown.shape, shown.strides, shown.offset)
        return np.ndarray(shown.shape, shown.dtype, stretch(array, extent(array)), shown.offset, shown.strides)


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
                from ..differential_check import checked

                result = checked(self.function, replay, tensors, args, kwargs)
            else:
                result = replay.run(tensors) if not special[0] else profiling.run(replay, tensors)
            if result is not MISSED:
                if replay.is_tried and not self.check and conduct.is_usual:
                    self._fast = replay.short_way(args, kwargs)  # which takes as long to write as many calls
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
            from ..debug_output import report

            report(replay)
        kind.tries = 0
        trim()  # what the eager runs took, the program does not need
        return True

    def _lined(self, args: tuple, kwargs: dict[str, Any]) -> Capture:
        """A capture that notes lines and names."""
        from ..tracing.provenance import Lined

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


__all__ = ["TRIES", "Compiled", "Replay"]
