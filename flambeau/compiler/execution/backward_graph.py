"""`BackwardGraph`: the compiled backward part of a joint graph, and its autograd node `CompiledFunctionBackward`.

The joint graph is partitioned at the values that depend on cotangents: what these need of the forward part is returned
by the forward program and becomes the node's saved tensors.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from ..._tensor.dispatch.gradient_edge import gradient_edge
from ..._tensor.tensor import wrap
from ...backends.bit_views import resolve
from ...engine.grad_mode import grad_mode
from ...engine.gradient_buckets import GradientBuckets, current_buckets
from ...engine.nodes.node import FREED_MESSAGE, Node, next_number
from ...ir.graph.target import Target
from ...ir.graph.value import Graph, Value
from ...ir.schedule.program import Program
from ...modes import special
from ..tracing.joint_graph import JointGraph
from . import profiling
from .divided_backward import Division, Piece, divide
from .subgraphs import subgraph_program

#: inputs of a backward program: values saved by the forward program, cotangents, inputs of the forward program
_SAVED, _COTANGENT, _LEAF = range(3)


class BackwardGraph:
    """The backward program.

    Args:
        joint: the joint graph.
        name: the name in debug output.
        written: inputs that the forward program writes to.
        make_program: makes a program of a graph and its targets.

    Attributes:
        saved: values of the forward program that backward needs, among them old contents of written inputs.
        leaves: inputs of the forward program that backward needs and that are not written to.
        leaf_uses: for each of them, the results whose gradients it is read for.
    """

    def __init__(self, joint: JointGraph, name: str, written: Collection[Value] = (),
                 make_program: Callable[[Graph, list[Target]], Any] = Program) -> None:
        self.joint, self.name, self._make_program = joint, name, make_program
        gradients = [v for v in joint.gradients if v is not None]
        saved, leaves = self._partition(gradients, [*joint.cotangents, *joint.recomputed])
        # the old content of an input that the forward program overwrites must be saved
        self.saved = [*saved, *(leaf for leaf in leaves if leaf in written)]
        self.leaves = [leaf for leaf in leaves if leaf not in written]
        self._depends, self.leaf_uses = _dependencies(self.leaves, self.saved, gradients, joint.cotangents)
        self._input_sources = [(kind, i) for kind, values in (
            (_SAVED, self.saved), (_COTANGENT, joint.cotangents), (_LEAF, self.leaves)) for i in range(len(values))]
        self._tensors: list[Any] = []  # those of `leaves` that are not arguments
        self._partial_programs: dict[frozenset[int], Any] = {}  # by results without a cotangent
        self._divisions: WeakKeyDictionary[GradientBuckets, list[Piece]] = WeakKeyDictionary()

    @functools.cached_property
    def rebuilt(self) -> dict[Value, Value]:
        """By value of the joint graph, the value in the backward program's graph."""
        return {}

    @functools.cached_property
    def program(self) -> Any:
        """The program, made on first use: passes that are divided need none."""
        return self._compile(self.rebuilt)

    def prepare(self, sources: Mapping[int, Any]) -> None:
        """Make the programs that the next pass needs.

        Args:
            sources: by number of an input of the forward program, where it comes from, as in `Trace.sources`.
        """
        found = [sources.get(leaf.attrs, (None,)) for leaf in self.leaves]
        self._tensors = [source[1] if source[0] == "tensor" else None for source in found]
        buckets = current_buckets.get()
        if buckets is None:
            self.program  # noqa: B018
        else:
            for piece in self.pieces(buckets):
                piece.prepare()

    @property
    def arena_bytes(self) -> int:
        """The bytes of intermediate values that its programs keep between runs."""
        plans = [each.execution_plan for pieces in self._divisions.values() for piece in pieces
                 for each in piece.programs()]
        if "program" in vars(self):
            plans.append(self.program.execution_plan)
        return sum(plan.arena for plan in plans)

    def pieces(self, buckets: GradientBuckets) -> list[Piece]:
        """Return the parts of the backward graph that compute the gradients of each bucket."""
        found = self._divisions.get(buckets)
        if found is None:
            division = Division(self.joint, self.name, self._depends, self._make_program)
            found = self._divisions[buckets] = divide(division, buckets, self.saved, self.leaves, self._tensors)
        return found

    def _compile(self, rebuilt: dict[Value, Value], missing: frozenset[int] = frozenset()) -> Any:
        """Compile the backward program; what depends on `missing` cotangents only is zero, as it is linear in them."""
        zeros = [value for value, depends in self._depends.items() if depends <= missing]
        return subgraph_program(self._make_program, (*self.saved, *self.joint.cotangents, *self.leaves), zeros,
                                [v for v in self.joint.gradients if v is not None], rebuilt)

    @staticmethod
    def _partition(gradients: Sequence[Value], of_backward: Sequence[Value]) -> tuple[list[Value], list[Value]]:
        """Return the computed values and the inputs of the forward part that the backward part reads.

        Args:
            gradients: the results of the backward part.
            of_backward: values of that part, from which others are found.
        """
        order: list[Value] = []
        seen: set[Value] = set()
        stack: list[tuple[Value, bool]] = [(v, False) for v in gradients]
        while stack:
            value, operands_done = stack.pop()
            if operands_done:
                order.append(value)
            elif value not in seen:
                seen.add(value)
                stack.append((value, True))
                stack.extend((a, False) for a in value.args)
        in_backward = set(of_backward)
        for value in order:
            if any(a in in_backward for a in value.args):
                in_backward.add(value)
        saved: dict[Value, None] = {}
        leaves: dict[Value, None] = {}
        results = set(gradients)
        for value in [*order, *gradients]:
            for arg in (value.args if value in in_backward else (value,) if value in results else ()):
                base = arg.base
                if base in in_backward or base.op == "constant":
                    continue
                (leaves if base.op == "input" else saved)[base] = None
        return list(saved), list(leaves)

    def dense_cotangents(self, cotangents: Sequence[Any]) -> list[np.ndarray]:
        """Return the cotangents as row-major arrays, zeros for those that are None."""
        return [np.zeros(leaf.shape, leaf.dtype) if g is None else np.ascontiguousarray(g)
                for g, leaf in zip(cotangents, self.joint.cotangents, strict=True)]

    def run(self, saved: Sequence[np.ndarray], cotangents: Sequence[Any], leaves: Sequence[np.ndarray]) -> list[Any]:
        """Return the gradients of the inputs; None for inputs that get none, or only from cotangents that are None."""
        missing = frozenset([i for i, g in enumerate(cotangents) if g is None])
        program = self.program
        if missing:
            known = self._partial_programs.get(missing)
            program = known or self._partial_programs.setdefault(missing, self._compile({}, missing))
        dense = self.dense_cotangents(cotangents)
        by_kind = (saved, dense, leaves)
        arrays = []
        for number in program.inputs:
            kind, i = self._input_sources[number]
            arrays.append(by_kind[kind][i])
        new = program.run(arrays, callback=profiling.watch(program, self.name) if special[0] else None)
        assert new is not None
        remaining = iter(new)
        gradients = [None if v is None else next(remaining).reshape(v.shape) for v in self.joint.gradients]
        for number, dims in self.joint.layouts.items():
            array = gradients[number]
            assert array is not None
            gradients[number] = array.transpose(dims)
        if not missing:
            return gradients
        return [None if uses <= missing else g for g, uses in zip(gradients, self.joint.uses, strict=True)]


