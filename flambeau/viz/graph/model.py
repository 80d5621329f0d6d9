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
from ...engine.profiler_events import owning_array
from ...engine.saved.saved_tensors import Packed
from ...engine.tensor_interface import layer
from ..traces.expressions import Symbol, as_expression
from ..traces.formulas import node_formula, params_of, pullback
from ..traces.notation import text
from .provenance import class_of_module, label_of, origin_of
from .saved_memory import is_freed, saved_values

Shape = tuple[int, ...]
Output = tuple[Shape | None, str | None]


class Saved(NamedTuple):
    """One saved value of a node.

    Attributes:
        name: as in `_saved_<name>`.
        shape, dtype: of its elements.
        bytes: the memory that it keeps alive; for a view, the entire base.
        shared: the owner that counts this memory instead of the node: "leaf" or "node 7"; empty if there is none.
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
        id: its index in `graph.nodes`; 0 is the newest.
        node: the autograd node.
        name: the node's class, `MulBackward0`.
        operator: the name of the operator, `mul`, or of the custom Function; "leaf" for a leaf.
        module: the dotted path of the module that created it; None if not recorded or outside modules.
        source: (file, line, text of the line), or None.
        outputs: (shape, dtype name) of each output; None if unknown.
        saved: its saved values.
        bytes: the memory that it saves and that no leaf and no older node owns.
        edges: (id of the next node, input number of this node, output number of the next node).
        is_leaf: whether it is the AccumulateGrad node of a leaf.
        variable: the leaf tensor, or None.
        label: the leaf's name, if known.
        freed: whether `backward()` has freed its saved values.
        seq: its sequence number.

    >>> import flambeau as torch
    >>> from flambeau.viz import Graph
    >>> node = Graph.of(torch.ones(2, requires_grad=True).exp()).nodes[0]
    >>> node.name, node.operator, node.outputs
    ('ExpBackward0', 'exp', [((2,), 'float32')])
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
        """The operator's formula in the names of its declaration: `input × other`."""
        if self._formula is None:
            self._formula = self.label or "" if self.is_leaf else _formula_of(self.node)
        return self._formula

    @property
    def pullbacks(self) -> list[str | None]:
        """The gradient formula of each edge, of the cotangent g: `g × other`; None where there is no formula."""
        if self._pullbacks is None:
            self._pullbacks = _pullbacks(self.node, [place for _, place, _ in self.edges])
        return self._pullbacks

    @property
    def shape(self) -> Shape | None:
        """The shape of the first output."""
        return self.outputs[0][0] if self.outputs else None

    def to_dict(self) -> dict[str, Any]:
        """All attributes except the node and the tensor, as JSON data."""
        return {
            "id": self.id, "seq": self.seq, "name": self.name, "operator": self.operator, "formula": self.formula,
            "pullbacks": self.pullbacks, "module": self.module,
            "source": None if self.source is None else list(self.source),
            "outputs": [{"shape": None if shape is None else list(shape), "dtype": dtype}
                        for shape, dtype in self.outputs],
            "saved": [{**saved._asdict(), "shape": None if saved.shape is None else list(saved.shape)}
                      for saved in self.saved],
            "bytes": self.bytes, "edges": [list(edge) for edge in self.edges], "is_leaf": self.is_leaf,
            "label": self.label, "freed": self.freed,
        }


