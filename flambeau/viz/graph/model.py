"""The autograd graph as data: nodes with their edges, formulas, source lines, shapes and saved memory.

Source lines and modules are known for nodes that were recorded under `watching()` (lines under anomaly mode, too).
Shapes are those recorded then; otherwise they are inferred from saved tensors, from what rules save, and from
broadcasting.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from heapq import heapify, heappop, heappush
from typing import Any, NamedTuple, Self

from ... import dtypes
from ..._tensor.tensor import Tensor
from ...engine.nodes.op_node import OpNode
from ...engine.profiler_events import owner
from ...engine.saved.saved_tensors import Packed
from ...engine.tensor_interface import layer
from ..traces.expressions import Symbol, as_expression
from ..traces.formulas import node_formula, params_of, pullback
from ..traces.notation import text
from .provenance import kind_of, label_of, origin_of
from .saved_memory import holdings, is_freed

Shape = tuple[int, ...]
Output = tuple[Shape | None, str | None]


class Saved(NamedTuple):
    """One thing that a node keeps for backward.

    Attributes:
        name: as in `_saved_<name>`.
        shape, dtype: of the values.
        bytes: the memory that stays because of it: all of what a view looks into.
        shared: who counts for this memory instead of the node: "leaf", or "node 7"; empty if nobody does.
    """

    name: str
    shape: Shape | None
    dtype: str
    bytes: int
    shared: str


@dataclass(slots=True, eq=False)
class GraphNode:
    """One node of a graph.

    Attributes:
        id: its place in `graph.nodes`: 0 for the newest.
        node: the autograd node itself.
        name: the node's class, `MulBackward0`.
        operator: the operator's name, `mul`; a user's Function by its own; "leaf" for the end of an edge.
        module: the dotted path of the module that made it; None where nobody watched, or no module did.
        source: (file, line, text of the line), or None.
        outputs: (shape, dtype name) of each output; None for what is not known.
        saved: what it keeps.
        bytes: the memory that nobody else in the graph counts for: leaves and older nodes come first.
        edges: (id of the node it leads to, which input of this one that is, which output of that one).
        is_leaf: whether it is the end of an edge, where `.grad` is filled.
        variable: the leaf tensor, or None.
        label: the leaf's name, if there is one.
        freed: whether `backward()` has let go what it had saved.
        seq: its birth number.
    """

    id: int
    node: Any
    name: str
    operator: str
    module: str | None
    source: tuple[str, int, str] | None
    outputs: list[Output]
    saved: list[Saved]
    bytes: int
    edges: list[tuple[int, int, int]]
    is_leaf: bool
    variable: Any
    label: str | None
    freed: bool
    seq: int
    _formula: str | None = field(default=None, repr=False)
    _pullbacks: list[str | None] | None = field(default=None, repr=False)

    @property
    def formula(self) -> str:
        """What the operator computes, in the names of its declaration: `input × other`."""
        if self._formula is None:
            self._formula = self.label or "" if self.is_leaf else _formula_of(self.node)
        return self._formula

    @property
    def pullbacks(self) -> list[str | None]:
        """For each edge, what its rule makes of the cotangent g: `g × other`; None where no formula says it."""
        if self._pullbacks is None:
            self._pullbacks = _pullbacks(self.node, [place for _, place, _ in self.edges])
        return self._pullbacks

    @property
    def shape(self) -> Shape | None:
        """The shape of the first output."""
        return self.outputs[0][0] if self.outputs else None

    def to_dict(self) -> dict[str, Any]:
        """All but the node and the tensor themselves, as JSON has it."""
        return {
            "id": self.id, "seq": self.seq, "name": self.name, "operator": self.operator, "formula": self.formula,
            "pullbacks": self.pullbacks, "module": self.module,
            "source": None if self.source is None else list(self.source),
            "outputs": [{"shape": None if shape is None else list(shape), "dtype": dtype}
                        for shape, dtype in self.outputs],
            "saved": [{**kept._asdict(), "shape": None if kept.shape is None else list(kept.shape)}
                      for kept in self.saved],
            "bytes": self.bytes, "edges": [list(edge) for edge in self.edges], "is_leaf": self.is_leaf,
            "label": self.label, "freed": self.freed,
        }


class GraphModel:
    """The autograd graph below one or several tensors as data: nodes in topological order, newest first.

    Args:
        roots: autograd nodes.
        labels: names of leaves, by the identity of the tensor.
        outputs: known outputs of the roots: (node, output number) -> (shape, dtype name).
    """

    def __init__(self, roots: Sequence[Any], labels: Mapping[int, str] | None = None,
                 outputs: Mapping[tuple[Any, int], Output] | None = None) -> None:
        known = labels or {}
        self.nodes: list[GraphNode] = []
        order = _newest_first(roots)
        places = {node: number for number, node in enumerate(order)}
        self.roots: list[int] = list(dict.fromkeys(places[node] for node in roots))
        for number, node in enumerate(order):
            self.nodes.append(_described(number, node, places, known))
        _count_memory(self.nodes)
        shown = (outputs or {}).items()
        _fill_in_shapes(self.nodes, {(places[node], place): output for (node, place), output in shown})
        _fill_in_origins(self.nodes)

    @classmethod
    def of(cls, tensors: Any, params: Any = None) -> Self:
        """The graph of a tensor, or of several in a list or tuple.

        Args:
            tensors: what the graph leads to.
            params: names of leaves: `{name: tensor}`, or a module, whose parameters' names are taken.

        Raises:
            RuntimeError: a tensor has no graph.
            TypeError: something is not a tensor.
        """
        several = list(tensors) if isinstance(tensors, (list, tuple)) else [tensors]
        labels: dict[int, str] = {}
        named = params.named_parameters() if hasattr(params, "named_parameters") else (params or {}).items()
        for name, tensor in named:
            if not isinstance(tensor, Tensor):
                raise TypeError(f"params[{name!r}] is not a tensor but {type(tensor).__name__}")
            labels[id(tensor)] = name
        roots, outputs = [], {}
        for tensor in several:
            if not isinstance(tensor, Tensor):
                raise TypeError(f"graphs are behind tensors, not behind {type(tensor).__name__}")
            node = _node_of(tensor)
            roots.append(node)
            outputs[node, tensor._output_nr] = tuple(tensor._array.shape), tensor.dtype.name
        return cls(roots, labels, outputs)

    def __len__(self) -> int:
        return len(self.nodes)

    def __iter__(self) -> Iterator[GraphNode]:
        return iter(self.nodes)

    @property
    def bytes(self) -> int:
        """The memory that the graph keeps for backward; that of its leaves is not counted."""
        return sum(node.bytes for node in self.nodes)

    @cached_property
    def users(self) -> list[list[int]]:
        """For each node the nodes that lead to it, newest first."""
        users: list[list[int]] = [[] for _ in self.nodes]
        for node in self.nodes:
            for target in dict.fromkeys(target for target, _, _ in node.edges):
                users[target].append(node.id)
        return users

    def to_dict(self) -> dict[str, Any]:
        """The graph as JSON has it: "nodes" (newest first), "roots" (ids), "bytes", "modules" {path: class}."""
        return {"nodes": [node.to_dict() for node in self.nodes], "roots": self.roots, "bytes": self.bytes,
                "modules": self.modules()}

    def modules(self) -> dict[str, str]:
        """The modules that nodes belong to, and those around them: dotted path -> class."""
        found: dict[str, str] = {}
        for path in dict.fromkeys(node.module for node in reversed(self.nodes) if node.module):
            parts = path.split(".")
            for length in range(1, len(parts) + 1):
                whole = ".".join(parts[:length])
                found.setdefault(whole, kind_of(whole) or parts[length - 1])
        return found

    def __repr__(self) -> str:
        return f"<graph of {len(self)} nodes, behind {', '.join(self.nodes[root].name for root in self.roots)}>"


# ----- reading the nodes -----

def _node_of(tensor: Tensor) -> Any:
    node = tensor.grad_fn
    if node is None and tensor.requires_grad:
        node = layer.gradient_edge(tensor)
    if node is None:
        raise RuntimeError("the tensor has no graph: it does not require grad, and no recorded operator made it")
    return node


def _newest_first(roots: Sequence[Any]) -> list[Any]:
    """All nodes that the roots lead to: each after those that lead to it, and as new as may be."""
    waiting: dict[Any, int] = {}
    found = list(dict.fromkeys(roots))
    seen = set(found)
    for node in found:  # grows while it is walked
        for successor, _ in node.next_functions:
            if successor is None:
                continue
            waiting[successor] = waiting.get(successor, 0) + 1
            if successor not in seen:
                seen.add(successor)
                found.append(successor)
    free = [(-node.seq, number, node) for number, node in enumerate(found) if node not in waiting]
    heapify(free)
    numbers = {node: number for number, node in enumerate(found)}
    order = []
    while free:
        node = heappop(free)[2]
        order.append(node)
        for successor, _ in node.next_functions:
            if successor is not None:
                waiting[successor] -= 1
                if not waiting[successor]:
                    heappush(free, (-successor.seq, numbers[successor], successor))
    return order


def _described(number: int, node: Any, places: Mapping[Any, int], labels: Mapping[int, str]) -> GraphNode:
    origin = origin_of(node)
    place = None if origin is None else origin.place
    variable = getattr(node, "variable", None) if node.is_leaf else None
    edges = [(places[successor], position, output)
             for position, (successor, output) in enumerate(node.next_functions) if successor is not None]
    outputs: list[Output] = []
    if variable is not None:
        outputs = [(tuple(variable._array.shape), variable.dtype.name)]
    elif origin is not None and origin.outputs:
        outputs = list(origin.outputs)
    elif node.outputs is not None:
        outputs = [(None, None) if meta is None else (tuple(meta[0]), dtypes.of(meta[1]).name) for meta in node.outputs]
    label = None if variable is None else labels.get(id(variable)) or label_of(variable)
    return GraphNode(number, node, type(node).__name__, _operator(node), None if origin is None else origin.module,
                     None if place is None else (place.file, place.line, place.code), outputs, [], 0, edges,
                     variable is not None, variable, label, is_freed(node), node.seq)


def _operator(node: Any) -> str:
    if node.is_leaf:
        return "leaf"
    op = getattr(node, "op", None)
    if op is not None:
        return str(op.name).lstrip("_")
    custom = getattr(type(node), "_forward_cls", None)
    if custom is not None:
        return str(custom.__name__)
    written = getattr(node, "fn", None)
    return f"{_operator(written)}_" if written is not None else type(node).__name__


def _count_memory(nodes: Sequence[GraphNode]) -> None:
    """What each node keeps; memory that several keep counts for the leaf it belongs to, else for the oldest."""
    counts: dict[int, str] = {}  # identity of an array that owns memory -> who counts for it
    for node in nodes:
        if node.variable is not None:
            counts[id(owner(node.variable._array))] = "leaf"
    for node in reversed(nodes):
        for held in () if node.is_leaf else holdings(node.node):
            shared = "" if held.memory is None else counts.get(id(held.memory), "")
            counts.setdefault(id(held.memory), f"node {node.id}")
            node.saved.append(Saved(held.name, None if held.array is None else tuple(held.array.shape), held.dtype,
                                    held.bytes, shared))
        node.bytes = sum(kept.bytes for kept in node.saved if not kept.shared)


def _fill_in_shapes(nodes: Sequence[GraphNode], known: Mapping[tuple[int, int], Output]) -> None:
    """Shapes that nobody noted: from what is saved of an output, from users and from inputs, as far as these tell."""
    found: dict[tuple[int, int], Output] = dict(known)
    for node in nodes:  # newest first: a user tells the shape of what it was given
        if not isinstance(node.node, OpNode):
            continue
        own = found.get((node.id, 0)) or (node.outputs[0] if node.outputs else None) or _output_tensor(node.node)
        if own is not None:
            found.setdefault((node.id, 0), own)
        for target, position, output in node.edges:
            if nodes[target].outputs:
                continue
            shown = _input(node.node, position, own)
            if shown is not None:
                found.setdefault((target, output), shown)
    for node in reversed(nodes):  # oldest first: like inputs make a like output
        if node.outputs:
            continue
        if (node.id, 0) not in found and isinstance(node.node, OpNode) and node.node.op.kind == "elementwise":
            for target, _, output in node.edges:
                shapes = nodes[target].outputs
                if node.node.fix is None and output < len(shapes):
                    found[node.id, 0] = shapes[output]
        numbers = [place for number, place in found if number == node.id] if node.node.outputs is not None else [0]
        node.outputs = [found.get((node.id, place), (None, None)) for place in range(max(numbers, default=0) + 1)]


def _output_tensor(node: OpNode) -> Output | None:
    saved = node.saved
    if saved is None or not node.plan.saved_outputs or node.plan.saved_outputs[0] != 0:
        return None
    array = saved[len(saved) - len(node.plan.saved_outputs)][0]
    return (tuple(array.shape), dtypes.of(array.dtype).name) if hasattr(array, "dtype") else None


def _input(node: OpNode, position: int, own: Output | None) -> Output | None:
    """What a node knows of its input number `position` among its drawn edges."""
    drawn = node.visible_edges()
    place = position if drawn is None else drawn[position]
    shape: Shape | None = None
    dtype = None if own is None else own[1]
    if node.fix is not None:
        shapes, types = node.fix[0], node.fix[1]
        if shapes is not None:
            shape = tuple(shapes[place])
        elif node.op.kind == "elementwise" and own is not None:
            shape = own[0]
        if types is not None:
            dtype = dtypes.of(types[place]).name
    elif node.op.kind == "elementwise":
        return own
    saved = node.saved
    if saved is not None and place in node.plan.saved_inputs:
        array = getattr(saved[node.plan.saved_inputs.index(place)], "_array", None)
        if array is not None:
            return tuple(array.shape), dtypes.of(array.dtype).name
    for (what, which), value in zip(node.plan.consts, node.consts, strict=True):
        if what == "shape" and which == place:
            shape = tuple(value)
    return None if shape is None else (shape, dtype)


def _fill_in_origins(nodes: Sequence[GraphNode]) -> None:
    """A node that was made behind the scenes, a view's after a write to its base, came from the line of that write."""
    for node in reversed(nodes):
        if node.source is None and node.name == "AsStridedBackward0" and node.edges:
            before = nodes[node.edges[0][0]]
            if before.name == "CopySlices":
                node.source, node.module = before.source, before.module


