"""Grouping of a graph's nodes into boxes: by module, by source line, or by repeated structure.

A box holds a contiguous range of nodes in topological order, so the collapsed graph is acyclic. A box of repeated
structure shows the newest repetition and the number of repetitions. A leaf is in the innermost box around its users.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from ..drawing.picture import Arrow, Box, Picture
from .groups import Group, Item
from .model import GraphModel, GraphNode
from .provenance import class_of_module

LEAF, OUTPUT, NODE = "lightblue", "darkolivegreen1", ""
BOXES = {"module": "lavender", "source": "lemonchiffon", "repeat": "mistyrose", "part": "whitesmoke"}
_LONGEST_PERIOD = 1024
_CRITERIA = (None, "module", "source", "repeat")


class Link(NamedTuple):
    """An edge of one level, from a dependency to its user; the ends are `Grouping.key`s."""

    tail: str
    head: str


class Level(NamedTuple):
    """The content of an open box, or the top level of the graph.

    Attributes:
        items: boxes, nodes and leaves.
        links: the edges between them.
        ports: (key, name of the other end): ends of edges that cross the border of the box.
    """

    items: list[Item]
    links: list[Link]
    ports: list[tuple[str, str]]


class Grouping:
    """The nodes of a graph in nested boxes: items, levels, links, keys and pictures of levels.

    Args:
        graph: the graph.
        by: "module", "source" or "repeat"; None: whichever keeps each level within `limit` items.
        limit: the maximum number of items of a level.

    Raises:
        ValueError: `by` is none of these.
    """

    def __init__(self, graph: GraphModel, by: str | None = None, limit: int = 40) -> None:
        if by not in _CRITERIA:
            raise ValueError(f"by is {by!r}, but graphs collapse by 'module', 'source' or 'repeat'")
        self.graph = graph
        self.by = by
        self.limit = max(limit, 4)
        self.items: list[Item] = self._collapse([node for node in graph if not node.is_leaf])
        self._numbers: dict[int, int] = {}
        self._paths: dict[int, tuple[Group, ...]] = {}  # node id -> its enclosing boxes, outermost first
        self._number(self.items, ())
        self.leaves: list[GraphNode] = []
        self._place_leaves()
        self._levels: dict[Group | None, Level] = self._linked()

    # ----- boxes -----

    def _collapse(self, nodes: list[GraphNode]) -> list[Item]:
        limit = self.limit
        if self.by is None:
            if len(self.graph) <= limit:
                return list(nodes)
            return self._group_automatically(_by_module(nodes) if any(node.module for node in nodes) else list(nodes))
        if self.by == "module":
            return self._group_within_limit(_open_modules(_by_module(nodes), self.limit))
        if self.by == "source":
            return self._group_within_limit(_by_source(nodes))
        return self._group_repetitions_recursively(list(nodes))

    def _group_automatically(self, items: list[Item]) -> list[Item]:
        """Boxes so that no level exceeds the limit: by repetition, then by source line, then by equal ranges."""
        items = _open_modules(items, self.limit)
        if len(items) > self.limit and any(getattr(item, "source", None) for item in items):
            items = _group_repetitions(_by_source(items))
        if len(items) > self.limit:
            items = _equal_ranges(items, self.limit)
        for item in items:
            if isinstance(item, Group):
                item.items = self._group_automatically(item.items)
        return items

    def _group_within_limit(self, items: list[Item]) -> list[Item]:
        if len(items) > self.limit:
            items = _group_repetitions(items)
        if len(items) > self.limit:
            items = _equal_ranges(items, self.limit)
        for item in items:
            if isinstance(item, Group):
                item.items = self._group_within_limit(item.items)
        return items

    def _group_repetitions_recursively(self, items: list[Item]) -> list[Item]:
        items = _group_repetitions(items)
        for item in items:
            if isinstance(item, Group) and len(item.items) > 1:
                item.items = self._group_repetitions_recursively(item.items)
        return _equal_ranges(items, self.limit)

    def _number(self, items: Sequence[Item], path: tuple[Group, ...]) -> None:
        for item in items:
            if isinstance(item, Group):
                self._numbers[id(item)] = len(self._numbers)
                self._number(item.items, (*path, item))
                for node in item.elided:
                    self._paths[node.id] = (*path, item)
            else:
                self._paths[item.id] = path

    def _place_leaves(self) -> None:
        elided = {node.id: group for group in self.groups() for node in group.elided}
        users = self.graph.users
        inner: dict[Group, list[GraphNode]] = {}
        for leaf in self.graph:
            if not leaf.is_leaf:
                continue
            hidden = {elided[user] for user in users[leaf.id] if user in elided}
            if len(hidden) == 1 and all(user in elided for user in users[leaf.id]):
                inner.setdefault(hidden.pop(), []).append(leaf)
                continue
            path = _common([self._paths[user] for user in users[leaf.id]] or [()])
            depth = min([path.index(group) for group in hidden if group in path], default=len(path))
            self._assign_leaf(leaf, path[:depth])
        for repeated, leaves in inner.items():
            around = self._enclosing(repeated)
            if len(leaves) < repeated.count - 1:  # fewer than one for each repetition: the inputs of the oldest one
                for leaf in leaves:
                    self._assign_leaf(leaf, around)
                continue
            repeated.elided += leaves
            self._paths.update((leaf.id, (*around, repeated)) for leaf in leaves)

    def _assign_leaf(self, leaf: GraphNode, path: tuple[Group, ...]) -> None:
        self._paths[leaf.id] = path
        (path[-1].leaves if path else self.leaves).append(leaf)

    def _enclosing(self, group: Group) -> tuple[Group, ...]:
        node = next(group.nodes())
        path = self._paths[node.id]
        return path[:path.index(group)]

    def groups(self) -> Iterator[Group]:
        """All boxes, each before its nested boxes."""
        waiting: list[Item] = list(reversed(self.items))
        while waiting:
            item = waiting.pop()
            if isinstance(item, Group):
                yield item
                waiting.extend(reversed(item.items))

    # ----- arrows -----

    def key(self, item: Item) -> str:
        """The unique key of an item."""
        return f"box{self._numbers[id(item)]}" if isinstance(item, Group) else f"n{item.id}"

    def _linked(self) -> dict[Group | None, Level]:
        levels: dict[Group | None, Level] = {None: Level([*self.items, *self.leaves], [], [])}
        for group in self.groups():
            levels[group] = Level([*group.items, *group.leaves], [], [])
        links: dict[Group | None, dict[Link, None]] = {group: {} for group in levels}
        ports: dict[Group | None, dict[tuple[str, str], None]] = {group: {} for group in levels}
        elided = {node.id for group in self.groups() for node in group.elided}
        nodes = self.graph.nodes
        for user in nodes:
            above = self._paths[user.id]
            for target, _, _ in user.edges:
                below = self._paths[target]
                depth = len(_common([above, below]))
                heads, tails = self._chain(user, above, elided), self._chain(nodes[target], below, elided)
                if depth < len(heads) and depth < len(tails):
                    link = Link(self.key(tails[depth]), self.key(heads[depth]))
                    links[above[depth - 1] if depth else None][link] = None
                # an elided end is in the innermost box around both ends: the other end has a port there, too
                for inside in range(min(depth + 1, len(tails)), len(heads)):
                    around, port = above[inside - 1], f"in{target}"
                    ports[around][port, self.name(nodes[target])] = None
                    links[around][Link(port, self.key(heads[inside]))] = None
                for inside in range(min(depth + 1, len(heads)), len(tails)):
                    around, port = below[inside - 1], f"out{target}"
                    ports[around][port, self.name(user)] = None
                    links[around][Link(self.key(tails[inside]), port)] = None
        for place, level in levels.items():
            level.links.extend(links[place])
            level.ports.extend({port: (port, name) for port, name in ports[place]}.values())
        return levels

    def _chain(self, node: GraphNode, path: tuple[Group, ...], elided: set[int]) -> list[Item]:
        """The enclosing boxes of a node, outermost first, and the node itself unless elided."""
        return list(path) if node.id in elided else [*path, node]

    def level(self, group: Group | None = None) -> Level:
        """The content of an open box; without one, the top level."""
        return self._levels[group]

    # ----- labels -----

    def name(self, item: Item) -> str:
        """The name of an item."""
        if isinstance(item, Group):
            return f"{item.title} × {item.count}" if item.count > 1 else item.title
        if item.is_leaf:
            return item.label or "leaf"
        return item.name

    def shape(self, item: Item) -> str:
        """The shape of an item's first output, or of the newest node in a box."""
        node = next(item.nodes()) if isinstance(item, Group) else item
        return "" if node.shape is None else f"({', '.join(map(str, node.shape))}{',' * (len(node.shape) == 1)})"

    def colour(self, item: Item) -> str:
        """Torchviz's colours for nodes, leaves and outputs; one for each kind of box."""
        if isinstance(item, Group):
            return BOXES[item.kind]
        return LEAF if item.is_leaf else NODE

    def label(self, item: Item) -> str:
        """The text of an item in a drawing."""
        return "\n".join(line for line in (self.name(item), self.shape(item)) if line)

    def picture(self, group: Group | None = None) -> Picture:
        """One level as a picture, from leaves down to outputs, for `render`."""
        level = self.level(group)
        pieces: list[Box | Arrow] = [Box(self.key(item), self.label(item), self.colour(item)) for item in level.items]
        pieces += [Box(port, "·") for port, _ in level.ports]
        pieces += [Arrow(link.tail, link.head) for link in level.links]
        if group is None:
            for place, root in enumerate(self.graph.roots):
                node = self.graph.nodes[root]
                path = self._paths[root]
                pieces += [Box(f"output{place}", f"output\n{self.shape(node)}".rstrip(), OUTPUT),
                           Arrow(self.key(path[0] if path else node), f"output{place}")]
        return Picture(pieces=pieces)

    def to_dict(self) -> dict[str, Any]:
        """The boxes as JSON data: "items", each a node id or a box with "items"."""
        def encode(item: Item) -> Any:
            if not isinstance(item, Group):
                return item.id
            return {"key": self.key(item), "title": item.title, "kind": item.kind, "count": item.count,
                    "items": [encode(inner) for inner in (*item.items, *item.leaves)],
                    "elided": [node.id for node in item.elided], "bytes": item.bytes}

        return {"by": self.by, "items": [encode(item) for item in (*self.items, *self.leaves)]}

    def __len__(self) -> int:
        return len(self.items) + len(self.leaves)


