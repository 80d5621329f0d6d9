"""Arithmetic on views: shapes, and strides in elements of a dense row-major base."""

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
    """Whether these strides visit 0, 1, 2, ... in row-major order (strides of dimensions of extent 1 are ignored).

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


def reshape_strides(shape: Sequence[int], strides: Sequence[int], new_shape: Sequence[int]) -> tuple[int, ...] | None:
    """Strides of a reshape without a copy; None where the reshape needs one.

    >>> reshape_strides((4, 6), (6, 1), (2, 2, 6))
    (12, 6, 1)
    >>> reshape_strides((4, 6), (1, 4), (24,)) is None
    True
    """
    if prod(shape) == 0:
        return dense_strides(new_shape)
    dims = [(extent, step) for extent, step in zip(shape, strides, strict=True) if extent != 1]
    result: list[int] = [0] * len(new_shape)
    i, j = len(dims) - 1, len(new_shape) - 1
    while j >= 0:
        if new_shape[j] == 1:
            result[j] = 1 if j == len(new_shape) - 1 else result[j + 1] * new_shape[j + 1]
            j -= 1
            continue
        if i < 0:
            return None
        extent, step = dims[i]
        i -= 1
        while extent % new_shape[j] or extent < new_shape[j]:  # several old dimensions form this one
            if i < 0 or dims[i][1] != step * extent:
                return None
            extent *= dims[i][0]
            i -= 1
        new_stride = step
        while True:  # this one may split into several new dimensions
            result[j] = new_stride
            new_stride *= new_shape[j]
            extent //= new_shape[j]
            j -= 1
            if extent == 1:
                break
            while j >= 0 and new_shape[j] == 1:
                result[j] = new_stride
                j -= 1
            if j < 0:
                return None
            while extent % new_shape[j]:
                if i < 0 or dims[i][1] * 1 != new_stride * extent:
                    return None
                extent *= dims[i][0]
                i -= 1
    return tuple(result)


def split_strides(shape: Sequence[int], strides: Sequence[int], fine: Sequence[int]) -> tuple[int, ...]:
    """Strides in the shape `fine`, which splits dimensions of `shape` and merges none.

    >>> split_strides((4, 6), (0, 1), (2, 2, 3, 2))
    (0, 0, 2, 1)
    """
    result: list[int] = []
    j = len(fine) - 1
    for extent, step in zip(reversed(shape), reversed(strides), strict=True):
        rest, stride = extent, step
        while rest > 1:
            if fine[j] != 1:
                result.append(stride)
                stride *= fine[j]
                rest //= fine[j]
            else:
                result.append(0)
            j -= 1
    while j >= 0:
        result.append(0)
        j -= 1
    return tuple(reversed(result))


def common_refinement(*shapes: Sequence[int]) -> tuple[int, ...] | None:
    """The coarsest shape that splits every one of these shapes of equal size; None where there is none.

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
    result: list[int] = []
    previous = 1
    for cut in sorted(cuts):
        if cut % previous:
            return None
        result.append(cut // previous)
        previous = cut
    return tuple(reversed(result))
