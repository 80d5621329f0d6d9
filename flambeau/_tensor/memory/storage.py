"""Storages: the memory of tensors, as bytes (`UntypedStorage`) or elements (`TypedStorage`)."""

from __future__ import annotations

import copy
import mmap
import os
import sys
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from ... import config, devices, dtypes
from ...backends.numpy.memory import address, owner
from ...backends.sparse_array import SparseArray
from ...devices import CPU, META
from ...modes import device_memory, lazy_storages, special
from ...warning_location import user_stacklevel
from ..dispatch.handlers import handlers, host_elements
from ..meta import NO_DATA, lacks_elements, reserved
from ..shape.lazy_clones import HOLDERS, identity, is_lazy, make_writable
from ..tensor import Tensor, wrap
from .shared_storage import PinnedMemory, SharedStorage, resize_storage, share_storage
from .storage_classes import storage_classes


class _Storage:
    """What storages of bytes and of elements have in common: conversions, and answers about devices."""

    is_hpu = is_sparse = is_sparse_csr = False
    dtype: dtypes.dtype

    @property
    def is_cuda(self) -> bool:
        """Whether it is in the memory of a CUDA device."""
        return self.device.type == "cuda"

    def get_device(self) -> int | None:
        """The index of the device: None for a storage on the CPU."""
        return self.device.index

    def cuda(self, device: Any = None, non_blocking: bool = False) -> Any:
        """A copy on a CUDA device; itself if it is there.

        Raises:
            AssertionError: there is no CUDA device (PyTorch's text).
        """
        return self._moved(devices.check(devices.device("cuda" if device is None else device)))

    def _moved(self, target: devices.device) -> Any:
        """This storage, or a copy of it on another device, the CPU or a CUDA device."""
        self.untyped()._check_copied()
        if target is self.device:
            return self
        moved = handlers.transfer(_bytes_tensor(self.untyped()), target)
        storage = untyped_storage(moved)
        return storage if isinstance(self, UntypedStorage) else TypedStorage(storage, self.dtype)

    def mps(self) -> Any:
        """Not supported.

        Raises:
            RuntimeError: always (PyTorch's text).
        """
        raise RuntimeError("torch.UntypedStorage(): Storage device not recognized: mps")

    def cpu(self) -> Any:
        """This storage on the CPU: itself if it is there.

        Raises:
            NotImplementedError: it is on meta.
        """
        return self._moved(CPU)

    def to(self, *, device: Any, non_blocking: bool = False) -> Any:
        """This storage on a device: itself if it is there.

        Args:
            device: the CPU, a CUDA device, or that of the storage.
            non_blocking: without effect.
        """
        target = device if isinstance(device, devices.device) else devices.device(device)
        if target.type == "cuda" and devices.current_cuda() is not None:
            return self.cuda(target)
        if target.type == self.device.type:
            return self
        if target.type == "meta":
            raise AssertionError("META device module is not loaded")
        if target.type != "cpu":
            raise AssertionError(f"Torch not compiled with {target.type.upper()} enabled")
        return self.cpu()

    def untyped(self) -> UntypedStorage:
        """The storage as bytes."""
        raise NotImplementedError

    def size(self) -> int:
        """The number of elements."""
        raise NotImplementedError

    def _elements(self) -> np.ndarray:
        raise NotImplementedError

    def _as(self, dtype: dtypes.dtype) -> TypedStorage:
        if self.device is META:
            return TypedStorage(UntypedStorage(self.size() * dtype.itemsize, device=META), dtype)
        if self.is_cuda:
            return TypedStorage(untyped_storage(wrap(self._elements()).to(dtype, copy=True)), dtype)
        elements = self._elements()
        return TypedStorage(UntypedStorage.of(np.array(dtypes.cast(elements, dtype.numpy), copy=True)), dtype)

    @property
    def device(self) -> devices.device:
        """The device: the CPU, or "meta" for the storage of a tensor without elements."""
        return self.untyped()._device


def _conversion(name: str, dtype: dtypes.dtype) -> Any:
    def convert(self: _Storage) -> TypedStorage:
        return self._as(dtype)

    convert.__name__, convert.__qualname__ = name, f"_Storage.{name}"
    convert.__doc__ = f"The elements converted to {dtype.name}; for a storage of bytes, the bytes are the elements."
    return convert


