"""Views of arrays, their transposes, and replacement of a view's elements."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ... import dtypes
from ...shapes import infer_size, wrap_dim, wrap_dims
from ..compiled import copy, copy_kernels, new_copy
from ..compiled.thresholds import COPIES, PERMUTED_COPIES
from .memory import address, copy_with_memory, element_strides, empty_view, owner, view_memory

# ----- views -----------------------------------------------------------------------------

_VIEW_INCOMPATIBLE = ("view size is not compatible with input tensor's size and stride (at least one dimension spans "
                      "across two contiguous subspaces). Use .reshape(...) instead.")


def is_row_major(x: Any) -> bool:
    """Return whether `x.reshape` is a view with PyTorch's strides: row-major, with those of dimensions of size 1."""
    if not x.flags.c_contiguous:
        return False
    if 1 not in x.shape:
        return True
    step = x.itemsize
    for size, stride in zip(x.shape[::-1], x.strides[::-1], strict=True):
        if stride != step:
            return False
        step *= size
    return step > 0


def _view(x: Any, size: tuple[int, ...]) -> Any:
    """Return a view of `x` with another shape.

    Raises:
        RuntimeError: the strides do not allow it (PyTorch's text).
    """
    result = reshaped_view(x, tuple(size))
    if result is None:
        raise RuntimeError(_VIEW_INCOMPATIBLE)
    return result


def reshaped_view(x: Any, size: tuple[int, ...]) -> Any:
    """Return a view of `x` with another shape; None if the strides do not allow it.

    Raises:
        RuntimeError: the shape has another number of elements.
    """
    shape = infer_size(size, x.size)
    if is_row_major(x) or (x.flags.c_contiguous and not x.size):
        return x.reshape(shape)
    item = x.itemsize
    strides = _view_strides(x.shape, element_strides(x), shape)
    return None if strides is None else view_memory(x, shape, tuple([s * item for s in strides]))


def _view_strides(shape: tuple[int, ...], strides: tuple[int, ...], target: tuple[int, ...]) -> list[int] | None:
    """Return the strides of a view with shape `target`; None if there is no such view.

    The old dimensions form runs that are contiguous up to a stride; a new dimension must be within one run.
    """
    result = [0] * len(target)
    d_new = len(target) - 1
    while d_new >= 0 and not shape:
        result[d_new] = 1
        d_new -= 1
    old_count = new_count = 1  # elements of the current run, in old and in new dimensions
    step = strides[-1] if strides else 1
    for d in range(len(shape) - 1, -1, -1):
        old_count *= shape[d]
        if d and (shape[d - 1] == 1 or strides[d - 1] == old_count * step):
            continue
        while d_new >= 0 and (new_count < old_count or target[d_new] == 1):
            result[d_new] = new_count * step
            new_count *= target[d_new]
            d_new -= 1
        if new_count != old_count:
            return None
        if d:
            step, old_count, new_count = strides[d - 1], 1, 1
    return result if d_new < 0 else None


def _view_dtype(x: Any, dtype: Any) -> Any:
    """Return a view of the bytes of `x` as another dtype; the last size changes with the item size."""
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
            offset = (address(x) - address(owner(x))) // x.itemsize
            if offset % ratio:
                raise RuntimeError(f"self.storage_offset() must be divisible by {ratio} to {names}, but got {offset}")
            for i, s in enumerate(element_strides(x)[:-1]):
                if s % ratio:
                    raise RuntimeError(f"self.stride({i}) must be divisible by {ratio} to {names}, but got {s}")
        if not x.size:
            last = x.shape[-1] * x.itemsize // to.itemsize
            strides = (*(s * x.itemsize for s in element_strides(x)[:-1]), to.itemsize)
            return view_memory(empty_view(x, (0,)).view(to), (*x.shape[:-1], last), strides)
    return x.view(to)


def _reshape(x: Any, size: tuple[int, ...]) -> Any:
    shape = infer_size(tuple(size), x.size)
    if (x.size > PERMUTED_COPIES[0] and not x.flags.c_contiguous
            and _view_strides(x.shape, element_strides(x), shape) is None):
        x = new_copy(x)
    return x.reshape(shape)


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
                           f"of the desired ordering of dimensions i.e. input.dim() = {n} is not equal to len(dims) = "
                           f"{len(dims)}")
    order = [wrap_dim(d, n) for d in dims]
    if len(set(order)) != n:
        raise RuntimeError("permute(): duplicate dims are not allowed.")
    return x.transpose(order)


