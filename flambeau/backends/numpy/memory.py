"""Shapes and memory: views by shape and stride, copies, casts and filled arrays.

A tensor's storage is the array that owns its memory (`owner`); every view is a shape and
strides over it. Views are made here without NumPy's own broadcasting and stride tricks,
which are slower and give arrays that refuse writes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided as _as_strided

from ... import dtypes
from ...shapes import contiguous_strides, infer_size, wrap_dim, wrap_dims

ndarray = np.ndarray


# ----- storage ---------------------------------------------------------------------------


def owner(x: np.ndarray) -> np.ndarray:
    """The array whose memory `x` is a view of: `x` itself if it owns its memory."""
    while True:
        base = x.base
        if not isinstance(base, ndarray):
            base = getattr(base, "base", None)  # the go-between of NumPy's own as_strided
            if not isinstance(base, ndarray):
                return x
        x = base


def address(x: np.ndarray) -> int:
    """Where the first element lies."""
    return x.__array_interface__["data"][0]


def lying(x: np.ndarray, shape: Any, strides: Any, offset: int = 0) -> np.ndarray:
    """The memory of `x` under any shape and strides (bytes), from `offset` bytes after its first element.

    Raises:
        ValueError, TypeError: it would reach beyond the memory.
    """
    try:
        return ndarray(shape, x.dtype, x, offset, strides)
    except (ValueError, TypeError):
        pass  # not contiguous, or reaching over what `x` itself covers: from the owner's first byte then
    whole = owner(x)
    offset += address(x) - address(whole)
    if whole.flags.c_contiguous or whole.flags.f_contiguous:
        return ndarray(shape, x.dtype, whole, offset, strides)
    moved = x
    if offset:
        start, item = divmod(offset - (address(x) - address(whole)), x.itemsize)
        if item:
            raise ValueError("offset is not a whole number of elements")
        if start:
            moved = _as_strided(x, (start + 1,), (x.itemsize,))[start:]
    return _as_strided(moved, shape, strides)


def _nothing(x: np.ndarray, shape: Any) -> np.ndarray:
    """An empty view of the memory of `x`."""
    return lying(x, shape, (x.itemsize,) * len(shape))


def element_strides(x: np.ndarray) -> tuple[int, ...]:
    """Strides in elements; of an empty array, for which NumPy keeps none, those of a row-major one."""
    item = x.itemsize
    if 0 in x.shape and not any(x.strides):
        return contiguous_strides(x.shape)
    return tuple([s // item for s in x.strides])


def strided(x: np.ndarray, size: Any, stride: Any, storage_offset: int | None = None) -> np.ndarray:
    """Shape, element strides and offset over the storage of `x`.

    Raises:
        RuntimeError: negative strides, lengths that differ, or beyond the storage (PyTorch's texts).
    """
    size, stride = tuple(map(int, size)), tuple(map(int, stride))
    if len(size) != len(stride):
        raise RuntimeError("mismatch in length of strides and shape")
    if any(s < 0 for s in stride):
        raise RuntimeError("as_strided: Negative strides are not supported at the moment, got strides: "
                           f"{list(stride)}")
    whole, item = owner(x), x.itemsize
    here = (address(x) - address(whole)) // item
    offset = here if storage_offset is None else int(storage_offset)
    if offset < 0:
        raise RuntimeError(f"Tensor: invalid storage offset {offset}")
    if 0 not in size:
        needed = item * (1 + offset + sum((n - 1) * t for n, t in zip(size, stride, strict=True)))
        if needed > whole.nbytes:
            raise RuntimeError(f"setStorage: sizes {list(size)}, strides {list(stride)}, storage offset {offset}, and "
                               f"itemsize {item} requiring a storage size of {needed} are out of bounds for storage "
                               f"of size {whole.nbytes}")
    else:
        return _nothing(x, size)
    return lying(x, size, tuple(s * item for s in stride), (offset - here) * item)


# ----- views -----------------------------------------------------------------------------

_VIEW_INCOMPATIBLE = ("view size is not compatible with input tensor's size and stride (at least one dimension spans "
                      "across two contiguous subspaces). Use .reshape(...) instead.")


def _view(x: Any, size: tuple[int, ...]) -> Any:
    """`x` under another shape in the same memory.

    Raises:
        RuntimeError: its strides do not allow it (PyTorch's text).
    """
    shape = infer_size(tuple(size), x.size)
    if x.flags.c_contiguous:
        return x.reshape(shape)
    item = x.itemsize
    strides = _strides_under(x.shape, element_strides(x), shape)
    if strides is None:
        raise RuntimeError(_VIEW_INCOMPATIBLE)
    return lying(x, shape, tuple(s * item for s in strides))


def _strides_under(shape: tuple[int, ...], strides: tuple[int, ...], target: tuple[int, ...]) -> list[int] | None:
    """Strides that show the same elements under another shape; None if there are none.

    The old dimensions fall into runs that lie evenly in memory; a new dimension must not straddle two of them.
    """
    result = [0] * len(target)
    into = len(target) - 1
    while into >= 0 and not shape:
        result[into] = 1
        into -= 1
    count = filled_up = 1  # elements of the run seen so far, in old and in new dimensions
    step = strides[-1] if strides else 1
    for d in range(len(shape) - 1, -1, -1):
        count *= shape[d]
        if d and (shape[d - 1] == 1 or strides[d - 1] == count * step):
            continue
        while into >= 0 and (filled_up < count or target[into] == 1):
            result[into] = filled_up * step
            filled_up *= target[into]
            into -= 1
        if filled_up != count:
            return None
        if d:
            step, count, filled_up = strides[d - 1], 1, 1
    return result if into < 0 else None


def _view_dtype(x: Any, dtype: Any) -> Any:
    """The bytes of `x` as elements of another dtype; the last size changes with the element's."""
    to = dtype.numpy
    source = dtypes.of(x.dtype)
    if to.itemsize != x.itemsize:
        names = f"view {source.scalar_name} as {dtype.scalar_name} (different element sizes)"
        if not x.ndim:
            raise RuntimeError(f"self.dim() cannot be 0 to {names}")
        stride = element_strides(x)[-1]
        if stride != 1:
            raise RuntimeError(f"self.stride(-1) must be 1 to {names}, but got {stride}")
        if to.itemsize > x.itemsize:
            ratio = to.itemsize // x.itemsize
            if x.shape[-1] % ratio:
                raise RuntimeError(f"self.size(-1) must be divisible by {ratio} to {names}, but got {x.shape[-1]}")
            for i, s in enumerate(element_strides(x)[:-1]):
                if s % ratio:
                    raise RuntimeError(f"self.stride({i}) must be divisible by {ratio} to {names}, but got {s}")
        if not x.size:
            last = x.shape[-1] * x.itemsize // to.itemsize
            return _nothing(x, (*x.shape[:-1], last)).view(to)
    return x.view(to)


def _reshape(x: Any, size: tuple[int, ...]) -> Any:
    return np.reshape(x, infer_size(tuple(size), x.size))


def _t(x: Any) -> Any:
    if x.ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {x.ndim}D")
    return x.T


def _transpose(x: Any, dim0: int, dim1: int) -> Any:
    a, b = wrap_dim(dim0, x.ndim), wrap_dim(dim1, x.ndim)
    return x.swapaxes(a, b) if x.ndim else x[...]


def _permute(x: Any, dims: tuple[int, ...]) -> Any:
    n = x.ndim
    if len(dims) != n:
        raise RuntimeError("permute(sparse_coo): number of dimensions in the tensor input does not match the length "
                           "of "
                           f"the desired ordering of dimensions i.e. input.dim() = {n} is not equal to len(dims) = "
                           f"{len(dims)}")
    order = [wrap_dim(d, n) for d in dims]
    if len(set(order)) != n:
        raise RuntimeError("permute(): duplicate dims are not allowed.")
    return x.transpose(order)


def _expand(x: Any, size: tuple[int, ...]) -> Any:
    lead = len(size) - x.ndim
    if lead < 0:
        raise RuntimeError(f"expand({_type_of(x)}{{{list(x.shape)}}}, size={list(size)}): the number of sizes "
                           f"provided ({len(size)}) must be greater or equal to the number of dimensions in the "
                           f"tensor ({x.ndim})")
    full, strides = [], []
    for i, s in enumerate(size):
        if i < lead:
            if s < 0:
                raise RuntimeError(f"The expanded size of the tensor ({s}) isn't allowed in a leading, non-existing "
                                   f"dimension {i}")
            full.append(s)
            strides.append(0)
            continue
        have = x.shape[i - lead]
        if s == -1:
            s = have
        elif have not in (1, s):
            raise RuntimeError(f"The expanded size of the tensor ({s}) must match the existing size "
                               f"({have}) at non-singleton dimension {i}.  Target sizes: {list(size)}.  "
                               f"Tensor sizes: {list(x.shape)}")
        full.append(s)
        strides.append(0 if have == 1 and s != 1 else x.strides[i - lead])
    return lying(x, tuple(full), tuple(strides))


def _broadcast_to(x: Any, size: tuple[int, ...]) -> Any:
    if x.__class__ is not ndarray:
        x = np.asarray(x)
    return x if x.shape == tuple(size) else _expand(x, tuple(size))


def _type_of(x: Any) -> str:
    return f"torch.{dtypes.of(x.dtype).legacy}"


def _squeeze(x: Any, dim: Any = None) -> Any:
    if dim is None:
        return x.squeeze()
    if isinstance(dim, (tuple, list)):
        axes = wrap_dims(dim, x.ndim) if dim else ()
    else:
        axes = (wrap_dim(dim, x.ndim),)
    axes = tuple(a for a in axes if a < x.ndim and x.shape[a] == 1)
    return x.squeeze(axes) if axes else x[...]


def _unsqueeze(x: Any, dim: int) -> Any:
    n = x.ndim
    if not -n - 1 <= dim <= n:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-n - 1}, {n}], but got {dim})")
    return with_axis(x, dim if dim >= 0 else dim + n + 1)


