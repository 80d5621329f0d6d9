"""Tensors from data: scalars, sequences, arrays, buffers."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from ... import devices, dtypes
from ...backends.errstate import IGNORE, reset_state, set_state
from ...backends.numpy.memory import check_scalar_fits, convert_scalar
from ...dtypes import dtype as dtype_type
from ...engine.grad_mode import inference
from ...modes import special
from ...shapes import Size
from ..tensor import INFERENCE, Tensor, set_requires_grad, wrap
from ..tracer_notifications import notify_created

__all__ = ["as_tensor", "asarray", "from_numpy", "frombuffer", "scalar_tensor", "tensor"]


def wrap_new(array: np.ndarray, device: Any, requires_grad: bool, unset: bool = False) -> Tensor:
    """A tensor on a new array.

    Args:
        unset: the elements are uninitialised.

    Raises:
        RuntimeError: `requires_grad` for an integer dtype.
    """
    if device is not None:
        devices.check(device)
    out: Tensor = wrap(array)
    if special[0]:
        notify_created(array, unset)
    if requires_grad:
        if array.dtype.kind not in "fcV":
            raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
        out.requires_grad = True
    if inference.get():
        out._inference, out._counter = True, INFERENCE
    return out


def parse_sizes(size: tuple[Any, ...], name: str = "zeros") -> tuple[int, ...]:
    """The shape, from positional sizes or one sequence of sizes.

    Raises:
        TypeError: a size is not an integer.
        RuntimeError: a size is negative.
    """
    if len(size) == 1 and isinstance(size[0], (tuple, list)):
        size = tuple(size[0])
    result = []
    for i, s in enumerate(size):
        try:
            if s.__class__ is bool:
                raise TypeError
            n = s.__index__()
        except (AttributeError, TypeError):
            kind = type(s).__name__
            where = f"must be tuple of ints, not {kind}" if len(size) == 1 else (
                f"must be tuple of ints, but found element of type {kind} at pos {i}")
            raise TypeError(f"{name}(): argument 'size' (position 1) {where}") from None
        if n < 0:
            if name == "zeros":
                raise RuntimeError("zeros: Dimension size must be non-negative.")
            raise RuntimeError(f"Trying to create tensor with negative dimension {n}: {list(size)}")
        result.append(n)
    return tuple(result)


def to_array(data: Any, dtype: dtype_type | None) -> np.ndarray:
    """A new array of scalars, nested sequences, arrays or tensors.

    Raises:
        ValueError, TypeError, RuntimeError: the data are invalid (PyTorch's texts).
    """
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
        return _typed_scalar(data, d)
    if isinstance(data, (list, tuple, range)):
        return _nested(data, dtype)
    if hasattr(data, "__array_interface__") or hasattr(data, "__array__"):
        return to_array(np.asarray(data), dtype)
    if hasattr(data, "__len__") and hasattr(data, "__getitem__") and not isinstance(data, (str, bytes, dict)):
        return _nested([data[i] for i in range(len(data))], dtype)
    if isinstance(data, str):
        raise TypeError("new(): invalid data type 'str'")
    raise RuntimeError(f"Could not infer dtype of {type(data).__name__}")


_OVERFLOW = "value cannot be converted to type {} without overflow"


def scalar_array(value: Any, d: dtype_type) -> np.ndarray:
    """A scalar as a 0-d array of a dtype, truncated, after a check of its range.

    Raises:
        RuntimeError: out of range.
    """
    check_scalar_fits(value, d)
    return np.asarray(convert_scalar(value, d.numpy)).astype(d.numpy)


def _typed_scalar(value: Any, d: dtype_type) -> np.ndarray:
    if d is dtypes.bfloat16:
        return dtypes.to_bfloat16(np.asarray(value, np.float32))
    if isinstance(value, complex) and not d.is_complex:
        raise TypeError("must be real number, not complex")
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
                if isinstance(row, (Tensor, np.ndarray)) and row.ndim:
                    continue
                raise TypeError("not a sequence")
            if len(row) != length:
                raise ValueError(f"expected sequence of length {length} at dim {len(shape)} (got {len(row)})")
        shape.append(length)
        level = [x for row in level for x in row]
    return shape, level


def _nested(data: Any, dtype: dtype_type | None) -> np.ndarray:
    shape, output = _flatten(data)
    kinds = set(map(type, output))
    if not kinds <= _SCALAR_TYPES:
        output, shape, dtype = _to_scalars(output, shape, dtype)
        kinds = set(map(type, output))
    if dtype is None:
        result = None
        for kind in kinds:
            d = dtypes.of_scalar(kind(0))
            result = d if result is None else dtypes.promote_types(result, d)
        dtype = result or dtypes.get_default_dtype()
    if dtype is dtypes.bfloat16:
        return dtypes.to_bfloat16(np.array(output, np.float32)).reshape(shape)
    if complex in kinds and not dtype.is_complex:
        raise TypeError("must be real number, not complex")
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


_SCALAR_TYPES = {bool, int, float, complex}


def _to_scalars(output: list[Any], shape: list[int], dtype: dtype_type | None) -> tuple[list[Any], list[int], Any]:
    """Elements that are tensors, arrays or NumPy scalars as Python scalars, the shape, and the promoted dtype."""
    first = output[0]
    if isinstance(first, np.ndarray) and first.ndim:
        warnings.warn("Creating a tensor from a list of numpy.ndarrays is extremely slow. Please consider converting "
                      "the list to a single numpy.ndarray with numpy.array() before converting to a "
                      "tensor.", UserWarning,
                      stacklevel=5)
    result = None
    numbers: list[Any] = []
    for x in output:
        if isinstance(x, Tensor):
            if x._array.size != 1:
                raise ValueError("only one element tensors can be converted to Python scalars")
            d = x.dtype
            numbers.append(x.item())
        elif isinstance(x, np.ndarray) and x.ndim:
            d = dtypes.of(x.dtype)
            if x.shape != first.shape:
                raise ValueError(f"expected sequence of length {first.shape[0]} at dim {len(shape)} (got "
                                 f"{x.shape[0]})")
            numbers.extend(x.reshape(-1).tolist())
        elif isinstance(x, (np.ndarray, np.generic)):
            d = dtypes.of(x.dtype)
            numbers.append(x.item())
        elif isinstance(x, (bool, int, float, complex)):
            d = dtypes.of_scalar(x)
            plain: Any = next(k for k in (bool, int, float, complex) if isinstance(x, k))
            numbers.append(plain(x))
        elif isinstance(x, str):
            raise ValueError("too many dimensions 'str'")
        elif isinstance(x, (list, tuple)):
            raise TypeError(f"'{type(x).__name__}' object cannot be interpreted as an integer")
        else:
            raise RuntimeError(f"Could not infer dtype of {type(x).__name__}")
        result = d if result is None else dtypes.promote_types(result, d)
    if isinstance(first, np.ndarray):
        shape = [*shape, *first.shape]
    elif isinstance(first, Tensor):
        shape = [*shape, *first._array.shape]
    return numbers, shape, dtype or result


def tensor(data: Any, *, dtype: dtype_type | None = None, device: Any = None, requires_grad: bool = False,
           pin_memory: bool = False) -> Tensor:
    """A new tensor with a copy of `data`.

    Args:
        data: a scalar, nested sequences of scalars, an array or a tensor.
        dtype: default: inferred from `data`.
        device: only the CPU is supported.
        requires_grad: whether operators on it are recorded.

    Raises:
        ValueError: nested sequences of unequal lengths.
        TypeError: the dtype of an array is not supported.

    >>> import flambeau as torch
    >>> torch.tensor([[1, 2], [3, 4]])
    tensor([[1, 2],
            [3, 4]])
    """
    if isinstance(data, Tensor):
        warnings.warn("To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
                      "sourceTensor.detach().clone().requires_grad_(True), rather than torch.tensor(sourceTensor).",
                      UserWarning, stacklevel=2)
        if data._array.__class__ is not np.ndarray:
            copied = data.detach().to(dtype or data.dtype, copy=True)
            return set_requires_grad(copied) if requires_grad else copied
    return wrap_new(to_array(data, dtype), device, requires_grad)


def as_tensor(data: Any, dtype: dtype_type | None = None, device: Any = None) -> Tensor:
    """`data` as a tensor, which shares its memory if the dtype permits.

    >>> import flambeau as torch
    >>> torch.as_tensor([1., 2.])
    tensor([1., 2.])
    """
    if isinstance(data, Tensor):
        return data if dtype is None and device is None else data.to(device=device, dtype=dtype)
    if isinstance(data, np.ndarray) and (dtype is None or dtypes.of(data.dtype) is dtype):
        return from_numpy(data)
    return wrap_new(to_array(data, dtype), device, False)


def from_numpy(ndarray: np.ndarray) -> Tensor:
    """A tensor on the memory of an array.

    Raises:
        TypeError: not an array, or the dtype is not supported.
        ValueError: negative strides.

    >>> import flambeau as torch
    >>> import numpy as np
    >>> torch.from_numpy(np.ones(2, np.float32))
    tensor([1., 1.])
    """
    if not isinstance(ndarray, np.ndarray):
        raise TypeError(f"expected np.ndarray (got {type(ndarray).__name__})")
    dtypes.of(ndarray.dtype)
    if any(s < 0 for s in ndarray.strides):
        raise ValueError("At least one stride in the given numpy array is negative, and tensors with negative strides "
                         "are not currently supported. (You can probably work around this by making a copy of your "
                         "array  with array.copy().) ")
    if not ndarray.flags.writeable:
        warnings.warn("The given NumPy array is not writable, and PyTorch does not support non-writable tensors. This "
                      "means writing to this tensor will result in undefined behavior. You may want to copy the array "
                      "to protect its data or make it writable before converting it to a tensor. This type of warning "
                      "will be suppressed for the rest of this program.", UserWarning, stacklevel=2)
    if ndarray.dtype.byteorder == ">":
        raise ValueError("given numpy array has byte order different from the native byte order. Conversion between "
                         "byte orders is currently not supported.")
    return wrap(ndarray if type(ndarray) is np.ndarray else ndarray.view(np.ndarray))


def scalar_tensor(s: Any, *, dtype: dtype_type | None = None, layout: Any = None, device: Any = None,
                  requires_grad: bool = False, pin_memory: bool = False) -> Tensor:
    """A 0-d tensor of a scalar, of the default dtype or `dtype`.

    >>> import flambeau as torch
    >>> torch.scalar_tensor(2)
    tensor(2.)
    """
    return wrap_new(scalar_array(s, dtype or dtypes.get_default_dtype()), device, requires_grad)


def frombuffer(buffer: Any, *, dtype: dtype_type, count: int = -1, offset: int = 0,
               requires_grad: bool = False) -> Tensor:
    """A 1-d tensor on the memory of an object with the buffer protocol.

    >>> import flambeau as torch
    >>> torch.frombuffer(bytearray(b"ab"), dtype=torch.uint8)
    tensor([97, 98], dtype=flambeau.uint8)

    Raises:
        ValueError: the buffer is too small.
    """
    memory = memoryview(buffer).cast("B")
    length = len(memory)
    if not length or count == 0:
        raise ValueError(f"both buffer length ({length}) and count ({count}) must not be 0")
    if offset < 0 or offset >= length:
        raise ValueError(f"offset ({offset} bytes) must be non-negative and no greater than buffer length ({length} "
                         "bytes) minus 1")
    if count < 0 and (length - offset) % dtype.itemsize:
        raise ValueError(f"buffer length ({length - offset} bytes) after offset ({offset} bytes) must be a multiple of "
                         f"element size ({dtype.itemsize})")
    if count > 0 and offset + count * dtype.itemsize > length:
        raise ValueError(f"requested buffer length ({count} * {dtype.itemsize} bytes) after offset ({offset} bytes) "
                         f"must not be greater than actual buffer length ({length} bytes)")
    if memory.readonly:
        warnings.warn("The given buffer is not writable, and PyTorch does not support non-writable tensors. This "
                      "means you can write to the underlying (supposedly non-writable) buffer using the tensor. You "
                      "may want to copy the buffer to protect its data or make it writable before converting it to a "
                      "tensor. This type of warning will be suppressed for the rest of this "
                      "program.", UserWarning, stacklevel=2)
    result = np.frombuffer(buffer, np.uint8, -1 if count < 0 else count * dtype.itemsize, offset).view(dtype.numpy)
    return wrap_new(result, None, requires_grad)


def asarray(obj: Any, *, dtype: dtype_type | None = None, device: Any = None, copy: bool | None = None,
            requires_grad: bool = False) -> Tensor:
    """`obj` as a tensor, which shares its memory where possible unless `copy`.

    >>> import flambeau as torch
    >>> torch.asarray([1, 2])
    tensor([1, 2])
    """
    source: Tensor
    if isinstance(obj, Tensor):
        source = obj
    elif isinstance(obj, np.ndarray) and not copy:
        source = from_numpy(obj)
    elif isinstance(obj, (bytes, bytearray, memoryview)):
        source = frombuffer(obj, dtype=dtype or dtypes.get_default_dtype())
    else:
        if copy is False:
            raise ValueError("can't alias arbitrary sequence into a tensor.")
        return wrap_new(to_array(obj, dtype), device, requires_grad)
    target = dtype or source.dtype
    converted = source.dtype is not target
    if converted and copy is False:
        raise ValueError(f"can't alias tensor with dtype '{source.dtype.legacy}' into dtype '{target.legacy}'.")
    result = source.to(target) if converted else source.clone() if copy else source
    if not requires_grad:
        return result.detach() if result._requires_grad and not isinstance(obj, Tensor) else result
    result = result.detach() if result._node is not None else result
    result.requires_grad = True
    return result


def legacy_constructor(cls: type, dtype: dtype_type, *args: Any, **kwargs: Any) -> Tensor:
    """The legacy constructors `torch.FloatTensor(...)` and `torch.Tensor(...)`: from sizes, a sequence or a tensor."""
    device = kwargs.pop("device", None)
    if kwargs:
        args = (*args, *kwargs.values())
    if not args:
        array = np.zeros(0, dtype.numpy)
    elif len(args) == 1 and isinstance(args[0], Tensor):
        if args[0].dtype is not dtype:
            options = ("TensorOptions(dtype={}, device=cpu, layout=Strided, requires_grad=false (default), "
                       "pinned_memory=false (default), memory_format=(nullopt))")
            raise TypeError(f"expected {options.format(dtypes.C_NAMES[dtype.name])} (got "
                            f"{options.format(dtypes.C_NAMES[args[0].dtype.name])})")
        array = args[0]._array
    elif len(args) == 1 and isinstance(args[0], str):
        raise TypeError("new(): invalid data type 'str'")
    elif len(args) == 1 and isinstance(args[0], (float, complex)):
        raise TypeError(f"new(): data must be a sequence (got {type(args[0]).__name__})")
    elif len(args) == 1 and not isinstance(args[0], (int, Size)):
        array = to_array(args[0], dtype)
    else:
        array = np.zeros(parse_sizes(args, "new"), dtype.numpy)
    if device is not None:
        devices.check(device)
    if special[0] and not (args and isinstance(args[0], Tensor)):
        notify_created(array)
    return wrap(array, cls)


def _new_tensor(cls: type, *args: Any, **kwargs: Any) -> Any:
    """`torch.Tensor(...)`; a subclass called with a tensor returns `as_subclass` of it."""
    if cls is Tensor or not args or not isinstance(args[0], Tensor):
        return legacy_constructor(cls, dtypes.get_default_dtype(), *args, **kwargs)
    return args[0].as_subclass(cls)


METHODS: dict[str, Any] = {"__new__": staticmethod(_new_tensor)}
