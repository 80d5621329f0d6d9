"""Programs kept on disk whole, with what they depend on: the next process replays its first call.

Of a run that did not warn or ask the system for anything, everything is kept: its graph, where its arrays come from,
what becomes of its results, and what it saw. Objects are named by how they are reached from the
function (`reaching`). The next process looks all of them up, compares what is there with what was seen, and replays
the run, if nothing differs: the function itself is not called. Else it is captured, as any function is.

What an optimizer remembers begins with zeros in the first step; these are made, as that step would.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import io
import pickle
import sys
import types
import weakref
from collections.abc import Callable, Collection, Sequence
from operator import is_
from typing import Any, NamedTuple

import numpy as np

from ..._tensor import Tensor
from ..._tensor.creation.random import default_generator
from ..._tensor.tensor import wrap
from ..._tensor.view_geometry import Geometry
from ...ir.graph.extern_kernels import ExternKernel, FallbackKernel
from ...ir.graph.target import Target
from ...ir.graph.value import Graph, Value
from ...ir.schedule import plan_cache
from ...kernels.random import Engine
from ...nn import Module
from ...ops.declare import REGISTRY, Op
from ...optim.optimizer import has_hooks
from ...runtime.cache_store import PROGRAMS
from ...trees import tree_flatten, tree_unflatten
from ..fingerprints import (
    BypassCache,
    argument_fingerprint,
    described,
    held,
    is_value,
    library_name,
    resolve_library_name,
)
from ..guards.arguments import ArrayLayout, OutputTensor, TensorRef
from ..guards.environment import (
    ARRAY,
    ATTRIBUTE,
    DICT,
    ITEM,
    LIST,
    MISSING,
    MODULE,
    QUERY,
    SET,
    TENSOR_MATCH,
    UNSUPPORTED,
    Guard,
    GuardSet,
    tensor_properties,
)
from ..guards.tensor_state import state_objects
from ..sources import SourceResolver, SourceTable
from ..tracing.aliasing import address, leaf_array, owner
from ..tracing.extern_calls import OperatorCall, RandomDraw, Reinterpretation
from ..tracing.frame_hook import is_own_function, is_user_code
from ..tracing.joint_graph import JointGraph
from ..tracing.trace import Trace
from ..tracing.tracer import DataGuard
from .trace_cache import TraceRecord, signature_fingerprint

#: programs of one name that are kept: of functions of the same code, which saw other things
MAX_PROGRAMS = 4
#: what of a trace is kept as it is
_PLAIN = ("scalar_guards", "extern_calls", "storage_offsets", "modules", "outputs", "grad_updates", "grad_absent",
          "grad_presence", "written_leaves", "version_bumps", "params_without_grad", "user_attributes", "ran_backward",
          "grad_strides", "num_values", "plan_key")


class SavedProgram(NamedTuple):
    """What one process leaves to the next.

    Attributes:
        trace: a run; where it is read, as if it had been one of this process.
        seen: what such runs see.
        entry: the name of such runs on disk.
        known: what there is to be known of them.
        begun: optimizers and parameters for which zeros were made.
    """

    trace: Trace
    seen: list[Guard]
    entry: str
    known: TraceRecord
    initialized_states: Sequence[tuple[Any, Any]] = ()


def program_key(function: Any, call: Sequence[Any], arguments: Sequence[Any]) -> str | None:
    """The name of the entry for calls of a function; None for what is not found again.

    Args:
        call: what the call looks like (`Compiled._key`).
        arguments: the call's, tensors and others.
    """
    found = _function_of(function)
    if found is None:
        return None
    try:
        said = described(found)
        if isinstance(function, types.MethodType) and isinstance(function.__self__, Module):
            said += described(type(function.__self__).forward)  # modules that compile themselves have one method
        given = [argument_fingerprint(x) for x in arguments if not isinstance(x, Tensor)]
    except (BypassCache, ValueError, RecursionError):  # what it holds is not there yet, or holds itself
        return None
    return PROGRAMS.key(plan_cache.environment(), said, *given, *map(signature_fingerprint, call))


def _function_of(function: Any) -> types.FunctionType | None:
    if isinstance(function, types.MethodType):
        function = function.__func__
    elif isinstance(function, Module):
        function = type(function).forward
    return function if isinstance(function, types.FunctionType) else None


# ----- writing ------------------------------------------------------------------------------


def store(place: str, function: Any, arguments: Sequence[Any], run: SavedProgram, guard_set: GuardSet,
          initial: Sequence[Any], after: int) -> str | None:
    """Keep a program for the next process; why that cannot be, or None where it was done.

    Args:
        place: the name of the entry.
        arguments: the call's, tensors and others.
        run: the run, and what of its `surroundings` all such runs see.
        initial: tensors that optimizers made, of zeros.
        after: how many calls there were before the first one like it, which may have set up something.
    """
    try:
        payload = _Writer(function, arguments, run, guard_set, initial, after).payload()
    except (BypassCache, pickle.PicklingError) as error:
        return str(error)
    others = [each for each in _entries(place) if each != payload]
    PROGRAMS.write(place, pickle.dumps([*others[1 - MAX_PROGRAMS:], payload]))
    return None


def _entries(place: str) -> list[tuple[bytes, bytes]]:
    payload = PROGRAMS.read(place)
    if payload is None:
        return []
    try:
        return list(pickle.loads(payload))
    except (pickle.UnpicklingError, EOFError, ValueError, TypeError):  # whole, but nothing of ours
        PROGRAMS.discard(place)
        return []


class _Pickler(pickle.Pickler):
    """Writes down data; objects that live in this process are named by their places."""

    def __init__(self, file: io.BytesIO, reached: SourceTable, used: set[int]) -> None:
        super().__init__(file, protocol=pickle.HIGHEST_PROTOCOL)
        self._reached, self._used = reached, used

    def persistent_id(self, x: Any) -> Any:
        if x.__class__ in _DATA:
            return None
        if x.__class__ is Value:
            return "value", x.number
        if x is MISSING:
            return "missing", None
        if x.__class__ is Engine and x is default_generator.engine:
            return "engine", None
        if x.__class__ is Op and is_own_function(x.forward):
            return "operator", next(key for key, each in REGISTRY.items() if each is x)
        if x in self._reached:
            at = self._reached.at(x)
            self._used.add(at)
            return "object", at
        if is_value(x) or isinstance(x, (list, tuple, dict, *_RECORDS)):
            return None
        said = library_name(x)
        if said is not None:
            return "named", said
        raise BypassCache(f"a {type(x).__module__}.{type(x).__qualname__} that no name leads to")


#: kinds of what is seen that have several entries
_SEVERAL = (LIST, DICT, SET, MODULE)
#: what is never looked up
_DATA = frozenset({str, int, float, bool, bytes, type(None), complex})
_RECORDS = (TensorRef, OutputTensor, ArrayLayout, ExternKernel, FallbackKernel, OperatorCall, RandomDraw,
            Reinterpretation, Geometry, functools.partial)


class _Writer:
    def __init__(self, function: Any, arguments: Sequence[Any], run: SavedProgram, guard_set: GuardSet,
                 initial: Sequence[Any], after: int) -> None:
        trace, self.after = run.trace, after
        self.trace = trace
        self.entry, self.known = run.entry, run.known
        self.initial = {id(x) for x in initial}
        if guard_set.external_call is not None:
            raise BypassCache(guard_set.external_call)
        common_guards = {id(each) for each in run.seen}
        self.seen = [(key[1], each) for key, each in guard_set.seen.items() if id(each) in common_guards]
        names: dict[int, set[str]] = {}
        for of, each in self.seen:
            if each.kind == UNSUPPORTED or (each.kind == QUERY and not all(map(is_value, _entries_of(each)))):
                raise BypassCache(f"{each.path}, which another process cannot compare")
            if isinstance(each.key, str) and (each.kind in (ITEM, ATTRIBUTE)):
                names.setdefault(of, set()).add(each.key)
        codes = {id(code): code for code in guard_set.codes if is_user_code(code)}
        inner = {id(c) for code in codes.values() for c in code.co_consts}
        objects = [x for x in arguments if not isinstance(x, Tensor)]
        self.reached = SourceTable([function, *(x for x in objects if not is_value(x))], names, codes)
        if not self.reached.whole:
            raise BypassCache("too many objects")
        # what is compared, whether the program needs it or not: what was given, and all that runs
        self.running = {self.reached.at(x) for x in objects if x in self.reached}
        for code in codes.values():
            running = self.reached.running(code)
            if not running and id(code) not in inner:
                raise BypassCache(f"{code.co_qualname}, to which no name leads")
            self.running.update(running)
        self.given = _given(guard_set.names)
        self._memory_has_one_name([x for x in arguments if isinstance(x, Tensor)])

    def _memory_has_one_name(self, tensors: Sequence[Any]) -> None:
        """Refuse memory that the function knows by several names: in another process they may be apart."""
        known = {id(owner(x._array)) for x in tensors}
        for x in self.reached.things:
            if isinstance(x, Tensor) and type(x._array) is np.ndarray:
                if id(owner(x._array)) in known:
                    raise BypassCache("memory that the function knows by several names")
                known.add(id(owner(x._array)))

    def payload(self) -> tuple[bytes, bytes]:
        """States of optimizers and the places of objects; then the trace and what it saw."""
        used = {*self.running}
        seen = [(each.kind, self._holder(of, each), *self._looked_up(each), each.path) for of, each in self.seen]
        body = self._dumped({**self._trace(), "seen": seen}, used)
        groups = self._dumped([self._group(*each) for each in self.trace.param_groups], used)
        links = self._held(used)
        used |= self.running
        places, order = self.reached.places(used)
        head = (self.after, places, order, [order[at] for at in sorted(self.running)],
                [(order[at], [n if n is None else order[n] for n in parts]) for at, parts in links], self.given, groups)
        return pickle.dumps(head, pickle.HIGHEST_PROTOCOL), body

    def _held(self, used: set[int]) -> list[tuple[int, list[int | None]]]:
        """What things hold for good, by their numbers; `used` and what is compared grow by it."""
        found = []
        waiting = sorted(used | self.running)
        known = set(waiting)
        while waiting:
            at = waiting.pop()
            parts = [self.reached.at(x) if x in self.reached else None for x in held(self.reached.things[at])]
            if any(part is not None for part in parts):
                found.append((at, parts))
                new = {part for part in parts if part is not None} - known
                known |= new
                self.running |= new
                waiting += new
        return found

    def _dumped(self, data: Any, used: set[int]) -> bytes:
        """Data written down; the objects among them are `used`."""
        file = io.BytesIO()
        try:
            _Pickler(file, self.reached, used).dump(data)
        except (TypeError, AttributeError, RecursionError) as error:  # what the things themselves say to pickle
            raise BypassCache(f"something that cannot be written down: {error}") from None
        return file.getvalue()

    def _holder(self, of: int, each: Guard) -> Any:
        if isinstance(each.holder, types.MappingProxyType):  # of a class
            return "members", self.reached.class_of(of)
        if isinstance(each.holder, dict):
            module = sys.modules.get(dict.get(each.holder, "__name__", ""))
            if module is not None and module.__dict__ is each.holder and library_name(module) is not None:
                return "members", module
        if each.holder not in self.reached and library_name(each.holder) is None:
            raise BypassCache(f"{each.path}, to which no name leads")
        return "itself", each.holder

    def _looked_up(self, each: Guard) -> tuple[Any, Any]:
        """A name and what was there. Lists and others that are compared by identity must be somewhere themselves."""
        value = each.value
        if each.kind == ARRAY:
            return each.key, _summary(value)
        if each.kind == TENSOR_MATCH or each.key == "__code__":  # by which tensors and functions are described
            return each.key, None
        for x in _entries_of(each):
            if not (is_value(x) or x is MISSING or x in self.reached or library_name(x) is not None or (
                    type(x) is tuple and not x)):
                raise BypassCache(f"{each.path}: a {type(x).__module__}.{type(x).__qualname__}")
        return each.key, list(value) if each.kind in _SEVERAL else value

    def _trace(self) -> dict[str, Any]:
        trace = self.trace
        found = {key: getattr(trace, key) for key in _PLAIN}
        found["graph"] = [(v.op, [a.number for a in v.args], v.attrs, v.shape, v.dtype)
                          for v in trace.graph.values[:trace.num_values]]
        found["effects"] = [v.number for v in trace.effects]
        found["data_guards"] = [(g.value.number, g.outcome, g.where) for g in trace.data_guards]
        found["targets"] = [(t.value.number, None if t.overwrites is None else t.overwrites.number, t.region)
                            for t in trace.targets]
        found["tree"] = tree_unflatten([*range(trace.tree.num_leaves)], trace.tree)
        found["sources"] = [(number, *self._source(source)) for number, source in trace.sources.items()]
        found["joint"] = None if trace.joint is None else {
            key: value for key, value in vars(trace.joint).items() if key not in ("_outputs", "labels")}
        found["entry"], found["known"] = self.entry, tuple(self.known)
        return found

    def _source(self, source: tuple) -> tuple:
        if source[0] != "tensor":
            return source
        _, tensor, memory, own = source
        if tensor is None or tensor._array is not own or leaf_array(own) is not memory:
            raise BypassCache("an array that no tensor holds")
        return "tensor", tensor, memory.shape, memory.strides, memory.dtype

    def _group(self, optimizer: Any, group: dict[str, Any]) -> tuple:
        """An optimizer's group, and what it remembers of its parameters."""
        if has_hooks(optimizer):
            raise BypassCache("an optimizer with hooks")
        at = next((i for i, each in enumerate(optimizer.param_groups) if each is group), None)
        if at is None:
            raise BypassCache("a group that its optimizer has no more")
        states = []
        for param, (_, *rest) in state_objects(optimizer, group).items():
            keys, values = rest[:len(rest) // 2], rest[len(rest) // 2:]
            if not all(isinstance(x, Tensor) for x in values):
                raise BypassCache(f"{type(optimizer).__name__} remembers more than tensors")
            begins = all(id(x) in self.initial for x in values)
            if not begins and not self.after:
                raise BypassCache(f"{type(optimizer).__name__} remembers what it did not begin with")
            entries = [(key, x._array.shape, x._array.dtype) for key, x in zip(keys, values, strict=True)]
            states.append((param, entries, begins))
        return optimizer, at, len(optimizer.param_groups), _options(group), list(group["params"]), states


def _entries_of(each: Guard) -> tuple:
    """What was there, one by one."""
    return each.value if each.kind in _SEVERAL or (each.kind == QUERY and type(each.value) is tuple) else (each.value,)


def _summary(array: np.ndarray) -> tuple[str, tuple[int, ...], str]:
    """An array by its numbers' hash."""
    return str(array.dtype), array.shape, hashlib.sha256(array.tobytes()).hexdigest()


def _given(names: Collection[str]) -> dict[str, dict[str, str]]:
    """By module, what this package's functions and classes of these names are: someone may put others there."""
    found = {}
    for place in _PUBLIC:
        if place != _TENSOR and place not in sys.modules:
            continue
        own = vars(_space(place))
        found[place] = {name: _origin(own[name]) for name in sorted(own.keys() & names)
                        if isinstance(own[name], (types.FunctionType, type))}
    return {place: names for place, names in found.items() if names}


def _space(place: str) -> Any:
    return Tensor if place == _TENSOR else importlib.import_module(place)


def _origin(x: Any) -> str:
    """The module and the name that a function or class was made with."""
    return f"{getattr(x, '__module__', None)}:{getattr(x, '__qualname__', None)}"


_NAME = __name__.partition(".")[0]
#: the class of tensors, among modules
_TENSOR = "Tensor"
#: where programs look up what is of this package
_PUBLIC = (_NAME, *(f"{_NAME}.{name}" for name in (
    "nn", "nn.functional", "nn.init", "nn.utils", "linalg", "special", "func", "optim", "autograd")), _TENSOR)


def _options(group: dict[str, Any]) -> list[tuple[str, Any]]:
    """A group's options; what is a number may be any, as in every replay."""
    found = []
    for key, value in group.items():
        if key != "params":
            is_number = type(value) in (float, int) or (
                type(value) is tuple and value and all(type(x) in (float, int) for x in value))
            if not is_number and not is_value(value):
                raise BypassCache(f"the option {key} of an optimizer")
            found.append((key, len(value) if type(value) is tuple else None if is_number else value))
    return found


# ----- reading ------------------------------------------------------------------------------


def load(place: str, function: Any, arguments: Sequence[Any], calls: int) -> SavedProgram | None:
    """What an earlier process left of calls like this one, if everything is as it was; None where something is not.

    Args:
        calls: how many there were.
    """
    roots = [function, *(x for x in arguments if not isinstance(x, Tensor) and not is_value(x))]
    tensors = [x for x in arguments if isinstance(x, Tensor)]
    for head, body in reversed(_entries(place)):
        initialized_states: list[tuple[Any, Any]] = []
        try:
            return _recalled(head, body, roots, tensors, calls, initialized_states)
        except (BypassCache, pickle.UnpicklingError, LookupError, AttributeError, ImportError, TypeError, ValueError,
                RecursionError):
            discard_initial_state(initialized_states)
    return None


def discard_initial_state(initialized_states: Sequence[tuple[Any, Any]]) -> None:
    """Let optimizers forget the zeros that were made for them."""
    for optimizer, param in initialized_states:
        optimizer.state.pop(param, None)


class _Unpickler(pickle.Unpickler):
    def __init__(self, data: bytes, lookup: Callable[[int], Any]) -> None:
        super().__init__(io.BytesIO(data))
        self._lookup = lookup

    def persistent_load(self, pid: Any) -> Any:
        kind, number = pid
        if kind == "object":
            return self._lookup(number)
        if kind == "value":
            return number
        if kind == "named":
            return resolve_library_name(number)
        if kind == "engine":
            return default_generator.engine
        if kind == "operator":
            return REGISTRY[number]
        return MISSING


def _recalled(head: bytes, body: bytes, roots: Sequence[Any], tensors: Sequence[Any], calls: int,
              initialized_states: list[tuple[Any, Any]]) -> SavedProgram:
    after, places, order, running, links, given, groups = pickle.loads(head)
    if calls < after:
        raise BypassCache("calls that set up something")
    for where, names in given.items():
        for name, said in names.items():
            if _origin(getattr(_space(where), name, None)) != said:
                raise BypassCache(f"{where}.{name} is not flambeau's own {said} now")
    found = SourceResolver(places, roots)
    for number in running:
        found[number]
    for number, parts in links:
        for x, part in zip(held(found[number]), parts, strict=True):
            if part is not None and found[part] is not x:
                raise BypassCache("something else where this was held")

    def lookup(number: int) -> Any:
        return found[order[number]]

    said = _Unpickler(groups, lookup).load()
    pairs = []
    for optimizer, at, count, options, params, states in said:
        group = optimizer.param_groups[at]
        if len(optimizer.param_groups) != count or has_hooks(optimizer) or _options(group) != options or not (
                len(group["params"]) == len(params) and all(map(is_, group["params"], params))):
            raise BypassCache("an optimizer of other groups")
        _begin(optimizer, params, states, initialized_states)
        pairs.append((optimizer, group))
    kept = _Unpickler(body, lookup).load()
    seen = [_seen(*each) for each in kept.pop("seen")]
    if not all(each.holds() for each in seen):
        raise BypassCache("something is not as it was")
    known = TraceRecord(*kept.pop("known"))
    entry = kept.pop("entry")
    trace = _trace(kept, pairs, tensors)
    for optimizer, _ in pairs:
        if hasattr(optimizer.step, "_wrapped_by_lr_sched"):  # the step that is not called would say so
            optimizer._opt_called = True
    return SavedProgram(trace, seen, entry, known, initialized_states)


def _begin(optimizer: Any, params: Sequence[Any], states: Sequence[Any],
           initialized_states: list[tuple[Any, Any]]) -> None:
    """Let an optimizer remember zeros, where it remembers nothing yet."""
    remembered = {id(param) for param, *_ in states}
    if any(optimizer.state.get(param) for param in params if id(param) not in remembered):
        raise BypassCache("an optimizer that remembers more")
    if any(optimizer.state.get(param) for param, *_ in states):
        if not all([(key, x._array.shape, x._array.dtype) for key, x in (optimizer.state.get(param) or {}).items()]
                   == entries for param, entries, _ in states):
            raise BypassCache("an optimizer that remembers something else")
        return
    for param, entries, begins in states:
        if not begins:
            raise BypassCache("an optimizer that does not begin with zeros")
        initialized_states.append((optimizer, param))
        state = optimizer.state[param]
        for key, shape, dtype in entries:
            state[key] = wrap(np.zeros(shape, dtype))


def _seen(kind: int, holder: tuple[str, Any], key: Any, value: Any, path: str) -> Guard:
    how, thing = holder
    if kind == ARRAY:
        now = thing.copy()
        if _summary(now) != value:
            raise BypassCache(f"{path} has other numbers now")
        value = now
    elif kind == TENSOR_MATCH:
        value = tensor_properties(thing)
    elif key == "__code__":
        value = thing.__code__
    return Guard(kind, thing.__dict__ if how == "members" else thing, key,
                tuple(value) if kind in _SEVERAL else value, path)


def _trace(kept: dict[str, Any], groups: list[tuple[Any, dict[str, Any]]], tensors: Sequence[Any]) -> Trace:
    graph = Graph()
    for op, args, attrs, shape, dtype in kept.pop("graph"):
        graph.restore(op, [graph.values[i] for i in args], attrs, shape, dtype)
    values = graph.values
    kept["effects"] = [values[number] for number in kept["effects"]]
    kept["data_guards"] = [DataGuard(values[number], outcome, where) for number, outcome, where in kept["data_guards"]]
    kept["targets"] = [Target(values[number], None if leaf is None else values[leaf], part)
                       for number, leaf, part in kept["targets"]]
    kept["tree"] = tree_flatten(kept["tree"])[1]
    kept["sources"] = dict(_source(*each) for each in kept["sources"])
    memory = [id(owner(source[2])) for source in kept["sources"].values() if source[0] == "tensor"]
    if len(set(memory)) != len(memory):
        raise BypassCache("tensors that share memory")
    joint = kept.pop("joint")
    if joint is not None:
        joint = JointGraph.again(joint, values, tensors)
    shared = [(weakref.ref(x), weakref.ref(owner(x._array)), address(x._array)) for x in tensors]
    return Trace.again(kept, graph=graph, param_groups=groups, joint=joint, argument_memory=shared,
                       _identities=[*map(id, tensors)])


def _source(number: int, kind: str, *rest: Any) -> tuple[int, tuple]:
    if kind != "tensor":
        return number, (kind, *rest)
    tensor, *looks = rest
    memory = leaf_array(tensor._array)
    if [memory.shape, memory.strides, memory.dtype] != looks:
        raise BypassCache("a tensor that lies otherwise in memory")
    return number, (kind, tensor, memory, tensor._array)


__all__ = ["SavedProgram", "discard_initial_state", "load", "program_key", "store"]
