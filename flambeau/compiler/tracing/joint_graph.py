"""The joint graph: the backward part of a trace, for results that are differentiated outside the function.

The engine runs backward once while the function is still traced, from cotangents that are inputs of the graph.
`execution/backward_graph.py` partitions the joint graph and compiles the backward part, as AOTAutograd does.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ..._tensor import Tensor
from ..._tensor.dispatch.gradient_edge import gradient_edge
from ...engine.api import gradients_of
from ...engine.nodes.op_node import OpNode
from ...ir.graph.value import Unsupported, Value
from .aliasing import memory_order
from .speculation import user_code_of, without_effects


class JointGraph:
    """The backward part of a trace.

    Args:
        tracer: the tracer that records the function.
        outputs: the differentiable results.
        inputs: the tensors with respect to which they are differentiated.
        arguments: the tensors among the call's arguments.

    Attributes:
        count: the number of differentiable results.
        inputs: the tensors whose gradients are computed; None for arguments.
        positions: positions of the inputs that are arguments; None for others.
        labels: identities of the inputs, for provenance.
        cotangents: the graph inputs for the results' cotangents.
        gradients: values of the inputs' gradients, in memory order; None for inputs that get none.
        uses: by input, the results that its gradient depends on, if there are several results.
        layouts: by input, the permutation from memory order, for gradients that are not row-major.
        recomputed: values that backward computes although they depend on no cotangent (`ir.rematerialization`).
        shared: by output, the outputs (often itself among them) whose graphs share nodes with saved tensors with its
            graph: a pass through one of them frees what it needs.
    """

    recomputed: Collection[Value] = ()

    def __init__(self, tracer: Any, outputs: Sequence[Any], inputs: Sequence[Any], arguments: Sequence[Any]) -> None:
        self._outputs, self.count = list(outputs), len(outputs)
        self.positions = [next((i for i, x in enumerate(arguments) if x is t), None) for t in inputs]
        self.inputs = [t if at is None else None for t, at in zip(inputs, self.positions, strict=True)]
        self.labels = [id(t) for t in inputs]
        self.cotangents: list[Value] = []
        seeds = []
        for output in outputs:
            seed = tracer.ones_like(output)
            self.cotangents.append(tracer.add_input(seed).base)
            seeds.append(seed)
        _reject_hooks(outputs, inputs)
        last_draw = tracer.last_draw
        roots = user_code_of(outputs, {gradient_edge(x) for x in inputs})
        with _without_hooks(inputs), without_effects(tracer, roots):
            gradients = gradients_of(outputs, inputs, seeds, True, False, True, False, stops_at_inputs=True)
        if tracer.failure is not None:
            raise Unsupported(tracer.failure)
        if tracer.last_draw is not last_draw:
            raise Unsupported("backward draws random numbers (activations are recomputed)")
        self.gradients: list[Value | None] = []
        self.layouts: dict[int, list[int]] = {}
        for number, g in enumerate(gradients):
            if g is None:
                self.gradients.append(None)
                continue
            a, value = g._array, tracer.value_of(g)
            order = memory_order(a)
            if order is not None and order != sorted(order):
                value = tracer.graph.permute(value, order)
                self.layouts[number] = [order.index(d) for d in range(a.ndim)]
            self.gradients.append(value)
        self.uses = _output_dependencies(outputs, inputs) if len(outputs) > 1 else []
        self.shared = _shared_nodes(outputs, inputs)

    @classmethod
    def from_saved(cls, attributes: dict[str, Any], values: Sequence[Value], arguments: Sequence[Any]) -> JointGraph:
        """Restore a joint graph from the persistent cache.

        Args:
            attributes: all attributes but `labels` and the results, IR values by number.
            values: the IR values of the graph.
            arguments: the tensors among the call's arguments.
        """
        self = object.__new__(cls)
        vars(self).update(attributes)
        self._outputs = []
        self.cotangents = [values[v] for v in attributes["cotangents"]]
        self.gradients = [None if v is None else values[v] for v in attributes["gradients"]]
        self.labels = [id(t) if at is None else id(arguments[at])
                       for t, at in zip(self.inputs, self.positions, strict=True)]
        return self

    def output_index(self, tensor: Any) -> int | None:
        """Return the index of a tensor among the differentiable results; None for any other tensor."""
        return next((i for i, x in enumerate(self._outputs) if x is tensor), None)

    def shares_nodes(self, output: int, others: frozenset[int]) -> bool:
        """Whether the graph of an output shares nodes with saved tensors with the graphs of others."""
        return not self.shared[output].isdisjoint(others)

    def release(self) -> None:
        """Drop the references to the call's tensors."""
        self._outputs.clear()


