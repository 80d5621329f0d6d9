"""DLPack of tensors in a device's memory: capsules that other libraries read, and arrays of others as tensors."""

from __future__ import annotations

import ctypes
import importlib
import weakref
from typing import Any

import numpy as np

from ... import dtypes
from ...backends.cuda_devices import current_runtime
from ...backends.cuda_devices.allocator import DeviceMemory
from ...backends.cuda_devices.array import DeviceArray, device_array
from ...devices import CPU, cuda, device
from ...modes import device_memory
from ..tensor import Tensor, wrap
from .calls import HANDLERS, Implementation
from .execution import on_device
from .transfers import transfer

_CUDA = 2
_CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}
_BFLOAT = 4


class _DLTensor(ctypes.Structure):
    """DLPack's `DLTensor`."""

    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


_Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class _Managed(ctypes.Structure):
    """DLPack's `DLManagedTensor`."""

    _fields_ = [("tensor", _DLTensor), ("context", ctypes.c_void_p), ("deleter", _Deleter)]


class _Versioned(ctypes.Structure):
    """DLPack's `DLManagedTensorVersioned`."""

    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p),
                ("deleter", _Deleter), ("flags", ctypes.c_uint64), ("tensor", _DLTensor)]


_api = ctypes.pythonapi
_Destructor = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
_api.PyCapsule_New.restype, _api.PyCapsule_New.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p,
                                                                             _Destructor)



def _function(name: str, result: Any) -> Any:
    """A function of Python's API that takes the address of a capsule and a name."""
    kind: Any = ctypes.PYFUNCTYPE(result, ctypes.c_void_p, ctypes.c_char_p)
    return kind((name, _api))


_is_valid, _pointer, _set_name = (_function(name, result) for name, result in (
    ("PyCapsule_IsValid", ctypes.c_int), ("PyCapsule_GetPointer", ctypes.c_void_p),
    ("PyCapsule_SetName", ctypes.c_int)))
#: address of an exported structure -> what must live until its consumer deletes it
_exported: dict[int, Any] = {}


def _forget(address: int) -> None:
    """Let go of an exported structure, which its consumer has deleted."""
    _exported.pop(address, None)


def _forget_unused(capsule: int) -> None:
    """Delete what a capsule has that nobody has consumed."""
    if _is_valid(capsule, b"dltensor"):
        _exported.pop(_pointer(capsule, b"dltensor"), None)


_delete, _destroy = _Deleter(_forget), _Destructor(_forget_unused)


