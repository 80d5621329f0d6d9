"""Graphs as text: nodes newest first, edges as columns of lines, like the graph of a version-control log.

    ● SumBackward0  ()
    ●─╮ MulBackward0  (3,)  keeps self, other (12 bytes)
    ○ │ x  (3,)
      ○ y  (3,)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..graph.collapse import Grouping
from ..graph.groups import Group, Item
from ..graph.model import GraphModel, GraphNode
from ..graph.saved_memory import format_bytes

NODE, LEAF, BOX = "●", "○", "▣"
#: the maximum number of nodes of a graph that is drawn node by node
MOST_NODES = 60
_MOST_COLUMNS = 24


class _Row(NamedTuple):
    key: str
    symbol: str
    text: str
    needs: Sequence[str]


def text_of(graph: GraphModel) -> str:
    """A graph drawn node by node."""
    rows = [_Row(f"n{node.id}", LEAF if node.is_leaf else NODE, _line(node),
                 list(dict.fromkeys(f"n{target}" for target, _, _ in node.edges))) for node in graph]
    return "\n".join([heading(graph), *_drawn(rows)])


def text_of_boxes(boxes: Grouping) -> str:
    """A collapsed graph with all boxes closed."""
    level = boxes.level()
    needs: dict[str, list[str]] = {boxes.key(item): [] for item in level.items}
    for link in level.links:
        needs[link.head].append(link.tail)

    def newest(item: Item) -> int:
        return item.id if not isinstance(item, Group) else next(item.nodes()).id

    rows = []
    for item in sorted(level.items, key=newest):
        key = boxes.key(item)
        if isinstance(item, Group):
            rows.append(_Row(key, BOX, _box_line(boxes, item), needs[key]))
        else:
            rows.append(_Row(key, LEAF if item.is_leaf else NODE, _line(item), needs[key]))
    return "\n".join([heading(boxes.graph), *_drawn(_topologically_sorted(rows))])


def _topologically_sorted(rows: list[_Row]) -> list[_Row]:
    """The rows in their order, except that each row comes after all rows that need it."""
    waiting = {row.key: 0 for row in rows}
    for row in rows:
        for need in row.needs:
            waiting[need] += 1
    found: list[_Row] = []
    left = rows
    while left:
        ready = next(row for row in left if not waiting[row.key])
        found.append(ready)
        left = [row for row in left if row is not ready]
        for need in ready.needs:
            waiting[need] -= 1
    return found


def heading(graph: GraphModel) -> str:
    """One line that counts nodes, leaves and bytes saved for backward."""
    leaves = sum(node.is_leaf for node in graph)
    nodes = len(graph) - leaves
    size = (f"keeps {format_bytes(graph.bytes)} for backward" if graph.bytes else
            "keeps no memory of its own for backward")
    freed = sum(node.freed for node in graph)
    return (f"a graph of {nodes} node{'s' * (nodes != 1)} and {leaves} lea{'f' if leaves == 1 else 'ves'}, which {size}"
            + (f"; backward has freed {freed} of its nodes" if freed else ""))


def _line(node: GraphNode) -> str:
    """The text of a node: name, shape, saved values, and source line."""
    parts = [node.label or "leaf" if node.is_leaf else node.name]
    if node.outputs and len(node.outputs) > 1:
        parts.append(" ".join(shape_text(shape) for shape, _ in node.outputs))
    elif node.shape is not None:
        parts.append(shape_text(node.shape))
    if node.saved:
        names = ", ".join(dict.fromkeys(saved.name for saved in node.saved))
        parts.append(f"keeps {names}" + (f" ({format_bytes(node.bytes)})" if node.bytes else ""))
    elif node.freed:
        parts.append("freed")
    if node.source is not None:
        file, line, code = node.source
        parts.append(f"{_base(file)}:{line}" + (f"  {code}" if code else ""))
    return "  ".join(parts)


def _box_line(boxes: Grouping, group: Group) -> str:
    parts = [boxes.name(group), boxes.shape(group), format_bytes(group.bytes) if group.bytes else ""]
    return "  ".join(part for part in parts if part)


def shape_text(shape: tuple[int, ...] | None) -> str:
    """A shape as a Python tuple; a question mark if unknown."""
    return "?" if shape is None else str(tuple(shape))


def _base(file: str) -> str:
    return file.replace("\\", "/").rpartition("/")[2]


def _drawn(rows: Sequence[_Row]) -> list[str]:
    """The rows with their edges on the left: one column for each row that is still to come."""
    lanes: list[str | None] = []  # the key of the row to which each column leads
    lines: list[str] = []
    for row in rows:
        column = lanes.index(row.key) if row.key in lanes else _free(lanes, 0, ())
        lanes[column] = row.key
        before = list(lanes)
        joined = [lanes.index(key) for key in row.needs if key in lanes]
        fresh = [key for key in row.needs if key not in lanes]
        lanes[column] = fresh[0] if fresh else None
        begun = []
        for key in fresh[1:]:
            begun.append(_free(lanes, column + 1, before))
            lanes[begun[-1]] = key
        lines.append(_row(before, row.symbol, column, begun, joined) + row.text)
        while lanes and lanes[-1] is None:
            lanes.pop()
        if len(lanes) > _MOST_COLUMNS:
            return ["too entangled to be drawn with lines:", *[f"{row.symbol} {row.text}" for row in rows]]
    return lines


def _free(lanes: list[str | None], start: int, before: Sequence[str | None]) -> int:
    """The first column from `start` on that is free now and in the row `before`."""
    column = start
    while (column < len(lanes) and lanes[column] is not None) or (column < len(before) and before[column] is not None):
        column += 1
    lanes.extend([None] * (column + 1 - len(lanes)))
    return column


def _row(lanes: Sequence[str | None], symbol: str, column: int, begun: Sequence[int], joined: Sequence[int]) -> str:
    """One row: passing lines, the symbol, and lines from it to new and existing columns."""
    reach = [column, *begun, *joined]
    left, right = min(reach), max(reach)
    cells = []
    for place in range(max(len(lanes), right + 1)):
        passing = place < len(lanes) and lanes[place] is not None
        if place == column:
            cell = symbol
        elif place in begun:
            cell = "╮" if place == right else "┬"
        elif place in joined:
            cell = "┤" if place == right else "├" if place == left else "┼"
        elif left < place < right:
            cell = "┼" if passing else "─"
        else:
            cell = "│" if passing else " "
        cells.append(cell + ("─" if left <= place < right else " "))
    return "".join(cells)


__all__ = ["MOST_NODES", "heading", "shape_text", "text_of", "text_of_boxes"]