def _dependencies(leaves: Sequence[Value], saved: Sequence[Value], gradients: Sequence[Value],
                  cotangents: Sequence[Value]) -> tuple[dict[Value, frozenset[int]], list[frozenset[int]]]:
    """Return which results each value of backward depends on, and for each leaf those that it is read for.

    A result stands for its cotangent. A leaf, an input of the forward part, is read for the results in whose backward
    computation it is an operand.
    """
    depends: dict[Value, frozenset[int]] = {value: frozenset([i]) for i, value in enumerate(cotangents)}
    # by value without a cotangent, the inputs that it is computed from in backward
    forward: dict[Value, set[Value]] = {value: set() for value in saved}
    uses: dict[Value, set[int]] = {leaf: set() for leaf in leaves}
    stack: list[tuple[Value, bool]] = [(value, False) for value in gradients]
    while stack:
        value, operands_done = stack.pop()
        if value in depends or value in forward:
            continue
        if not operands_done:
            stack.append((value, True))
            stack += [(x, False) for x in value.args]
            continue
        found = frozenset().union(*(depends[x] for x in value.args if x in depends))
        read = set().union(*(forward[x] for x in value.args if x in forward))
        if not found:
            forward[value] = {value} if value in uses else read
            continue
        depends[value] = found
        for leaf in read:
            uses[leaf] |= found
    return depends, [frozenset(uses[leaf]) or frozenset(range(len(cotangents))) for leaf in leaves]


