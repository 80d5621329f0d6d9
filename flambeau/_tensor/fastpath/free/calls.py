"""Calls of any number of rows as entries of known calls: what functions do that see ever other shapes.

A call of which Python has seen many layouts is planned once more, with a symbolic number of rows: the tensors whose
first extents are equal have `n` rows there, all others are as they are.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from .... import codegen
from ....modes import special
from ....ops.declare import ELEMENTWISE
from ...tensor import Tensor
from ..call_observation import observe
from ..known_calls import CallTable
from ..repeated_layouts import FREE, LONGEST_FREE_WAIT, MOST, PROOFS, KnownCalls, is_new, observing, same_arrays
from .elementwise import elementwise, masked_fill
from .programs import PROGRAMS
from .rows import Range, Rows, Setting
from .steps import STEPS

ndarray = np.ndarray
#: the fewest numbers of rows that an entry is for
FEWEST = 8


class FreeCall(NamedTuple):
    """A call of any number of rows.

    Attributes:
        free: how many first extents are free.
        of_rows: which tensors have them.
        steps: launches with the slots of their arrays.
        least, most: numbers of rows.
        settings: words to set.
    """

    free: int
    of_rows: tuple[bool, ...]
    steps: list[tuple[Any, tuple[int, ...]]]
    least: int
    most: int
    settings: list[Setting]


def free_call(call: Any) -> FreeCall | None:
    """The call of any number of rows of an observed one (`call_observation`); None where there is none."""
    if not codegen.available() or call.several is not None or any(call.views) or any(call.templates):
        return None
    for free, of_rows, n in _choices(call.arrays):
        found = _planned(call, free, of_rows, n)
        if found is not None:
            return found
    return None


def _choices(arrays: Sequence[ndarray]) -> Iterator[tuple[int, tuple[bool, ...], int]]:
    """How many first extents may be free, of which arrays, and their product."""
    if any(not a.flags.c_contiguous or not a.size for a in arrays):
        return
    seen = set()
    for a in arrays:
        for free in range(a.ndim, 0, -1):
            extents = a.shape[:free]
            of_rows = tuple([each.shape[:free] == extents for each in arrays])
            if (free, of_rows) not in seen and prod(extents) > 1:
                seen.add((free, of_rows))
                yield free, of_rows, prod(extents)


def _planned(call: Any, free: int, of_rows: tuple[bool, ...], n: int) -> FreeCall | None:
    values: list[Any] = [Rows(a.shape[free:], a.dtype, free) if each else a
                         for a, each in zip(call.arrays, of_rows, strict=True)]
    if any(x.__class__ is ndarray and x.ndim > max(len(y.rest) for y in values if y.__class__ is Rows) and call.steps[
            0][0].kind == ELEMENTWISE for x in values):
        return None
    largest_row = max(prod(x.rest) for x in values if x.__class__ is Rows)
    rows = Range(2, n, MOST // largest_row)
    if rows.most < n:
        return None
    slots: list[int] = list(range(len(values)))  # of the entry, by slot of the call
    launches: list[Any] = []
    settings: list[Setting] = []
    for op, sources, params in call.steps:
        operands = [x if slot < 0 else values[slot] for slot, x in sources]
        given = [slot for slot, _ in sources if slot >= 0]
        all_params = {name: params[name] if name in params else op.defaults[name] for name in op.params}
        make = STEPS.get(op.name) or PROGRAMS.get(op.name) or (
            masked_fill if op.name == "masked_fill" else elementwise if op.kind == ELEMENTWISE else None)
        step = None if make is None else make(op, operands, all_params, rows)
        if step is None:
            return None
        for launch, own in step.launches:
            launches.append((launch, tuple([
                len(call.arrays) + len(launches) - 1 if k < 0 else slots[given[k]] for k in own])))
        slots.append(len(call.arrays) + len(launches) - 1)
        values.append(step.result)
        settings += step.settings
        rows = step.rows
    if rows.most - rows.least < FEWEST or call.last != len(call.arrays) + len(call.steps) - 1:
        return None
    return FreeCall(free, of_rows, launches, rows.least, rows.most, settings)


class FreeCandidate:
    """An entry of any number of rows whose results are compared with those of Python.

    Args:
        table: has it, and no other; it has to live as long as `enter` may be called.
        call: the call.

    Attributes:
        comparisons, others: how many calls it ran, and how many were not its.
    """

    __slots__ = ("_table", "call", "comparisons", "enter", "others")

    def __init__(self, table: Any, call: FreeCall) -> None:
        self._table, self.enter, self.call = table, table.enter, call
        self.comparisons = self.others = 0


def _candidate(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any],
              differentiable: bool) -> FreeCandidate | None:
    """The entry of a call, alone; None where there is none."""
    tensors = [x for x in (*args, *kwargs.values()) if isinstance(x, Tensor)]
    if not tensors or len(set(map(id, tensors))) < len(tensors) or any(
            x._array.__class__ is not ndarray for x in tensors):
        return None
    with warnings.catch_warnings():  # the function has run, and warned, before
        warnings.simplefilter("ignore")
        _, seen = observe(function, args, kwargs, tensors, observing)
    found = None if seen is None else free_call(seen)
    if found is None:
        return None
    table = CallTable(differentiable)
    return None if table.add_free(args, kwargs, found) is None else FreeCandidate(table, found)


def observe_free(known: KnownCalls, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any],
                 result: Any) -> Callable[..., Any] | None:
    """Plan a call for any number of rows, or compare the results of such a plan; add it at last.

    Args:
        known: the function's known calls.
        function: what computed the result.

    Returns:
        `CallTable.enter`, where there is an entry.
    """
    known.free_left = known.free_wait = min(2 * known.free_wait, LONGEST_FREE_WAIT)
    if special[0] or not is_new(result):
        return None
    found = known.candidate
    if found is None:
        found = _candidate(function, args, kwargs, known.differentiable)
        if found is None:
            return None
    known.candidate = None
    computed = found.enter(args, kwargs)
    if computed is None or computed is False:
        found.others += 1
    elif not same_arrays(computed._array, result._array):
        return None
    else:
        found.comparisons += 1
    if found.comparisons <= PROOFS:
        if found.others <= 2 * FREE:  # else other calls come more often
            known.candidate, known.free_left = found, 1
        return None
    known.free_left = known.free_wait = FREE
    return known.add_free(args, kwargs, found.call)


__all__ = ["FreeCall", "free_call", "observe_free"]
