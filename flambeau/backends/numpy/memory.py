"""Shapes and memory: views, copies, positions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ... import dtypes
from ...shapes import infer_size, wrap_dim


def _view(x: Any, size: tuple[int, ...]) -> Any:
    """`x` under another shape in the same memory.

    Raises:
        RuntimeError: its strides do not allow it (PyTorch's text).
    """
    shape = infer_size(tuple(size), x.size)
    try:
        return np.reshape(x, shape, copy=False)
    except ValueError:
        raise RuntimeError("view size is not compatible with input tensor's size and stride (at least one dimension "
                           "spans across two contiguous subspaces). Use .reshape(...) instead.") from None


def _reshape(x: Any, size: tuple[int, ...]) -> Any:
    return np.reshape(x, infer_size(tuple(size), x.size))


def _clone(x: Any, memory_format: Any = None) -> Any:
    order: Any = "K"
    if memory_format is not None and memory_format.name == "contiguous_format":
        order = "C"
    copied = np.array(x, order=order, copy=True)
    if order == "K" and 0 in copied.strides and copied.size > 1:
        copied = np.ascontiguousarray(copied)
    return copied


def _t(x: Any) -> Any:
    if x.ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {x.ndim}D")
    return x.T


def _transpose(x: Any, dim0: int, dim1: int) -> Any:
    a, b = wrap_dim(dim0, x.ndim), wrap_dim(dim1, x.ndim)
    return np.swapaxes(x, a, b) if x.ndim else x[...]


def _expand(x: Any, size: tuple[int, ...]) -> Any:
    lead = len(size) - x.ndim
    if lead < 0:
        raise RuntimeError(f"expand({_type_of(x)}{{{list(x.shape)}}}, size={list(size)}): the number of sizes "
                           f"provided ({len(size)}) must be greater or equal to the number of dimensions in the "
                           f"tensor ({x.ndim})")
    full = []
    for i, s in enumerate(size):
        if s == -1:
            if i < lead:
                raise RuntimeError(f"The expanded size of the tensor ({s}) isn't allowed in a leading, non-existing "
                                   f"dimension {i}")
            s = x.shape[i - lead]
        elif i >= lead and x.shape[i - lead] not in (1, s):
            raise RuntimeError(f"The expanded size of the tensor ({s}) must match the existing size "
                               f"({x.shape[i - lead]}) at non-singleton dimension {i}.  Target sizes: {list(size)}.  "
                               f"Tensor sizes: {list(x.shape)}")
        full.append(s)
    strides = [0] * lead + [0 if x.shape[i - lead] == 1 and full[i] != 1 else x.strides[i - lead]
                            for i in range(lead, len(full))]
    return as_strided(x, full, strides)


def _type_of(x: Any) -> str:
    return f"torch.{dtypes.of(x.dtype).legacy}"


def _add_at_positions(x: Any, index: Any, size: tuple[int, ...]) -> Any:
    flat = np.zeros(int(np.prod(size, dtype=np.int64)), x.dtype)
    np.add.at(flat, index, x)
    return flat.reshape(size)


def _replace_positions(x: Any, source: Any, index: Any) -> Any:
    whole = np.array(x, order="C", copy=True)
    whole.reshape(-1)[index] = source
    return whole


def _full_like(x: Any, value: Any) -> Any:
    return np.full(x.shape, value, x.dtype)


def _full(size: Any, value: Any, dtype: Any) -> Any:
    return np.full(size, value, dtype.numpy if isinstance(dtype, dtypes.dtype) else dtype)


def _zeros(size: Any, dtype: Any) -> Any:
    return np.zeros(size, dtype.numpy if isinstance(dtype, dtypes.dtype) else dtype)


def _contiguous(x: Any) -> Any:
    return np.ascontiguousarray(x) if x.ndim else x


def _to(x: Any, dtype: Any) -> Any:
    return dtypes.cast(x, dtype.numpy if isinstance(dtype, dtypes.dtype) else dtype)


def _broadcast_to(x: Any, size: tuple[int, ...]) -> Any:
    if not x.ndim:  # written out: the gradient of every full reduction comes this way
        x = np.asarray(x)
        return np.ndarray(size, x.dtype, x, 0, (0,) * len(size))
    return np.broadcast_to(x, size)


PRIMITIVES = {"view": _view, "reshape": _reshape, "reshaped": _reshape, "clone": _clone, "t": _t,
              "transpose": _transpose, "expand": _expand, "broadcast_to": _broadcast_to, "zeros": _zeros,
              "full": _full, "full_like": _full_like, "zeros_like": np.zeros_like, "ones_like": np.ones_like,
              "contiguous": _contiguous, "to": _to, "add_at_positions": _add_at_positions,
              "replace_positions": _replace_positions}
