"""The gradient of a captured function as a program of its own, for results that are differentiated outside.

The engine runs backward once while the function is still captured, from cotangents that are leaves; what it computes
is a second part of the graph. It is cut where cotangents come in: whatever it needs of the forward part is handed
over, as the saved tensors of one node, `CompiledFunctionBackward`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from ..._tensor.dispatch.gradient_edge import gradient_edge
from ..._tensor.tensor import wrap
from ...engine.grad_mode import grad_mode
from ...engine.nodes.node import FREED_MESSAGE, Node, next_number
from ...ir.graph.target import Target
from ...ir.graph.value import Graph, Value
from ...ir.schedule.program import Program
from ...modes import special
from ..tracing.joint_graph import JointGraph
from . import profiling

#: leaves of a backward program: what the forward program handed over, cotangents, leaves of the forward program
_SAVED, _COTANGENT, _LEAF = range(3)


class BackwardGraph:
    """The program of the gradients.

    Args:
        written: leaves that the forward program writes to.

    Attributes:
        name: what it is called where it is shown.
        saved: values of the forward program that it needs, and what was in leaves before they were written to.
        made: values of the capture, and what they are in this program's graph.
        leaves: numbers of the forward program's leaves that it needs.
    """

    def __init__(self, joint: JointGraph, name: str, written: Collection[Value] = ()) -> None:
        self.joint, self.name = joint, name
        wanted = [v for v in joint.gradients if v is not None]
        saved, leaves = self._frontier(wanted, joint.cotangents)
        # what was in a leaf before the forward program wrote to it is only there if it is kept
        self.saved = [*saved, *(leaf for leaf in leaves if leaf in written)]
        self.leaves = [leaf for leaf in leaves if leaf not in written]
        graph = Graph()
        made = self.made = dict[Value, Value]()
        self._origin: list[tuple[int, int]] = []
        for kind, values in ((_SAVED, self.saved), (_COTANGENT, joint.cotangents), (_LEAF, self.leaves)):
            for i, value in enumerate(values):
                made[value] = graph.input(len(self._origin), value.shape, value.dtype)
                self._origin.append((kind, i))
        self.program = Program(graph, [Target(_dense(graph, _rebuilt(graph, v, made))) for v in wanted])

    @staticmethod
    def _frontier(wanted: Sequence[Value], cotangents: Sequence[Value]) -> tuple[list[Value], list[Value]]:
        order: list[Value] = []
        seen: set[Value] = set()
        stack: list[tuple[Value, bool]] = [(v, False) for v in wanted]
        while stack:
            value, arguments_at_entry = stack.pop()
            if arguments_at_entry:
                order.append(value)
            elif value not in seen:
                seen.add(value)
                stack.append((value, True))
                stack.extend((a, False) for a in value.args)
        guard_on_value = set(cotangents)
        for value in order:
            if any(a in guard_on_value for a in value.args):
                guard_on_value.add(value)
        saved: dict[Value, None] = {}
        leaves: dict[Value, None] = {}
        for value in [*order, *wanted]:
            for arg in (value.args if value in guard_on_value else (value,) if value in wanted else ()):
                base = arg.base
                if base in guard_on_value or base.op == "constant":
                    continue
                (leaves if base.op == "input" else saved)[base] = None
        return list(saved), list(leaves)

    def run(self, saved: Sequence[np.ndarray], cotangents: Sequence[Any], leaves: Sequence[np.ndarray]) -> list[Any]:
        """The gradients of the inputs; None where nothing arrives, as where all comes by cotangents that are None."""
        there = [np.zeros(leaf.shape, leaf.dtype) if g is None else np.ascontiguousarray(g)
                 for g, leaf in zip(cotangents, self.joint.cotangents, strict=True)]
        given = (saved, there, leaves)
        arrays = []
        for number in self.program.inputs:
            kind, i = self._origin[number]
            arrays.append(given[kind][i])
        new = self.program.run(arrays, watch=profiling.watch(self.program, self.name) if special[0] else None)
        assert new is not None
        left = iter(new)
        found = [None if v is None else next(left).reshape(v.shape) for v in self.joint.gradients]
        for number, dims in self.joint.layouts.items():
            array = found[number]
            assert array is not None
            found[number] = array.transpose(dims)
        missing = {i for i, g in enumerate(cotangents) if g is None}
        if not missing:
            return found
        return [None if uses <= missing else g for g, uses in zip(found, self.joint.uses, strict=True)]


def _dense(graph: Graph, value: Value) -> Value:
    return graph.copy(value) if value.op == "view" else value


def _rebuilt(graph: Graph, wanted: Value, made: dict[Value, Value]) -> Value:
    """The value in another graph, some of what it is computed from being known there already."""
    stack = [wanted]
    while stack:
        value = stack[-1]
        if value in made:
            stack.pop()
            continue
        missing = [a for a in value.args if a not in made]
        if missing:
            stack.extend(missing)
            continue
        stack.pop()
        if value.op == "constant":
            made[value] = graph.constant(value.graph.array(value))
            continue
        made[value] = graph.make(value.op, tuple(made[a] for a in value.args), value.attrs, value.shape, value.dtype)
        if value.op == "extern":
            graph.extern_outputs[made[value]] = parts = []
            for part in value.graph.extern_outputs[value]:
                made[part] = graph.make("getitem", (made[value],), part.attrs, part.shape, part.dtype)
                parts.append(made[part])
    return made[wanted]


class CompiledFunctionBackward(Node):
    """One node for all that a compiled function computed.

    Attributes:
        backward: the program of the gradients; None once what it needs was freed.
    """

    __slots__ = ("backward", "leaves", "saved", "versions")
    materializes_undefined = False

    def __init__(self, backward: BackwardGraph, inputs: Sequence[Any], outputs: Sequence[Any],
                 saved: Sequence[np.ndarray], leaves: Sequence[np.ndarray],
                 versions: Sequence[tuple[Any, int]]) -> None:
        self.edges = tuple([gradient_edge(t) if t._requires_grad else None for t in inputs])
        numbers = tuple([t._output_nr for t in inputs])
        self.edge_outputs = numbers if any(numbers) else None
        self.outputs = None if len(outputs) == 1 else tuple([(t._array.shape, t._array.dtype) for t in outputs])
        self.extra = self.run = None
        self.seq = next_number()
        self.backward: BackwardGraph | None = backward
        self.saved, self.leaves, self.versions = saved, leaves, versions

    def vjp(self, cotangents: Any, tensors: bool) -> Any:
        backward = self.backward
        if backward is None:
            raise RuntimeError(FREED_MESSAGE)
        if tensors and grad_mode.get():
            raise RuntimeError("torch.compile with aot_autograd does not currently support double backward")
        for tensor, version in self.versions:
            counter = tensor._counter
            if counter is not None and counter[0] != version:
                raise RuntimeError("one of the variables needed for gradient computation has been modified by an "
                                   f"inplace operation: {tensor.type()} {list(tensor.shape)}, an input of a compiled "
                                   f"function, is at version {counter[0]}; expected version {version} instead.")
        given = list(cotangents) if self.outputs is not None else [cotangents]
        arrays = [g._array if tensors and g is not None else g for g in given]
        found = backward.run(self.saved, arrays, self.leaves)
        return [None if a is None else wrap(a) if tensors else a for a in found]

    def release_variables(self) -> None:
        self.backward = None
        self.saved = self.leaves = self.versions = ()

    def check_saved(self) -> None:
        if self.backward is None:
            raise RuntimeError(FREED_MESSAGE)


def differentiable(outputs: list[Any], backward: BackwardGraph, saved: list[np.ndarray], leaves: list[np.ndarray],
                   arguments: Sequence[Any], read: Sequence[Any]) -> None:
    """Hang a node that runs the backward program on the results.

    Args:
        read: the tensors of the forward program's leaves that it needs again, which may not be written to until then.
    """
    inputs = [t if at is None else arguments[at] for t, at in zip(backward.joint.inputs, backward.joint.positions,
                                                                  strict=True)]
    versions = [(t, 0 if t._counter is None else t._counter[0]) for t in read]
    node = CompiledFunctionBackward(backward, inputs, outputs, saved, leaves, versions)
    for number, output in enumerate(outputs):
        output._requires_grad, output._node = True, node
        if number:
            output._output_nr = number


__all__ = ["BackwardGraph", "CompiledFunctionBackward", "differentiable"]
