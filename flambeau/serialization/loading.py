"""`load`: reading checkpoint files that flambeau or PyTorch wrote."""

from __future__ import annotations

import io
import os
import pickle
import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from .. import dtypes
from .._tensor.memory.pickling import check_sparse_tensors, unchecked
from .._tensor.memory.storage import TypedStorage, UntypedStorage
from ..warning_location import user_stacklevel
from . import options, safe_globals, weights_unpickler
from .archive import ArchiveReader
from .legacy import load_legacy
from .locations import restore_function
from .pickling import unpickler

_UNSAFE_HINT = (
    "In PyTorch 2.6, we changed the default value of the `weights_only` argument in `torch.load` from `False` to "
    "`True`. Re-running `torch.load` with `weights_only` set to `False` will likely succeed, but it can result in "
    "arbitrary code execution. Do it only if you got the file from a trusted source.")
_DOCS = ("\n\nCheck the documentation of torch.load to learn more about types accepted by default with weights_only "
         "https://pytorch.org/docs/stable/generated/torch.load.html.")
_TRUE_VALUES = ("1", "y", "yes", "true")


def load(f: Any, map_location: Any = None, pickle_module: Any = None, *, weights_only: bool | None = None,
         mmap: bool | None = None, **pickle_load_args: Any) -> Any:
    """Load an object that `save` wrote, in flambeau or PyTorch.

    Args:
        f: a path, or a seekable file object.
        map_location: target device of the storages: a device or its name, a dict from devices in the file to devices,
            or a function `(storage, location) -> storage | None`. The CPU is the only device.
        pickle_module: module whose `Unpickler` reads the pickle; requires `weights_only=False`.
        weights_only: allow only tensors, plain values, containers, and globals added by `add_safe_globals`. Default:
            True. False lets the file run arbitrary code.
        mmap: map the file into memory instead of reading the storages (default False).
        pickle_load_args: options of the unpickler with `weights_only=False`: `encoding`, `errors`.

    Returns:
        The object.

    Raises:
        pickle.UnpicklingError: the file contains a global or an opcode that is not allowed.
        RuntimeError: the file is corrupt, or a storage is on a device that does not exist.
        ValueError: `mmap` with a file object.

    >>> import io
    >>> import flambeau as torch
    >>> file = io.BytesIO()
    >>> torch.save(torch.arange(3), file)
    >>> _ = file.seek(0)
    >>> torch.load(file)
    tensor([0, 1, 2])
    """
    weights_only_mode = _is_weights_only(weights_only, pickle_module)
    if weights_only_mode and pickle_module is not None:
        raise RuntimeError("Can not safely load weights when explicit pickle_module is specified")
    if pickle_load_args and weights_only_mode:
        warnings.warn("pickle_load_args only works if `weights_only=False`.", stacklevel=2)
    pickle_load_args.setdefault("encoding", "utf-8")
    module = weights_unpickler if weights_only_mode else pickle if pickle_module is None else pickle_module
    use_mmap = options.load.mmap if mmap is None else mmap
    path = os.fspath(f) if isinstance(f, (str, os.PathLike)) else None
    if path is not None and path.endswith(".safetensors"):
        raise RuntimeError("Attempting to load a safetensors file, which flambeau does not read: load it with the "
                           "package safetensors, as NumPy arrays.")
    with _opened_for_reading(f) as file, _checking_sparse_tensors():
        try:
            if not _is_zip(file):
                if use_mmap:
                    raise RuntimeError("mmap can only be used with files saved with "
                                       f"`torch.save({f'{f}, ' if isinstance(f, str) else ''}"
                                       "_use_new_zipfile_serialization=True), please torch.save your checkpoint with "
                                       "this option in order to use mmap.")
                return load_legacy(file, map_location, module, _UNSAFE_HINT if weights_only_mode else None,
                                   **pickle_load_args)
            archive = ArchiveReader(file)
            if archive.has("constants.pkl"):
                _reject_torchscript(weights_only_mode)
            if use_mmap and path is None:
                raise ValueError("f must be a file path in order to use the mmap argument")
            mapping = _map_file(path) if use_mmap and path is not None else None
            return _load_archive(archive, map_location, module, mapping, pickle_load_args)
        except pickle.UnpicklingError as error:
            if not weights_only_mode:
                raise
            raise pickle.UnpicklingError(_load_error_message(str(error))) from None


