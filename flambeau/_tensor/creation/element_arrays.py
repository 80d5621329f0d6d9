"""Arrays of scalars and nested sequences, with PyTorch's dtypes and errors."""

from __future__ import annotations

import builtins
import operator
from typing import Any, SupportsIndex, cast

import numpy as np

from ... import dtypes
from ...backends.bit_views import resolve
from ...backends.compiled import fill
from ...backends.compiled.thresholds import FILLS
from ...backends.numpy.memory import check_scalar_fits, convert_scalar
from ...dtypes import dtype as dtype_type
from ...errstate import IGNORE, reset_state, set_state
from ...kernels.memory_format import noted
from ...warning_location import warn_once
from ..argument_errors.type_names import type_name
from ..tensor import Tensor


def to_array(data: Any, dtype: dtype_type | None) -> np.ndarray:
    """A new array of scalars, nested sequences, arrays or tensors.

    Raises:
        ValueError, TypeError, RuntimeError: the data are invalid (PyTorch's texts).
    """
    if dtype is not None and dtype.__class__ is not dtype_type:
        dtype = dtypes.of_argument(dtype, "tensor")
    if isinstance(data, Tensor):
        a = resolve(data._array)
        return np.array(a if dtype is None else dtypes.cast(a, dtype.numpy), copy=True, order="K")
    if isinstance(data, (np.ndarray, np.generic)):
        a = with_own_dtype(np.asarray(data))
        return noted(np.array(a if dtype is None else dtypes.cast(a, dtype.numpy), copy=True))
    if isinstance(data, (bool, int, float, complex)):
        d = dtype or dtypes.of_scalar(data)
        return _typed_scalar(data, d)
    if isinstance(data, (list, tuple, range)):
        return _nested(data, dtype)
    return _of_sequences(data, dtype)


def with_own_dtype(array: np.ndarray) -> np.ndarray:
    """The array with NumPy's own instance of its dtype, which fast paths look for; unpickled dtypes are others.

    Raises:
        ValueError: its byte order is not native, or a tensor could not have its strides.
    """
    native = dtypes.of(array.dtype).numpy
    size = array.itemsize
    if any(stride % size for stride in array.strides):
        raise ValueError("given numpy array strides not a multiple of the element byte size. Copy the numpy array to "
                         "reallocate the memory.")
    if any(stride < 0 for stride in array.strides):
        raise ValueError("At least one stride in the given numpy array is negative, and tensors with negative strides "
                         "are not currently supported. (You can probably work around this by making a copy of your "
                         "array  with array.copy().) ")
    if array.dtype is native:
        return array
    if not array.dtype.isnative:
        raise ValueError("given numpy array has byte order different from the native byte order. Conversion between "
                         "byte orders is currently not supported.")
    return array.view(native)


_OVERFLOW = "value cannot be converted to type {} without overflow"


def scalar_array(value: Any, d: dtype_type) -> np.ndarray:
    """A scalar as a 0-d array of a dtype, truncated, after a check of its range.

    Raises:
        RuntimeError: out of range.
    """
    check_scalar_fits(value, d)
    return np.asarray(convert_scalar(value, d.numpy)).astype(d.numpy)


_WHOLE = 2**53  # up to here integers are exact as floats


def fill_new(array: np.ndarray, value: Any, d: dtype_type) -> None:
    """Set all elements of a new array of the dtype `d` to a scalar, as `scalar_array` converts it."""
    kind = value.__class__
    if (kind is int or kind is float) and -_WHOLE <= value <= _WHOLE and (
            d is dtypes.float32 or d is dtypes.float64 or (d is dtypes.int64 and kind is int)):
        if array.size <= FILLS[0]:
            array.fill(value)
        else:
            fill(array, value)
    else:
        fill(array, scalar_array(value, d))


def _typed_scalar(value: Any, d: dtype_type) -> np.ndarray:
    if isinstance(value, complex) and not d.is_complex:
        raise TypeError("must be real number, not complex")
    if d.numpy.kind == "V":
        return dtypes.cast(np.asarray(value, np.complex64 if d.is_complex else np.float32), d.numpy)
    if d.category == dtypes.INTEGER:
        return np.array(_integers([value], d)[0], d.numpy)
    state = set_state(IGNORE)  # out of range is inf, without a warning
    try:
        return np.array(value, d.numpy)
    finally:
        reset_state(state)


