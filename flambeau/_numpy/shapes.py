"""Shapes and the order of dimensions and elements."""

from __future__ import annotations

import builtins
import math
from typing import Any

import flambeau as torch

from . import _util
from ._normalizations import ArrayLike, ArrayLikeOrScalar, Unsupported, normalizer


def _at_least(name: str) -> Any:
    def function(*arys: ArrayLike) -> Any:
        result = getattr(torch, name)(*arys)
        return list(result) if isinstance(result, tuple) else result

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Arrays of at least so many dimensions: `torch.{name}`."
    return normalizer(function)


atleast_1d, atleast_2d, atleast_3d = map(_at_least, ("atleast_1d", "atleast_2d", "atleast_3d"))


@normalizer
def ndim(a: ArrayLike) -> Any:
    """The number of dimensions."""
    return a.ndim


@normalizer
def shape(a: ArrayLike) -> Any:
    """The shape.

    >>> shape([[1, 2]])
    (1, 2)
    """
    return tuple(a.shape)


@normalizer
def size(a: ArrayLike, axis: int | None = None) -> Any:
    """The number of elements, or the size of a dimension."""
    return a.numel() if axis is None else a.shape[axis]


@normalizer
def expand_dims(a: ArrayLike, axis: Any) -> Any:
    """The array with new dimensions of size 1."""
    return a.view(_util.expand_shape(a.shape, axis))


@normalizer
def flip(m: ArrayLike, axis: Any = None) -> Any:
    """The elements in reversed order."""
    return torch.flip(m, tuple(range(m.ndim)) if axis is None else _util.normalize_axis_tuple(axis, m.ndim))


@normalizer
def flipud(m: ArrayLike) -> Any:
    """The rows in reversed order."""
    return torch.flipud(m)


@normalizer
def fliplr(m: ArrayLike) -> Any:
    """The columns in reversed order."""
    return torch.fliplr(m)


@normalizer
def rot90(m: ArrayLike, k: int = 1, axes: Any = (0, 1)) -> Any:
    """The array, rotated k times by 90 degrees in a plane."""
    return torch.rot90(m, k, _util.normalize_axis_tuple(axes, m.ndim))


@normalizer
def broadcast_to(array: ArrayLike, shape: Any, subok: Unsupported = False) -> Any:
    """The array, repeated to a shape, without a copy."""
    return torch.broadcast_to(array, shape)


def broadcast_shapes(*args: Any) -> Any:
    """The shape of the result of elementwise functions of arrays of these shapes.

    >>> tuple(broadcast_shapes((2, 1), (3,)))
    (2, 3)
    """
    return torch.broadcast_shapes(*args)


@normalizer
def broadcast_arrays(*args: ArrayLike, subok: Unsupported = False) -> Any:
    """The arrays, repeated to their common shape."""
    return torch.broadcast_tensors(*args)


@normalizer
def moveaxis(a: ArrayLike, source: Any, destination: Any) -> Any:
    """The array with dimensions at other places."""
    return torch.moveaxis(a, _util.normalize_axis_tuple(source, a.ndim, "source"),
                          _util.normalize_axis_tuple(destination, a.ndim, "destination"))


@normalizer
def swapaxes(a: ArrayLike, axis1: int, axis2: int) -> Any:
    """The array with two dimensions exchanged."""
    return torch.swapaxes(a, _util.normalize_axis_index(axis1, a.ndim), _util.normalize_axis_index(axis2, a.ndim))


@normalizer
def rollaxis(a: ArrayLike, axis: int, start: int = 0) -> Any:
    """The array with a dimension moved before another one."""
    place = _util.normalize_axis_index(axis, a.ndim)
    before = start + a.ndim if start < 0 else start
    if not 0 <= before <= a.ndim:
        raise _util.AxisError(f"'start' arg requires {-a.ndim} <= start < {a.ndim + 1}, but {before} was passed in")
    others = [each for each in range(a.ndim) if each != place]
    others.insert(before - 1 if place < before else before, place)
    return a.permute(others)


