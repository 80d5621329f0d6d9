"""Tensors from data: scalars, sequences, arrays, buffers."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from ... import devices, dtypes
from ...backends.numpy.memory import writable
from ...dtypes import dtype as dtype_type
from ...engine.grad_mode import inference
from ...kernels.memory_format import noted
from ...warning_location import user_stacklevel
from ..argument_errors.guards import NOT_GIVEN
from ..argument_errors.type_names import type_name
from ..memory.storage_classes import storage_classes
from ..meta import is_meta
from ..overriding.dispatch import handles
from ..tensor import INFERENCE, Tensor, set_requires_grad, wrap
from .element_arrays import SCALAR_TYPES, scalar_array, to_array, with_own_dtype
from .factory_arguments import on_storage, refuse_pinned, wrap_new

__all__ = ["as_tensor", "asarray", "from_numpy", "frombuffer", "scalar_tensor", "tensor"]


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
    elif type(data) not in SCALAR_TYPES and hasattr(data, "__dlpack__") and not isinstance(data, np.ndarray):
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
    if dtype is not None and dtype.__class__ is not dtype_type:
        dtype = dtypes.of_argument(dtype, "as_tensor")
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
    ndarray = with_own_dtype(ndarray)
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
    return on_storage(storage.untyped(), dtype or dtypes.int64)


def _has_buffer(obj: Any) -> bool:
    """Whether an object has the buffer protocol."""
    try:
        memoryview(obj)
    except TypeError:
        return False
    return True


def _new_tensor(cls: type, *args: Any, **kwargs: Any) -> Any:
    """`torch.Tensor(...)`; a subclass called with a tensor returns `as_subclass` of it."""
    if not args or not isinstance(args[0], Tensor) or (cls is Tensor and not handles(type(args[0]))):
        from .legacy_constructor import legacy_constructor  # rarely needed

        return legacy_constructor(cls, dtypes.get_default_dtype(), *args, **kwargs)
    return args[0].as_subclass(cls)


METHODS: dict[str, Any] = {"__new__": staticmethod(_new_tensor)}
