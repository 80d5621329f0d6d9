"""The algebra of views: shapes, and strides in elements of a dense array in row-major order."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod


def dense_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Strides of a row-major array.

    >>> dense_strides((2, 3, 4))
    (12, 4, 1)
    """
    strides, stride = [], 1
    for extent in reversed(shape):
        strides.append(stride)
        stride *= extent
    return tuple(reversed(strides))


def is_dense(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether these strides visit 0, 1, 2, ... in row-major order (dimensions of one element may say anything).

    >>> is_dense((2, 1, 3), (3, 7, 1))
    True
    """
    stride = 1
    for extent, step in zip(reversed(shape), reversed(strides), strict=True):
        if extent != 1:
            if step != stride:
                return False
            stride *= extent
    return True


def reshape_strides(shape: Sequence[int], strides: Sequence[int], wanted: Sequence[int]) -> tuple[int, ...] | None:
    """Strides that show the same elements in the same order in another shape; None where that takes a copy.

    >>> reshape_strides((4, 6), (6, 1), (2, 2, 6))
    (12, 6, 1)
    >>> reshape_strides((4, 6), (1, 4), (24,)) is None
    True
    """
    if prod(shape) == 0:
        return dense_strides(wanted)
    old = [(extent, step) for extent, step in zip(shape, strides, strict=True) if extent != 1]
    found: list[int] = [0] * len(wanted)
    i, j = len(old) - 1, len(wanted) - 1
    while j >= 0:
        if wanted[j] == 1:
            found[j] = 1 if j == len(wanted) - 1 else found[j + 1] * wanted[j + 1]
            j -= 1
            continue
        if i < 0:
            return None
        extent, step = old[i]
        i -= 1
        while extent % wanted[j] or extent < wanted[j]:  # more of the old dimensions make up this one
            if i < 0 or old[i][1] != step * extent:
                return None
            extent *= old[i][0]
            i -= 1
        stride = step
        while True:  # and perhaps further wanted ones fill it
            found[j] = stride
            stride *= wanted[j]
            extent //= wanted[j]
            j -= 1
            if extent == 1:
                break
            while j >= 0 and wanted[j] == 1:
                found[j] = stride
                j -= 1
            if j < 0:
                return None
            while extent % wanted[j]:
                if i < 0 or old[i][1] * 1 != stride * extent:
                    return None
                extent *= old[i][0]
                i -= 1
    return tuple(found)


def split_strides(shape: Sequence[int], strides: Sequence[int], fine: Sequence[int]) -> tuple[int, ...]:
    """Strides in the shape `fine`, which cuts dimensions of `shape` and merges none.

    >>> split_strides((4, 6), (0, 1), (2, 2, 3, 2))
    (0, 0, 2, 1)
    """
    found: list[int] = []
    j = len(fine) - 1
    for extent, step in zip(reversed(shape), reversed(strides), strict=True):
        left, stride = extent, step
        while left > 1:
            if fine[j] != 1:
                found.append(stride)
                stride *= fine[j]
                left //= fine[j]
            else:
                found.append(0)
            j -= 1
    while j >= 0:
        found.append(0)
        j -= 1
    return tuple(reversed(found))


def common_refinement(*shapes: Sequence[int]) -> tuple[int, ...] | None:
    """The coarsest shape that cuts all of these shapes of one size; None where their cuts do not nest.

    >>> common_refinement((12, 8), (3, 32))
    (3, 4, 8)
    >>> common_refinement((4, 6), (6, 4)) is None
    True
    """
    cuts: set[int] = set()
    for shape in shapes:
        suffix = 1
        for extent in reversed(shape):
            suffix *= extent
            cuts.add(suffix)
    cuts.discard(1)
    found: list[int] = []
    before = 1
    for cut in sorted(cuts):
        if cut % before:
            return None
        found.append(cut // before)
        before = cut
    return tuple(reversed(found))
