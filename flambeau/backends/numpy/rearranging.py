"""Data movement on arrays: flip, roll, rot90, repeat, tril, triu, constant padding."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, product, repeat
from math import prod
from operator import mul
from typing import Any

import numpy as np

from ...kernels.memory_format import noted
from ...shapes import wrap_dim, wrap_dims
from ..compiled import copy, copy_kernels, empty_array, new_copy
from ..compiled.thresholds import CONCATENATIONS, COPIES
from .memory import convert_scalar, copy_as, moving_bits

#: of NumPy's arrays
_MOST_DIMS = 64
_FULL, _REVERSED = slice(None), slice(None, None, -1)
#: dtypes by the bytes of an element
_OF_BYTES: dict[int, Any] = {
    2: np.dtype(np.uint16), 4: np.dtype(np.uint32), 8: np.dtype(np.uint64), 16: np.dtype(np.complex128)}


def _flip(x: Any, dims: tuple[int, ...]) -> Any:
    ndim = x.ndim
    if len(dims) == 1 and -ndim <= dims[0] < ndim:
        axes: tuple[int, ...] = tuple(dims)
    else:
        axes = wrap_dims(dims, ndim) if len(dims) else ()
    key = [_FULL] * ndim
    for axis in axes:
        key[axis] = _REVERSED
    if axes and x.flags.c_contiguous and x.__class__ is np.ndarray:
        inner = max(axis % ndim for axis in axes) + 1
        block = x.itemsize * prod(x.shape[inner:])
        if x.itemsize < block in _OF_BYTES and x.size:  # rows that one element of another dtype holds
            out = empty_array(x.shape, x.dtype)
            source, target = (a.reshape(*x.shape[:inner], -1).view(_OF_BYTES[block])[..., 0] for a in (x, out))
            copy(target, source[tuple(key[:inner])])
            return out
    return new_copy(x[tuple(key)], "C" if 0 in x.strides else "K")  # "K" would put expanded dimensions last


def _rolled(x: Any, shifts: tuple[int, ...], axes: tuple[int, ...] | None) -> Any:
    """Return `np.roll(x, shifts, axes)`, by copies of slices, which threads share for large arrays."""
    if axes is None:
        return _rolled(np.reshape(x, -1), (sum(shifts),), (0,)).reshape(x.shape)
    out = empty_array(x.shape, x.dtype)
    if not x.size:
        return out
    pairs: list[tuple[tuple[slice, slice], ...]] = [((slice(None), slice(None)),)] * x.ndim
    for axis in set(axes):
        size = x.shape[axis]
        shift = sum([s for s, a in zip(shifts, axes, strict=True) if a == axis]) % size
        if shift:
            pairs[axis] = ((slice(size - shift), slice(shift, None)), (slice(size - shift, None), slice(shift)))
    for keys in product(*pairs):
        source, target = zip(*keys, strict=True)
        copy(out[target], x[source])
    return out


def _roll(x: Any, shifts: Any, dims: Any = ()) -> Any:
    shifts = (shifts,) if isinstance(shifts, int) else tuple(shifts)
    dims = (dims,) if isinstance(dims, int) else tuple(dims or ())
    if not shifts:
        raise RuntimeError("`shifts` required")
    if not dims and len(shifts) == 1:
        return _rolled(x, shifts, None)
    if len(dims) != len(shifts):
        raise RuntimeError(f"shifts and dimensions must align. shifts: {len(shifts)}, dims:{len(dims)}")
    if not x.ndim:
        raise IndexError(f"Dimension specified as {dims[0]} but tensor has no dimensions")
    if not x.size:
        return new_copy(x, "K")
    return _rolled(x, shifts, tuple(wrap_dim(d, x.ndim) for d in dims))


def _rot90(x: Any, k: int = 1, dims: tuple[int, ...] = (0, 1)) -> Any:
    if len(dims) != 2:
        raise RuntimeError(f"expected total rotation dims == 2, but got dims = {len(dims)}")
    if x.ndim < 2:
        raise RuntimeError(f"expected total dims >= 2, but got total dims = {x.ndim}")
    if dims[0] == dims[1] or abs(dims[0] - dims[1]) == x.ndim:
        raise RuntimeError(f"expected rotation dims to be different, but got dim0 = {dims[0]} and dim1 = {dims[1]}")
    dims = tuple(wrap_dim(d, x.ndim) for d in dims)
    k %= 4
    if k == 1:
        return noted(_flip(x, (dims[1],)).swapaxes(*dims))
    if k == 2:
        return _flip(x, tuple(dims))
    if k == 3:
        return noted(_flip(x, (dims[0],)).swapaxes(*dims))
    return new_copy(x, "K")


def lower_triangle(x: Any, diagonal: int = 0) -> Any:
    """Return matrices with zeros above a diagonal."""
    return np.where(_on_or_below(x, diagonal), x, np.zeros((), x.dtype))


def upper_triangle(x: Any, diagonal: int = 0) -> Any:
    """Return matrices with zeros below a diagonal."""
    return np.where(_on_or_below(x, diagonal - 1), np.zeros((), x.dtype), x)


def _on_or_below(x: Any, diagonal: int) -> Any:
    rows, columns = x.shape[-2:]
    return np.arange(rows)[:, None] >= np.arange(-diagonal, columns - diagonal)


def _tril(x: Any, diagonal: int = 0) -> Any:
    if x.ndim < 2:
        raise RuntimeError("tril: input tensor must have at least 2 dimensions")
    return lower_triangle(x, diagonal)


def _triu(x: Any, diagonal: int = 0) -> Any:
    if x.ndim < 2:
        raise RuntimeError("triu: input tensor must have at least 2 dimensions")
    return upper_triangle(x, diagonal)


def _repeat(x: Any, repeats: tuple[int, ...]) -> Any:
    repeats = tuple(map(int, repeats))
    if len(repeats) < x.ndim:
        raise RuntimeError("Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor")
    missing = len(repeats) - x.ndim
    full = (1,) * missing + x.shape if missing else x.shape
    if repeats and min(repeats) < 0:
        sizes = [*map(mul, repeats, full)]
        raise RuntimeError("Trying to create tensor with negative dimension "
                           f"{next(s for s in sizes if s < 0)}: {sizes}")
    if 2 * len(full) > _MOST_DIMS:
        return np.tile(x, repeats)
    out = empty_array([*map(mul, repeats, full)], x.dtype)
    target = out.reshape([*chain.from_iterable(zip(repeats, full, strict=True))])
    source = x.reshape([*chain.from_iterable(zip(repeat(1), full))])
    if out.size > CONCATENATIONS[0]:
        copy(target, source)
    else:
        target[...] = source
    return out


def _constant_pad(x: Any, pad: tuple[int, ...], value: Any) -> Any:
    """Pad by (before, after) per dimension, from the last one on; negative widths crop.

    What is only cropped keeps the order of its strides.
    """
    if len(pad) % 2:
        raise RuntimeError(f"Length of pad must be even but instead it equals {len(pad)}")
    if len(pad) > 2 * x.ndim:
        raise RuntimeError("Length of pad should be no more than twice the number of dimensions of the input. Pad "
                           f"length is {len(pad)} while the input has {x.ndim} dimensions.")
    shape, source, target = list(x.shape), [slice(None)] * x.ndim, [slice(None)] * x.ndim
    for i in range(len(pad) // 2):
        axis, before, after = x.ndim - 1 - i, int(pad[2 * i]), int(pad[2 * i + 1])
        size = shape[axis]
        shape[axis] = size + before + after
        if before >= 0 and after >= 0:
            target[axis] = slice(before, before + size)
            continue
        cropped = size + min(before, 0)
        if cropped < 0 or cropped + min(after, 0) < 0:
            raise RuntimeError("narrow(): length must be non-negative.")
        first, last = max(-before, 0), size - max(-after, 0)
        source[axis] = slice(first, max(last, first))
        target[axis] = slice(max(before, 0), shape[axis] - max(after, 0))
    if max(pad, default=0) <= 0:
        return copy_as(x[tuple(source)])
    kernels = copy_kernels() if prod(shape) > COPIES[0] else None
    out = empty_array(shape, x.dtype)
    value = convert_scalar(value, x.dtype)
    if kernels is None or not x.size:
        out.fill(value)
        if x.size:
            out[tuple(target)] = x[tuple(source)]
        return out
    copy(out[tuple(target)], x[tuple(source)])
    for border in _border_slabs(target, shape):
        out[border] = value
    return out


def _border_slabs(inner: Sequence[slice], shape: Sequence[int]) -> Iterator[tuple[slice, ...]]:
    """Yield the slabs of an array around an inner block."""
    key = [slice(None)] * len(shape)
    for axis, (block, size) in enumerate(zip(inner, shape, strict=True)):
        for slab in (slice(0, block.start or 0), slice(size if block.stop is None else block.stop, size)):
            if slab.start < slab.stop:
                yield (*key[:axis], slab, *key[axis + 1:])
        key[axis] = block


PRIMITIVES = {
    "flip": _flip, "roll": _roll, "rot90": _rot90, "tril": moving_bits(_tril), "triu": moving_bits(_triu),
    "repeat": moving_bits(_repeat), "constant_pad": _constant_pad,
}
