"""What holds for all saving and loading unless a call says otherwise: `torch.utils.serialization.config`."""

from __future__ import annotations

import mmap
import threading
from enum import Enum
from typing import Any

_PRIVATE, _SHARED = getattr(mmap, "MAP_PRIVATE", None), getattr(mmap, "MAP_SHARED", None)


class LoadEndianness(Enum):
    """The order of bytes in files that do not say theirs."""

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
    """The order of bytes taken for granted in files that do not say theirs; None: little."""
    return load.endianness


def set_default_load_endianness(endianness: LoadEndianness | None) -> None:
    """Set the order of bytes taken for granted in files that do not say theirs."""
    if not isinstance(endianness, LoadEndianness) and endianness is not None:
        raise TypeError("Invalid argument type in function set_default_load_endianness")
    load.endianness = endianness


def get_crc32_options() -> bool:
    """Whether `save` computes a checksum of every record."""
    return save.compute_crc32


def set_crc32_options(compute_crc32: bool) -> None:
    """Let `save` compute checksums or not; without them other programs may call the archive damaged."""
    save.compute_crc32 = compute_crc32


def get_default_mmap_options() -> int | None:
    """How `load(mmap=True)` maps files: `mmap.MAP_PRIVATE` or `mmap.MAP_SHARED`."""
    return load.mmap_flags


class set_default_mmap_options:
    """Map files privately (writes stay in memory) or shared (writes go to the file); also as a `with` block."""

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
    """A block in which `save` leaves the storages' bytes empty and `load` does not read them."""

    def __init__(self, materialize_fake_tensors: bool = False) -> None:
        self.materialize_fake_tensors = materialize_fake_tensors

    def __enter__(self) -> None:
        self._before = local.skip_data
        local.skip_data = True

    def __exit__(self, *exception: Any) -> None:
        local.skip_data = self._before