def with_axis(x: Any, axis: int) -> Any:
    """`x` with a new axis of size 1, whose stride is that of all that follows (NumPy's own would be 0)."""
    shape = x.shape
    full = (*shape[:axis], 1, *shape[axis:])
    if x.flags.c_contiguous:
        return x.reshape(full)
    strides = x.strides
    new = shape[axis] * strides[axis] if axis < len(shape) else x.itemsize
    return lying(x, full, (*strides[:axis], new, *strides[axis:]))


def _select(x: Any, dim: int, index: int) -> Any:
    if not x.ndim:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    axis = wrap_dim(dim, x.ndim)
    if not -x.shape[axis] <= index < x.shape[axis]:
        raise IndexError(f"select(): index {index} out of range for tensor of size {list(x.shape)} at dimension {axis}")
    return x[(slice(None),) * axis + (index, ...)]


def slice_bounds(start: int | None, end: int | None, length: int) -> tuple[int, int]:
    """Where a slice begins and ends in a dimension of `length`, clamped as Python clamps."""
    start = 0 if start is None else int(start)
    end = length if end is None else int(end)
    if start < 0:
        start += length
    if end < 0:
        end += length
    start = min(max(start, 0), length)
    return start, min(max(end, start), length)


def _slice(x: Any, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Any:
    if not x.ndim:
        raise RuntimeError("slice() cannot be applied to a 0-dim tensor.")
    axis = wrap_dim(dim, x.ndim)
    if step <= 0:
        raise RuntimeError("slice step must be positive")
    start, end = slice_bounds(start, end, x.shape[axis])
    return x[(slice(None),) * axis + (slice(start, end, step),)]


def _diagonal(x: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    a, b = wrap_dim(dim1, x.ndim), wrap_dim(dim2, x.ndim)
    if a == b:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    rows, columns = x.shape[a], x.shape[b]
    length = max(min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns), 0)
    rest = [i for i in range(x.ndim) if i not in (a, b)]
    steps = [s * x.itemsize for s in element_strides(x)]
    start = 0 if not length else offset * steps[b] if offset >= 0 else -offset * steps[a]
    shape = (*[x.shape[i] for i in rest], length)
    strides = (*[steps[i] for i in rest], steps[a] + steps[b])
    return lying(x, shape, strides, start) if length and x.size else _nothing(x, shape)


def _unfold(x: Any, dimension: int, size: int, step: int) -> Any:
    axis = wrap_dim(dimension, x.ndim)
    length = x.shape[axis] if x.ndim else 1
    if size < 0:
        raise RuntimeError(f"size is {size} but must be >= 0")
    if size > length:
        raise RuntimeError(f"maximum size for tensor at dimension {axis} is {length} but size is {size}")
    if step <= 0:
        raise RuntimeError(f"step is {step} but must be > 0")
    if not x.ndim:
        return lying(x, (size,), (x.itemsize,))
    shape, strides = list(x.shape), [s * x.itemsize for s in element_strides(x)]
    shape[axis] = (length - size) // step + 1
    strides.append(strides[axis])
    strides[axis] *= step
    return lying(x, (*shape, size), strides)


# ----- copies ----------------------------------------------------------------------------

CHANNELS_LAST = {"channels_last": (4, (0, 2, 3, 1), (0, 3, 1, 2)),
                 "channels_last_3d": (5, (0, 2, 3, 4, 1), (0, 4, 1, 2, 3))}


def is_contiguous(x: Any, memory_format: Any = None) -> bool:
    """Whether the elements lie in the order that the format names (row-major if None)."""
    name = "contiguous_format" if memory_format is None else memory_format.name
    if name in CHANNELS_LAST:
        ndim, order, _ = CHANNELS_LAST[name]
        return x.ndim == ndim and x.transpose(order).flags.c_contiguous
    return x.flags.c_contiguous


def copy_as(x: Any, memory_format: Any = None) -> Any:
    """A copy whose elements lie as the format says; None and `preserve_format` keep the order of dimensions."""
    if memory_format is None and x.flags.c_contiguous:
        return x.copy()
    name = "preserve_format" if memory_format is None else memory_format.name
    if name in CHANNELS_LAST:
        ndim, order, back = CHANNELS_LAST[name]
        if x.ndim != ndim:
            raise RuntimeError(f"required rank {ndim} tensor to use {name} format")
        return np.array(x.transpose(order), order="C", copy=True).transpose(back)
    if name == "contiguous_format":
        return np.array(x, order="C", copy=True)
    copied = np.array(x, order="K", copy=True)
    if 0 in x.strides and x.size > 1 and 0 in copied.strides:
        copied = np.array(x, order="C", copy=True)
    return copied


def _clone(x: Any, memory_format: Any = None) -> Any:
    return copy_as(x, memory_format)


def _contiguous(x: Any, memory_format: Any = None) -> Any:
    return x if is_contiguous(x, memory_format) else copy_as(x, memory_format)


def _to(x: Any, dtype: Any) -> Any:
    return dtypes.cast(x, dtype.numpy if isinstance(dtype, dtypes.dtype) else dtype)


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


def _tril(x: Any, diagonal: int = 0) -> Any:
    if x.ndim < 2:
        raise RuntimeError("tril: input tensor must have at least 2 dimensions")
    return np.tril(x, diagonal)


def _triu(x: Any, diagonal: int = 0) -> Any:
    if x.ndim < 2:
        raise RuntimeError("triu: input tensor must have at least 2 dimensions")
    return np.triu(x, diagonal)


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
                           "length "
                           f"is {len(pad)} while the input has {x.ndim} dimensions.")
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


