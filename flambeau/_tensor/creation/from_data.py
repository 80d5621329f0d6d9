"""Tensors from data: scalars, sequences, arrays, buffers."""

from __future__ import annotations

import builtins
import operator
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import config, devices, dtypes
from ...backends.bit_views import resolve
from ...backends.compiled import fill
from ...backends.compiled.thresholds import FILLS
from ...backends.elementless_array import without_elements
from ...backends.numpy.memory import check_scalar_fits, convert_scalar, writable
from ...backends.sparse_array import not_implemented
from ...devices import strided
from ...dtypes import dtype as dtype_type
from ...engine.grad_mode import inference
from ...errstate import IGNORE, reset_state, set_state
from ...kernels.memory_format import noted
from ...modes import filled_memory, inference_used, special
from ...shapes import Size
from ...warning_location import user_stacklevel
from ..argument_errors.guards import NOT_GIVEN
from ..argument_errors.out_arguments import check_records_nothing
from ..argument_errors.type_names import type_name
from ..dispatch.complex_half import warn_of_complex_half
from ..dispatch.handlers import handlers
from ..memory.storage_classes import storage_classes
from ..meta import is_meta, make_meta, mark_meta, reserved_like
from ..overriding.dispatch import handles
from ..tensor import INFERENCE, Tensor, set_requires_grad, wrap
from ..tracer_notifications import notify_created

if TYPE_CHECKING:
    from ..memory.storage import UntypedStorage

__all__ = ["as_tensor", "asarray", "from_numpy", "frombuffer", "scalar_tensor", "tensor"]


def makes_meta(device: Any) -> bool:
    """Whether a factory with this argument `device=` makes a meta tensor."""
    return devices.storage_device(device) is devices.META


def finished(made: Tensor, requires_grad: bool) -> Tensor:
    """A new tensor with its flags: whether it requires gradients, and that it was made in inference mode.

    Raises:
        RuntimeError: `requires_grad` for an integer dtype.
    """
    if requires_grad:
        if made._array.dtype.kind not in "fcV":
            raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
        made.requires_grad = True
    if inference.get():
        made._inference, made._counter = True, INFERENCE
    return made


def wrap_new(array: np.ndarray, device: Any, requires_grad: bool, unset: bool = False) -> Tensor:
    """A tensor on a new array.

    Args:
        unset: the elements are uninitialised.

    Raises:
        RuntimeError: `requires_grad` for an integer dtype.
    """
    if array.dtype is dtypes.COMPLEX32:
        warn_of_complex_half()
    target = devices.CPU if device is None and devices.ambient[0] is None else devices.storage_device(device)
    if target is devices.META:
        array = without_elements(reserved_like(array))
    elif unset and filled_memory[0]:
        from ...backends.numpy.uninitialized import fill_uninitialized  # rarely needed

        fill_uninitialized(array)
    out: Tensor = wrap(array)
    if target is not devices.CPU and target is not devices.META and out._device is not target:
        out = handlers.uninitialised(array, target) if unset else handlers.transfer(out, target)
    elif special[0] and target is devices.CPU:
        notify_created(array, unset)
    return finished(out, requires_grad) if requires_grad or inference_used[0] else out