def _common(paths: Sequence[tuple[Group, ...]]) -> tuple[Group, ...]:
    """The common prefix of paths of boxes."""
    first = paths[0]
    length = min(map(len, paths))
    for depth in range(length):
        if any(path[depth] is not first[depth] for path in paths):
            return first[:depth]
    return first[:length]


# ----- grouping criteria -----

def _runs_of_equal(items: Sequence[Item], key: Callable[[Item], Any]) -> Iterator[tuple[Any, list[Item]]]:
    for found, stretch in groupby(items, key):
        yield found, list(stretch)


def _by_module(items: Sequence[Item], depth: int = 0) -> list[Item]:
    """A box for each call of a module, nested in the box of its parent module."""
    def part(item: Item) -> str | None:
        module = None if isinstance(item, Group) else item.module
        parts = module.split(".") if module else []
        return ".".join(parts[:depth + 1]) if len(parts) > depth else None

    found: list[Item] = []
    for path, stretch in _runs_of_equal(items, part):
        if path is None:
            found += stretch
            continue
        kind, last = class_of_module(path), path.rpartition(".")[2]
        title = path if kind is None or kind == last else f"{path}: {kind}"
        found.append(Group(title, "module", _by_module(stretch, depth + 1)))
    return found


def _by_source(items: Sequence[Item]) -> list[Item]:
    """A box for each execution of a source line."""
    found: list[Item] = []
    for source, stretch in _runs_of_equal(items, lambda item: getattr(item, "source", None)):
        if source is None or len(stretch) == 1:
            found += stretch
        else:
            file, line, code = source
            name = file.replace("\\", "/").rpartition("/")[2]
            found.append(Group(f"{name}:{line} {_short(code)}".rstrip(), "source", stretch))
    return found


