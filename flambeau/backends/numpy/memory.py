"""Memory of arrays: storage, strided views, copies and layouts, casts, filled arrays.

A tensor's storage is the array that owns its memory (`owner`); every view is a shape and strides over it
(`view_memory`). NumPy's `broadcast_to` and `as_strided` are not used: they are slower and return read-only arrays.
"""

from __future__ import annotations

import ctypes
from functools import wraps
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided as _as_strided

from ... import dtypes
from ...kernels.memory_format import is_channels_last, note_layout, noted, with_preserved_strides
from ...runtime.numpy_abi import DATA, readable
from ...shapes import contiguous_strides
from ..compiled import copy, new_copy
from ..compiled.thresholds import COPIES

ndarray = np.ndarray


# ----- storage ---------------------------------------------------------------------------


def owner(x: np.ndarray) -> np.ndarray:
    """Return the array that owns the memory of `x`."""
    while True:
        base = x.base
        if not isinstance(base, ndarray):
            base = getattr(base, "base", None)  # the intermediate object of NumPy's as_strided
            if not isinstance(base, ndarray):
                return x
        x = base


class _Exposed:
    """The memory of an array that may not be written, for an array that may."""

    def __init__(self, x: np.ndarray) -> None:
        self._array = x  # keeps the memory
        self.__array_interface__ = {**x.__array_interface__, "data": (x.__array_interface__["data"][0], False)}


def writable(x: np.ndarray) -> np.ndarray:
    """The same memory as an array that may be written, which PyTorch's tensors on read-only arrays may."""
    return x if x.flags.writeable else np.asarray(_Exposed(x))


_READABLE = readable()
_pointer = ctypes.c_void_p.from_address


def address(x: np.ndarray) -> int:
    """Return the address of the first element."""
    if _READABLE:  # __array_interface__ makes a dict: 1 us
        return _pointer(id(x) + DATA).value or 0
    result: int = x.__array_interface__["data"][0]
    return result


def view_memory(x: np.ndarray, shape: Any, strides: Any, offset: int = 0) -> np.ndarray:
    """Return a view of the memory of `x` with any shape and strides, `offset` after its first element, all in bytes.

    Raises:
        ValueError, TypeError: the view exceeds the memory.
    """
    flags = x.flags
    if flags.c_contiguous or flags.f_contiguous:
        try:
            return x.__class__(shape, x.dtype, x, offset, strides)  # a `BitView` keeps its bits
        except (ValueError, TypeError):
            pass  # it exceeds `x`: view the owner instead
    base = owner(x)
    offset += address(x) - address(base)
    if base.flags.c_contiguous or base.flags.f_contiguous:
        return x.__class__(shape, x.dtype, base, offset, strides)
    moved = x
    if offset:
        start, item = divmod(offset - (address(x) - address(base)), x.itemsize)
        if item:
            raise ValueError("offset is not a whole number of elements")
        if start:
            moved = _as_strided(x, (start + 1,), (x.itemsize,), subok=True)[start:]
    return _as_strided(moved, shape, strides, subok=True)


def empty_view(x: np.ndarray, shape: Any) -> np.ndarray:
    """Return an empty view of the memory of `x`."""
    return view_memory(x, shape, (x.itemsize,) * len(shape))