def _reject_hooks(outputs: Sequence[Any], inputs: Sequence[Any]) -> None:
    """Raise Unsupported if a node between outputs and inputs has hooks, which must run when backward is called."""
    ends = {t._node for t in inputs if t._node is not None}
    pending = [t._node for t in outputs]
    seen = set(pending) | ends
    while pending:
        node = pending.pop()
        extra = node.extra
        if extra is not None and (extra.pre_hooks or extra.post_hooks or any((extra.tensor_hooks or {}).values())):
            raise Unsupported("a hook of a gradient, which runs when backward is called outside of the function")
        for below in node.edges:
            if below is not None and below not in seen:
                seen.add(below)
                pending.append(below)


@contextmanager
def _without_hooks(inputs: Sequence[Any]) -> Iterator[None]:
    """Disable the hooks of inputs: they run when the program's gradients are accumulated, not while tracing."""
    saved = [(t._hooks, [*t._hooks.items()]) for t in inputs if t._hooks]
    for hooks, _ in saved:
        hooks.clear()
    try:
        yield
    finally:
        for hooks, items in saved:
            hooks.update(items)


def _output_dependencies(outputs: Sequence[Any], inputs: Sequence[Any]) -> list[frozenset[int]]:
    """Return, for each input, the indices of the outputs from which the autograd graph leads to it."""
    edges = [gradient_edge(x) for x in inputs]
    dependencies: list[set[int]] = [set() for _ in inputs]
    for number, output in enumerate(outputs):
        seen: set[Any] = set()
        stack: list[Any] = [gradient_edge(output)]
        while stack:
            node = stack.pop()
            if node is not None and node not in seen:
                seen.add(node)
                stack.extend(node.edges)
        for numbers, edge in zip(dependencies, edges, strict=True):
            if edge in seen:
                numbers.add(number)
    return [frozenset(numbers) for numbers in dependencies]


def _shared_nodes(outputs: Sequence[Any], inputs: Sequence[Any]) -> list[frozenset[int]]:
    """Return, for each output, the outputs whose graphs share a node with saved tensors with its graph."""
    ends = {gradient_edge(x) for x in inputs}
    graphs: list[set[int]] = []
    for output in outputs:
        seen: set[int] = set()
        nodes: set[int] = set()
        stack = [output._node]
        while stack:
            node = stack.pop()
            if node is None or id(node) in seen or node in ends:
                continue
            seen.add(id(node))
            if not isinstance(node, OpNode) or node.plan.saves_tensors:
                nodes.add(id(node))
            stack += node.edges
        graphs.append(nodes)
    return [frozenset([j for j, other in enumerate(graphs) if not graph.isdisjoint(other)]) for graph in graphs]


def depend_on_each_other(outputs: Sequence[Any], inputs: Sequence[Any]) -> bool:
    """Whether the graph of an output leads through the node of another one."""
    nodes = {x._node for x in outputs}
    seen = {gradient_edge(x) for x in inputs}
    stack = [below for node in nodes for below in node.edges if node not in seen]
    while stack:
        node = stack.pop()
        if node is None or node in seen:
            continue
        if node in nodes:
            return True
        seen.add(node)
        stack += node.edges
    return False


def inputs_of(tracer: Any, arguments: Sequence[Any]) -> list[Any]:
    """Return the tensors of a trace that require grad: arguments first, then lifted inputs."""
    seen = {id(t): t for t in arguments if t._requires_grad}
    for lifted in tracer.lifted:
        if isinstance(lifted.tensor, Tensor) and lifted.tensor._requires_grad:
            seen.setdefault(id(lifted.tensor), lifted.tensor)
    return list(seen.values())


__all__ = ["JointGraph", "depend_on_each_other", "inputs_of"]