def _integers(values: list[Any], d: dtype_type) -> list[int]:
    """Scalars as integers of a dtype: truncated; negative ones wrap around in unsigned dtypes.

    Raises:
        ValueError: beyond 64 bits.
        RuntimeError: beyond the dtype's range.
    """
    limits = np.iinfo(d.numpy)
    low, high = int(limits.min), int(limits.max)
    result = []
    for v in values:
        if isinstance(v, float) and (v != v or v in (float("inf"), -float("inf"))):
            raise RuntimeError(_OVERFLOW.format(d.name))
        n = int(v)
        if not low <= n <= high:
            if d is not dtypes.uint64 and not -2**63 <= n < 2**63:
                raise ValueError("Overflow when unpacking long long")
            if low or not -high - 1 <= n < 0:
                raise RuntimeError(_OVERFLOW.format(d.name))
            n += high + 1
        result.append(n)
    return result


def _flatten(data: Any) -> tuple[list[int], list[Any]]:
    """The shape of nested sequences and their elements in order.

    Raises:
        ValueError, TypeError: the sequences are not of equal lengths or depths.
    """
    shape = [len(data)]
    level = list(data)
    while level and isinstance(level[0], (list, tuple, range)):
        length = len(level[0])
        for row in level:
            if not isinstance(row, (list, tuple, range)):
                return shape, [None]  # `_of_sequences` reads it, or says why it cannot
            if length and len(row) != length:
                raise ValueError(f"expected sequence of length {length} at dim {len(shape)} (got {len(row)})")
        shape.append(length)
        level = [x for row in level for x in row] if length else []
    return shape, level


def _nested(data: Any, dtype: dtype_type | None) -> np.ndarray:
    shape, output = _flatten(data)
    kinds = set(map(type, output))
    if kinds <= SCALAR_TYPES:
        return _of_scalars(output, kinds, shape, dtype)
    return _of_sequences(data, dtype)


def _of_scalars(output: list[Any], kinds: set[type], shape: list[int], dtype: dtype_type | None) -> np.ndarray:
    """An array of this shape of Python scalars, whose types are `kinds`."""
    if dtype is None:
        result = None
        for kind in kinds:
            d = dtypes.of_scalar(kind(0))
            result = d if result is None else dtypes.promote_types(result, d)
        dtype = result or dtypes.get_default_dtype()
    if complex in kinds and not dtype.is_complex:
        raise TypeError("must be real number, not complex")
    if dtype.numpy.kind == "V":
        wide = np.complex64 if dtype.is_complex else np.float32
        return dtypes.cast(np.array(output, wide), dtype.numpy).reshape(shape)
    state = set_state(IGNORE)
    try:
        if dtype.category == dtypes.INTEGER and (float in kinds or not dtype.is_signed):
            output = _integers(output, dtype)
        return np.array(output, dtype.numpy).reshape(shape)
    except OverflowError:
        _integers(output, dtype)
        raise
    finally:
        reset_state(state)


SCALAR_TYPES = {bool, int, float, complex}


def is_sequence(x: Any) -> bool:
    """Whether an object is read element by element: it has items and is no mapping of the language."""
    return hasattr(type(x), "__getitem__") and not isinstance(x, (dict, Tensor, np.generic)) and not (
        isinstance(x, np.ndarray) and x.ndim == 0)


def _sizes(data: Any) -> list[int]:
    """The shape of nested sequences, read from the first element of each.

    Raises:
        ValueError: a first element cannot be read, or strings are nested in themselves.
        TypeError: a sequence has no length, or a first element is an array without dimensions.
    """
    shape: list[int] = []
    x = data
    while is_sequence(x):
        shape.append(len(x))
        if len(shape) > 128:
            raise ValueError(f"too many dimensions '{type(data).__name__}'")
        if shape[-1] == 0:
            break
        if isinstance(x, str):
            raise ValueError("too many dimensions 'str'")
        try:
            x = x[0]
        except Exception:
            raise ValueError(f"could not determine the shape of object type '{type(x).__name__}'") from None
        if isinstance(x, np.ndarray) and not x.ndim:
            raise TypeError("len() of unsized object")
    return shape


