"""Cache entries: a compiled program, the guards under which it may be replayed, and the construction of its results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from ..._tensor import Tensor
from ..._tensor.parameter import Parameter
from ..._tensor.tensor import INFERENCE, wrap
from ...backends.bit_views import BitView
from ...backends.numpy.memory import view_memory
from ...engine.nodes.leaf_hooks import LeafHooks
from ...engine.nodes.node import FREED_MESSAGE, Node, next_number
from ...engine.profiler_events import active_timeline
from ...ir.graph.target import Target
from ...ir.schedule.program import KernelCallback, Program
from ...modes import module_changes
from ...runtime import compilation as code
from ...trees import tree_flatten, tree_unflatten
from ..cache import trace_cache
from ..cache.trace_cache import TraceRecord
from ..guards.arguments import ArrayLayout, OutputTensor, bump_version, restore_view
from ..guards.guard import ITEM, MODULE, Guard
from ..guards.tensor_state import TensorFlags, are_hooked, optimizer_guard, state_entries
from ..symbolic.expressions import evaluate
from ..symbolic.formulas import OutOfTemplate
from ..tracing.aliasing import address, extent, flat_view, owner
from ..tracing.trace import Trace
from ..tracing.trace_comparison import difference, pins
from . import profiling
from .backward_graph import BackwardGraph, attach_backward
from .buffer_donation import allocate_or_reuse, donated_buffers
from .rematerialization import program_graph
from .template import Template, pin_holds

#: returned instead of a result if a guard fails
GUARDS_FAILED = object()
#: no inputs that are computed from numbers
EMPTY: Mapping[int, Any] = MappingProxyType({})


class FreedNode(Node):
    """The grad_fn of a result whose autograd graph the function itself has freed by calling `backward`."""

    __slots__ = ()

    def __init__(self) -> None:
        self.edges = ()
        self.edge_outputs = self.outputs = self.extra = self.run = None
        self.seq = next_number()

    def name(self) -> str:
        return "CompiledFunctionBackward"

    def vjp(self, cotangents: Any, tensors: bool) -> Any:
        raise RuntimeError(FREED_MESSAGE)


class CacheEntry:
    """A compiled trace.

    Args:
        trace: the trace.
        name: the name in debug output and profiles.
        guards: guards on Python objects.
        before: the trace that agrees with it.
        trace_key: the key of such traces in the persistent cache.
        record: their record there.

    Attributes:
        pins: by argument, the tensor and memory that it must be (`trace_comparison.pins`); None if it is free.
        copies: by value of the trace's graph, the value of the forward program's graph; None if it is the trace's.
        program: the forward program; its results are the trace's targets, then the values saved for backward.
        backward: the backward graph, if results are differentiable.
        libraries_before: how many code libraries were loaded before it, for debug output.
        guards: guards on Python objects, except modules.
        optimizer_guards: guards on the entries of optimizers' state.
        module_version: `modes.module_changes` when modules last matched.
        donated: by index of a result, the tensor whose old gradient may donate its memory.
        call_stub: (the call stub or None,), once generation was tried.
        stub_source: the source of the call stub.
        bypass_reason: why the program is not in the persistent cache, or None.
        is_from_cache: whether it was loaded from the persistent cache.
        has_run: whether it was replayed.
        initialized_states: optimizers and parameters whose state was made when it was loaded, without a step.
        template: the template that the trace is an instance of; None if there is none.
        free_arguments: positions of the numbers among the arguments that are inputs.
    """

    template: Template | None = None
    free_arguments: frozenset[int] = frozenset()
    bypass_reason: str | None = None
    is_from_cache = has_run = False
    initialized_states: Sequence[tuple[Any, Any]] = ()

    def __init__(self, trace: Trace, name: str, guards: list[Guard], before: Trace, trace_key: str,
                 record: TraceRecord) -> None:
        self.trace, self.trace_key, self.record = trace, trace_key, record
        trace.guard_set, trace.shared_containers = None, ()
        self.pins: list[tuple[Any, Any, int] | None] = []
        self._pin(before, trace)
        if record.free:
            self.pins = [None if is_free else pin for pin, is_free in zip(self.pins, record.free, strict=True)]
        self.name, self.libraries_before = name, code.library_count()
        not_kept = {number for number, source in trace.sources.items() if source[0] in ("number", "gradient of")}
        graph, targets, conditions, effects, joint, self.copies = program_graph(trace, not_kept | set(
            trace.written_leaves))
        written = {t.overwrites for t in targets if t.overwrites is not None}
        written |= {v for v in graph.values if v.op == "input" and v.attrs in not_kept}
        self.backward = None if joint is None else self.make_backward(joint, f"{name} backward", written)
        handed_over = [] if self.backward is None else [Target(v) for v in self.backward.saved]
        self._num_results = sum(t.overwrites is None for t in targets)
        self.program = self.make_program(graph, [*targets, *handed_over], conditions, effects, trace.plan_key)
        trace.plan_key = self.program.cache_key
        self.donated = donated_buffers(trace, self.program)
        self.scalar_arrays: dict[int, np.ndarray] = {
            number: np.zeros((), np.float64) for number, source in trace.sources.items() if source[0] == "number"}
        self.written_sources = [source for source in (trace.sources[number] for number in trace.written_leaves)
                                if source[0] not in ("argument", "memory of")]
        self.guards = [each for each in guards if each.kind != MODULE]
        self.optimizer_guards = [Guard(ITEM, *state, "") for state in state_entries(trace.param_groups)]
        self.module_version = module_changes[0]
        self._modules = [each for each in guards if each.kind == MODULE]
        self.tensor_flags_match = TensorFlags(trace.outside_tensors())
        self.optimizers_match = optimizer_guard(trace.param_groups, trace.params_without_grad)
        self._grad_refs = [source[1] for source in trace.sources.values() if source[0] == "gradient of"]
        self.memory_owners = frozenset(id(owner(s[2])) for s in trace.sources.values() if s[0] == "tensor")
        self.freed_nodes = [FreedNode() for _ in trace.outputs]
        self.stub_source: str | None = None
        self.call_stub: tuple[Callable[..., Any] | None] | None = None

    def make_program(self, graph: Any, targets: list[Target], conditions: list[tuple[Any, bool]],
                     effects: Sequence[Any], plan_key: str | None) -> Program:
        """Make the program; the arguments are those of `Program`."""
        return Program(graph, targets, conditions, effects, plan_key)

    def make_backward(self, joint: Any, name: str, written: Any) -> BackwardGraph:
        """Make the backward program; the arguments are those of `BackwardGraph`."""
        made = BackwardGraph(joint, name, written)
        made.prepare(self.trace.sources)
        return made

    def _pin(self, before: Trace, now: Trace) -> None:
        new_pins: list[tuple[Any, Any, int] | None] = [
            each if each[0] is not None or each[1] is not None else None for each in pins(before, now)]
        if self.pins:
            new_pins = [None if old is None else new for old, new in zip(self.pins, new_pins, strict=True)]
        self.pins = new_pins

    def relax_pins(self, trace: Trace) -> bool:
        """Release the pins of arguments that differ in another trace; return False if it does not agree."""
        if trace.failure is not None or not any(self.pins) or difference(self.trace, trace) is not None:
            return False
        self.compare_pins(trace)
        return True

    def compare_pins(self, trace: Trace) -> None:
        """Release the pins of arguments that differ in another trace, which agrees."""
        self._pin(self.trace, trace)
        self.call_stub = None
        self.store_record()

    def store_record(self) -> None:
        """Store in the persistent cache that traces like this one agree, unless the entry is one of a template."""
        if self.trace_key:
            trace_cache.store(self.trace_key, self.record._replace(free=tuple(pin is None for pin in self.pins)))

    def modules_match(self) -> bool:
        """Whether the guards on modules hold; they are checked only if any module has changed."""
        now = module_changes[0]
        if self.module_version == now:
            return True
        if not all(each.holds() for each in self._modules):
            return False
        self.module_version = now
        return True

    @property
    def arena_bytes(self) -> int:
        """The bytes of intermediate values that the programs keep between runs."""
        return self.program.execution_plan.arena + (0 if self.backward is None else self.backward.arena_bytes)

    @property
    def all_guards(self) -> list[Guard]:
        """The guards on Python objects, modules last."""
        return [*self.guards, *self._modules]

    def python_guards_hold(self) -> bool:
        """Whether the guards on Python objects and on optimizers hold."""
        return self.optimizers_match() and self._guards_hold()

    def _guards_hold(self) -> bool:
        return self.modules_match() and self.tensor_flags_match(True) and all(
            each.holds() for each in (*self.guards, *self.optimizer_guards))

    def computed_inputs(self, arguments: Sequence[Any]) -> dict[int, Any] | None:
        """Return what is computed from numbers; None if the program does not serve these.

        By number, the inputs; by `-1 - i`, the results that are numbers.

        Args:
            arguments: all arguments of the call.
        """
        if not self.free_arguments:
            return {}
        assert self.template is not None
        symbols = self.template.sizes_of(arguments)
        if symbols is None:
            return None
        try:
            found = {number: source[1].number(symbols) for number, source in self.trace.sources.items()
                     if source[0] == "computed"}
            return found | {-1 - i: evaluate(each[1], symbols) for i, each in enumerate(self.trace.outputs)
                            if each[0] == "computed"}
        except OutOfTemplate:
            return None

    def input_arrays(self, leaves: Sequence[int], arguments: Sequence[Any], computed: Mapping[int, Any] = EMPTY
                     ) -> list[np.ndarray] | None:
        """Return the arrays of graph inputs, by number; None if a tensor or gradient has changed.

        Args:
            leaves: the numbers.
            arguments: the tensors among the call's arguments.
            computed: what `computed_inputs` returns for the call.
        """
        arrays = []
        sources = self.trace.sources
        for number in leaves:
            source = sources[number]
            kind = source[0]
            if kind == "argument":
                arrays.append(arguments[source[1]]._array)
            elif kind == "memory of":
                arrays.append(flat_view(arguments[source[1]]._array, source[2]))
            elif kind == "tensor":
                if source[1] is not None and source[1]._array is not source[3]:
                    return None
                arrays.append(source[2])
            elif kind == "number":
                _, group, key, index = source
                value = group[key]
                array = self.scalar_arrays[number]
                array[()] = value if index is None else value[index]
                arrays.append(array)
            elif kind == "computed":
                arrays.append(computed[number])
            else:
                gradient = source[1].resolve(arguments)._grad
                strides = self.trace.grad_strides.get(number)
                leaf = self.trace.leaf(number)
                if gradient is None or gradient._array.size != leaf.size or gradient._array.dtype != leaf.dtype or (
                        gradient._array.strides != strides or isinstance(gradient._array, BitView)):
                    return None
                arrays.append(gradient._array)
        return arrays

    def check_guards(self, arguments: Sequence[Any]) -> bool:
        """Whether all guards hold, except those on the signature of the call and on data."""
        trace = self.trace
        for ref in trace.grad_absent:
            if ref.resolve(arguments)._grad is not None:
                return False
        for ref, has_grad in trace.grad_presence:
            if (ref.resolve(arguments)._grad is not None) is not has_grad:
                return False
        if trace.user_attributes and not all(trace.user_attributes.isdisjoint(x.__dict__) for x in arguments):
            return False
        for at, start in trace.storage_offsets:
            array = arguments[at]._array
            if address(array) - address(owner(array)) != start:
                return False
        for x, pin in zip(arguments, self.pins, strict=True):
            if pin is not None and not pin_holds(x, pin):
                return False
        if trace.ran_backward and LeafHooks.registered and are_hooked(*arguments):
            return False
        gradients = [ref.resolve(arguments)._grad for ref in self._grad_refs]
        if not self.do_not_alias([x._array for x in arguments], [g._array for g in gradients if g is not None]):
            return False
        for group, key, index, compare, other, outcome in trace.scalar_guards:
            value = group[key]
            if bool(compare(value if index is None else value[index], other)) != outcome:
                return False
        return self.python_guards_hold()

    def do_not_alias(self, arrays: Sequence[np.ndarray], gradients: Sequence[np.ndarray] = ()) -> bool:
        """Whether gradients share no memory with each other or with arguments, and neither does with lifted tensors.

        Aliasing among arguments is part of the signature.
        """
        owners = {id(owner(a)) for a in arrays}
        if gradients:
            count = len(owners) + len(gradients)
            owners |= {id(owner(a)) for a in gradients}
            if len(owners) != count:
                return False
        return self.memory_owners.isdisjoint(owners)

    def are_distinct(self, *arrays: np.ndarray) -> bool:
        """Whether no two arguments share memory, and none does with a lifted tensor."""
        owners = {id(owner(a)) for a in arrays}
        return len(owners) == len(arrays) and self.memory_owners.isdisjoint(owners)

    def run(self, arguments: Sequence[Any], watch: KernelCallback | None = None,
            computed: Mapping[int, Any] = EMPTY) -> Any:
        """Check the guards and replay the program.

        Args:
            arguments: the tensors among the call's arguments.
            watch: called after each kernel.
            computed: what `computed_inputs` returns for the call.

        Returns:
            The function's result, or `GUARDS_FAILED`.
        """
        trace = self.trace
        if not self.check_guards(arguments):
            return GUARDS_FAILED
        arrays = self.input_arrays(self.program.inputs, arguments, computed)
        new = None if arrays is None else self.program.run(arrays, self._allocate_outputs(arguments), watch)
        if new is None:
            return GUARDS_FAILED
        for at, times in trace.version_bumps:
            bump_version(arguments[at], times)
        for source in self.written_sources:
            tensor = source[1].resolve(arguments)._grad if source[0] == "gradient of" else source[1]
            if tensor is not None:
                tensor._bump_version()
        for ref, layout in trace.grad_updates:
            if ref.kind != "result":
                grad = None if layout is None else wrap(self.output_array(layout, new, arguments))
                ref.resolve(arguments)._grad = grad
        return self.make_result(new, arguments, computed)

    def run_profiled(self, arguments: Sequence[Any], computed: Mapping[int, Any] = EMPTY) -> Any:
        """Like `run`, with an event for each kernel if this thread is profiled."""
        timeline = active_timeline()
        if timeline is None:
            return self.run(arguments, computed=computed)
        span = timeline.enter(f"compiled {self.name}", inputs=arguments)
        try:
            result = self.run(arguments, profiling.watch(self.program, self.name), computed)
            if timeline.memory:
                outputs = [x._array for x in tree_flatten(result)[0] if isinstance(x, Tensor)]
                timeline.record_allocations(span, outputs, [x._array for x in arguments])
            return result
        finally:
            timeline.leave(span)

    def _allocate_outputs(self, arguments: Sequence[Any]) -> list[np.ndarray] | None:
        """Return arrays for the program's results, some of them donated; None if the program may allocate all."""
        if not self.donated:
            return None
        return [allocate_or_reuse(self.donated[k].resolve(arguments), shape, dtype) if k in self.donated
                else np.empty(shape, dtype)
                for k, (shape, dtype) in enumerate(self.program.output_specs)]

    def make_outputs(self, new: Sequence[np.ndarray], arguments: Sequence[Any], computed: Mapping[int, Any]
                     ) -> list[Any]:
        """Construct the result tensors from the arrays that the program made; last, bases that are not returned."""
        trace = self.trace
        results: list[Any] = []
        outputs: list[Any] = [] if trace.joint is None else [None] * trace.joint.count
        for i, (each, freed_nodes) in enumerate(zip(trace.outputs, self.freed_nodes, strict=True)):
            kind = each[0]
            if isinstance(each, OutputTensor):
                tensor = wrap(self.output_array(each[1], new, arguments), Parameter if each.parameter else Tensor)
                if each.number is not None:
                    outputs[each.number] = tensor
                elif each.requires_grad:
                    tensor._requires_grad = True
                    if not each.leaf:
                        tensor._node = freed_nodes
                if each.inference:
                    tensor._inference, tensor._counter = True, INFERENCE
                results.append(tensor)
            elif kind == "argument":
                results.append(arguments[each[1]])
            elif kind == "again":
                results.append(results[each[1]])
            elif kind == "gradient of":
                results.append(each[1].resolve(arguments)._grad)
            elif kind == "computed":
                results.append(computed[-1 - i])
            else:
                results.append(each[1])
        for tensor, each in zip(results, trace.outputs, strict=True):
            if isinstance(each, OutputTensor) and each.base is not None:
                restore_view(tensor, each, each.base.resolve(arguments, results))
        if self.backward is not None:
            numbers = [v.attrs for v in self.backward.leaves]
            leaves = self.input_arrays(numbers, arguments, computed)
            assert leaves is not None
            read: list[Any] = []
            for number in numbers:
                source = trace.sources[number]
                read.append(arguments[source[1]] if source[0] in ("argument", "memory of") else
                            source[1] if source[0] == "tensor" else None)
            attach_backward(outputs, self.backward, list(new[self._num_results:]), leaves, arguments, read)
        return results

    def make_result(self, new: Sequence[np.ndarray], arguments: Sequence[Any],
                    computed: Mapping[int, Any] = EMPTY) -> Any:
        """Construct the function's result from the arrays that the program made."""
        results = self.make_outputs(new, arguments, computed)
        for ref, layout in self.trace.grad_updates:
            if ref.kind == "result" and layout is not None:
                results[ref.which]._grad = wrap(self.output_array(layout, new, arguments))
        return tree_unflatten(results[:self.trace.tree.num_leaves], self.trace.tree)

    def output_array(self, layout: ArrayLayout, new: Sequence[np.ndarray], arguments: Sequence[Any]) -> np.ndarray:
        """Return the array of a layout."""
        if layout.array >= 0:
            array = new[layout.array]
            if array.dtype == layout.dtype and array.shape == layout.shape and array.strides == layout.strides:
                return array
        else:
            [array] = self.input_arrays([-1 - layout.array], arguments) or []
        if array.dtype == layout.dtype:
            return view_memory(array, layout.shape, layout.strides, layout.offset)
        return np.ndarray(layout.shape, layout.dtype, flat_view(array, extent(array)), layout.offset, layout.strides)


__all__ = ["GUARDS_FAILED", "CacheEntry", "FreedNode"]
