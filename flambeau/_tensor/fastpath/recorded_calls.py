"""The graphs of calls that come again and again: nodes that differ from an observed call's only in tensors and edges.

A call's values are tensors' arrays by slot: those of the arguments, then one for each operator that it applies.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...engine.nodes.node import next_number
from ...engine.nodes.op_node import OpNode
from ...engine.rules.compiled_rules import allocator_rule, kernel_rule
from ...engine.rules.inlined_rules import first_output_rule, full_rule
from ...errstate import run_in_quiet
from ...ops.backward_plan import ONE_INPUT, ONE_OUTPUT, TWO_INPUTS
from ...ops.declare import Op
from ..dispatch.gradient_edge import gradient_edge
from ..dispatch.graph_recording import as_view
from ..tensor import Tensor

ndarray = np.ndarray
new = object.__new__


class Unlike(Exception):
    """A node that is not made from its operator's plan and the call's tensors alone."""


class Filled:
    """The result of an operator that stores what its rule needs in a list."""

    __slots__ = ("array", "stored")

    def __init__(self, array: ndarray, stored: list[Any]) -> None:
        self.array, self.stored = array, stored


class NodeTemplate:
    """What the nodes of an operator in calls of one layout have in common.

    Attributes:
        edges: the slot of each input that gets a gradient; -1 for others.
        saved_inputs: (slot, None) or (-1, value) of each saved input; of a number, the value is a tensor.
        list_at: the position among the constants of the list that the operator fills; -1 for none.
    """

    __slots__ = ("consts", "edges", "fix", "list_at", "n_edges", "outputs", "plan", "run", "saved_inputs")

    def __init__(self, op: Op, inputs: Sequence[Any], outs: Sequence[Tensor], slots: dict[int, int]) -> None:
        node: Any = outs[0]._node
        plan = node.plan if isinstance(node, OpNode) else None
        if plan is None or plan.op is not op or node.n_edges != len(inputs) or node.extra is not None or (
                node.saved is None):
            raise Unlike
        lists = [i for i, value in enumerate(node.consts) if value.__class__ is list]
        if len(lists) > 1:
            raise Unlike
        self.list_at = lists[0] if lists else -1
        self.plan, self.consts, self.fix, self.run, self.outputs = plan, node.consts, node.fix, node.run, node.outputs
        self.n_edges = node.n_edges
        self.edges = tuple([-1 if edge is None else slots[id(x)] for x, edge in zip(inputs, node.edges, strict=True)])
        self.saved_inputs: list[tuple[int, Tensor | None]] = []
        for i, entry in zip(plan.saved_inputs, node.saved, strict=False):
            x = inputs[i]
            if isinstance(x, Tensor) and entry is x:
                self.saved_inputs.append((slots[id(x)], None))
            elif x is None:
                self.saved_inputs.append((-1, None))
            elif x.__class__ in (int, float) and isinstance(entry, Tensor):
                self.saved_inputs.append((-1, entry))
            else:
                raise Unlike

    def make(self, nodes: Sequence[Any], numbers: Any, tensors: Sequence[Any], outs: Sequence[Tensor],
             stored: list[Any] | None = None) -> OpNode:
        """Make the node and set it as `grad_fn` of the outputs, as `record` does.

        Args:
            nodes: the gradient edge of each slot; the last is that of -1.
            numbers: the output numbers of these edges; None where all are 0.
            tensors: by slot, as far as they are saved.
            stored: the list that the operator filled.
        """
        node = OpNode()
        edges = self.edges
        count = node.n_edges = self.n_edges
        node.edge0 = nodes[edges[0]]
        node.edge1 = nodes[edges[1]] if count > 1 else None
        if count > 2:
            node.more_edges = tuple([nodes[slot] for slot in edges[2:]])
        node.edge_outputs = None
        if numbers is not None:
            own = tuple([numbers[slot] for slot in edges])
            if any(own):
                node.edge_outputs = own
        node.extra = node.versions = None
        node.seq = next_number()
        plan = node.plan = self.plan
        node.consts, node.fix, node.run, node.outputs = self.consts, self.fix, self.run, self.outputs
        if stored is not None:
            at = self.list_at
            node.consts = (*node.consts[:at], stored, *node.consts[at + 1:])
        layout = plan.layout
        node.saved0 = node.saved1 = None
        if layout:
            saved: list[Any] = []
            versions: list[int] = []
            for slot, value in self.saved_inputs:
                version = 0
                if slot >= 0:
                    value = tensors[slot]
                    counter = value._counter
                    if counter is not None:
                        version = counter[0]
                saved.append(value)
                versions.append(version)
            for k in plan.saved_outputs:
                out = outs[k]
                if out._counter is None:
                    out._counter = [0]
                saved.append((out._array, out._counter))
                versions.append(out._counter[0])
            if any(versions):
                node.versions = tuple(versions)
            if layout == ONE_INPUT:
                node.saved0 = saved[0]
            elif layout == TWO_INPUTS:
                node.saved0, node.saved1 = saved
            elif layout == ONE_OUTPUT:
                node.saved0, node.saved1 = saved[0]
            else:
                node.saved0 = tuple(saved)
        for k, out in enumerate(outs):
            if out._array.dtype.kind in "fcV":
                out._requires_grad = True
                out._node = node
                if k:
                    out._output_nr = k
        return node

    def describes(self, node: Any, edge_of: Callable[[int], Any]) -> bool:
        """Whether a node has what this template makes; its rule, which may be a faster one, is taken over.

        Args:
            edge_of: gives the edge of a slot.
        """
        if not isinstance(node, OpNode) or node.plan is not self.plan or node.outputs != self.outputs or (
                node.n_edges != self.n_edges or node.extra is not None or len(node.consts) != len(self.consts)):
            return False
        for value, expected in zip(node.consts, self.consts, strict=True):
            if value.__class__ is not expected.__class__ or (value.__class__ is not list and value != expected):
                return False
        saved = node.saved
        if saved is None or len(saved) != len(self.saved_inputs) + len(self.plan.saved_outputs):
            return False
        for entry, (slot, value) in zip(saved, self.saved_inputs, strict=False):
            if isinstance(entry, Tensor) != (slot >= 0 or value is not None):
                return False
        if any(edge is not (None if slot < 0 else edge_of(slot)) for edge, slot in zip(
                node.edges, self.edges, strict=True)):
            return False
        plan = self.plan  # other rules may know one call only
        if node.run in (plan.run, plan.run_broadcast, kernel_rule, allocator_rule, full_rule, first_output_rule):
            self.run, self.fix = node.run, node.fix
        return True


class RecordedCall:
    """A call of known layout: its operators' launches, tensors and nodes.

    Args:
        launches: (launch, slots of its arrays) of each operator.
        views: of each operator, the slot of the tensor whose view its result is, and whether it is one of several.
        templates: of each operator, the template of its node; None where nothing is recorded.
        last: the slot of the result.
        several: the class of several results; None for one.
        count: the number of arguments that are tensors.

    Attributes:
        launch: the launch, where it is the only one, of all arguments in their order, and nothing is recorded.
    """

    __slots__ = ("arguments", "count", "forward", "last", "launch", "several", "steps", "templates", "views")

    def __init__(self, launches: Sequence[tuple[Any, tuple[int, ...]]], views: Sequence[tuple[int, bool] | None],
                 templates: Sequence[NodeTemplate | None], last: int, several: Any, count: int) -> None:
        self.last, self.several, self.count = last, several, count
        self.views, self.templates = views, templates
        only = len(launches) == 1 and several is None and not any(views) and not any(templates) and (
            launches[0][1] == tuple(range(count)))
        self.launch = launches[0][0] if only else None
        self.forward = values_of(launches, any(each is not None and each.list_at >= 0 for each in templates))
        kept, seen = {last}, last  # what users see: the result, and what it is a view of
        while seen >= count and (seen_in := views[seen - count]) is not None:
            seen = seen_in[0]
            kept.add(seen)
        visible = set(kept)
        for step, template in enumerate(templates):
            if template is not None:
                kept.update(each for each, _ in template.saved_inputs if each >= 0)
                if template.plan.saved_outputs:
                    kept.add(count + step)
        steps: list[tuple[int, bool, Any, NodeTemplate | None]] = []
        for step in range(len(launches)):
            slot = count + step
            view: Any = views[step]
            if view is not None and slot not in visible:  # a saved view: nobody but its node sees whose view it is
                root = slot
                while root >= count and (source := views[root - count]) is not None:
                    root = source[0]
                view = (root, None) if root < count or root in kept else None
            steps.append((slot, slot in kept, view, templates[step]))
        self.steps = tuple(steps)
        used = {slot for template in templates if template is not None for slot in template.edges}
        self.arguments = tuple([slot for slot in range(count) if slot in used])

    def __call__(self, tensors: list[Any], arrays: list[Any]) -> Any:
        """The result, recorded; None where the function itself has to run."""
        nodes: list[Any] = [None] * (len(self.steps) + self.count + 1)
        numbers: list[int] | None = None
        for slot in self.arguments:
            x = tensors[slot]
            edge = x._node
            if edge is None or x._base is not None:
                edge = gradient_edge(x)
                if edge is None:
                    return None
            nodes[slot] = edge
            if x._output_nr:
                if numbers is None:
                    numbers = [0] * len(nodes)
                numbers[slot] = x._output_nr
        values = run_in_quiet(self.forward, (arrays,))
        if values is None:
            return None
        if self.several is not None:
            outs = [_tensor(array) for array in values[self.last]]
            of = self.views[0]
            if of is not None:
                for each in outs:
                    as_view(each, tensors[of[0]], multi=of[1])
            if self.templates[0] is not None:
                self.templates[0].make(nodes, numbers, tensors, outs)
            return self.several(outs)
        made: list[Any] = tensors + [None] * len(self.steps)
        for slot, is_kept, view, template in self.steps:
            out: Any = None
            stored = None
            if values[slot].__class__ is Filled:
                values[slot], stored = values[slot].array, values[slot].stored
            if is_kept:
                out = made[slot] = _tensor(values[slot])
                if view is not None:
                    source, multi = view
                    if multi is None:
                        counter = made[source]._counter
                        if counter is None:
                            counter = made[source]._counter = [0]
                        out._counter = counter
                    else:
                        as_view(out, made[source], multi=multi)
            if template is not None:
                if out is None:
                    out = _Result(values[slot])
                nodes[slot] = template.make(nodes, numbers, made, (out,), stored)
        return made[self.last]

    def describes(self, result: Any, tensors: Sequence[Any], arrays: Sequence[Any] | None) -> bool:
        """Whether the graph of a result has these nodes, and what they store is what launches store.

        Args:
            arrays: None: what is stored is not compared.
        """
        last = result[0] if self.several is not None else result
        found: dict[int, Any] = {self.last: last._node}
        for step in range(len(self.templates) - 1, -1, -1):
            template, slot = self.templates[step], self.count + step
            node = found.get(slot)
            if template is None:
                if node is not None:
                    return False
                continue
            if node is None:  # of a result that nothing used
                return False
            for edge, source in zip(node.edges, template.edges, strict=False):
                if source >= 0 and found.setdefault(source, edge) is not edge:
                    return False
            if not template.describes(node, found.get):
                return False
        return all(found.get(slot) is _edge(tensors[slot]) for slot in self.arguments) and (
            arrays is None or self._stores(found, arrays))

    def _stores(self, nodes: dict[int, Any], arrays: Sequence[Any]) -> bool:
        """Whether launches store, to the bit, what operators have stored in lists for their rules."""
        filling = [(self.count + step, template.list_at) for step, template in enumerate(self.templates)
                   if template is not None and template.list_at >= 0]
        values = run_in_quiet(self.forward, (list(arrays),)) if filling else None
        for slot, at in filling:
            stored, expected = None if values is None else values[slot].stored, nodes[slot].consts[at]
            if stored is None or len(stored) != len(expected) or not all(
                    x.__class__ is y.__class__ is ndarray and x.dtype is y.dtype and x.shape == y.shape
                    and x.tobytes() == y.tobytes() for x, y in zip(stored, expected, strict=True)):
                return False
        return True


class _Result:
    """In place of a tensor that nobody can see: a node's result that is not saved."""

    __slots__ = ("_array", "_node", "_output_nr", "_requires_grad")

    def __init__(self, array: ndarray) -> None:
        self._array = array


