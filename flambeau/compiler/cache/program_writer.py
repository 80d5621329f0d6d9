"""`ProgramWriter`: serializes a trace and its guards for the persistent program cache."""

from __future__ import annotations

import functools
import io
import pickle
import sys
import types
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from ..._tensor import Tensor
from ..._tensor.creation.generators import default_generator
from ..._tensor.views.geometry import Geometry
from ...ir.graph.extern_kernels import ExternKernel, FallbackKernel
from ...ir.graph.value import Value
from ...kernels.random import Engine
from ...ops.declare import REGISTRY, Op
from ...optim.optimizer import has_hooks
from ...trees import tree_unflatten
from ..fingerprints import BypassCache, is_value, library_name, permanent_references
from ..guards.arguments import ArrayLayout, OutputTensor, TensorRef
from ..guards.guard import ARRAY, ATTRIBUTE, ITEM, MISSING, QUERY, TENSOR_MATCH, UNSUPPORTED, Guard
from ..guards.guard_set import GuardSet
from ..guards.tensor_state import state_objects
from ..sources import SourceTable
from ..tracing.aliasing import leaf_array, owner
from ..tracing.extern_calls import OperatorCall, RandomDraw, Reinterpretation
from ..tracing.frame_hook import is_own_function, is_user_code
from ..tracing.recomputation import Recomputation
from .saved_program import (
    CONTAINER_KINDS,
    PUBLIC_MODULES,
    TENSOR_CLASS,
    SavedProgram,
    array_summary,
    definition_of,
    options_fingerprint,
    public_namespace,
)

#: attributes of a trace that are pickled unchanged
_PICKLED_ATTRIBUTES = (
    "scalar_guards", "extern_calls", "storage_offsets", "modules", "outputs", "grad_updates", "grad_absent",
    "grad_presence", "written_leaves", "version_bumps", "params_without_grad", "user_attributes", "ran_backward",
    "grad_strides", "num_values", "plan_key", "recomputation")


class _Pickler(pickle.Pickler):
    """Pickles data; references to live objects are replaced by the numbers of their sources."""

    def __init__(self, file: io.BytesIO, sources: SourceTable, used: set[int]) -> None:
        super().__init__(file, protocol=pickle.HIGHEST_PROTOCOL)
        self._sources, self._used = sources, used

    def persistent_id(self, x: Any) -> Any:
        if x.__class__ in _CONSTANT_TYPES:
            return None
        if x.__class__ is Value:
            return "value", x.number
        if x is MISSING:
            return "missing", None
        if x.__class__ is Engine and x is default_generator.engine:
            return "engine", None
        if x.__class__ is Op and is_own_function(x.forward) and (key := REGISTRY.key_of(x)) is not None:
            return "operator", key
        if x in self._sources:
            number = self._sources.number(x)
            self._used.add(number)
            return "object", number
        if is_value(x) or isinstance(x, (list, tuple, dict, *_RECORDS)):
            return None
        name = library_name(x)
        if name is not None:
            return "named", name
        raise BypassCache(f"a {type(x).__module__}.{type(x).__qualname__} that no name leads to")


#: types that are pickled without looking for a source
_CONSTANT_TYPES = frozenset({str, int, float, bool, bytes, type(None), complex})
_RECORDS = (Recomputation, TensorRef, OutputTensor, ArrayLayout, ExternKernel, FallbackKernel, OperatorCall, RandomDraw,
            Reinterpretation, Geometry, functools.partial)