def _short(code: str, width: int = 48) -> str:
    return code if len(code) <= width else code[:width - 1] + "…"


def _open_modules(items: list[Item], limit: int) -> list[Item]:
    """The items, with module boxes replaced by their content, outermost first, while the limit permits.

    Repeated modules are grouped before any module is opened.
    """
    while True:
        items = _group_repetitions(items)
        best: Group | None = None
        for item in items:
            if (isinstance(item, Group) and item.kind == "module" and len(items) + len(item.items) - 1 <= limit // 2
                    and any(isinstance(inner, Group) for inner in item.items)
                    and (best is None or item.title.count(".") < best.title.count("."))):
                best = item
        if best is None:
            return items
        place = items.index(best)
        items = [*items[:place], *best.items, *items[place + 1:]]


def _equal_ranges(items: list[Item], limit: int) -> list[Item]:
    """Boxes of `limit` items each, nested until at most `limit` remain."""
    while len(items) > limit:
        found: list[Item] = []
        for start in range(0, len(items), limit):
            part = items[start:start + limit]
            number = sum(len(list(item.nodes())) if isinstance(item, Group) else 1 for item in part)
            found.append(Group(f"{number} nodes", "part", part) if len(part) > 1 else part[0])
        items = found
    return items


def _structure_of(item: Item) -> tuple[Any, ...]:
    """The structure that repetitions share: the operators, but not sizes or names."""
    if isinstance(item, Group):
        return (item.kind, item.title.rpartition(": ")[2] if item.kind == "module" else "",
                *[_structure_of(inner) for inner in item.items])
    return (item.name,)


