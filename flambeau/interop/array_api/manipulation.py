"""Shapes: broadcasting, joining, reordering."""

from __future__ import annotations

from typing import Any

from ... import dtypes
from ..._tensor import Tensor, functions
from .data_types import promoted


def _axes(axis: Any) -> tuple[int, ...]:
    return (axis,) if isinstance(axis, int) else tuple(axis)


def broadcast_arrays(*arrays: Tensor) -> tuple[Tensor, ...]:
    """The arrays as views of their common shape.

    >>> from flambeau.interop import array_api as xp
    >>> [each.shape for each in xp.broadcast_arrays(xp.ones((2, 1)), xp.ones(3))]
    [flambeau.Size([2, 3]), flambeau.Size([2, 3])]
    """
    return tuple(functions.broadcast_tensors(*arrays))


def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape that shapes broadcast to.

    Raises:
        ValueError: they do not broadcast.

    >>> from flambeau.interop import array_api as xp
    >>> xp.broadcast_shapes((2, 1), (3,))
    (2, 3)
    """
    try:
        return tuple(functions.broadcast_shapes(*shapes))
    except RuntimeError as error:
        raise ValueError(f"shapes {shapes} do not broadcast") from error


def broadcast_to(x: Tensor, /, shape: tuple[int, ...]) -> Tensor:
    """A view of a larger shape.

    >>> from flambeau.interop import array_api as xp
    >>> xp.broadcast_to(xp.arange(2), (2, 2))
    tensor([[0, 1],
            [0, 1]])
    """
    return functions.broadcast_to(x, shape)


def concat(arrays: Any, /, *, axis: int | None = 0) -> Tensor:
    """Arrays joined along an axis; flattened first if it is None.

    >>> from flambeau.interop import array_api as xp
    >>> xp.concat([xp.ones((1, 2)), xp.zeros((1, 2))], axis=None)
    tensor([1., 1., 0., 0.])
    """
    parts = promoted(*arrays)
    if axis is None:
        parts, axis = [functions.reshape(each, (-1,)) for each in parts], 0
    return functions.cat(parts, axis)


def stack(arrays: Any, /, *, axis: int = 0) -> Tensor:
    """Arrays of one shape along a new axis.

    >>> from flambeau.interop import array_api as xp
    >>> xp.stack([xp.asarray([1, 2]), xp.asarray([3, 4])], axis=1)
    tensor([[1, 3],
            [2, 4]])
    """
    return functions.stack(promoted(*arrays), axis)


def unstack(x: Tensor, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """The slices along an axis.

    >>> from flambeau.interop import array_api as xp
    >>> xp.unstack(xp.asarray([1, 2]))
    (tensor(1), tensor(2))
    """
    return tuple(functions.unbind(x, axis))


def expand_dims(x: Tensor, /, axis: int | tuple[int, ...] = 0) -> Tensor:
    """The array with new axes of length 1, at these positions of the result.

    Raises:
        IndexError: a position is out of range.
        ValueError: a position is given twice.

    >>> from flambeau.interop import array_api as xp
    >>> xp.expand_dims(xp.ones(3), (0, 2)).shape
    flambeau.Size([1, 3, 1])
    """
    axes = _axes(axis)
    ndim = x.ndim + len(axes)
    for each in axes:
        if not -ndim <= each < ndim:
            raise IndexError(f"axis {each} is out of bounds for array of dimension {ndim}")
    positions = sorted(each % ndim for each in axes)
    if len(set(positions)) < len(positions):
        raise ValueError(f"repeated axis in {axes}")
    for each in positions:
        x = functions.unsqueeze(x, each)
    return x


def squeeze(x: Tensor, /, axis: int | tuple[int, ...]) -> Tensor:
    """The array without these axes of length 1.

    Raises:
        ValueError: an axis is longer.

    >>> from flambeau.interop import array_api as xp
    >>> xp.squeeze(xp.ones((1, 3)), 0).shape
    flambeau.Size([3])
    """
    axes = _axes(axis)
    for each in axes:
        if x.shape[each] != 1:
            raise ValueError(f"cannot squeeze axis {each} of an array of shape {tuple(x.shape)}")
    return functions.squeeze(x, axes) if axes else x


def permute_dims(x: Tensor, /, axes: tuple[int, ...]) -> Tensor:
    """The axes in another order.

    >>> from flambeau.interop import array_api as xp
    >>> xp.permute_dims(xp.ones((2, 3)), (1, 0)).shape
    flambeau.Size([3, 2])
    """
    return functions.permute(x, axes)


def moveaxis(x: Tensor, source: Any, destination: Any, /) -> Tensor:
    """The axes `source` moved to the positions `destination`.

    >>> from flambeau.interop import array_api as xp
    >>> xp.moveaxis(xp.ones((2, 3, 4)), 0, -1).shape
    flambeau.Size([3, 4, 2])
    """
    return functions.movedim(x, source, destination)


def flip(x: Tensor, /, *, axis: int | tuple[int, ...] | None = None) -> Tensor:
    """Elements in reverse order along axes; along all by default.

    >>> from flambeau.interop import array_api as xp
    >>> xp.flip(xp.arange(3))
    tensor([2, 1, 0])
    """
    return functions.flip(x, tuple(range(x.ndim)) if axis is None else _axes(axis))


def roll(x: Tensor, /, shift: int | tuple[int, ...], *, axis: int | tuple[int, ...] | None = None) -> Tensor:
    """Elements shifted along axes, those at the end come first.

    >>> from flambeau.interop import array_api as xp
    >>> xp.roll(xp.arange(4), 1)
    tensor([3, 0, 1, 2])
    """
    if axis is None:
        return functions.roll(x, shift)
    axes = _axes(axis)
    shifts = (shift,) * len(axes) if isinstance(shift, int) else tuple(shift)
    return functions.roll(x, shifts, axes)


def repeat(x: Tensor, repeats: int | Tensor, /, *, axis: int | None = None) -> Tensor:
    """Each element, or slice, several times.

    >>> from flambeau.interop import array_api as xp
    >>> xp.repeat(xp.asarray([1, 2]), 2)
    tensor([1, 1, 2, 2])
    """
    if isinstance(repeats, Tensor):
        counts = repeats.to(dtypes.int64)
        return functions.repeat_interleave(x, counts[0] if counts.ndim == 1 and counts.numel() == 1 else counts, axis)
    return functions.repeat_interleave(x, repeats, axis)


def tile(x: Tensor, repetitions: tuple[int, ...], /) -> Tensor:
    """The array repeated as a whole along its axes.

    >>> from flambeau.interop import array_api as xp
    >>> xp.tile(xp.asarray([1, 2]), (2, 1))
    tensor([[1, 2],
            [1, 2]])
    """
    return functions.tile(x, tuple(repetitions))


def reshape(x: Tensor, /, shape: tuple[int, ...], *, copy: bool | None = None) -> Tensor:
    """The elements in another shape.

    Args:
        copy: whether to copy; None: only if a view is impossible.

    Raises:
        ValueError: `copy` is False and a view is impossible.

    >>> from flambeau.interop import array_api as xp
    >>> xp.reshape(xp.arange(4), (2, -1))
    tensor([[0, 1],
            [2, 3]])
    """
    if copy:
        x = functions.clone(x)
    elif copy is False:
        try:
            return x.view(shape)
        except RuntimeError as error:
            raise ValueError(f"copy=False: {error}") from error
    return functions.reshape(x, shape)
