"""`load`: what a file holds, whether flambeau or PyTorch wrote it."""

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
from .._tensor.storage import TypedStorage, UntypedStorage
from ..warning_location import user_stacklevel
from . import options, safe_globals, weights_unpickler
from .archive import ArchiveReader
from .legacy import load_legacy
from .locations import restorer
from .pickling import unpickler

_UNSAFE = (
    "In PyTorch 2.6, we changed the default value of the `weights_only` argument in `torch.load` from `False` to "
    "`True`. Re-running `torch.load` with `weights_only` set to `False` will likely succeed, but it can result in "
    "arbitrary code execution. Do it only if you got the file from a trusted source.")
_DOCS = ("\n\nCheck the documentation of torch.load to learn more about types accepted by default with weights_only "
         "https://pytorch.org/docs/stable/generated/torch.load.html.")
_YES = ("1", "y", "yes", "true")


def load(f: Any, map_location: Any = None, pickle_module: Any = None, *, weights_only: bool | None = None,
         mmap: bool | None = None, **pickle_load_args: Any) -> Any:
    """What a file of `save` holds, flambeau's or PyTorch's.

    Args:
        f: a path, or a file object that can seek.
        map_location: where to put the storages: a device or its name, a dict of them from those in the file, or a
            function of a storage and its location. There is only the CPU.
        pickle_module: reads the pickle; only with `weights_only=False`.
        weights_only: make only tensors, plain values and containers, and what `add_safe_globals` allows. Default:
            True. With False the file can run any code.
        mmap: map the file into memory instead of reading the storages.
        pickle_load_args: for the unpickler, with `weights_only=False`: `encoding`, `errors`.

    Raises:
        pickle.UnpicklingError: the file asks for what is not allowed.
        RuntimeError: the file is damaged, or asks for a device that is not there.

    >>> import io
    >>> import flambeau as torch
    >>> file = io.BytesIO()
    >>> torch.save(torch.arange(3), file)
    >>> _ = file.seek(0)
    >>> torch.load(file)
    tensor([0, 1, 2])
    """
    safely = _whether_safely(weights_only, pickle_module)
    if safely and pickle_module is not None:
        raise RuntimeError("Can not safely load weights when explicit pickle_module is specified")
    if pickle_load_args and safely:
        warnings.warn("pickle_load_args only works if `weights_only=False`.", stacklevel=2)
    pickle_load_args.setdefault("encoding", "utf-8")
    module = weights_unpickler if safely else pickle if pickle_module is None else pickle_module
    mapped = options.load.mmap if mmap is None else mmap
    path = os.fspath(f) if isinstance(f, (str, os.PathLike)) else None
    if path is not None and path.endswith(".safetensors"):
        raise RuntimeError("Attempting to load a safetensors file, which flambeau does not read: load it with the "
                           "package safetensors, as NumPy arrays.")
    with _opened(f) as file:
        try:
            if not _is_zip(file):
                if mapped:
                    raise RuntimeError("mmap can only be used with files saved with "
                                       f"`torch.save({f'{f}, ' if isinstance(f, str) else ''}"
                                       "_use_new_zipfile_serialization=True), please torch.save your checkpoint with "
                                       "this option in order to use mmap.")
                return load_legacy(file, map_location, module, _UNSAFE if safely else None, **pickle_load_args)
            archive = ArchiveReader(file)
            if archive.has("constants.pkl"):
                _refuse_script(safely)
            if mapped and path is None:
                raise ValueError("f must be a file path in order to use the mmap argument")
            whole = _map(path) if mapped and path is not None else None
            return _load_archive(archive, map_location, module, whole, pickle_load_args)
        except pickle.UnpicklingError as error:
            if not safely:
                raise
            raise pickle.UnpicklingError(_advice(str(error))) from None


def get_unsafe_globals_in_checkpoint(f: Any) -> list[str]:
    """The names that a file asks for and `load` with `weights_only=True` does not trust."""
    with _opened(f) as file:
        if not _is_zip(file):
            raise ValueError("Expected input to be a checkpoint returned by torch.save")
        archive = ArchiveReader(file)
        if archive.has("constants.pkl"):
            raise ValueError("Expected input to be a checkpoint returned by torch.save but got a torchscript "
                             "checkpoint")
        return list(weights_unpickler.globals_in(archive.record("data.pkl")) - safe_globals.all_names())


# ----- what was asked for ----------------------------------------------------------------


def _whether_safely(weights_only: bool | None, pickle_module: Any) -> bool:
    force = os.getenv("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "0").lower() in _YES
    force_not = os.getenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "0").lower() in _YES
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


