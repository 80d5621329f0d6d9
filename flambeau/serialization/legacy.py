"""Legacy file formats: a sequence of pickles followed by the storages (before 1.6), and a tar file (before 0.1.10)."""

from __future__ import annotations

import inspect
import io
import os
import struct
import sys
import tarfile
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import dtypes
from .._tensor.memory import pickling
from .._tensor.memory.storage import TypedStorage, UntypedStorage
from ..config import module_of
from ..warning_location import user_stacklevel
from .archive import read_fully
from .locations import restore_function
from .pickling import StorageTable, bytes_of, pickler, unpickler

MAGIC_NUMBER = 0x1950A86A20F9469CFC6C
PROTOCOL_VERSION = 1001
_SIZES = {"short": struct.calcsize("=h"), "int": struct.calcsize("=i"), "long": struct.calcsize("=l")}


class SourceChangeWarning(Warning):
    """The source code of a module's class has changed since the module was saved.

    >>> import warnings
    >>> import flambeau as torch
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", torch.serialization.SourceChangeWarning)
    """


# ----- writing ---------------------------------------------------------------------------


def save_legacy(obj: object, file: Any, module: Any, protocol: int) -> None:
    """Write an object in the format of PyTorch before 1.6."""
    from ..nn import Module

    storages = StorageTable(lambda number: f"{number:012d}")  # zero-padded: sorting the keys keeps their order
    pickled_classes: set[type] = set()
    alive: list[Any] = []

    def persistent_id(obj: Any) -> Any:
        if isinstance(obj, type) and issubclass(obj, Module):
            if obj in pickled_classes:
                return None
            pickled_classes.add(obj)
            return ("module", obj, *((None, None) if _is_flambeau_class(obj) else _source(obj)))
        persistent = storages.entry(obj)
        if persistent is None:
            return None
        alive.append(obj)
        storage_class, key, location, count = persistent
        return "storage", storage_class, key, location, count, None

    for value in (MAGIC_NUMBER, PROTOCOL_VERSION,
                  {"protocol_version": PROTOCOL_VERSION, "little_endian": sys.byteorder == "little",
                   "type_sizes": _SIZES}):
        module.dump(value, file, protocol=protocol)
    pickler(module, file, protocol, persistent_id).dump(obj)
    module.dump(list(storages.entries), file, protocol=protocol)
    for storage, dtype in storages.entries.values():
        file.write(struct.pack("<q", storage.nbytes() // dtype.itemsize))
        if sys.byteorder == "big":
            storage = storage.clone()
            storage.byteswap(dtype)
        file.write(bytes_of(storage))


def _source(cls: type) -> tuple[str | None, str | None]:
    try:
        return inspect.getsourcefile(cls), inspect.getsource(cls)
    except (OSError, TypeError):
        warnings.warn(f"Couldn't retrieve source code for container of type {cls.__name__}. It won't be checked for "
                      "correctness upon loading.", stacklevel=user_stacklevel())
        return None, None


def _is_flambeau_class(cls: type) -> bool:
    """Whether a class is defined by flambeau; its source always differs from PyTorch's and is not compared."""
    return module_of(cls).partition(".")[0] == __name__.partition(".")[0]


def _check_source(cls: Any, file: str, saved: str) -> None:
    """Warn if the source of a user's class has changed since it was saved."""
    if _is_flambeau_class(cls):
        return
    _, current = _source(cls)
    if current is not None and current != saved:
        warnings.warn(f"source code of class '{cls.__module__}.{cls.__qualname__}' has changed. you can retrieve the "
                      "original source code by accessing the object's source attribute or set "
                      "`torch.nn.Module.dump_patches = True` and use the patch tool to revert the changes.",
                      SourceChangeWarning, stacklevel=user_stacklevel())


# ----- reading ---------------------------------------------------------------------------


def load_legacy(file: Any, map_location: Any, module: Any, unsafe_hint: str | None, **arguments: Any) -> Any:
    """Load a file of a legacy format.

    Args:
        unsafe_hint: hint for the error where a file requires `weights_only=False`; None if that is set.
    """
    if file.tell() == 0 and _is_os_file(file):
        try:
            return _load_tar(file, map_location, module, unsafe_hint, arguments)
        except tarfile.TarError:
            file.seek(0)
    if module.load(file, **arguments) != MAGIC_NUMBER:
        raise RuntimeError("Invalid magic number; corrupt file?")
    version = module.load(file, **arguments)
    if version != PROTOCOL_VERSION:
        raise RuntimeError(f"Invalid protocol version: {version}")
    module.load(file, **arguments)  # byte order and type sizes of the writing machine
    restore = restore_function(map_location)
    storages: dict[Any, TypedStorage] = {}

    def persistent_load(identity: Any) -> Any:
        if not isinstance(identity, tuple):
            raise AssertionError(f"saved_id must be a tuple, got {type(identity).__name__}")
        tag, *data = identity
        if tag in ("module", b"module"):
            if all(data[1:]):
                _check_source(*data)
            return data[0]
        if tag not in ("storage", b"storage"):
            raise RuntimeError(f"Unknown saved id type: {tag}")
        storage_type, key, location, count, view = data
        if key not in storages:
            dtype = dtypes.uint8 if storage_type is UntypedStorage else storage_type.dtype
            storages[key] = _restored_storage(np.zeros(count, dtype.numpy), dtype, restore, location)
        if view is None:
            return storages[key]
        view_key, start, size = view
        if view_key not in storages:
            storages[view_key] = _storage_view(storages[key], start, size)
        return storages[view_key]

    result = unpickler(module, file, persistent_load, **arguments).load()
    for key in module.load(file, **arguments):
        if key not in storages:
            raise AssertionError(f"storage key {key!r} not found in deserialized_objects")
        storage = storages[key]._untyped_storage
        _read_storage(file, storage, storages[key].dtype)
    return result


def _is_os_file(file: Any) -> bool:
    """Whether a file object has a file descriptor and is not compressed, as the tar format requires."""
    if type(file).__module__ == "gzip":
        return False
    try:
        return file.fileno() >= 0
    except (io.UnsupportedOperation, AttributeError):
        return False


def _restored_storage(array: np.ndarray, dtype: dtypes.dtype, restore: Callable[[Any, str], Any],
                      location: Any) -> TypedStorage:
    location_name = location.decode("ascii") if isinstance(location, bytes) else location
    return TypedStorage(restore(UntypedStorage.of(array), location_name), dtype)


def _storage_view(base: TypedStorage, start: int, size: int) -> TypedStorage:
    item = base.dtype.itemsize
    return TypedStorage(base._untyped_storage[start * item:(start + size) * item], base.dtype)


def _read_storage(file: Any, storage: UntypedStorage, dtype: dtypes.dtype) -> None:
    header = file.read(8)
    if len(header) < 8:
        raise RuntimeError(f"unexpected EOF, expected {8 - len(header)} more bytes. The file might be corrupted.")
    count, = struct.unpack("<q", header)
    if count * dtype.itemsize != storage.nbytes():
        raise RuntimeError(f"storage has wrong byte size: expected {storage.nbytes()} got {count * dtype.itemsize}")
    missing = storage.nbytes() - read_fully(file, memoryview(storage._memory.data))
    if missing:
        raise RuntimeError(f"unexpected EOF, expected {missing} more bytes. The file might be corrupted.")
    if sys.byteorder == "big":
        storage.byteswap(dtype)


def _load_tar(file: Any, map_location: Any, module: Any, unsafe_hint: str | None, arguments: dict[str, Any]) -> Any:
    restore = restore_function(map_location)
    objects: dict[Any, Any] = {}
    with tarfile.open(fileobj=file, mode="r:", format=tarfile.PAX_FORMAT) as tar:
        if unsafe_hint is not None:
            raise RuntimeError("Cannot use ``weights_only=True`` with files saved in the legacy .tar format. "
                               + unsafe_hint)
        stream: Any = io.BytesIO(_member_bytes(tar, "storages"))

        def reject_persistent_id(identity: Any) -> Any:
            raise AssertionError("persistent id inside the description of a storage or tensor")

        for _ in range(module.load(stream, **arguments)):
            key, location, storage_class = unpickler(module, stream, reject_persistent_id, **arguments).load()
            count, = struct.unpack("<q", stream.read(8))
            dtype = storage_class.dtype
            storage = _restored_storage(np.zeros(count, dtype.numpy), dtype, restore, location)
            stream.seek(-8, os.SEEK_CUR)
            _read_storage(stream, storage._untyped_storage, dtype)
            objects[key] = storage
        for target, root, start, size in module.load(stream, **arguments):
            objects[target] = _storage_view(objects[root], start, size)
        tensors: Any = io.BytesIO(_member_bytes(tar, "tensors"))
        for _ in range(module.load(tensors, **arguments)):
            key, storage_key, _ = unpickler(module, tensors, reject_persistent_id, **arguments).load()
            ndim, _ = struct.unpack("<ii", tensors.read(8))
            metadata = struct.unpack(f"<{2 * ndim + 1}q", tensors.read(8 * (2 * ndim + 1)))
            objects[key] = pickling._rebuild_tensor(objects[storage_key], metadata[-1], metadata[:ndim],
                                                    metadata[ndim:-1])

        def persistent_load(identity: Any) -> Any:
            if isinstance(identity, tuple):
                if all(identity[1:]):
                    _check_source(*identity)
                return identity[0]
            return objects[int(identity)]

        return unpickler(module, io.BytesIO(_member_bytes(tar, "pickle")), persistent_load, **arguments).load()


def _member_bytes(tar: tarfile.TarFile, name: str) -> bytes:
    file = tar.extractfile(name)
    assert file is not None
    return file.read()