def _group_repetitions(items: list[Item]) -> list[Item]:
    """The items, with each range that repeats three times or more in a box; largest savings first."""
    kinds: dict[tuple[Any, ...], int] = {}
    marks = np.array([kinds.setdefault(_structure_of(item), len(kinds)) for item in items], np.int64)
    taken = np.zeros(len(items), bool)
    chosen: list[tuple[int, int, int]] = []
    for _, period, start, times in sorted(_tandem_repeats(marks), key=lambda found: (-found[0], found[1], found[2])):
        if not taken[start:start + period * times].any():
            taken[start:start + period * times] = True
            chosen.append((start, period, times))
    found: list[Item] = []
    at = 0
    for start, period, times in sorted(chosen):
        found += items[at:start]
        at = start + period * times
        newest = items[start:start + period]
        rest = [node for item in items[start + period:at]
                for node in (item.nodes() if isinstance(item, Group) else (item,))]
        first = newest[0]
        if period == 1:
            title = _series(first, items[at - 1])
            newest = first.items if isinstance(first, Group) and first.count == 1 else newest
        else:
            title = _sequence(newest)
        found.append(Group(title, "repeat", newest, times, rest))
    return [*found, *items[at:]]


def _sequence(items: Sequence[Item], most: int = 4) -> str:
    """The title of a repetition of several items: `mm · add · tanh`, in execution order, or their number."""
    if len(items) <= most:
        return " · ".join(item.title.rpartition(": ")[2] if isinstance(item, Group) else item.operator
                          for item in reversed(items))
    return f"{sum(len(list(item.nodes())) if isinstance(item, Group) else 1 for item in items)} nodes"


def _series(newest: Item, oldest: Item) -> str:
    """The title of a repeated item: `MulBackward0`, or `Net.layers.0 … Net.layers.11: Layer` for modules."""
    if not isinstance(newest, Group):
        return newest.name
    if newest.kind != "module" or not isinstance(oldest, Group) or oldest.title == newest.title:
        return newest.title
    return f"{oldest.title.partition(': ')[0]} … {newest.title}"


def _tandem_repeats(marks: np.ndarray[Any, Any]) -> Iterator[tuple[int, int, int, int]]:
    """Tandem repeats of the marks: (items saved, period, start, times)."""
    n = len(marks)
    for period in range(1, min(n // 3, _LONGEST_PERIOD) + 1):
        same = np.concatenate(([False], marks[period:] == marks[:-period], [False]))
        turns = np.flatnonzero(same[1:] != same[:-1])
        for start, end in zip(turns[::2].tolist(), turns[1::2].tolist(), strict=True):
            times = (end - start) // period + 1
            if times >= 3 and (times - 1) * period >= 4:
                yield (times - 1) * period, period, start, times


__all__ = ["Group", "Grouping", "Level", "Link"]
