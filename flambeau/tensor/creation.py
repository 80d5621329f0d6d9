"""Making tensors: from values, of a constant, of a sequence."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import devices, dtypes
from ..dtypes import dtype as dtype_type
from .tensor import Tensor, wrap

__all__ = ["arange", "as_tensor", "empty", "empty_like", "from_numpy", "full", "full_like", "ones", "ones_like",
           "tensor", "zeros", "zeros_like"]


def _finish(array: np.ndarray, device: Any, requires_grad: bool) -> Tensor:
    if device is not None:
        devices.check(device)
    out = wrap(array)
    if requires_grad:
        out.requires_grad = True
    return out


def sizes(size: tuple[Any, ...], name: str = "zeros") -> tuple[int, ...]:
    """The shape that positional sizes, or one sequence of them, mean."""
    if len(size) == 1 and isinstance(size[0], (tuple, list)):
        size = tuple(size[0])
    found = []
    for i, s in enumerate(size):
        try:
            n = s.__index__()
        except (AttributeError, TypeError):
            raise TypeError(f"{name}(): argument 'size' must be tuple of ints, but found element of type "
                            f"{type(s).__name__} at pos {i}") from None
        if n < 0:
            raise RuntimeError(f"Trying to create tensor with negative dimension {n}: {list(size)}")
        found.append(n)
    return tuple(found)


def _array_of(data: Any, dtype: dtype_type | None) -> np.ndarray:
    if isinstance(data, Tensor):
        a = data._array
        return np.array(a if dtype is None else dtypes.cast(a, dtype.numpy), copy=True, order="K")
    if isinstance(data, (np.ndarray, np.generic)):
        a = np.asarray(data)
        dtypes.of(a.dtype)
        if a.dtype.byteorder not in "=|":
            a = a.astype(a.dtype.newbyteorder("="))
        return np.array(a if dtype is None else dtypes.cast(a, dtype.numpy), copy=True)
    if isinstance(data, (bool, int, float, complex)):
        d = dtype or dtypes.of_scalar(data)
        return _scalar_array(data, d)
    if isinstance(data, (list, tuple, range)):
        return _nested(data, dtype)
    if hasattr(data, "__array_interface__") or hasattr(data, "__array__"):
        return _array_of(np.asarray(data), dtype)
    if hasattr(data, "__len__") and hasattr(data, "__getitem__") and not isinstance(data, (str, bytes, dict)):
        return _nested([data[i] for i in range(len(data))], dtype)
    if isinstance(data, str):
        raise TypeError(f"new(): invalid data type 'str'")
    raise RuntimeError(f"Could not infer dtype of {type(data).__name__}")


def _scalar_array(value: Any, d: dtype_type) -> np.ndarray:
    if d is dtypes.bfloat16:
        return dtypes.to_bfloat16(np.asarray(value, np.float32))
    if isinstance(value, complex) and not d.is_complex:
        raise RuntimeError("value cannot be converted to type " + d.scalar_name.lower() + " without overflow")
    if d.category == dtypes.INTEGER:
        limits = np.iinfo(d.numpy)
        if not limits.min <= (int(value) if value == value and abs(value) != float("inf") else 2**80) <= limits.max:
            if not isinstance(value, float):
                raise RuntimeError(f"value cannot be converted to type {d.name} without overflow")
        return np.array(int(value), d.numpy)
    return np.array(value, d.numpy)


def _shape_of(data: Any) -> list[int]:
    shape = []
    while isinstance(data, (list, tuple, range)):
        shape.append(len(data))
        if not len(data):
            break
        data = data[0]
    if isinstance(data, (Tensor, np.ndarray)):
        shape += list(data.shape)
    return shape


def _leaves(data: Any, shape: Sequence[int], depth: int, found: list[Any]) -> None:
    if depth == len(shape):
        if isinstance(data, (list, tuple)):
            raise ValueError(f"only one element tensors can be converted to Python scalars" if False else
                             f"expected sequence of length {shape[depth - 1] if depth else 0} at dim {depth}")
        found.append(data.item() if isinstance(data, (Tensor, np.ndarray, np.generic)) else data)
        return
    try:
        length = len(data)
    except TypeError:
        raise TypeError(f"not a sequence") from None
    if length != shape[depth]:
        raise ValueError(f"expected sequence of length {shape[depth]} at dim {depth} (got {length})")
    for item in data:
        _leaves(item, shape, depth + 1, found)


def _nested(data: Any, dtype: dtype_type | None) -> np.ndarray:
    if isinstance(data, range):
        data = list(data)
    shape = _shape_of(data)
    found: list[Any] = []
    _leaves(data, shape, 0, found)
    if dtype is None:
        dtype = _inferred(data, found)
    if dtype is dtypes.bfloat16:
        return dtypes.to_bfloat16(np.array(found, np.float32)).reshape(shape)
    kinds = {type(v) for v in found}
    bad = next((k for k in kinds if not issubclass(k, (bool, int, float, complex))), None)
    if bad is not None:
        if issubclass(bad, str):
            raise ValueError("too many dimensions 'str'")
        raise RuntimeError(f"Could not infer dtype of {bad.__name__}")
    if dtype.category == dtypes.INTEGER and any(issubclass(k, float) for k in kinds):
        found = [int(v) for v in found]
    try:
        return np.array(found, dtype.numpy).reshape(shape)
    except OverflowError:
        raise RuntimeError(f"value cannot be converted to type {dtype.name} without overflow") from None


def _inferred(data: Any, found: list[Any]) -> dtype_type:
    first = data
    while isinstance(first, (list, tuple)) and len(first):
        first = first[0]
    if isinstance(first, (Tensor, np.ndarray, np.generic)):
        result = None
        stack = [data]
        while stack:
            x = stack.pop()
            if isinstance(x, (list, tuple)):
                stack.extend(x)
                continue
            d = x.dtype if isinstance(x, Tensor) else dtypes.of(x.dtype) if hasattr(x, "dtype") else dtypes.of_scalar(x)
            result = d if result is None else dtypes.promote_types(result, d)
        assert result is not None
        return result
    result = None
    for kind in {type(v) for v in found}:
        d = dtypes.of_scalar(kind(0)) if issubclass(kind, (bool, int, float, complex)) else None
        if d is not None:
            result = d if result is None else dtypes.promote_types(result, d)
    return result or dtypes.get_default_dtype()


def tensor(data: Any, *, dtype: dtype_type | None = None, device: Any = None, requires_grad: bool = False,
           pin_memory: bool = False) -> Tensor:
    """A new tensor with a copy of `data`.

    Args:
        data: numbers, nested sequences of numbers, an array or a tensor.
        dtype: of the elements; default: inferred.
        device: where it lies.
        requires_grad: whether operators on it are recorded.

    Raises:
        ValueError: nested sequences of unequal lengths.
        TypeError: an array of a dtype that no tensor has.

    >>> import flambeau as torch
    >>> torch.tensor([[1, 2], [3, 4]])
    tensor([[1, 2],
            [3, 4]])
    """
    if isinstance(data, Tensor):
        warnings.warn("To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
                      "sourceTensor.detach().clone().requires_grad_(True), rather than torch.tensor(sourceTensor).",
                      UserWarning, stacklevel=2)
    return _finish(_array_of(data, dtype), device, requires_grad)


def as_tensor(data: Any, dtype: dtype_type | None = None, device: Any = None) -> Tensor:
    """`data` as a tensor, sharing its memory where dtype and device allow.

    >>> import flambeau as torch
    >>> torch.as_tensor([1., 2.])
    tensor([1., 2.])
    """
    if isinstance(data, Tensor):
        return data if dtype is None and device is None else data.to(device=device, dtype=dtype)
    if isinstance(data, np.ndarray) and (dtype is None or dtypes.of(data.dtype) is dtype):
        return from_numpy(data)
    return _finish(_array_of(data, dtype), device, False)


def from_numpy(ndarray: np.ndarray) -> Tensor:
    """A tensor in the memory of an array: a write to one is a write to both.

    Raises:
        TypeError: not an array, or of a dtype that no tensor has.
        ValueError: negative strides.
    """
    if not isinstance(ndarray, np.ndarray):
        raise TypeError(f"expected np.ndarray (got {type(ndarray).__name__})")
    dtypes.of(ndarray.dtype)
    if any(s < 0 for s in ndarray.strides):
        raise ValueError("At least one stride in the given numpy array is negative, and tensors with negative strides "
                         "are not currently supported. (You can probably work around this by making a copy of your "
                         "array  with array.copy().) ")
    return wrap(ndarray if type(ndarray) is np.ndarray else ndarray.view(np.ndarray))


def _made(fill: Any, size: tuple[Any, ...], name: str, dtype: dtype_type | None, device: Any, requires_grad: bool,
          out: Any = None) -> Tensor:
    shape = sizes(size, name)
    d = dtype or (out.dtype if out is not None else dtypes.get_default_dtype())
    if fill is None or fill == 0:
        array = np.zeros(shape, d.numpy)
    else:
        array = np.empty(shape, d.numpy)
        array[...] = _scalar_array(fill, d)
    if out is not None:
        out._array = array
        return out  # type: ignore[no-any-return]
    return _finish(array, device, requires_grad)


def zeros(*size: Any, out: Any = None, dtype: dtype_type | None = None, layout: Any = None, device: Any = None,
          pin_memory: bool = False, requires_grad: bool = False) -> Tensor:
    """A tensor of zeros.

    >>> import flambeau as torch
    >>> torch.zeros(2, 3)
    tensor([[0., 0., 0.],
            [0., 0., 0.]])
    """
    return _made(0, size, "zeros", dtype, device, requires_grad, out)


def ones(*size: Any, out: Any = None, dtype: dtype_type | None = None, layout: Any = None, device: Any = None,
         pin_memory: bool = False, requires_grad: bool = False) -> Tensor:
    """A tensor of ones.

    >>> import flambeau as torch
    >>> torch.ones(2)
    tensor([1., 1.])
    """
    return _made(1, size, "ones", dtype, device, requires_grad, out)


def empty(*size: Any, out: Any = None, dtype: dtype_type | None = None, layout: Any = None, device: Any = None,
          requires_grad: bool = False, pin_memory: bool = False, memory_format: Any = None) -> Tensor:
    """A tensor whose elements are not set to anything.

    >>> import flambeau as torch
    >>> torch.empty(2, 3).shape
    flambeau.Size([2, 3])
    """
    shape = sizes(size, "empty")
    return _finish(np.empty(shape, (dtype or dtypes.get_default_dtype()).numpy), device, requires_grad)


def full(size: Any, fill_value: Any, *, out: Any = None, dtype: dtype_type | None = None, layout: Any = None,
         device: Any = None, requires_grad: bool = False, pin_memory: bool = False) -> Tensor:
    """A tensor filled with one value; its dtype is the value's.

    >>> import flambeau as torch
    >>> torch.full((2,), 7)
    tensor([7, 7])
    """
    if isinstance(fill_value, Tensor):
        fill_value = fill_value.item()
    return _made(fill_value, (size,), "full", dtype or dtypes.of_scalar(fill_value), device, requires_grad, out)


def _like(input: Tensor, fill: Any, dtype: dtype_type | None, device: Any, requires_grad: bool,
          memory_format: Any = None) -> Tensor:
    a = input._array
    d = a.dtype if dtype is None else dtype.numpy
    order: Any = "C" if memory_format is not None and memory_format.name == "contiguous_format" else "K"
    if fill is None:
        array = np.empty_like(a, d, order)
    elif fill == 0:
        array = np.zeros_like(a, d, order)
    else:
        array = np.empty_like(a, d, order)
        array[...] = _scalar_array(fill, dtype or input.dtype)
    return _finish(array, device, requires_grad)


def zeros_like(input: Tensor, *, dtype: dtype_type | None = None, layout: Any = None, device: Any = None,
               requires_grad: bool = False, pin_memory: bool = False, memory_format: Any = None) -> Tensor:
    """Zeros, shaped as `input`."""
    return _like(input, 0, dtype, device, requires_grad, memory_format)


def ones_like(input: Tensor, *, dtype: dtype_type | None = None, layout: Any = None, device: Any = None,
              requires_grad: bool = False, pin_memory: bool = False, memory_format: Any = None) -> Tensor:
    """Ones, shaped as `input`."""
    return _like(input, 1, dtype, device, requires_grad, memory_format)


def empty_like(input: Tensor, *, dtype: dtype_type | None = None, layout: Any = None, device: Any = None,
               requires_grad: bool = False, pin_memory: bool = False, memory_format: Any = None) -> Tensor:
    """Elements not set, shaped as `input`."""
    return _like(input, None, dtype, device, requires_grad, memory_format)


def full_like(input: Tensor, fill_value: Any, *, dtype: dtype_type | None = None, layout: Any = None,
              device: Any = None, requires_grad: bool = False, pin_memory: bool = False,
              memory_format: Any = None) -> Tensor:
    """One value, shaped as `input`."""
    return _like(input, fill_value, dtype, device, requires_grad, memory_format)


def arange(start: Any, end: Any = None, step: Any = 1, *, out: Any = None, dtype: dtype_type | None = None,
           layout: Any = None, device: Any = None, pin_memory: bool = False, requires_grad: bool = False) -> Tensor:
    """Numbers from `start` up to, not including, `end`.

    >>> import flambeau as torch
    >>> torch.arange(1, 7, 2)
    tensor([1, 3, 5])
    """
    if end is None:
        start, end = 0, start
    start, end, step = (x.item() if isinstance(x, (Tensor, np.generic)) else x for x in (start, end, step))
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if (step > 0 and start > end) or (step < 0 and start < end):
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    if dtype is None:
        whole = all(isinstance(x, int) for x in (start, end, step))
        dtype = dtypes.int64 if whole else dtypes.get_default_dtype()
    import math

    if dtype.category == dtypes.INTEGER:
        array = np.arange(int(start), int(end), int(step), dtype=np.int64)
        count = len(array) if all(isinstance(x, int) for x in (start, end, step)) else math.ceil((end - start) / step)
        array = int(start) + np.arange(count) * int(step)
    else:
        count = math.ceil((end - start) / step)
        array = start + np.arange(count, dtype=np.float64) * step
    return _finish(dtypes.cast(array, dtype.numpy), device, requires_grad)


def legacy_constructor(cls: type, dtype: dtype_type, *args: Any, **kwargs: Any) -> Tensor:
    """`torch.FloatTensor(...)` and `torch.Tensor(...)`: sizes, a sequence, an array or a tensor."""
    device = kwargs.pop("device", None)
    if kwargs:
        raise TypeError(f"new() got an unexpected keyword argument '{next(iter(kwargs))}'")
    if not args:
        array = np.zeros(0, dtype.numpy)
    elif len(args) == 1 and isinstance(args[0], Tensor):
        if args[0].dtype is not dtype:
            raise TypeError(f"expected {dtype.legacy} (got {args[0].dtype.legacy})")
        array = args[0]._array
    elif len(args) == 1 and not isinstance(args[0], int) and not (type(args[0]).__name__ == "Size"):
        array = _array_of(args[0], dtype)
    else:
        array = np.zeros(sizes(args, "new"), dtype.numpy)
    if device is not None:
        devices.check(device)
    return wrap(array, cls)  # type: ignore[no-any-return]
