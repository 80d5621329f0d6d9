"""Indices of arrays as indices of tensors, with NumPy's order of dimensions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import flambeau as torch

from . import _util

_NARROW = (torch.int8, torch.int16, torch.int32, torch.uint8)


def _is_advanced(index: Any) -> bool:
    if isinstance(index, torch.Tensor):
        return index.dtype == torch.bool or index.ndim > 0
    return isinstance(index, (Sequence, bool))


def _widened(index: Any) -> Any:
    if isinstance(index, torch.Tensor):
        return index.to(torch.int64) if index.dtype in _NARROW else index
    return tuple(map(_widened, index)) if isinstance(index, tuple) else index


def _consumed(index: Any) -> int:
    """The dimensions that an index takes."""
    if index is None or isinstance(index, bool):
        return 0
    if isinstance(index, torch.Tensor) and index.dtype == torch.bool:
        return int(index.ndim)
    if isinstance(index, Sequence) and not isinstance(index, str):
        mask = torch.as_tensor(index)
        return int(mask.ndim) if mask.dtype == torch.bool and mask.numel() else 1
    return 1


def _same(x: Any) -> Any:
    return x


def tensor_index(index: Any, ndim: int) -> tuple[Any, Callable[[Any], Any], Callable[[Any], Any]]:
    """The index of a tensor, what is done with the result, and with a value that is written.

    Numbers beside lists, masks and arrays are arrays, too: they decide where the dimensions of the result are. So does
    an ellipsis that stands for no dimension.
    """
    index = _widened(_util.ndarrays_to_tensors(index))
    items = index if isinstance(index, tuple) else (index,)
    if not any(map(_is_advanced, items)):
        return items, _same, _same
    items = tuple([each] if isinstance(each, int) and not isinstance(each, bool) else each for each in items)
    places = [at for at, each in enumerate(items) if each is Ellipsis]
    if len(places) != 1 or sum(_consumed(each) for each in items if each is not Ellipsis) != ndim:
        return items, _same, _same
    before, after = items[:places[0]], items[places[0] + 1:]
    if not (any(map(_is_advanced, before)) and any(map(_is_advanced, after))):
        return items, _same, _same
    dim = -1 - sum(isinstance(each, slice) for each in after)
    return ((*before, None, *after), lambda x: x.squeeze(dim),
            lambda x: x.unsqueeze(dim) if isinstance(x, torch.Tensor) and x.ndim >= -dim else x)


def without_negative_steps(tensor: Any, index: Any) -> tuple[Any, Any]:
    """A tensor and its index with the same result, without slices of a negative step, which tensors do not have."""
    items = index if isinstance(index, tuple) else (index,)
    if not any(isinstance(each, slice) and each.step is not None and each.step < 0 for each in items):
        return tensor, index
    taken = sum(_consumed(_util.ndarrays_to_tensors(each)) for each in items if each is not Ellipsis)
    found, dim = [], 0
    for each in items:
        if each is Ellipsis:
            dim += tensor.ndim - taken
        elif isinstance(each, slice) and each.step is not None and each.step < 0:
            positions = range(*each.indices(tensor.shape[dim]))
            tensor = torch.flip(tensor, (dim,))
            last = tensor.shape[dim] - 1
            found.append(slice(last - positions.start, last - positions[-1] + 1, -each.step) if positions
                         else slice(0, 0))
            dim += 1
            continue
        else:
            dim += _consumed(_util.ndarrays_to_tensors(each))
        found.append(each)
    return tensor, tuple(found)


__all__ = ["tensor_index", "without_negative_steps"]