class CompiledFunctionBackward(Node):
    """The autograd node of a compiled function's results, or of a piece of its backward graph.

    Attributes:
        backward: the backward graph; None once the saved tensors are freed.
        piece: the piece of it that the node runs; None for all of it.
        saved: arrays saved by the forward program.
        leaves: inputs of the forward program that backward reads.
        versions: the tensors of these inputs, their versions, and the results whose gradients they are read for.
        used: [the results whose cotangents the last pass had], the same list in all pieces.
        freed: the results through which a pass went that did not keep the graph.
    """

    __slots__ = ("backward", "freed", "leaves", "piece", "saved", "used", "versions")
    materializes_undefined = False

    def __init__(self, backward: BackwardGraph, edges: Sequence[tuple[Node | None, int]],
                 outputs: Sequence[tuple[tuple[int, ...], np.dtype]], saved: Sequence[np.ndarray],
                 leaves: Sequence[np.ndarray], versions: Sequence[tuple[Any, int, frozenset[int]]],
                 piece: Piece | None = None, used: list[frozenset[int]] | None = None) -> None:
        self.edges = tuple([node for node, _ in edges])
        numbers = tuple([number for _, number in edges])
        self.edge_outputs = numbers if any(numbers) else None
        self.outputs = None if len(outputs) == 1 else tuple(outputs)
        self.extra = self.run = None
        self.seq = next_number()
        self.backward: BackwardGraph | None = backward
        self.piece, self.saved, self.leaves, self.versions = piece, saved, leaves, versions
        self.used = [frozenset()] if used is None else used
        self.freed: frozenset[int] = frozenset()

    def vjp(self, cotangents: Any, tensors: bool) -> Any:
        backward, piece = self.backward, self.piece
        given = list(cotangents) if self.outputs is not None else [cotangents]
        if all(g is None for g in given):  # the results of a later call have an edge here, and depend on none of these
            return [None] * len(self.edges)
        if backward is None:
            raise RuntimeError(FREED_MESSAGE)
        if tensors and grad_mode.get():
            raise RuntimeError("torch.compile with aot_autograd does not currently support double backward")
        if piece is None or not piece.number:
            self.used[0] = frozenset([i for i, g in enumerate(given) if g is not None])
        used = self.used[0]
        if self.freed and any(backward.joint.shares_nodes(i, self.freed) for i in used):
            raise RuntimeError(FREED_MESSAGE)
        for tensor, version, used_by in self.versions:
            counter = tensor._counter
            if counter is not None and counter[0] != version and not used_by.isdisjoint(used):
                raise RuntimeError("one of the variables needed for gradient computation has been modified by an "
                                   f"inplace operation: {tensor.type()} {list(tensor.shape)}, an input of a compiled "
                                   f"function, is at version {counter[0]}; expected version {version} instead.")
        arrays = [resolve(g._array) if tensors and g is not None else g for g in given]
        if piece is None:
            gradients = backward.run(self.saved, arrays, self.leaves)
        else:
            if not piece.number:
                arrays = list(backward.dense_cotangents(arrays))
            gradients = piece.run(self.saved, arrays, self.leaves, frozenset(range(backward.joint.count)) - used)
        return [None if a is None else wrap(a) if tensors else a for a in gradients]

    def release_variables(self) -> None:
        joint, used = None if self.backward is None else self.backward.joint, self.used[0]
        self.freed |= used
        if joint is not None and used and not all(joint.shares_nodes(i, self.freed) for i in range(joint.count)):
            return  # the others may still be differentiated
        self.backward = self.piece = None
        self.saved = self.leaves = self.versions = ()

    def check_saved(self) -> None:
        if self.backward is None:
            raise RuntimeError(FREED_MESSAGE)


def attach_backward(outputs: list[Any], backward: BackwardGraph, saved: list[np.ndarray], leaves: list[np.ndarray],
                    arguments: Sequence[Any], read: Sequence[Any]) -> None:
    """Give the results a `grad_fn` that runs the backward program.

    Args:
        outputs: the differentiable results.
        backward: the backward graph.
        saved, leaves: see `CompiledFunctionBackward`.
        arguments: the tensors among the call's arguments.
        read: the tensors of `leaves`, which may not be written to before backward; None for arrays without one.
    """
    inputs: list[Any] = [t if at is None else arguments[at]
                         for t, at in zip(backward.joint.inputs, backward.joint.positions, strict=True)]
    versions = [None if t is None else (t, 0 if t._counter is None else t._counter[0], used_by)
                for t, used_by in zip(read, backward.leaf_uses, strict=True)]
    shapes = [(t._array.shape, t._array.dtype) for t in outputs]
    edges = [(gradient_edge(t) if t._requires_grad and value is not None else None, t._output_nr)
             for t, value in zip(inputs, backward.joint.gradients, strict=True)]  # none to what gets no gradient
    buckets = current_buckets.get()
    if buckets is None:
        node = CompiledFunctionBackward(backward, edges, shapes, saved, leaves, [v for v in versions if v is not None])
    else:
        node = _nodes_of_pieces(backward, backward.pieces(buckets), edges, shapes, saved, leaves, versions)
    for number, output in enumerate(outputs):
        output._requires_grad, output._node = True, node
        if number:
            output._output_nr = number


def _nodes_of_pieces(backward: BackwardGraph, pieces: Sequence[Piece], edges: Sequence[tuple[Node | None, int]],
                     shapes: Sequence[tuple[tuple[int, ...], np.dtype]], saved: Sequence[np.ndarray],
                     leaves: Sequence[np.ndarray], versions: Sequence[Any]) -> CompiledFunctionBackward:
    """Return the node of the first piece; nodes of later pieces, to which it leads, have lower sequence numbers."""
    nodes: dict[int, CompiledFunctionBackward] = {}
    used: list[frozenset[int]] = [frozenset()]
    for piece in reversed(pieces):
        outputs = [(value.shape, value.dtype) for value in piece.received] if piece.number else shapes
        to = [edges[i] for i in piece.gradients] + [(nodes[later], place) for _, later, place in piece.passed]
        nodes[piece.number] = CompiledFunctionBackward(
            backward, to, outputs, [saved[i] for i in piece.saved], [leaves[i] for i in piece.leaves],
            [versions[i] for i in piece.leaves if versions[i] is not None], piece, used)
    return nodes[0]


__all__ = ["BackwardGraph", "CompiledFunctionBackward", "attach_backward"]
