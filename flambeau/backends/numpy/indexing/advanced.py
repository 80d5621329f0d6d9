"""Advanced indexing: an index array for some of the dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....kernels import small_indexing
from ...compiled import few_positions
from ...compiled.thresholds import INDEXING, SMALL_KERNELS
from ..memory import copy_as
from .bounds import gather_threshold, kernels_for, largest, least

#: number of indices up to which NumPy's own check of bounds and of signs is faster than one before
_FEW_INDICES = 1024


def _index_list(indices: tuple[Any, ...]) -> Sequence[Any]:
    """Return the indices, given separately or as one list."""
    return indices[0] if len(indices) == 1 and indices[0].__class__ is list else indices


def _single_index(indices: Sequence[Any]) -> tuple[Any, int] | None:
    """Return the index and its dimension if there is exactly one, of integers."""
    given = [(index, axis) for axis, index in enumerate(indices) if index is not None]
    return given[0] if len(given) == 1 and given[0][0].dtype.kind == "i" else None


def _index(x: Any, *indices: Any) -> Any:
    """Return the elements at index arrays; None stands for an entire dimension."""
    only = _single_index(_index_list(indices)) if x.size > INDEXING[0] else None
    if only is not None:
        index, axis = only
        size = index.size * (x.size // x.shape[axis])
        kernels = kernels_for(size, index, gather_threshold(axis))
        if kernels is not None:
            lead, rest = x.shape[:axis], x.shape[axis + 1:]
            result = kernels.take(x, kernels.index_along(index, axis, x.ndim), axis, (*lead, index.size, *rest), True)
            if result is not None:
                return result.reshape(*lead, *index.shape, *rest)
    elif x.size and _are_few(_index_list(indices)):
        try:
            result = x[tuple([slice(None) if index is None else index for index in _index_list(indices)])]
            return result if result.__class__ is np.ndarray else np.asarray(result)
        except IndexError:
            pass  # the checks below raise PyTorch's error
    key = _key(x, _index_list(indices))
    flat = _flat_positions(x, key) if x.size > INDEXING[0] else None
    result = x[key] if flat is None else x.reshape(-1).take(flat)
    return result if result.__class__ is np.ndarray else np.asarray(result)


def _are_few(indices: Sequence[Any]) -> bool:
    """Return whether NumPy may be given the indices as they are: few integers, at least one each."""
    for index in indices:
        if index is not None and not (0 < index.size <= _FEW_INDICES and index.dtype.kind == "i"):
            return False
    return True


def _flat_positions(x: Any, key: tuple[Any, ...]) -> Any:
    """Return the positions in the flat array of a key with an index of one shape, int64, for each dimension, or None.

    None, too, for negative indices: NumPy wraps them as fast.
    """
    first = key[0]
    if len(key) != x.ndim or len(key) < 2 or not x.flags.c_contiguous or any(
            k.__class__ is not np.ndarray or k.shape != first.shape or k.dtype != np.int64 for k in key) or (
            not first.size or any(least(k, None) < 0 for k in key)):
        return None
    flat = first * x.shape[1]
    flat += key[1]
    for size, k in zip(x.shape[2:], key[2:], strict=True):
        flat *= size
        flat += k
    return flat


def _key(x: Any, indices: Sequence[Any]) -> tuple[Any, ...]:
    """Return the indices as NumPy's key; raise PyTorch's error where they are out of bounds."""
    key: list[Any] = []
    axis = 0
    if [True for index in indices if index is not None and not index.size]:  # of no elements: PyTorch does not look
        shape = _common_shape([index.shape for index in indices if index is not None])
        return tuple(slice(None) if index is None else np.zeros(shape, np.int64) for index in indices)
    for index in indices:
        if index is None:
            key.append(slice(None))
            axis += 1
            continue
        if index.dtype.kind == "b":  # a mask, as handlers of `__torch_dispatch__` pass it on
            key.extend(index.nonzero())
            axis += index.ndim
            continue
        size = x.shape[axis]
        if index.size:
            if not size and x.size == 0:
                raise IndexError("index is out of bounds for dimension with size 0")
            low, high = least(index, None), largest(index, None)
            if (low < -size or high >= size) and x.size == 0:
                index = np.zeros_like(index)  # of no elements: PyTorch does not look
            elif low < -size or high >= size:
                raise _out_of_bounds(x.shape, indices)
        key.append(index)
        axis += 1
    return tuple(key)


def _common_shape(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        raise IndexError("shape mismatch: indexing tensors could not be broadcast together with shapes "
                         + ", ".join(str(list(s)) for s in shapes)) from None


def _out_of_bounds(shape: Sequence[int], indices: Sequence[Any]) -> IndexError:
    """The error about the first indexed element, in row-major order, that is out of bounds in a dimension."""
    sizes = [size for size, index in zip(shape, indices, strict=False) if index is not None]
    known = [index for index in indices if index is not None]
    shape = _common_shape([index.shape for index in known])
    arrays = [np.broadcast_to(index, shape) for index in known]
    wrong = [(index < -size) | (index >= size) for index, size in zip(arrays, sizes, strict=True)]
    first = np.any(wrong, axis=0).argmax()
    dim = next(i for i, each in enumerate(wrong) if each.flat[first])  # PyTorch counts indexed dimensions only
    return IndexError(f"index {arrays[dim].flat[first]} is out of bounds for dimension {dim} with size {sizes[dim]}")


def _index_put(x: Any, values: Any, *indices: Any, accumulate: bool = False) -> Any:
    out = copy_as(x)
    put_at(out, values, _index_list(indices), accumulate)
    return out


def check_values_fit(target: Any, values: Any, indices: Sequence[Any]) -> None:
    """Check, without a look at the indices themselves, that values broadcast to the shape that is indexed.

    Raises:
        RuntimeError: they do not (PyTorch's text).
        IndexError: the indices do not broadcast, or are of a dimension without elements.
    """
    shape = _common_shape([np.shape(i) for i in indices if i is not None])
    if 0 not in shape and any(i is not None and not n for i, n in zip(indices, target.shape, strict=False)):
        raise IndexError("index is out of bounds for dimension with size 0")
    key = tuple(slice(None) if i is None else np.zeros(shape, np.int64) for i in indices)
    full = np.broadcast_to(np.zeros((), np.bool_), target.shape)[key].shape
    try:
        if np.broadcast_shapes(full, values.shape) != full:
            raise ValueError
    except ValueError:
        raise RuntimeError(f"shape mismatch: value tensor of shape {list(values.shape)} cannot be broadcast to "
                           f"indexing result of shape {list(full)}") from None


def put_at(target: Any, values: Any, indices: Sequence[Any], accumulate: bool) -> None:
    """Write or add `values` at advanced indices of an array, in place.

    Raises:
        RuntimeError: the values do not broadcast to the indexed shape (PyTorch's text).
    """
    if not accumulate and values.ndim <= 1 and target.size and not [
            True for index in indices if index is not None and (index.dtype.kind != "i" or not index.size)]:
        try:  # NumPy checks all indices, and shapes, before it writes
            target[tuple([slice(None) if index is None else index for index in indices])] = values
            return
        except (IndexError, ValueError):
            pass
    try:
        key = _key(target, indices)
    except IndexError:
        check_values_fit(target, values, indices)
        raise
    arrays = [k for k in key if k.__class__ is np.ndarray]
    try:
        if arrays and values.ndim > max(k.ndim for k in arrays) + target.ndim - len(arrays):
            raise ValueError  # NumPy ignores leading dimensions of size 1
        if accumulate:
            from ....kernels.scatter import index_put_accumulate

            if target.dtype.kind == "b":
                wide = index_put_accumulate(target.astype(np.int64), key, values.astype(np.int64))
                target[...] = wide != 0
            else:
                index_put_accumulate(target, key, values)
        else:
            target[key] = values
    except ValueError:
        full = np.empty(target.shape, np.bool_)[key].shape
        raise RuntimeError(f"shape mismatch: value tensor of shape {list(values.shape)} cannot be broadcast to "
                           f"indexing result of shape {list(full)}") from None


def _add_at_indices(x: Any, *indices: Any, size: tuple[int, ...]) -> Any:
    """Return zeros of shape `size` with `x` added at the indices, the transpose of `index`."""
    few = few_positions() if SMALL_KERNELS[0] else None
    result = None if few is None else few.add_at_indices(_index_list(indices), x, tuple(size))
    if result is not None:
        return result
    if x.size <= INDEXING[0]:
        result = small_indexing.add_at_indices(x, _index_list(indices), tuple(size))
        if result is not None:
            return result
    from ....kernels.scatter import index_put_accumulate

    only = _single_index(_index_list(indices)) if x.size > INDEXING[0] else None
    kernels = None if only is None else kernels_for(x.size, only[0])
    if only is not None and kernels is not None:
        index, axis = only
        source = x.reshape(*size[:axis], index.size, *size[axis + 1:])
        along = kernels.index_along(index, axis, len(size))
        result = kernels.put_into_zeros(along, source, axis, tuple(size), "add", True)
        if result is not None:
            return result
    out = np.zeros(size, x.dtype)
    return index_put_accumulate(out, _key(out, _index_list(indices)), x)


PRIMITIVES: dict[str, Any] = {
    "index": _index, "index_put": _index_put, "add_at_indices": _add_at_indices,
}
