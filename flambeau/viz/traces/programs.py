"""Recorded programs: their inputs, their steps, and all values.

A program such as f(x₁, x₂) = ln x₁ + x₁x₂ - sin x₂ runs once on leaf tensors, while an interceptor records each
operator with its operands and results. The inputs are numbered up to 0 (v₋₁ and v₀ for two), the steps from 1, by
their distance from the inputs, then in execution order. Values that depend on no input are constants.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ... import dtypes
from ..._tensor.creation.constants import ones_like
from ..._tensor.creation.from_data import tensor
from ..._tensor.dispatch.forward_mode import tangents_of
from ..._tensor.dispatch.interception import Interceptor
from ..._tensor.tensor import Tensor, wrap
from ...backends.bit_views import resolve
from ...engine.api import grad
from ...engine.grad_mode import no_grad
from ...ops.declare import Op
from ..drawing.picture import Arrow, Box, Picture
from .expressions import Expression, Number, Symbol
from .formulas import params_of
from .notation import BAR, DOT, SUBSCRIPTS, written

_MARKS = {"": "", DOT: r"\dot", BAR: r"\bar"}


@dataclass
class Application:
    """One application of an operator.

    Attributes:
        node: its node in the graph.
        op: its declaration; None for custom Functions.
        operands: for each input the index of a variable, or a constant (an array, a
            number or None).
        params: its keyword parameters.
        outs: its results, as arrays; None if unknown.
        outputs: output number -> index of the variable.
    """

    node: Any
    op: Op | None
    operands: list[Any]
    params: dict[str, Any]
    outs: list[Any]
    outputs: dict[int, int] = field(default_factory=dict)

    @property
    def variables(self) -> list[tuple[int, int]]:
        """The operands that are variables: (place, index)."""
        return [(place, x.index) for place, x in enumerate(self.operands) if isinstance(x, Variable)]


@dataclass(frozen=True)
class Variable:
    """An operand that is one of the program's variables."""

    index: int


@dataclass
class Run:
    """A recorded program with all its values.

    Attributes:
        values: index -> the variable's value; None if unknown.
        inputs: the indices of the inputs.
        applications: the steps, in order.
        output: the index of the result.
        adjoints: the derivative of the output by each variable, as the engine found it.
    """

    values: dict[int, Any]
    inputs: list[int]
    applications: list[Application]
    output: int
    adjoints: dict[int, Any]
    symbols: dict[tuple[int, str], Symbol] = field(default_factory=dict)

    @property
    def last(self) -> int:
        """The index of the output."""
        return self.output

    def symbol(self, index: int, mark: str = "", value: Any = None) -> Symbol:
        """The variable v of an index, or with a mark its tangent v̇ or its adjoint v̄."""
        found = self.symbols.get((index, mark))
        if found is None:
            value = self.values[index] if not mark else value
            base = "v" if not mark else rf"{_MARKS[mark]}{{v}}"
            found = Symbol(f"v{mark}{str(index).translate(SUBSCRIPTS)}", f"{base}_{{{index}}}", value)
            self.symbols[index, mark] = found
        return found

    def operand(self, x: Any) -> Expression | None:
        """An operand as an expression: a variable's symbol, a number, or a constant tensor written out."""
        if isinstance(x, Variable):
            return self.symbol(x.index)
        if isinstance(x, np.ndarray) and x.ndim == 0:
            x = x.item()
        if x is None or isinstance(x, Expression):
            return x
        return Symbol(*written(x), x) if isinstance(x, np.ndarray) else Number(x)

    def tangents(self, direction: dict[int, Any]) -> dict[int, Any]:
        """The tangents of all variables, by forward mode.

        Args:
            direction: index of an input -> its tangent.
        """
        found = dict(direction)
        for application in self.applications:
            pushed = _pushed(application, self.values, found)
            found.update((index, pushed[number]) for number, index in application.outputs.items())
        return found

    def forward_picture(self) -> Picture:
        """The steps as circles, inputs on the left, output on the right."""
        return self._picture("LR", [(operand, index) for operand, index in self._links()])

    def reverse_picture(self) -> Picture:
        """The same circles with reversed arrows, the direction of adjoints."""
        return self._picture("RL", [(index, operand) for operand, index in self._links()])

    def _links(self) -> list[tuple[int, int]]:
        return [(operand, index) for application in self.applications for index in application.outputs.values()
                for operand in dict.fromkeys(index for _, index in application.variables)]

    def _picture(self, direction: str, links: Iterable[tuple[int, int]]) -> Picture:
        boxes = [Box(f"v_{index}", f"<v<sub>{index}</sub>>") for index in sorted(self.values)]
        arrows = [Arrow(f"v_{tail}", f"v_{head}") for tail, head in links]
        return Picture(direction, round=True, title="ComputationGraph", pieces=[*boxes, *arrows])