class ProgramWriter:
    """Serializes a program; the arguments are those of `program_cache.store`.

    Raises:
        BypassCache: another process could not identify or compare an object that the program depends on.
    """

    def __init__(self, function: Any, arguments: Sequence[Any], saved: SavedProgram, guard_set: GuardSet,
                 initial: Sequence[Any], num_calls_before: int) -> None:
        trace, self.num_calls_before = saved.trace, num_calls_before
        self.trace = trace
        self.trace_key, self.record = saved.trace_key, saved.record
        self.initial = {id(x) for x in initial}
        if guard_set.external_call is not None:
            raise BypassCache(guard_set.external_call)
        common_guards = {id(guard) for guard in saved.guards}
        self.guards = [(key[1], guard) for key, guard in guard_set.guards.items() if id(guard) in common_guards]
        names: dict[int, set[str]] = {}
        for identity, each in self.guards:
            if each.kind == UNSUPPORTED or (each.kind == QUERY and (
                    isinstance(each.holder, functools.partial) or not all(map(is_value, _entries_of(each))))):
                raise BypassCache(f"{each.path}, which another process cannot compare")
            if isinstance(each.key, str) and (each.kind in (ITEM, ATTRIBUTE)):
                names.setdefault(identity, set()).add(each.key)
        codes = {id(code): code for code in guard_set.codes if is_user_code(code)}
        nested = {id(c) for code in codes.values() for c in code.co_consts}
        objects = [x for x in arguments if not isinstance(x, Tensor)]
        self.sources = SourceTable([function, *(x for x in objects if not is_value(x))], names, codes)
        if not self.sources.is_complete:
            raise BypassCache("too many objects")
        # compared even if the program does not refer to them: arguments, and all functions that run
        self.compared = {self.sources.number(x) for x in objects if x in self.sources}
        for code in codes.values():
            functions = self.sources.functions_with_code(code)
            if not functions and id(code) not in nested:
                raise BypassCache(f"{code.co_qualname}, to which no name leads")
            self.compared.update(functions)
        self.public_names = _public_names(guard_set.names)
        self._check_aliasing([x for x in arguments if isinstance(x, Tensor)])

    def _check_aliasing(self, tensors: Sequence[Any]) -> None:
        """Reject memory that has several sources: in another process they may be different memory."""
        known = {id(owner(x._array)) for x in tensors}
        for x in self.sources.objects:
            if isinstance(x, Tensor) and type(x._array) is np.ndarray:
                if id(owner(x._array)) in known:
                    raise BypassCache("memory that the function knows by several names")
                known.add(id(owner(x._array)))

    def payload(self) -> tuple[bytes, bytes]:
        """Return the head (sources, optimizers' groups and states) and the body (the trace and its guards)."""
        used = {*self.compared}
        guards = [(each.kind, self._holder(identity, each), *self._key_and_value(each), each.path)
                  for identity, each in self.guards]
        body = self._pickle({**self._trace(), "guards": guards}, used)
        groups = self._pickle([self._group(*each) for each in self.trace.param_groups], used)
        references = self._references(used)
        used |= self.compared
        sources, order = self.sources.sources(used)
        head = (self.num_calls_before, sources, order, [order[number] for number in sorted(self.compared)],
                [(order[number], [n if n is None else order[n] for n in parts]) for number, parts in references],
                self.public_names, groups)
        return pickle.dumps(head, pickle.HIGHEST_PROTOCOL), body

    def _references(self, used: set[int]) -> list[tuple[int, list[int | None]]]:
        """Return the permanent references of the used and compared objects; those objects are compared, too."""
        references = []
        pending = sorted(used | self.compared)
        known = set(pending)
        while pending:
            number = pending.pop()
            parts = [self.sources.number(x) if x in self.sources else None
                     for x in permanent_references(self.sources.objects[number])]
            if any(part is not None for part in parts):
                references.append((number, parts))
                new = {part for part in parts if part is not None} - known
                known |= new
                self.compared |= new
                pending += new
        return references

    def _pickle(self, data: Any, used: set[int]) -> bytes:
        """Pickle data; the numbers of the objects that it refers to are added to `used`."""
        file = io.BytesIO()
        try:
            _Pickler(file, self.sources, used).dump(data)
        except (TypeError, AttributeError, RecursionError) as error:  # an object does not support pickle
            raise BypassCache(f"an object that cannot be pickled: {error}") from None
        return file.getvalue()

    def _holder(self, identity: int, each: Guard) -> Any:
        if isinstance(each.holder, types.MappingProxyType):  # the dict of a class
            return "members", self.sources.object_with_id(identity)
        if isinstance(each.holder, dict):
            module = sys.modules.get(dict.get(each.holder, "__name__", ""))
            if module is not None and module.__dict__ is each.holder and library_name(module) is not None:
                return "members", module
        if each.holder not in self.sources and library_name(each.holder) is None:
            raise BypassCache(f"{each.path}, to which no name leads")
        return "itself", each.holder

    def _key_and_value(self, each: Guard) -> tuple[Any, Any]:
        """Return a guard's key and value; objects in values must have sources."""
        value = each.value
        if each.kind == ARRAY:
            return each.key, array_summary(value)
        if each.kind == TENSOR_MATCH or each.key == "__code__":  # part of the fingerprint of the object
            return each.key, None
        for x in _entries_of(each):
            if not (is_value(x) or x is MISSING or x in self.sources or library_name(x) is not None or (
                    type(x) is tuple and not x)):
                raise BypassCache(f"{each.path}: a {type(x).__module__}.{type(x).__qualname__}")
        return each.key, list(value) if each.kind in CONTAINER_KINDS else value

    def _trace(self) -> dict[str, Any]:
        trace = self.trace
        attributes = {key: getattr(trace, key) for key in _PICKLED_ATTRIBUTES}
        attributes["graph"] = [(v.op, [a.number for a in v.args], v.attrs, v.shape, v.dtype)
                          for v in trace.graph.values[:trace.num_values]]
        attributes["effects"] = [v.number for v in trace.effects]
        attributes["data_guards"] = [(g.value.number, g.outcome, g.where) for g in trace.data_guards]
        attributes["targets"] = [(t.value.number, None if t.overwrites is None else t.overwrites.number, t.region)
                            for t in trace.targets]
        attributes["tree"] = tree_unflatten([*range(trace.tree.num_leaves)], trace.tree)
        attributes["sources"] = [(number, *self._source(source)) for number, source in trace.sources.items()]
        attributes["joint"] = None if trace.joint is None else {
            key: value for key, value in vars(trace.joint).items() if key not in ("_outputs", "labels")}
        attributes["trace_key"], attributes["record"] = self.trace_key, tuple(self.record)
        return attributes

    def _source(self, source: tuple) -> tuple:
        if source[0] != "tensor":
            return source
        _, tensor, memory, array = source
        if tensor is None or tensor._array is not array or leaf_array(array) is not memory:
            raise BypassCache("an array that no tensor holds")
        return "tensor", tensor, memory.shape, memory.strides, memory.dtype

    def _group(self, optimizer: Any, group: dict[str, Any]) -> tuple:
        """Describe a param group: its options, parameters, and their state."""
        if has_hooks(optimizer):
            raise BypassCache("an optimizer with hooks")
        at = next((i for i, each in enumerate(optimizer.param_groups) if each is group), None)
        if at is None:
            raise BypassCache("a param group that was removed from its optimizer")
        states = []
        for param, (_, *rest) in state_objects(optimizer, group).items():
            keys, values = rest[:len(rest) // 2], rest[len(rest) // 2:]
            if not all(isinstance(x, Tensor) for x in values):
                raise BypassCache(f"{type(optimizer).__name__} has state that is not a tensor")
            is_initial = all(id(x) in self.initial for x in values)
            if not is_initial and not self.num_calls_before:
                raise BypassCache(f"{type(optimizer).__name__} has state that is not initially zero")
            entries = [(key, x._array.shape, x._array.dtype) for key, x in zip(keys, values, strict=True)]
            states.append((param, entries, is_initial))
        return optimizer, at, len(optimizer.param_groups), options_fingerprint(group), list(group["params"]), states


def _entries_of(each: Guard) -> tuple:
    """Return a guard's value as a tuple of entries."""
    if each.kind in CONTAINER_KINDS or (each.kind == QUERY and type(each.value) is tuple):
        return each.value
    return (each.value,)


def _public_names(names: Collection[str]) -> dict[str, dict[str, str]]:
    """Return, by module, where this package's functions and classes of these names were defined.

    Users may replace them; the next process compares.
    """
    defined = {}
    for module in PUBLIC_MODULES:
        if module != TENSOR_CLASS and module not in sys.modules:
            continue
        own = vars(public_namespace(module))
        defined[module] = {name: definition_of(own[name]) for name in sorted(own.keys() & names)
                           if isinstance(own[name], (types.FunctionType, type))}
    return {module: names for module, names in defined.items() if names}


__all__ = ["ProgramWriter"]
