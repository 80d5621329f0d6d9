"""Lowerings of `x[key]` and `x[key] = value`: views, gathers and writes."""

from __future__ import annotations

from typing import Any

import flambeau as torch

from ..._tensor.overriding.dispatch import without_handlers
from .calls import INTEGERS, Lowering, emit, lifted
from .symbolic_numbers import SymbolicInt, is_symbolic

_END = 2**63 - 1


def _getitem(builder: Any, func: Any, args: Any, kwargs: Any) -> Any:
    x, key = args
    result = _indexed(builder, x, key, copies_nothing=True)
    return NotImplemented if result is None else result


def _indexed(builder: Any, x: Any, key: Any, copies_nothing: bool = False) -> Any:
    """The views and the gather that indexing consists of; None where the operators below record it."""
    parts = _steps(builder, x, key)
    if parts is None:
        return None
    x, indices, taken = parts
    if indices:
        return emit(builder, "index.Tensor", x, indices)
    return emit(builder, "slice.Tensor", x, 0, 0, _END) if not taken and copies_nothing and x.dim() else x


def _steps(builder: Any, x: Any, key: Any) -> tuple[Any, list[Any], bool] | None:
    """(the view that the basic parts of a key select, the index tensors of its dimensions, whether it is another)."""
    items = list(key) if isinstance(key, tuple) else [key]
    items = [_plain(item) for item in items]
    if any(not (item is None or item is Ellipsis or isinstance(item, (int, SymbolicInt, slice, torch.Tensor))) or (
            isinstance(item, bool)) for item in items):
        return None
    used = sum(item.dim() if isinstance(item, torch.Tensor) and item.dtype in (torch.bool, torch.uint8) else 1
               for item in items if item is not None and item is not Ellipsis)
    dim, taken = 0, False
    indices: dict[int, Any] = {}
    for item in items:
        if item is Ellipsis:
            dim += x.dim() - sum(1 for i in indices if i < 0) - used - dim + _consumed(items, item)
            continue
        if item is None:
            x, taken = emit(builder, "unsqueeze", x, dim), True
            dim += 1
        elif isinstance(item, INTEGERS):
            x, taken = emit(builder, "select.int", x, dim, item), True
            used -= 1
        elif isinstance(item, slice):
            start, stop, step = item.start, item.stop, item.step
            to_the_end = stop is None or (isinstance(stop, INTEGERS) and stop >= _END)
            if (start is None or start == 0) and to_the_end and step in (None, 1) and not is_symbolic(x.shape[dim]):
                dim += 1
                continue
            values = [0 if start is None else start, _END if stop is None else stop]
            x, taken = emit(builder, "slice.Tensor", x, dim, *values, *(() if step is None else (step,))), True
            dim += 1
        elif item.dtype in (torch.bool, torch.uint8) and not item.dim():  # selects a new dimension, or nothing
            x, taken = emit(builder, "unsqueeze", x, dim), True
            indices[dim] = emit(builder, "unsqueeze", item, 0)
            dim += 1
        else:
            indices[dim] = item
            dim += item.dim() if item.dtype in (torch.bool, torch.uint8) else 1
    listed: list[Any] = []
    if indices:
        for d in range(max(indices) + 1):
            if d in indices:
                listed.append(indices[d])
            elif not any(e < d < e + indices[e].dim() for e in indices if indices[e].dtype == torch.bool):
                listed.append(None)
    return x, listed, taken


def _consumed(items: list[Any], ellipsis: Any) -> int:
    """How many dimensions the items before the ellipsis stand for in the result so far."""
    before = items[:items.index(ellipsis)]
    return sum(1 for item in before if isinstance(item, slice) or (isinstance(item, torch.Tensor) and (
        item.dim() or item.dtype not in (torch.bool, torch.uint8))))


def _plain(item: Any) -> Any:
    if isinstance(item, list):
        with without_handlers():
            return torch.tensor(item)
    return item


def _setitem(builder: Any, func: Any, args: Any, kwargs: Any) -> Any:
    x, key, value = args
    base_node = builder.argument(x)
    constant = None
    if not isinstance(value, torch.Tensor):
        with without_handlers():
            constant = torch.tensor(value, dtype=x.dtype if not isinstance(value, complex) else None)
        value = lifted(builder, constant)
    parts = _steps(builder, x, key)
    if parts is None:
        return NotImplemented
    view, indices, _ = parts
    if value.dim() > view.dim():  # leading dimensions of size 1 are dropped
        first = next((i for i, n in enumerate(value.shape) if is_symbolic(n) or n != 1), value.dim())
        if first:
            value = emit(builder, "view", value, list(value.shape[first:]))
    if indices:
        emit(builder, "index_put_", view, indices, value)
    elif constant is not None and view.dim():
        emit(builder, "fill_.Tensor", view, value)
    else:
        emit(builder, "copy_", view, value)
    if view is not x:  # the write is seen through the view; the tensor keeps its node
        builder.rebind(x, base_node)
    return None


INDEXING: dict[str, Lowering] = {"__getitem__": _getitem, "__setitem__": _setitem}

__all__ = ["INDEXING"]
