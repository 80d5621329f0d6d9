"""Dependency order of fusion groups: its transitive closure, updated while groups grow and merge.

Each group is a bit; the predecessors of a group are an integer of such bits. So a query is one operation on integers,
and an update reaches all later groups in one pass.
"""

from __future__ import annotations

from collections.abc import Iterable


class DependencyOrder:
    """The dependency order of numbered groups.

    >>> order = DependencyOrder()
    >>> a, b, c = order.add(), order.add(), order.add()
    >>> order.add_predecessors(b, [a]); order.add_predecessors(c, [b])
    >>> order.is_before(a, c), order.is_before(c, a)
    (True, False)
    """

    def __init__(self) -> None:
        self._bits: list[int] = []
        self._before: list[int] = []
        self._alive: set[int] = set()
        self._predecessors = 0  # a superset of the groups that precede any other

    def add(self) -> int:
        """Add a group and return its number."""
        number = len(self._bits)
        self._bits.append(1 << number)
        self._before.append(0)
        self._alive.add(number)
        return number

    def is_before(self, a: int, b: int) -> bool:
        """Whether group `a` must be computed before group `b`."""
        return bool(self._before[b] & self._bits[a])

    def add_predecessors(self, group: int, earlier: Iterable[int]) -> None:
        """Record that these groups, and all their predecessors, precede `group`."""
        new = 0
        for each in earlier:
            new |= self._before[each] | self._bits[each]
        if new & ~self._before[group]:
            self._before[group] |= new
            self._predecessors |= new
            self._propagate(self._bits[group], new)

    def merge(self, into: int, other: int) -> None:
        """Merge `other` into `into`."""
        self._alive.discard(other)
        bits = self._bits[into] = self._bits[into] | self._bits[other]
        self._before[into] = (self._before[into] | self._before[other]) & ~bits
        self._propagate(bits, self._before[into] | bits)

    def _propagate(self, bits: int, new: int) -> None:
        if not bits & self._predecessors:
            return
        before = self._before
        for each in self._alive:
            if before[each] & bits:
                before[each] |= new & ~self._bits[each]
