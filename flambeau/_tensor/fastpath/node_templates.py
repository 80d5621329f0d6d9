"""Templates of nodes: what the nodes of an operator in calls of one layout have in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...engine.nodes.node import next_number
from ...engine.nodes.op_node import OpNode
from ...engine.rules.compiled_rules import allocator_rule, kernel_rule
from ...engine.rules.inlined_rules import first_output_rule, full_rule, several_outputs_rule
from ...ops.backward_plan import ONE_INPUT, ONE_OUTPUT, TWO_INPUTS
from ...ops.declare import Op
from ..tensor import Tensor


class Unlike(Exception):
    """A node that is not made from its operator's plan and the call's tensors alone."""


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
        if node.run in (plan.run, plan.run_broadcast, kernel_rule, allocator_rule, full_rule, first_output_rule,
                        several_outputs_rule):
            self.run, self.fix = node.run, node.fix
        return True


__all__ = ["NodeTemplate", "Unlike"]
