"""What a captured run amounts to: leaves and where they come from, results, writes, gradients.

Two traces of the same call that agree are a program. What they do not agree on is what changes from call to call
without the function's arguments saying so; then the run cannot be replayed.
"""

from __future__ import annotations

import weakref
from collections.abc import Collection, Sequence
from itertools import islice
from operator import is_
from typing import Any

import numpy as np

from ..._tensor import Tensor
from ..._tensor.dispatch.gradient_edge import gradient_edge
from ..._tensor.parameter import Parameter
from ...engine.execution.accumulate_grad import AccumulateGrad
from ...engine.nodes.node import FREED_MESSAGE
from ...ir.graph.target import Target
from ...ir.graph.value import Graph, Unsupported, Value
from ...trees import tree_flatten
from ..guards.arguments import ArrayLayout, OutputTensor, TensorRef
from ..guards.environment import GuardSet
from ..guards.tensor_state import are_hooked, state_objects
from . import aliasing
from .joint_graph import JointGraph, inputs_of
from .provenance import Provenance
from .tracer import Tracer, hook_state

#: calls of one kind that are captured before they are given up
MAX_TRACES = 8
#: what a run costs that did something to the world
SIDE_EFFECT_COST = 4


class Trace:
    """One run.

    Attributes:
        sources: by leaf number: ("argument", position), ("memory of", position, elements from its first on),
            ("tensor", tensor, the memory, the tensor's array), ("gradient of", Held) or ("number", group, key, index).
        gradient_strides: by leaf number, of gradients.
        joint: the gradients of the results, where they may be asked for.
        targets: what the program is to leave behind: writes to leaves, then new arrays.
        results: for each leaf of the result's tree: ("argument", position), ("same", tensor), ("again", position of a
            result), ("gradient of", Held), ("constant", object) or `Made`; then bases of results that are not returned
            themselves.
        gradients: (Held, Shown or None): what becomes of `.grad`.
        without: those that must have no gradient when the function is called.
        hung: attributes that no argument may have, since nobody looks at what a user hangs on one.
        looked_at: those whose gradients the function looked at as it found them, and whether there was one.
        shared: where arguments lie, for `pinned`.
        effects: values that must be computed whether anybody wants them or not.
        length: how many values there are; a program adds others.
        ran_backward: whether gradients were computed in the run.
        starts: arguments by position, and at which byte of their memory they must begin.
        bumps: arguments by position, and how often their versions went up.
        bare: parameters of optimizers that have no gradient.
        initial: zeros that optimizers made to begin with.
        origins: the lines and names of its values, if they were noted.
        plan: the name of its program's plan on disk, once there is one.
        surroundings: what the run saw without being handed it; None once a program looks after it.
        cost: how much a failure counts, of `TRIES`; one of the first call may be the only one.
    """

    provenance: Provenance | None = None
    plan_key: str | None = None

    def __init__(self, tracer: Tracer, arguments: Sequence[Any], result: Any) -> None:
        self.graph: Graph = tracer.graph
        self.failure = tracer.failure
        self.data_guards = tracer.data_guards
        self.scalar_guards = list(tracer.scalar_guards.values())
        self.param_groups = tracer.param_groups
        self.params_without_grad = [p for _, group in self.param_groups for p in group["params"] if p._grad is None]
        self.extern_calls = tracer.extern_calls
        self.effects = [] if tracer.last_draw is None else [tracer.last_draw]
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
        self.grad_strides: dict[int, tuple[int, ...]] = {}
        self.joint: JointGraph | None = None
        self.initial_state = tracer.initial_state
        self._tracer = tracer
        self._fresh: dict[int, int] = {}
        self._new_values: list[Value] = []
        if self.failure is None:
            try:
                leaves, self.tree = tree_flatten(result)
                leaves = [*leaves, *self._hidden_bases(arguments, leaves)]
                for x in leaves:
                    _renew(x)
                self._entered()
                self._count_writes()
                self._differentiate(arguments, leaves)
                tracer.frame_hook.stop()
                self._sources(arguments)
                self._writes()
                self._grad_updates(arguments, leaves)
                self._make_outputs(arguments, leaves)
            except Unsupported as error:
                self.failure = str(error)
        self.targets += [Target(value) for value in self._new_values]
        self.num_values = len(self.graph.values)
        if self.joint is not None:
            self.joint.forget()
        self._look_around()
        del self._tracer

    @classmethod
    def again(cls, kept: dict[str, Any], **more: Any) -> Trace:
        """A run that was written down: its attributes."""
        self = object.__new__(cls)
        vars(self).update(kept, **more)
        self.failure, self.guard_set, self.retry_cost = None, None, MAX_TRACES
        self.initial_state = []
        return self

    def _entered(self) -> None:
        """Refuse what a program does not do to arguments, and to tensors from outside.

        Raises:
            Unsupported: the function did that.
        """
        tracer = self._tracer
        if self.ran_backward and are_hooked(*(tensor for tensor, _ in tracer.arguments_at_entry)):
            raise Unsupported("a hook of an argument, whose gradient is computed in the function")
        for tensor, before in tracer.arguments_at_entry:
            array, node, requires_grad, *hooks, _ = before
            if tensor._array is not array:
                raise Unsupported("an argument is given another shape or other memory")
            if tensor._node is not node or tensor._requires_grad is not requires_grad:
                raise Unsupported("an argument gets a history, or is told to require grad")
            tracer.value_of(tensor)  # which says if it was written to without being told
            if hook_state(tensor) != tuple(hooks):
                raise Unsupported("a hook is put on an argument")
        for found in tracer.lifted:
            tensor = found.tensor
            if tensor is None:
                continue
            if tensor._array is not found.own:
                raise Unsupported("a tensor from outside is given another shape or other memory")
            if tensor._node is not None and tracer.storages[id(aliasing.owner(found.own))].changed:
                raise Unsupported("a tensor from outside that has a history is written to")

    def _look_around(self) -> None:
        """Take note of what the run saw besides tensors, and of what it did to the world."""
        watch = self._tracer.frame_hook
        watch.stop()
        if self.failure is None and watch.effect is not None:
            self.failure, self.retry_cost = watch.effect, SIDE_EFFECT_COST
        initial = set(map(id, self._tracer.initial_state))
        for optimizer, group, before in self._tracer.states:
            now = state_objects(optimizer, group)
            if any(len(now.get(p, ())) != len(state) or not all(map(is_, now[p], state))
                   for p, state in before.items()) or not all(
                       id(x) in initial for p in now if p not in before for x in now[p] if isinstance(x, Tensor)):
                self.failure, self.retry_cost = f"{type(optimizer).__name__} sets up what it remembers", 1
        if self.failure is None:
            given = {id(tensor) for tensor, _ in self._tracer.arguments_at_entry}
            self.guard_set = GuardSet(watch, self.modules, self.outside(), lambda tensor: (
                id(tensor) not in given and not self._tracer.is_created(tensor)))
            self.failure, self.user_attributes = self.guard_set.failure, self.guard_set.user_attributes
            for tensor, _ in self._tracer.arguments_at_entry:
                if not self.guard_set.names.isdisjoint(name for name in tensor.__dict__ if name[:1] != "_"):
                    self.failure = "an argument has attributes that a user hung on it"

    def outside(self) -> list[Any]:
        """The tensors that the run found, and those whose gradients it saw."""
        held = [s[1] for s in self.sources.values() if s[0] == "gradient of"]
        held += [*(each for each, _ in (*self.grad_updates, *self.grad_presence)), *self.grad_absent]
        found = [s[1] for s in self.sources.values() if s[0] == "tensor"]
        found += [each.which for each in held if each.kind == "tensor"]
        return list({id(t): t for t in found if isinstance(t, Tensor)}.values())

    def _differentiate(self, arguments: Sequence[Any], leaves: Sequence[Any]) -> None:
        """Write down the gradients too where results may be differentiated later."""
        tracer = self._tracer
        outputs = list({id(x): x for x in leaves if isinstance(x, Tensor) and x._node is not None}.values())
        inputs = inputs_of(tracer, arguments)
        outputs = [x for x in outputs if all(x is not y for y in inputs)]
        known = {gradient_edge(x) for x in inputs}
        ends = {id(x): self._ends(x, known) for x in outputs}
        outputs = [x for x in outputs if ends[id(x)] is not None]
        for found in ends.values():
            if found is not None and not known.issuperset(found):
                raise Unsupported("a result that can be differentiated by a leaf that the function made")
            if found is not None and not found:
                raise Unsupported("a result whose history leads to no leaf")
        if outputs and inputs:
            if any(x._hooks or x._retains for x in outputs):
                raise Unsupported("a result with hooks")
            try:
                self.joint = JointGraph(tracer, outputs, inputs, arguments)
            except Exception as error:  # a hook's, too
                raise Unsupported(f"the results cannot be differentiated: {error}") from None

    @staticmethod
    def _ends(tensor: Any, known: Collection[Any]) -> list[Any] | None:
        """The nodes that the graph which a tensor hangs on leads to: those that are known, and accumulators of leaves.

        None if the graph was walked already, and freed.
        """
        seen, stack, ends = set(), [tensor._node], []
        while stack:
            node = stack.pop()
            if node is None or node in seen:
                continue
            seen.add(node)
            if node in known or isinstance(node, AccumulateGrad):
                ends.append(node)
                extra = node.extra if isinstance(node, AccumulateGrad) else None
                if extra is not None and (extra.pre_hooks or extra.post_hooks):
                    raise Unsupported("a hook on what accumulates a gradient")
                continue
            try:
                node.check_saved()
            except RuntimeError as error:
                if str(error) == FREED_MESSAGE:
                    return None
                raise Unsupported(f"the results cannot be differentiated: {error}") from None
            stack.extend(node.edges)
        return ends

    def _sources(self, arguments: Sequence[Any]) -> None:
        tracer = self._tracer
        self.sources |= tracer.argument_sources
        there = [(t, g) for t, g in tracer.entry_grads.values() if g is not None]
        gradients = {id(g): t for t, g in there}
        if len({id(aliasing.owner(g._array)) for _, g in there}) != len(there):
            raise Unsupported("gradients that share memory")
        for found in tracer.lifted:
            owner = gradients.get(id(found.tensor))
            if owner is not None:
                self.sources[found.number] = ("gradient of", _held(owner, arguments))
                if found.array is found.own:
                    self.grad_strides[found.number] = found.own.strides
            else:
                self.sources[found.number] = ("tensor", found.tensor, found.array, found.own)
        for number, group, key, index in tracer.scalar_inputs:
            self.sources[number] = ("number", group, key, index)

    def _writes(self) -> None:
        shown = {found.number: found.array for found in self._tracer.lifted}
        shown |= {number: self._tracer.arguments_at_entry[source[1]][0]._array
                  for number, source in self._tracer.argument_sources.items() if source[0] == "argument"}
        for storage in self._tracer.storages.values():
            if storage.changed and storage.leaf is not None and storage.value is not None and storage.leaf.size:
                if storage.value.shape != storage.leaf.shape:
                    raise Unsupported("memory that was written in another shape")
                array, part = shown.get(storage.leaf.attrs), None
                if array is not None and aliasing.memory_order(array) is None:
                    part = array.shape, tuple(s // array.itemsize for s in array.strides)
                self.targets.append(Target(storage.value, storage.leaf, part))
                self.written_leaves.append(storage.leaf.attrs)

    def _shown(self, tensor: Any) -> ArrayLayout:
        a = tensor._array
        root = aliasing.owner(a)
        storage = self._tracer.storages.get(id(root))
        if storage is None:
            raise Unsupported("a result of unknown origin")
        place = (a.shape, a.strides, aliasing.address(a) - storage.start, a.dtype)
        if storage.value is None:
            number = self._fresh.get(id(a))
            if number is None:
                number = self._fresh[id(a)] = len(self._new_values)
                self._new_values.append(self.graph.copy(storage.read(a)))
            dense = np.empty(a.shape, a.dtype)
            return ArrayLayout(number, a.shape, dense.strides, 0, a.dtype)
        if storage.leaf is not None:
            return ArrayLayout(-1 - storage.leaf.attrs, *place)
        number = self._fresh.get(id(root))
        if number is None:
            value = storage.value
            if value.op == "view":  # an array of its own, in the order of memory
                value = self.graph.copy(value)
            number = self._fresh[id(root)] = len(self._new_values)
            self._new_values.append(value)
        return ArrayLayout(number, *place)

    def _grad_updates(self, arguments: Sequence[Any], leaves: Sequence[Any]) -> None:
        tracer = self._tracer
        for tensor, entry in tracer.entry_grads.values():
            now = tensor._grad
            if now is entry:
                continue
            held = _held(tensor, arguments)
            if held.kind == "tensor" and tracer.is_created(tensor):
                at = _position(leaves, tensor)
                if at is None:
                    continue
                held = TensorRef("result", at)
            if now is None:
                self.grad_updates.append((held, None))
                continue
            if now._requires_grad:
                raise Unsupported("a gradient that can be differentiated")
            if now._inference:
                raise Unsupported("a gradient that inference mode made")
            self.grad_updates.append((held, self._shown(now)))
            if id(tensor) not in tracer.cleared_grads and held.kind != "result":
                if entry is not None:
                    raise Unsupported("a gradient that was replaced")
                self.grad_absent.append(held)
        self.grad_presence = [(_held(tensor, arguments), tracer.entry_grads[id(tensor)][1] is not None)
                          for tensor in tracer.grad_reads.values()]

    def _count_writes(self) -> None:
        """Note how many versions of arguments went by; a counter that several share counts once."""
        seen: set[int] = set()
        for at, (tensor, (*_, before)) in enumerate(self._tracer.arguments_at_entry):
            counter = tensor._counter
            if counter is not None and not tensor._inference and id(counter) not in seen and counter[0] != before:
                self.version_bumps.append((at, counter[0] - before))
            seen.add(id(counter))

    def _hidden_bases(self, arguments: Sequence[Any], leaves: Sequence[Any]) -> list[Any]:
        """Bases that are not among the results: what is done to one view of them is done to the others.

        Those of several results, and of such as require grad, without a history, only because their base does.
        """
        views: dict[int, list[Any]] = {}
        for x in {id(x): x for x in leaves if isinstance(x, Tensor) and x._base is not None}.values():
            views.setdefault(id(x._base), []).append(x)
        known = {id(x) for x in (*arguments, *leaves)} | {id(x._base) for x in arguments}
        found = []
        for number, same in views.items():
            base = same[0]._base
            borrows = any(x._requires_grad and x._node is None for x in same)
            if number in known or (len(same) < 2 and not borrows) or not self._tracer.is_created(base):
                continue
            if all(x._node is None for x in same):
                found.append(base)
            elif any(np.may_share_memory(x._array, y._array) for i, x in enumerate(same) for y in same[:i]):
                raise Unsupported("differentiable results that share memory, and are views of what is not returned")
        return found

    def _beside(self, tensor: Any, arguments: Sequence[Any], leaves: Sequence[Any], at: int) -> TensorRef | None:
        """Of a view, what has the same base, or is it; of another tensor, what has the same version."""
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
        for found in self._tracer.lifted:
            if is_related(found.tensor) and not self._tracer.is_created(found.tensor):
                return TensorRef("tensor", found.tensor)
        return None

    def _make_outputs(self, arguments: Sequence[Any], leaves: Sequence[Any]) -> None:
        found = {id(o.tensor): o.tensor for o in self._tracer.lifted}
        found |= {id(t): t for t, _ in self._tracer.entry_grads.values() if not self._tracer.is_created(t)}
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
                self.outputs.append(("gradient of", _held(gradients[id(each)], arguments)))
            elif id(each) in found:
                self.outputs.append(("same", each))
            else:
                self.outputs.append(self._made(each, arguments, leaves, at))

    def _made(self, each: Any, arguments: Sequence[Any], leaves: Sequence[Any], at: int) -> OutputTensor:
        if type(each) not in (Tensor, Parameter):
            raise Unsupported(f"a result of class {type(each).__name__}")
        if each._hooks or each._retains or each._post_accumulate_hooks:
            raise Unsupported("a result with hooks")
        shown = self._shown(each)
        base = self._beside(each, arguments, leaves, at)
        is_view = each._base is not None and base is not None
        if each._own:
            raise Unsupported("a result that is a view, and was told to require grad")
        if each._steps is not None and is_view:
            raise Unsupported("a result that is a view as other numbers")
        number = None if self.joint is None else self.joint.number(each)
        return OutputTensor("new" if shown.array >= 0 else "leaf", shown, each._requires_grad, number,
                    each._requires_grad and each._node is None, type(each) is Parameter, base, is_view,
                    each._creation if is_view else None, each._inference)

    def identity(self, held: TensorRef) -> int:
        """The identity that a tensor had in this run; 0 for results."""
        return {"argument": lambda i: self._identities[i], "result": lambda i: 0, "tensor": id}[held.kind](held.which)

    def leaf(self, number: int) -> Value:
        """The leaf of this number."""
        return next(v for v in self.graph.values if v.op == "input" and v.attrs == number)

    def _line(self, value: Value) -> str:
        """The line of a value, for a message, where lines were noted."""
        place = None if self.provenance is None else self.provenance.places.get(value.number)
        return "" if place is None else f" ({place})"

    # ----- comparison -----

    def difference(self, other: Trace) -> str | None:
        """What two traces do not agree on; None where they do."""
        for mine, theirs in ((self, other), (other, self)):
            if mine.failure is not None:
                return mine.failure
            del theirs
        a, b = self.graph.values, other.graph.values
        for x, y in islice(zip(a, b, strict=False), min(self.num_values, other.num_values)):
            if not _same_value(x, y):
                return f"{x.text} in one call, {y.text} in the next{self._line(x)}"
        if self.num_values != other.num_values:
            return "more was computed in one call than in the next"
        if len(self.sources) != len(other.sources):
            return "other arrays were used"
        for number, source in self.sources.items():
            if not _same_source(source, other.sources[number]):
                return f"an array that was another one in the next call{self._line(self.leaf(number))}"
        if [(_n(t.value), _n(t.overwrites)) for t in self.targets] != [(_n(t.value), _n(t.overwrites))
                                                                       for t in other.targets]:
            return "other results were computed"
        if [(g.value.number, g.outcome) for g in self.data_guards] != [
                (g.value.number, g.outcome) for g in other.data_guards]:
            return "another way was taken"
        if not _same_results(self.outputs, other.outputs) or self.tree != other.tree:
            return "another kind of result was returned"
        if (self.joint is None) != (other.joint is None) or (
                self.joint is not None and other.joint is not None
                and [_n(v) for v in self.joint.gradients] != [_n(v) for v in other.joint.gradients]):
            return "other gradients can be asked for"
        if self.storage_offsets != other.storage_offsets:
            return "an argument began elsewhere in its memory"
        if self.version_bumps != other.version_bumps or self.written_leaves != other.written_leaves:
            return "arguments were written to at other times"
        if len(self.grad_updates) != len(other.grad_updates) or not all(
                a.same(b) and x == y for (a, x), (b, y) in zip(self.grad_updates, other.grad_updates, strict=True)):
            return "other gradients were left behind"
        if len(self.grad_presence) != len(other.grad_presence) or not all(
                a.same(b) and x is y for (a, x), (b, y) in zip(self.grad_presence, other.grad_presence, strict=True)):
            return "other gradients were looked at"
        if self.guard_set is None or other.guard_set is None:
            return None
        return self.guard_set.difference(other.guard_set)

    def pins(self, other: Trace) -> list[tuple[Any, Any, int]]:
        """Of each argument, what two traces that agree cannot say is free: the tensor, its memory and the place in it.

        A function may know an argument by another name, too. Only where it did the same with another argument there
        is no doubt that it does not. None stands for what is free.
        """
        found: list[tuple[Any, Any, int]] = []
        for (tensor, memory, place), (last, later, there) in zip(
                self.argument_memory, other.argument_memory, strict=True):
            found.append((last if tensor() is last() is not None else None,
                          later if memory() is later() is not None and place == there else None, there))
        return found


def _renew(tensor: Any) -> None:
    """Give a view its history anew, if its memory was written to since.

    Raises:
        Unsupported: it came to be in a way that forbids such writes.
    """
    if isinstance(tensor, Tensor) and tensor._base is not None and not tensor._inference and (
            tensor._counter is not None and tensor._view_version != tensor._counter[0]):
        if tensor._creation is not None:
            raise Unsupported("a result whose memory was written to, which is a view that forbids that")
        tensor.grad_fn  # noqa: B018


def _held(tensor: Any, arguments: Sequence[Any]) -> TensorRef:
    at = _position(arguments, tensor)
    return TensorRef("tensor", tensor) if at is None else TensorRef("argument", at)


def _position(things: Sequence[Any], thing: Any) -> int | None:
    return next((i for i, x in enumerate(things) if x is thing), None)


def _n(value: Value | None) -> int:
    return -1 if value is None else value.number


def _same_value(x: Value, y: Value) -> bool:
    if (x.op, x.shape, x.dtype) != (y.op, y.shape, y.dtype) or [a.number for a in x.args] != [
            a.number for a in y.args]:
        return False
    if x.op == "extern":
        return repr(x.attrs) == repr(y.attrs)
    return bool(x.attrs == y.attrs)


def _same_source(x: tuple, y: tuple) -> bool:
    if x[0] != y[0]:
        return False
    if x[0] == "tensor":
        return (x[1] is not None and x[1] is y[1] and x[3] is y[3]) or x[2] is y[2]
    if x[0] == "gradient of":
        return bool(x[1].same(y[1]))
    if x[0] == "number":
        return x[1] is y[1] and x[2:] == y[2:]
    return bool(x == y)


def _same_results(x: Sequence[tuple], y: Sequence[tuple]) -> bool:
    if len(x) != len(y):
        return False
    for a, b in zip(x, y, strict=True):
        if a[0] != b[0]:
            return False
        if isinstance(a, OutputTensor):
            if not a.same(b):  # type: ignore[arg-type]
                return False
        elif a[0] == "same":
            if a[1] is not b[1]:
                return False
        elif a[0] == "gradient of":
            if not a[1].same(b[1]):
                return False
        elif a[0] == "constant":
            if a[1] is not b[1] and not (type(a[1]) is type(b[1]) and bool(a[1] == b[1])):
                return False
        elif a[1:] != b[1:]:
            return False
    return True
