"""DLPack: memory shared with other libraries' arrays, in both directions.

NumPy makes and reads the capsules. Those of bfloat16 and float8 are capsules of unsigned integers with another type
code.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from ... import dtypes
from ...backends.bit_views import bits_of, memory_of
from ...backends.sparse_array import SparseArray
from ...devices import storage_device
from ...kernels.memory_format import noted
from ...modes import lazy_storages, special
from ..dispatch.batched_tensor import BatchedTensor
from ..meta import lacks_elements
from ..shape.lazy_clones import make_writable
from ..tensor import Tensor, wrap
from ..tracer_notifications import notify_read
from .access import detach

__all__ = ["from_dlpack", "to_dlpack"]

_UNSIGNED = 1  # DLPack's type code of unsigned integers
#: dtypes that NumPy lacks -> DLPack's type codes
_CODES = {"bfloat16": 4, "float8_e4m3fn": 10, "float8_e4m3fnuz": 11, "float8_e5m2": 12, "float8_e5m2fnuz": 13,
          "float8_e8m0fnu": 14, "complex32": 5}
_OF_CODE = {(code, getattr(dtypes, name).itemsize * 8): getattr(dtypes, name) for name, code in _CODES.items()}


class _Tensor(ctypes.Structure):
    """The beginning of a `DLTensor`, up to its dtype."""

    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16)]


class _Versioned(ctypes.Structure):
    """A `DLManagedTensorVersioned`, up to its tensor."""

    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p),
                ("deleter", ctypes.c_void_p), ("flags", ctypes.c_uint64), ("tensor", _Tensor)]


_get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_get_pointer.restype, _get_pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
_is_valid = ctypes.pythonapi.PyCapsule_IsValid
_is_valid.restype, _is_valid.argtypes = ctypes.c_int, (ctypes.py_object, ctypes.c_char_p)


def _tensor_of(capsule: Any) -> _Tensor | None:
    """The tensor in a capsule that nobody has used, or None."""
    if _is_valid(capsule, b"dltensor"):
        return _Tensor.from_address(_get_pointer(capsule, b"dltensor"))
    if _is_valid(capsule, b"dltensor_versioned"):
        return _Versioned.from_address(_get_pointer(capsule, b"dltensor_versioned")).tensor
    return None


def __dlpack__(self: Tensor, *, stream: Any = -1, max_version: tuple[int, int] | None = None,
               dl_device: tuple[Any, int] | None = None, copy: bool | None = None) -> Any:
    """Export the memory as a DLPack capsule.

    Args:
        stream: None or -1, as there are no streams on the CPU.
        max_version: the newest version that the consumer reads; None: the capsule is unversioned.
        dl_device: the device of the capsule's memory, (type, id); the CPU only.
        copy: whether to copy the memory.

    Raises:
        BufferError: the tensor requires grad, or has no memory of its own.
        AssertionError: there is a stream.
    """
    if special[0] and type(self) is BatchedTensor:
        raise RuntimeError("Cannot access data pointer of Tensor that doesn't have storage")
    if self._requires_grad:
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
    a = memory_of(self._array)
    if isinstance(a, SparseArray):
        raise BufferError("Can't export tensors with layout other than torch.strided")
    if bits_of(self._array)[0]:
        raise BufferError("Can't export tensors with the conjugate bit set")
    if lacks_elements(self):
        raise BufferError("Cannot pack tensors on meta")
    if special[0]:
        notify_read(self, "__dlpack__()")
        if lazy_storages[0]:
            make_writable(a)
            a = memory_of(self._array)
    if stream is not None and not isinstance(stream, int):
        raise TypeError("stream must be ``int`` or ``none``")
    if stream is not None and stream != -1:
        raise AssertionError("stream should be None on cpu.")
    if dl_device is not None and int(dl_device[0]) != 1:
        raise BufferError(f"cannot export memory of the CPU to the device {tuple(map(int, dl_device))}")
    if copy or not a.flags.writeable:
        a = a.copy()
    if a.dtype.kind != "V":
        return a.__dlpack__(max_version=max_version)
    capsule = a.view(f"u{a.itemsize}").__dlpack__(max_version=max_version)
    exported = _tensor_of(capsule)
    assert exported is not None
    exported.code = _CODES[self.dtype.name]
    return capsule


def __dlpack_device__(self: Tensor) -> tuple[Any, int]:
    """The DLPack device, (type, id): the CPU."""
    import importlib

    enumeration = importlib.import_module(f"{__name__.partition('.')[0]}.utils.dlpack")  # a layer above this one
    return enumeration.DLDeviceType.kDLCPU, 0


def to_dlpack(tensor: Tensor) -> Any:
    """A DLPack capsule of a tensor's memory, which `from_dlpack` of any library reads, once.

    >>> import flambeau as torch
    >>> torch.from_dlpack(torch.to_dlpack(torch.ones(2)))
    tensor([1., 1.])
    """
    return __dlpack__(tensor)


class _Capsule:
    """A DLPack capsule of memory of the CPU as an object that NumPy reads."""

    def __init__(self, capsule: Any) -> None:
        self.capsule = capsule

    def __dlpack__(self, **protocol: Any) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


def from_dlpack(ext_tensor: Any, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """A tensor on the memory of another library's array.

    Args:
        ext_tensor: an object with the method `__dlpack__`, or a capsule that `to_dlpack` returned, once.
        device: the device of the result.
        copy: whether to copy; None: only if the device requires it.

    Raises:
        BufferError: a tensor that requires grad.
        RuntimeError: no capsule, or one that is used already.

    >>> import flambeau as torch
    >>> import numpy as np
    >>> torch.from_dlpack(np.ones(2, np.float32))
    tensor([1., 1.])
    """
    if device is not None:
        storage_device(device)  # raises for devices that are absent
    if isinstance(ext_tensor, Tensor):
        __dlpack__(ext_tensor)  # checks
        return wrap(ext_tensor._array.copy()) if copy else detach(ext_tensor)
    capsule = ext_tensor
    if hasattr(ext_tensor, "__dlpack__"):
        protocol: dict[str, Any] = {"max_version": (1, 0)}
        if copy is not None:
            protocol["copy"] = copy
        if device is not None:
            protocol["dl_device"] = (1, 0)
        try:
            capsule = ext_tensor.__dlpack__(**protocol)
        except TypeError:  # the protocol before version 1
            capsule = ext_tensor.__dlpack__()
    imported = _tensor_of(capsule)
    if imported is None:
        raise RuntimeError("from_dlpack received an invalid capsule. Note that DLTensor capsules can be consumed only "
                           "once, so you might have already constructed a tensor from it once.")
    narrow = _OF_CODE.get((imported.code, imported.bits))
    if narrow is not None:
        imported.code = _UNSIGNED
    array = np.from_dlpack(_Capsule(capsule))
    if not array.flags.writeable:  # of a producer that says so; PyTorch writes to such memory
        array = _writeable(array)
    return wrap(noted(array if narrow is None else array.view(narrow.numpy)))


def _writeable(array: np.ndarray) -> np.ndarray:
    """The same memory as an array that can be written."""
    if not array.size:
        return array.copy()
    spans = [stride * (size - 1) for stride, size in zip(array.strides, array.shape, strict=True)]
    low = array.ctypes.data + sum(min(0, span) for span in spans)
    high = array.ctypes.data + array.itemsize + sum(max(0, span) for span in spans)
    buffer = (ctypes.c_uint8 * (high - low)).from_address(low)
    buffer._owner = array
    return np.ndarray(array.shape, array.dtype, buffer, array.ctypes.data - low, array.strides)


METHODS: dict[str, Any] = {"__dlpack__": __dlpack__, "__dlpack_device__": __dlpack_device__}