def parse_sizes(size: tuple[Any, ...], name: str = "zeros", out: Any = None) -> tuple[int, ...]:
    """The shape, from positional sizes or one sequence of sizes.

    Args:
        out: a tensor that gets this shape.

    Raises:
        TypeError: a size is not an integer.
        RuntimeError: a size is negative.
    """
    if len(size) == 1 and isinstance(size[0], (tuple, list)):
        size = tuple(size[0])
    if not size or ({int}.issuperset(map(type, size)) and min(size) >= 0):
        return size
    result = []
    for i, s in enumerate(size):
        try:
            if s.__class__ is bool and i == 0:  # PyTorch looks at the first size only
                raise TypeError
            n = s.__index__()
        except (AttributeError, TypeError):
            kind = type_name(s)
            where = f"must be tuple of ints, not {kind}" if len(size) == 1 else (
                f"must be tuple of ints, but found element of type {kind} at pos {i}")
            raise TypeError(f"{name}(): argument 'size' (position 1) {where}") from None
        if n < 0:
            if out is not None and isinstance(out, Tensor):
                check_records_nothing(name, (), (out,))
                raise RuntimeError("numel: integer multiplication overflow")
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
    if dtype is not None and dtype.__class__ is not dtype_type:
        dtype = dtypes.of_argument(dtype, "tensor")
    if isinstance(data, Tensor):
        a = resolve(data._array)
        return np.array(a if dtype is None else dtypes.cast(a, dtype.numpy), copy=True, order="K")
    if isinstance(data, (np.ndarray, np.generic)):
        a = _with_own_dtype(np.asarray(data))
        return noted(np.array(a if dtype is None else dtypes.cast(a, dtype.numpy), copy=True))
    if isinstance(data, (bool, int, float, complex)):
        d = dtype or dtypes.of_scalar(data)
        return _typed_scalar(data, d)
    if isinstance(data, (list, tuple, range)):
        return _nested(data, dtype)
    return _of_sequences(data, dtype)


def _with_own_dtype(array: np.ndarray) -> np.ndarray:
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
                if (isinstance(row, (Tensor, np.ndarray)) and row.ndim) or _is_sequence(row):
                    return shape, [None]  # `_of_sequences` reads them
                raise TypeError("not a sequence")
            if length and len(row) != length:
                raise ValueError(f"expected sequence of length {length} at dim {len(shape)} (got {len(row)})")
        shape.append(length)
        level = [x for row in level for x in row] if length else []
    return shape, level


def _nested(data: Any, dtype: dtype_type | None) -> np.ndarray:
    shape, output = _flatten(data)
    kinds = set(map(type, output))
    if kinds <= _SCALAR_TYPES:
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


_SCALAR_TYPES = {bool, int, float, complex}


def _is_sequence(x: Any) -> bool:
    """Whether an object is read element by element: it has items and is no mapping of the language."""
    return hasattr(type(x), "__getitem__") and not isinstance(x, (dict, Tensor, np.generic)) and not (
        isinstance(x, np.ndarray) and x.ndim == 0)


def _sizes(data: Any) -> list[int]:
    """The shape of nested sequences, read from the first element of each.

    Raises:
        ValueError: a first element cannot be read, or strings are nested in themselves.
        TypeError: a sequence has no length.
    """
    shape: list[int] = []
    x = data
    while _is_sequence(x):
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
    if not _is_sequence(x):
        raise RuntimeError(f"Could not infer dtype of {type_name(x)}")
    result: dtype_type | None = None
    for at in builtins.range(len(x)):
        found = _inferred_dtype(x[at])
        result = found if result is None else dtypes.promote_types(result, found)
    return result or dtypes.get_default_dtype()


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
            x = x.item()
        elif type(x) not in _SCALAR_TYPES:
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
    if isinstance(x, np.ndarray) and x.dtype.kind in "biufc" and list(x.shape) == sizes[depth:]:
        numbers.extend(x.reshape(-1).tolist())
        return
    if not isinstance(x, (Tensor, np.ndarray)) and not _is_sequence(x):
        raise TypeError("not a sequence")
    if len(x) != sizes[depth]:
        raise ValueError(f"expected sequence of length {sizes[depth]} at dim {depth} (got {len(x)})")
    for at in builtins.range(sizes[depth]):
        _append_numbers(x[at], sizes, depth + 1, dtype, numbers)


