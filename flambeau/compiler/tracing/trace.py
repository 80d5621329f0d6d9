"""`Trace`: the record of one traced call: its graph, the sources of inputs, results, writes, `.grad` updates, guards.

Two traces of calls with one signature that agree (`trace_comparison.py`) become a cache entry. Where they differ,
something changes from call to call that is not an argument, and the call cannot be replayed.
"""

from __future__ import annotations

import weakref
from collections.abc import Collection, Mapping, Sequence
from operator import is_
from typing import Any

import numpy as np

from ..._tensor import Tensor
from ..._tensor.dispatch.gradient_edge import gradient_edge
from ..._tensor.parameter import Parameter
from ...backends.bit_views import BitView, memory_of
from ...engine.execution.accumulate_grad import AccumulateGrad
from ...engine.nodes.node import FREED_MESSAGE
from ...ir.graph.inputs import memory_order
from ...ir.graph.target import Target
from ...ir.graph.value import Graph, Unsupported, Value
from ...shapes import Size
from ...trees import tree_flatten
from ..guards.arguments import ArrayLayout, OutputTensor, TensorRef
from ..guards.guard_set import GuardSet
from ..guards.tensor_state import are_hooked, state_objects
from . import aliasing
from .joint_graph import JointGraph, depend_on_each_other, inputs_of
from .provenance import Provenance
from .speculation import packed_values
from .storage_tracer import hook_state
from .tracer import Tracer

#: traces of one signature before its calls run eagerly for good
MAX_TRACES = 8
#: how many traces a call with side effects counts as
SIDE_EFFECT_COST = 4