for _name, _dtype in {
    "double": dtypes.float64, "float": dtypes.float32, "half": dtypes.float16, "long": dtypes.int64,
    "int": dtypes.int32, "short": dtypes.int16, "char": dtypes.int8, "byte": dtypes.uint8, "bool": dtypes.bool_,
    "bfloat16": dtypes.bfloat16, "complex_double": dtypes.complex128, "complex_float": dtypes.complex64,
    "float8_e5m2": dtypes.float8_e5m2, "float8_e4m3fn": dtypes.float8_e4m3fn,
    "float8_e5m2fnuz": dtypes.float8_e5m2fnuz, "float8_e4m3fnuz": dtypes.float8_e4m3fnuz,
}.items():
    setattr(_Storage, _name, _conversion(_name, _dtype))


class StorageBase:
    """The base of storages of bytes, for subclasses; `torch._C.StorageBase`.

    Raises:
        RuntimeError: this class itself is constructed.

    >>> import flambeau as torch
    >>> isinstance(torch.ones(2).untyped_storage(), torch._C.StorageBase)
    True
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        if cls is StorageBase:
            raise RuntimeError("Cannot directly construct StorageBase; subclass it and then construct that")
        return object.__new__(cls)


class UntypedStorage(_Storage, SharedStorage, StorageBase):
    """The bytes that a tensor and its views share.

    Args:
        size: the number of bytes, or a sequence of bytes.
        device: the CPU or "meta".

    Raises:
        RuntimeError: a sequence of other things than integers (PyTorch's text).

    >>> import flambeau as torch
    >>> x = torch.zeros(2, 3)
    >>> x.untyped_storage().nbytes(), x[1].untyped_storage().data_ptr() == x.data_ptr()
    (24, True)
    >>> torch.UntypedStorage([1, 2]).tolist()
    [1, 2]
    """

    _device = CPU
    _mapping: Any = None  # of the file that the memory is, which stays open
    _whole: np.ndarray | None = None  # the memory that this is a part of (`__getitem__`)
    filename: str | None = None  #: of the file that is shared (`from_file`)

    def __init__(self, size: Any = 0, *, device: Any = None) -> None:
        if device is not None:
            self._device = device if isinstance(device, devices.device) else devices.device(device)
            if self._device.type == "meta":
                self._device = META
        if self._device.type == "cuda":
            made = UntypedStorage(size).cuda(self._device)
            self._memory, self._device = made._memory, made._device
        elif isinstance(size, (int, np.integer)):
            if size < 0:
                raise RuntimeError(f"alloc_cpu() seems to have been called with negative number: {2**64 + int(size)}")
            self._memory = reserved((int(size),), np.dtype(np.uint8))
        else:
            self._memory = _bytes_of_sequence(size)

    @classmethod
    def of(cls, array: np.ndarray) -> UntypedStorage:
        """The storage of an array."""
        base = owner(array)
        flat = base.reshape(-1, order="A") if base.flags.forc else np.ascontiguousarray(base).reshape(-1)
        return cls._on(flat.view(np.uint8))

    @classmethod
    def _on(cls, memory: np.ndarray) -> UntypedStorage:
        """A storage of these bytes, which may be part of the array that owns them."""
        out = object.__new__(cls)
        out._memory = memory
        if device_memory.count:
            out._device = getattr(memory, "torch_device", CPU)
        return out

    @classmethod
    def from_file(cls, filename: Any, shared: bool = False, nbytes: int = 0) -> UntypedStorage:
        """A storage on a file that is mapped into memory.

        Args:
            filename: of the file.
            shared: whether writes go to the file, which is made or lengthened if needed; otherwise they stay in memory.
            nbytes: the bytes to map, from the file's beginning.

        Raises:
            RuntimeError: the file cannot be opened, or it has fewer bytes and is not shared (PyTorch's texts).

        >>> import os, tempfile
        >>> import flambeau as torch
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     name = os.path.join(folder, "numbers")
        ...     with open(name, "wb") as file:
        ...         _ = file.write(bytes([1, 2, 3]))
        ...     torch.UntypedStorage.from_file(name, nbytes=3).tolist()
        [1, 2, 3]
        """
        memory, mapping = _mapped(os.fspath(filename), bool(shared), nbytes)
        out = cls._on(memory)
        out._mapping = mapping
        if shared:
            out.filename = os.fspath(filename)
        return out

    @classmethod
    def from_buffer(cls, buffer: Any, byte_order: str | None = None, count: int = -1, offset: int = 0, *,
                    dtype: dtypes.dtype = dtypes.uint8) -> UntypedStorage:
        """A storage with a copy of a buffer's bytes, in this machine's byte order.

        Args:
            buffer: an object with the buffer protocol.
            byte_order: of the buffer's elements: "native", "little" or "big"; needed if they have several bytes.
            count: the number of elements; all of them if negative.
            offset: bytes to skip.
            dtype: of the elements.

        Raises:
            RuntimeError: the byte order is missing (PyTorch's text).
            ValueError: it is none of the three, or the buffer is too short.

        >>> import flambeau as torch
        >>> torch.UntypedStorage.from_buffer(bytes([0, 1]), "big", dtype=torch.int16).tolist()
        [1, 0]
        """
        if byte_order is None and dtype.itemsize > 1:
            raise RuntimeError("function missing required argument 'byte_order' (pos 2)")
        if byte_order not in (None, "native", "little", "big"):
            raise ValueError(f"invalid byte_order '{byte_order}' (expected 'big', 'little', or 'native')")
        data = memoryview(buffer).cast("B")
        size = (len(data) - offset) // dtype.itemsize * dtype.itemsize if count < 0 else count * dtype.itemsize
        if offset < 0 or (offset and offset >= len(data)) or size + offset > len(data):
            raise ValueError(f"buffer has only {len(data) - offset} bytes after offset {offset}, but specified a size "
                             f"of {max(count, 0)}")
        out = cls._on(np.frombuffer(data[offset:offset + size], np.uint8).copy())
        if byte_order in ("little", "big") and byte_order != sys.byteorder:
            out.byteswap(dtype)
        return out

    def _check_elements(self) -> None:
        if self._device is META:
            raise NotImplementedError("Not available for 'meta' device type")

    def _make_writable(self) -> None:
        if lazy_storages[0]:
            make_writable(self._memory)

    def _check_copied(self) -> None:
        if self._device is META:
            raise NotImplementedError(NO_DATA)

    def nbytes(self) -> int:
        """The number of bytes."""
        return self._memory.size

    def size(self) -> int:
        """The number of bytes."""
        return self._memory.size

    def data_ptr(self) -> int:
        """The address of the first byte; 0 if there is none, or no elements."""
        if lazy_storages[0]:
            make_writable(self._memory)
        if self._device.type == "cuda":
            return _bytes_tensor(self).data_ptr()
        return address(self._memory) if self._memory.size and self._device is not META else 0

    def element_size(self) -> int:
        """The size of an element: a byte."""
        return 1

    def untyped(self) -> UntypedStorage:
        """This storage."""
        return self

    def new(self) -> UntypedStorage:
        """An empty storage."""
        return UntypedStorage(0, device=self._device)

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        """The name of this class; with a dtype's legacy storage class, the bytes converted to it."""
        if dtype is None:
            return f"{config.module_name}.storage.UntypedStorage"
        return self._as(dtype if isinstance(dtype, dtypes.dtype) else dtype.dtype)

    def _elements(self) -> np.ndarray:
        return self._memory

    def __len__(self) -> int:
        return self._memory.size

    def __getitem__(self, index: Any) -> Any:
        self._check_elements()
        if not isinstance(index, slice):
            return int(host_elements(_bytes_tensor(self))[_checked_index(index, len(self))])
        start, stop, step = index.indices(len(self))
        if step != 1:
            raise RuntimeError(f"Trying to slice with a step of {step}, but only a step of 1 is supported")
        part = self._memory[start:max(start, stop)]
        # a storage of its own, like PyTorch's: tensors on two parts do not share a storage
        out = UntypedStorage._on(np.frombuffer(part.data, np.uint8) if part.size else part)
        out._mapping, out._whole = self._mapping, self._owner()
        return out

    def _owner(self) -> np.ndarray:
        """The array that owns the memory: of the whole, for a part."""
        return owner(self._memory) if self._whole is None else self._whole

    def __setitem__(self, index: Any, value: Any) -> None:
        where = index if isinstance(index, slice) else _checked_index(index, len(self))
        if self._device is not META:
            self._make_writable()
            if self._device.type == "cuda":
                _bytes_tensor(self)[where] = value
                return
            self._memory[where] = value

    def __iter__(self) -> Any:
        return iter(self.tolist())

    def tolist(self) -> list[int]:
        """The bytes, as integers."""
        self._check_elements()
        return host_elements(_bytes_tensor(self)).tolist()

    def fill_(self, value: int) -> UntypedStorage:
        """Set all bytes to a value, in place."""
        if self._device is not META:
            self._make_writable()
            if self._device.type == "cuda":
                _bytes_tensor(self).fill_(value)
                return self
            self._memory[...] = value
        return self

    def copy_(self, source: Any, non_blocking: bool | None = None) -> UntypedStorage:
        """Copy the bytes of a storage of equal size into this one.

        Raises:
            RuntimeError: the sizes differ (PyTorch's text).
        """
        other = source.untyped()
        if len(self) != len(other):
            raise RuntimeError(f"size does not match, self was {len(self)} bytes but src was {len(other)} bytes")
        if self._device is not META:
            other._check_copied()
            self._make_writable()
            if self._device.type == "cuda" or other._device.type == "cuda":
                _bytes_tensor(self).copy_(_bytes_tensor(other))
                return self
            self._memory[...] = other._memory
        return self

    def resizable(self) -> bool:
        """Whether the number of bytes can change: not if NumPy or a file owns them."""
        return self._mapping is None and self._whole is None and (
            owner(self._memory).flags.owndata or is_lazy(self._memory))

    def clone(self) -> UntypedStorage:
        """A copy."""
        if self._device is META:
            return UntypedStorage(len(self), device=META)
        if self._device.type == "cuda":
            return untyped_storage(_bytes_tensor(self).clone())
        return UntypedStorage.of(self._memory.copy())

    def byteswap(self, dtype: dtypes.dtype) -> None:
        """Reverse the bytes of every element of `dtype`, in place."""
        size = dtype.to_real().itemsize
        if size > 1:
            self._memory.view(f"u{size}").byteswap(inplace=True)

    def _fix_weakref(self) -> None:
        """See `Tensor._fix_weakref`."""

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + len(self)

    def _byteswap(self, dtype: dtypes.dtype) -> None:
        self.byteswap(dtype)

    def _get_filename(self) -> str | None:
        return self.filename

    def __copy__(self) -> UntypedStorage:
        return self.clone()

    def __reduce__(self) -> Any:
        self._check_copied()
        if self._device.type == "cuda":
            return _storage_on_device, (self.cpu()._memory, str(self._device))
        memory_owner = self._owner()  # storages of one array pickle as one object
        start = self.data_ptr() - address(memory_owner) if len(self) else 0
        return _storage_slice, (memory_owner, start, len(self))

    def __deepcopy__(self, memo: dict[int, Any]) -> UntypedStorage:
        if self._device is META:
            return self.clone()
        if self._device.type == "cuda":
            key = id(self._memory.memory)
            if key not in memo:
                memo[key] = self.clone()
                memo.setdefault(id(memo), []).append(self._memory.memory)
            return memo[key]
        memory_owner = self._owner()
        if id(memory_owner) not in memo:
            memo[id(memory_owner)] = np.array(memory_owner, order="K", copy=True)
            memo.setdefault(id(memo), []).append(memory_owner)
        start = self.data_ptr() - address(memory_owner) if len(self) else 0
        return _storage_slice(memo[id(memory_owner)], start, len(self))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UntypedStorage) and len(self) == len(other) and (
            not len(self) or address(self._memory) == address(other._memory))

    def __hash__(self) -> int:
        return hash(address(self._memory) if len(self) else 0)

    @property
    def _cdata(self) -> int:
        """What identifies the storage: equal for all that share the memory."""
        return identity(self._owner())

    def _write_file(self, f: Any, is_real_file: bool, save_size: bool, element_size: int) -> None:
        """Write the bytes to a file, after their number of elements if `save_size`."""
        self._check_copied()
        if save_size:
            f.write((len(self) // element_size).to_bytes(8, sys.byteorder))
        f.write(host_elements(_bytes_tensor(self)).data)

    def __repr__(self) -> str:
        lines = "..." if self._device is META else " " + "\n ".join(map(str, self.tolist()))
        return f"{lines}\n[{config.module_name}.storage.UntypedStorage(device={self._device}) of size {len(self)}]"


def _storage_on_device(memory: np.ndarray, location: str) -> UntypedStorage:
    """A storage with these bytes on a device, of a pickle."""
    storage: UntypedStorage = UntypedStorage.of(memory).to(device=location)
    return storage


def _bytes_of_sequence(values: Any) -> np.ndarray:
    if not hasattr(values, "__getitem__") or not hasattr(values, "__len__"):
        raise RuntimeError(f"torch.UntypedStorage(): Expected a sequence type, but got {type(values).__name__}")
    for value in values:
        if not isinstance(value, (int, np.integer)):
            raise RuntimeError("torch.UntypedStorage(): tried to construct a storage from a sequence "
                               f"({type(values).__name__}), but one of the items was of type {type(value).__name__} "
                               "instead of int")
    return np.array([int(value) & 0xFF for value in values], np.uint8)


def _checked_index(index: Any, size: int) -> int:
    if not isinstance(index, (int, np.integer)):
        raise TypeError(f"can't index a {config.module_name}.UntypedStorage with {type(index).__name__}")
    if not -size <= index < size:
        raise IndexError(f"index {index} out of range for storage of size {size}")
    return int(index)


def _mapped(filename: str, shared: bool, nbytes: int) -> tuple[np.ndarray, Any]:
    """The bytes of a file in memory, and the mapping."""
    try:
        fd = os.open(filename, os.O_RDWR | os.O_CREAT if shared else os.O_RDONLY, 0o600)
    except OSError as error:
        raise RuntimeError(f"unable to open file <{filename}> in {'read-write' if shared else 'read-only'} mode: "
                           f"{os.strerror(error.errno or 0)} ({error.errno})") from None
    try:
        present = os.fstat(fd).st_size
        if present < nbytes:
            if not shared:
                raise RuntimeError(f"file <{filename}> size <{present}> is smaller than the required mapping size "
                                   f"<{nbytes}>")
            os.ftruncate(fd, nbytes)
        if not nbytes:
            return np.zeros(0, np.uint8), None
        mapping = mmap.mmap(fd, nbytes, access=mmap.ACCESS_WRITE if shared else mmap.ACCESS_COPY)
    finally:
        os.close(fd)
    return np.frombuffer(mapping, np.uint8), mapping


def _storage_slice(memory_owner: np.ndarray, start: int, size: int) -> UntypedStorage:
    return UntypedStorage._on(UntypedStorage.of(memory_owner)._memory[start:start + size])


_TYPED_ARGUMENTS = ("TypedStorage.__init__ received an invalid combination of arguments. Expected one of:\n"
                    " * (*, torch.device device, torch.dtype dtype)\n"
                    " * (int size, *, torch.device device, torch.dtype dtype)\n"
                    " * (Sequence data, *, torch.device device, torch.dtype dtype)\n"
                    " * (*, UntypedStorage wrap_storage, torch.dtype dtype)\n")


def check_storage_arguments(args: tuple[Any, ...], wrap_storage: Any, expected: str) -> None:
    """Check what a typed storage is made of.

    Args:
        expected: the beginning of messages, which lists the combinations of arguments.

    Raises:
        RuntimeError: there are too many arguments.
        TypeError: an argument is of another type.
    """
    if wrap_storage is not None:
        if args:
            raise RuntimeError(f"{expected}No positional arguments should be given when using 'wrap_storage'")
        if not isinstance(wrap_storage, UntypedStorage):
            raise TypeError(f"{expected}Argument 'wrap_storage' must be UntypedStorage, but got {type(wrap_storage)}")
    elif len(args) > 1:
        raise RuntimeError(f"{expected}Too many positional arguments")
    elif args and isinstance(args[0], str):
        raise TypeError("new(): invalid data type 'str'")
    elif args and (isinstance(args[0], Tensor) or not (
            isinstance(args[0], (int, np.integer, np.ndarray)) or hasattr(type(args[0]), "__getitem__"))):
        raise TypeError(f"{expected}Argument type not recognized: {type(args[0])}")


class TypedStorage(_Storage, PinnedMemory):
    """The memory of a tensor and its views, as elements of one dtype; deprecated, use `UntypedStorage`.

    Args:
        args: nothing, the number of elements, or a sequence of elements.
        wrap_storage: the memory, as bytes, instead.
        dtype: dtype of the elements; default: the default dtype.
        device: the CPU.

    >>> import flambeau as torch
    >>> storage = torch.TypedStorage(wrap_storage=torch.arange(3).untyped_storage(), dtype=torch.int64)
    >>> storage.dtype, storage.nbytes()
    (flambeau.int64, 24)
    """

    def __init__(self, *args: Any, wrap_storage: UntypedStorage | None = None, dtype: dtypes.dtype | None = None,
                 device: Any = None, _internal: bool = False) -> None:
        if len(args) == 2 and isinstance(args[0], UntypedStorage):  # files: the bytes and the dtype
            wrap_storage, dtype, args = args[0], args[1], ()
        if wrap_storage is not None and dtype is None:
            raise RuntimeError(f"{_TYPED_ARGUMENTS}Argument 'dtype' must be specified")
        if dtype is not None and dtype.__class__ is not dtypes.dtype:
            raise TypeError(f"{_TYPED_ARGUMENTS}Argument 'dtype' must be torch.dtype, not {type(dtype)}")
        if wrap_storage is not None and device is not None and not args:
            raise RuntimeError(f"{_TYPED_ARGUMENTS}Argument 'device' should not be specified when 'wrap_storage' is "
                               "given")
        check_storage_arguments(args, wrap_storage, _TYPED_ARGUMENTS)
        self.dtype = dtype or dtypes.get_default_dtype()
        if wrap_storage is not None:
            self._untyped_storage = wrap_storage
        elif not args:
            self._untyped_storage = UntypedStorage(device=device)
        elif isinstance(args[0], (int, np.integer)):
            self._untyped_storage = UntypedStorage(int(args[0]) * self.dtype.itemsize, device=device)
        elif device is not None and devices.device(device).type == "meta":
            self._untyped_storage = UntypedStorage(len(args[0]) * self.dtype.itemsize, device=device)
        else:
            self._untyped_storage = UntypedStorage.of(
                dtypes.cast(np.array(args[0]), self.dtype.numpy).reshape(-1).copy())

    @classmethod
    def _wrap(cls, untyped: UntypedStorage, dtype: dtypes.dtype) -> TypedStorage:
        return TypedStorage(wrap_storage=untyped, dtype=dtype)

    def untyped(self) -> UntypedStorage:
        """The storage as bytes."""
        return self._untyped_storage

    def _elements(self) -> np.ndarray:
        return self._untyped_storage._memory.view(self.dtype.numpy)

    @property
    def filename(self) -> str | None:
        """The name of the file that is shared; None if there is none."""
        return self._untyped_storage.filename

    def size(self) -> int:
        """The number of elements."""
        return self._untyped_storage.nbytes() // self.dtype.itemsize

    __len__ = _size = size

    def nbytes(self) -> int:
        """The number of bytes."""
        return self._untyped_storage.nbytes()

    def data_ptr(self) -> int:
        """The address of the first element."""
        return self._untyped_storage.data_ptr()

    def element_size(self) -> int:
        """The size of an element in bytes."""
        return self.dtype.itemsize

    def resizable(self) -> bool:
        """Whether the number of elements can change."""
        return self._untyped_storage.resizable()

    def is_shared(self) -> bool:
        """Whether the storage is in shared memory."""
        return self._untyped_storage.is_shared()

    _is_shared = is_shared

    def share_memory_(self) -> TypedStorage:
        """Move the storage to shared memory (`UntypedStorage.share_memory_`)."""
        share_storage(self._untyped_storage)
        return self

    _share_memory_ = share_memory_

    def resize_(self, size: int) -> None:
        """Change the number of elements, in place."""
        resize_storage(self._untyped_storage, size * self.element_size())

    _resize_ = resize_

    def _share_fd_cpu_(self) -> tuple[int, int]:
        return self._untyped_storage._share_fd_cpu_()

    def _share_filename_cpu_(self) -> tuple[bytes, bytes, int]:
        return self._untyped_storage._share_filename_cpu_()

    def _new_shared(self, size: int, *, device: Any = None) -> TypedStorage:
        """A storage of `size` elements of the same dtype in shared memory."""
        return TypedStorage(UntypedStorage._new_shared(size * self.element_size()), self.dtype)

    def tolist(self) -> list[Any]:
        """The elements as Python scalars."""
        self._untyped_storage._check_elements()
        return dtypes.widen(host_elements(wrap(self._elements()))).tolist()

    def clone(self) -> TypedStorage:
        """A copy."""
        return TypedStorage._wrap(self._untyped_storage.clone(), self.dtype)

    def fill_(self, value: Any) -> TypedStorage:
        """Set all elements to a value, in place."""
        if self.device is not META:
            self._untyped_storage._make_writable()
            _write(self._elements(), ..., np.asarray(value), self.dtype)
        return self

    def copy_(self, source: Any, non_blocking: bool | None = None) -> TypedStorage:
        """Copy the elements of a storage of equal length, converted to this dtype."""
        if self.device is not META:
            source.untyped()._check_copied()
            self._untyped_storage._make_writable()
            _write(self._elements(), ..., source._elements(), self.dtype)
        return self

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        """The name of the legacy class; with such a class or its name, the elements converted to its dtype."""
        if dtype is None:
            if self.device is META:
                return f"{config.module_name}.storage.TypedStorage"
            return f"{config.module_name}.{storage_name(self.dtype)}"
        if isinstance(dtype, str):
            dtype = next(d for d in dtypes.ALL if storage_name(d) == dtype.rpartition(".")[2])
        return self._as(dtype if isinstance(dtype, dtypes.dtype) else dtype.dtype)

    def __getitem__(self, index: Any) -> Any:
        self._untyped_storage._check_elements()
        if isinstance(index, slice):
            raise RuntimeError("slices are only supported in UntypedStorage.__getitem__")
        elements = host_elements(wrap(self._elements()))
        return dtypes.widen(elements[_checked_index(index, self.size())][None])[0].item()

    def __setitem__(self, index: Any, value: Any) -> None:
        if self.device is not META:
            self._untyped_storage._make_writable()
            _write(self._elements(), index, np.asarray(value), self.dtype)

    def __iter__(self) -> Any:
        return iter(self.tolist())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TypedStorage) and self.dtype is other.dtype and (
            self._untyped_storage == other._untyped_storage)

    def __hash__(self) -> int:
        return hash(self._untyped_storage)

    @classmethod
    def from_file(cls, filename: Any, shared: bool = False, size: int = 0) -> TypedStorage:
        """A storage on a file that is mapped into memory (`UntypedStorage.from_file`); `size` counts elements."""
        dtype: dtypes.dtype = getattr(cls, "dtype", None) or dtypes.get_default_dtype()
        return TypedStorage._wrap(UntypedStorage.from_file(filename, shared, size * dtype.itemsize), dtype)

    @classmethod
    def from_buffer(cls, *args: Any, **kwargs: Any) -> TypedStorage:
        """A storage with a copy of a buffer's elements (`UntypedStorage.from_buffer`)."""
        dtype = kwargs.pop("dtype", None) or getattr(cls, "dtype", None) or dtypes.get_default_dtype()
        return TypedStorage._wrap(UntypedStorage.from_buffer(*args, dtype=dtype, **kwargs), dtype)

    _from_buffer = from_buffer

    def pickle_storage_type(self) -> str:
        """The legacy storage class name of this dtype in files, "FloatStorage"."""
        return storage_name(self.dtype)

    _pickle_storage_type = pickle_storage_type

    @property
    def _cdata(self) -> int:
        """What identifies the storage (`UntypedStorage._cdata`)."""
        return self._untyped_storage._cdata

    @property
    def _dtype(self) -> dtypes.dtype:
        return self.dtype

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + self.nbytes()

    def _write_file(self, *args: Any) -> None:
        """Write the elements to a file (`UntypedStorage._write_file`)."""
        self._untyped_storage._write_file(*args)

    _element_size, _nbytes, _setitem = element_size, nbytes, __setitem__

    def _deepcopy(self, memo: dict[int, Any]) -> TypedStorage:
        return copy.deepcopy(self, memo)

    def _data_ptr(self) -> int:
        return self.data_ptr()

    def __reduce__(self) -> Any:
        return TypedStorage, (self._untyped_storage, self.dtype)

    def __repr__(self) -> str:
        lines = "..." if self.device is META else " " + "\n ".join(map(str, self.tolist()))
        what = (f"{config.module_name}.storage.TypedStorage(dtype={self.dtype}, device={self.device}) of size "
                f"{len(self)}")
        return f"{lines}\n[{what}]"


HOLDERS.append((UntypedStorage, "_memory"))

# The public module, by which files name these classes.
UntypedStorage.__module__ = TypedStorage.__module__ = f"{__name__.partition('.')[0]}.storage"


def storage_name(dtype: dtypes.dtype) -> str:
    """The legacy storage class name of a dtype in files: "FloatStorage" for float32."""
    return dtype.legacy.replace("Tensor", "Storage")


def _check_not_batched(self: Tensor) -> None:
    """Check that a tensor has a storage.

    Raises:
        NotImplementedError: it is batched (PyTorch's text).
    """
    if special[0] and not isinstance(self._array, np.ndarray):
        raise NotImplementedError("Cannot access storage of BatchedTensorImpl")


#: storages that are alive, by the id of the array that owns their memory
_storages: WeakValueDictionary[int, UntypedStorage] = WeakValueDictionary()


def _write(elements: np.ndarray, index: Any, values: np.ndarray, dtype: dtypes.dtype) -> None:
    """Write values, of the host or a device, into elements of a storage."""
    if hasattr(elements, "torch_device") or hasattr(values, "torch_device"):
        target: Tensor = wrap(elements)
        target[index] = wrap(values)
    else:
        elements[index] = dtypes.cast(values, dtype.numpy)


def _bytes_tensor(storage: UntypedStorage) -> Tensor:
    """The bytes of a storage, as a tensor on its memory."""
    out: Tensor = wrap(storage._memory)
    return out


def untyped_storage(self: Tensor) -> UntypedStorage:
    """The storage of this tensor and of all tensors that share its memory.

    >>> import flambeau as torch
    >>> torch.ones(2).untyped_storage().nbytes()
    8
    """
    if isinstance(self._array, SparseArray):
        raise NotImplementedError(f"Cannot access storage of Sparse{'' if self.is_sparse else 'Csr'}TensorImpl")
    _check_not_batched(self)
    memory = owner(self._array)
    out: UntypedStorage | None = getattr(self, "_storage", None)
    if out is not None and owner(out._memory) is memory:
        return out
    out = _storages.get(id(memory))
    if out is None or owner(out._memory) is not memory:
        out = _storages[id(memory)] = UntypedStorage.of(self._array)
        if lacks_elements(self):
            out._device = META
    self._storage = out
    return out


def attach_storage(x: Tensor, storage: UntypedStorage) -> None:
    """Make `storage`, on whose memory a tensor is, the one that `untyped_storage` returns."""
    memory = owner(x._array)
    if memory.nbytes == storage.nbytes():
        _storages[id(memory)] = x._storage = storage


def storage(self: Tensor) -> TypedStorage:
    """The storage of this tensor as elements of its dtype; deprecated, use `untyped_storage`.

    >>> import flambeau as torch
    >>> import warnings
    >>> with warnings.catch_warnings(action="ignore"):
    ...     torch.ones(2).storage().tolist()
    [1.0, 1.0]
    """
    import warnings

    warnings.warn("TypedStorage is deprecated. It will be removed in the future and UntypedStorage will be the only "
                  "storage class. This should only matter to you if you are using storages directly.  To access "
                  "UntypedStorage directly, use tensor.untyped_storage() instead of "
                  "tensor.storage()", UserWarning, stacklevel=user_stacklevel())
    return TypedStorage(untyped_storage(self), self.dtype)


def storage_type(self: Tensor) -> type:
    """The class of typed storages of this tensor's dtype.

    >>> import flambeau as torch
    >>> torch.ones(2).storage_type() is torch.FloatStorage
    True
    """
    import importlib

    classes = importlib.import_module(f"{__name__.partition('.')[0]}.storage")  # a layer above this one
    return getattr(classes, storage_name(self.dtype))


def _typed_storage(self: Tensor) -> TypedStorage:
    return TypedStorage(untyped_storage(self), self.dtype)


storage_classes[0] = TypedStorage, UntypedStorage

METHODS: dict[str, Any] = {
    "_typed_storage": _typed_storage,
    "untyped_storage": untyped_storage, "storage": storage, "storage_type": storage_type}