@normalizer
def roll(a: ArrayLike, shift: Any, axis: Any = None) -> Any:
    """The elements moved along axes; those beyond the end come in at the beginning."""
    if axis is not None:
        axis = _util.normalize_axis_tuple(axis, a.ndim, allow_duplicate=True)
        shift = shift if isinstance(shift, tuple) else (shift,) * len(axis)
    return torch.roll(a, shift, axis)


@normalizer
def squeeze(a: ArrayLike, axis: Any = None) -> Any:
    """The array without dimensions of size 1.

    >>> import flambeau._numpy as np
    >>> np.squeeze([[[1], [2]]], axis=(0, 2))
    torch.ndarray([1, 2])
    """
    return a.squeeze() if axis is None else a.squeeze(axis)


@normalizer
def reshape(a: ArrayLike, newshape: Any, order: Unsupported = "C") -> Any:
    """The elements in another shape."""
    sizes = newshape[0] if isinstance(newshape, (tuple, list)) and len(newshape) == 1 else newshape
    return a.reshape(sizes)


@normalizer
def transpose(a: ArrayLike, axes: Any = None) -> Any:
    """The array with its dimensions in another order, or in the reversed one."""
    if axes in ((), None, (None,)):
        axes = tuple(reversed(range(a.ndim)))
    elif len(axes) == 1:
        axes = axes[0]
    return a.permute(axes)


@normalizer
def ravel(a: ArrayLike, order: Unsupported = "C") -> Any:
    """All elements, in one dimension."""
    return torch.flatten(a)


@normalizer
def repeat(a: ArrayLike, repeats: ArrayLikeOrScalar, axis: int | None = None) -> Any:
    """Each element several times."""
    return torch.repeat_interleave(a, repeats, axis)


@normalizer
def tile(A: ArrayLike, reps: Any) -> Any:
    """The array several times."""
    return torch.tile(A, (reps,) if isinstance(reps, int) else reps)


@normalizer
def resize(a: ArrayLike, new_shape: Any = None) -> Any:
    """The elements, repeated as often as it takes, in a shape.

    Raises:
        ValueError: a size is negative.

    >>> import flambeau._numpy as np
    >>> np.resize([1, 2], (3,))
    torch.ndarray([1, 2, 1])
    """
    if new_shape is None:
        return a
    sizes = (new_shape,) if isinstance(new_shape, int) else tuple(new_shape)
    if builtins.any(each < 0 for each in sizes):
        raise ValueError("all elements of `new_shape` must be non-negative")
    count = math.prod(sizes)
    if a.numel() == 0 or count == 0:
        return torch.zeros(sizes, dtype=a.dtype)
    return a.flatten().repeat(-(-count // a.numel()))[:count].reshape(sizes)


@normalizer
def pad(array: ArrayLike, pad_width: ArrayLike, mode: str = "constant", **kwargs: Any) -> Any:
    """The array with a constant around it; other modes are not supported.

    >>> import flambeau._numpy as np
    >>> np.pad([1, 2], 1, constant_values=9)
    torch.ndarray([9, 1, 2, 9])
    """
    if mode != "constant":
        raise NotImplementedError(f"pad: mode={mode!r} is not supported")
    value = array.new_tensor(kwargs.get("constant_values", 0)).item()
    widths = torch.flip(torch.broadcast_to(pad_width, (array.ndim, 2)), (0,)).flatten()
    return torch.nn.functional.pad(array, tuple(widths.tolist()), value=value)


__all__ = ["atleast_1d", "atleast_2d", "atleast_3d", "broadcast_arrays", "broadcast_shapes", "broadcast_to",
           "expand_dims", "flip", "fliplr", "flipud", "moveaxis", "ndim", "pad", "ravel", "repeat", "reshape", "resize",
           "roll", "rollaxis", "rot90", "shape", "size", "squeeze", "swapaxes", "tile", "transpose"]