# ----- gradients of views ------------------------------------------------------------------


def _embed(x: Any, size: tuple[int, ...], key: tuple[Any, ...]) -> Any:
    whole = np.zeros(size, x.dtype)
    whole[key] = x
    return whole


def _embed_diagonal(x: Any, size: tuple[int, ...], offset: int, dim1: int, dim2: int) -> Any:
    whole = np.zeros(size, x.dtype)
    if x.size:
        _diagonal(whole, offset, dim1, dim2)[...] = x
    return whole


def _embed_windows(x: Any, size: tuple[int, ...], dimension: int, window: int, step: int) -> Any:
    """The transpose of `unfold`: windows added where they came from."""
    narrow = x.dtype == dtypes.BFLOAT16
    if narrow:
        x = dtypes.widen(x)
    whole = np.zeros(size, x.dtype)
    if x.size:
        if not size:
            whole[...] = x.sum()
        else:
            axis = wrap_dim(dimension, len(size))
            count = x.shape[axis]
            for i in range(window):
                whole[(slice(None),) * axis + (slice(i, i + (count - 1) * step + 1, step),)] += x[..., i]
    return dtypes.to_bfloat16(whole) if narrow else whole


def _strided_part(x: Any, geometry: Any) -> Any:
    return geometry.take(np.ascontiguousarray(x).reshape(x.shape))


