"""`read_program`: restores a program of the persistent cache with the objects of this process."""

from __future__ import annotations

import io
import pickle
import weakref
from collections.abc import Callable, Sequence
from operator import is_
from typing import Any

import numpy as np

from ..._tensor.creation.generators import default_generator
from ..._tensor.tensor import wrap
from ...ir.graph.target import Target
from ...ir.graph.value import Graph
from ...ops.declare import REGISTRY
from ...optim.optimizer import has_hooks
from ...trees import tree_flatten
from ..fingerprints import BypassCache, permanent_references, resolve_library_name
from ..guards.guard import ARRAY, MISSING, TENSOR_MATCH, Guard, tensor_properties
from ..sources import SourceResolver
from ..tracing.aliasing import address, leaf_array, owner
from ..tracing.joint_graph import JointGraph
from ..tracing.trace import Trace
from ..tracing.tracer import DataGuard
from .saved_program import (
    CONTAINER_KINDS,
    SavedProgram,
    array_summary,
    definition_of,
    options_fingerprint,
    public_namespace,
)
from .trace_cache import TraceRecord


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


def read_program(head: bytes, body: bytes, roots: Sequence[Any], tensors: Sequence[Any], num_calls: int,
                 initialized_states: list[tuple[Any, Any]]) -> SavedProgram:
    """Restore a program that `ProgramWriter` serialized.

    Args:
        head, body: its payload.
        roots: the function, and the arguments that are neither tensors nor constants.
        tensors: the tensors among the arguments.
        num_calls: how many calls with this signature preceded this one.
        initialized_states: receives the optimizers and parameters whose state is created.

    Raises:
        BypassCache: an object is missing or differs, or a guard does not hold.
    """
    num_calls_before, sources, order, compared, references, public_names, groups = pickle.loads(head)
    if num_calls < num_calls_before:
        raise BypassCache("calls that initialize something")
    for module, names in public_names.items():
        for name, definition in names.items():
            if definition_of(getattr(public_namespace(module), name, None)) != definition:
                raise BypassCache(f"{module}.{name} is not {definition} now")
    objects = SourceResolver(sources, roots)
    for number in compared:
        objects[number]
    for number, parts in references:
        for x, part in zip(permanent_references(objects[number]), parts, strict=True):
            if part is not None and objects[part] is not x:
                raise BypassCache("a reference to another object")

    def lookup(number: int) -> Any:
        return objects[order[number]]

    pairs = []
    for optimizer, at, count, options, params, states in _Unpickler(groups, lookup).load():
        group = optimizer.param_groups[at]
        if len(optimizer.param_groups) != count or has_hooks(optimizer) or options_fingerprint(group) != options or (
                not (len(group["params"]) == len(params) and all(map(is_, group["params"], params)))):
            raise BypassCache("an optimizer with other param groups")
        _initialize_state(optimizer, params, states, initialized_states)
        pairs.append((optimizer, group))
    attributes = _Unpickler(body, lookup).load()
    guards = [_guard(*each) for each in attributes.pop("guards")]
    if not all(guard.holds() for guard in guards):
        raise BypassCache("a guard does not hold")
    record = TraceRecord(*attributes.pop("record"))
    trace_key = attributes.pop("trace_key")
    trace = _restore_trace(attributes, pairs, tensors)
    for optimizer, _ in pairs:
        if hasattr(optimizer.step, "_wrapped_by_lr_sched"):  # schedulers check that `step` was called
            optimizer._opt_called = True
    return SavedProgram(trace, guards, trace_key, record, initialized_states)


def _initialize_state(optimizer: Any, params: Sequence[Any], states: Sequence[Any],
                      initialized_states: list[tuple[Any, Any]]) -> None:
    """Create an optimizer's initial state of zeros, if it has none yet; else check its keys, shapes and dtypes."""
    with_state = {id(param) for param, *_ in states}
    if any(optimizer.state.get(param) for param in params if id(param) not in with_state):
        raise BypassCache("an optimizer with more state")
    if any(optimizer.state.get(param) for param, *_ in states):
        if not all([(key, x._array.shape, x._array.dtype) for key, x in (optimizer.state.get(param) or {}).items()]
                   == entries for param, entries, _ in states):
            raise BypassCache("an optimizer with other state")
        return
    for param, entries, is_initial in states:
        if not is_initial:
            raise BypassCache("an optimizer whose initial state is not zero")
        initialized_states.append((optimizer, param))
        state = optimizer.state[param]
        for key, shape, dtype in entries:
            state[key] = wrap(np.zeros(shape, dtype))


def _guard(kind: int, holder: tuple[str, Any], key: Any, value: Any, path: str) -> Guard:
    how, thing = holder
    if kind == ARRAY:
        current = thing.copy()
        if array_summary(current) != value:
            raise BypassCache(f"{path} has other elements now")
        value = current
    elif kind == TENSOR_MATCH:
        value = tensor_properties(thing)
    elif key == "__code__":
        value = thing.__code__
    return Guard(kind, thing.__dict__ if how == "members" else thing, key,
                tuple(value) if kind in CONTAINER_KINDS else value, path)


def _restore_trace(attributes: dict[str, Any], groups: list[tuple[Any, dict[str, Any]]], tensors: Sequence[Any]
                   ) -> Trace:
    graph = Graph()
    for op, args, attrs, shape, dtype in attributes.pop("graph"):
        graph.restore(op, [graph.values[i] for i in args], attrs, shape, dtype)
    values = graph.values
    attributes["effects"] = [values[number] for number in attributes["effects"]]
    attributes["data_guards"] = [DataGuard(values[number], outcome, where)
                                 for number, outcome, where in attributes["data_guards"]]
    attributes["targets"] = [Target(values[number], None if leaf is None else values[leaf], part)
                             for number, leaf, part in attributes["targets"]]
    attributes["tree"] = tree_flatten(attributes["tree"])[1]
    attributes["sources"] = dict(_source(*each) for each in attributes["sources"])
    memory = [id(owner(source[2])) for source in attributes["sources"].values() if source[0] == "tensor"]
    if len(set(memory)) != len(memory):
        raise BypassCache("tensors that share memory")
    joint = attributes.pop("joint")
    if joint is not None:
        joint = JointGraph.from_saved(joint, values, tensors)
    memory_refs = [(weakref.ref(x), weakref.ref(owner(x._array)), address(x._array)) for x in tensors]
    return Trace.from_saved(attributes, graph=graph, param_groups=groups, joint=joint, argument_memory=memory_refs,
                            _identities=[*map(id, tensors)])


def _source(number: int, kind: str, *rest: Any) -> tuple[int, tuple]:
    if kind != "tensor":
        return number, (kind, *rest)
    tensor, *layout = rest
    memory = leaf_array(tensor._array)
    if [memory.shape, memory.strides, memory.dtype] != layout:
        raise BypassCache("a tensor with another memory layout")
    return number, (kind, tensor, memory, tensor._array)


__all__ = ["read_program"]