def _formula_of(node: Any) -> str:
    """A node's operator as a formula, with the numbers that it was given."""
    written = getattr(node, "fn", None)
    if written is not None:
        return f"{_formula_of(written)}, written into a part"
    if not isinstance(node, OpNode):
        return node_formula(node)
    operands: list[Any] = list(node.op.input_names(len(node.edges)))
    saved = node.saved or ()
    for place, kept in zip(node.plan.saved_inputs, saved, strict=False):
        array = getattr(kept, "_array", kept)
        if node.edges[place] is None and getattr(array, "shape", ()) == () and not isinstance(kept, Packed):
            operands[place] = as_expression(dtypes.widen(array).item() if hasattr(array, "dtype") else array)
    return node_formula(node, operands)


def _pullbacks(node: Any, places: Sequence[int]) -> list[str | None]:
    op = getattr(node, "op", None)
    if op is None:
        return [None] * len(places)
    drawn = node.visible_edges()
    inputs = [Symbol(name) for name in op.input_names(len(node.edges))]
    outs = [Symbol(name) for name in op.output_names()]
    cotangents = [Symbol("g")] if len(outs) == 1 else [Symbol(f"g{number}") for number in range(len(outs))]
    params = params_of(node)
    found = []
    for place in places:
        formula = pullback(op, place if drawn is None else drawn[place], cotangents, inputs, outs, params)
        found.append(None if formula is None else text(formula))
    return found


__all__ = ["GraphModel", "GraphNode", "Saved"]
