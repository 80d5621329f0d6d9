"""Elements that a mask selects: read, filled, written."""

from __future__ import annotations

from typing import Any

import numpy as np

from .... import dtypes
from ....shapes import broadcast_shapes
from ...compiled import copy_kernels
from ...compiled.thresholds import MASKING
from ..memory import check_scalar_fits, convert_scalar

POSITIONS_FROM = 512  # elements from which finding positions first is faster


def elements_at_mask(x: Any, mask: Any) -> Any:
    """Return `x[mask]`; a mask of the shape of `x` is turned into positions, since NumPy branches at each element."""
    if x.size >= POSITIONS_FROM and mask.shape == x.shape and x.flags.c_contiguous and mask.flags.c_contiguous:
        return x.reshape(-1).take(mask.reshape(-1).nonzero()[0])
    return x[mask]


def fill_at_mask(x: Any, mask: Any, value: Any) -> None:
    """Write a number where a mask is true, in place."""
    if x.size >= POSITIONS_FROM and mask.shape == x.shape and x.flags.c_contiguous and mask.flags.c_contiguous:
        x.reshape(-1)[mask.reshape(-1).nonzero()[0]] = value
    else:
        x[mask] = value


def _masked_fill(x: Any, mask: Any, value: Any) -> Any:
    shape = x.shape if mask.shape == x.shape else broadcast_shapes(mask.shape, x.shape)
    if mask.dtype != np.bool_:
        raise RuntimeError("masked_fill_ only supports boolean masks, but got mask with dtype "
                           f"{dtypes.C_NAMES[dtypes.of(mask.dtype).name]}")
    if value.__class__ is np.ndarray and value.ndim:
        raise RuntimeError("masked_fill_ only supports a 0-dimensional value tensor, but got tensor with "
                           f"{value.ndim} dimension(s).")
    if value.__class__ is not np.ndarray:
        check_scalar_fits(value, dtypes.of(x.dtype))
    elif value.dtype.kind == "c" and x.dtype.kind != "c":
        check_scalar_fits(value.item(), dtypes.of(x.dtype))
    out = np.empty_like(x) if shape == x.shape else np.empty(shape, x.dtype)
    kernels = copy_kernels() if out.size > MASKING[0] else None
    if kernels is not None and kernels.fill_masked(
            out, x, mask, np.asarray(convert_scalar(value, x.dtype)).astype(x.dtype)):
        return out
    out[...] = x
    out[mask if mask.shape == shape else np.broadcast_to(mask, shape)] = convert_scalar(value, x.dtype)
    return out


def _masked_select(x: Any, mask: Any) -> Any:
    if mask.dtype != np.bool_:
        raise RuntimeError("masked_select: expected BoolTensor for mask")
    shape = broadcast_shapes(x.shape, mask.shape)
    if x.shape == mask.shape:
        return elements_at_mask(x, mask)
    return np.broadcast_to(x, shape)[np.broadcast_to(mask, shape)]


def _masked_scatter(x: Any, mask: Any, source: Any) -> Any:
    if mask.dtype != np.bool_:
        raise RuntimeError("masked_scatter_ only supports boolean masks, but got mask with dtype "
                           f"{dtypes.of(mask.dtype).scalar_name}")
    if source.dtype != x.dtype:
        raise RuntimeError("masked_scatter: expected self and source to have same dtypes but got"
                           f"{dtypes.of(x.dtype).scalar_name} and {dtypes.of(source.dtype).scalar_name}")
    if x.shape == mask.shape:
        out = np.array(x, order="C", copy=True)
    else:
        shape = broadcast_shapes(x.shape, mask.shape)
        mask = np.broadcast_to(mask, shape)
        out = np.array(np.broadcast_to(x, shape), order="C", copy=True)
    count = int(np.count_nonzero(mask))
    if count > source.size:
        raise RuntimeError("Number of elements of source < number of ones in mask")
    out[mask] = np.reshape(source, -1)[:count]
    return out


def _masked_scatter_backward(g: Any, mask: Any, size: tuple[int, ...]) -> Any:
    """Return the vjp of `masked_scatter` by its source: the masked elements first, then zeros."""
    selected = g[np.broadcast_to(mask, g.shape)]
    out = np.zeros(int(np.prod(size, dtype=np.int64)), g.dtype)
    out[: selected.size] = selected
    return out.reshape(size)


PRIMITIVES: dict[str, Any] = {
    "masked_fill": _masked_fill, "masked_select": _masked_select, "masked_scatter": _masked_scatter,
    "masked_scatter_gradient": _masked_scatter_backward,
}