def element_strides(x: np.ndarray) -> tuple[int, ...]:
    """Return strides in elements; row-major ones for empty arrays, for which NumPy stores none."""
    item = x.itemsize
    if 0 in x.shape and not any(x.strides):
        return contiguous_strides(x.shape)
    return tuple([s // item for s in x.strides])


def strided_view(x: np.ndarray, size: Any, stride: Any, storage_offset: int | None = None) -> np.ndarray:
    """Return a view of the storage of `x` with shape, strides and offset in elements.

    Raises:
        RuntimeError: strides are negative, lengths differ, or the view exceeds the storage (PyTorch's texts).
    """
    size, stride = tuple(map(int, size)), tuple(map(int, stride))
    if len(size) != len(stride):
        raise RuntimeError("mismatch in length of strides and shape")
    if any(s < 0 for s in stride):
        raise RuntimeError("as_strided: Negative strides are not supported at the moment, got strides: "
                           f"{list(stride)}")
    base, item = owner(x), x.itemsize
    own_offset = (address(x) - address(base)) // item
    offset = own_offset if storage_offset is None else int(storage_offset)
    if offset < 0:
        raise RuntimeError(f"Tensor: invalid storage offset {offset}")
    if 0 not in size:
        needed = item * (1 + offset + sum((n - 1) * t for n, t in zip(size, stride, strict=True)))
        if needed > base.nbytes:
            raise RuntimeError(f"setStorage: sizes {list(size)}, strides {list(stride)}, storage offset {offset}, and "
                               f"itemsize {item} requiring a storage size of {needed} are out of bounds for storage "
                               f"of size {base.nbytes}")
    else:
        return view_memory(empty_view(x, (0,)), size, tuple(s * item for s in stride))
    return noted(view_memory(x, size, tuple(s * item for s in stride), (offset - own_offset) * item))


def in_memory_of(target: Any, resized: np.ndarray) -> np.ndarray:
    """Return what an `out=` array holds after a change of shape: in the memory that it had, if that is large enough."""
    if target.__class__ is not np.ndarray or not resized.size:
        return resized
    memory = owner(target)
    offset = address(target) - address(memory)
    if offset + resized.nbytes > memory.nbytes:
        if not offset or not resized.flags.c_contiguous:
            return resized
        larger = np.zeros(offset // resized.itemsize + resized.size, resized.dtype)  # the offset stays
        larger[offset // resized.itemsize:] = resized.reshape(-1)
        return np.ndarray(resized.shape, resized.dtype, larger, offset)
    array = strided_view(target, resized.shape, [s // resized.itemsize for s in resized.strides])
    array[...] = resized
    return array


# ----- copies ----------------------------------------------------------------------------

CHANNELS_LAST = {"channels_last": (4, (0, 2, 3, 1), (0, 3, 1, 2)),
                 "channels_last_3d": (5, (0, 2, 3, 4, 1), (0, 4, 1, 2, 3))}


def is_contiguous(x: Any, memory_format: Any = None) -> bool:
    """Return whether the elements are contiguous in the format (row-major if None)."""
    name = "contiguous_format" if memory_format is None else memory_format.name
    if name in CHANNELS_LAST:
        ndim, order, _ = CHANNELS_LAST[name]
        return x.ndim == ndim and x.transpose(order).flags.c_contiguous
    return x.flags.c_contiguous


def suggested_memory_format(x: np.ndarray) -> str:
    """Return the name of the format that operators on images give their results: that of the strides of `x`."""
    if not is_channels_last(x.shape, x.strides):
        return "contiguous_format"
    return "channels_last" if x.ndim == 4 else "channels_last_3d"


def copy_as(x: Any, memory_format: Any = None) -> Any:
    """Return a copy in the format; None and `preserve_format` keep the order of strides."""
    if memory_format is None and x.flags.c_contiguous:
        # rules compute NumPy's scalars, too, whose copies are no arrays; copies of views with bits keep these
        result = new_copy(x) if x.size > COPIES[0] else x.copy() if isinstance(x, np.ndarray) else np.array(x)
        return with_preserved_strides(result, x) if 1 in x.shape else result
    name = "preserve_format" if memory_format is None else memory_format.name
    if name in CHANNELS_LAST:
        ndim, order, back = CHANNELS_LAST[name]
        if x.ndim != ndim:
            raise RuntimeError(f"required rank {ndim} tensor to use {name} format")
        result = new_copy(x.transpose(order)).transpose(back)
        note_layout(result)
        return result
    if name == "contiguous_format":
        return new_copy(x)
    return with_preserved_strides(new_copy(x, "C" if 0 in x.strides else "K"), x)  # "K" puts expanded dimensions last


def copy_with_memory(x: Any) -> Any:
    """Return a copy with the strides and offset of `x`, whose whole memory is copied; a dense one if it overlaps."""
    base = owner(x) if x.__class__ is np.ndarray else None
    if base is None or not base.flags.forc or 0 in x.strides or not x.size or (
            address(x) - address(base)) % x.itemsize:
        return copy_as(x)
    whole = np.ndarray((base.nbytes // x.itemsize,), x.dtype, base).copy()
    return np.ndarray(x.shape, x.dtype, whole, address(x) - address(base), x.strides)


def match_layout(result: Any, *operands: Any) -> Any:
    """Return a result copied to the memory layout that a ufunc of the operands would choose."""
    if result.ndim < 2 or not result.size:
        return result
    for a in operands:
        if a.__class__ is np.ndarray and not a.flags.c_contiguous:
            break
    else:
        return result
    arrays = [a for a in operands if a.__class__ is np.ndarray]
    operands_and_out: Any = [*arrays, None]
    flags: Any = [["readonly"]] * len(arrays) + [["writeonly", "allocate"]]
    out: Any = np.nditer(operands_and_out, [], flags,
                          op_dtypes=[*(a.dtype for a in arrays), result.dtype]).operands[-1]
    copy(out, result)
    return out


def _clone(x: Any, memory_format: Any = None) -> Any:
    return copy_as(x, memory_format)


def _contiguous(x: Any, memory_format: Any = None) -> Any:
    return x if is_contiguous(x, memory_format) else copy_as(x, memory_format)


def _to(x: Any, dtype: Any) -> Any:
    return dtypes.cast(x, dtype.numpy if isinstance(dtype, dtypes.dtype) else dtype)


# ----- filled arrays -----------------------------------------------------------------------


def convert_scalar(value: Any, dtype: np.dtype) -> Any:
    """Return a scalar as a value that NumPy can assign to an array of that dtype."""
    if value.__class__ is ndarray:
        return dtypes.cast(value, dtype)
    if dtype.kind == "V":
        if dtype == dtypes.COMPLEX32:
            return dtypes.cast(np.asarray(value), dtype)
        single = np.asarray(value.real, np.float32)
        if dtype is dtypes.BFLOAT16:
            bits = int(single.view(np.uint32))
            rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
            return np.asarray(rounded if single == single else 0x7FC0, np.uint16).view(dtype)
        return dtypes.cast(single, dtype)
    if isinstance(value, complex) and dtype.kind != "c":
        value = value.real if dtype.kind != "b" else bool(value)
    if dtype.kind in "iu" and isinstance(value, (int, float)):
        if value != value or value in (float("inf"), -float("inf")):
            return np.array(value).astype(dtype)
        return np.array(int(value) & (2 ** (8 * dtype.itemsize) - 1), np.uint64).astype(dtype)
    return value


_SCALAR_NAMES = {"int64": "int64_t", "int32": "int", "int16": "int16_t", "int8": "int8_t", "uint8": "uint8_t",
                 "uint16": "uint16_t", "uint32": "uint32_t", "uint64": "uint64_t", "float32": "float",
                 "float64": "double", "float16": "c10::Half", "bfloat16": "c10::BFloat16",
                 "complex64": "c10::complex<float>", "complex32": "c10::complex<c10::Half>"}


_LARGEST = {"float32": float(np.finfo(np.float32).max), "complex64": float(np.finfo(np.float32).max),
            "float16": 65504.0, "bfloat16": (2 - 2.0**-7) * 2.0**127}


def check_scalar_fits(value: Any, dtype: dtypes.dtype) -> None:
    """Check that a scalar can be converted to a dtype.

    Raises:
        RuntimeError: it is complex and the dtype real, or it is out of range (PyTorch's text).
        OverflowError: an integer of more than 64 bits.
    """
    if value.__class__ is int:
        dtypes.check_fits_64_bits(value)
    overflows = False
    if isinstance(value, complex):
        overflows = bool(value.imag) and not dtype.is_complex and dtype is not dtypes.bool_
    elif dtype.category == dtypes.INTEGER and isinstance(value, (int, float)) and not isinstance(value, bool):
        limits = np.iinfo(dtype.numpy)
        # negative integers wrap to unsigned dtypes, other negative scalars do not
        low = -int(limits.max) if isinstance(value, int) and not limits.min else limits.min
        overflows = not low <= value <= limits.max
    elif isinstance(value, (int, float)) and value - value == 0:  # finite
        limit = _LARGEST.get(dtype.name)
        overflows = limit is not None and abs(value) > limit
    if overflows:
        raise RuntimeError(f"value cannot be converted to type {_SCALAR_NAMES.get(dtype.name, dtype.name)} without "
                           "overflow")


def scalar_operand(value: Any, dtype: np.dtype) -> Any:
    """Return a scalar as an operand of an array: truncated for integer dtypes, unchanged for others.

    Raises:
        RuntimeError: it is out of range (PyTorch's text).
    """
    if dtype.kind not in "iu":
        return value
    check_scalar_fits(value, dtypes.of(dtype))
    return int(convert_scalar(value, dtype))


def _full_like(x: Any, value: Any) -> Any:
    out = np.empty_like(x)
    out[...] = convert_scalar(value, x.dtype)
    return out


def _zeros(size: Any, dtype: Any) -> Any:
    return np.zeros(size, dtype.numpy if isinstance(dtype, dtypes.dtype) else dtype)


def _ones_like(x: Any) -> Any:
    return np.ones_like(x) if x.dtype.kind != "V" else _full_like(x, 1.0)


def moving_bits(primitive: Any) -> Any:
    """A primitive that only moves elements of its first argument: bfloat16, which NumPy moves singly, as integers."""

    @wraps(primitive)
    def move(x: Any, *args: Any, **params: Any) -> Any:
        if x.__class__ is ndarray and x.dtype is dtypes.BFLOAT16:
            return primitive(x.view(np.uint16), *args, **params).view(dtypes.BFLOAT16)
        return primitive(x, *args, **params)

    return move


PRIMITIVES = {
    "strided_view": strided_view, "clone": _clone, "contiguous": _contiguous, "to": _to, "zeros": _zeros,
    "full_like": _full_like, "zeros_like": np.zeros_like, "ones_like": _ones_like,
}
