"""Subnormal numbers: the mode of the processor in which operations flush them to zero.

The mode belongs to a thread. It is set in the calling thread and in those of the kernels; new threads inherit it.
"""

from __future__ import annotations

import ctypes
import platform
import sys

from . import thread_pool

#: architecture -> the offset of the control word in the C library's `fenv_t` on Linux, and the bits that flush operands
#: and results: FTZ and DAZ of MXCSR, FZ of FPCR
_CONTROL = {"x86_64": (28, 0x8040), "aarch64": (0, 1 << 24)}
_SIZE = 64


def set_flush_to_zero(enabled: bool) -> bool:
    """Flush subnormal numbers to zero from now on, or no longer; return whether the processor's mode could be set."""
    found = _CONTROL.get(platform.machine())
    if found is None or not sys.platform.startswith("linux"):
        return False
    offset, bits = found
    library = ctypes.CDLL(None)
    environment = ctypes.create_string_buffer(_SIZE)
    if library.fegetenv(environment):
        return False
    word = ctypes.c_uint32.from_buffer(environment, offset)
    before = word.value
    word.value = before | bits if enabled else before & ~bits
    if word.value == before:
        return True
    if library.fesetenv(environment):
        return False
    thread_pool.restart()
    return True


__all__ = ["set_flush_to_zero"]
