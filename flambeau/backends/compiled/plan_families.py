"""Plan families: launch plans for ever other sizes, planned once with a symbolic extent.

Planning takes ten times as long as a kernel on some thousand elements. The layouts of a family differ in one extent: it
is several extents of the arrays, and strides are multiples of it. After a few members their launches are planned for
all extents of an interval at once (`runtime.symbolic_integers`), as a table of the values of each word. Another member
copies its row. A family is used only where its words, or else the bits of its results, are those of plans for one
layout.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any

import numpy as np

from ...runtime import launch as launching
from ...runtime.launch import Launch, Spec
from ...runtime.symbolic_integers import PlannedSizes, is_symbolic
from .launching import Plan

ndarray = np.ndarray
#: layouts of a family that are planned one by one before the family is
MEMBERS = 4
#: extents below this are never symbolic; intervals double from there
LEAST = 9
#: the largest extent
MOST = 1 << 14
#: families of an interval: estimates are those of one extent, and decisions may differ
FAMILIES = 3
#: the fewest extents that are worth a family
FEWEST = 8
#: the most intervals of families that are counted
COUNTED = 4096
#: the most bytes of arrays on which plans are compared
COMPARED = 1 << 22
#: gives launches over arrays of these layouts
Maker = Callable[[Sequence[Spec]], Sequence[Launch]]


class PlanFamily:
    """Launches for the extents of an interval.

    Args:
        least: the first extent.
        served: which extents are served.
        launches: with symbolic words.
    """

    __slots__ = ("_launches", "_least", "served")

    def __init__(self, least: int, served: ndarray, launches: Sequence[Launch]) -> None:
        self._least, self.served = least, served
        self._launches = [(each, *_table(each.words, len(served)), _table((each.chunks,), len(served)),
                           _table((each.scratch,), len(served))) for each in launches]

    def serves(self, n: int) -> bool:
        """Whether there are launches for an extent."""
        return bool(self.served[n - self._least])

    def launches(self, n: int) -> list[Launch]:
        """The launches for an extent."""
        at = n - self._least
        found = []
        for each, words, places, table, chunks, scratch in self._launches:
            row: Any = words.copy()  # stands for the tuple of words
            row[places] = table[at]
            found.append(each._replace(words=row, chunks=_at(chunks, at), scratch=_at(scratch, at)))
        return found


def _table(words: Sequence[Any], count: int) -> tuple[ndarray, ndarray, ndarray]:
    """Words as an array, the places of those that depend on the extent, and their values by extent."""
    places = [i for i, word in enumerate(words) if is_symbolic(word)]
    fixed = np.array([0 if is_symbolic(word) else launching.resolve(word) for word in words], np.int64)
    table = np.empty((count, len(places)), np.int64)
    for k, i in enumerate(places):
        table[:, k] = words[i].values
    return fixed, np.array(places, np.intp), table


def _at(table: tuple[ndarray, ndarray, ndarray], at: int) -> int:
    words, places, values = table
    return int(values[at, 0] if places.size else words[0])


class _Pattern:
    """Layouts as functions of one of their extents."""

    __slots__ = ("dtypes", "key")

    def __init__(self, specs: Sequence[Spec], n: int) -> None:
        key: list[Any] = []
        self.dtypes = [each.dtype for each in specs]
        for shape, steps, dtype in specs:
            key.append(tuple([-1 if extent == n else extent for extent in shape]))
            expected = dtype.itemsize
            for extent, step in zip(reversed(shape), reversed(steps), strict=True):
                if step != expected:
                    unit = n * dtype.itemsize
                    key.append(tuple([(step // unit,) if step and not step % unit else step for step in steps]))
                    break
                expected *= extent
            else:
                key.append(None)
        self.key = tuple(key)

    def specs(self, n: Any) -> list[Spec]:
        """The layouts for an extent, which may be symbolic."""
        found = []
        for shape, strides, dtype in zip(self.key[::2], self.key[1::2], self.dtypes, strict=True):
            extents = tuple([n if extent < 0 else extent for extent in shape])
            if strides is None:
                found.append(Spec.dense(extents, dtype))
            else:
                unit = n * dtype.itemsize
                found.append(Spec(extents, tuple([
                    step[0] * unit if step.__class__ is tuple else step for step in strides]), dtype))
        return found


class PlanFamilies:
    """The families of all kernels."""

    def __init__(self) -> None:
        self._counts: dict[Any, int] = {}
        self._families: dict[Any, list[PlanFamily]] = {}
        self._lock = threading.Lock()

    def launches(self, what: Hashable, specs: Sequence[Spec], make: Maker, writes: int) -> Sequence[Launch]:
        """The launches for arrays of these layouts.

        Args:
            what: all that launches depend on beside the layouts.
            specs: of the arrays, in the order of the launches' pointers.
            make: plans launches.
            writes: how many arrays, the first ones, are written.
        """
        for n, pattern, key in self._choices(what, specs):
            for family in self._families.get(key, ()):
                if family.serves(n):
                    return family.launches(n)
            with self._lock:
                count = self._counts[key] = self._counts.get(key, 0) + 1
                is_due = count % MEMBERS == 0 and count <= FAMILIES * MEMBERS
                if len(self._counts) >= COUNTED:
                    self.clear()
            if is_due:
                planned = _planned(pattern, n, make, writes)
                if planned is not None:
                    self._families.setdefault(key, []).append(planned)
                    return planned.launches(n)
        return make(specs)

    def clear(self) -> None:
        """Forget all families."""
        self._counts.clear()
        self._families.clear()

    @staticmethod
    def _choices(what: Hashable, specs: Sequence[Spec]) -> Iterator[tuple[int, _Pattern, Any]]:
        """Extents that may be symbolic, the layouts as functions of them, and their keys."""
        dtypes = tuple([each.dtype.char for each in specs])
        for n in dict.fromkeys([extent for each in specs for extent in each.shape]):
            if LEAST <= n <= MOST:
                pattern = _Pattern(specs, n)
                yield n, pattern, (what, dtypes, pattern.key, (n - 1).bit_length())


def _planned(pattern: _Pattern, n: int, make: Maker, writes: int) -> PlanFamily | None:
    """The family for the extents of the interval that an extent is in; None where there is none."""
    most = 1 << (n - 1).bit_length()
    least = max(LEAST, most // 2 + 1)
    numbers = np.arange(least, most + 1)
    for sample in (most, n):
        sizes = PlannedSizes([numbers], sample - least, exact=True)
        launches = make(pattern.specs(sizes.symbols()[0]))
        if launches and sizes.served[n - least] and sizes.served.sum() >= FEWEST:
            family = PlanFamily(least, sizes.served, launches)
            served = numbers[sizes.served]
            if all(_is_same(family.launches(k), pattern.specs(k), make, writes)
                   for k in dict.fromkeys((int(served[0]), n, int(served[-1])))):
                return family
    return None


def _is_same(launches: Sequence[Launch], specs: Sequence[Spec], make: Maker, writes: int) -> bool:
    """Whether launches compute what those planned for the layouts alone compute."""
    expected = make(specs)
    if len(launches) == len(expected) and all(
            a.chunks == b.chunks and a.body == b.body and a.scratch == b.scratch and list(a.words) == [
                launching.resolve(word) for word in b.words] for a, b in zip(launches, expected, strict=True)):
        return True
    if sum(each.size * each.dtype.itemsize for each in specs) > COMPARED:
        return False
    rng = np.random.default_rng(0)
    inputs = [_sample(rng, each) for each in specs[writes:]]
    if any(each is None for each in inputs):
        return False
    results = []
    for each in (launches, expected):
        written = [np.zeros(spec.shape, spec.dtype) for spec in specs[:writes]]
        if any(a.strides != spec.strides for a, spec in zip(written, specs, strict=False)):
            return False
        Plan([], each).run((*written, *inputs))
        results.append([a.tobytes() for a in written])
    return results[0] == results[1]


def _sample(rng: np.random.Generator, spec: Spec) -> ndarray | None:
    """An array of a layout with random numbers; None where there is none."""
    if spec.dtype.kind != "f" or spec.dtype.itemsize < 4 or any(stride < 0 for stride in spec.strides):
        return None
    extent = sum((n - 1) * stride for n, stride in zip(spec.shape, spec.strides, strict=True)) + spec.dtype.itemsize
    memory = rng.standard_normal(-(-extent // spec.dtype.itemsize)).astype(spec.dtype)
    return np.ndarray(spec.shape, spec.dtype, memory, 0, spec.strides)


#: the families of this process
FAMILIES_OF_PLANS = PlanFamilies()

__all__ = ["FAMILIES_OF_PLANS", "Maker", "PlanFamilies", "PlanFamily"]
