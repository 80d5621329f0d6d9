"""Default options of `save` and `load`: `torch.utils.serialization.config`."""

from __future__ import annotations

import mmap
import threading
from enum import Enum
from typing import Any

_PRIVATE, _SHARED = getattr(mmap, "MAP_PRIVATE", None), getattr(mmap, "MAP_SHARED", None)


class LoadEndianness(Enum):
    """The byte order assumed for files without a byte order record.

    >>> import flambeau as torch
    >>> torch.serialization.LoadEndianness.BIG.name
    'BIG'
    """

    NATIVE = 1
    LITTLE = 2
    BIG = 3


class load:
    """Options of `load`."""

    mmap: bool = False
    endianness: LoadEndianness | None = None
    mmap_flags: int | None = _PRIVATE
    calculate_storage_offsets: bool = False  # offsets are read from the archive either way


class save:
    """Options of `save`."""

    compute_crc32: bool = True
    use_pinned_memory_for_d2h: bool = False  # of GPUs only
    storage_alignment: int = 64


class _Local(threading.local):
    skip_data = False


local = _Local()


def get_default_load_endianness() -> LoadEndianness | None:
    """The byte order assumed for files without a byte order record; None (default): little endian.

    >>> import flambeau as torch
    >>> print(torch.serialization.get_default_load_endianness())
    None
    """
    return load.endianness


def set_default_load_endianness(endianness: LoadEndianness | None) -> None:
    """Set the byte order assumed for files without a byte order record.

    Args:
        endianness: the byte order; None: little endian.

    Raises:
        TypeError: it is neither.

    >>> import flambeau as torch
    >>> torch.serialization.set_default_load_endianness(torch.serialization.LoadEndianness.LITTLE)
    >>> torch.serialization.set_default_load_endianness(None)
    """
    if not isinstance(endianness, LoadEndianness) and endianness is not None:
        raise TypeError("Invalid argument type in function set_default_load_endianness")
    load.endianness = endianness


def get_crc32_options() -> bool:
    """Whether `save` computes a CRC-32 checksum of each record (default True).

    >>> import flambeau as torch
    >>> torch.serialization.get_crc32_options()
    True
    """
    return save.compute_crc32


def set_crc32_options(compute_crc32: bool) -> None:
    """Set whether `save` computes checksums; without them, other zip programs may report a corrupt archive.

    Args:
        compute_crc32: whether to compute them.

    >>> import flambeau as torch
    >>> torch.serialization.set_crc32_options(False)
    >>> torch.serialization.set_crc32_options(True)
    """
    save.compute_crc32 = compute_crc32


def get_default_mmap_options() -> int | None:
    """The flag with which `load(mmap=True)` maps files: `mmap.MAP_PRIVATE` (default) or `mmap.MAP_SHARED`.

    >>> import mmap
    >>> import flambeau as torch
    >>> torch.serialization.get_default_mmap_options() == mmap.MAP_PRIVATE
    True
    """
    return load.mmap_flags


class set_default_mmap_options:
    """Set the flag with which `load(mmap=True)` maps files; also a context manager.

    Args:
        flags: `mmap.MAP_PRIVATE`: writes stay in memory; `mmap.MAP_SHARED`: writes go to the file.

    Raises:
        RuntimeError: on Windows.
        ValueError: another flag.

    >>> import mmap
    >>> import flambeau as torch
    >>> with torch.serialization.set_default_mmap_options(mmap.MAP_SHARED):
    ...     torch.serialization.get_default_mmap_options() == mmap.MAP_SHARED
    True
    """

    def __init__(self, flags: int) -> None:
        if _PRIVATE is None:
            raise RuntimeError("Changing the default mmap options is currently not supported for Windows")
        if flags not in (_PRIVATE, _SHARED):
            raise ValueError("Invalid argument in function set_default_mmap_options, expected mmap.MAP_PRIVATE or "
                             f"mmap.MAP_SHARED, but got {flags}")
        self.prev = load.mmap_flags
        load.mmap_flags = flags

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: Any) -> None:
        load.mmap_flags = self.prev


class skip_data:
    """A context manager: `save` writes zeros in place of the storages, and `load` does not read them.

    Args:
        materialize_fake_tensors: stored; there are no fake tensors.

    >>> import io
    >>> import flambeau as torch
    >>> file = io.BytesIO()
    >>> with torch.serialization.skip_data():
    ...     torch.save(torch.ones(2), file)
    >>> _ = file.seek(0)
    >>> torch.load(file)
    tensor([0., 0.])
    """

    def __init__(self, materialize_fake_tensors: bool = False) -> None:
        self.materialize_fake_tensors = materialize_fake_tensors

    def __enter__(self) -> None:
        self._previous = local.skip_data
        local.skip_data = True

    def __exit__(self, *exception: Any) -> None:
        local.skip_data = self._previous