def _expand(x: Any, size: tuple[int, ...], implicit: bool = False) -> Any:
    lead = len(size) - x.ndim
    if lead < 0:
        kind = dtypes.stream_type_name(dtypes.of(x.dtype))
        raise RuntimeError(f"expand({kind}{{{list(x.shape)}}}, size={list(size)}): the number of sizes provided "
                           f"({len(size)}) must be greater or equal to the number of dimensions in the tensor "
                           f"({x.ndim})")
    full, strides = [], []
    for i in range(len(size) - 1, lead - 1, -1):  # PyTorch's message names the last mismatch
        old_size, s = x.shape[i - lead], size[i]
        if old_size not in (1, s) and s != -1:
            raise RuntimeError(f"The expanded size of the tensor ({s}) must match the existing size "
                               f"({old_size}) at non-singleton dimension {i}.  Target sizes: {list(size)}.  "
                               f"Tensor sizes: {list(x.shape)}")
    for i, s in enumerate(size):
        if i < lead:
            if s < 0:
                if not x.ndim:  # PyTorch's text
                    raise RuntimeError("numel: integer multiplication overflow")
                raise RuntimeError(f"The expanded size of the tensor ({s}) isn't allowed in a leading, non-existing "
                                   f"dimension {i}")
            full.append(s)
            strides.append(0 if s != 1 else -1)
            continue
        old_size = x.shape[i - lead]
        if s == -1:
            s = old_size
        full.append(s)
        strides.append(0 if old_size == 1 and s != 1 else x.strides[i - lead])
    for i in range(lead - 1, -1, -1):
        if strides[i] < 0:  # the stride of a new dimension of size 1
            strides[i] = full[i + 1] * strides[i + 1] if i + 1 < len(full) else 0
    return view_memory(x, tuple(full), tuple(strides))


def _broadcast_to(x: Any, size: tuple[int, ...]) -> Any:
    if x.__class__ is not np.ndarray:
        x = np.asarray(x)
        if 1 not in size:  # a NumPy scalar, e.g. a sum's gradient
            return np.ndarray(size, x.dtype, x, 0, (0,) * len(size))
    elif not x.ndim and 1 not in size:
        return np.ndarray(size, x.dtype, x, 0, (0,) * len(size)) if size else x
    return x if x.shape == tuple(size) else _expand(x, tuple(size))


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
        if not -(2**63) <= dim < 2**63:
            raise ValueError("Overflow when unpacking long long")
        raise IndexError(f"Dimension out of range (expected to be in range of [{-n - 1}, {n}], but got {dim})")
    return with_axis(x, dim if dim >= 0 else dim + n + 1)


def with_axis(x: Any, axis: int) -> Any:
    """Return `x` with a new axis of size 1 and PyTorch's stride (NumPy's would be 0)."""
    shape = x.shape
    full = (*shape[:axis], 1, *shape[axis:])
    if x.flags.c_contiguous and (1 not in x.shape or not x.size):  # NumPy's strides of dimensions of size 1 differ
        return x.reshape(full)
    strides = x.strides
    new = shape[axis] * strides[axis] if axis < len(shape) else x.itemsize
    return view_memory(x, full, (*strides[:axis], new, *strides[axis:]))


def _select(x: Any, dim: int, index: int) -> Any:
    if not x.ndim:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    axis = wrap_dim(dim, x.ndim)
    if not -x.shape[axis] <= index < x.shape[axis]:
        raise IndexError(f"select(): index {index} out of range for tensor of size {list(x.shape)} at dimension {axis}")
    return x[(slice(None),) * axis + (index, ...)]


def slice_bounds(start: int | None, end: int | None, length: int) -> tuple[int, int]:
    """Return the bounds of a slice in a dimension of `length`, clamped as in Python."""
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
        raise IndexError("slice() cannot be applied to a 0-dim tensor.")
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
    if x.ndim == 2 and length and x.__class__ is np.ndarray:
        s, t = x.strides[a], x.strides[b]
        return view_memory(x, (length,), (s + t,), offset * t if offset >= 0 else -offset * s)
    rest = [i for i in range(x.ndim) if i not in (a, b)]
    steps = [s * x.itemsize for s in element_strides(x)]
    start = 0 if not length else offset * steps[b] if offset >= 0 else -offset * steps[a]
    shape = (*[x.shape[i] for i in rest], length)
    strides = (*[steps[i] for i in rest], steps[a] + steps[b])
    return view_memory(x, shape, strides, start) if length and x.size else empty_view(x, shape)


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
        return view_memory(x, (size,), (x.itemsize,))
    shape, strides = list(x.shape), [s * x.itemsize for s in element_strides(x)]
    shape[axis] = (length - size) // step + 1
    strides.append(strides[axis])
    strides[axis] *= step
    return view_memory(x, (*shape, size), strides)


