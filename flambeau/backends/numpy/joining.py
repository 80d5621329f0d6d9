"""Concatenation and splitting of arrays."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from ...dtypes import BFLOAT16
from ...shapes import wrap_dim
from ..compiled import concat_kernels, empty_array
from ..compiled.thresholds import CONCATENATIONS


def concatenate_arrays(arrays: Sequence[np.ndarray], axis: int) -> np.ndarray:
    """Concatenate arrays; large ones are copied by threads."""
    if arrays[0].dtype is BFLOAT16 and all(a.__class__ is np.ndarray and a.dtype is BFLOAT16 for a in arrays):
        # NumPy moves them singly
        return concatenate_arrays([a.view(np.uint16) for a in arrays], axis).view(BFLOAT16)
    size = sum([a.size for a in arrays])
    copier = concat_kernels(size, len(arrays)) if size > CONCATENATIONS[0] else None
    if copier is None or not _can_concatenate(arrays, axis):
        return np.concatenate(arrays, axis)
    first = arrays[0]
    axis %= first.ndim
    lead = (slice(None),) * axis
    out = empty_array((*first.shape[:axis], sum([a.shape[axis] for a in arrays]), *first.shape[axis + 1:]), first.dtype)
    end = 0
    for a in arrays:
        start, end = end, end + a.shape[axis]
        piece = out[(*lead, slice(start, end))]
        if not copier.copy(piece, a):
            piece[...] = a
    return out


def _can_concatenate(arrays: Sequence[np.ndarray], axis: int) -> bool:
    """Return whether arrays of one dtype can be concatenated along an axis."""
    first = arrays[0]
    if not -first.ndim <= axis < first.ndim:
        return False
    axis %= first.ndim
    return all(a.dtype == first.dtype and a.ndim == first.ndim and a.shape[:axis] == first.shape[:axis]
               and a.shape[axis + 1:] == first.shape[axis + 1:] for a in arrays)


def stack_arrays(arrays: Sequence[np.ndarray], axis: int) -> np.ndarray:
    """Stack arrays along a new axis; large ones are copied by threads."""
    shape = arrays[0].shape
    ndim = len(shape)
    at = axis + ndim + 1 if axis < 0 else axis
    if not 0 <= at <= ndim or any(a.shape != shape for a in arrays):
        return np.stack(arrays, axis)
    if at == ndim:
        return concatenate_arrays([a[..., None] for a in arrays], at)
    # concatenated along `at`, each array is one block of rows of that dimension
    return concatenate_arrays(arrays, at).reshape(*shape[:at], len(arrays), *shape[at:])


def _cat(*arrays: Any, dim: int = 0) -> Any:
    if len(arrays) == 1 and arrays[0].__class__ is list:  # the public form
        arrays = tuple(arrays[0])
    axis, non_empty = check_cat(arrays, dim)
    if not non_empty:
        return np.array(arrays[0], copy=True)
    return concatenate_arrays([a for _, a in non_empty], axis)


def check_cat(arrays: Sequence[Any], dim: int = 0) -> tuple[int, list[tuple[int, Any]]]:
    """The axis that arrays are concatenated along, and those that are, with their positions.

    Raises:
        ValueError, RuntimeError, IndexError: their shapes do not fit (PyTorch's texts).
    """
    if not arrays:
        raise ValueError("torch.cat(): expected a non-empty list of Tensors")
    for i, a in enumerate(arrays):
        if not a.ndim:
            raise RuntimeError(f"zero-dimensional tensor (at position {i}) cannot be concatenated")
    non_empty = [(i, a) for i, a in enumerate(arrays) if a.shape != (0,)]  # PyTorch skips empty vectors
    if not non_empty:
        return 0, []
    first = non_empty[0][1]
    axis = wrap_dim(dim, first.ndim)
    for i, a in non_empty[1:]:
        if a.ndim != first.ndim:
            raise RuntimeError(f"Tensors must have same number of dimensions: got {first.ndim} and {a.ndim}")
        for d, (expected, got) in enumerate(zip(first.shape, a.shape, strict=True)):
            if d != axis and expected != got:
                raise RuntimeError(f"Sizes of tensors must match except in dimension {axis}. Expected size {expected} "
                                   f"but got size {got} for tensor number {i} in the list.")
    return axis, non_empty


def _stack(*arrays: Any, dim: int = 0) -> Any:
    if len(arrays) == 1 and arrays[0].__class__ is list:
        arrays = tuple(arrays[0])
    return stack_arrays(arrays, check_stack(arrays, dim))


def check_stack(arrays: Sequence[Any], dim: int = 0) -> int:
    """The axis that arrays are stacked along.

    Raises:
        RuntimeError, IndexError: their shapes differ, or there is no such axis (PyTorch's texts).
    """
    if not arrays:
        raise RuntimeError("stack expects a non-empty TensorList")
    first = arrays[0].shape
    axis = wrap_dim(dim, len(first) + 1)
    for i, a in enumerate(arrays):
        if a.shape != first:
            raise RuntimeError(f"stack expects each tensor to be equal size, but got {list(first)} at entry 0 and "
                               f"{list(a.shape)} at entry {i}")
    return axis


def _unbind(x: Any, dim: int = 0) -> Any:
    axis = wrap_dim(dim, x.ndim)
    if not x.ndim:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    lead = (slice(None),) * axis
    return [x[(*lead, i, ...)] for i in range(x.shape[len(lead)])]


def _split(x: Any, split_size: int, dim: int = 0) -> Any:
    if not x.ndim:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    if split_size < 0:
        raise RuntimeError(f"split expects split_size be non-negative, but got split_size={split_size}")
    axis = wrap_dim(dim, x.ndim)
    length = x.shape[axis]
    if split_size == 0 and length:
        raise RuntimeError(f"split_size can only be 0 if dimension size is 0, but got dimension size of {length}")
    lead = (slice(None),) * axis
    starts = range(0, length, split_size) if length else (0,)
    return [x[(*lead, slice(i, min(i + split_size, length)))] for i in starts]


def _split_with_sizes(x: Any, split_sizes: tuple[int, ...], dim: int = 0) -> Any:
    if not x.ndim:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    axis = wrap_dim(dim, x.ndim)
    for s in split_sizes:
        if s < 0:
            raise RuntimeError(f"split_with_sizes expects split_sizes have only non-negative entries, but got "
                               f"split_sizes={list(split_sizes)}")
    if sum(split_sizes) != x.shape[axis]:
        raise RuntimeError(f"split_with_sizes expects split_sizes to sum exactly to {x.shape[axis]} (input tensor's "
                           f"size at dimension {dim}), but got split_sizes={list(map(int, split_sizes))}")
    lead = (slice(None),) * axis
    ends = list(accumulate(split_sizes))
    return [x[(*lead, slice(end - s, end))] for s, end in zip(split_sizes, ends, strict=True)]


def _block_diag(*arrays: Any) -> Any:
    blocks = [a.reshape(1, -1) if a.ndim < 2 else a for a in arrays]
    for i, a in enumerate(blocks):
        if a.ndim > 2:
            raise RuntimeError(f"torch.block_diag: Input tensors must have 2 or fewer dimensions. Input {i} has "
                               f"{a.ndim} dimensions")
    if not blocks:
        return np.zeros((1, 0), np.float32)
    out = np.zeros((sum(a.shape[0] for a in blocks), sum(a.shape[1] for a in blocks)), blocks[0].dtype)
    row = column = 0
    for a in blocks:
        out[row: row + a.shape[0], column: column + a.shape[1]] = a
        row, column = row + a.shape[0], column + a.shape[1]
    return out


PRIMITIVES = {"cat": _cat, "stack": _stack, "unbind": _unbind, "split": _split, "split_with_sizes": _split_with_sizes,
              "block_diag": _block_diag}
