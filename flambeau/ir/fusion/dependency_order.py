"""Which groups must be computed before which, while groups grow and are made one.

Groups are bits of an integer; what must come before a group is an integer too, so that a question is one operation
on integers and an answer that changes reaches all later groups in one sweep.
"""

from __future__ import annotations

from collections.abc import Iterable


class DependencyOrder:
    """An order of groups, known by numbers.

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
        self._followed = 0  # groups that come before any, and maybe more

    def add(self) -> int:
        """A new group's number."""
        number = len(self._bits)
        self._bits.append(1 << number)
        self._before.append(0)
        self._alive.add(number)
        return number

    def is_before(self, a: int, b: int) -> bool:
        """Whether group `a` must be computed before group `b`."""
        return bool(self._before[b] & self._bits[a])

    def add_predecessors(self, group: int, earlier: Iterable[int]) -> None:
        """Let these groups, and all before them, come before `group`."""
        new = 0
        for each in earlier:
            new |= self._before[each] | self._bits[each]
        if new & ~self._before[group]:
            self._before[group] |= new
            self._followed |= new
            self._propagate(self._bits[group], new)

    def merge(self, into: int, other: int) -> None:
        """Make one group of two, known as `into`."""
        self._alive.discard(other)
        bits = self._bits[into] = self._bits[into] | self._bits[other]
        self._before[into] = (self._before[into] | self._before[other]) & ~bits
        self._propagate(bits, self._before[into] | bits)

    def _propagate(self, bits: int, new: int) -> None:
        if not bits & self._followed:
            return
        before = self._before
        for each in self._alive:
            if before[each] & bits:
                before[each] |= new & ~self._bits[each]
