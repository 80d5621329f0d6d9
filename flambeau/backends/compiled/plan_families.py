"""Plan families: launch plans for ever other sizes, planned once with a symbolic extent.

Planning takes ten times as long as a kernel on some thousand elements. The layouts of a family differ in one extent: it
is several extents of the arrays, and strides are multiples of it. After a few members their launches are planned for
all extents of an interval at once (`runtime.symbolic_integers`), as a table of the values of each word. Another member
is recognised by its layouts alone, and its plan is a copy of one block with its row of the table. A family is used only
where its words, or else the bits of its results, are those of plans for one layout.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any

import numpy as np

from ...runtime.launch import Launch, Spec, resolve
from ...runtime.symbolic_integers import PlannedSizes, is_symbolic
from ...runtime.thread_pool import CALLER_ONLY
from . import launching
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
#: words as an array, the places of those that depend on the extent, and their values by extent
_Table = tuple[ndarray, ndarray, ndarray]
#: shape, dtype and strides (None: row-major) of a result
Out = tuple[tuple[int, ...], np.dtype, tuple[int, ...] | None]


class PlanFamily:
    """Launches for the extents of an interval.

    Args:
        least: the first extent.
        served: which extents are served.
        launches: with symbolic words.
    """

    __slots__ = ("_blocks", "_launches", "_least", "served")

    def __init__(self, least: int, served: ndarray, launches: Sequence[Launch]) -> None:
        self._least, self.served = least, served
        count = len(served)
        self._launches = [(each, _table(each.words, count), _table((each.chunks,), count),
                           _table((each.scratch,), count)) for each in launches]
        self._blocks: _Blocks | None = None

    def serves(self, n: int) -> bool:
        """Whether there are launches for an extent."""
        return bool(self.served[n - self._least])

    def launches(self, n: int) -> list[Launch]:
        """The launches for an extent."""
        at = n - self._least
        found = []
        for each, (words, places, table), chunks, scratch in self._launches:
            row: Any = words.copy()  # stands for the tuple of words
            row[places] = table[at]
            found.append(each._replace(words=row, chunks=_at(chunks, at), scratch=_at(scratch, at)))
        return found

    def plan(self, n: int, outs: Sequence[Out], scalars: Sequence[np.dtype]) -> Plan:
        """The plan for an extent; the scalars are the same for all."""
        blocks = self._blocks
        if blocks is None:
            blocks = self._blocks = _Blocks(self._launches, scalars)
        return blocks.plan(n - self._least, outs)


class _Blocks:
    """The blocks of a family's plans, with the words of their launches behind them: what is copied, and a table of the
    words that depend on the extent.

    Args:
        launches: with tables of their words, chunks and bytes of scratch memory.
        scalars: dtypes of Python numbers that are passed after the arrays.
    """

    __slots__ = ("_addresses", "_divided", "_owners", "_places", "_scratch", "_table", "_words")

    def __init__(self, launches: Sequence[tuple[Launch, _Table, _Table, _Table]], scalars: Sequence[np.dtype]) -> None:
        words = [*launching.block_head(len(launches), scalars)]
        columns: list[tuple[int, ndarray]] = []
        chunks = np.array([_column(each) for _, _, each, _ in launches])
        for (each, *_), column in zip(launches, chunks, strict=True):
            columns.append((len(words) + launching.CHUNKS, column))
            words += resolve(each.body), 0, 0, resolve(each.then)
        self._addresses: list[tuple[int, int]] = []  # the word with the address of a launch's words; their offset
        for k, (_, (fixed, places, table), _, _) in enumerate(launches):
            self._addresses.append((launching.HEAD + launching.EACH * k + launching.ADDRESS, 8 * len(words)))
            columns += [(len(words) + place, column) for place, column in zip(places.tolist(), table.T, strict=True)]
            words += fixed.tolist() or [0]
        self._scratch = np.array([_column(each) for *_, each in launches]).max(0)
        self._divided: ndarray = np.any(chunks > 1, 0)
        columns.append((launching.SCRATCH, self._scratch > 0))
        shared: ndarray = np.any((chunks > 1) & (chunks < CALLER_ONLY), 0)
        columns.append((launching.RELEASES_GIL, shared))
        self._words = np.array(words, np.int64)
        for place, column in columns:
            self._words[place] = column[0]
        varying = [(place, column) for place, column in columns if (column != column[0]).any()]
        self._places = np.array([place for place, _ in varying], np.intp)
        self._table = np.array([column for _, column in varying], np.int64).T.reshape(len(self._scratch), -1).copy()
        self._owners = [each.library for each, *_ in launches]

    def plan(self, at: int, outs: Sequence[Out]) -> Plan:
        """The plan for an extent, given from the least on."""
        block = self._words.copy()
        block[self._places] = self._table[at]
        start = block.ctypes.data
        for place, offset in self._addresses:
            block[place] = start + offset
        return Plan.of_block(block, outs, int(self._scratch[at]), bool(self._divided[at]), self._owners)


def _table(words: Sequence[Any], count: int) -> _Table:
    """Words as an array, the places of those that depend on the extent, and their values by extent."""
    places = [i for i, word in enumerate(words) if is_symbolic(word)]
    fixed = np.array([0 if is_symbolic(word) else resolve(word) for word in words], np.int64)
    table = np.empty((count, len(places)), np.int64)
    for k, i in enumerate(places):
        table[:, k] = words[i].values
    return fixed, np.array(places, np.intp), table


def _column(table: _Table) -> ndarray:
    """The values of one word by extent."""
    words, places, values = table
    return values[:, 0] if places.size else np.full(len(values), words[0])


def _at(table: _Table, at: int) -> int:
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

    def matcher(self) -> tuple[int, int, Callable[[int, Sequence[np.dtype]], tuple[Any, ...]], list[np.dtype]]:
        """An array and a dimension with the extent, and a function of the extent and the dtypes: the layouts.

        >>> array, dim, layouts, dtypes = _Pattern([Spec.dense((7, 20), np.dtype("f4"))], 7).matcher()
        >>> array, dim, layouts(9, dtypes)
        (0, 0, (((9, 20), (80, 4), dtype('float32')),))
        """
        parts = []
        at = next((i, shape.index(-1)) for i, shape in enumerate(self.key[::2]) if -1 in shape)
        for i, (shape, strides, dtype) in enumerate(zip(self.key[::2], self.key[1::2], self.dtypes, strict=True)):
            steps: list[str] = []
            if strides is None:
                factor, power = dtype.itemsize, 0
                for extent in reversed(shape):
                    steps.append("*".join([str(factor), *["n"] * power]))
                    power += extent < 0
                    factor *= 1 if extent < 0 else extent
                steps.reverse()
            else:
                steps = [f"{step[0] * dtype.itemsize}*n" if step.__class__ is tuple else str(step) for step in strides]
            extents = ["n" if extent < 0 else str(extent) for extent in shape]
            parts.append(f"(({''.join(f'{each}, ' for each in extents)}), ({''.join(f'{each}, ' for each in steps)}), "
                         f"dtypes[{i}])")
        return *at, eval(f"lambda n, dtypes: ({', '.join(parts)},)"), self.dtypes


class _Served:
    """The families of one pattern.

    Attributes:
        families: by the interval of extents.
    """

    __slots__ = ("_array", "_dim", "_dtypes", "_layouts", "families")

    def __init__(self, pattern: _Pattern) -> None:
        self._array, self._dim, self._layouts, self._dtypes = pattern.matcher()
        self.families: dict[int, list[PlanFamily]] = {}

    def find(self, specs: tuple[Spec, ...]) -> tuple[PlanFamily, int] | None:
        """The family that serves these layouts, and their extent."""
        if len(specs) <= self._array or len(specs[self._array].shape) <= self._dim:
            return None
        n = specs[self._array].shape[self._dim]
        families = self.families.get((n - 1).bit_length())
        if families is not None and n >= LEAST and self._layouts(n, self._dtypes) == specs:
            for family in families:
                if family.serves(n):
                    return family, n
        return None


class PlanFamilies:
    """The families of all kernels."""

    def __init__(self) -> None:
        self._counts: dict[Any, int] = {}
        self._served: dict[Any, dict[Any, _Served]] = {}
        self._lock = threading.Lock()

    def plan(self, what: Hashable, outs: Sequence[Out], specs: Sequence[Spec], make: Maker, writes: int,
             scalars: Sequence[np.dtype] = ()) -> Plan:
        """The plan for arrays of these layouts: that of `launches`.

        Args:
            outs: shape, dtype and strides of each result, as `Plan` takes them.
            scalars: dtypes of Python numbers that are passed after the arrays, which `what` determines.
        """
        found = self._find(what, specs)
        return Plan(outs, self._planned(what, specs, make, writes), scalars) if found is None else (
            found[0].plan(found[1], outs, scalars))

    def launches(self, what: Hashable, specs: Sequence[Spec], make: Maker, writes: int) -> Sequence[Launch]:
        """The launches for arrays of these layouts.

        Args:
            what: all that launches depend on beside the layouts.
            specs: of the arrays, in the order of the launches' pointers.
            make: plans launches.
            writes: how many arrays, the first ones, are written.
        """
        found = self._find(what, specs)
        return self._planned(what, specs, make, writes) if found is None else found[0].launches(found[1])

    def _find(self, what: Hashable, specs: Sequence[Spec]) -> tuple[PlanFamily, int] | None:
        """The family that serves these layouts, and their extent."""
        served = self._served.get(what)
        if served is not None:
            layouts = tuple(specs)
            for each in tuple(served.values()):
                found = each.find(layouts)
                if found is not None:
                    return found
        return None

    def _planned(self, what: Hashable, specs: Sequence[Spec], make: Maker, writes: int) -> Sequence[Launch]:
        """The launches for arrays of layouts that no family serves so far."""
        for n, pattern, key in self._choices(what, specs):
            with self._lock:
                count = self._counts[key] = self._counts.get(key, 0) + 1
                is_due = count % MEMBERS == 0 and count <= FAMILIES * MEMBERS
                if len(self._counts) >= COUNTED:
                    self.clear()
            if is_due:
                planned = _planned(pattern, n, make, writes)
                if planned is not None:
                    self._add(what, pattern, key, planned)
                    return planned.launches(n)
        return make(specs)

    def _add(self, what: Hashable, pattern: _Pattern, key: Any, family: PlanFamily) -> None:
        with self._lock:
            served = self._served.setdefault(what, {})
            name = key[1:3]
            each = served.get(name)
            if each is None:
                each = served[name] = _Served(pattern)
            each.families.setdefault(key[-1], []).append(family)

    def clear(self) -> None:
        """Forget all families."""
        self._counts.clear()
        self._served.clear()

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
    for family, numbers in candidates(n, lambda extent: make(pattern.specs(extent))):
        if all(_is_same(family.launches(k), pattern.specs(k), make, writes) for k in numbers):
            return family
    return None


def candidates(n: int, make: Callable[[Any], Sequence[Launch]]) -> Iterator[tuple[PlanFamily, list[int]]]:
    """Families for the extents of the interval that an extent is in, and the extents to compare them with plans of.

    Args:
        make: gives the launches for an extent, which may be symbolic.
    """
    most = 1 << (n - 1).bit_length()
    least = max(LEAST, most // 2 + 1)
    numbers = np.arange(least, most + 1)
    for sample in (most, n):
        sizes = PlannedSizes([numbers], sample - least, exact=True)
        launches = make(sizes.symbols()[0])
        if launches and sizes.served[n - least] and sizes.served.sum() >= FEWEST:
            served = numbers[sizes.served]
            yield PlanFamily(least, sizes.served, launches), list(dict.fromkeys((int(served[0]), n, int(served[-1]))))


def _is_same(launches: Sequence[Launch], specs: Sequence[Spec], make: Maker, writes: int) -> bool:
    """Whether launches compute what those planned for the layouts alone compute."""
    expected = make(specs)
    if len(launches) == len(expected) and all(
            a.chunks == b.chunks and a.body == b.body and a.scratch == b.scratch and list(a.words) == [
                resolve(word) for word in b.words] for a, b in zip(launches, expected, strict=True)):
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

__all__ = ["COUNTED", "FAMILIES", "FAMILIES_OF_PLANS", "LEAST", "MEMBERS", "MOST", "Maker", "PlanFamilies",
           "PlanFamily", "candidates"]