class Trace:
    """One traced call.

    Args:
        tracer: the tracer that recorded it.
        arguments: the tensors among its arguments.
        result: what the function returned.

    Attributes:
        graph, data_guards, scalar_guards, param_groups, extern_calls, modules: as in `Tracer`.
        failure: why the call cannot be replayed, or None.
        retry_cost: how many traces the failure counts as, of `MAX_TRACES`.
        sources: by input number: ("argument", position), ("memory of", position, number of elements from its first),
            ("tensor", tensor, memory, the tensor's array), ("gradient of", TensorRef) or ("number", group, key, index).
        grad_strides: by input number, the strides of inputs that are gradients.
        joint: the backward part of the graph, if results are differentiable.
        targets: the results of the program: writes to inputs, then new arrays.
        outputs: by leaf of the result's tree: ("argument", position), ("same", tensor), ("again", position of a
            result), ("gradient of", TensorRef), ("constant", object) or `OutputTensor`; then bases of results that are
            not returned themselves.
        grad_updates: (TensorRef, ArrayLayout or None): new values of `.grad`.
        grad_absent: tensors whose `.grad` must be None at entry.
        grad_presence: tensors whose `.grad` was read, and whether it was not None at entry.
        user_attributes: names that must not be attributes of arguments, whose attributes have no guards.
        argument_memory: by argument: weak references to the tensor and to the owner of its memory, and the address.
        effects: values that are computed although no result needs them (draws of random numbers, assertions).
        num_values: the number of IR values of the trace; compiling adds others.
        ran_backward: whether the function called backward.
        storage_offsets: (position of an argument, the offset in bytes that it must have).
        version_bumps: (position of an argument, by how much its version increased).
        params_without_grad: parameters of optimizers whose `.grad` is None.
        written_leaves: numbers of the inputs that are written to.
        initial_state: zeros that optimizers made as initial state.
        guard_set: guards on globals, attributes, closures; None once a cache entry has taken them.
        shared_containers: mutable containers in the result that other objects refer to, until a cache entry is made.
        codes: the code that ran, by identity; None for a trace of an earlier process.
        provenance: lines and names of IR values, if they were recorded.
        recomputation: what backward passes compute again.
        plan_key: the key of the program's plan in the persistent cache, once there is one.
    """

    provenance: Provenance | None = None
    plan_key: str | None = None
    shared_containers: Sequence[Any] = ()
    codes: Mapping[int, Any] | None = None

    def __init__(self, tracer: Tracer, arguments: Sequence[Any], result: Any) -> None:
        self.graph: Graph = tracer.graph
        self.failure = tracer.failure
        self.data_guards = tracer.data_guards
        self.scalar_guards = list(tracer.scalar_guards.values())
        self.param_groups = tracer.param_groups
        self.params_without_grad = [p for _, group in self.param_groups for p in group["params"] if p._grad is None]
        self.extern_calls = tracer.extern_calls
        self.effects = tracer.effects
        self.storage_offsets = list(tracer.storage_offsets.items())
        self.modules = list(tracer.modules.values())
        self.guard_set: GuardSet | None = None
        self.retry_cost = MAX_TRACES
        self.sources: dict[int, tuple] = {}
        self.targets: list[Target] = []
        self.outputs: list[tuple] = []
        self.grad_updates: list[tuple[TensorRef, ArrayLayout | None]] = []
        self.grad_absent: list[TensorRef] = []
        self.grad_presence: list[tuple[TensorRef, bool]] = []
        self.user_attributes: frozenset[str] = frozenset()
        self._identities = [id(x) for x in arguments]
        self.argument_memory = [(weakref.ref(x), weakref.ref(aliasing.owner(x._array)), aliasing.address(x._array))
                                for x in arguments]
        self.written_leaves: list[int] = []
        self.version_bumps: list[tuple[int, int]] = []
        self.ran_backward = tracer.ran_backward
        self.recomputation = tracer.checkpoints.recomputation()
        self.grad_strides: dict[int, tuple[int, ...]] = {}
        self.joint: JointGraph | None = None
        self.initial_state = tracer.initial_state
        self._tracer = tracer
        self._result_memory: dict[int, bool] = {}  # by identity of the owner, whether a result on it has bits
        self._new_indices: dict[int, int] = {}  # by identity of the owner, the index among the new arrays
        self._new_values: list[Value] = []
        if self.failure is None:
            try:
                leaves, self.tree = tree_flatten(result, lambda x: isinstance(x, Size))  # stays a Size
                leaves = [*leaves, *self._hidden_bases(arguments, leaves)]
                for x in leaves:
                    _rebase_history(x)
                self._check_entry_state()
                self._count_writes()
                self._differentiate(arguments, leaves)
                tracer.frame_hook.stop()
                self._resolve_sources(arguments)
                self._collect_writes()
                self._collect_grad_updates(arguments, leaves)
                self._make_outputs(arguments, leaves)
            except Unsupported as error:
                self.failure = str(error)
        self.targets += [Target(value) for value in self._new_values]
        self.num_values = len(self.graph.values)
        if self.joint is not None:
            self.joint.release()
        self._collect_guards()
        del self._tracer

    @classmethod
    def from_saved(cls, attributes: dict[str, Any], **more: Any) -> Trace:
        """Restore a trace from the persistent cache."""
        self = object.__new__(cls)
        vars(self).update(attributes, **more)
        self.failure, self.guard_set, self.retry_cost = None, None, MAX_TRACES
        self.initial_state = []
        return self

    def _check_entry_state(self) -> None:
        """Check that the function changed arguments and lifted tensors only in ways that a program can repeat.

        Raises:
            Unsupported: it replaced their memory, or changed their history, flags or hooks.
        """
        tracer = self._tracer
        if self.ran_backward and are_hooked(*(tensor for tensor, _ in tracer.arguments_at_entry)):
            raise Unsupported("a hook of an argument, whose gradient is computed in the function")
        for tensor, before in tracer.arguments_at_entry:
            array, node, requires_grad, *hooks, _ = before
            if tensor._array is not array:
                raise Unsupported("an argument is given another shape or other memory")
            if tensor._node is not node or tensor._requires_grad is not requires_grad:
                raise Unsupported("the grad_fn or requires_grad of an argument changes")
            tracer.value_of(tensor)  # raises if it was written to by an untraced operation
            if hook_state(tensor) != tuple(hooks):
                raise Unsupported("a hook is registered on an argument")
        for lifted in tracer.lifted:
            tensor = lifted.tensor
            if tensor is None:
                continue
            if tensor._array is not lifted.tensor_array:
                raise Unsupported("a tensor from outside is given another shape or other memory")
            if tensor._node is not None and tracer.storages[id(aliasing.owner(lifted.tensor_array))].changed:
                raise Unsupported("a tensor from outside that has a grad_fn is written to")

    def _collect_guards(self) -> None:
        """Collect guards on Python objects, and fail on side effects and changes of optimizers' state."""
        hook = self._tracer.frame_hook
        hook.stop()
        self.codes = hook.codes
        if self.failure is None and hook.effect is not None:
            self.failure, self.retry_cost = hook.effect, SIDE_EFFECT_COST
        initial = set(map(id, self._tracer.initial_state))
        for optimizer, group, before in self._tracer.states:
            now = state_objects(optimizer, group)
            if any(len(now.get(p, ())) != len(state) or not all(map(is_, now[p], state))
                   for p, state in before.items()) or not all(
                       id(x) in initial for p in now if p not in before for x in now[p] if isinstance(x, Tensor)):
                self.failure, self.retry_cost = f"{type(optimizer).__name__} initializes its state", 1
        if self.failure is None:
            argument_ids = {id(tensor) for tensor, _ in self._tracer.arguments_at_entry}
            self.guard_set = GuardSet(hook, self.modules, self.outside_tensors(), lambda tensor: (
                id(tensor) not in argument_ids and not self._tracer.is_created(tensor)), self._tracer.excluded)
            self.failure, self.user_attributes = self.guard_set.failure, self.guard_set.user_attributes
            for tensor, _ in self._tracer.arguments_at_entry:
                if not self.guard_set.names.isdisjoint(name for name in tensor.__dict__ if name[:1] != "_"):
                    self.failure = "an argument has attributes that a user set on it"

    def outside_tensors(self) -> list[Any]:
        """Return the lifted tensors, and tensors from outside whose `.grad` the call read or changed."""
        refs = [s[1] for s in self.sources.values() if s[0] == "gradient of"]
        refs += [*(ref for ref, _ in (*self.grad_updates, *self.grad_presence)), *self.grad_absent]
        tensors = [s[1] for s in self.sources.values() if s[0] == "tensor"]
        tensors += [ref.which for ref in refs if ref.kind == "tensor"]
        return list({id(t): t for t in tensors if isinstance(t, Tensor)}.values())

    def _differentiate(self, arguments: Sequence[Any], leaves: Sequence[Any]) -> None:
        """Trace the joint graph if results are differentiable."""
        tracer = self._tracer
        outputs = list({id(x): x for x in leaves if isinstance(x, Tensor) and x._node is not None}.values())
        inputs = inputs_of(tracer, arguments)
        outputs = [x for x in outputs if all(x is not y for y in inputs)]
        try:
            input_edges = {gradient_edge(x) for x in inputs}
        except RuntimeError as error:  # a view that may not be differentiated
            raise Unsupported(str(error)) from None
        leaf_nodes = {id(x): self._leaf_nodes(x, input_edges) for x in outputs}
        outputs = [x for x in outputs if leaf_nodes[id(x)] is not None]
        for nodes in leaf_nodes.values():
            if nodes is not None and not input_edges.issuperset(nodes):
                raise Unsupported("a differentiable result that depends on a leaf which the function made")
            if nodes is not None and not nodes:
                raise Unsupported("a result whose autograd graph leads to no leaf")
        if outputs and inputs:
            if tracer.needs_independent_results and depend_on_each_other(outputs, inputs):
                raise Unsupported("results that were computed from each other, in a function with gradients of them")
            if any(x._hooks or x._retains_grad for x in outputs):
                raise Unsupported("a result with hooks")
            try:
                self.joint = JointGraph(tracer, outputs, inputs, arguments)
            except Exception as error:  # also one raised by a user's hook
                raise Unsupported(f"the results cannot be differentiated: {error}") from None

    @staticmethod
    def _leaf_nodes(tensor: Any, input_edges: Collection[Any]) -> list[Any] | None:
        """Return the nodes at the ends of a tensor's autograd graph: `input_edges`, and AccumulateGrad nodes.

        None if the graph was freed by an earlier backward.
        """
        seen, stack, leaf_nodes = set(), [tensor._node], []
        while stack:
            node = stack.pop()
            if node is None or node in seen:
                continue
            seen.add(node)
            if node in input_edges or isinstance(node, AccumulateGrad):
                leaf_nodes.append(node)
                extra = node.extra if isinstance(node, AccumulateGrad) else None
                if extra is not None and (extra.pre_hooks or extra.post_hooks):
                    raise Unsupported("a hook on an AccumulateGrad node")
                continue
            if packed_values(node):  # reading them calls user code
                stack.extend(node.edges)
                continue
            try:
                node.check_saved()
            except RuntimeError as error:
                if str(error) == FREED_MESSAGE:
                    return None
                raise Unsupported(f"the results cannot be differentiated: {error}") from None
            stack.extend(node.edges)
        return leaf_nodes

    def _resolve_sources(self, arguments: Sequence[Any]) -> None:
        tracer = self._tracer
        self.sources |= tracer.argument_sources
        with_grad = [(t, g) for t, g in tracer.entry_grads.values() if g is not None]
        gradients = {id(g): t for t, g in with_grad}
        if len({id(aliasing.owner(g._array)) for _, g in with_grad}) != len(with_grad):
            raise Unsupported("gradients that share memory")
        for lifted in tracer.lifted:
            owner = gradients.get(id(lifted.tensor))
            if owner is not None:
                self.sources[lifted.number] = ("gradient of", _tensor_ref(owner, arguments))
                if lifted.array is lifted.tensor_array:
                    self.grad_strides[lifted.number] = lifted.tensor_array.strides
            else:
                self.sources[lifted.number] = ("tensor", lifted.tensor, lifted.array, lifted.tensor_array)
        for number, group, key, index in tracer.scalar_inputs:
            self.sources[number] = ("number", group, key, index)

    def _collect_writes(self) -> None:
        arrays = {lifted.number: lifted.array for lifted in self._tracer.lifted}
        arrays |= {number: self._tracer.arguments_at_entry[source[1]][0]._array
                   for number, source in self._tracer.argument_sources.items() if source[0] == "argument"}
        for storage in self._tracer.storages.values():
            if storage.changed and storage.leaf is not None and storage.value is not None and storage.leaf.size:
                if storage.value.shape != storage.leaf.shape:
                    raise Unsupported("memory that was written in another shape")
                array, part = arrays.get(storage.leaf.attrs), None
                if array is not None and aliasing.memory_order(array) is None:
                    part = array.shape, tuple(s // array.itemsize for s in array.strides)
                self.targets.append(Target(storage.value, storage.leaf, part))
                self.written_leaves.append(storage.leaf.attrs)

    def _layout(self, tensor: Any) -> ArrayLayout:
        """Return the layout of a result: an array that the program makes, or a view of an input."""
        a = tensor._array
        root = aliasing.owner(a)
        storage = self._tracer.storages.get(id(root))
        if storage is None:
            raise Unsupported("a result that was not traced")
        has_bits = isinstance(a, BitView)
        if id(root) in self._result_memory and (has_bits or self._result_memory[id(root)]):
            raise Unsupported("results that share memory, one with a conjugate or negative bit")
        self._result_memory[id(root)] = has_bits
        if has_bits:
            if storage.leaf is not None:
                raise Unsupported("a result that is a view of an input with a conjugate or negative bit")
            self._new_values.append(self.graph.copy(self._tracer.value_of(tensor)))
            plain = memory_of(a).dtype
            return ArrayLayout(len(self._new_values) - 1, a.shape, np.empty(a.shape, plain).strides, 0, plain)
        place = (a.shape, a.strides, aliasing.address(a) - storage.start, a.dtype)
        if storage.value is None:
            order = memory_order(a)
            number = self._new_indices.get(id(a))
            if number is None:
                number = self._new_indices[id(a)] = len(self._new_values)
                self._new_values.append(self.graph.copy(storage.read(a if order is None else a.transpose(order))))
            strides = np.empty(a.shape, a.dtype).strides if order is None else a.strides
            return ArrayLayout(number, a.shape, strides, 0, a.dtype)
        if storage.leaf is not None:
            return ArrayLayout(-1 - storage.leaf.attrs, *place)
        number = self._new_indices.get(id(root))
        if number is None:
            value = storage.value
            if value.op == "view":  # a dense array, in memory order
                value = self.graph.copy(value)
            number = self._new_indices[id(root)] = len(self._new_values)
            self._new_values.append(value)
        return ArrayLayout(number, *place)

    def _collect_grad_updates(self, arguments: Sequence[Any], leaves: Sequence[Any]) -> None:
        tracer = self._tracer
        for tensor, entry in tracer.entry_grads.values():
            now = tensor._grad
            if now is entry:
                continue
            ref = _tensor_ref(tensor, arguments)
            if ref.kind == "tensor" and tracer.is_created(tensor):
                at = _position(leaves, tensor)
                if at is None:
                    continue
                ref = TensorRef("result", at)
            if now is None:
                self.grad_updates.append((ref, None))
                continue
            if now._requires_grad:
                raise Unsupported("a gradient that requires grad")
            if now._inference:
                raise Unsupported("a gradient that is an inference tensor")
            self.grad_updates.append((ref, self._layout(now)))
            if id(tensor) not in tracer.cleared_grads and ref.kind != "result":
                if entry is not None:
                    raise Unsupported("a gradient that was replaced")
                self.grad_absent.append(ref)
        self.grad_presence = [(_tensor_ref(tensor, arguments), tracer.entry_grads[id(tensor)][1] is not None)
                              for tensor in tracer.grad_reads.values()]

    def _count_writes(self) -> None:
        """Record by how much the versions of arguments increased; a counter that views share counts once."""
        seen: set[int] = set()
        for at, (tensor, (*_, before)) in enumerate(self._tracer.arguments_at_entry):
            counter = tensor._counter
            if counter is not None and not tensor._inference and id(counter) not in seen and counter[0] != before:
                self.version_bumps.append((at, counter[0] - before))
            seen.add(id(counter))

    def _hidden_bases(self, arguments: Sequence[Any], leaves: Sequence[Any]) -> list[Any]:
        """Return bases that are not results, but have several results as views, which must stay views of one base.

        Also bases of a view that requires grad, without a grad_fn, only because the base does.
        """
        views: dict[int, list[Any]] = {}
        for x in {id(x): x for x in leaves if isinstance(x, Tensor) and x._base is not None}.values():
            views.setdefault(id(x._base), []).append(x)
        known = {id(x) for x in (*arguments, *leaves)} | {id(x._base) for x in arguments}
        bases = []
        for number, group in views.items():
            base = group[0]._base
            inherits = any(x._requires_grad and x._node is None for x in group)
            if number in known or (len(group) < 2 and not inherits) or not self._tracer.is_created(base):
                continue
            if all(x._node is None for x in group):
                bases.append(base)
            elif any(np.may_share_memory(x._array, y._array) for i, x in enumerate(group) for y in group[:i]):
                raise Unsupported("differentiable results that share memory and are views of a tensor not returned")
        return bases

    def _alias_of(self, tensor: Any, arguments: Sequence[Any], leaves: Sequence[Any], at: int) -> TensorRef | None:
        """Return, for a view, its base or another view of it; for another tensor, one with the same version counter."""
        base, counter = tensor._base, tensor._counter
        if counter is None or tensor._inference:
            return None

        def is_related(x: Any) -> bool:
            if base is not None:
                return isinstance(x, Tensor) and (x is base or x._base is base)
            return isinstance(x, Tensor) and x._counter is counter

        for i, x in enumerate(arguments):
            if is_related(x):
                return TensorRef("argument", i)
        at_base = None if base is None else _position(leaves, base)
        if at_base is not None:
            return TensorRef("result", at_base)
        for i, x in enumerate(leaves[:at] if base is None else []):
            if is_related(x):
                return TensorRef("result", i)
        for lifted in self._tracer.lifted:
            if is_related(lifted.tensor) and not self._tracer.is_created(lifted.tensor):
                return TensorRef("tensor", lifted.tensor)
        return None

    def _make_outputs(self, arguments: Sequence[Any], leaves: Sequence[Any]) -> None:
        outside = {id(o.tensor): o.tensor for o in self._tracer.lifted}
        outside |= {id(t): t for t, _ in self._tracer.entry_grads.values() if not self._tracer.is_created(t)}
        gradients = {id(t._grad): t for t, _ in self._tracer.entry_grads.values()
                     if t._grad is not None and not self._tracer.is_created(t)}
        for at, each in enumerate(leaves):
            first = _position(leaves, each)
            argument = _position(arguments, each)
            if not isinstance(each, Tensor):
                self.outputs.append(("constant", each))
            elif argument is not None:
                self.outputs.append(("argument", argument))
            elif first != at:
                self.outputs.append(("again", first))
            elif id(each) in gradients:
                self.outputs.append(("gradient of", _tensor_ref(gradients[id(each)], arguments)))
            elif id(each) in outside:
                self.outputs.append(("same", each))
            else:
                self.outputs.append(self._output_tensor(each, arguments, leaves, at))

    def _output_tensor(self, each: Any, arguments: Sequence[Any], leaves: Sequence[Any], at: int) -> OutputTensor:
        if type(each) not in (Tensor, Parameter):
            raise Unsupported(f"a result of class {type(each).__name__}")
        if each._hooks or each._retains_grad or each._post_accumulate_hooks:
            raise Unsupported("a result with hooks")
        layout = self._layout(each)
        base = self._alias_of(each, arguments, leaves, at)
        is_view = each._base is not None and base is not None
        if each._own_requires_grad:
            raise Unsupported("a result that is a view with its own requires_grad")
        if each._view_steps is not None and is_view:
            raise Unsupported("a result that is a view as another dtype")
        number = None if self.joint is None else self.joint.output_index(each)
        return OutputTensor("new" if layout.array >= 0 else "leaf", layout, each._requires_grad, number,
                            each._requires_grad and each._node is None, type(each) is Parameter, base, is_view,
                            each._creation if is_view else None, each._inference)

    def identity(self, ref: TensorRef) -> int:
        """Return the identity of a tensor in this call; 0 for results."""
        return {"argument": lambda i: self._identities[i], "result": lambda i: 0, "tensor": id}[ref.kind](ref.which)

    def leaf(self, number: int) -> Value:
        """Return the graph input of this number."""
        return next(v for v in self.graph.values if v.op == "input" and v.attrs == number)

    def location(self, value: Value) -> str:
        """Return " (file:line)" of a value, for messages; "" if provenance was not recorded."""
        place = None if self.provenance is None else self.provenance.places.get(value.number)
        return "" if place is None else f" ({place})"


def _rebase_history(tensor: Any) -> None:
    """Regenerate the grad_fn of a view whose memory was written to since.

    Raises:
        Unsupported: it is a view that may not be written to in place.
    """
    if isinstance(tensor, Tensor) and tensor._base is not None and not tensor._inference and (
            tensor._counter is not None and tensor._view_version != tensor._counter[0]):
        if tensor._creation is not None:
            raise Unsupported("a result that was written to and is a view which forbids in-place writes")
        tensor.grad_fn  # noqa: B018


def _tensor_ref(tensor: Any, arguments: Sequence[Any]) -> TensorRef:
    at = _position(arguments, tensor)
    return TensorRef("tensor", tensor) if at is None else TensorRef("argument", at)


def _position(things: Sequence[Any], thing: Any) -> int | None:
    return next((i for i, x in enumerate(things) if x is thing), None)


__all__ = ["MAX_TRACES", "Trace"]
