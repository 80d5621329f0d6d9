"""How tensors and storages are passed to other processes: by reference to shared memory.

`init_reductions` registers the reductions with the pickler of `multiprocessing`, which queues, pipes and the arguments
of processes go through. A storage is moved to shared memory when it is sent, and the message holds a file descriptor or
a name (`shared_memory.STRATEGIES`). A storage that arrives more than once, or is sent back, is the same memory.
"""

from __future__ import annotations

import os
import sys
import threading
import weakref
from typing import Any

from ... import dtypes
from ...backends.bit_views import bits_of, toggle
from ...backends.numpy.memory import address, element_strides, owner
from ...backends.sparse_array import SparseArray
from ..methods.sparse import implementation as sparse_implementation
from ..parameter import Parameter
from ..tensor import Tensor
from . import pickling
from .access import _warn_of_hooks
from .shared_storage import share_storage
from .sharing import share_tensor
from .storage import TypedStorage, UntypedStorage

#: `cdata` of the references that were made -> the owner of the memory, while it lives
_owners: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()


def _to_nothing() -> None:
    """A reference to freed memory."""


class StorageWeakRef:
    """A weak reference to the memory of a storage; equal for storages on the same memory.

    >>> import flambeau as torch
    >>> from flambeau.multiprocessing.reductions import StorageWeakRef
    >>> x = torch.ones(2)
    >>> StorageWeakRef(x.untyped_storage()) == StorageWeakRef(x[:1].untyped_storage())
    True
    """

    __slots__ = ("_reference", "cdata")

    def __init__(self, storage: Any) -> None:
        memory_owner = owner(getattr(storage, "_untyped_storage", storage)._memory)
        self.cdata = id(memory_owner)
        self._reference: Any = weakref.ref(memory_owner)
        _owners[self.cdata] = memory_owner

    @classmethod
    def from_weakref(cls, cdata: int) -> StorageWeakRef:
        """The reference that another one's `cdata` stands for; one to freed memory where none does."""
        result = cls.__new__(cls)
        memory_owner = _owners.get(cdata)
        result.cdata = cdata
        result._reference = _to_nothing if memory_owner is None else weakref.ref(memory_owner)
        return result

    def expired(self) -> bool:
        """Whether the memory is freed."""
        return self._reference() is None

    def __hash__(self) -> int:
        return self.cdata

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, StorageWeakRef) and self.cdata == other.cdata)


# ----- tensors -----------------------------------------------------------------------------


def reduce_tensor(tensor: Tensor) -> tuple[Any, ...]:
    """The call that rebuilds a tensor in another process; its storage is pickled by `reduce_storage`.

    Raises:
        RuntimeError: it is the result of an operator and requires grad (PyTorch's text).
    """
    if tensor._requires_grad and tensor._node is not None:
        raise RuntimeError(
            "Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd does not support "
            "crossing process boundaries.  If you just want to transfer the data, call detach() on the tensor before "
            "serializing (e.g., putting it on the queue).")
    _warn_of_hooks(tensor)
    if isinstance(tensor._array, SparseArray):
        return pickling._rebuild_sparse_tensor, sparse_implementation("likes", "rebuild_arguments")(tensor)
    share_tensor(tensor)
    a = tensor._array
    bits = bits_of(a)
    base = owner(a)
    offset = (address(a) - address(base)) // a.itemsize if a.size else 0
    storage = TypedStorage(UntypedStorage.of(base), tensor.dtype)
    return rebuild_tensor, (type(tensor), storage, (offset, tuple(a.shape), tuple(element_strides(a)),
                                                    tensor._requires_grad, *(bits if any(bits) else ())))


def rebuild_tensor(cls: type, storage: Any, metadata: tuple[Any, ...]) -> Any:
    """A tensor or parameter on a storage."""
    offset, size, stride, requires_grad, *bits = metadata
    out = pickling._rebuild_tensor(storage, offset, size, stride)
    if bits:
        out._array = toggle(out._array, *bits)
    if cls is Parameter:
        return Parameter(out, requires_grad=requires_grad)
    if requires_grad:
        out.requires_grad = True
    return out


# ----- storages ----------------------------------------------------------------------------


def reduce_storage(storage: UntypedStorage) -> tuple[Any, ...]:
    """The call that opens the shared memory of a storage in another process."""
    from ...runtime import shared_memory

    share_storage(storage)
    memory_owner = owner(storage._memory)
    start = address(storage._memory) - address(memory_owner) if len(storage) else 0
    mapping = shared_memory.mapping_of(memory_owner)
    assert mapping is not None
    if mapping.name is not None:
        mapping.add_references(1)  # the message's, which the receiver drops
        call: tuple[Any, ...] = rebuild_storage_filename, (
            type(storage), b"", mapping.name.encode(), mapping.size)
    elif mapping.size == 0:
        return rebuild_storage_empty, (type(storage),)
    elif (kept := getattr(_sender, "kept", None)) is not None:
        kept.append(memory_owner)
        call = rebuild_storage_in_process, (
            type(storage), os.getpid(), mapping.fd, shared_memory.identity(mapping.fd), mapping.size)
    else:
        from multiprocessing.reduction import DupFd

        call = rebuild_storage_fd, (type(storage), DupFd(mapping.fd), mapping.size)
    if start or len(storage) != mapping.size:
        return _rebuild_part, (*call, start, len(storage))
    return call


