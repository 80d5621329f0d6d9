"""The formats before zip archives: pickles with the storages' bytes behind them, and, before 0.1.10, a tar file."""

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
from .._tensor import pickling
from .._tensor.storage import TypedStorage, UntypedStorage
from ..warning_location import user_stacklevel
from .archive import fill
from .locations import restorer
from .pickling import Storages, bytes_of, pickler, unpickler

MAGIC_NUMBER = 0x1950A86A20F9469CFC6C
PROTOCOL_VERSION = 1001
_SIZES = {"short": struct.calcsize("=h"), "int": struct.calcsize("=i"), "long": struct.calcsize("=l")}


class SourceChangeWarning(Warning):
    """The source of a module's class is not what it was when the module was saved."""


# ----- writing ---------------------------------------------------------------------------


def save_legacy(obj: object, file: Any, module: Any, protocol: int) -> None:
    """Write an object as PyTorch did before 1.6."""
    from ..nn import Module

    storages = Storages(lambda number: f"{number:012d}")  # sorted as texts, in their order
    seen: set[type] = set()
    kept: list[Any] = []

    def persistent_id(obj: Any) -> Any:
        if isinstance(obj, type) and issubclass(obj, Module):
            if obj in seen:
                return None
            seen.add(obj)
            return ("module", obj, *((None, None) if _is_ours(obj) else _source(obj)))
        named = storages.name(obj)
        if named is None:
            return None
        kept.append(obj)
        kind, key, location, count = named
        return "storage", kind, key, location, count, None

    for value in (MAGIC_NUMBER, PROTOCOL_VERSION,
                  {"protocol_version": PROTOCOL_VERSION, "little_endian": sys.byteorder == "little",
                   "type_sizes": _SIZES}):
        module.dump(value, file, protocol=protocol)
    pickler(module, file, protocol, persistent_id).dump(obj)
    module.dump(list(storages.found), file, protocol=protocol)
    for storage, dtype in storages.found.values():
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


def _is_ours(cls: type) -> bool:
    """Whether a class is flambeau's own, whose source is never what PyTorch's was."""
    return cls.__module__.partition(".")[0] == __name__.partition(".")[0]


def _check_source(cls: Any, file: str, then: str) -> None:
    """Warn if a user's class is not what it was."""
    if _is_ours(cls):
        return
    _, now = _source(cls)
    if now is not None and now != then:
        warnings.warn(f"source code of class '{cls.__module__}.{cls.__qualname__}' has changed. you can retrieve the "
                      "original source code by accessing the object's source attribute or set "
                      "`torch.nn.Module.dump_patches = True` and use the patch tool to revert the changes.",
                      SourceChangeWarning, stacklevel=user_stacklevel())


# ----- reading ---------------------------------------------------------------------------


def load_legacy(file: Any, map_location: Any, module: Any, unsafe: str | None, **arguments: Any) -> Any:
    """What a file of one of the old formats holds.

    Args:
        unsafe: the advice to give where the file could only be loaded with `weights_only=False`; None if it is.
    """
    if file.tell() == 0 and _is_real(file):
        try:
            return _load_tar(file, map_location, module, unsafe, arguments)
        except tarfile.TarError:
            file.seek(0)
    if module.load(file, **arguments) != MAGIC_NUMBER:
        raise RuntimeError("Invalid magic number; corrupt file?")
    version = module.load(file, **arguments)
    if version != PROTOCOL_VERSION:
        raise RuntimeError(f"Invalid protocol version: {version}")
    module.load(file, **arguments)  # the machine it was written on
    restore = restorer(map_location)
    found: dict[Any, TypedStorage] = {}

    def persistent_load(identity: Any) -> Any:
        if not isinstance(identity, tuple):
            raise AssertionError(f"saved_id must be a tuple, got {type(identity).__name__}")
        kind, *data = identity
        if kind in ("module", b"module"):
            if all(data[1:]):
                _check_source(*data)
            return data[0]
        if kind not in ("storage", b"storage"):
            raise RuntimeError(f"Unknown saved id type: {kind}")
        storage_type, key, location, count, view = data
        if key not in found:
            dtype = dtypes.uint8 if storage_type is UntypedStorage else storage_type.dtype
            found[key] = _placed(np.zeros(count, dtype.numpy), dtype, restore, location)
            found[key]._untyped_storage._pending_copies = []
        if view is None:
            return found[key]
        view_key, start, size = view
        if view_key not in found:
            found[view_key] = _part(found[key], start, size)
        return found[view_key]

    result = unpickler(module, file, persistent_load, **arguments).load()
    for key in module.load(file, **arguments):
        if key not in found:
            raise AssertionError(f"storage key {key!r} not found in deserialized_objects")
        storage = found[key]._untyped_storage
        _read(file, storage, found[key].dtype)
        pickling.apply_pending_copies(storage)
    return result