class _Recorder(Interceptor):
    """Records every operator: its inputs before it runs, its results after."""

    def __init__(self) -> None:
        self.values: dict[tuple[int, int], np.ndarray] = {}  # (id of a node, number of its output) -> value
        self.applied: dict[int, tuple[Op, list[Any], dict[str, Any], list[Any]]] = {}
        self.nodes: list[Any] = []  # keeps nodes alive, so that their ids stay unique
        self.pending: list[Any] = []

    def source_of(self, x: Any) -> Any:
        """The source of a value: (id of its node, output number), a leaf tensor, or the constant itself."""
        if not isinstance(x, Tensor):
            return x
        if not x.requires_grad:
            return _array_of(x)
        node = x.grad_fn
        if node is None:
            return x
        key = id(node), x._output_nr
        if key not in self.values:
            self.values[key] = _array_of(x)
            self.nodes.append(node)
        return key

    def intercept(self, op: Op, inputs: Sequence[Any], params: dict[str, Any], in_place: bool) -> None:
        self.pending = [self.source_of(x) for x in inputs]

    def on_operator(self, op: Op, inputs: Sequence[Any], params: dict[str, Any], outs: Sequence[Any],
                    in_place: bool) -> None:
        keys = [self.source_of(x) for x in outs]
        results = [self.values[key] if isinstance(key, tuple) else key for key in keys]
        for key in keys:
            if isinstance(key, tuple):
                self.applied.setdefault(key[0], (op, self.pending, dict(params), results))


def recorded(function: Callable[..., Any], *point: Any) -> Run:
    """Run a program at a point and record all steps; see `traces.record`."""
    leaves = [_leaf(value) for value in point]
    with _Recorder() as recorder:
        output = function(*leaves)
    if not isinstance(output, Tensor):
        raise TypeError(f"a program should return a tensor, not {type(output).__name__}")
    if output.grad_fn is None:
        raise ValueError("the program's output does not depend on its inputs")
    recorder.source_of(output)
    return _program(leaves, output, recorder)


def recovered(output: Tensor) -> Run:
    """The program of a tensor's graph; its leaves are the inputs.

    Constants that the graph does not save, such as a number that was added, are written c and have no value.

    Raises:
        ValueError: the tensor has no graph.
    """
    if output.grad_fn is None:
        raise ValueError("the tensor has no graph: nothing that requires grad led to it")
    recorder = _Recorder()
    recorder.source_of(output)
    order = _in_order(output.grad_fn)
    leaves = [node.variable for node in order if hasattr(node, "variable")]
    first = {id(leaf): place for place, leaf in enumerate(leaves_in_order(output.grad_fn))}
    leaves.sort(key=lambda leaf: first[id(leaf)])
    for node in order:
        if getattr(node, "op", None) is not None:
            _read(node, recorder)
    for node in order:
        if id(node) in recorder.applied:
            _recompute(node, recorder)
    return _program(leaves, output, recorder)


