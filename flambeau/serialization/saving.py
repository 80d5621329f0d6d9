"""`save`: an object into a file that PyTorch reads too."""

from __future__ import annotations

import io
import os
import pickle
import sys
from pathlib import PurePath
from typing import Any

from . import options
from .archive import ArchiveWriter
from .pickling import DEFAULT_PROTOCOL, Storages, bytes_of, pickler


def save(obj: object, f: Any, pickle_module: Any = pickle, pickle_protocol: int = DEFAULT_PROTOCOL,
         _use_new_zipfile_serialization: bool = True, _disable_byteorder_record: bool = False) -> None:
    """Write an object into a file: tensors, containers of them, state dicts, whole modules.

    Tensors that share memory share it again when they are loaded. Only values are written, no history and no hooks.

    Args:
        obj: what to save.
        f: a path, or a file object to write bytes to.
        pickle_module: makes the pickle; one whose pickler is written in C writes flambeau's own names, which
            PyTorch does not understand.
        pickle_protocol: the pickle's protocol. `load` with `weights_only=True` understands 2 best.

    Raises:
        AttributeError: `f` is neither.
        RuntimeError: the folder does not exist; or two tensors show the same memory as different dtypes.

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
        pickled = _pickled(obj, pickle_module, pickle_protocol)  # before the old file is lost
        with _opened(path) as file:
            _write(*pickled, file, _folder(path), _disable_byteorder_record)
        return
    if not callable(f.write):
        raise TypeError(f"Buffer of {str(type(f)).strip('<>')} has no callable attribute 'write'")
    _write(*_pickled(obj, pickle_module, pickle_protocol), f, "archive", _disable_byteorder_record)
    f.flush()


def _opened(path: str) -> Any:
    parent = os.path.dirname(path)
    if parent and not os.path.isdir(parent):
        raise RuntimeError(f"Parent directory {parent} does not exist.")
    try:
        return open(path, "wb")
    except OSError as error:
        raise RuntimeError("[enforce fail at inline_container.cc:747] . open file failed with strerror: "
                           f"{error.strerror}") from None


def _folder(path: str) -> str:
    """The name of the records' folder: the file's own, without its last suffix."""
    return PurePath(path).stem or "archive" if path.isascii() else "archive"


def _pickled(obj: object, module: Any, protocol: int) -> tuple[bytes, Storages]:
    storages = Storages(str)
    kept: list[Any] = []  # an object must not be freed, and its identity given to another, while the pickle is made

    def persistent_id(obj: Any) -> Any:
        named = storages.name(obj)
        if named is None:
            return None
        kept.append(obj)
        kind, key, location, count = named
        return "storage", kind, key, location, count

    written = io.BytesIO()
    pickler(module, written, protocol, persistent_id).dump(obj)
    return written.getvalue(), storages


def _write(pickled: bytes, storages: Storages, file: Any, folder: str, no_byteorder: bool) -> None:
    archive = ArchiveWriter(file, folder, options.save.storage_alignment, options.save.compute_crc32)
    archive.record("data.pkl", pickled)
    archive.record(".format_version", b"1")
    archive.record(".storage_alignment", b"%d" % options.save.storage_alignment)
    if not no_byteorder:
        archive.record("byteorder", sys.byteorder.encode())
    for key, (storage, _) in storages.found.items():
        if options.local.skip_data:
            archive.hole(f"data/{key}", storage.nbytes())
        else:
            archive.record(f"data/{key}", bytes_of(storage))
    archive.close()