def _of_sequences(data: Any, dtype: dtype_type | None) -> np.ndarray:
    """An array of nested sequences of any type, whose elements may be arrays, NumPy scalars or tensors.

    Raises:
        ValueError, TypeError, RuntimeError: the data are invalid (PyTorch's texts).
    """
    if isinstance(data, str):
        raise TypeError("new(): invalid data type 'str'")
    if isinstance(data, list) and data and isinstance(data[0], np.ndarray) and data[0].ndim:
        warnings.warn("Creating a tensor from a list of numpy.ndarrays is extremely slow. Please consider converting "
                      "the list to a single numpy.ndarray with numpy.array() before converting to a "
                      "tensor.", UserWarning, stacklevel=user_stacklevel())
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


def refuse_pinned(device: Any = None, layout: Any = None, name: str = "", pin_memory: Any = True) -> None:
    """Raise PyTorch's error for memory that is to be pinned for a device where none is, unless no memory is asked for.

    Args:
        device, layout: of the tensor that is to be made.
        name: the function's.
        pin_memory: what it was given.
    """
    if pin_memory is not True:
        raise TypeError(f"{name}(): argument 'pin_memory' must be bool, not {type_name(pin_memory)}")
    if layout is not None and layout is not strided:
        raise RuntimeError("Only dense CPU tensors can be pinned")
    if device is not None and makes_meta(device):
        return
    raise RuntimeError("pin_memory=True requires a CUDA or other accelerator backend; no pinned memory allocator is "
                       "available on this system.")


def refuse_sparse(layout: Any, operator: str) -> None:
    """Raise PyTorch's error for a sparse tensor that is to be filled by an operator without a kernel for it."""
    if layout is not None and layout is not strided:
        raise not_implemented(operator, layout)


def tensor(data: Any = NOT_GIVEN, *, dtype: dtype_type | None = None, device: Any = None, requires_grad: bool = False,
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
    if pin_memory:
        refuse_pinned(device)
    if data is NOT_GIVEN:
        raise TypeError('tensor() missing 1 required positional arguments: "data"')
    if isinstance(data, Tensor):
        warnings.warn("To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
                      "sourceTensor.detach().clone().requires_grad_(True), rather than torch.tensor(sourceTensor).",
                      UserWarning, stacklevel=user_stacklevel())
        if not isinstance(data._array, np.ndarray) or is_meta(data):
            copied = data.detach().to(dtype or data.dtype, copy=True)
            if device is not None:
                copied = copied.to(device)
            return set_requires_grad(copied) if requires_grad else copied
    elif isinstance(data, storage_classes[0]):
        from ..memory.storage import attach_storage

        out = wrap_new(_of_storage(data, dtype)._array, device, requires_grad)
        attach_storage(out, data.untyped())
        return out
    elif type(data) not in _SCALAR_TYPES and hasattr(data, "__dlpack__") and not isinstance(data, np.ndarray):
        data = _of_dlpack(data)._array
    return wrap_new(to_array(data, dtype), device, requires_grad)


def _of_dlpack(data: Any) -> Tensor:
    """A tensor on the memory of an object with the method `__dlpack__`."""
    from ..memory.dlpack import from_dlpack

    return from_dlpack(data)


def as_tensor(data: Any = NOT_GIVEN, *, dtype: dtype_type | None = None, device: Any = None) -> Tensor:
    """`data` as a tensor, which shares its memory if the dtype permits.

    >>> import flambeau as torch
    >>> torch.as_tensor([1., 2.])
    tensor([1., 2.])
    """
    if data is NOT_GIVEN:
        raise TypeError('as_tensor() missing 1 required positional arguments: "data"')
    if device is not None or devices.ambient[0] is not None:
        device = devices.storage_device(device)
    if isinstance(data, Tensor):
        return data if dtype is None and device is None else data.to(device=device, dtype=dtype)
    if isinstance(data, np.ndarray) and (dtype is None or dtypes.of(data.dtype) is dtype):
        shared = from_numpy(data)
        return shared if device is None or device is devices.CPU else shared.to(device)
    if isinstance(data, storage_classes[0]):
        return _of_storage(data, dtype)
    if hasattr(data, "__dlpack__") and not isinstance(data, np.ndarray):
        shared = _of_dlpack(data)
        return shared if dtype is None and device is None else shared.to(device=device, dtype=dtype)
    return wrap_new(to_array(data, dtype), device, False)


def from_numpy(ndarray: np.ndarray) -> Tensor:
    """A tensor on the memory of an array.

    Raises:
        TypeError: not an array, or the dtype is not supported.
        ValueError: strides that are negative or no multiples of the elements' size, or another byte order.

    >>> import flambeau as torch
    >>> import numpy as np
    >>> torch.from_numpy(np.ones(2, np.float32))
    tensor([1., 1.])
    """
    if not isinstance(ndarray, np.ndarray):
        raise TypeError(f"expected np.ndarray (got {type_name(ndarray)})")
    dtypes.of(ndarray.dtype)
    if not ndarray.flags.writeable:
        warnings.warn("The given NumPy array is not writable, and PyTorch does not support non-writable tensors. This "
                      "means writing to this tensor will result in undefined behavior. You may want to copy the array "
                      "to protect its data or make it writable before converting it to a tensor. This type of warning "
                      "will be suppressed for the rest of this program.", UserWarning, stacklevel=user_stacklevel())
        ndarray = writable(ndarray)
    ndarray = _with_own_dtype(ndarray)
    tensor: Tensor = wrap(noted(ndarray if type(ndarray) is np.ndarray else ndarray.view(np.ndarray)))
    if inference.get():
        tensor._inference, tensor._counter = True, INFERENCE
    return tensor


def scalar_tensor(s: Any, *, dtype: dtype_type | None = None, layout: Any = None, device: Any = None,
                  requires_grad: bool = False, pin_memory: bool = False) -> Tensor:
    """A 0-d tensor of a scalar, of the default dtype or `dtype`.

    >>> import flambeau as torch
    >>> torch.scalar_tensor(2)
    tensor(2.)
    """
    if pin_memory:
        refuse_pinned(device, layout)
    if dtype is not None:
        dtype = dtypes.of_argument(dtype, "scalar_tensor")
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
    dtype = dtypes.of_argument(dtype, "frombuffer")
    try:
        memory = memoryview(buffer).cast("B")
    except TypeError:
        raise ValueError("object does not implement Python buffer protocol.") from None
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
                      "program.", UserWarning, stacklevel=user_stacklevel())
    result = np.frombuffer(buffer, np.uint8, -1 if count < 0 else count * dtype.itemsize, offset).view(dtype.numpy)
    return wrap_new(writable(result), None, requires_grad)