def _embed_strided(x: Any, geometry: Any) -> Any:
    narrow = x.dtype == dtypes.BFLOAT16
    whole = geometry.embed(dtypes.widen(x) if narrow else x)
    return dtypes.to_bfloat16(whole) if narrow else whole


def _replace_strided(x: Any, source: Any, geometry: Any) -> Any:
    whole = np.array(x, order="C", copy=True)
    geometry.put(whole, dtypes.cast(source, x.dtype))
    return whole


def _replace_part(x: Any, source: Any, shape: tuple[int, ...], key: tuple[Any, ...], what: str) -> Any:
    if source.shape != shape:
        raise RuntimeError(f"expected src to have a size equal to the {what} of self. src size = {list(source.shape)}, "
                           f"{what} size = {list(shape)}")
    whole = np.array(x, order="K", copy=True)
    whole[key] = dtypes.cast(source, x.dtype)
    return whole


def _replace_diagonal(x: Any, source: Any, offset: int, dim1: int, dim2: int) -> Any:
    shape = _diagonal(x, offset, dim1, dim2).shape
    if source.shape != shape:
        raise RuntimeError(f"expected src to have a size equal to the slice of self. src size = {list(source.shape)}, "
                           f"slice size = {list(shape)}")
    whole = np.array(x, order="C", copy=True)
    if whole.size:
        _diagonal(whole, offset, dim1, dim2)[...] = dtypes.cast(source, x.dtype)
    return whole