def _is_real(file: Any) -> bool:
    """Whether a file is one of the system's, and not compressed: only there did the oldest format live."""
    if type(file).__module__ == "gzip":
        return False
    try:
        return file.fileno() >= 0
    except (io.UnsupportedOperation, AttributeError):
        return False


def _placed(array: np.ndarray, dtype: dtypes.dtype, restore: Callable[[Any, str], Any], location: Any) -> TypedStorage:
    place = location.decode("ascii") if isinstance(location, bytes) else location
    return TypedStorage(restore(UntypedStorage.of(array), place), dtype)


def _part(of: TypedStorage, start: int, size: int) -> TypedStorage:
    item = of.dtype.itemsize
    return TypedStorage(of._untyped_storage[start * item:(start + size) * item], of.dtype)


def _read(file: Any, storage: UntypedStorage, dtype: dtypes.dtype) -> None:
    header = file.read(8)
    if len(header) < 8:
        raise RuntimeError(f"unexpected EOF, expected {8 - len(header)} more bytes. The file might be corrupted.")
    count, = struct.unpack("<q", header)
    if count * dtype.itemsize != storage.nbytes():
        raise RuntimeError(f"storage has wrong byte size: expected {storage.nbytes()} got {count * dtype.itemsize}")
    missing = storage.nbytes() - fill(file, memoryview(storage._memory.data))
    if missing:
        raise RuntimeError(f"unexpected EOF, expected {missing} more bytes. The file might be corrupted.")
    if sys.byteorder == "big":
        storage.byteswap(dtype)


def _load_tar(file: Any, map_location: Any, module: Any, unsafe: str | None, arguments: dict[str, Any]) -> Any:
    restore = restorer(map_location)
    found: dict[Any, Any] = {}
    with tarfile.open(fileobj=file, mode="r:", format=tarfile.PAX_FORMAT) as tar:
        if unsafe is not None:
            raise RuntimeError(f"Cannot use ``weights_only=True`` with files saved in the legacy .tar format. {unsafe}")
        storages: Any = io.BytesIO(_member(tar, "storages"))

        def no_storage(identity: Any) -> Any:
            raise AssertionError("a name within a name")

        for _ in range(module.load(storages, **arguments)):
            key, location, kind = unpickler(module, storages, no_storage, **arguments).load()
            count, = struct.unpack("<q", storages.read(8))
            storage = _placed(np.zeros(count, kind.dtype.numpy), kind.dtype, restore, location)
            storages.seek(-8, os.SEEK_CUR)
            _read(storages, storage._untyped_storage, kind.dtype)
            found[key] = storage
        for target, root, start, size in module.load(storages, **arguments):
            found[target] = _part(found[root], start, size)
        tensors: Any = io.BytesIO(_member(tar, "tensors"))
        for _ in range(module.load(tensors, **arguments)):
            key, storage_key, _ = unpickler(module, tensors, no_storage, **arguments).load()
            ndim, _ = struct.unpack("<ii", tensors.read(8))
            numbers = struct.unpack(f"<{2 * ndim + 1}q", tensors.read(8 * (2 * ndim + 1)))
            found[key] = pickling._rebuild_tensor(found[storage_key], numbers[-1], numbers[:ndim], numbers[ndim:-1])

        def persistent_load(identity: Any) -> Any:
            if isinstance(identity, tuple):
                if all(identity[1:]):
                    _check_source(*identity)
                return identity[0]
            return found[int(identity)]

        return unpickler(module, io.BytesIO(_member(tar, "pickle")), persistent_load, **arguments).load()


def _member(tar: tarfile.TarFile, name: str) -> bytes:
    file = tar.extractfile(name)
    assert file is not None
    return file.read()
