"""Layered graph layout (Sugiyama's method), for drawings that need no package and whose boxes open.

1. Ranks: a node is one rank above its nearest user.
2. Dummy nodes: a long edge has one in each rank that it passes, shared by all edges from the same node.
3. Order within a rank: the barycentre heuristic, in alternating passes; the order with the fewest crossings is used.
4. Coordinates: an isotonic regression per rank places nodes near the mean of their neighbours.
"""

from __future__ import annotations

import itertools
import re
from bisect import bisect_right, insort
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from .picture import Arrow, Picture

_CHARACTER = 0.085  # inches, of a 10 point monospace letter
_LINE = 0.17  # inches from one line of a label to the next
_GAP = 0.3  # inches between neighbours of one rank
_RANK_GAP = 0.4  # inches between ranks
_BEND = 0.1  # inches of a dummy node
CIRCLE = 0.55  # inches across
_SWEEPS = 24
_BRANCH = 8  # length in ranks from which an arrow branches off a longer one of the same node


@dataclass
class Layout:
    """Coordinates in inches: `across` a rank and `along` the ranks."""

    ranks: list[list[str]]
    size: dict[str, tuple[float, float]]  # key -> (across, along)
    across: dict[str, float] = field(default_factory=dict)
    along: dict[str, float] = field(default_factory=dict)
    routes: list[tuple[Arrow, list[str]]] = field(default_factory=list)  # an arrow and the nodes that it passes

    def point(self, picture: Picture, key: str, across: float = 0.0, along: float = 0.0) -> tuple[float, float]:
        """A point relative to a node's centre, in page coordinates (x to the right, y downward)."""
        a, b = self.across[key] + across, self.along[key] + along
        return {"TB": (a, b), "LR": (b, a), "RL": (-b, a)}[picture.direction]


def label_lines(label: str) -> list[str]:
    """A label's lines; Graphviz's HTML subscripts become LaTeX subscripts."""
    if label.startswith("<") and label.endswith(">"):
        return ["$" + re.sub(r"<sub>(.*?)</sub>", r"_{\1}", label[1:-1]) + "$"]
    return [line.removeprefix(" ") for line in label.split("\n") if line.strip()] or [""]


def _ranks_of(keys: list[str], arrows: list[Arrow]) -> dict[str, int]:
    """Each node's rank: one less than the least rank of its heads; sinks one below their lowest tail."""
    tied = {end for arrow in arrows if not arrow.headless for end in (arrow.tail, arrow.head)}
    after: dict[str, list[str]] = {key: [] for key in keys}
    before = dict.fromkeys(keys, 0)
    for arrow in arrows:
        # a saved tensor that is also a node's input would otherwise close a cycle
        if arrow.headless and arrow.tail in tied and arrow.head in tied:
            continue
        after[arrow.tail].append(arrow.head)
        before[arrow.head] += 1
    order = [key for key in keys if not before[key]]
    for key in order:
        for head in after[key]:
            before[head] -= 1
            if not before[head]:
                order.append(head)
    height = dict.fromkeys(keys, 0)
    for key in reversed(order):
        height[key] = max((height[head] + 1 for head in after[key]), default=0)
    top = max(height.values(), default=0)
    rank = {key: top - height[key] for key in keys}
    lowest: dict[str, int] = {}
    for key in keys:
        for head in after[key]:
            lowest[head] = max(lowest.get(head, 0), rank[key])
    rank.update((key, lowest[key] + 1) for key in lowest if not after[key])
    return rank


def _crossings(ranks: list[list[str]], heads: dict[str, list[str]]) -> int:
    """The number of crossings between adjacent ranks: pairs of arrows whose ends are in reverse order."""
    total = 0
    for upper, lower in itertools.pairwise(ranks):
        place = {key: position for position, key in enumerate(lower)}
        passed: list[int] = []  # sorted ends so far
        for key in upper:
            ends = sorted(place[head] for head in heads[key])
            total += sum(len(passed) - bisect_right(passed, end) for end in ends)
            for end in ends:
                insort(passed, end)
    return total


def _fewest_crossings(ranks: list[list[str]], heads: dict[str, list[str]],
                      tails: dict[str, list[str]]) -> list[list[str]]:
    best, least = [list(rank) for rank in ranks], _crossings(ranks, heads)
    for sweep in range(_SWEEPS):
        if not least:
            break
        downward = sweep % 2 == 0
        neighbours = tails if downward else heads
        for level in range(1, len(ranks)) if downward else range(len(ranks) - 2, -1, -1):
            fixed = {key: place for place, key in enumerate(ranks[level - 1 if downward else level + 1])}
            here = {key: place for place, key in enumerate(ranks[level])}

            def mean(key: str, fixed: dict[str, int] = fixed, here: dict[str, int] = here) -> float:
                near = [fixed[other] for other in neighbours[key]]  # noqa: B023 - called at once
                return sum(near) / len(near) if near else here[key]

            ranks[level].sort(key=mean)
        count = _crossings(ranks, heads)
        if count < least:
            best, least = [list(rank) for rank in ranks], count
    return best


