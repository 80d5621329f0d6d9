"""`save`: writing an object to a file that flambeau and PyTorch can load."""

from __future__ import annotations

import io
import os
import pickle
import sys
from pathlib import PurePath
from typing import Any

from . import options
from .archive import ArchiveWriter
from .pickling import DEFAULT_PROTOCOL, StorageTable, bytes_of, pickler


def save(obj: object, f: Any, pickle_module: Any = pickle, pickle_protocol: int = DEFAULT_PROTOCOL,
         _use_new_zipfile_serialization: bool = True, _disable_byteorder_record: bool = False) -> None:
    """Save an object to a file: tensors, containers of tensors, state dicts, modules.

    Tensors that share memory share it again after loading. The autograd graph, gradients and hooks are not saved.

    Args:
        obj: the object.
        f: a path, or a file object that is open for writing bytes.
        pickle_module: module whose `Pickler` writes the pickle (default `pickle`). Picklers implemented in C write
            flambeau's own names, which PyTorch cannot load.
        pickle_protocol: pickle protocol (default 2, the one that `weights_only=True` fully supports).

    Raises:
        AttributeError: `f` is neither a path nor has `write`.
        RuntimeError: the parent folder does not exist, or two tensors view the same memory as different dtypes.

    >>> import io
    >>> import flambeau as torch
    >>> file = io.BytesIO()
    >>> torch.save({"w": torch.ones(2)}, file)
    >>> _ = file.seek(0)
    >>> torch.load(file)
    {'w': tensor([1., 1.])}
    """
    if not isinstance(f, (str, os.PathLike)) and not hasattr(f, "write"):
        raise AttributeError("expected 'f' to be string, path, or a file-like object with a 'write' attribute")
    if not _use_new_zipfile_serialization:
        from .legacy import save_legacy

        if options.local.skip_data:
            raise RuntimeError("Cannot use skip_data=True with _use_new_zipfile_serialization=False")
        if isinstance(f, (str, os.PathLike)):
            with open(f, "wb") as file:
                save_legacy(obj, file, pickle_module, pickle_protocol)
        else:
            save_legacy(obj, f, pickle_module, pickle_protocol)
            f.flush()
        return
    if isinstance(f, (str, os.PathLike)):
        path = os.fspath(f)
        pickled = _pickle(obj, pickle_module, pickle_protocol)  # before an existing file is overwritten
        with _opened_for_writing(path) as file:
            _write(*pickled, file, _archive_folder(path), _disable_byteorder_record)
        return
    if not callable(f.write):
        raise TypeError(f"Buffer of {str(type(f)).strip('<>')} has no callable attribute 'write'")
    _write(*_pickle(obj, pickle_module, pickle_protocol), f, "archive", _disable_byteorder_record)
    f.flush()


def _opened_for_writing(path: str) -> Any:
    parent = os.path.dirname(path)
    if parent and not os.path.isdir(parent):
        raise RuntimeError(f"Parent directory {parent} does not exist.")
    try:
        return open(path, "wb")
    except OSError as error:
        raise RuntimeError("[enforce fail at inline_container.cc:747] . open file failed with strerror: "
                           f"{error.strerror}") from None


def _archive_folder(path: str) -> str:
    """The folder of the records: the file name without its last suffix."""
    return PurePath(path).stem or "archive" if path.isascii() else "archive"


def _pickle(obj: object, module: Any, protocol: int) -> tuple[bytes, StorageTable]:
    storages = StorageTable(str)
    alive: list[Any] = []  # the pickler's memo needs the ids of temporary objects to stay unique

    def persistent_id(obj: Any) -> Any:
        entry = storages.entry(obj)
        if entry is None:
            return None
        alive.append(obj)
        storage_type, key, location, count = entry
        return "storage", storage_type, key, location, count

    buffer = io.BytesIO()
    pickler(module, buffer, protocol, persistent_id).dump(obj)
    return buffer.getvalue(), storages


def _write(pickled: bytes, storages: StorageTable, file: Any, folder: str, no_byteorder: bool) -> None:
    archive = ArchiveWriter(file, folder, options.save.storage_alignment, options.save.compute_crc32)
    archive.record("data.pkl", pickled)
    archive.record(".format_version", b"1")
    archive.record(".storage_alignment", b"%d" % options.save.storage_alignment)
    if not no_byteorder:
        archive.record("byteorder", sys.byteorder.encode())
    for key, (storage, _) in storages.entries.items():
        if options.local.skip_data:
            archive.reserve(f"data/{key}", storage.nbytes())
        else:
            archive.record(f"data/{key}", bytes_of(storage))
    archive.close()