def _export(implementation: Implementation, on: device | None, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`x.__dlpack__(stream=...)`: the consumer's stream waits for the present work."""
    x = args[0]
    if not on_device(x):
        return NotImplemented
    if x._requires_grad:
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
    stream = kwargs.get("stream")
    if stream is not None and not isinstance(stream, int):
        raise TypeError("stream must be ``int`` or ``none``")
    target = kwargs.get("dl_device")
    if target is not None and (int(target[0]), int(target[1])) != (_CUDA, x._device.index):
        raise BufferError(f"cannot export memory of {x._device} to the device {tuple(map(int, target))}")
    if kwargs.get("copy"):
        x = x.clone()
    runtime, index = current_runtime(), x._device.index
    if stream != -1:
        wanted = 0 if stream in (None, 0, 1, 2) else stream
        if wanted != runtime.current_stream(index):
            runtime.wait_event(index, wanted, runtime.record_event(index, runtime.current_stream(index)))
    return _capsule_of(x)


def _capsule_of(x: Tensor) -> Any:
    a = x._array
    managed = _Managed()
    shape, strides = ((ctypes.c_int64 * max(a.ndim, 1))(*values) for values in (
        a.shape, [s // a.itemsize for s in a.strides]))
    tensor = managed.tensor
    tensor.data = HANDLERS["torch.Tensor.data_ptr"](None, None, (x,), {})  # type: ignore[arg-type]
    tensor.device_type, tensor.device_id, tensor.ndim = _CUDA, x._device.index, a.ndim
    is_bfloat = a.dtype == dtypes.BFLOAT16
    if a.dtype.kind not in _CODES and not is_bfloat:
        raise BufferError(f"{x.dtype} type is not supported by dlpack")
    tensor.code, tensor.bits, tensor.lanes = _BFLOAT if is_bfloat else _CODES[a.dtype.kind], 8 * a.itemsize, 1
    tensor.shape, tensor.strides, tensor.byte_offset = shape, strides, 0
    managed.deleter = _delete
    address = ctypes.addressof(managed)
    _exported[address] = managed, shape, strides, a
    return _api.PyCapsule_New(address, b"dltensor", _destroy)


def _device_of(implementation: Implementation, on: device | None, args: tuple[Any, ...], kwargs: dict[str, Any]
               ) -> Any:
    """`x.__dlpack_device__()`."""
    if not on_device(args[0]):
        return NotImplemented
    enumeration = importlib.import_module(f"{__name__.partition('.')[0]}.utils.dlpack")  # a layer above this one
    return enumeration.DLDeviceType.kDLCUDA, args[0]._device.index


def _import(implementation: Implementation, on: device | None, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`torch.from_dlpack(x)`: a tensor on the memory of another library's array on a device."""
    source = args[0] if args else kwargs["ext_tensor"]
    if isinstance(source, Tensor):
        if not on_device(source):
            return NotImplemented
        target = kwargs.get("device")
        if source._requires_grad:
            raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
        made = source.detach()
        return made if target is None else made.to(target, copy=bool(kwargs.get("copy")))
    capsule = source
    if hasattr(source, "__dlpack_device__"):
        kind, index = (int(each) for each in source.__dlpack_device__())
        if kind != _CUDA:
            return NotImplemented
        runtime = current_runtime()
        number = runtime.current_stream(index)
        capsule = source.__dlpack__(stream=runtime.stream_address(index, number) if number else 1)
    array = _array_of(capsule)
    if array is None:
        return NotImplemented
    made = wrap(array)
    target = kwargs.get("device")
    if target is not None and device(target) is CPU:
        return transfer(made, CPU)
    return made.clone() if kwargs.get("copy") else made


def _array_of(capsule: Any) -> DeviceArray | None:
    """The array of a capsule, which is consumed; None if its memory is no device's."""
    for name, kind in ((b"dltensor_versioned", _Versioned), (b"dltensor", _Managed)):
        if not _is_valid(id(capsule), name):
            continue
        address = _pointer(id(capsule), name)
        managed: Any = kind.from_address(address)
        tensor = managed.tensor
        if tensor.device_type != _CUDA:
            return None
        dtype = _dtype_of(tensor.code, tensor.bits)
        shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
        steps = [tensor.strides[i] for i in range(tensor.ndim)] if tensor.strides else None
        used = b"used_" + name
        _names.append(used)
        _set_name(id(capsule), used)
        return _foreign_array(tensor.data + tensor.byte_offset if tensor.data else 0, tensor.device_id, shape, steps,
                              dtype, managed, address)
    return None


#: names of consumed capsules, which must live as long as they do
_names: list[bytes] = []


def _dtype_of(code: int, bits: int) -> np.dtype:
    if code == _BFLOAT:
        return dtypes.BFLOAT16
    kind = {value: key for key, value in _CODES.items()}.get(code)
    if kind is None:
        raise BufferError(f"an array of DLPack's type code {code} with {bits} bits has no dtype here")
    return np.dtype(np.bool_ if kind == "b" else f"{kind}{bits // 8}")


def _foreign_array(address: int, index: int, shape: tuple[int, ...], steps: list[int] | None, dtype: np.dtype,
                   managed: Any, pointer: int) -> DeviceArray:
    """An array over another library's memory, which is given back when nothing refers to it."""
    size = dtype.itemsize
    strides = None if steps is None else [each * size for each in steps]
    span = size * (1 + sum((n - 1) * s for n, s in zip(shape, steps, strict=True))) if steps is not None else (
        size * int(np.prod(shape)))
    nbytes = span if all(shape) else 0
    runtime = current_runtime()
    memory = DeviceMemory(cuda(index), nbytes, None, runtime.stand_in)
    memory.segment = runtime.foreign(index, address, nbytes)
    device_memory.add(1)

    def release() -> None:
        device_memory.add(-1)
        if managed.deleter:
            managed.deleter(pointer)

    weakref.finalize(memory, release).atexit = False
    return device_array(memory, shape, dtype, strides)


HANDLERS.update({"torch.Tensor.__dlpack__": _export, "torch.Tensor.__dlpack_device__": _device_of,
                 "torch.from_dlpack": _import, "torch.utils.dlpack.from_dlpack": _import,
                 "torch.to_dlpack": _export})

__all__ = ["HANDLERS"]