def asarray(obj: Any = NOT_GIVEN, *, dtype: dtype_type | None = None, device: Any = None, copy: bool | None = None,
            requires_grad: bool | None = None) -> Tensor:
    """`obj` as a tensor, which shares its memory where possible unless `copy`.

    >>> import flambeau as torch
    >>> torch.asarray([1, 2])
    tensor([1, 2])
    """
    if obj is NOT_GIVEN:
        raise TypeError('asarray() missing 1 required positional arguments: "obj"')
    source: Tensor
    if isinstance(obj, Tensor):
        source = obj
    elif isinstance(obj, np.ndarray) and not copy:
        source = from_numpy(obj)
    elif isinstance(obj, storage_classes[0]):
        source = _of_storage(obj, dtype)
    elif isinstance(obj, np.generic) and copy is False:
        raise RuntimeError("can't alias NumPy scalars. Either remove copy=False or transform it in a ndarray. ")
    elif not isinstance(obj, (list, tuple, np.ndarray)) and (
            hasattr(obj, "__dlpack__") or type(obj).__name__ == "PyCapsule"):
        source = _of_dlpack(obj)
    elif not isinstance(obj, (list, tuple, np.ndarray, np.generic)) and _has_buffer(obj):
        source = frombuffer(obj, dtype=dtype or dtypes.get_default_dtype())
    else:
        if copy is False:
            raise ValueError("can't alias arbitrary sequence into a tensor.")
        return wrap_new(to_array(obj, dtype), device, bool(requires_grad))
    if device is not None or devices.ambient[0] is not None:
        place = devices.storage_device(device)
        if place is not source._device:
            if copy is False:
                raise ValueError(f"can't alias tensor from device '{source._device}' to '{place}'.")
            source, copy = source.to(place), False if dtype is None else copy
    target = dtype or source.dtype
    converted = source.dtype is not target
    if converted and copy is False:
        kinds = [each.legacy.removesuffix("Tensor") for each in (source.dtype, target)]
        raise ValueError(f"can't alias tensor with dtype '{kinds[0]}' into dtype '{kinds[1]}'.")
    result = source.to(target) if converted else source.clone() if copy else source
    if result._requires_grad and requires_grad is False:
        if result is not obj or result._node is not None:
            return result.detach()
        result.requires_grad = False
        return result
    if result._requires_grad or not requires_grad:
        return result
    if not (target.is_floating_point or target.is_complex):
        raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
    result.requires_grad = True
    return result


