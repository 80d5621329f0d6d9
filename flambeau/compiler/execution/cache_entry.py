"""Cache entries: a compiled program, the guards under which it may be replayed, and how its results become tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..._tensor import Tensor
from ..._tensor.parameter import Parameter
from ..._tensor.tensor import INFERENCE, wrap
from ...backends.numpy.memory import lying
from ...engine.nodes.leaf_hooks import LeafHooks
from ...engine.nodes.node import FREED_MESSAGE, Node, next_number
from ...engine.profiler_events import recording
from ...ir.graph.target import Target
from ...ir.schedule.program import KernelCallback, Program
from ...modes import configured
from ...runtime import compilation as code
from ...trees import tree_flatten, tree_unflatten
from ..cache import trace_cache
from ..cache.trace_cache import TraceRecord
from ..guards.arguments import ArrayLayout, OutputTensor, bump_version, restore_view
from ..guards.environment import ITEM, MODULE, Guard
from ..guards.tensor_state import TensorFlags, are_hooked, optimizer_guard, state_entries
from ..tracing.aliasing import address, extent, flat_view, owner
from ..tracing.trace import Trace
from . import profiling
from .backward_graph import BackwardGraph, differentiable
from .buffer_donation import allocate_or_reuse, donated_buffers

#: what stands for the result of a call that no program fits
GUARDS_FAILED = object()


def pin_holds(x: Any, pin: tuple[Any, Any, int]) -> bool:
    """Whether an argument is the tensor, and lies in the memory, that it must."""
    tensor, memory, at = pin
    return (tensor is None or tensor() is x) and (
        memory is None or (memory() is owner(x._array) and address(x._array) == at))


class FreedNode(Node):
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


class CacheEntry:
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

    bypass_reason: str | None = None
    is_from_cache = has_run = False
    initialized_states: Sequence[tuple[Any, Any]] = ()

    def __init__(self, trace: Trace, name: str, guards: list[Guard], before: Trace, trace_key: str,
                 record: TraceRecord) -> None:
        self.trace, self.trace_key, self.record = trace, trace_key, record
        trace.guard_set = None
        self.pins: list[tuple[Any, Any, int] | None] = []
        self._pin(before, trace)
        if record.free:
            self.pins = [None if is_free else pin for pin, is_free in zip(self.pins, record.free, strict=True)]
        self.name, self.libraries_before = name, code.library_count()
        written = {t.overwrites for t in trace.targets if t.overwrites is not None}
        self.backward = None if trace.joint is None else BackwardGraph(trace.joint, f"{name} backward", written)
        handed_over = [] if self.backward is None else [Target(v) for v in self.backward.saved]
        self._results_count = sum(t.overwrites is None for t in trace.targets)
        self.program = Program(trace.graph, [*trace.targets, *handed_over],
                               [(g.value, g.outcome) for g in trace.data_guards], trace.effects, trace.plan_key)
        trace.plan_key = self.program.cache_key
        self.donated = donated_buffers(trace, self.program)
        self.scalar_arrays: dict[int, np.ndarray] = {
            number: np.zeros((), np.float64) for number, source in trace.sources.items() if source[0] == "number"}
        self.written_sources = [source for source in (trace.sources[number] for number in trace.written_leaves)
                        if source[0] not in ("argument", "memory of")]
        self.guards = [each for each in guards if each.kind != MODULE]
        self.optimizer_guards = [Guard(ITEM, *state, "") for state in state_entries(trace.param_groups)]
        self.module_version = configured[0]
        self._modules = [each for each in guards if each.kind == MODULE]
        self.tensor_flags_match = TensorFlags(trace.outside())
        self.optimizers_match = optimizer_guard(trace.param_groups, trace.params_without_grad)
        self._grad_refs = [source[1] for source in trace.sources.values() if source[0] == "gradient of"]
        self.memory_owners = frozenset(id(owner(s[2])) for s in trace.sources.values() if s[0] == "tensor")
        self.freed_nodes = [FreedNode() for _ in trace.outputs]
        self.stub_source: str | None = None
        self.call_stub: tuple[Callable[..., Any] | None] | None = None

    def _pin(self, before: Trace, now: Trace) -> None:
        found: list[tuple[Any, Any, int] | None] = [
            each if each[0] is not None or each[1] is not None else None for each in before.pins(now)]
        if self.pins:
            found = [None if was is None else is_now for was, is_now in zip(self.pins, found, strict=True)]
        self.pins = found

    def relax_pins(self, trace: Trace) -> bool:
        """Whether another run did the same with other arguments, which are then free to be any."""
        if trace.failure is not None or not any(self.pins) or self.trace.difference(trace) is not None:
            return False
        self._pin(self.trace, trace)
        self.call_stub = None
        self.store_record()
        return True

    def store_record(self) -> None:
        """Let other processes know that runs like this one agree."""
        trace_cache.store(self.trace_key, self.record._replace(free=tuple(pin is None for pin in self.pins)))

    def modules_match(self) -> bool:
        """Whether all modules are as they were."""
        now = configured[0]
        if self.module_version == now:
            return True
        if not all(each.holds() for each in self._modules):
            return False
        self.module_version = now
        return True

    def _guards_hold(self) -> bool:
        return self.modules_match() and self.tensor_flags_match(True) and all(
            each.holds() for each in (*self.guards, *self.optimizer_guards))

    def input_arrays(self, leaves: Sequence[int], arguments: Sequence[Any]) -> list[np.ndarray] | None:
        """The leaves' arrays; None where one is not what it was."""
        found = []
        sources = self.trace.sources
        for number in leaves:
            source = sources[number]
            kind = source[0]
            if kind == "argument":
                found.append(arguments[source[1]]._array)
            elif kind == "memory of":
                found.append(flat_view(arguments[source[1]]._array, source[2]))
            elif kind == "tensor":
                if source[1] is not None and source[1]._array is not source[3]:
                    return None
                found.append(source[2])
            elif kind == "number":
                _, group, key, index = source
                value = group[key]
                array = self.scalar_arrays[number]
                array[()] = value if index is None else value[index]
                found.append(array)
            else:
                gradient = source[1].of(arguments)._grad
                strides = self.trace.grad_strides.get(number)
                leaf = self.trace.leaf(number)
                if gradient is None or gradient._array.size != leaf.size or gradient._array.dtype != leaf.dtype or (
                        gradient._array.strides != strides):
                    return None
                found.append(gradient._array)
        return found

    def check_guards(self, arguments: Sequence[Any]) -> bool:
        """Whether everything that the run depended on, the arguments' looks and truths apart, is as it was."""
        trace = self.trace
        for held in trace.grad_absent:
            if held.of(arguments)._grad is not None:
                return False
        for held, has_one in trace.grad_presence:
            if (held.of(arguments)._grad is not None) is not has_one:
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
        if trace.ran_backward and LeafHooks.found and are_hooked(*arguments):
            return False
        gradients = [held.of(arguments)._grad for held in self._grad_refs]
        if not self.do_not_alias([x._array for x in arguments], [g._array for g in gradients if g is not None]):
            return False
        for group, key, index, compare, other, outcome in trace.scalar_guards:
            value = group[key]
            if bool(compare(value if index is None else value[index], other)) != outcome:
                return False
        return self.optimizers_match() and self._guards_hold()

    def do_not_alias(self, arrays: Sequence[np.ndarray], gradients: Sequence[np.ndarray] = ()) -> bool:
        """Whether arguments and gradients share no memory with each other, nor with what the function found.

        How arguments share memory with each other is part of how a call looks.
        """
        owners = {id(owner(a)) for a in arrays}
        if gradients:
            count = len(owners) + len(gradients)
            owners |= {id(owner(a)) for a in gradients}
            if len(owners) != count:
                return False
        return self.memory_owners.isdisjoint(owners)

    def are_distinct(self, *arrays: np.ndarray) -> bool:
        """Whether arguments each have memory of their own."""
        owners = {id(owner(a)) for a in arrays}
        return len(owners) == len(arrays) and self.memory_owners.isdisjoint(owners)

    def run(self, arguments: Sequence[Any], watch: KernelCallback | None = None) -> Any:
        """Replay the run, `watch` being told of each kernel; MISSED where it does not fit."""
        trace = self.trace
        if not self.check_guards(arguments):
            return GUARDS_FAILED
        arrays = self.input_arrays(self.program.inputs, arguments)
        new = None if arrays is None else self.program.run(arrays, self._allocate_outputs(arguments), watch)
        if new is None:
            return GUARDS_FAILED
        for at, times in trace.version_bumps:
            bump_version(arguments[at], times)
        for source in self.written_sources:
            tensor = source[1].of(arguments)._grad if source[0] == "gradient of" else source[1]
            if tensor is not None:
                tensor._bump_version()
        for held, shown in trace.grad_updates:
            if held.kind != "result":
                held.of(arguments)._grad = None if shown is None else wrap(self.output_array(shown, new, arguments))
        return self.make_result(new, arguments)

    def run_profiled(self, arguments: Sequence[Any]) -> Any:
        """Replay a run kernel by kernel, if this thread is profiled; `MISSED` where it does not fit."""
        timeline = recording()
        if timeline is None:
            return self.run(arguments)
        span = timeline.enter(f"compiled {self.name}", given=arguments)
        try:
            found = self.run(arguments, profiling.watch(self.program, self.name))
            if timeline.memory:
                made = [x._array for x in tree_flatten(found)[0] if isinstance(x, Tensor)]
                timeline.made(span, made, [x._array for x in arguments])
            return found
        finally:
            timeline.leave(span)

    def _allocate_outputs(self, arguments: Sequence[Any]) -> list[np.ndarray] | None:
        """The arrays for what is new; None where all of them may be any."""
        if not self.donated:
            return None
        return [allocate_or_reuse(self.donated[k].of(arguments), shape, dtype) if k in self.donated
                else np.empty(shape, dtype)
                for k, (shape, dtype) in enumerate(self.program.output_specs)]

    def make_outputs(self, new: Sequence[np.ndarray], arguments: Sequence[Any]) -> list[Any]:
        """The results, of the arrays that the program made, and bases that some of them need."""
        trace = self.trace
        results: list[Any] = []
        outputs: list[Any] = [] if trace.joint is None else [None] * trace.joint.count
        for each, freed_nodes in zip(trace.outputs, self.freed_nodes, strict=True):
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
                results.append(each[1].of(arguments)._grad)
            else:
                results.append(each[1])
        for tensor, each in zip(results, trace.outputs, strict=True):
            if isinstance(each, OutputTensor) and each.base is not None:
                restore_view(tensor, each, each.base.of(arguments, results))
        if self.backward is not None:
            numbers = [v.attrs for v in self.backward.leaves]
            leaves = self.input_arrays(numbers, arguments)
            assert leaves is not None
            read = [arguments[source[1]] if source[0] == "argument" else source[1]
                    for source in (trace.sources[n] for n in numbers)
                    if source[0] in ("argument", "tensor") and source[1] is not None]
            differentiable(outputs, self.backward, list(new[self._results_count:]), leaves, arguments, read)
        return results

    def make_result(self, new: Sequence[np.ndarray], arguments: Sequence[Any]) -> Any:
        """What the function returns, of the arrays that the program made."""
        found = self.make_outputs(new, arguments)
        for held, shown in self.trace.grad_updates:
            if held.kind == "result" and shown is not None:
                found[held.which]._grad = wrap(self.output_array(shown, new, arguments))
        return tree_unflatten(found[:self.trace.tree.num_leaves], self.trace.tree)

    def output_array(self, shown: ArrayLayout, new: Sequence[np.ndarray], arguments: Sequence[Any]) -> np.ndarray:
        """The array of a result."""
        if shown.array >= 0:
            array = new[shown.array]
            if array.dtype == shown.dtype and array.shape == shown.shape and array.strides == shown.strides:
                return array
        else:
            [array] = self.input_arrays([-1 - shown.array], arguments) or []
        if array.dtype == shown.dtype:
            return lying(array, shown.shape, shown.strides, shown.offset)
        return np.ndarray(shown.shape, shown.dtype, flat_view(array, extent(array)), shown.offset, shown.strides)


__all__ = ["GUARDS_FAILED", "CacheEntry", "FreedNode"]
