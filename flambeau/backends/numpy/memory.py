"""Memory: the storage arrays lie in, strides over it, copies, casts and filled arrays.

A tensor's storage is the array that owns its memory (`owner`); every view is a shape and
strides over it (`lying`). Views are not made by NumPy's own broadcasting and stride tricks,
which are slower and give arrays that refuse writes.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided as _as_strided

from ... import dtypes
from ...runtime.numpy_abi import DATA, readable
from ...shapes import contiguous_strides
from ..compiled import copied, copy
from ..compiled.thresholds import MOVES

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


_READABLE = readable()
_pointer = ctypes.c_void_p.from_address


def address(x: np.ndarray) -> int:
    """Where the first element lies."""
    if _READABLE:  # NumPy's own answer takes a microsecond, since it makes a dictionary
        return _pointer(id(x) + DATA).value or 0
    found: int = x.__array_interface__["data"][0]
    return found


def lying(x: np.ndarray, shape: Any, strides: Any, offset: int = 0) -> np.ndarray:
    """The memory of `x` under any shape and strides (bytes), from `offset` bytes after its first element.

    Raises:
        ValueError, TypeError: it would reach beyond the memory.
    """
    flags = x.flags
    if flags.c_contiguous or flags.f_contiguous:
        try:
            return ndarray(shape, x.dtype, x, offset, strides)
        except (ValueError, TypeError):
            pass  # reaching over what `x` itself covers: from the owner's first byte then
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


def nothing(x: np.ndarray, shape: Any) -> np.ndarray:
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
        return nothing(x, size)
    return lying(x, size, tuple(s * item for s in stride), (offset - here) * item)


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
        return copied(x) if x.size > MOVES[0] else x.copy()
    name = "preserve_format" if memory_format is None else memory_format.name
    if name in CHANNELS_LAST:
        ndim, order, back = CHANNELS_LAST[name]
        if x.ndim != ndim:
            raise RuntimeError(f"required rank {ndim} tensor to use {name} format")
        return copied(x.transpose(order)).transpose(back)
    if name == "contiguous_format":
        return copied(x)
    return copied(x, "C" if 0 in x.strides else "K")  # "K" would put expanded dimensions last


def laid_out(found: Any, *operands: Any) -> Any:
    """A result laid out in memory as its operands are, which ufuncs do by themselves."""
    if found.ndim < 2 or not found.size:
        return found
    for a in operands:
        if a.__class__ is np.ndarray and not a.flags.c_contiguous:
            break
    else:
        return found
    arrays = [a for a in operands if a.__class__ is np.ndarray]
    given: Any = [*arrays, None]
    flags: Any = [["readonly"]] * len(arrays) + [["writeonly", "allocate"]]
    made: Any = np.nditer(given, [], flags,
                          op_dtypes=[*(a.dtype for a in arrays), found.dtype]).operands[-1]
    copy(made, found)
    return made


def _clone(x: Any, memory_format: Any = None) -> Any:
    return copy_as(x, memory_format)


def _contiguous(x: Any, memory_format: Any = None) -> Any:
    return x if is_contiguous(x, memory_format) else copy_as(x, memory_format)


def _to(x: Any, dtype: Any) -> Any:
    return dtypes.cast(x, dtype.numpy if isinstance(dtype, dtypes.dtype) else dtype)


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


_SCALAR_NAMES = {"int64": "int64_t", "int32": "int", "int16": "int16_t", "int8": "int8_t", "uint8": "uint8_t",
                 "uint16": "uint16_t", "uint32": "uint32_t", "uint64": "uint64_t", "float32": "float",
                 "float64": "double", "float16": "c10::Half", "bfloat16": "c10::BFloat16"}


_LARGEST = {"float32": float(np.finfo(np.float32).max), "float16": 65504.0, "bfloat16": (2 - 2.0**-7) * 2.0**127}


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
        # negative integers, but no other negative numbers, wrap where there is no sign
        low = -int(limits.max) if isinstance(value, int) and not limits.min else limits.min
        wrong = not low <= value <= limits.max
    elif dtype.is_floating_point and isinstance(value, (int, float)) and value - value == 0:  # finite
        limit = _LARGEST.get(dtype.name)
        wrong = limit is not None and abs(value) > limit
    if wrong:
        raise RuntimeError(f"value cannot be converted to type {_SCALAR_NAMES.get(dtype.name, dtype.name)} without "
                           "overflow")


def as_element(value: Any, dtype: np.dtype) -> Any:
    """A number as it stands beside integers of that dtype: truncated. Beside other dtypes it stays what it is.

    Raises:
        RuntimeError: it is out of range (PyTorch's text).
    """
    if dtype.kind not in "iu":
        return value
    refuse_number(value, dtypes.of(dtype))
    return int(filled(value, dtype))


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
    "strided_view": strided, "clone": _clone, "contiguous": _contiguous, "to": _to, "zeros": _zeros, "full": _full,
    "full_like": _full_like, "zeros_like": np.zeros_like, "ones_like": _ones_like,
}
