"""Strides by PyTorch's rules: which images are channels-last, and the strides of copies that keep a layout."""

from __future__ import annotations

import numpy as np

ndarray = np.ndarray


def is_channels_last(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Whether the strides of an image (N, C, *spatial), dense or not, ascend from channels over rows to the batch.

    Strides of dimensions of size 1 count, too: with one channel they are all that tells the two formats apart.

    >>> is_channels_last((2, 1, 4, 4), (16, 1, 4, 1)), is_channels_last((2, 1, 4, 4), (16, 16, 4, 1))
    (True, False)
    """
    if len(shape) not in (4, 5) or strides[-1] < strides[1] or not strides[1]:
        return False
    least = 0
    for dim in (1, *range(len(shape) - 1, 1, -1), 0):
        if not shape[dim] or strides[dim] < least or (dim == 0 and least == strides[1]):
            return False
        least = strides[dim] * shape[dim]
    return True


def channels_last_strides(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """Strides of a channels-last array of this shape.

    >>> channels_last_strides((2, 3, 5), 4)
    (60, 4, 12)
    """
    _, c, *spatial = shape
    strides, stride = [], c * itemsize
    for extent in reversed(spatial):
        strides.append(stride)
        stride *= extent
    return stride, itemsize, *reversed(strides)


def to_channels_last(x: ndarray) -> ndarray:
    """`x` (N, C, *spatial), as it is or copied to a channels-last array."""
    strides = channels_last_strides(x.shape, x.itemsize)
    if x.strides == strides:
        return x
    result = ndarray(x.shape, x.dtype, np.empty(x.shape, x.dtype), 0, strides)
    result[...] = x
    return result


def preserved_strides(like: ndarray, itemsize: int) -> tuple[int, ...]:
    """Strides of a dense array in the layout of another: its own where it is dense, its order of dimensions otherwise.

    >>> preserved_strides(np.zeros((2, 6, 5)).transpose(0, 2, 1)[:, :, ::2], 8)
    (120, 8, 40)
    """
    shape, strides = like.shape, like.strides
    expected = like.itemsize
    for stride, extent in sorted(zip(strides, shape, strict=True)):
        if extent != 1:
            if stride != expected:
                break
            expected *= extent
    else:
        return strides if itemsize == like.itemsize else tuple([s // like.itemsize * itemsize for s in strides])
    order = list(range(len(shape) - 1, -1, -1))
    for i in range(1, len(order)):  # insertion sort: dimensions of stride 0 keep their places
        for j in range(i, 0, -1):
            inner, outer = order[j - 1], order[j]
            if not strides[inner] or not strides[outer]:
                continue
            if (strides[inner], shape[inner]) > (strides[outer], shape[outer]):
                order[j - 1], order[j] = outer, inner
            elif strides[inner] < strides[outer]:
                break
    result = [0] * len(shape)
    for dim in order:
        result[dim] = itemsize
        itemsize *= shape[dim]
    return tuple(result)


def with_preserved_strides(copy: ndarray, like: ndarray) -> ndarray:
    """A copy in NumPy's order "K", with PyTorch's strides: NumPy's differ in dimensions of size 1."""
    if 1 not in like.shape and like.flags.c_contiguous and copy.flags.c_contiguous:
        return copy
    if not copy.size or 0 in like.strides or like.ndim < 2 or (
            copy.itemsize == like.itemsize and copy.strides == like.strides):
        return copy
    strides = preserved_strides(like, copy.itemsize)
    if copy.strides == strides:
        return copy
    dense = copy.transpose(sorted(range(copy.ndim), key=lambda dim: -copy.strides[dim]))  # a buffer must be contiguous
    result = ndarray(copy.shape, copy.dtype, dense, 0, strides)
    if any(n != 1 and a != b for n, a, b in zip(copy.shape, copy.strides, strides, strict=True)):
        result = ndarray(copy.shape, copy.dtype, np.empty(copy.shape, copy.dtype), 0, strides)  # `like` overlaps itself
        result[...] = copy
    return result


__all__ = ["channels_last_strides", "is_channels_last", "preserved_strides", "to_channels_last",
           "with_preserved_strides"]
