"""Constants of a graph that depend on sizes: counts, ranges, and tables such as the indices of a resampling.

One graph for many sizes has, in place of such a constant, what a run makes of it: a number that is computed, a part of
the largest one, or one of the tables for the values of a size, which are stored one behind the other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import lcm, prod
from typing import Any, NamedTuple

import numpy as np

from ....compiler.symbolic.formulas import NotSymbolic
from ....ir.graph import view_algebra as algebra
from ....ir.graph.value import Graph, Value
from ....runtime.symbolic_integers import SymbolicInteger, is_symbolic
from .formulas import Combination, FormulaSearch, SizeFormula, evaluate

#: the operation of such a value in a job
SIZED_CONSTANT = "sized constant"
#: the most bytes of the tables of one constant
MAX_TABLES = 1 << 22


class Number(NamedTuple):
    """One element, an integer that is a formula of the sizes."""

    formula: SizeFormula


class Part(NamedTuple):
    """The first elements along each dimension of the largest array."""

    largest: np.ndarray


class ByValue(NamedTuple):
    """Tables for the values of a size behind `before`, of `room` elements each; the first one is empty."""

    tables: np.ndarray
    size: int
    before: int
    room: int


#: gives the elements of a constant for a value of a size, the other sizes being any
Vary = Callable[[int, int], np.ndarray]


def sized_constant(
    arrays: Sequence[np.ndarray], probes: Sequence[Combination], search: FormulaSearch, vary: Vary, columns: Any
) -> Number | Part | ByValue:
    """What stands for a constant that has these elements for some combinations.

    Args:
        arrays: its elements.
        probes: the combinations.
        search: finds formulas.
        vary: captures the constant for a value of one size.
        columns: by size, its values.

    Raises:
        NotSymbolic: it depends on several sizes.
        MissingCombination: a formula needs another combination.
    """
    if any(a.dtype.kind not in "biuf" for a in arrays):
        raise NotSymbolic("a table of complex or narrow numbers")
    if all(a.size == 1 for a in arrays) and arrays[0].dtype.kind in "iuf":
        values = [a.item() for a in arrays]
        if all(float(n).is_integer() and abs(n) < 2**53 for n in values):
            try:
                formula = search.formula([int(n) for n in values])
            except NotSymbolic:
                pass
            else:
                assert isinstance(formula, SizeFormula)
                return Number(formula)
    largest = max(arrays, key=lambda a: a.size)
    reach = tuple(max(a.shape[d] for a in arrays) for d in range(largest.ndim))
    if largest.size > 1 and reach == largest.shape and all(
        a.tobytes() == largest[tuple(slice(n) for n in a.shape)].tobytes() for a in arrays
    ):
        return Part(largest)
    return _by_value(arrays, probes, vary, columns)


def _by_value(
    arrays: Sequence[np.ndarray], probes: Sequence[Combination], vary: Vary, columns: Sequence[Sequence[int]]
) -> ByValue:
    matters = [size for size, column in enumerate(columns) if _depends(size, column, probes[0], arrays[0], vary)]
    if len(matters) != 1:
        raise NotSymbolic("a table that depends on several sizes" if matters else "a table that differs")
    (size,) = matters
    before, highest = columns[size][0] - 1, columns[size][-1]
    tables = {n: vary(size, n) for n in columns[size]}
    for probe, array in zip(probes, arrays, strict=True):
        if tables[probe[size]].tobytes() != array.tobytes():
            raise NotSymbolic("a table that depends on several sizes")
    room = max(a.size for a in tables.values())
    dtype = arrays[0].dtype
    if room * (highest - before + 1) * dtype.itemsize > MAX_TABLES:
        raise NotSymbolic(f"a table for each of {len(tables)} sizes")
    stored = np.zeros((highest - before + 1, room), dtype)
    for n, a in tables.items():
        stored[n - before, : a.size] = a.reshape(-1)
    return ByValue(stored, size, before, room)


def _depends(size: int, column: Sequence[int], at: Combination, array: np.ndarray, vary: Vary) -> bool:
    others = [n for n in (column[0], column[len(column) // 2], column[-1]) if n != at[size]]
    return any(vary(size, n).tobytes() != array.tobytes() for n in others)


def restored(graph: Graph, constant: Any, shape: Sequence[Any], dtype: np.dtype, symbols: Sequence[Any]) -> Value:
    """The value that stands for a constant, in a graph for these sizes, which may be symbolic."""
    shape = tuple(shape)
    if isinstance(constant, Number):
        return graph.reshape(_number(graph, constant.formula, dtype, symbols), shape)
    if isinstance(constant, Part):
        # one more of each, so that no size has all of it: a view of all is the array itself, which other plans read
        a = np.pad(constant.largest, [(0, int(is_symbolic(n))) for n in shape])
        strides = algebra.dense_strides(a.shape)
        return graph.copy(graph.view(graph.constant(a), shape, strides, 0))
    offset = (symbols[constant.size] - constant.before) * constant.room
    whole = graph.constant(constant.tables)
    return graph.copy(graph.view(whole, shape, algebra.dense_strides(shape), offset))


def _number(graph: Graph, formula: SizeFormula, dtype: np.dtype, symbols: Sequence[Any]) -> Value:
    """An integer, computed in float64 from a table of small integers at the places of the symbols: exact to 2**53."""
    total: Any = None
    if formula.divisor != 1 or not any(
        isinstance(symbols[i], SymbolicInteger) for each in formula.terms for i in each.symbols
    ):
        return _at(graph, evaluate(formula, symbols), dtype)
    scale = lcm(*[each.factor.denominator for each in formula.terms])
    for factor, numbers in formula.terms:
        known = prod(int(symbols[i]) for i in numbers if not isinstance(symbols[i], SymbolicInteger))
        term: Any = float(int(factor * scale) * known)
        for i in numbers:
            if isinstance(symbols[i], SymbolicInteger):
                term = _at(graph, symbols[i], np.dtype(np.float64)) * term
        total = term if total is None else total + term
    return graph.cast(total / float(scale) if scale > 1 else total, dtype)


def _at(graph: Graph, n: Any, dtype: np.dtype) -> Value:
    """An integer as a value: the element of a table."""
    if not isinstance(n, SymbolicInteger):
        return graph.constant(np.asarray(n, dtype))
    if n.values.min() < 0:
        raise NotSymbolic("a negative number")
    table = graph.constant(np.arange(int(n.values.max()) + 1).astype(np.float64))
    place: Any = n
    return graph.cast(graph.copy(graph.view(table, (), (), place)), dtype)


__all__ = ["MAX_TABLES", "SIZED_CONSTANT", "ByValue", "Number", "Part", "restored", "sized_constant"]
