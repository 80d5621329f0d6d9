"""AMX's tile registers: whether the processor has them, and the operating system lets this process use them.

Linux saves tiles (8 KB) only for processes that asked for them. The permission holds for all threads and for children
that are forked.
"""

from __future__ import annotations

import ctypes
import sys
from functools import cache

from . import target

#: of x86-64's `arch_prctl`, its request for permission, and the state component of tiles
_ARCH_PRCTL, _REQUEST_PERMISSION, _TILE_DATA = 158, 0x1023, 18


@cache
def multiply_bfloat16() -> bool:
    """Whether products of bfloat16 may use tiles; the first call asks the operating system."""
    this = target.host()
    features = this.features.split(",")
    if (target.is_foreign() or sys.platform != "linux" or this.vector_bits != 512
            or not {"+amx-tile", "+amx-bf16", "+avx512bf16"}.issubset(features)):
        return False
    return ctypes.CDLL(None).syscall(_ARCH_PRCTL, _REQUEST_PERMISSION, _TILE_DATA) == 0


__all__ = ["multiply_bfloat16"]
