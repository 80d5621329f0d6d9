"""The sizes of the processor's L2 and last-level caches, as the operating system reports them."""

from __future__ import annotations

import ctypes
import os
import sys
from functools import cache
from pathlib import Path

from . import target

#: bytes of the L2 cache if the system does not report it, and those assumed of another machine
_DEFAULT_L2, _FOREIGN_L2 = 1 << 20, 1 << 19
#: bytes of the last-level cache if the system does not report it, and the smallest size that is accepted
DEFAULT_LAST_LEVEL, MIN_LAST_LEVEL = 32 << 20, 4 << 20
_UNITS = {"K": 10, "M": 20, "G": 30}
_SYSFS = "/sys/devices/system/cpu/cpu0/cache"


@cache
def l2_size() -> int:
    """Bytes of the L2 cache, which on most machines belongs to one core.

    >>> l2_size() >= 1 << 17
    True
    """
    if target.is_foreign():
        return _FOREIGN_L2
    size = None
    if sys.platform == "linux":
        size = _l2_size_on_linux(Path(_SYSFS))
    elif sys.platform == "darwin":
        size = _l2_size_on_macos()
    return size or _DEFAULT_L2


def _l2_size_on_linux(folder: Path) -> int | None:
    for index in sorted(folder.glob("index*")):
        try:
            if (index / "level").read_text().strip() == "2" and (index / "type").read_text().strip() != "Instruction":
                text = (index / "size").read_text().strip()
                unit = _UNITS.get(text[-1:], 0)
                return int(text[:-1] if unit else text) << unit or None
        except (OSError, ValueError):
            continue
    return None


def _l2_size_on_macos() -> int | None:
    size, length = ctypes.c_int64(), ctypes.c_size_t(8)
    try:
        system = ctypes.CDLL(None)
        if system.sysctlbyname(b"hw.l2cachesize", ctypes.byref(size), ctypes.byref(length), None, ctypes.c_size_t(0)):
            return None
    except (OSError, AttributeError):
        return None
    return size.value or None


@cache
def last_level_size() -> int:
    """Bytes of the last-level cache.

    >>> last_level_size() >= MIN_LAST_LEVEL
    True
    """
    try:
        folders = [name for name in os.listdir(_SYSFS) if name.startswith("index")]
    except OSError:
        return DEFAULT_LAST_LEVEL
    return max(MIN_LAST_LEVEL, max(map(_size_of_level, folders), default=DEFAULT_LAST_LEVEL))


def _size_of_level(folder: str) -> int:
    try:
        with open(f"{_SYSFS}/{folder}/size", encoding="ascii") as file:
            text = file.read().strip()
    except OSError:
        return 0
    unit = _UNITS.get(text[-1:])
    number = text if unit is None else text[:-1]
    return int(number) << (unit or 0) if number.isdigit() else 0


__all__ = ["DEFAULT_LAST_LEVEL", "MIN_LAST_LEVEL", "l2_size", "last_level_size"]
