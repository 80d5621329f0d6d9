"""The pickles in files: storages are named in them and stored beside them, classes have PyTorch's names.

The pickler is Python's own, in its Python form: the one in C writes only names that Python can
import in this process, and `torch.nn.modules.linear` is none.
"""

from __future__ import annotations

import pickle
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import dtypes
from .._tensor.storage import TypedStorage, UntypedStorage
from ..backends.numpy.memory import owner
from ..devices import layout, memory_format
from . import names
from .locations import location_tag

DEFAULT_PROTOCOL = 2

_PLAIN = frozenset((int, float, str, bool, type(None), tuple, list, dict, OrderedDict, bytes))


class _Spelling:
    """What makes a pickler written in Python spell names as PyTorch does."""

    def reducer_override(self, obj: Any) -> Any:
        """The call that stands for an object, or its name; `NotImplemented` where nothing is special about it."""
        if type(obj) in _PLAIN:
            return NotImplemented
        if isinstance(obj, layout) and not isinstance(obj, memory_format):
            return names._get_layout, (f"torch.{obj.name}",)
        if names.spelled(obj) is not None:
            return "its name"  # leads to save_global
        return NotImplemented

    def save_global(self: Any, obj: Any, name: str | None = None) -> None:
        """Write the name of a class, a function or a dtype."""
        where = names.spelled(obj)
        if where is None:
            super().save_global(obj, name)  # type: ignore[misc]
            return
        module, path = where
        parent, _, last = path.rpartition(".")
        if self.proto >= 4:
            self.save(module)
            self.save(path)
            self.write(pickle.STACK_GLOBAL)
        elif parent:
            self.save_reduce(getattr, (names.find(module, parent), last), obj=obj)
            return
        else:
            self.write(pickle.GLOBAL + f"{module}\n{path}\n".encode())
        self.memoize(obj)


class Storages:
    """The storages that one file names: each memory once, under a key, as elements of one dtype.

    Args:
        key: makes the key of a storage from its number.
    """

    def __init__(self, key: Callable[[int], str]) -> None:
        self._key = key
        self._keys: dict[tuple[int, int], str] = {}
        self._dtypes: dict[int, dtypes.dtype] = {}
        self.found: dict[str, tuple[UntypedStorage, dtypes.dtype]] = {}  # in the order of their keys' numbers

    def name(self, obj: Any) -> tuple[Any, str, str, int] | None:
        """The type, key, location and number of elements of a storage; None if `obj` is none.

        Raises:
            RuntimeError: the same memory as another dtype is in the file already (PyTorch's text).
        """
        if obj.__class__ is TypedStorage:
            storage, dtype = obj._untyped_storage, obj.dtype
            kind: Any = names.storage_type(dtype)
        elif isinstance(obj, UntypedStorage):
            storage, dtype, kind = obj, dtypes.uint8, type(obj)
        else:
            return None
        pointer = storage.data_ptr()
        if pointer and self._dtypes.setdefault(pointer, dtype) is not dtype:
            raise RuntimeError("Cannot save multiple tensors or storages that view the same data as different types")
        identity = pointer or -id(owner(storage._memory)), storage.nbytes()
        key = self._keys.get(identity)
        if key is None:
            key = self._keys[identity] = self._key(len(self._keys))
            self.found[key] = (storage, dtype)  # which also keeps it, and so its identity, alive
        return kind, key, location_tag(storage), storage.nbytes() // dtype.itemsize


def pickler(module: Any, file: Any, protocol: int, persistent_id: Callable[[Any], Any]) -> Any:
    """A pickler of the module's that names storages, and, if it is written in Python, spells as PyTorch does."""
    kind = pickle._Pickler if module is pickle else module.Pickler
    bases: tuple[Any, ...] = (_Spelling, kind) if issubclass(kind, pickle._Pickler) else (kind,)
    return type("Pickler", bases, {"persistent_id": staticmethod(persistent_id)})(file, protocol=protocol)


def unpickler(module: Any, file: Any, persistent_load: Callable[[Any], Any], **arguments: Any) -> Any:
    """An unpickler of the module's that asks for storages and understands PyTorch's names."""
    kind = module.Unpickler

    def find_class(self: Any, place: str, name: str) -> Any:
        if isinstance(name, str) and "Storage" in name:
            try:
                return names.StorageType(name)
            except KeyError:
                pass
        return names.find(place, name) if names.is_torchs(place) else kind.find_class(self, place, name)

    return type("Unpickler", (kind,), {"persistent_load": staticmethod(persistent_load),
                                       "find_class": find_class})(file, **arguments)


def bytes_of(storage: UntypedStorage) -> memoryview:
    """A storage's bytes."""
    return np.ascontiguousarray(storage._memory).data
