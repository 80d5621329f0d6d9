"""Memory reports: the bytes that a graph saves for backward, by node and by source line, with suggested changes.

Memory that several nodes save counts once, for the oldest of them. That of leaves does not count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import Any

from ... import dtypes
from ..traces.tables import Table
from .model import GraphModel, GraphNode, Saved
from .saved_memory import format_bytes

_SHOWN = 20  # rows of a table

_ITEMSIZES = {dtype.name: dtype.itemsize for dtype in dtypes.ALL}

#: operators whose rule uses only their result, so that they may overwrite their input
_FROM_RESULT = frozenset(("relu", "sigmoid", "tanh", "exp", "sqrt", "leaky_relu", "elu", "celu", "selu", "hardtanh"))


@dataclass
class Line:
    """The nodes of one source line.

    Attributes:
        place: "train.py:12".
        code: the line's text.
        bytes: the memory that its nodes save.
        nodes: the nodes, newest first.
        advice: a suggested change; may be empty.
    """

    place: str
    code: str
    bytes: int
    nodes: list[GraphNode] = field(repr=False)
    advice: str = ""


class MemoryReport:
    """Bytes saved for backward, by node and by source line; the result of `Graph.memory`.

    >>> import flambeau as torch
    >>> from flambeau.viz import watching
    >>> x = torch.ones(1000, requires_grad=True)
    >>> with watching():
    ...     y = (x + x).tanh().sum()
    >>> report = y.graph().memory()
    >>> report.total, [(node.name, node.bytes) for node in report.nodes]
    (4000, [('TanhBackward0', 4000)])
    >>> [(line.code, line.bytes, line.advice) for line in report.lines]
    [('y = (x + x).tanh().sum()', 4000, 'in place: tanh_()')]
    >>> print(str(report).partition("\\n")[0])
    memory kept for backward: 4.0 kB in 1 of 3 nodes
    """

    def __init__(self, graph: GraphModel) -> None:
        self.graph = graph

    @property
    def total(self) -> int:
        """The bytes that the graph saves, without those of leaves."""
        return self.graph.bytes

    @property
    def leaves(self) -> int:
        """The bytes of the graph's leaves and of their gradients."""
        variables = [node.variable for node in self.graph if node.variable is not None]
        return sum(x._array.nbytes + (0 if x._grad is None else x._grad._array.nbytes) for x in variables)

    @cached_property
    def nodes(self) -> list[GraphNode]:
        """The nodes that save memory, in descending order."""
        return sorted((node for node in self.graph if node.bytes), key=lambda node: -node.bytes)

    @cached_property
    def lines(self) -> list[Line]:
        """The source lines whose nodes save memory, in descending order; empty if lines were not recorded."""
        by_place: dict[tuple[str, int, str], list[GraphNode]] = {}
        for node in self.graph:
            if node.source is not None and not node.is_leaf:
                by_place.setdefault(node.source, []).append(node)
        found = [Line(f"{_base(file)}:{number}", code, sum(node.bytes for node in nodes), nodes,
                      advice(self.graph, nodes))
                 for (file, number, code), nodes in by_place.items()]
        return sorted((line for line in found if line.bytes), key=lambda line: -line.bytes)

    def by_line(self) -> Table:
        """The lines as a table."""
        rows = [(line.place, _short(line.code, 44), str(len(line.nodes)), _saved_names(line.nodes), line.advice,
                 format_bytes(line.bytes)) for line in self.lines[:_SHOWN]]
        unknown = sum(node.bytes for node in self.graph if node.source is None)
        if unknown:
            rows.append(("not recorded", "", "", "", "", format_bytes(unknown)))
        heads = ("line", "code", "nodes", "keeps", "what to change", "bytes")
        return Table(self._title(len(self.lines), "lines"), heads, rows)

    def by_node(self) -> Table:
        """The nodes as a table."""
        rows = [(str(node.id), node.name, "" if node.source is None else f"{_base(node.source[0])}:{node.source[1]}",
                 ", ".join(f"{saved.name} {_shape(saved.shape)} {saved.dtype}" for saved in node.saved
                           if not saved.shared),
                 format_bytes(node.bytes)) for node in self.nodes[:_SHOWN]]
        return Table(self._title(len(self.nodes), "nodes"), ("node", "name", "line", "keeps", "bytes"), rows)

    def _title(self, rows: int, what: str) -> str:
        inner = sum(not node.is_leaf for node in self.graph)
        title = f"memory kept for backward: {format_bytes(self.total)} in {len(self.nodes)} of {inner} nodes"
        return title + (f"; the {_SHOWN} largest of {rows} {what}" if rows > _SHOWN else "")

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON has it."""
        return {"total": self.total, "leaves": self.leaves,
                "nodes": [{"id": node.id, "bytes": node.bytes} for node in self.nodes],
                "lines": [{"place": line.place, "code": line.code, "bytes": line.bytes, "advice": line.advice,
                           "nodes": [node.id for node in line.nodes]} for line in self.lines]}

    @property
    def _table(self) -> Table:
        return self.by_line() if self.lines else self.by_node()

    def __str__(self) -> str:
        hint = "" if self.lines or not self.nodes else (
            "\nSource lines are recorded in a `with viz.watching():` block.")
        return str(self._table) + hint

    def __rich__(self) -> Any:
        return self._table.__rich__()

    def _repr_html_(self) -> str:
        return self._table._repr_html_()


def advice(graph: GraphModel, nodes: Sequence[GraphNode]) -> str:
    """The suggested change for a line: the first rule that applies to most of its saved memory."""
    total = sum(node.bytes for node in nodes)
    keeping = [node for node in nodes if node.bytes * 20 > total] or [node for node in nodes if node.bytes]
    if not total:
        return ""
    if not any(node.edges for node in keeping):
        return "needs no gradient: torch.no_grad()"
    wide = sum(saved.bytes for node in keeping for saved in node.saved if not saved.shared and saved.dtype == "float64")
    if 2 * wide > total:
        return "float64: float32 keeps half"
    loose = sum(saved.bytes - _size(saved) for node in keeping for saved in node.saved if not saved.shared)
    if 2 * loose > total:
        return "keeps all that a view looks into: .clone() it"
    modules = {node.module for node in keeping if node.module}
    times = max(Counter(node.name for node in keeping).values())
    if times > 8 and not modules:
        return f"{times} times: .detach() what is carried over, or .item() what is only added up"
    if all(node.operator in _FROM_RESULT and _may_overwrite(graph, node) for node in keeping):
        name = keeping[0].operator
        return f"in place: {name}_()"
    if total * 5 < graph.bytes or len(keeping) < 2:
        return ""
    return f"checkpoint({_outermost(modules)}, ...)" if modules else "utils.checkpoint around it"


def _may_overwrite(graph: GraphModel, node: GraphNode) -> bool:
    """Whether no rule uses a node's input, so that it may be overwritten."""
    if len(node.edges) != 1:
        return False
    before = graph.nodes[node.edges[0][0]]
    return (not before.is_leaf and len(graph.users[before.id]) == 1
            and not any(saved.name.startswith("result") for saved in before.saved))