# ----- filled arrays -----------------------------------------------------------------------


def filled(value: Any, dtype: np.dtype) -> Any:
    """A number as NumPy can put it into an array of that dtype."""
    if value.__class__ is ndarray:
        return dtypes.cast(value, dtype)
    if dtype == dtypes.BFLOAT16:
        return dtypes.to_bfloat16(np.asarray(value.real, np.float32))
    if isinstance(value, complex) and dtype.kind != "c":
        value = value.real
    if dtype.kind in "iu" and isinstance(value, (int, float)):
        if value != value or value in (float("inf"), -float("inf")):
            return np.array(value).astype(dtype)
        return np.array(int(value) & (2 ** (8 * dtype.itemsize) - 1), np.uint64).astype(dtype)
    return value


_SCALAR_NAMES = {"int64": "int64_t", "int32": "int32_t", "int16": "int16_t", "int8": "int8_t", "uint8": "uint8_t",
                 "uint16": "uint16_t", "uint32": "uint32_t", "uint64": "uint64_t", "float32": "float",
                 "float64": "double", "float16": "c10::Half", "bfloat16": "c10::BFloat16"}


def refuse_number(value: Any, dtype: dtypes.dtype) -> None:
    """What cannot become an element of that dtype.

    Raises:
        RuntimeError: a complex number for a real tensor, or one too large (PyTorch's text).
    """
    wrong = False
    if isinstance(value, complex):
        wrong = bool(value.imag) and not dtype.is_complex and dtype is not dtypes.bool_
    elif dtype.category == dtypes.INTEGER and isinstance(value, (int, float)) and not isinstance(value, bool):
        limits = np.iinfo(dtype.numpy)
        low = limits.min if limits.min else -int(limits.max) - 1
        wrong = value != value or value in (float("inf"), -float("inf")) or not low <= int(value) <= limits.max
    if wrong:
        raise RuntimeError(f"value cannot be converted to type {_SCALAR_NAMES.get(dtype.name, dtype.name)} without "
                           "overflow")


def _full_like(x: Any, value: Any) -> Any:
    out = np.empty_like(x)
    out[...] = filled(value, x.dtype)
    return out


def _full(size: Any, value: Any, dtype: Any) -> Any:
    return np.full(size, value, dtype.numpy if isinstance(dtype, dtypes.dtype) else dtype)


def _zeros(size: Any, dtype: Any) -> Any:
    return np.zeros(size, dtype.numpy if isinstance(dtype, dtypes.dtype) else dtype)


def _ones_like(x: Any) -> Any:
    return np.ones_like(x) if x.dtype != dtypes.BFLOAT16 else _full_like(x, 1.0)


PRIMITIVES = {
    "view": _view, "reshape": _reshape, "reshaped": _reshape, "view_dtype": _view_dtype, "strided_view": strided,
    "t": _t, "transpose": _transpose, "permute": _permute, "expand": _expand, "broadcast_to": _broadcast_to,
    "squeeze": _squeeze, "unsqueeze": _unsqueeze, "select": _select, "slice": _slice, "diagonal": _diagonal,
    "unfold": _unfold, "clone": _clone, "contiguous": _contiguous, "to": _to, "flip": _flip, "roll": _roll,
    "rot90": _rot90, "tril": _tril, "triu": _triu, "repeat": _repeat, "constant_pad": _constant_pad,
    "bordered": _bordered, "gather_border": _gather_border, "embed": _embed, "embed_diagonal": _embed_diagonal,
    "embed_windows": _embed_windows, "replace_part": _replace_part, "replace_diagonal": _replace_diagonal,
    "zeros": _zeros, "full": _full, "full_like": _full_like, "zeros_like": np.zeros_like, "ones_like": _ones_like,
    "strided_part": _strided_part, "embed_strided": _embed_strided, "replace_strided": _replace_strided,
}