def _program(leaves: list[Any], output: Tensor, recorder: _Recorder) -> Run:
    first = 1 - len(leaves)
    place = {id(leaf): first + offset for offset, leaf in enumerate(leaves)}
    values: dict[int, Any] = {place[id(leaf)]: _array_of(leaf) for leaf in leaves}
    adjoints: dict[int, Any] = {index: np.zeros_like(values[index]) for index in place.values()}
    applications: list[Application] = []
    indices: dict[tuple[int, int], int] = {}
    nodes = _in_order(output.grad_fn)
    used = {(id(successor), number) for node in nodes for successor, number in node.next_functions}
    used.add((id(output.grad_fn), output._output_nr))
    ours: set[int] = set()  # nodes that depend on an input
    handles = []
    for node in nodes:
        if hasattr(node, "variable"):
            if id(node.variable) in place:
                ours.add(id(node))
                indices[id(node), 0] = place[id(node.variable)]
            continue
        if not any(id(successor) in ours for successor, _ in node.next_functions):
            continue
        ours.add(id(node))
        application = _application(node, recorder, indices, place)
        for number in sorted(number for known, number in used if known == id(node)):
            index = application.outputs[number] = indices[id(node), number] = len(values) - len(leaves) + 1
            values[index] = recorder.values.get((id(node), number))
        applications.append(application)
        handles.append(node.register_prehook(_adjoint_hook(adjoints, application.outputs)))
    # the graph is retained: formulas read constants of nodes
    found = grad(output, leaves, ones_like(output), retain_graph=True, allow_unused=True)
    for handle in handles:
        handle.remove()
    adjoints.update((place[id(leaf)], _array_of(g)) for leaf, g in zip(leaves, found, strict=True) if g is not None)
    last = indices[id(output.grad_fn), output._output_nr]
    return Run(values, sorted(place.values()), applications, last, adjoints)


def _application(node: Any, recorder: _Recorder, indices: dict[tuple[int, int], int],
                 place: dict[int, int]) -> Application:
    recorded_call = recorder.applied.get(id(node))
    if recorded_call is None:  # a custom Function, or a node of a regenerated view
        sources: list[Any] = [(id(successor), number) for successor, number in node.next_functions]
        return Application(node, getattr(node, "op", None), [_known(key, recorder, indices, place) for key in sources],
                           params_of(node), [None] * (1 if getattr(node, "op", None) is None else node.op.n_outputs))
    op, sources, params, outs = recorded_call
    return Application(node, op, [_known(source, recorder, indices, place) for source in sources], params, outs)


def _known(source: Any, recorder: _Recorder, indices: dict[tuple[int, int], int], place: dict[int, int]) -> Any:
    """A source as an operand: a variable, or a constant."""
    if isinstance(source, tuple):
        return Variable(indices[source]) if source in indices else recorder.values.get(source)
    if isinstance(source, Tensor):
        return Variable(place[id(source)]) if id(source) in place else _array_of(source)
    return source


# ----- numbers -----

def _leaf(value: Any) -> Any:
    if not isinstance(value, Tensor):
        value = tensor(value, dtype=dtypes.float64)
    return value.detach().clone().requires_grad_()


def _array_of(x: Any) -> np.ndarray:
    """A copy of a tensor's array; bfloat16 is widened to float32."""
    a = resolve(x._array)
    return dtypes.widen(a) if a.dtype == dtypes.BFLOAT16 else np.array(a)


def _adjoint_hook(adjoints: dict[int, Any], outputs: dict[int, int]) -> Callable[[Any], None]:
    """A pre-hook that records the adjoints of a node's outputs."""
    def hook(cotangents: Any) -> None:
        for number, index in outputs.items():
            if cotangents[number] is not None:
                adjoints[index] = _array_of(cotangents[number])

    return hook


def _tensor_of(x: Any, values: dict[int, Any]) -> Any:
    value = values[x.index] if isinstance(x, Variable) else x
    return wrap(value) if isinstance(value, np.ndarray) else value


def _pushed(application: Application, values: dict[int, Any], tangents: dict[int, Any]) -> list[Any]:
    """The tangents of an application's outputs: by its declared rule, or row by row by its vjp."""
    op = application.op
    inputs = [_tensor_of(x, values) for x in application.operands]
    known = not any(x is None or isinstance(x, Symbol) for x in (*inputs, *application.outs))
    tangent_tensors = [wrap(tangents[x.index]) if isinstance(x, Variable) else None for x in application.operands]
    if op is not None and known:
        outs = [wrap(out) for out in application.outs]
        found = tangents_of(op, inputs, tangent_tensors, outs, application.params)
        return [np.broadcast_to(np.zeros_like(out._array) if t is None else t._array, out.shape)
                for out, t in zip(outs, found, strict=True)]
    return _by_rows(application, tangent_tensors, values)


