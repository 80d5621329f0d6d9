"""Intervals: dimensions of an iteration space as pairs of its suffix products, independent of how it is split.

Dimension d of a shape is the interval (product of the extents after d, that times the extent of d). Reductions over the
same elements have the same intervals, for any shapes of their operands.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import prod

from ..graph import view_algebra as algebra
from ..graph.value import Value

#: sums over leading dimensions are column sums in spaces of at least MIN_COLUMN_SUM elements, if the remaining
#: dimensions have at least MIN_ROW elements
MIN_COLUMN_SUM, MIN_ROW = 1 << 9, 64

Intervals = tuple[tuple[int, int], ...]


def merge_intervals(intervals: Iterable[tuple[int, int]]) -> Intervals:
    """Sort intervals and join adjacent ones."""
    merged: list[tuple[int, int]] = []
    for low, high in sorted(intervals):
        if low == high:
            continue
        if merged and merged[-1][1] == low:
            merged[-1] = (merged[-1][0], high)
        else:
            merged.append((low, high))
    return tuple(merged)


def suffix_intervals(shape: Sequence[int]) -> list[tuple[int, int]]:
    """The interval of each dimension.

    >>> suffix_intervals((2, 3, 4))
    [(12, 24), (4, 12), (1, 4)]
    """
    intervals, suffix = [], 1
    for extent in reversed(shape):
        intervals.append((suffix, suffix * extent))
        suffix *= extent
    return intervals[::-1]


def refine_space(space: Sequence[int], rows: Intervals) -> tuple[int, ...]:
    """The space split also at the ends of these intervals."""
    cuts = {1}
    for low, high in (*suffix_intervals(space), *rows):
        cuts |= {low, high}
    ordered = sorted(cuts)
    return tuple(b // a for a, b in pairwise(ordered))[::-1]


def elementary_intervals(space: Sequence[int], rows: Intervals) -> list[tuple[int, int]]:
    """The dimensions of the space, split at the ends of `rows`, that are inside `rows`."""
    return [each for each in suffix_intervals(refine_space(space, rows))
            if any(low <= each[0] and each[1] <= high for low, high in rows)]


def reduced_intervals(value: Value) -> Intervals:
    """The reduced dimensions of a reduction, as intervals of its argument's shape."""
    cuts = suffix_intervals(value.args[0].shape)
    return merge_intervals([cuts[d] for d in value.attrs[1]])


def row_intervals(value: Value, space: Sequence[int]) -> Intervals:
    """The rows of a group, from its first reduction: the reduced dimensions.

    A large sum over leading dimensions would read memory with a stride. Then the rows are the other, contiguous
    dimensions and the sum is a column sum, which no member of the group can read.
    """
    dims = reduced_intervals(value)
    if value.attrs[0] != "sum" or includes_innermost(dims) or prod(space) < MIN_COLUMN_SUM:
        return dims
    other = complement(space, dims)
    return dims if other is None or len(other) != 1 or interval_extent(other) < MIN_ROW else other


def complement(space: Sequence[int], rows: Intervals) -> Intervals | None:
    """The dimensions of the space outside `rows`; None where there are none."""
    refined = refine_space(space, rows)
    inside = set(elementary_intervals(space, rows))
    return merge_intervals([each for each in suffix_intervals(refined) if each not in inside])


def refine_outside_rows(space: Sequence[int], rows: Intervals, shape: Sequence[int]) -> tuple[int, ...] | None:
    """The space refined so that its dimensions outside `rows` refine a shape; None where they do not nest.

    >>> refine_outside_rows((12, 5), ((1, 5),), (3, 4))
    (3, 4, 5)
    >>> refine_outside_rows((4, 6, 5), ((1, 5),), (6, 4)) is None
    True
    """
    refined = refine_space(space, rows)
    inside = set(elementary_intervals(space, rows))
    is_row = [cut in inside for cut in suffix_intervals(refined)]
    outer = algebra.common_refinement([n for n, row in zip(refined, is_row, strict=True) if not row], shape)
    if outer is None:
        return None
    result: list[int] = []
    outer_extents = list(outer)
    for extent, row in zip(reversed(refined), reversed(is_row), strict=True):
        if row:
            result.append(extent)
            continue
        while extent > 1:
            result.append(outer_extents.pop())
            extent //= result[-1]
    return tuple(reversed(result))


def includes_innermost(dims: Intervals) -> bool:
    """Whether the intervals include the innermost dimension, of stride 1."""
    return bool(dims) and dims[0][0] == 1


def interval_extent(rows: Intervals) -> int:
    """The number of elements of one row."""
    return prod(high // low for low, high in rows)


def shows_whole_base(arg: Value) -> bool:
    """Whether a value reads all elements of its base in row-major order."""
    return arg.op != "view" or (arg.offset == 0 and arg.size == arg.base.size and algebra.is_dense(
        arg.shape, arg.strides))


def broadcasts_row_results(space: tuple[int, ...], rows: Intervals, arg: Value) -> bool:
    """Whether a view over the space broadcasts each element of its base along one row."""
    if arg.op != "view" or arg.offset:
        return False
    common = algebra.common_refinement(space, arg.shape)
    if common is None:
        return False
    refined = refine_space(common, rows)
    if algebra.common_refinement(refined, arg.shape) != refined and prod(refined) > 1:
        return False
    strides = algebra.split_strides(arg.shape, arg.strides, refined)
    inside = set(elementary_intervals(common, rows))
    expected = 1
    for cut, extent, step in reversed(list(zip(suffix_intervals(refined), refined, strides, strict=True))):
        if extent == 1:
            continue
        if cut in inside:
            if step:
                return False
        else:
            if step != expected:
                return False
            expected *= extent
    return True


__all__ = ["Intervals", "broadcasts_row_results", "complement", "elementary_intervals", "includes_innermost",
           "interval_extent", "merge_intervals", "reduced_intervals", "refine_outside_rows", "refine_space",
           "row_intervals", "shows_whole_base", "suffix_intervals"]