def _inferred_dtype(x: Any) -> dtype_type:
    """The dtype of a scalar, or the one to which the elements of sequences promote.

    Raises:
        TypeError, RuntimeError: an element is no number (PyTorch's texts).
    """
    if isinstance(x, (np.ndarray, np.generic)):  # before Python's scalars: numpy.float64 is a float
        return dtypes.of(x.dtype)
    if isinstance(x, (bool, int, float, complex)):
        return dtypes.of_scalar(x)
    if isinstance(x, Tensor):
        return x.dtype
    if isinstance(x, (str, bytes)):
        raise TypeError(f"new(): invalid data type '{type(x).__name__}'")
    if not is_sequence(x):
        raise RuntimeError(f"Could not infer dtype of {type_name(x)}")
    result: dtype_type | None = None
    for at in builtins.range(len(x)):
        found = _inferred_dtype(x[at])
        result = found if result is None else dtypes.promote_types(result, found)
    return result or dtypes.get_default_dtype()


def _plain_kinds(dtype: dtype_type) -> str:
    """The kinds of NumPy arrays whose elements become numbers of a dtype without a check of each."""
    return "biufc" if dtype.category != dtypes.INTEGER else "iu"


def _append_numbers(x: Any, sizes: list[int], depth: int, dtype: dtype_type, numbers: list[Any]) -> None:
    """Append the elements of nested sequences to `numbers`, as Python scalars.

    Raises:
        ValueError, TypeError: lengths differ, or an element is no number of the dtype's kind (PyTorch's texts).
    """
    if depth == len(sizes):
        if isinstance(x, Tensor):
            if x._array.size != 1:
                if dtype.is_floating_point or dtype.is_complex:
                    raise ValueError("only one element tensors can be converted to Python scalars")
                raise TypeError("only integer tensors of a single element can be converted to an index")
            x = x.item()
        elif isinstance(x, (np.ndarray, np.generic)):
            if dtype.category == dtypes.INTEGER and not isinstance(x, float):
                # numbers of NumPy are not truncated, but numpy.float64, which is Python's float
                operator.index(cast(SupportsIndex, x))
            x = x.item()
        elif type(x) not in SCALAR_TYPES:
            if isinstance(x, (bool, int, float, complex)):
                plain: Any = next(kind for kind in (bool, int, float, complex) if isinstance(x, kind))
                x = plain(x)
            elif dtype.is_complex:
                x = complex(x)
            elif dtype.is_floating_point or dtype is dtypes.bool_:
                if not (hasattr(type(x), "__float__") or hasattr(type(x), "__index__")):
                    raise TypeError(f"must be real number, not {type_name(x)}")
                x = float(x)
            else:
                x = operator.index(x)
        numbers.append(x)
        return
    if isinstance(x, np.ndarray) and x.dtype.kind in _plain_kinds(dtype) and list(x.shape) == sizes[depth:]:
        numbers.extend(x.reshape(-1).tolist())
        return
    if not isinstance(x, (Tensor, np.ndarray)) and not is_sequence(x):
        try:
            x = list(x)  # after the first element, whose length counts, any iterable will do
        except TypeError:
            raise TypeError("not a sequence") from None
    if isinstance(x, np.ndarray) and not x.ndim:
        raise TypeError("not a sequence")
    if len(x) != sizes[depth]:
        raise ValueError(f"expected sequence of length {sizes[depth]} at dim {depth} (got {len(x)})")
    for at in builtins.range(sizes[depth]):
        element = x[at]
        if isinstance(element, np.ndarray):
            warn_once("Creating a tensor from a list of numpy.ndarrays is extremely slow. Please consider converting "
                      "the list to a single numpy.ndarray with numpy.array() before converting to a tensor.")
        _append_numbers(element, sizes, depth + 1, dtype, numbers)


def _of_sequences(data: Any, dtype: dtype_type | None) -> np.ndarray:
    """An array of nested sequences of any type, whose elements may be arrays, NumPy scalars or tensors.

    Raises:
        ValueError, TypeError, RuntimeError: the data are invalid (PyTorch's texts).
    """
    if isinstance(data, str):
        raise TypeError("new(): invalid data type 'str'")
    try:
        shape = _sizes(data)
        if dtype is None:
            dtype = _inferred_dtype(data)
    except RecursionError:
        raise TypeError("new(): self-referential lists are incompatible") from None
    numbers: list[Any] = []
    if 0 not in shape:
        _append_numbers(data, shape, 0, dtype, numbers)
    return _of_scalars(numbers, set(map(type, numbers)), shape, dtype)