def _outermost(modules: set[str]) -> str:
    """The common prefix of the module paths; the first path if there is none."""
    paths = [module.split(".") for module in sorted(modules)]
    common = [parts[0] for parts in zip(*paths, strict=False) if len(set(parts)) == 1]
    return ".".join(common) or ".".join(paths[0])


def _size(saved: Saved) -> int:
    """The bytes of the elements, without the rest of the memory that they are a view of."""
    itemsize = _ITEMSIZES.get(saved.dtype)
    return saved.bytes if saved.shape is None or itemsize is None else min(prod(saved.shape) * itemsize, saved.bytes)


def _saved_names(nodes: Sequence[GraphNode]) -> str:
    """The names of saved values by operator: `tanh: result; mul: self, other`."""
    found: dict[str, dict[str, None]] = {}
    for node in reversed(nodes):
        for saved in node.saved:
            if not saved.shared:
                found.setdefault(node.operator, {})[saved.name] = None
    return _short("; ".join(f"{operator}: {', '.join(names)}" for operator, names in found.items()), 44)


def _shape(shape: tuple[int, ...] | None) -> str:
    return "" if shape is None else str(shape)


def _short(text: str, width: int) -> str:
    return text if len(text) <= width else text[:width - 1] + "…"


def _base(file: str) -> str:
    return file.replace("\\", "/").rpartition("/")[2]


__all__ = ["Line", "MemoryReport", "advice"]