def rebuild_storage_fd(cls: type[UntypedStorage], df: Any, size: int) -> UntypedStorage:
    """The storage of a file descriptor that another process sent."""
    from ...runtime import shared_memory

    fd = df.detach()
    try:
        return cls._on(shared_memory.open_descriptor(fd, size))
    finally:
        os.close(fd)


def rebuild_storage_in_process(cls: type[UntypedStorage], pid: int, fd: int, file: tuple[int, int],
                               size: int) -> UntypedStorage:
    """The storage of a file that the sender keeps open."""
    from ...runtime import shared_memory

    return cls._on(shared_memory.open_in_process(pid, fd, file, size))


_sender = threading.local()


class Kept:
    """A message whose receiver opens the sender's file descriptors itself, which saves a connection for each tensor.

    The sender keeps the memory until it knows that the message has been received.

    Args:
        data: what is sent, and received in place of this object.
        kept: the list to which the memory is added while the message is pickled.
    """

    def __init__(self, data: Any, kept: list[Any]) -> None:
        self.data, self.kept = data, kept

    def __reduce__(self) -> tuple[Any, ...]:
        _sender.kept = self.kept
        return _received, (self.data, _End())


class _End:
    """The end of a `Kept` message: what is pickled after it has connections again."""

    def __reduce__(self) -> tuple[Any, ...]:
        _sender.kept = None
        return bool, ()


def _received(data: Any, end: bool) -> Any:
    return data


def rebuild_storage_filename(cls: type[UntypedStorage], manager: bytes, handle: bytes, size: int,
                             dtype: Any = None) -> Any:
    """The storage of a named shared memory object; with `dtype`, `size` is in elements."""
    from ...runtime import shared_memory

    memory = shared_memory.open_name(handle.decode(), size if dtype is None else size * dtype.itemsize)
    mapping = shared_memory.mapping_of(memory)
    if mapping is not None:
        mapping.add_references(-1)
    storage = UntypedStorage._on(memory)
    return storage if dtype is None else TypedStorage(storage, dtype)


def rebuild_storage_empty(cls: type[UntypedStorage]) -> UntypedStorage:
    """An empty storage."""
    return cls()


def _rebuild_part(rebuild: Any, arguments: tuple[Any, ...], start: int, size: int) -> UntypedStorage:
    storage = rebuild(*arguments)
    return UntypedStorage._on(storage._memory[start:start + size])


def reduce_typed_storage(storage: TypedStorage) -> tuple[Any, ...]:
    """The call that rebuilds a typed storage."""
    return rebuild_typed_storage, (storage._untyped_storage, storage.dtype)


def rebuild_typed_storage(storage: UntypedStorage, dtype: dtypes.dtype) -> TypedStorage:
    """A storage as elements of a dtype."""
    return TypedStorage(storage, dtype)


# ----- registration ------------------------------------------------------------------------

_REDUCTIONS: dict[type, Any] = {Tensor: reduce_tensor, Parameter: reduce_tensor, UntypedStorage: reduce_storage,
                                TypedStorage: reduce_typed_storage}


def init_reductions() -> None:
    """Register the reductions with the pickler of `multiprocessing`."""
    from multiprocessing import (
        reduction,
        resource_sharer,  # noqa: F401  imported before any thread of a queue may import it during a fork
    )

    for kind, reduce in _REDUCTIONS.items():
        reduction.register(kind, reduce)


# A program may send tensors through `multiprocessing` before anything imports `torch.multiprocessing`. The pickler
# calls `__reduce_ex__` from C, so that the frame below is that of the pickler's user.

def _is_for_other_process() -> bool:
    return "multiprocessing.reduction" in sys.modules and (
        sys._getframe(2).f_globals.get("__name__") == "multiprocessing.reduction")


def _reduce_and_register(x: Tensor) -> tuple[Any, ...]:
    """Register the reductions, and reduce a tensor for a pickler that has copied the registered reductions already."""
    init_reductions()
    _, (cls, storage, metadata) = reduce_tensor(x)
    return _rebuild_unregistered, (reduce_storage(storage._untyped_storage), storage.dtype, cls, metadata)


def _rebuild_unregistered(storage: tuple[Any, tuple[Any, ...]], dtype: dtypes.dtype, cls: type, metadata: Any) -> Any:
    rebuild, arguments = storage
    return rebuild_tensor(cls, TypedStorage(rebuild(*arguments), dtype), metadata)


def __reduce_ex__(self: Tensor, protocol: Any) -> Any:
    """The call that rebuilds this tensor or parameter.

    Raises:
        NotImplementedError: it is batched (PyTorch's text).
    """
    cls = type(self)
    if (cls is Tensor or cls is Parameter) and _is_for_other_process():
        return _reduce_and_register(self)
    if issubclass(cls, Parameter):
        return pickling.parameter_reduce_ex(self)  # type: ignore[arg-type]
    return pickling.tensor_reduce_ex(self)


METHODS: dict[str, Any] = {"__reduce_ex__": __reduce_ex__}

__all__ = ["StorageWeakRef", "init_reductions", "rebuild_storage_empty", "rebuild_storage_fd",
           "rebuild_storage_filename", "rebuild_tensor", "rebuild_typed_storage", "reduce_storage", "reduce_tensor",
           "reduce_typed_storage"]
