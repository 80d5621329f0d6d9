"""Elements in another order: turned, shifted, repeated, cut to triangles, with a border around them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...shapes import wrap_dim, wrap_dims
from ..compiled import mover
from ..compiled.sizes import MASKED
from .memory import filled


def _flip(x: Any, dims: tuple[int, ...]) -> Any:
    axes = wrap_dims(dims, x.ndim) if len(dims) else ()
    return np.array(np.flip(x, axes) if axes else x, order="K", copy=True)


def _roll(x: Any, shifts: Any, dims: Any = ()) -> Any:
    shifts = (shifts,) if isinstance(shifts, int) else tuple(shifts)
    dims = (dims,) if isinstance(dims, int) else tuple(dims)
    if not shifts:
        raise RuntimeError("`shifts` required")
    if not dims and len(shifts) == 1:
        return np.roll(x, shifts[0])
    if len(dims) != len(shifts):
        raise RuntimeError(f"shifts and dimensions must align. shifts: {len(shifts)}, dims:{len(dims)}")
    if not x.ndim:
        raise IndexError(f"Dimension specified as {dims[0]} but tensor has no dimensions")
    return np.roll(x, shifts, tuple(wrap_dim(d, x.ndim) for d in dims))


def _rot90(x: Any, k: int = 1, dims: tuple[int, ...] = (0, 1)) -> Any:
    if len(dims) != 2:
        raise RuntimeError(f"expected total rotation dims == 2, but got dims = {len(dims)}")
    if x.ndim < 2:
        raise RuntimeError(f"expected total dims >= 2, but got total dims = {x.ndim}")
    if dims[0] == dims[1] or abs(dims[0] - dims[1]) == x.ndim:
        raise RuntimeError(f"expected rotation dims to be different, but got dim0 = {dims[0]} and dim1 = {dims[1]}")
    for i, d in enumerate(dims):
        if not -x.ndim <= d < x.ndim:
            raise RuntimeError(f"Rotation dim{i} out of range, dim{i} = {d}")
    k %= 4
    if k == 1:
        return _flip(x, (dims[1],)).swapaxes(*dims)
    if k == 2:
        return _flip(x, tuple(dims))
    if k == 3:
        return _flip(x, (dims[0],)).swapaxes(*dims)
    return np.array(x, order="K", copy=True)


def _triangle(x: Any, diagonal: int, upper: bool) -> Any:
    by = mover() if x.size > MASKED[0] else None
    found = None if by is None else by.triangle(x, diagonal, upper)
    if found is not None:
        return found
    return np.triu(x, diagonal) if upper else np.tril(x, diagonal)


def _tril(x: Any, diagonal: int = 0) -> Any:
    if x.ndim < 2:
        raise RuntimeError("tril: input tensor must have at least 2 dimensions")
    return _triangle(x, diagonal, False)


def _triu(x: Any, diagonal: int = 0) -> Any:
    if x.ndim < 2:
        raise RuntimeError("triu: input tensor must have at least 2 dimensions")
    return _triangle(x, diagonal, True)


def _repeat(x: Any, repeats: tuple[int, ...]) -> Any:
    repeats = tuple(map(int, repeats))
    if len(repeats) < x.ndim:
        raise RuntimeError("Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor")
    if any(r < 0 for r in repeats):
        sizes = [r * s for r, s in zip(repeats, (1,) * (len(repeats) - x.ndim) + x.shape, strict=True)]
        raise RuntimeError(f"Trying to create tensor with negative dimension {min(sizes)}")
    return np.tile(x, repeats) if repeats else np.array(x, copy=True)


def _constant_pad(x: Any, pad: tuple[int, ...], value: Any) -> Any:
    """Widths from the last dimension on, (before, after) each; negative widths cut."""
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
        if shape[axis] < 0:
            raise RuntimeError(f"The input size {size}, plus negative padding {before} and {after} resulted in a "
                               f"negative output size, which is invalid. Check dimension {axis} of your input.")
        first, last = max(-before, 0), size - max(-after, 0)
        source[axis] = slice(first, max(last, first))
        target[axis] = slice(max(before, 0), shape[axis] - max(after, 0))
    out = np.empty(shape, x.dtype)
    out[...] = filled(value, x.dtype)
    if x.size:
        out[tuple(target)] = x[tuple(source)]
    return out


def _bordered(x: Any, pad: tuple[int, ...], mode: str) -> Any:
    """`x` with its last dimensions continued, `mode` "reflect" or "edge"; negative widths cut."""
    widths, cut = [(0, 0)] * x.ndim, [slice(None)] * x.ndim
    for i in range(len(pad) // 2):
        axis, before, after = x.ndim - 1 - i, pad[2 * i], pad[2 * i + 1]
        widths[axis] = (max(before, 0), max(after, 0))
        cut[axis] = slice(max(-before, 0), x.shape[axis] + sum(widths[axis]) - max(-after, 0))
    if x.size:
        full = np.pad(x, widths, mode)  # type: ignore[call-overload]
    else:
        full = np.zeros([s + a + b for s, (a, b) in zip(x.shape, widths, strict=True)], x.dtype)
    return np.ascontiguousarray(full[tuple(cut)])


def _gather_border(x: Any, size: tuple[int, ...], pad: tuple[int, ...], mode: str) -> Any:
    """The transpose of `_bordered`: every element of the border added to the element it was continued from."""
    whole = np.zeros(size, x.dtype)
    places = _bordered(np.arange(whole.size).reshape(size), pad, mode)
    np.add.at(whole.reshape(-1), places.reshape(-1), np.reshape(x, -1))
    return whole


PRIMITIVES = {
    "flip": _flip, "roll": _roll, "rot90": _rot90, "tril": _tril, "triu": _triu, "repeat": _repeat,
    "constant_pad": _constant_pad, "bordered": _bordered, "gather_border": _gather_border,
}