class GraphModel:
    """The autograd graph of one or several tensors as data: nodes in topological order, newest first.

    Args:
        roots: autograd nodes.
        labels: names of leaves by the id of the tensor.
        outputs: known outputs of the roots: (node, output number) -> (shape, dtype name).
    """

    def __init__(self, roots: Sequence[Any], labels: Mapping[int, str] | None = None,
                 outputs: Mapping[tuple[Any, int], Output] | None = None) -> None:
        order = _topological_order(roots)
        ids = {node: number for number, node in enumerate(order)}
        self.roots: list[int] = list(dict.fromkeys(ids[node] for node in roots))
        self.nodes: list[GraphNode] = [_graph_node(node, ids, labels or {}) for node in order]
        _count_memory(self.nodes)
        known = {(ids[node], number): output for (node, number), output in (outputs or {}).items()}
        _infer_shapes(self.nodes, known)
        _infer_origins(self.nodes)

    @classmethod
    def of(cls, tensors: Any, params: Any = None) -> Self:
        """The graph of a tensor, or of several in a list or tuple.

        Args:
            tensors: the outputs of the graph.
            params: names of leaves: `{name: tensor}`, or a module with named parameters.

        Raises:
            RuntimeError: a tensor has no graph.
            TypeError: an element is not a tensor.
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
        """The memory that the graph saves for backward, without that of its leaves."""
        return sum(node.bytes for node in self.nodes)

    @cached_property
    def users(self) -> list[list[int]]:
        """The ids of the nodes that have an edge to each node, newest first."""
        users: list[list[int]] = [[] for _ in self.nodes]
        for node in self.nodes:
            for target in dict.fromkeys(target for target, _, _ in node.edges):
                users[target].append(node.id)
        return users

    def to_dict(self) -> dict[str, Any]:
        """The graph as JSON data: "nodes" (newest first), "roots" (ids), "bytes", "modules" {path: class}."""
        return {"nodes": [node.to_dict() for node in self.nodes], "roots": self.roots, "bytes": self.bytes,
                "modules": self.modules()}

    def modules(self) -> dict[str, str]:
        """The modules of the nodes and their parent modules: dotted path -> class."""
        classes: dict[str, str] = {}
        for path in dict.fromkeys(node.module for node in reversed(self.nodes) if node.module):
            parts = path.split(".")
            for length in range(1, len(parts) + 1):
                prefix = ".".join(parts[:length])
                classes.setdefault(prefix, class_of_module(prefix) or parts[length - 1])
        return classes

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


def _topological_order(roots: Sequence[Any]) -> list[Any]:
    """The nodes reachable from the roots in topological order; of those that are ready, the newest is next."""
    dependencies: dict[Any, int] = {}
    nodes = list(dict.fromkeys(roots))
    seen = set(nodes)
    for node in nodes:  # grows during the iteration
        for successor, _ in node.next_functions:
            if successor is None:
                continue
            dependencies[successor] = dependencies.get(successor, 0) + 1
            if successor not in seen:
                seen.add(successor)
                nodes.append(successor)
    ready = [(-node.seq, number, node) for number, node in enumerate(nodes) if node not in dependencies]
    heapify(ready)
    numbers = {node: number for number, node in enumerate(nodes)}
    order = []
    while ready:
        node = heappop(ready)[2]
        order.append(node)
        for successor, _ in node.next_functions:
            if successor is not None:
                dependencies[successor] -= 1
                if not dependencies[successor]:
                    heappush(ready, (-successor.seq, numbers[successor], successor))
    return order


def _graph_node(node: Any, ids: Mapping[Any, int], labels: Mapping[int, str]) -> GraphNode:
    origin = origin_of(node)
    place = None if origin is None else origin.place
    variable = getattr(node, "variable", None) if node.is_leaf else None
    edges = [(ids[successor], position, output)
             for position, (successor, output) in enumerate(node.next_functions) if successor is not None]
    outputs: list[Output] = []
    if variable is not None:
        outputs = [(tuple(variable._array.shape), variable.dtype.name)]
    elif origin is not None and origin.outputs:
        outputs = list(origin.outputs)
    elif node.outputs is not None:
        outputs = [(None, None) if meta is None else (tuple(meta[0]), dtypes.of(meta[1]).name) for meta in node.outputs]
    label = None if variable is None else labels.get(id(variable)) or label_of(variable)
    return GraphNode(ids[node], node, type(node).__name__, _operator(node), None if origin is None else origin.module,
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
    """Set the saved values of nodes; memory shared by several counts for its leaf, else for the oldest node."""
    owners: dict[int, str] = {}  # id of an array that owns memory -> the leaf or node that counts it
    for node in nodes:
        if node.variable is not None:
            owners[id(owning_array(node.variable._array))] = "leaf"
    for node in reversed(nodes):
        for value in () if node.is_leaf else saved_values(node.node):
            shared = "" if value.memory is None else owners.get(id(value.memory), "")
            owners.setdefault(id(value.memory), f"node {node.id}")
            node.saved.append(Saved(value.name, None if value.array is None else tuple(value.array.shape),
                                    value.dtype, value.bytes, shared))
        node.bytes = sum(saved.bytes for saved in node.saved if not saved.shared)


def _infer_shapes(nodes: Sequence[GraphNode], known: Mapping[tuple[int, int], Output]) -> None:
    """Infer output shapes that were not recorded, from saved outputs, from users and from inputs."""
    shapes: dict[tuple[int, int], Output] = dict(known)
    for node in nodes:  # newest first: a user determines the shapes of its inputs
        if not isinstance(node.node, OpNode):
            continue
        own = shapes.get((node.id, 0)) or (node.outputs[0] if node.outputs else None) or _output_tensor(node.node)
        if own is not None:
            shapes.setdefault((node.id, 0), own)
        for target, position, output in node.edges:
            if nodes[target].outputs:
                continue
            input_output = _input(node.node, position, own)
            if input_output is not None:
                shapes.setdefault((target, output), input_output)
    for node in reversed(nodes):  # oldest first: elementwise operators keep the shape of their inputs
        if node.outputs:
            continue
        if (node.id, 0) not in shapes and isinstance(node.node, OpNode) and node.node.op.kind == "elementwise":
            for target, _, output in node.edges:
                outputs = nodes[target].outputs
                if node.node.fix is None and output < len(outputs):
                    shapes[node.id, 0] = outputs[output]
        numbers = [output for number, output in shapes if number == node.id] if node.node.outputs is not None else [0]
        node.outputs = [shapes.get((node.id, output), (None, None)) for output in range(max(numbers, default=0) + 1)]


def _output_tensor(node: OpNode) -> Output | None:
    saved = node.saved
    if saved is None or not node.plan.saved_outputs or node.plan.saved_outputs[0] != 0:
        return None
    array = saved[len(saved) - len(node.plan.saved_outputs)][0]
    return (tuple(array.shape), dtypes.of(array.dtype).name) if hasattr(array, "dtype") else None


def _input(node: OpNode, position: int, own: Output | None) -> Output | None:
    """The shape and dtype that a node implies for its input number `position` among its visible edges."""
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


def _infer_origins(nodes: Sequence[GraphNode]) -> None:
    """Give the node that regenerates a view after a write to its base the origin of that write."""
    for node in reversed(nodes):
        if node.source is None and node.name == "AsStridedBackward0" and node.edges:
            before = nodes[node.edges[0][0]]
            if before.name == "CopySlices":
                node.source, node.module = before.source, before.module


def _formula_of(node: Any) -> str:
    """A node's operator as a formula, with its scalar operands."""
    written = getattr(node, "fn", None)
    if written is not None:
        return f"{_formula_of(written)}, written into a part"
    if not isinstance(node, OpNode):
        return node_formula(node)
    operands: list[Any] = list(node.op.input_names(len(node.edges)))
    saved = node.saved or ()
    for place, value in zip(node.plan.saved_inputs, saved, strict=False):
        array = getattr(value, "_array", value)
        if node.edges[place] is None and getattr(array, "shape", ()) == () and not isinstance(value, Packed):
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
