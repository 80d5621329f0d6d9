"""Strides by PyTorch's rules: which images are channels-last, and the strides of copies that keep a layout."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..shapes import contiguous_strides

ndarray = np.ndarray

#: [whether operands may have another layout than row-major: 1 once there was one that has, 2 once there was one where
#: only the strides in dimensions of size 1 tell the layout from row-major]: until then results are row-major. Whatever
#: makes an array of another layout notes it: permutations, views by strides, factorizations, transforms, foreign arrays
layouts_seen: list[int] = [False]  # which Python tests faster than 0


def note_layout(x: ndarray) -> None:
    """Note the layout of an array that may be another one than row-major (`layouts_seen`)."""
    if x.ndim < 2:
        return
    if not x.flags.c_contiguous:
        layouts_seen[0] = layouts_seen[0] or 1
    elif 1 in x.shape and x.strides != tuple([s * x.itemsize for s in contiguous_strides(x.shape)]):
        layouts_seen[0] = 2


def noted(x: ndarray) -> ndarray:
    """The array, after `note_layout`."""
    if layouts_seen[0] != 2:
        note_layout(x)
    return x


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


def elementwise_strides(shape: tuple[int, ...], operands: Sequence[ndarray]) -> tuple[int, ...] | None:
    """The strides, in elements, of the result of an elementwise operator; None: row-major.

    Dense operands of one layout determine it. Otherwise the first operand that tells which of two dimensions lies
    inside the other one decides: neither is expanded and the strides differ.

    Args:
        shape: the broadcast shape.
        operands: in order; scalars are 0-d.

    >>> x, y = np.zeros((2, 3)), np.zeros((3, 2)).T
    >>> elementwise_strides((2, 3), [x, y]), elementwise_strides((2, 3), [y, x])
    (None, (1, 2))
    """
    if len(shape) < 2:
        return None
    key = (shape, *[(a.shape, a.strides, a.itemsize) for a in operands])
    try:
        return _strides_of_layouts[key]
    except KeyError:
        if len(_strides_of_layouts) >= _MAX_LAYOUTS:
            _strides_of_layouts.clear()
        strides = _strides_of_layouts[key] = _elementwise_strides(shape, operands)
        return strides


#: results of `elementwise_strides` by the shape and the operands' layouts: programs repeat them
_strides_of_layouts: dict[tuple[Any, ...], tuple[int, ...] | None] = {}
_MAX_LAYOUTS = 1024


def _elementwise_strides(shape: tuple[int, ...], operands: Sequence[ndarray]) -> tuple[int, ...] | None:
    """`elementwise_strides` of at least two dimensions."""
    ndim = len(shape)
    steps = []
    same = True
    for a in operands:
        if a.shape == shape:
            steps.append(a.strides)
            continue
        same = False
        missing = ndim - a.ndim
        if a.ndim:
            steps.append((0,) * missing + tuple([0 if n == 1 != extent else s for n, s, extent in zip(
                a.shape, a.strides, shape[missing:], strict=True)]))
    if same and steps:
        dense = [a for a in operands if a.ndim]
        if all(a.flags.c_contiguous for a in dense):
            return None
        if ndim == 4 and all(a.transpose(0, 2, 3, 1).flags.c_contiguous for a in dense):
            return channels_last_strides(shape, 1)
        item = dense[0].itemsize
        strides = tuple([s // item for s in dense[0].strides])
        if is_dense(dense[0]) and all(
                tuple([s // a.itemsize for s in a.strides]) == strides for a in dense[1:]):
            return strides
    order = list(range(ndim - 1, -1, -1))  # innermost first
    for i in range(1, ndim):
        at = i
        for j in range(i - 1, -1, -1):
            swap = _precedes(order[at], order[j], shape, steps)
            if swap > 0:
                order[at], order[j] = order[j], order[at]
                at = j
            elif swap < 0:
                break
    if order == list(range(ndim - 1, -1, -1)):
        return None
    return _dense_in_order(shape, order)


def _dense_in_order(shape: tuple[int, ...], order: Sequence[int]) -> tuple[int, ...]:
    """The strides, in elements, of dense memory with the dimensions in an order, innermost first."""
    result = [0] * len(shape)
    step = 1
    for dim in order:
        result[dim] = step
        step *= max(shape[dim], 1)
    return tuple(result)


def is_dense(a: ndarray) -> bool:
    """Whether an array is non-overlapping and dense: its elements fill a segment of memory, in any order.

    >>> x = np.zeros((2, 3, 4))
    >>> is_dense(x.transpose(1, 0, 2)), is_dense(x[:, :2])
    (True, False)
    """
    if a.flags.forc:
        return True
    filled = a.itemsize
    for stride, n in sorted((s, n) for s, n in zip(a.strides, a.shape, strict=True) if n != 1):
        if stride != filled:
            return False
        filled *= n
    return True


def _precedes(dim: int, other: int, shape: tuple[int, ...], steps: Sequence[Sequence[int]]) -> int:
    """1 if a dimension lies inside another one in memory, -1 if outside, 0 if no operand tells."""
    for strides in steps:
        a, b = abs(strides[dim]), abs(strides[other])  # arrays, not tensors, may be reversed
        if not a or not b:
            continue
        if a != b:
            return 1 if a < b else -1
        if shape[dim] < shape[other]:
            return 1
    return 0


def in_elementwise_layout(result: ndarray, operands: Sequence[ndarray]) -> ndarray:
    """The result of an elementwise operator with the strides that PyTorch gives it; NumPy prefers row-major ones."""
    shape = result.shape
    ndim = len(shape)
    if ndim < 2 or not result.size:
        return result
    first, item = operands[0], result.itemsize
    steps = first.strides
    if first.shape == shape and 1 not in shape and 0 not in steps and (
            steps[0] != steps[1] if ndim == 2 else len(set(steps)) == ndim):  # it decides alone
        if result.strides == steps or (ndim == 2 and (
                result.flags.c_contiguous if steps[0] > steps[1] else result.flags.f_contiguous)):
            return result
        if ndim == 2:
            return result.copy("F" if steps[0] < steps[1] else "C")
        strides = _dense_in_order(shape, sorted(range(ndim), key=steps.__getitem__))
    else:
        given = elementwise_strides(shape, operands)
        if given is None and result.flags.c_contiguous and 1 not in shape:
            return result
        strides = contiguous_strides(shape) if given is None else given
    expected = tuple([s * item for s in strides])
    if result.strides == expected:
        return result
    out = ndarray(shape, result.dtype, np.empty(result.size, result.dtype), 0, expected)
    out[...] = result
    return out


def with_preserved_strides(copy: ndarray, like: ndarray) -> ndarray:
    """A copy in NumPy's order "K", with PyTorch's strides: NumPy's differ in dimensions of size 1."""
    if 1 not in like.shape and like.flags.c_contiguous and copy.flags.c_contiguous:
        return copy
    if not copy.size or like.ndim < 2 or (
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


def empty_in_layout(like: ndarray, dtype: np.dtype | None = None) -> ndarray:
    """An array whose elements are not set, of the shape of another and with the strides of its copies."""
    return with_preserved_strides(np.empty_like(like, dtype, "C" if 0 in like.strides else "K", False), like)


__all__ = ["channels_last_strides", "elementwise_strides", "empty_in_layout", "in_elementwise_layout",
           "is_channels_last", "is_dense",
           "layouts_seen", "note_layout", "noted", "preserved_strides", "to_channels_last",
           "with_preserved_strides"]