def _of_storage(storage: Any, dtype: dtype_type | None) -> Tensor:
    """The elements of a storage as a tensor on its memory.

    Args:
        dtype: default: the default dtype for a storage of elements, int64 for one of bytes.

    Raises:
        ValueError: the storage is on meta (PyTorch's text).
        RuntimeError: it has elements of another dtype (PyTorch's text).
    """
    from ..memory.storage import TypedStorage

    if storage.device is devices.META:
        raise ValueError(f"could not determine the shape of object type 'torch.storage.{type(storage).__name__}'")
    if isinstance(storage, TypedStorage):
        dtype = dtype or dtypes.get_default_dtype()
        if storage.dtype is not dtype:
            raise RuntimeError(f"Expected a Storage of type {dtype.scalar_name} or an UntypedStorage, but got "
                               f"{storage.dtype.scalar_name}")
    return _on_storage(storage.untyped(), dtype or dtypes.int64)


def _on_storage(storage: UntypedStorage, dtype: dtype_type) -> Tensor:
    from ..memory.storage import attach_storage

    d = dtype.numpy
    out: Tensor = wrap(storage._memory[:storage._memory.size // d.itemsize * d.itemsize].view(d))
    attach_storage(out, storage)
    return out


def _has_buffer(obj: Any) -> bool:
    """Whether an object has the buffer protocol."""
    try:
        memoryview(obj)
    except TypeError:
        return False
    return True


def _legacy_of_storage(cls: type, dtype: dtype_type, storage: Any) -> Tensor:
    """A tensor on the memory of a storage."""
    from ..memory.storage import TypedStorage

    if isinstance(storage, TypedStorage) and storage.dtype is not dtype:
        raise RuntimeError(f"Expected a Storage of type {dtype.scalar_name} or an UntypedStorage, but got type "
                           f"{storage.dtype.scalar_name} for argument 1 'storage'")
    made = wrap(_on_storage(storage.untyped(), dtype)._array, cls)
    return mark_meta(made) if storage.device is devices.META else made


_LEGACY_FORMS = ("*, torch.device device = None", "torch.Storage storage", "Tensor other",
                 "tuple of ints size, *, torch.device device = None", "object data, *, torch.device device = None")


def check_legacy_device(args: tuple[Any, ...], kwargs: dict[str, Any], expected: str) -> None:
    """Raise PyTorch's error unless a legacy constructor may have this argument `device=`.

    Args:
        expected: the type of its device.
    """
    device = kwargs["device"]
    if device is not None and not devices.is_device(device):
        from ..argument_errors.messages import invalid_combination

        raise invalid_combination("new", _LEGACY_FORMS, args, kwargs)
    if args and isinstance(args[0], Tensor):
        raise RuntimeError("Legacy tensor constructor of the form torch.Tensor(tensor, device=device) is not "
                           "supported.  Use torch.tensor(...) or torch.as_tensor(...) instead.")
    kind = expected if device is None else devices.of_argument(device).type
    if kind != expected:
        raise RuntimeError(f"legacy constructor expects device type: {expected} but device type: {kind} was passed")


#: [what shows handlers a tensor that a legacy constructor made, given its data, or None where it was made of sizes; the
#: result]; None: there was no handler yet
shown_to_handlers: list[Callable[[Tensor, Any], Any] | None] = [None]


def legacy_constructor(cls: type, dtype: dtype_type, *args: Any, like: devices.device = devices.CPU,
                       **kwargs: Any) -> Tensor:
    """The legacy constructors `torch.FloatTensor(...)` and `torch.Tensor(...)`: from sizes, a sequence or a tensor.

    Args:
        like: the device of the new tensor.
    """
    if "device" in kwargs:
        check_legacy_device(args, kwargs, like.type)
        kwargs.pop("device")
    if len(args) == 1 and isinstance(args[0], storage_classes[0]):
        return _legacy_of_storage(cls, dtype, args[0])
    if "size" in kwargs and not args:
        args = (Size(kwargs.pop("size")),)
    if kwargs:
        args = (*args, *kwargs.values())
    if len(args) > 1 and not hasattr(args[0], "__index__"):
        kinds = ", ".join(f"{config.module_name}.storage.{type(x).__name__}" if isinstance(
            x, storage_classes[0]) else type(x).__name__ for x in args)
        raise TypeError(f"new() received an invalid combination of arguments - got ({kinds}), but expected one of:\n"
                        + "".join(f" * ({form})\n" for form in _LEGACY_FORMS))
    if len(args) == 1 and isinstance(args[0], (np.generic, np.ndarray)) and not args[0].ndim and (
            args[0].dtype.kind in "iu"):
        args = (int(args[0]),)  # a size
    if not args:
        array = np.zeros(0, dtype.numpy)
    elif len(args) == 1 and isinstance(args[0], Tensor):
        if args[0].dtype is not dtype or args[0]._device.type != like.type:
            options = ("TensorOptions(dtype={}, device={}, layout=Strided, requires_grad=false (default), "
                       "pinned_memory=false (default), memory_format=(nullopt))")
            raise TypeError(f"expected {options.format(dtypes.C_NAMES[dtype.name], like)} (got "
                            f"{options.format(dtypes.C_NAMES[args[0].dtype.name], args[0]._device)})")
        array = args[0]._array
    elif len(args) == 1 and isinstance(args[0], (str, bytes)):
        raise TypeError(f"new(): invalid data type '{type(args[0]).__name__}'")
    elif len(args) == 1 and not _is_sequence(args[0]) and not isinstance(args[0], (int, Size, np.ndarray)) and (
            isinstance(args[0], np.generic) or not hasattr(args[0], "__index__")):
        raise TypeError(f"new(): data must be a sequence (got {type_name(args[0])})")
    elif len(args) == 1 and not isinstance(args[0], (int, Size)):
        array = to_array(args[0], dtype)
    else:
        array = np.zeros(parse_sizes(args, "new"), dtype.numpy)
    if like is devices.META:
        return make_meta(wrap(array, cls))
    if special[0] and not (args and isinstance(args[0], Tensor)):
        notify_created(array)
    made = wrap(array, cls)
    if shown_to_handlers[0] is None or cls is not Tensor:
        return made
    of_sizes = len(args) != 1 or isinstance(args[0], (int, Size))
    shown: Tensor = shown_to_handlers[0](made, None if of_sizes else args[0])
    return shown


def _new_tensor(cls: type, *args: Any, **kwargs: Any) -> Any:
    """`torch.Tensor(...)`; a subclass called with a tensor returns `as_subclass` of it."""
    if not args or not isinstance(args[0], Tensor) or (cls is Tensor and not handles(type(args[0]))):
        return legacy_constructor(cls, dtypes.get_default_dtype(), *args, **kwargs)
    return args[0].as_subclass(cls)


METHODS: dict[str, Any] = {"__new__": staticmethod(_new_tensor)}
