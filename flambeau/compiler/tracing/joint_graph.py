"""The joint graph: the backward part of a traced function, for results that are differentiated outside of it.

The engine runs backward once while the function is still traced, from cotangents that are leaves of the graph; what
it computes is the second part of the graph. `execution.backward_graph` cuts it off and compiles it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..._tensor import Tensor
from ..._tensor.dispatch.gradient_edge import gradient_edge
from ..._tensor.tensor import wrap
from ...engine.api import grad
from ...ir.graph.value import Unsupported, Value
from .aliasing import memory_order


class JointGraph:
    """The backward part of a capture.

    Attributes:
        count: how many results are differentiable.
        inputs: the tensors whose gradients are wanted; None for arguments.
        positions: of inputs that are arguments; None for others.
        cotangents: the leaves that stand for the results' cotangents.
        gradients: of the inputs, in the order of memory; None where nothing arrives.
        uses: which results each of them comes from, if there are several results.
        layouts: of those that do not lie in row-major order, by number: how the dimensions of what lies in memory are
            to be put.
    """

    def __init__(self, tracer: Any, outputs: Sequence[Any], inputs: Sequence[Any], arguments: Sequence[Any]) -> None:
        self._outputs, self.count = list(outputs), len(outputs)
        self.positions = [next((i for i, x in enumerate(arguments) if x is t), None) for t in inputs]
        self.inputs = [t if at is None else None for t, at in zip(inputs, self.positions, strict=True)]
        self.labels = [id(t) for t in inputs]
        self.cotangents: list[Value] = []
        seeds = []
        for output in outputs:
            seed = wrap(np.ones(output._array.shape, output._array.dtype))
            self.cotangents.append(tracer.given(seed).base)
            seeds.append(seed)
        _refuse_hooks(outputs, inputs)
        with _without_hooks(inputs):
            found = grad(outputs, inputs, seeds, retain_graph=True, allow_unused=True)
        if tracer.failure is not None:
            raise Unsupported(tracer.failure)
        self.gradients: list[Value | None] = []
        self.layouts: dict[int, list[int]] = {}
        for number, g in enumerate(found):
            if g is None:
                self.gradients.append(None)
                continue
            a, value = g._array, tracer.value_of(g)
            order = memory_order(a)
            if order is not None and order != sorted(order):
                value = tracer.graph.permute(value, order)
                self.layouts[number] = [order.index(d) for d in range(a.ndim)]
            self.gradients.append(value)
        self.uses = _reached(outputs, inputs) if len(outputs) > 1 else []

    @classmethod
    def again(cls, kept: dict[str, Any], values: Sequence[Value], arguments: Sequence[Any]) -> JointGraph:
        """One that was written down, its values by number.

        Args:
            kept: all but `labels`, and the results.
        """
        self = object.__new__(cls)
        vars(self).update(kept)
        self._outputs = []
        self.cotangents = [values[v] for v in kept["cotangents"]]
        self.gradients = [None if v is None else values[v] for v in kept["gradients"]]
        self.labels = [id(t) if at is None else id(arguments[at])
                       for t, at in zip(self.inputs, self.positions, strict=True)]
        return self

    def number(self, tensor: Any) -> int | None:
        """Which of the differentiable results a tensor is."""
        return next((i for i, x in enumerate(self._outputs) if x is tensor), None)

    def forget(self) -> None:
        """Let go of the run's own tensors."""
        self._outputs.clear()


def _refuse_hooks(outputs: Sequence[Any], inputs: Sequence[Any]) -> None:
    """Raise Unsupported if the user's functions are to be called while the results are differentiated.

    They may do anything besides, and that has to wait until somebody calls backward.
    """
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
    """The hooks of inputs run where the gradients of the results arrive, outside: not here."""
    kept = [(t._hooks, [*t._hooks.items()]) for t in inputs if t._hooks]
    for hooks, _ in kept:
        hooks.clear()
    try:
        yield
    finally:
        for hooks, items in kept:
            hooks.update(items)


def _reached(outputs: Sequence[Any], inputs: Sequence[Any]) -> list[frozenset[int]]:
    """By input, the outputs that the graph leads from to it."""
    edges = [gradient_edge(x) for x in inputs]
    found: list[set[int]] = [set() for _ in inputs]
    for number, output in enumerate(outputs):
        seen: set[Any] = set()
        stack: list[Any] = [gradient_edge(output)]
        while stack:
            node = stack.pop()
            if node is not None and node not in seen:
                seen.add(node)
                stack.extend(node.edges)
        for reached, edge in zip(found, edges, strict=True):
            if edge in seen:
                reached.add(number)
    return [frozenset(reached) for reached in found]


def inputs_of(tracer: Any, arguments: Sequence[Any]) -> list[Any]:
    """The tensors that a capture met and that require grad; arguments come first."""
    seen = {id(t): t for t in arguments if t._requires_grad}
    for found in tracer.lifted:
        if isinstance(found.tensor, Tensor) and found.tensor._requires_grad:
            seen.setdefault(id(found.tensor), found.tensor)
    return list(seen.values())


__all__ = ["JointGraph", "inputs_of"]
