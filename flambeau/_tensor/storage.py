"""Storages: the memory of tensors, as bytes (`UntypedStorage`) or elements (`TypedStorage`)."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import dtypes
from ..backends.numpy.memory import address, owner
from ..devices import CPU, device
from ..modes import active_tracer, special
from .tensor import Tensor


class UntypedStorage:
    """The bytes that a tensor and its views share.

    >>> import flambeau as torch
    >>> x = torch.zeros(2, 3)
    >>> x.untyped_storage().nbytes(), x[1].untyped_storage().data_ptr() == x.data_ptr()
    (24, True)
    """

    _pending_copies: list[Any] | None = None  # copies to update when the bytes are read (`apply_pending_copies`)

    def __init__(self, size: int = 0) -> None:
        self._memory = np.zeros(size, np.uint8)

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
        return out

    @property
    def device(self) -> device:
        """The device: the CPU."""
        return CPU

    def nbytes(self) -> int:
        """The number of bytes."""
        return self._memory.size

    def size(self) -> int:
        """The number of bytes."""
        return self._memory.size

    def data_ptr(self) -> int:
        """The address of the first byte."""
        return address(self._memory) if self._memory.size else 0

    def element_size(self) -> int:
        """The size of an element: a byte."""
        return 1

    def __len__(self) -> int:
        return self._memory.size

    def __getitem__(self, index: Any) -> Any:
        result = self._memory[index]
        return UntypedStorage._on(result) if isinstance(result, np.ndarray) else int(result)

    def __setitem__(self, index: Any, value: Any) -> None:
        self._memory[index] = value

    def tolist(self) -> list[int]:
        """The bytes, as integers."""
        return self._memory.tolist()

    def clone(self) -> UntypedStorage:
        """A copy."""
        return UntypedStorage.of(self._memory.copy())

    def cpu(self) -> UntypedStorage:
        """This storage."""
        return self

    def cuda(self, device: Any = None, non_blocking: bool = False) -> UntypedStorage:
        """Not supported.

        Raises:
            AssertionError: always (PyTorch's text).
        """
        raise AssertionError("Torch not compiled with CUDA enabled")

    def byteswap(self, dtype: dtypes.dtype) -> None:
        """Reverse the bytes of every element of `dtype`, in place."""
        numbers = np.dtype(np.uint16) if dtype is dtypes.bfloat16 else dtype.numpy
        self._memory.view(numbers).byteswap(inplace=True)

    def __reduce__(self) -> Any:
        memory_owner = owner(self._memory)  # storages of one array pickle as one object
        start = self.data_ptr() - address(memory_owner) if len(self) else 0
        return _storage_slice, (memory_owner, start, len(self))

    def __deepcopy__(self, memo: dict[int, Any]) -> UntypedStorage:
        memory_owner = owner(self._memory)
        if id(memory_owner) not in memo:
            memo[id(memory_owner)] = np.array(memory_owner, order="K", copy=True)
            memo.setdefault(id(memo), []).append(memory_owner)
        start = self.data_ptr() - address(memory_owner) if len(self) else 0
        return _storage_slice(memo[id(memory_owner)], start, len(self))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UntypedStorage) and self.data_ptr() == other.data_ptr() and len(self) == len(other)

    def __hash__(self) -> int:
        return hash(self.data_ptr())

    def __repr__(self) -> str:
        from .. import config

        lines = "\n".join(f" {b}" for b in self._memory.tolist())
        return f"{lines}\n[{config.module_name}.storage.UntypedStorage(device=cpu) of size {len(self)}]"


def _storage_slice(memory_owner: np.ndarray, start: int, size: int) -> UntypedStorage:
    return UntypedStorage._on(UntypedStorage.of(memory_owner)._memory[start:start + size])


class TypedStorage:
    """The memory of a tensor and its views, as elements of one dtype; deprecated, use `UntypedStorage`.

    Args:
        untyped: the memory, as bytes.
        dtype: dtype of the elements.

    >>> import flambeau as torch
    >>> storage = torch.TypedStorage(torch.arange(3).untyped_storage(), torch.int64)
    >>> storage.dtype, storage.nbytes()
    (flambeau.int64, 24)
    """

    def __init__(self, untyped: UntypedStorage, dtype: dtypes.dtype) -> None:
        self._untyped_storage, self.dtype = untyped, dtype

    def untyped(self) -> UntypedStorage:
        """The storage as bytes."""
        return self._untyped_storage

    def _elements(self) -> np.ndarray:
        return self._untyped_storage._memory.view(self.dtype.numpy)

    @property
    def device(self) -> device:
        """The device: the CPU."""
        return CPU

    def size(self) -> int:
        """The number of elements."""
        return self._untyped_storage.nbytes() // self.dtype.itemsize

    __len__ = size

    def nbytes(self) -> int:
        """The number of bytes."""
        return self._untyped_storage.nbytes()

    def data_ptr(self) -> int:
        """The address of the first element."""
        return self._untyped_storage.data_ptr()

    def element_size(self) -> int:
        """The size of an element in bytes."""
        return self.dtype.itemsize

    def tolist(self) -> list[Any]:
        """The elements as Python scalars."""
        return dtypes.widen(self._elements()).tolist()

    def __getitem__(self, index: Any) -> Any:
        return self.tolist()[index]

    def pickle_storage_type(self) -> str:
        """The legacy storage class name of this dtype in files, "FloatStorage"."""
        return storage_name(self.dtype)

    def __reduce__(self) -> Any:
        return TypedStorage, (self._untyped_storage, self.dtype)

    def __repr__(self) -> str:
        from .. import config

        lines = "\n".join(f" {number}" for number in self.tolist())
        what = f"{config.module_name}.storage.TypedStorage(dtype={self.dtype}, device=cpu) of size {len(self)}"
        return f"{lines}\n[{what}]"


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
    if special[0] and self._array.__class__ is not np.ndarray:
        raise NotImplementedError("Cannot access storage of BatchedTensorImpl")


def untyped_storage(self: Tensor) -> UntypedStorage:
    """The storage of this tensor and of all tensors that share its memory.

    >>> import flambeau as torch
    >>> torch.ones(2).untyped_storage().nbytes()
    8
    """
    _check_not_batched(self)
    return UntypedStorage.of(self._array)


def storage(self: Tensor) -> TypedStorage:
    """The storage of this tensor as elements of its dtype; deprecated, use `untyped_storage`."""
    import warnings

    warnings.warn("TypedStorage is deprecated. It will be removed in the future and UntypedStorage will be the only "
                  "storage class. This should only matter to you if you are using storages directly.  To access "
                  "UntypedStorage directly, use tensor.untyped_storage() instead of "
                  "tensor.storage()", UserWarning, stacklevel=2)
    _check_not_batched(self)
    return TypedStorage(UntypedStorage.of(self._array), self.dtype)


def storage_offset(self: Tensor) -> int:
    """The offset of the first element in the storage, in elements.

    >>> import flambeau as torch
    >>> torch.arange(4)[1:].storage_offset()
    1
    """
    a = self._array
    if special[0] and a.__class__ is not np.ndarray:
        return storage_offset(self._value)
    if a.base is None:
        return 0
    return (address(a) - address(owner(a))) // a.itemsize


def data_ptr(self: Tensor) -> int:
    """The address of the first element; 0 for an empty tensor."""
    if special[0]:
        if self._array.__class__ is not np.ndarray:
            raise RuntimeError("Cannot access data pointer of Tensor that doesn't have storage")
        tracer = active_tracer.get()
        if tracer is not None:
            tracer.graph_break("data_ptr() returns an address, which may differ in the next call")
    return address(self._array) if self._array.size else 0


def is_set_to(self: Tensor, tensor: Tensor) -> bool:
    """Whether both tensors have the same memory, shape and strides.

    >>> import flambeau as torch
    >>> x = torch.ones(2)
    >>> x.is_set_to(x.detach())
    True
    """
    a, b = self._array, tensor._array
    if special[0] and not (a.__class__ is b.__class__ is np.ndarray):
        raise RuntimeError("Batching rule not implemented for aten::is_set_to. We could not generate a fallback.")
    return owner(a) is owner(b) and address(a) == address(b) and a.shape == b.shape and a.strides == b.strides


METHODS: dict[str, Any] = {"untyped_storage": untyped_storage, "storage": storage, "storage_offset": storage_offset,
                           "data_ptr": data_ptr, "is_set_to": is_set_to}
