"""Launch families: the launches of a polymorphic plan for ever other values of one extent.

A polymorphic plan creates its kernels' launches for each combination of extents, which takes ten times as long as to
run them. Where only one extent differs from call to call, they are created once with a symbolic extent
(`backends.compiled.plan_families`), and other values of an interval copy them. For the least, the greatest and the
call's extent launches have to be those that the plan would create, word for word, or give the same bits.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

from ...backends.compiled.plan_families import COUNTED, FAMILIES, LEAST, MEMBERS, MOST, PlanFamily, candidates
from ...runtime.launch import Launch, resolve
from ...runtime.symbolic_integers import is_symbolic

#: creates the launches of each kernel for extents
Maker = Callable[[Sequence[Any]], Sequence[Sequence[Launch]]]


class LaunchFamilies:
    """The families of one plan.

    Args:
        kernels: how many there are; planning takes as many times as long as for one.
        make: creates launches.
        gives_same_bits: whether two lists of launches for the same extents compute the same.
    """

    __slots__ = ("_counts", "_families", "_gives_same_bits", "_lock", "_make", "_members")

    def __init__(self, kernels: int, make: Maker, gives_same_bits: Callable[[Sequence[int], Any, Any], bool]) -> None:
        self._make, self._gives_same_bits, self._members = make, gives_same_bits, MEMBERS * kernels
        self._counts: dict[Any, int] = {}
        self._families: dict[Any, list[tuple[PlanFamily, list[int]]]] = {}
        self._lock = threading.Lock()

    def launches(self, extents: Sequence[int]) -> Sequence[Sequence[Launch]]:
        """The launches of each kernel; symbolic extents are the caller's."""
        if any(map(is_symbolic, extents)):
            return self._make(extents)
        due = None
        for at, n in enumerate(extents):
            if not LEAST <= n <= MOST:
                continue
            key = at, (n - 1).bit_length(), *extents[:at], *extents[at + 1:]
            for family, ends in self._families.get(key, ()):
                if family.serves(n):
                    return _divided(family.launches(n), ends)
            with self._lock:
                if len(self._counts) >= COUNTED:
                    self._counts.clear()
                    self._families.clear()
                count = self._counts[key] = self._counts.get(key, 0) + 1
            if due is None and count % self._members == 0 and count <= FAMILIES * self._members:
                due = at, key
        found = self._make(extents)
        if due is not None:
            self._plan(extents, *due, found)
        return found

    def _plan(self, extents: Sequence[int], at: int, key: Any, found: Sequence[Sequence[Launch]]) -> None:
        """Add the family for the interval of an extent, if there is one."""
        def make(n: Any) -> list[Launch]:
            created = self._make([*extents[:at], n, *extents[at + 1:]])
            return [each for launches in created for each in launches]

        def is_same(family: PlanFamily, n: int) -> bool:
            every = [*extents[:at], n, *extents[at + 1:]]
            flat, expected = family.launches(n), self._make(every)
            return len(flat) == ends[-1] and [*map(len, expected)] == [*map(len, found)] and (
                _are_same(flat, [each for launches in expected for each in launches])
                or self._gives_same_bits(every, _divided(flat, ends), expected))

        ends = list(accumulate(map(len, found)))
        for family, numbers in candidates(extents[at], make):
            if all(is_same(family, n) for n in numbers):
                with self._lock:
                    self._families.setdefault(key, []).append((family, ends))
                return


def _divided(launches: Sequence[Launch], ends: Sequence[int]) -> list[Sequence[Launch]]:
    """The launches of each kernel."""
    return [launches[start:end] for start, end in zip([0, *ends], ends, strict=False)]


def _are_same(launches: Sequence[Launch], expected: Sequence[Launch]) -> bool:
    """Whether launches are those expected, word for word."""
    return all(
        a.chunks == b.chunks and a.body == b.body and a.then == b.then and a.scratch == b.scratch
        and a.preparation == b.preparation and a.prepared == b.prepared
        and list(a.words) == [resolve(word) for word in b.words] for a, b in zip(launches, expected, strict=True))


__all__ = ["LaunchFamilies"]