def _spread(targets: list[float], widths: list[float]) -> list[float]:
    """The centres nearest to the targets, in order and without overlaps (isotonic regression)."""
    offsets, at = [], 0.0
    for position, width in enumerate(widths):
        at += (widths[position - 1] + width) / 2 + _GAP if position else 0.0
        offsets.append(at)
    blocks: list[list[float]] = []  # [sum, count] of pooled values, with increasing means
    for target, offset in zip(targets, offsets, strict=True):
        blocks.append([target - offset, 1])
        while len(blocks) > 1 and blocks[-2][0] / blocks[-2][1] >= blocks[-1][0] / blocks[-1][1]:
            total, count = blocks.pop()
            blocks[-1][0] += total
            blocks[-1][1] += count
    pooled = [total / count for total, count in blocks for _ in range(int(count))]
    return [value + offset for value, offset in zip(pooled, offsets, strict=True)]


def lay_out(picture: Picture) -> Layout:
    """The coordinates of all boxes of a picture, and the routes of all arrows."""
    boxes = picture.boxes()
    turned = picture.direction != "TB"
    size: dict[str, tuple[float, float]] = {}
    for box in boxes:
        lines = label_lines(box.label)
        width = CIRCLE if picture.round else max(map(len, lines)) * _CHARACTER + 0.2
        height = CIRCLE if picture.round else len(lines) * _LINE + 0.12
        size[box.key] = (height, width) if turned else (width, height)
    rank = _ranks_of([box.key for box in boxes], picture.arrows())
    ranks: list[list[str]] = [[] for _ in range(max(rank.values(), default=0) + 1)]
    for key, level in rank.items():
        ranks[level].append(key)
    layout = Layout(ranks, size)
    heads: dict[str, list[str]] = defaultdict(list)
    tails: dict[str, list[str]] = defaultdict(list)
    bent: set[str] = set()
    for arrow in picture.arrows():
        first, last = sorted((arrow.tail, arrow.head), key=rank.__getitem__)
        route = [first, *[f"{first} in rank {level}" for level in range(rank[first] + 1, rank[last])], last]
        for bend, level in zip(route[1:-1], range(rank[first] + 1, rank[last]), strict=True):
            if bend not in bent:
                bent.add(bend)
                ranks[level].append(bend)
                size[bend] = (_BEND, 0.0)
        if rank[first] != rank[last]:
            for upper, lower in itertools.pairwise(route):
                if lower not in bent or not tails[lower]:
                    heads[upper].append(lower)
                    tails[lower].append(upper)
        layout.routes.append((arrow, route if first == arrow.tail else route[::-1]))
    layout.ranks = ranks = _fewest_crossings(ranks, heads, tails)
    along = 0.0
    for row in ranks:
        thickness = max((size[key][1] for key in row), default=0.0)
        layout.along.update(dict.fromkeys(row, along + thickness / 2))
        size.update({key: (_BEND, thickness) for key in row if key in bent})
        along += thickness + _RANK_GAP
        layout.across.update(zip(row, _spread([0.0] * len(row), [size[key][0] for key in row]),
                                 strict=True))
    for sweep in range(_SWEEPS):
        for row in ranks if sweep % 2 == 0 else ranks[::-1]:
            targets = []
            for key in row:
                near = [layout.across[other] for other in (*tails[key], *heads[key])]
                targets.append(sum(near) / len(near) if near else layout.across[key])
            layout.across.update(zip(row, _spread(targets, [size[key][0] for key in row]), strict=True))
    return layout


def routes_of(layout: Layout, picture: Picture) -> Iterator[tuple[Arrow, list[tuple[float, float]]]]:
    """Each arrow with its points in page coordinates, from border to border.

    Of long arrows from one node, the longest has the entire route; the others branch off it.
    """
    longest: dict[str, int] = {}
    for _, route in layout.routes:
        for end in (route[0], route[-1]):
            longest[end] = max(longest.get(end, 0), len(route))
    for arrow, route in layout.routes:
        start, end = route[0], route[-1]
        sense = 1 if layout.along[start] < layout.along[end] else -1
        upper = start if sense > 0 else end
        if len(route) > _BRANCH and len(route) < longest[upper]:
            route = route[-2:] if sense > 0 else route[:2]
        points = []
        for place, key in enumerate(route):
            half = layout.size[key][1] / 2
            sides: tuple[float, ...] = (-half, half)
            if picture.round:
                sides = (0.0,)
            elif place == 0:
                sides = (half,)
            elif place == len(route) - 1:
                sides = (-half,)
            points += [layout.point(picture, key, along=sense * side) for side in sides]
        if picture.round:
            points[0] = _towards(points[0], points[1], CIRCLE / 2 if route[0] == start else 0.0)
            points[-1] = _towards(points[-1], points[-2], CIRCLE / 2 if route[-1] == end else 0.0)
        yield arrow, points


def _towards(point: tuple[float, float], other: tuple[float, float],
             distance: float) -> tuple[float, float]:
    dx, dy = other[0] - point[0], other[1] - point[1]
    length = max((dx * dx + dy * dy) ** 0.5, 1e-9)
    return point[0] + dx / length * distance, point[1] + dy / length * distance