def _by_rows(application: Application, tangent_tensors: list[Any], values: dict[int, Any]) -> list[Any]:
    """J t, each row of J from one call of the node with a unit cotangent."""
    node = application.node
    found: list[Any] = [None] * (max(application.outputs) + 1)
    shapes = node._input_metadata
    for number, index in application.outputs.items():
        like = values[index]
        shape = like.shape if like is not None else shapes[number][0] if shapes else _shape_of(tangent_tensors)
        rows = np.zeros(int(np.prod(shape, dtype=int)))
        for row in range(rows.size):
            unit = np.zeros(rows.size)
            unit[row] = 1
            given: list[Any] = [None] * len(found)
            given[number] = tensor(unit.reshape(shape), dtype=dtypes.float64)
            with no_grad():
                pulled = node(*given)
            pulled = pulled if isinstance(pulled, tuple) else (pulled,)
            rows[row] = sum(float((g * t).sum()) for g, t in zip(pulled, tangent_tensors, strict=False)
                            if g is not None and t is not None)
        found[number] = rows.reshape(shape)
    return found


def _shape_of(tensors: list[Any]) -> tuple[int, ...]:
    return np.broadcast_shapes(*(tuple(t.shape) for t in tensors if t is not None))


# ----- programs of existing graphs -----

def _read(node: Any, recorder: _Recorder) -> None:
    """Record a node's operator and its saved values: of operands, results and parameters."""
    op, plan = node.op, node.plan
    sources: list[Any] = []
    for successor, number in zip(node.edges, node.edge_outputs or (0,) * len(node.edges), strict=True):
        leaf = getattr(successor, "variable", None)
        sources.append(Symbol("c") if successor is None else leaf if leaf is not None else (id(successor), number))
    saved = node.saved or ()
    for place, value in zip(plan.saved_inputs, saved, strict=False):
        array = getattr(value, "_array", None)
        if array is None:
            continue
        if isinstance(sources[place], tuple):
            recorder.values.setdefault(sources[place], np.array(array))
        elif isinstance(sources[place], Symbol):
            sources[place] = np.array(array)
    for number, entry in zip(plan.saved_outputs, saved[len(plan.saved_inputs):], strict=False):
        if isinstance(entry, tuple) and isinstance(entry[0], np.ndarray):
            recorder.values.setdefault((id(node), number), np.array(entry[0]))
    params = {name: Symbol("c") for name in op.params if name not in op.defaults} | params_of(node)
    recorder.applied[id(node)] = op, sources, params, [None] * op.n_outputs
    recorder.nodes.append(node)


def _recompute(node: Any, recorder: _Recorder) -> None:
    """Recompute a value that was not saved, if all its operands are known."""
    from ..._tensor.dispatch.apply import apply

    op, sources, params, outs = recorder.applied[id(node)]
    known: list[Any] = [recorder.values.get(source) if isinstance(source, tuple) else
             source._array if isinstance(source, Tensor) else source for source in sources]
    if all(isinstance(x, np.ndarray) for x in known) and not any(isinstance(p, Symbol) for p in params.values()):
        with no_grad():
            found = apply(op, [wrap(x) for x in known], params)
        for number, out in enumerate(found if op.n_outputs > 1 else [found]):
            recorder.values.setdefault((id(node), number), np.array(resolve(out._array)))
    for number in range(op.n_outputs):
        outs[number] = recorder.values.get((id(node), number))


# ----- order -----

def _in_order(root: Any) -> list[Any]:
    """The graph's nodes by distance from the leaves, then in execution order."""
    depth: dict[int, int] = {}
    finished: list[Any] = []
    pending = [(root, iter([node for node, _ in root.next_functions if node is not None]))]
    entered = {id(root)}
    while pending:
        node, successors = pending[-1]
        for successor in successors:
            if id(successor) not in entered:
                entered.add(id(successor))
                pending.append((successor, iter([n for n, _ in successor.next_functions if n is not None])))
                break
        else:
            pending.pop()
            depth[id(node)] = 1 + max((depth[id(n)] for n, _ in node.next_functions if n is not None),
                                      default=-1)
            finished.append(node)
    return sorted(finished, key=lambda node: (depth[id(node)], node._sequence_nr()))


def leaves_in_order(root: Any) -> list[Any]:
    """The leaves in the order of the formula."""
    found, pending, seen = [], [root], set()
    while pending:
        node = pending.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if hasattr(node, "variable"):
            found.append(node.variable)
        pending += [n for n, _ in reversed(node.next_functions) if n is not None]
    return found

