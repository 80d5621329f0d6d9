"""Storages: the memory behind tensors, as bytes."""

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

    _awaiting: list[Any] | None = None  # what is to be done when its bytes are read (`rebuilding.arrived`)

    def __init__(self, size: int = 0) -> None:
        self._memory = np.zeros(size, np.uint8)

    @classmethod
    def of(cls, array: np.ndarray) -> UntypedStorage:
        """The storage that an array lies in."""
        whole = owner(array)
        flat = whole.reshape(-1, order="A") if whole.flags.forc else np.ascontiguousarray(whole).reshape(-1)
        return cls._on(flat.view(np.uint8))

    @classmethod
    def _on(cls, memory: np.ndarray) -> UntypedStorage:
        """A storage of these bytes, which need not be all of the array that owns them."""
        out = object.__new__(cls)
        out._memory = memory
        return out

    @property
    def device(self) -> device:
        """Where the bytes lie."""
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
        found = self._memory[index]
        return UntypedStorage._on(found) if isinstance(found, np.ndarray) else int(found)

    def __setitem__(self, index: Any, value: Any) -> None:
        self._memory[index] = value

    def tolist(self) -> list[int]:
        """The bytes, as integers."""
        return self._memory.tolist()

    def clone(self) -> UntypedStorage:
        """A copy."""
        return UntypedStorage.of(self._memory.copy())

    def cpu(self) -> UntypedStorage:
        """This storage, which lies on the CPU."""
        return self

    def cuda(self, device: Any = None, non_blocking: bool = False) -> UntypedStorage:
        """Nothing that this build can do.

        Raises:
            AssertionError: always (PyTorch's text).
        """
        raise AssertionError("Torch not compiled with CUDA enabled")

    def byteswap(self, dtype: dtypes.dtype) -> None:
        """Turn round the bytes of every number, in place, as elements of `dtype`."""
        numbers = np.dtype(np.uint16) if dtype is dtypes.bfloat16 else dtype.numpy
        self._memory.view(numbers).byteswap(inplace=True)

    def __reduce__(self) -> Any:
        whole = owner(self._memory)  # one object however many storages show it: a pickle keeps them one
        start = self.data_ptr() - address(whole) if len(self) else 0
        return _storage_in, (whole, start, len(self))

    def __deepcopy__(self, memo: dict[int, Any]) -> UntypedStorage:
        whole = owner(self._memory)
        if id(whole) not in memo:
            memo[id(whole)] = np.array(whole, order="K", copy=True)
            memo.setdefault(id(memo), []).append(whole)
        start = self.data_ptr() - address(whole) if len(self) else 0
        return _storage_in(memo[id(whole)], start, len(self))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UntypedStorage) and self.data_ptr() == other.data_ptr() and len(self) == len(other)

    def __hash__(self) -> int:
        return hash(self.data_ptr())

    def __repr__(self) -> str:
        from .. import config

        lines = "\n".join(f" {b}" for b in self._memory.tolist())
        return f"{lines}\n[{config.module_name}.storage.UntypedStorage(device=cpu) of size {len(self)}]"


def _storage_in(whole: np.ndarray, start: int, size: int) -> UntypedStorage:
    return UntypedStorage._on(UntypedStorage.of(whole)._memory[start:start + size])


class TypedStorage:
    """The elements that a tensor and its views share; deprecated in favour of `UntypedStorage`."""

    def __init__(self, untyped: UntypedStorage, dtype: dtypes.dtype) -> None:
        self._untyped_storage, self.dtype = untyped, dtype

    def untyped(self) -> UntypedStorage:
        """The same memory as bytes."""
        return self._untyped_storage

    def _elements(self) -> np.ndarray:
        return self._untyped_storage._memory.view(self.dtype.numpy)

    @property
    def device(self) -> device:
        """Where the elements lie."""
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
        """The elements as Python numbers."""
        return dtypes.widen(self._elements()).tolist()

    def __getitem__(self, index: Any) -> Any:
        return self.tolist()[index]

    def pickle_storage_type(self) -> str:
        """The name of the class of old that stands for this dtype in files, as "FloatStorage"."""
        return storage_name(self.dtype)

    def __reduce__(self) -> Any:
        return TypedStorage, (self._untyped_storage, self.dtype)

    def __repr__(self) -> str:
        from .. import config

        lines = "\n".join(f" {number}" for number in self.tolist())
        what = f"{config.module_name}.storage.TypedStorage(dtype={self.dtype}, device=cpu) of size {len(self)}"
        return f"{lines}\n[{what}]"


# Users know these classes, and files name them, by the public module.
UntypedStorage.__module__ = TypedStorage.__module__ = f"{__name__.partition('.')[0]}.storage"


def storage_name(dtype: dtypes.dtype) -> str:
    """The name of the class of old that stands for a dtype in files: "FloatStorage" of float32."""
    return dtype.legacy.replace("Tensor", "Storage")


def _refuse_hidden(self: Tensor) -> None:
    """Refuse to show the storage of a batch.

    Raises:
        NotImplementedError: the tensor has hidden dimensions (PyTorch's text).
    """
    if special[0] and self._array.__class__ is not np.ndarray:
        raise NotImplementedError("Cannot access storage of BatchedTensorImpl")


def untyped_storage(self: Tensor) -> UntypedStorage:
    """The memory of this tensor and of all that share it."""
    _refuse_hidden(self)
    return UntypedStorage.of(self._array)


def storage(self: Tensor) -> TypedStorage:
    """The memory of this tensor as elements of its dtype."""
    import warnings

    warnings.warn("TypedStorage is deprecated. It will be removed in the future and UntypedStorage will be the only "
                  "storage class. This should only matter to you if you are using storages directly.  To access "
                  "UntypedStorage directly, use tensor.untyped_storage() instead of "
                  "tensor.storage()", UserWarning, stacklevel=2)
    _refuse_hidden(self)
    return TypedStorage(UntypedStorage.of(self._array), self.dtype)


def storage_offset(self: Tensor) -> int:
    """Where the first element lies in the storage, in elements."""
    a = self._array
    if special[0] and a.__class__ is not np.ndarray:
        return storage_offset(self._value)
    if a.base is None:
        return 0
    return (address(a) - address(owner(a))) // a.itemsize


def data_ptr(self: Tensor) -> int:
    """The address of the first element; 0 if there is none."""
    if special[0]:
        if self._array.__class__ is not np.ndarray:
            raise RuntimeError("Cannot access data pointer of Tensor that doesn't have storage")
        tracer = active_tracer.get()
        if tracer is not None:
            tracer.graph_break("data_ptr() says where memory lies, which may be elsewhere in the next call")
    return address(self._array) if self._array.size else 0


def is_set_to(self: Tensor, tensor: Tensor) -> bool:
    """Whether both show the same memory in the same way."""
    a, b = self._array, tensor._array
    if special[0] and not (a.__class__ is b.__class__ is np.ndarray):
        raise RuntimeError("Batching rule not implemented for aten::is_set_to. We could not generate a fallback.")
    return owner(a) is owner(b) and address(a) == address(b) and a.shape == b.shape and a.strides == b.strides


METHODS: dict[str, Any] = {"untyped_storage": untyped_storage, "storage": storage, "storage_offset": storage_offset,
                           "data_ptr": data_ptr, "is_set_to": is_set_to}