def _advice(message: str) -> str:
    """PyTorch's words around the reason why a file was refused."""
    if re.search(r"GLOBAL (\S+) was not an allowed global by default.", message):
        return ("Weights only load failed. This file can still be loaded, to do so you have two options, "
                "\033[1mdo those steps only if you trust the source of the checkpoint\033[0m. "
                f"\n\t(1) {_UNSAFE}\n\t(2) Alternatively, to load with `weights_only=True` please check the "
                f"recommended steps in the following error message.\n\tWeightsUnpickler error: {message}{_DOCS}")
    plea = "" if re.search(r"whose module (\S+) is blocked", message) else (
        "Please file an issue with the following so that we can make `weights_only=True` compatible with your use "
        "case: WeightsUnpickler error: ")
    return f"Weights only load failed. {_UNSAFE}\n{plea}\n\n{message}{_DOCS}"


@contextmanager
def _opened(f: Any) -> Iterator[Any]:
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
    first = file.read(4)
    file.seek(start)
    return first == b"PK\3\4"


def _refuse_script(safely: bool) -> None:
    warnings.warn("'torch.load' received a zip file that looks like a TorchScript archive dispatching to "
                  "'torch.jit.load' (call 'torch.jit.load' directly to silence this warning)", UserWarning,
                  stacklevel=user_stacklevel())
    if safely:
        raise RuntimeError("Cannot use ``weights_only=True`` with TorchScript archives passed to ``torch.load``. "
                           + _UNSAFE)
    raise NotImplementedError("flambeau does not run TorchScript: save the module's state_dict() with PyTorch instead")


# ----- the archive ------------------------------------------------------------------------


def _load_archive(archive: ArchiveReader, map_location: Any, module: Any, whole: Any,
                  pickle_load_args: dict[str, Any]) -> Any:
    restore = restorer(map_location)
    loaded: dict[str, TypedStorage] = {}
    swapped = _byteorder(archive) != sys.byteorder

    def persistent_load(identity: Any) -> TypedStorage:
        if not isinstance(identity, tuple):
            raise AssertionError(f"saved_id must be a tuple, got {type(identity).__name__}")
        kind, *rest = identity
        if text(kind) != "storage":
            raise AssertionError(f"Unknown typename for persistent_load, expected 'storage' but got '{text(kind)}'")
        storage_type, key, location, count = rest
        if key not in loaded:
            dtype = dtypes.uint8 if storage_type is UntypedStorage else storage_type.dtype
            storage = _storage(archive, f"data/{key}", dtype, count * dtype.itemsize, whole)
            if swapped:
                storage.byteswap(dtype)
            loaded[key] = TypedStorage(restore(storage, text(location)), dtype)
        return loaded[key]

    return unpickler(module, io.BytesIO(archive.record("data.pkl")), persistent_load, **pickle_load_args).load()


def text(value: str | bytes) -> str:
    """A key of the format, which pickles of Python 2 may hold as bytes."""
    return value.decode("ascii") if isinstance(value, bytes) else value


def _byteorder(archive: ArchiveReader) -> str:
    if archive.has("byteorder"):
        found = archive.record("byteorder").decode()
        if found not in ("little", "big"):
            raise ValueError(f"Unknown endianness type: {found}")
        return found
    wanted = options.load.endianness
    if wanted is options.LoadEndianness.NATIVE:
        return sys.byteorder
    return "big" if wanted is options.LoadEndianness.BIG else "little"


def _storage(archive: ArchiveReader, name: str, dtype: dtypes.dtype, nbytes: int, whole: Any) -> UntypedStorage:
    if options.local.skip_data:
        return UntypedStorage.of(np.zeros(nbytes // dtype.itemsize, dtype.numpy))
    there = archive.size(name)
    if there < nbytes:
        raise RuntimeError(f"PytorchStreamReader failed reading file {name}: it has {there} bytes, and {nbytes} are "
                           "asked for")
    if whole is not None and nbytes:
        start = archive.offset(name)
        if not start % dtype.itemsize:
            return UntypedStorage.of(np.frombuffer(whole, dtype.numpy, nbytes // dtype.itemsize, start))
    array = np.empty(nbytes // dtype.itemsize, dtype.numpy)
    if there == nbytes:
        archive.read(name, array)
    else:
        array.view(np.uint8)[:] = np.frombuffer(archive.record(name), np.uint8, nbytes)
    return UntypedStorage.of(array)


def _map(path: str) -> Any:
    """A file as memory: writes to it stay private unless the options say otherwise."""
    import mmap

    shared = options.load.mmap_flags is not None and options.load.mmap_flags == getattr(mmap, "MAP_SHARED", None)
    with open(path, "r+b" if shared else "rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_WRITE if shared else mmap.ACCESS_COPY)


__all__ = ["get_unsafe_globals_in_checkpoint", "load"]
