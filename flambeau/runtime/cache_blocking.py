"""How much memory a processor's own cache holds: what a kernel works on again and again should fit."""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from pathlib import Path

#: bytes of it where the system does not say
_USUAL = 1 << 20
_UNITS = {"K": 10, "M": 20, "G": 30}
_LINUX = Path("/sys/devices/system/cpu/cpu0/cache")


@cache
def size() -> int:
    """Bytes of the cache behind the first, which is a processor's own on most machines.

    >>> size() >= 1 << 17
    True
    """
    found = None
    if sys.platform == "linux":
        found = _of_linux(_LINUX)
    elif sys.platform == "darwin":
        found = _of_macos()
    return found or _USUAL


def _of_linux(folder: Path) -> int | None:
    for each in sorted(folder.glob("index*")):
        try:
            if (each / "level").read_text().strip() == "2" and (each / "type").read_text().strip() != "Instruction":
                text = (each / "size").read_text().strip()
                unit = _UNITS.get(text[-1:], 0)
                return int(text[:-1] if unit else text) << unit or None
        except (OSError, ValueError):
            continue
    return None


def _of_macos() -> int | None:
    found, bytes_ = ctypes.c_int64(), ctypes.c_size_t(8)
    try:
        system = ctypes.CDLL(None)
        if system.sysctlbyname(b"hw.l2cachesize", ctypes.byref(found), ctypes.byref(bytes_), None, ctypes.c_size_t(0)):
            return None
    except (OSError, AttributeError):
        return None
    return found.value or None


__all__ = ["size"]
