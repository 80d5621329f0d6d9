"""Launches for any number of rows: kernels planned once, with a symbolic number.

What depends on the number of rows, `n`, are words of the launches' plans, which are `factor * ceil(n / 2**shift) +
constant` for all numbers of an interval. Generated code sets them in each call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ....backends.compiled.launching import Plan
from ....runtime import launch as launching
from ....runtime import thread_pool
from ....runtime.filling import Filling, NewArray, NewRows, with_filling
from ....runtime.launch import Launch, Spec
from ....runtime.symbolic_integers import PlannedSizes, is_symbolic, largest

ndarray = np.ndarray
_BYTE = np.dtype(np.uint8)
#: the most chunks of a launch, which the caller runs one after the other
CHUNKS = 8
#: a word to set: its address, and how it follows from the number of rows (`codegen.free_rows`)
Setting = tuple[int, int, int, int, int]


class Rows(NamedTuple):
    """A row-major array of `n` rows.

    Attributes:
        rest: the shape of a row.
        free: how many extents the rows have.
    """

    rest: tuple[int, ...]
    dtype: np.dtype
    free: int

    def like(self, rest: tuple[int, ...], dtype: np.dtype) -> Rows:
        """As many rows of another shape and dtype."""
        return Rows(rest, dtype, self.free)

    def spec(self, n: Any) -> Spec:
        """The layout of so many rows."""
        return Spec.dense((n, *self.rest), self.dtype)


class Range(NamedTuple):
    """Numbers of rows: the least, that of the call, and the greatest."""

    least: int
    now: int
    most: int

    def between(self, least: int, most: int) -> Range | None:
        """Those of them that are in an interval, which has to have the call's."""
        return Range(max(self.least, least), self.now, min(self.most, most)) if least <= self.now <= most else None


class Step(NamedTuple):
    """An operator for any number of rows.

    Attributes:
        launches: functions with a `filling`, and the slots of their arrays: those of the operands by number, -1 for the
            result of the launch before.
        result: the result's layout.
        rows: the numbers of rows that it serves.
        settings: words to set.
    """

    launches: Sequence[tuple[Any, tuple[int, ...]]]
    result: Any
    rows: Range
    settings: Sequence[Setting] = ()


def planned_by_rows(make: Callable[[Any], Sequence[Launch]], rows: Range, results: Sequence[Any],
                    operands: Sequence[Any], scalars: Sequence[np.dtype] = ()) -> Step | None:
    """The step that launches kernels.

    Args:
        make: gives the launches for a symbolic number of rows, over the results and operands.
        results: new arrays (`Rows`, `NewArray`), the first of which is the result.
        operands: sources of arrays and scalars, as those of a `Filling`.
        scalars: dtypes of Python numbers after the arrays.
    """
    found = _widest(make, rows)
    if found is None:
        return None
    launches, interval = found
    fixed: list[Launch] = []
    settings: list[tuple[int, int, tuple[int, int, int, int]]] = []  # launch, word or -1 for its chunks, how it follows
    first, end = interval.least - rows.least, interval.most + 1 - rows.least
    numbers = np.arange(interval.least, interval.most + 1)
    each: Any
    for k, each in enumerate(launches):
        words = list(each.words)
        for i, word in enumerate([*words, each.chunks]):
            if is_symbolic(word):
                formula = formula_of(numbers, word.values[first:end])
                if formula is None:
                    return None
                before, shift, factor, constant = formula
                if i < len(words):
                    settings.append((k, i, formula))
                elif factor:
                    settings.append((k, -1, (before, shift, factor, constant + thread_pool.CALLER_ONLY)))
        words = [int(word.values[end - 1]) if is_symbolic(word) else word for word in words]
        fixed.append(each._replace(chunks=1, words=tuple(words), scratch=largest(each.scratch)))
    plan = Plan([(x.rest if x.__class__ is Rows else x.shape, x.dtype, None) for x in results], fixed, scalars)
    addresses = [(plan.address_of(k, i), *formula) for k, i, formula in settings]
    pool, owner = thread_pool.lasting_pool()
    new: list[Any] = [NewRows(x.rest, x.dtype) if x.__class__ is Rows else x for x in results]
    if plan.scratch:
        new.insert(0, NewArray((plan.scratch + launching.ALIGNMENT,), _BYTE))
    arguments = [x for x in operands if x.__class__ is int]
    filling = Filling(plan.enter, ([pool], *new, *operands), (plan, owner), int(plan.scratch > 0))
    return Step([(launch_of_filling(filling), tuple(sorted(set(arguments))))], results[0], interval, addresses)


def _widest(make: Callable[[Any], Sequence[Launch]], rows: Range) -> tuple[Sequence[Launch], Range] | None:
    """Launches that serve the call's number of rows and as many others as may be, and which."""
    found = _planned_for(make, rows, rows.now)
    if found is None:
        return None
    launches, interval = found
    sample = rows.most
    while sample > rows.now:  # blocks are as long as the number that decides allows
        other = _planned_for(make, rows, sample)
        if other is not None and other[1].most > interval.most:
            return other
        sample //= 2
    return (launches, interval) if interval.most > interval.least else None


def _planned_for(make: Callable[[Any], Sequence[Launch]], rows: Range,
                 sample: int) -> tuple[Sequence[Launch], Range] | None:
    """The launches that one number of rows decides on, and the numbers that they serve, the call's among them."""
    if rows.most <= rows.least:
        return None
    numbers = np.arange(rows.least, rows.most + 1)
    sizes = PlannedSizes([numbers], sample - rows.least)
    launches = make(sizes.symbols()[0])
    served, at = sizes.served.copy(), rows.now - rows.least
    if not launches or not served[at]:
        return None
    each: Any
    for each in launches:
        if is_symbolic(each.chunks):
            several = each.chunks.values <= CHUNKS
            several[~sizes.served] = False
            first, last = _run(several, at) if several[at] else (at, at)
            if last > first and formula_of(numbers[first:last + 1], each.chunks.values[first:last + 1]) is not None:
                served &= several
            else:
                served &= each.chunks.values == 1
        elif each.chunks != 1:
            return None
    if not served[at]:
        return None
    first, last = _run(served, at)
    return launches, Range(rows.least + first, rows.now, rows.least + last)


def _run(served: ndarray, at: int) -> tuple[int, int]:
    """The first and last number of the run of served ones around one."""
    gaps = np.flatnonzero(~served)
    return int(gaps[gaps < at].max(initial=-1)) + 1, int(gaps[gaps > at].min(initial=len(served))) - 1


def formula_of(numbers: ndarray, values: ndarray) -> tuple[int, int, int, int] | None:
    """How values follow from a range of numbers: what is added, the shift, the factor and the constant; or None."""
    for shift in range(7):
        before = (1 << shift) - 1
        quotients = (numbers + before) >> shift
        steps = int(quotients[-1] - quotients[0])
        factor = int(values[-1] - values[0]) // steps if steps else 0
        constant = int(values[0]) - factor * int(quotients[0])
        if (values == factor * quotients + constant).all():
            return before, shift, factor, constant
    return None


def launch_of_filling(filling: Filling) -> Callable[..., Any]:
    """A launch that generated code alone runs."""
    def launch(*arrays: ndarray) -> Any:
        raise NotImplementedError("a launch of any number of rows is run by generated code")

    return with_filling(launch, filling)


__all__ = ["Range", "Rows", "Setting", "Step", "formula_of", "launch_of_filling", "planned_by_rows"]