@contextmanager
def _checking_sparse_tensors() -> Iterator[None]:
    """Check the sparse tensors that the block loads, if their checks are enabled."""
    unchecked.clear()
    yield
    check_sparse_tensors()


def get_unsafe_globals_in_checkpoint(f: Any) -> list[str]:
    """The globals in a file that `load` with `weights_only=True` does not allow.

    Args:
        f: a path, or a seekable file object.

    Returns:
        PyTorch's qualified names.

    Raises:
        ValueError: the file is not a zip archive of `save`.

    >>> import io
    >>> import flambeau as torch
    >>> file = io.BytesIO()
    >>> torch.save(torch.nn.Tanh(), file)
    >>> _ = file.seek(0)
    >>> torch.serialization.get_unsafe_globals_in_checkpoint(file)
    ['torch.nn.modules.activation.Tanh']
    """
    with _opened_for_reading(f) as file:
        if not _is_zip(file):
            raise ValueError("Expected input to be a checkpoint returned by torch.save")
        archive = ArchiveReader(file)
        if archive.has("constants.pkl"):
            raise ValueError("Expected input to be a checkpoint returned by torch.save but got a torchscript "
                             "checkpoint")
        return list(weights_unpickler.globals_in(archive.record("data.pkl")) - safe_globals.all_names())


# ----- options and checks ----------------------------------------------------------------


def _is_weights_only(weights_only: bool | None, pickle_module: Any) -> bool:
    force = os.getenv("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "0").lower() in _TRUE_VALUES
    force_not = os.getenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "0").lower() in _TRUE_VALUES
    if force and force_not:
        raise RuntimeError("Only one of `TORCH_FORCE_WEIGHTS_ONLY_LOAD` or `TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD` should "
                           "be set, but both were set.")
    if force:
        return True
    if weights_only is not None:
        return weights_only
    if force_not:
        warnings.warn("Environment variable TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD detected, since the`weights_only` "
                      "argument was not explicitly passed to `torch.load`, forcing weights_only=False.", UserWarning,
                      stacklevel=user_stacklevel())
        return False
    return pickle_module is None


def _load_error_message(message: str) -> str:
    """PyTorch's message around the reason why a file was rejected."""
    if re.search(r"GLOBAL (\S+) was not an allowed global by default.", message):
        return ("Weights only load failed. This file can still be loaded, to do so you have two options, "
                "\033[1mdo those steps only if you trust the source of the checkpoint\033[0m. "
                f"\n\t(1) {_UNSAFE_HINT}\n\t(2) Alternatively, to load with `weights_only=True` please check the "
                f"recommended steps in the following error message.\n\tWeightsUnpickler error: {message}{_DOCS}")
    report_request = "" if re.search(r"whose module (\S+) is blocked", message) else (
        "Please file an issue with the following so that we can make `weights_only=True` compatible with your use "
        "case: WeightsUnpickler error: ")
    return f"Weights only load failed. {_UNSAFE_HINT}\n{report_request}\n\n{message}{_DOCS}"


@contextmanager
def _opened_for_reading(f: Any) -> Iterator[Any]:
    if isinstance(f, (str, os.PathLike)):
        with open(f, "rb") as file:
            yield file
    else:
        _check_seekable(f)
        yield f


def _check_seekable(file: Any) -> None:
    try:
        file.seek(file.tell())
    except (io.UnsupportedOperation, AttributeError) as error:
        text = str(error)
        if "seek" in text or "tell" in text:
            raise type(error)(f"{text}. You can only torch.load from a file that is seekable. Please pre-load the data "
                              "into a buffer like io.BytesIO and try to load from it instead.") from None
        raise


def _is_zip(file: Any) -> bool:
    start = file.tell()
    magic = file.read(4)
    file.seek(start)
    return magic == b"PK\3\4"