def _edge(x: Tensor) -> Any:
    edge = x._node
    return gradient_edge(x) if edge is None or x._base is not None else edge


def _tensor(array: ndarray) -> Any:
    out: Any = new(Tensor)
    out._array = array
    out._requires_grad = False
    out._output_nr = 0
    out._node = out._grad = out._counter = out._base = out._accumulator = None
    return out


def values_of(launches: Sequence[tuple[Any, tuple[int, ...]]],
              fills: bool = False) -> Callable[[list[Any]], list[Any] | None]:
    """The function of the arguments' arrays that gives all values by slot; None as soon as a launch gives None.

    Args:
        fills: whether some of the values may be `Filled`.
    """
    if not fills and len(launches) == 1 and launches[0][1] == tuple(range(len(launches[0][1]))):
        launch = launches[0][0]
        used = len(launches[0][1])

        def run_one(arrays: list[Any]) -> list[Any] | None:
            result = launch(*arrays) if len(arrays) == used else launch(*arrays[:used])
            return None if result is None else [*arrays, result]

        return run_one

    def run(arrays: list[Any]) -> list[Any] | None:
        values = list(arrays)
        for launch, slots in launches:
            result = launch(*[values[slot] for slot in slots])
            if result is None:
                return None
            values.append(result)
        return values

    if fills:
        def run_filling(arrays: list[Any]) -> list[Any] | None:
            values = list(arrays)
            for launch, slots in launches:
                result = launch(*[x.array if x.__class__ is Filled else x for x in [values[slot] for slot in slots]])
                if result is None:
                    return None
                values.append(result)
            return values

        return run_filling
    return run


__all__ = ["Filled", "NodeTemplate", "RecordedCall", "Unlike", "values_of"]