# ----- transposes of views ------------------------------------------------------------------


def _embed(x: Any, size: tuple[int, ...], key: tuple[Any, ...]) -> Any:
    kernels = copy_kernels() if prod(size) > COPIES[0] else None
    out: Any = np.zeros(size, x.dtype) if kernels is None else kernels.zeros(size, x.dtype)
    part = None if kernels is None else out[key]
    if part.__class__ is np.ndarray and part.base is out:
        copy(part, x)
    else:
        out[key] = x
    return out


def _embed_diagonal(x: Any, size: tuple[int, ...], offset: int, dim1: int, dim2: int) -> Any:
    out = np.zeros(size, x.dtype)
    if x.size:
        _diagonal(out, offset, dim1, dim2)[...] = x
    return out


def _embed_windows(x: Any, size: tuple[int, ...], dimension: int, window: int, step: int) -> Any:
    """Return the transpose of `unfold`: windows accumulated at their positions."""
    narrow = x.dtype == dtypes.BFLOAT16
    if narrow:
        x = dtypes.widen(x)
    out = np.zeros(size, x.dtype)
    if x.size:
        if not size:
            out[...] = x.sum()
        else:
            axis = wrap_dim(dimension, len(size))
            count = x.shape[axis]
            for i in range(window):
                out[(slice(None),) * axis + (slice(i, i + (count - 1) * step + 1, step),)] += x[..., i]
    return dtypes.to_bfloat16(out) if narrow else out


def _take_strided(x: Any, geometry: Any) -> Any:
    return geometry.take(np.ascontiguousarray(x).reshape(x.shape))


def _embed_strided(x: Any, geometry: Any) -> Any:
    narrow = x.dtype == dtypes.BFLOAT16
    out = geometry.embed(dtypes.widen(x) if narrow else x)
    return dtypes.to_bfloat16(out) if narrow else out


def _replace_strided(x: Any, source: Any, geometry: Any) -> Any:
    out = np.array(x, order="C", copy=True)
    geometry.put(out, dtypes.cast(source, x.dtype))
    return out


def _replace_part(x: Any, source: Any, shape: tuple[int, ...], key: tuple[Any, ...], what: str) -> Any:
    if source.shape != shape:
        raise RuntimeError(f"expected src to have a size equal to the {what} of self. src size = {list(source.shape)}, "
                           f"{what} size = {list(shape)}")
    out = copy_with_memory(x)
    out[key] = dtypes.cast(source, x.dtype)
    return out


def _replace_diagonal(x: Any, source: Any, offset: int, dim1: int, dim2: int) -> Any:
    shape = _diagonal(x, offset, dim1, dim2).shape
    if source.shape != shape:
        raise RuntimeError(f"expected src to have a size equal to the slice of self. src size = {list(source.shape)}, "
                           f"slice size = {list(shape)}")
    out = copy_with_memory(x)
    if out.size:
        _diagonal(out, offset, dim1, dim2)[...] = dtypes.cast(source, x.dtype)
    return out


PRIMITIVES = {
    "view": _view, "reshape": _reshape, "reshaped": _reshape, "view_dtype": _view_dtype, "t": _t,
    "transpose": _transpose, "permute": _permute, "expand": _expand, "broadcast_to": _broadcast_to,
    "squeeze": _squeeze, "unsqueeze": _unsqueeze, "_squeeze_to": _reshape, "_unsqueeze_to": _reshape,
    "select": _select, "slice": _slice, "diagonal": _diagonal, "unfold": _unfold, "embed": _embed,
    "embed_diagonal": _embed_diagonal, "embed_windows": _embed_windows, "replace_basic_index": _replace_part,
    "replace_diagonal": _replace_diagonal, "take_strided": _take_strided, "embed_strided": _embed_strided,
    "replace_strided": _replace_strided,
}