def _reject_torchscript(weights_only_mode: bool) -> None:
    warnings.warn("'torch.load' received a zip file that looks like a TorchScript archive dispatching to "
                  "'torch.jit.load' (call 'torch.jit.load' directly to silence this warning)", UserWarning,
                  stacklevel=user_stacklevel())
    if weights_only_mode:
        raise RuntimeError("Cannot use ``weights_only=True`` with TorchScript archives passed to ``torch.load``. "
                           + _UNSAFE_HINT)
    raise NotImplementedError("flambeau does not run TorchScript: save the module's state_dict() with PyTorch instead")


# ----- the archive ------------------------------------------------------------------------


def _load_archive(archive: ArchiveReader, map_location: Any, module: Any, mapping: Any,
                  pickle_load_args: dict[str, Any]) -> Any:
    restore = restore_function(map_location)
    loaded: dict[str, TypedStorage] = {}
    needs_byteswap = _byteorder(archive) != sys.byteorder

    def persistent_load(identity: Any) -> TypedStorage:
        if not isinstance(identity, tuple):
            raise AssertionError(f"saved_id must be a tuple, got {type(identity).__name__}")
        kind, *rest = identity
        if as_str(kind) != "storage":
            raise AssertionError(f"Unknown typename for persistent_load, expected 'storage' but got '{as_str(kind)}'")
        storage_type, key, location, count = rest
        if key not in loaded:
            dtype = dtypes.uint8 if storage_type is UntypedStorage else storage_type.dtype
            storage = _load_storage(archive, f"data/{key}", dtype, count * dtype.itemsize, mapping)
            if needs_byteswap:
                storage.byteswap(dtype)
            loaded[key] = TypedStorage(restore(storage, as_str(location)), dtype)
        return loaded[key]

    return unpickler(module, io.BytesIO(archive.record("data.pkl")), persistent_load, **pickle_load_args).load()


def as_str(value: str | bytes) -> str:
    """A string of the format, which pickles of Python 2 contain as bytes."""
    return value.decode("ascii") if isinstance(value, bytes) else value


def _byteorder(archive: ArchiveReader) -> str:
    if archive.has("byteorder"):
        byteorder = archive.record("byteorder").decode()
        if byteorder not in ("little", "big"):
            raise ValueError(f"Unknown endianness type: {byteorder}")
        return byteorder
    endianness = options.load.endianness
    if endianness is options.LoadEndianness.NATIVE:
        return sys.byteorder
    return "big" if endianness is options.LoadEndianness.BIG else "little"


def _load_storage(archive: ArchiveReader, name: str, dtype: dtypes.dtype, nbytes: int, mapping: Any) -> UntypedStorage:
    if options.local.skip_data:
        return UntypedStorage.of(np.zeros(nbytes // dtype.itemsize, dtype.numpy))
    record_size = archive.size(name)
    if record_size < nbytes:
        raise RuntimeError(f"PytorchStreamReader failed reading file {name}: it has {record_size} bytes, but {nbytes} "
                           "are required")
    if mapping is not None and nbytes:
        start = archive.offset(name)
        if not start % dtype.itemsize:
            return UntypedStorage.of(np.frombuffer(mapping, dtype.numpy, nbytes // dtype.itemsize, start))
    array = np.empty(nbytes // dtype.itemsize, dtype.numpy)
    if record_size == nbytes:
        archive.read(name, array)
    else:
        array.view(np.uint8)[:] = np.frombuffer(archive.record(name), np.uint8, nbytes)
    return UntypedStorage.of(array)


def _map_file(path: str) -> Any:
    """Map a file into memory; writes are private unless `options.load.mmap_flags` is MAP_SHARED."""
    import mmap

    shared = options.load.mmap_flags is not None and options.load.mmap_flags == getattr(mmap, "MAP_SHARED", None)
    with open(path, "r+b" if shared else "rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_WRITE if shared else mmap.ACCESS_COPY)


__all__ = ["get_unsafe_globals_in_checkpoint", "load"]
