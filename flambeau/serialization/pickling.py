"""Picklers and unpicklers of files: storages are persistent ids, and classes have PyTorch's names.

The pickler is the standard library's Python implementation: the one in C writes only names that can be imported in
this process, and `torch.nn.modules.linear` cannot.
"""

from __future__ import annotations

import pickle
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import dtypes
from .._tensor.memory.storage import TypedStorage, UntypedStorage
from ..backends.numpy.memory import owner
from ..devices import layout, memory_format
from . import names
from .locations import location_tag

DEFAULT_PROTOCOL = 2

_PLAIN_TYPES = frozenset((int, float, str, bool, type(None), tuple, list, dict, OrderedDict, bytes))


class _TorchNames:
    """Mixin for `pickle._Pickler` that writes PyTorch's names."""

    def reducer_override(self, obj: Any) -> Any:
        """The reduce value of a layout; a string for objects with a name in PyTorch; else `NotImplemented`."""
        if type(obj) in _PLAIN_TYPES:
            return NotImplemented
        if isinstance(obj, layout) and not isinstance(obj, memory_format):
            return names._get_layout, (f"torch.{obj.name}",)
        if names.torch_name(obj) is not None:
            return "global"  # any string: the pickler calls save_global
        return NotImplemented

    def save_global(self: Any, obj: Any, name: str | None = None) -> None:
        """Write the name of a class, a function or a dtype."""
        qualified_name = names.torch_name(obj)
        if qualified_name is None:
            super().save_global(obj, name)  # type: ignore[misc]
            return
        module, path = qualified_name
        parent, _, last = path.rpartition(".")
        if self.proto >= 4:
            self.save(module)
            self.save(path)
            self.write(pickle.STACK_GLOBAL)
        elif parent:
            self.save_reduce(getattr, (names.resolve(module, parent), last), obj=obj)
            return
        else:
            self.write(pickle.GLOBAL + f"{module}\n{path}\n".encode())
        self.memoize(obj)


class StorageTable:
    """The storages of one file: each memory once, with a key and a dtype.

    Args:
        key: maps the index of a storage to its key.

    Attributes:
        entries: key -> (storage, dtype), in the order of the indices.
    """

    def __init__(self, key: Callable[[int], str]) -> None:
        self._key = key
        self._keys: dict[tuple[int, int], str] = {}
        self._dtypes: dict[int, dtypes.dtype] = {}
        self.entries: dict[str, tuple[UntypedStorage, dtypes.dtype]] = {}

    def entry(self, obj: Any) -> tuple[Any, str, str, int] | None:
        """(storage type, key, location, number of elements) of a storage; None if `obj` is not a storage.

        Raises:
            RuntimeError: the table has the same memory with another dtype (PyTorch's message).
        """
        if obj.__class__ is TypedStorage:
            storage, dtype = obj._untyped_storage, obj.dtype
            storage_type: Any = names.storage_type(dtype)
        elif isinstance(obj, UntypedStorage):
            storage, dtype, storage_type = obj, dtypes.uint8, type(obj)
        else:
            return None
        pointer = storage.data_ptr()
        if pointer and self._dtypes.setdefault(pointer, dtype) is not dtype:
            raise RuntimeError("Cannot save multiple tensors or storages that view the same data as different types")
        identity = pointer or -id(owner(storage._memory)), storage.nbytes()
        key = self._keys.get(identity)
        if key is None:
            key = self._keys[identity] = self._key(len(self._keys))
            self.entries[key] = (storage, dtype)  # keeps it alive, so that its address is not reused
        return storage_type, key, location_tag(storage), storage.nbytes() // dtype.itemsize


def pickler(module: Any, file: Any, protocol: int, persistent_id: Callable[[Any], Any]) -> Any:
    """A pickler of the module with persistent ids and, if it is implemented in Python, PyTorch's names."""
    base = pickle._Pickler if module is pickle else module.Pickler
    bases: tuple[Any, ...] = (_TorchNames, base) if issubclass(base, pickle._Pickler) else (base,)
    return type("Pickler", bases, {"persistent_id": staticmethod(persistent_id)})(file, protocol=protocol)


def unpickler(module: Any, file: Any, persistent_load: Callable[[Any], Any], **arguments: Any) -> Any:
    """An unpickler of the module with persistent ids and PyTorch's names."""
    base = module.Unpickler

    def find_class(self: Any, module_name: str, name: str) -> Any:
        if isinstance(name, str) and "Storage" in name:
            try:
                return names.StorageType(name)
            except KeyError:
                pass
        if names.is_torch_module(module_name):
            return names.resolve(module_name, name)
        return base.find_class(self, module_name, name)

    return type("Unpickler", (base,), {"persistent_load": staticmethod(persistent_load),
                                       "find_class": find_class})(file, **arguments)


def bytes_of(storage: UntypedStorage) -> memoryview:
    """The bytes of a storage."""
    return np.ascontiguousarray(storage.cpu()._memory).data
